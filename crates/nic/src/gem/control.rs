//! The control: what there is once, however many queues the device has.

use crate::bus::Bus;
use crate::device::{Capabilities, Device, DeviceError, Filter, LinkState, Steering};
use crate::gem::mdio::Phy;
use crate::gem::regs;
use crate::gem::screener::{self, Compare, Condition, Origin, Screener, ScreenerError, Value};
use crate::gem::settings::{Layout, MAX_QUEUES, ScreenerCounts};
use crate::meta::MacAddr;
use core::fmt;
use core::time::Duration;
use linerate_wire::units::{Instant, Rate};

/// Bits of the word that says what is switched on.
const NOTE_TRANSMIT_4: u32 = 1 << 0;
const NOTE_TRANSMIT_6: u32 = 1 << 1;
const NOTE_RECEIVE: u32 = 1 << 2;
const NOTE_GATHER: u32 = 1 << 3;

/// Registers for screeners of type 2 that there are at most.
const MOST_PORTS: usize = 16;

/// What all that is open of the device knows, from when it was opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    pub mac: MacAddr,
    pub queues: usize,
    pub phy: Phy,
    pub capabilities: Capabilities,
    pub screeners: ScreenerCounts,
    pub link_every: Duration,
    /// `network_config` without what filter, link and offloads say.
    pub frames: u32,
    /// `dma_config` without offloads.
    pub dma: u32,
    pub layout: Layout,
}

/// The MAC: address, link, filter, steering, offloads.
///
/// Somebody has to call [`Control::poll`]: [`Gem`](crate::gem::Gem) does. Dropping it stops the MAC.
pub struct Control<P: Bus> {
    bus: P,
    facts: Facts,
    enabled: Capabilities,
    /// Bits of `network_config` that the filter asks for.
    filter: u32,
    link: LinkState,
    /// The speed that the board was told last.
    speed: Option<Rate>,
    next_look: Instant,
    link_changes: u64,
}

impl<P: Bus> Control<P> {
    pub(super) fn new(bus: P, facts: Facts) -> Self {
        let mut control = Control {
            bus,
            facts,
            enabled: facts.capabilities,
            filter: 0,
            link: LinkState::DOWN,
            speed: None,
            next_look: Instant::ZERO,
            link_changes: 0,
        };
        control.configure();
        control.look();
        control.link_changes = 0;
        control
    }

    /// Asks the PHY for the link, if it is time to ([`Settings::link_every`](crate::gem::Settings::link_every)); true if that has
    /// changed. Each change makes the queues begin with empty transmit rings: what was under way is reported, and not sent again.
    pub fn poll(&mut self, now: Instant) -> bool {
        if now < self.next_look {
            return false;
        }
        self.next_look = now + self.facts.link_every;
        self.look()
    }

    /// When [`Control::poll`] looks next.
    pub fn next_look(&self) -> Instant {
        self.next_look
    }

    /// How often the link came or went.
    pub fn link_changes(&self) -> u64 {
        self.link_changes
    }

    /// The address of the PHY.
    pub fn phy(&self) -> u8 {
        self.facts.phy.0
    }

    /// How many screeners there are.
    pub fn screeners(&self) -> ScreenerCounts {
        self.facts.screeners
    }

    /// Sends the frames that meet a condition to its queue; replaces what was set before, here or by
    /// [`Device::set_steering`]. With no screener all frames come to queue 0.
    ///
    /// QEMU 7.2 knows [`Condition::UdpPort`], [`Condition::TrafficClass`] and [`Condition::EtherType`]; of a compare with
    /// two bytes it takes the first of them twice, and it has none with four.
    ///
    /// # Errors
    /// A queue that was not opened, an offset out of range, or more than the device has.
    pub fn set_screeners(&mut self, screeners: &[Screener]) -> Result<(), ScreenerError> {
        screener::set(&self.bus, self.facts.screeners, self.facts.queues, screeners)
    }

    /// Looks at the link; true if it has changed, be it down and up again.
    fn look(&mut self) -> bool {
        let (link, was_down) = self.facts.phy.look(&self.bus, self.link);
        if link == self.link && !(was_down && link.is_up) {
            return false;
        }
        self.link = link;
        self.link_changes += 1;
        self.configure();
        if let Some(speed) = link.speed.filter(|_| link.is_up && link.speed != self.speed) {
            self.bus.set_speed(speed);
            self.speed = link.speed;
        }
        // Last: queues begin anew when the MAC knows how fast it is.
        let note = self.facts.layout.link();
        let count = (self.bus.load(note) & !1).wrapping_add(2);
        self.bus.store(note, count | u32::from(link.is_up));
        true
    }

    /// Writes the configuration as it is now.
    fn configure(&self) {
        let mut config = self.facts.frames | self.filter;
        config |= if self.enabled.rx_checksum { regs::RECEIVE_CHECKSUM } else { 0 };
        let megabits = self.link.speed.map_or(1_000, |speed| speed.as_bps() / 1_000_000);
        config |= match megabits {
            1_000.. => regs::GIGABIT,
            100.. => regs::SPEED_100,
            _ => 0,
        };
        config |= if self.link.is_full_duplex { regs::FULL_DUPLEX } else { 0 };
        self.bus.write(regs::NETWORK_CONFIG, config);
        let fills_in = self.enabled.tx_checksum4 || self.enabled.tx_checksum6;
        let dma = self.facts.dma | if fills_in { regs::TRANSMIT_CHECKSUM } else { 0 };
        self.bus.write(regs::DMA_CONFIG, dma);
        store_enabled(&self.bus, self.facts.layout, self.enabled);
    }
}

