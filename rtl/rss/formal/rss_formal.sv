// rss: every beat comes out once, in order and unchanged, with its frame's fields and result, whenever the results come.
//
// One beat and one frame, chosen by the solver, are followed from their number on the way in to their number on the way out.
// Parser and lookup are replaced by rss_stubs. By induction; no bound.
`default_nettype none

module rss_formal
  import nic_pkg::*;
(
    input wire         clk,
    input wire         rst,
    input wire [31:0]  s_axis_tdata,
    input wire [3:0]   s_axis_tkeep,
    input wire         s_axis_tvalid,
    input wire         s_axis_tlast,
    input wire [115:0] s_axis_tuser,
    input wire         m_axis_tready,
    input wire         cfg_write,
    input wire [10:0]  cfg_address,
    input wire [31:0]  cfg_data,
    input wire [7:0]   chosen,
    input wire [5:0]   chosen_frame
);
  logic         s_axis_tready, m_axis_tvalid, m_axis_tlast, rules_busy, event_rule, event_drop, event_port, event_not_ip;
  logic [31:0]  m_axis_tdata;
  logic [3:0]   m_axis_tkeep;
  logic [115:0] m_axis_tuser;

  // It begins with a reset.
  logic first = 1'b1;
  always_ff @(posedge clk) first <= 1'b0;
  always @(posedge clk) if (first) assume (rst);

  // Any number, but always the same.
  logic [7:0] chosen_before;
  logic [5:0] chosen_frame_before;
  always_ff @(posedge clk) begin
    chosen_before       <= chosen;
    chosen_frame_before <= chosen_frame;
  end
  always @(posedge clk) if (!first) assume (chosen == chosen_before && chosen_frame == chosen_frame_before);

  rss #(.DATA_W(32)) dut (
      .*, .cfg_key('0), .cfg_hash_tcp(1'b0), .cfg_hash_udp(1'b0), .cfg_default_channel('0), .cfg_rule_enable('0),
      .cfg_port_enable('0)
  );

  axis_check #(.DATA_W(32), .USER_W(116), .ASSUME(1)) input_rules (
      .clk, .rst, .tdata(s_axis_tdata), .tkeep(s_axis_tkeep), .tvalid(s_axis_tvalid), .tready(s_axis_tready),
      .tlast(s_axis_tlast), .tuser(s_axis_tuser)
  );

  // Beats and frames that went into the FIFO and that came out of it, as long as numbers go.
  logic [7:0]  beats_in = '0, beats_out = '0;
  logic [5:0]  frames_in = '0, frames_found = '0, frames_out = '0;
  logic [36:0] followed;
  rx_user_t    followed_user, merged;
  logic [39:0] followed_result;

  always_ff @(posedge clk) begin
    if (dut.accept) begin
      beats_in <= beats_in + 8'd1;
      if (beats_in == chosen) followed <= {dut.in_data, dut.in_keep, dut.in_last};
    end
    if (dut.accept_last) begin
      frames_in <= frames_in + 6'd1;
      if (frames_in == chosen_frame) followed_user <= dut.in_user;
    end
    if (dut.result_valid) begin
      frames_found <= frames_found + 6'd1;
      if (frames_found == chosen_frame) followed_result <= {cfg_data, cfg_address[9:2]};
    end
    if (dut.pop) beats_out <= beats_out + 8'd1;
    if (dut.pop_last) frames_out <= frames_out + 6'd1;
    if (rst) begin
      beats_in     <= '0;
      beats_out    <= '0;
      frames_in    <= '0;
      frames_found <= '0;
      frames_out   <= '0;
    end
  end

  wire [7:0] beat_age   = chosen - beats_out;        // place of the chosen beat in the FIFO
  wire [5:0] frame_age  = chosen_frame - frames_out;
  wire       beat_shown = m_axis_tvalid && beats_out - 8'd1 == chosen;
  wire [5:0] pending    = frames_in - frames_found;
  wire [3:0] keep       = followed[4:1];

  always_comb begin
    merged           = followed_user;
    merged.hash      = followed_result[39:8];
    merged.hash_type = followed_result[7:5];
    merged.channel   = followed_result[4:1];
    merged.drop      = followed_result[0];
  end

  // The rules of the stream, for the chosen beat, which is any.
  axis_check #(.DATA_W(32), .USER_W(116)) output_rules (
      .clk, .rst, .tdata(m_axis_tdata), .tkeep(m_axis_tkeep), .tvalid(beat_shown), .tready(m_axis_tready),
      .tlast(m_axis_tlast), .tuser(m_axis_tuser)
  );

  function automatic logic lanes(input logic [3:0] tkeep, input logic tlast);
    return tkeep[0] && (tkeep & (tkeep + 4'd1)) == '0 && (tlast || &tkeep);
  endfunction

  always @(posedge clk) begin
    if (!rst && !first) begin
      // What comes out is what went in.
      if (beat_shown) assert ({m_axis_tdata, m_axis_tkeep, m_axis_tlast} == followed);
      if (m_axis_tvalid && m_axis_tlast && frames_out - 6'd1 == chosen_frame) assert (m_axis_tuser == merged);
      // Nothing runs over: beats, frames, results.
      assert (dut.beats_held <= 6'd32 && dut.frames_held <= 5'd16 && dut.results_held <= dut.frames_held);
      // Each frame has its answer, or will have.
      assert (6'(dut.frames_held) == frames_in - frames_out && 6'(dut.results_held) == frames_found - frames_out);
      assert (pending == 6'(dut.lookup.owed) + 6'(dut.parse_valid) && pending <= 6'd16);
      // What induction needs to know.
      assert (dut.beats_held == 6'(beats_in - beats_out) && beats_in - beats_out <= 8'd32);
      assert (dut.beat_in == beats_in[4:0] && dut.beat_out == beats_out[4:0]);
      assert (dut.frame_in == frames_in[3:0] && dut.frame_found == frames_found[3:0] && dut.frame_out == frames_out[3:0]);
      assert (!(dut.input_register.skid_valid && !dut.in_valid));
      if (dut.in_valid) assert (lanes(dut.in_keep, dut.in_last));
      if (dut.input_register.skid_valid) assert (lanes(dut.input_register.skid[35:32], dut.input_register.skid[36]));
      if (beat_age < 8'(dut.beats_held)) assert (dut.beats[chosen[4:0]] == followed && lanes(keep, followed[0]));
      if (beat_shown) assert (lanes(keep, followed[0]));
      if (frame_age < 6'(dut.frames_held)) assert (dut.users[chosen_frame[3:0]] == followed_user);
      if (frame_age < 6'(dut.results_held)) assert (dut.results[chosen_frame[3:0]] == followed_result);
    end
  end
endmodule

`default_nettype wire
