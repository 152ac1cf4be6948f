// What is under way in each queue of one direction: whether its descriptors may be read, whether it has come to rest, and what
// became of its frames.
//
// A descriptor counts as under way from `begun` until its status has reached memory (`done`).
`default_nettype none

module dma_under_way #(
    parameter int QUEUES = 4,
    localparam int QUEUE_W = QUEUES > 1 ? $clog2(QUEUES) : 1
) (
    input  wire                 clk,
    input  wire                 rst,

    // The queues' state: from the registers, from whoever works through their descriptors, from whoever reads these.
    input  wire  [QUEUES-1:0]   run,
    input  wire  [QUEUES-1:0]   resetting,
    input  wire  [QUEUES-1:0]   working,
    input  wire  [QUEUES-1:0]   blocked,
    input  wire  [QUEUES-1:0]   drained,
    input  wire  [QUEUES-1:0]   starved,

    input  wire  [QUEUES-1:0]   begun,         // pulse: a descriptor whose status will be written
    input  wire                 done,          // pulse: it has been
    input  wire  [QUEUE_W-1:0]  done_queue,
    input  wire                 done_frame,    // a frame ends with it, and had no error
    input  wire  [3:0]          done_error,    // descriptor, DECERR, SLVERR, internal
    input  wire                 fail,          // pulse: a queue stops
    input  wire  [QUEUE_W-1:0]  fail_queue,
    input  wire  [3:0]          fail_kind,

    // All a clock late or more: a queue is not quiet before its last frame has been counted.
    output logic [QUEUES-1:0]   reads,         // its descriptors may be read
    output logic [QUEUES-1:0]   quiet,         // nothing kept, nothing under way
    output logic [QUEUES-1:0]   waiting,       // nothing left to do
    output logic [QUEUES-1:0]   frame,         // pulse
    output logic [4*QUEUES-1:0] error          // pulses
);
  localparam int PENDING_W = 6;

  logic [PENDING_W-1:0] pending [QUEUES];
  // Whoever takes descriptors looks at the queue's state up to two clocks before it says that it is working.
  logic [QUEUES-1:0] ran, ran_before;

  always_ff @(posedge clk) begin
    ran        <= run & {QUEUES{!rst}};
    ran_before <= ran & {QUEUES{!rst}};
    reads      <= (run | ran | ran_before | (working & ~resetting)) & ~blocked & {QUEUES{!rst}};
    for (int q = 0; q < QUEUES; q++) begin
      quiet[q]   <= drained[q] && pending[q] == '0 && !working[q] && !begun[q];
      waiting[q] <= starved[q] && pending[q] == '0 && !working[q] && !begun[q];
      frame[q]   <= done && done_frame && done_queue == QUEUE_W'(q) && !rst;
      error[4*q+:4] <= (done && done_queue == QUEUE_W'(q) && !rst ? done_error : 4'd0)
          | (fail && fail_queue == QUEUE_W'(q) && !rst ? fail_kind : 4'd0);
      pending[q] <= pending[q] + PENDING_W'(begun[q]) - PENDING_W'(done && done_queue == QUEUE_W'(q));
      if (rst) pending[q] <= '0;
    end
  end
endmodule

`default_nettype wire
