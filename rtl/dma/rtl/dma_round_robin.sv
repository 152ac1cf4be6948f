// The next of several that want something, behind the one that had it last.
`default_nettype none

module dma_round_robin #(
    parameter int COUNT = 4,
    localparam int INDEX_W = COUNT > 1 ? $clog2(COUNT) : 1
) (
    input  wire  [INDEX_W-1:0] last,
    input  wire  [COUNT-1:0]   wants,
    output logic               any,
    output logic [INDEX_W-1:0] chosen
);
  // The lowest one above the last, otherwise the lowest one.
  always_comb begin
    any    = |wants;
    chosen = '0;
    for (int i = COUNT - 1; i >= 0; i--) if (wants[i]) chosen = INDEX_W'(i);
    for (int i = COUNT - 1; i >= 0; i--) if (wants[i] && INDEX_W'(i) > last) chosen = INDEX_W'(i);
  end
endmodule

`default_nettype wire
