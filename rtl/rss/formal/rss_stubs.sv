// In place of rx_parse and rss_lookup in the proof of rss: any that answer each frame once, in order, sooner or later.
//
// When, and what, the solver chooses by inputs of rss that go nowhere else: cfg_write, cfg_data, cfg_address.
`default_nettype none

module rx_parse #(
    parameter int DATA_W = 64
) (
    input  wire                     clk,
    input  wire                     rst,
    input  wire  [DATA_W-1:0]       in_data,
    input  wire  [DATA_W/8-1:0]     in_keep,
    input  wire                     in_valid,
    input  wire                     in_last,
    output logic                    step_valid,
    output logic                    step_last,
    output logic [DATA_W-1:0]       step_words,
    output logic [DATA_W/32-1:0]    word_ipv4,
    output logic [DATA_W/32-1:0]    word_address,
    output logic [DATA_W/32*3-1:0]  word_index,
    output logic [DATA_W/32-1:0]    word_layer4,
    output logic [DATA_W/8-1:0]     byte_layer4,
    output logic                    result_valid,
    output logic                    result_found,
    output logic                    result_ipv6,
    output logic [7:0]              result_protocol,
    output logic                    result_fragment,
    output logic                    result_rerouted,
    output logic [15:0]             result_len,
    output logic [15:0]             result_udp_len,
    output logic                    result_udp_unsummed,
    output logic                    result_tcp,
    output logic                    result_udp
);
  assign {step_valid, step_last, step_words, word_ipv4, word_address, word_index, word_layer4, byte_layer4} = '0;
  assign {result_found, result_ipv6, result_protocol, result_fragment, result_rerouted} = '0;
  assign {result_len, result_udp_len, result_udp_unsummed, result_tcp, result_udp} = '0;

  always_ff @(posedge clk) result_valid <= in_valid && in_last && !rst;
endmodule

module rss_lookup
  import nic_pkg::*;
(
    input  wire          clk,
    input  wire          rst,
    input  wire  [319:0] cfg_key,
    input  wire          cfg_hash_tcp,
    input  wire          cfg_hash_udp,
    input  wire  [3:0]   cfg_default_channel,
    input  wire  [31:0]  cfg_rule_enable,
    input  wire  [15:0]  cfg_port_enable,
    input  wire          cfg_write,
    input  wire  [10:0]  cfg_address,
    input  wire  [31:0]  cfg_data,
    output logic         rules_busy,
    input  wire          tuple_valid,
    input  wire          tuple_ip,
    input  wire          tuple_ipv6,
    input  wire  [7:0]   tuple_protocol,
    input  wire  [127:0] tuple_source,
    input  wire  [127:0] tuple_destination,
    input  wire          tuple_has_ports,
    input  wire  [15:0]  tuple_source_port,
    input  wire  [15:0]  tuple_destination_port,
    output logic         result_valid,
    output logic [31:0]  result_hash,
    output logic [2:0]   result_hash_type,
    output logic [3:0]   result_channel,
    output logic         result_drop,
    output logic         result_by_rule,
    output logic         result_by_port
);
  // Answers that are due.
  logic [4:0] owed;

  assign rules_busy = 1'b0;
  assign result_valid = cfg_write && owed != '0 && !rst;
  assign result_hash = cfg_data;
  assign {result_hash_type, result_channel, result_drop, result_by_rule, result_by_port} = cfg_address[9:0];

  always_ff @(posedge clk) begin
    owed <= owed + 5'(tuple_valid) - 5'(result_valid);
    if (rst) owed <= '0;
  end
endmodule

`default_nettype wire
