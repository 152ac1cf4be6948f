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
  logic cur_valid, cur_ready, cur_last, prev_valid, prev_last;
  logic [BYTES-1:0] unused_keep;
  lane_t cur_end, prev_end;
  tx_user_t cur_user, prev_user;
  logic advance;

  axis_register #(
      .DATA_W(DATA_W),
      .USER_W(USER_W + LOG)
  ) input_register (
      .clk,
      .rst,
      .s_axis_tdata,
      .s_axis_tkeep ('1),
      .s_axis_tvalid,
      .s_axis_tready,
      .s_axis_tlast,
      .s_axis_tuser ({s_end, s_axis_tuser}),
      .m_axis_tdata (cur_data),
      .m_axis_tkeep (unused_keep),
      .m_axis_tvalid(cur_valid),
      .m_axis_tready(cur_ready),
      .m_axis_tlast (cur_last),
      .m_axis_tuser ({cur_end, cur_user})
  );

  assign cur_ready = advance || !prev_valid;

  always_ff @(posedge clk) begin
    if (cur_ready) begin
      prev_valid <= cur_valid;
      if (cur_valid) begin
        prev_data <= cur_data;
        prev_last <= cur_last;
        prev_end  <= cur_end;
        prev_user <= cur_user;
      end
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
  lane_t       taken;
  logic        body_first, body_last;
  // Words of the segment behind this one, from the one with the end of the headers on; none; the last lane of the last one.
  logic [16-LOG:0] body_words;
  logic        body_final;
  lane_t       body_end;
  logic [15:0] body_seed;

  // From the sequencer below.
  logic        ready, bad, next_last;
  logic [15:0] next_len, next_seed;

  // What goes on to the next stage.
  logic   stage_ready, emit, emit_last;
  count_t emit_headers, emit_total;

  wire count_t lane0 = body_first ? {1'b0, header_tail} : '0;
  wire         ends = body_final;
  wire count_t full = ends ? {1'b0, body_end} + count_t'(1) : count_t'(BYTES);
  wire count_t wanted = full - lane0;
  wire [16:0]  span = {1'b0, next_len} + 17'(header_tail) - 17'd1;
  // Bytes of the frame in the window; behind it there are more unless its last word is in it.
  wire [LOG+1:0] held = prev_last ? (LOG+2)'(prev_end) + (LOG+2)'(1) - (LOG+2)'(taken)
                                  : (LOG+2)'(BYTES + 1) + (LOG+2)'(cur_end) - (LOG+2)'(taken);
  wire           final_word = prev_last || cur_last;
  wire           exhausts = final_word && held <= (LOG+2)'(wanted);
  wire           cut = final_word && held < (LOG+2)'(wanted);
  // With a word that is cut short all of the frame has been used, whatever this says.
  wire [LOG+1:0] used = (LOG+2)'(taken) + (LOG+2)'(wanted);
  wire           used_up = used >= (LOG+2)'(BYTES);
  wire           finishes = exhausts || (ends && body_last);
  // The headers that are ready are those of the segment in hand until its first word of payload has left.
  wire           prepared = ready && !body_first;
  wire           to_head = header_words != '0;
  wire           step_on = emit && stage_ready;

  always_comb begin
    emit = 1'b0;
    advance = 1'b0;
    emit_last = 1'b0;
    emit_headers = '0;
    emit_total = count_t'(BYTES);
    case (state)
      IDLE: begin
        emit = prev_valid && prev_user.seg == SEG_NONE;
        advance = emit && stage_ready;
        emit_last = prev_last;
        emit_total = {1'b0, prev_end} + count_t'(1);
      end
      COLLECT: advance = prev_valid && at != header_words && !prev_last;
      HEAD: begin
        emit = 1'b1;
        emit_headers = count_t'(BYTES);
      end
      BODY: begin
        emit = prev_valid && (prev_last || cur_valid);
        emit_headers = lane0;
        emit_total = cut ? lane0 + held[LOG:0] : full;
        emit_last = ends || exhausts;
        advance = emit && stage_ready && (used_up || (prev_last && finishes));
      end
      DROP: advance = prev_valid;
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
        if (prev_valid && prev_user.seg != SEG_NONE) state <= COLLECT;
      end

      COLLECT:
      if (prev_valid) begin
        at <= at + 1'b1;
        taken <= header_tail;
        // At least one byte of payload.
        if (at == header_words && !(prev_last && prev_end < header_tail)) begin
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
        body_final <= body_words == (17-LOG)'(1);
        taken <= used[LOG-1:0];
        if (emit_last) begin
          at <= '0;
          if (finishes) begin
            event_super <= 1'b1;
            event_length <= cut || !exhausts || !ends || !body_last;
            state <= prev_last ? IDLE : DROP;
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
      body_final <= span[16:LOG] == '0;
      body_seed <= next_seed;
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
  // The sequencer: a half-word of the headers or a number a step
  //
  //   IPv4  l3+0 |version|IHL|  TOS  |  l3+2 |total length|  l3+4 |ident|  l3+6 |flags, offset|  l3+8 |TTL|protocol|
  //   IPv6  l3+0 |version| class ... |  l3+4 |payload length|  l3+6 |next header|hop limit|
  //   TCP   l4+4 |sequence, high|  l4+6 |sequence, low|  l4+12 |data offset|flags|
  //   UDP   l4+4 |length|

  typedef enum logic [3:0] {
    CHECK_IP,
    CHECK_LENGTH,
    CHECK_FRAGMENT,
    CHECK_PROTOCOL,
    SIZE,            // of the next segment
    SEED,            // of its checksum
    SEED_CARRY,
    REST,            // payload behind it
    CHECK_L4,
    WRITE_LENGTH,
    WRITE_IDENT,
    WRITE_SEQ_LOW,
    WRITE_SEQ_HIGH,
    WRITE_L4,
    READY
  } step_t;

  step_t       step, step_next;
  logic        first;                 // segment
  logic        carry;
  logic [15:0] rest, base_seed;
  logic        fin, psh, cwr;
  logic [6:0]  field_at, field_next;  // number of the half-word for this step, of that for the next
  logic        step_go, field_write;
  logic [15:0] field_value;

  wire tcp = prev_user.seg == SEG_TCP;
  wire udp = prev_user.seg == SEG_UDP;
  wire [7:0] l3 = prev_user.l3_start;
  wire [7:0] l4 = prev_user.csum_begin[7:0];
  // Bytes of headers that the IP length counts.
  wire [8:0] overhead = {1'b0, prev_user.hdr_len} - {1'b0, l3} - (prev_user.ipv6 ? 9'd40 : 9'd0);
  wire plain_ipv6 = {1'b0, l4} == {1'b0, l3} + 9'd40;
  wire [7:0] protocol = tcp ? 8'd6 : 8'd17;

  // The half-word, as a number.
  logic [15:0] half;
  always_comb begin
    logic [15:0] raw;
    raw = header_read[16*field_at[LOG-2:0]+:16];
    half = {raw[7:0], raw[15:8]};
  end

  logic [15:0] addend_a, addend_b;
  logic        addend_c;
  wire  [16:0] sum = {1'b0, addend_a} + {1'b0, addend_b} + 17'(addend_c);

  always_comb begin
    addend_a = half;
    addend_b = '0;
    addend_c = 1'b0;
    case (step)
      CHECK_LENGTH:   {addend_b, addend_c} = {~{{7{overhead[8]}}, overhead}, 1'b1};
      CHECK_FRAGMENT: {addend_a, addend_b} = {prev_user.csum_init, ~rest};
      CHECK_PROTOCOL: {addend_a, addend_c} = {base_seed, carry};
      SIZE:           {addend_a, addend_b, addend_c} = {prev_user.seg_size, ~rest, 1'b1};
      SEED:           {addend_a, addend_b} = {base_seed, next_len};
      SEED_CARRY:     {addend_a, addend_c} = {next_seed, carry};
      REST:           {addend_a, addend_b, addend_c} = {rest, ~next_len, 1'b1};
      WRITE_LENGTH:   {addend_a, addend_b} = {7'd0, overhead, next_len};
      WRITE_IDENT:    addend_c = 1'b1;
      WRITE_SEQ_LOW:  addend_b = prev_user.seg_size;
      WRITE_SEQ_HIGH: addend_c = carry;
      WRITE_L4:       {addend_a, addend_b} = {16'd8, next_len};
      default: ;
    endcase
  end

  // FIN and PSH belong to the last segment, CWR to the first (RFC 3168, section 6.1.2).
  wire [15:0] flags = {half[15:8], cwr && first, half[6:4], psh && next_last, half[2:1], fin && next_last};
  assign field_value = step == WRITE_L4 && tcp ? flags : sum[15:0];

  always_comb begin
    case (step)
      CHECK_IP:       step_next = CHECK_LENGTH;
      CHECK_LENGTH:   step_next = CHECK_FRAGMENT;
      CHECK_FRAGMENT: step_next = CHECK_PROTOCOL;
      CHECK_PROTOCOL: step_next = SIZE;
      SIZE:           step_next = SEED;
      SEED:           step_next = SEED_CARRY;
      SEED_CARRY:     step_next = REST;
      REST:           step_next = first ? CHECK_L4 : WRITE_LENGTH;
      CHECK_L4:       step_next = WRITE_LENGTH;
      WRITE_LENGTH:   step_next = first ? WRITE_L4 : !prev_user.ipv6 ? WRITE_IDENT : tcp ? WRITE_SEQ_LOW : WRITE_L4;
      WRITE_IDENT:    step_next = tcp ? WRITE_SEQ_LOW : WRITE_L4;
      WRITE_SEQ_LOW:  step_next = WRITE_SEQ_HIGH;
      WRITE_SEQ_HIGH: step_next = WRITE_L4;
      default:        step_next = READY;
    endcase
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
    field_write = 1'b0;
    step_go = 1'b1;
    case (step)
      // Words are read as soon as they are there.
      CHECK_IP, CHECK_LENGTH, CHECK_FRAGMENT, CHECK_PROTOCOL, CHECK_L4:
      step_go = collected || (state == COLLECT && {1'b0, field_at[6:LOG-1]} < {1'b0, at});
      WRITE_LENGTH, WRITE_IDENT, WRITE_SEQ_LOW, WRITE_SEQ_HIGH, WRITE_L4: begin
        step_go = collected;
        field_write = collected;
      end
      default: ;
    endcase
  end

  always_ff @(posedge clk) begin
    if (state == IDLE) begin
      step <= CHECK_IP;
      field_at <= l3[7:1];
      ready <= 1'b0;
      bad <= 1'b0;
      first <= 1'b1;
    end else if (state == BODY && step_on && body_first && !body_last) begin
      step <= SIZE;
      ready <= 1'b0;
      first <= 1'b0;
    end else if (step_go) begin
      step <= step_next;
      field_at <= field_next;
      ready <= step_next == READY;
      case (step)
        CHECK_IP: begin
          // What the request alone says, and version and header length.
          if (!(tcp || udp) || prev_user.csum != CSUM_PARTIAL || prev_user.hdr_len > 8'(HEADER_BYTES)) bad <= 1'b1;
          if (prev_user.seg_size == '0 || prev_user.csum_begin[15:8] != '0 || l3[0] || l4[0]) bad <= 1'b1;
          if (prev_user.csum_insert != {8'd0, l4} + (tcp ? 16'd16 : 16'd6)) bad <= 1'b1;
          if (udp && {1'b0, prev_user.hdr_len} != {1'b0, l4} + 9'd8) bad <= 1'b1;
          if (prev_user.ipv6) begin
            if (half[15:12] != 4'd6 || {1'b0, l4} < {1'b0, l3} + 9'd40) bad <= 1'b1;
          end else begin
            if (half[15:12] != 4'd4 || half[11:8] < 4'd5) bad <= 1'b1;
            if ({1'b0, l4} != {1'b0, l3} + {3'd0, half[11:8], 2'd0}) bad <= 1'b1;
          end
        end
        CHECK_LENGTH: begin
          rest <= sum[15:0];
          if (!sum[16]) bad <= 1'b1;
        end
        CHECK_FRAGMENT: begin
          {carry, base_seed} <= sum;
          if (!prev_user.ipv6 && half[13:0] != '0) bad <= 1'b1;
          // With extension headers the request is trusted.
          if (prev_user.ipv6 && plain_ipv6 && half[15:8] != protocol) bad <= 1'b1;
        end
        CHECK_PROTOCOL: begin
          base_seed <= sum[15:0];
          if (!prev_user.ipv6 && half[7:0] != protocol) bad <= 1'b1;
        end
        SIZE: begin
          next_last <= sum[16];
          next_len <= sum[16] ? rest : prev_user.seg_size;
          if (rest == '0) bad <= 1'b1;
        end
        SEED: {carry, next_seed} <= sum;
        SEED_CARRY: next_seed <= sum[15:0];
        REST: rest <= sum[15:0];
        CHECK_L4: begin
          {cwr, psh, fin} <= {half[7], half[3], half[0]};
          if (tcp && (half[15:12] < 4'd5 || {1'b0, prev_user.hdr_len} != {1'b0, l4} + {3'd0, half[15:12], 2'd0}))
            bad <= 1'b1;
        end
        WRITE_SEQ_LOW: carry <= sum[16];
        default: ;
      endcase
    end
  end

  // ---------------------------------------------------------------------------------------------------------------------
  // Access to the header memory. The sequencer rests while headers leave.

  assign header_read_at = state == HEAD || body_first ? at[WORD_W-1:0] : field_at[5:LOG-1];

  always_comb begin
    if (state == COLLECT) begin
      header_write_at = at[WORD_W-1:0];
      header_write_data = prev_data;
      // Behind the last of 128 bytes there is no room for a word without headers.
      header_write = {HALVES{prev_valid && (at != header_words || header_tail != '0)}};
    end else begin
      header_write_at = field_at[5:LOG-1];
      header_write_data = {HALVES{field_value[7:0], field_value[15:8]}};
      header_write = '0;
      header_write[field_at[LOG-2:0]] = field_write;
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

  wire out_ready = !m_axis_tvalid || m_axis_tready;
  assign stage_ready = !pick_valid || out_ready;

  always_ff @(posedge clk) begin
    if (stage_ready) begin
      pick_valid <= emit;
      pick_last <= emit_last;
      pick_header <= header_read;
      pick_headers <= emit_headers;
      pick_total <= emit_total;
      pick_turn <= state == IDLE ? '0 : taken - lane0[LOG-1:0];
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
