// csum_tx: the rules of the stream; as many beats and frames leave as came in, each frame as long as it was; checksums aside,
// every byte is what it was.
//
// At a reduced size (32 bit, a storage of 8 beats), bounded at 24 clocks: longer than it takes to fill the storage with a frame
// that is too long for it, and to see such a frame leave. One beat, chosen by the solver, is followed.
//
// Not proved yet: z3 has not come to an end with it in seven minutes.
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
    input wire [4:0]  chosen
);
  logic [31:0] m_axis_tdata;
  logic [3:0]  m_axis_tkeep, m_axis_tuser;
  logic        s_axis_tready, m_axis_tvalid, m_axis_tlast;
  logic        event_inserted, event_refused, event_overlong;

  // It begins with a reset, and there is no other.
  logic first = 1'b1;
  always_ff @(posedge clk) first <= 1'b0;
  always @(posedge clk) assume (rst == first);

  // Any number, but always the same.
  logic [4:0] chosen_before;
  always_ff @(posedge clk) chosen_before <= chosen;
  always @(posedge clk) if (!first) assume (chosen == chosen_before);

  csum_tx #(.DATA_W(32), .FIFO_BYTES(32)) dut (.*);

  axis_check #(.DATA_W(32), .USER_W($bits(tx_user_t)), .ASSUME(1), .USER_CONSTANT(1)) input_rules (
      .clk, .rst, .tdata(s_axis_tdata), .tkeep(s_axis_tkeep), .tvalid(s_axis_tvalid), .tready(s_axis_tready),
      .tlast(s_axis_tlast), .tuser(s_axis_tuser)
  );
  axis_check #(.DATA_W(32), .USER_W(4), .USER_CONSTANT(1)) output_rules (
      .clk, .rst, .tdata(m_axis_tdata), .tkeep(m_axis_tkeep), .tvalid(m_axis_tvalid), .tready(m_axis_tready),
      .tlast(m_axis_tlast), .tuser(m_axis_tuser)
  );

  wire tx_user_t user = s_axis_tuser;
  logic [4:0]  in_count = '0, out_count = '0;
  logic [41:0] followed;
  logic        untouched;

  always_ff @(posedge clk) begin
    if (!rst && s_axis_tvalid && s_axis_tready) begin
      in_count <= in_count + 5'd1;
      if (in_count == chosen) begin
        followed  <= {1'b0, user.channel, s_axis_tlast, s_axis_tkeep, s_axis_tdata};
        untouched <= user.csum == CSUM_NONE && !user.ip_csum;
      end
    end
    if (!rst && m_axis_tvalid && m_axis_tready) out_count <= out_count + 5'd1;
  end

  wire [31:0] lanes = {{8{m_axis_tkeep[3]}}, {8{m_axis_tkeep[2]}}, {8{m_axis_tkeep[1]}}, {8{m_axis_tkeep[0]}}};

  always @(posedge clk) begin
    if (!rst && !first) begin
      // Nothing leaves that did not come in, and no more than the storage and the two registers behind it are inside.
      assert (5'(in_count - out_count) <= 5'd10);
      if (m_axis_tvalid) assert (in_count != out_count);
      if (m_axis_tvalid && out_count == chosen) begin
        assert ({m_axis_tuser, m_axis_tlast, m_axis_tkeep} == followed[40:32]);
        if (untouched) assert ((m_axis_tdata & lanes) == (followed[31:0] & lanes));
      end
    end
  end
endmodule

`default_nettype wire
