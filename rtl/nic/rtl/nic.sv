// The network interface: DMA engine, offloads both ways, registers. A MAC on one side, memory and a processor on the other.
//
//   s_axil ---+-------------------------------> nic_regs (configuration, counters)
//             |
//           dma ---> tso ---> csum_tx ---+----------------------------> m_axis (to the MAC)
//             ^                          | loopback
//             |                          v
//             +--- lro <--- rx_fifo <--- rss <--- csum_rx <--- mac_filter <--- s_axis (from the MAC)
//             |
//   m_axi, m_axi_sg (memory)          int_pacer ---> dma's interrupts
//
// A MAC's receive side cannot be held back: at 64 bit everything up to rx_fifo takes a beat in each clock for frames of
// 60 bytes and more, and rx_fifo drops whole frames, counted, when it is full; it asks for a pause before.
// Registers: docs/rtl/registers.md.
`default_nettype none

module nic
  import nic_pkg::*;
#(
    parameter int DATA_W      = 64,
    parameter int QUEUES      = 4,
    parameter int ADDR_W      = 40,
    parameter int APP_LAYOUT  = 0,
    // Of the receive FIFO, and the longest frame that it takes.
    parameter int RX_BYTES    = 32768,
    parameter int MAX_FRAME   = 9018,
    // Of the store in which frames wait for their checksum: as long as the longest frame.
    parameter int TX_BYTES    = 16384,
    localparam int BYTES      = DATA_W / 8
) (
    input  wire                clk,
    input  wire                rst,

    // Registers
    input  wire  [12:0]        s_axil_awaddr,
    input  wire                s_axil_awvalid,
    output logic               s_axil_awready,
    input  wire  [31:0]        s_axil_wdata,
    input  wire  [3:0]         s_axil_wstrb,
    input  wire                s_axil_wvalid,
    output logic               s_axil_wready,
    output logic [1:0]         s_axil_bresp,
    output logic               s_axil_bvalid,
    input  wire                s_axil_bready,
    input  wire  [12:0]        s_axil_araddr,
    input  wire                s_axil_arvalid,
    output logic               s_axil_arready,
    output logic [31:0]        s_axil_rdata,
    output logic [1:0]         s_axil_rresp,
    output logic               s_axil_rvalid,
    input  wire                s_axil_rready,

    // Data
    output logic [0:0]         m_axi_awid,
    output logic [ADDR_W-1:0]  m_axi_awaddr,
    output logic [7:0]         m_axi_awlen,
    output logic [2:0]         m_axi_awsize,
    output logic [1:0]         m_axi_awburst,
    output logic [3:0]         m_axi_awcache,
    output logic [2:0]         m_axi_awprot,
    output logic               m_axi_awvalid,
    input  wire                m_axi_awready,
    output logic [DATA_W-1:0]  m_axi_wdata,
    output logic [BYTES-1:0]   m_axi_wstrb,
    output logic               m_axi_wlast,
    output logic               m_axi_wvalid,
    input  wire                m_axi_wready,
    input  wire  [0:0]         m_axi_bid,
    input  wire  [1:0]         m_axi_bresp,
    input  wire                m_axi_bvalid,
    output logic               m_axi_bready,
    output logic [0:0]         m_axi_arid,
    output logic [ADDR_W-1:0]  m_axi_araddr,
    output logic [7:0]         m_axi_arlen,
    output logic [2:0]         m_axi_arsize,
    output logic [1:0]         m_axi_arburst,
    output logic [3:0]         m_axi_arcache,
    output logic [2:0]         m_axi_arprot,
    output logic               m_axi_arvalid,
    input  wire                m_axi_arready,
    input  wire  [0:0]         m_axi_rid,
    input  wire  [DATA_W-1:0]  m_axi_rdata,
    input  wire  [1:0]         m_axi_rresp,
    input  wire                m_axi_rlast,
    input  wire                m_axi_rvalid,
    output logic               m_axi_rready,

    // Descriptors
    output logic [0:0]         m_axi_sg_awid,
    output logic [ADDR_W-1:0]  m_axi_sg_awaddr,
    output logic [7:0]         m_axi_sg_awlen,
    output logic [2:0]         m_axi_sg_awsize,
    output logic [1:0]         m_axi_sg_awburst,
    output logic [3:0]         m_axi_sg_awcache,
    output logic [2:0]         m_axi_sg_awprot,
    output logic               m_axi_sg_awvalid,
    input  wire                m_axi_sg_awready,
    output logic [127:0]       m_axi_sg_wdata,
    output logic [15:0]        m_axi_sg_wstrb,
    output logic               m_axi_sg_wlast,
    output logic               m_axi_sg_wvalid,
    input  wire                m_axi_sg_wready,
    input  wire  [0:0]         m_axi_sg_bid,
    input  wire  [1:0]         m_axi_sg_bresp,
    input  wire                m_axi_sg_bvalid,
    output logic               m_axi_sg_bready,
    output logic [0:0]         m_axi_sg_arid,
    output logic [ADDR_W-1:0]  m_axi_sg_araddr,
    output logic [7:0]         m_axi_sg_arlen,
    output logic [2:0]         m_axi_sg_arsize,
    output logic [1:0]         m_axi_sg_arburst,
    output logic [3:0]         m_axi_sg_arcache,
    output logic [2:0]         m_axi_sg_arprot,
    output logic               m_axi_sg_arvalid,
    input  wire                m_axi_sg_arready,
    input  wire  [0:0]         m_axi_sg_rid,
    input  wire  [127:0]       m_axi_sg_rdata,
    input  wire  [1:0]         m_axi_sg_rresp,
    input  wire                m_axi_sg_rlast,
    input  wire                m_axi_sg_rvalid,
    output logic               m_axi_sg_rready,

    // To the MAC
    output logic [DATA_W-1:0]  m_axis_tdata,
    output logic [BYTES-1:0]   m_axis_tkeep,
    output logic               m_axis_tvalid,
    input  wire                m_axis_tready,
    output logic               m_axis_tlast,
    output logic               m_axis_tuser,   // never an error

    // From the MAC: it does not wait, tready is there for benches and always 1 outside of loopback for frames of 60 bytes and more
    input  wire  [DATA_W-1:0]  s_axis_tdata,
    input  wire  [BYTES-1:0]   s_axis_tkeep,
    input  wire                s_axis_tvalid,
    output logic               s_axis_tready,
    input  wire                s_axis_tlast,
    input  wire                s_axis_tuser,   // in the last beat: the frame is damaged
    output logic               pause_request,
    input  wire                link_up,
    input  wire                link_full_duplex,
    input  wire  [23:0]        link_speed,     // megabits per second

    // Interrupts, levels
    output logic [QUEUES-1:0]  irq_tx,
    output logic [QUEUES-1:0]  irq_rx,
    output logic               irq_link
);
  localparam int RX_USER_W = $bits(rx_user_t);
  localparam logic [31:0] BUILT_IN = {8'd1, 4'd0, 4'(QUEUES), 7'd0, 9'h1ff};

  if (QUEUES < 1 || QUEUES > 8) begin : gen_bad_queues
    $error("nic: QUEUES must be 1 to 8");
  end

  // ---------------------------------------------------------------------------------------------------------------------
  // Registers

  logic [12:0]      axil_awaddr, axil_araddr;
  logic [1:0]       axil_awvalid, axil_awready, axil_wvalid, axil_wready, axil_bvalid, axil_bready;
  logic [1:0]       axil_arvalid, axil_arready, axil_rvalid, axil_rready;
  logic [1:0][1:0]  axil_bresp, axil_rresp;
  logic [31:0]      axil_wdata;
  logic [3:0]       axil_wstrb;
  logic [1:0][31:0] axil_rdata;

  axil_split #(.ADDR_W(13)) split (
      .clk, .rst,
      .s_axil_awaddr, .s_axil_awvalid, .s_axil_awready, .s_axil_wdata, .s_axil_wstrb, .s_axil_wvalid, .s_axil_wready,
      .s_axil_bresp, .s_axil_bvalid, .s_axil_bready, .s_axil_araddr, .s_axil_arvalid, .s_axil_arready, .s_axil_rdata,
      .s_axil_rresp, .s_axil_rvalid, .s_axil_rready,
      .m_axil_awaddr(axil_awaddr), .m_axil_awvalid(axil_awvalid), .m_axil_awready(axil_awready),
      .m_axil_wdata(axil_wdata), .m_axil_wstrb(axil_wstrb), .m_axil_wvalid(axil_wvalid), .m_axil_wready(axil_wready),
      .m_axil_bresp(axil_bresp), .m_axil_bvalid(axil_bvalid), .m_axil_bready(axil_bready),
      .m_axil_araddr(axil_araddr), .m_axil_arvalid(axil_arvalid), .m_axil_arready(axil_arready),
      .m_axil_rdata(axil_rdata), .m_axil_rresp(axil_rresp), .m_axil_rvalid(axil_rvalid), .m_axil_rready(axil_rready)
  );

  logic        access, is_write, access_done;
  logic [12:0] access_addr;
  logic [31:0] write_data, read_data;
  axil_slave #(.ADDR_W(13)) slave (
      .clk, .rst,
      .s_axil_awaddr(axil_awaddr), .s_axil_awvalid(axil_awvalid[1]), .s_axil_awready(axil_awready[1]),
      .s_axil_wdata(axil_wdata), .s_axil_wstrb(axil_wstrb), .s_axil_wvalid(axil_wvalid[1]), .s_axil_wready(axil_wready[1]),
      .s_axil_bresp(axil_bresp[1]), .s_axil_bvalid(axil_bvalid[1]), .s_axil_bready(axil_bready[1]),
      .s_axil_araddr(axil_araddr), .s_axil_arvalid(axil_arvalid[1]), .s_axil_arready(axil_arready[1]),
      .s_axil_rdata(axil_rdata[1]), .s_axil_rresp(axil_rresp[1]), .s_axil_rvalid(axil_rvalid[1]),
      .s_axil_rready(axil_rready[1]),
      .access, .is_write, .addr(access_addr), .write_data, .done(access_done), .read_data
  );

  logic [5:0]           cfg_mode;
  logic [47:0]          cfg_address;
  logic [63:0]          cfg_groups;
  logic [31:0]          cfg_pause_high, cfg_pause_low, cfg_rule_enable, cfg_write_data;
  logic                 cfg_hash_tcp, cfg_hash_udp, cfg_write, rules_busy;
  logic [3:0]           cfg_default_channel;
  logic [319:0]         cfg_key;
  logic [15:0]          cfg_port_enable, cfg_tick_clocks, cfg_adaptive_min, cfg_adaptive_low, cfg_adaptive_high;
  logic [10:0]          cfg_write_address, events;
  logic [QUEUES-1:0]    cfg_pacer_on, cfg_adaptive;
  logic [QUEUES*2-1:0]  cfg_pacer_mode;
  logic [QUEUES*16-1:0] cfg_pacer_timer, cfg_pacer_threshold;
  logic [23:0]          cfg_join_timer;

  nic_regs #(.QUEUES(QUEUES), .BUILT_IN(BUILT_IN)) regs (
      .clk, .rst, .access, .is_write, .addr(access_addr), .write_data, .done(access_done), .read_data,
      .link_up, .link_full_duplex, .link_speed, .link_irq(irq_link),
      .cfg_mode, .cfg_address, .cfg_groups, .cfg_pause_high, .cfg_pause_low,
      .cfg_hash_tcp, .cfg_hash_udp, .cfg_default_channel, .cfg_key, .cfg_rule_enable, .cfg_port_enable, .cfg_write,
      .cfg_write_address, .cfg_write_data, .rules_busy,
      .cfg_pacer_on, .cfg_pacer_mode, .cfg_pacer_timer, .cfg_pacer_threshold, .cfg_adaptive, .cfg_tick_clocks,
      .cfg_adaptive_min, .cfg_adaptive_low, .cfg_adaptive_high, .cfg_join_timer, .events
  );

  wire cfg_enable      = cfg_mode[nic_regs_pkg::MODE_ENABLE];
  wire cfg_promiscuous = cfg_mode[nic_regs_pkg::MODE_PROMISCUOUS];
  wire cfg_all_groups  = cfg_mode[nic_regs_pkg::MODE_ALL_GROUPS];
  wire cfg_loopback    = cfg_mode[nic_regs_pkg::MODE_LOOPBACK];
  wire cfg_verify      = cfg_mode[nic_regs_pkg::MODE_VERIFY];
  wire cfg_join        = cfg_mode[nic_regs_pkg::MODE_JOIN];

  // Since the reset, in clocks.
  logic [31:0] now;
  always_ff @(posedge clk) now <= rst ? '0 : now + 32'd1;

  // ---------------------------------------------------------------------------------------------------------------------
  // Transmit

  logic [DATA_W-1:0] dma_tdata, sum_tdata;
  logic [BYTES-1:0]  dma_tkeep, sum_tkeep;
  logic              dma_tvalid, dma_tready, dma_tlast, sum_tvalid, sum_tready, sum_tlast;
  tx_user_t          dma_tuser;
  logic [3:0]        sum_tuser;
  logic              event_super, event_segment, event_malformed, event_length;
  logic              event_inserted, event_refused, event_overlong;

  tx_path #(.DATA_W(DATA_W), .FIFO_BYTES(TX_BYTES)) tx_path (
      .clk, .rst,
      .s_axis_tdata(dma_tdata), .s_axis_tkeep(dma_tkeep), .s_axis_tvalid(dma_tvalid), .s_axis_tready(dma_tready),
      .s_axis_tlast(dma_tlast), .s_axis_tuser(dma_tuser),
      .m_axis_tdata(sum_tdata), .m_axis_tkeep(sum_tkeep), .m_axis_tvalid(sum_tvalid), .m_axis_tready(sum_tready),
      .m_axis_tlast(sum_tlast), .m_axis_tuser(sum_tuser),
      .event_super, .event_segment, .event_malformed, .event_length, .event_inserted, .event_refused, .event_overlong
  );

  logic in_tready;
  assign m_axis_tdata  = sum_tdata;
  assign m_axis_tkeep  = sum_tkeep;
  assign m_axis_tlast  = sum_tlast;
  assign m_axis_tuser  = 1'b0;
  assign m_axis_tvalid = sum_tvalid && !cfg_loopback;
  assign sum_tready    = cfg_loopback ? in_tready : m_axis_tready;
  assign s_axis_tready = cfg_loopback || in_tready;

  // ---------------------------------------------------------------------------------------------------------------------
  // Receive

  // From the wire, or what we send ourselves.
  logic [DATA_W-1:0] in_tdata;
  logic [BYTES-1:0]  in_tkeep;
  logic              in_tvalid, in_error, in_tlast, filter_tready;
  axis_register #(.DATA_W(DATA_W), .USER_W(1)) arrival (
      .clk, .rst,
      .s_axis_tdata(cfg_loopback ? sum_tdata : s_axis_tdata), .s_axis_tkeep(cfg_loopback ? sum_tkeep : s_axis_tkeep),
      .s_axis_tvalid(cfg_loopback ? sum_tvalid : s_axis_tvalid), .s_axis_tready(in_tready),
      .s_axis_tlast(cfg_loopback ? sum_tlast : s_axis_tlast), .s_axis_tuser(s_axis_tuser && !cfg_loopback),
      .m_axis_tdata(in_tdata), .m_axis_tkeep(in_tkeep), .m_axis_tvalid(in_tvalid), .m_axis_tready(filter_tready),
      .m_axis_tlast(in_tlast), .m_axis_tuser(in_error)
  );

  rx_user_t in_user, sum_user, lro_user;
  always_comb begin
    in_user           = '0;
    in_user.error     = in_error;
    in_user.seg_count = 8'd1;
  end

  logic [DATA_W-1:0]    own_tdata, csr_tdata, rss_tdata, fifo_tdata, lro_tdata;
  logic [BYTES-1:0]     own_tkeep, csr_tkeep, rss_tkeep, fifo_tkeep, lro_tkeep;
  logic                 own_tvalid, own_tready, own_tlast, csr_tvalid, csr_tready, csr_tlast, rss_tvalid, rss_tready, rss_tlast;
  logic                 fifo_tvalid, fifo_tready, fifo_tlast, lro_tvalid, lro_tready, lro_tlast;
  logic [RX_USER_W-1:0] own_tuser, rss_tuser, fifo_tuser;
  logic                 event_filtered, event_ip_bad, event_layer4_bad, event_rule, event_drop, event_port, event_not_ip;
  logic                 event_frame, event_error, event_too_long, event_dropped, event_overflow;
  logic                 event_opened, event_joined, event_passed, event_timeout, event_evicted, event_pressure;

  mac_filter #(.DATA_W(DATA_W), .USER_W(RX_USER_W)) filter (
      .clk, .rst,
      .s_axis_tdata(in_tdata), .s_axis_tkeep(in_tkeep), .s_axis_tvalid(in_tvalid), .s_axis_tready(filter_tready),
      .s_axis_tlast(in_tlast), .s_axis_tuser(in_user),
      .m_axis_tdata(own_tdata), .m_axis_tkeep(own_tkeep), .m_axis_tvalid(own_tvalid), .m_axis_tready(own_tready),
      .m_axis_tlast(own_tlast), .m_axis_tuser(own_tuser),
      .cfg_enable, .cfg_promiscuous, .cfg_all_groups, .cfg_address, .cfg_groups, .event_filtered
  );

  csum_rx #(.DATA_W(DATA_W)) csum_rx (
      .clk, .rst, .cfg_enable(cfg_verify),
      .s_axis_tdata(own_tdata), .s_axis_tkeep(own_tkeep), .s_axis_tvalid(own_tvalid), .s_axis_tready(own_tready),
      .s_axis_tlast(own_tlast), .s_axis_tuser(own_tuser),
      .m_axis_tdata(csr_tdata), .m_axis_tkeep(csr_tkeep), .m_axis_tvalid(csr_tvalid), .m_axis_tready(csr_tready),
      .m_axis_tlast(csr_tlast), .m_axis_tuser(sum_user),
      .event_ip_bad, .event_layer4_bad
  );

  rss #(.DATA_W(DATA_W)) rss (
      .clk, .rst,
      .s_axis_tdata(csr_tdata), .s_axis_tkeep(csr_tkeep), .s_axis_tvalid(csr_tvalid), .s_axis_tready(csr_tready),
      .s_axis_tlast(csr_tlast), .s_axis_tuser(sum_user),
      .m_axis_tdata(rss_tdata), .m_axis_tkeep(rss_tkeep), .m_axis_tvalid(rss_tvalid), .m_axis_tready(rss_tready),
      .m_axis_tlast(rss_tlast), .m_axis_tuser(rss_tuser),
      .cfg_key, .cfg_hash_tcp, .cfg_hash_udp, .cfg_default_channel, .cfg_rule_enable, .cfg_port_enable, .cfg_write,
      .cfg_address(cfg_write_address), .cfg_data(cfg_write_data), .rules_busy,
      .event_rule, .event_drop, .event_port, .event_not_ip
  );

  rx_fifo #(.DATA_W(DATA_W), .FIFO_BYTES(RX_BYTES), .MAX_FRAME(MAX_FRAME)) rx_fifo (
      .clk, .rst,
      .s_axis_tdata(rss_tdata), .s_axis_tkeep(rss_tkeep), .s_axis_tvalid(rss_tvalid), .s_axis_tready(rss_tready),
      .s_axis_tlast(rss_tlast), .s_axis_tuser(rss_tuser),
      .m_axis_tdata(fifo_tdata), .m_axis_tkeep(fifo_tkeep), .m_axis_tvalid(fifo_tvalid), .m_axis_tready(fifo_tready),
      .m_axis_tlast(fifo_tlast), .m_axis_tuser(fifo_tuser),
      .now, .cfg_pause_high, .cfg_pause_low, .pause_request,
      .event_frame, .event_error, .event_too_long, .event_rule(event_dropped), .event_overflow
  );

  lro #(.DATA_W(DATA_W)) lro (
      .clk, .rst, .cfg_enable(cfg_join), .cfg_timeout({8'd0, cfg_join_timer}),
      .s_axis_tdata(fifo_tdata), .s_axis_tkeep(fifo_tkeep), .s_axis_tvalid(fifo_tvalid), .s_axis_tready(fifo_tready),
      .s_axis_tlast(fifo_tlast), .s_axis_tuser(fifo_tuser),
      .m_axis_tdata(lro_tdata), .m_axis_tkeep(lro_tkeep), .m_axis_tvalid(lro_tvalid), .m_axis_tready(lro_tready),
      .m_axis_tlast(lro_tlast), .m_axis_tuser(lro_user),
      .event_opened, .event_joined, .event_passed, .event_timeout, .event_evicted, .event_pressure
  );

  // ---------------------------------------------------------------------------------------------------------------------
  // Memory, and interrupts

  logic [QUEUES-1:0] pace, event_tx_frame, event_rx_frame, event_rx_drop;
  logic              event_rx_no_queue, event_tx_dropped, event_tx_cut;

  dma #(.DATA_W(DATA_W), .QUEUES(QUEUES), .ADDR_W(ADDR_W), .APP_LAYOUT(APP_LAYOUT)) dma (
      .clk, .rst,
      .s_axil_awaddr(axil_awaddr[11:0]), .s_axil_awprot('0), .s_axil_awvalid(axil_awvalid[0]), .s_axil_awready(axil_awready[0]),
      .s_axil_wdata(axil_wdata), .s_axil_wstrb(axil_wstrb), .s_axil_wvalid(axil_wvalid[0]), .s_axil_wready(axil_wready[0]),
      .s_axil_bresp(axil_bresp[0]), .s_axil_bvalid(axil_bvalid[0]), .s_axil_bready(axil_bready[0]),
      .s_axil_araddr(axil_araddr[11:0]), .s_axil_arprot('0), .s_axil_arvalid(axil_arvalid[0]), .s_axil_arready(axil_arready[0]),
      .s_axil_rdata(axil_rdata[0]), .s_axil_rresp(axil_rresp[0]), .s_axil_rvalid(axil_rvalid[0]),
      .s_axil_rready(axil_rready[0]),
      .m_axi_awid, .m_axi_awaddr, .m_axi_awlen, .m_axi_awsize, .m_axi_awburst, .m_axi_awcache, .m_axi_awprot, .m_axi_awvalid,
      .m_axi_awready, .m_axi_wdata, .m_axi_wstrb, .m_axi_wlast, .m_axi_wvalid, .m_axi_wready, .m_axi_bid, .m_axi_bresp,
      .m_axi_bvalid, .m_axi_bready, .m_axi_arid, .m_axi_araddr, .m_axi_arlen, .m_axi_arsize, .m_axi_arburst, .m_axi_arcache,
      .m_axi_arprot, .m_axi_arvalid, .m_axi_arready, .m_axi_rid, .m_axi_rdata, .m_axi_rresp, .m_axi_rlast, .m_axi_rvalid,
      .m_axi_rready,
      .m_axi_sg_awid, .m_axi_sg_awaddr, .m_axi_sg_awlen, .m_axi_sg_awsize, .m_axi_sg_awburst, .m_axi_sg_awcache,
      .m_axi_sg_awprot, .m_axi_sg_awvalid, .m_axi_sg_awready, .m_axi_sg_wdata, .m_axi_sg_wstrb, .m_axi_sg_wlast,
      .m_axi_sg_wvalid, .m_axi_sg_wready, .m_axi_sg_bid, .m_axi_sg_bresp, .m_axi_sg_bvalid, .m_axi_sg_bready, .m_axi_sg_arid,
      .m_axi_sg_araddr, .m_axi_sg_arlen, .m_axi_sg_arsize, .m_axi_sg_arburst, .m_axi_sg_arcache, .m_axi_sg_arprot,
      .m_axi_sg_arvalid, .m_axi_sg_arready, .m_axi_sg_rid, .m_axi_sg_rdata, .m_axi_sg_rresp, .m_axi_sg_rlast,
      .m_axi_sg_rvalid, .m_axi_sg_rready,
      .m_axis_tdata(dma_tdata), .m_axis_tkeep(dma_tkeep), .m_axis_tvalid(dma_tvalid), .m_axis_tready(dma_tready),
      .m_axis_tlast(dma_tlast), .m_axis_tuser(dma_tuser),
      .s_axis_tdata(lro_tdata), .s_axis_tkeep(lro_tkeep), .s_axis_tvalid(lro_tvalid), .s_axis_tready(lro_tready),
      .s_axis_tlast(lro_tlast), .s_axis_tuser(lro_user),
      .irq_tx, .irq_rx, .pace_tx('0), .pace_rx(pace & cfg_pacer_on),
      .event_tx_frame, .event_rx_frame, .event_rx_drop, .event_rx_no_queue, .event_tx_dropped, .event_tx_cut
  );

  // The pacer's interrupt is handed over to the engine in the clock in which it is raised, and so is taken: what the driver
  // acknowledges and masks is the engine's.
  logic [QUEUES*16-1:0] pacer_pending, pacer_timer;
  int_pacer #(.QUEUES(QUEUES)) pacer (
      .clk, .rst, .cfg_tick_clocks, .cfg_mode(cfg_pacer_mode), .cfg_timer(cfg_pacer_timer),
      .cfg_threshold(cfg_pacer_threshold), .cfg_adaptive, .cfg_adaptive_min, .cfg_adaptive_low, .cfg_adaptive_high,
      .packet(event_rx_frame), .taken(pace), .masked('0), .irq(pace), .pending(pacer_pending), .timer(pacer_timer)
  );

  // ---------------------------------------------------------------------------------------------------------------------
  // What is counted, in the order of the registers

  assign events = {
    event_refused || event_overlong, event_malformed || event_length, event_super, sum_tvalid && sum_tready && sum_tlast,
    event_joined, event_overflow, event_dropped, event_too_long, event_error, event_filtered, event_frame
  };

  wire unused = &{1'b0, sum_tuser, event_segment, event_inserted, event_ip_bad, event_layer4_bad, event_rule, event_drop,
                  event_port, event_not_ip, event_opened, event_passed, event_timeout, event_evicted,
                  event_pressure, event_tx_frame, event_rx_drop, event_rx_no_queue, event_tx_dropped, event_tx_cut,
                  pacer_pending, pacer_timer, 1'b0};
endmodule

`default_nettype wire
