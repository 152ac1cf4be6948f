// The offloads of the transmit side in their order: tso, then csum_tx. Frames and super-frames in, finished frames out.
//
// cfg, events: those of the two blocks
`default_nettype none

module tx_path
  import nic_pkg::*;
#(
    parameter  int DATA_W = 64,
    // The longest frame that is given checksums.
    parameter  int FIFO_BYTES = 4096,
    localparam int USER_W = $bits(tx_user_t)
) (
    input  wire                 clk,
    input  wire                 rst,

    input  wire  [DATA_W-1:0]   s_axis_tdata,
    input  wire  [DATA_W/8-1:0] s_axis_tkeep,
    input  wire                 s_axis_tvalid,
    output logic                s_axis_tready,
    input  wire                 s_axis_tlast,
    input  wire  [USER_W-1:0]   s_axis_tuser,   // tx_user_t

    output logic [DATA_W-1:0]   m_axis_tdata,
    output logic [DATA_W/8-1:0] m_axis_tkeep,
    output logic                m_axis_tvalid,
    input  wire                 m_axis_tready,
    output logic                m_axis_tlast,
    output logic [3:0]          m_axis_tuser,   // the channel

    output logic                event_super,
    output logic                event_segment,
    output logic                event_malformed,
    output logic                event_length,
    output logic                event_inserted,
    output logic                event_refused,
    output logic                event_overlong
);
  logic [DATA_W-1:0]   tdata, sdata;
  logic [DATA_W/8-1:0] tkeep, skeep;
  logic                tvalid, tready, tlast, svalid, sready, slast;
  logic [USER_W-1:0]   tuser, suser;

  tso #(
      .DATA_W(DATA_W),
      .EAGER (1'b0)
  ) segmentation (
      .clk,
      .rst,
      .s_axis_tdata,
      .s_axis_tkeep,
      .s_axis_tvalid,
      .s_axis_tready,
      .s_axis_tlast,
      .s_axis_tuser,
      .m_axis_tdata (sdata),
      .m_axis_tkeep (skeep),
      .m_axis_tvalid(svalid),
      .m_axis_tready(sready),
      .m_axis_tlast (slast),
      .m_axis_tuser (suser),
      .event_super,
      .event_segment,
      .event_malformed,
      .event_length
  );

  // Its tready is a register that waits for nothing, so that tso needs no look at what of its own is free; and each block can be
  // placed by itself.
  axis_register #(
      .DATA_W(DATA_W),
      .USER_W(USER_W)
  ) between (
      .clk,
      .rst,
      .s_axis_tdata (sdata),
      .s_axis_tkeep (skeep),
      .s_axis_tvalid(svalid),
      .s_axis_tready(sready),
      .s_axis_tlast (slast),
      .s_axis_tuser (suser),
      .m_axis_tdata (tdata),
      .m_axis_tkeep (tkeep),
      .m_axis_tvalid(tvalid),
      .m_axis_tready(tready),
      .m_axis_tlast (tlast),
      .m_axis_tuser (tuser)
  );

  csum_tx #(
      .DATA_W    (DATA_W),
      .FIFO_BYTES(FIFO_BYTES)
  ) checksums (
      .clk,
      .rst,
      .s_axis_tdata (tdata),
      .s_axis_tkeep (tkeep),
      .s_axis_tvalid(tvalid),
      .s_axis_tready(tready),
      .s_axis_tlast (tlast),
      .s_axis_tuser (tuser),
      .m_axis_tdata,
      .m_axis_tkeep,
      .m_axis_tvalid,
      .m_axis_tready,
      .m_axis_tlast,
      .m_axis_tuser,
      .event_inserted,
      .event_refused,
      .event_overlong
  );
endmodule

`default_nettype wire
