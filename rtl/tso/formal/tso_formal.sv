// tso: the rules of the stream at the output; frames that are not segmented come out as they went in, word for word, in their
// order among the segments; a segment begins with its headers, ends where its length says, or with the super-frame if that is
// short, and never has a word of another frame.
//
// Proved by induction, without a bound: for frames and super-frames of any length and content, any request, pauses of both sides
// and resets at any time, at 32 bits. Of the payload that the IP header speaks of each segment takes what is asked for, the last
// one what remains, so there are as many as that needs. What stands in their headers is not part of it: that is compared with the
// reference.
`default_nettype none

module tso_formal
  import nic_pkg::*;
(
    input wire        clk,
    input wire        rst,
    input wire [31:0] s_axis_tdata,
    input wire [3:0]  s_axis_tkeep,
    input wire        s_axis_tvalid,
    input wire        s_axis_tlast,
    input wire [$bits(tx_user_t)-1:0] s_axis_tuser,
    input wire        m_axis_tready,
    input wire [3:0]  chosen
);
  localparam int USER_W = $bits(tx_user_t);

  logic [31:0]       m_axis_tdata;
  logic [3:0]        m_axis_tkeep;
  logic [USER_W-1:0] m_axis_tuser;
  logic              s_axis_tready, m_axis_tvalid, m_axis_tlast;

  // It begins with a reset; there may be others.
  logic first = 1'b1;
  always_ff @(posedge clk) first <= 1'b0;
  always @(posedge clk) if (first) assume (rst);

  // Any number, but always the same.
  logic [3:0] chosen_before;
  always_ff @(posedge clk) chosen_before <= chosen;
  always @(posedge clk) if (!first) assume (chosen == chosen_before);

  tso #(.DATA_W(32)) dut (
      .clk, .rst, .s_axis_tdata, .s_axis_tkeep, .s_axis_tvalid, .s_axis_tready, .s_axis_tlast, .s_axis_tuser, .m_axis_tdata,
      .m_axis_tkeep, .m_axis_tvalid, .m_axis_tready, .m_axis_tlast, .m_axis_tuser, .event_super(), .event_segment(),
      .event_malformed(), .event_length()
  );

  axis_check #(.DATA_W(32), .USER_W(USER_W), .ASSUME(1), .USER_CONSTANT(1)) input_rules (
      .clk, .rst, .tdata(s_axis_tdata), .tkeep(s_axis_tkeep), .tvalid(s_axis_tvalid), .tready(s_axis_tready),
      .tlast(s_axis_tlast), .tuser(s_axis_tuser)
  );
  axis_check #(.DATA_W(32), .USER_W(USER_W), .USER_CONSTANT(1)) output_rules (
      .clk, .rst, .tdata(m_axis_tdata), .tkeep(m_axis_tkeep), .tvalid(m_axis_tvalid), .tready(m_axis_tready),
      .tlast(m_axis_tlast), .tuser(m_axis_tuser)
  );

  // As in the block.
  localparam logic [2:0] IDLE = 3'd0, COLLECT = 3'd1, SETUP = 3'd2, HEAD = 3'd3, BODY = 3'd4, DROP = 3'd5;
  wire [2:0] state = dut.state;

  // ---------------------------------------------------------------- words that are not segmented, modulo 16

  wire tx_user_t user = s_axis_tuser;
  wire enters = s_axis_tvalid && s_axis_tready;
  wire goes   = dut.emit && dut.stage_ready;
  wire leaves = m_axis_tvalid && m_axis_tready;

  logic [3:0]  plain_in = '0, plain_out = '0;
  logic [34:0] followed;          // last, lane, data
  tx_user_t    followed_user;
  // Which of the two last stages hold such words.
  logic        pick_plain, out_plain;

  wire [1:0] lane = s_axis_tkeep[3] ? 2'd3 : s_axis_tkeep[2] ? 2'd2 : s_axis_tkeep[1] ? 2'd1 : 2'd0;
  wire enters_plain = enters && user.seg == SEG_NONE;

  always_ff @(posedge clk) begin
    if (enters_plain) begin
      plain_in <= plain_in + 4'd1;
      if (plain_in == chosen) begin
        followed      <= {s_axis_tlast, lane, s_axis_tdata};
        followed_user <= user;
      end
    end
    if (dut.stage_ready) pick_plain <= dut.emit && state == IDLE;
    if (dut.out_ready) out_plain <= pick_plain;
    if (leaves && out_plain) plain_out <= plain_out + 4'd1;
    if (rst) begin
      plain_in   <= '0;
      plain_out  <= '0;
      pick_plain <= 1'b0;
      out_plain  <= 1'b0;
    end
  end

  // ---------------------------------------------------------------- frames on the way in and out

  // The word that was last taken out of the window, and what was last sent on to the stages behind it.
  logic     gone_mid = 1'b0, sent_mid = 1'b0;
  tx_user_t gone_user, sent_user;
  // Bytes of the segment that is sent, and how many it is to have, as was known when it began.
  logic [17:0] sent = '0, length;

  wire begins = (state == SETUP && dut.ready && !dut.bad) || (dut.segment_over && dut.prepared && !dut.finishes);

  always_ff @(posedge clk) begin
    if (dut.prev_valid && dut.cur_ready) begin
      gone_mid  <= !dut.prev_last;
      gone_user <= dut.prev_user;
    end
    if (goes) begin
      sent_mid  <= !dut.emit_last;
      sent_user <= dut.segment_user;
      sent      <= dut.emit_last || state == IDLE ? '0 : sent + 18'(dut.emit_total);
    end
    if (begins) length <= {10'd0, dut.header_words, 2'd0} + 18'(dut.span) + 18'd1;
    if (rst) begin
      gone_mid <= 1'b0;
      sent_mid <= 1'b0;
      sent     <= '0;
    end
  end

  function automatic tx_user_t cleared(input tx_user_t of);
    cleared = of;
    cleared.seg = SEG_NONE;
    cleared.seg_size = '0;
    cleared.hdr_len = '0;
  endfunction

  // ---------------------------------------------------------------- what is promised

  wire tx_user_t out_user = m_axis_tuser;
  wire [31:0] lanes = {{8{m_axis_tkeep[3]}}, {8{m_axis_tkeep[2]}}, {8{m_axis_tkeep[1]}}, {8{m_axis_tkeep[0]}}};

  always @(posedge clk) begin
    if (!rst && !first) begin
      if (m_axis_tvalid) assert (out_user.seg == SEG_NONE && out_user.seg_size == '0 && out_user.hdr_len == '0);
      if (m_axis_tvalid && out_plain) begin
        assert (plain_in != plain_out);
        if (plain_out == chosen) begin
          assert (m_axis_tlast == followed[34] && m_axis_tkeep == 4'((5'd2 << followed[33:32]) - 5'd1));
          assert ((m_axis_tdata & lanes) == (followed[31:0] & lanes));
          assert (out_user == cleared(followed_user));
        end
      end
      // A segment has as many bytes as it is to have, or fewer with the end of what came.
      if (goes && state == BODY && dut.emit_last) begin
        assert (sent + 18'(dut.emit_total) == length || (dut.exhausts && sent + 18'(dut.emit_total) < length));
      end
      if (goes && state == BODY && !dut.emit_last) assert (sent + 18'(dut.emit_total) < length);
    end
  end

  // ---------------------------------------------------------------- what induction needs to know: words and their frames

  tx_user_t skid_user, frame_user;
  logic [1:0] skid_end;
  logic skid_last;
  logic [31:0] skid_data;
  assign {skid_user, skid_end, skid_last, skid_data} = dut.skid;
  assign frame_user = input_rules.frame_user;

  // The order: what has gone, prev, cur, skid, what came in last. A frame goes on from each to the next with the same wishes.
  logic     mid[4];
  tx_user_t wish[4];
  logic     chain;
  always_comb begin
    mid[0]  = gone_mid;
    wish[0] = gone_user;
    mid[1]  = dut.prev_valid ? !dut.prev_last : mid[0];
    wish[1] = dut.prev_valid ? dut.prev_user : wish[0];
    mid[2]  = dut.cur_valid ? !dut.cur_last : mid[1];
    wish[2] = dut.cur_valid ? dut.cur_user : wish[1];
    mid[3]  = dut.skid_valid ? !skid_last : mid[2];
    wish[3] = dut.skid_valid ? skid_user : wish[2];
    chain   = 1'b1;
    for (int i = 0; i < 3; i++) if (mid[i] && wish[i] != wish[i+1]) chain = 1'b0;
  end

  wire is_prev = dut.prev_valid && dut.prev_user.seg == SEG_NONE;
  wire is_cur  = dut.cur_valid && dut.cur_user.seg == SEG_NONE;
  wire is_skid = dut.skid_valid && skid_user.seg == SEG_NONE;
  // Plain words behind the input, counted from the newest.
  wire [3:0] age   = plain_in - chosen;
  wire [3:0] after_skid = 4'(is_skid);
  wire [3:0] after_cur  = after_skid + 4'(is_cur);
  wire [3:0] after_prev = after_cur + 4'(is_prev);
  wire [3:0] after_pick = after_prev + 4'(pick_plain);
  wire [3:0] after_out  = after_pick + 4'(m_axis_tvalid && out_plain);

  always @(posedge clk) begin
    if (!rst && !first) begin
      assert (chain && mid[3] == input_rules.in_frame);
      if (mid[3]) assert (wish[3] == frame_user);
      if (!dut.prev_valid && gone_mid) assert (dut.prev_user == gone_user);
      if (dut.prev_valid) assert (dut.prev_plain == (dut.prev_user.seg == SEG_NONE));
      if (dut.skid_valid) assert (dut.cur_valid);
      if (dut.cur_valid && !dut.cur_last) assert (dut.cur_end == 2'd3);
      if (dut.prev_valid && !dut.prev_last) assert (dut.prev_end == 2'd3);
      if (dut.skid_valid && !skid_last) assert (skid_end == 2'd3);
      // Plain words.
      assert (plain_in - plain_out == after_out);
      assert (!pick_plain || dut.pick_valid);
      if (is_skid && age == after_skid) assert ({skid_last, skid_end, skid_data, skid_user} == {followed, followed_user});
      if (is_cur && age == after_cur) begin
        assert ({dut.cur_last, dut.cur_end, dut.cur_data, dut.cur_user} == {followed, followed_user});
      end
      if (is_prev && age == after_prev) begin
        assert ({dut.prev_last, dut.prev_end, dut.prev_data, dut.prev_user} == {followed, followed_user});
      end
      if (pick_plain && age == after_pick) begin
        assert (dut.pick_last == followed[34] && dut.pick_total == {1'b0, followed[33:32]} + 3'd1);
        assert (dut.pick_data == followed[31:0] && dut.pick_user == cleared(followed_user));
      end
      if (pick_plain) assert (dut.pick_turn == '0 && dut.pick_headers == '0);
    end
  end

  // ---------------------------------------------------------------- the numbers of the next segment

  // As in the block.
  localparam logic [3:0] CHECK_LENGTH = 4'd1, SIZE = 4'd6, SEED = 4'd11, REST = 4'd13, WRITE_L4 = 4'd15;

  wire checks   = dut.write_go && dut.write_step == CHECK_LENGTH;
  wire sizes    = dut.write_go && dut.write_step == SIZE;
  wire rests    = dut.write_go && dut.write_step == REST;
  wire add_check = dut.add_go && dut.add_step == CHECK_LENGTH;
  wire add_size = dut.add_go && dut.add_step == SIZE;
  wire add_rest = dut.add_go && dut.add_step == REST;
  wire add_end  = dut.add_go && dut.add_step == WRITE_L4;

  // What has been found out since the numbers of a segment were asked for; `spanned` a clock later.
  logic        checked = 1'b0, sized = 1'b0, spanned = 1'b0, rested = 1'b0;
  logic [15:0] payload;           // before the next segment is taken off

  always_ff @(posedge clk) begin
    if (checks) checked <= 1'b1;
    if (sizes) begin
      sized  <= 1'b1;
      payload <= dut.rest;
    end
    spanned <= sized;
    if (rests) rested <= 1'b1;
    if (dut.again || state == IDLE || rst) {sized, spanned, rested} <= '0;
    if (state == IDLE || rst) checked <= 1'b0;
  end

  wire [3:0] step = dut.step;
  wire       resting = dut.resting;
  wire       runs = state == HEAD || state == BODY;
  wire [15:0] size = dut.prev_user.seg_size;

  always @(posedge clk) begin
    if (!rst && !first) begin
      // As many segments as the payload needs: each takes what is asked for, the last one what remains.
      if (begins) begin
        assert (payload != '0 && dut.next_len == (payload <= size ? payload : size) && dut.next_last == (payload <= size));
        assert (dut.span == 17'(dut.next_len) + 17'(dut.header_tail) - 17'd1);
        assert (dut.rest == payload - dut.next_len);
      end
      // What induction needs to know: steps are behind each other.
      if (state != IDLE) begin
        assert (size != '0 || dut.request_bad);
        assert (size != '0 || !checked || dut.bad);
        assert (!resting || step == SIZE);
        if (step <= 4'd1) assert (!checked && !checks && !add_check);
        if (step == 4'd2) assert (2'(add_check) + 2'(checks) + 2'(checked) == 2'd1);
        if (step == 4'd3) assert (2'(checks) + 2'(checked) == 2'd1 && !add_check);
        if (step >= 4'd4) assert (checked && !checks && !add_check);
        if (step < SIZE || (step == SIZE && !resting)) assert (!sized && !rested && !add_size && !sizes && !add_rest && !rests);
        if (step < SIZE || (step == SIZE && !resting)) assert (!dut.ready && !add_end && (state == COLLECT || state == SETUP || state == DROP));
        if (step == 4'd7 || step == 4'd8) assert (2'(add_size) + 2'(sizes) + 2'(sized) == 2'd1);
        if (step == 4'd9 || step == 4'd10) assert (2'(sizes) + 2'(sized) == 2'd1 && !add_size);
        if (step >= SEED || resting) assert (sized && !sizes && !add_size);
        if (step > SEED || resting) assert (spanned);
        if (step > SIZE && step <= REST) assert (!rested && !add_rest && !rests);
        if (step > SIZE) assert (!dut.ready && !add_end);
        if (step == 4'd14) assert (2'(add_rest) + 2'(rests) + 2'(rested) == 2'd1);
        if (step == WRITE_L4) assert (2'(rests) + 2'(rested) == 2'd1 && !add_rest);
        if (resting) assert (rested && !rests && !add_rest && (dut.ready != add_end));
        if (sizes) assert (!sized);
        // The numbers.
        if (add_size) assert (dut.add_a == size && dut.add_b == ~dut.rest && dut.add_c);
        if (sizes) assert (dut.sum == {1'b0, size} + {1'b0, ~dut.rest} + 17'd1);
        if (add_rest) assert (dut.add_a == dut.rest && dut.add_b == ~dut.next_len && dut.add_c);
        if (rests) assert (dut.sum[15:0] == dut.rest - dut.next_len);
        if (sized) begin
          assert (dut.next_len == (payload <= size ? payload : size) && dut.next_last == (payload <= size));
          assert (payload != '0 || dut.bad);
          assert (dut.rest == (rested ? payload - dut.next_len : payload));
        end
        if (spanned) assert (sized && dut.span == 17'(dut.next_len) + 17'(dut.header_tail) - 17'd1);
      end
      // A super-frame that is taken apart is a good one, and has payload for as many segments as follow.
      if (runs) assert (!dut.bad && size != '0 && checked && step >= SIZE && (step != SIZE || resting));
      if (runs && dut.body_first) assert (dut.ready && resting && dut.next_last == dut.body_last);
      if (state == HEAD) assert (dut.body_first);
      if (state == BODY && !dut.body_first && !dut.body_last) assert (!dut.first);
      if (state != IDLE && (step <= 4'd7 && !resting || state == COLLECT)) assert (dut.first);
      if (state != IDLE && dut.add_go && (dut.add_step < SIZE || dut.add_step == 4'd7)) assert (dut.first);
      if (state != IDLE && resting) assert (!dut.add_go || add_end);
      if (state != IDLE && !dut.first && step > SIZE && !sized) assert (dut.rest != '0);
      if (state == BODY && !dut.body_first && dut.body_last) assert (dut.ready && resting);
    end
  end

  // ---------------------------------------------------------------- the states

  wire [17:0] left = {1'b0, dut.body_words, 2'd0} + 18'(dut.body_end) + 18'd1;

  always @(posedge clk) begin
    if (!rst && !first) begin
      assert (state <= DROP);
      if (state == IDLE) begin
        assert (sent_mid == gone_mid);
        if (gone_mid) assert (gone_user.seg == SEG_NONE && sent_user == cleared(gone_user));
      end else begin
        assert (dut.prev_user.seg != SEG_NONE);
        assert (dut.prev_valid || ((state == COLLECT || state == DROP) && gone_mid));
      end
      if (state == COLLECT || state == SETUP || state == DROP) assert (!sent_mid);
      // At least a byte of what is left.
      if (state == SETUP || state == HEAD || state == BODY) assert (!dut.prev_last || dut.prev_end >= dut.taken);
      if (state == HEAD || state == BODY) begin
        assert (dut.body_final == (dut.body_words == '0));
        assert (dut.full == (dut.body_final ? {1'b0, dut.body_end} + 3'd1 : 3'd4));
        assert (dut.used == 4'(dut.taken) + 4'(dut.full) - 4'(dut.lane0));
        assert (dut.turn == 2'(dut.taken - dut.lane0));
        assert (!sent_mid || sent_user == dut.segment_user);
        assert (sent < length && length <= 18'd131_400);
        assert (dut.full > {1'b0, dut.lane0});
        assert (sent + left + (state == HEAD ? {10'd0, dut.header_words, 2'd0} - {10'd0, dut.at, 2'd0} : 18'd0) == length);
      end
      if (state == HEAD) begin
        assert (dut.at < dut.header_words && sent_mid == (dut.at != '0) && sent == {10'd0, dut.at, 2'd0});
        assert (dut.body_first && dut.lane0 == dut.header_tail);
      end
      if (state == BODY) begin
        assert (sent_mid == (dut.to_head || !dut.body_first));
        assert (dut.lane0 == (dut.body_first ? dut.header_tail : 2'd0));
      end
      if (!sent_mid || state == IDLE) assert (sent == '0);
      // The two stages behind.
      if (dut.pick_valid) assert (dut.pick_total != '0 && dut.pick_total <= 3'd4 && (dut.pick_last || dut.pick_total == 3'd4));
      if (dut.pick_valid) begin
        assert (dut.pick_last == !sent_mid);
        if (sent_mid) assert (dut.pick_user == sent_user);
        assert (dut.pick_user.seg == SEG_NONE && dut.pick_user.seg_size == '0 && dut.pick_user.hdr_len == '0);
        if (m_axis_tvalid && !m_axis_tlast) assert (m_axis_tuser == dut.pick_user);
        if (!m_axis_tvalid && output_rules.in_frame) assert (output_rules.frame_user == dut.pick_user);
      end else if (m_axis_tvalid) begin
        assert (m_axis_tlast == !sent_mid);
        if (sent_mid) assert (m_axis_tuser == sent_user);
      end else begin
        assert (output_rules.in_frame == sent_mid);
        if (sent_mid) assert (output_rules.frame_user == sent_user);
      end
      if (m_axis_tvalid && output_rules.in_frame) assert (m_axis_tuser == output_rules.frame_user);
      if (m_axis_tvalid) assert (m_axis_tkeep[0] && (m_axis_tkeep & (m_axis_tkeep + 4'd1)) == '0);
      if (m_axis_tvalid) assert (m_axis_tlast || m_axis_tkeep == 4'hf);
    end
  end
endmodule

`default_nettype wire
