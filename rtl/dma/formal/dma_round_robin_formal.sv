// dma_round_robin: somebody is chosen if and only if somebody wants, it is one who wants, and nobody who wants stands between the
// last one and it; so who wants waits for the others once each. For every number of queues, 1 to 8.
`default_nettype none

module dma_round_robin_formal (
    input wire       clk,
    input wire [7:0] wants,
    input wire [2:0] last,
    input wire [2:0] other
);
  for (genvar count = 1; count <= 8; count++) begin : gen_count
    localparam int INDEX_W = count > 1 ? $clog2(count) : 1;
    logic               any;
    logic [INDEX_W-1:0] chosen;
    dma_round_robin #(.COUNT(count)) dut (.last(last[INDEX_W-1:0]), .wants(wants[count-1:0]), .any, .chosen);

    // How far behind the last one, 1 to count.
    function automatic logic [4:0] behind(input logic [2:0] one);
      return 5'(one) > 5'(last) ? 5'(one) - 5'(last) : 5'(one) + 5'(count) - 5'(last);
    endfunction

    always @(posedge clk) begin
      if (32'(last) < count) begin
        assert (any == (wants[count-1:0] != '0));
        if (any) assert (32'(chosen) < count && wants[3'(chosen)]);
        if (32'(other) < count && wants[other]) assert (any && behind(3'(chosen)) <= behind(other));
      end
    end
  end
endmodule

`default_nettype wire
