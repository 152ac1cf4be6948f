// The interface's DMA engine: descriptor rings of 1 to 8 queues in each direction, in the layout of AMD's AXI MCDMA (PG288).
//
//                  s_axil                                            m_axi_sg (128 bits: descriptors)
//                    |                                                read |           | write
//              +-----v------+   doorbells   +------------+ requests  +-----v-----+ +---v--------+
//              | dma_regs   |-------------->| dma_desc_  |---------->| dma_desc_ | | dma_write_ |
//              | dma_channel|               | fetch  x 2 |<----------| read      | | back       |
//              +-----^------+               +-----+------+           +-----------+ +---^--------+
//                    |  errors, frames done       | oldest descriptor of a queue       | done
//                    |             +--------------+---------------+                    |
//                    |   +---------v---+   +------v-------+       |                    |
//                    +---| dma_tx_issue|-->| dma_tx_      |-------|--------------------+
//                        +------+------+   | collect      |-> m_axis (tx_user_t)       |
//                         m_axi read       +--------------+       |                    |
//                                          +--------------+  +----v-----+              |
//                                s_axis -->| dma_rx_place |->| dma_burst|--------------+
//                              (rx_user_t) +--------------+  | _write   | m_axi write
//                                                            +----------+
//
// Registers, descriptors, app words: rtl/regs/mcdma.toml. All reads of a master have one AXI ID, and so have all writes; answers
// must come in order. Configuration comes by registers alone. Pulses: event_*.
`default_nettype none

module dma #(
    parameter int DATA_W     = 64,
    parameter int QUEUES     = 4,
    parameter int ADDR_W     = 40,
    // Descriptors read ahead for each queue.
    parameter int PREFETCH   = 8,
    // Beats of the longest burst of data.
    parameter int BURST      = 16,
    // 0: the seed's; 1: axienet's (PG138).
    parameter int APP_LAYOUT = 0,
    // Words of transmit memory, and how many a frame may have to be held back until it is whole.
    parameter int TX_WORDS   = 512,
    parameter int TX_HOLD    = 256,
    localparam int BYTES     = DATA_W / 8
) (
    input  wire                clk,
    input  wire                rst,

    // Registers.
    input  wire  [11:0]        s_axil_awaddr,
    input  wire  [2:0]         s_axil_awprot,
    input  wire                s_axil_awvalid,
    output logic               s_axil_awready,
    input  wire  [31:0]        s_axil_wdata,
    input  wire  [3:0]         s_axil_wstrb,
    input  wire                s_axil_wvalid,
    output logic               s_axil_wready,
    output logic [1:0]         s_axil_bresp,
    output logic               s_axil_bvalid,
    input  wire                s_axil_bready,
    input  wire  [11:0]        s_axil_araddr,
    input  wire  [2:0]         s_axil_arprot,
    input  wire                s_axil_arvalid,
    output logic               s_axil_arready,
    output logic [31:0]        s_axil_rdata,
    output logic [1:0]         s_axil_rresp,
    output logic               s_axil_rvalid,
    input  wire                s_axil_rready,

    // Data master.
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

    // Descriptor master.
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

    // Frames to transmit.
    output logic [DATA_W-1:0]  m_axis_tdata,
    output logic [BYTES-1:0]   m_axis_tkeep,
    output logic               m_axis_tvalid,
    input  wire                m_axis_tready,
    output logic               m_axis_tlast,
    output nic_pkg::tx_user_t  m_axis_tuser,

    // Frames received.
    input  wire  [DATA_W-1:0]  s_axis_tdata,
    input  wire  [BYTES-1:0]   s_axis_tkeep,
    input  wire                s_axis_tvalid,
    output logic               s_axis_tready,
    input  wire                s_axis_tlast,
    input  wire nic_pkg::rx_user_t s_axis_tuser,

    // Interrupts: levels, a line for each queue and direction. A pulse of an outer pacer raises a queue's IOC.
    output logic [QUEUES-1:0]  irq_tx,
    output logic [QUEUES-1:0]  irq_rx,
    input  wire  [QUEUES-1:0]  pace_tx,
    input  wire  [QUEUES-1:0]  pace_rx,

    // Pulses.
    output logic [QUEUES-1:0]  event_tx_frame,     // a frame was read, and its status has reached memory
    output logic [QUEUES-1:0]  event_rx_frame,     // a frame was written, and its status has reached memory
    output logic [QUEUES-1:0]  event_rx_drop,      // no descriptor in time, or the queue does not run
    output logic               event_rx_no_queue,  // a frame for a queue that does not exist
    output logic               event_tx_dropped,   // a frame was not sent, for an error
    output logic               event_tx_cut        // a frame was cut off, for an error behind its first TX_HOLD words
);
  import nic_pkg::*;

  localparam int QUEUE_W    = QUEUES > 1 ? $clog2(QUEUES) : 1;
  localparam int LINE_W     = ADDR_W - 6;
  localparam int LANE_W     = $clog2(BYTES);
  localparam int BEATS_W    = $clog2(BURST) + 1;
  localparam int TX_ENTRY_W = 4 + 2 + 26 + ADDR_W + $bits(tx_user_t) - 4;
  localparam int RX_ENTRY_W = 5 + 20 + ADDR_W - 6;
  localparam int LIST       = 16;

  if (DATA_W < 32 || DATA_W > 512 || (DATA_W & (DATA_W - 1)) != 0) begin : gen_bad_width
    $error("dma: DATA_W must be 32, 64, 128, 256 or 512");
  end
  if (ADDR_W < 33 || ADDR_W > 64) begin : gen_bad_address
    $error("dma: ADDR_W must be 33 to 64");
  end
  if (BURST < 2 || BURST > 64 || (BURST & (BURST - 1)) != 0 || BURST * BYTES > 4096 || BURST * BYTES < 64) begin : gen_bad_burst
    $error("dma: BURST must be a power of two from 2 to 64, of 64 to 4096 bytes");
  end
  if (APP_LAYOUT != 0 && APP_LAYOUT != 1) begin : gen_bad_layout
    $error("dma: APP_LAYOUT must be 0 or 1");
  end

  // ---------------------------------------------------------------- what never changes
  assign m_axi_awid       = '0;
  assign m_axi_arid       = '0;
  assign m_axi_sg_awid    = '0;
  assign m_axi_sg_arid    = '0;
  assign m_axi_awsize     = 3'(LANE_W);
  assign m_axi_arsize     = 3'(LANE_W);
  assign m_axi_sg_awsize  = 3'd4;
  assign m_axi_sg_arsize  = 3'd4;
  assign m_axi_awburst    = 2'b01;
  assign m_axi_arburst    = 2'b01;
  assign m_axi_sg_awburst = 2'b01;
  assign m_axi_sg_arburst = 2'b01;
  assign m_axi_awprot     = 3'b010;
  assign m_axi_arprot     = 3'b010;
  assign m_axi_sg_awprot  = 3'b010;
  assign m_axi_sg_arprot  = 3'b010;

  // ---------------------------------------------------------------- registers
  logic [15:0] patience;
  logic forever_;
  logic [QUEUE_W-1:0] reg_queue;
  logic [31:0] reg_data;
  logic [3:0] tx_address_write, rx_address_write;
  logic [ADDR_W-1:0] tx_cur, tx_tail, rx_cur, rx_tail;
  logic [QUEUES-1:0] tx_run, tx_resetting, tx_quiet, tx_waiting, tx_working, tx_blocked, tx_begun;
  logic [QUEUES-1:0] rx_run, rx_resetting, rx_quiet, rx_waiting, rx_working, rx_blocked, rx_begun;
  logic [4*QUEUES-1:0] tx_error, rx_error;
  logic [QUEUES-1:0] tx_drained, tx_starved, rx_drained, rx_starved;

  dma_regs #(
      .QUEUES(QUEUES), .DATA_W(DATA_W), .ADDR_W(ADDR_W), .DEPTH(PREFETCH), .APP_LAYOUT(APP_LAYOUT)
  ) regs (
      .clk, .rst,
      .s_axil_awaddr, .s_axil_awvalid, .s_axil_awready,
      .s_axil_wdata, .s_axil_wstrb, .s_axil_wvalid, .s_axil_wready,
      .s_axil_bresp, .s_axil_bvalid, .s_axil_bready,
      .s_axil_araddr, .s_axil_arvalid, .s_axil_arready,
      .s_axil_rdata, .s_axil_rresp, .s_axil_rvalid, .s_axil_rready,
      .cfg_data_arcache(m_axi_arcache), .cfg_data_awcache(m_axi_awcache), .cfg_desc_arcache(m_axi_sg_arcache),
      .cfg_desc_awcache(m_axi_sg_awcache), .cfg_patience(patience), .cfg_forever(forever_),
      .reg_queue, .reg_data,
      .tx_address_write,
      .rx_address_write,
      .tx_cur, .tx_tail,
      .rx_cur, .rx_tail,
      .tx_run, .tx_resetting, .tx_quiet, .tx_waiting, .tx_working, .tx_frame(event_tx_frame), .tx_error,
      .tx_pace(pace_tx),
      .irq_tx,
      .rx_run, .rx_resetting, .rx_quiet, .rx_waiting, .rx_working, .rx_frame(event_rx_frame), .rx_drop(event_rx_drop),
      .rx_drop_other(event_rx_no_queue), .rx_error, .rx_pace(pace_rx),
      .irq_rx
  );

  // ---------------------------------------------------------------- descriptors
  logic tx_ask, tx_asked, tx_back, tx_take, rx_ask, rx_asked, rx_back, rx_take, back_error;
  logic [QUEUE_W-1:0] tx_ask_queue, rx_ask_queue, back_queue;
  logic [LINE_W-1:0] tx_ask_line, rx_ask_line, back_line, back_next;
  logic [TX_ENTRY_W-1:0] tx_back_entry, tx_entry;
  logic [RX_ENTRY_W-1:0] rx_back_entry, rx_entry;
  logic [QUEUE_W-1:0] tx_look, rx_look, rx_pop_queue;
  logic [LINE_W-1:0] tx_line, rx_line;
  logic [QUEUES-1:0] tx_available, rx_available;
  logic tx_look_available, rx_look_available;
  logic tx_pop, rx_pop;
  logic [QUEUES-1:0] tx_reads, rx_reads;

  dma_desc_fetch #(
      .QUEUES(QUEUES), .DEPTH(PREFETCH), .ADDR_W(ADDR_W), .ENTRY_W(TX_ENTRY_W)
  ) tx_fetch (
      .clk, .rst,
      .run(tx_reads),
      .forget(tx_resetting),
      .reg_queue,
      .cur_low_write(tx_address_write[0]), .cur_high_write(tx_address_write[1]),
      .tail_low_write(tx_address_write[2]), .tail_high_write(tx_address_write[3]),
      .reg_data, .reg_cur(tx_cur), .reg_tail(tx_tail),
      .drained(tx_drained),
      .starved(tx_starved),
      .request_valid(tx_ask), .request_ready(tx_asked), .request_queue(tx_ask_queue), .request_line(tx_ask_line),
      .response_valid(tx_back), .response_ready(tx_take), .response_queue(back_queue), .response_line(back_line),
      .response_next(back_next), .response_error(back_error), .response_entry(tx_back_entry),
      .look_queue(tx_look), .look_entry(tx_entry), .look_line(tx_line), .look_available(tx_look_available),
      .available(tx_available),
      .pop(tx_pop), .pop_queue(tx_look)
  );

  dma_desc_fetch #(
      .QUEUES(QUEUES), .DEPTH(PREFETCH), .ADDR_W(ADDR_W), .ENTRY_W(RX_ENTRY_W)
  ) rx_fetch (
      .clk, .rst,
      .run(rx_reads),
      .forget(rx_resetting),
      .reg_queue,
      .cur_low_write(rx_address_write[0]), .cur_high_write(rx_address_write[1]),
      .tail_low_write(rx_address_write[2]), .tail_high_write(rx_address_write[3]),
      .reg_data, .reg_cur(rx_cur), .reg_tail(rx_tail),
      .drained(rx_drained),
      .starved(rx_starved),
      .request_valid(rx_ask), .request_ready(rx_asked), .request_queue(rx_ask_queue), .request_line(rx_ask_line),
      .response_valid(rx_back), .response_ready(rx_take), .response_queue(back_queue), .response_line(back_line),
      .response_next(back_next), .response_error(back_error), .response_entry(rx_back_entry),
      .look_queue(rx_look), .look_entry(rx_entry), .look_line(rx_line), .look_available(rx_look_available),
      .available(rx_available),
      .pop(rx_pop), .pop_queue(rx_pop_queue)
  );

  dma_desc_read #(
      .QUEUE_W(QUEUE_W), .ADDR_W(ADDR_W), .APP_LAYOUT(APP_LAYOUT), .TX_ENTRY_W(TX_ENTRY_W), .RX_ENTRY_W(RX_ENTRY_W)
  ) desc_read (
      .clk, .rst,
      .tx_valid(tx_ask), .tx_ready(tx_asked), .tx_queue(tx_ask_queue), .tx_line(tx_ask_line), .tx_back_valid(tx_back),
      .tx_back_ready(tx_take), .tx_entry(tx_back_entry),
      .rx_valid(rx_ask), .rx_ready(rx_asked), .rx_queue(rx_ask_queue), .rx_line(rx_ask_line), .rx_back_valid(rx_back),
      .rx_back_ready(rx_take), .rx_entry(rx_back_entry),
      .back_queue, .back_line, .back_next, .back_error,
      .m_axi_araddr(m_axi_sg_araddr), .m_axi_arlen(m_axi_sg_arlen), .m_axi_arvalid(m_axi_sg_arvalid),
      .m_axi_arready(m_axi_sg_arready),
      .m_axi_rdata(m_axi_sg_rdata), .m_axi_rresp(m_axi_sg_rresp), .m_axi_rlast(m_axi_sg_rlast),
      .m_axi_rvalid(m_axi_sg_rvalid), .m_axi_rready(m_axi_sg_rready)
  );

  // ---------------------------------------------------------------- transmit
  logic room_data, room_lists, room_frames, user_push, desc_push, desc_eof, desc_bad;
  tx_user_t user;
  logic [LINE_W-1:0] desc_line, tx_done_line;
  logic [QUEUE_W-1:0] desc_queue, tx_done_queue, tx_fail_queue;
  logic [25:0] desc_len, tx_done_len;
  logic burst_push, burst_mark, burst_has_desc, burst_eof;
  logic [LANE_W-1:0] burst_lane, burst_end;
  logic [BEATS_W-1:0] burst_beats;
  logic tx_done_valid, tx_done_eof, tx_done_pop, tx_fail;
  logic [2:0] tx_done_error;
  logic [3:0] tx_fail_kind;

  dma_tx_issue #(
      .QUEUES(QUEUES), .DATA_W(DATA_W), .ADDR_W(ADDR_W), .BURST(BURST), .ENTRY_W(TX_ENTRY_W)
  ) tx_issue (
      .clk, .rst,
      .run(tx_run),
      .kill(tx_resetting),
      .blocked(tx_blocked),
      .working(tx_working),
      .begun(tx_begun),
      .fail(tx_fail), .fail_queue(tx_fail_queue), .fail_kind(tx_fail_kind),
      .look_queue(tx_look), .look_entry(tx_entry), .look_line(tx_line),
      .available(tx_available),
      .starved(tx_starved),
      .pop(tx_pop),
      .room_data, .room_lists, .room_frames,
      .user_push, .user,
      .desc_push, .desc_line, .desc_queue, .desc_len, .desc_eof, .desc_bad,
      .burst_push, .burst_mark, .burst_has_desc, .burst_eof, .burst_lane, .burst_end, .burst_beats,
      .m_axi_araddr, .m_axi_arlen, .m_axi_arvalid, .m_axi_arready
  );

  dma_tx_collect #(
      .DATA_W(DATA_W), .ADDR_W(ADDR_W), .QUEUE_W(QUEUE_W), .BURST(BURST), .WORDS(TX_WORDS), .HOLD(TX_HOLD), .LIST(LIST)
  ) tx_collect (
      .clk, .rst,
      .room_data, .room_lists, .room_frames,
      .user_push, .user,
      .desc_push, .desc_line, .desc_queue, .desc_len, .desc_eof, .desc_bad,
      .burst_push, .burst_mark, .burst_has_desc, .burst_eof, .burst_lane, .burst_end, .burst_beats,
      .m_axi_rdata, .m_axi_rresp, .m_axi_rlast, .m_axi_rvalid, .m_axi_rready,
      .done_valid(tx_done_valid), .done_line(tx_done_line), .done_queue(tx_done_queue), .done_len(tx_done_len),
      .done_eof(tx_done_eof), .done_error(tx_done_error), .done_pop(tx_done_pop),
      .event_dropped(event_tx_dropped), .event_cut(event_tx_cut),
      .m_axis_tdata, .m_axis_tkeep, .m_axis_tvalid, .m_axis_tready, .m_axis_tlast, .m_axis_tuser
  );

  // ---------------------------------------------------------------- receive
  logic write_room, list_room, beat_push, rx_burst_push, rx_burst_has_desc;
  logic [DATA_W-1:0] beat_data;
  logic [ADDR_W-LANE_W-1:0] rx_burst_word;
  logic [BEATS_W-1:0] rx_burst_beats;
  logic [LANE_W-1:0] rx_burst_end;
  logic rx_desc_push, rx_desc_sof, rx_desc_eof, rx_desc_bad, rx_fail;
  logic [LINE_W-1:0] rx_desc_line;
  logic [QUEUE_W-1:0] rx_desc_queue, rx_fail_queue;
  logic [25:0] rx_desc_len;
  logic [159:0] rx_desc_app;
  logic [3:0] rx_fail_kind;
  logic written, written_pop;
  logic [1:0] written_error;

  dma_rx_place #(
      .QUEUES(QUEUES), .DATA_W(DATA_W), .ADDR_W(ADDR_W), .BURST(BURST), .ENTRY_W(RX_ENTRY_W), .APP_LAYOUT(APP_LAYOUT)
  ) rx_place (
      .clk, .rst,
      .cfg_patience(patience), .cfg_forever(forever_),
      .run(rx_run),
      .kill(rx_resetting),
      .blocked(rx_blocked),
      .working(rx_working),
      .begun(rx_begun),
      .fail(rx_fail), .fail_queue(rx_fail_queue), .fail_kind(rx_fail_kind),
      .event_drop(event_rx_drop), .event_other(event_rx_no_queue),
      .look_queue(rx_look), .look_entry(rx_entry), .look_line(rx_line), .look_available(rx_look_available),
      .pop(rx_pop), .pop_queue(rx_pop_queue),
      .room(write_room && list_room),
      .beat_push, .beat_data,
      .burst_push(rx_burst_push), .burst_word(rx_burst_word), .burst_beats(rx_burst_beats), .burst_end(rx_burst_end),
      .burst_has_desc(rx_burst_has_desc),
      .desc_push(rx_desc_push), .desc_line(rx_desc_line), .desc_queue(rx_desc_queue), .desc_sof(rx_desc_sof),
      .desc_eof(rx_desc_eof), .desc_bad(rx_desc_bad), .desc_len(rx_desc_len), .desc_app(rx_desc_app),
      .s_axis_tdata, .s_axis_tkeep, .s_axis_tvalid, .s_axis_tready, .s_axis_tlast, .s_axis_tuser
  );

  dma_burst_write #(
      .DATA_W(DATA_W), .ADDR_W(ADDR_W), .BURST(BURST), .WORDS(BURST * 4), .LIST(2 * LIST)
  ) burst_write (
      .clk, .rst,
      .room(write_room),
      .beat_push, .beat_data,
      .burst_push(rx_burst_push), .burst_word(rx_burst_word), .burst_beats(rx_burst_beats), .burst_end(rx_burst_end),
      .burst_has_desc(rx_burst_has_desc),
      .done_valid(written), .done_error(written_error), .done_pop(written_pop),
      .m_axi_awaddr, .m_axi_awlen, .m_axi_awvalid, .m_axi_awready,
      .m_axi_wdata, .m_axi_wstrb, .m_axi_wlast, .m_axi_wvalid, .m_axi_wready,
      .m_axi_bresp, .m_axi_bvalid, .m_axi_bready
  );

  // ---------------------------------------------------------------- status
  logic done, done_is_rx, done_frame;
  logic [QUEUE_W-1:0] done_queue;
  logic [3:0] done_error;

  dma_write_back #(
      .QUEUES(QUEUES), .ADDR_W(ADDR_W), .LIST(LIST)
  ) write_back (
      .clk, .rst,
      .tx_valid(tx_done_valid), .tx_line(tx_done_line), .tx_queue(tx_done_queue), .tx_len(tx_done_len),
      .tx_eof(tx_done_eof), .tx_error(tx_done_error), .tx_pop(tx_done_pop),
      .rx_room(list_room), .rx_push(rx_desc_push), .rx_line(rx_desc_line), .rx_queue(rx_desc_queue),
      .rx_sof(rx_desc_sof), .rx_eof(rx_desc_eof), .rx_bad(rx_desc_bad), .rx_len(rx_desc_len), .rx_app(rx_desc_app),
      .data_valid(written), .data_error(written_error), .data_pop(written_pop),
      .done, .done_is_rx, .done_queue, .done_frame, .done_error,
      .m_axi_awaddr(m_axi_sg_awaddr), .m_axi_awlen(m_axi_sg_awlen), .m_axi_awvalid(m_axi_sg_awvalid),
      .m_axi_awready(m_axi_sg_awready),
      .m_axi_wdata(m_axi_sg_wdata), .m_axi_wstrb(m_axi_sg_wstrb), .m_axi_wlast(m_axi_sg_wlast),
      .m_axi_wvalid(m_axi_sg_wvalid), .m_axi_wready(m_axi_sg_wready),
      .m_axi_bresp(m_axi_sg_bresp), .m_axi_bvalid(m_axi_sg_bvalid), .m_axi_bready(m_axi_sg_bready)
  );

  // ---------------------------------------------------------------- what is under way in each queue
  dma_under_way #(
      .QUEUES(QUEUES)
  ) tx_under_way (
      .clk, .rst,
      .run(tx_run),
      .resetting(tx_resetting),
      .working(tx_working),
      .blocked(tx_blocked),
      .drained(tx_drained),
      .starved(tx_starved),
      .begun(tx_begun),
      .done(done && !done_is_rx), .done_queue, .done_frame, .done_error,
      .fail(tx_fail), .fail_queue(tx_fail_queue), .fail_kind(tx_fail_kind),
      .reads(tx_reads),
      .quiet(tx_quiet),
      .waiting(tx_waiting),
      .frame(event_tx_frame),
      .error(tx_error)
  );

  dma_under_way #(
      .QUEUES(QUEUES)
  ) rx_under_way (
      .clk, .rst,
      .run(rx_run),
      .resetting(rx_resetting),
      .working(rx_working),
      .blocked(rx_blocked),
      .drained(rx_drained),
      .starved(rx_starved),
      .begun(rx_begun),
      .done(done && done_is_rx), .done_queue, .done_frame, .done_error,
      .fail(rx_fail), .fail_queue(rx_fail_queue), .fail_kind(rx_fail_kind),
      .reads(rx_reads),
      .quiet(rx_quiet),
      .waiting(rx_waiting),
      .frame(event_rx_frame),
      .error(rx_error)
  );

  wire unused = &{1'b0, tx_look_available, rx_available, s_axil_awprot, s_axil_arprot, m_axi_bid, m_axi_rid, m_axi_sg_bid, m_axi_sg_rid, 1'b0};
endmodule

`default_nettype wire
