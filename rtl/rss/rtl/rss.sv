// Receive-side scaling: fills in the hash, its type, the channel and drop of rx_user_t in the beat with tlast.
//
//   s_axis --> register --+--> frame FIFO --------------------------------> + --> m_axis
//                         |                                                 ^
//                         +--> rx_parse --> rss_lookup --> result FIFO -----+
//                                             hash, rules, port map
//
// A frame's last beat waits for its result, 22 clocks after it came in; the FIFO holds what comes in meanwhile. A lookup takes
// eight clocks, as a minimum frame does at 64 bit: frames of 57 bytes and more pass without a pause, shorter ones (and, at
// wider streams, frames of fewer than eight beats) at eight clocks each.
//
// Configuration:
//   cfg_key              of the Toeplitz hash, byte 0 in bits 7:0
//   cfg_hash_tcp, _udp   hash the ports too
//   cfg_default_channel  of what is not IP, or not in whole
//   cfg_rule_enable      rules in force
//   cfg_port_enable      entries of the port map in force
// Tables are written one word a clock, at any time; they are not reset, and are what the memory holds until written:
//   cfg_address
//   0x000-0x00f          channels of eight values each of the hash's low seven bits, the first in [3:0]
//   0x080-0x08f          port map: port [15:0], channel [19:16]; the first entry that fits counts
//   0x0a0-0x0bf          what is done with frames that fit a rule: channel [3:0], drop [4]
//   0x0c0                any write: rules as written come into force; rules_busy for 8,192 clocks
//   0x400-0x7ff          rules: number [9:5], step [4:2], part [1:0]; see rss_rules and rss_lookup
// A rule that is changed must be off until rules_busy has fallen, an entry of the port map while it is written.
//
// Events: event_rule (a rule decided), event_drop (by dropping), event_port (the port map did), event_not_ip.
`default_nettype none

module rss
  import nic_pkg::*;
#(
    parameter int DATA_W = 64
) (
    input  wire                     clk,
    input  wire                     rst,

    input  wire  [DATA_W-1:0]       s_axis_tdata,
    input  wire  [DATA_W/8-1:0]     s_axis_tkeep,
    input  wire                     s_axis_tvalid,
    output logic                    s_axis_tready,
    input  wire                     s_axis_tlast,
    input  wire  [$bits(rx_user_t)-1:0] s_axis_tuser,

    output logic [DATA_W-1:0]       m_axis_tdata,
    output logic [DATA_W/8-1:0]     m_axis_tkeep,
    output logic                    m_axis_tvalid,
    input  wire                     m_axis_tready,
    output logic                    m_axis_tlast,
    output logic [$bits(rx_user_t)-1:0] m_axis_tuser,

    input  wire  [319:0]            cfg_key,
    input  wire                     cfg_hash_tcp,
    input  wire                     cfg_hash_udp,
    input  wire  [3:0]              cfg_default_channel,
    input  wire  [31:0]             cfg_rule_enable,
    input  wire  [15:0]             cfg_port_enable,
    input  wire                     cfg_write,
    input  wire  [10:0]             cfg_address,
    input  wire  [31:0]             cfg_data,
    output logic                    rules_busy,

    output logic                    event_rule,
    output logic                    event_drop,
    output logic                    event_port,
    output logic                    event_not_ip
);
  localparam int KEEP_W = DATA_W / 8;
  localparam int WORDS = DATA_W / 32;
  // Beats and frames on their way.
  localparam int DEPTH_LOG2 = 5, FRAMES_LOG2 = 4;
  localparam logic [7:0] TCP = 8'd6, UDP = 8'd17;

  if (DATA_W < 32 || DATA_W > 512 || (DATA_W & (DATA_W - 1)) != 0) begin : gen_bad
    $error("rss: DATA_W must be 32, 64, 128, 256 or 512");
  end

  logic [DATA_W-1:0] in_data;
  logic [KEEP_W-1:0] in_keep;
  logic              in_valid, in_ready, in_last, accept;
  rx_user_t          in_user;

  axis_register #(.DATA_W(DATA_W), .USER_W($bits(rx_user_t))) input_register (
      .clk, .rst, .s_axis_tdata, .s_axis_tkeep, .s_axis_tvalid, .s_axis_tready, .s_axis_tlast, .s_axis_tuser,
      .m_axis_tdata(in_data), .m_axis_tkeep(in_keep), .m_axis_tvalid(in_valid), .m_axis_tready(in_ready), .m_axis_tlast(in_last),
      .m_axis_tuser(in_user)
  );

  // ---- What the frame is.
  logic                    parse_valid, parse_found, parse_ipv6, parse_fragment, step_valid;
  logic [7:0]              parse_protocol;
  logic [15:0]             parse_len;
  logic [DATA_W-1:0]       step_words;
  logic [WORDS-1:0]        word_address, word_layer4;
  logic [WORDS-1:0][2:0]   word_index;

  // What the parser tells csum_rx alone.
  /* verilator lint_off PINCONNECTEMPTY */
  rx_parse #(.DATA_W(DATA_W)) parse (
      .clk, .rst, .in_data, .in_keep, .in_valid(accept), .in_last,
      .step_valid, .step_last(), .step_words, .word_ipv4(), .word_address, .word_index, .word_layer4, .byte_layer4(),
      .result_valid(parse_valid), .result_found(parse_found), .result_ipv6(parse_ipv6), .result_protocol(parse_protocol),
      .result_fragment(parse_fragment), .result_rerouted(), .result_len(parse_len), .result_udp_len(), .result_udp_unsummed(),
      .result_tcp(), .result_udp()
  );
  /* verilator lint_on PINCONNECTEMPTY */

  // Addresses and ports as they pass. The result is there before a word of the next frame can be.
  logic [7:0][31:0] address;
  logic [31:0]      ports;

  function automatic logic [31:0] big_endian(input logic [31:0] word);
    return {word[7:0], word[15:8], word[23:16], word[31:24]};
  endfunction

  always_ff @(posedge clk) begin
    if (step_valid) begin
      for (int i = 0; i < WORDS; i++) begin
        if (word_address[i]) address[word_index[i]] <= big_endian(step_words[32*i+:32]);
        if (word_layer4[i]) ports <= big_endian(step_words[32*i+:32]);
      end
    end
  end

  logic       result_valid, result_drop, result_by_rule, result_by_port;
  logic [31:0] result_hash;
  logic [2:0] result_hash_type;
  logic [3:0] result_channel;

  rss_lookup lookup (
      .clk, .rst, .cfg_key, .cfg_hash_tcp, .cfg_hash_udp, .cfg_default_channel, .cfg_rule_enable, .cfg_port_enable, .cfg_write,
      .cfg_address, .cfg_data, .rules_busy,
      .tuple_valid(parse_valid), .tuple_ip(parse_found), .tuple_ipv6(parse_ipv6), .tuple_protocol(parse_protocol),
      .tuple_source(parse_ipv6 ? {address[0], address[1], address[2], address[3]} : {96'd0, address[0]}),
      .tuple_destination(parse_ipv6 ? {address[4], address[5], address[6], address[7]} : {96'd0, address[1]}),
      .tuple_has_ports((parse_protocol == TCP || parse_protocol == UDP) && !parse_fragment && parse_len >= 16'd4),
      .tuple_source_port(ports[31:16]), .tuple_destination_port(ports[15:0]),
      .result_valid, .result_hash, .result_hash_type, .result_channel, .result_drop, .result_by_rule, .result_by_port
  );

  // ---- The frames meanwhile.
  typedef struct packed {
    logic [DATA_W-1:0] data;
    logic [KEEP_W-1:0] keep;
    logic              last;
  } beat_t;

  typedef struct packed {
    logic [31:0] hash;
    logic [2:0]  hash_type;
    logic [3:0]  channel;
    logic        drop;
  } result_t;

  beat_t                   beats[2**DEPTH_LOG2], head;
  rx_user_t                users[2**FRAMES_LOG2], user;
  result_t                 results[2**FRAMES_LOG2], result;
  logic [DEPTH_LOG2-1:0]   beat_in, beat_out;
  // Frames that have come in, that have a result, and that have gone out.
  logic [FRAMES_LOG2-1:0]  frame_in, frame_found, frame_out;
  // How many are held, so that full is a bit of it: beats, frames with their end, results.
  logic [DEPTH_LOG2:0]     beats_held;
  logic [FRAMES_LOG2:0]    frames_held, results_held;
  // Clocks until the next lookup may begin.
  logic [2:0]              gap;
  logic                    pop;

  wire accept_last = accept && in_last;
  wire pop_last    = pop && head.last;

  assign in_ready = !beats_held[DEPTH_LOG2] && !(in_last && (gap != '0 || frames_held[FRAMES_LOG2]));
  assign accept   = in_valid && in_ready;
  assign head     = beats[beat_out];
  assign user     = users[frame_out];
  assign result   = results[frame_out];
  assign pop      = (!m_axis_tvalid || m_axis_tready) && beats_held != '0 && (!head.last || results_held != '0);

  // With the result in its fields.
  rx_user_t user_out;
  always_comb begin
    user_out           = user;
    user_out.hash      = result.hash;
    user_out.hash_type = result.hash_type;
    user_out.channel   = result.channel;
    user_out.drop      = result.drop;
  end

  always_ff @(posedge clk) begin
    if (accept) begin
      beats[beat_in] <= '{data: in_data, keep: in_keep, last: in_last};
      beat_in        <= beat_in + 1'b1;
    end
    if (gap != '0) gap <= gap - 3'd1;
    // Only then is there room for it.
    if (accept_last) begin
      users[frame_in] <= in_user;
      frame_in <= frame_in + 1'b1;
      gap      <= 3'd7;
    end
    if (result_valid) begin
      results[frame_found] <=
          '{hash: result_hash, hash_type: result_hash_type, channel: result_channel, drop: result_drop};
      frame_found <= frame_found + 1'b1;
    end
    if (m_axis_tready) m_axis_tvalid <= 1'b0;
    if (pop) begin
      m_axis_tvalid <= 1'b1;
      {m_axis_tdata, m_axis_tkeep, m_axis_tlast} <= head;
      m_axis_tuser <= user_out;
      beat_out <= beat_out + 1'b1;
      if (pop_last) frame_out <= frame_out + 1'b1;
    end
    beats_held   <= beats_held + (DEPTH_LOG2 + 1)'(accept) - (DEPTH_LOG2 + 1)'(pop);
    frames_held  <= frames_held + (FRAMES_LOG2 + 1)'(accept_last) - (FRAMES_LOG2 + 1)'(pop_last);
    results_held <= results_held + (FRAMES_LOG2 + 1)'(result_valid) - (FRAMES_LOG2 + 1)'(pop_last);
    event_rule   <= result_valid && result_by_rule;
    event_drop   <= result_valid && result_drop;
    event_port   <= result_valid && result_by_port;
    event_not_ip <= result_valid && result_hash_type == HASH_NONE;
    if (rst) begin
      m_axis_tvalid <= 1'b0;
      beat_in       <= '0;
      beat_out      <= '0;
      frame_in      <= '0;
      frame_found   <= '0;
      frame_out     <= '0;
      beats_held    <= '0;
      frames_held   <= '0;
      results_held  <= '0;
      gap           <= '0;
      event_rule    <= 1'b0;
      event_drop    <= 1'b0;
      event_port    <= 1'b0;
      event_not_ip  <= 1'b0;
    end
  end
endmodule

`default_nettype wire
