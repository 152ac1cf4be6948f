// An AXI4 master's reads, made into beats of memory. Bursts are answered in order; up to 64 beats of 64 bits are under way, and two
// bursts behind the one that is asked for.
`default_nettype none

module soft_axi_read #(
    parameter int DATA_W  = 64,
    parameter int ADDR_W  = 40,
    parameter int SIZE_W  = 26,
    localparam int BEAT_W = SIZE_W - 3
) (
    input  wire               clk,
    input  wire               rst,
    input  wire  [ADDR_W-1:0] araddr,
    input  wire  [7:0]        arlen,
    input  wire               arvalid,
    output logic              arready,
    output logic [DATA_W-1:0] rdata,
    output logic              rlast,
    output logic              rvalid,
    input  wire               rready,

    output logic              ask,
    output logic [BEAT_W-1:0] beat,
    input  wire               grant,
    input  wire               come,
    input  wire  [63:0]       come_data
);
  localparam int PARTS  = DATA_W / 64;
  localparam int ROOM_W = 6;
  localparam int LEN_W  = 8 + $clog2(PARTS);

  if (DATA_W != 64 && DATA_W != 128) begin : gen_bad_width
    $error("soft_axi_read: DATA_W must be 64 or 128");
  end

  // The burst that is asked for: its next beat of memory, and how many follow that one.
  logic              is_busy;
  logic [LEN_W-1:0]  rest;
  logic [BEAT_W-1:0] next;

  // What was asked for and has not left: whether it ends a burst, and the data once it has come.
  logic              lasts [2**ROOM_W];
  logic [63:0]       words [2**ROOM_W];
  logic [ROOM_W:0]   asked, arrived, left;

  wire has_room = asked - left != (ROOM_W + 1)'(2**ROOM_W);
  wire takes    = ask && grant;
  assign ask     = is_busy && has_room;
  assign beat    = next;
  assign arready = !is_busy || (takes && rest == '0);

  wire [ROOM_W-1:0] at = left[ROOM_W-1:0];
  if (PARTS == 1) begin : gen_narrow
    assign rvalid = arrived != left;
    assign rdata  = words[at];
    assign rlast  = lasts[at];
  end else begin : gen_wide
    wire [ROOM_W-1:0] upper = at + 1'b1;
    assign rvalid = arrived != left && arrived != left + 1'b1;
    assign rdata  = {words[upper], words[at]};
    assign rlast  = lasts[upper];
  end

  always_ff @(posedge clk) begin
    if (takes) begin
      lasts[asked[ROOM_W-1:0]] <= rest == '0;
      asked   <= asked + 1'b1;
      next    <= next + 1'b1;
      rest    <= rest - 1'b1;
      is_busy <= rest != '0;
    end
    if (arvalid && arready) begin
      is_busy <= 1'b1;
      next    <= araddr[SIZE_W-1:3] & ~BEAT_W'(PARTS - 1);
      rest    <= LEN_W'((32'(arlen) + 32'd1) * PARTS - 32'd1);
    end
    if (come) begin
      words[arrived[ROOM_W-1:0]] <= come_data;
      arrived <= arrived + 1'b1;
    end
    if (rvalid && rready) left <= left + (ROOM_W + 1)'(PARTS);
    if (rst) begin
      is_busy <= 1'b0;
      asked   <= '0;
      arrived <= '0;
      left    <= '0;
    end
  end

  wire unused = &{1'b0, araddr[ADDR_W-1:SIZE_W], araddr[2:0]};
endmodule

`default_nettype wire
