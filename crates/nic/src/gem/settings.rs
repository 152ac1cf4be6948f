//! What a device is opened with.

use crate::device::Capabilities;
use crate::gem::descriptor::Table;
use crate::meta::MacAddr;
use crate::tx::MAX_CHUNKS;
use core::ops::RangeInclusive;
use core::time::Duration;

/// Most queues that the driver opens.
pub const MAX_QUEUES: usize = 2;
/// Descriptors of a ring: room for a packet of the most pieces.
pub(super) const RING: RangeInclusive<u16> = 32..=4_096;
const _: () = assert!(MAX_CHUNKS + 2 <= 32, "the shortest ring holds a packet");
/// Bytes that a receive buffer must have: what the MAC takes for a frame.
pub const RECEIVE_BUFFER: usize = 1_536;
/// Where descriptor memory begins, and each part of it.
pub(super) const ALIGN: u64 = 64;

/// What a device is opened with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The device's address; `None` for the one that whoever started the board left in its registers (an emulator does).
    pub mac: Option<MacAddr>,
    /// Queues: 1 or 2. The second is the one of priority: packets of it leave first, and frames come to it that a
    /// [`Screener`](crate::gem::Screener) sends there.
    pub queues: usize,
    /// Descriptors, and so buffers, of each receive ring, from 32 to 4,096. One always stays with the driver.
    pub receive_ring: u16,
    /// Descriptors of each transmit ring, from 32 to 4,096. A packet takes two at least: headers and payload.
    pub transmit_ring: u16,
    /// The PHY's address, from 0 to 31; `None` to take the first that answers.
    pub phy: Option<u8>,
    /// What of its offloads the device is asked for. It has checksums only. QEMU 7.2 fills them in over IPv4 and not over
    /// IPv6, so leave
    /// `tx_checksum6` out there; and it verifies none, says so of each frame, and software does.
    /// The chip has one switch for both: by the manual, with one of the two it also fills in checksums that software has filled in
    /// before, and whether those packets leave right was seen on no chip.
    pub offloads: Capabilities,
    /// The clock of the controller's registers in hertz, from which that of the PHY is divided down to 2.5 MHz or less.
    pub register_clock_hz: u32,
    /// How often the PHY is asked for the link. It takes two accesses of 26 us each.
    pub link_every: Duration,
    /// How often a queue is to be looked at though nothing interrupts, in case an interrupt was lost or the device stands
    /// still; `None` where somebody else sees to it.
    pub look_every: Option<Duration>,
    /// How often the second queue is to be looked at where its interrupt reaches no processor (QEMU 7.2 sets its status and
    /// leaves the line unconnected); `None` where it interrupts. [`QueuePair::poll_timeout`](crate::QueuePair::poll_timeout) says
    /// when.
    pub priority_poll: Option<Duration>,
    /// How many screeners there are; `None` to ask the device (`designcfg_debug8`; QEMU 7.2 says none and has some).
    pub screeners: Option<ScreenerCounts>,
}

/// How many screeners of each kind a device has, and registers for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ScreenerCounts {
    /// Of type 1: UDP port and traffic class; at most 16.
    pub type_1: u8,
    /// Of type 2: EtherType and compares; at most 16.
    pub type_2: u8,
    /// Registers for EtherTypes; at most 8.
    pub ethertypes: u8,
    /// Registers for compares; at most 32.
    pub compares: u8,
}

impl ScreenerCounts {
    /// What the controller of the Zynq UltraScale+ has (UG1087: `designcfg_debug8`, `screening_type_*`), and QEMU's as well.
    pub const ZYNQMP: ScreenerCounts = ScreenerCounts { type_1: 4, type_2: 4, ethertypes: 4, compares: 4 };
}

impl Default for Settings {
    /// One queue with rings of 256, the address that the device has, the first PHY, all offloads, registers at 100 MHz, the
    /// link asked for each 250 ms and a look every second.
    fn default() -> Self {
        Settings {
            mac: None,
            queues: 1,
            receive_ring: 256,
            transmit_ring: 256,
            phy: None,
            offloads: Capabilities::ALL,
            register_clock_hz: 100_000_000,
            link_every: Duration::from_millis(250),
            look_every: Some(Duration::from_secs(1)),
            priority_poll: None,
            screeners: None,
        }
    }
}

/// Where everything lies in descriptor memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    base: u64,
    receive_ring: u16,
    transmit_ring: u16,
    queues: usize,
    pub is_wide: bool,
}

/// Words of notes for each queue: one that says that there are any, and one for each cause.
const NOTES: u64 = 64;
/// Where the notes of the queues begin, the descriptors of idle queues, the scrap, and the rings.
const QUEUE_NOTES: u64 = 64;
const IDLE: u64 = QUEUE_NOTES + MAX_QUEUES as u64 * NOTES;
const SCRAP: u64 = IDLE + 64;
const RINGS: u64 = SCRAP + RECEIVE_BUFFER as u64;

impl Layout {
    pub fn new(base: u64, settings: &Settings, is_wide: bool) -> Layout {
        let Settings { receive_ring, transmit_ring, queues, .. } = *settings;
        Layout { base, receive_ring, transmit_ring, queues, is_wide }
    }

    /// A word that says what is switched on.
    pub fn enabled(&self) -> u64 {
        self.base
    }

    /// A word that changes with the link; its lowest bit says whether it is up.
    pub fn link(&self) -> u64 {
        self.base + 4
    }

    /// A word that changes when this queue has stopped sending for all queues.
    pub fn stops(&self, queue: u16) -> u64 {
        self.base + 8 + 4 * u64::from(queue)
    }

    /// Words that the interrupt's handler writes.
    pub fn notes(&self, queue: u16) -> u64 {
        self.base + QUEUE_NOTES + NOTES * u64::from(queue)
    }

    /// The receive ring of queues that are not used: one descriptor, never the device's.
    pub fn idle_receive(&self) -> Table {
        Table { base: self.base + IDLE, len: 1, is_wide: self.is_wide }
    }

    /// The transmit ring of queues that are not used.
    pub fn idle_transmit(&self) -> Table {
        Table { base: self.base + IDLE + 16, len: 1, is_wide: self.is_wide }
    }

    /// A place for frames that nobody reads: where descriptors point to that are not the device's.
    pub fn scrap(&self) -> u64 {
        self.base + SCRAP
    }

    pub fn receive(&self, queue: u16) -> Table {
        let before = u64::from(queue) * self.ring_bytes();
        Table { base: self.base + RINGS + before, len: self.receive_ring, is_wide: self.is_wide }
    }

    pub fn transmit(&self, queue: u16) -> Table {
        let receive = self.receive(queue);
        Table { base: receive.base + receive.bytes(), len: self.transmit_ring, is_wide: self.is_wide }
    }

    /// Bytes of the rings of one queue.
    fn ring_bytes(&self) -> u64 {
        (u64::from(self.receive_ring) + u64::from(self.transmit_ring)) * Table::size(self.is_wide)
    }

    /// Bytes of all of it.
    pub fn bytes(&self) -> u64 {
        RINGS + self.queues as u64 * self.ring_bytes()
    }
}

/// Bytes of descriptor memory that these settings need, with addresses of 64 bits.
pub fn memory_len(settings: &Settings) -> usize {
    Layout::new(0, settings, true).bytes() as usize
}
