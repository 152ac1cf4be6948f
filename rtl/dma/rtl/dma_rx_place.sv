// Places received frames into the buffers of their queue's descriptors.
//
//   HEAD (whose frame is it) -> LOOK (its oldest descriptor) -> MOVE (a beat a clock) -+-> HEAD  the frame ends
//                                |                                                     +-> NEXT  the buffer is full: the same
//                                |                                                     |         queue's next descriptor -> LOOK
//                                |                                                     +-> LOOK  it ends, and the next one is here
//                                |                                                     +-> FAIL  the descriptor makes no sense
//                                +-> DROP (to the frame's end: no descriptor in time) -> HEAD          -> DROP
//
// Buffers begin at multiples of 64 and count in multiples of 64, so no byte has to change its lane. A write burst ends at a
// multiple of its greatest length, so none crosses 4 KiB; its length is known before it begins, as beats wait in a FIFO.
//
// A queue without descriptors holds up all others: for how long, `cfg_patience` and `cfg_forever` say.
`default_nettype none

module dma_rx_place #(
    parameter int QUEUES = 4,
    parameter int DATA_W = 64,
    parameter int ADDR_W = 40,
    parameter int BURST  = 16,
    parameter int ENTRY_W = 1,
    // 0: the seed's; 1: axienet's.
    parameter int APP_LAYOUT = 0,
    localparam int QUEUE_W = QUEUES > 1 ? $clog2(QUEUES) : 1,
    localparam int LINE_W  = ADDR_W - 6,
    localparam int BYTES   = DATA_W / 8,
    localparam int LANE_W  = $clog2(BYTES),
    localparam int BEATS_W = $clog2(BURST) + 1,
    localparam int WORD_W  = ADDR_W - LANE_W
) (
    input  wire                 clk,
    input  wire                 rst,

    input  wire  [15:0]         cfg_patience,  // so many times 64 clocks; 0: drop at once
    input  wire                 cfg_forever,

    // Queues.
    input  wire  [QUEUES-1:0]   run,
    input  wire  [QUEUES-1:0]   kill,
    output logic [QUEUES-1:0]   blocked,
    output logic [QUEUES-1:0]   working,
    output logic [QUEUES-1:0]   begun,         // pulse: a descriptor whose status will be written
    output logic                fail,          // pulse: queue fail_queue stops
    output logic [QUEUE_W-1:0]  fail_queue,
    output logic [3:0]          fail_kind,     // descriptor, DECERR, SLVERR, internal
    output logic [QUEUES-1:0]   event_drop,    // pulse: a frame of the queue was dropped
    output logic                event_other,   // pulse: a frame for a queue that does not exist was dropped

    // Descriptors: the oldest one of look_queue, if there is one, is on show a clock later.
    output logic [QUEUE_W-1:0]  look_queue,
    input  wire  [ENTRY_W-1:0]  look_entry,
    input  wire  [LINE_W-1:0]   look_line,
    input  wire                 look_available,
    output logic                pop,
    output logic [QUEUE_W-1:0]  pop_queue,

    // Room in the FIFOs behind: what is pushed comes two clocks later.
    input  wire                 room,

    // Beats and bursts for the writer.
    output logic                beat_push,
    output logic [DATA_W-1:0]   beat_data,
    output logic                burst_push,
    output logic [WORD_W-1:0]   burst_word,    // address of the first beat
    output logic [BEATS_W-1:0]  burst_beats,
    output logic [LANE_W-1:0]   burst_end,     // last lane of the last beat
    output logic                burst_has_desc,// the last burst of its descriptor

    // A descriptor is filled.
    output logic                desc_push,
    output logic [LINE_W-1:0]   desc_line,
    output logic [QUEUE_W-1:0]  desc_queue,
    output logic                desc_sof,
    output logic                desc_eof,
    output logic                desc_bad,
    output logic [25:0]         desc_len,
    output logic [159:0]        desc_app,

    input  wire  [DATA_W-1:0]   s_axis_tdata,
    input  wire  [BYTES-1:0]    s_axis_tkeep,
    input  wire                 s_axis_tvalid,
    output logic                s_axis_tready,
    input  wire                 s_axis_tlast,
    input  wire nic_pkg::rx_user_t s_axis_tuser
);
  import nic_pkg::*;

  // Beats in 64 bytes.
  localparam int LINE_BEATS_W = 6 - LANE_W;

  // ---------------------------------------------------------------- in
  // The beat behind `in`: whose frame is next is known before the one in hand has ended.
  logic [DATA_W-1:0] next_data;
  logic [BYTES-1:0] next_keep;
  logic next_valid, next_ready, next_last;
  rx_user_t next_user;

  logic [DATA_W-1:0] in_data;
  logic [LANE_W-1:0] in_end, next_end;
  logic in_valid, in_ready, in_last;
  rx_user_t in_user;

  // A register slice. Whether its second word is needed is known late, so it is loaded in any case.
  localparam int SLICE_W = DATA_W + BYTES + 1 + $bits(rx_user_t);
  logic [SLICE_W-1:0] outgoing, skid;
  logic skid_valid;
  wire  [SLICE_W-1:0] incoming = {s_axis_tuser, s_axis_tlast, s_axis_tkeep, s_axis_tdata};
  assign {next_user, next_last, next_keep, next_data} = outgoing;
  assign s_axis_tready = !skid_valid;

  always_ff @(posedge clk) begin
    if (!skid_valid) skid <= incoming;
    if (!next_valid || next_ready) begin
      outgoing   <= skid_valid ? skid : incoming;
      next_valid <= skid_valid || s_axis_tvalid;
      skid_valid <= 1'b0;
    end else if (s_axis_tvalid) begin
      skid_valid <= 1'b1;
    end
    if (rst) begin
      next_valid <= 1'b0;
      skid_valid <= 1'b0;
    end
  end

  always_comb begin
    next_end = '0;
    for (int i = 0; i < BYTES; i++) if (next_keep[i]) next_end = LANE_W'(i);
  end

  assign next_ready = !in_valid || in_ready;
  always_ff @(posedge clk) begin
    if (next_ready) begin
      in_data  <= next_data;
      in_end   <= next_end;
      in_last  <= next_last;
      in_user  <= next_user;
      in_valid <= next_valid;
    end
    if (rst) in_valid <= 1'b0;
  end

  // ---------------------------------------------------------------- states
  typedef enum logic [2:0] {HEAD, NEXT, LOOK, MOVE, FAIL, DROP} state_t;
  state_t state;

  logic [QUEUE_W-1:0] queue;
  logic is_first;                      // the frame's first descriptor
  wire  exists      = 32'(in_user.channel) < QUEUES;
  wire  next_exists = 32'(next_user.channel) < QUEUES;

  always_comb begin
    look_queue = queue;
    if (state == HEAD && QUEUES > 1) look_queue = in_user.channel[QUEUE_W-1:0];
    if (state == MOVE && QUEUES > 1) look_queue = next_user.channel[QUEUE_W-1:0];
  end

  // The descriptor that is looked at: in LOOK.
  logic look_unfit, look_dec, look_slv, look_complete, look_single;
  logic [19:0] look_room;
  logic [ADDR_W-7:0] look_buffer;
  assign {look_unfit, look_dec, look_slv, look_complete, look_single, look_room, look_buffer} = look_entry;

  wire looks  = state == LOOK;
  // Known a clock before LOOK, so from what the queue was like up to two clocks ago.
  logic [QUEUES-1:0] may_begin;
  logic begins, goes_on;
  wire may    = is_first ? begins : goes_on;
  wire has    = looks && may && look_available;

  // Patience.
  logic [5:0] tick;
  logic [15:0] waited;
  logic tired;

  // The descriptor that is being filled.
  logic [LINE_W-1:0] line;
  logic dec_error, slv_error, complete, unfit;
  logic [19:0] lines_left;             // 64-byte pieces of the buffer, with the one that is being filled
  logic is_last_line;
  logic [WORD_W-1:0] word, burst_from;
  logic [25:0] len;

  // What the state and the place say, a register each, as much depends on them: in MOVE with a descriptor that fits; and with
  // room; in DROP; the beat in hand is the last of its 64 bytes, of its descriptor, of its burst. A burst is full
  // where it reaches the multiple of its greatest length.
  logic moving, next_moving, going, dropping;
  logic line_full, desc_full, burst_full;
  logic has_room;
  wire moves      = going && in_valid;
  wire desc_ends  = in_last || desc_full;
  assign in_ready = going || dropping;
  assign next_moving = looks ? has && !look_unfit : moving && !(moves && desc_ends);

  wire [WORD_W-1:0] first_word = {look_buffer, {LINE_BEATS_W{1'b0}}};
  wire [WORD_W-1:0] next_word  = word + 1'b1;
  // Beats of this burst before the one in hand: it stays between two multiples of its greatest length.
  wire [BEATS_W-2:0] beats_before = word[BEATS_W-2:0] - burst_from[BEATS_W-2:0];
  wire              next_line_full    = LINE_BEATS_W == 0 || &next_word[(LINE_BEATS_W > 0 ? LINE_BEATS_W : 1)-1:0];
  wire              next_is_last_line = line_full ? lines_left == 20'd2 : is_last_line;

  always_comb begin
    working = '0;
    // A frame's first descriptor has not been taken before MOVE.
    if (state == NEXT || (state == LOOK && !is_first) || state == MOVE || state == FAIL) working[queue] = 1'b1;
  end

  // App words.
  logic [159:0] app;
  wire [25:0] frame_piece = len + 26'(in_end) + 26'd1;
  logic [15:0] frame_len;
  wire [15:0] frame_total = frame_len + frame_piece[15:0];
  wire [31:0] app1 = {in_user.seg_size, in_user.seg_count, in_user.channel, in_user.error, in_user.hash_type};
  if (APP_LAYOUT == 0) begin : gen_seed
    assign app = {29'd0, in_user.csum_status, 16'd0, in_user.csum_raw, in_user.arrival, app1, in_user.hash};
  end else begin : gen_axienet
    assign app = {in_user.arrival[15:0], frame_total, 16'd0, in_user.csum_raw, 26'd0, in_user.csum_status, 3'd0,
                  app1, in_user.hash};
  end
  wire unused = &{1'b0, in_user, frame_total, 1'b0};

  always_ff @(posedge clk) begin
    pop         <= 1'b0;
    fail        <= 1'b0;
    beat_push   <= 1'b0;
    burst_push  <= 1'b0;
    desc_push   <= 1'b0;
    begun       <= '0;
    event_drop  <= '0;
    event_other <= 1'b0;
    may_begin   <= run & ~blocked;
    begins      <= may_begin[look_queue];
    goes_on     <= !kill[look_queue];
    has_room    <= room;
    moving      <= next_moving;
    going       <= next_moving && room;

    // How long the frame at the head has waited. The clock before LOOK has cleared it, and `tired` with it.
    tick  <= tick + 1'b1;
    tired <= !cfg_forever && waited >= cfg_patience;
    if (!looks || has) waited <= '0;
    else if (&tick && !tired) waited <= waited + 1'b1;

    case (state)
      HEAD: begin
        is_first  <= 1'b1;
        frame_len <= '0;
        queue     <= look_queue;
        if (in_valid) begin
          event_other <= !exists;
          state       <= exists ? LOOK : DROP;
          dropping    <= !exists;
        end
      end
      NEXT: state <= LOOK;
      LOOK: begin
        line         <= look_line;
        dec_error    <= look_dec;
        slv_error    <= look_slv;
        complete     <= look_complete;
        unfit        <= look_unfit;
        lines_left   <= look_room;
        is_last_line <= look_single;
        line_full    <= LINE_BEATS_W == 0;
        desc_full    <= LINE_BEATS_W == 0 && look_single;
        burst_full   <= &first_word[BEATS_W-2:0];
        word         <= first_word;
        burst_from   <= first_word;
        len          <= '0;
        pop_queue    <= queue;
        if (has) begin
          pop   <= 1'b1;
          state <= MOVE;
        end else if (!may || tired) begin
          event_drop[queue] <= 1'b1;
          state             <= DROP;
          dropping          <= 1'b1;
        end
      end
      MOVE: if (unfit) state <= FAIL;
      // Its status needs room as any other does.
      FAIL: if (has_room) begin
        blocked[queue]    <= 1'b1;
        fail              <= 1'b1;
        fail_queue        <= queue;
        fail_kind         <= {dec_error || slv_error || complete, dec_error, !dec_error && slv_error,
                              !(dec_error || slv_error)};
        event_drop[queue] <= 1'b1;
        desc_line         <= line;
        desc_queue        <= queue;
        desc_sof          <= is_first;
        desc_eof          <= 1'b0;
        desc_len          <= '0;
        desc_bad          <= 1'b1;
        // Its status says so, if it was readable and not somebody else's.
        desc_push    <= !(dec_error || slv_error || complete);
        begun[queue] <= !(dec_error || slv_error || complete);
        state        <= DROP;
        dropping     <= 1'b1;
      end
      default: if (in_valid && in_last) begin
        state    <= HEAD;
        dropping <= 1'b0;
      end
    endcase

    // In MOVE, with a descriptor that fits.
    if (moves) begin
      beat_push <= 1'b1;
      beat_data <= in_data;
      word      <= next_word;
      len       <= len + 26'(BYTES);
      if (line_full) lines_left <= lines_left - 1'b1;
      is_last_line <= next_is_last_line;
      line_full    <= next_line_full;
      desc_full    <= next_line_full && next_is_last_line;
      burst_full   <= &next_word[BEATS_W-2:0];
      if (burst_full || desc_ends) begin
        burst_push     <= 1'b1;
        burst_word     <= burst_from;
        burst_beats    <= BEATS_W'(beats_before) + 1'b1;
        burst_end      <= in_end;
        burst_has_desc <= desc_ends;
        burst_from     <= next_word;
      end
      if (desc_ends) begin
        desc_push    <= 1'b1;
        begun[queue] <= 1'b1;
        desc_bad     <= 1'b0;
        is_first     <= 1'b0;
        frame_len    <= frame_total;
        state        <= in_last ? HEAD : NEXT;
        // Straight to the next frame's descriptor, unless this frame's is only now being taken away.
        if (in_last && next_valid && next_exists && !pop) begin
          is_first  <= 1'b1;
          frame_len <= '0;
          queue     <= look_queue;
          state     <= LOOK;
        end
      end
      desc_line  <= line;
      desc_queue <= queue;
      desc_sof   <= is_first;
      desc_eof   <= in_last;
      desc_len   <= frame_piece;
      desc_app   <= app;
    end

    for (int q = 0; q < QUEUES; q++) if (kill[q] && !working[q]) blocked[q] <= 1'b0;
    if (rst) begin
      state       <= HEAD;
      has_room    <= 1'b0;
      moving      <= 1'b0;
      going       <= 1'b0;
      dropping    <= 1'b0;
      queue       <= '0;
      blocked     <= '0;
      pop         <= 1'b0;
      fail        <= 1'b0;
      beat_push   <= 1'b0;
      burst_push  <= 1'b0;
      desc_push   <= 1'b0;
      begun       <= '0;
      event_drop  <= '0;
      event_other <= 1'b0;
      waited      <= '0;
      tick        <= '0;
      tired       <= 1'b0;
    end
  end
endmodule

`default_nettype wire
