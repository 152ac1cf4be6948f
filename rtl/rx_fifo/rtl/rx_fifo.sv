// The receive FIFO behind a MAC: store and forward, whole frames or nothing.
//
// A MAC cannot be held back, so s_axis_tready is always 1 and what finds no room is dropped: the whole frame, never a part of it.
// A frame is written word by word behind the last whole one; at its end the write pointer is either committed, which shows the
// frame to the reader, or set back. What is known of a frame (tuser) comes with its last beat, and leaves with every beat.
//
//      oldest                         newest whole frame    being written
//   | ... words of frame | words of frame | words of frame | words so far |  free ... |
//     ^ read                                                 ^ commit       ^ write
//
// Of the reasons to drop a frame the first of these counts: the MAC's error, too long, a flow rule's drop, no room. So
// event_overflow counts exactly the frames that were lost for want of room.
//
// Config:  cfg_pause_high  bytes in use at which pause_request rises; 0: never
//          cfg_pause_low   bytes in use at which it falls again
// Events:  event_frame (kept), event_error, event_too_long, event_rule, event_overflow: one pulse for each frame
`default_nettype none

module rx_fifo
  import nic_pkg::*;
#(
    parameter int DATA_W     = 64,
    // Both powers of two. 64 bytes a frame: minimum frames fill words and entries at the same time.
    parameter int FIFO_BYTES = 32768,
    parameter int FRAMES     = 512,
    // Longest frame that is kept, in bytes without FCS.
    parameter int MAX_FRAME  = 9018
) (
    input  wire                       clk,
    input  wire                       rst,

    input  wire  [DATA_W-1:0]         s_axis_tdata,
    input  wire  [DATA_W/8-1:0]       s_axis_tkeep,
    input  wire                       s_axis_tvalid,
    output logic                      s_axis_tready,
    input  wire                       s_axis_tlast,
    input  wire  [$bits(rx_user_t)-1:0] s_axis_tuser,  // rx_user_t, with tlast

    output logic [DATA_W-1:0]         m_axis_tdata,
    output logic [DATA_W/8-1:0]       m_axis_tkeep,
    output logic                      m_axis_tvalid,
    input  wire                       m_axis_tready,
    output logic                      m_axis_tlast,
    output logic [$bits(rx_user_t)-1:0] m_axis_tuser,  // rx_user_t, in every beat

    // Clocks, free-running: the time of arrival that a frame is stamped with at its last beat.
    input  wire  [31:0]               now,
    input  wire  [31:0]               cfg_pause_high,
    input  wire  [31:0]               cfg_pause_low,
    output logic                      pause_request,

    output logic                      event_frame,
    output logic                      event_error,
    output logic                      event_too_long,
    output logic                      event_rule,
    output logic                      event_overflow
);
  localparam int KEEP_W = DATA_W / 8;
  localparam int DEPTH  = FIFO_BYTES / KEEP_W;
  localparam int PTR_W  = $clog2(DEPTH);
  localparam int META_W = $clog2(FRAMES);
  localparam int USER_W = $bits(rx_user_t);
  localparam int SHIFT  = $clog2(KEEP_W);

  // A frame has MAX_FRAME bytes at most if it has FULL beats before its last one at most, and then no byte in lane REST.
  localparam int FULL   = MAX_FRAME / KEEP_W;
  localparam int REST   = MAX_FRAME % KEEP_W;
  localparam int BEAT_W = $clog2(FULL + 2);

  if (DATA_W < 32 || DATA_W > 512 || (DATA_W & (DATA_W - 1)) != 0) begin : gen_bad_width
    $error("rx_fifo: DATA_W must be 32, 64, 128, 256 or 512");
  end
  if ((FIFO_BYTES & (FIFO_BYTES - 1)) != 0 || FIFO_BYTES < 2 * MAX_FRAME) begin : gen_bad_size
    $error("rx_fifo: FIFO_BYTES must be a power of two and hold two frames of MAX_FRAME bytes");
  end
  if ((FRAMES & (FRAMES - 1)) != 0 || FRAMES < 4) begin : gen_bad_frames
    $error("rx_fifo: FRAMES must be a power of two, at least 4");
  end
  if (MAX_FRAME < 60) begin : gen_bad_max
    $error("rx_fifo: MAX_FRAME must be at least 60");
  end

  assign s_axis_tready = 1'b1;

  // The input, registered.
  logic [DATA_W-1:0] in_data;
  logic [KEEP_W-1:0] in_keep;
  logic              in_valid, in_last;
  rx_user_t          in_user;

  always_ff @(posedge clk) begin
    in_data  <= s_axis_tdata;
    in_keep  <= s_axis_tkeep;
    in_last  <= s_axis_tlast;
    in_user  <= s_axis_tuser;
    in_valid <= s_axis_tvalid && !rst;
    // As the frame leaves this FIFO it is one segment of its own.
    in_user.arrival   <= now;
    in_user.seg_count <= 8'd1;
    in_user.seg_size  <= 16'd0;
  end

  // Write side. Pointers have one bit more than the address, so that full differs from empty.
  logic [PTR_W:0]    write_ptr, commit_ptr, read_ptr;
  logic [META_W:0]   meta_write, meta_read;
  logic [BEAT_W-1:0] beats;
  logic              cut;        // a word of this frame has found no room
  logic              is_full, is_over;   // beats == FULL, beats > FULL

  wire words_full = write_ptr == {!read_ptr[PTR_W], read_ptr[PTR_W-1:0]};
  wire meta_full  = meta_write == {!meta_read[META_W], meta_read[META_W-1:0]};
  wire room       = !words_full && !meta_full && !cut;
  wire too_long   = is_over || (is_full && in_keep[REST]);
  wire frame_end  = in_valid && in_last;
  wire wanted     = !in_user.error && !too_long && !in_user.drop;
  wire keep_frame = frame_end && wanted && room;

  always_ff @(posedge clk) begin
    event_frame    <= keep_frame;
    event_error    <= frame_end && in_user.error;
    event_too_long <= frame_end && !in_user.error && too_long;
    event_rule     <= frame_end && !in_user.error && !too_long && in_user.drop;
    event_overflow <= frame_end && wanted && !room;
    if (in_valid) begin
      if (in_last) begin
        beats     <= '0;
        is_full   <= 1'b0;
        is_over   <= 1'b0;
        cut       <= 1'b0;
        write_ptr <= keep_frame ? write_ptr + 1'b1 : commit_ptr;
        if (keep_frame) begin
          commit_ptr <= write_ptr + 1'b1;
          meta_write <= meta_write + 1'b1;
        end
      end else begin
        if (!is_over) beats <= beats + 1'b1;
        is_full <= beats == BEAT_W'(FULL - 1);
        is_over <= is_full || is_over;
        if (room) write_ptr <= write_ptr + 1'b1;
        else cut <= 1'b1;
      end
    end
    if (rst) begin
      write_ptr      <= '0;
      commit_ptr     <= '0;
      meta_write     <= '0;
      beats          <= '0;
      is_full        <= 1'b0;
      is_over        <= 1'b0;
      cut            <= 1'b0;
      event_frame    <= 1'b0;
      event_error    <= 1'b0;
      event_too_long <= 1'b0;
      event_rule     <= 1'b0;
      event_overflow <= 1'b0;
    end
  end

  // Words and metadata, each a memory with one write and one read port.
  localparam int WORD_W = DATA_W + KEEP_W + 1;
  // No word is read before it is committed, and an entry is read again after it was written: collisions do not matter.
  (* no_rw_check *) logic [WORD_W-1:0] words[DEPTH];
  (* no_rw_check *) logic [USER_W-1:0] metas[FRAMES];
  // A block RAM is slow to answer: its output goes straight into a register.
  logic [WORD_W-1:0] word_q, word;
  logic [USER_W-1:0] meta_q;
  logic              word_q_valid, word_valid;
  logic [META_W:0]   meta_after;   // meta_read + 1

  wire out_ready  = !m_axis_tvalid || m_axis_tready;
  wire word_ready = !word_valid || out_ready;
  wire q_ready    = !word_q_valid || word_ready;
  wire word_read  = q_ready && read_ptr != commit_ptr;
  wire meta_pop   = word_valid && out_ready && word[WORD_W-1];
  // The entry of the frame that the next word from the memory belongs to.
  wire [META_W:0] meta_next = meta_pop ? meta_after : meta_read;

  always_ff @(posedge clk) begin
    if (in_valid && room) words[write_ptr[PTR_W-1:0]] <= {in_last, in_keep, in_data};
    if (q_ready) word_q <= words[read_ptr[PTR_W-1:0]];
  end

  always_ff @(posedge clk) begin
    // Of a frame that is not kept, too, and of each word: what is not committed is overwritten, and whether it is comes late.
    if (in_valid && !meta_full) metas[meta_write[META_W-1:0]] <= in_user;
    meta_q <= metas[meta_next[META_W-1:0]];
  end

  always_ff @(posedge clk) begin
    if (q_ready) word_q_valid <= word_read;
    if (word_ready) begin
      word_valid <= word_q_valid;
      word       <= word_q;
    end
    if (word_read) read_ptr <= read_ptr + 1'b1;
    meta_read  <= meta_next;
    meta_after <= meta_next + 1'b1;
    if (out_ready) begin
      m_axis_tvalid <= word_valid;
      {m_axis_tlast, m_axis_tkeep, m_axis_tdata} <= word;
      m_axis_tuser  <= meta_q;
    end
    if (rst) begin
      word_q_valid  <= 1'b0;
      word_valid    <= 1'b0;
      read_ptr      <= '0;
      meta_read     <= '0;
      meta_after    <= (META_W + 1)'(1);
      m_axis_tvalid <= 1'b0;
    end
  end

  // The request for a pause, one clock behind the fill level.
  logic [PTR_W:0] used;
  wire  [31:0]    used_bytes = 32'(used) << SHIFT;

  always_ff @(posedge clk) begin
    used <= write_ptr - read_ptr;
    if (cfg_pause_high != '0 && used_bytes >= cfg_pause_high) pause_request <= 1'b1;
    else if (used_bytes <= cfg_pause_low || cfg_pause_high == '0) pause_request <= 1'b0;
    if (rst) begin
      used          <= '0;
      pause_request <= 1'b0;
    end
  end
endmodule

`default_nettype wire
