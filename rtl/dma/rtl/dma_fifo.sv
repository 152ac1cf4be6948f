// A small FIFO whose oldest word is always on show.
//
// The storage is read without a clock, so that it becomes distributed memory. Whoever pushes looks at `level` or keeps count
// itself: a push into a full FIFO is lost.
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

  logic [WIDTH-1:0] memory [DEPTH];
  logic [PTR_W-1:0] head, tail;

  assign data = memory[head];

  always_ff @(posedge clk) begin
    if (push) memory[tail] <= push_data;
  end

  always_ff @(posedge clk) begin
    if (push) tail <= tail + 1'b1;
    if (pop) head <= head + 1'b1;
    level <= level + (PTR_W + 1)'(push) - (PTR_W + 1)'(pop);
    valid <= (level + (PTR_W + 1)'(push)) != (PTR_W + 1)'(pop);
    if (rst) begin
      head  <= '0;
      tail  <= '0;
      level <= '0;
      valid <= 1'b0;
    end
  end
endmodule

`default_nettype wire
