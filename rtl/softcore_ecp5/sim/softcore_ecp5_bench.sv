// The whole of the ECP5 with what is around it: the SDRAM chip, the flash, a PHY, and somebody who reads the serial line.
//
// whole.py leads it, line by line over two named pipes: `run N` lets N microseconds pass and answers `ran LEDS FAULTS`; `send N` and so many bytes in
// hexadecimal put them on the cable, preamble and check sequence included; `end` ends it. What comes meanwhile is told as it comes:
// `frame` with its bytes, `bad frame` if the MAC marked it, `said` with a byte of the serial line. +flash, +tell and +ask name flash and
// pipes; +memory, if it is there, what lies in memory from the start: words of 64 bits, the highest byte first.
//
// The PHY is one that delays its clocks itself as far as the chip does not (RGMII 2.0, "ID"): its receive clock comes 2 ns after the data,
// and what the chip's lines for clocks take is put at 2 ns as well, which RX_DATA_DELAY is there for.
`timescale 1ns / 1ps
`default_nettype none

module softcore_ecp5_bench #(
    parameter int SYS_DIV = 14
);
  localparam int BASE = 32'h20_0000, FLASH_BYTES = 4 << 20;
  localparam int SIZE_W = 25, COL_W = 9, CLK_NS = 2 * SYS_DIV;
  localparam int BIT_NS = 1_000_000_000 / CLK_NS / 115_200 * CLK_NS;

  logic [7:0]  led, said;
  logic [31:0] faults;
  logic        cable_en, cable_er;
  logic [7:0]  cable_byte;
  int          tell, ask;
  logic crystal, serial_out, flash_csn, flash_mosi, flash_miso, sdram_clk, rasn, casn, wen, txc, tx_ctl, rxc, rx_ctl;
  logic gpio_unused, holdn_unused, wpn_unused, cke_unused, csn_unused, phy_resetn;
  logic [1:0]  ba, dqm;
  logic [12:0] a;
  logic [3:0]  tx_pins, rx_pins;
  wire  [15:0] dq;

  initial begin
    crystal = 1'b0;
    forever #(20ns) crystal = !crystal;
  end

  softcore_ecp5 #(.SYS_DIV(SYS_DIV)) board (
      .clk_25mhz(crystal), .led, .sw(1'b0), .ftdi_rxd(serial_out), .ftdi_txd(1'b1), .wifi_gpio0(gpio_unused),
      .flash_csn, .flash_mosi, .flash_miso, .flash_holdn(holdn_unused), .flash_wpn(wpn_unused),
      .sdram_clk, .sdram_cke(cke_unused), .sdram_csn(csn_unused), .sdram_rasn(rasn), .sdram_casn(casn), .sdram_wen(wen),
      .sdram_ba(ba), .sdram_a(a), .sdram_dqm(dqm), .sdram_d(dq),
      .phy_resetn, .rgmii_txc(txc), .rgmii_tx_ctl(tx_ctl), .rgmii_txd(tx_pins),
      .rgmii_rxc(rxc), .rgmii_rx_ctl(rx_ctl), .rgmii_rxd(rx_pins)
  );

  // ---------------------------------------------------------------------------------------------------------------------
  // Memory

  logic [15:0] from_chip;
  assign dq = memory.drives ? from_chip : 'z;
  sdram_model #(.SIZE_W(SIZE_W), .COL_W(COL_W), .CLK_NS(CLK_NS)) memory (
      .load_valid(1'b0), .load_address('0), .load_data('0),
      .sd_clk(sdram_clk), .rst(board.rst), .sd_ras_n(rasn), .sd_cas_n(casn), .sd_we_n(wen), .sd_ba(ba), .sd_a(a), .sd_dqm(dqm),
      .sd_dq_in(dq), .sd_dq_driven(board.dq_drive), .sd_dq_out(from_chip), .faults
  );

  // ---------------------------------------------------------------------------------------------------------------------
  // Flash: knows to wake (AB) and to read (03)

  logic [7:0] flash [FLASH_BYTES];
  logic       is_awake, is_reading;
  logic [31:0] command;
  logic [5:0]  bits;
  logic [23:0] start;
  logic [31:0] given;
  wire  [23:0] address = start + 24'(given / 8);
  wire         flash_clk = board.flash_clk;

  initial begin
    string path;
    int    file, count;
    void'($value$plusargs("flash=%s", path));
    file = $fopen(path, "rb");
    if (file == 0) $fatal(1, "%s is not there", path);
    count = $fread(flash, file, BASE, FLASH_BYTES - BASE);
    if (count < 24) $fatal(1, "%s has %0d bytes", path, count);
    $fclose(file);
    if ($value$plusargs("memory=%s", path)) begin
      file = $fopen(path, "rb");
      if (file == 0) $fatal(1, "%s is not there", path);
      count = $fread(memory.beats, file);
      $fclose(file);
    end
    is_awake = 1'b0;
  end

  always @(posedge flash_clk or posedge flash_csn) begin
    if (flash_csn) begin
      bits       <= '0;
      is_reading <= 1'b0;
    end else if (!is_reading) begin
      command <= {command[30:0], flash_mosi};
      bits    <= bits + 6'd1;
      if (bits == 6'd7 && {command[6:0], flash_mosi} == 8'hab) is_awake <= 1'b1;
      if (bits == 6'd31 && is_awake && command[30:23] == 8'h03) begin
        is_reading <= 1'b1;
        start      <= {command[22:0], flash_mosi};
      end
    end
  end
  always @(negedge flash_clk) begin
    given <= is_reading ? given + 1 : 0;
    if (is_reading) flash_miso <= flash[address[21:0]][3'd7 - given[2:0]];
  end

  // ---------------------------------------------------------------------------------------------------------------------
  // Serial line

  initial begin
    @(posedge phy_resetn or posedge led[0]);
    forever begin
      @(negedge serial_out);
      #(BIT_NS * 1.5ns);
      for (int at = 0; at < 8; at++) begin
        said[at] = serial_out;
        #(BIT_NS * 1ns);
      end
      $fdisplay(tell, "said %h", said);
    end
  end

  // ---------------------------------------------------------------------------------------------------------------------
  // PHY: from the board, whose clock comes in the middle of the data

  logic [3:0] low;
  logic       low_ctl;
  always_ff @(posedge txc) {low_ctl, low} <= {tx_ctl, tx_pins};
  always_ff @(negedge txc) begin
    cable_en   <= low_ctl;
    cable_er   <= low_ctl ^ tx_ctl;
    cable_byte <= {tx_pins, low};
  end

  logic [7:0] came [16384];
  int         came_len;
  logic       is_bad;
  always @(posedge txc) begin
    if (cable_en) begin
      came[came_len] = cable_byte;
      came_len       = came_len + 1;
      is_bad         = is_bad || cable_er;
    end else if (came_len != 0) begin
      if (is_bad) $fwrite(tell, "bad ");
      $fwrite(tell, "frame ");
      for (int at = 0; at < came_len; at++) $fwrite(tell, "%h", came[at]);
      $fwrite(tell, "\n");
      came_len = 0;
      is_bad   = 1'b0;
    end
  end

  // To the board: with a crystal of its own, 125 millionths faster.
  localparam logic [3:0] LINK_1000_FULL = 4'b1101;
  localparam int INTER_PACKET_GAP = 12;
  logic [7:0]  give [2048];
  logic [10:0] at, give_len;
  logic        phy_clk, is_giving;
  wire  [7:0]  now = give[at];

  initial begin
    phy_clk = 1'b0;
    forever begin
      #(3.999ns) phy_clk = 1'b1;
      #(4.000ns) phy_clk = 1'b0;
    end
  end
  initial begin
    rxc = 1'b0;
    #(4ns);
    forever begin
      #(3.999ns) rxc = 1'b1;
      #(4.000ns) rxc = 1'b0;
    end
  end
  initial {at, give_len} = '0;
  assign is_giving = at != give_len;
  always @(phy_clk) begin
    rx_ctl  <= is_giving;
    rx_pins <= !is_giving ? LINK_1000_FULL : phy_clk ? now[3:0] : now[7:4];
    if (!phy_clk && is_giving) at <= at + 11'd1;
  end

  // ---------------------------------------------------------------------------------------------------------------------
  // Who leads

  initial begin
    string path, word;
    int    number;
    void'($value$plusargs("tell=%s", path));
    tell = $fopen(path, "w");
    void'($value$plusargs("ask=%s", path));
    ask = $fopen(path, "r");
    if (tell == 0 || ask == 0) $fatal(1, "no pipes");
    forever begin
      if ($fscanf(ask, "%s %d", word, number) != 2 || word == "end") $finish;
      if (word == "run") begin
        #(number * 1us);
        $fdisplay(tell, "ran %b %0d", led, faults);
        $fflush(tell);
      end else begin
        // Its first byte is put where `at` is not yet.
        @(posedge phy_clk);
        for (int place = 0; place < number; place++) begin
          void'($fscanf(ask, "%h", give[11'(int'(at) + place)]));
        end
        @(posedge phy_clk) give_len = at + 11'(number);
        do @(posedge phy_clk); while (is_giving);
        repeat (INTER_PACKET_GAP) @(posedge phy_clk);
      end
    end
  end
endmodule

`default_nettype wire
