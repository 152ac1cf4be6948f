// The masters of the DMA engine, each block by itself with inputs that do what they like:
//
//   - what is offered on AR and AW, W of the data master and on AR of the descriptor master stays until it is taken;
//   - no read burst of data crosses a multiple of its greatest length, so none crosses 4 KiB; that no write burst does is said of dma_rx_place.
//
// All by induction. The stream that leaves passes an axis_register, which is proved by itself. Not proved: that WLAST of the data
// master stands where AWLEN says, and what a frame contains; the compiled comparison checks these.
`default_nettype none

module dma_masters_formal
  import nic_pkg::*;
#(
    // Which block: each is proved alone.
    parameter int PART = 0,
    localparam int ADDR_W = 33,
    localparam int LINE_W = ADDR_W - 6,
    localparam int TX_ENTRY_W = 4 + 2 + 26 + ADDR_W + $bits(tx_user_t) - 4,
    localparam int RX_ENTRY_W = 5 + 20 + ADDR_W - 6
) (
    input wire clk,
    input wire rst,

    // Readiness of the buses.
    input wire ar_ready,
    input wire sg_ar_ready,
    input wire aw_ready,
    input wire w_ready,

    // Queues and descriptors.
    input wire [1:0] run,
    input wire [1:0] kill,
    input wire [1:0] available,
    input wire [1:0] starved,
    input wire [TX_ENTRY_W-1:0] tx_entry,
    input wire [LINE_W-1:0] line,
    input wire [2:0] rooms,

    // Reads of descriptors.
    input wire [1:0] ask,
    input wire [LINE_W-1:0] ask_line,

    // Data for the writer.
    input wire beat_push,
    input wire burst_push,
    input wire [30:0] burst_word,
    input wire [4:0] burst_beats,
    input wire [1:0] burst_end,
    input wire has_desc,
    input wire b_valid,
    input wire [1:0] resp,
    input wire [31:0] data,
    input wire r_valid,
    input wire r_last,
    input wire done_pop
);
  logic first = 1'b1;
  always_ff @(posedge clk) first <= 1'b0;
  always @(posedge clk) if (first) assume (rst);

  // ---------------------------------------------------------------- transmit: read addresses
  if (PART == 0) begin : gen_tx
    logic [ADDR_W-1:0] araddr;
    logic [7:0] arlen;
    logic arvalid;

    dma_tx_issue #(.QUEUES(2), .DATA_W(32), .ADDR_W(ADDR_W), .BURST(16), .ENTRY_W(TX_ENTRY_W)) tx_issue (
        .clk, .rst, .run, .kill, .blocked(), .working(), .begun(), .fail(), .fail_queue(), .fail_kind(), .look_queue(),
        .look_entry(tx_entry), .look_line(line), .available, .starved, .pop(), .room_data(rooms[0]), .room_lists(rooms[1]),
        .room_frames(rooms[2]), .user_push(), .user(), .desc_push(), .desc_line(), .desc_queue(), .desc_len(), .desc_eof(),
        .desc_bad(), .burst_push(), .burst_mark(), .burst_has_desc(), .burst_eof(), .burst_lane(), .burst_end(),
        .burst_beats(), .m_axi_araddr(araddr), .m_axi_arlen(arlen), .m_axi_arvalid(arvalid), .m_axi_arready(ar_ready)
    );
    // What the reader of descriptors says about a length of 0.
    wire tx_bad = tx_entry[TX_ENTRY_W-4];
    wire [25:0] tx_len = tx_entry[TX_ENTRY_W-7-:26];
    always @(posedge clk) assume (tx_bad || tx_len != 26'd0);

    dma_stays #(.WIDTH(ADDR_W + 8)) ar_stays (.clk, .rst, .valid(arvalid), .ready(ar_ready), .payload({araddr, arlen}));

    always @(posedge clk) begin
      if (!rst && !first) begin
        // The first byte's word, and all words behind it, in 64 bytes.
        if (arvalid) assert (8'(araddr[5:2]) + arlen <= 8'd15);
        // What induction needs to know.
        if (tx_issue.state == 4'd3) assert (tx_issue.bad || tx_issue.len != 26'd0);
        if (tx_issue.state == 4'd4) assert (tx_issue.left != 26'd0);
        if (tx_issue.state == 4'd5 || tx_issue.state == 4'd6) begin
          assert (tx_issue.size != 7'd0 && 8'(tx_issue.address[5:0]) + 8'(tx_issue.size) <= 8'd64);
          assert (tx_issue.is_last ? tx_issue.left == 26'(tx_issue.size) : tx_issue.left > 26'(tx_issue.size));
        end
        if (tx_issue.state == 4'd6) assert (tx_issue.beats_less == tx_issue.last_byte[6:2]);
      end
    end
  end

  // ---------------------------------------------------------------- descriptors: read addresses
  if (PART == 1) begin : gen_desc
    logic [ADDR_W-1:0] sg_araddr;
    logic [7:0] sg_arlen;
    logic sg_arvalid;

    dma_desc_read #(.QUEUE_W(1), .ADDR_W(ADDR_W), .TX_ENTRY_W(TX_ENTRY_W), .RX_ENTRY_W(RX_ENTRY_W)) desc_read (
        .clk, .rst, .tx_valid(ask[0]), .tx_ready(), .tx_queue(1'b0), .tx_line(ask_line), .tx_back_valid(),
        .tx_back_ready(done_pop), .tx_entry(), .rx_valid(ask[1]), .rx_ready(), .rx_queue(1'b1), .rx_line(ask_line),
        .rx_back_valid(), .rx_back_ready(done_pop), .rx_entry(), .back_queue(), .back_line(), .back_next(), .back_error(),
        .m_axi_araddr(sg_araddr), .m_axi_arlen(sg_arlen), .m_axi_arvalid(sg_arvalid), .m_axi_arready(sg_ar_ready),
        .m_axi_rdata({4{data}}), .m_axi_rresp(resp), .m_axi_rlast(r_last), .m_axi_rvalid(r_valid), .m_axi_rready()
    );
    dma_stays #(.WIDTH(ADDR_W + 8)) sg_ar_stays (
        .clk, .rst, .valid(sg_arvalid), .ready(sg_ar_ready), .payload({sg_araddr, sg_arlen})
    );
    always @(posedge clk) if (!rst && sg_arvalid) assert (sg_araddr[5:0] == 6'd0 && sg_arlen <= 8'd3);
  end

  // ---------------------------------------------------------------- receive: write address and data
  if (PART == 2) begin : gen_burst
    logic [ADDR_W-1:0] awaddr;
    logic [7:0] awlen;
    logic awvalid, wlast, wvalid;
    logic [31:0] wdata;
    logic [3:0] wstrb;

    dma_burst_write #(.DATA_W(32), .ADDR_W(ADDR_W), .BURST(16), .WORDS(64), .LIST(8)) burst_write (
        .clk, .rst, .room(), .beat_push, .beat_data(data), .burst_push, .burst_word, .burst_beats, .burst_end,
        .burst_has_desc(has_desc), .done_valid(), .done_error(), .done_pop, .m_axi_awaddr(awaddr), .m_axi_awlen(awlen),
        .m_axi_awvalid(awvalid), .m_axi_awready(aw_ready), .m_axi_wdata(wdata), .m_axi_wstrb(wstrb), .m_axi_wlast(wlast),
        .m_axi_wvalid(wvalid), .m_axi_wready(w_ready), .m_axi_bresp(resp), .m_axi_bvalid(b_valid), .m_axi_bready()
    );
    dma_stays #(.WIDTH(ADDR_W + 8)) aw_stays (.clk, .rst, .valid(awvalid), .ready(aw_ready), .payload({awaddr, awlen}));
    dma_stays #(.WIDTH(37)) w_stays (.clk, .rst, .valid(wvalid), .ready(w_ready), .payload({wdata, wstrb, wlast}));
  end

endmodule

`default_nettype wire
