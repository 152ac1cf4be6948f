// From what identifies a flow to its queue: flow rules first, then the port map, then the hash and its table.
//
// Eight clocks a lookup, started at any distance of at least eight; the answer comes 13 clocks after `tuple_valid`.
// The register that holds what is looked up is shifted by 36 + 4 bits a clock, through the hash and the rules:
//
//   bits of the hash   0      32      64      96                            256     287
//   IPv6              | source address (128)  | destination address (128)  | ports |
//   IPv4              | source| dest. | ports | 0                          | ports |
//   step              |  0  |  1  |  2  |  3  |  4  |  5  |  6  |  7  |        36 bits each
//   beside it         |p7:4 |p3:0 |flags|  0  |  0  |  0  |  0  |  0  |        4 bits each: protocol; flags {IPv6, ports, 0, 0}
//
// The ports in bits 256 to 287 are for the rules, so that a rule for a port suits both versions; the hash does not see
// them if they do not belong to it (IPv4, or addresses only).
`default_nettype none

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
    // An IPv4 address in the lowest 32 bits, its first byte highest.
    input  wire  [127:0] tuple_source,
    input  wire  [127:0] tuple_destination,
    // Only TCP and UDP have ports, and no fragment.
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
  localparam logic [7:0] TCP = 8'd6;

  // What is looked up.
  logic [287:0] tuple;
  logic [11:0]  beside;
  logic [2:0]   step, hash_type;
  logic         active, is_ip, has_ports, hash_ports;
  logic [15:0]  port;

  wire is_tcp   = tuple_protocol == TCP;
  wire use_port = tuple_has_ports && (is_tcp ? cfg_hash_tcp : cfg_hash_udp);
  wire [31:0] both_ports = tuple_has_ports ? {tuple_source_port, tuple_destination_port} : '0;
  wire last_step = active && step == 3'd7;

  always_ff @(posedge clk) begin
    step   <= step + 3'd1;
    tuple  <= tuple << 36;
    beside <= beside << 4;
    if (last_step) active <= 1'b0;
    if (tuple_valid) begin
      active     <= 1'b1;
      step       <= '0;
      tuple      <= tuple_ipv6
                  ? {tuple_source, tuple_destination, both_ports}
                  : {tuple_source[31:0], tuple_destination[31:0], use_port ? both_ports : 32'd0, 160'd0, both_ports};
      beside     <= {tuple_protocol, tuple_ipv6, tuple_has_ports, 2'b00};
      is_ip      <= tuple_ip;
      has_ports  <= tuple_has_ports && tuple_ip;
      hash_ports <= use_port && tuple_ipv6;
      port       <= tuple_destination_port;
      hash_type  <= !tuple_ip ? HASH_NONE
                  : !use_port ? (tuple_ipv6 ? HASH_IPV6 : HASH_IPV4)
                  : is_tcp    ? (tuple_ipv6 ? HASH_TCP6 : HASH_TCP4)
                              : (tuple_ipv6 ? HASH_UDP6 : HASH_UDP4);
    end
    if (rst) active <= 1'b0;
  end

  wire [35:0] word = tuple[287-:36];

  logic [31:0] hash;
  rss_hash hash_core (
      .clk, .cfg_key, .word_valid(active), .step, .hash,
      .word(word & {4'hf, {32{hash_ports || step != 3'd7}}})
  );

  // The write port.
  wire write_rule = cfg_write && cfg_address[10];
  wire write_low  = cfg_write && !cfg_address[10];
  wire is_table   = write_low && cfg_address[9:4] == 6'h00;
  wire is_port    = write_low && cfg_address[9:4] == 6'h08;
  wire is_action  = write_low && cfg_address[9:5] == 5'h05;
  wire is_commit  = write_low && cfg_address[9:0] == 10'h0c0;

  logic [31:0] hit;
  rss_rules rules (
      .clk, .rst, .write(write_rule), .write_rule(cfg_address[9:5]), .write_step(cfg_address[4:2]),
      .write_part(cfg_address[1:0]), .write_data(cfg_data), .commit(is_commit), .busy(rules_busy),
      .word_valid(active), .step, .word({beside[11-:4], word}), .hit
  );

  // The port map: two of its 16 entries in each step, the lower number first.
  logic [19:0] even_ports[8], odd_ports[8];
  logic        even_hit, odd_hit, port_first, port_valid, port_found;
  logic [3:0]  even_channel, odd_channel, port_channel;

  always_ff @(posedge clk) begin
    if (is_port && !cfg_address[0]) even_ports[cfg_address[3:1]] <= cfg_data[19:0];
    if (is_port && cfg_address[0]) odd_ports[cfg_address[3:1]] <= cfg_data[19:0];
    port_valid   <= active;
    port_first   <= step == 3'd0;
    even_hit     <= has_ports && cfg_port_enable[{step, 1'b0}] && even_ports[step][15:0] == port;
    odd_hit      <= has_ports && cfg_port_enable[{step, 1'b1}] && odd_ports[step][15:0] == port;
    even_channel <= even_ports[step][19:16];
    odd_channel  <= odd_ports[step][19:16];
    if (port_valid && (port_first || !port_found)) begin
      port_found   <= even_hit || odd_hit;
      port_channel <= even_hit ? even_channel : odd_channel;
    end
  end

  // What belongs to the lookup whose last step was so many clocks ago, in turn.
  logic [5:1]  ended;
  logic        is_ip_1;
  logic [2:0]  hash_type_1;
  logic [31:0] indirection[16], hash_1, channels;
  logic [3:0]  port_channel_1;
  logic        port_found_1, rule_found, rule_found_1;
  logic [4:0]  rule, actions[32], action, first_rule;

  always_comb begin
    first_rule = '0;
    for (int i = 31; i >= 0; i--) if (hit[i] && cfg_rule_enable[i]) first_rule = 5'(i);
  end

  always_ff @(posedge clk) begin
    if (is_table) indirection[cfg_address[3:0]] <= cfg_data;
    if (is_action) actions[cfg_address[4:0]] <= cfg_data[4:0];
    ended <= {ended[4:1], last_step};
    if (last_step) begin
      is_ip_1     <= is_ip;
      hash_type_1 <= hash_type;
    end
    // Hash and port map are complete.
    if (ended[2]) begin
      hash_1         <= hash;
      channels       <= indirection[hash[6:3]];
      port_found_1   <= port_found;
      port_channel_1 <= port_channel;
    end
    // The rules are.
    rule         <= first_rule;
    rule_found   <= |(hit & cfg_rule_enable) && is_ip_1;
    action       <= actions[rule];
    rule_found_1 <= rule_found;
    if (rst) ended <= '0;
  end

  always_ff @(posedge clk) begin
    result_valid <= ended[5];
    if (ended[5]) begin
      result_hash      <= is_ip_1 ? hash_1 : '0;
      result_hash_type <= hash_type_1;
      result_drop      <= rule_found_1 && action[4];
      result_by_rule   <= rule_found_1;
      result_by_port   <= !rule_found_1 && port_found_1;
      if (!is_ip_1) result_channel <= cfg_default_channel;
      else if (rule_found_1) result_channel <= action[3:0];
      else if (port_found_1) result_channel <= port_channel_1;
      else result_channel <= channels[hash_1[2:0]*4+:4];
    end
    if (rst) result_valid <= 1'b0;
  end
endmodule

`default_nettype wire
