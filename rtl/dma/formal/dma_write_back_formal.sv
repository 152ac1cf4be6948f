// dma_write_back: what the descriptor master writes. Part 0:
//
//   - AW and W stay until they are taken; WLAST stands where AWLEN says; no data is offered but that of the write in hand; no write leaves
//     its descriptor, so none crosses 4 KiB; data is popped once for each receive status that is not of a bad descriptor;
//   - no list overflows: those of receive descriptors and of answers.
//
// Part 1: each transmit descriptor gets one status that says what was said of it, and one `done` with all errors there were.
//
// Proved by induction, without a bound: for any descriptors, any delays of the bus and of the data, and resets at any time, with lists of 8
// (16 in the engine) and addresses of 14 bits. Assumed: descriptors are pushed as dma.sv does it, two registers behind rx_room
// (dma_place_formal.sv proves its part), and what waits at an input stays there.
//
// Parts 2 to 4 state the rest and have not been brought to an end: how many app words are where; that each receive descriptor gets one status,
// in their order, after its app words were answered; what app words and status say. No .sby file runs them.
`default_nettype none

module dma_write_back_formal #(
    // What is proved: 0 bus and room, 1 transmit, 2 how many app words, 3 the order of receive's writes and answers, 4 what they say.
    parameter int PART = 0,
    localparam int ADDR_W = 14,
    localparam int LINE_W = ADDR_W - 6,
    localparam int LIST   = 8
) (
    input wire              clk,
    input wire              rst,
    input wire              tx_valid,
    input wire [LINE_W-1:0] tx_line,
    input wire              tx_queue,
    input wire [25:0]       tx_len,
    input wire              tx_eof,
    input wire [2:0]        tx_error,
    input wire              rx_push,
    input wire [LINE_W-1:0] rx_line,
    input wire              rx_queue,
    input wire              rx_sof,
    input wire              rx_eof,
    input wire              rx_bad,
    input wire [25:0]       rx_len,
    input wire [159:0]      rx_app,
    input wire              data_valid,
    input wire [1:0]        data_error,
    input wire              aw_ready,
    input wire              w_ready,
    input wire [1:0]        bresp,
    input wire              bvalid,
    input wire              pick,        // follow this receive descriptor
    input wire              pick_tx      // follow this transmit descriptor
);
  logic              tx_pop, rx_room, data_pop, done, done_is_rx, done_queue, done_frame;
  logic [3:0]        done_error;
  logic [ADDR_W-1:0] awaddr;
  logic [7:0]        awlen;
  logic              awvalid, wlast, wvalid, bready;
  logic [127:0]      wdata;
  logic [15:0]       wstrb;

  // It begins with a reset; there may be others.
  logic first = 1'b1;
  always_ff @(posedge clk) first <= 1'b0;
  always @(posedge clk) if (first) assume (rst);

  dma_write_back #(.QUEUES(2), .ADDR_W(ADDR_W), .LIST(LIST)) dut (
      .clk, .rst, .tx_valid, .tx_line, .tx_queue, .tx_len, .tx_eof, .tx_error, .tx_pop, .rx_room, .rx_push, .rx_line, .rx_queue,
      .rx_sof, .rx_eof, .rx_bad, .rx_len, .rx_app, .data_valid, .data_error, .data_pop, .done, .done_is_rx, .done_queue,
      .done_frame, .done_error, .m_axi_awaddr(awaddr), .m_axi_awlen(awlen), .m_axi_awvalid(awvalid), .m_axi_awready(aw_ready),
      .m_axi_wdata(wdata), .m_axi_wstrb(wstrb), .m_axi_wlast(wlast), .m_axi_wvalid(wvalid), .m_axi_wready(w_ready),
      .m_axi_bresp(bresp), .m_axi_bvalid(bvalid), .m_axi_bready(bready)
  );

  dma_stays #(.WIDTH(ADDR_W + 8)) aw_stays (.clk, .rst, .valid(awvalid), .ready(aw_ready), .payload({awaddr, awlen}));
  dma_stays #(.WIDTH(145)) w_stays (.clk, .rst, .valid(wvalid), .ready(w_ready), .payload({wdata, wstrb, wlast}));
  dma_stays #(.WIDTH(LINE_W + 31), .ASSUME(1)) tx_stays (
      .clk, .rst, .valid(tx_valid), .ready(tx_pop), .payload({tx_line, tx_queue, tx_len, tx_eof, tx_error})
  );
  dma_stays #(.WIDTH(2), .ASSUME(1)) data_stays (.clk, .rst, .valid(data_valid), .ready(data_pop), .payload(data_error));

  // As in dma.sv, and the register of dma_rx_place.
  logic room_1, room_2;
  always_ff @(posedge clk) begin
    room_1 <= rx_room && !rst;
    room_2 <= room_1 && !rst;
  end
  always @(posedge clk) if (rx_push) assume (room_2);

  // ---------------------------------------------------------------- writes, as they are offered, and answers, as they are taken

  localparam logic [1:0] APP = 2'd0, RX_STATUS = 2'd1, TX_STATUS = 2'd2;
  wire       aw_new = awvalid && !aw_stays.waits;
  wire [1:0] what   = awaddr[5] ? APP : wstrb[8] ? RX_STATUS : TX_STATUS;
  wire       is_app = aw_new && what == APP;
  wire       is_rx  = aw_new && what == RX_STATUS;
  wire       is_tx  = aw_new && what == TX_STATUS;
  wire       answered = bvalid && bready;
  wire [1:0] error    = bresp[1] ? {bresp[0], !bresp[0]} : 2'b00;

  // Descriptors pushed whose status was not offered before this clock; offers that were not answered.
  logic [4:0] held = '0, unanswered = '0;
  // App words pushed, offered, answered, and followed by their status, modulo 32.
  logic [4:0] apps_in = '0, apps_out = '0, apps_there = '0, apps_used = '0;
  wire  [4:0] inside_now = held - 5'(is_rx);
  wire  [4:0] apps_gone  = apps_out + 5'(is_app);
  // What was popped in the clock before an offer.
  logic       popped_data, popped_tx;
  logic [1:0] popped_error;

  // Data beats of the write in hand: how many were taken.
  logic       busy = 1'b0, beat = 1'b0, ours = 1'b0;
  logic [7:0] length;
  wire  [7:0] length_now = aw_new ? awlen : length;
  wire        takes      = wvalid && w_ready;

  // ---------------------------------------------------------------- the followed descriptors

  // A write that is to come; that was offered and not answered; that was answered.
  localparam logic [1:0] NONE = 2'd0, TO_COME = 2'd1, OFFERED = 2'd2, OVER = 2'd3;
  logic [1:0] app_state = NONE, rx_state = NONE, tx_state = NONE;
  // So many go before.
  logic [4:0] app_number, rx_ahead, app_turn, rx_turn, tx_turn;
  logic [1:0] app_error, rx_error;
  // The clock behind the answer.
  logic       app_echo = 1'b0, rx_echo = 1'b0, tx_echo = 1'b0, any_echo = 1'b0;
  logic [1:0] echo_error;

  logic [LINE_W-1:0] line, sent_line;
  logic              queue, sof, eof, bad, sent_queue, sent_eof;
  logic [25:0]       len, sent_len;
  logic [159:0]      app;
  logic [2:0]        sent_error;

  wire begins    = rx_push && pick && rx_state == NONE;
  wire begins_tx = tx_pop && pick_tx && tx_state == NONE;
  wire our_app = is_app && app_state == TO_COME && apps_out == app_number;
  wire our_rx  = is_rx && rx_state == TO_COME && rx_ahead == '0;
  wire our_tx  = is_tx && tx_state == TO_COME;
  wire ours_now = aw_new ? our_app : ours;
  wire app_answered = answered && app_state == OFFERED && app_turn == '0;
  wire rx_answered  = answered && rx_state == OFFERED && rx_turn == '0;
  wire tx_answered  = answered && tx_state == OFFERED && tx_turn == '0;

  always_ff @(posedge clk) begin
    popped_data  <= data_pop && !rst;
    popped_tx    <= tx_pop && !rst;
    popped_error <= data_error;
    held       <= inside_now + 5'(rx_push);
    apps_in      <= apps_in + 5'(rx_push && rx_eof);
    apps_out     <= apps_gone;
    apps_there   <= apps_there + 5'(dut.app_push);
    apps_used    <= apps_used + 5'(dut.app_pop);
    unanswered   <= unanswered + 5'(aw_new) - 5'(answered);
    length       <= length_now;
    ours         <= ours_now;
    if (aw_new) busy <= 1'b1;
    if (takes) beat <= !wlast;
    if (takes && wlast) busy <= 1'b0;

    // To come, and so many before it.
    if (is_rx) rx_ahead <= rx_ahead - 5'd1;
    if (begins) begin
      {line, queue, sof, eof, bad, len, app} <= {rx_line, rx_queue, rx_sof, rx_eof, rx_bad, rx_len, rx_app};
      rx_state   <= TO_COME;
      rx_ahead   <= inside_now;
      app_number <= apps_in;
      if (rx_eof) app_state <= TO_COME;
    end
    if (begins_tx) begin
      {sent_line, sent_queue, sent_len, sent_eof, sent_error} <= {tx_line, tx_queue, tx_len, tx_eof, tx_error};
      tx_state <= TO_COME;
    end
    // Offered.
    if (answered) {app_turn, rx_turn, tx_turn} <= {app_turn - 5'd1, rx_turn - 5'd1, tx_turn - 5'd1};
    if (our_app) {app_state, app_turn} <= {OFFERED, unanswered - 5'(answered)};
    if (our_rx) {rx_state, rx_turn, rx_error} <= {OFFERED, unanswered - 5'(answered), bad ? 2'b00 : popped_error};
    if (our_tx) {tx_state, tx_turn} <= {OFFERED, unanswered - 5'(answered)};
    // Answered.
    if (app_answered) {app_state, app_error} <= {OVER, error};
    if (rx_answered) rx_state <= OVER;
    if (tx_answered) tx_state <= OVER;
    app_echo   <= app_answered;
    rx_echo    <= rx_answered;
    tx_echo    <= tx_answered;
    any_echo   <= answered;
    echo_error <= error;
    if (rst) begin
      {held, unanswered, apps_in, apps_out, apps_there, apps_used, busy, beat} <= '0;
      {app_state, rx_state, tx_state} <= {NONE, NONE, NONE};
      {app_echo, rx_echo, tx_echo, any_echo} <= '0;
    end
  end

  // Each part may take for granted what the ones before it have proved.
`define PROVED(number, what) \
  begin \
    if (PART == number) assert (what); \
    if (PART > number) assume (what); \
  end

  // ---------------------------------------------------------------- what is promised

  wire [1:0] of_app = eof ? app_error : 2'b00;

  always @(posedge clk) begin
    if (!rst && !first) begin
      if (awvalid) `PROVED(0, (14'(awaddr[11:0]) + {2'd0, awlen, 4'd0} + 14'd16 <= 14'd4096))
      if (aw_new) `PROVED(0, (!busy && wvalid && !w_stays.waits))
      if (wvalid) `PROVED(0, ((aw_new || busy) && wlast == (8'(beat) == length_now)))
      if (wvalid && beat) `PROVED(0, (wstrb == 16'h000F))
      if (is_rx) `PROVED(0, (held != 5'd0 && awlen == 8'd0 && awaddr[5:0] == 6'h10 && wstrb == 16'hFF00))
      if (is_app) `PROVED(0, (awlen == 8'd1 && awaddr[5:0] == 6'h20 && wstrb == 16'hFFFF))
      if (is_tx) `PROVED(0, (awlen == 8'd0 && awaddr[5:0] == 6'h10 && wstrb == 16'hF000))
      `PROVED(0, (popped_data == (is_rx && !wdata[92])))
      if (data_pop) `PROVED(0, (data_valid))
      `PROVED(0, (popped_tx == is_tx))
      if (tx_pop) `PROVED(0, (tx_valid))
      if (bready) `PROVED(0, (unanswered != 5'd0))
      if (done) `PROVED(0, (any_echo))
    end
    // Receive.
    if (!rst && !first && PART == 3) begin
      if (is_app) assert (apps_in != apps_out);
      if (our_rx) assert (app_state == (eof ? OVER : NONE));
    end
    if (!rst && !first && PART == 4) begin
      if (our_app) assert (awaddr[ADDR_W-1:6] == line && wdata == app[127:0]);
      if (wvalid && beat && ours_now) assert (wdata[31:0] == app[159:128]);
      if (our_rx) begin
        assert (awaddr[ADDR_W-1:6] == line);
        assert (wdata[95:64] == {1'b1, bad ? 2'b00 : popped_error, bad, sof, eof, len});
        assert (wdata[127:96] == {15'd0, queue, 16'd0});
      end
    end
    // Transmit.
    if (!rst && !first && PART == 1) begin
      if (our_tx) assert (awaddr[ADDR_W-1:6] == sent_line && wdata[127:96] == {1'b1, sent_error, 2'b00, sent_len});
      if (tx_echo) begin
        assert (done && !done_is_rx && done_queue == sent_queue);
        assert (done_error == ({1'b0, sent_error} | {|echo_error, echo_error, 1'b0}));
        assert (done_frame == (sent_eof && sent_error == 3'd0 && echo_error == 2'b00));
      end
    end
    // Answers to receive.
    if (!rst && !first && PART == 3) begin
      if (app_echo) assert (!done);
      if (rx_echo) begin
        assert (done && done_is_rx && done_queue == queue);
        assert (done_error == ({|of_app, rx_error | of_app, bad} | {|echo_error, echo_error, 1'b0}));
        assert (done_frame == (eof && !bad && rx_error == 2'b00 && of_app == 2'b00 && echo_error == 2'b00));
      end
    end
  end

  // ---------------------------------------------------------------- what induction needs to know: the lists, oldest first

  localparam int FIRST_W  = LINE_W + 1 + 3 + 26 + 160;
  localparam int SECOND_W = LINE_W + 1 + 3 + 26;
  wire [3:0] first_stored  = dut.firsts.tail - dut.firsts.head;
  wire [3:0] second_stored = dut.seconds.tail - dut.seconds.head;
  wire [3:0] apps_stored   = dut.apps.tail - dut.apps.head;
  wire [4:0] answer_stored = dut.answers.tail - dut.answers.head;
  wire [4:0] firsts  = 5'(first_stored) + 5'(dut.first_valid);
  wire [4:0] seconds = 5'(second_stored) + 5'(dut.second_valid);
  wire [4:0] apps    = 5'(apps_stored) + 5'(dut.app_valid);
  wire [4:0] asked   = answer_stored + 5'(dut.answer_valid);

  logic [FIRST_W-1:0]  first_at [9];
  logic [SECOND_W-1:0] second_at [9];
  logic [1:0]          app_at [9];
  logic [7:0]          answer_at [17];
  always_comb begin
    for (int i = 0; i < 9; i++) begin
      first_at[i]  = dut.firsts.memory[3'(dut.firsts.head + 4'(i) - 4'(dut.first_valid))];
      second_at[i] = dut.seconds.memory[3'(dut.seconds.head + 4'(i) - 4'(dut.second_valid))];
      app_at[i]    = dut.apps.memory[3'(dut.apps.head + 4'(i) - 4'(dut.app_valid))];
    end
    for (int i = 0; i < 17; i++) answer_at[i] = dut.answers.memory[4'(dut.answers.head + 5'(i) - 5'(dut.answer_valid))];
    if (dut.first_valid) first_at[0] = dut.firsts.data;
    if (dut.second_valid) second_at[0] = dut.seconds.data;
    if (dut.app_valid) app_at[0] = dut.apps.data;
    if (dut.answer_valid) answer_at[0] = dut.answers.data;
  end

  // Places: of the followed descriptor in the two lists, of its writes among those asked for. An offer comes a clock behind its decision.
  wire [4:0] rx_place   = rx_ahead - 5'(is_rx);
  wire       waits      = rx_state == TO_COME && !our_rx;
  wire       in_seconds = waits && rx_place < seconds;
  wire       in_firsts  = waits && rx_place >= seconds;
  wire [4:0] first_place = rx_place - seconds;
  wire       app_asked  = our_app || app_state == OFFERED;
  wire       rx_asked   = our_rx || rx_state == OFFERED;
  wire       tx_asked   = our_tx || tx_state == OFFERED;
  wire [4:0] app_at_answers = our_app ? unanswered : app_turn;
  wire [4:0] rx_at_answers  = our_rx ? unanswered : rx_turn;
  wire [4:0] tx_at_answers  = our_tx ? unanswered : tx_turn;
  wire [1:0] rx_error_now   = our_rx ? (bad ? 2'b00 : popped_error) : rx_error;

  // Beside each word of a list how many app words were before it: lists of the same kind, pushed and popped with them.
  logic       first_shown, second_shown, answer_shown;
  logic [4:0] first_number, second_number, answer_number, first_numbers [9], second_numbers [9], answer_numbers [17];
  dma_fifo #(.WIDTH(5), .DEPTH(LIST)) beside_firsts (
      .clk, .rst, .push(rx_push), .push_data(apps_in), .pop(dut.first_pop), .valid(first_shown), .data(first_number), .level()
  );
  dma_fifo #(.WIDTH(5), .DEPTH(LIST)) beside_seconds (
      .clk, .rst, .push(dut.first_pop), .push_data(first_number), .pop(dut.second_pop), .valid(second_shown), .data(second_number),
      .level()
  );
  dma_fifo #(.WIDTH(5), .DEPTH(2 * LIST)) beside_answers (
      .clk, .rst, .push(dut.goes), .push_data(apps_gone), .pop(answered), .valid(answer_shown), .data(answer_number), .level()
  );
  always_comb begin
    for (int i = 0; i < 9; i++) begin
      first_numbers[i]  = beside_firsts.memory[3'(dut.firsts.head + 4'(i) - 4'(dut.first_valid))];
      second_numbers[i] = beside_seconds.memory[3'(dut.seconds.head + 4'(i) - 4'(dut.second_valid))];
    end
    for (int i = 0; i < 17; i++) begin
      answer_numbers[i] = beside_answers.memory[4'(dut.answers.head + 5'(i) - 5'(dut.answer_valid))];
    end
    if (dut.first_valid) first_numbers[0] = first_number;
    if (dut.second_valid) second_numbers[0] = second_number;
    if (dut.answer_valid) answer_numbers[0] = answer_number;
  end

  // Each number follows from the one before it, and the last one leads to what comes next.
  logic first_chain, second_chain, answer_chain;
  always_comb begin
    {first_chain, second_chain, answer_chain} = '1;
    for (int i = 0; i < 9; i++) begin
      if (5'(i) < firsts) begin
        if (i == 0 && first_numbers[i] != apps_gone) first_chain = 1'b0;
        if (5'(first_numbers[i] - apps_gone) > 5'(i)) first_chain = 1'b0;
        if (5'(first_numbers[i] + 5'(first_at[i][187])) != (i < 8 && 5'(i + 1) < firsts ? first_numbers[(i + 1) % 9] : apps_in)) begin
          first_chain = 1'b0;
        end
      end
      if (5'(i) < seconds) begin
        if (i == 0 && second_numbers[i] != apps_used) second_chain = 1'b0;
        if (5'(second_numbers[i] - apps_used) > 5'(i)) second_chain = 1'b0;
        if (5'(second_numbers[i] + 5'(second_at[i][27])) != (i < 8 && 5'(i + 1) < seconds ? second_numbers[(i + 1) % 9] : apps_gone)) begin
          second_chain = 1'b0;
        end
      end
    end
    for (int i = 0; i < 17; i++) begin
      if (5'(i) < asked) begin
        if (i == 0 && answer_numbers[i] != apps_there) answer_chain = 1'b0;
        if (5'(answer_numbers[i] - apps_there) > 5'(i)) answer_chain = 1'b0;
        if (5'(answer_numbers[i] + 5'(answer_at[i][7:6] == APP)) !=
            (i < 16 && 5'(i + 1) < asked ? answer_numbers[(i + 1) % 17] : apps_gone)) begin
          answer_chain = 1'b0;
        end
      end
    end
  end
  wire [4:0] app_place = app_number - apps_used;

  always @(posedge clk) begin
    if (!rst && !first) begin
      // Room: nothing is overwritten.
      `PROVED(0, (5'(dut.under_way) == firsts + seconds && firsts + seconds == inside_now))
      `PROVED(0, (dut.under_way <= 4'(LIST - 1)))
      if (rx_room) `PROVED(0, (dut.under_way <= 4'(LIST - 4)))
      if (room_1) `PROVED(0, (dut.under_way <= 4'(LIST - 3)))
      if (room_2) `PROVED(0, (dut.under_way <= 4'(LIST - 2)))
      `PROVED(0, (first_stored <= 4'd8 && second_stored <= 4'd8 && answer_stored <= 5'd16))
      `PROVED(0, (dut.answer_level == asked + 5'(dut.answers.popped) && dut.answer_level <= 5'(2 * LIST - 2)))
      if (dut.answers_room || dut.idle) `PROVED(0, (dut.answer_level <= 5'(2 * LIST - 3)))
      `PROVED(0, (dut.goes_app == (dut.picked && dut.idle && dut.kind == APP)))
      `PROVED(0, (dut.goes_rx == (dut.picked && dut.idle && dut.kind == RX_STATUS)))
      `PROVED(0, (dut.goes_tx == (dut.picked && dut.idle && dut.kind == TX_STATUS)))
      // What was chosen stays possible.
      if (dut.picked) begin
        `PROVED(0, (dut.kind == APP || dut.kind == RX_STATUS || dut.kind == TX_STATUS))
        if (dut.kind == APP) `PROVED(0, (dut.wants_app))
        if (dut.kind == RX_STATUS) `PROVED(0, (dut.wants_rx))
        if (dut.kind == TX_STATUS) `PROVED(0, (dut.wants_tx))
      end
      // The write in hand.
      if (dut.idle) `PROVED(0, (!awvalid && !wvalid && !dut.second_beat))
      if (dut.second_beat) `PROVED(0, (wvalid && !beat && !wlast))
      if (wvalid && !dut.second_beat) `PROVED(0, (wlast && length_now == 8'(beat)))
      if (dut.second_beat) `PROVED(0, (length_now == 8'd1))
      if (awvalid) `PROVED(0, (length_now == awlen))
      if (busy) `PROVED(0, (wvalid))
      if (beat) `PROVED(0, (busy && !aw_new))
      if (awvalid) `PROVED(0, (awaddr[5:0] == (awlen == 8'd1 ? 6'h20 : 6'h10) && awlen <= 8'd1))
      if (aw_new) `PROVED(0, (answer_stored != 5'd0))
      `PROVED(0, (asked == unanswered + 5'(aw_new)))
    end
  end

  // How many app words are where.
  always @(posedge clk) begin
    if (!rst && !first && PART >= 2) begin
      `PROVED(2, (beside_firsts.head == dut.firsts.head && beside_firsts.tail == dut.firsts.tail))
      `PROVED(2, (beside_seconds.head == dut.seconds.head && beside_seconds.tail == dut.seconds.tail))
      `PROVED(2, (beside_answers.head == dut.answers.head && beside_answers.tail == dut.answers.tail))
      `PROVED(2, ({first_shown, second_shown, answer_shown} == {dut.first_valid, dut.second_valid, dut.answer_valid}))
      `PROVED(2, (first_chain && (firsts != '0 || apps_gone == apps_in) && 5'(apps_in - apps_gone) <= firsts))
      `PROVED(2, (second_chain && (seconds != '0 || apps_used == apps_gone) && 5'(apps_gone - apps_used) <= seconds))
      `PROVED(2, (answer_chain && (asked != '0 || apps_there == apps_gone) && 5'(apps_gone - apps_there) <= asked))
      `PROVED(2, (apps == 5'(apps_there - apps_used) && apps <= 5'(apps_gone - apps_used)))
    end
  end

  // The order of receive's writes: in one list, then in the other, app words and status asked for.
  always @(posedge clk) begin
    if (!rst && !first && PART >= 3) begin
      if (waits) `PROVED(3, (rx_place < inside_now))
      if (rx_state == NONE) `PROVED(3, (app_state == NONE))
      if (in_firsts) begin
        `PROVED(3, (first_at[first_place[3:0]][189:186] == {queue, sof, eof, bad}))
        `PROVED(3, (app_state == (eof ? TO_COME : NONE) && !our_app))
        if (eof) `PROVED(3, (first_numbers[first_place[3:0]] == app_number))
      end
      if (in_seconds) begin
        `PROVED(3, (second_at[rx_place[3:0]][29:26] == {queue, sof, eof, bad}))
        `PROVED(3, (eof ? app_asked || app_state == OVER : app_state == NONE))
        if (eof) `PROVED(3, (second_numbers[rx_place[3:0]] == app_number))
        if (app_asked) `PROVED(3, (answer_numbers[app_at_answers] == app_number && app_place >= apps))
        if (app_state == OVER) `PROVED(3, (app_place < apps && app_at[app_place[3:0]] == app_error))
      end
      if (rx_asked || rx_state == OVER) `PROVED(3, (app_state == (eof ? OVER : NONE)))
      if (app_asked) `PROVED(3, (app_at_answers < asked && answer_at[app_at_answers] == {APP, queue, 5'd0}))
      if (rx_asked) begin
        `PROVED(3, (rx_at_answers < asked))
        `PROVED(3, (answer_at[rx_at_answers] == {RX_STATUS, queue, eof, |of_app, rx_error_now | of_app, bad}))
      end
    end
    // What they say.
    if (!rst && !first && PART == 4) begin
      if (in_firsts) assert (first_at[first_place[3:0]] == {line, queue, sof, eof, bad, len, app});
      if (in_seconds) assert (second_at[rx_place[3:0]] == {line, queue, sof, eof, bad, len});
      if (ours_now && (aw_new || busy)) assert (our_app || app_state == OFFERED || app_state == OVER);
      if (ours_now && dut.second_beat) assert (dut.last_app == app[159:128]);
    end
    // Transmit.
    if (!rst && !first && PART == 1) begin
      if (tx_asked) begin
        assert (tx_at_answers < asked);
        assert (answer_at[tx_at_answers] == {TX_STATUS, sent_queue, sent_eof, 1'b0, sent_error});
      end
      if (tx_state == TO_COME) assert (our_tx);
    end
  end
endmodule

`undef PROVED
`default_nettype wire
