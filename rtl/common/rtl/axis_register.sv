// A register slice for a stream: both directions registered, no bubble (a skid buffer).
//
// It cuts every combinational path between its two sides, tready included, at the price of a second word of storage.
`default_nettype none

module axis_register #(
    parameter int DATA_W = 64,
    parameter int USER_W = 1
) (
    input  wire                 clk,
    input  wire                 rst,

    input  wire  [DATA_W-1:0]   s_axis_tdata,
    input  wire  [DATA_W/8-1:0] s_axis_tkeep,
    input  wire                 s_axis_tvalid,
    output logic                s_axis_tready,
    input  wire                 s_axis_tlast,
    input  wire  [USER_W-1:0]   s_axis_tuser,

    output logic [DATA_W-1:0]   m_axis_tdata,
    output logic [DATA_W/8-1:0] m_axis_tkeep,
    output logic                m_axis_tvalid,
    input  wire                 m_axis_tready,
    output logic                m_axis_tlast,
    output logic [USER_W-1:0]   m_axis_tuser
);
  localparam int WORD_W = DATA_W + DATA_W / 8 + 1 + USER_W;

  logic [WORD_W-1:0] incoming, outgoing, skid;
  logic              skid_valid;

  assign incoming = {s_axis_tuser, s_axis_tlast, s_axis_tkeep, s_axis_tdata};
  assign {m_axis_tuser, m_axis_tlast, m_axis_tkeep, m_axis_tdata} = outgoing;
  // Room for one more word even if the consumer stalls in this cycle.
  assign s_axis_tready = !skid_valid;

  always_ff @(posedge clk) begin
    if (!m_axis_tvalid || m_axis_tready) begin
      outgoing      <= skid_valid ? skid : incoming;
      m_axis_tvalid <= skid_valid || s_axis_tvalid;
      skid_valid    <= 1'b0;
    end else if (s_axis_tvalid && s_axis_tready) begin
      skid       <= incoming;
      skid_valid <= 1'b1;
    end
    if (rst) begin
      m_axis_tvalid <= 1'b0;
      skid_valid    <= 1'b0;
    end
  end
endmodule

`default_nettype wire
