// Collects what the transmit bursts bring: bytes from any address become frames without gaps, kept until they are whole.
//
//   read data -> [lanes, count] -> [turned] -> [joined with what is left over] -> memory -> m_axis
//
// A beat's bytes are turned (rotated) once, by the difference of where they lie and where they belong. What does not fit into the
// word that is being filled is already in its place for the next one.
//
// A frame is passed on when it is whole, so one that memory did not give in full is never sent. A frame of more than HOLD words
// cannot wait for its end: it is passed on as it comes, and if its end fails it is cut off there. A frame that is thrown away
// leaves a void word, so that what travels beside the frames stays in step.
`default_nettype none

module dma_tx_collect #(
    parameter int DATA_W  = 64,
    parameter int ADDR_W  = 40,
    parameter int QUEUE_W = 2,
    parameter int BURST   = 16,
    // Words of memory, a power of two, and how many a frame may have to be held back until it is whole.
    parameter int WORDS   = 512,
    parameter int HOLD    = 256,
    // Frames, descriptors and bursts under way.
    parameter int LIST    = 16,
    localparam int BYTES   = DATA_W / 8,
    localparam int LANE_W  = $clog2(BYTES),
    localparam int BEATS_W = $clog2(BURST) + 1,
    localparam int LINE_W  = ADDR_W - 6
) (
    input  wire                 clk,
    input  wire                 rst,

    // What was asked for.
    output logic                room_data,
    output logic                room_lists,
    output logic                room_frames,
    input  wire                 user_push,
    input  wire nic_pkg::tx_user_t user,
    input  wire                 desc_push,
    input  wire  [LINE_W-1:0]   desc_line,
    input  wire  [QUEUE_W-1:0]  desc_queue,
    input  wire  [25:0]         desc_len,
    input  wire                 desc_eof,
    input  wire                 desc_bad,
    input  wire                 burst_push,
    input  wire                 burst_mark,
    input  wire                 burst_has_desc,
    input  wire                 burst_eof,
    input  wire  [LANE_W-1:0]   burst_lane,
    input  wire  [LANE_W-1:0]   burst_end,
    input  wire  [BEATS_W-1:0]  burst_beats,

    // Data master, read data.
    input  wire  [DATA_W-1:0]   m_axi_rdata,
    input  wire  [1:0]          m_axi_rresp,
    input  wire                 m_axi_rlast,
    input  wire                 m_axi_rvalid,
    output logic                m_axi_rready,

    // A descriptor is done: taken when `done_pop`.
    output logic                done_valid,
    output logic [LINE_W-1:0]   done_line,
    output logic [QUEUE_W-1:0]  done_queue,
    output logic [25:0]         done_len,
    output logic                done_eof,
    output logic [2:0]          done_error,    // DECERR, SLVERR, internal
    input  wire                 done_pop,

    output logic                event_dropped, // pulse: a frame was thrown away
    output logic                event_cut,     // pulse: a frame was cut off

    output logic [DATA_W-1:0]   m_axis_tdata,
    output logic [BYTES-1:0]    m_axis_tkeep,
    output logic                m_axis_tvalid,
    input  wire                 m_axis_tready,
    output logic                m_axis_tlast,
    output nic_pkg::tx_user_t   m_axis_tuser
);
  import nic_pkg::*;

  localparam int PTR_W   = $clog2(WORDS);
  localparam int LIST_W  = $clog2(LIST);
  localparam int BURST_W = 3 + 2 * LANE_W + BEATS_W;

  if ((WORDS & (WORDS - 1)) != 0 || WORDS < 8 * BURST) begin : gen_bad_words
    $error("dma_tx_collect: WORDS must be a power of two, at least 8 bursts");
  end
  if (HOLD > WORDS - 4 * BURST) begin : gen_bad_hold
    $error("dma_tx_collect: HOLD must leave room for 4 bursts");
  end

  // ---------------------------------------------------------------- lists
  logic head_valid, head_mark, head_has_desc, head_eof;
  logic [LANE_W-1:0] head_lane, head_end;
  logic [BEATS_W-1:0] head_beats;
  logic head_pop;
  logic [LIST_W:0] burst_level;

  dma_fifo #(
      .WIDTH(BURST_W),
      .DEPTH(LIST)
  ) bursts (
      .clk(clk),
      .rst(rst),
      .push(burst_push),
      .push_data({burst_mark, burst_has_desc, burst_eof, burst_lane, burst_end, burst_beats}),
      .pop(head_pop),
      .valid(head_valid),
      .data({head_mark, head_has_desc, head_eof, head_lane, head_end, head_beats}),
      .level(burst_level)
  );

  logic list_valid, list_pop, list_bad;
  logic [LINE_W-1:0] list_line;
  logic [QUEUE_W-1:0] list_queue;
  logic [25:0] list_len;
  logic list_eof;
  logic [LIST_W:0] desc_level, done_level;

  dma_fifo #(
      .WIDTH(LINE_W + QUEUE_W + 28),
      .DEPTH(LIST)
  ) descriptors (
      .clk(clk),
      .rst(rst),
      .push(desc_push),
      .push_data({desc_line, desc_queue, desc_len, desc_eof, desc_bad}),
      .pop(list_pop),
      .valid(list_valid),
      .data({list_line, list_queue, list_len, list_eof, list_bad}),
      .level(desc_level)
  );

  // ---------------------------------------------------------------- lanes
  // Set while the pipeline stands still for a clock: the last beat of a frame fills two words.
  logic spill;
  wire  step = !spill;
  logic first_beat;

  wire take  = m_axi_rvalid && m_axi_rready;
  wire mark  = head_valid && head_mark && step;
  assign m_axi_rready = head_valid && !head_mark && step;
  assign head_pop     = mark || (take && m_axi_rlast);

  // Bytes that wait for a whole word, behind the beat that is taken now.
  logic [LANE_W-1:0] filled;
  wire [LANE_W-1:0] lane  = first_beat ? head_lane : '0;
  wire [LANE_W:0]   count = m_axi_rlast ? (LANE_W + 1)'(head_end) - (LANE_W + 1)'(lane) + 1'b1
                                        : (LANE_W + 1)'(BYTES) - (LANE_W + 1)'(lane);
  wire              ends  = take && m_axi_rlast;

  typedef struct packed {
    logic              valid;
    logic              mark;
    logic              has_desc;
    logic              eof;
    logic              burst_end;
    logic [1:0]        error;
    logic [LANE_W:0]   start;   // where its first byte belongs
    logic [LANE_W+1:0] total;   // bytes with it, from the beginning of the word
    logic [BEATS_W:0]  release_; // words that had been set aside for the burst
  } beat_t;

  // What is needed of it behind the turn, made out before.
  logic is_full, overflows, is_wrong;

  beat_t taken, turned;
  logic [DATA_W-1:0] taken_data, turned_data;
  logic [LANE_W-1:0] turn;

  always_ff @(posedge clk) begin
    if (step) begin
      taken.valid     <= take || mark;
      taken.mark      <= mark;
      taken.has_desc  <= (ends || mark) && head_has_desc;
      taken.eof       <= (ends || mark) && head_eof;
      taken.burst_end <= ends || mark;
      taken.error     <= take && m_axi_rresp[1] ? {m_axi_rresp[0], !m_axi_rresp[0]} : 2'b00;
      taken.start     <= (LANE_W + 1)'(filled);
      taken.total     <= (LANE_W + 2)'(filled) + (mark ? '0 : (LANE_W + 2)'(count));
      taken.release_  <= (BEATS_W + 1)'(head_beats) + (BEATS_W + 1)'(head_eof);
      taken_data      <= m_axi_rdata;
      turn            <= lane - filled;
      if (take) begin
        first_beat <= m_axi_rlast;
        filled     <= m_axi_rlast && head_eof ? '0 : filled + count[LANE_W-1:0];
      end
      if (mark && head_eof) filled <= '0;

      turned    <= taken;
      is_full   <= taken.total >= (LANE_W + 2)'(BYTES);
      overflows <= taken.eof && taken.total > (LANE_W + 2)'(BYTES);
      is_wrong  <= taken.mark || |taken.error;
      for (int i = 0; i < BYTES; i++) turned_data[8*i+:8] <= taken_data[8*((i+int'(turn))%BYTES)+:8];
    end
    if (rst) begin
      taken.valid  <= 1'b0;
      turned.valid <= 1'b0;
      first_beat   <= 1'b1;
      filled       <= '0;
    end
  end

  // ---------------------------------------------------------------- joined
  logic [DATA_W-1:0] rest;      // bytes that wait
  logic [DATA_W-1:0] joined;
  logic spilling;               // the second word of the last beat
  assign spill = turned.valid && overflows && !spilling;

  always_comb begin
    for (int i = 0; i < BYTES; i++) begin
      joined[8*i+:8] = (LANE_W + 1)'(i) < turned.start ? rest[8*i+:8] : turned_data[8*i+:8];
    end
  end

  wire acts      = turned.valid && step;
  wire word_last = turned.eof && !spill;
  // The descriptor's own error, and the frame's.
  logic [1:0] desc_error;
  logic       frame_error;
  wire  [1:0] error_now = desc_error | turned.error;
  wire        is_bad    = frame_error || is_wrong;

  // ---------------------------------------------------------------- memory
  (* no_rw_check *) logic [DATA_W+LANE_W+1:0] memory [WORDS];
  logic [DATA_W+LANE_W+1:0] read_word, out_word;
  logic [PTR_W:0] put_at, whole_to, get_at, level;
  logic passing;
  logic [PTR_W:0] held;
  logic           full_hold;    // held is HOLD

  // A word goes into memory: a full one, the last one, or in place of a frame that is thrown away.
  wire frame_end   = turned.valid && turned.eof && step;
  wire throws_away = frame_end && is_bad && !passing;
  wire puts_word   = turned.valid && (spill || (step && (is_full || turned.eof)));
  wire puts        = puts_word && !(turned.mark && !turned.eof);
  wire [PTR_W:0] put_to = throws_away ? whole_to : put_at;
  // Bytes in the last word, less one. A mark may find none: then one byte of whatever is there ends the frame that was cut off.
  wire [LANE_W-1:0] last_lane = turned.mark ? '0 : LANE_W'(turned.total - 1'b1);
  // In a word that is not a frame's last, the count says whether it is void.
  wire [LANE_W-1:0] tag = throws_away ? LANE_W'(1) : word_last ? last_lane : '0;

  always_ff @(posedge clk) begin
    if (puts) memory[put_to[PTR_W-1:0]] <= {throws_away, word_last && !throws_away, tag, spilling ? turned_data : joined};
  end

  // ---------------------------------------------------------------- room
  // What is set aside follows a clock or two late; a burst comes every third clock at most.
  logic [PTR_W:0] set_aside, used;
  logic [BEATS_W:0] asked, freed;
  logic [LIST_W:0] frames_open;
  logic [LIST_W+1:0] desc_open;
  logic              done_popped;
  logic read_valid, out_valid, out_ready, out_frame_end;
  wire  frees = acts && turned.burst_end;

  always_ff @(posedge clk) begin
    level     <= put_at - get_at;
    asked     <= burst_push ? (BEATS_W + 1)'(burst_beats) + (BEATS_W + 1)'(burst_eof) : '0;
    freed     <= frees ? turned.release_ : '0;
    set_aside <= set_aside + (PTR_W + 1)'(asked) - (PTR_W + 1)'(freed);
    used      <= level + set_aside;
    // Two bursts may be added before this is seen.
    room_data   <= used <= (PTR_W + 1)'(WORDS - 3 * (BURST + 1));
    room_lists  <= burst_level < (LIST_W + 1)'(LIST - 4) && desc_open < (LIST_W + 2)'(LIST - 3);
    room_frames <= frames_open < (LIST_W + 1)'(LIST - 2);
    frames_open <= frames_open + (LIST_W + 1)'(user_push) - (LIST_W + 1)'(out_frame_end);
    desc_open   <= desc_open + (LIST_W + 2)'(desc_push) - (LIST_W + 2)'(done_popped);
    done_popped <= done_pop;

    spilling <= spill;
    if (acts || spill) begin
      if (is_full || spilling) rest <= turned_data;
      else rest <= joined;
    end
    desc_error  <= acts && turned.has_desc ? 2'b00 : acts ? error_now : desc_error;
    frame_error <= !frame_end && (frame_error || (acts && |turned.error));

    // Frames become visible when whole, or word by word.
    event_dropped <= throws_away;
    event_cut     <= frame_end && is_bad && passing;
    if (puts) begin
      put_at <= put_to + 1'b1;
      if (frame_end) held <= '0;
      else if (!full_hold) held <= held + 1'b1;
      full_hold <= !frame_end && (full_hold || held == (PTR_W + 1)'(HOLD - 1));
      if (frame_end) passing <= 1'b0;
      else if (full_hold) passing <= 1'b1;
      if (frame_end || passing || full_hold) whole_to <= put_to + 1'b1;
    end
    if (rst) begin
      set_aside   <= '0;
      asked       <= '0;
      freed       <= '0;
      used        <= '0;
      frames_open <= '0;
      desc_open   <= '0;
      done_popped <= 1'b0;
      room_data   <= 1'b0;
      room_lists  <= 1'b0;
      room_frames <= 1'b0;
      level       <= '0;
      spilling    <= 1'b0;
      desc_error  <= 2'b00;
      frame_error <= 1'b0;
      put_at      <= '0;
      whole_to    <= '0;
      passing     <= 1'b0;
      held        <= '0;
      full_hold   <= 1'b0;
      event_dropped <= 1'b0;
      event_cut     <= 1'b0;
    end
  end

  // ---------------------------------------------------------------- descriptors that are done
  assign list_pop = acts && turned.has_desc;

  dma_fifo #(
      .WIDTH(LINE_W + QUEUE_W + 30),
      .DEPTH(LIST)
  ) done (
      .clk(clk),
      .rst(rst),
      .push(list_pop),
      .push_data({list_line, list_queue, list_len, list_eof, error_now, list_bad}),
      .pop(done_pop),
      .valid(done_valid),
      .data({done_line, done_queue, done_len, done_eof, done_error}),
      .level(done_level)
  );

  // ---------------------------------------------------------------- out
  tx_user_t users [LIST];
  logic [LIST_W-1:0] user_in, user_out;

  wire out_void = out_word[DATA_W+LANE_W+1];
  wire out_last = out_word[DATA_W+LANE_W];
  wire [LANE_W-1:0] out_lane = out_word[DATA_W+:LANE_W];
  wire advance  = !out_valid || out_void || out_ready;
  assign out_frame_end = out_valid && advance && (out_void || out_last);

  always_ff @(posedge clk) begin
    if (user_push) users[user_in] <= user;
    // A block memory gives its word late in the clock: it is looked at in the next one.
    if (advance) begin
      read_word <= memory[get_at[PTR_W-1:0]];
      out_word  <= read_word;
    end
  end

  always_ff @(posedge clk) begin
    if (user_push) user_in <= user_in + 1'b1;
    if (out_frame_end) user_out <= user_out + 1'b1;
    if (advance) begin
      read_valid <= get_at != whole_to;
      out_valid  <= read_valid;
      if (get_at != whole_to) get_at <= get_at + 1'b1;
    end
    if (rst) begin
      user_in    <= '0;
      user_out   <= '0;
      read_valid <= 1'b0;
      out_valid  <= 1'b0;
      get_at     <= '0;
    end
  end

  logic [BYTES-1:0] out_keep;
  always_comb begin
    for (int i = 0; i < BYTES; i++) out_keep[i] = !out_last || LANE_W'(i) <= out_lane;
  end

  axis_register #(
      .DATA_W(DATA_W),
      .USER_W($bits(tx_user_t))
  ) slice (
      .clk(clk),
      .rst(rst),
      .s_axis_tdata(out_word[DATA_W-1:0]),
      .s_axis_tkeep(out_keep),
      .s_axis_tvalid(out_valid && !out_void),
      .s_axis_tready(out_ready),
      .s_axis_tlast(out_last),
      .s_axis_tuser(users[user_out]),
      .m_axis_tdata(m_axis_tdata),
      .m_axis_tkeep(m_axis_tkeep),
      .m_axis_tvalid(m_axis_tvalid),
      .m_axis_tready(m_axis_tready),
      .m_axis_tlast(m_axis_tlast),
      .m_axis_tuser(m_axis_tuser)
  );

  wire unused = &{1'b0, list_valid, desc_level, done_level, 1'b0};
endmodule

`default_nettype wire
