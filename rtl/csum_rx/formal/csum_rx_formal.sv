// csum_rx: each frame gets exactly one status and one raw sum, the raw sum first and neither before the frame is in whole, for all
// streams and whenever its store of beats is ready.
//
// That is all that axis_annotate assumes, through which the stream passes: with the proof in common/formal no beat is lost,
// doubled, changed or reordered, the rules of AXI4-Stream hold at the output, and each frame carries its own status and sum.
// Proved by induction, without a bound, at 64 bits: what the status says is not part of it, that is compared with the reference.
`default_nettype none

module csum_rx_formal
  import nic_pkg::*;
(
    input wire        clk,
    input wire        rst,
    input wire        cfg_enable,
    input wire [63:0] s_axis_tdata,
    input wire [7:0]  s_axis_tkeep,
    input wire        s_axis_tvalid,
    input wire        s_axis_tlast,
    input wire        m_axis_tready
);
  logic s_axis_tready;

  // It begins with a reset; there may be others.
  logic first = 1'b1;
  always_ff @(posedge clk) first <= 1'b0;
  always @(posedge clk) if (first) assume (rst);

  csum_rx dut (
      .clk, .rst, .cfg_enable, .s_axis_tdata, .s_axis_tkeep, .s_axis_tvalid, .s_axis_tready, .s_axis_tlast, .s_axis_tuser('0),
      .m_axis_tdata(), .m_axis_tkeep(), .m_axis_tvalid(), .m_axis_tready, .m_axis_tlast(), .m_axis_tuser(),
      .event_ip_bad(), .event_layer4_bad()
  );

  // Frames in whole, and what has been said of them, modulo 32: no more than 12 wait.
  logic [4:0] frames = '0, notes = '0, earlies = '0;

  always_ff @(posedge clk) begin
    if (s_axis_tvalid && s_axis_tready && s_axis_tlast) frames <= frames + 5'd1;
    if (dut.note_valid) notes <= notes + 5'd1;
    if (dut.raw_valid) earlies <= earlies + 5'd1;
    if (rst) begin
      frames  <= '0;
      notes   <= '0;
      earlies <= '0;
    end
  end

  // The ends of frames that are on their way, stage by stage.
  wire [11:0] ends = {
    dut.parse.held_valid && dut.parse.held_last, dut.parse.a_valid && dut.parse.a_last, dut.parse.b_valid && dut.parse.b_last,
    dut.parse.c_valid && dut.parse.c_last, dut.parse.d_valid && dut.parse.d_last, dut.parse.e_valid && dut.parse.e_last,
    dut.parse.g_valid && dut.parse.g_last, dut.step_valid && dut.step_last, dut.header.last, dut.sums_valid, dut.t_valid,
    dut.note_valid
  };

  always @(posedge clk) begin
    if (!rst && !first) begin
      if (dut.note_valid) assert (notes != frames && earlies != notes);
      if (dut.raw_valid) assert (earlies != frames);
      // A frame is never further back than 12 clocks.
      assert (frames - notes == 5'($countones(ends)));
      // What induction needs to know.
      assert (frames - earlies == 5'(dut.raw.core.last) + 5'(dut.raw_valid));
      assert (dut.raw.core.last == ends[11] && dut.raw_valid == ends[10]);
    end
  end
endmodule

`default_nettype wire
