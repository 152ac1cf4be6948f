// A reset of another clock, or of none: begins at once, ends with an edge of this clock.
`default_nettype none

module reset_sync (
    input  wire  clk,
    input  wire  begins,
    output logic rst
);
  logic first;

  always_ff @(posedge clk or posedge begins) begin
    if (begins) {rst, first} <= 2'b11;
    else {rst, first} <= {first, 1'b0};
  end
endmodule

`default_nettype wire
