// lro_fifo: what is written is shown, in its order, once and unchanged, in the next clock if it is the oldest; what is shown stays until it
// is taken; `valid` says that there is something.
//
// Proved by induction, without a bound: for any content and resets at any time, with 4 words of 8 bits. One word, chosen by the solver, is
// followed. Assumed: DEPTH words at most are inside, and nothing is taken that is not shown.
`default_nettype none

module lro_fifo_formal (
    input wire       clk,
    input wire       rst,
    input wire       write,
    input wire [7:0] write_data,
    input wire       take,
    input wire       pick          // follow this word
);
  logic first = 1'b1;
  always_ff @(posedge clk) first <= 1'b0;
  always @(posedge clk) if (first) assume (rst);

  logic       valid;
  logic [7:0] data;
  lro_fifo #(.WIDTH(8), .DEPTH(4)) dut (.clk, .rst, .write, .write_data, .valid, .data, .take);

  logic [2:0] held = '0, ahead;
  logic       follows = 1'b0, stays = 1'b0;
  logic [7:0] followed, shown;

  always @(posedge clk) begin
    if (write) assume (held < 3'd4);
    if (take) assume (valid);
  end

  always_ff @(posedge clk) begin
    held  <= held + 3'(write) - 3'(take);
    stays <= valid && !take;
    shown <= data;
    if (take) begin
      ahead <= ahead - 3'd1;
      if (follows && ahead == '0) follows <= 1'b0;
    end
    if (write && pick && !follows) begin
      follows  <= 1'b1;
      followed <= write_data;
      ahead    <= held - 3'(take);
    end
    if (rst) begin
      held    <= '0;
      follows <= 1'b0;
      stays   <= 1'b0;
    end
  end

  always @(posedge clk) begin
    if (!rst && !first) begin
      assert (valid == (held != '0));
      if (stays) assert (valid && data == shown);
      if (follows && ahead == '0) assert (valid && data == followed);

      // What induction needs to know.
      assert (held <= 3'd4 && 2'(dut.write_at - dut.read_at) == held[1:0] && dut.next_at == 2'(dut.read_at + 2'd1));
      if (follows) assert (ahead < held && dut.entries[2'(dut.read_at + 2'(ahead))] == followed);
    end
  end
endmodule

`default_nettype wire
