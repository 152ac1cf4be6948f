// Receive checksums: tells for each frame whether its IPv4 header's, TCP's or UDP's checksum is right, and the raw sum.
//
//   s_axis -+-> axis_annotate (store of 16 beats) ---------------------------> m_axis
//           |                                                     ^ status, raw sum
//           +-> frame_sum --------------------------> raw sums ---+
//           |                                                     |
//           +-> rx_parse --+-> bytes of the IPv4 header -> sum ---+
//                          +-> addresses, layer 4       -> sum ---+
//
// The stream passes unchanged; only tuser's csum_status and csum_raw are filled in, in the beat with tlast. The other fields of
// tuser are those that came in. What is said of a frame:
//
//   000  nothing: not IP, not in whole, or its headers are not as they should be
//   101  IPv4, and the header's checksum is wrong
//   001  IP and good so far; layer 4 is not looked at: a fragment, sent on by a routing header, neither TCP nor UDP, or it has
//        lengths that cannot be (TCP below 20 bytes, UDP below 8 or longer than the packet)
//   010, 110  TCP, right and wrong
//   011, 111  UDP, right and wrong. A checksum of 0 means "not used" over IPv4, which is right, and must not be over IPv6.
//
// The pseudo-header's addresses are summed where they pass, its length and protocol are added at the end.
`default_nettype none

module csum_rx
  import nic_pkg::*;
#(
    parameter int DATA_W = 64
) (
    input  wire                 clk,
    input  wire                 rst,

    // 0: csum_status says 000 for all frames. Quasi-static.
    input  wire                 cfg_enable,

    input  wire  [DATA_W-1:0]   s_axis_tdata,
    input  wire  [DATA_W/8-1:0] s_axis_tkeep,
    input  wire                 s_axis_tvalid,
    output logic                s_axis_tready,
    input  wire                 s_axis_tlast,
    input  wire  rx_user_t      s_axis_tuser,

    output logic [DATA_W-1:0]   m_axis_tdata,
    output logic [DATA_W/8-1:0] m_axis_tkeep,
    output logic                m_axis_tvalid,
    input  wire                 m_axis_tready,
    output logic                m_axis_tlast,
    output rx_user_t            m_axis_tuser,

    // Pulses: a frame with status 101; with 110 or 111.
    output logic                event_ip_bad,
    output logic                event_layer4_bad
);
  localparam int WORDS = DATA_W / 32;
  localparam int LANES = DATA_W / 16;
  localparam int BYTES = DATA_W / 8;
  // The first step of a frame has no byte behind the type then.
  localparam bit GAP = BYTES <= 8;
  // Notes are 12 clocks behind the last beat.
  localparam int DEPTH = 16;

  logic taken;
  assign taken = s_axis_tvalid && s_axis_tready && !rst;

  // ---- The layers.
  logic               step_valid, step_last;
  logic [DATA_W-1:0]  step_words;
  logic [WORDS-1:0]   word_ipv4, word_address;
  logic [BYTES-1:0]   byte_layer4;
  logic               found, found_ipv6, found_fragment, found_rerouted, found_unsummed, is_tcp, is_udp;
  logic [15:0]        found_len, found_udp_len;

  // Which word of an address it is does not matter to a sum; what the frame is, is known by the time of its sums.
  /* verilator lint_off PINCONNECTEMPTY */
  rx_parse #(
      .DATA_W(DATA_W)
  ) parse (
      .clk,
      .rst,
      .in_data            (s_axis_tdata),
      .in_keep            (s_axis_tkeep),
      .in_valid           (taken),
      .in_last            (s_axis_tlast),
      .step_valid,
      .step_last,
      .step_words,
      .word_ipv4,
      .word_address,
      .word_index         (),
      .word_layer4        (),
      .byte_layer4,
      .result_valid       (),
      .result_found       (found),
      .result_ipv6        (found_ipv6),
      .result_protocol    (),
      .result_tcp         (is_tcp),
      .result_udp         (is_udp),
      .result_fragment    (found_fragment),
      .result_rerouted    (found_rerouted),
      .result_len         (found_len),
      .result_udp_len     (found_udp_len),
      .result_udp_unsummed(found_unsummed)
  );
  /* verilator lint_on PINCONNECTEMPTY */

  // ---- Three sums.
  logic [BYTES-1:0] mask_header, mask_layer4;
  logic [15:0]      raw_sum, header_words, layer4_words;
  logic [LANES-1:0] header_carries, layer4_carries;
  logic             raw_valid, sums_valid;

  always_comb begin
    for (int i = 0; i < BYTES; i++) begin
      mask_header[i] = step_valid && word_ipv4[i/4];
      mask_layer4[i] = step_valid && (word_address[i/4] || byte_layer4[i]);
    end
  end

  frame_sum #(
      .DATA_W(DATA_W)
  ) raw (
      .clk,
      .rst,
      .in_data  (s_axis_tdata),
      .in_keep  (s_axis_tkeep),
      .in_valid (taken),
      .in_last  (s_axis_tlast),
      .sum      (raw_sum),
      .sum_valid(raw_valid)
  );

  // The other two are not folded but compared.
  /* verilator lint_off PINCONNECTEMPTY */
  ones_sum #(
      .DATA_W(DATA_W),
      .GAP   (GAP)
  ) header (
      .clk,
      .rst,
      .in_data  (step_words),
      .in_mask  (mask_header),
      .in_last  (step_valid && step_last),
      .sum      (),
      .sum_valid(sums_valid),
      .words    (header_words),
      .carries  (header_carries)
  );

  ones_sum #(
      .DATA_W(DATA_W),
      .GAP   (GAP)
  ) layer4 (
      .clk,
      .rst,
      .in_data  (step_words),
      .in_mask  (mask_layer4),
      .in_last  (step_valid && step_last),
      .sum      (),
      .sum_valid(),
      .words    (layer4_words),
      .carries  (layer4_carries)
  );
  /* verilator lint_on PINCONNECTEMPTY */

  // ---- With the sums: length and protocol, the rest of the pseudo-header, and what there is to check.
  logic [15:0] len;
  logic [15:0] rest;
  logic        carry, unused_rest;
  logic        s_found, s_ipv6, s_tcp, s_udp, s_unsummed;

  assign len = is_udp ? found_udp_len : found_len;
  // The end-around carry, seen before adding.
  assign carry = &len[15:5] && (is_udp ? len[4:0] >= 5'd15 : len[4:0] >= 5'd26);

  always_ff @(posedge clk) begin
    {rest, unused_rest} <= {len, 1'b1} + {11'd0, is_udp, 1'b0, !is_udp, !is_udp, is_udp, carry};
    s_found    <= found;
    s_ipv6     <= found_ipv6;
    s_tcp      <= is_tcp && !found_fragment && !found_rerouted && len >= 16'd20;
    s_udp      <= is_udp && !found_fragment && !found_rerouted && len >= 16'd8 && len <= found_len;
    s_unsummed <= found_unsummed;
  end

  // ---- Everything added: as it should be, the words and what has been carried out of them are ffff in one's complement. They
  // are then ffff as numbers: they are not 0, and not twice that much.
  localparam int COUNT_W = $clog2(LANES + 2) + 1;

  function automatic logic [COUNT_W-1:0] ones(input logic [LANES-1:0] bits);
    ones = '0;
    for (int i = 0; i < LANES; i++) ones = ones + COUNT_W'(bits[i]);
  endfunction

  function automatic logic is_ffff(input logic [15:0] words, input logic [COUNT_W-1:0] carried);
    return &words[15:COUNT_W] && words[COUNT_W-1:0] == ~carried;
  endfunction

  logic               t_valid, t_found, t_ipv6, t_tcp, t_udp, t_unsummed, t_header_good;
  logic [16:0]        t_words;
  logic [COUNT_W-1:0] t_carried;

  always_ff @(posedge clk) begin
    t_valid       <= sums_valid;
    t_found       <= s_found;
    t_ipv6        <= s_ipv6;
    t_tcp         <= s_tcp;
    t_udp         <= s_udp;
    t_unsummed    <= s_unsummed;
    t_header_good <= is_ffff(header_words, ones(header_carries));
    // As the words lie in the beat, so that a carry is worth 1.
    t_words       <= 17'(layer4_words) + 17'({rest[7:0], rest[15:8]});
    t_carried     <= ones(layer4_carries);
    if (rst) t_valid <= 1'b0;
  end

  logic [2:0] status;
  logic       is_good;

  always_comb begin
    is_good = is_ffff(t_words[15:0], t_carried + COUNT_W'(t_words[16]));
    if (t_udp && t_unsummed) is_good = !t_ipv6;
    if (!t_found) status = CS_UNCHECKED;
    else if (!t_ipv6 && !t_header_good) status = CS_IP_BAD;
    else if (t_tcp) status = is_good ? CS_TCP_GOOD : CS_TCP_BAD;
    else if (t_udp) status = is_good ? CS_UDP_GOOD : CS_UDP_BAD;
    else status = CS_IP_GOOD;
  end

  logic [2:0] note_status;
  logic       note_valid;

  always_ff @(posedge clk) begin
    note_status      <= cfg_enable ? status : CS_UNCHECKED;
    note_valid       <= t_valid;
    event_ip_bad     <= t_valid && cfg_enable && status == CS_IP_BAD;
    event_layer4_bad <= t_valid && cfg_enable && (status == CS_TCP_BAD || status == CS_UDP_BAD);
    if (rst) begin
      note_valid       <= 1'b0;
      event_ip_bad     <= 1'b0;
      event_layer4_bad <= 1'b0;
    end
  end

  // ---- The frames wait for what is said of them.
  localparam int RAW_W = 16;
  localparam int STATUS_W = 3;
  localparam int OTHERS_W = $bits(rx_user_t) - STATUS_W - RAW_W;

  // Its checksum fields are filled in here.
  /* verilator lint_off UNUSEDSIGNAL */
  rx_user_t              incoming;
  /* verilator lint_on UNUSEDSIGNAL */
  logic [OTHERS_W-1:0]   others;
  logic [STATUS_W-1:0]   out_status;
  logic [RAW_W-1:0]      out_raw;
  logic                  out_error;
  logic [OTHERS_W-2:0]   out_others;

  assign incoming = s_axis_tuser;
  assign others = {
    incoming.error,
    incoming.hash,
    incoming.hash_type,
    incoming.channel,
    incoming.drop,
    incoming.seg_count,
    incoming.seg_size,
    incoming.arrival
  };
  assign m_axis_tuser = {out_error, out_status, out_raw, out_others};

  axis_annotate #(
      .DATA_W(DATA_W),
      .USER_W(OTHERS_W),
      .NOTE_W(STATUS_W),
      .EARLY_W(RAW_W),
      .DEPTH (DEPTH)
  ) annotate (
      .clk,
      .rst,
      .s_axis_tdata,
      .s_axis_tkeep,
      .s_axis_tvalid,
      .s_axis_tready,
      .s_axis_tlast,
      .s_axis_tuser(others),
      .note        (note_status),
      .note_valid,
      .early       (raw_sum),
      .early_valid (raw_valid),
      .m_axis_tdata,
      .m_axis_tkeep,
      .m_axis_tvalid,
      .m_axis_tready,
      .m_axis_tlast,
      .m_axis_tuser({out_error, out_others}),
      .m_axis_note (out_status),
      .m_axis_early(out_raw)
  );
endmodule

`default_nettype wire
