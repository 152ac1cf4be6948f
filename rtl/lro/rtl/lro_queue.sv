// The frames that are to leave, in their order: a FIFO in distributed memory with registers on both sides.
//
// Block RAM would hold more of them, but its answers come late in the clock, and an entry has nearly 300 bits.
`default_nettype none

module lro_queue
  import lro_pkg::*;
#(
    parameter int DEPTH = 64
) (
    input  wire         clk,
    input  wire         rst,

    input  wire         push,
    input  wire leave_t push_data,
    output logic        room,

    output logic        valid,
    output leave_t      data,
    input  wire         take
);
  localparam int PTR_W = $clog2(DEPTH);

  // An entry is read when it was written at least a clock ago.
  (* no_rw_check, ram_style = "distributed" *) logic [$bits(leave_t)-1:0] entries[DEPTH];
  logic [$bits(leave_t)-1:0] pushed;
  logic [PTR_W-1:0]          write_at, read_at;
  logic [PTR_W:0]            count;
  logic                      pushes;

  wire fetched = count != '0 && (!valid || take);

  always_ff @(posedge clk) begin
    pushed <= push_data;
    if (pushes) entries[write_at] <= pushed;
    if (fetched) data <= entries[read_at];
  end

  always_ff @(posedge clk) begin
    pushes <= push;
    if (pushes) write_at <= write_at + 1'b1;
    if (fetched) read_at <= read_at + 1'b1;
    // The entry in the output register counts no more; some places are kept, as room is known some clocks late.
    count <= count + (PTR_W + 1)'(pushes) - (PTR_W + 1)'(fetched);
    room  <= count < (PTR_W + 1)'(DEPTH - 4);
    if (take) valid <= 1'b0;
    if (fetched) valid <= 1'b1;
    if (rst) begin
      write_at <= '0;
      read_at  <= '0;
      count    <= '0;
      room     <= 1'b0;
      pushes   <= 1'b0;
      valid    <= 1'b0;
    end
  end
endmodule

`default_nettype wire
