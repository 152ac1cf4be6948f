// Finds the fields of plain TCP segments: Ethernet, up to two VLAN tags, IPv4 without options or IPv6 without extension headers.
//
//   0            12     14               ip              ip+20 / ip+40      tcp+20
//   | dst | src | [8100 tci | 88a8 tci] type | IPv4 / IPv6 | TCP | 01 01 08 0a value echo | payload
//
//   IPv4 +0 45 | tos | +2 length | +4 id | +6 DF | +8 ttl | 06 | +10 checksum | +12 source | +16 destination
//   IPv6 +0 6 class label        | +4 length | +6 06 | hop limit | +8 source (16) | +24 destination (16)
//   TCP  +0 ports | +4 sequence | +8 acknowledgement | +12 offset | +13 flags | +14 window | +16 checksum | +18 urgent
//
// Bytes are caught by their place behind the start of IP: a word is rotated by one of three constants, and each byte register takes
// its lane when the right word passes. The Ethernet type that decides about the place is never behind a byte of IP.
// A frame goes through: words -> rotated words -> bytes -> fields (fields_*) -> what the rules need (segment).
`default_nettype none

module lro_parse
  import nic_pkg::*;
  import lro_pkg::*;
#(
    parameter int DATA_W = 64
) (
    input  wire                clk,
    input  wire                rst,
    input  wire                cfg_enable,

    input  wire [DATA_W-1:0]   in_data,
    input  wire [DATA_W/8-1:0] in_keep,
    input  wire                in_valid,
    input  wire                in_last,
    input  wire rx_user_t      in_user,
    // With the last word.
    input  wire block_t        in_head,
    input  wire block_t        in_blocks,

    output logic               segment_valid,
    output segment_t           segment,
    input  wire                segment_take
);
  localparam int K = DATA_W / 8;
  // Bytes behind the start of IP that may matter: IPv6, TCP, timestamps up to the value.
  localparam int CAUGHT = 72;
  // Addresses and tags.
  localparam int ETHERNET = 20;

  function automatic logic [15:0] be16(input logic [7:0] high, input logic [7:0] low);
    return {high, low};
  endfunction

  // The word, and what its halfwords would mean as Ethernet types.
  logic [K-1:0][7:0] word;
  logic              word_valid, word_last;
  rx_user_t          word_user;
  block_t            word_head, word_blocks;
  logic [6:0]        word_bytes;
  logic [2:0]        is_vlan, is_v4, is_v6;

  always_ff @(posedge clk) begin
    word        <= in_data;
    word_valid  <= in_valid && !rst;
    word_last   <= in_last;
    word_user   <= in_user;
    word_head   <= in_head;
    word_blocks <= in_blocks;
    word_bytes  <= 7'($countones(in_keep));
    for (int i = 0; i < 3; i++) begin
      automatic int lane = (12 + 4 * i) % K;
      automatic logic [15:0] kind = be16(in_data[8*lane+:8], in_data[8*lane+8+:8]);
      is_vlan[i] <= kind == 16'h8100 || kind == 16'h88a8;
      is_v4[i]   <= kind == 16'h0800;
      is_v6[i]   <= kind == 16'h86dd;
    end
  end

  // Where IP begins, as far as it is known with this word.
  logic [4:0] index;                       // of the word, saturating
  logic [2:0] vlan_q, v4_q, v6_q, vlan, v4, v6;
  logic [1:0] tags;

  logic [4:0] next_index;
  logic [2:0] here;                        // the word has that type in it
  assign next_index = word_last ? '0 : index + 5'(index != '1);

  always_comb begin
    for (int i = 0; i < 3; i++) begin
      vlan[i] = here[i] ? is_vlan[i] : vlan_q[i];
      v4[i]   = here[i] ? is_v4[i] : v4_q[i];
      v6[i]   = here[i] ? is_v6[i] : v6_q[i];
    end
    tags = !vlan[0] ? 2'd0 : !vlan[1] ? 2'd1 : 2'd2;
  end

  logic [15:0] length_q, length;
  assign length = length_q + 16'(word_bytes);

  logic [ETHERNET-1:0][7:0] ethernet;
  logic [CAUGHT-1:0][7:0]   ip;

  // The word as it is and rotated, and who takes of it.
  logic [K-1:0][7:0]   plain_word, turned_word;
  logic [ETHERNET-1:0] ethernet_takes;
  logic [CAUGHT-1:0]   ip_takes;

  always_ff @(posedge clk) begin
    plain_word <= word;
    for (int i = 0; i < K; i++) begin
      turned_word[i] <= tags == 2'd0 ? word[(14+i)%K] : tags == 2'd1 ? word[(18+i)%K] : word[(22+i)%K];
    end
    for (int i = 0; i < ETHERNET; i++) ethernet_takes[i] <= word_valid && index == 5'(i / K);
    for (int i = 0; i < CAUGHT; i++) begin
      ip_takes[i] <= word_valid && (tags == 2'd0 ? index == 5'((14 + i) / K) :
                                    tags == 2'd1 ? index == 5'((18 + i) / K) : index == 5'((22 + i) / K));
    end
    for (int i = 0; i < ETHERNET; i++) if (ethernet_takes[i]) ethernet[i] <= plain_word[i%K];
    for (int i = 0; i < CAUGHT; i++) if (ip_takes[i]) ip[i] <= turned_word[i%K];
  end

  // The end of a frame, and what is known of it then.
  logic        ends, done;
  logic [15:0] ends_length, done_length;
  logic [1:0]  ends_tags, done_tags;
  logic [2:0]  ends_v4, ends_v6;           // for each place of the type
  logic        done_v4, done_v6;
  logic        done_has_v4, done_has_v6;   // it is long enough for the header
  rx_user_t    ends_user, done_user;
  block_t      ends_head, ends_blocks, done_head, done_blocks;

  always_ff @(posedge clk) begin
    if (word_valid) begin
      vlan_q   <= vlan;
      v4_q     <= v4;
      v6_q     <= v6;
      index    <= next_index;
      for (int i = 0; i < 3; i++) here[i] <= next_index == 5'((12 + 4 * i) / K);
      length_q <= word_last ? '0 : length;
    end
    ends        <= word_valid && word_last;
    ends_length <= length;
    ends_tags   <= tags;
    ends_v4     <= v4;
    ends_v6     <= v6;
    ends_user   <= word_user;
    ends_head   <= word_head;
    ends_blocks <= word_blocks;
    done        <= ends;
    done_length <= ends_length;
    done_tags   <= ends_tags;
    done_v4     <= ends_v4[ends_tags];
    done_v6     <= ends_v6[ends_tags];
    done_has_v4 <= ends_length >= 16'(ip_offset(ends_tags)) + 16'd20;
    done_has_v6 <= ends_length >= 16'(ip_offset(ends_tags)) + 16'd40;
    done_user   <= ends_user;
    done_head   <= ends_head;
    done_blocks <= ends_blocks;
    if (rst) begin
      index    <= '0;
      for (int i = 0; i < 3; i++) here[i] <= (12 + 4 * i) / K == 0;
      length_q <= '0;
      ends     <= 1'b0;
      done     <= 1'b0;
    end
  end

  // Fields. The caught bytes are those of the frame for one clock only: the next frame's first word may follow.
  logic        fields_valid, v4_plain, v4_options, v6_plain, v6_extended, is_tcp, is_fragment, may_join, stamps_layout;
  logic [16:0] ip_len;
  logic [15:0] ip_csum;
  logic [3:0]  data_offset;
  logic [4:0]  ip_words;                   // of the IP and the TCP header, of four bytes each
  segment_t    fields;                     // what needs no more than to be caught

  wire six = done_v6;

  function automatic logic [7:0] tcp_byte(input logic [CAUGHT-1:0][7:0] bytes, input logic v6_header, input int at);
    return v6_header ? bytes[40+at] : bytes[20+at];
  endfunction
  function automatic logic [31:0] tcp_word(input logic [CAUGHT-1:0][7:0] bytes, input logic v6_header, input int at);
    return {tcp_byte(bytes, v6_header, at), tcp_byte(bytes, v6_header, at + 1),
            tcp_byte(bytes, v6_header, at + 2), tcp_byte(bytes, v6_header, at + 3)};
  endfunction

  always_ff @(posedge clk) begin
    if (done) begin
      fields          <= '0;
      fields.v6       <= six;
      fields.tags     <= done_tags;
      fields.user     <= done_user;
      fields.head     <= done_head;
      fields.blocks   <= done_blocks;
      fields.frame_len <= done_length;
      fields.flags    <= tcp_byte(ip, six, 13);
      fields.window   <= be16(tcp_byte(ip, six, 14), tcp_byte(ip, six, 15));
      fields.seq      <= tcp_word(ip, six, 4);
      fields.ack      <= tcp_word(ip, six, 8);
      fields.stamps   <= {tcp_word(ip, six, 24), tcp_word(ip, six, 28)};
      fields.tag      <= be16(tcp_byte(ip, six, 0), tcp_byte(ip, six, 1)) ^ be16(tcp_byte(ip, six, 3), tcp_byte(ip, six, 2))
                         ^ (six ? be16(ip[22], ip[23]) : be16(ip[14], ip[15]));
      fields.key.v6   <= six;
      fields.key.tags <= done_tags;
      // 88a8 instead of 8100.
      fields.key.service <= {done_tags == 2'd2 && ethernet[16][3], done_tags != 2'd0 && ethernet[12][3]};
      if (done_tags != 2'd0) fields.key.tci[1:0] <= ethernet[15:14];
      if (done_tags == 2'd2) fields.key.tci[3:2] <= ethernet[19:18];
      fields.key.addresses <= six ? ip[39:8] : {192'd0, ip[19:12]};
      for (int i = 0; i < 4; i++) fields.key.ports[i] <= tcp_byte(ip, six, i);
      fields.same.macs     <= ethernet[11:0];
      // Of one that joins, version, length and protocol are known.
      fields.same.ip_class <= six ? {ip[3:1], ip[0][3:0]} : {16'd0, ip[1], 4'd0};
      fields.same.hops     <= six ? ip[7] : ip[8];
      fields.same.stamped  <= (six ? ip[52][7:4] : ip[32][7:4]) == 4'd8;
      fields.same.reserved <= six ? ip[52][3:0] : ip[32][3:0];
      // One that is cut short has no header; the lengths are compared below where the rest matters.
      v4_plain    <= done_v4 && ip[0] == 8'h45;
      v4_options  <= done_v4 && ip[0][7:4] == 4'd4 && ip[0][3:0] > 4'd5 && ip[9] == 8'd6 && done_has_v4;
      v6_plain    <= done_v6 && ip[0][7:4] == 4'd6;
      v6_extended <= done_v6 && ip[0][7:4] == 4'd6 && done_has_v6
                     && (ip[6] == 8'd0 || ip[6] == 8'd43 || ip[6] == 8'd44 || ip[6] == 8'd51 || ip[6] == 8'd60);
      is_tcp      <= (six ? ip[6] : ip[9]) == 8'd6;
      is_fragment <= !six && (be16(ip[6], ip[7]) & 16'h3fff) != '0;
      may_join    <= (six || be16(ip[6], ip[7]) == 16'h4000) && done_user.csum_status == CS_TCP_GOOD
                     && done_user.seg_size == '0 && (tcp_byte(ip, six, 13) & 8'hb7) == 8'h10 && cfg_enable;
      stamps_layout <= tcp_word(ip, six, 20) == 32'h0101_080a;
      ip_len      <= six ? 17'(be16(ip[4], ip[5])) + 17'd40 : 17'(be16(ip[2], ip[3]));
      ip_csum     <= be16(ip[10], ip[11]);
      data_offset <= six ? ip[52][7:4] : ip[32][7:4];
      ip_words    <= six ? 5'd10 + 5'(ip[52][7:4]) : 5'd5 + 5'(ip[32][7:4]);
    end
  end

  // What the rules need. One frame waits in the fields while another is at the output.
  logic        next_valid;
  // These registers are wide: each is filled in the clock after it has become free, so that what decides is a register, too.
  wire         moves       = next_valid && !segment_valid;
  wire [7:0]   ip_headers  = {1'b0, ip_words, 2'b0};
  wire [7:0]   headers     = 8'(ip_offset(fields.tags)) + ip_headers;
  wire [17:0]  packet_end  = 18'(ip_len) + 18'(ip_offset(fields.tags));
  wire         plain       = (v4_plain || v6_plain) && is_tcp && !is_fragment && data_offset >= 4'd5;
  wire  [16:0] csum_sum   = {1'b0, ~ip_csum} + {1'b0, ~ip_len[15:0]};
  segment_t    next;
  logic        next_plain, next_may_join;
  logic [7:0]  next_headers;
  logic [17:0] next_end;
  wire         next_whole  = next_plain && 18'(next_headers) <= next_end && next_end <= 18'(next.frame_len);

  always_ff @(posedge clk) begin
    if (!next_valid) begin
      next           <= fields;
      next.barrier   <= v4_options || v6_extended;
      next.ip_len    <= ip_len[15:0];
      next.payload   <= ip_len[15:0] - 16'(ip_headers);
      next.hdr_len   <= headers[6:0];
      next.stamped   <= data_offset == 4'd8;
      next.csum_part <= 16'(csum_sum[15:0]) + 16'(csum_sum[16]);
      next_plain     <= plain;
      next_headers   <= headers;
      next_end       <= packet_end;
      next_may_join  <= may_join && (data_offset == 4'd5 || (data_offset == 4'd8 && stamps_layout));
    end
    if (!segment_valid) begin
      segment          <= next;
      segment.whole    <= next_whole;
      segment.eligible <= next_whole && next_may_join && 18'(next_headers) != next_end;
      segment.next_seq <= next.seq + 32'(next.payload);
    end
    segment_valid <= moves || (segment_valid && !segment_take);
    next_valid    <= next_valid ? !moves : fields_valid;
    fields_valid  <= done || (fields_valid && next_valid);
    if (rst) begin
      fields_valid  <= 1'b0;
      next_valid    <= 1'b0;
      segment_valid <= 1'b0;
    end
  end

  // Of a type that is known to be a tag's, a bit tells which.
  wire unused = &{1'b0, ethernet};
endmodule

`default_nettype wire
