// Finds the layers of received frames while they pass: Ethernet, up to two VLAN tags, IPv4 with options, IPv6 with extension
// headers, and what lies above. It watches a stream and holds nothing back: the beats given are those that were accepted.
//
//   byte 0        6       10    12     14
//        +--------+--------+-----+------+ - - - - - - - - - - - - - - +---------------------+------------------------+
//        | destination | source  | type | up to two tags (TCI, type)  | IPv4, or IPv6       | TCP, UDP, ...          |
//        +--------+--------+-----+------+ - - - - - - - - - - - - - - +---------------------+------------------------+
//                          |--word -1---|---word 0---|---word 1---|---  ...
//
// From byte 10 on everything is made of 32-bit words: a type ends a word, tags and all headers are whole words. So the stream is
// shifted until words lie in the beat as they lie in headers (a step: DATA_W / 32 words), and each layer is found by a small
// machine of its own that looks at the words of a step in turn, one pipeline stage for each layer:
//
//   shift -> decode types -> tags -> IP header -> extension headers -> lengths
//
// What depends on a word alone is decoded one stage before the machine that needs it. No header above the tags is shorter than
// two words, so at 64 bit no machine has to wait for itself within a step.
//
// Words behind the end of a frame are not told apart from others: their bytes cannot make a frame well-formed, as a packet that
// needs them does not end within its frame.
//
//  IPv4  0 |ver|ihl| tos |  total length  |      IPv6  0 |ver| class |   flow label   |      extension header
//        1 |     ident   |flags|  offset  |            1 |  payload len  | next | hops |      0 | next | len |  ...      |
//        2 | ttl | proto | header checksum|          2-5 |         source            |        fragment: bits 31:16 offset, M
//        3 |           source             |          6-9 |       destination         |        routing: byte 3 segments left
//        4 |         destination          |
`default_nettype none

module rx_parse #(
    parameter int DATA_W = 64
) (
    input  wire                     clk,
    input  wire                     rst,

    // The stream. in_valid is low in reset.
    input  wire  [DATA_W-1:0]       in_data,
    input  wire  [DATA_W/8-1:0]     in_keep,
    input  wire                     in_valid,
    input  wire                     in_last,

    // One step for each beat, at least one clock each. Word i is in bits 32i+31:32i, its first byte in the lowest 8 of them.
    output logic                    step_valid,
    output logic                    step_last,
    output logic [DATA_W-1:0]       step_words,
    // The word belongs to an IPv4 header, options included.
    output logic [DATA_W/32-1:0]    word_ipv4,
    // The word is one of an address, number word_index: source first, so IPv4 has 0 and 1, IPv6 0 to 3 and 4 to 7.
    output logic [DATA_W/32-1:0]    word_address,
    output logic [DATA_W/32*3-1:0]  word_index,
    // The word is the first of layer 4: the ports, where that is TCP or UDP.
    output logic [DATA_W/32-1:0]    word_layer4,
    // The byte belongs to layer 4: up to the end of the IP packet, or of UDP by its own length.
    output logic [DATA_W/8-1:0]     byte_layer4,

    // One clock behind step_last, for one clock: what the frame is. All that word_* and byte_* said holds only if it is well-formed.
    output logic                    result_valid,
    // IP in whole: headers as they should be, none cut short, and the packet ends within the frame.
    output logic                    result_found,
    output logic                    result_ipv6,
    // The first protocol that is not an extension header, or that of the packet which a fragment is part of.
    output logic [7:0]              result_protocol,
    output logic                    result_tcp,
    output logic                    result_udp,
    // Part of a packet only. An atomic fragment is none (RFC 6946).
    output logic                    result_fragment,
    // A routing header sends the packet on: its destination is not that of the pseudo-header.
    output logic                    result_rerouted,
    // From the start of layer 4 to the end of the IP packet.
    output logic [15:0]             result_len,
    // If layer 4 is UDP: its length field, and whether its checksum field is 0.
    output logic [15:0]             result_udp_len,
    output logic                    result_udp_unsummed
);
  localparam int BYTES = DATA_W / 8;
  localparam int WORDS = DATA_W / 32;
  localparam int LOG = $clog2(BYTES);
  // The first byte of a word that matters, and its place in the beat.
  localparam int ORIGIN = 10;
  localparam int SHIFT = ORIGIN % BYTES;
  localparam int SKIPPED = ORIGIN / BYTES;
  // Bytes left of a packet: 65,575 at most, and as many below 0 in a frame of up to 128 KiB.
  localparam int LEFT_W = 18;
  localparam logic [7:0] TCP = 8'd6;
  localparam logic [7:0] UDP = 8'd17;

  if (DATA_W < 32 || DATA_W > 512 || (DATA_W & (DATA_W - 1)) != 0) begin : gen_bad
    $error("rx_parse: DATA_W must be 32, 64, 128, 256 or 512");
  end

  // What a header can be that follows IPv6, one bit each; none: it is layer 4.
  typedef struct packed {
    logic options;
    logic routing;
    logic authentication;
    logic fragment;
  } extension_t;

  function automatic extension_t extension(input logic [7:0] next);
    return '{
      options:        next == 8'd0 || next == 8'd60,
      routing:        next == 8'd43,
      authentication: next == 8'd51,
      fragment:       next == 8'd44
    };
  endfunction

  function automatic logic [LEFT_W-1:0] number(input logic [15:0] value);
    return LEFT_W'({value[7:0], value[15:8]});
  endfunction

  // ---- Shift: a step waits for the beat behind its own, unless its own is the last.
  // Without the bytes before the step.
  logic [DATA_W-8*SHIFT-1:0] held_data;
  logic [BYTES-1:0]          held_keep;
  logic                      held_valid, held_first, held_last, shift_now;

  assign shift_now = held_valid && (held_last || in_valid);

  always_ff @(posedge clk) begin
    if (in_valid) begin
      held_data <= in_data[DATA_W-1:8*SHIFT];
      held_keep <= in_keep;
      held_last <= in_last;
    end
    held_valid <= in_valid || (held_valid && !shift_now);
    if (shift_now) held_first <= held_last;
    if (rst) begin
      held_valid <= 1'b0;
      held_first <= 1'b1;
    end
  end

  logic              a_valid, a_first, a_last;
  logic [DATA_W-1:0] a_words;
  logic [BYTES-1:0]  a_keep;

  always_ff @(posedge clk) begin
    a_valid <= shift_now;
    a_first <= held_first;
    a_last  <= held_last;
    a_keep  <= held_keep;
    a_words <= {in_data[8*SHIFT-1:0], held_data};
    if (rst) a_valid <= 1'b0;
  end

  // ---- Decode the types that end a word. In the last step: its bytes that are of the frame, which may be less than none.
  localparam int TAIL_W = $clog2(BYTES) + 2;

  logic              b_valid, b_first, b_last;
  logic [DATA_W-1:0] b_words;
  logic [TAIL_W-1:0] b_tail, tail;
  logic [WORDS-1:0]  b_tag, b_ipv4, b_ipv6;

  always_comb begin
    tail = TAIL_W'(-SHIFT);
    for (int i = 0; i < BYTES; i++) if (a_keep[i]) tail = TAIL_W'(i + 1 - SHIFT);
  end

  always_ff @(posedge clk) begin
    b_valid <= a_valid;
    b_first <= a_first;
    b_last  <= a_last;
    b_tail  <= tail;
    b_words <= a_words;
    for (int i = 0; i < WORDS; i++) begin
      b_tag[i]  <= a_words[32*i+16+:16] == 16'h0081 || a_words[32*i+16+:16] == 16'ha888;
      b_ipv4[i] <= a_words[32*i+16+:16] == 16'h0008;
      b_ipv6[i] <= a_words[32*i+16+:16] == 16'hdd86;
    end
    if (rst) b_valid <= 1'b0;
  end

  // ---- Tags.
  typedef struct packed {
    logic       is_type;  // the word at hand ends in a type,
    logic [1:0] more;     // which may be that of a tag as often as this
    logic       is_ip;    // the word at hand is the first of an IP header
    logic       is_ipv6;
  } tags_t;

  tags_t            tags, tags_next;
  logic [1:0]       steps, steps_before;
  logic [WORDS-1:0] start, start_good;

  assign steps_before = b_first ? 2'd0 : steps;

  always_comb begin
    tags_next = tags;
    if (b_first) begin
      tags_next.is_type = 1'b0;
      tags_next.is_ip   = 1'b0;
    end
    if (steps_before == 2'(SKIPPED)) begin
      tags_next.is_type = 1'b1;
      tags_next.more    = 2'd2;
    end
    for (int i = 0; i < WORDS; i++) begin
      start[i] = tags_next.is_ip;
      // The version is what the type says, and the length at least that of the header without options.
      if (tags_next.is_ipv6) start_good[i] = b_words[32*i+4+:4] == 4'd6;
      else start_good[i] = b_words[32*i+4+:4] == 4'd4 && b_words[32*i+:4] >= 4'd5;
      tags_next.is_ip = tags_next.is_type && (b_ipv4[i] || b_ipv6[i]);
      if (tags_next.is_type) tags_next.is_ipv6 = b_ipv6[i];
      tags_next.is_type = tags_next.is_type && b_tag[i] && tags_next.more != 2'd0;
      tags_next.more    = tags_next.more - 2'd1;
    end
  end

  // Meanwhile, what the next machine needs is decoded.
  logic                   c_valid, c_first, c_last;
  logic [DATA_W-1:0]      c_words;
  logic [TAIL_W-1:0]      c_tail;
  logic [WORDS-1:0]       c_start, c_fragment;

  always_ff @(posedge clk) begin
    c_valid <= b_valid;
    c_first <= b_first;
    c_last  <= b_last;
    c_tail  <= b_tail;
    c_words <= b_words;
    c_start <= start & start_good;
    for (int i = 0; i < WORDS; i++) begin
      c_fragment[i] <= (b_words[32*i+16+:16] & 16'hff3f) != '0;
    end
    if (b_valid) begin
      tags <= tags_next;
      if (steps_before != 2'd3) steps <= steps_before + 2'd1;
    end
    if (rst) c_valid <= 1'b0;
  end

  // ---- IP header.
  typedef struct packed {
    logic       active;  // the word at hand is word `index` of a header,
    logic [3:0] index;
    logic [3:0] left;    // of which there are so many words from the start of the step
    logic       ipv6;
    logic [7:0] protocol;
    logic       fragment;
  } ip_t;

  ip_t                   ip, ip_next;
  logic [WORDS-1:0]      ipv4, address, len4, len6, behind;
  logic [WORDS-1:0][2:0] address_index;

  always_comb begin
    ip_next = ip;
    if (c_first) ip_next.active = 1'b0;
    ip_next.left = ip.left - 4'(WORDS);
    for (int i = 0; i < WORDS; i++) begin
      // A header that began in this step does not end before its sixth word.
      if (i < 5) behind[i] = ip.active && !c_first && ip.left == 4'(i);
      else behind[i] = ip_next.active && ip_next.left == 4'(i - WORDS);
      if (behind[i]) ip_next.active = 1'b0;
      if (c_start[i]) begin
        ip_next.active = 1'b1;
        ip_next.index  = 4'd0;
        ip_next.ipv6   = tags.is_ipv6;
        ip_next.left   = (tags.is_ipv6 ? 4'd10 : c_words[32*i+:4]) + 4'(i - WORDS);
      end
      ipv4[i]          = ip_next.active && !ip_next.ipv6;
      len4[i]          = ip_next.active && !ip_next.ipv6 && ip_next.index == 4'd0;
      len6[i]          = ip_next.active && ip_next.ipv6 && ip_next.index == 4'd1;
      address[i]       = ip_next.active && (ip_next.ipv6 ? ip_next.index >= 4'd2 : ip_next.index == 4'd3 || ip_next.index == 4'd4);
      address_index[i] = ip_next.ipv6 ? 3'(ip_next.index - 4'd2) : 3'(ip_next.index - 4'd3);
      if (ip_next.ipv6) begin
        if (ip_next.index == 4'd1) begin
          ip_next.protocol = c_words[32*i+16+:8];
          ip_next.fragment = 1'b0;
        end
      end else begin
        if (ip_next.index == 4'd1) ip_next.fragment = c_fragment[i];
        if (ip_next.index == 4'd2) begin
          ip_next.protocol = c_words[32*i+8+:8];
        end
      end
      if (ip_next.active) ip_next.index = ip_next.index + 4'd1;
    end
  end

  logic                   d_valid, d_first, d_last;
  logic [DATA_W-1:0]      d_words;
  logic [TAIL_W-1:0]      d_tail;
  logic [WORDS-1:0]       d_ipv4, d_address, d_len4, d_len6, d_behind;
  logic [WORDS-1:0][2:0]  d_index;
  extension_t [WORDS-1:0] d_extension;  // byte 0
  logic [WORDS-1:0]       d_fragment, d_segments;

  always_ff @(posedge clk) begin
    d_valid   <= c_valid;
    d_first   <= c_first;
    d_last    <= c_last;
    d_tail    <= c_tail;
    d_words   <= c_words;
    d_ipv4    <= ipv4;
    d_address <= address;
    d_index   <= address_index;
    d_len4    <= len4;
    d_len6    <= len6;
    d_behind  <= behind;
    for (int i = 0; i < WORDS; i++) begin
      d_extension[i] <= extension(c_words[32*i+:8]);
      d_fragment[i]  <= (c_words[32*i+16+:16] & 16'hf9ff) != '0;
      d_segments[i]  <= c_words[32*i+24+:8] != '0;
    end
    if (c_valid) ip <= ip_next;
    if (rst) d_valid <= 1'b0;
  end

  // What follows the IP header. Up to 128 bits there is a clock to find out, between the protocol and the end of the header.
  extension_t ip_kind, ip_kind_now;

  assign ip_kind_now = ip.ipv6 ? extension(ip.protocol) : '0;

  if (WORDS <= 4) begin : gen_kind_register
    always_ff @(posedge clk) ip_kind <= ip_kind_now;
  end else begin : gen_kind
    assign ip_kind = ip_kind_now;
  end

  // ---- Extension headers.
  typedef struct packed {
    logic       begun;    // the IP header has been left behind
    logic       active;   // a header is being walked over,
    logic [9:0] left;     // so many words from the start of the step to what follows it
    extension_t next;     // and this follows
    logic [2:0] count;    // headers that have been walked over
    logic [7:0] protocol;
    logic       fragment;
    logic       rerouted;
  } walk_t;

  // From the end of the step to the end of a header that begins at its word i.
  function automatic logic [9:0] beyond(input logic authentication, input logic fragment, input logic [7:0] len, input int i);
    if (authentication) return 10'(len) + 10'(i + 2 - WORDS);
    if (fragment) return 10'(i + 2 - WORDS);
    return {9'(len) + 9'((i + 2 - WORDS) >>> 1), 1'((i + 2 - WORDS) & 1)};
  endfunction

  walk_t            walk, walk_next;
  logic [WORDS-1:0] layer4;

  always_comb begin
    walk_next = walk;
    if (d_first) begin
      walk_next.begun    = 1'b0;
      walk_next.active   = 1'b0;
      walk_next.count    = 3'd0;
      walk_next.rerouted = 1'b0;
    end
    if (!walk_next.begun) begin
      walk_next.protocol = ip.protocol;
      walk_next.fragment = ip.fragment;
    end
    walk_next.left = walk.left - 10'(WORDS);
    for (int i = 0; i < WORDS; i++) begin
      logic       here, part;
      extension_t kind;
      // The header before may have begun in this step only if that is two words ago.
      if (i < 2) here = !d_first && walk.active && walk.left == 10'(i);
      else here = walk_next.active && walk_next.left == 10'(i - WORDS);
      if (d_behind[i]) kind = ip_kind;
      else kind = i < 2 ? walk.next : walk_next.next;
      here      = here || d_behind[i];
      layer4[i] = here && kind == '0;
      part      = kind.fragment && d_fragment[i];
      if (here) begin
        walk_next.begun  = 1'b1;
        // Eight headers are walked over only if the last is the end of all: behind a fragment's may be the middle of anything.
        walk_next.active = kind != '0 && (walk_next.count != 3'd7 || part);
        if (kind != '0) begin
          walk_next.count    = walk_next.count + 3'd1;
          walk_next.protocol = d_words[32*i+:8];
          walk_next.next     = part ? '0 : d_extension[i];
          walk_next.left     = beyond(kind.authentication, kind.fragment, d_words[32*i+8+:8], i);
          walk_next.fragment = part;
          if (kind.routing && d_segments[i]) walk_next.rerouted = 1'b1;
        end
      end
    end
  end

  // Meanwhile, bytes of the packet from the start of the step to its end.
  logic [LEFT_W-1:0] left, left_base, left_more;

  always_comb begin
    left_base = left;
    left_more = LEFT_W'(-BYTES);
    for (int i = 0; i < WORDS; i++) begin
      if (d_len4[i]) begin
        left_base = number(d_words[32*i+16+:16]);
        left_more = LEFT_W'(4 * i);
      end
      if (d_len6[i]) begin
        left_base = number(d_words[32*i+:16]);
        left_more = LEFT_W'(36 + 4 * i);
      end
    end
  end

  logic                  e_valid, e_first, e_last, e_ipv6, e_behind;
  logic [DATA_W-1:0]     e_words;
  logic [TAIL_W-1:0]     e_tail;
  logic [WORDS-1:0]      e_ipv4, e_address, e_layer4;
  logic [WORDS-1:0][2:0] e_index;

  always_ff @(posedge clk) begin
    e_valid   <= d_valid;
    e_first   <= d_first;
    e_last    <= d_last;
    e_tail    <= d_tail;
    e_words   <= d_words;
    e_ipv4    <= d_ipv4;
    e_address <= d_address;
    e_index   <= d_index;
    e_layer4  <= layer4;
    e_ipv6    <= ip.ipv6;
    // The IP header ends with the step.
    e_behind <= ip.active && ip.left == 4'd0 && ip_kind == '0;
    if (d_valid) begin
      walk <= walk_next;
      left <= left_base + left_more;
    end
    if (rst) e_valid <= 1'b0;
  end

  // ---- Lengths. Layer 4 may begin, and be empty, where the frame ends: with the step.
  logic                  ends;                       // the last header ends with the step
  logic                  open, open_next;            // layer 4 has begun
  logic                  second, second_next;        // the word at hand is the second of layer 4
  logic [WORDS-1:0]      inside4, seconds;
  logic [LEFT_W-1:0]     to_layer4;                     // to the start of layer 4, if it begins here, negative
  logic [15:0]           udp_word_len, udp_word_sum;
  logic                  is_udp;

  assign ends   = e_behind || (walk.active && walk.left == '0 && walk.next == '0);
  assign is_udp = walk.protocol == UDP;

  // From the start of the step that is told: bytes of the packet, and those that are summed.
  logic [LEFT_W-1:0] g_left, sum_left, sum_base, sum_more;

  always_comb begin
    open_next    = open && !e_first;
    second_next  = second && !e_first;
    to_layer4    = LEFT_W'(-BYTES);
    udp_word_len = '0;
    udp_word_sum = '0;
    sum_base     = |e_layer4 ? left : sum_left;
    sum_more     = |e_layer4 ? '0 : LEFT_W'(-BYTES);
    for (int i = 0; i < WORDS; i++) begin
      seconds[i] = second_next;
      if (second_next) begin
        udp_word_len = e_words[32*i+:16];
        udp_word_sum = e_words[32*i+16+:16];
        if (is_udp) begin
          sum_base = number(e_words[32*i+:16]);
          sum_more = LEFT_W'(4 * i - 4);
        end
      end
      second_next = e_layer4[i];
      if (e_layer4[i]) begin
        open_next = 1'b1;
        to_layer4 = LEFT_W'(-4 * i);
      end
      inside4[i] = open_next;
    end
  end

  logic                  g_valid, g_last, reached, g_ipv6, g_fragment, g_rerouted, udp_unsummed;
  logic [DATA_W-1:0]     g_words;
  logic [TAIL_W-1:0]     g_tail;
  logic [WORDS-1:0]      g_ipv4, g_address, g_layer4, g_inside;
  logic [WORDS-1:0][2:0] g_index;
  logic [LEFT_W-1:0]     len;
  logic [15:0]           udp_len;
  logic [7:0]            g_protocol;

  always_ff @(posedge clk) begin
    g_valid    <= e_valid;
    g_last     <= e_last;
    g_tail     <= e_tail;
    g_words    <= e_words;
    g_ipv4     <= e_ipv4;
    g_address  <= e_address;
    g_index    <= e_index;
    g_layer4   <= e_layer4;
    g_inside   <= inside4;
    g_left     <= left;
    g_ipv6     <= e_ipv6;
    g_protocol <= walk.protocol;
    g_fragment <= walk.fragment;
    g_rerouted <= walk.rerouted;
    reached    <= open_next || ends;
    if (e_valid) begin
      open     <= open_next;
      second   <= second_next;
      sum_left <= sum_base + sum_more;
      if (|e_layer4 || ends) len <= left + to_layer4;
      if (|seconds) begin
        udp_len      <= {udp_word_len[7:0], udp_word_len[15:8]};
        udp_unsummed <= udp_word_sum == '0;
      end
    end
    if (rst) g_valid <= 1'b0;
  end

  // ---- What the step is. Of its bytes the first `covered` are summed if they are of layer 4.
  logic [LOG:0]     covered;
  logic [WORDS-1:0] inside_step;

  always_ff @(posedge clk) begin
    step_valid   <= g_valid;
    step_last    <= g_last;
    step_words   <= g_words;
    word_ipv4    <= g_ipv4;
    word_address <= g_address;
    word_index   <= g_index;
    word_layer4  <= g_layer4;
    inside_step  <= g_inside;
    if (sum_left[LEFT_W-1]) covered <= '0;
    else if (|sum_left[LEFT_W-2:LOG]) covered <= (LOG + 1)'(BYTES);
    else covered <= {1'b0, sum_left[LOG-1:0]};
    if (rst) step_valid <= 1'b0;
  end

  always_comb begin
    for (int i = 0; i < BYTES; i++) begin
      // The first word always: what is shorter is not verified.
      byte_layer4[i] = word_layer4[i/4] || (inside_step[i/4] && covered > (LOG + 1)'(i));
    end
  end

  // ---- What the frame is.
  logic        is_long_enough, is_whole, r_ipv6, r_fragment, r_rerouted, r_unsummed;
  logic [7:0]  r_protocol;
  logic [15:0] r_len, r_udp_len;

  always_ff @(posedge clk) begin
    // The packet's end is not before the start of layer 4,
    is_long_enough <= reached && !len[LEFT_W-1];
    // and not behind the frame's.
    is_whole   <= signed'(g_left) <= LEFT_W'(signed'(g_tail));
    r_ipv6     <= g_ipv6;
    r_protocol <= g_protocol;
    r_fragment <= g_fragment;
    r_rerouted <= g_rerouted;
    r_len      <= len[15:0];
    r_udp_len  <= udp_len;
    r_unsummed <= udp_unsummed;

    result_valid        <= step_valid && step_last;
    result_found        <= is_long_enough && is_whole;
    result_ipv6         <= r_ipv6;
    result_protocol     <= r_protocol;
    result_tcp          <= r_protocol == TCP;
    result_udp          <= r_protocol == UDP;
    result_fragment     <= r_fragment;
    result_rerouted     <= r_rerouted;
    result_len          <= r_len;
    result_udp_len      <= r_udp_len;
    result_udp_unsummed <= r_unsummed;
    if (rst) result_valid <= 1'b0;
  end
endmodule

`default_nettype wire
