// The one's complement sum of each frame from its 15th byte to its end: what a receive engine reports as raw sum.
//
// It watches a stream and holds nothing back: the beats given are those that were accepted.
`default_nettype none

module frame_sum #(
    parameter int DATA_W = 64
) (
    input  wire                 clk,
    input  wire                 rst,

    input  wire  [DATA_W-1:0]   in_data,
    input  wire  [DATA_W/8-1:0] in_keep,
    // Not in reset.
    input  wire                 in_valid,
    input  wire                 in_last,

    // Two clocks behind the last beat, for one clock: a short function of registers.
    output logic [15:0]         sum,
    output logic                sum_valid
);
  localparam int BYTES = DATA_W / 8;
  localparam int SKIP = 14;
  // Beats that hold bytes which are not summed.
  localparam int HEAD = (SKIP + BYTES - 1) / BYTES;

  if (DATA_W < 32) begin : gen_bad
    $error("frame_sum: DATA_W must be at least 32");
  end

  // Bit i: more than i beats of the frame have passed.
  logic [HEAD-1:0]  past;
  logic [BYTES-1:0] mask;

  always_ff @(posedge clk) begin
    if (in_valid) past <= in_last ? '0 : HEAD'({past, 1'b1});
    if (rst) past <= '0;
  end

  // Byte i counts in beat SKIP / BYTES, or in the one behind it if it lies before SKIP's place in the beat.
  always_comb begin
    for (int i = 0; i < BYTES; i++) begin
      mask[i] = in_valid && in_keep[i];
      for (int beat = 0; beat < HEAD; beat++) begin
        if (beat * BYTES + i < SKIP) mask[i] = in_valid && in_keep[i] && past[beat];
      end
    end
  end

  /* verilator lint_off PINCONNECTEMPTY */
  ones_sum #(
      .DATA_W(DATA_W),
      // The first beat of the next frame is then one without a byte that counts.
      .GAP(BYTES <= SKIP)
  ) core (
      .clk,
      .rst,
      .in_data,
      .in_mask(mask),
      .in_last(in_valid && in_last),
      .sum,
      .sum_valid,
      .words   (),
      .carries ()
  );
  /* verilator lint_on PINCONNECTEMPTY */
endmodule

`default_nettype wire
