// The memory of lro: blocks of words, chained.
//
//   words    block | word in it -> data
//   follow   block -> the next one of the same segment, and whether there is none
//   segment  first block of a segment -> first block of the next one of the same coalesced frame
//
// Data are read with four clocks of latency, links with three: a block RAM answers late in its clock, so what is behind it is a
// register alone, which synthesis may move into it, and others carry the answer to where it is used. What is read was written at
// least two clocks before.
`default_nettype none

module lro_pool
  import lro_pkg::*;
#(
    parameter int DATA_W      = 64,
    parameter int BLOCKS      = 1024,
    parameter int BLOCK_WORDS = 16,
    localparam int ID_W       = $clog2(BLOCKS),
    localparam int ADDR_W     = ID_W + $clog2(BLOCK_WORDS)
) (
    input  wire               clk,

    input  wire               write,
    input  wire  [ADDR_W-1:0] write_addr,
    input  wire  [DATA_W-1:0] write_data,
    input  wire               write_end,      // the last word of its segment

    input  wire               follow_write,
    input  wire block_t       follow_from,
    input  wire block_t       follow_to,

    input  wire               segment_write,
    input  wire block_t       segment_from,
    input  wire block_t       segment_to,

    input  wire  [ADDR_W-1:0] read_addr,
    output logic [DATA_W-1:0] read_data,

    input  wire block_t       read_block,
    output block_t            read_follow,
    output logic              read_end,
    input  wire block_t       read_segment,
    input  wire               read_next_take,  // two clocks after read_segment has changed
    output block_t            read_next
);
  (* no_rw_check *) logic [DATA_W-1:0] words[BLOCKS*BLOCK_WORDS];
  (* no_rw_check *) logic [ID_W-1:0]   follow[BLOCKS];
  (* no_rw_check *) logic [ID_W-1:0]   segment[BLOCKS];
  (* no_rw_check, ram_style = "block" *) logic [0:0] ends[BLOCKS];
  logic [DATA_W-1:0] word_q, word_near, word_far;
  logic [ID_W-1:0]   follow_q, follow_near, segment_q, segment_near;
  logic [0:0]        end_q, end_near;

  always_ff @(posedge clk) begin
    if (write) words[write_addr] <= write_data;
    word_q    <= words[read_addr];
    word_near <= word_q;
    word_far  <= word_near;
    read_data <= word_far;
  end

  always_ff @(posedge clk) begin
    if (follow_write) follow[follow_from[ID_W-1:0]] <= follow_to[ID_W-1:0];
    follow_q    <= follow[read_block[ID_W-1:0]];
    follow_near <= follow_q;
    read_follow <= block_t'(follow_near);
  end

  always_ff @(posedge clk) begin
    if (write) ends[write_addr[ADDR_W-1:ADDR_W-ID_W]] <= write_end;
    end_q    <= ends[read_block[ID_W-1:0]];
    end_near <= end_q;
    read_end <= end_near;
  end

  always_ff @(posedge clk) begin
    if (segment_write) segment[segment_from[ID_W-1:0]] <= segment_to[ID_W-1:0];
    segment_q    <= segment[read_segment[ID_W-1:0]];
    segment_near <= segment_q;
    if (read_next_take) read_next <= block_t'(segment_near);
  end

  wire unused = &{1'b0, follow_from, follow_to, segment_from, segment_to, read_block, read_segment};
endmodule

`default_nettype wire
