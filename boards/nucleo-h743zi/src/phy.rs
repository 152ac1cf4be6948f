//! The PHY (LAN8742A at address 0): asked for the link ten times a second, and not with every frame.

use crate::clock;
use core::task::Context;
use core::time::Duration;
use embassy_stm32::eth::{GenericPhy, Phy, Sma};
use embassy_stm32::peripherals::ETH_SMA;
use linerate_wire::units::Instant;

const ADDRESS: u8 = 0;
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// What every PHY has, and what it said last.
pub struct Lan8742 {
    generic: GenericPhy<Sma<'static, ETH_SMA>>,
    next_look: Instant,
    is_up: bool,
}

impl Lan8742 {
    /// Behind these two wires.
    pub fn new(management: Sma<'static, ETH_SMA>) -> Lan8742 {
        let generic = GenericPhy::new(management, ADDRESS);
        Lan8742 { generic, next_look: Instant::ZERO, is_up: false }
    }
}

impl Phy for Lan8742 {
    fn phy_reset(&mut self) {
        self.generic.phy_reset();
    }

    fn phy_init(&mut self) {
        self.generic.phy_init();
    }

    fn poll_link(&mut self, _cx: &mut Context<'_>) -> bool {
        let now = clock::now();
        if now >= self.next_look {
            self.next_look = now + BETWEEN_LOOKS;
            // It wakes whoever asks, at once: the loop asks in each of its turns anyway, once a second at least.
            self.is_up = self.generic.poll_link(&mut Context::from_waker(core::task::Waker::noop()));
        }
        self.is_up
    }
}
