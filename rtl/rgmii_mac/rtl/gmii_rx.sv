// Frames from a gigabit PHY: preamble and check sequence are taken off; a frame that is damaged is marked in its last beat.
//
// Damaged: a wrong check sequence, an error of the PHY (rx_er), fewer than 64 bytes with the check sequence, no room for a beat. What has no
// byte beside a check sequence, or finds no room for its first two beats, is left out as a whole.
`default_nettype none

module gmii_rx
  import crc32_pkg::*;
(
    input  wire         clk,
    input  wire         rst,
    input  wire         rx_dv,
    input  wire         rx_er,
    input  wire  [7:0]  rxd,
    // It does not wait. There is room for a beat and another one.
    input  wire         has_room,
    output logic [63:0] m_axis_tdata,
    output logic [7:0]  m_axis_tkeep,
    output logic        m_axis_tvalid,
    output logic        m_axis_tlast,
    output logic        m_axis_tuser,
    // One of them for each frame: it was good; damaged; of fewer than 64 bytes; there was no room for it.
    output logic        event_frame,
    output logic        event_error,
    output logic        event_runt,
    output logic        event_dropped
);
  localparam logic [7:0] PREAMBLE = 8'h55, START = 8'hd5;
  localparam int MIN_BYTES = 64, CHECK_BYTES = 4;

  // As it came, behind a register.
  logic       valid, error;
  logic [7:0] data;

  typedef enum logic [1:0] {IDLE, LEAD, FRAME, SKIP} state_t;
  state_t      state;
  logic [6:0]  bytes;         // so far, up to 64
  logic [31:0] crc, held;     // `held`: the last four bytes, which may be the check sequence
  logic        is_bad, is_lost;
  // What waits to be a beat, and how many bytes of it there are, 8 at most.
  logic [63:0] beat;
  logic [3:0]  fill;
  logic        has_begun;     // a beat of this frame has left

  wire takes   = state == FRAME && valid;
  wire ends    = state == FRAME && !valid;
  wire emits   = takes && bytes >= 7'(CHECK_BYTES);
  wire is_runt = bytes < 7'(MIN_BYTES);
  wire is_good = crc == CRC_GOOD && !is_bad && !is_lost;
  wire flushes = emits && fill == 4'd8;

  always_ff @(posedge clk) begin
    valid <= rx_dv;
    error <= rx_er;
    data  <= rxd;
    unique case (state)
      IDLE: if (valid) state <= data == START ? FRAME : data == PREAMBLE ? LEAD : SKIP;
      LEAD: begin
        if (!valid) state <= IDLE;
        else if (data == START) state <= FRAME;
        else if (data != PREAMBLE) state <= SKIP;
      end
      FRAME: if (!valid) state <= IDLE;
      SKIP:  if (!valid) state <= IDLE;
    endcase
    if (state != FRAME) begin
      bytes     <= '0;
      fill      <= '0;
      crc       <= CRC_BEGIN;
      is_bad    <= 1'b0;
      is_lost   <= 1'b0;
      has_begun <= 1'b0;
    end
    if (takes) begin
      if (is_runt) bytes <= bytes + 7'd1;
      crc    <= crc32(crc, data);
      held   <= {data, held[31:8]};
      is_bad <= is_bad || error;
    end
    if (emits) begin
      beat[8*fill[2:0]+:8] <= held[7:0];
      fill                 <= fill == 4'd8 ? 4'd1 : fill + 4'd1;
    end
    if (flushes) begin
      if (!has_room) is_lost <= 1'b1;
      if (has_room && !is_lost) has_begun <= 1'b1;
    end
    if (rst) begin
      state <= IDLE;
      valid <= 1'b0;
    end
  end

  // The last beat has its place whenever one has left before: nobody else has taken it since.
  wire leaves = ends && fill != '0 && (has_begun || (has_room && !is_lost));
  always_ff @(posedge clk) begin
    m_axis_tvalid <= ((flushes && has_room && !is_lost) || leaves) && !rst;
    m_axis_tdata  <= beat;
    m_axis_tkeep  <= ends ? 8'((9'd1 << fill) - 9'd1) : 8'hff;
    m_axis_tlast  <= ends;
    m_axis_tuser  <= ends && (!is_good || is_runt);
    event_frame   <= leaves && is_good && !is_runt;
    event_runt    <= ends && is_runt;
    event_error   <= leaves && !is_runt && !is_lost && !is_good;
    event_dropped <= ends && !is_runt && (is_lost || !leaves);
  end
endmodule

`default_nettype wire
