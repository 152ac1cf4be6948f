// The register in front of lro does what axis_register does: the same words, the same handshakes, in the same clocks.
`default_nettype none

module lro_input_formal (
    input wire       clk,
    input wire       rst,
    input wire [7:0] word,
    input wire       valid,
    input wire       ready
);
  logic first = 1'b1;
  always_ff @(posedge clk) first <= 1'b0;
  always @(posedge clk) if (first) assume (rst);

  logic       ours_ready, ours_valid, theirs_ready, theirs_valid, keep, last, user;
  logic [7:0] ours, theirs;

  lro_input #(.WORD_W(8)) register (
      .clk, .rst, .s_word(word), .s_valid(valid), .s_ready(ours_ready), .m_word(ours), .m_valid(ours_valid), .m_ready(ready)
  );
  axis_register #(.DATA_W(8), .USER_W(1)) reference (
      .clk, .rst, .s_axis_tdata(word), .s_axis_tkeep(1'b1), .s_axis_tvalid(valid), .s_axis_tready(theirs_ready),
      .s_axis_tlast(1'b0), .s_axis_tuser(1'b0), .m_axis_tdata(theirs), .m_axis_tkeep(keep), .m_axis_tvalid(theirs_valid),
      .m_axis_tready(ready), .m_axis_tlast(last), .m_axis_tuser(user)
  );

  always @(posedge clk) begin
    if (!first) begin
      assert (ours_ready == theirs_ready && ours_valid == theirs_valid);
      if (ours_valid) assert (ours == theirs);
      // What is held behind it.
      if (!ours_ready) assert (register.second == reference.skid[7:0]);
    end
  end

  wire unused = &{1'b0, keep, last, user};
endmodule

`default_nettype wire
