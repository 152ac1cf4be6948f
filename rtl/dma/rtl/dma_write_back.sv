// Writes into descriptors what became of them, over the descriptor master's write side.
//
//   transmit   one beat at 10: the status word (1C)
//   receive    two beats at 20: the app words, for the last descriptor of a frame
//              one beat at 10: status and sideband (18, 1C), once data and app words have been answered
//
// The order matters: who sees a receive status that says complete must find data and app words in memory. Everything has the same
// AXI ID, so answers come in order, and a FIFO remembers whose they are.
`default_nettype none

module dma_write_back #(
    parameter int QUEUES = 4,
    parameter int ADDR_W = 40,
    parameter int LIST   = 16,
    localparam int QUEUE_W = QUEUES > 1 ? $clog2(QUEUES) : 1,
    localparam int LINE_W  = ADDR_W - 6
) (
    input  wire                clk,
    input  wire                rst,

    // Transmit descriptors that are done.
    input  wire                tx_valid,
    input  wire  [LINE_W-1:0]  tx_line,
    input  wire  [QUEUE_W-1:0] tx_queue,
    input  wire  [25:0]        tx_len,
    input  wire                tx_eof,
    input  wire  [2:0]         tx_error,      // DECERR, SLVERR, internal
    output logic               tx_pop,

    // Receive descriptors that are filled; their data is on its way.
    output logic               rx_room,
    input  wire                rx_push,
    input  wire  [LINE_W-1:0]  rx_line,
    input  wire  [QUEUE_W-1:0] rx_queue,
    input  wire                rx_sof,
    input  wire                rx_eof,
    input  wire                rx_bad,
    input  wire  [25:0]        rx_len,
    input  wire  [159:0]       rx_app,
    // The data of the oldest of them is in memory.
    input  wire                data_valid,
    input  wire  [1:0]         data_error,
    output logic               data_pop,

    // A status has reached memory: pulse.
    output logic               done,
    output logic               done_is_rx,
    output logic [QUEUE_W-1:0] done_queue,
    output logic               done_frame,    // a frame ends with it, and had no error here
    output logic [3:0]         done_error,    // descriptor, DECERR, SLVERR, internal

    output logic [ADDR_W-1:0]  m_axi_awaddr,
    output logic [7:0]         m_axi_awlen,
    output logic               m_axi_awvalid,
    input  wire                m_axi_awready,
    output logic [127:0]       m_axi_wdata,
    output logic [15:0]        m_axi_wstrb,
    output logic               m_axi_wlast,
    output logic               m_axi_wvalid,
    input  wire                m_axi_wready,
    input  wire  [1:0]         m_axi_bresp,
    input  wire                m_axi_bvalid,
    output logic               m_axi_bready
);
  localparam int LIST_W = $clog2(LIST);

  // ---------------------------------------------------------------- receive: first the app words, then the status
  logic first_valid, first_pop, first_sof, first_eof, first_bad;
  logic [LINE_W-1:0] first_line;
  logic [QUEUE_W-1:0] first_queue;
  logic [25:0] first_len;
  logic [159:0] first_app;
  logic second_valid, second_pop, second_sof, second_eof, second_bad;
  logic [LINE_W-1:0] second_line;
  logic [QUEUE_W-1:0] second_queue;
  logic [25:0] second_len;
  logic [LIST_W:0] first_level, second_level, under_way;
  logic [LIST_W+1:0] answer_level;

  dma_fifo #(
      .WIDTH(LINE_W + QUEUE_W + 3 + 26 + 160),
      .DEPTH(LIST)
  ) firsts (
      .clk(clk),
      .rst(rst),
      .push(rx_push),
      .push_data({rx_line, rx_queue, rx_sof, rx_eof, rx_bad, rx_len, rx_app}),
      .pop(first_pop),
      .valid(first_valid),
      .data({first_line, first_queue, first_sof, first_eof, first_bad, first_len, first_app}),
      .level(first_level)
  );

  dma_fifo #(
      .WIDTH(LINE_W + QUEUE_W + 3 + 26),
      .DEPTH(LIST)
  ) seconds (
      .clk(clk),
      .rst(rst),
      .push(first_pop),
      .push_data({first_line, first_queue, first_sof, first_eof, first_bad, first_len}),
      .pop(second_pop),
      .valid(second_valid),
      .data({second_line, second_queue, second_sof, second_eof, second_bad, second_len}),
      .level(second_level)
  );

  // App words that were answered and whose status was not written yet, and their errors in order.
  logic app_valid;
  logic [1:0] app_error;
  logic app_push, app_pop;
  logic [LIST_W:0] app_level;

  // ---------------------------------------------------------------- which write is next
  typedef enum logic [1:0] {APP, RX_STATUS, TX_STATUS} kind_t;

  // The second beat of app words is still to come.
  logic second_beat;
  logic [31:0] last_app;
  logic answers_room;
  // The master's registers are empty, or will be: known a clock before, as emptying a queue is slow enough.
  logic idle;
  wire skip_app  = first_valid && !first_eof;
  wire wants_app = first_valid && first_eof;
  wire wants_rx  = second_valid && (second_bad || data_valid) && (!second_eof || app_valid);
  wire wants_tx  = tx_valid;

  // What was served longest ago goes first: the three take turns. It is chosen in one clock and written in the next, so each
  // choice sees what the write before has left.
  kind_t kind, next_kind;
  logic picked, next_picked, next_idle;
  always_comb begin
    case (kind)
      APP:       next_kind = wants_rx ? RX_STATUS : wants_tx ? TX_STATUS : APP;
      RX_STATUS: next_kind = wants_tx ? TX_STATUS : wants_app ? APP : RX_STATUS;
      default:   next_kind = wants_app ? APP : wants_rx ? RX_STATUS : TX_STATUS;
    endcase
  end

  // What goes in this clock: picked, and idle. A register for each, as lists and master's registers wait for it.
  logic goes_app, goes_rx, goes_tx;
  wire goes = goes_app || goes_rx || goes_tx;
  assign first_pop  = skip_app || goes_app;
  assign second_pop = goes_rx;
  assign tx_pop     = goes_tx;
  assign next_picked = picked ? !idle : wants_app || wants_rx || wants_tx;
  assign next_idle   = !goes && (!m_axi_awvalid || m_axi_awready) && (!m_axi_wvalid || m_axi_wready) && !second_beat
      && answers_room;
  wire kind_t kind_behind = picked ? kind : next_kind;
  assign data_pop   = second_pop && !second_bad;
  assign app_pop    = second_pop && second_eof;

  wire [1:0]  rx_data_error = second_bad ? 2'b00 : data_error;
  wire [1:0]  rx_app_error  = second_eof ? app_error : 2'b00;
  wire [31:0] rx_status     = {1'b1, rx_data_error, second_bad, second_sof, second_eof, second_len};
  wire [31:0] rx_sideband   = {12'd0, 4'(second_queue), 16'd0};
  wire [31:0] tx_status     = {1'b1, tx_error, 2'b00, tx_len};

  // What is to be said when the answer comes.
  typedef struct packed {
    kind_t              kind;
    logic [QUEUE_W-1:0] whose;
    logic               frame;
    logic [3:0]         error;
  } answer_t;
  answer_t asked, answer;
  always_comb begin
    case (kind)
      RX_STATUS: asked = '{kind: kind, whose: second_queue, frame: second_eof,
                           error: {|rx_app_error, rx_data_error | rx_app_error, second_bad}};
      TX_STATUS: asked = '{kind: kind, whose: tx_queue, frame: tx_eof, error: {1'b0, tx_error}};
      default:   asked = '{kind: kind, whose: first_queue, frame: 1'b0, error: 4'd0};
    endcase
  end

  always_ff @(posedge clk) begin
    if (m_axi_awready) m_axi_awvalid <= 1'b0;
    if (m_axi_wready) m_axi_wvalid <= 1'b0;
    picked   <= next_picked;
    kind     <= kind_behind;
    idle     <= next_idle;
    goes_app <= next_picked && next_idle && kind_behind == APP;
    goes_rx  <= next_picked && next_idle && kind_behind == RX_STATUS;
    goes_tx  <= next_picked && next_idle && kind_behind == TX_STATUS;
    if (goes) begin
      m_axi_awvalid <= 1'b1;
      m_axi_wvalid  <= 1'b1;
      m_axi_awlen   <= kind == APP ? 8'd1 : 8'd0;
      m_axi_wlast   <= kind != APP;
      second_beat   <= kind == APP;
      last_app      <= first_app[159:128];
      case (kind)
        APP: begin
          m_axi_awaddr <= {first_line, 6'h20};
          m_axi_wdata  <= first_app[127:0];
          m_axi_wstrb  <= 16'hFFFF;
        end
        RX_STATUS: begin
          m_axi_awaddr <= {second_line, 6'h10};
          m_axi_wdata  <= {rx_sideband, rx_status, 64'd0};
          m_axi_wstrb  <= 16'hFF00;
        end
        default: begin
          m_axi_awaddr <= {tx_line, 6'h10};
          m_axi_wdata  <= {tx_status, 96'd0};
          m_axi_wstrb  <= 16'hF000;
        end
      endcase
    end else if (second_beat && (!m_axi_wvalid || m_axi_wready)) begin
      m_axi_wdata  <= {96'd0, last_app};
      m_axi_wstrb  <= 16'h000F;
      m_axi_wlast  <= 1'b1;
      m_axi_wvalid <= 1'b1;
      second_beat  <= 1'b0;
    end
    // One more may be on its way when this is seen, and one that goes now.
    answers_room <= answer_level < (LIST_W + 2)'(2 * LIST - 3);
    under_way    <= under_way + (LIST_W + 1)'(rx_push) - (LIST_W + 1)'(second_pop);
    rx_room      <= under_way < (LIST_W + 1)'(LIST - 4);
    if (rst) begin
      m_axi_awvalid <= 1'b0;
      m_axi_wvalid  <= 1'b0;
      second_beat   <= 1'b0;
      picked        <= 1'b0;
      idle          <= 1'b0;
      goes_app      <= 1'b0;
      goes_rx       <= 1'b0;
      goes_tx       <= 1'b0;
      kind          <= APP;
      answers_room  <= 1'b0;
      under_way     <= '0;
      rx_room       <= 1'b0;
    end
  end

  // ---------------------------------------------------------------- answers
  logic answer_valid;
  wire  answered = m_axi_bvalid && m_axi_bready;
  wire  [1:0] error = m_axi_bresp[1] ? {m_axi_bresp[0], !m_axi_bresp[0]} : 2'b00;
  assign m_axi_bready = answer_valid;
  assign app_push     = answered && answer.kind == APP;

  // Three writes a pair of frames and a memory of 40 clocks: more than LIST.
  dma_fifo #(
      .WIDTH($bits(answer_t)),
      .DEPTH(2 * LIST)
  ) answers (
      .clk(clk),
      .rst(rst),
      .push(goes),
      .push_data(asked),
      .pop(answered),
      .valid(answer_valid),
      .data(answer),
      .level(answer_level)
  );

  dma_fifo #(
      .WIDTH(2),
      .DEPTH(LIST)
  ) apps (
      .clk(clk),
      .rst(rst),
      .push(app_push),
      .push_data(error),
      .pop(app_pop),
      .valid(app_valid),
      .data(app_error),
      .level(app_level)
  );

  always_ff @(posedge clk) begin
    done       <= answered && answer.kind != APP;
    done_is_rx <= answer.kind == RX_STATUS;
    done_queue <= answer.whose;
    done_frame <= answer.frame && answer.error == 4'd0 && error == 2'b00;
    done_error <= answer.error | {|error, error, 1'b0};
    if (rst) done <= 1'b0;
  end

  wire unused = &{1'b0, first_level, second_level, app_level, 1'b0};
endmodule

`default_nettype wire
