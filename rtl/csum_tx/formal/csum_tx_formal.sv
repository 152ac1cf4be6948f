// csum_tx: the rules of the stream at the output; no beat is lost, doubled or reordered, each frame is as long as it was and goes
// to the channel that it came from; a frame that asks for nothing is what it was, byte for byte.
//
// Proved by induction, without a bound: for all frames, requests, pauses of both sides and resets at any time, at 32 bits with a
// storage of 8 beats and room for 4 results, so that both run full and frames are longer than the storage. One beat and one frame,
// chosen by the solver, are followed from their number on the way in to their number on the way out. What stands in a checksum is
// not part of it: that is compared with the reference.
`default_nettype none

module csum_tx_formal
  import nic_pkg::*;
(
    input wire        clk,
    input wire        rst,
    input wire [31:0] s_axis_tdata,
    input wire [3:0]  s_axis_tkeep,
    input wire        s_axis_tvalid,
    input wire        s_axis_tlast,
    input wire [$bits(tx_user_t)-1:0] s_axis_tuser,
    input wire        m_axis_tready,
    input wire [4:0]  chosen,
    input wire [4:0]  chosen_frame
);
  logic [31:0] m_axis_tdata;
  logic [3:0]  m_axis_tkeep, m_axis_tuser;
  logic        s_axis_tready, m_axis_tvalid, m_axis_tlast;

  // It begins with a reset; there may be others.
  logic first = 1'b1;
  always_ff @(posedge clk) first <= 1'b0;
  always @(posedge clk) if (first) assume (rst);

  // Any numbers, but always the same.
  logic [4:0] chosen_before, chosen_frame_before;
  always_ff @(posedge clk) {chosen_before, chosen_frame_before} <= {chosen, chosen_frame};
  always @(posedge clk) if (!first) assume (chosen == chosen_before && chosen_frame == chosen_frame_before);

  csum_tx #(.DATA_W(32), .FIFO_BYTES(32), .FRAMES_W(2)) dut (
      .clk, .rst, .s_axis_tdata, .s_axis_tkeep, .s_axis_tvalid, .s_axis_tready, .s_axis_tlast, .s_axis_tuser, .m_axis_tdata,
      .m_axis_tkeep, .m_axis_tvalid, .m_axis_tready, .m_axis_tlast, .m_axis_tuser, .event_inserted(), .event_refused(),
      .event_overlong()
  );

  axis_check #(.DATA_W(32), .USER_W($bits(tx_user_t)), .ASSUME(1), .USER_CONSTANT(1)) input_rules (
      .clk, .rst, .tdata(s_axis_tdata), .tkeep(s_axis_tkeep), .tvalid(s_axis_tvalid), .tready(s_axis_tready),
      .tlast(s_axis_tlast), .tuser(s_axis_tuser)
  );
  axis_check #(.DATA_W(32), .USER_W(4), .USER_CONSTANT(1)) output_rules (
      .clk, .rst, .tdata(m_axis_tdata), .tkeep(m_axis_tkeep), .tvalid(m_axis_tvalid), .tready(m_axis_tready),
      .tlast(m_axis_tlast), .tuser(m_axis_tuser)
  );

  // ---------------------------------------------------------------- what has come in and gone out, modulo 32

  wire tx_user_t user = s_axis_tuser;
  wire enters = s_axis_tvalid && s_axis_tready;
  wire leaves = m_axis_tvalid && m_axis_tready;

  logic [4:0]  beats_in = '0, beats_out = '0, frames_in = '0, frames_out = '0;
  logic [34:0] followed;          // last, lane, data
  logic [3:0]  followed_channel;
  logic        followed_asks;     // its frame asks for a checksum

  wire [1:0] lane = s_axis_tkeep[3] ? 2'd3 : s_axis_tkeep[2] ? 2'd2 : s_axis_tkeep[1] ? 2'd1 : 2'd0;

  always_ff @(posedge clk) begin
    if (enters) begin
      beats_in <= beats_in + 5'd1;
      if (s_axis_tlast) frames_in <= frames_in + 5'd1;
      if (beats_in == chosen) followed <= {s_axis_tlast, lane, s_axis_tdata};
      if (frames_in == chosen_frame) begin
        followed_channel <= user.channel;
        followed_asks    <= user.csum != CSUM_NONE || user.ip_csum;
      end
    end
    if (leaves) begin
      beats_out <= beats_out + 5'd1;
      if (m_axis_tlast) frames_out <= frames_out + 5'd1;
    end
    if (rst) begin
      beats_in   <= '0;
      beats_out  <= '0;
      frames_in  <= '0;
      frames_out <= '0;
    end
  end

  // ---------------------------------------------------------------- what is promised

  wire [31:0] lanes = {{8{m_axis_tkeep[3]}}, {8{m_axis_tkeep[2]}}, {8{m_axis_tkeep[1]}}, {8{m_axis_tkeep[0]}}};

  always @(posedge clk) begin
    if (!rst && !first) begin
      // Nothing leaves that did not come in, and no more than the storage and three registers are inside.
      assert (5'(beats_in - beats_out) <= 5'd11);
      if (m_axis_tvalid) assert (beats_in != beats_out);
      if (m_axis_tvalid && beats_out == chosen) begin
        assert (m_axis_tlast == followed[34]);
        assert (m_axis_tkeep == 4'((5'd2 << followed[33:32]) - 5'd1));
        if (frames_out == chosen_frame && !followed_asks) assert ((m_axis_tdata & lanes) == (followed[31:0] & lanes));
      end
      if (m_axis_tvalid && frames_out == chosen_frame) assert (m_axis_tuser == followed_channel);
    end
  end

  // ---------------------------------------------------------------- what induction needs to know: beats

  // How far each pointer is ahead of the reader.
  wire [3:0] level     = dut.write_at - dut.read_at;
  wire [3:0] settled   = dut.settled - dut.read_at;
  wire [3:0] written   = dut.written - dut.read_at;
  wire [3:0] committed = dut.commit_at - dut.read_at;
  wire [4:0] in_registers = 5'(dut.read_valid) + 5'(dut.beat_valid) + 5'(m_axis_tvalid);

  // The number of each beat on its way, counted back from the newest as 1.
  wire [4:0] age = beats_in - chosen;
  wire [4:0] held = beats_in - beats_out;
  wire [34:0] stored = {dut.beats[chosen[2:0]].last, dut.beats[chosen[2:0]].lane, dut.beats[chosen[2:0]].data};
  wire [34:0] read = {dut.beat_read.last, dut.beat_read.lane, dut.beat_read.data};
  wire [34:0] shown = {dut.beat_out.last, dut.beat_out.lane, dut.beat_out.data};

  always @(posedge clk) begin
    if (!rst && !first) begin
      assert (beats_in[3:0] == dut.write_at && level == dut.stored && level <= 4'd8);
      if (s_axis_tready) assert (level <= 4'd7);
      assert (held == 5'(level) + in_registers);
      assert (committed <= settled && settled <= written && written <= level);
      assert (level - written <= 4'd1 && written - settled <= 4'd1);
      // The followed beat is in its place.
      if (age != '0 && age <= 5'(level)) assert (stored == followed);
      if (dut.read_valid && age == 5'(level) + 5'd1) assert (read == followed);
      if (dut.beat_valid && age == 5'(level) + 5'(dut.read_valid) + 5'd1) assert (shown == followed);
      // Lanes below the highest are used in all beats but the last of a frame.
      if (dut.read_valid) assert (dut.beat_read.last || dut.beat_read.lane == 2'd3);
      if (dut.beat_valid) assert (dut.beat_out.last || dut.beat_out.lane == 2'd3);
      for (int i = 0; i < 8; i++) begin
        if (4'(i) < level) begin
          assert (dut.beats[3'(dut.read_at + 4'(i))].last || dut.beats[3'(dut.read_at + 4'(i))].lane == 2'd3);
        end
      end
    end
  end

  // ---------------------------------------------------------------- frames and their results

  // Ends of frames on their way to a sum, and whether the result of such a frame has been given before, as it is too long.
  wire end_1 = dut.layer4.last;
  wire end_2 = dut.layer4.added_last;
  wire end_3 = dut.sum_valid;
  wire [3:0] pending = 4'(end_1 && !dut.silent_1) + 4'(end_2 && !dut.silent_2) + 4'(end_3 && !dut.silent_3)
                       + 4'(dut.overlong_1) + 4'(dut.push_1);
  // Results that are there; at most 4, and pointers are of two bits.
  wire [3:0] results = 4'(dut.open) - pending;

  // Ends of frames from the oldest beat to the reader, to the commit, to each stage of the way to a sum.
  logic [3:0] ends_registers, ends_committed, ends_settled, ends_written, ends;
  logic       in_time;
  always_comb begin
    ends_registers = 4'(dut.read_valid && dut.beat_read.last) + 4'(dut.beat_valid && dut.beat_out.last);
    ends           = ends_registers;
    ends_committed = ends_registers;
    ends_settled   = ends_registers;
    ends_written   = ends_registers;
    in_time        = 1'b1;
    for (int i = 0; i < 8; i++) begin
      // The result of what is shown to the reader is there when it is needed.
      if (4'(i) < committed && ends >= results + 4'(dut.push_1)) in_time = 1'b0;
      if (4'(i) < level && dut.beats[3'(dut.read_at + 4'(i))].last) begin
        ends = ends + 4'd1;
        if (4'(i) < committed) ends_committed = ends_committed + 4'd1;
        if (4'(i) < settled) ends_settled = ends_settled + 4'd1;
        if (4'(i) < written) ends_written = ends_written + 4'd1;
      end
    end
  end

  // The frame that is being taken out is not done with.
  wire mid_frame = m_axis_tvalid ? !m_axis_tlast : output_rules.in_frame;
  wire [4:0] frames_popped = frames_out + 5'(m_axis_tvalid && m_axis_tlast);
  wire [4:0] place = chosen_frame - frames_popped;  // of the followed frame's result

  always @(posedge clk) begin
    if (!rst && !first) begin
      assert (dut.overlong ? dut.beat == 4'd8 : dut.beat < 4'd8);
      assert (dut.open <= 3'd4 && (!s_axis_tready || dut.open <= 3'd3));
      assert (4'(dut.open) == ends + 4'(dut.overlong));
      assert (pending <= 4'(dut.open) && dut.push_at - dut.pop_at == results[1:0]);
      assert (frames_in - frames_popped == 5'(ends));
      // Ends of frames are at the stages' pointers.
      assert (ends - ends_written == 4'(end_1) && ends_written - ends_settled == 4'(end_2));
      assert (ends_settled - ends_committed == 4'(end_3));
      if (end_3) assert (settled != committed && dut.beats[3'(dut.settled - 4'd1)].last);
      // Beats of a frame that is too long are committed while its result is there.
      if (dut.silent_1 && !end_1) assert (dut.overlong);
      if (dut.silent_2 && !end_2) assert (dut.overlong || (end_1 && dut.silent_1));
      if (dut.silent_3 && !end_3) assert (dut.overlong || (end_1 && dut.silent_1) || (end_2 && dut.silent_2));
      if (dut.overlong_1) assert (!end_1 && !end_2 && !end_3 && dut.overlong);
      if (end_1) assert (dut.beat == 4'd0);
      if (end_2) assert (dut.beat <= 4'd1);
      if (end_3) assert (dut.beat <= 4'd2);
      // Results come in time.
      assert (in_time);
      if (dut.read_valid) assert (4'(dut.beat_valid && dut.beat_out.last) < results);
      if (dut.beat_valid || mid_frame) assert (results != '0);
      assert (dut.pop_next == dut.pop_at + 2'd1);
      if (dut.beat_valid) assert (dut.result == dut.results[dut.pop_at]);
    end
  end

  // ---------------------------------------------------------------- whose results they are

  wire [3:0] place_2 = results + 4'(dut.push_1);
  wire [3:0] place_3 = place_2 + 4'(end_3 && !dut.silent_3);
  wire [3:0] place_4 = place_3 + 4'(end_2 && !dut.silent_2);
  wire tx_user_t frame_user = input_rules.frame_user;
  wire       followed_enters = frames_in == chosen_frame;
  wire [5:0] wanted = {followed_asks, followed_asks, followed_channel};
  // What is found of the frame does not ask for more than the frame.
  function automatic logic fits(input logic layer4, input logic ip, input logic [3:0] channel);
    return ({layer4, ip, channel} & ~wanted) == '0 && channel == followed_channel;
  endfunction

  wire [1:0] slot = dut.pop_at + place[1:0];
  always @(posedge clk) begin
    if (!rst && !first) begin
      if (place < 5'(results)) begin
        assert (fits(dut.results[slot].work.layer4, dut.results[slot].work.ip, dut.results[slot].work.channel));
      end
      if (dut.push_1 && place == 5'(results)) begin
        assert (fits(dut.result_1.work.layer4, dut.result_1.work.ip, dut.result_1.work.channel));
      end
      if (dut.overlong_1 && place == 5'(place_2)) assert (dut.task_1.channel == followed_channel);
      if (end_3 && !dut.silent_3 && place == 5'(place_2)) begin
        assert (fits(dut.task_3.layer4, dut.task_3.ip, dut.task_3.channel));
      end
      if (end_2 && !dut.silent_2 && place == 5'(place_3)) begin
        assert (fits(dut.task_2.layer4, dut.task_2.ip, dut.task_2.channel));
      end
      if (end_1 && !dut.silent_1 && place == 5'(place_4)) begin
        assert (fits(dut.task_1.layer4, dut.task_1.ip, dut.task_1.channel));
      end
      // What came in of the frame has these wishes.
      if (followed_enters && input_rules.in_frame) begin
        assert (frame_user.channel == followed_channel);
        assert (followed_asks == (frame_user.csum != CSUM_NONE || frame_user.ip_csum));
      end
      assert (dut.first == !input_rules.in_frame);
      assert ((dut.beat != 4'd0) == input_rules.in_frame);
      // The channel stays the same over a frame.
      if (mid_frame) begin
        assert (dut.results[dut.pop_at].work.channel == (m_axis_tvalid ? m_axis_tuser : output_rules.frame_user));
      end
      if (m_axis_tvalid && output_rules.in_frame) assert (m_axis_tuser == output_rules.frame_user);
    end
  end
endmodule

`default_nettype wire
