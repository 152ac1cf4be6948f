// Interrupt pacing: when each queue's interrupt is raised for packets that have arrived.
//
// The same machine for each queue (int_pacer_queue), exactly `nic::Pacing` with time counted in clocks.
//
// Configuration, quasi-static (16 bits a queue, queue 0 in the lowest):
//   cfg_tick_clocks    clocks of a tick, of all queues; 0 counts as 1
//   cfg_mode           0 threshold alone; a timer besides: 1 since the last interrupt, 2 since the first new packet, 3 since
//                      the last new packet
//   cfg_timer          the timer in ticks; with cfg_adaptive the longest it becomes
//   cfg_threshold      packets that raise the interrupt at once; 0 counts as 1
//   cfg_adaptive       the timer follows the load: see int_pacer_queue
//   cfg_adaptive_min   ticks, the shortest timer then; 0 counts as 1
//   cfg_adaptive_low   an interrupt for so many packets or fewer halves the timer
//   cfg_adaptive_high  one for so many or more lengthens it by a tick
// Status: `pending` packets since the last interrupt (stops at 65,535), `timer` ticks in force.
`default_nettype none

module int_pacer #(
    parameter int QUEUES = 1
) (
    input  wire                 clk,
    input  wire                 rst,

    input  wire  [15:0]         cfg_tick_clocks,
    input  wire  [QUEUES*2-1:0] cfg_mode,
    input  wire  [QUEUES*16-1:0] cfg_timer,
    input  wire  [QUEUES*16-1:0] cfg_threshold,
    input  wire  [QUEUES-1:0]   cfg_adaptive,
    input  wire  [15:0]         cfg_adaptive_min,
    input  wire  [15:0]         cfg_adaptive_low,
    input  wire  [15:0]         cfg_adaptive_high,

    // A packet has been completed in this clock.
    input  wire  [QUEUES-1:0]   packet,
    // The driver takes the packets in this clock: what was completed before it has been seen.
    input  wire  [QUEUES-1:0]   taken,
    // Held down, while everything else goes on.
    input  wire  [QUEUES-1:0]   masked,

    output logic [QUEUES-1:0]   irq,
    output logic [QUEUES*16-1:0] pending,
    output logic [QUEUES*16-1:0] timer
);
  if (QUEUES < 1 || QUEUES > 8) begin : gen_bad_queues
    $error("int_pacer: QUEUES must be 1 to 8");
  end

  for (genvar q = 0; q < QUEUES; q++) begin : gen_queue
    int_pacer_queue queue (
        .clk,
        .rst,
        .cfg_tick_clocks,
        .cfg_mode(cfg_mode[q*2+:2]),
        .cfg_timer(cfg_timer[q*16+:16]),
        .cfg_threshold(cfg_threshold[q*16+:16]),
        .cfg_adaptive(cfg_adaptive[q]),
        .cfg_adaptive_min,
        .cfg_adaptive_low,
        .cfg_adaptive_high,
        .packet(packet[q]),
        .taken(taken[q]),
        .masked(masked[q]),
        .irq(irq[q]),
        .pending(pending[q*16+:16]),
        .timer(timer[q*16+:16])
    );
  end
endmodule

`default_nettype wire
