// A serial line, 8 bits without parity: bytes to send wait in a FIFO of 2,048, and one that came is there until it is taken or the next one comes.
`default_nettype none

module soft_uart #(
    // Clocks of a bit.
    parameter int BIT_CLOCKS = 434
) (
    input  wire        clk,
    input  wire        rst,
    input  wire        sent_valid,
    input  wire  [7:0] sent,
    // There is room for a byte and the next.
    output logic       sent_ready,
    output logic       typed_valid,
    output logic [7:0] typed,
    input  wire        typed_ready,
    output logic       tx,
    input  wire        rx
);
  localparam int DEPTH_W = 11;
  localparam int TIMER_W = $clog2(BIT_CLOCKS + 1);
  localparam logic [TIMER_W-1:0] BIT  = TIMER_W'(BIT_CLOCKS - 1);
  localparam logic [TIMER_W-1:0] HALF = TIMER_W'(BIT_CLOCKS / 2 - 1);

  if (BIT_CLOCKS < 8) begin : gen_bad_clocks
    $error("soft_uart: BIT_CLOCKS must be 8 at least");
  end

  // Sending: start, eight bits, stop.
  logic [7:0]         places [2**DEPTH_W];
  logic [DEPTH_W:0]   head, tail, filled;
  logic [7:0]         next;
  logic               has_next;
  logic [9:0]         out_bits;
  logic [3:0]         out_rest;
  logic [TIMER_W-1:0] out_timer;

  assign filled     = head - tail;
  assign sent_ready = filled < (DEPTH_W + 1)'(2**DEPTH_W - 2);
  assign tx         = out_bits[0];
  wire   begins     = has_next && out_rest == '0;
  wire   fetches    = head != tail && (!has_next || begins);

  always_ff @(posedge clk) begin
    if (sent_valid) begin
      places[head[DEPTH_W-1:0]] <= sent;
      head <= head + 1'b1;
    end
    if (begins) has_next <= 1'b0;
    if (fetches) begin
      next     <= places[tail[DEPTH_W-1:0]];
      tail     <= tail + 1'b1;
      has_next <= 1'b1;
    end
    out_timer <= out_timer - 1'b1;
    if (begins) begin
      out_bits  <= {1'b1, next, 1'b0};
      out_rest  <= 4'd10;
      out_timer <= BIT;
    end else if (out_rest != '0 && out_timer == '0) begin
      out_bits  <= {1'b1, out_bits[9:1]};
      out_rest  <= out_rest - 4'd1;
      out_timer <= BIT;
    end
    if (rst) begin
      head     <= '0;
      tail     <= '0;
      has_next <= 1'b0;
      out_bits <= '1;
      out_rest <= '0;
    end
  end

  // Receiving: each bit is looked at in its middle.
  logic               rx_first, line;
  logic [3:0]         in_rest;
  logic [7:0]         in_bits;
  logic [TIMER_W-1:0] in_timer;

  always_ff @(posedge clk) begin
    rx_first <= rx;
    line     <= rx_first;
    if (typed_ready) typed_valid <= 1'b0;
    in_timer <= in_timer - 1'b1;
    if (in_rest == '0) begin
      in_timer <= HALF;
      if (!line) in_rest <= 4'd10;
    end else if (in_timer == '0) begin
      in_timer <= BIT;
      in_rest  <= in_rest - 4'd1;
      in_bits  <= {line, in_bits[7:1]};
      // A start that was none; the stop, without which there was no byte.
      if (in_rest == 4'd10 && line) in_rest <= '0;
      if (in_rest == 4'd1 && line) begin
        typed_valid <= 1'b1;
        typed       <= in_bits;
      end
    end
    if (rst) begin
      rx_first    <= 1'b1;
      line        <= 1'b1;
      in_rest     <= '0;
      typed_valid <= 1'b0;
    end
  end
endmodule

`default_nettype wire
