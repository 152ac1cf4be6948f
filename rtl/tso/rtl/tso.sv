// Segmentation of super-frames: one TCP or UDP packet of up to 65,535 bytes becomes frames that share its headers.
//
// The headers are held once, in a small memory, and changed in place between two segments while the payload of the first of
// them is still leaving: one 16-bit adder does it all, field by field, and needs no cycle of its own. The payload never stops
// in here; it is only turned so that it fits behind the headers. Sums are left to csum_tx, which comes next and has to hold
// a whole frame anyway: a segment leaves with the seed of its checksum.
//
// cfg:    none
// event_super      a super-frame was taken apart
// event_segment    a segment left (its last beat)
// event_malformed  a super-frame was dropped: its headers are not those that its request speaks of, or it has no payload
// event_length     a super-frame had more or fewer bytes than its IP header says. Fewer: the segment in hand is cut short and
//                  is the last. More: they are dropped.
`default_nettype none

module tso
  import nic_pkg::*;
#(
    parameter  int DATA_W = 64,
    // Without it, words wait for m_axis_tready whatever is free: a shorter path, where tready does not wait for tvalid.
    parameter  bit EAGER = 1'b1,
    localparam int USER_W = $bits(tx_user_t)
) (
    input  wire                 clk,
    input  wire                 rst,

    input  wire  [DATA_W-1:0]   s_axis_tdata,
    input  wire  [DATA_W/8-1:0] s_axis_tkeep,
    input  wire                 s_axis_tvalid,
    output logic                s_axis_tready,
    input  wire                 s_axis_tlast,
    input  wire  [USER_W-1:0]   s_axis_tuser,   // tx_user_t

    output logic [DATA_W-1:0]   m_axis_tdata,
    output logic [DATA_W/8-1:0] m_axis_tkeep,
    output logic                m_axis_tvalid,
    input  wire                 m_axis_tready,
    output logic                m_axis_tlast,
    output logic [USER_W-1:0]   m_axis_tuser,   // tx_user_t: seg, seg_size and hdr_len are 0

    output logic                event_super,
    output logic                event_segment,
    output logic                event_malformed,
    output logic                event_length
);
  localparam int BYTES = DATA_W / 8;
  localparam int LOG = $clog2(BYTES);
  localparam int HALVES = BYTES / 2;
  localparam int HEADER_BYTES = 128;
  localparam int WORDS = HEADER_BYTES / BYTES;
  localparam int WORD_W = $clog2(WORDS);

  if (DATA_W < 32 || DATA_W > 512 || (DATA_W & (DATA_W - 1)) != 0) begin : gen_bad
    $error("tso: DATA_W must be a power of two from 32 to 512");
  end

  typedef logic [LOG-1:0] lane_t;
  typedef logic [LOG:0] count_t;

  // ---------------------------------------------------------------------------------------------------------------------
  // The window: two words of the input, `prev` the older one. `taken` bytes of `prev` have been used.

  // The last lane in use says all that tkeep does.
  lane_t s_end;
  always_comb begin
    s_end = '0;
    for (int i = 1; i < BYTES; i++) if (s_axis_tkeep[i]) s_end = lane_t'(i);
  end

  logic [DATA_W-1:0] cur_data, prev_data;
  logic cur_valid, cur_ready, cur_last, prev_valid, prev_last, prev_plain;
  lane_t cur_end, prev_end;
  tx_user_t cur_user, prev_user;
  logic advance;  // to the next word, if there is one

  // A register slice. The second word of storage takes whatever is offered while it is free, so that its many enables do not
  // wait for `advance`.
  localparam int IN_W = USER_W + LOG + 1 + DATA_W;
  logic [IN_W-1:0] skid, cur;
  logic            skid_valid;
  wire  [IN_W-1:0] offered = {s_axis_tuser, s_end, s_axis_tlast, s_axis_tdata};
  assign {cur_user, cur_end, cur_last, cur_data} = cur;
  assign s_axis_tready = !skid_valid;

  always_ff @(posedge clk) begin
    if (!skid_valid) skid <= offered;
    if (cur_ready || !cur_valid) begin
      cur <= skid_valid ? skid : offered;
      cur_valid <= skid_valid || s_axis_tvalid;
      skid_valid <= 1'b0;
    end else if (s_axis_tvalid) skid_valid <= 1'b1;
    if (rst) {cur_valid, skid_valid} <= '0;
  end

  assign cur_ready = advance || !prev_valid;

  always_ff @(posedge clk) begin
    if (cur_ready) begin
      prev_valid <= cur_valid;
      prev_data  <= cur_data;
      prev_last  <= cur_last;
      prev_end   <= cur_end;
      // The sequencer reads it at any time, in a pause of the input as well.
      if (cur_valid) prev_user <= cur_user;
      prev_plain <= cur_user.seg == SEG_NONE;
    end
    if (rst) prev_valid <= 1'b0;
  end

  // ---------------------------------------------------------------------------------------------------------------------
  // The header memory: read and written a word at a time, or written by the half-word.

  // Number of whole words in the headers, and bytes of them in the word behind.
  wire [7-LOG:0]   header_words = prev_user.hdr_len[7:LOG];
  wire lane_t      header_tail = prev_user.hdr_len[LOG-1:0];

  logic [7-LOG:0] at;  // word of the headers that is stored or leaves
  logic [DATA_W-1:0] header_read;
  logic [WORD_W-1:0] header_read_at, header_write_at;
  logic [HALVES-1:0] header_write;
  logic [DATA_W-1:0] header_write_data;

  for (genvar i = 0; i < HALVES; i++) begin : gen_half
    logic [15:0] memory[WORDS];
    always_ff @(posedge clk) if (header_write[i]) memory[header_write_at] <= header_write_data[16*i+:16];
    assign header_read[16*i+:16] = memory[header_read_at];
  end

  // ---------------------------------------------------------------------------------------------------------------------
  // Main state

  typedef enum logic [2:0] {
    IDLE,     // and frames that are not to be segmented
    COLLECT,  // headers into their memory
    SETUP,    // until the headers of the next segment are ready
    HEAD,     // whole words of headers
    BODY,     // the rest of the headers, payload
    DROP      // what is left of the frame in hand
  } state_t;

  state_t      state;
  logic        collected;
  logic        more;  // whole words of headers, with the one at hand
  logic        body_first, body_last;
  // Of the word that leaves: bytes of `prev` used before it and, behind it, of both words of the window; lanes before its
  // payload, lanes with it if the frame has them.
  lane_t       taken, lane0;
  logic [LOG+1:0] used;
  count_t      full;
  // By how much payload moves down: the same in all of a segment.
  lane_t       turn;
  // Words of the segment behind this one, from the one with the end of the headers on; none; the last lane of the last one.
  logic [16-LOG:0] body_words;
  logic        body_final;
  lane_t       body_end;
  logic [15:0] body_seed;

  // From the sequencer below.
  logic        ready, bad, next_last;
  logic [15:0] next_len, next_seed;
  logic [16:0] span;

  // What goes on to the next stage.
  logic   stage_ready, emit, emit_last;
  count_t emit_headers, emit_total;

  function automatic logic below(lane_t a, lane_t b);
    below = 1'b0;
    for (int i = 0; i < LOG; i++) below = a[i] == b[i] ? below : b[i];
  endfunction
  wire         ends = body_final;
  // The frame's last byte, as `used` counts; behind the window there are more unless it is in there.
  wire           final_word = prev_last || cur_last;
  wire [LOG:0]   final_byte = prev_last ? {1'b0, prev_end} : {1'b1, cur_end};
  // With a word that is cut short all of the frame has been used, whatever this says.
  wire           used_up = |used[LOG+1:LOG];
  // Whether the last byte is below `used`; bit by bit, as a carry chain takes longer.
  wire           exhausts = prev_last ? used_up || below(prev_end, used[LOG-1:0])
      : cur_last && (used[LOG+1] || (used[LOG] && below(cur_end, used[LOG-1:0])));
  wire           cut = final_word && {1'b0, final_byte} + 1'b1 < used;
  wire           finishes = exhausts || (ends && body_last);
  // The headers that are ready are those of the segment in hand until its first word of payload has left.
  wire           prepared = ready && !body_first;
  wire           to_head = header_words != '0;
  wire         next_final = body_words == (17-LOG)'(1);
  wire count_t next_full = next_final ? {1'b0, body_end} + count_t'(1) : count_t'(BYTES);
  wire lane_t  begin_taken = state == SETUP ? taken : used[LOG-1:0];
  wire         span_final = span[16:LOG] == '0;
  wire count_t span_full = span_final ? {1'b0, span[LOG-1:0]} + count_t'(1) : count_t'(BYTES);
  wire           step_on = emit && stage_ready;

  always_comb begin
    emit = 1'b0;
    advance = 1'b0;
    emit_last = 1'b0;
    emit_headers = '0;
    emit_total = count_t'(BYTES);
    case (state)
      IDLE: begin
        emit = prev_valid && prev_plain;
        advance = prev_plain && stage_ready;
        emit_last = prev_last;
        emit_total = {1'b0, prev_end} + count_t'(1);
      end
      COLLECT: advance = more && !prev_last;
      HEAD: begin
        emit = 1'b1;
        emit_headers = count_t'(BYTES);
      end
      BODY: begin
        emit = prev_valid && (prev_last || cur_valid);
        emit_headers = {1'b0, lane0};
        emit_total = cut ? {1'b0, final_byte[LOG-1:0] + lane_t'(1) - turn} : full;
        emit_last = ends || exhausts;
        advance = (prev_last || cur_valid) && stage_ready && used_up;
      end
      DROP: advance = 1'b1;
      default: ;
    endcase
  end

  wire segment_over = state == BODY && step_on && emit_last;

  always_ff @(posedge clk) begin
    event_super <= 1'b0;
    event_segment <= segment_over;
    event_malformed <= 1'b0;
    event_length <= 1'b0;
    case (state)
      IDLE: begin
        at <= '0;
        collected <= 1'b0;
        more <= header_words != '0;
        if (prev_valid && !prev_plain) state <= COLLECT;
      end

      COLLECT:
      if (prev_valid) begin
        at <= at + 1'b1;
        more <= at + 1'b1 != header_words;
        taken <= header_tail;
        // At least one byte of payload.
        if (!more && !(prev_last && prev_end < header_tail)) begin
          collected <= 1'b1;
          state <= SETUP;
        end else if (prev_last) begin
          event_malformed <= 1'b1;
          state <= DROP;
        end
      end

      SETUP: begin
        at <= '0;
        if (ready) begin
          event_malformed <= bad;
          state <= bad ? DROP : to_head ? HEAD : BODY;
        end
      end

      HEAD:
      if (stage_ready) begin
        at <= at + 1'b1;
        if (at + 1'b1 == header_words) state <= BODY;
      end

      BODY:
      if (step_on) begin
        body_first <= 1'b0;
        body_words <= body_words - 1'b1;
        body_final <= next_final;
        taken <= used[LOG-1:0];
        lane0 <= '0;
        full <= next_full;
        used <= (LOG+2)'(used[LOG-1:0]) + (LOG+2)'(next_full);
        if (emit_last) begin
          at <= '0;
          if (finishes) begin
            event_super <= 1'b1;
            event_length <= cut || !exhausts || !ends || !body_last;
            // What is left of a last word goes a clock later, so that `advance` need not know that this is the end.
            state <= prev_last && used_up ? IDLE : DROP;
          end else state <= !prepared ? SETUP : to_head ? HEAD : BODY;
        end
      end

      default: if (prev_valid && prev_last) state <= IDLE;
    endcase

    // A segment begins.
    if ((state == SETUP && ready && !bad) || (segment_over && prepared && !finishes)) begin
      body_first <= 1'b1;
      body_last <= next_last;
      {body_words, body_end} <= span;
      body_final <= span_final;
      body_seed <= next_seed;
      taken <= begin_taken;
      lane0 <= header_tail;
      full <= span_full;
      used <= (LOG+2)'(begin_taken) + (LOG+2)'(span_full) - (LOG+2)'(header_tail);
      turn <= begin_taken - header_tail;
    end

    if (rst) begin
      state <= IDLE;
      body_first <= 1'b0;
      event_super <= 1'b0;
      event_segment <= 1'b0;
      event_malformed <= 1'b0;
      event_length <= 1'b0;
    end
  end

  // ---------------------------------------------------------------------------------------------------------------------
  // The sequencer: a half-word of the headers or a number a clock, in three stages: read, add, write.
  //
  //   IPv4  l3+0 |version|IHL|  TOS  |  l3+2 |total length|  l3+4 |ident|  l3+6 |flags, offset|  l3+8 |TTL|protocol|
  //   IPv6  l3+0 |version| class ... |  l3+4 |payload length|  l3+6 |next header|hop limit|
  //   TCP   l4+4 |sequence, high|  l4+6 |sequence, low|  l4+12 |data offset|flags|
  //   UDP   l4+4 |length|
  //
  // What a step writes can be read by the third step behind it; the one behind it adds to its sum directly. The steps of a
  // segment are the same for all protocols, written or not: between SIZE and SEED there are two in any case.

  typedef enum logic [3:0] {
    CHECK_IP,
    CHECK_LENGTH,
    CHECK_FRAGMENT,
    CHECK_PROTOCOL,
    BASE,            // seed without the length of the whole
    BASE_CARRY,
    SIZE,            // of the next segment
    CHECK_L4,
    WRITE_IDENT,
    WRITE_SEQ_LOW,
    WRITE_SEQ_HIGH,
    SEED,            // of its checksum
    SEED_CARRY,
    REST,            // payload behind it
    WRITE_LENGTH,
    WRITE_L4
  } step_t;

  step_t       step, step_next;
  logic        resting;               // all steps have been read; the one at hand is SIZE
  logic        first;                 // segment
  logic [15:0] rest, base_seed;
  logic        fin, psh, cwr;
  logic [6:0]  field_at, field_next;  // number of the half-word for this step, of that for the next
  logic        step_go, again;

  wire tcp = prev_user.seg == SEG_TCP;
  wire udp = prev_user.seg == SEG_UDP;
  wire [7:0] l3 = prev_user.l3_start;
  wire [7:0] l4 = prev_user.csum_begin[7:0];
  wire [7:0] protocol = tcp ? 8'd6 : 8'd17;

  // What the request alone says.
  logic       request_bad, plain_ipv6;
  logic [8:0] overhead;               // bytes of headers that the IP length counts
  always_ff @(posedge clk) begin
    overhead <= {1'b0, prev_user.hdr_len} - {1'b0, l3} - (prev_user.ipv6 ? 9'd40 : 9'd0);
    plain_ipv6 <= {1'b0, l4} == {1'b0, l3} + 9'd40;
    request_bad <= !(tcp || udp) || prev_user.csum != CSUM_PARTIAL || prev_user.hdr_len > 8'(HEADER_BYTES)
        || prev_user.seg_size == '0 || prev_user.csum_begin[15:8] != '0 || l3[0] || l4[0]
        || prev_user.csum_insert != {8'd0, l4} + (tcp ? 16'd16 : 16'd6)
        || (udp && {1'b0, prev_user.hdr_len} != {1'b0, l4} + 9'd8)
        || (prev_user.ipv6 && {1'b0, l4} < {1'b0, l3} + 9'd40);
  end

  always_comb begin
    step_next = step_t'(step + 4'd1);
    // The first segment has the numbers that came.
    if (step == SIZE) step_next = resting ? WRITE_IDENT : CHECK_L4;
    if (step == CHECK_L4) step_next = WRITE_SEQ_HIGH;
    if (step == WRITE_L4) step_next = SIZE;
    case (step_next)
      CHECK_LENGTH, WRITE_LENGTH: field_next = l3[7:1] + (prev_user.ipv6 ? 7'd2 : 7'd1);
      CHECK_FRAGMENT:             field_next = l3[7:1] + 7'd3;
      CHECK_PROTOCOL:             field_next = l3[7:1] + 7'd4;
      WRITE_IDENT:                field_next = l3[7:1] + 7'd2;
      WRITE_SEQ_LOW:              field_next = l4[7:1] + 7'd3;
      WRITE_SEQ_HIGH:             field_next = l4[7:1] + 7'd2;
      WRITE_L4:                   field_next = l4[7:1] + (tcp ? 7'd6 : 7'd2);
      default:                    field_next = l4[7:1] + 7'd6;
    endcase
    case (step)
      // Words are read as soon as they are there.
      CHECK_IP, CHECK_LENGTH, CHECK_FRAGMENT, CHECK_PROTOCOL, CHECK_L4:
      step_go = collected || (state == COLLECT && {1'b0, field_at[6:LOG-1]} < {1'b0, at});
      WRITE_LENGTH: step_go = collected;
      SIZE:    step_go = !resting || again;
      default: step_go = 1'b1;
    endcase
  end

  // The numbers of the next segment are made as soon as the headers of this one have left.
  assign again = state == BODY && step_on && body_first && !body_last;

  // Read: the half-word, as a number, or another one.
  logic [15:0] half;
  always_comb begin
    logic [15:0] raw;
    raw = header_read[16*field_at[LOG-2:0]+:16];
    half = {raw[7:0], raw[15:8]};
  end

  step_t       add_step;
  logic        add_go, add_c, add_writes;
  logic [5:0]  add_at;
  logic [15:0] add_a, add_b;

  always_ff @(posedge clk) begin
    if (state == IDLE) begin
      step <= CHECK_IP;
      field_at <= l3[7:1];
      resting <= 1'b0;
      first <= 1'b1;
    end else if (step_go) begin
      step <= step_next;
      field_at <= field_next;
      resting <= step == WRITE_L4;
    end
    if (again) first <= 1'b0;

    add_step <= step;
    add_go <= step_go && state != IDLE;
    add_at <= field_at[5:0];
    add_a <= half;
    add_b <= '0;
    add_c <= 1'b0;
    add_writes <= 1'b0;
    case (step)
      CHECK_LENGTH:   {add_b, add_c} <= {~{{7{overhead[8]}}, overhead}, 1'b1};
      BASE:           {add_a, add_b} <= {prev_user.csum_init, ~rest};
      SIZE:           {add_a, add_b, add_c} <= {prev_user.seg_size, ~rest, 1'b1};
      SEED:           {add_a, add_b} <= {base_seed, next_len};
      REST:           {add_a, add_b, add_c} <= {rest, ~next_len, 1'b1};
      WRITE_LENGTH:   {add_a, add_b, add_writes} <= {7'd0, overhead, next_len, 1'b1};
      WRITE_IDENT:    {add_c, add_writes} <= {1'b1, !prev_user.ipv6};
      WRITE_SEQ_LOW:  {add_b, add_writes} <= {prev_user.seg_size, tcp};
      WRITE_SEQ_HIGH: add_writes <= tcp && !first;
      WRITE_L4: begin
        add_writes <= 1'b1;
        if (!tcp) {add_a, add_b} <= {16'd8, next_len};
      end
      default: ;
    endcase
  end

  // Add.
  step_t       write_step;
  logic        write_go, field_write, write_flags;
  logic [5:0]  write_at;
  logic [16:0] sum;
  wire         onto_sum = add_step == BASE_CARRY || add_step == SEED_CARRY;
  wire  [15:0] addend = onto_sum ? sum[15:0] : add_a;
  wire         addend_c = onto_sum || add_step == WRITE_SEQ_HIGH ? sum[16] : add_c;

  always_ff @(posedge clk) begin
    write_step <= add_step;
    write_go <= add_go && state != IDLE;
    write_at <= add_at;
    field_write <= add_go && add_writes;
    write_flags <= add_step == WRITE_L4 && tcp;
    if (add_go) begin
      sum <= {1'b0, addend} + {1'b0, onto_sum ? 16'd0 : add_b} + 17'(addend_c);
      case (add_step)
        CHECK_IP: begin
          // Version and header length.
          if (prev_user.ipv6) begin
            if (add_a[15:12] != 4'd6) bad <= 1'b1;
          end else begin
            if (add_a[15:12] != 4'd4 || add_a[11:8] < 4'd5) bad <= 1'b1;
            if ({1'b0, l4} != {1'b0, l3} + {3'd0, add_a[11:8], 2'd0}) bad <= 1'b1;
          end
        end
        CHECK_FRAGMENT: begin
          if (!prev_user.ipv6 && add_a[13:0] != '0) bad <= 1'b1;
          // With extension headers the request is trusted.
          if (prev_user.ipv6 && plain_ipv6 && add_a[15:8] != protocol) bad <= 1'b1;
        end
        CHECK_PROTOCOL: if (!prev_user.ipv6 && add_a[7:0] != protocol) bad <= 1'b1;
        CHECK_L4: begin
          {cwr, psh, fin} <= {add_a[7], add_a[3], add_a[0]};
          if (tcp && (add_a[15:12] < 4'd5 || {1'b0, prev_user.hdr_len} != {1'b0, l4} + {3'd0, add_a[15:12], 2'd0}))
            bad <= 1'b1;
        end
        default: ;
      endcase
    end
    // The last write is done before the first word of headers is read.
    ready <= (ready && !again) || (add_go && add_step == WRITE_L4);

    // Write.
    if (write_go) begin
      case (write_step)
        CHECK_LENGTH: begin
          rest <= sum[15:0];
          if (!sum[16] || request_bad) bad <= 1'b1;
        end
        BASE_CARRY: base_seed <= sum[15:0];
        SIZE: begin
          next_last <= sum[16];
          next_len <= sum[16] ? rest : prev_user.seg_size;
          if (rest == '0) bad <= 1'b1;
        end
        SEED_CARRY: next_seed <= sum[15:0];
        REST: rest <= sum[15:0];
        default: ;
      endcase
    end
    // What was under way for a frame that ended early says nothing about the next.
    if (state == IDLE) begin
      ready <= 1'b0;
      bad <= 1'b0;
    end
    // Lanes and words of the segment as it leaves.
    span <= {1'b0, next_len} + 17'(header_tail) - 17'd1;
  end

  // FIN and PSH belong to the last segment, CWR to the first (RFC 3168, section 6.1.2).
  wire [15:0] flags = {sum[15:8], cwr && first, sum[6:4], psh && next_last, sum[2:1], fin && next_last};
  wire [15:0] field_value = write_flags ? flags : sum[15:0];

  // ---------------------------------------------------------------------------------------------------------------------
  // Access to the header memory. The sequencer rests while headers leave.

  assign header_read_at = resting ? at[WORD_W-1:0] : field_at[5:LOG-1];

  always_comb begin
    if (state == COLLECT) begin
      header_write_at = at[WORD_W-1:0];
      header_write_data = prev_data;
      // Behind the last of 128 bytes there is no room for a word without headers.
      header_write = {HALVES{prev_valid && (more || header_tail != '0)}};
    end else begin
      header_write_at = write_at[5:LOG-1];
      header_write_data = {HALVES{field_value[7:0], field_value[15:8]}};
      header_write = '0;
      header_write[write_at[LOG-2:0]] = field_write;
    end
  end

  // ---------------------------------------------------------------------------------------------------------------------
  // Two more stages: the bytes of a word are picked out of the window, then turned and put behind the headers.

  logic [DATA_W-1:0] pick_data, pick_header;
  logic              pick_valid, pick_last;
  lane_t             pick_turn;
  count_t            pick_headers, pick_total;
  tx_user_t          pick_user, segment_user;

  always_comb begin
    segment_user = prev_user;
    segment_user.seg = SEG_NONE;
    segment_user.seg_size = '0;
    segment_user.hdr_len = '0;
    if (state != IDLE) begin
      segment_user.ip_csum = !prev_user.ipv6;
      segment_user.csum_init = body_seed;
    end
  end

  wire out_ready = (EAGER && !m_axis_tvalid) || m_axis_tready;
  assign stage_ready = (EAGER && !pick_valid) || out_ready;

  always_ff @(posedge clk) begin
    if (stage_ready) begin
      pick_valid <= emit;
      pick_last <= emit_last;
      pick_header <= header_read;
      pick_headers <= emit_headers;
      pick_total <= emit_total;
      pick_turn <= state == IDLE ? '0 : turn;
      pick_user <= segment_user;
      // Bytes before `taken` are needed from the younger word if at all.
      for (int i = 0; i < BYTES; i++) begin
        pick_data[8*i+:8] <= state != IDLE && lane_t'(i) < taken ? cur_data[8*i+:8] : prev_data[8*i+:8];
      end
    end
    if (rst) pick_valid <= 1'b0;
  end

  wire [2*DATA_W-1:0] turned = {pick_data, pick_data} >> {pick_turn, 3'd0};

  always_ff @(posedge clk) begin
    if (out_ready) begin
      m_axis_tvalid <= pick_valid;
      m_axis_tlast <= pick_last;
      m_axis_tuser <= pick_user;
      for (int i = 0; i < BYTES; i++) begin
        m_axis_tkeep[i] <= count_t'(i) < pick_total;
        m_axis_tdata[8*i+:8] <= count_t'(i) < pick_headers ? pick_header[8*i+:8] : turned[8*i+:8];
      end
    end
    if (rst) m_axis_tvalid <= 1'b0;
  end
endmodule

`default_nettype wire
