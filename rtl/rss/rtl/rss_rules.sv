// Which of 32 flow rules match, as a ternary memory made of block RAM.
//
// What is compared comes as eight words of 40 bits. For each slice of five bits of a word a table says, for each of their
// 32 values, which rules that value suits: a bit for each rule. The rules that match are the AND of what all slices give.
// So any bit of a rule may be a wildcard, and all 32 rules cost eight memories of 256 x 32 bits and a few gates, where
// comparators would take 32 x 296 of them.
//
//   word of step s   |slice 7|slice 6| ... |slice 0|      40 bits
//                        |       |             |
//   tables           [s][v7] [s][v6]  ...  [s][v0]        32 rules each
//                        +-------+---- AND ----+----> AND over the steps ----> hit
//
// The tables are filled from the rules as they were written, value and care bits, by going over all of them: 8 steps x 32
// values x 32 rules, about 8,192 clocks after `commit`. A lookup at that time sees each word of a table as it was or as it will
// be, so a rule that is being changed must be switched off (in `hit`, by whoever reads it), and the others are not affected.
//
// `word` in clock t counts in `hit` in clock t + 3.
`default_nettype none

module rss_rules (
    input  wire         clk,
    input  wire         rst,

    // Words of rules: rule, step, and which: 0 value[31:0], 1 care[31:0], 2 {care[39:32], value[39:32]}.
    input  wire         write,
    input  wire  [4:0]  write_rule,
    input  wire  [2:0]  write_step,
    input  wire  [1:0]  write_part,
    input  wire  [31:0] write_data,
    // Fills the tables anew; again from the start if it is busy.
    input  wire         commit,
    output logic        busy,

    input  wire         word_valid,
    input  wire  [2:0]  step,
    input  wire  [39:0] word,
    output logic [31:0] hit
);
  localparam int SLICES = 8, SLICE_W = 5;

  // The rules as they were written.
  // A word that is read while it is written is one of a rule that is off.
  (* no_rw_check *) logic [31:0] values[256], cares[256];
  (* no_rw_check *) logic [15:0] tops[256];

  always_ff @(posedge clk) begin
    if (write && write_part == 2'd0) values[{write_rule, write_step}] <= write_data;
    if (write && write_part == 2'd1) cares[{write_rule, write_step}] <= write_data;
    if (write && write_part == 2'd2) tops[{write_rule, write_step}] <= write_data[15:0];
  end

  // Filling: for each step and value all rules, one a clock.
  logic [2:0]  fill_step;
  logic [4:0]  fill_value, fill_rule;
  logic        filling;
  // Behind it in a pipeline: what was read, from the memory and from a register, what was found out of it, and a column of all
  // rules that is full.
  typedef struct packed {
    logic       valid;
    logic       last;
    logic [2:0] step;
    logic [4:0] value;
  } place_t;

  place_t      fetch, read, found_out;
  logic [7:0]  full_place;
  logic        full_valid, fill_now;
  logic [79:0] fetched, compared;
  logic [7:0]  suits;

  wire [79:0] all_parts = {
    tops[{fill_rule, fill_step}], cares[{fill_rule, fill_step}], values[{fill_rule, fill_step}]
  };

  // A column is not written while its place may be looked up, as it depends on the memory what is read then: all waits for the
  // next clock, which looks up another step.
  assign fill_now = full_valid && !(word_valid && step == full_place[7:5]);

  always_ff @(posedge clk) begin
    if (!full_valid || fill_now) begin
      {fill_step, fill_value, fill_rule} <= {fill_step, fill_value, fill_rule} + 13'd1;
      if (&{fill_step, fill_value, fill_rule}) filling <= 1'b0;
      fetched    <= all_parts;
      compared   <= fetched;
      fetch      <= '{valid: filling, last: &fill_rule, step: fill_step, value: fill_value};
      read       <= fetch;
      found_out  <= read;
      full_place <= {found_out.step, found_out.value};
      full_valid <= found_out.valid && found_out.last;
    end
    busy <= commit || filling || fetch.valid || read.valid || found_out.valid || full_valid;
    // What was begun is not written.
    if (commit || rst) begin
      {fill_step, fill_value, fill_rule} <= '0;
      filling         <= commit;
      fetch.valid     <= 1'b0;
      read.valid      <= 1'b0;
      found_out.valid <= 1'b0;
      full_valid      <= 1'b0;
    end
    if (rst) begin
      filling <= 1'b0;
      busy    <= 1'b0;
    end
  end

  // The upper eight bits came in the third part.
  wire [39:0] value = {compared[71:64], compared[31:0]};
  wire [39:0] care  = {compared[79:72], compared[63:32]};

  // Looking up.
  logic        valid_1, valid_2, first_1, first_2;
  logic [31:0] all_slices;
  logic [SLICES-1:0][31:0] found_q;

  always_ff @(posedge clk) begin
    valid_1 <= word_valid;
    valid_2 <= valid_1;
    first_1 <= step == 3'd0;
    first_2 <= first_1;
    if (valid_2) hit <= (first_2 ? '1 : hit) & all_slices;
  end

  always_comb begin
    all_slices = '1;
    for (int s = 0; s < SLICES; s++) all_slices &= found_q[s];
  end

  for (genvar s = 0; s < SLICES; s++) begin : gen_slice
    (* no_rw_check *) logic [31:0] table_words[256];
    logic [31:0] column, found;

    always_ff @(posedge clk) begin
      if (!full_valid || fill_now) suits[s] <= ((value[s*SLICE_W+:SLICE_W] ^ read.value) & care[s*SLICE_W+:SLICE_W]) == '0;
      // The last that is shifted in is the rule with the highest number.
      if (found_out.valid && (!full_valid || fill_now)) column <= {suits[s], column[31:1]};
      if (fill_now) table_words[full_place] <= column;
      found      <= table_words[{step, word[s*SLICE_W+:SLICE_W]}];
      found_q[s] <= found;
    end
  end
endmodule

`default_nettype wire
