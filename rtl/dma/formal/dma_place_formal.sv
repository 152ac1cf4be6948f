// dma_rx_place: where received frames are put.
//
//   - no write burst crosses a multiple of its greatest length, so none crosses 4 KiB, and all its beats have been pushed when it is;
//   - the bursts of a descriptor follow each other from its buffer's first byte, and never go beyond its buffer;
//   - each descriptor that is taken gives one status, or fails its queue without one if it was not to be read or not to be used; the status has its
//     address and queue, as many bytes as were put, and says whether a frame begins and ends;
//   - each beat that comes in is put once, unchanged and in its order, or belongs to the rest of a frame that is dropped; each frame that is dropped
//     gives one event, each other one a status with its end;
//   - nothing is pushed unless there was room two clocks before.
//
// Proved by induction, without a bound: for any frames, descriptors and states of two queues, and resets at any time, at 64 bits with
// addresses of 14 bits and bursts of 16 beats. One beat, chosen by the solver, is followed. App words are not part of it: they are
// compared with the reference. Assumed of descriptors what dma_desc_read says: a buffer that is of use has a size.
`default_nettype none

module dma_place_formal
  import nic_pkg::*;
#(
    localparam int ADDR_W  = 14,
    localparam int LINE_W  = ADDR_W - 6,
    localparam int WORD_W  = ADDR_W - 3,
    localparam int ENTRY_W = 5 + 20 + LINE_W
) (
    input wire               clk,
    input wire               rst,
    input wire [15:0]        patience,
    input wire               forever_,
    input wire [1:0]         run,
    input wire [1:0]         kill,
    input wire [ENTRY_W-1:0] look_entry,
    input wire [LINE_W-1:0]  look_line,
    input wire               look_available,
    input wire               room,
    input wire [63:0]        s_axis_tdata,
    input wire [2:0]         end_lane,      // the highest lane that is used, in a frame's last beat
    input wire               s_axis_tvalid,
    input wire               s_axis_tlast,
    input wire [3:0]         channel,
    input wire               pick           // follow this beat
);
  logic              fail, fail_queue, look_queue, pop, pop_queue, event_other;
  logic [1:0]        begun, event_drop;
  logic [3:0]        fail_kind;
  logic              beat_push, burst_push, burst_has_desc, desc_push, desc_queue, desc_sof, desc_eof, desc_bad, s_axis_tready;
  logic [63:0]       beat_data;
  logic [WORD_W-1:0] burst_word;
  logic [4:0]        burst_beats;
  logic [2:0]        burst_end;
  logic [LINE_W-1:0] desc_line;
  logic [25:0]       desc_len;

  // It begins with a reset; there may be others.
  logic first = 1'b1;
  always_ff @(posedge clk) first <= 1'b0;
  always @(posedge clk) if (first) assume (rst);

  wire [2:0] lane = s_axis_tlast ? end_lane : 3'd7;
  wire [7:0] s_axis_tkeep = 8'((9'd2 << lane) - 9'd1);
  rx_user_t  user;
  assign user = '{channel: channel, default: '0};

  dma_rx_place #(.QUEUES(2), .DATA_W(64), .ADDR_W(ADDR_W), .BURST(16), .ENTRY_W(ENTRY_W)) dut (
      .clk, .rst, .cfg_patience(patience), .cfg_forever(forever_), .run, .kill, .blocked(), .working(), .begun, .fail, .fail_queue,
      .fail_kind, .event_drop, .event_other, .look_queue, .look_entry, .look_line, .look_available, .pop, .pop_queue, .room,
      .beat_push, .beat_data, .burst_push, .burst_word, .burst_beats, .burst_end, .burst_has_desc, .desc_push, .desc_line,
      .desc_queue, .desc_sof, .desc_eof, .desc_bad, .desc_len, .desc_app(), .s_axis_tdata, .s_axis_tkeep, .s_axis_tvalid,
      .s_axis_tready, .s_axis_tlast, .s_axis_tuser(user)
  );

  localparam logic [2:0] HEAD = 3'd0, NEXT = 3'd1, LOOK = 3'd2, MOVE = 3'd3, FAIL = 3'd4, DROP = 3'd5;
  wire [2:0] state = dut.state;
  wire       takes = dut.in_valid && dut.in_ready;

  // ---------------------------------------------------------------- the descriptor that is filled

  typedef struct packed {
    logic              unreadable;   // or somebody else's: no status
    logic              nonsense;
    logic [19:0]       lines;
    logic [LINE_W-1:0] buffer;
    logic [LINE_W-1:0] line;
  } desc_t;
  desc_t looked, desc, desc_now;
  logic [WORD_W-1:0] next, next_now;     // first word of the next burst
  logic [22:0]       filled, filled_now; // words
  logic [4:0]        loose, loose_now;   // words of no burst yet
  logic              open = 1'b0, sof, queue;
  wire               queue_now = pop ? pop_queue : queue;
  wire               open_now  = pop || open;
  wire               unfit     = desc_now.unreadable || desc_now.nonsense;
  wire               closes    = desc_push || (fail && desc_now.unreadable);

  // As dma_desc_read says it: that it is unfit, and why, if nothing in it counts.
  wire entry_unfit = look_entry[ENTRY_W-1];
  wire entry_unreadable = |look_entry[ENTRY_W-2-:3];
  wire entry_single = look_entry[ENTRY_W-5];
  wire [19:0] entry_lines = look_entry[ENTRY_W-6-:20];
  always @(posedge clk) begin
    assume (entry_unfit || !entry_unreadable);
    assume (entry_unfit || entry_lines != 20'd0);
    assume (entry_single == (entry_lines == 20'd1));
  end

  // With what is pushed in this clock.
  always_comb begin
    desc_now   = pop ? looked : desc;
    filled_now = pop ? '0 : filled + 23'(beat_push);
    next_now   = pop ? {looked.buffer, 3'd0} : burst_push ? burst_word + WORD_W'(burst_beats) : next;
    loose_now  = pop ? '0 : loose + 5'(beat_push);
  end

  // ---------------------------------------------------------------- the beats

  logic       in_frame = 1'b0;           // of what was taken
  logic       put_before = 1'b0, put_end = 1'b0, was_drop = 1'b0, had_room = 1'b0, room_before = 1'b0;
  logic       follows = 1'b0;            // on its way
  logic [1:0] ahead;
  logic [63:0] data;
  logic        last;
  logic [2:0]  its_lane;
  logic        is_put = 1'b0;
  wire  [1:0]  waiting = 2'(dut.in_valid) + 2'(dut.next_valid) + 2'(dut.skid_valid);
  wire         ours = takes && follows && ahead == '0;

  always_ff @(posedge clk) begin
    looked <= {entry_unreadable, entry_unfit && !entry_unreadable, entry_lines, look_entry[LINE_W-1:0], look_line};
    desc   <= desc_now;
    next   <= next_now;
    filled <= filled_now;
    loose  <= burst_push ? '0 : loose_now;
    queue  <= queue_now;
    open   <= open_now && !closes;
    if (takes && state == MOVE && filled_now == '0) sof <= !in_frame;
    if (takes) in_frame <= !dut.in_last;
    put_before  <= takes && state == MOVE;
    put_end     <= takes && state == MOVE && dut.in_last;
    was_drop    <= state == DROP;
    had_room    <= room;
    room_before <= had_room;
    is_put      <= ours && state == MOVE;
    if (takes) ahead <= ahead - 2'd1;
    if (ours) follows <= 1'b0;
    if (s_axis_tvalid && s_axis_tready && pick && !follows) begin
      follows <= 1'b1;
      ahead   <= waiting - 2'(takes);
      {data, last, its_lane} <= {s_axis_tdata, s_axis_tlast, lane};
    end
    if (rst) {open, in_frame, put_before, put_end, was_drop, had_room, room_before, is_put, follows} <= '0;
  end

  // ---------------------------------------------------------------- what is promised

  always @(posedge clk) begin
    if (!rst && !first) begin
      // Bursts.
      if (burst_push) begin
        assert (burst_beats != 5'd0 && 6'(burst_word[3:0]) + 6'(burst_beats) <= 6'd16);
        assert (burst_word == next && burst_beats == loose_now);
      end
      if (beat_push) assert (open && !pop && !unfit && filled_now <= {desc.lines, 3'd0} && loose_now <= 5'd16);
      assert (beat_push || !burst_push);
      // Descriptors.
      if (pop) assert (!open);
      assert ((burst_push && burst_has_desc) == (desc_push && !desc_bad));
      assert (begun == (desc_push ? 2'd1 << desc_queue : 2'd0));
      if (desc_push) begin
        assert (open && !pop && desc_line == desc.line && desc_queue == queue);
        assert (desc_bad == unfit && !desc.unreadable);
        assert (desc_len == (desc_bad ? 26'd0 : {filled_now - 23'd1, 3'd0} + 26'(burst_end) + 26'd1));
        assert (desc_sof == (desc_bad ? !in_frame : sof));
        if (!desc_bad && !desc_eof) assert (filled_now == {desc.lines, 3'd0});
      end
      if (fail) assert (open && unfit && fail_queue == queue && fail_kind[3] == desc.unreadable && desc_push == !desc.unreadable);
      // Beats and frames.
      assert (beat_push == put_before && (desc_push && desc_eof) == put_end);
      if (is_put) assert (beat_data == data && (!last || (desc_push && desc_eof && burst_end == its_lane)));
      assert ((event_other || event_drop != 2'd0) == (state == DROP && !was_drop) && !(event_other && event_drop != 2'd0));
      // Room.
      if (beat_push || burst_push || desc_push) assert (room_before);
    end
  end

  // ---------------------------------------------------------------- what induction needs to know

  wire [76:0] skid_at = {dut.skid[72], dut.skid[71:64], dut.skid[63:0], 4'd0};
  wire [76:0] next_at = {dut.next_last, dut.next_keep, dut.next_data, 4'd0};
  wire [76:0] ours_at = {last, 8'((9'd2 << its_lane) - 9'd1), data, 4'd0};

  always @(posedge clk) begin
    if (!rst && !first) begin
      assert (state <= DROP);
      assert (dut.has_room == had_room && dut.going == (dut.moving && had_room));
      assert (dut.moving == (state == MOVE && !dut.unfit) && dut.dropping == (state == DROP));
      // The followed beat.
      if (dut.skid_valid) assert (dut.next_valid);
      if (follows) assert (ahead < waiting);
      if (follows && ahead == '0 && dut.in_valid) assert ({dut.in_last, dut.in_end, dut.in_data} == {last, its_lane, data});
      if (follows && dut.next_valid && ahead == 2'(dut.in_valid)) assert (next_at == ours_at);
      if (follows && dut.skid_valid && ahead == 2'(dut.in_valid) + 2'd1) assert (skid_at == ours_at);
      // Where in a frame.
      if (state == HEAD) assert (!in_frame);
      if (state == LOOK) assert (dut.is_first == !in_frame);
      if (state == NEXT) assert (in_frame && !dut.is_first);
      if (state == FAIL) assert (dut.is_first == !in_frame);
      if (state == MOVE) assert (dut.is_first == (filled_now == '0 ? !in_frame : sof));
      if (state == LOOK || state == MOVE || state == FAIL) assert (!event_other && event_drop == 2'd0);
      // The descriptor.
      if (pop) assert (state == MOVE && !beat_push && !burst_push && !desc_push && !fail);
      if (state == MOVE || state == FAIL) begin
        assert (open_now && !closes && dut.line == desc_now.line && dut.queue == queue_now);
        assert (dut.unfit == unfit);
      end else begin
        assert (!open_now || closes);
      end
      if (state == FAIL) assert (unfit && dut.is_first == !in_frame);
      if (unfit && open_now) assert (filled_now == '0);
      if (state == MOVE || state == FAIL) begin
        assert ((dut.dec_error || dut.slv_error || dut.complete) == desc_now.unreadable);
      end
      if (state == MOVE && !unfit) begin
        assert (dut.word == {desc_now.buffer, 3'd0} + filled_now[WORD_W-1:0]);
        assert (dut.burst_from == next_now && dut.word[WORD_W-1:4] == dut.burst_from[WORD_W-1:4]);
        assert (6'(dut.word[3:0]) == 6'(dut.burst_from[3:0]) + (burst_push ? 6'd0 : 6'(loose_now)));
        assert (dut.len == {filled_now, 3'd0});
        assert (dut.line_full == &dut.word[2:0] && dut.burst_full == &dut.word[3:0]);
        assert (dut.desc_full == (dut.line_full && dut.is_last_line));
        assert (dut.lines_left != '0 && dut.is_last_line == (dut.lines_left == 20'd1));
        assert (desc_now.lines - dut.lines_left == filled_now[22:3] && filled_now[22:3] < desc_now.lines);
      end
    end
  end
endmodule

`default_nettype wire
