//! The control: what there is once, however many queues the device has.

use crate::bus::Bus;
use crate::device::{Capabilities, Device, DeviceError, Filter, LinkState, Steering};
use crate::feature::Feature;
use crate::mcdma::filter::{ENTRIES, group_hash, port_entry};
use crate::mcdma::nic_regs::{pacing, register as mac};
use crate::mcdma::settings::{MAX_QUEUES, Settings};
use crate::meta::MacAddr;
use linerate_wire::units::Rate;

/// What hardware with these features does.
pub(crate) fn capabilities(features: u32) -> Capabilities {
    let has = |bit| features & bit != 0;
    Capabilities {
        tx_checksum4: has(mac::FEATURES_TX_CHECKSUM),
        tx_checksum6: has(mac::FEATURES_TX_CHECKSUM),
        rx_checksum: has(mac::FEATURES_RX_CHECKSUM),
        tso4: has(mac::FEATURES_TSO) && has(mac::FEATURES_TX_CHECKSUM),
        tso6: has(mac::FEATURES_TSO) && has(mac::FEATURES_TX_CHECKSUM),
        rx_coalescing: has(mac::FEATURES_LRO),
        gather: true,
    }
}

/// The MAC: address, link, filter, steering; and what is switched on.
#[derive(Debug)]
pub struct Control<P> {
    bus: P,
    mac: MacAddr,
    mtu: usize,
    queues: usize,
    features: u32,
    notes: u64,
    link: LinkState,
}

impl<P: Bus> Control<P> {
    /// Sets up the MAC, which passes frames from here on. `notes` is the address of a word of descriptor memory.
    pub(crate) fn new(bus: P, settings: &Settings, features: u32, notes: u64) -> Self {
        let Settings { mac, mtu, queues, .. } = *settings;
        let [a, b, c, d, e, f] = mac.0;
        bus.write(mac::ADDRESS_LOW, u32::from_le_bytes([a, b, c, d]));
        bus.write(mac::ADDRESS_HIGH, u32::from_le_bytes([e, f, 0, 0]));
        forget(&bus);
        bus.write(mac::HASH_LOW, 0);
        bus.write(mac::HASH_HIGH, 0);
        bus.write(mac::MODE, mac::MODE_ENABLE);
        bus.write(mac::LINK_INTERRUPT, mac::LINK_INTERRUPT_CHANGED | mac::LINK_INTERRUPT_CHANGED_ENABLE);
        store_notes(&bus, notes, Capabilities::NONE);
        let mut control = Control { bus, mac, mtu, queues, features, notes, link: LinkState::DOWN };
        control.read_link();
        control
    }

    /// For the MAC's interrupt: acknowledges it and reads the state of the link; true if that has changed. Where the MAC has
    /// no interrupt, call it now and then.
    pub fn handle_interrupt(&mut self) -> bool {
        // Acknowledged first: a change after the reading interrupts again.
        self.bus.write(mac::LINK_INTERRUPT, mac::LINK_INTERRUPT_CHANGED | mac::LINK_INTERRUPT_CHANGED_ENABLE);
        let before = self.link;
        self.read_link();
        self.link != before
    }

    /// Receives what is sent, and sends nothing, while `on`.
    pub fn set_loopback(&mut self, on: bool) {
        self.set_mode(mac::MODE_LOOPBACK, on);
    }

