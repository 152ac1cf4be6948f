// A processor's reads over Wishbone, made into beats of memory: a line of 32 bytes from its begin (CTI 010, 111 at the last word), or one word.
// A word is acknowledged as soon as its beat is there, four bytes a clock.
`default_nettype none

module soft_fill #(
    parameter int SIZE_W  = 26,
    localparam int BEAT_W = SIZE_W - 3
) (
    input  wire               clk,
    input  wire               rst,
    // `cycle` stays up until the last word is acknowledged.
    input  wire               cycle,
    input  wire  [29:0]       address,
    input  wire  [2:0]        cti,
    output logic              ack,
    output logic [31:0]       data,

    output logic              ask,
    output logic [BEAT_W-1:0] beat,
    input  wire               grant,
    input  wire               come,
    input  wire  [63:0]       come_data,
    // A line was filled.
    output logic              event_line
);
  localparam logic [2:0] INCREMENTING = 3'b010;

  logic [63:0] words [4];
  logic [3:0]  there;
  logic [1:0]  asked, arrived;
  logic        is_busy, is_asking;

  wire is_line = cti == INCREMENTING;
  // The first beat of a line, or the only one.
  wire starts  = cycle && !is_busy;
  wire [1:0] first = is_line ? 2'd0 : address[2:1];

  assign ask  = starts || is_asking;
  assign beat = {address[SIZE_W-3:3], is_busy ? asked : first};
  assign ack  = cycle && is_busy && there[address[2:1]];
  assign data = words[address[2:1]][32*address[0]+:32];

  // What is beside the last word of a line, or the only one, ends it.
  wire ends = ack && !is_line;

  always_ff @(posedge clk) begin
    event_line <= ends && there == 4'hf;
    if (starts && grant) begin
      is_busy   <= 1'b1;
      is_asking <= is_line;
      asked     <= 2'd1;
      arrived   <= first;
    end else if (starts) begin
      arrived <= first;
    end else if (is_asking && grant) begin
      asked     <= asked + 2'd1;
      is_asking <= asked != 2'd3;
    end
    if (come) begin
      words[arrived] <= come_data;
      there[arrived] <= 1'b1;
      arrived        <= arrived + 2'd1;
    end
    if (ends) begin
      is_busy <= 1'b0;
      there   <= '0;
    end
    if (rst) begin
      is_busy   <= 1'b0;
      is_asking <= 1'b0;
      there     <= '0;
    end
  end

  wire unused = &{1'b0, address[29:SIZE_W-2]};
endmodule

`default_nettype wire
