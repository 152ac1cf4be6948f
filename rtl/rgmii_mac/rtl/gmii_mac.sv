// A gigabit Ethernet MAC, full duplex: AXI4-Stream of 64 bits at a clock of its user's on one side, GMII (a byte in each of 125 million
// clocks) on the other. What makes RGMII of GMII is the chip's own: rtl/softcore_ecp5.
//
//                 clk | clk       clk | tx_clk
//   s_axis --> async_fifo --> async_fifo --> gmii_tx --> tx_en, tx_er, txd
//   m_axis <----------------- async_fifo <-- gmii_rx <-- rx_dv, rx_er, rxd
//                             clk | rx_clk
//
// What waits to be sent does so in block memory at the user's clock, whose outputs would take most of a clock of 125 MHz; across goes a
// memory of lookup tables.
//
// Frames are without check sequence on both sides. A frame that is damaged has m_axis_tuser in its last beat, as the interface's receive side wants
// it. The user's side must take beats as fast as they come (64 bits at 16 MHz are enough); whatever finds no room is counted.
//
// Counts, at the user's clock: frames sent; cut short, as the FIFO ran empty; received; damaged; too short; without room.
`default_nettype none

module gmii_mac #(
    // log2 of the beats that wait each way.
    parameter int DEPTH_W = 9
) (
    input  wire         clk,
    input  wire         rst,
    input  wire  [63:0] s_axis_tdata,
    input  wire  [7:0]  s_axis_tkeep,
    input  wire         s_axis_tvalid,
    output logic        s_axis_tready,
    input  wire         s_axis_tlast,
    output logic [63:0] m_axis_tdata,
    output logic [7:0]  m_axis_tkeep,
    output logic        m_axis_tvalid,
    input  wire         m_axis_tready,
    output logic        m_axis_tlast,
    output logic        m_axis_tuser,

    input  wire         tx_clk,
    input  wire         tx_rst,
    output logic        tx_en,
    output logic        tx_er,
    output logic [7:0]  txd,
    input  wire         rx_clk,
    input  wire         rx_rst,
    input  wire         rx_dv,
    input  wire         rx_er,
    input  wire  [7:0]  rxd,

    output logic [31:0] count_sent,
    output logic [31:0] count_underrun,
    output logic [31:0] count_received,
    output logic [31:0] count_error,
    output logic [31:0] count_runt,
    output logic [31:0] count_dropped
);
  if (DEPTH_W < 4 || DEPTH_W > 12) begin : gen_bad_depth
    $error("gmii_mac: DEPTH_W must be 4 to 12");
  end

  typedef logic [DEPTH_W:0] fill_t;

  // ---------------------------------------------------------------------------------------------------------------------
  // Sending

  localparam int CROSSING_W = 4;

  fill_t            store_free, store_filled, whole_frames;
  logic [CROSSING_W:0] crossing_free, crossing_filled_unused;
  logic [63:0]      stored_tdata, out_tdata;
  logic [7:0]       stored_tkeep, out_tkeep;
  logic             stored_tvalid, stored_tlast, out_tvalid, out_tready, out_tlast, sent_frame, sent_underrun;

  assign s_axis_tready = store_free != '0;
  wire puts = s_axis_tvalid && s_axis_tready;

  // A frame leaves when all of it is there, or half of what the store holds; then nothing holds it up.
  logic is_leaving;
  wire  may_leave = is_leaving || whole_frames != '0 || store_filled >= fill_t'(2**(DEPTH_W - 1));
  wire  leaves    = stored_tvalid && may_leave && crossing_free != '0;

  always_ff @(posedge clk) begin
    whole_frames <= whole_frames + fill_t'(puts && s_axis_tlast) - fill_t'(leaves && stored_tlast);
    if (leaves) is_leaving <= !stored_tlast;
    if (rst) begin
      whole_frames <= '0;
      is_leaving   <= 1'b0;
    end
  end

  async_fifo #(.WIDTH(73), .DEPTH_W(DEPTH_W)) waiting (
      .w_clk(clk), .w_rst(rst), .w_valid(puts), .w_data({s_axis_tlast, s_axis_tkeep, s_axis_tdata}), .w_free(store_free),
      .r_clk(clk), .r_rst(rst), .r_valid(stored_tvalid), .r_data({stored_tlast, stored_tkeep, stored_tdata}),
      .r_ready(may_leave && crossing_free != '0), .r_filled(store_filled)
  );

  async_fifo #(.WIDTH(73), .DEPTH_W(CROSSING_W)) crossing (
      .w_clk(clk), .w_rst(rst), .w_valid(leaves), .w_data({stored_tlast, stored_tkeep, stored_tdata}), .w_free(crossing_free),
      .r_clk(tx_clk), .r_rst(tx_rst), .r_valid(out_tvalid), .r_data({out_tlast, out_tkeep, out_tdata}), .r_ready(out_tready),
      .r_filled(crossing_filled_unused)
  );

  gmii_tx transmit (
      .clk(tx_clk), .rst(tx_rst),
      .s_axis_tdata(out_tdata), .s_axis_tkeep(out_tkeep), .s_axis_tvalid(out_tvalid), .s_axis_tready(out_tready),
      .s_axis_tlast(out_tlast), .tx_en, .tx_er, .txd, .event_frame(sent_frame), .event_underrun(sent_underrun)
  );

  // ---------------------------------------------------------------------------------------------------------------------
  // Receiving

  fill_t       in_free, in_filled_unused;
  logic [63:0] in_tdata;
  logic [7:0]  in_tkeep;
  logic        in_tvalid, in_tlast, in_tuser, got_frame, got_error, got_runt, got_dropped;

  // A beat may be on its way to the FIFO, and it counts late; beats are clocks apart.
  logic has_room;
  always_ff @(posedge rx_clk) has_room <= in_free >= fill_t'(5);

  gmii_rx receive (
      .clk(rx_clk), .rst(rx_rst), .rx_dv, .rx_er, .rxd,
      .has_room,
      .m_axis_tdata(in_tdata), .m_axis_tkeep(in_tkeep), .m_axis_tvalid(in_tvalid), .m_axis_tlast(in_tlast),
      .m_axis_tuser(in_tuser), .event_frame(got_frame), .event_error(got_error), .event_runt(got_runt),
      .event_dropped(got_dropped)
  );

  async_fifo #(.WIDTH(74), .DEPTH_W(DEPTH_W)) in_fifo (
      .w_clk(rx_clk), .w_rst(rx_rst), .w_valid(in_tvalid), .w_data({in_tuser, in_tlast, in_tkeep, in_tdata}), .w_free(in_free),
      .r_clk(clk), .r_rst(rst), .r_valid(m_axis_tvalid), .r_data({m_axis_tuser, m_axis_tlast, m_axis_tkeep, m_axis_tdata}),
      .r_ready(m_axis_tready), .r_filled(in_filled_unused)
  );

  // ---------------------------------------------------------------------------------------------------------------------
  // Counts

  count_across sent (.w_clk(tx_clk), .w_rst(tx_rst), .happens(sent_frame), .r_clk(clk), .r_rst(rst), .count(count_sent));
  count_across underrun (.w_clk(tx_clk), .w_rst(tx_rst), .happens(sent_underrun), .r_clk(clk), .r_rst(rst), .count(count_underrun));
  count_across received (.w_clk(rx_clk), .w_rst(rx_rst), .happens(got_frame), .r_clk(clk), .r_rst(rst), .count(count_received));
  count_across error (.w_clk(rx_clk), .w_rst(rx_rst), .happens(got_error), .r_clk(clk), .r_rst(rst), .count(count_error));
  count_across runt (.w_clk(rx_clk), .w_rst(rx_rst), .happens(got_runt), .r_clk(clk), .r_rst(rst), .count(count_runt));
  count_across dropped (.w_clk(rx_clk), .w_rst(rx_rst), .happens(got_dropped), .r_clk(clk), .r_rst(rst), .count(count_dropped));

  wire unused = &{1'b0, in_filled_unused, crossing_filled_unused};
endmodule

`default_nettype wire
