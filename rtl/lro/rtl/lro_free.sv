// The free blocks of the pool: each number is given out once before it is put back.
//
// After a reset a counter gives out all numbers; from then on they come from a FIFO in a block RAM. Two wait in registers, as a
// frame may end in the first word of a block; to fill one again takes four clocks, and two frames have at least 16 words.
`default_nettype none

module lro_free
  import lro_pkg::*;
#(
    parameter int BLOCKS = 1024
) (
    input  wire           clk,
    input  wire           rst,

    output logic          alloc_valid,
    output block_t        alloc_block,
    input  wire           alloc_take,

    input  wire           free_valid,
    input  wire block_t   free_block
);
  localparam int ID_W = $clog2(BLOCKS);

  // An entry is read when it was written at least a clock ago.
  (* no_rw_check *) logic [ID_W-1:0] list[BLOCKS];
  logic [ID_W-1:0] list_q, list_near, write_at, read_at;
  logic [ID_W:0]   count, fresh;
  logic [1:0]      reading;                // the block RAM, the register next to it
  logic            spare_valid;
  logic [ID_W-1:0] spare_block, alloc_id;

  assign alloc_block = block_t'(alloc_id);

  // The number is put back a clock later: the last word of the block may just be read.
  logic            put;
  logic [ID_W-1:0] put_block;

  always_ff @(posedge clk) begin
    if (put) list[write_at] <= put_block;
    list_q    <= list[read_at];
    list_near <= list_q;
  end

  wire fetched = reading[1] && !spare_valid;
  wire moves   = spare_valid && (!alloc_valid || alloc_take);

  always_ff @(posedge clk) begin
    put       <= free_valid;
    put_block <= free_block[ID_W-1:0];
    if (put) write_at <= write_at + 1'b1;
    count   <= count + (ID_W + 1)'(put) - (ID_W + 1)'(fetched);
    reading <= {reading[0], !spare_valid && reading == '0 && fresh[ID_W] && count != '0};
    if (alloc_take) alloc_valid <= 1'b0;
    if (moves) begin
      alloc_valid <= 1'b1;
      alloc_id    <= spare_block;
      spare_valid <= 1'b0;
    end
    if (!spare_valid) begin
      if (!fresh[ID_W]) begin
        spare_valid <= 1'b1;
        spare_block <= fresh[ID_W-1:0];
        fresh       <= fresh + 1'b1;
      end else if (fetched) begin
        spare_valid <= 1'b1;
        spare_block <= list_near;
        read_at     <= read_at + 1'b1;
      end
    end
    if (rst) begin
      put         <= 1'b0;
      write_at    <= '0;
      read_at     <= '0;
      count       <= '0;
      fresh       <= '0;
      reading     <= '0;
      alloc_valid <= 1'b0;
      spare_valid <= 1'b0;
    end
  end

  wire unused = &{1'b0, free_block};
endmodule

`default_nettype wire
