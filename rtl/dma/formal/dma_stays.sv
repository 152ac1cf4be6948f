// What is offered stays until it is taken: asserted of a master, or assumed of what waits at an input.
`default_nettype none

module dma_stays #(
    parameter int WIDTH  = 1,
    parameter bit ASSUME = 1'b0
) (
    input wire             clk,
    input wire             rst,
    input wire             valid,
    input wire             ready,
    input wire [WIDTH-1:0] payload
);
  logic waits = 1'b0;
  logic [WIDTH-1:0] held;

  always_ff @(posedge clk) begin
    waits <= valid && !ready && !rst;
    held  <= payload;
  end

  always @(posedge clk) begin
    if (!rst && waits) begin
      if (ASSUME) assume (valid && payload == held);
      else assert (valid && payload == held);
    end
  end
endmodule

`default_nettype wire
