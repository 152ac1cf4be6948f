// Cells of the ECP5 that the top uses, as declarations: what they do is the chip's, and yosys and nextpnr know it. (Lattice, FPGA-TN-02200 and
// FPGA-TN-02035.)
`default_nettype none

/* verilator lint_off DECLFILENAME */
/* verilator lint_off UNDRIVEN */
/* verilator lint_off UNUSEDSIGNAL */
/* verilator lint_off UNUSEDPARAM */

// A loop that makes clocks of a clock.
(* blackbox *)
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
endmodule

// Two bits in each clock, out and in.
(* blackbox *)
module ODDRX1F (
    input  wire  SCLK, RST, D0, D1,
    output logic Q
);
endmodule

(* blackbox *)
module IDDRX1F (
    input  wire  SCLK, RST, D,
    output logic Q0, Q1
);
endmodule

// A delay of so many steps of 25 ps.
(* blackbox *)
module DELAYG #(
    parameter DEL_MODE = "USER_DEFINED",
    parameter int DEL_VALUE = 0
) (
    input  wire  A,
    output logic Z
);
endmodule

// A pin both ways: T keeps it from being driven.
(* blackbox *)
module BB (
    input  wire  I, T,
    output logic O,
    inout  wire  B
);
endmodule

// The clock of the flash that the chip was configured from.
(* blackbox *)
(* keep *)
module USRMCLK (
    input wire USRMCLKI, USRMCLKTS
);
endmodule

/* verilator lint_on DECLFILENAME */
/* verilator lint_on UNDRIVEN */
/* verilator lint_on UNUSEDSIGNAL */
/* verilator lint_on UNUSEDPARAM */

`default_nettype wire
