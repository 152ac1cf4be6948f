// How often something happened in one clock, told in another: a count in Gray code, some clocks late.
//
// Both sides must have been in reset at the same time.
`default_nettype none

module count_across #(
    parameter int WIDTH = 32
) (
    input  wire              w_clk,
    input  wire              w_rst,
    input  wire              happens,
    input  wire              r_clk,
    input  wire              r_rst,
    output logic [WIDTH-1:0] count
);
  if (WIDTH < 2 || WIDTH > 64) begin : gen_bad_width
    $error("count_across: WIDTH must be 2 to 64");
  end

  typedef logic [WIDTH-1:0] count_t;

  function automatic count_t from_gray(count_t gray);
    count_t plain;
    plain = gray;
    for (int by = 1; by < WIDTH; by *= 2) plain ^= plain >> by;
    return plain;
  endfunction

  count_t counted, gray, first, second;

  always_ff @(posedge w_clk) begin
    if (happens) counted <= counted + 1'b1;
    gray <= counted ^ (counted >> 1);
    if (w_rst) begin
      counted <= '0;
      gray    <= '0;
    end
  end

  always_ff @(posedge r_clk) begin
    first  <= gray;
    second <= first;
    count  <= from_gray(second);
    if (r_rst) begin
      first  <= '0;
      second <= '0;
      count  <= '0;
    end
  end
endmodule

`default_nettype wire
