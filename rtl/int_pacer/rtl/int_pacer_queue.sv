// Interrupt pacing of one queue, in the four modes of queue accumulators (RTOS FTP application note, 4.5.3).
//
//              1 since the last interrupt      2 since the first new packet     3 since the last new packet
//   packet     ......p..p.........p....        ......p..p..............        ......p..p..............
//   timer      |<----- timer ----->|                 |<- timer ->|                      |<- timer ->|
//   interrupt  ____________________/~~         __________________/~~~~~        _____________________/~~
//
// What falls into one clock happens in this order: `taken`, then `packet`, then the question whether the interrupt is due.
// So a packet in the clock of `taken` belongs to the next interrupt (at worst one too many, never one too few), and a timer
// that runs out in the clock of `taken` raises nothing. `irq` shows the answer one clock later.
//
// There is one timer, not the three times of `nic::Pacing`: `taken` starts it in every mode, so it is right in any mode
// while no packet waits. After a change of the mode with packets waiting it runs on as it is until the next event that
// starts it. All other settings judge waiting packets at once.
//
// Adaptive mode: every `taken` for at least one packet moves the timer in force: one tick longer if there were `high`
// packets or more, half as long if there were `low` or fewer, never beyond [cfg_adaptive_min, cfg_timer]. The timer grows
// slowly while packets come in numbers and is short again after a few interrupts with little to do. cfg_timer stays the
// promise how long a packet waits.
`default_nettype none

module int_pacer_queue (
    input  wire         clk,
    input  wire         rst,

    input  wire  [15:0] cfg_tick_clocks,
    input  wire  [1:0]  cfg_mode,
    input  wire  [15:0] cfg_timer,
    input  wire  [15:0] cfg_threshold,
    input  wire         cfg_adaptive,
    input  wire  [15:0] cfg_adaptive_min,
    input  wire  [15:0] cfg_adaptive_low,
    input  wire  [15:0] cfg_adaptive_high,

    input  wire         packet,
    input  wire         taken,
    input  wire         masked,

    output logic        irq,
    output logic [15:0] pending,
    output logic [15:0] timer
);
  localparam logic [1:0] NO_TIMER = 2'd0, FIRST_NEW_PACKET = 2'd2, LAST_NEW_PACKET = 2'd3;

  // No packet waits: the same as pending == 0, held beside it because much depends on it.
  logic none, none_before;

  assign none_before = taken || none;

  // Time since the timer was started: whole ticks, which stop at the largest number, and clocks of the one that runs.
  logic [15:0] ticks, clocks;
  logic        start, tick_ends;

  assign start     = taken || packet && (cfg_mode == LAST_NEW_PACKET || cfg_mode == FIRST_NEW_PACKET && none_before);
  assign tick_ends = {1'b0, clocks} + 17'd1 >= {1'b0, cfg_tick_clocks};

  always_ff @(posedge clk) begin
    // A start in this clock has one clock behind it in the next.
    if (start) begin
      ticks  <= {15'd0, cfg_tick_clocks <= 16'd1};
      clocks <= {15'd0, cfg_tick_clocks > 16'd1};
    end else if (tick_ends) begin
      clocks <= '0;
      if (ticks != '1) ticks <= ticks + 16'd1;
    end else begin
      clocks <= clocks + 16'd1;
    end
    // The start counts as the last interrupt.
    if (rst) begin
      ticks  <= '0;
      clocks <= '0;
    end
  end

  // The timer in force when it follows the load. Whether there are many packets or few is found out as they arrive.
  logic [15:0] adaptive, bottom, high_less_1;
  logic [15:0] shortest;
  logic        many, few, longer, shorter;

  // Not 0, so that it does not depend on what is taken in this clock whether a packet fires at once.
  assign shortest = cfg_adaptive_min == '0 ? 16'd1 : cfg_adaptive_min;
  assign longer   = taken && !none && many;
  assign shorter  = taken && !none && !many && few;
  assign timer    = cfg_adaptive ? adaptive : cfg_timer;

  always_ff @(posedge clk) begin
    high_less_1 <= cfg_adaptive_high == '0 ? 16'd0 : cfg_adaptive_high - 16'd1;
    bottom      <= shortest < cfg_timer ? shortest : cfg_timer;
    many <= taken ? high_less_1 == '0 : {pending, packet} > {high_less_1, 1'b0};
    few  <= taken ? !packet || cfg_adaptive_low != '0 : {pending, packet} <= {cfg_adaptive_low, 1'b0};
    if (longer && adaptive < cfg_timer) adaptive <= adaptive + 16'd1;
    else if (shorter) adaptive <= (adaptive >> 1) < bottom ? bottom : adaptive >> 1;
    // New settings.
    else if (adaptive > cfg_timer) adaptive <= cfg_timer;
    else if (adaptive < bottom) adaptive <= bottom;
    if (rst) adaptive <= bottom;
  end

  // Due. To compare the number of packets with one less than the threshold keeps the adder for this clock's packet off the
  // path.
  logic [15:0] threshold_less_1;
  logic        is_full, is_late;

  assign is_full = taken ? threshold_less_1 == '0 : {pending, packet} > {threshold_less_1, 1'b0};
  assign is_late = cfg_mode != NO_TIMER && (start ? timer == '0 : ticks >= timer);

  always_ff @(posedge clk) begin
    threshold_less_1 <= cfg_threshold == '0 ? 16'd0 : cfg_threshold - 16'd1;
    none <= none_before && !packet;
    if (taken) pending <= {15'd0, packet};
    else if (packet && pending != '1) pending <= pending + 16'd1;
    irq <= (packet || !none_before) && (is_full || is_late) && !masked;
    if (rst) begin
      none    <= 1'b1;
      pending <= '0;
      irq     <= 1'b0;
    end
  end
endmodule

`default_nettype wire
