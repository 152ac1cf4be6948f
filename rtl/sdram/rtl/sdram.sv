// A controller of SDR SDRAM, 16 bits wide, with the port of `soft_memory`: beats of 64 bits, the lowest number that asks first, answers in the
// order of the grants.
//
//   ask, beat, ... ---> one request ---> commands ---> the chip        its clock is `clk` inverted
//   come <------------- four words <--- taken at the falling edge <--- dq
//
// A beat is a burst of four words, so that one can be moved in four clocks. Rows stay open until another one of their bank is asked for, or a
// refresh is due. What is open and the clocks that must pass are known for all banks together, but for the rows. A read that finds its row open comes
// after eight clocks (CAS 2, from its grant to the clock in which `come` is set), with another row open two later at 50 MHz, or more if that has only just
// been opened.
//
// Times are those of chips of 7 or 7.5 ns and CAS 2 (133 MHz, up to 100 at CAS 2): MT48LC16M16A2-7E, IS42S16160G-7, AS4C32M16SB-7.
`default_nettype none

module sdram #(
    parameter int MASTERS = 7,
    // log2 of its bytes; of its columns. There are four banks.
    parameter int SIZE_W  = 25,
    parameter int COL_W   = 9,
    // A clock, in nanoseconds.
    parameter int CLK_NS  = 20,
    // From power to the first command.
    parameter int WAKE_NS = 200_000,
    localparam int BEAT_W = SIZE_W - 3,
    localparam int ROW_W  = SIZE_W - 3 - COL_W
) (
    input  wire                            clk,
    input  wire                            rst,
    input  wire  [MASTERS-1:0]             ask,
    input  wire  [MASTERS-1:0]             is_write,
    input  wire  [MASTERS-1:0][BEAT_W-1:0] beat,
    input  wire  [MASTERS-1:0][63:0]       data,
    input  wire  [MASTERS-1:0][7:0]        strobes,
    output logic [MASTERS-1:0]             grant,
    output logic [MASTERS-1:0]             come,
    output logic [63:0]                    come_data,

    // The chip. Its `cke` is high and its `cs_n` low.
    output logic                           sd_ras_n,
    output logic                           sd_cas_n,
    output logic                           sd_we_n,
    output logic [1:0]                     sd_ba,
    output logic [12:0]                    sd_a,
    output logic [1:0]                     sd_dqm,
    output logic [15:0]                    sd_dq_out,
    output logic                           sd_dq_drive,
    input  wire  [15:0]                    sd_dq_in
);
  localparam int CAS    = 2;
  localparam int WORDS  = 4;
  localparam int WHO_W  = $clog2(MASTERS);

  if (ROW_W < 11 || ROW_W > 13 || COL_W < 8 || COL_W > 10) begin : gen_bad_size
    $error("sdram: rows of 11 to 13 bits, columns of 8 to 10");
  end
  if (CLK_NS < 10 || CLK_NS > 100) begin : gen_bad_clock
    $error("sdram: CLK_NS must be 10 to 100");
  end

  function automatic int clocks(int ns);
    return (ns + CLK_NS - 1) / CLK_NS;
  endfunction
  // Between commands, in clocks.
  localparam int T_RCD  = clocks(20), T_RP = clocks(20), T_RAS = clocks(45), T_RFC = clocks(70), T_RRD = 2, T_WR = 2, T_MRD = 2;
  // Rows are refreshed one after the other, 8,192 in 64 ms; a command under way may hold one up.
  localparam int REFRESH_EVERY = 7_800 / CLK_NS - 32;
  localparam int REFRESH_W     = $clog2(REFRESH_EVERY);
  localparam int WAKE          = clocks(WAKE_NS);
  localparam int WAKE_W        = $clog2(WAKE + 1);

  typedef enum logic [2:0] {
    MODE = 3'b000, REFRESH = 3'b001, PRECHARGE = 3'b010, ACTIVE = 3'b011, WRITE = 3'b100, READ = 3'b101, NOTHING = 3'b111
  } command_t;
  // Bursts of four in their order, CAS.
  localparam logic [12:0] MODE_WORD = 13'b000_0_00_010_0_010;
  localparam logic [12:0] ALL_BANKS = 13'b0_0100_0000_0000;

  // ---------------------------------------------------------------------------------------------------------------------
  // One request

  logic              is_up, wants_refresh;
  logic              has_request, request_writes;
  logic [WHO_W-1:0]  request_who;
  logic [BEAT_W-1:0] request_beat;
  logic [63:0]       request_data;
  logic [7:0]        request_strobes;

  logic [WHO_W-1:0] who;
  wire takes = is_up && !has_request && !wants_refresh && |ask;
  always_comb begin
    who   = '0;
    grant = '0;
    for (int at = MASTERS - 1; at >= 0; at--) begin
      if (ask[at]) who = WHO_W'(at);
    end
    grant[who] = takes;
  end

  wire [COL_W-3:0] column = request_beat[COL_W-3:0];
  wire [1:0]       bank   = request_beat[COL_W-1-:2];
  wire [ROW_W-1:0] row    = request_beat[COL_W+:ROW_W];

  // ---------------------------------------------------------------------------------------------------------------------
  // Commands

  // Clocks until one of each kind may be given.
  typedef logic [3:0] wait_t;
  wait_t until_read, until_write, until_precharge, until_active;
  logic [3:0]       is_open;
  logic [ROW_W-1:0] rows [4];

  logic [REFRESH_W-1:0] refresh_timer;
  logic [WAKE_W-1:0]    wake_timer;
  logic [3:0]           wake_step;

  wire is_hit = is_open[bank] && rows[bank] == row;

  command_t command;
  always_comb begin
    command = NOTHING;
    if (!is_up) begin
      // All banks closed, eight refreshes, the mode.
      if (wake_timer == '0 && until_active == '0) begin
        command = wake_step == 4'd0 ? PRECHARGE : wake_step == 4'd9 ? MODE : REFRESH;
      end
    end else if (has_request) begin
      if (is_hit) begin
        if (request_writes && until_write == '0) command = WRITE;
        if (!request_writes && until_read == '0) command = READ;
      end else if (is_open[bank]) begin
        if (until_precharge == '0) command = PRECHARGE;
      end else if (until_active == '0) begin
        command = ACTIVE;
      end
    end else if (wants_refresh) begin
      if (is_open != '0) begin
        if (until_precharge == '0) command = PRECHARGE;
      end else if (until_active == '0) begin
        command = REFRESH;
      end
    end
  end

  function automatic wait_t later(wait_t now, int least);
    wait_t less;
    less = now == '0 ? '0 : now - 4'd1;
    return less > 4'(least - 1) ? less : 4'(least - 1);
  endfunction

  always_ff @(posedge clk) begin
    until_read      <= later(until_read, 1);
    until_write     <= later(until_write, 1);
    until_precharge <= later(until_precharge, 1);
    until_active    <= later(until_active, 1);
    unique case (command)
      PRECHARGE: until_active <= later(until_active, T_RP);
      REFRESH:   until_active <= later(until_active, T_RFC);
      MODE:      until_active <= later(until_active, T_MRD);
      ACTIVE: begin
        until_active    <= later(until_active, T_RRD);
        until_read      <= later(until_read, T_RCD);
        until_write     <= later(until_write, T_RCD);
        until_precharge <= later(until_precharge, T_RAS);
      end
      READ: begin
        until_read      <= later(until_read, WORDS);
        // The lines change their direction for a clock.
        until_write     <= later(until_write, CAS + WORDS + 1);
        until_precharge <= later(until_precharge, WORDS);
      end
      WRITE: begin
        until_read      <= later(until_read, WORDS);
        until_write     <= later(until_write, WORDS);
        until_precharge <= later(until_precharge, WORDS - 1 + T_WR);
      end
      default: ;
    endcase
    if (command == ACTIVE) begin
      is_open[bank] <= 1'b1;
      rows[bank]    <= row;
    end
    if (command == PRECHARGE) begin
      if (has_request) is_open[bank] <= 1'b0;
      else is_open <= '0;
    end

    refresh_timer <= refresh_timer - 1'b1;
    if (command == REFRESH) wants_refresh <= 1'b0;
    if (refresh_timer == '0) begin
      refresh_timer <= REFRESH_W'(REFRESH_EVERY - 1);
      wants_refresh <= 1'b1;
    end

    if (takes) begin
      has_request     <= 1'b1;
      request_writes  <= is_write[who];
      request_who     <= who;
      request_beat    <= beat[who];
      request_data    <= data[who];
      request_strobes <= strobes[who];
    end
    if (command == READ || command == WRITE) has_request <= 1'b0;

    if (wake_timer != '0) wake_timer <= wake_timer - 1'b1;
    if (!is_up && command != NOTHING) begin
      wake_step <= wake_step + 4'd1;
      is_up     <= command == MODE;
    end
    if (rst) begin
      has_request   <= 1'b0;
      wants_refresh <= 1'b0;
      is_up         <= 1'b0;
      is_open       <= '0;
      wake_timer    <= WAKE_W'(WAKE);
      wake_step     <= '0;
      refresh_timer <= REFRESH_W'(REFRESH_EVERY - 1);
      until_active  <= '0;
    end
  end

  // ---------------------------------------------------------------------------------------------------------------------
  // The chip's lines, all behind registers

  logic [47:0] out_words;
  logic [5:0]  out_masks;
  logic [1:0]  out_rest;

  always_ff @(posedge clk) begin
    {sd_ras_n, sd_cas_n, sd_we_n} <= command;
    sd_ba <= bank;
    unique case (command)
      MODE:        sd_a <= MODE_WORD;
      ACTIVE:      sd_a <= 13'(row);
      READ, WRITE: sd_a <= 13'({column, 2'b00});
      default:     sd_a <= is_up && has_request ? '0 : ALL_BANKS;
    endcase
    if (command == MODE) sd_ba <= '0;

    out_words   <= out_words >> 16;
    out_masks   <= out_masks >> 2;
    out_rest    <= out_rest == '0 ? '0 : out_rest - 2'd1;
    sd_dq_drive <= out_rest != '0;
    sd_dq_out   <= out_words[15:0];
    sd_dqm      <= out_rest != '0 ? out_masks[1:0] : '0;
    if (command == WRITE) begin
      {out_words, sd_dq_out} <= request_data;
      {out_masks, sd_dqm}    <= ~request_strobes;
      out_rest               <= 2'(WORDS - 1);
      sd_dq_drive            <= 1'b1;
    end
    if (rst) begin
      {sd_ras_n, sd_cas_n, sd_we_n} <= NOTHING;
      sd_dq_drive <= 1'b0;
      out_rest    <= '0;
    end
  end

  // ---------------------------------------------------------------------------------------------------------------------
  // What is read: a word at each falling edge, as the chip's clock rises in the middle of ours and its data take half a clock and more

  localparam int COME_AFTER = CAS + WORDS + 1;
  logic [15:0]           half;
  logic [63:0]           words;
  logic [COME_AFTER-1:0] is_due;
  logic [WHO_W-1:0]      due_who [COME_AFTER];

  always_ff @(negedge clk) half <= sd_dq_in;

  always_ff @(posedge clk) begin
    words      <= {half, words[63:16]};
    is_due     <= {is_due[COME_AFTER-2:0], command == READ};
    due_who[0] <= request_who;
    for (int at = 1; at < COME_AFTER; at++) due_who[at] <= due_who[at-1];
    if (rst) is_due <= '0;
  end

  always_comb begin
    come = '0;
    come[due_who[COME_AFTER-1]] = is_due[COME_AFTER-1];
  end
  assign come_data = words;
endmodule

`default_nettype wire
