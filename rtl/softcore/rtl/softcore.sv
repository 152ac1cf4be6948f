// The board `softcore`: a RISC-V core with caches, memory, and the network interface, all at one clock (100 MHz).
//
//   soft_system (processor, interface) --- soft_memory   64 MiB; 18 clocks to the first word, 8 bytes a clock;
//        |                                               or `sdram` with a model of its chip, if SDRAM is set
//        | AXI4-Stream
//       the cable
//
// The interface's clock stops while nothing moves, as it would on a chip: all that it costs is the time that its counter of clocks tells.
// In simulation that is most of the work.
//
// Nor has the rest to be clocked while the processor sleeps and nothing moves (`is_still`): then all that a clock changes is the count of
// clocks, and `skipped` adds to it as many as whoever drives the clock leaves out. (The core's own count, mcycle, stops; no image reads it.)
`default_nettype none

module softcore #(
    // log2 of the memory's bytes.
    parameter int SIZE_W  = 26,
    parameter int LATENCY = 18,
    // The memory of an FPGA board instead, with the waits that its chip has at a clock of so many nanoseconds: 0 for none.
    parameter int SDRAM   = 0,
    // Megabits per second, as the interface tells.
    parameter int SPEED   = 1000,
    // Clocks without a transfer after which the interface's clock may stop: more than any timer in it is set to.
    parameter int HOLD    = 16384
) (
    input  wire         clk,
    input  wire         rst,
    // The interface's clock: the edges of `clk` at which `nic_wanted` is set.
    input  wire         nic_clk,
    output logic        nic_wanted,

    // Whether the processor sleeps; and whether, until something comes over cable or line, or the timer interrupts, nothing will change.
    output logic        is_asleep,
    output logic        is_still,
    output logic [63:0] until_timer,
    // Clocks that pass together with this one; only while `is_still`, and fewer than `until_timer`.
    input  wire  [31:0] skipped,

    // Memory, written while `rst` is set.
    input  wire         load_valid,
    input  wire  [31:0] load_address,
    input  wire  [63:0] load_data,

    // Serial line: a byte in a clock.
    output logic        sent_valid,
    output logic [7:0]  sent,
    input  wire         typed_valid,
    input  wire  [7:0]  typed,
    output logic        typed_ready,

    // The cable.
    output logic [63:0] m_axis_tdata,
    output logic [7:0]  m_axis_tkeep,
    output logic        m_axis_tvalid,
    input  wire         m_axis_tready,
    output logic        m_axis_tlast,
    input  wire  [63:0] s_axis_tdata,
    input  wire  [7:0]  s_axis_tkeep,
    input  wire         s_axis_tvalid,
    output logic        s_axis_tready,
    input  wire         s_axis_tlast,
    input  wire         s_axis_tuser,
    input  wire         link_up,
    input  wire  [31:0] straps,

    // Instructions that the core has executed, lines that the caches have filled, and stores, since the start.
    output logic [31:0] instructions,
    output logic [31:0] instruction_fills,
    output logic [31:0] data_fills,
    output logic [31:0] stores,
    // The instruction at the end of the pipeline, for whoever takes samples of it.
    output logic [31:0] pc
);
  localparam int BEAT_W  = SIZE_W - 3;
  localparam int MASTERS = 7;

  logic [MASTERS-1:0]             ask, is_write, grant, come;
  logic [MASTERS-1:0][BEAT_W-1:0] beat;
  logic [MASTERS-1:0][63:0]       data;
  logic [MASTERS-1:0][7:0]        strobes;
  logic [63:0]                    come_data;

  if (SDRAM == 0) begin : gen_memory
    soft_memory #(.MASTERS(MASTERS), .SIZE_W(SIZE_W), .LATENCY(LATENCY)) memory (
        .clk, .rst, .load_valid, .load_address, .load_data, .ask, .is_write, .beat, .data, .strobes, .grant, .come, .come_data
    );
  end else begin : gen_sdram
    // 64 MiB have columns of 10 bits.
    localparam int COL_W = SIZE_W - 16;
    logic        ras_n, cas_n, we_n, drive;
    logic [1:0]  ba, dqm;
    logic [12:0] a;
    logic [15:0] to_chip, from_chip;
    logic [31:0] faults;

    sdram #(.MASTERS(MASTERS), .SIZE_W(SIZE_W), .COL_W(COL_W), .CLK_NS(SDRAM), .WAKE_NS(2_000)) memory (
        .clk, .rst, .ask, .is_write, .beat, .data, .strobes, .grant, .come, .come_data,
        .sd_ras_n(ras_n), .sd_cas_n(cas_n), .sd_we_n(we_n), .sd_ba(ba), .sd_a(a), .sd_dqm(dqm),
        .sd_dq_out(to_chip), .sd_dq_drive(drive), .sd_dq_in(from_chip)
    );
    sdram_model #(.SIZE_W(SIZE_W), .COL_W(COL_W), .CLK_NS(SDRAM), .WAKE_NS(2_000)) chip (
        .load_valid, .load_address, .load_data,
        .sd_clk(!clk), .rst, .sd_ras_n(ras_n), .sd_cas_n(cas_n), .sd_we_n(we_n), .sd_ba(ba), .sd_a(a), .sd_dqm(dqm),
        .sd_dq_in(to_chip), .sd_dq_driven(drive), .sd_dq_out(from_chip), .faults
    );
    wire unused = &{1'b0, faults};
  end

  logic is_waiting, moves, fetch_line, load_line, store;

  soft_system #(.SIZE_W(SIZE_W), .SPEED(SPEED)) system (
      .clk, .rst, .nic_clk,
      .mem_ask(ask), .mem_is_write(is_write), .mem_beat(beat), .mem_data(data), .mem_strobes(strobes), .mem_grant(grant),
      .mem_come(come), .mem_come_data(come_data),
      .sent_valid, .sent, .sent_ready(1'b1), .typed_valid, .typed, .typed_ready,
      .m_axis_tdata, .m_axis_tkeep, .m_axis_tvalid, .m_axis_tready, .m_axis_tlast,
      .s_axis_tdata, .s_axis_tkeep, .s_axis_tvalid, .s_axis_tready, .s_axis_tlast, .s_axis_tuser, .link_up, .straps,
      .skipped, .until_timer, .is_waiting, .moves, .event_fetch_line(fetch_line), .event_load_line(load_line), .event_store(store)
  );

  assign pc = system.core.lastStagePc;

  // An instruction that waits for an interrupt stands in the pipeline. What was under way in front of it and behind it ends within this
  // many clocks, a line of memory being the longest; and an interrupt that was due would have ended the wait.
  localparam int SETTLE = 64;
  logic [$clog2(SETTLE+1)-1:0] settled;
  wire sleeps = system.core.CsrPlugin_inWfi && !is_waiting && !rst;
  assign is_asleep = system.core.CsrPlugin_inWfi;
  assign is_still  = settled == ($clog2(SETTLE + 1))'(SETTLE) && sleeps && !nic_wanted;
  always_ff @(posedge clk) begin
    if (!sleeps) settled <= '0;
    else if (settled != ($clog2(SETTLE + 1))'(SETTLE)) settled <= settled + 1'b1;
  end

  // Whether anything of the interface moves, or did so shortly before.
  logic [$clog2(HOLD+1)-1:0] quiet;
  assign nic_wanted = moves || quiet != ($clog2(HOLD + 1))'(HOLD);
  always_ff @(posedge clk) begin
    if (moves) quiet <= '0;
    else if (nic_wanted) quiet <= quiet + 1'b1;
  end

  always_ff @(posedge clk) begin
    if (system.core.lastStageIsFiring) instructions <= instructions + 32'd1;
    if (fetch_line) instruction_fills <= instruction_fills + 32'd1;
    if (load_line) data_fills <= data_fills + 32'd1;
    if (store) stores <= stores + 32'd1;
    if (rst) begin
      instructions      <= '0;
      instruction_fills <= '0;
      data_fills        <= '0;
      stores            <= '0;
    end
  end
endmodule

`default_nettype wire
