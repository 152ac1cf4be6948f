// The frames that are to leave, in their order: a FIFO in block RAM, a register next to it and an output register.
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
  logic [$bits(leave_t)-1:0] entry_q, entry_near;
  logic [PTR_W-1:0]          write_at, read_at;
  logic [PTR_W:0]            count;
  logic                      reading, near_valid;

  // The entry in the output register counts no more; one place is kept, as room is known a clock late.
  wire fetched = near_valid && (!valid || take);

  always_ff @(posedge clk) begin
    if (push) entries[write_at] <= push_data;
    entry_q    <= entries[read_at];
    entry_near <= entry_q;
  end

  always_ff @(posedge clk) begin
    if (push) write_at <= write_at + 1'b1;
    count   <= count + (PTR_W + 1)'(push) - (PTR_W + 1)'(fetched);
    room    <= count < (PTR_W + 1)'(DEPTH - 2);
    // Anew for each place: the entry comes into the block RAM's register, then into the one next to it.
    reading    <= !fetched && count != '0;
    near_valid <= !fetched && reading;
    if (take) valid <= 1'b0;
    if (fetched) begin
      valid   <= 1'b1;
      data    <= entry_near;
      read_at <= read_at + 1'b1;
    end
    if (rst) begin
      write_at <= '0;
      read_at  <= '0;
      count    <= '0;
      room     <= 1'b0;
      reading    <= 1'b0;
      near_valid <= 1'b0;
      valid    <= 1'b0;
    end
  end
endmodule

`default_nettype wire
