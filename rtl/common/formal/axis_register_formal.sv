// axis_register: nothing is lost, doubled, changed or reordered, whatever the two sides do.
//
// One beat, chosen by the solver, is followed from its number on the way in to its number on the way out.
`default_nettype none

module axis_register_formal (
    input wire       clk,
    input wire       rst,
    input wire [7:0] s_axis_tdata,
    input wire       s_axis_tvalid,
    input wire       s_axis_tlast,
    input wire       s_axis_tuser,
    input wire       m_axis_tready,
    input wire [3:0] chosen
);
  logic       s_axis_tready, m_axis_tvalid, m_axis_tlast, m_axis_tuser, m_axis_tkeep;
  logic [7:0] m_axis_tdata;

  // It begins with a reset.
  logic first = 1'b1;
  always_ff @(posedge clk) first <= 1'b0;
  always @(posedge clk) if (first) assume (rst);

  // Any number, but always the same.
  logic [3:0] chosen_before;
  always_ff @(posedge clk) chosen_before <= chosen;
  always @(posedge clk) if (!first) assume (chosen == chosen_before);

  axis_register #(.DATA_W(8)) dut (.*, .s_axis_tkeep(1'b1));

  axis_check #(.DATA_W(8), .ASSUME(1)) input_rules (
      .clk, .rst, .tdata(s_axis_tdata), .tkeep(1'b1), .tvalid(s_axis_tvalid), .tready(s_axis_tready), .tlast(s_axis_tlast),
      .tuser(s_axis_tuser)
  );
  axis_check #(.DATA_W(8)) output_rules (
      .clk, .rst, .tdata(m_axis_tdata), .tkeep(m_axis_tkeep), .tvalid(m_axis_tvalid), .tready(m_axis_tready),
      .tlast(m_axis_tlast), .tuser(m_axis_tuser)
  );

  logic [3:0] in_count = '0, out_count = '0;
  logic [9:0] followed;

  always_ff @(posedge clk) begin
    if (s_axis_tvalid && s_axis_tready) begin
      in_count <= in_count + 4'd1;
      if (in_count == chosen) followed <= {s_axis_tuser, s_axis_tlast, s_axis_tdata};
    end
    if (m_axis_tvalid && m_axis_tready) out_count <= out_count + 4'd1;
    if (rst) begin
      in_count  <= '0;
      out_count <= '0;
    end
  end

  wire [3:0] held = in_count - out_count;
  wire [3:0] age    = in_count - chosen;  // 1: the newest

  always @(posedge clk) begin
    if (!rst) begin
      assert (held == {3'b0, m_axis_tvalid} + {3'b0, !s_axis_tready});
      assert (s_axis_tready || m_axis_tvalid);
      if (m_axis_tvalid && out_count == chosen) assert ({m_axis_tuser, m_axis_tlast, m_axis_tdata} == followed);
      // What induction needs to know of the word behind.
      if (!s_axis_tready) assert (dut.skid[8]);
      if (!s_axis_tready && age == 4'd1) assert ({dut.skid[10:9], dut.skid[7:0]} == followed);
    end
  end
endmodule

`default_nettype wire