    fn read_link(&mut self) {
        let link = self.bus.read(mac::LINK);
        let megabits = u64::from(link >> mac::LINK_SPEED_SHIFT);
        self.link = LinkState {
            is_up: link & mac::LINK_UP != 0,
            speed: (megabits > 0).then(|| Rate::from_bps(megabits * 1_000_000)),
            is_full_duplex: link & mac::LINK_FULL_DUPLEX != 0,
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
        capabilities(self.features)
    }

    fn enable(&mut self, wanted: Capabilities) -> Result<(), DeviceError> {
        // Only segments whose checksums the hardware has found good are joined.
        let is_orphan = wanted.rx_coalescing && !wanted.rx_checksum;
        if is_orphan || wanted.and(self.capabilities()) != wanted {
            return Err(DeviceError::Unsupported);
        }
        self.set_mode(mac::MODE_VERIFY, wanted.rx_checksum);
        self.set_mode(mac::MODE_JOIN, wanted.rx_coalescing);
        store_notes(&self.bus, self.notes, wanted);
        Ok(())
    }

    fn link(&self) -> LinkState {
        self.link
    }

    /// Groups go by their hash, so some pass that nobody asked for.
    fn set_filter(&mut self, filter: &Filter<'_>) -> Result<(), DeviceError> {
        let hashes = filter.groups.iter().fold(0u64, |set, group| set | 1 << group_hash(group.0));
        self.bus.write(mac::HASH_LOW, hashes as u32);
        self.bus.write(mac::HASH_HIGH, (hashes >> 32) as u32);
        self.set_mode(mac::MODE_ALL_GROUPS, filter.all_groups);
        self.set_mode(mac::MODE_PROMISCUOUS, filter.promiscuous);
        Ok(())
    }

    fn queues(&self) -> usize {
        self.queues
    }

    /// By destination ports first, then by the hash where the hardware has one. What neither says goes to the first queue.
    fn set_steering(&mut self, steering: &Steering<'_>) -> Result<(), DeviceError> {
        let entries = steering.indirection;
        let is_plain = entries.iter().all(|queue| *queue == 0);
        let is_table = entries.len().is_power_of_two() && entries.len() <= ENTRIES;
        let beyond = |queue: u16| usize::from(queue) >= self.queues;
        if !is_plain && (self.features & mac::FEATURES_RSS == 0 || !is_table)
            || entries.iter().any(|queue| beyond(*queue))
            || steering.ports.iter().any(|(_, queue)| beyond(*queue))
            || steering.ports.len() > mac::PORT_MAP_COUNT
        {
            return Err(DeviceError::Unsupported);
        }
        for (at, word) in (0u32..).step_by(4).zip(steering.key.chunks_exact(4)) {
            self.bus.write(mac::KEY + at, u32::from_be_bytes([word[0], word[1], word[2], word[3]]));
        }
        // A shorter table is repeated: the hash's low bits choose.
        for (word, first) in (0u32..).zip((0..ENTRIES).step_by(8)) {
            let entry = |at: usize| {
                let queue = entries.get((first + at) % entries.len().max(1)).copied().unwrap_or(0);
                u32::from(queue) << (4 * at)
            };
            self.bus.write(mac::INDIRECTION + 4 * word, (0..8).fold(0, |bits, at| bits | entry(at)));
        }
        let ports = steering.ports.iter().map(|(port, queue)| port_entry(*port, *queue));
        for (at, entry) in (0..mac::PORT_MAP_COUNT as u32).zip(ports.chain(core::iter::repeat(0))) {
            self.bus.write(mac::PORT_MAP + 4 * at, entry);
        }
        Ok(())
    }
}

/// Undoes what somebody who had the device before may have set: frames would go to queues that do not run, and a pacer would
/// interrupt beside the engine.
fn forget(bus: &impl Bus) {
    for entry in 0..mac::PORT_MAP_COUNT as u32 {
        bus.write(mac::PORT_MAP + 4 * entry, 0);
    }
    for word in 0..mac::INDIRECTION_COUNT as u32 {
        bus.write(mac::INDIRECTION + 4 * word, 0);
    }
    bus.write(mac::RULE_ENABLE, 0);
    // The default queue is the first.
    bus.write(mac::RSS_CONTROL, mac::RSS_CONTROL_TCP | mac::RSS_CONTROL_UDP);
    for queue in 0..MAX_QUEUES as u32 {
        bus.write(mac::PACING_BASE + mac::PACING_STRIDE * queue + pacing::CR, 0);
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
