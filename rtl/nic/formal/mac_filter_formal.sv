// mac_filter: the rules of the stream; the frames that are for this station leave whole, unchanged and in their order, no
// other does, and each of those is told of once.
//
// Proved by induction, without a bound, at 64 bit, for all pauses and resets and any settings that stay as they are. One beat
// of the frames that pass, chosen by the solver, is followed from its number on the way in to its number on the way out.
`default_nettype none

module mac_filter_formal (
    input wire        clk,
    input wire        rst,
    input wire [63:0] s_axis_tdata,
    input wire [7:0]  s_axis_tkeep,
    input wire        s_axis_tvalid,
    input wire        s_axis_tlast,
    input wire        s_axis_tuser,
    input wire        m_axis_tready,
    input wire        cfg_enable,
    input wire        cfg_promiscuous,
    input wire        cfg_all_groups,
    input wire [47:0] cfg_address,
    input wire [63:0] cfg_groups,
    input wire [3:0]  chosen
);
  logic        s_axis_tready, m_axis_tvalid, m_axis_tlast, m_axis_tuser, event_filtered;
  logic [63:0] m_axis_tdata;
  logic [7:0]  m_axis_tkeep;

  // It begins with a reset; there may be others.
  logic first = 1'b1;
  always_ff @(posedge clk) first <= 1'b0;
  always @(posedge clk) if (first) assume (rst);

  // Any settings and any number, but always the same.
  wire  [118:0] fixed = {cfg_enable, cfg_promiscuous, cfg_all_groups, cfg_address, cfg_groups, chosen};
  logic [118:0] fixed_before;
  always_ff @(posedge clk) fixed_before <= fixed;
  always @(posedge clk) if (!first) assume (fixed == fixed_before);

  mac_filter dut (.*);

  axis_check #(.ASSUME(1)) input_rules (
      .clk, .rst, .tdata(s_axis_tdata), .tkeep(s_axis_tkeep), .tvalid(s_axis_tvalid), .tready(s_axis_tready),
      .tlast(s_axis_tlast), .tuser(s_axis_tuser)
  );
  axis_check output_rules (
      .clk, .rst, .tdata(m_axis_tdata), .tkeep(m_axis_tkeep), .tvalid(m_axis_tvalid), .tready(m_axis_tready),
      .tlast(m_axis_tlast), .tuser(m_axis_tuser)
  );

  // Who may pass. Bit b of byte i is bit 8 * (5 - i) + b of the address as a number, and every sixth of those counts together.
  function automatic logic [5:0] group(input logic [47:0] to);
    logic [5:0] sum;
    sum = '0;
    for (int i = 0; i < 6; i++) begin
      for (int b = 0; b < 8; b++) sum[(8 * (5 - i) + b) % 6] = sum[(8 * (5 - i) + b) % 6] ^ to[8*i+b];
    end
    return sum;
  endfunction

  function automatic logic allowed(input logic [47:0] to, input logic whole);
    return cfg_enable && whole
        && (cfg_promiscuous || to == cfg_address || to == 48'hffff_ffff_ffff
            || (to[0] && (cfg_all_groups || cfg_groups[group(to)])));
  endfunction

  // Beats of frames that pass, in and out, and frames that do not, each modulo 16.
  logic        passing, held_valid, held_first, held_pass, after_reset;
  logic [73:0] held, followed;
  logic [3:0]  passed = '0, left = '0, kept_out = '0, told = '0;
  wire         pass = input_rules.in_frame ? passing : allowed(s_axis_tdata[47:0], s_axis_tkeep[5]);
  wire  [73:0] offered = {s_axis_tuser, s_axis_tlast, s_axis_tkeep, s_axis_tdata};

  always_ff @(posedge clk) begin
    if (s_axis_tready) begin
      held_valid <= s_axis_tvalid;
      held_first <= !input_rules.in_frame;
      held_pass  <= pass;
      held       <= offered;
      if (s_axis_tvalid) begin
        passing <= pass;
        if (pass) passed <= passed + 4'd1;
        if (pass && passed == chosen) followed <= offered;
        if (s_axis_tlast && !pass) kept_out <= kept_out + 4'd1;
      end
    end
    if (m_axis_tvalid && m_axis_tready) left <= left + 4'd1;
    if (event_filtered && !after_reset) told <= told + 4'd1;
    after_reset <= rst;
    if (rst) begin
      held_valid <= 1'b0;
      passed     <= '0;
      left       <= '0;
      kept_out   <= '0;
      told       <= '0;
    end
  end

  wire [3:0] within_it = passed - left;
  wire [3:0] age    = passed - chosen;   // 1: the newest
  wire       newest = held_valid && held_pass;
  wire       behind = dut.out.skid_valid;

  always @(posedge clk) begin
    if (!rst && !first) begin
      assert (within_it == 4'(m_axis_tvalid) + 4'(behind) + 4'(newest));
      if (m_axis_tvalid && left == chosen) assert ({m_axis_tuser, m_axis_tlast, m_axis_tkeep, m_axis_tdata} == followed);
      // The event of a frame that ended in the clock before a reset still comes.
      assert (kept_out - told == 4'(event_filtered && !after_reset) + 4'(held_valid && held[72] && !held_pass));
      // What induction needs to know: of the beat that waits for its answer,
      assert (dut.valid == held_valid && dut.in_frame == input_rules.in_frame);
      if (held_valid) begin
        assert ({dut.user, dut.last, dut.keep, dut.data} == held && dut.first == held_first);
        assert (dut.is_own == (held[47:0] == cfg_address) && dut.is_broadcast == &held[47:0] && dut.is_group == held[0]);
        assert (dut.is_short == !held[69] && dut.hash == group(held[47:0]));
        assert (held_pass == (held_first ? allowed(held[47:0], held[69]) : dut.passing));
        assert (input_rules.in_frame == !held[72] && held[64]);
        if (input_rules.in_frame) assert (passing == held_pass);
        // No lane is left out.
        assert ((held[71:64] & (held[71:64] + 8'd1)) == '0 && (held[72] || &held[71:64]));
      end else if (input_rules.in_frame) begin
        assert (passing == dut.passing);
      end
      // and of those in the register behind it.
      assert (!behind || m_axis_tvalid);
      if (newest && age == 4'd1) assert (held == followed);
      if (behind) begin
        assert (dut.out.skid[64] && (dut.out.skid[71:64] & (dut.out.skid[71:64] + 8'd1)) == '0);
        assert (dut.out.skid[72] || &dut.out.skid[71:64]);
        if (age == 4'd1 + 4'(newest)) assert (dut.out.skid == followed);
      end
    end
  end
endmodule

`default_nettype wire
