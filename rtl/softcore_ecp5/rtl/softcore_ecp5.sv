// The board `softcore` on an ECP5: the same processor and interface, SDRAM in place of the simulated memory, our MAC behind RGMII.
//
//   soft_loader (SPI flash) --+
//   soft_system --------------+--> sdram --> the chip
//        | AXI4-Stream
//      gmii_mac --> ecp5_rgmii --> a PHY
//
// Resets: all waits until the clocks are stable; processor, interface and MAC until the image is in memory.
//
// Its pins are those of a ULX3S with an LFE5U-85F (clock, SDRAM, flash, serial line, lights); that board has no Ethernet, and those of RGMII are
// lines of its header, of no particular board (softcore_ecp5.lpf). It has not run on a board.
//
// Lights: 0 the image is in memory; 1 it is not, as flash has none; 2 link; 3 and 4 change with each frame received and sent; 5 a frame
// came damaged; 6 one was lost in the MAC; 7 the clocks are stable.
`default_nettype none

module softcore_ecp5 #(
    // The clock is 500 MHz by this.
    parameter int SYS_DIV = 14,
    // Of the SDRAM, log2 of its bytes and columns: 32 MiB.
    parameter int SIZE_W  = 25,
    parameter int COL_W   = 9
) (
    input  wire         clk_25mhz,
    output logic [7:0]  led,
    // Not to use the interface's offloads.
    input  wire         sw,
    // Named as the other side of the line has it.
    output logic        ftdi_rxd,
    input  wire         ftdi_txd,
    // High keeps this board's other processor from resetting it.
    output logic        wifi_gpio0,

    output logic        flash_csn,
    output logic        flash_mosi,
    input  wire         flash_miso,
    output logic        flash_holdn,
    output logic        flash_wpn,

    output logic        sdram_clk,
    output logic        sdram_cke,
    output logic        sdram_csn,
    output logic        sdram_rasn,
    output logic        sdram_casn,
    output logic        sdram_wen,
    output logic [1:0]  sdram_ba,
    output logic [12:0] sdram_a,
    output logic [1:0]  sdram_dqm,
    inout  wire  [15:0] sdram_d,

    output logic        phy_resetn,
    output logic        rgmii_txc,
    output logic        rgmii_tx_ctl,
    output logic [3:0]  rgmii_txd,
    input  wire         rgmii_rxc,
    input  wire         rgmii_rx_ctl,
    input  wire  [3:0]  rgmii_rxd
);
  localparam int CLK_NS  = 2 * SYS_DIV;
  localparam int MASTERS = 7;
  localparam int BEAT_W  = SIZE_W - 3;
  localparam int BAUD    = 115_200;

  // ---------------------------------------------------------------------------------------------------------------------
  // Clocks and resets

  logic clk, clk_125, is_stable, rst, core_rst, mac_rst, cable_rst, tx_rst, rx_rst;

  ecp5_clocks #(.SYS_DIV(SYS_DIV)) clocks (.clk_25mhz, .clk_125, .clk, .is_stable);
  reset_sync all_reset (.clk, .begins(!is_stable), .rst);

  logic image_done, image_bad;
  always_ff @(posedge clk) begin
    core_rst  <= rst || !image_done;
    mac_rst   <= core_rst;
    cable_rst <= core_rst;
  end
  reset_sync tx_reset (.clk(clk_125), .begins(cable_rst), .rst(tx_rst));
  reset_sync rx_reset (.clk(rgmii_rxc), .begins(cable_rst), .rst(rx_rst));

  // The PHY's reset ends after 10 ms and more.
  logic [20:0] phy_timer;
  always_ff @(posedge clk) begin
    if (!phy_timer[20]) phy_timer <= phy_timer + 1'b1;
    if (rst) phy_timer <= '0;
  end
  assign phy_resetn = phy_timer[20];

  // ---------------------------------------------------------------------------------------------------------------------
  // Processor and interface

  logic [MASTERS-1:0]             core_ask, core_is_write, ask, is_write, grant, come;
  logic [MASTERS-1:0][BEAT_W-1:0] core_beat, beat;
  logic [MASTERS-1:0][63:0]       core_data, data;
  logic [MASTERS-1:0][7:0]        core_strobes, strobes;
  logic [63:0]                    come_data, out_tdata, in_tdata;
  logic [7:0]                     out_tkeep, in_tkeep;
  logic                           out_tvalid, out_tready, out_tlast, in_tvalid, in_tready, in_tlast, in_tuser;
  logic                           sent_valid, sent_ready, typed_valid, typed_ready, link_up, sw_first, sw_second;
  logic [7:0]                     sent, typed;
  logic [63:0]                    until_timer_unused;
  logic                           waiting_unused, moves_unused, fetch_unused, load_unused, store_unused;

  soft_system #(.SIZE_W(SIZE_W)) system (
      .clk, .rst(core_rst), .nic_clk(clk),
      .mem_ask(core_ask), .mem_is_write(core_is_write), .mem_beat(core_beat), .mem_data(core_data),
      .mem_strobes(core_strobes), .mem_grant(grant & {MASTERS{!core_rst}}), .mem_come(come), .mem_come_data(come_data),
      .sent_valid, .sent, .sent_ready, .typed_valid, .typed, .typed_ready,
      .m_axis_tdata(out_tdata), .m_axis_tkeep(out_tkeep), .m_axis_tvalid(out_tvalid), .m_axis_tready(out_tready),
      .m_axis_tlast(out_tlast), .s_axis_tdata(in_tdata), .s_axis_tkeep(in_tkeep), .s_axis_tvalid(in_tvalid),
      .s_axis_tready(in_tready), .s_axis_tlast(in_tlast), .s_axis_tuser(in_tuser), .link_up, .straps({31'd0, sw_second}),
      .skipped('0), .until_timer(until_timer_unused), .is_waiting(waiting_unused), .moves(moves_unused),
      .event_fetch_line(fetch_unused), .event_load_line(load_unused), .event_store(store_unused)
  );

  soft_uart #(.BIT_CLOCKS(1_000_000_000 / CLK_NS / BAUD)) console (
      .clk, .rst, .sent_valid, .sent, .sent_ready, .typed_valid, .typed, .typed_ready, .tx(ftdi_rxd), .rx(ftdi_txd)
  );
  assign wifi_gpio0 = 1'b1;

  // ---------------------------------------------------------------------------------------------------------------------
  // Memory, which the loader has until the image is there

  logic              load_ask, flash_clk;
  logic [BEAT_W-1:0] load_beat;
  logic [63:0]       load_data;

  soft_loader #(.SIZE_W(SIZE_W)) loader (
      .clk, .rst, .flash_cs_n(flash_csn), .flash_clk, .flash_out(flash_mosi), .flash_in(flash_miso),
      .ask(load_ask), .beat(load_beat), .data(load_data), .grant(grant[0] && core_rst), .is_done(image_done), .is_bad(image_bad)
  );
  USRMCLK flash_clock (.USRMCLKI(flash_clk), .USRMCLKTS(1'b0));
  assign flash_holdn = 1'b1;
  assign flash_wpn   = 1'b1;

  always_comb begin
    ask      = core_ask;
    is_write = core_is_write;
    beat     = core_beat;
    data     = core_data;
    strobes  = core_strobes;
    if (core_rst) begin
      ask        = MASTERS'(load_ask);
      is_write   = MASTERS'(1);
      beat[0]    = load_beat;
      data[0]    = load_data;
      strobes[0] = '1;
    end
  end

  logic        dq_drive;
  logic [15:0] dq_out, dq_in;

  sdram #(.MASTERS(MASTERS), .SIZE_W(SIZE_W), .COL_W(COL_W), .CLK_NS(CLK_NS)) memory (
      .clk, .rst, .ask, .is_write, .beat, .data, .strobes, .grant, .come, .come_data,
      .sd_ras_n(sdram_rasn), .sd_cas_n(sdram_casn), .sd_we_n(sdram_wen), .sd_ba(sdram_ba), .sd_a(sdram_a), .sd_dqm(sdram_dqm),
      .sd_dq_out(dq_out), .sd_dq_drive(dq_drive), .sd_dq_in(dq_in)
  );
  for (genvar at = 0; at < 16; at++) begin : gen_dq
    BB pin (.I(dq_out[at]), .T(!dq_drive), .O(dq_in[at]), .B(sdram_d[at]));
  end
  // The chip's clock rises in the middle of ours.
  ODDRX1F memory_clock (.SCLK(clk), .RST(1'b0), .D0(1'b0), .D1(1'b1), .Q(sdram_clk));
  assign sdram_cke = 1'b1;
  assign sdram_csn = 1'b0;

  // ---------------------------------------------------------------------------------------------------------------------
  // The cable

  logic       tx_en, tx_er, rx_dv, rx_er, rx_link, link_first;
  logic [7:0] txd, rxd;
  logic [31:0] count_sent, count_underrun, count_received, count_error, count_runt, count_dropped;

  gmii_mac mac (
      .clk, .rst(mac_rst),
      .s_axis_tdata(out_tdata), .s_axis_tkeep(out_tkeep), .s_axis_tvalid(out_tvalid), .s_axis_tready(out_tready),
      .s_axis_tlast(out_tlast), .m_axis_tdata(in_tdata), .m_axis_tkeep(in_tkeep), .m_axis_tvalid(in_tvalid),
      .m_axis_tready(in_tready), .m_axis_tlast(in_tlast), .m_axis_tuser(in_tuser),
      .tx_clk(clk_125), .tx_rst, .tx_en, .tx_er, .txd, .rx_clk(rgmii_rxc), .rx_rst, .rx_dv, .rx_er, .rxd,
      .count_sent, .count_underrun, .count_received, .count_error, .count_runt, .count_dropped
  );

  ecp5_rgmii rgmii (
      .tx_clk(clk_125), .tx_en, .tx_er, .txd, .rgmii_txc, .rgmii_tx_ctl, .rgmii_txd,
      .rgmii_rxc, .rgmii_rx_ctl, .rgmii_rxd, .rx_dv, .rx_er, .rxd, .link_up(rx_link)
  );

  always_ff @(posedge clk) begin
    {link_up, link_first} <= {link_first, rx_link};
    {sw_second, sw_first} <= {sw_first, sw};
    led <= {is_stable, |count_dropped || |count_underrun, |count_error || |count_runt, count_sent[0], count_received[0], link_up,
            image_bad, image_done};
  end

  wire unused = &{1'b0, count_sent, count_received, until_timer_unused, waiting_unused, moves_unused, fetch_unused, load_unused,
                  store_unused};
endmodule

`default_nettype wire
