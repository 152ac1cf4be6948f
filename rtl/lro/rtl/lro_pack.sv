// Puts bytes together to full words: each word comes with its first byte that counts and how many count.
//
// A word is rotated so that its bytes follow what is left of the ones before; what is too much for this word is left for the next.
// At the end of a frame that takes one more word if it is too much for one. Frames that are not coalesced pass as they are, a
// word a clock.
`default_nettype none

module lro_pack
  import nic_pkg::*;
#(
    parameter int DATA_W  = 64,
    parameter int CREDITS = 16,
    localparam int COUNT_W = $clog2(DATA_W / 8) + 1
) (
    input  wire                clk,
    input  wire                rst,

    input  wire                user_write,
    input  wire rx_user_t      user,
    input  wire                in_valid,
    input  wire [DATA_W-1:0]   in_data,
    input  wire [COUNT_W-1:0]  in_start,
    input  wire [COUNT_W-1:0]  in_count,
    input  wire                in_last,
    output logic               credit,

    output logic [DATA_W-1:0]  out_data,
    output logic [DATA_W/8-1:0] out_keep,
    output logic               out_valid,
    input  wire                out_ready,
    output logic               out_last,
    output rx_user_t           out_user
);
  localparam int K = DATA_W / 8;
  localparam int LANE_W = $clog2(K);

  logic               fifo_valid, fifo_last, user_valid;
  logic [DATA_W-1:0]  fifo_data;
  logic [COUNT_W-1:0] fifo_start, fifo_count;
  rx_user_t           fifo_user;
  logic               take;

  lro_fifo #(
      .WIDTH(DATA_W + 2 * COUNT_W + 1),
      .DEPTH(CREDITS)
  ) words (
      .clk,
      .rst,
      .write(in_valid),
      .write_data({in_last, in_start, in_count, in_data}),
      .valid(fifo_valid),
      .data({fifo_last, fifo_start, fifo_count, fifo_data}),
      .take
  );

  // A frame has a word at least: there are never more frames than words. Its user is there before its first word.
  lro_fifo #(
      .WIDTH($bits(rx_user_t)),
      .DEPTH(CREDITS)
  ) users (
      .clk,
      .rst,
      .write(user_write),
      .write_data(user),
      .valid(user_valid),
      .data(fifo_user),
      .take(take && fifo_last)
  );

  logic advance;
  assign advance = !out_valid || out_ready;

  // Rotation.
  logic [COUNT_W-1:0] filled;            // bytes left of the words before, less than K
  logic               spill;             // the frame's last bytes need a word of their own
  wire  [COUNT_W:0]   total   = (COUNT_W + 1)'(filled) + (COUNT_W + 1)'(fifo_count);
  wire                is_over = total > (COUNT_W + 1)'(K);
  wire                is_full = total >= (COUNT_W + 1)'(K);
  wire  [LANE_W-1:0]  amount  = filled[LANE_W-1:0] - fifo_start[LANE_W-1:0];

  // A word and by how much it is rotated; then the rotated word.
  typedef struct packed {
    logic               full;
    logic               last;
    logic               spill;
    logic [COUNT_W-1:0] filled;
    logic [COUNT_W-1:0] count;
    rx_user_t           user;
  } beside_t;
  logic              sized_valid, turned_valid;
  beside_t           sized, turned;
  logic [DATA_W-1:0] sized_word, turned_word;
  logic [LANE_W-1:0] sized_amount;

  assign take = fifo_valid && advance && !spill;

  function automatic logic [DATA_W-1:0] rotate(input logic [DATA_W-1:0] bytes, input logic [LANE_W-1:0] by);
    return (bytes << (8 * 32'(by))) | (bytes >> (DATA_W - 8 * 32'(by)));
  endfunction

  always_ff @(posedge clk) begin
    credit <= take && !rst;
    if (advance) begin
      sized_valid  <= take || spill;
      sized_word   <= fifo_data;
      sized_amount <= amount;
      sized.user   <= spill ? sized.user : fifo_user;
      sized.filled <= spill ? '0 : filled;
      // Bytes of the word that leaves if it is the last.
      sized.count  <= spill ? filled : total[COUNT_W-1:0];
      sized.full   <= is_full && !spill;
      sized.last   <= spill || (fifo_last && !is_over);
      sized.spill  <= spill;
      turned_valid <= sized_valid;
      turned       <= sized;
      turned_word  <= rotate(sized_word, sized_amount);
      if (spill) begin
        spill  <= 1'b0;
        filled <= '0;
      end else if (take) begin
        spill  <= fifo_last && is_over;
        filled <= fifo_last && !is_over ? '0 : {1'b0, total[LANE_W-1:0]};
      end
    end
    if (rst) begin
      sized_valid  <= 1'b0;
      turned_valid <= 1'b0;
      spill        <= 1'b0;
      filled       <= '0;
    end
  end

  // Bytes from the words before below, the rotated word's above.
  logic [DATA_W-1:0] left, merged;
  always_comb begin
    for (int i = 0; i < K; i++) begin
      merged[8*i+:8] = turned.spill || COUNT_W'(i) < turned.filled ? left[8*i+:8] : turned_word[8*i+:8];
    end
  end

  always_ff @(posedge clk) begin
    if (advance) begin
      out_valid <= turned_valid && (turned.full || turned.last);
      out_data  <= merged;
      out_last  <= turned.last;
      out_user  <= turned.user;
      for (int i = 0; i < K; i++) out_keep[i] <= !turned.last || COUNT_W'(i) < turned.count;
      if (turned_valid) left <= turned.full ? turned_word : merged;
    end
    if (rst) out_valid <= 1'b0;
  end

  // The rotation is modulo the word.
  wire unused = &{1'b0, user_valid, fifo_start[LANE_W]};
endmodule

`default_nettype wire
