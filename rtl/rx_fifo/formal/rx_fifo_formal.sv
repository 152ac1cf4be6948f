// rx_fifo: the rules of the output; every frame has exactly one fate; a kept frame leaves whole, once, in its order, with what was
// known at its end; no other beat leaves.
//
// Bounded: 10 clocks from a reset, at 32 bits and 4 frames, so that frames of up to 5 words come and leave, and frames run out of
// entries. One kept frame, chosen by the solver, is followed.
`default_nettype none

module rx_fifo_formal
  import nic_pkg::*;
(
    input wire         clk,
    input wire         rst,
    input wire [7:0]   data,
    input wire [1:0]   bytes,
    input wire         s_axis_tvalid,
    input wire         s_axis_tlast,
    input wire         error,
    input wire         drop,
    input wire [7:0]   mark,
    input wire         m_axis_tready,
    input wire [31:0]  now,
    input wire [31:0]  cfg_pause_high,
    input wire [31:0]  cfg_pause_low,
    input wire [2:0]   chosen
);
  // Few bits are enough to tell beats, lengths and frames apart.
  logic [31:0]  s_axis_tdata;
  logic [3:0]   s_axis_tkeep;
  logic [115:0] s_axis_tuser;
  rx_user_t     user;
  always_comb begin
    user       = '0;
    user.error = error;
    user.drop  = drop;
    user.hash  = {24'd0, mark};
  end
  assign s_axis_tuser = user;
  assign s_axis_tdata = {24'd0, data};
  assign s_axis_tkeep = !s_axis_tlast || bytes == 2'd3 ? 4'hf : bytes == 2'd2 ? 4'h7 : bytes == 2'd1 ? 4'h3 : 4'h1;

  logic         s_axis_tready, m_axis_tvalid, m_axis_tlast, pause_request;
  logic         event_frame, event_error, event_too_long, event_rule, event_overflow;
  logic [31:0]  m_axis_tdata;
  logic [3:0]   m_axis_tkeep;
  logic [115:0] m_axis_tuser;

  // It begins with a reset, and there is no other.
  logic first = 1'b1;
  always_ff @(posedge clk) first <= 1'b0;
  always @(posedge clk) assume (rst == first);

  // Any number, but always the same.
  logic [2:0] chosen_before;
  always_ff @(posedge clk) chosen_before <= chosen;
  always @(posedge clk) if (!first) assume (chosen == chosen_before);

  rx_fifo #(.DATA_W(32), .FIFO_BYTES(128), .FRAMES(4), .MAX_FRAME(60)) dut (.*);

  axis_check #(.DATA_W(32), .USER_W(116), .USER_CONSTANT(1)) output_rules (
      .clk, .rst, .tdata(m_axis_tdata), .tkeep(m_axis_tkeep), .tvalid(m_axis_tvalid), .tready(m_axis_tready),
      .tlast(m_axis_tlast), .tuser(m_axis_tuser)
  );

  // The frame's length and last beat, two clocks later: with its event.
  wire         ends = s_axis_tvalid && s_axis_tlast && !rst;
  logic [3:0]  beats_in = '0, length_1, length_2;
  logic [7:0]  data_1, data_2, hash_1, hash_2;
  logic        ended_1 = 1'b0, ended_2 = 1'b0, wanted_1, wanted_2;

  always_ff @(posedge clk) begin
    ended_1  <= ends;
    ended_2  <= ended_1;
    length_1 <= beats_in + 4'd1;
    length_2 <= length_1;
    data_1   <= data;
    data_2   <= data_1;
    hash_1   <= mark;
    hash_2   <= hash_1;
    wanted_1 <= !user.error && !user.drop;
    wanted_2 <= wanted_1;
    if (s_axis_tvalid && !rst) beats_in <= s_axis_tlast ? '0 : beats_in + 4'(beats_in != '1);
  end

  logic [2:0]   kept = '0, left = '0;
  logic [3:0]   beats_out = '0, followed_length;
  logic [7:0]   followed_data, followed_hash;
  rx_user_t     shown;
  assign shown = m_axis_tuser;

  always_ff @(posedge clk) begin
    if (event_frame && !rst) begin
      kept <= kept + 3'd1;
      if (kept == chosen) begin
        followed_length <= length_2;
        followed_data   <= data_2;
        followed_hash   <= hash_2;
      end
    end
    if (m_axis_tvalid && m_axis_tready && !rst) begin
      beats_out <= m_axis_tlast ? '0 : beats_out + 4'd1;
      if (m_axis_tlast) left <= left + 3'd1;
    end
  end

  wire [2:0] fates = 3'(event_frame) + 3'(event_error) + 3'(event_too_long) + 3'(event_rule) + 3'(event_overflow);

  always @(posedge clk) begin
    if (!rst && !first) begin
      assert (s_axis_tready);
      assert (fates == 3'(ended_2));
      if (event_frame) assert (wanted_2 && length_2 <= 4'd15);
      // Nothing leaves that was not kept before.
      if (m_axis_tvalid) assert (left != kept);
      if (m_axis_tvalid && left == chosen) begin
        assert (shown.hash == {24'd0, followed_hash} && shown.seg_count == 8'd1 && !shown.error && !shown.drop);
        assert (m_axis_tlast == (beats_out + 4'd1 == followed_length));
        if (m_axis_tlast) assert (m_axis_tdata == {24'd0, followed_data});
      end
    end
  end
endmodule

`default_nettype wire
