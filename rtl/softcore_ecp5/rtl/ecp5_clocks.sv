// Clocks of a crystal of 25 MHz: 125 MHz for the cable, and 500 MHz by SYS_DIV for all else.
`default_nettype none

module ecp5_clocks #(
    parameter int SYS_DIV = 14
) (
    input  wire  clk_25mhz,
    output logic clk_125,
    output logic clk,
    output logic is_stable
);
  if (SYS_DIV < 4 || SYS_DIV > 50) begin : gen_bad_clock
    $error("ecp5_clocks: SYS_DIV must be 4 to 50");
  end

  // 25 MHz * 5 = 125 MHz, which is an oscillator of 500 MHz by 4.
  EHXPLLL #(
      .CLKI_DIV(1), .CLKFB_DIV(5), .FEEDBK_PATH("CLKOP"),
      .CLKOP_ENABLE("ENABLED"), .CLKOP_DIV(4), .CLKOP_CPHASE(3), .CLKOP_FPHASE(0),
      .CLKOS_ENABLE("ENABLED"), .CLKOS_DIV(SYS_DIV), .CLKOS_CPHASE(SYS_DIV - 1), .CLKOS_FPHASE(0),
      .OUTDIVIDER_MUXA("DIVA"), .OUTDIVIDER_MUXB("DIVB")
  ) pll (
      .CLKI(clk_25mhz), .CLKFB(clk_125), .PHASESEL1(1'b0), .PHASESEL0(1'b0), .PHASEDIR(1'b0), .PHASESTEP(1'b0),
      .PHASELOADREG(1'b0), .STDBY(1'b0), .PLLWAKESYNC(1'b0), .RST(1'b0), .ENCLKOP(1'b0), .ENCLKOS(1'b0),
      .CLKOP(clk_125), .CLKOS(clk), .LOCK(is_stable)
  );
endmodule

`default_nettype wire
