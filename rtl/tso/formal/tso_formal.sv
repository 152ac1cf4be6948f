// tso: the rules of the stream on both sides for frames and super-frames of any content, with any request; frames that are not
// segmented come out as they went in, in their order.
//
// At a reduced width (32 bit), bounded at 28 clocks, which is beyond the setup of a super-frame with the shortest headers.
// One frame of those that are not segmented, chosen by the solver, is followed by its last beat.
//
// Not proved yet: z3 has not come to an end with it in seven minutes.
`default_nettype none

module tso_formal
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
    // Whether super-frames may come: if not, every beat is followed to its place.
    input wire        plain
);
  localparam int USER_W = $bits(tx_user_t);

  logic [31:0] m_axis_tdata;
  logic [3:0]  m_axis_tkeep;
  logic [USER_W-1:0] m_axis_tuser;
  logic        s_axis_tready, m_axis_tvalid, m_axis_tlast;
  logic        event_super, event_segment, event_malformed, event_length;

  // It begins with a reset, and there is no other.
  logic first = 1'b1;
  always_ff @(posedge clk) first <= 1'b0;
  always @(posedge clk) assume (rst == first);

  logic [4:0] chosen_before;
  logic       plain_before;
  always_ff @(posedge clk) {chosen_before, plain_before} <= {chosen, plain};
  always @(posedge clk) if (!first) assume (chosen == chosen_before && plain == plain_before);

  tso #(.DATA_W(32)) dut (.*);

  axis_check #(.DATA_W(32), .USER_W(USER_W), .ASSUME(1), .USER_CONSTANT(1)) input_rules (
      .clk, .rst, .tdata(s_axis_tdata), .tkeep(s_axis_tkeep), .tvalid(s_axis_tvalid), .tready(s_axis_tready),
      .tlast(s_axis_tlast), .tuser(s_axis_tuser)
  );
  axis_check #(.DATA_W(32), .USER_W(USER_W), .USER_CONSTANT(1)) output_rules (
      .clk, .rst, .tdata(m_axis_tdata), .tkeep(m_axis_tkeep), .tvalid(m_axis_tvalid), .tready(m_axis_tready),
      .tlast(m_axis_tlast), .tuser(m_axis_tuser)
  );

  wire tx_user_t user = s_axis_tuser;
  wire tx_user_t out_user = m_axis_tuser;
  logic [4:0]  in_count = '0, out_count = '0;
  logic [40:0] followed;

  always @(posedge clk) if (plain && s_axis_tvalid) assume (user.seg == SEG_NONE);

  always_ff @(posedge clk) begin
    if (!rst && s_axis_tvalid && s_axis_tready) begin
      in_count <= in_count + 5'd1;
      if (in_count == chosen) followed <= {user.channel, s_axis_tlast, s_axis_tkeep, s_axis_tdata};
    end
    if (!rst && m_axis_tvalid && m_axis_tready) out_count <= out_count + 5'd1;
  end

  wire [31:0] lanes = {{8{m_axis_tkeep[3]}}, {8{m_axis_tkeep[2]}}, {8{m_axis_tkeep[1]}}, {8{m_axis_tkeep[0]}}};

  always @(posedge clk) begin
    if (!rst && !first) begin
      if (m_axis_tvalid) assert (out_user.seg == SEG_NONE && out_user.seg_size == '0 && out_user.hdr_len == '0);
      if (plain) begin
        assert (5'(in_count - out_count) <= 5'd5);
        if (m_axis_tvalid) assert (in_count != out_count);
        if (m_axis_tvalid && out_count == chosen) begin
          assert ({out_user.channel, m_axis_tlast, m_axis_tkeep} == followed[40:32]);
          assert ((m_axis_tdata & lanes) == (followed[31:0] & lanes));
        end
        assert (!event_super && !event_segment && !event_malformed && !event_length);
      end
    end
  end
endmodule

`default_nettype wire
