// The one's complement sum of chosen bytes of a stream (RFC 1071), complete two clocks after its last beat, or three.
//
// The sum is taken over 16-bit lanes as they lie in the beat: it does not depend on the order of the two bytes of a word, so
// they are swapped once, in the result. Nothing is folded on the way: every adder keeps its own carry out in a register and
// takes it in again in the next clock, as a carry into 2^16 is worth 1. The state is 16 bits and one carry for each
// adder, for sums of any length, and the only fold comes behind the last beat.
//
//   in_data,in_mask -> [bytes that count, others 0] -> tree of adders -(SPLIT: [ ])-> [sum and carries] -> fold -> sum
//
// A byte that does not count is cleared by the reset of its flip-flops, which costs no LUT.
//
// GAP = 1 promises that the clock behind each in_last brings no byte that counts: the result is then read from the
// accumulator itself, otherwise from a copy (16 flip-flops and one for each carry more).
//
// SPLIT = 1 puts a register between the lanes' adders and the accumulator's: one adder less in a row, and a clock more.
//
// A further number is added as two bytes that count, most significant first, in any clock that has room.
`default_nettype none

module ones_sum #(
    parameter int DATA_W = 64,
    parameter bit GAP = 1'b0,
    parameter bit SPLIT = 1'b0
) (
    input  wire                 clk,
    input  wire                 rst,

    input  wire  [DATA_W-1:0]   in_data,
    // Bytes that count: none in a clock without a beat, and in reset.
    input  wire  [DATA_W/8-1:0] in_mask,
    // The sum is complete with this clock's bytes; the next one begins.
    input  wire                 in_last,

    // Two clocks behind in_last (SPLIT: three), for one clock: the sum as a number, not complemented. 0 only if all bytes were 0.
    // A short function of registers.
    output logic [15:0]         sum,
    output logic                sum_valid,
    // The same before the fold, its bytes as they lie in the beat: these and the number of carries, from registers.
    output logic [15:0]         words,
    output logic [DATA_W/16-1:0] carries
);
  localparam int LANES = DATA_W / 16;
  localparam int LOG = $clog2(LANES);

  if (GAP && SPLIT) begin : gen_both
    $error("ones_sum: GAP and SPLIT exclude each other");
  end
  if (DATA_W < 32 || DATA_W % 32 != 0 || (LANES & (LANES - 1)) != 0) begin : gen_bad
    $error("ones_sum: DATA_W must be 32 times a power of two");
  end

  logic [DATA_W-1:0] data;
  logic              last;

  always_ff @(posedge clk) begin
    for (int i = 0; i < DATA_W / 8; i++) begin
      data[8*i+:8] <= in_mask[i] ? in_data[8*i+:8] : 8'd0;
    end
    last <= in_last;
    if (rst) last <= 1'b0;
  end

  // The adders as a binary tree: node i adds nodes 2i and 2i + 1; the leaves are the lanes, the root (1) is
  // added to the accumulator. Bit 0 of each operand is there for the carry in. Where addend is the root itself, a simulator
  // that takes the block below as one sees a loop; there is none.
  /* verilator lint_off UNOPTFLAT */
  logic [15:0]      node  [1:2*LANES-1];
  logic [LANES-1:0] carry, carry_out, unused_bit;
  logic [15:0]      accumulator, total, addend;
  /* verilator lint_on UNOPTFLAT */
  logic             added_last;  // the accumulator takes the last beat in

  always_comb begin
    for (int i = 0; i < LANES; i++) node[LANES+i] = data[16*i+:16];
    for (int i = LANES - 1; i > 0; i--) begin
      {carry_out[i], node[i], unused_bit[i]} = {1'b0, node[2*i], 1'b1} + {1'b0, node[2*i+1], carry[i]};
    end
    {carry_out[0], total, unused_bit[0]} = {1'b0, accumulator, 1'b1} + {1'b0, addend, carry[0]};
  end

  // What the result is made of.
  if (GAP) begin : gen_gap
    logic clear;
    always_ff @(posedge clk) begin
      clear       <= last;
      accumulator <= total;
      carry       <= carry_out;
      if (clear) begin
        accumulator <= '0;
        carry       <= '0;
      end
      if (rst) clear <= 1'b1;
    end
    assign words   = accumulator;
    assign carries = carry;
    assign addend = node[1];
    assign added_last = last;
  end else begin : gen_copy
    // The carries of the last beat's lanes, when the accumulator takes that beat in.
    logic [LANES-1:1] lane_carries;

    if (SPLIT) begin : gen_split
      always_ff @(posedge clk) begin
        addend       <= node[1];
        lane_carries <= carry_out[LANES-1:1];
        added_last   <= last;
        if (rst) added_last <= 1'b0;
      end
    end else begin : gen_whole
      assign addend = node[1];
      assign lane_carries = carry_out[LANES-1:1];
      assign added_last = last;
    end

    always_ff @(posedge clk) begin
      accumulator <= total;
      carry       <= carry_out;
      words       <= total;
      carries     <= {lane_carries, carry_out[0]};
      if (rst || last) carry[LANES-1:1] <= '0;
      if (rst || added_last) begin
        accumulator <= '0;
        carry[0]    <= 1'b0;
      end
    end
  end

  always_ff @(posedge clk) begin
    sum_valid <= added_last;
    if (rst) sum_valid <= 1'b0;
  end

  // At most LANES carries, so the words carry again only where all bits above log2(LANES) are ones: seen before adding.
  logic [LOG:0] count, low;
  logic [15:0]  folded;
  logic         unused_fold;

  always_comb begin
    count = '0;
    for (int i = 0; i < LANES; i++) count = count + (LOG + 1)'(carries[i]);
    low = {1'b0, words[LOG-1:0]} + count;
    {folded, unused_fold} = {words, 1'b1} + {16'(count), &words[15:LOG] && low[LOG]};
    sum = {folded[7:0], folded[15:8]};
  end
endmodule

`default_nettype wire
