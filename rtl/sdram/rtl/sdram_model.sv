// What an SDR SDRAM chip does, for simulation, at its pins; and what it must not be asked for: `faults` counts commands that break a rule of its data
// sheet, and says which.
//
// Rules: the order of the start; a bank that is open or closed; tRCD, tRP, tRAS, tRC, tRRD, tRFC, tWR, tMRD; bursts that are cut short; both sides
// driving the data; refreshes that come too late. `load_*` writes from outside, while `rst` is set.
`default_nettype none

module sdram_model #(
    parameter int SIZE_W  = 25,
    parameter int COL_W   = 9,
    parameter int CLK_NS  = 20,
    parameter int WAKE_NS = 200_000,
    localparam int ROW_W  = SIZE_W - 3 - COL_W
) (
    input  wire         load_valid,
    input  wire  [31:0] load_address,
    input  wire  [63:0] load_data,

    input  wire         sd_clk,
    input  wire         rst,
    input  wire         sd_ras_n,
    input  wire         sd_cas_n,
    input  wire         sd_we_n,
    input  wire  [1:0]  sd_ba,
    input  wire  [12:0] sd_a,
    input  wire  [1:0]  sd_dqm,
    input  wire  [15:0] sd_dq_in,
    input  wire         sd_dq_driven,
    output logic [15:0] sd_dq_out,
    output logic [31:0] faults
);
  localparam int RCD = 20, RP = 20, RAS = 45, RC = 65, RRD = 15, RFC = 66, WR = 15, MRD_CLOCKS = 2, CAS = 2, WORDS = 4;
  // Eight refreshes may be put off.
  localparam int REFRESH_NS = 8 * 7_813;
  localparam logic [12:0] MODE_WORD = 13'b000_0_00_010_0_010;

  logic [63:0] beats [2**(SIZE_W-3)];

  // Clocks since the start, and when what happened last; the counts begin long after everything.
  localparam longint LONG_AGO = -1_000_000;
  longint now, refreshed, mode_set;
  longint opened [4], closed [4], written [4];
  logic [3:0]       is_open;
  logic [ROW_W-1:0] rows [4];
  logic             has_mode;
  int               refreshes;

  // The burst that is under way.
  logic             is_writing;
  logic [1:0]       burst_ba, burst_at;
  logic [2:0]       burst_rest;
  logic [COL_W-3:0] burst_column;
  // Words on their way out, and whether they are masked.
  logic [15:0] out_words [CAS];
  logic        out_valid [CAS];
  logic        drives;

  function automatic longint since_ns(longint then);
    return (now - then) * longint'(CLK_NS);
  endfunction

  task automatic must(logic holds, string rule);
    if (!holds) begin
      faults <= faults + 32'd1;
      $display("sdram_model: %s, clock %0d, bank %0d", rule, now, sd_ba);
    end
  endtask

  function automatic logic [SIZE_W-4:0] place(logic [1:0] ba, logic [COL_W-3:0] column);
    return {rows[ba], ba, column};
  endfunction

  task automatic move(logic writes, logic [1:0] ba, logic [COL_W-3:0] column, logic [1:0] at);
    logic [5:0] from;
    from = {at, 4'd0};
    if (writes) begin
      must(sd_dq_driven, "a write without data");
      if (!sd_dqm[0]) beats[place(ba, column)][from+:8] <= sd_dq_in[7:0];
      if (!sd_dqm[1]) beats[place(ba, column)][from+8+:8] <= sd_dq_in[15:8];
      written[ba] <= now;
    end else begin
      out_words[0] <= beats[place(ba, column)][from+:16];
      out_valid[0] <= 1'b1;
    end
  endtask

  task automatic active;
    must(has_mode, "a row before the mode");
    must(!is_open[sd_ba], "a row in a bank that is open");
    must(since_ns(closed[sd_ba]) >= longint'(RP), "tRP");
    must(since_ns(opened[sd_ba]) >= longint'(RC), "tRC");
    must(since_ns(refreshed) >= longint'(RFC), "tRFC");
    must(now - mode_set >= longint'(MRD_CLOCKS), "tMRD");
    for (int ba = 0; ba < 4; ba++) must(since_ns(opened[ba]) >= longint'(RRD), "tRRD");
    is_open[sd_ba] <= 1'b1;
    opened[sd_ba]  <= now;
    rows[sd_ba]    <= sd_a[ROW_W-1:0];
  endtask

  task automatic column_command(logic writes);
    must(is_open[sd_ba], "a column of a bank that is closed");
    must(since_ns(opened[sd_ba]) >= longint'(RCD), "tRCD");
    must(burst_rest == '0, "a burst that is cut short");
    must(!sd_a[10], "a burst that closes its row");
    must(sd_a[1:0] == 2'b00, "a burst that wraps");
    must(writes || !sd_dq_driven, "a read while the data are driven");
    burst_ba     <= sd_ba;
    burst_column <= sd_a[COL_W-1:2];
    burst_at     <= 2'd1;
    burst_rest   <= 3'(WORDS - 1);
    is_writing   <= writes;
    move(writes, sd_ba, sd_a[COL_W-1:2], 2'd0);
  endtask

  task automatic precharge;
    for (int ba = 0; ba < 4; ba++) begin
      if ((sd_a[10] || sd_ba == 2'(ba)) && is_open[ba]) begin
        must(since_ns(opened[ba]) >= longint'(RAS), "tRAS");
        must(since_ns(written[ba]) >= longint'(WR), "tWR");
        must(burst_rest == '0 || burst_ba != 2'(ba), "a row that is closed in a burst");
        is_open[ba] <= 1'b0;
        closed[ba]  <= now;
      end
    end
  endtask

  task automatic refresh;
    must(is_open == '0, "a refresh of an open bank");
    for (int ba = 0; ba < 4; ba++) must(since_ns(closed[ba]) >= longint'(RP), "tRP before a refresh");
    must(since_ns(refreshed) >= longint'(RFC), "tRFC between refreshes");
    refreshed <= now;
    refreshes <= refreshes + 1;
  endtask

  task automatic mode;
    must(is_open == '0 && refreshes >= 2, "the mode before two refreshes");
    must(since_ns(refreshed) >= longint'(RFC), "tRFC before the mode");
    must(sd_a == MODE_WORD && sd_ba == '0, "another mode");
    has_mode <= 1'b1;
    mode_set <= now;
  endtask

  assign sd_dq_out = drives ? out_words[CAS-1] : 16'hdead;
  assign drives    = out_valid[CAS-1];

  always_ff @(posedge sd_clk) begin
    now <= now + 1;
    for (int at = 1; at < CAS; at++) begin
      out_words[at] <= out_words[at-1];
      out_valid[at] <= out_valid[at-1];
    end
    out_valid[0] <= 1'b0;
    if (burst_rest != '0) begin
      move(is_writing, burst_ba, burst_column, burst_at);
      burst_at   <= burst_at + 2'd1;
      burst_rest <= burst_rest - 3'd1;
    end
    must(!(drives && sd_dq_driven), "both drive the data");
    must(!has_mode || since_ns(refreshed) <= longint'(REFRESH_NS), "a refresh that is late");
    must({sd_ras_n, sd_cas_n, sd_we_n} == 3'b111 || now * longint'(CLK_NS) >= longint'(WAKE_NS), "a command too soon");
    unique case ({sd_ras_n, sd_cas_n, sd_we_n})
      3'b000:  mode();
      3'b001:  refresh();
      3'b010:  precharge();
      3'b011:  active();
      3'b100:  column_command(1'b1);
      3'b101:  column_command(1'b0);
      3'b111:  ;
      default: must(1'b0, "no command of ours");
    endcase
    if (rst) begin
      now        <= '0;
      faults     <= '0;
      is_open    <= '0;
      has_mode   <= 1'b0;
      refreshes  <= 0;
      burst_rest <= '0;
      refreshed  <= LONG_AGO;
      mode_set   <= LONG_AGO;
      for (int at = 0; at < CAS; at++) out_valid[at] <= 1'b0;
      if (load_valid) beats[load_address[SIZE_W-1:3]] <= load_data;
      for (int ba = 0; ba < 4; ba++) begin
        opened[ba]  <= LONG_AGO;
        closed[ba]  <= LONG_AGO;
        written[ba] <= LONG_AGO;
      end
    end
  end

  wire unused = &{1'b0, load_address[31:SIZE_W], load_address[2:0]};
endmodule

`default_nettype wire
