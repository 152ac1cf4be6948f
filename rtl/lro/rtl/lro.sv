// Receive coalescing: in-order TCP segments of a flow become one frame with the headers of one large segment.
//
// Every frame is written into blocks of one pool of memory, whatever it is; when it is there, the flow table decides: it joins a
// flow's chain of segments, opens a flow, or leaves. What leaves is read along its chain, headers of joined segments left out.
// So nothing is copied inside, several flows share the memory, and a frame that passes is not held up by one that is decided
// about. The order within a flow never changes; frames of other flows may pass.
//
//   s_axis -> register -> write -> pool -> read, fields written -> pack -> register -> m_axis
//                  '-> parse -> flow table -> queue -^
//
// A flow leaves by PSH, a shorter segment, anything of it that does not join, MAX_PACKET bytes, 255 segments, its time, as the
// oldest when the table or three quarters of the memory are full, and by a frame whose IP options or extension headers hide TCP.
//
// A frame has 65,535 bytes at most, and must fit into a quarter of the pool. csum_status must say TCP good for a frame to join.
// What is in rx_user_t of a coalesced frame: seg_count, seg_size (payload of the first), arrival (of the last), csum_raw 0;
// all else is the first one's.
//
// Config:  cfg_enable   0: all frames pass in their order; open flows leave at once
//          cfg_timeout  clocks from a flow's first segment to its leaving
// Events:  event_opened, event_joined, event_passed: one pulse for each frame
//          event_timeout, event_evicted (table full), event_pressure (memory): a flow has been closed for this reason
`default_nettype none

module lro
  import nic_pkg::*;
  import lro_pkg::*;
#(
    parameter int DATA_W     = 64,
    parameter int FLOWS      = 8,
    // Largest IP packet that is made.
    parameter int MAX_PACKET = 65535,
    parameter int POOL_BYTES = 131072
) (
    input  wire                       clk,
    input  wire                       rst,

    input  wire  [DATA_W-1:0]         s_axis_tdata,
    input  wire  [DATA_W/8-1:0]       s_axis_tkeep,
    input  wire                       s_axis_tvalid,
    output logic                      s_axis_tready,
    input  wire                       s_axis_tlast,
    input  wire  [$bits(rx_user_t)-1:0] s_axis_tuser,  // rx_user_t, in every beat

    output logic [DATA_W-1:0]         m_axis_tdata,
    output logic [DATA_W/8-1:0]       m_axis_tkeep,
    output logic                      m_axis_tvalid,
    input  wire                       m_axis_tready,
    output logic                      m_axis_tlast,
    output logic [$bits(rx_user_t)-1:0] m_axis_tuser,  // rx_user_t, in every beat

    input  wire                       cfg_enable,
    input  wire  [31:0]               cfg_timeout,

    output logic                      event_opened,
    output logic                      event_joined,
    output logic                      event_passed,
    output logic                      event_timeout,
    output logic                      event_evicted,
    output logic                      event_pressure
);
  localparam int USER_W      = $bits(rx_user_t);
  localparam int K           = DATA_W / 8;
  // The headers lie in a segment's first block, and a block lasts long enough for the next one's number to come.
  localparam int BLOCK_WORDS = K < 8 ? 32 : 16;
  localparam int BLOCKS      = POOL_BYTES / (BLOCK_WORDS * K);
  localparam int ADDR_W      = $clog2(BLOCKS) + $clog2(BLOCK_WORDS);
  localparam int CREDITS     = 16;
  localparam int COUNT_W     = $clog2(K) + 1;

  if (DATA_W < 32 || DATA_W > 512 || (DATA_W & (DATA_W - 1)) != 0) begin : gen_bad_width
    $error("lro: DATA_W must be 32, 64, 128, 256 or 512");
  end
  if (FLOWS < 1 || FLOWS > 32) begin : gen_bad_flows
    $error("lro: FLOWS must be 1 to 32");
  end
  if (MAX_PACKET < 1500 || MAX_PACKET > 65535) begin : gen_bad_packet
    $error("lro: MAX_PACKET must be 1500 to 65535");
  end
  if ((POOL_BYTES & (POOL_BYTES - 1)) != 0 || BLOCKS < 32 || BLOCKS > 4096) begin : gen_bad_pool
    $error("lro: POOL_BYTES must be a power of two, of 32 to 4096 blocks of 16 words");
  end

  // Both ends registered.
  logic [DATA_W-1:0] in_data, out_data;
  logic [K-1:0]      in_keep, out_keep;
  logic              in_valid, in_ready, in_take, in_last, out_valid, out_ready, out_last;
  logic [USER_W-1:0] in_user;
  rx_user_t          out_user;

  lro_input #(
      .WORD_W(DATA_W + K + 1 + USER_W)
  ) input_register (
      .clk,
      .rst,
      .s_word({s_axis_tuser, s_axis_tlast, s_axis_tkeep, s_axis_tdata}),
      .s_valid(s_axis_tvalid),
      .s_ready(s_axis_tready),
      .m_word({in_user, in_last, in_keep, in_data}),
      .m_valid(in_valid),
      .m_ready(in_ready)
  );
  axis_register #(
      .DATA_W(DATA_W),
      .USER_W(USER_W)
  ) output_register (
      .clk,
      .rst,
      .s_axis_tdata(out_data),
      .s_axis_tkeep(out_keep),
      .s_axis_tvalid(out_valid),
      .s_axis_tready(out_ready),
      .s_axis_tlast(out_last),
      .s_axis_tuser(out_user),
      .m_axis_tdata,
      .m_axis_tkeep,
      .m_axis_tvalid,
      .m_axis_tready,
      .m_axis_tlast,
      .m_axis_tuser
  );

  logic     segment_valid, segment_take;
  segment_t segment;

  // Frames that have ended and are not decided about: one at the table, one behind it.
  logic [1:0] undecided;
  wire        frame_ends = in_take && in_last;
  wire        may_end    = !undecided[1];   // it is 2 at most

  always_ff @(posedge clk) begin
    undecided <= undecided + 2'(frame_ends) - 2'(segment_take);
    if (rst) undecided <= '0;
  end

  logic              alloc_valid, alloc_take, free_valid;
  block_t            alloc_block, free_block;
  logic              write, write_end, follow_write;
  logic [ADDR_W-1:0] write_addr, read_addr;
  logic [DATA_W-1:0] write_data, read_data;
  block_t            follow_from, follow_to, frame_head, frame_blocks;
  logic              link_write, read_end, read_next_take;
  block_t            link_from, link_to, read_block, read_follow, read_segment, read_next;

  lro_free #(
      .BLOCKS(BLOCKS)
  ) free_list (
      .clk,
      .rst,
      .alloc_valid,
      .alloc_block,
      .alloc_take,
      .free_valid,
      .free_block
  );

  lro_write #(
      .DATA_W(DATA_W),
      .BLOCKS(BLOCKS),
      .BLOCK_WORDS(BLOCK_WORDS)
  ) writer (
      .clk,
      .rst,
      .in_data,
      .in_valid,
      .in_last,
      .in_ready,
      .in_take,
      .may_end,
      .alloc_valid,
      .alloc_block,
      .alloc_take,
      .write,
      .write_addr,
      .write_data,
      .write_end,
      .follow_write,
      .follow_from,
      .follow_to,
      .frame_head,
      .frame_blocks
  );

  lro_pool #(
      .DATA_W(DATA_W),
      .BLOCKS(BLOCKS),
      .BLOCK_WORDS(BLOCK_WORDS)
  ) pool (
      .clk,
      .write,
      .write_addr,
      .write_data,
      .write_end,
      .follow_write,
      .follow_from,
      .follow_to,
      .segment_write(link_write),
      .segment_from(link_from),
      .segment_to(link_to),
      .read_addr,
      .read_data,
      .read_block,
      .read_follow,
      .read_end,
      .read_segment,
      .read_next_take,
      .read_next
  );

  lro_parse #(
      .DATA_W(DATA_W)
  ) parser (
      .clk,
      .rst,
      .cfg_enable,
      .in_data,
      .in_keep,
      .in_valid(in_take),
      .in_last,
      .in_user,
      .in_head(frame_head),
      .in_blocks(frame_blocks),
      .segment_valid,
      .segment,
      .segment_take
  );

  logic   queue_push, queue_room, leave_valid, leave_take;
  leave_t queue_data, leave;

  lro_table #(
      .FLOWS(FLOWS),
      .MAX_PACKET(MAX_PACKET),
      .MAX_HELD(BLOCKS * 3 / 4)
  ) flow_table (
      .clk,
      .rst,
      .cfg_enable,
      .cfg_timeout,
      .segment_valid,
      .segment,
      .segment_take,
      .link_write,
      .link_from,
      .link_to,
      .leave_valid(queue_push),
      .leave(queue_data),
      .leave_room(queue_room),
      .event_opened,
      .event_joined,
      .event_passed,
      .event_timeout,
      .event_evicted,
      .event_pressure
  );

  // While a packet of 64 KiB leaves, 43 frames of an MTU of 1500 come.
  lro_queue #(
      .DEPTH(64)
  ) queue (
      .clk,
      .rst,
      .push(queue_push),
      .push_data(queue_data),
      .room(queue_room),
      .valid(leave_valid),
      .data(leave),
      .take(leave_take)
  );

  logic               user_write, read_valid, read_last, credit;
  rx_user_t           read_user;
  logic [DATA_W-1:0]  read_word;
  logic [COUNT_W-1:0] read_start, read_count;

  lro_read #(
      .DATA_W(DATA_W),
      .BLOCKS(BLOCKS),
      .BLOCK_WORDS(BLOCK_WORDS),
      .CREDITS(CREDITS)
  ) reader (
      .clk,
      .rst,
      .leave_valid,
      .leave,
      .leave_take,
      .read_addr,
      .read_data,
      .read_block,
      .read_follow,
      .read_end,
      .read_segment,
      .read_next_take,
      .read_next,
      .free_valid,
      .free_block,
      .user_write,
      .user(read_user),
      .out_valid(read_valid),
      .out_data(read_word),
      .out_start(read_start),
      .out_count(read_count),
      .out_last(read_last),
      .credit
  );

  lro_pack #(
      .DATA_W(DATA_W),
      .CREDITS(CREDITS)
  ) packer (
      .clk,
      .rst,
      .user_write,
      .user(read_user),
      .in_valid(read_valid),
      .in_data(read_word),
      .in_start(read_start),
      .in_count(read_count),
      .in_last(read_last),
      .credit,
      .out_data,
      .out_keep,
      .out_valid,
      .out_ready,
      .out_last,
      .out_user
  );
endmodule

`default_nettype wire
