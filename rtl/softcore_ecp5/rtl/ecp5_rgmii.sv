// RGMII (version 2.0) of GMII, for ECP5: half a byte at each edge, rising the lower one; between frames the PHY tells its link there.
//
//   txd     rising: txd[3:0]    falling: txd[7:4]
//   tx_ctl  rising: tx_en       falling: tx_en ^ tx_er
//
// Which delays a board needs depends on its lines and on what the PHY delays itself: those of clock out and data in are parameters, in steps
// of 25 ps. They have not been tried on a board.
`default_nettype none

module ecp5_rgmii #(
    parameter int TX_CLOCK_DELAY = 80,
    parameter int RX_DATA_DELAY  = 80
) (
    input  wire        tx_clk,
    input  wire        tx_en,
    input  wire        tx_er,
    input  wire  [7:0] txd,
    output logic       rgmii_txc,
    output logic       rgmii_tx_ctl,
    output logic [3:0] rgmii_txd,

    input  wire        rgmii_rxc,
    input  wire        rgmii_rx_ctl,
    input  wire  [3:0] rgmii_rxd,
    output logic       rx_dv,
    output logic       rx_er,
    output logic [7:0] rxd,
    // At 1 Gb/s, full duplex.
    output logic       link_up
);
  logic clock_out;
  ODDRX1F out_clock (.SCLK(tx_clk), .RST(1'b0), .D0(1'b1), .D1(1'b0), .Q(clock_out));
  DELAYG #(.DEL_MODE("USER_DEFINED"), .DEL_VALUE(TX_CLOCK_DELAY)) late_clock (.A(clock_out), .Z(rgmii_txc));
  ODDRX1F out_control (.SCLK(tx_clk), .RST(1'b0), .D0(tx_en), .D1(tx_en ^ tx_er), .Q(rgmii_tx_ctl));
  for (genvar at = 0; at < 4; at++) begin : gen_out
    ODDRX1F out_bit (.SCLK(tx_clk), .RST(1'b0), .D0(txd[at]), .D1(txd[at+4]), .Q(rgmii_txd[at]));
  end

  wire [4:0] pins = {rgmii_rx_ctl, rgmii_rxd};
  logic [4:0] late, lower, upper;
  for (genvar at = 0; at < 5; at++) begin : gen_in
    DELAYG #(.DEL_MODE("USER_DEFINED"), .DEL_VALUE(RX_DATA_DELAY)) late_bit (.A(pins[at]), .Z(late[at]));
    IDDRX1F in_bit (.SCLK(rgmii_rxc), .RST(1'b0), .D(late[at]), .Q0(lower[at]), .Q1(upper[at]));
  end

  assign rx_dv = lower[4];
  assign rx_er = lower[4] ^ upper[4];
  assign rxd   = {upper[3:0], lower[3:0]};

  // Between frames: link, speed (2: 1 Gb/s), full duplex.
  always_ff @(posedge rgmii_rxc) begin
    if (!lower[4] && !upper[4]) link_up <= lower[0] && lower[2:1] == 2'd2 && lower[3];
  end
endmodule

`default_nettype wire
