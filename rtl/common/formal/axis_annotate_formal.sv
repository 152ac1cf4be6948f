// axis_annotate: no beat is lost, doubled, changed or reordered, and beside the last beat of each frame stands its own note, for
// all pauses of both sides and all delays of the notes.
//
// Proved by induction, without a bound, for a store of 4 beats. One beat and one frame, chosen by the solver, are followed from
// their number on the way in to their number on the way out. Assumed of the notes is what the module's header asks for: one
// for each frame, not before it is in whole, the early part not behind the other. That csum_rx keeps to it is proved there.
`default_nettype none

module axis_annotate_formal (
    input wire       clk,
    input wire       rst,
    input wire [7:0] s_axis_tdata,
    input wire       s_axis_tvalid,
    input wire       s_axis_tlast,
    input wire       s_axis_tuser,
    input wire [1:0] note,
    input wire       note_valid,
    input wire       early,
    input wire       early_valid,
    input wire       m_axis_tready,
    input wire [3:0] chosen,
    input wire [3:0] chosen_frame
);
  logic       s_axis_tready, m_axis_tvalid, m_axis_tlast, m_axis_tuser, m_axis_tkeep, m_axis_early;
  logic [7:0] m_axis_tdata;
  logic [1:0] m_axis_note;

  // It begins with a reset; there may be others.
  logic first = 1'b1;
  always_ff @(posedge clk) first <= 1'b0;
  always @(posedge clk) if (first) assume (rst);

  // Any numbers, but always the same.
  logic [3:0] chosen_before, chosen_frame_before;
  always_ff @(posedge clk) {chosen_before, chosen_frame_before} <= {chosen, chosen_frame};
  always @(posedge clk) if (!first) assume (chosen == chosen_before && chosen_frame == chosen_frame_before);

  axis_annotate #(.DATA_W(8), .USER_W(1), .NOTE_W(2), .EARLY_W(1), .DEPTH(4)) dut (.*, .s_axis_tkeep(1'b1));

  axis_check #(.DATA_W(8), .ASSUME(1)) input_rules (
      .clk, .rst, .tdata(s_axis_tdata), .tkeep(1'b1), .tvalid(s_axis_tvalid), .tready(s_axis_tready), .tlast(s_axis_tlast),
      .tuser(s_axis_tuser)
  );
  // What is found out about the frame counts as tuser: it must not change either.
  axis_check #(.DATA_W(8), .USER_W(4)) output_rules (
      .clk, .rst, .tdata(m_axis_tdata), .tkeep(m_axis_tkeep), .tvalid(m_axis_tvalid), .tready(m_axis_tready),
      .tlast(m_axis_tlast), .tuser({m_axis_tuser, m_axis_note, m_axis_early})
  );

  // Beats in and out, frames in whole and out of the store, notes in, each modulo 16.
  logic [3:0] beats_in = '0, beats_out = '0, frames_in = '0, frames_out = '0, notes_in = '0, earlies_in = '0;
  logic [9:0] followed;
  logic [1:0] followed_note;
  logic       followed_early;

  wire leaves = m_axis_tvalid && m_axis_tready;

  always_ff @(posedge clk) begin
    if (s_axis_tvalid && s_axis_tready) begin
      beats_in <= beats_in + 4'd1;
      if (s_axis_tlast) frames_in <= frames_in + 4'd1;
      if (beats_in == chosen) followed <= {s_axis_tuser, s_axis_tlast, s_axis_tdata};
    end
    if (leaves) beats_out <= beats_out + 4'd1;
    if (dut.take && dut.head_last) frames_out <= frames_out + 4'd1;
    if (note_valid) notes_in <= notes_in + 4'd1;
    if (note_valid && notes_in == chosen_frame) followed_note <= note;
    if (early_valid) earlies_in <= earlies_in + 4'd1;
    if (early_valid && earlies_in == chosen_frame) followed_early <= early;
    if (rst) begin
      beats_in   <= '0;
      beats_out  <= '0;
      frames_in  <= '0;
      frames_out <= '0;
      notes_in   <= '0;
      earlies_in <= '0;
    end
  end

  // What is promised of the notes.
  always @(posedge clk) begin
    if (note_valid && !rst) assume (notes_in != frames_in && earlies_in != notes_in);
    if (early_valid && !rst) assume (earlies_in != frames_in);
  end

  // What is in the store: beats, and frames whose last beat is.
  wire [3:0]  level = {1'b0, dut.level};
  logic [3:0] lasts;
  logic       lanes_used;
  always_comb begin
    lasts      = '0;
    lanes_used = 1'b1;
    for (int i = 0; i < 4; i++) begin
      if (4'(i) < level) begin
        lasts      = lasts + 4'(dut.beats[2'(dut.beats_out+3'(i))][1]);
        lanes_used = lanes_used && dut.beats[2'(dut.beats_out+3'(i))][2];
      end
    end
  end

  wire [3:0] age       = beats_in - chosen;                 // 1: the newest
  wire [3:0] note_age  = notes_in - chosen_frame;
  wire [3:0] early_age = earlies_in - chosen_frame;
  wire [3:0] notes_held = notes_in - frames_out;
  wire [3:0] earlies_held = earlies_in - frames_out;
  wire [9:0] in_store  = {dut.beats[chosen[1:0]][0], dut.beats[chosen[1:0]][1], dut.beats[chosen[1:0]][10:3]};

  always @(posedge clk) begin
    if (!rst && !first) begin
      // Nothing is lost or doubled, and nothing overwritten.
      assert (level <= 4'd4);
      if (s_axis_tready) assert (level <= 4'd3);
      assert (beats_in - beats_out == level + 4'(m_axis_tvalid));
      // The followed beat and frame come out as they came in.
      if (m_axis_tvalid && beats_out == chosen) assert ({m_axis_tuser, m_axis_tlast, m_axis_tdata} == followed);
      if (m_axis_tvalid && m_axis_tlast && frames_out - 4'd1 == chosen_frame) begin
        assert (m_axis_note == followed_note && m_axis_early == followed_early);
      end
      // What induction needs to know.
      assert (lanes_used && (!m_axis_tvalid || m_axis_tkeep));
      assert (dut.beats_in == beats_in[2:0] && dut.notes_in == notes_in[2:0] && dut.earlies_in == earlies_in[1:0]);
      assert (dut.notes_out == frames_out[2:0]);
      assert (lasts == frames_in - frames_out);
      assert (notes_held <= earlies_held && earlies_held <= lasts);
      if (age != 4'd0 && age <= level) assert (in_store == followed);
      if (note_age != 4'd0 && note_age <= notes_held) assert (dut.notes[chosen_frame[1:0]] == followed_note);
      if (early_age != 4'd0 && early_age <= earlies_held) assert (dut.earlies[chosen_frame[1:0]] == followed_early);
    end
  end
endmodule

`default_nettype wire
