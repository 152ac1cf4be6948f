// A small FIFO whose oldest word is on show, from a register.
//
// The storage is read without a clock, so that it becomes distributed memory; the register behind it keeps that read off the
// reader's path. A word is on show two clocks after it was pushed, and the next one in the clock after a pop. Whoever pushes looks
// at `level`, which learns of a pop a clock late, or keeps count itself: DEPTH words always fit.
`default_nettype none

module dma_fifo #(
    parameter int WIDTH = 8,
    // Words, a power of two.
    parameter int DEPTH = 16
) (
    input  wire                      clk,
    input  wire                      rst,

    input  wire                      push,
    input  wire  [WIDTH-1:0]         push_data,

    input  wire                      pop,
    output logic                     valid,
    output logic [WIDTH-1:0]         data,

    output logic [$clog2(DEPTH):0]   level
);
  localparam int PTR_W = $clog2(DEPTH);

  if (DEPTH < 2 || (DEPTH & (DEPTH - 1)) != 0) begin : gen_bad_depth
    $error("dma_fifo: DEPTH must be a power of two, at least 2");
  end

  // A bit more than an address, so that full and empty differ.
  (* no_rw_check *) logic [WIDTH-1:0] memory [DEPTH];
  logic [PTR_W:0] head, tail;
  wire  stored = head != tail;
  wire  moves  = !valid || pop;
  logic popped;

  always_ff @(posedge clk) begin
    if (push) memory[tail[PTR_W-1:0]] <= push_data;
    if (moves) data <= memory[head[PTR_W-1:0]];
  end

  always_ff @(posedge clk) begin
    if (push) tail <= tail + 1'b1;
    if (moves && stored) head <= head + 1'b1;
    if (moves) valid <= stored;
    popped <= pop;
    if (push && !popped) level <= level + 1'b1;
    if (!push && popped) level <= level - 1'b1;
    if (rst) begin
      head  <= '0;
      tail  <= '0;
      level <= '0;
      valid <= 1'b0;
      popped <= 1'b0;
    end
  end
endmodule

`default_nettype wire
