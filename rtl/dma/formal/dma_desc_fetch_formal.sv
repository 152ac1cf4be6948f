// dma_desc_fetch: where an unreadable descriptor leads, nobody reads.
//
//   - a queue whose last descriptor that was kept came back with an error reads nothing more before it starts anew;
//   - of each queue as many descriptors are under way and kept as there are places for, and none is kept that was not asked for.
//
// Proved by induction, without a bound: for any chains, doorbells and times of answers of two queues, and resets at any time, with lists of
// two descriptors. That what is read was handed over is compared with a model of memory.
`default_nettype none

module dma_desc_fetch_formal #(
    localparam int ADDR_W = 36,
    localparam int LINE_W = ADDR_W - 6,
    localparam int DEPTH  = 2
) (
    input wire              clk,
    input wire              rst,
    input wire [1:0]        run,
    input wire [1:0]        forget,
    input wire              reg_queue,
    input wire              cur_low_write,
    input wire              cur_high_write,
    input wire              tail_low_write,
    input wire              tail_high_write,
    input wire [31:0]       reg_data,
    input wire              request_ready,
    input wire              response_valid,
    input wire              response_queue,
    input wire [LINE_W-1:0] response_line,
    input wire [LINE_W-1:0] response_next,
    input wire              response_error,
    input wire              response_entry,
    input wire              look_queue,
    input wire              pop,
    input wire              pop_queue
);
  logic              request_valid, request_queue, response_ready;
  logic [LINE_W-1:0] request_line;

  dma_desc_fetch #(
      .QUEUES(2),
      .DEPTH(DEPTH),
      .ADDR_W(ADDR_W),
      .ENTRY_W(1)
  ) dut (
      .reg_cur(),
      .reg_tail(),
      .drained(),
      .starved(),
      .look_entry(),
      .look_line(),
      .look_available(),
      .available(),
      .*
  );

  // It begins with a reset; there may be others.
  logic first = 1'b1;
  always_ff @(posedge clk) first <= 1'b0;
  always @(posedge clk) if (first) assume (rst);

  // Reads under way, each of which is answered once.
  logic [1:0] under_way[2];
  always_ff @(posedge clk) begin
    for (int q = 0; q < 2; q++) begin
      under_way[q] <= under_way[q] + 2'(request_valid && request_ready && request_queue == 1'(q))
          - 2'(response_valid && response_ready && response_queue == 1'(q));
      if (rst) under_way[q] <= '0;
    end
  end

  // The states, in the order in which the module has them.
  localparam logic [2:0] READ = 3'd1, LOOK = 3'd2, SEND = 3'd3, REST = 3'd5, TAKE = 3'd0, KEEP = 3'd4;
  wire [2:0] issue  = dut.issue;
  wire [2:0] answer = dut.answer;

  // A descriptor that is being asked for, and an answer that is being decided on.
  logic [1:0] asking, deciding;
  always_comb begin
    for (int q = 0; q < 2; q++) begin
      asking[q]   = (issue == LOOK || issue == SEND) && dut.queue == 1'(q);
      deciding[q] = answer != TAKE && dut.back_queue == 1'(q);
    end
  end

  always @(posedge clk) begin
    if (response_valid) assume (under_way[response_queue] != 2'd0);
    if (pop) assume (dut.kept[pop_queue] != '0 && dut.alive[pop_queue]);
    if (!rst && !first) begin
      assert (issue <= REST && answer <= KEEP);
      assert ((dut.keep == '0 && dut.miss == '0) || answer == KEEP);
      for (int q = 0; q < 2; q++) begin
        assert (!(dut.keep[q] && dut.miss[q]) && (!(dut.keep[q] || dut.miss[q]) || dut.back_queue == 1'(q)));
        assert (answer != KEEP || dut.back_queue != 1'(q) || dut.keep[q] || dut.miss[q]);
        assert (!(issue == READ && dut.lost[q] && dut.queue == 1'(q)));
        assert (4'(dut.sent[q]) == 4'(under_way[q]) + 4'(asking[q]) + 4'(deciding[q]));
        assert (4'(dut.sent[q]) + 4'(dut.kept[q]) + 4'(issue == READ && dut.queue == 1'(q)) <= 4'(DEPTH));
      end
    end
  end
endmodule

`default_nettype wire
