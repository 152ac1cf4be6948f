// A small FIFO in distributed memory; its first entry shows at once.
//
// It has no flag for full: whoever writes counts what is in it.
`default_nettype none

module lro_fifo #(
    parameter int WIDTH = 8,
    parameter int DEPTH = 16
) (
    input  wire              clk,
    input  wire              rst,
    input  wire              write,
    input  wire  [WIDTH-1:0] write_data,
    output logic             valid,
    output logic [WIDTH-1:0] data,
    input  wire              take
);
  localparam int PTR_W = $clog2(DEPTH);

  logic [WIDTH-1:0] entries[DEPTH];
  logic [PTR_W-1:0] write_at, read_at, next_at;   // next_at: read_at + 1

  assign data = entries[read_at];

  always_ff @(posedge clk) begin
    if (write) entries[write_at] <= write_data;
    if (write) write_at <= write_at + 1'b1;
    if (take) begin
      read_at <= next_at;
      next_at <= next_at + 1'b1;
    end
    // A register, as much depends on whether there is something.
    valid <= write || (valid && !(take && write_at == next_at));
    if (rst) begin
      write_at <= '0;
      read_at  <= '0;
      next_at  <= PTR_W'(1);
      valid    <= 1'b0;
    end
  end
endmodule

`default_nettype wire
