// A processor's reads over Wishbone, made into beats of memory: a line of 32 bytes from its begin (CTI 010, 111 at the last word), or one word.
// A word is acknowledged as soon as its beat is there, four bytes a clock.
//
// The line behind one that was asked for is read before it is asked for itself, a stream buffer of one line: of the lines of code that are
// filled, two of three lie behind the one before. (N. Jouppi, Improving direct-mapped cache performance by the addition of a small
// fully-associative cache and prefetch buffers, 1990.) What was read ahead is another copy of memory:
//
// - A store into it drops it, and nothing is read ahead while stores wait, or others for memory (`hold`).
// - Somebody else's writes are not seen. A read of one word, which passes the cache, drops it: who learns that way that memory was written,
//   as a driver does by a descriptor, reads what was written.
`default_nettype none

module soft_fill #(
    parameter int SIZE_W  = 26,
    localparam int BEAT_W = SIZE_W - 3,
    localparam int LINE_W = SIZE_W - 5
) (
    input  wire               clk,
    input  wire               rst,
    // `cycle` stays up until the last word is acknowledged.
    input  wire               cycle,
    input  wire  [29:0]       address,
    input  wire  [2:0]        cti,
    output logic              ack,
    output logic [31:0]       data,

    // Nothing is to be read ahead now. A store that comes.
    input  wire               hold,
    input  wire               push,
    input  wire  [29:0]       push_address,

    output logic              ask,
    output logic [BEAT_W-1:0] beat,
    input  wire               grant,
    input  wire               come,
    input  wire  [63:0]       come_data,
    // A line was filled.
    output logic              event_line
);
  localparam logic [2:0] INCREMENTING = 3'b010;

  // Two places for a line: the one that is asked for, and the other.
  logic              now;
  logic [63:0]       words [8];
  logic [1:0][3:0]   there;
  logic [LINE_W-1:0] line [2];
  // The other one is, or will be, the line that it says.
  logic              is_ahead, wants_ahead;
  logic              is_busy;

  wire is_line = cti == INCREMENTING;
  wire [LINE_W-1:0] wanted = address[SIZE_W-3:3];
  // The first beat of a line, or the only one.
  wire [1:0] first  = is_line ? 2'd0 : address[2:1];
  wire starts = cycle && !is_busy;
  wire hits   = starts && is_line && is_ahead && line[!now] == wanted;
  wire misses = starts && !hits;

  // ---------------------------------------------------------------------------------------------------------------------
  // Beats: who asks first is answered first

  logic       is_asking, asks_for, asks_ahead;
  logic [1:0] asked;

  wire asks_on = is_asking && !(asks_ahead && hold);
  wire slot    = misses ? now : asks_for;
  wire [1:0] part = misses ? first : asked;
  assign ask  = misses || asks_on;
  assign beat = {misses ? wanted : line[asks_for], part};

  // Where the beats go that were granted.
  logic [2:0] places [8];
  logic [3:0] head, tail;
  logic [1:0][2:0] flying;
  wire [2:0] place   = places[tail[2:0]];
  wire       granted = ask && grant;

  always_ff @(posedge clk) begin
    if (granted) begin
      places[head[2:0]] <= {slot, part};
      head              <= head + 1'b1;
    end
    if (come) begin
      words[place] <= come_data;
      tail         <= tail + 1'b1;
    end
    for (int at = 0; at < 2; at++) begin
      flying[at] <= flying[at] + 3'(granted && slot == at[0]) - 3'(come && place[2] == at[0]);
    end
    if (rst) begin
      head   <= '0;
      tail   <= '0;
      flying <= '0;
    end
  end

  // ---------------------------------------------------------------------------------------------------------------------
  // Words

  assign ack  = cycle && is_busy && there[now][address[2:1]];
  assign data = words[{now, address[2:1]}][32*address[0]+:32];

  // What is beside the last word of a line, or the only one, ends it.
  wire ends = ack && !is_line;
  wire is_only = there[now] != 4'hf;
  wire drops = push && is_ahead && push_address[SIZE_W-3:3] == line[!now] && !hits;
  // Nothing of another line is to come to that place.
  wire begins = wants_ahead && !is_asking && !starts && flying[!now] == '0;

  always_ff @(posedge clk) begin
    event_line <= ends && !is_only;
    if (come) there[place[2]][place[1:0]] <= 1'b1;
    if (!misses && granted) begin
      asked     <= asked + 2'd1;
      is_asking <= asked != 2'd3;
    end
    if (begins) begin
      wants_ahead  <= 1'b0;
      is_ahead     <= 1'b1;
      line[!now]   <= line[now] + 1'b1;
      there[!now]  <= '0;
      is_asking    <= 1'b1;
      asks_for     <= !now;
      asks_ahead   <= 1'b1;
      asked        <= '0;
    end
    if (drops) is_ahead <= 1'b0;
    if (hits) begin
      now         <= !now;
      is_busy     <= 1'b1;
      is_ahead    <= 1'b0;
      asks_ahead  <= 1'b0;
      wants_ahead <= 1'b1;
    end
    if (misses) begin
      // What is ahead is of another stream, or no longer true.
      is_ahead  <= 1'b0;
      is_asking <= 1'b0;
      if (grant) begin
        is_busy     <= 1'b1;
        is_asking   <= is_line;
        asks_for    <= now;
        asks_ahead  <= 1'b0;
        asked       <= 2'd1;
        line[now]   <= wanted;
        wants_ahead <= is_line;
      end
    end
    if (ends) begin
      is_busy    <= 1'b0;
      there[now] <= '0;
    end
    if (rst) begin
      now         <= 1'b0;
      is_busy     <= 1'b0;
      is_ahead    <= 1'b0;
      wants_ahead <= 1'b0;
      is_asking   <= 1'b0;
      asks_ahead  <= 1'b0;
      there       <= '0;
    end
  end

  wire unused = &{1'b0, address[29:SIZE_W-2], push_address[29:SIZE_W-2], push_address[2:0]};
endmodule

`default_nettype wire
