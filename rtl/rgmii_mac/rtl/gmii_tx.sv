// Frames to a gigabit PHY: preamble, padding to 60 bytes, check sequence, gap.
//
//   | 55 x 7, d5 | frame, zeros up to 60 bytes | check sequence | nothing, 12 bytes |
//
// A frame begins with its first beat. If the next one is not there in time, the byte that is missing is sent as an error (tx_er), the frame ends
// there, and what comes of it later is thrown away.
`default_nettype none

module gmii_tx
  import crc32_pkg::*;
(
    input  wire         clk,
    input  wire         rst,
    input  wire  [63:0] s_axis_tdata,
    input  wire  [7:0]  s_axis_tkeep,
    input  wire         s_axis_tvalid,
    output logic        s_axis_tready,
    input  wire         s_axis_tlast,
    output logic        tx_en,
    output logic        tx_er,
    output logic [7:0]  txd,
    // A frame has left; one was cut short.
    output logic        event_frame,
    output logic        event_underrun
);
  localparam logic [7:0] PREAMBLE = 8'h55, START = 8'hd5;
  localparam int MIN_BYTES = 60, GAP_BYTES = 12;

  typedef enum logic [2:0] {GAP, BEGIN, DATA, PAD, CHECK, DRAIN} state_t;
  state_t      state;
  logic [5:0]  bytes;     // of the frame so far, up to 60
  logic [3:0]  step;      // in preamble, check sequence and gap
  logic [31:0] crc;

  // The beat that is sent, its next byte lowest, how many follow that one, and whether the frame ends with it.
  logic [63:0] beat;
  logic [2:0]  rest;
  logic        is_last;

  wire starts    = state == BEGIN && step == 4'd7;
  wire continues = state == DATA && rest == 3'd0 && !is_last;
  assign s_axis_tready = starts || continues || state == DRAIN;
  wire is_long = bytes >= 6'(MIN_BYTES - 1);

  function automatic logic [2:0] last_lane(logic [7:0] keep);
    last_lane = '0;
    for (int lane = 1; lane < 8; lane++) if (keep[lane]) last_lane = 3'(lane);
  endfunction

  // A byte of the frame, zeros behind it; and what leaves in this clock.
  wire [7:0] body = state == DATA ? beat[7:0] : '0;
  logic [7:0] out;
  always_comb begin
    unique case (state)
      BEGIN:   out = step == 4'd7 ? START : PREAMBLE;
      DATA:    out = beat[7:0];
      CHECK:   out = ~crc[7:0];
      default: out = '0;
    endcase
  end

  always_ff @(posedge clk) begin
    tx_en          <= state inside {BEGIN, DATA, PAD, CHECK};
    tx_er          <= 1'b0;
    txd            <= out;
    event_frame    <= 1'b0;
    event_underrun <= 1'b0;
    step           <= step + 4'd1;
    beat           <= beat >> 8;
    rest           <= rest - 3'd1;
    if (s_axis_tready && s_axis_tvalid) begin
      beat    <= s_axis_tdata;
      rest    <= last_lane(s_axis_tkeep);
      is_last <= s_axis_tlast;
    end
    if (state == DATA || state == PAD) begin
      if (!is_long) bytes <= bytes + 6'd1;
      crc <= crc32(crc, body);
    end
    unique case (state)
      GAP: begin
        if (step == 4'(GAP_BYTES - 1)) begin
          step <= s_axis_tvalid ? '0 : step;
          if (s_axis_tvalid) state <= BEGIN;
        end
      end
      BEGIN: begin
        crc   <= CRC_BEGIN;
        bytes <= '0;
        if (starts) state <= DATA;
      end
      DATA: begin
        step <= '0;
        if (rest == 3'd0 && is_last) state <= is_long ? CHECK : PAD;
        if (continues && !s_axis_tvalid) state <= DRAIN;
      end
      PAD: begin
        step <= '0;
        if (is_long) state <= CHECK;
      end
      CHECK: begin
        crc <= crc >> 8;
        if (step == 4'd3) begin
          state       <= GAP;
          step        <= '0;
          event_frame <= 1'b1;
        end
      end
      DRAIN: begin
        // One byte with an error in it, in the first clock.
        tx_en          <= step == '0;
        tx_er          <= step == '0;
        event_underrun <= step == '0;
        if (step != '0) step <= step;
        if (s_axis_tvalid && s_axis_tlast) begin
          state <= GAP;
          step  <= '0;
        end
      end
      default: state <= GAP;
    endcase
    if (rst) begin
      state <= GAP;
      step  <= '0;
      tx_en <= 1'b0;
    end
  end
endmodule

`default_nettype wire
