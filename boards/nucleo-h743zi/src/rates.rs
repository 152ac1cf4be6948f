//! The clocks: 400 MHz for the core, 200 MHz for buses and timers, from the oscillator in the chip.

use embassy_stm32::Config;
use embassy_stm32::rcc::{
    AHBPrescaler, APBPrescaler, HSIPrescaler, Pll, PllDiv, PllMul, PllPreDiv, PllSource, Sysclk, VoltageScale,
};

/// Of the timers, and of the bus that the timer of [`clock`](crate::clock) is on.
pub const TIMER_HZ: u32 = 200_000_000;

/// What `embassy_stm32::init` sets. The Ethernet's own clock, of 50 MHz, comes from its PHY.
pub fn config() -> Config {
    let mut config = Config::default();
    let rcc = &mut config.rcc;
    rcc.hsi = Some(HSIPrescaler::DIV1);
    // Random numbers.
    rcc.hsi48 = Some(Default::default());
    // 64 MHz / 4 * 50 / 2.
    rcc.pll1 = Some(Pll {
        source: PllSource::HSI,
        prediv: PllPreDiv::DIV4,
        mul: PllMul::MUL50,
        fracn: None,
        divp: Some(PllDiv::DIV2),
        divq: None,
        divr: None,
    });
    rcc.sys = Sysclk::PLL1_P;
    rcc.ahb_pre = AHBPrescaler::DIV2;
    rcc.apb1_pre = APBPrescaler::DIV2;
    rcc.apb2_pre = APBPrescaler::DIV2;
    rcc.apb3_pre = APBPrescaler::DIV2;
    rcc.apb4_pre = APBPrescaler::DIV2;
    rcc.voltage_scale = VoltageScale::Scale1;
    config
}
