// The registers of the DMA engine behind an AXI4-Lite slave. Where they lie and what they mean: rtl/regs/mcdma.toml.
//
// One access at a time, a write before a read: IDLE -> DECODE -> ACT -> (read: SELECT, CHOOSE, GIVE) -> ANSWER. All answers are OKAY;
// addresses without a register read as 0. Writes of less than a word do nothing.
`default_nettype none

module dma_regs #(
    parameter int QUEUES     = 4,
    parameter int DATA_W     = 64,
    parameter int ADDR_W     = 40,
    parameter int DEPTH      = 8,
    parameter int APP_LAYOUT = 0,
    localparam int QUEUE_W   = QUEUES > 1 ? $clog2(QUEUES) : 1
) (
    input  wire                clk,
    input  wire                rst,

    input  wire  [11:0]        s_axil_awaddr,
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
    input  wire                s_axil_arvalid,
    output logic               s_axil_arready,
    output logic [31:0]        s_axil_rdata,
    output logic [1:0]         s_axil_rresp,
    output logic               s_axil_rvalid,
    input  wire                s_axil_rready,

    output logic [3:0]         cfg_data_arcache,
    output logic [3:0]         cfg_data_awcache,
    output logic [3:0]         cfg_desc_arcache,
    output logic [3:0]         cfg_desc_awcache,
    output logic [15:0]        cfg_patience,
    output logic               cfg_forever,

    // To where the addresses are kept: of queue reg_queue.
    output logic [QUEUE_W-1:0] reg_queue,
    output logic [31:0]        reg_data,
    output logic [3:0]         tx_address_write,  // tail high, tail low, current high, current low
    output logic [3:0]         rx_address_write,
    input  wire  [ADDR_W-1:0]  tx_cur,
    input  wire  [ADDR_W-1:0]  tx_tail,
    input  wire  [ADDR_W-1:0]  rx_cur,
    input  wire  [ADDR_W-1:0]  rx_tail,

    // Queues.
    output logic [QUEUES-1:0]  tx_run,
    output logic [QUEUES-1:0]  tx_resetting,
    input  wire  [QUEUES-1:0]  tx_quiet,
    input  wire  [QUEUES-1:0]  tx_waiting,
    input  wire  [QUEUES-1:0]  tx_working,
    input  wire  [QUEUES-1:0]  tx_frame,
    input  wire  [4*QUEUES-1:0] tx_error,
    input  wire  [QUEUES-1:0]  tx_pace,
    output logic [QUEUES-1:0]  irq_tx,
    output logic [QUEUES-1:0]  rx_run,
    output logic [QUEUES-1:0]  rx_resetting,
    input  wire  [QUEUES-1:0]  rx_quiet,
    input  wire  [QUEUES-1:0]  rx_waiting,
    input  wire  [QUEUES-1:0]  rx_working,
    input  wire  [QUEUES-1:0]  rx_frame,
    input  wire  [QUEUES-1:0]  rx_drop,
    input  wire                rx_drop_other,
    input  wire  [4*QUEUES-1:0] rx_error,
    input  wire  [QUEUES-1:0]  rx_pace,
    output logic [QUEUES-1:0]  irq_rx
);
  // ---------------------------------------------------------------- bus
  typedef enum logic [2:0] {IDLE, DECODE, ACT, SELECT, CHOOSE, GIVE, ANSWER} state_t;
  state_t state;
  logic is_write, is_rx, is_common, is_channel;
  logic [11:0] address;
  logic [3:0] strobe;
  logic [3:0] index;                  // word within the common block or the queue's

  wire [11:0] offset = address < 12'h500 ? address : address - 12'h500;
  wire        hit_tx = is_channel && !is_rx;
  wire        hit_rx = is_channel && is_rx;
  wire        writes = state == ACT && is_write && strobe == 4'hF;
  logic       special_cache, special_info;

  assign s_axil_bresp = 2'b00;
  assign s_axil_rresp = 2'b00;

  // ---------------------------------------------------------------- common registers
  logic tx_rs, rx_rs, tx_reset, rx_reset;
  logic [7:0] tx_enable, rx_enable;
  logic [6:0] tx_errors, rx_errors;
  logic [31:0] drops;
  logic [6:0] prescale;
  logic tick;

  logic [QUEUES-1:0] tx_halted, tx_idle, rx_halted, rx_idle;
  logic tx_csr_halted, tx_csr_idle, rx_csr_halted, rx_csr_idle;

  // Data errors in bits 2:0, those of descriptors in bits 6:4: internal, SLVERR, DECERR.
  function automatic logic [6:0] sorted(logic [4*QUEUES-1:0] errors);
    sorted = '0;
    for (int q = 0; q < QUEUES; q++) begin
      if (errors[4*q+3]) sorted[6:4] = sorted[6:4] | errors[4*q+:3];
      else sorted[2:0] = sorted[2:0] | errors[4*q+:3];
    end
  endfunction

  always_ff @(posedge clk) begin
    tick     <= prescale == 7'd124;
    prescale <= prescale == 7'd124 ? '0 : prescale + 1'b1;

    tx_csr_halted <= &tx_halted;
    rx_csr_halted <= &rx_halted;
    tx_csr_idle   <= !(&tx_halted) && &(tx_idle | ~tx_run);
    rx_csr_idle   <= !(&rx_halted) && &(rx_idle | ~rx_run);
    tx_errors     <= tx_errors | sorted(tx_error);
    rx_errors     <= rx_errors | sorted(rx_error);
    if (|rx_drop || rx_drop_other) drops <= drops + 1'b1;

    tx_reset <= 1'b0;
    rx_reset <= 1'b0;
    if (writes && is_common && !is_rx) begin
      case (index)
        4'h0: begin
          tx_rs    <= reg_data[0];
          tx_reset <= reg_data[2];
        end
        4'h2: tx_enable <= reg_data[7:0];
        4'h9: cfg_data_arcache <= reg_data[3:0];
        default: ;
      endcase
    end
    if (writes && is_common && is_rx) begin
      case (index)
        4'h0: begin
          rx_rs    <= reg_data[0];
          rx_reset <= reg_data[2];
        end
        4'h2: rx_enable <= reg_data[7:0];
        4'h7: cfg_data_awcache <= reg_data[3:0];
        4'h9: {cfg_forever, cfg_patience} <= reg_data[16:0];
        default: ;
      endcase
    end
    if (writes && special_cache) begin
      cfg_desc_arcache <= reg_data[3:0];
      cfg_desc_awcache <= reg_data[19:16];
    end
    if (tx_reset || rst) begin
      tx_rs            <= 1'b0;
      tx_enable        <= '0;
      tx_errors        <= '0;
      cfg_data_arcache <= 4'h3;
    end
    if (rx_reset || rst) begin
      rx_rs            <= 1'b0;
      rx_enable        <= '0;
      rx_errors        <= '0;
      drops            <= '0;
      cfg_data_awcache <= 4'h3;
      cfg_patience     <= '0;
      cfg_forever      <= 1'b0;
    end
    if (rst) begin
      tx_reset         <= 1'b0;
      rx_reset         <= 1'b0;
      prescale         <= '0;
      tick             <= 1'b0;
      cfg_desc_arcache <= 4'h3;
      cfg_desc_awcache <= 4'h3;
    end
  end

  // ---------------------------------------------------------------- queues
  logic [31:0] tx_control [QUEUES];
  logic [31:0] tx_status  [QUEUES];
  logic [31:0] tx_frames  [QUEUES];
  logic [31:0] tx_drops   [QUEUES];
  logic [31:0] rx_control [QUEUES];
  logic [31:0] rx_status  [QUEUES];
  logic [31:0] rx_frames  [QUEUES];
  logic [31:0] rx_drops   [QUEUES];

  for (genvar q = 0; q < QUEUES; q++) begin : gen_queue
    wire mine = reg_queue == QUEUE_W'(q);
    // A clock late: `reg_data` is still there.
    logic tx_write_control, tx_write_status, rx_write_control, rx_write_status;

    always_ff @(posedge clk) begin
      tx_write_control <= writes && hit_tx && mine && index == 4'h0 && !rst;
      tx_write_status  <= writes && hit_tx && mine && index == 4'h1 && !rst;
      rx_write_control <= writes && hit_rx && mine && index == 4'h0 && !rst;
      rx_write_status  <= writes && hit_rx && mine && index == 4'h1 && !rst;
    end

    dma_channel #(
        .IS_RX(1'b0)
    ) tx (
        .clk(clk),
        .rst(rst),
        .enabled(tx_rs && tx_enable[q]),
        .write_control(tx_write_control),
        .write_status(tx_write_status),
        .write_data(reg_data),
        .reset_all(tx_reset),
        .control(tx_control[q]),
        .status(tx_status[q]),
        .frames(tx_frames[q]),
        .drops(tx_drops[q]),
        .tick(tick),
        .pace(tx_pace[q]),
        .quiet(tx_quiet[q]),
        .waiting(tx_waiting[q]),
        .frame_done(tx_frame[q]),
        .frame_dropped(1'b0),
        .error(tx_error[4*q+:4]),
        .run(tx_run[q]),
        .resetting(tx_resetting[q]),
        .halted(tx_halted[q]),
        .idle(tx_idle[q]),
        .interrupt(irq_tx[q])
    );

    dma_channel #(
        .IS_RX(1'b1)
    ) rx (
        .clk(clk),
        .rst(rst),
        .enabled(rx_rs && rx_enable[q]),
        .write_control(rx_write_control),
        .write_status(rx_write_status),
        .write_data(reg_data),
        .reset_all(rx_reset),
        .control(rx_control[q]),
        .status(rx_status[q]),
        .frames(rx_frames[q]),
        .drops(rx_drops[q]),
        .tick(tick),
        .pace(rx_pace[q]),
        .quiet(rx_quiet[q]),
        .waiting(rx_waiting[q]),
        .frame_done(rx_frame[q]),
        .frame_dropped(rx_drop[q]),
        .error(rx_error[4*q+:4]),
        .run(rx_run[q]),
        .resetting(rx_resetting[q]),
        .halted(rx_halted[q]),
        .idle(rx_idle[q]),
        .interrupt(irq_rx[q])
    );
  end

  // A frame to transmit is never dropped.
  logic tx_drops_together;
  always_comb begin
    tx_drops_together = 1'b0;
    for (int q = 0; q < QUEUES; q++) tx_drops_together = tx_drops_together || tx_drops[q] != '0;
  end

  // ---------------------------------------------------------------- reads
  logic [31:0] control, status, frames, dropped, common, tx_common, rx_common;
  logic [63:0] cur, tail;
  logic [31:0] queue_word, given;
  logic [31:0] tx_words [3];
  logic [31:0] rx_words [4];

  always_ff @(posedge clk) begin
    // CHOOSE
    case (index)
      4'h0:    queue_word <= control;
      4'h1:    queue_word <= status;
      4'h2:    queue_word <= cur[31:0];
      4'h3:    queue_word <= cur[63:32];
      4'h4:    queue_word <= tail[31:0];
      4'h5:    queue_word <= tail[63:32];
      4'h6:    queue_word <= is_rx ? dropped : frames;
      4'h7:    queue_word <= is_rx ? frames : 32'd0;
      default: queue_word <= 32'd0;
    endcase
  end

  always_comb begin
    given = is_channel ? queue_word : is_common ? common : 32'd0;
    if (special_cache) given = {12'd0, cfg_desc_awcache, 12'd0, cfg_desc_arcache};
    if (special_info) given = {8'(DEPTH), 1'b0, 7'(ADDR_W), 8'(DATA_W / 8), 4'(APP_LAYOUT), 4'(QUEUES)};
  end

  always_ff @(posedge clk) begin
    // ACT: of the queue, in each direction.
    tx_words[0] <= tx_control[reg_queue];
    tx_words[1] <= tx_status[reg_queue];
    tx_words[2] <= tx_frames[reg_queue];
    rx_words[0] <= rx_control[reg_queue];
    rx_words[1] <= rx_status[reg_queue];
    rx_words[2] <= rx_frames[reg_queue];
    rx_words[3] <= rx_drops[reg_queue];
    // SELECT: what CHOOSE and GIVE choose from.
    control <= is_rx ? rx_words[0] : tx_words[0];
    status  <= is_rx ? rx_words[1] : tx_words[1];
    frames  <= is_rx ? rx_words[2] : tx_words[2];
    dropped <= rx_words[3];
    cur     <= 64'(is_rx ? rx_cur : tx_cur);
    tail    <= 64'(is_rx ? rx_tail : tx_tail);
    common  <= is_rx ? rx_common : tx_common;
    // ACT
    case (index)
      4'h0:    tx_common <= {29'd0, tx_reset || |tx_resetting, 1'b0, tx_rs};
      4'h1:    tx_common <= {30'd0, tx_csr_idle, tx_csr_halted};
      4'h2:    tx_common <= {24'd0, tx_enable};
      4'h3:    tx_common <= 32'(tx_working);
      4'h4:    tx_common <= {25'd0, tx_errors};
      4'h9:    tx_common <= {28'd0, cfg_data_arcache};
      4'hA:    tx_common <= 32'(irq_tx);
      default: tx_common <= 32'd0;
    endcase
    case (index)
      4'h0:    rx_common <= {29'd0, rx_reset || |rx_resetting, 1'b0, rx_rs};
      4'h1:    rx_common <= {30'd0, rx_csr_idle, rx_csr_halted};
      4'h2:    rx_common <= {24'd0, rx_enable};
      4'h3:    rx_common <= 32'(rx_working);
      4'h4:    rx_common <= {25'd0, rx_errors};
      4'h5:    rx_common <= drops;
      4'h7:    rx_common <= {28'd0, cfg_data_awcache};
      4'h8:    rx_common <= 32'(irq_rx);
      4'h9:    rx_common <= {15'd0, cfg_forever, cfg_patience};
      default: rx_common <= 32'd0;
    endcase
  end

  always_ff @(posedge clk) begin
    s_axil_awready   <= 1'b0;
    s_axil_wready    <= 1'b0;
    s_axil_arready   <= 1'b0;
    tx_address_write <= 4'd0;
    rx_address_write <= 4'd0;
    case (state)
      IDLE: begin
        is_write <= s_axil_awvalid && s_axil_wvalid;
        reg_data <= s_axil_wdata;
        strobe   <= s_axil_wstrb;
        if (s_axil_awvalid && s_axil_wvalid) begin
          address        <= s_axil_awaddr;
          s_axil_awready <= 1'b1;
          s_axil_wready  <= 1'b1;
          state          <= DECODE;
        end else if (s_axil_arvalid) begin
          address        <= s_axil_araddr;
          s_axil_arready <= 1'b1;
          state          <= DECODE;
        end
      end
      DECODE: begin
        is_rx         <= address >= 12'h500;
        is_common     <= offset[11:6] == 6'd0;
        is_channel    <= offset[11:6] != 6'd0 && offset[11:6] <= 6'(QUEUES);
        reg_queue     <= QUEUE_W'(offset[11:6] - 6'd1);
        index         <= offset[5:2];
        special_cache <= address[11:2] == 10'(12'h4B0 >> 2);
        special_info  <= address[11:2] == 10'(12'h4F0 >> 2);
        state         <= ACT;
      end
      ACT: begin
        if (writes && index[3:2] == 2'd0 && index[1]) begin
          // The current descriptor: only of a queue at rest.
          if (hit_tx && tx_halted[reg_queue]) tx_address_write[{1'b0, index[0]}] <= 1'b1;
          if (hit_rx && rx_halted[reg_queue]) rx_address_write[{1'b0, index[0]}] <= 1'b1;
        end
        if (writes && index[3:1] == 3'd2) begin
          tx_address_write[{1'b1, index[0]}] <= hit_tx;
          rx_address_write[{1'b1, index[0]}] <= hit_rx;
        end
        state <= is_write ? ANSWER : SELECT;
      end
      SELECT:  state <= CHOOSE;
      CHOOSE:  state <= GIVE;
      GIVE:    state <= ANSWER;
      default: if ((s_axil_bvalid && s_axil_bready) || (s_axil_rvalid && s_axil_rready)) state <= IDLE;
    endcase

    if (state == ACT && is_write) s_axil_bvalid <= 1'b1;
    if (s_axil_bvalid && s_axil_bready) s_axil_bvalid <= 1'b0;
    if (state == GIVE) begin
      s_axil_rvalid <= 1'b1;
      s_axil_rdata  <= given;
    end
    if (s_axil_rvalid && s_axil_rready) s_axil_rvalid <= 1'b0;
    if (rst) begin
      state            <= IDLE;
      s_axil_awready   <= 1'b0;
      s_axil_wready    <= 1'b0;
      s_axil_arready   <= 1'b0;
      s_axil_bvalid    <= 1'b0;
      s_axil_rvalid    <= 1'b0;
      tx_address_write <= 4'd0;
      rx_address_write <= 4'd0;
      is_write         <= 1'b0;
    end
  end

  wire unused = &{1'b0, address[1:0], offset[1:0], tx_drops_together, 1'b0};
endmodule

`default_nettype wire
