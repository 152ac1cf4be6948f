//! The control: what there is once, however many queues the device has.

use crate::bus::Bus;
use crate::registers::mac;
use linerate_nic::{Capabilities, Device, DeviceError, Feature, Filter, LinkState, MacAddr, Steering};
use linerate_wire::units::Rate;

/// What the hardware does.
pub const CAPABILITIES: Capabilities = Capabilities {
    tx_checksum4: true,
    tx_checksum6: true,
    rx_checksum: true,
    gather: true,
    ..Capabilities::NONE
};

/// The MAC: address, link, filter, steering; and what is switched on.
#[derive(Debug)]
pub struct Control<P> {
    bus: P,
    mac: MacAddr,
    mtu: usize,
    queues: usize,
    notes: u64,
    link: LinkState,
}

impl<P: Bus> Control<P> {
    /// Sets up the MAC, which passes frames from here on. `notes` is the address of a word of descriptor memory.
    pub(crate) fn new(bus: P, mac: MacAddr, mtu: usize, queues: usize, notes: u64) -> Self {
        let [a, b, c, d, e, f] = mac.0;
        bus.write(mac::ADDRESS_LOW, u32::from_le_bytes([a, b, c, d]));
        bus.write(mac::ADDRESS_HIGH, u32::from_le_bytes([e, f, 0, 0]));
        for entry in 0..mac::PORTS as u32 {
            bus.write(mac::PORT_MAP + 4 * entry, 0);
        }
        bus.write(mac::HASH_LOW, 0);
        bus.write(mac::HASH_HIGH, 0);
        bus.write(mac::MODE, mac::ENABLE);
        bus.write(mac::LINK_INTERRUPT, mac::CHANGED | mac::CHANGED_ENABLE);
        store_notes(&bus, notes, Capabilities::NONE);
        let mut control = Control { bus, mac, mtu, queues, notes, link: LinkState::DOWN };
        control.read_link();
        control
    }

    /// For the MAC's interrupt: acknowledges it and reads the state of the link; true if that has changed. Where the MAC has
    /// no interrupt, call it now and then.
    pub fn handle_interrupt(&mut self) -> bool {
        // Acknowledged first: a change after the reading interrupts again.
        self.bus.write(mac::LINK_INTERRUPT, mac::CHANGED | mac::CHANGED_ENABLE);
        let before = self.link;
        self.read_link();
        self.link != before
    }

    /// Receives what is sent, and sends nothing, while `on`.
    pub fn set_loopback(&mut self, on: bool) {
        self.set_mode(mac::LOOPBACK, on);
    }

    fn read_link(&mut self) {
        let link = self.bus.read(mac::LINK);
        let megabits = u64::from(link >> mac::SPEED_SHIFT);
        self.link = LinkState {
            is_up: link & mac::UP != 0,
            speed: (megabits > 0).then(|| Rate::from_bps(megabits * 1_000_000)),
            is_full_duplex: link & mac::FULL_DUPLEX != 0,
        };
    }

    fn set_mode(&mut self, bits: u32, on: bool) {
        let rest = self.bus.read(mac::MODE) & !bits;
        self.bus.write(mac::MODE, if on { rest | bits } else { rest });
    }
}

impl<P: Bus> Device for Control<P> {
    fn mac(&self) -> MacAddr {
        self.mac
    }

    fn mtu(&self) -> usize {
        self.mtu
    }

    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn enable(&mut self, wanted: Capabilities) -> Result<(), DeviceError> {
        if wanted.and(CAPABILITIES) != wanted {
            return Err(DeviceError::Unsupported);
        }
        self.set_mode(mac::VERIFY, wanted.rx_checksum);
        store_notes(&self.bus, self.notes, wanted);
        Ok(())
    }

    fn link(&self) -> LinkState {
        self.link
    }

    /// Groups go by their hash, so some pass that nobody asked for.
    fn set_filter(&mut self, filter: &Filter<'_>) -> Result<(), DeviceError> {
        let hashes = filter.groups.iter().fold(0u64, |set, group| set | 1 << mac::group_hash(group.0));
        self.bus.write(mac::HASH_LOW, hashes as u32);
        self.bus.write(mac::HASH_HIGH, (hashes >> 32) as u32);
        self.set_mode(mac::ALL_GROUPS, filter.all_groups);
        self.set_mode(mac::PROMISCUOUS, filter.promiscuous);
        Ok(())
    }

    fn queues(&self) -> usize {
        self.queues
    }

    /// By destination ports alone: the hardware has no hash. What no port says goes to the first queue.
    fn set_steering(&mut self, steering: &Steering<'_>) -> Result<(), DeviceError> {
        let hashes = steering.indirection.iter().any(|queue| *queue != 0);
        let beyond = steering.ports.iter().any(|(_, queue)| usize::from(*queue) >= self.queues);
        if hashes || beyond || steering.ports.len() > mac::PORTS {
            return Err(DeviceError::Unsupported);
        }
        let entries =
            steering.ports.iter().map(|(port, queue)| mac::port_entry(*port, u32::from(*queue) + 1));
        for (at, entry) in (0..mac::PORTS as u32).zip(entries.chain(core::iter::repeat(0))) {
            self.bus.write(mac::PORT_MAP + 4 * at, entry);
        }
        Ok(())
    }
}

/// Leaves a note of what is switched on where all queues find it: a word of descriptor memory, as they may be on other cores,
/// which may lack the instructions for anything finer.
fn store_notes(bus: &impl Bus, notes: u64, enabled: Capabilities) {
    let bits =
        (0..).zip(Feature::ALL).fold(0, |bits, (at, feature)| bits | u32::from(enabled.has(feature)) << at);
    bus.store(notes, bits);
}

/// What is switched on.
pub(crate) fn load_notes(bus: &impl Bus, notes: u64) -> Capabilities {
    let bits = bus.load(notes);
    (0..)
        .zip(Feature::ALL)
        .fold(Capabilities::NONE, |enabled, (at, feature)| enabled.with(feature, bits >> at & 1 != 0))
}
