// The frames that are to leave, in their order: a FIFO in block RAM with registers on both sides, as it may lie far away from both
// its neighbours.
`default_nettype none

module lro_queue
  import lro_pkg::*;
#(
    parameter int DEPTH = 512
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
  (* no_rw_check *) logic [$bits(leave_t)-1:0] entries[DEPTH];
  logic [$bits(leave_t)-1:0] entry_q, entry_near, entry, pushed;
  logic [PTR_W-1:0]          write_at, read_at;
  logic [PTR_W:0]            count;
  logic                      reading, near_valid, entry_valid, pushes;

  // The entry in the output register counts no more; some places are kept, as room is known some clocks late.
  wire fetched = entry_valid && (!valid || take);

  always_ff @(posedge clk) begin
    pushed <= push_data;
    if (pushes) entries[write_at] <= pushed;
    entry_q    <= entries[read_at];
    entry_near <= entry_q;
    entry      <= entry_near;
  end

  always_ff @(posedge clk) begin
    pushes <= push;
    if (pushes) write_at <= write_at + 1'b1;
    count   <= count + (PTR_W + 1)'(pushes) - (PTR_W + 1)'(fetched);
    room    <= count < (PTR_W + 1)'(DEPTH - 4);
    // Anew for each place: the entry comes into the block RAM's register, the one next to it, and the one where it is used.
    reading     <= !fetched && count != '0;
    near_valid  <= !fetched && reading;
    entry_valid <= !fetched && near_valid;
    if (take) valid <= 1'b0;
    if (fetched) begin
      valid   <= 1'b1;
      data    <= entry;
      read_at <= read_at + 1'b1;
    end
    if (rst) begin
      write_at <= '0;
      read_at  <= '0;
      count    <= '0;
      room     <= 1'b0;
      reading    <= 1'b0;
      near_valid <= 1'b0;
      entry_valid <= 1'b0;
      pushes   <= 1'b0;
      valid    <= 1'b0;
    end
  end
endmodule

`default_nettype wire
