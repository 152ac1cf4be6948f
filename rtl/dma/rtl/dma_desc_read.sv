// Reads descriptors of both directions over the descriptor master, and takes them apart.
//
// A transmit descriptor is four beats of 128 bits, a receive descriptor two (its app words are only written). Both directions
// take turns. Answers come in the order of the requests, so a FIFO remembers whose they are.
//
//   beat 0 (00)  next, next high, buffer, buffer high
//   beat 1 (10)  -, control, receive status, transmit status
//   beat 2 (20)  app 0 to 3
//   beat 3 (30)  app 4
`default_nettype none

module dma_desc_read #(
    parameter int QUEUE_W = 2,
    parameter int ADDR_W  = 40,
    // 0: the seed's; 1: axienet's.
    parameter int APP_LAYOUT = 0,
    // What is kept of a descriptor; see the assignments at the end.
    parameter int TX_ENTRY_W = 1,
    parameter int RX_ENTRY_W = 1,
    localparam int LINE_W = ADDR_W - 6
) (
    input  wire                   clk,
    input  wire                   rst,

    // Transmit.
    input  wire                   tx_valid,
    output logic                  tx_ready,
    input  wire  [QUEUE_W-1:0]    tx_queue,
    input  wire  [LINE_W-1:0]     tx_line,
    output logic                  tx_back_valid,
    input  wire                   tx_back_ready,
    output logic [TX_ENTRY_W-1:0] tx_entry,

    // Receive.
    input  wire                   rx_valid,
    output logic                  rx_ready,
    input  wire  [QUEUE_W-1:0]    rx_queue,
    input  wire  [LINE_W-1:0]     rx_line,
    output logic                  rx_back_valid,
    input  wire                   rx_back_ready,
    output logic [RX_ENTRY_W-1:0] rx_entry,

    // What comes back, for either.
    output logic [QUEUE_W-1:0]    back_queue,
    output logic [LINE_W-1:0]     back_line,
    output logic [LINE_W-1:0]     back_next,
    output logic                  back_error,

    // The master's read channels.
    output logic [ADDR_W-1:0]     m_axi_araddr,
    output logic [7:0]            m_axi_arlen,
    output logic                  m_axi_arvalid,
    input  wire                   m_axi_arready,
    input  wire  [127:0]          m_axi_rdata,
    input  wire  [1:0]            m_axi_rresp,
    input  wire                   m_axi_rlast,
    input  wire                   m_axi_rvalid,
    output logic                  m_axi_rready
);
  import nic_pkg::*;

  localparam int TRACK_DEPTH = 32;

  // ---------------------------------------------------------------- requests
  logic was_rx;
  logic track_valid, track_pop, track_room;
  logic track_rx;
  logic [QUEUE_W-1:0] track_queue;
  logic [LINE_W-1:0] track_line;
  logic [5:0] track_level;

  wire free    = (!m_axi_arvalid || m_axi_arready) && track_room;
  wire take_rx = rx_valid && (!tx_valid || !was_rx);
  wire take    = free && (tx_valid || rx_valid);
  assign rx_ready = free && take_rx;
  assign tx_ready = free && !take_rx;

  wire [LINE_W-1:0] take_line = take_rx ? rx_line : tx_line;

  always_ff @(posedge clk) begin
    track_room <= track_level < 6'(TRACK_DEPTH - 2);
    if (!m_axi_arvalid || m_axi_arready) m_axi_arvalid <= 1'b0;
    if (take) begin
      m_axi_araddr  <= {take_line, 6'd0};
      m_axi_arlen   <= take_rx ? 8'd1 : 8'd3;
      m_axi_arvalid <= 1'b1;
      was_rx        <= take_rx;
    end
    if (rst) begin
      m_axi_arvalid <= 1'b0;
      track_room    <= 1'b0;
      was_rx        <= 1'b0;
    end
  end

  dma_fifo #(
      .WIDTH(1 + QUEUE_W + LINE_W),
      .DEPTH(TRACK_DEPTH)
  ) track (
      .clk(clk),
      .rst(rst),
      .push(take),
      .push_data({take_rx, take_rx ? rx_queue : tx_queue, take_line}),
      .pop(track_pop),
      .valid(track_valid),
      .data({track_rx, track_queue, track_line}),
      .level(track_level)
  );

  // ---------------------------------------------------------------- answers
  // Beats of the descriptor that is coming in, and whether it has come.
  logic [1:0] beat;
  logic [127:0] words [4];
  logic [1:0] worst;
  logic full, full_rx;

  wire given = (tx_back_valid && tx_back_ready) || (rx_back_valid && rx_back_ready);

  assign m_axi_rready  = !full && track_valid;
  assign track_pop     = given;
  assign tx_back_valid = full && !full_rx;
  assign rx_back_valid = full && full_rx;
  assign back_queue    = track_queue;
  assign back_line     = track_line;

  always_ff @(posedge clk) begin
    // Also what is not there yet: it is overwritten until it is.
    if (!full) words[beat] <= m_axi_rdata;
    if (m_axi_rvalid && m_axi_rready) begin
      worst       <= (beat == 2'd0 ? 2'b00 : worst) | (m_axi_rresp[1] ? {m_axi_rresp[0], !m_axi_rresp[0]} : 2'b00);
      beat        <= m_axi_rlast ? 2'd0 : beat + 1'b1;
      full        <= m_axi_rlast;
      full_rx     <= track_rx;
    end
    if (given) full <= 1'b0;
    if (rst) begin
      beat <= 2'd0;
      full <= 1'b0;
    end
  end

  // ---------------------------------------------------------------- taken apart
  wire [63:0]  next_address   = words[0][63:0];
  wire [63:0]  buffer_address = words[0][127:64];
  wire [31:0]  control        = words[1][63:32];
  wire         rx_complete    = words[1][95];
  wire         tx_complete    = words[1][127];
  wire [31:0]  app0 = words[2][31:0];
  wire [31:0]  app1 = words[2][63:32];
  wire [31:0]  app2 = words[2][95:64];
  wire [31:0]  app3 = words[2][127:96];
  wire [31:0]  app4 = words[3][31:0];
  // The channel is filled in where the frame is begun.
  tx_user_t user;
  // Reserved words and bits.
  wire unused = &{1'b0, words[1][94:64], words[1][126:96], words[1][31:0], words[3][127:32], control[29:26], next_address[5:0],
                  app0, app1, app2, app3, app4, user.channel, 1'b0};

  // Addresses that the hardware does not have.
  wire beyond_next, beyond_buffer;
  if (ADDR_W < 64) begin : gen_beyond
    assign beyond_next   = |next_address[63:ADDR_W];
    assign beyond_buffer = |buffer_address[63:ADDR_W];
  end else begin : gen_all
    assign beyond_next   = 1'b0;
    assign beyond_buffer = 1'b0;
  end

  assign back_next  = next_address[ADDR_W-1:6];
  assign back_error = |worst || beyond_next;

  function automatic csum_mode_t csum_mode(logic [1:0] bits);
    case (bits)
      2'd1:    return CSUM_PARTIAL;
      2'd2:    return CSUM_FULL;
      default: return CSUM_NONE;
    endcase
  endfunction

  function automatic seg_mode_t seg_mode(logic [1:0] bits);
    case (bits)
      2'd1:    return SEG_TCP;
      2'd2:    return SEG_UDP;
      default: return SEG_NONE;
    endcase
  endfunction

  if (APP_LAYOUT == 0) begin : gen_seed
    assign user = '{channel: 4'd0, seg: seg_mode(app0[1:0]), seg_size: app1[31:16], hdr_len: app0[15:8],
                    l3_start: app0[23:16], ipv6: app0[2], ip_csum: app0[3], csum: csum_mode(app1[11:10]),
                    csum_init: app2[15:0], csum_begin: app3[15:0], csum_insert: app3[31:16]};
  end else begin : gen_axienet
    assign user = '{channel: 4'd0, seg: seg_mode(app4[1:0]), seg_size: app3[31:16], hdr_len: app3[15:8],
                    l3_start: app3[7:0], ipv6: app4[2], ip_csum: app4[3], csum: csum_mode(app0[1:0]),
                    csum_init: app2[15:0], csum_begin: app1[31:16], csum_insert: app1[15:0]};
  end

  // A next address beyond the hardware's cannot be followed: as if there were no memory.
  wire dec_error = worst[1] || (beyond_next && !worst[0]);
  wire tx_bad    = control[25:0] == 26'd0 || beyond_buffer;
  wire rx_bad    = control[25:6] == 20'd0 || buffer_address[5:0] != 6'd0 || beyond_buffer;

  assign tx_entry = {dec_error, worst[0], tx_complete, tx_bad, control[31:30], control[25:0],
                     buffer_address[ADDR_W-1:0], user[$bits(tx_user_t)-5:0]};
  wire rx_unfit  = |worst || beyond_next || rx_complete || rx_bad;
  assign rx_entry = {rx_unfit, dec_error, worst[0], rx_complete, control[25:6] == 20'd1, control[25:6], buffer_address[ADDR_W-1:6]};
endmodule

`default_nettype wire
