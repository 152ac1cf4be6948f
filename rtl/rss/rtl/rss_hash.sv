// The Toeplitz hash of 36 bytes with a run-time key, 36 bits a clock.
//
// A minimum frame takes eight clocks at 64 bit, and no frame has more to hash than 36 bytes (two IPv6 addresses and two
// ports), so a frame's hash is done in the time in which its successor comes in. What is shorter is filled up with zeros,
// which add nothing.
//
//   key    |k0 ........................... k319|
//   step 0 |k0 ............ k66|                   for every bit i of the word that is set, the 32 bits of the key from
//   step 1       |k36 ........... k102|            k(36 * step + i) on are added without carry
//   ...
//   step 7                   |k252 ....... k318|
//
// `word` in clock t counts in `hash` in clock t + 2.
`default_nettype none

module rss_hash (
    input  wire          clk,

    // Byte 0 in bits 7:0.
    input  wire  [319:0] cfg_key,

    // Steps 0 to 7 in this order; the first bit is the highest.
    input  wire          word_valid,
    input  wire  [2:0]   step,
    input  wire  [35:0]  word,

    output logic [31:0]  hash
);
  localparam int WORD_W = 36, WINDOW_W = WORD_W + 31;

  // The first bit of the key highest.
  logic [319:0] key;
  always_comb for (int i = 0; i < 40; i++) key[319-8*i-:8] = cfg_key[8*i+:8];

  // Eight constant places: a shift by a product would be taken for a shifter of 320 bits.
  logic [WINDOW_W-1:0] windows[8];
  always_comb for (int i = 0; i < 8; i++) windows[i] = key[319-WORD_W*i-:WINDOW_W];

  logic [WORD_W-1:0]   word_q;
  logic [WINDOW_W-1:0] window;
  logic                valid_q, first;

  always_ff @(posedge clk) begin
    valid_q <= word_valid;
    first   <= step == 3'd0;
    word_q  <= word;
    window  <= windows[step];
  end

  logic [31:0] sum;
  always_comb begin
    sum = '0;
    for (int i = 0; i < WORD_W; i++) sum ^= window[WINDOW_W-1-i-:32] & {32{word_q[WORD_W-1-i]}};
  end

  always_ff @(posedge clk) begin
    if (valid_q) hash <= (first ? 32'd0 : hash) ^ sum;
  end
endmodule

`default_nettype wire
