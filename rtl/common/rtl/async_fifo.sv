// A FIFO between two clocks: places are counted in Gray code, so that a count that changes while the other side looks is off by one at
// most, and never ahead. What is read comes from a register behind the memory, whose own outputs are slow.
//
// Both sides must have been in reset at the same time.
`default_nettype none

module async_fifo #(
    parameter int WIDTH   = 64,
    // log2 of the places.
    parameter int DEPTH_W = 9
) (
    input  wire               w_clk,
    input  wire               w_rst,
    input  wire               w_valid,
    input  wire  [WIDTH-1:0]  w_data,
    // At least this many places are free: none that is given back is missed for long.
    output logic [DEPTH_W:0]  w_free,

    input  wire               r_clk,
    input  wire               r_rst,
    output logic              r_valid,
    output logic [WIDTH-1:0]  r_data,
    input  wire               r_ready,
    // At least this many places are filled, the registers left out.
    output logic [DEPTH_W:0]  r_filled
);
  if (DEPTH_W < 2 || DEPTH_W > 16) begin : gen_bad_depth
    $error("async_fifo: DEPTH_W must be 2 to 16");
  end

  typedef logic [DEPTH_W:0] count_t;

  function automatic count_t to_gray(count_t count);
    return count ^ (count >> 1);
  endfunction

  function automatic count_t from_gray(count_t gray);
    count_t count;
    count = gray;
    for (int by = 1; by <= DEPTH_W; by *= 2) count ^= count >> by;
    return count;
  endfunction

  logic [WIDTH-1:0] words [2**DEPTH_W];
  count_t           head, tail, head_gray, tail_gray;

  // The writing side.
  count_t tail_first, tail_second, tail_seen;
  assign w_free = count_t'(2**DEPTH_W) - (head - tail_seen);

  always_ff @(posedge w_clk) begin
    if (w_valid) words[head[DEPTH_W-1:0]] <= w_data;
    head        <= head + count_t'(w_valid);
    head_gray   <= to_gray(head);
    tail_first  <= tail_gray;
    tail_second <= tail_first;
    tail_seen   <= from_gray(tail_second);
    if (w_rst) begin
      head        <= '0;
      head_gray   <= '0;
      tail_first  <= '0;
      tail_second <= '0;
      tail_seen   <= '0;
    end
  end

  // The reading side.
  count_t head_first, head_second, head_seen;
  wire is_empty = head_seen == tail;
  // The memory's output, which moves on to the register as soon as that is free.
  logic [WIDTH-1:0] word;
  logic             has_word;
  wire moves = has_word && (!r_valid || r_ready);
  wire takes = !is_empty && (!has_word || moves);
  assign r_filled = head_seen - tail;
  count_t after_tail;

  always_ff @(posedge r_clk) begin
    if (takes) word <= words[tail[DEPTH_W-1:0]];
    if (!has_word || moves) has_word <= !is_empty;
    if (moves) r_data <= word;
    if (!r_valid || r_ready) r_valid <= has_word;
    // The sum is made a clock before, as whether to take comes late.
    if (takes) begin
      tail       <= after_tail;
      after_tail <= after_tail + 1'b1;
    end
    tail_gray   <= to_gray(tail);
    head_first  <= head_gray;
    head_second <= head_first;
    head_seen   <= from_gray(head_second);
    if (r_rst) begin
      has_word    <= 1'b0;
      r_valid     <= 1'b0;
      tail        <= '0;
      after_tail  <= count_t'(1);
      tail_gray   <= '0;
      head_first  <= '0;
      head_second <= '0;
      head_seen   <= '0;
    end
  end
endmodule

`default_nettype wire
