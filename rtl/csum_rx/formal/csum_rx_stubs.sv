// What csum_rx's proof leaves open: the store of beats is ready whenever it likes.
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
    input  wire  [NOTE_W-1:0]   note,
    input  wire                 note_valid,
    input  wire  [EARLY_W-1:0]  early,
    input  wire                 early_valid,
    output logic [DATA_W-1:0]   m_axis_tdata,
    output logic [DATA_W/8-1:0] m_axis_tkeep,
    output logic                m_axis_tvalid,
    input  wire                 m_axis_tready,
    output logic                m_axis_tlast,
    output logic [USER_W-1:0]   m_axis_tuser,
    output logic [NOTE_W-1:0]   m_axis_note,
    output logic [EARLY_W-1:0]  m_axis_early
);
  // Anything in each clock; the other outputs are not looked at.
  (* anyseq *) logic ready;
  assign s_axis_tready = ready;
  assign {m_axis_tdata, m_axis_tkeep, m_axis_tvalid, m_axis_tlast, m_axis_tuser, m_axis_note, m_axis_early} = '0;
endmodule

`default_nettype wire
