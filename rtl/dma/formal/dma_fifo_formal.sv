// dma_fifo: what is pushed is shown, in its order, once and unchanged, two clocks later at the latest if it is the oldest; what is shown
// stays until it is popped; `level` is the number of words inside, and one more in the clock behind a pop.
//
// Proved by induction, without a bound: for any content and resets at any time, with 4 words of 8 bits. One word, chosen by the solver, is
// followed. Assumed: DEPTH words at most are inside, and nothing is popped that is not shown.
`default_nettype none

module dma_fifo_formal (
    input wire       clk,
    input wire       rst,
    input wire       push,
    input wire [7:0] push_data,
    input wire       pop,
    input wire       pick          // follow this word
);
  logic first = 1'b1;
  always_ff @(posedge clk) first <= 1'b0;
  always @(posedge clk) if (first) assume (rst);

  logic       valid;
  logic [7:0] data;
  logic [2:0] level;
  dma_fifo #(.WIDTH(8), .DEPTH(4)) dut (.clk, .rst, .push, .push_data, .pop, .valid, .data, .level);

  logic [2:0] held = '0, ahead;
  logic [1:0] unseen = '0;
  logic       follows = 1'b0, popped = 1'b0;
  logic [7:0] followed;
  wire        ours = follows && ahead == '0;

  always @(posedge clk) begin
    if (push) assume (held < 3'd4);
    if (pop) assume (valid);
  end

  always_ff @(posedge clk) begin
    held <= held + 3'(push) - 3'(pop);
    popped <= pop;
    unseen <= held != '0 && !valid ? unseen + 2'd1 : '0;
    if (pop) begin
      ahead <= ahead - 3'd1;
      if (ours) follows <= 1'b0;
    end
    if (push && pick && !follows) begin
      follows  <= 1'b1;
      followed <= push_data;
      ahead    <= held - 3'(pop);
    end
    if (rst) begin
      held  <= '0;
      popped  <= 1'b0;
      follows <= 1'b0;
      unseen  <= '0;
    end
  end

  dma_stays #(.WIDTH(8)) stays (.clk, .rst, .valid, .ready(pop), .payload(data));

  // What induction needs to know: what is stored and not on show, oldest first.
  wire [2:0] stored = dut.tail - dut.head;
  wire [2:0] place  = ahead - 3'(valid);

  always @(posedge clk) begin
    if (!rst && !first) begin
      if (valid) assert (held != '0);
      if (valid && ours) assert (data == followed);
      assert (unseen <= 2'd1);
      assert (level == held + 3'(popped));
      assert (dut.popped == popped && held == stored + 3'(valid) && held <= 3'd4);
      if (follows) assert (ahead < held);
      if (follows && !(valid && ours)) assert (dut.memory[2'(dut.head + place)] == followed);
    end
  end
endmodule

`default_nettype wire
