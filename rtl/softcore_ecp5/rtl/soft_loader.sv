// Copies an image from SPI flash to memory, from address 0 on, before the processor begins.
//
// In flash at BASE, words with the lowest byte first: "LNR1", the image's bytes (a multiple of 8), their CRC-32 as Ethernet has it, a word of zero;
// then the image. If the first word is another one, the length is 0 or too large, or the sum differs, the processor does not begin.
//
// The flash is woken first (AB), which also gives its clock line the edges that the chip may lose after it has been configured.
`default_nettype none

module soft_loader
  import crc32_pkg::*;
#(
    parameter int          SIZE_W = 25,
    parameter logic [23:0] BASE   = 24'h20_0000,
    // Clocks of half a bit of the flash's clock, and that it takes to wake.
    parameter int          HALF_CLOCKS = 2,
    parameter int          WAKE_CLOCKS = 5_000,
    localparam int         BEAT_W = SIZE_W - 3
) (
    input  wire               clk,
    input  wire               rst,
    output logic              flash_cs_n,
    output logic              flash_clk,
    output logic              flash_out,
    input  wire               flash_in,

    output logic              ask,
    output logic [BEAT_W-1:0] beat,
    output logic [63:0]       data,
    input  wire               grant,

    output logic              is_done,
    output logic              is_bad
);
  localparam logic [7:0]  WAKE = 8'hab, READ = 8'h03;
  localparam logic [31:0] MARK = "1RNL";
  localparam int          TIMER_W = $clog2(WAKE_CLOCKS + 1);

  typedef enum logic [2:0] {WAKING, RESTING, ASKING, HEAD, IMAGE, LAST, DONE, BAD} state_t;
  state_t             state;
  logic [TIMER_W-1:0] timer;
  // Bits that leave, the first highest; how many are still to be moved of what is moved, a command or 64 bits of data.
  logic [31:0]        out_bits;
  logic [6:0]         rest;
  // What came: the bits of a byte, the first highest, and the bytes.
  logic [6:0]         in_bits;
  logic [63:0]        bytes;
  logic [31:0]        crc, expected, left;
  logic               has_second;     // of the head's two halves

  assign flash_out = out_bits[31];
  assign is_done   = state == DONE;
  assign is_bad    = state == BAD;

  wire moves      = state inside {WAKING, ASKING, HEAD, IMAGE};
  // A write that waits holds the flash's clock where it is.
  wire is_tick    = moves && timer == '0 && !ask;
  wire rises      = is_tick && !flash_clk;
  wire falls      = is_tick && flash_clk;
  wire ends       = falls && rest == '0;
  wire [7:0] byte_in = {in_bits, flash_in};
  wire ends_byte  = rises && rest[2:0] == '0;

  always_ff @(posedge clk) begin
    if (!ask) timer <= timer == '0 ? TIMER_W'(HALF_CLOCKS - 1) : timer - 1'b1;
    if (is_tick) flash_clk <= !flash_clk;
    if (rises) in_bits <= byte_in[6:0];
    if (ends_byte) bytes <= {byte_in, bytes[63:8]};
    if (ends_byte && state == IMAGE) crc <= crc32(crc, byte_in);
    if (falls) begin
      out_bits <= out_bits << 1;
      rest     <= rest - 7'd1;
    end
    if (grant) begin
      ask  <= 1'b0;
      beat <= beat + 1'b1;
    end
    unique case (state)
      WAKING: if (ends) begin
        state      <= RESTING;
        flash_cs_n <= 1'b1;
        timer      <= TIMER_W'(WAKE_CLOCKS);
      end
      RESTING: if (timer == '0) begin
        state      <= ASKING;
        flash_cs_n <= 1'b0;
        out_bits   <= {READ, BASE};
        rest       <= 7'd31;
      end
      ASKING: if (ends) begin
        state <= HEAD;
        rest  <= 7'd63;
      end
      HEAD: if (ends) begin
        rest       <= 7'd63;
        has_second <= 1'b1;
        if (!has_second) begin
          left <= bytes[63:32];
          if (bytes[31:0] != MARK || bytes[63:32] == '0 || bytes[34:32] != '0 || |(bytes[63:32] >> SIZE_W)) state <= BAD;
        end else begin
          expected <= bytes[31:0];
          state    <= IMAGE;
        end
      end
      IMAGE: if (ends) begin
        rest <= 7'd63;
        ask  <= 1'b1;
        data <= bytes;
        left <= left - 32'd8;
        if (left == 32'd8) state <= LAST;
      end
      LAST: begin
        flash_cs_n <= 1'b1;
        if (!ask) state <= ~crc == expected ? DONE : BAD;
      end
      DONE, BAD: flash_cs_n <= 1'b1;
      default: state <= BAD;
    endcase
    if (rst) begin
      state      <= WAKING;
      flash_cs_n <= 1'b0;
      flash_clk  <= 1'b0;
      out_bits   <= {WAKE, 24'd0};
      rest       <= 7'd7;
      timer      <= '0;
      ask        <= 1'b0;
      beat       <= '0;
      crc        <= CRC_BEGIN;
      has_second <= 1'b0;
    end
  end
endmodule

`default_nettype wire
