// int_pacer_queue: its interrupt is what `nic::Pacing` says, in every clock and every mode, with ticks of three clocks.
//
// Any packets, taken and masked; mode, timer and threshold are any, but stay. The reference counts clocks, without ticks. By
// induction; no bound but the width of the counters.
`default_nettype none

module int_pacer_formal (
    input wire        clk,
    input wire        rst,
    input wire [1:0]  mode,
    input wire [15:0] timer,
    input wire [15:0] threshold,
    input wire        packet,
    input wire        taken,
    input wire        masked
);
  localparam logic [16:0] MOST = 17'h1ffff;

  logic        irq;
  logic [15:0] pending, timer_in_force;

  // It begins with a reset of several clocks, as what the block derives from the settings needs them.
  logic [1:0] begun = '0;
  always_ff @(posedge clk) if (begun != 2'd3) begun <= begun + 2'd1;
  always @(posedge clk) if (begun != 2'd3) assume (rst);

  logic [33:0] settings;
  always_ff @(posedge clk) settings <= {mode, timer, threshold};
  always @(posedge clk) if (begun != '0) assume ({mode, timer, threshold} == settings);

  int_pacer_queue dut (
      .clk, .rst, .cfg_tick_clocks(16'd3), .cfg_mode(mode), .cfg_timer(timer), .cfg_threshold(threshold), .cfg_adaptive(1'b0),
      .cfg_adaptive_min(16'd0), .cfg_adaptive_low(16'd0), .cfg_adaptive_high(16'd0), .packet, .taken, .masked, .irq, .pending,
      .timer(timer_in_force)
  );

  // The reference: packets that wait, and clocks since what the mode's timer counts from; both stop at the end.
  logic [16:0] waiting, waiting_now;
  logic [17:0] since, since_now;
  logic        due, expected;

  always_comb begin
    waiting_now = taken ? '0 : waiting;
    since_now   = taken ? '0 : since;
    if (packet) begin
      if (mode == 2'd3 || mode == 2'd2 && waiting_now == '0) since_now = '0;
      if (waiting_now != MOST) waiting_now = waiting_now + 17'd1;
    end
    due = waiting_now != '0 && (waiting_now >= {1'b0, threshold} || mode != 2'd0 && since_now >= 18'(timer) * 18'd3);
  end

  always_ff @(posedge clk) begin
    waiting  <= waiting_now;
    if (since_now != '1) since <= since_now + 18'd1;
    expected <= due && !masked;
    if (rst) begin
      waiting  <= '0;
      since    <= '0;
      expected <= 1'b0;
    end
  end

  wire [17:0] counted = 18'(dut.ticks) * 18'd3 + 18'(dut.clocks);

  always @(posedge clk) begin
    if (begun == 2'd3) begin
      assert (irq == expected);
      assert (pending == (waiting > 17'hffff ? 16'hffff : waiting[15:0]));
      assert (timer_in_force == timer);
      // Never for nothing.
      if (irq) assert (pending != '0);
      // What induction needs to know.
      assert (dut.none == (pending == '0) && dut.clocks <= 16'd2);
      assert (dut.threshold_less_1 == (threshold == '0 ? 16'd0 : threshold - 16'd1));
      assert (dut.ticks == '1 ? since >= 18'h2fffd : since == counted);
    end
  end
endmodule

`default_nettype wire
