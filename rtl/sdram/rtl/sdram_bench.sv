// The controller with a chip, as they are tested.
`default_nettype none

module sdram_bench #(
    parameter int MASTERS = 3,
    parameter int SIZE_W  = 22,
    parameter int COL_W   = 8,
    parameter int CLK_NS  = 20,
    parameter int WAKE_NS = 2_000,
    localparam int BEAT_W = SIZE_W - 3
) (
    input  wire                            clk,
    input  wire                            rst,
    input  wire                            load_valid,
    input  wire  [31:0]                    load_address,
    input  wire  [63:0]                    load_data,
    input  wire  [MASTERS-1:0]             ask,
    input  wire  [MASTERS-1:0]             is_write,
    input  wire  [MASTERS-1:0][BEAT_W-1:0] beat,
    input  wire  [MASTERS-1:0][63:0]       data,
    input  wire  [MASTERS-1:0][7:0]        strobes,
    output logic [MASTERS-1:0]             grant,
    output logic [MASTERS-1:0]             come,
    output logic [63:0]                    come_data,
    output logic [31:0]                    faults
);
  logic        ras_n, cas_n, we_n, drive;
  logic [1:0]  ba, dqm;
  logic [12:0] a;
  logic [15:0] to_chip, from_chip;

  sdram #(.MASTERS(MASTERS), .SIZE_W(SIZE_W), .COL_W(COL_W), .CLK_NS(CLK_NS), .WAKE_NS(WAKE_NS)) controller (
      .clk, .rst, .ask, .is_write, .beat, .data, .strobes, .grant, .come, .come_data,
      .sd_ras_n(ras_n), .sd_cas_n(cas_n), .sd_we_n(we_n), .sd_ba(ba), .sd_a(a), .sd_dqm(dqm),
      .sd_dq_out(to_chip), .sd_dq_drive(drive), .sd_dq_in(from_chip)
  );

  sdram_model #(.SIZE_W(SIZE_W), .COL_W(COL_W), .CLK_NS(CLK_NS), .WAKE_NS(WAKE_NS)) chip (
      .load_valid, .load_address, .load_data,
      .sd_clk(!clk), .rst, .sd_ras_n(ras_n), .sd_cas_n(cas_n), .sd_we_n(we_n), .sd_ba(ba), .sd_a(a), .sd_dqm(dqm),
      .sd_dq_in(to_chip), .sd_dq_driven(drive), .sd_dq_out(from_chip), .faults
  );
endmodule

`default_nettype wire
