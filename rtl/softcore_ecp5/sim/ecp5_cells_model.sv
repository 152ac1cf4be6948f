// What the ECP5's cells that the top uses do, for simulation of the whole: in place of rtl/ecp5_cells.sv, whose modules are empty.
//
// Times are those that the cells are set to; lines and registers have none.
`timescale 1ns / 1ps
`default_nettype none

/* verilator lint_off DECLFILENAME */
/* verilator lint_off UNUSEDSIGNAL */
/* verilator lint_off UNUSEDPARAM */

// An oscillator of 500 MHz by two numbers, in phase; stable after a microsecond.
module EHXPLLL #(
    parameter int CLKI_DIV = 1,
    parameter int CLKFB_DIV = 1,
    parameter CLKOP_ENABLE = "ENABLED",
    parameter int CLKOP_DIV = 8,
    parameter int CLKOP_CPHASE = 0,
    parameter int CLKOP_FPHASE = 0,
    parameter CLKOS_ENABLE = "DISABLED",
    parameter int CLKOS_DIV = 8,
    parameter int CLKOS_CPHASE = 0,
    parameter int CLKOS_FPHASE = 0,
    parameter FEEDBK_PATH = "CLKOP",
    parameter OUTDIVIDER_MUXA = "DIVA",
    parameter OUTDIVIDER_MUXB = "DIVB"
) (
    input  wire  CLKI, CLKFB, PHASESEL1, PHASESEL0, PHASEDIR, PHASESTEP, PHASELOADREG, STDBY, PLLWAKESYNC, RST, ENCLKOP, ENCLKOS,
    output logic CLKOP, CLKOS, LOCK
);
  localparam int CRYSTAL_MHZ = 25, OSCILLATOR_MHZ = CRYSTAL_MHZ / CLKI_DIV * CLKFB_DIV * CLKOP_DIV;
  if (OSCILLATOR_MHZ != 500 || FEEDBK_PATH != "CLKOP") begin : gen_other
    $error("EHXPLLL: the model knows 500 MHz, fed back by CLKOP");
  end

  initial begin
    CLKOP = 1'b0;
    forever #(1ns * CLKOP_DIV) CLKOP = !CLKOP;
  end
  initial begin
    CLKOS = 1'b0;
    forever #(1ns * CLKOS_DIV) CLKOS = !CLKOS;
  end
  initial begin
    // What is set asynchronously while this is low is so from power-up on, but a simulator wants an edge.
    LOCK = 1'b1;
    #(1ps) LOCK = 1'b0;
    #(1us) LOCK = 1'b1;
  end
endmodule

module ODDRX1F (
    input  wire  SCLK, RST, D0, D1,
    output logic Q
);
  logic first, second;
  always_ff @(posedge SCLK) {first, second} <= {D0, D1};
  assign Q = SCLK ? first : second;
endmodule

module IDDRX1F (
    input  wire  SCLK, RST, D,
    output logic Q0, Q1
);
  logic at_rise, at_fall;
  always_ff @(negedge SCLK) at_fall <= D;
  always_ff @(posedge SCLK) begin
    at_rise <= D;
    Q0      <= at_rise;
    Q1      <= at_fall;
  end
endmodule

module DELAYG #(
    parameter DEL_MODE = "USER_DEFINED",
    parameter int DEL_VALUE = 0
) (
    input  wire  A,
    output logic Z
);
  always @(A) Z <= #(25ps * DEL_VALUE) A;
endmodule

module BB (
    input  wire  I, T,
    output wire  O,
    inout  wire  B
);
  assign B = T ? 1'bz : I;
  assign O = B;
endmodule

// The bench looks at what goes in.
module USRMCLK (
    input wire USRMCLKI, USRMCLKTS
);
endmodule

/* verilator lint_on DECLFILENAME */
/* verilator lint_on UNUSEDSIGNAL */
/* verilator lint_on UNUSEDPARAM */

`default_nettype wire
