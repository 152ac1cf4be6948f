// Writes bursts of received data, and says for each descriptor when its last byte has reached memory.
//
// Address and data of a burst are offered together; the next burst follows without a pause. Answers come in order: the worst of
// a descriptor's bursts is its answer.
`default_nettype none

module dma_burst_write #(
    parameter int DATA_W = 64,
    parameter int ADDR_W = 40,
    parameter int BURST  = 16,
    // Beats that wait, a power of two.
    parameter int WORDS  = 64,
    parameter int LIST   = 16,
    localparam int BYTES   = DATA_W / 8,
    localparam int LANE_W  = $clog2(BYTES),
    localparam int BEATS_W = $clog2(BURST) + 1,
    localparam int WORD_W  = ADDR_W - LANE_W
) (
    input  wire                clk,
    input  wire                rst,

    output logic               room,
    input  wire                beat_push,
    input  wire  [DATA_W-1:0]  beat_data,
    input  wire                burst_push,
    input  wire  [WORD_W-1:0]  burst_word,
    input  wire  [BEATS_W-1:0] burst_beats,
    input  wire  [LANE_W-1:0]  burst_end,
    input  wire                burst_has_desc,

    // A descriptor's data is in memory: DECERR, SLVERR.
    output logic               done_valid,
    output logic [1:0]         done_error,
    input  wire                done_pop,

    output logic [ADDR_W-1:0]  m_axi_awaddr,
    output logic [7:0]         m_axi_awlen,
    output logic               m_axi_awvalid,
    input  wire                m_axi_awready,
    output logic [DATA_W-1:0]  m_axi_wdata,
    output logic [BYTES-1:0]   m_axi_wstrb,
    output logic               m_axi_wlast,
    output logic               m_axi_wvalid,
    input  wire                m_axi_wready,
    input  wire  [1:0]         m_axi_bresp,
    input  wire                m_axi_bvalid,
    output logic               m_axi_bready
);
  localparam int LIST_W = $clog2(LIST);

  if (WORDS < 4 * BURST) begin : gen_bad_words
    $error("dma_burst_write: WORDS must be at least 4 bursts");
  end

  logic [$clog2(WORDS):0] beat_level;
  logic beat_valid, beat_pop;
  logic [DATA_W-1:0] beat;

  dma_fifo #(
      .WIDTH(DATA_W),
      .DEPTH(WORDS)
  ) beats (
      .clk(clk),
      .rst(rst),
      .push(beat_push),
      .push_data(beat_data),
      .pop(beat_pop),
      .valid(beat_valid),
      .data(beat),
      .level(beat_level)
  );

  logic [LIST_W:0] burst_level, wait_level, done_level;
  logic head_valid, head_pop, head_has_desc;
  logic [WORD_W-1:0] head_word;
  logic [BEATS_W-1:0] head_beats;
  logic [LANE_W-1:0] head_end;

  dma_fifo #(
      .WIDTH(WORD_W + BEATS_W + LANE_W + 1),
      .DEPTH(LIST)
  ) bursts (
      .clk(clk),
      .rst(rst),
      .push(burst_push),
      .push_data({burst_word, burst_beats, burst_end, burst_has_desc}),
      .pop(head_pop),
      .valid(head_valid),
      .data({head_word, head_beats, head_end, head_has_desc}),
      .level(burst_level)
  );

  // Bursts that wait for their answer, with those that were not sent yet: what bounds everything behind.
  logic [LIST_W+1:0] under_way;
  logic finished, taken;               // one less, a clock late
  logic wait_valid, wait_has_desc;
  wire  answered = m_axi_bvalid && m_axi_bready;

  dma_fifo #(
      .WIDTH(1),
      .DEPTH(LIST)
  ) waiting (
      .clk(clk),
      .rst(rst),
      .push(head_pop),
      .push_data(head_has_desc),
      .pop(answered),
      .valid(wait_valid),
      .data(wait_has_desc),
      .level(wait_level)
  );

  // ---------------------------------------------------------------- address and data
  logic [BEATS_W-1:0] left;    // beats of this burst that were not offered yet
  logic [LANE_W-1:0] last_end;
  wire  data_free = !m_axi_wvalid || m_axi_wready;
  // All beats of a burst are in the FIFO before the burst is known.
  wire  begins    = head_valid && left == '0 && data_free && (!m_axi_awvalid || m_axi_awready);
  wire  goes_on   = left != '0 && data_free;
  assign head_pop = begins;
  assign beat_pop = begins || goes_on;
  wire  ends      = begins ? head_beats == BEATS_W'(1) : left == BEATS_W'(1);
  wire [LANE_W-1:0] end_lane = begins ? head_end : last_end;

  always_ff @(posedge clk) begin
    if (m_axi_awready) m_axi_awvalid <= 1'b0;
    if (m_axi_wready) m_axi_wvalid <= 1'b0;
    if (begins) begin
      m_axi_awaddr  <= {head_word, {LANE_W{1'b0}}};
      m_axi_awlen   <= 8'(head_beats - 1'b1);
      m_axi_awvalid <= 1'b1;
      last_end      <= head_end;
      left          <= head_beats - 1'b1;
    end else if (goes_on) begin
      left <= left - 1'b1;
    end
    if (beat_pop) begin
      m_axi_wdata  <= beat;
      m_axi_wlast  <= ends;
      m_axi_wvalid <= 1'b1;
      for (int i = 0; i < BYTES; i++) m_axi_wstrb[i] <= !ends || LANE_W'(i) <= end_lane;
    end
    // One beat and one burst may still be pushed after this is seen, and one more that is decided now.
    room      <= beat_level < ($clog2(WORDS) + 1)'(WORDS - 4) && under_way < (LIST_W + 2)'(LIST - 4);
    under_way <= under_way + (LIST_W + 2)'(burst_push) 
        - (LIST_W + 2)'(finished) - (LIST_W + 2)'(taken);
    finished  <= answered && !wait_has_desc && !rst;
    taken     <= done_pop && !rst;
    if (rst) begin
      m_axi_awvalid <= 1'b0;
      m_axi_wvalid  <= 1'b0;
      left          <= '0;
      room          <= 1'b0;
      under_way     <= '0;
    end
  end

  // ---------------------------------------------------------------- answers
  logic [1:0] worst;
  wire  [1:0] error = m_axi_bresp[1] ? {m_axi_bresp[0], !m_axi_bresp[0]} : 2'b00;
  assign m_axi_bready = wait_valid;
  // A burst counts as under way until it is answered, the last one of a descriptor until the answer is taken.

  always_ff @(posedge clk) begin
    if (answered) worst <= wait_has_desc ? 2'b00 : worst | error;
    if (rst) worst <= 2'b00;
  end

  dma_fifo #(
      .WIDTH(2),
      .DEPTH(LIST)
  ) done (
      .clk(clk),
      .rst(rst),
      .push(answered && wait_has_desc),
      .push_data(worst | error),
      .pop(done_pop),
      .valid(done_valid),
      .data(done_error),
      .level(done_level)
  );

  wire unused = &{1'b0, beat_valid, burst_level, wait_level, done_level, 1'b0};
endmodule

`default_nettype wire
