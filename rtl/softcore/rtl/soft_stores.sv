// Stores that wait for memory: the processor goes on while there is room.
`default_nettype none

module soft_stores #(
    parameter int SIZE_W  = 26,
    // log2 of the places.
    parameter int DEPTH_W = 3,
    localparam int BEAT_W = SIZE_W - 3
) (
    input  wire               clk,
    input  wire               rst,
    input  wire               push,
    input  wire  [29:0]       address,
    input  wire  [31:0]       data,
    input  wire  [3:0]        strobes,
    output logic              has_room,
    output logic              is_empty,

    output logic              ask,
    output logic [BEAT_W-1:0] beat,
    output logic [63:0]       beat_data,
    output logic [7:0]        beat_strobes,
    input  wire               grant
);
  localparam int WORD_W = SIZE_W - 2;

  logic [WORD_W+35:0] places [2**DEPTH_W];
  logic [DEPTH_W:0]   head, tail;

  assign is_empty = head == tail;
  assign has_room = head - tail != (DEPTH_W + 1)'(2**DEPTH_W);
  assign ask      = !is_empty;

  logic [WORD_W-1:0] word;
  logic [31:0]       word_data;
  logic [3:0]        word_strobes;
  assign {word, word_data, word_strobes} = places[tail[DEPTH_W-1:0]];
  assign beat         = word[WORD_W-1:1];
  assign beat_data    = {word_data, word_data};
  assign beat_strobes = word[0] ? {word_strobes, 4'd0} : {4'd0, word_strobes};

  always_ff @(posedge clk) begin
    if (push && has_room) begin
      places[head[DEPTH_W-1:0]] <= {address[WORD_W-1:0], data, strobes};
      head <= head + 1'b1;
    end
    if (ask && grant) tail <= tail + 1'b1;
    if (rst) begin
      head <= '0;
      tail <= '0;
    end
  end

  wire unused = &{1'b0, address[29:WORD_W]};
endmodule

`default_nettype wire
