// The board's processor and network interface, and what lies between them and memory: all of `softcore` that a chip has, too. The
// memory is a port: `soft_memory` in simulation, `sdram` on an FPGA.
//
//   VexRiscv --- instructions --- soft_fill --------------+
//            --- data ----------- soft_fill, soft_stores -+-- mem_* (memory)
//                           +---- soft_registers          |
//                                   | AXI4-Lite           |
//                                  nic --- AXI4 ----------+
//                                   | AXI4-Stream
//                                  the cable
//
// Addresses: memory from 0, and once more from 8000_0000, where the data cache does not keep it; registers from F000_0000. The caches
// see nothing of what the interface writes. A store waits in soft_stores; reads of memory and accesses to registers wait for it.
`default_nettype none

module soft_system #(
    // log2 of the memory's bytes.
    parameter int SIZE_W   = 26,
    // Megabits per second, as the interface tells.
    parameter int SPEED    = 1000,
    // Who asks for memory; the lower, the sooner.
    localparam int MASTERS = 7,
    localparam int BEAT_W  = SIZE_W - 3
) (
    input  wire                            clk,
    input  wire                            rst,
    // The interface's clock: `clk`, but for edges at which nothing moves.
    input  wire                            nic_clk,

    // Memory: beats of 64 bits. What is read comes in the order of the grants; who asks has room for it.
    output logic [MASTERS-1:0]             mem_ask,
    output logic [MASTERS-1:0]             mem_is_write,
    output logic [MASTERS-1:0][BEAT_W-1:0] mem_beat,
    output logic [MASTERS-1:0][63:0]       mem_data,
    output logic [MASTERS-1:0][7:0]        mem_strobes,
    input  wire  [MASTERS-1:0]             mem_grant,
    input  wire  [MASTERS-1:0]             mem_come,
    input  wire  [63:0]                    mem_come_data,

    // Serial line: a byte in a clock. Ready: there is room for this one and the next.
    output logic                           sent_valid,
    output logic [7:0]                     sent,
    input  wire                            sent_ready,
    input  wire                            typed_valid,
    input  wire  [7:0]                     typed,
    output logic                           typed_ready,

    // The cable.
    output logic [63:0]                    m_axis_tdata,
    output logic [7:0]                     m_axis_tkeep,
    output logic                           m_axis_tvalid,
    input  wire                            m_axis_tready,
    output logic                           m_axis_tlast,
    input  wire  [63:0]                    s_axis_tdata,
    input  wire  [7:0]                     s_axis_tkeep,
    input  wire                            s_axis_tvalid,
    output logic                           s_axis_tready,
    input  wire                            s_axis_tlast,
    input  wire                            s_axis_tuser,
    input  wire                            link_up,
    input  wire  [31:0]                    straps,

    // For the simulation: clocks that pass at once, and how many there are until the timer interrupts; whether the processor waits for
    // memory, and whether anything moves between the interface and anything else; lines that were filled, a store.
    input  wire  [31:0]                    skipped,
    output logic [63:0]                    until_timer,
    output logic                           is_waiting,
    output logic                           moves,
    output logic                           event_fetch_line,
    output logic                           event_load_line,
    output logic                           event_store
);
  localparam int ADDR_W  = 40;
  localparam int FETCH = 0, LOAD = 1, STORE = 2, RING_READ = 3, RING_WRITE = 4, RECEIVED = 5, TRANSMIT = 6;

  // ---------------------------------------------------------------------------------------------------------------------
  // Memory

  wire [MASTERS-1:0] grant     = mem_grant;
  wire [MASTERS-1:0] come      = mem_come;
  wire [63:0]        come_data = mem_come_data;

  always_comb begin
    mem_is_write             = '0;
    mem_is_write[STORE]      = 1'b1;
    mem_is_write[RING_WRITE] = 1'b1;
    mem_is_write[RECEIVED]   = 1'b1;
  end
  for (genvar at = 0; at < MASTERS; at++) begin : gen_reads
    if (at == FETCH || at == LOAD || at == RING_READ || at == TRANSMIT) begin : gen_no_data
      assign mem_data[at]    = '0;
      assign mem_strobes[at] = '0;
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

  assign is_waiting = i_cyc || d_cyc || !stores_empty;

  // Memory twice, below F000_0000.
  wire         d_access    = d_cyc && d_stb;
  wire         d_registers = d_adr[29:26] == 4'hf;
  logic        stores_room, load_ack, registers_ack;
  logic [31:0] load_word, register_word;
  wire         push = d_access && !d_registers && d_we && stores_room;

  // Lines are read ahead while nobody else asks for memory, and never past a store that waits.
  wire others_ask = mem_ask[RING_READ] || mem_ask[RING_WRITE] || mem_ask[RECEIVED] || mem_ask[TRANSMIT];
  wire hold       = others_ask || !stores_empty;

  soft_fill #(.SIZE_W(SIZE_W)) fetch (
      .clk, .rst, .cycle(i_cyc && i_stb), .address(i_adr), .cti(i_cti), .ack(i_ack), .data(i_miso), .hold, .push, .push_address(d_adr),
      .ask(mem_ask[FETCH]), .beat(mem_beat[FETCH]), .grant(grant[FETCH]), .come(come[FETCH]), .come_data, .event_line(event_fetch_line)
  );

  soft_fill #(.SIZE_W(SIZE_W)) load (
      .clk, .rst, .cycle(d_access && !d_registers && !d_we && stores_empty), .address(d_adr), .cti(d_cti), .ack(load_ack),
      .data(load_word), .hold, .push, .push_address(d_adr), .ask(mem_ask[LOAD]), .beat(mem_beat[LOAD]), .grant(grant[LOAD]),
      .come(come[LOAD]), .come_data, .event_line(event_load_line)
  );

  soft_stores #(.SIZE_W(SIZE_W)) waiting (
      .clk, .rst, .push, .address(d_adr), .data(d_mosi), .strobes(d_sel), .has_room(stores_room), .is_empty(stores_empty),
      .ask(mem_ask[STORE]), .beat(mem_beat[STORE]), .beat_data(mem_data[STORE]), .beat_strobes(mem_strobes[STORE]), .grant(grant[STORE])
  );

  assign event_store = push;
  assign d_ack  = d_registers ? registers_ack : d_we ? push : load_ack;
  assign d_miso = d_registers ? register_word : load_word;

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
      .axil_rdata, .axil_rvalid, .sent_valid, .sent, .sent_ready, .typed_valid, .typed, .typed_ready, .straps, .irq_timer,
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

  // Whatever moves between the interface and anything else in this clock.
  assign moves = awvalid || wvalid || bvalid || arvalid || rvalid || sg_awvalid || sg_wvalid || sg_bvalid || sg_arvalid || sg_rvalid
                 || (d_access && d_registers) || s_axis_tvalid || in_tvalid || out_tvalid || m_axis_tvalid || rst;

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
      .ask(mem_ask[RECEIVED]), .beat(mem_beat[RECEIVED]), .beat_data(mem_data[RECEIVED]), .beat_strobes(mem_strobes[RECEIVED]),
      .grant(grant[RECEIVED])
  );

  soft_axi_read #(.DATA_W(64), .ADDR_W(ADDR_W), .SIZE_W(SIZE_W)) transmit (
      .clk, .rst, .araddr, .arlen, .arvalid, .arready, .rdata, .rlast, .rvalid, .rready,
      .ask(mem_ask[TRANSMIT]), .beat(mem_beat[TRANSMIT]), .grant(grant[TRANSMIT]), .come(come[TRANSMIT]), .come_data
  );

  soft_axi_write #(.DATA_W(128), .ADDR_W(ADDR_W), .SIZE_W(SIZE_W)) ring_write (
      .clk, .rst, .awaddr(sg_awaddr), .awvalid(sg_awvalid), .awready(sg_awready), .wdata(sg_wdata), .wstrb(sg_wstrb),
      .wlast(sg_wlast), .wvalid(sg_wvalid), .wready(sg_wready), .bvalid(sg_bvalid), .bready(sg_bready),
      .ask(mem_ask[RING_WRITE]), .beat(mem_beat[RING_WRITE]), .beat_data(mem_data[RING_WRITE]),
      .beat_strobes(mem_strobes[RING_WRITE]), .grant(grant[RING_WRITE])
  );

  soft_axi_read #(.DATA_W(128), .ADDR_W(ADDR_W), .SIZE_W(SIZE_W)) ring_read (
      .clk, .rst, .araddr(sg_araddr), .arlen(sg_arlen), .arvalid(sg_arvalid), .arready(sg_arready), .rdata(sg_rdata),
      .rlast(sg_rlast), .rvalid(sg_rvalid), .rready(sg_rready),
      .ask(mem_ask[RING_READ]), .beat(mem_beat[RING_READ]), .grant(grant[RING_READ]), .come(come[RING_READ]), .come_data
  );

  wire unused = &{1'b0, come[STORE], come[RING_WRITE], come[RECEIVED], i_we_unused, i_mosi_unused, i_sel_unused, i_bte_unused,
                  d_bte_unused, axil_bresp_unused, axil_rresp_unused, pause_unused, tuser_unused, id_unused, awlen_unused,
                  sg_awlen_unused, awcache_unused, arcache_unused, sg_awcache_unused, sg_arcache_unused, size_unused[0],
                  size_unused[1], size_unused[2], size_unused[3], prot_unused[0], prot_unused[1], prot_unused[2],
                  prot_unused[3], burst_unused[0], burst_unused[1], burst_unused[2], burst_unused[3]};
endmodule

`default_nettype wire
