// The registers of one queue in one direction: control, status, counters, interrupt; and its life from start to reset.
//
//             RS, nothing wrong                 error, RS = 0
//   halted ----------------------> running ---------------------> stopping --- quiet ---> halted
//      ^                                                                                    |
//      +--------------------------- quiet: all bits as after power on <--- resetting <-- RESET (in any state)
`default_nettype none

module dma_channel #(
    parameter bit IS_RX = 1'b0
) (
    input  wire         clk,
    input  wire         rst,

    input  wire         enabled,      // the direction runs and the queue's bit is set
    input  wire         write_control,
    input  wire         write_status,
    input  wire  [31:0] write_data,
    input  wire         reset_all,    // pulse: the direction is reset
    output logic [31:0] control,
    output logic [31:0] status,
    output logic [31:0] frames,
    output logic [31:0] drops,

    input  wire         tick,         // pulse: every 125 clocks
    input  wire         pace,         // pulse: an outer pacer wants an interrupt

    // From the engines.
    input  wire         quiet,        // nothing kept, nothing under way
    input  wire         waiting,      // nothing left to do
    input  wire         frame_done,
    input  wire         frame_dropped,
    input  wire  [3:0]  error,        // pulse: descriptor, DECERR, SLVERR, internal

    output logic        run,
    output logic        resetting,
    output logic        halted,
    output logic        idle,
    output logic        interrupt
);
  logic rs, pktdrop_en, ioc_en, dly_en, err_en;
  logic [7:0] threshold, delay, counted, elapsed;
  // Known before a frame is done, as a comparison is slow: with it the threshold is reached; with the next; and with the third, at
  // this count.
  logic last_one, last_but_one;
  logic is_one, is_two;               // the threshold
  logic [7:0] third;
  logic due;                          // the next tick makes `delay` full
  logic clears;                       // a reset ends
  logic pktdrop, ioc, dly, err;
  logic [3:0] errors;
  logic armed;                        // frames wait for an interrupt

  assign control   = {delay, threshold, 8'd0, err_en, dly_en, ioc_en, pktdrop_en, 1'b0, resetting, 1'b0, rs};
  assign status    = {8'd0, counted, 4'd0, errors, err, dly, ioc, pktdrop, 1'b0, halted, 1'b0, idle};
  wire   unused    = &{1'b0, write_data[15:8], write_data[3], write_data[1], 1'b0};
  wire   wants     = rs && enabled && !resetting && errors == 4'd0;
  wire   full      = frame_done && last_one;
  wire   overdue   = armed && tick && due;
  wire   writes    = write_control && !resetting;
  wire   recounts  = full || pace || (overdue && !frame_done);

  always_ff @(posedge clk) begin
    // A queue that was stopped starts again only when everything of it has come to rest.
    run       <= wants && (run || quiet);
    halted    <= !run && !wants && quiet;
    idle      <= run && waiting;
    due       <= delay != 8'd0 && elapsed + 1'b1 == delay && !frame_done;
    interrupt <= (pktdrop && pktdrop_en) || (ioc && ioc_en) || (dly && dly_en) || (err && err_en);

    if (writes) begin
      rs         <= write_data[0] && errors == 4'd0;
      pktdrop_en <= write_data[4] && IS_RX;
      ioc_en     <= write_data[5];
      dly_en     <= write_data[6];
      err_en     <= write_data[7];
      threshold  <= write_data[23:16];
      third      <= write_data[23:16] - 8'd3;
      delay      <= write_data[31:24];
      counted    <= '0;
    end
    if (write_status) begin
      if (write_data[4]) pktdrop <= 1'b0;
      if (write_data[5]) ioc <= 1'b0;
      if (write_data[6]) dly <= 1'b0;
      if (write_data[7]) err <= 1'b0;
    end

    // What happens now is not cleared by what is written now.
    if (frame_done) begin
      frames  <= frames + 1'b1;
      elapsed <= '0;
      armed   <= 1'b1;
      if (!writes) counted <= counted + 1'b1;
    end else if (armed && tick) begin
      elapsed <= elapsed + 1'b1;
    end
    if (writes) begin
      is_one       <= write_data[23:16] == 8'd1;
      is_two       <= write_data[23:16] == 8'd2;
      last_one     <= write_data[23:16] == 8'd1;
      last_but_one <= write_data[23:16] == 8'd2;
    end else if (recounts) begin
      last_one     <= is_one;
      last_but_one <= is_two;
    end else if (frame_done) begin
      last_one     <= last_but_one;
      last_but_one <= counted == third && threshold != 8'd0;
    end
    if (full || pace) ioc <= 1'b1;
    if (overdue && !frame_done) dly <= 1'b1;
    if (recounts) begin
      counted <= '0;
      armed   <= 1'b0;
    end
    if (frame_dropped) begin
      drops   <= drops + 1'b1;
      pktdrop <= 1'b1;
    end
    if (|error) begin
      errors <= errors | error;
      err    <= 1'b1;
      rs     <= 1'b0;
    end

    if (reset_all || (write_control && write_data[2])) begin
      resetting <= 1'b1;
      rs        <= 1'b0;
    end
    clears <= resetting && quiet && !run && !clears && !rst;
    if (rst || clears) begin
      resetting  <= 1'b0;
      rs         <= 1'b0;
      run        <= 1'b0;
      pktdrop_en <= 1'b0;
      ioc_en     <= 1'b0;
      dly_en     <= 1'b0;
      err_en     <= 1'b0;
      threshold  <= 8'd1;
      third        <= 8'hFE;
      last_one     <= 1'b1;
      last_but_one <= 1'b0;
      is_one       <= 1'b1;
      is_two       <= 1'b0;
      delay      <= 8'd0;
      counted    <= 8'd0;
      elapsed    <= 8'd0;
      armed      <= 1'b0;
      pktdrop    <= 1'b0;
      ioc        <= 1'b0;
      dly        <= 1'b0;
      err        <= 1'b0;
      errors     <= 4'd0;
      frames     <= '0;
      drops      <= '0;
    end
    if (rst) begin
      interrupt <= 1'b0;
      halted    <= 1'b1;
      idle      <= 1'b0;
    end
  end
endmodule

`default_nettype wire