impl<P: Bus> Device for Control<P> {
    fn mac(&self) -> MacAddr {
        self.facts.mac
    }

    fn mtu(&self) -> usize {
        1_500
    }

    fn capabilities(&self) -> Capabilities {
        self.facts.capabilities
    }

    /// The device fills in checksums for both versions of IP or for none. Gathering costs it nothing, and is done whether
    /// asked for or not.
    fn enable(&mut self, wanted: Capabilities) -> Result<(), DeviceError> {
        if wanted.and(self.facts.capabilities) != wanted {
            return Err(DeviceError::Unsupported);
        }
        self.enabled = wanted;
        self.configure();
        Ok(())
    }

    fn link(&self) -> LinkState {
        self.link
    }

    /// Groups go by a hash of six bits, so some pass that nobody asked for.
    fn set_filter(&mut self, filter: &Filter<'_>) -> Result<(), DeviceError> {
        let mut hashes = filter.groups.iter().fold(0u64, |set, group| set | 1 << group_hash(group.0));
        if filter.all_groups {
            hashes = u64::MAX;
        }
        self.bus.write(regs::HASH, hashes as u32);
        self.bus.write(regs::HASH + 4, (hashes >> 32) as u32);
        self.filter = if hashes != 0 { regs::MULTICAST_HASH } else { 0 };
        self.filter |= if filter.promiscuous { regs::PROMISCUOUS } else { 0 };
        self.configure();
        Ok(())
    }

    fn queues(&self) -> usize {
        self.facts.queues
    }

    /// By destination ports of TCP and UDP: a compare and a type 2 screener for each. It has no hash. For UDP alone there
    /// is [`Control::set_screeners`], which QEMU 7.2 has, too.
    fn set_steering(&mut self, steering: &Steering<'_>) -> Result<(), DeviceError> {
        let mut screeners = [Screener { condition: Condition::EtherType(0), queue: 0 }; MOST_PORTS];
        let is_plain = steering.indirection.iter().all(|queue| *queue == 0);
        let few = steering.ports.len() <= screeners.len();
        if !is_plain || !few {
            return Err(DeviceError::Unsupported);
        }
        for (screener, (port, queue)) in screeners.iter_mut().zip(steering.ports) {
            let value = Value::Two { value: port.to_be_bytes(), mask: [0xFF; 2] };
            let condition = Condition::Compare(Compare { origin: Origin::Ip, offset: 2, value });
            *screener = Screener { condition, queue: *queue };
        }
        let set = &screeners[..steering.ports.len()];
        self.set_screeners(set).map_err(|_| DeviceError::Unsupported)
    }
}

impl<P: Bus> Drop for Control<P> {
    fn drop(&mut self) {
        self.bus.write(regs::NETWORK_CONTROL, 0);
    }
}

impl<P: Bus> fmt::Debug for Control<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control")
            .field("mac", &self.facts.mac)
            .field("link", &self.link)
            .finish_non_exhaustive()
    }
}

/// The hash of a group's address: its bits, six at a time, exclusive-or (UG1085, hash addressing).
fn group_hash([a, b, c, d, e, f]: [u8; 6]) -> u32 {
    let bits = u64::from_le_bytes([a, b, c, d, e, f, 0, 0]);
    ((0..48).step_by(6).fold(0, |hash, at| hash ^ bits >> at) & 0x3F) as u32
}

/// Leaves a note of what is switched on where all queues find it, on whichever core they are.
fn store_enabled(bus: &impl Bus, layout: Layout, enabled: Capabilities) {
    let bit = |is_on, bit| if is_on { bit } else { 0 };
    let transmit = bit(enabled.tx_checksum4, NOTE_TRANSMIT_4) | bit(enabled.tx_checksum6, NOTE_TRANSMIT_6);
    let rest = bit(enabled.rx_checksum, NOTE_RECEIVE) | bit(enabled.gather, NOTE_GATHER);
    bus.store(layout.enabled(), transmit | rest);
}

/// What is switched on.
pub(super) fn load_enabled(bus: &impl Bus, layout: Layout) -> Capabilities {
    let bits = bus.load(layout.enabled());
    Capabilities {
        tx_checksum4: bits & NOTE_TRANSMIT_4 != 0,
        tx_checksum6: bits & NOTE_TRANSMIT_6 != 0,
        rx_checksum: bits & NOTE_RECEIVE != 0,
        gather: bits & NOTE_GATHER != 0,
        ..Capabilities::NONE
    }
}

/// The link's word, and how often other queues have stopped sending for this one as well.
pub(super) fn load_epoch(bus: &impl Bus, layout: Layout, queue: u16) -> (u32, u32) {
    let others = (0..MAX_QUEUES as u16).filter(|other| *other != queue);
    let stops = others.fold(0u32, |sum, other| sum.wrapping_add(bus.load(layout.stops(other))));
    (bus.load(layout.link()), stops)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_a_group_is_made_of_every_sixth_bit() {
        // One bit at a time: bit n of the address, lowest of the first byte first, is bit n modulo 6 of the hash.
        for bit in 0..48 {
            let mut group = [0; 6];
            group[bit / 8] = 1 << (bit % 8);
            assert_eq!(group_hash(group), 1 << (bit % 6), "bit {bit}");
        }
        assert_eq!(group_hash([0xFF; 6]), 0);
    }
}
