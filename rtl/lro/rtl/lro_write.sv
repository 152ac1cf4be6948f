// Writes each frame into blocks of the pool, whatever it is: what becomes of it is decided when it is there.
`default_nettype none

module lro_write
  import lro_pkg::*;
#(
    parameter int DATA_W      = 64,
    parameter int BLOCKS      = 1024,
    parameter int BLOCK_WORDS = 16,
    localparam int ADDR_W     = $clog2(BLOCKS) + $clog2(BLOCK_WORDS)
) (
    input  wire               clk,
    input  wire               rst,

    input  wire  [DATA_W-1:0] in_data,
    input  wire               in_valid,
    input  wire               in_last,
    output logic              in_ready,       // whether or not there is a word
    output logic              in_take,
    // A frame may end: what is known of it finds room.
    input  wire               may_end,

    input  wire               alloc_valid,
    input  wire block_t       alloc_block,
    output logic              alloc_take,

    output logic              write,
    output logic [ADDR_W-1:0] write_addr,
    output logic [DATA_W-1:0] write_data,
    output logic              write_end,
    output logic              follow_write,
    output block_t            follow_from,
    output block_t            follow_to,

    // With the frame's last word: where it begins and how many blocks it has.
    output block_t            frame_head,
    output block_t            frame_blocks
);
  localparam int WORD_W = $clog2(BLOCK_WORDS);
  localparam int ID_W   = $clog2(BLOCKS);

  logic [ID_W-1:0]   block, head;
  block_t            blocks;
  logic [WORD_W-1:0] word;
  logic              in_frame, opens;    // opens: the word is the first of a block

  logic [ID_W-1:0] target;
  assign target       = opens ? alloc_block[ID_W-1:0] : block;
  assign in_ready     = (!opens || alloc_valid) && (!in_last || may_end);
  assign in_take      = in_valid && in_ready;
  assign alloc_take   = in_take && opens;
  assign frame_head   = in_frame ? block_t'(head) : alloc_block;
  assign frame_blocks = in_frame ? blocks + block_t'(opens) : block_t'(1);

  always_ff @(posedge clk) begin
    write        <= in_take;
    write_addr   <= {target, word};
    write_data   <= in_data;
    write_end    <= in_last;
    follow_write <= in_take && opens && in_frame;
    follow_from  <= block_t'(block);
    follow_to    <= alloc_block;
    if (in_take) begin
      block    <= target;
      head     <= frame_head[ID_W-1:0];
      blocks   <= frame_blocks;
      in_frame <= !in_last;
      word     <= in_last ? '0 : word + 1'b1;
      opens    <= in_last || word == WORD_W'(BLOCK_WORDS - 1);
    end
    if (rst) begin
      write        <= 1'b0;
      follow_write <= 1'b0;
      in_frame     <= 1'b0;
      word         <= '0;
      opens        <= 1'b1;
    end
  end
endmodule

`default_nettype wire
