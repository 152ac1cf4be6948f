//! The PHY behind its two lines: registers of IEEE 802.3 clause 22, read by the controller.

use crate::bus::Bus;
use crate::device::LinkState;
use crate::gem::regs;
use linerate_wire::units::Rate;

/// Looks after which an access has failed: the slowest takes 26 us.
const MOST_LOOKS: usize = 10_000;
/// Addresses of PHYs.
const ADDRESSES: core::ops::Range<u8> = 0..32;

/// The basic control register, and of it: no negotiation is wanted otherwise, asleep, cut off.
const CONTROL: u32 = 0;
const CONTROL_NEGOTIATES: u16 = 1 << 12;
const CONTROL_SLEEPS: u16 = 1 << 11;
const CONTROL_ISOLATED: u16 = 1 << 10;
const CONTROL_FULL_DUPLEX: u16 = 1 << 8;
const CONTROL_100: u16 = 1 << 13;
const CONTROL_1000: u16 = 1 << 6;
/// The basic status register, and of it: the link, which stays down until it was read; negotiation has ended.
const STATUS: u32 = 1;
const STATUS_UP: u16 = 1 << 2;
const STATUS_NEGOTIATED: u16 = 1 << 5;
/// Two registers that name the maker.
const IDENTIFIER: u32 = 2;
/// What is offered and what the partner can do, up to 100 Mb/s and at 1,000.
const OFFERED: u32 = 4;
const PARTNER: u32 = 5;
const OFFERED_1000: u32 = 9;
const PARTNER_1000: u32 = 10;

/// The PHY at an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Phy(pub u8);

impl Phy {
    /// The PHY with the lowest address; `None` if none answers.
    pub fn find(bus: &impl Bus) -> Option<Phy> {
        ADDRESSES.map(Phy).find(|phy| phy.is_there(bus))
    }

    /// Whether it answers: an absent one leaves the line high.
    pub fn is_there(self, bus: &impl Bus) -> bool {
        ADDRESSES.contains(&self.0)
            && self.read(bus, IDENTIFIER).is_some_and(|value| value != 0xFFFF && value != 0)
    }

    /// Wakes it, if somebody has put it to sleep or cut it off; it negotiates by itself.
    pub fn wake(self, bus: &impl Bus) {
        if let Some(control) = self.read(bus, CONTROL)
            && control & (CONTROL_SLEEPS | CONTROL_ISOLATED) != 0
        {
            self.write(bus, CONTROL, control & !(CONTROL_SLEEPS | CONTROL_ISOLATED));
        }
    }

    /// The link, and whether it was down since the last look. A PHY that does not answer has none.
    pub fn look(self, bus: &impl Bus, before: LinkState) -> (LinkState, bool) {
        let was_up = self.read(bus, STATUS).is_some_and(|status| status & STATUS_UP != 0);
        if was_up && before.is_up {
            return (before, false);
        }
        let status = self.read(bus, STATUS).filter(|status| status & STATUS_UP != 0);
        (status.and_then(|status| self.resolve(bus, status)).unwrap_or(LinkState::DOWN), true)
    }

    /// What a link that is up has been made for; `None` while both ends still negotiate.
    fn resolve(self, bus: &impl Bus, status: u16) -> Option<LinkState> {
        let control = self.read(bus, CONTROL)?;
        let link = |megabits: u64, is_full_duplex| LinkState {
            is_up: true,
            speed: Some(Rate::from_bps(megabits * 1_000_000)),
            is_full_duplex,
        };
        if control & CONTROL_NEGOTIATES == 0 {
            let megabits = match (control & CONTROL_1000 != 0, control & CONTROL_100 != 0) {
                (true, _) => 1_000,
                (false, true) => 100,
                (false, false) => 10,
            };
            return Some(link(megabits, control & CONTROL_FULL_DUPLEX != 0));
        }
        if status & STATUS_NEGOTIATED == 0 {
            return None;
        }
        // The partner's bits lie two above ours.
        let gigabit = self.read(bus, OFFERED_1000)? & self.read(bus, PARTNER_1000)? >> 2;
        let slower = self.read(bus, OFFERED)? & self.read(bus, PARTNER)?;
        let best = [
            (gigabit, 9, 1_000, true),
            (gigabit, 8, 1_000, false),
            (slower, 8, 100, true),
            (slower, 7, 100, false),
            (slower, 6, 10, true),
        ];
        let best = best.into_iter().find(|(common, bit, ..)| common >> bit & 1 != 0);
        Some(best.map_or(link(10, false), |(.., megabits, is_full_duplex)| link(megabits, is_full_duplex)))
    }

    fn read(self, bus: &impl Bus, register: u32) -> Option<u16> {
        self.access(bus, 0b10, register, 0).map(|value| value as u16)
    }

    fn write(self, bus: &impl Bus, register: u32, value: u16) {
        // One that does not answer is seen by the next reading.
        let _answered = self.access(bus, 0b01, register, value);
    }

    /// A frame of clause 22: start, operation, addresses, turnaround, data.
    fn access(self, bus: &impl Bus, operation: u32, register: u32, value: u16) -> Option<u32> {
        let frame = 0b01 << 30 | operation << 28 | u32::from(self.0) << 23 | register << 18 | 0b10 << 16;
        wait(bus)?;
        bus.write(regs::PHY_MANAGEMENT, frame | u32::from(value));
        wait(bus)?;
        Some(bus.read(regs::PHY_MANAGEMENT))
    }
}

/// Waits until the lines are idle; `None` if that does not happen.
fn wait(bus: &impl Bus) -> Option<()> {
    (0..MOST_LOOKS).find_map(|_| {
        let is_idle = bus.read(regs::NETWORK_STATUS) & regs::MANAGEMENT_IDLE != 0;
        if !is_idle {
            bus.pause();
        }
        is_idle.then_some(())
    })
}
