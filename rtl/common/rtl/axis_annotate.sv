// Passes a stream on and puts beside the last beat of each frame what has been found out about it.
//
// A note for each frame comes later than its last beat: the last beat waits for it here, and what follows waits behind. As
// the notes keep up with the frames, a stream without pauses comes out without pauses behind the first note: nothing is
// delayed by more clocks than a note, and DEPTH must be four more than these are.
`default_nettype none

module axis_annotate #(
    parameter int DATA_W = 64,
    parameter int USER_W = 1,
    parameter int NOTE_W = 1,
    parameter int EARLY_W = 1,
    parameter int DEPTH = 16
) (
    input  wire                 clk,
    input  wire                 rst,

    input  wire  [DATA_W-1:0]   s_axis_tdata,
    input  wire  [DATA_W/8-1:0] s_axis_tkeep,
    input  wire                 s_axis_tvalid,
    output logic                s_axis_tready,
    input  wire                 s_axis_tlast,
    input  wire  [USER_W-1:0]   s_axis_tuser,

    // One for each frame, in their order, at the earliest one clock behind the last beat. There is always room: for each frame
    // that is in here whole.
    input  wire  [NOTE_W-1:0]   note,
    input  wire                 note_valid,
    // A part of it that is known earlier.
    input  wire  [EARLY_W-1:0]  early,
    input  wire                 early_valid,

    output logic [DATA_W-1:0]   m_axis_tdata,
    output logic [DATA_W/8-1:0] m_axis_tkeep,
    output logic                m_axis_tvalid,
    input  wire                 m_axis_tready,
    output logic                m_axis_tlast,
    output logic [USER_W-1:0]   m_axis_tuser,
    // In the last beat.
    output logic [NOTE_W-1:0]   m_axis_note,
    output logic [EARLY_W-1:0]  m_axis_early
);
  localparam int BEAT_W = DATA_W + DATA_W / 8 + 1 + USER_W;
  localparam int LOG = $clog2(DEPTH);

  if (DEPTH < 4 || (DEPTH & (DEPTH - 1)) != 0) begin : gen_bad
    $error("axis_annotate: DEPTH must be a power of two, at least 4");
  end

  logic [BEAT_W-1:0] beats [DEPTH];
  logic [NOTE_W-1:0] notes [DEPTH];
  logic [EARLY_W-1:0] earlies [DEPTH];
  // One bit more than an index: what has gone in and come out, modulo twice the depth.
  logic [LOG:0]      beats_in, beats_out, notes_in, notes_out;
  logic [LOG-1:0]    earlies_in;
  logic [LOG:0]      level;
  logic [BEAT_W-1:0] head;
  logic              head_last, put, take;

  assign head      = beats[beats_out[LOG-1:0]];
  assign head_last = head[USER_W];
  assign put       = s_axis_tvalid && s_axis_tready;
  assign take = (!m_axis_tvalid || m_axis_tready) && beats_in != beats_out && (!head_last || notes_in != notes_out);
  assign level = beats_in - beats_out;

  always_ff @(posedge clk) begin
    if (put) beats[beats_in[LOG-1:0]] <= {s_axis_tdata, s_axis_tkeep, s_axis_tlast, s_axis_tuser};
    if (note_valid) notes[notes_in[LOG-1:0]] <= note;
    if (early_valid) earlies[earlies_in] <= early;
  end

  always_ff @(posedge clk) begin
    // Room for the beat that may come in this clock, too.
    s_axis_tready <= level < (LOG + 1)'(DEPTH - 1);
    if (put) beats_in <= beats_in + 1'b1;
    if (note_valid) notes_in <= notes_in + 1'b1;
    if (early_valid) earlies_in <= earlies_in + 1'b1;
    if (take) begin
      beats_out <= beats_out + 1'b1;
      if (head_last) notes_out <= notes_out + 1'b1;
      {m_axis_tdata, m_axis_tkeep, m_axis_tlast, m_axis_tuser} <= head;
      m_axis_note  <= notes[notes_out[LOG-1:0]];
      m_axis_early <= earlies[notes_out[LOG-1:0]];
    end
    if (take) m_axis_tvalid <= 1'b1;
    else if (m_axis_tready) m_axis_tvalid <= 1'b0;
    if (rst) begin
      beats_in      <= '0;
      beats_out     <= '0;
      notes_in      <= '0;
      earlies_in    <= '0;
      notes_out     <= '0;
      m_axis_tvalid <= 1'b0;
      s_axis_tready <= 1'b0;
    end
  end
endmodule

`default_nettype wire
