// The registers around the DMA engine: rtl/regs/nic_regs.toml, in hardware.
//
// What is only kept for reading back (port map, indirection table, key) lies in a small memory, which is not reset; the blocks have
// copies of their own.
`default_nettype none

module nic_regs
  import nic_regs_pkg::*;
#(
    parameter int          QUEUES   = 4,
    // What FEATURES reads.
    parameter logic [31:0] BUILT_IN = '0
) (
    input  wire                 clk,
    input  wire                 rst,

    // From axil_slave, for addresses of this map.
    input  wire                 access,
    input  wire                 is_write,
    input  wire  [12:0]         addr,
    input  wire  [31:0]         write_data,
    output logic                done,
    output logic [31:0]         read_data,

    // The MAC
    input  wire                 link_up,
    input  wire                 link_full_duplex,
    input  wire  [23:0]         link_speed,
    output logic                link_irq,

    output logic [5:0]          cfg_mode,
    output logic [47:0]         cfg_address,
    output logic [63:0]         cfg_groups,
    output logic [31:0]         cfg_pause_high,
    output logic [31:0]         cfg_pause_low,

    // rss
    output logic                cfg_hash_tcp,
    output logic                cfg_hash_udp,
    output logic [3:0]          cfg_default_channel,
    output logic [319:0]        cfg_key,
    output logic [31:0]         cfg_rule_enable,
    output logic [15:0]         cfg_port_enable,
    output logic                cfg_write,
    output logic [10:0]         cfg_write_address,
    output logic [31:0]         cfg_write_data,
    input  wire                 rules_busy,

    // int_pacer, and which queues are paced by it
    output logic [QUEUES-1:0]   cfg_pacer_on,
    output logic [QUEUES*2-1:0] cfg_pacer_mode,
    output logic [QUEUES*16-1:0] cfg_pacer_timer,
    output logic [QUEUES*16-1:0] cfg_pacer_threshold,
    output logic [QUEUES-1:0]   cfg_adaptive,
    output logic [15:0]         cfg_tick_clocks,
    output logic [15:0]         cfg_adaptive_min,
    output logic [15:0]         cfg_adaptive_low,
    output logic [15:0]         cfg_adaptive_high,

    output logic [23:0]         cfg_join_timer,

    // What is counted, in the order of the registers from RX_FRAMES on.
    input  wire  [10:0]         events
);
  localparam int COUNTERS = 11;
  localparam logic [12:0] FIRST_COUNTER = RX_FRAMES;

  // Places of the rss block's write port.
  localparam logic [6:0] RSS_TABLE = 7'b0000000;
  localparam logic [6:0] RSS_PORTS = 7'b0001000;

  // What is read in the clock of a write is not looked at: collisions do not matter.
  (* no_rw_check *) logic [31:0] shadow[64];
  logic [31:0] shadow_q, shadow_data;
  logic [31:0] counters[COUNTERS];
  logic        changed, changed_enable, link_was_up;
  logic [10:0] rule_address;
  logic [31:0] adaptive;
  logic        waited, waited_more;

  wire         in_shadow  = addr[12:8] == 5'h10 && addr[7] || addr[12:8] == 5'h11 && !addr[7];
  wire  [5:0]  shadow_at  = {addr[8], addr[6:2]};
  wire         is_table   = addr[12:6] == INDIRECTION[12:6];
  wire         is_key     = addr[12:6] == KEY[12:6];
  wire         is_ports   = addr[12:6] == PORT_MAP[12:6];
  wire         is_pacing  = addr[12:6] == PACING_BASE[12:6];
  wire         is_counter = addr[12:6] == FIRST_COUNTER[12:6];
  wire  [2:0]  queue      = addr[5:3];
  // In the first clock of an access only.
  wire         writes     = access && is_write && !waited && !done;

  assign link_irq          = changed && changed_enable;
  assign cfg_adaptive_low  = {8'd0, adaptive[ADAPTIVE_LOW_MSB:ADAPTIVE_LOW_LSB]};
  assign cfg_adaptive_min  = {8'd0, adaptive[ADAPTIVE_MIN_MSB:ADAPTIVE_MIN_LSB]};
  assign cfg_adaptive_high = adaptive[ADAPTIVE_HIGH_MSB:ADAPTIVE_HIGH_LSB];

  // ---------------------------------------------------------------------------------------------------------------------
  // Writing

  always_ff @(posedge clk) begin
    if (writes && in_shadow) shadow[shadow_at] <= write_data;
    // A block RAM is slow to answer: its output goes straight into a register.
    shadow_q    <= shadow[shadow_at];
    shadow_data <= shadow_q;
  end

  always_ff @(posedge clk) begin
    cfg_write <= 1'b0;
    if (writes) begin
      case (addr)
        MODE:           cfg_mode <= write_data[5:0];
        LINK_INTERRUPT: begin
          changed_enable <= write_data[LINK_INTERRUPT_CHANGED_ENABLE];
          if (write_data[LINK_INTERRUPT_CHANGED]) changed <= 1'b0;
        end
        ADDRESS_LOW:    cfg_address[31:0] <= write_data;
        ADDRESS_HIGH:   cfg_address[47:32] <= write_data[15:0];
        HASH_LOW:       cfg_groups[31:0] <= write_data;
        HASH_HIGH:      cfg_groups[63:32] <= write_data;
        PAUSE_HIGH:     cfg_pause_high <= write_data;
        PAUSE_LOW:      cfg_pause_low <= write_data;
        RSS_CONTROL: begin
          cfg_hash_tcp        <= write_data[RSS_CONTROL_TCP];
          cfg_hash_udp        <= write_data[RSS_CONTROL_UDP];
          cfg_default_channel <= write_data[RSS_CONTROL_DEFAULT_QUEUE_MSB:RSS_CONTROL_DEFAULT_QUEUE_LSB];
        end
        RULE_ENABLE:    cfg_rule_enable <= write_data;
        RULE_ADDRESS:   rule_address <= write_data[10:0];
        RULE_DATA: begin
          cfg_write         <= 1'b1;
          cfg_write_address <= rule_address;
          cfg_write_data    <= write_data;
        end
        TICK:           cfg_tick_clocks <= write_data[15:0];
        ADAPTIVE:       adaptive <= write_data;
        JOIN_TIMER:     cfg_join_timer <= write_data[23:0];
        default: ;
      endcase
      if (is_key) begin
        // The register has the first of its four bytes highest, the block the first of all lowest.
        for (int i = 0; i < KEY_COUNT; i++) begin
          if (addr[5:2] == 4'(i)) cfg_key[32*i+:32] <= {write_data[7:0], write_data[15:8], write_data[23:16], write_data[31:24]};
        end
      end
      if (is_ports) begin
        cfg_write                     <= 1'b1;
        cfg_write_address             <= {RSS_PORTS, addr[5:2]};
        cfg_write_data                <= {12'd0, write_data[PORT_MAP_QUEUE_MSB:0]};
        cfg_port_enable[addr[5:2]]    <= write_data[PORT_MAP_VALID];
      end
      if (is_pacing) begin
        for (int q = 0; q < QUEUES; q++) begin
          if (queue == 3'(q)) begin
            if (addr[2]) cfg_pacer_timer[16*q+:16] <= write_data[PACING_TIMER_TIMER_MSB:0];
            else begin
              cfg_pacer_threshold[16*q+:16] <= write_data[PACING_CR_THRESHOLD_MSB:0];
              cfg_pacer_mode[2*q+:2]        <= write_data[PACING_CR_MODE_MSB:PACING_CR_MODE_LSB];
              cfg_adaptive[q]               <= write_data[PACING_CR_ADAPTIVE];
              cfg_pacer_on[q]               <= write_data[PACING_CR_ON];
            end
          end
        end
      end
      if (is_table) begin
        cfg_write         <= 1'b1;
        cfg_write_address <= {RSS_TABLE, addr[5:2]};
        cfg_write_data    <= write_data;
      end
    end
    link_was_up <= link_up;
    if (link_was_up != link_up) changed <= 1'b1;
    if (rst) begin
      cfg_mode            <= MODE_RESET_VALUE[5:0];
      changed             <= 1'b0;
      changed_enable      <= 1'b0;
      link_was_up         <= 1'b0;
      cfg_address         <= '0;
      cfg_groups          <= '0;
      cfg_pause_high      <= PAUSE_HIGH_RESET_VALUE;
      cfg_pause_low       <= PAUSE_LOW_RESET_VALUE;
      cfg_hash_tcp        <= RSS_CONTROL_RESET_VALUE[RSS_CONTROL_TCP];
      cfg_hash_udp        <= RSS_CONTROL_RESET_VALUE[RSS_CONTROL_UDP];
      cfg_default_channel <= '0;
      cfg_rule_enable     <= '0;
      cfg_port_enable     <= '0;
      cfg_key             <= '0;
      rule_address        <= '0;
      cfg_write           <= 1'b0;
      cfg_pacer_on        <= '0;
      cfg_pacer_mode      <= '0;
      cfg_pacer_timer     <= '0;
      cfg_pacer_threshold <= '0;
      cfg_adaptive        <= '0;
      cfg_tick_clocks     <= TICK_RESET_VALUE[15:0];
      adaptive            <= ADAPTIVE_RESET_VALUE;
      cfg_join_timer      <= JOIN_TIMER_RESET_VALUE[23:0];
    end
  end

  // ---------------------------------------------------------------------------------------------------------------------
  // Reading, and when an access is over

  always_ff @(posedge clk) begin
    // Twice, to read the small memory.
    waited      <= access && !done;
    waited_more <= access && !done && waited;
    done        <= access && !done && waited_more;
    if (rst) begin
      waited      <= 1'b0;
      waited_more <= 1'b0;
      done        <= 1'b0;
    end
  end

  logic [31:0] pacing_data;
  always_comb begin
    pacing_data = '0;
    for (int q = 0; q < QUEUES; q++) begin
      if (queue == 3'(q)) begin
        pacing_data = addr[2] ? {16'd0, cfg_pacer_timer[16*q+:16]}
                    : {cfg_pacer_on[q], 12'd0, cfg_adaptive[q], cfg_pacer_mode[2*q+:2], cfg_pacer_threshold[16*q+:16]};
      end
    end
  end

  always_ff @(posedge clk) begin
    read_data <= '0;
    case (addr)
      FEATURES:       read_data <= BUILT_IN;
      MODE:           read_data <= {26'd0, cfg_mode};
      LINK:           read_data <= {link_speed, 6'd0, link_full_duplex, link_up};
      LINK_INTERRUPT: read_data <= {30'd0, changed_enable, changed};
      ADDRESS_LOW:    read_data <= cfg_address[31:0];
      ADDRESS_HIGH:   read_data <= {16'd0, cfg_address[47:32]};
      HASH_LOW:       read_data <= cfg_groups[31:0];
      HASH_HIGH:      read_data <= cfg_groups[63:32];
      PAUSE_HIGH:     read_data <= cfg_pause_high;
      PAUSE_LOW:      read_data <= cfg_pause_low;
      RSS_CONTROL:    read_data <= {20'd0, cfg_default_channel, 6'd0, cfg_hash_udp, cfg_hash_tcp};
      RULE_ENABLE:    read_data <= cfg_rule_enable;
      RULE_ADDRESS:   read_data <= {rules_busy, 20'd0, rule_address};
      TICK:           read_data <= {16'd0, cfg_tick_clocks};
      ADAPTIVE:       read_data <= adaptive;
      JOIN_TIMER:     read_data <= {8'd0, cfg_join_timer};
      default: begin
        if (in_shadow && !(is_key && addr[5:2] >= 4'(KEY_COUNT))) read_data <= shadow_data;
        if (is_pacing) read_data <= pacing_data;
        if (is_counter && addr[5:2] < 4'(COUNTERS)) read_data <= counters[addr[5:2]];
      end
    endcase
  end

  always_ff @(posedge clk) begin
    for (int i = 0; i < COUNTERS; i++) counters[i] <= rst ? '0 : counters[i] + 32'(events[i]);
  end
endmodule

`default_nettype wire
