// rx_fifo: the rules of the stream at the output; each frame has exactly one fate, the right one; a kept frame leaves whole, once, in
// its order and unchanged, with what was known at its end and the time of its arrival; no other beat leaves. A frame is dropped for want
// of room only if storage was full at one of its beats, and what was kept is offered within three clocks of its event.
//
// Proved by induction, without a bound: for frames of any length and content, pauses of the reader and resets at any time, at 128
// bits and the smallest sizes that the block takes (8 words, 4 frames of up to 60 bytes, which are 4 beats). One word and one
// frame, chosen by the solver, are followed. The request for a pause is not part of it: that is compared with the reference.
`default_nettype none

module rx_fifo_formal
  import nic_pkg::*;
#(
    // What is proved: 0 fates, order and the rules of the stream; 1 each word; 2 what comes with each frame.
    parameter int PART = 0
) (
    input wire         clk,
    input wire         rst,
    input wire [127:0] s_axis_tdata,
    input wire [15:0]  s_axis_tkeep,
    input wire         s_axis_tvalid,
    input wire         s_axis_tlast,
    input wire [$bits(rx_user_t)-1:0] s_axis_tuser,
    input wire         m_axis_tready,
    input wire [31:0]  now,
    input wire [4:0]   chosen,        // a word
    input wire [3:0]   chosen_frame
);
  localparam int DATA_W    = 128;
  localparam int KEEP_W    = DATA_W / 8;
  localparam int DEPTH     = 8;
  localparam int FRAMES    = 4;
  localparam int MAX_FRAME = 60;
  localparam int LONGEST   = 4;       // beats of MAX_FRAME bytes
  localparam int USER_W    = $bits(rx_user_t);
  localparam int WORD_W    = DATA_W + KEEP_W + 1;

  logic              s_axis_tready, m_axis_tvalid, m_axis_tlast;
  logic              event_frame, event_error, event_too_long, event_rule, event_overflow;
  logic [DATA_W-1:0] m_axis_tdata;
  logic [KEEP_W-1:0] m_axis_tkeep;
  logic [USER_W-1:0] m_axis_tuser;

  // It begins with a reset; there may be others.
  logic first = 1'b1;
  always_ff @(posedge clk) first <= 1'b0;
  always @(posedge clk) if (first) assume (rst);

  // Any numbers, but always the same.
  logic [4:0] chosen_before;
  logic [3:0] chosen_frame_before;
  always_ff @(posedge clk) {chosen_before, chosen_frame_before} <= {chosen, chosen_frame};
  always @(posedge clk) if (!first) assume (chosen == chosen_before && chosen_frame == chosen_frame_before);

  rx_fifo #(.DATA_W(DATA_W), .FIFO_BYTES(DEPTH * KEEP_W), .FRAMES(FRAMES), .MAX_FRAME(MAX_FRAME)) dut (
      .clk, .rst, .s_axis_tdata, .s_axis_tkeep, .s_axis_tvalid, .s_axis_tready, .s_axis_tlast, .s_axis_tuser, .m_axis_tdata,
      .m_axis_tkeep, .m_axis_tvalid, .m_axis_tready, .m_axis_tlast, .m_axis_tuser, .now, .cfg_pause_high('0),
      .cfg_pause_low('0), .pause_request(), .event_frame, .event_error, .event_too_long, .event_rule, .event_overflow
  );

  axis_check #(.DATA_W(DATA_W), .USER_W(1), .ASSUME(1)) input_rules (
      .clk, .rst, .tdata(s_axis_tdata), .tkeep(s_axis_tkeep), .tvalid(s_axis_tvalid), .tready(s_axis_tready),
      .tlast(s_axis_tlast), .tuser(1'b0)
  );
  // Lanes are those of the followed word, so they are looked at there; that they stay is one more of the words' rules.
  axis_check #(.DATA_W(DATA_W), .USER_W(KEEP_W + USER_W), .USER_CONSTANT(PART == 2)) output_rules (
      .clk, .rst, .tdata(m_axis_tdata), .tkeep('1), .tvalid(m_axis_tvalid), .tready(m_axis_tready), .tlast(m_axis_tlast),
      .tuser({PART == 1 ? m_axis_tkeep : KEEP_W'(0), m_axis_tuser})
  );

  // ---------------------------------------------------------------- what came in, one clock later, and two: with its event

  logic              valid_1, ended_2;
  logic [WORD_W-1:0] word_1;          // last, keep, data
  rx_user_t          user_1, user_2;
  logic [2:0]        beats_1, length_2;  // beats of the frame before this one, LONGEST or more are the same; with this one
  logic              too_long_2, tight, tight_2;

  wire rx_user_t user_in = s_axis_tuser;
  wire last_1     = word_1[WORD_W-1];
  wire too_long_1 = beats_1 == 3'(LONGEST) || (beats_1 == 3'(LONGEST - 1) && word_1[DATA_W+12]);
  wire end_1      = valid_1 && last_1;

  // What was kept and what has left, modulo 32 words and 16 frames; 11 words at most are inside.
  logic [4:0] words_kept = '0, words_out = '0;
  logic [3:0] frames_kept = '0, frames_out = '0;
  wire  [4:0] words_in  = words_kept + (event_frame ? 5'(length_2) : 5'd0);
  wire  [3:0] frames_in = frames_kept + 4'(event_frame);
  wire        leaves    = m_axis_tvalid && m_axis_tready;
  wire  [4:0] held      = words_in - words_out;
  wire  [3:0] held_frames = frames_in - frames_out;

  // All storage is taken as this word comes.
  wire tight_now = held + 5'(beats_1) >= 5'(DEPTH) || held_frames >= 4'(FRAMES);

  // Overwritten until the frame is kept.
  logic [WORD_W-1:0] followed;
  rx_user_t          followed_user;
  logic [1:0]        idle = '0;       // clocks in which something was there and nothing was offered

  always_ff @(posedge clk) begin
    valid_1 <= s_axis_tvalid && !rst;
    word_1  <= {s_axis_tlast, s_axis_tkeep, s_axis_tdata};
    user_1  <= user_in;
    user_1.arrival   <= now;
    user_1.seg_count <= 8'd1;
    user_1.seg_size  <= 16'd0;
    ended_2    <= end_1 && !rst;
    user_2     <= user_1;
    length_2   <= beats_1 + 3'd1;
    too_long_2 <= too_long_1;
    tight_2    <= tight || tight_now;
    if (valid_1) begin
      beats_1 <= last_1 ? '0 : beats_1 + 3'(beats_1 != 3'(LONGEST));
      tight   <= !last_1 && (tight || tight_now);
      if (beats_1 < 3'(LONGEST) && words_in + 5'(beats_1) == chosen) followed <= word_1;
      if (last_1 && frames_in == chosen_frame) followed_user <= user_1;
    end
    words_kept  <= words_in;
    frames_kept <= frames_in;
    if (leaves) begin
      words_out <= words_out + 5'd1;
      if (m_axis_tlast) frames_out <= frames_out + 4'd1;
    end
    idle <= held != '0 && !m_axis_tvalid ? idle + 2'd1 : '0;
    if (rst) begin
      beats_1     <= '0;
      tight       <= 1'b0;
      words_kept  <= '0;
      words_out   <= '0;
      frames_kept <= '0;
      frames_out  <= '0;
      idle        <= '0;
    end
  end

  // ---------------------------------------------------------------- what is promised

  wire [2:0] fates = 3'(event_frame) + 3'(event_error) + 3'(event_too_long) + 3'(event_rule) + 3'(event_overflow);
  wire       wanted_2 = !user_2.error && !too_long_2 && !user_2.drop;

  always @(posedge clk) begin
    if (!rst && !first && PART == 0) begin
      assert (s_axis_tready);
      assert (fates == 3'(ended_2));
      if (event_error) assert (user_2.error);
      if (event_too_long) assert (!user_2.error && too_long_2);
      if (event_rule) assert (!user_2.error && !too_long_2 && user_2.drop);
      if (event_frame) assert (wanted_2);
      if (event_overflow) assert (wanted_2 && tight_2);
      // Nothing leaves that was not kept before.
      if (m_axis_tvalid) assert (held != '0 && held_frames != '0);
      assert (held <= 5'(DEPTH + 3) && held_frames <= 4'(FRAMES + 1));
      // It does not get stuck.
      if (idle == 2'd3) assert (m_axis_tvalid);
    end
    // What leaves is what was kept, in its order.
    if (!rst && !first && PART == 1 && m_axis_tvalid && words_out == chosen) begin
      assert ({m_axis_tlast, m_axis_tkeep, m_axis_tdata} == followed && whole_word(followed));
    end
    if (!rst && !first && PART == 2 && m_axis_tvalid && frames_out == chosen_frame) assert (m_axis_tuser == followed_user);
  end

  // ---------------------------------------------------------------- what induction needs to know: words

  // How far each pointer is ahead of the reader.
  wire [3:0] level     = dut.write_ptr - dut.read_ptr;
  wire [3:0] committed = dut.commit_ptr - dut.read_ptr;
  wire [2:0] meta_level = dut.meta_write - dut.meta_read;
  // The registers behind the memory, oldest first; then the place of the followed word among those in memory.
  wire [1:0] after_out  = 2'(m_axis_tvalid);
  wire [1:0] after_word = after_out + 2'(dut.word_valid);
  wire [1:0] after_q    = after_word + 2'(dut.word_q_valid);
  wire [4:0] age   = chosen - words_out;
  wire [4:0] place = age - 5'(after_q);
  wire       fits  = !dut.cut && beats_1 < 3'(LONGEST);
  wire [3:0] known = fits ? level : committed;

  function automatic logic whole_word(input logic [WORD_W-1:0] word);
    logic [KEEP_W-1:0] lanes;
    lanes = word[DATA_W+:KEEP_W];
    return lanes[0] && (lanes & (lanes + KEEP_W'(1))) == '0 && (word[WORD_W-1] || &lanes);
  endfunction

  // Ends of frames among the words that wait.
  logic [3:0] ends;
  logic       open;          // no end behind the last commit
  logic [WORD_W-1:0] stored;
  always_comb begin
    ends = 4'(dut.word_valid && dut.word[WORD_W-1]) + 4'(dut.word_q_valid && dut.word_q[WORD_W-1]);
    open = 1'b1;
    for (int i = 0; i < DEPTH; i++) begin
      stored = dut.words[3'(dut.read_ptr + 4'(i))];
      if (4'(i) < committed && stored[WORD_W-1]) ends = ends + 4'd1;
      if (4'(i) >= committed && 4'(i) < level && stored[WORD_W-1]) open = 1'b0;
    end
  end

  wire [WORD_W-1:0] newest = dut.words[3'(dut.commit_ptr - 4'd1)];

  always @(posedge clk) begin
    if (!rst && !first) begin
      assert (dut.in_valid == valid_1);
      if (valid_1) assert (dut.in_last == last_1);
    end
    if (!rst && !first && PART != 2) begin
      if (valid_1) assert (dut.in_keep == word_1[DATA_W+:KEEP_W] && whole_word(word_1));
      if (valid_1) assert (dut.in_user.error == user_1.error && dut.in_user.drop == user_1.drop);
      assert (dut.beats == beats_1 && beats_1 <= 3'(LONGEST));
      assert (dut.is_full == (beats_1 == 3'(LONGEST - 1)) && dut.is_over == (beats_1 == 3'(LONGEST)));
      assert (input_rules.in_frame == (valid_1 ? !last_1 : beats_1 != '0));
      assert (words_in[3:0] == dut.commit_ptr && level <= 4'(DEPTH) && committed <= level);
      assert (held == 5'(committed) + 5'(after_q));
      if (fits) assert (level - committed == 4'(beats_1));
      if (beats_1 == '0) assert (!dut.cut && level == committed);
    end
    if (!rst && !first && PART == 0) begin
      if (dut.cut && beats_1 < 3'(LONGEST)) assert (tight);
      assert (open);
      // Behind the last word that was kept no frame is open.
      if (committed != '0) assert (newest[WORD_W-1]);
      if (committed == '0 && dut.word_q_valid) assert (dut.word_q[WORD_W-1]);
      if (committed == '0 && !dut.word_q_valid && dut.word_valid) assert (dut.word[WORD_W-1]);
      // How long something waits.
      if (idle == 2'd1) assert (dut.word_q_valid || dut.word_valid || m_axis_tvalid);
      if (idle == 2'd2) assert (dut.word_valid || m_axis_tvalid);
    end
    // The followed word is in its place.
    if (!rst && !first && PART == 1) begin
      if (valid_1) assert (dut.in_data == word_1[DATA_W-1:0]);
      assert (age >= 5'(held) + 5'(known - committed) || whole_word(followed));
      if (m_axis_tvalid && age == '0) assert ({m_axis_tlast, m_axis_tkeep, m_axis_tdata} == followed);
      if (dut.word_valid && age == 5'(after_out)) assert (dut.word == followed);
      if (dut.word_q_valid && age == 5'(after_word)) assert (dut.word_q == followed);
      if (place < 5'(known)) assert (dut.words[3'(dut.read_ptr + 4'(place))] == followed);
    end
  end

  // ---------------------------------------------------------------- frames and what is known of them

  wire        mid    = m_axis_tvalid ? !m_axis_tlast : output_rules.in_frame;
  wire [3:0]  popped = frames_out + 4'(m_axis_tvalid && m_axis_tlast);
  wire [3:0]  turn   = chosen_frame - popped;
  wire [USER_W-1:0] oldest   = dut.metas[dut.meta_read[1:0]];
  wire [USER_W-1:0] mid_user = m_axis_tvalid ? m_axis_tuser : output_rules.frame_user[USER_W-1:0];
  // Words that wait have an entry each frame.
  wire one_entry   = !(mid || committed != '0 || dut.word_q_valid || dut.word_valid) || meta_level != '0;
  wire two_entries = !(dut.word_valid && dut.word[WORD_W-1] && (committed != '0 || dut.word_q_valid)) || meta_level >= 3'd2;

  always @(posedge clk) begin
    if (!rst && !first && PART == 0) begin
      assert (4'(meta_level) == ends);
      if (mid) assert (committed != '0 || dut.word_q_valid || dut.word_valid);
      assert (one_entry && two_entries);
    end
    if (!rst && !first && PART != 1) begin
      assert (meta_level <= 3'(FRAMES));
      assert (frames_in - popped == 4'(meta_level) && frames_in[2:0] == dut.meta_write);
      assert (dut.meta_after == 3'(dut.meta_read + 3'd1));
    end
    if (!rst && !first && PART == 2) begin
      // Proved as part 0.
      assume (one_entry && two_entries);
      if (valid_1) assert (dut.in_user == user_1);
      if (dut.word_valid) assert (dut.meta_q == oldest);
      if (turn < 4'(meta_level)) assert (dut.metas[2'(dut.meta_read + 3'(turn))] == followed_user);
      if (mid) assert (oldest == mid_user);
      if (output_rules.in_frame) assert (output_rules.frame_user[USER_W+:KEEP_W] == '0);
      if (m_axis_tvalid && output_rules.in_frame) assert (m_axis_tuser == output_rules.frame_user[USER_W-1:0]);
      if (mid && frames_out == chosen_frame) assert (oldest == followed_user);
    end
  end
endmodule

`default_nettype wire
