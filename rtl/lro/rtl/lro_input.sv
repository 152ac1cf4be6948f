// The register in front of lro: as axis_register, and word for word with it, but what enables the second register is a register.
//
// Whether a word is taken is known late in the clock, as it may wait for a block or for the table, and the two registers are wide.
// So the second one follows the input as long as it holds nothing, whether or not anything comes to be held.
`default_nettype none

module lro_input #(
    parameter int WORD_W = 8
) (
    input  wire               clk,
    input  wire               rst,
    input  wire  [WORD_W-1:0] s_word,
    input  wire               s_valid,
    output logic              s_ready,
    output logic [WORD_W-1:0] m_word,
    output logic              m_valid,
    input  wire               m_ready
);
  logic [WORD_W-1:0] second;
  logic              second_valid;

  // Room for one more word even if nothing is taken in this clock.
  assign s_ready = !second_valid;

  always_ff @(posedge clk) begin
    if (!second_valid) second <= s_word;
    if (!m_valid || m_ready) begin
      m_word       <= second_valid ? second : s_word;
      m_valid      <= second_valid || s_valid;
      second_valid <= 1'b0;
    end else if (s_valid) begin
      second_valid <= 1'b1;
    end
    if (rst) begin
      m_valid      <= 1'b0;
      second_valid <= 1'b0;
    end
  end
endmodule

`default_nettype wire
