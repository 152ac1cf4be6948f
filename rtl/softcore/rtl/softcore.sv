// The board `softcore`: a RISC-V core with caches, memory, and the network interface, all at one clock (100 MHz).
//
//   VexRiscv --- instructions --- soft_fill --------------+
//            --- data ----------- soft_fill, soft_stores -+-- soft_memory   64 MiB; 18 clocks to the first word, 8 bytes a clock
//                           +---- soft_registers          |
//                                   | AXI4-Lite           |
//                                  nic --- AXI4 ----------+
//                                   | AXI4-Stream
//                                  the cable
//
// Addresses: memory from 0, and once more from 8000_0000, where the data cache does not keep it; registers from F000_0000. The caches
// see nothing of what the interface writes. A store waits in soft_stores; reads of memory and accesses to registers wait for it.
//
// The interface's clock stops while nothing moves, as it would on a chip: all that it costs is the time that its counter of clocks tells.
// In simulation that is most of the work.
//
// Nor has the rest to be clocked while the processor sleeps and nothing moves (`is_still`): then all that a clock changes is the count of
// clocks, and `skipped` adds to it as many as whoever drives the clock leaves out. (The core's own count, mcycle, stops; no image reads it.)
`default_nettype none

module softcore #(
    // log2 of the memory's bytes.
    parameter int SIZE_W  = 26,
    parameter int LATENCY = 18,
    // Megabits per second, as the interface tells.
    parameter int SPEED   = 1000,
    // Clocks without a transfer after which the interface's clock may stop: more than any timer in it is set to.
    parameter int HOLD    = 16384
) (
    input  wire         clk,
    input  wire         rst,
    // The interface's clock: the edges of `clk` at which `nic_wanted` is set.
    input  wire         nic_clk,
    output logic        nic_wanted,

    // Whether the processor sleeps; and whether, until something comes over cable or line, or the timer interrupts, nothing will change.
    output logic        is_asleep,
    output logic        is_still,
    output logic [63:0] until_timer,
    // Clocks that pass together with this one; only while `is_still`, and fewer than `until_timer`.
    input  wire  [31:0] skipped,

    // Memory, written while `rst` is set.
    input  wire         load_valid,
    input  wire  [31:0] load_address,
    input  wire  [63:0] load_data,

    // Serial line: a byte in a clock.
    output logic        sent_valid,
    output logic [7:0]  sent,
    input  wire         typed_valid,
    input  wire  [7:0]  typed,
    output logic        typed_ready,

    // The cable.
    output logic [63:0] m_axis_tdata,
    output logic [7:0]  m_axis_tkeep,
    output logic        m_axis_tvalid,
    input  wire         m_axis_tready,
    output logic        m_axis_tlast,
    input  wire  [63:0] s_axis_tdata,
    input  wire  [7:0]  s_axis_tkeep,
    input  wire         s_axis_tvalid,
    output logic        s_axis_tready,
    input  wire         s_axis_tlast,
    input  wire         s_axis_tuser,
    input  wire         link_up,
    input  wire  [31:0] straps,

    // Instructions that the core has executed, lines that the caches have filled, and stores, since the start.
    output logic [31:0] instructions,
    output logic [31:0] instruction_fills,
    output logic [31:0] data_fills,
    output logic [31:0] stores,
    // The instruction at the end of the pipeline, for whoever takes samples of it.
    output logic [31:0] pc
);
  localparam int BEAT_W  = SIZE_W - 3;
  localparam int ADDR_W  = 40;
  // The lower, the sooner.
  localparam int FETCH = 0, LOAD = 1, STORE = 2, RING_READ = 3, RING_WRITE = 4, RECEIVED = 5, TRANSMIT = 6, MASTERS = 7;

  // ---------------------------------------------------------------------------------------------------------------------
  // Memory

  logic [MASTERS-1:0]             ask, is_write, grant, come;
  logic [MASTERS-1:0][BEAT_W-1:0] beat;
  logic [MASTERS-1:0][63:0]       beat_data;
  logic [MASTERS-1:0][7:0]        beat_strobes;
  logic [63:0]                    come_data;

  soft_memory #(.MASTERS(MASTERS), .SIZE_W(SIZE_W), .LATENCY(LATENCY)) memory (
      .clk, .rst, .load_valid, .load_address, .load_data, .ask, .is_write, .beat, .data(beat_data), .strobes(beat_strobes),
      .grant, .come, .come_data
  );

  always_comb begin
    is_write             = '0;
    is_write[STORE]      = 1'b1;
    is_write[RING_WRITE] = 1'b1;
    is_write[RECEIVED]   = 1'b1;
  end
  for (genvar at = 0; at < MASTERS; at++) begin : gen_reads
    if (at == FETCH || at == LOAD || at == RING_READ || at == TRANSMIT) begin : gen_no_data
      assign beat_data[at]    = '0;
      assign beat_strobes[at] = '0;
    end
  end

  // ---------------------------------------------------------------------------------------------------------------------
  // The processor

  logic        i_cyc, i_stb, i_ack, d_cyc, d_stb, d_ack, d_we, d_err;
  logic [29:0] i_adr, d_adr;
  logic [31:0] i_miso, d_miso, d_mosi;
  logic [3:0]  d_sel;
  logic [2:0]  i_cti, d_cti;
  logic        irq_timer, irq_link;
  logic [0:0]  irq_rx, irq_tx;
  logic        stores_empty;
  logic        i_we_unused;
  logic [31:0] i_mosi_unused;
  logic [3:0]  i_sel_unused;
  logic [1:0]  i_bte_unused, d_bte_unused;

  VexRiscv core (
      .externalResetVector(32'd0), .timerInterrupt(irq_timer), .softwareInterrupt(1'b0),
      .externalInterruptArray({28'd0, typed_valid, irq_link, irq_tx, irq_rx}),
      .iBusWishbone_CYC(i_cyc), .iBusWishbone_STB(i_stb), .iBusWishbone_ACK(i_ack), .iBusWishbone_WE(i_we_unused),
      .iBusWishbone_ADR(i_adr), .iBusWishbone_DAT_MISO(i_miso), .iBusWishbone_DAT_MOSI(i_mosi_unused),
      .iBusWishbone_SEL(i_sel_unused), .iBusWishbone_ERR(1'b0), .iBusWishbone_CTI(i_cti), .iBusWishbone_BTE(i_bte_unused),
      .dBusWishbone_CYC(d_cyc), .dBusWishbone_STB(d_stb), .dBusWishbone_ACK(d_ack), .dBusWishbone_WE(d_we),
      .dBusWishbone_ADR(d_adr), .dBusWishbone_DAT_MISO(d_miso), .dBusWishbone_DAT_MOSI(d_mosi), .dBusWishbone_SEL(d_sel),
      .dBusWishbone_ERR(d_err), .dBusWishbone_CTI(d_cti), .dBusWishbone_BTE(d_bte_unused),
      .clk, .reset(rst)
  );

  assign pc = core.lastStagePc;

  // An instruction that waits for an interrupt stands in the pipeline. What was under way in front of it and behind it ends within this
  // many clocks, a line of memory being the longest; and an interrupt that was due would have ended the wait.
  localparam int SETTLE = 64;
  logic [$clog2(SETTLE+1)-1:0] settled;
  wire sleeps = core.CsrPlugin_inWfi && !i_cyc && !d_cyc && stores_empty && !rst;
  assign is_asleep = core.CsrPlugin_inWfi;
  assign is_still  = settled == ($clog2(SETTLE + 1))'(SETTLE) && sleeps && !nic_wanted;
  always_ff @(posedge clk) begin
    if (!sleeps) settled <= '0;
    else if (settled != ($clog2(SETTLE + 1))'(SETTLE)) settled <= settled + 1'b1;
  end

  logic fetch_line;
  soft_fill #(.SIZE_W(SIZE_W)) fetch (
      .clk, .rst, .cycle(i_cyc && i_stb), .address(i_adr), .cti(i_cti), .ack(i_ack), .data(i_miso),
      .ask(ask[FETCH]), .beat(beat[FETCH]), .grant(grant[FETCH]), .come(come[FETCH]), .come_data, .event_line(fetch_line)
  );

  // Memory twice, below F000_0000.
  wire         d_access    = d_cyc && d_stb;
  wire         d_registers = d_adr[29:26] == 4'hf;
  logic        stores_room, load_ack, load_line, registers_ack;
  logic [31:0] load_word, register_word;
  wire         push = d_access && !d_registers && d_we && stores_room;

  soft_fill #(.SIZE_W(SIZE_W)) load (
      .clk, .rst, .cycle(d_access && !d_registers && !d_we && stores_empty), .address(d_adr), .cti(d_cti), .ack(load_ack),
      .data(load_word), .ask(ask[LOAD]), .beat(beat[LOAD]), .grant(grant[LOAD]), .come(come[LOAD]), .come_data,
      .event_line(load_line)
  );

  soft_stores #(.SIZE_W(SIZE_W)) waiting (
      .clk, .rst, .push, .address(d_adr), .data(d_mosi), .strobes(d_sel), .has_room(stores_room), .is_empty(stores_empty),
      .ask(ask[STORE]), .beat(beat[STORE]), .beat_data(beat_data[STORE]), .beat_strobes(beat_strobes[STORE]), .grant(grant[STORE])
  );

  assign d_ack  = d_registers ? registers_ack : d_we ? push : load_ack;
  assign d_miso = d_registers ? register_word : load_word;

  always_ff @(posedge clk) begin
    if (core.lastStageIsFiring) instructions <= instructions + 32'd1;
    if (fetch_line) instruction_fills <= instruction_fills + 32'd1;
    if (load_line) data_fills <= data_fills + 32'd1;
    if (push) stores <= stores + 32'd1;
    if (rst) begin
      instructions      <= '0;
      instruction_fills <= '0;
      data_fills        <= '0;
      stores            <= '0;
    end
  end

  // ---------------------------------------------------------------------------------------------------------------------
  // Registers

  logic [12:0] axil_addr;
  logic        axil_awvalid, axil_awready, axil_wvalid, axil_wready, axil_bvalid, axil_arvalid, axil_arready, axil_rvalid;
  logic [31:0] axil_rdata;
  logic [1:0]  axil_bresp_unused, axil_rresp_unused;

  soft_registers registers (
      .clk, .rst, .access(d_access && d_registers && stores_empty), .is_write(d_we), .address(d_adr), .write_data(d_mosi),
      .ack(registers_ack), .read_data(register_word), .is_nothing(d_err),
      .axil_addr, .axil_awvalid, .axil_awready, .axil_wvalid, .axil_wready, .axil_bvalid, .axil_arvalid, .axil_arready,
      .axil_rdata, .axil_rvalid, .sent_valid, .sent, .typed_valid, .typed, .typed_ready, .straps, .irq_timer,
      .skipped, .until_timer
  );

  // ---------------------------------------------------------------------------------------------------------------------
  // The interface, its stream behind a register on each side

  logic [ADDR_W-1:0] awaddr, araddr, sg_awaddr, sg_araddr;
  logic [7:0]        arlen, sg_arlen, wstrb, awlen_unused, sg_awlen_unused;
  logic              awvalid, awready, wlast, wvalid, wready, bvalid, bready, arvalid, arready, rlast, rvalid, rready;
  logic              sg_awvalid, sg_awready, sg_wlast, sg_wvalid, sg_wready, sg_bvalid, sg_bready;
  logic              sg_arvalid, sg_arready, sg_rlast, sg_rvalid, sg_rready;
  logic [63:0]       wdata, rdata;
  logic [127:0]      sg_wdata, sg_rdata;
  logic [15:0]       sg_wstrb;
  logic [63:0]       out_tdata, in_tdata;
  logic [7:0]        out_tkeep, in_tkeep;
  logic              out_tvalid, out_tready, out_tlast, out_tuser, in_tvalid, in_tready, in_tlast, in_tuser;
  logic              pause_unused, tuser_unused;
  logic [3:0]        id_unused, awcache_unused, arcache_unused, sg_awcache_unused, sg_arcache_unused;
  logic [2:0]        size_unused [4], prot_unused [4];
  logic [1:0]        burst_unused [4];

  // Whatever moves between the interface and anything else in this clock, or did so shortly before.
  wire moves = awvalid || wvalid || bvalid || arvalid || rvalid || sg_awvalid || sg_wvalid || sg_bvalid || sg_arvalid || sg_rvalid
               || (d_access && d_registers) || s_axis_tvalid || in_tvalid || out_tvalid || m_axis_tvalid || rst;
  logic [$clog2(HOLD+1)-1:0] quiet;
  assign nic_wanted = moves || quiet != ($clog2(HOLD + 1))'(HOLD);
  always_ff @(posedge clk) begin
    if (moves) quiet <= '0;
    else if (nic_wanted) quiet <= quiet + 1'b1;
  end

  nic #(.QUEUES(1), .ADDR_W(ADDR_W)) nic (
      .clk(nic_clk), .rst,
      .s_axil_awaddr(axil_addr), .s_axil_awvalid(axil_awvalid), .s_axil_awready(axil_awready),
      .s_axil_wdata(d_mosi), .s_axil_wstrb(d_sel), .s_axil_wvalid(axil_wvalid), .s_axil_wready(axil_wready),
      .s_axil_bresp(axil_bresp_unused), .s_axil_bvalid(axil_bvalid), .s_axil_bready(1'b1),
      .s_axil_araddr(axil_addr), .s_axil_arvalid(axil_arvalid), .s_axil_arready(axil_arready),
      .s_axil_rdata(axil_rdata), .s_axil_rresp(axil_rresp_unused), .s_axil_rvalid(axil_rvalid), .s_axil_rready(1'b1),

      .m_axi_awid(id_unused[0]), .m_axi_awaddr(awaddr), .m_axi_awlen(awlen_unused), .m_axi_awsize(size_unused[0]),
      .m_axi_awburst(burst_unused[0]), .m_axi_awcache(awcache_unused), .m_axi_awprot(prot_unused[0]), .m_axi_awvalid(awvalid),
      .m_axi_awready(awready), .m_axi_wdata(wdata), .m_axi_wstrb(wstrb), .m_axi_wlast(wlast), .m_axi_wvalid(wvalid),
      .m_axi_wready(wready), .m_axi_bid(1'b0), .m_axi_bresp(2'b00), .m_axi_bvalid(bvalid), .m_axi_bready(bready),
      .m_axi_arid(id_unused[1]), .m_axi_araddr(araddr), .m_axi_arlen(arlen), .m_axi_arsize(size_unused[1]),
      .m_axi_arburst(burst_unused[1]), .m_axi_arcache(arcache_unused), .m_axi_arprot(prot_unused[1]), .m_axi_arvalid(arvalid),
      .m_axi_arready(arready), .m_axi_rid(1'b0), .m_axi_rdata(rdata), .m_axi_rresp(2'b00), .m_axi_rlast(rlast),
      .m_axi_rvalid(rvalid), .m_axi_rready(rready),

      .m_axi_sg_awid(id_unused[2]), .m_axi_sg_awaddr(sg_awaddr), .m_axi_sg_awlen(sg_awlen_unused),
      .m_axi_sg_awsize(size_unused[2]), .m_axi_sg_awburst(burst_unused[2]), .m_axi_sg_awcache(sg_awcache_unused),
      .m_axi_sg_awprot(prot_unused[2]), .m_axi_sg_awvalid(sg_awvalid), .m_axi_sg_awready(sg_awready),
      .m_axi_sg_wdata(sg_wdata), .m_axi_sg_wstrb(sg_wstrb), .m_axi_sg_wlast(sg_wlast), .m_axi_sg_wvalid(sg_wvalid),
      .m_axi_sg_wready(sg_wready), .m_axi_sg_bid(1'b0), .m_axi_sg_bresp(2'b00), .m_axi_sg_bvalid(sg_bvalid),
      .m_axi_sg_bready(sg_bready), .m_axi_sg_arid(id_unused[3]), .m_axi_sg_araddr(sg_araddr), .m_axi_sg_arlen(sg_arlen),
      .m_axi_sg_arsize(size_unused[3]), .m_axi_sg_arburst(burst_unused[3]), .m_axi_sg_arcache(sg_arcache_unused),
      .m_axi_sg_arprot(prot_unused[3]), .m_axi_sg_arvalid(sg_arvalid), .m_axi_sg_arready(sg_arready), .m_axi_sg_rid(1'b0),
      .m_axi_sg_rdata(sg_rdata), .m_axi_sg_rresp(2'b00), .m_axi_sg_rlast(sg_rlast), .m_axi_sg_rvalid(sg_rvalid),
      .m_axi_sg_rready(sg_rready),

      .m_axis_tdata(out_tdata), .m_axis_tkeep(out_tkeep), .m_axis_tvalid(out_tvalid), .m_axis_tready(out_tready),
      .m_axis_tlast(out_tlast), .m_axis_tuser(out_tuser),
      .s_axis_tdata(in_tdata), .s_axis_tkeep(in_tkeep), .s_axis_tvalid(in_tvalid), .s_axis_tready(in_tready),
      .s_axis_tlast(in_tlast), .s_axis_tuser(in_tuser),
      .pause_request(pause_unused), .link_up, .link_full_duplex(1'b1), .link_speed(24'(SPEED)),
      .irq_tx, .irq_rx, .irq_link
  );

  axis_register #(.DATA_W(64), .USER_W(1)) to_mac (
      .clk(nic_clk), .rst,
      .s_axis_tdata(out_tdata), .s_axis_tkeep(out_tkeep), .s_axis_tvalid(out_tvalid), .s_axis_tready(out_tready),
      .s_axis_tlast(out_tlast), .s_axis_tuser(out_tuser),
      .m_axis_tdata, .m_axis_tkeep, .m_axis_tvalid, .m_axis_tready, .m_axis_tlast, .m_axis_tuser(tuser_unused)
  );

  axis_register #(.DATA_W(64), .USER_W(1)) from_mac (
      .clk(nic_clk), .rst, .s_axis_tdata, .s_axis_tkeep, .s_axis_tvalid, .s_axis_tready, .s_axis_tlast, .s_axis_tuser,
      .m_axis_tdata(in_tdata), .m_axis_tkeep(in_tkeep), .m_axis_tvalid(in_tvalid), .m_axis_tready(in_tready),
      .m_axis_tlast(in_tlast), .m_axis_tuser(in_tuser)
  );

  soft_axi_write #(.DATA_W(64), .ADDR_W(ADDR_W), .SIZE_W(SIZE_W)) received (
      .clk, .rst, .awaddr, .awvalid, .awready, .wdata, .wstrb, .wlast, .wvalid, .wready, .bvalid, .bready,
      .ask(ask[RECEIVED]), .beat(beat[RECEIVED]), .beat_data(beat_data[RECEIVED]), .beat_strobes(beat_strobes[RECEIVED]),
      .grant(grant[RECEIVED])
  );

  soft_axi_read #(.DATA_W(64), .ADDR_W(ADDR_W), .SIZE_W(SIZE_W)) transmit (
      .clk, .rst, .araddr, .arlen, .arvalid, .arready, .rdata, .rlast, .rvalid, .rready,
      .ask(ask[TRANSMIT]), .beat(beat[TRANSMIT]), .grant(grant[TRANSMIT]), .come(come[TRANSMIT]), .come_data
  );

  soft_axi_write #(.DATA_W(128), .ADDR_W(ADDR_W), .SIZE_W(SIZE_W)) ring_write (
      .clk, .rst, .awaddr(sg_awaddr), .awvalid(sg_awvalid), .awready(sg_awready), .wdata(sg_wdata), .wstrb(sg_wstrb),
      .wlast(sg_wlast), .wvalid(sg_wvalid), .wready(sg_wready), .bvalid(sg_bvalid), .bready(sg_bready),
      .ask(ask[RING_WRITE]), .beat(beat[RING_WRITE]), .beat_data(beat_data[RING_WRITE]),
      .beat_strobes(beat_strobes[RING_WRITE]), .grant(grant[RING_WRITE])
  );

  soft_axi_read #(.DATA_W(128), .ADDR_W(ADDR_W), .SIZE_W(SIZE_W)) ring_read (
      .clk, .rst, .araddr(sg_araddr), .arlen(sg_arlen), .arvalid(sg_arvalid), .arready(sg_arready), .rdata(sg_rdata),
      .rlast(sg_rlast), .rvalid(sg_rvalid), .rready(sg_rready),
      .ask(ask[RING_READ]), .beat(beat[RING_READ]), .grant(grant[RING_READ]), .come(come[RING_READ]), .come_data
  );

  wire unused = &{1'b0, come[STORE], come[RING_WRITE], come[RECEIVED], i_we_unused, i_mosi_unused, i_sel_unused, i_bte_unused,
                  d_bte_unused, axil_bresp_unused, axil_rresp_unused, pause_unused, tuser_unused, id_unused, awlen_unused,
                  sg_awlen_unused, awcache_unused, arcache_unused, sg_awcache_unused, sg_arcache_unused, size_unused[0],
                  size_unused[1], size_unused[2], size_unused[3], prot_unused[0], prot_unused[1], prot_unused[2],
                  prot_unused[3], burst_unused[0], burst_unused[1], burst_unused[2], burst_unused[3]};
endmodule

`default_nettype wire
