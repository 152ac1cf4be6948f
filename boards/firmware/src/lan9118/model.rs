//! The chip as its registers behave, strict where hardware is merely undefined: a word too many read from a FIFO, a command in
//! the middle of a packet or a frame that does not fit are faults that stay visible.

use super::Registers;
use super::regs::{self, mac, phy};
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;

/// Words of the receive data FIFO, and statuses beside it.
const RX_WORDS: usize = 2_640;
const RX_STATUSES: usize = 176;
/// Bytes of the transmit data FIFO.
const TX_BYTES: usize = 4_608;

/// Receive status: the frame is longer than IEEE 802.3 has it.
const RX_TOO_LONG: u32 = 1 << 7;
/// The first half of the address that the EEPROM has.
const EEPROM_ADDRESS: u32 = 0x0f80_0000;

/// Readings that a side takes to stop, once told to.
const STOPPING: u32 = 20;

/// A packet on its way through the transmit FIFO.
#[derive(Default)]
struct Sending {
    bytes: Vec<u8>,
    /// Bytes of the piece that are missing, and whether it is the last.
    missing: usize,
    is_last: bool,
    /// Command A waits for command B.
    command: Option<u32>,
    is_open: bool,
    fifo: usize,
}

/// The chip. Tests hold it beside the driver.
pub(super) struct Model {
    pub rx_data: VecDeque<u32>,
    rx_statuses: VecDeque<u32>,
    /// Words of the frame that the last status told of, as far as they were not read.
    rx_left: usize,
    pub tx_statuses: VecDeque<u32>,
    sending: Sending,
    /// Frames sent.
    pub sent: Vec<Vec<u8>>,
    /// Words written to the transmit FIFO.
    pub written: usize,
    /// Bytes that sent frames still take, and whether they stay until [`Model::leave`].
    tx_held: usize,
    pub is_slow: bool,
    /// The next frame is reported as failed.
    pub fails: bool,
    pub events: u32,
    pub enabled: u32,
    fifo_int: u32,
    pub dropped: u32,
    pub mac: [u32; 16],
    csr_data: u32,
    /// What `AFC_CFG` holds.
    pub flow: u32,
    /// Readings until the EEPROM is read: its address takes the place of the MAC's then.
    loading: u32,
    pub phy: [u16; 32],
    clock: u32,
    /// Reads from an empty FIFO, commands out of place.
    pub faults: u32,
    pub byte_test: u32,
    pub id: u32,
    /// Readings until receiver and transmitter stand still; the transmitter runs until then, or is off.
    rx_stopping: u32,
    tx_stopping: u32,
    is_sending: bool,
    /// A register whose busy bit never goes.
    pub stuck: Option<usize>,
    /// A frame that comes at the next read of `INT_STS`, right after it was answered.
    pub meanwhile: Option<Vec<u8>>,
    /// The same of the link.
    pub link_goes_meanwhile: bool,
}

impl Model {
    pub fn new() -> Rc<RefCell<Model>> {
        let mut phy = [0; 32];
        phy[phy::BMSR as usize] = phy::LINK_UP;
        phy[phy::ANLPAR as usize] = 0x45e1;
        Rc::new(RefCell::new(Model {
            rx_data: VecDeque::new(),
            rx_statuses: VecDeque::new(),
            rx_left: 0,
            tx_statuses: VecDeque::new(),
            sending: Sending::default(),
            sent: Vec::new(),
            written: 0,
            tx_held: 0,
            is_slow: false,
            fails: false,
            events: 0,
            enabled: 0,
            fifo_int: 0,
            dropped: 0,
            mac: [0; 16],
            csr_data: 0,
            flow: 0,
            loading: 0,
            phy,
            clock: 0,
            faults: 0,
            byte_test: regs::BYTE_TEST_VALUE,
            id: 0x0118_0001,
            rx_stopping: 0,
            tx_stopping: 0,
            is_sending: false,
            stuck: None,
            meanwhile: None,
            link_goes_meanwhile: false,
        }))
    }

    /// A frame comes from the wire, without FCS; false where there is no room or nobody receives.
    pub fn arrive(&mut self, frame: &[u8]) -> bool {
        self.arrive_with(frame, 0)
    }

    /// The same with bits of the status.
    pub fn arrive_with(&mut self, frame: &[u8], status: u32) -> bool {
        if self.mac[mac::CR as usize] & mac::RX_ENABLE == 0 {
            return false;
        }
        // With FCS, and with a tag where the MAC knows its type.
        let is_tagged = frame.get(12..14).map(|tag| u32::from(tag[0]) << 8 | u32::from(tag[1]))
            == Some(self.mac[mac::VLAN1 as usize] & 0xffff);
        let is_long = frame.len() + 4 > if is_tagged { 1_522 } else { 1_518 };
        let status = status | if is_long { regs::RX_BAD | RX_TOO_LONG } else { 0 };
        let mut bytes = Vec::from([0xaa; 2]);
        bytes.extend_from_slice(frame);
        bytes.extend_from_slice(&[0xfc; 4]);
        bytes.resize(bytes.len().next_multiple_of(4), 0xee);
        let words = bytes.len() / 4;
        if self.rx_data.len() + words > RX_WORDS || self.rx_statuses.len() == RX_STATUSES {
            self.dropped += 1;
            return false;
        }
        self.rx_data.extend(bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)));
        self.rx_statuses.push_back((frame.len() as u32 + 4) << 16 | status);
        self.raise_levels();
        true
    }

    /// Whether the pin asks for attention.
    pub fn interrupts(&self) -> bool {
        self.events & self.enabled != 0
    }

    /// What waits in the transmit FIFO has left.
    pub fn leave(&mut self) {
        self.tx_held = 0;
        self.raise_levels();
    }

    /// The link comes or goes.
    pub fn set_link(&mut self, is_up: bool, partner: u16) {
        self.phy[phy::BMSR as usize] = if is_up { phy::LINK_UP } else { 0 };
        self.phy[phy::ANLPAR as usize] = partner;
        self.phy[phy::INTERRUPT_SOURCE as usize] |= phy::LINK_CHANGED;
        self.events |= regs::INT_PHY;
    }

    fn raise_levels(&mut self) {
        if self.rx_statuses.len() > (self.fifo_int & 0xff) as usize {
            self.events |= regs::INT_RX_STATUS;
        }
        if TX_BYTES - self.tx_held > (self.fifo_int >> 24) as usize * 64 {
            self.events |= regs::INT_TX_SPACE;
        }
    }

    fn read_data(&mut self) -> u32 {
        if self.rx_left == 0 {
            // Without a status that was read, or beyond its frame: the next frame loses a word.
            self.faults += 1;
        }
        self.rx_left = self.rx_left.saturating_sub(1);
        self.rx_data.pop_front().unwrap_or(0)
    }

    fn read_status(&mut self) -> u32 {
        if self.rx_left > 0 {
            self.faults += 1;
        }
        let Some(status) = self.rx_statuses.pop_front() else {
            self.faults += 1;
            return 0;
        };
        self.rx_left = (2 + (status >> 16 & 0x3fff) as usize).div_ceil(4);
        status
    }

    fn write_data(&mut self, word: u32) {
        let sending = &mut self.sending;
        self.written += 1;
        sending.fifo += 4;
        if self.tx_held + sending.fifo > TX_BYTES {
            self.faults += 1;
        }
        if sending.missing > 0 {
            let len = sending.missing.min(4);
            sending.bytes.extend_from_slice(&word.to_le_bytes()[..len]);
            sending.missing -= len;
        } else if let Some(command) = sending.command.take() {
            sending.missing = (command & 0x7ff) as usize;
            sending.is_last = command & regs::TX_LAST != 0;
            // The length in command B is that of the whole packet, in each of its pieces.
            if command & regs::TX_FIRST != 0 {
                sending.is_open = true;
                sending.bytes.clear();
                sending.bytes.reserve(word as usize & 0x7ff);
            }
        } else {
            let is_middle = word & (regs::TX_FIRST | regs::TX_LAST) == 0;
            if (word & regs::TX_FIRST != 0) == sending.is_open || is_middle && word & 0x7ff < 4 {
                self.faults += 1;
                self.events |= regs::INT_TX_ERROR;
            }
            sending.command = Some(word);
            return;
        }
        if sending.missing == 0 && sending.is_last && sending.is_open {
            sending.is_open = false;
            let fifo = core::mem::take(&mut sending.fifo);
            self.tx_held += if self.is_slow { fifo } else { 0 };
            self.sent.push(core::mem::take(&mut sending.bytes));
            self.tx_statuses.push_back(if self.fails { regs::TX_FAILED } else { 0 });
            self.fails = false;
        }
    }

    fn configure_sending(&mut self, value: u32) {
        if value & regs::TX_STOP != 0 && self.is_sending {
            self.tx_stopping = STOPPING;
        } else if value & regs::TX_ON != 0 {
            self.is_sending = true;
        }
        if value & regs::TX_DATA_DUMP != 0 {
            // Emptied while the transmitter reads from it.
            self.faults += u32::from(self.is_sending);
            self.sending = Sending::default();
            self.tx_statuses.clear();
            self.tx_held = 0;
        }
    }

    fn csr(&mut self, command: u32) {
        let register = (command & 0xf) as usize;
        if command & regs::CSR_READ != 0 {
            self.csr_data = self.mac[register];
            return;
        }
        let was_receiving = self.mac[mac::CR as usize] & mac::RX_ENABLE != 0;
        self.mac[register] = self.csr_data;
        if was_receiving && self.mac[mac::CR as usize] & mac::RX_ENABLE == 0 {
            self.rx_stopping = STOPPING;
        }
        if register == mac::MII_ACC as usize {
            let at = (self.csr_data >> mac::MII_REGISTER_SHIFT & 0x1f) as usize;
            if self.csr_data & mac::MII_WRITE != 0 {
                self.phy[at] = self.mac[mac::MII_DATA as usize] as u16;
            } else {
                self.mac[mac::MII_DATA as usize] = self.phy[at].into();
            }
            self.mac[register] &= !mac::MII_BUSY;
            if at == phy::INTERRUPT_SOURCE as usize {
                self.phy[at] = 0;
            }
        }
    }

    /// One reading more of sides that are to stop.
    fn stop(&mut self) {
        if self.rx_stopping == 1 {
            self.events |= regs::INT_RX_STOPPED;
        }
        if self.tx_stopping == 1 {
            self.is_sending = false;
        }
        self.rx_stopping = self.rx_stopping.saturating_sub(1);
        self.tx_stopping = self.tx_stopping.saturating_sub(1);
    }

    fn read(&mut self, offset: usize) -> u32 {
        self.clock = self.clock.wrapping_add(25);
        if self.loading > 0 {
            self.loading -= 1;
            if self.loading == 0 {
                self.mac[mac::ADDRL as usize] = EEPROM_ADDRESS;
            }
        }
        self.stop();
        if self.stuck == Some(offset) {
            return u32::MAX;
        }
        match offset {
            regs::RX_DATA_FIFO => self.read_data(),
            regs::RX_STATUS_FIFO => self.read_status(),
            regs::TX_STATUS_FIFO => self.tx_statuses.pop_front().unwrap_or_else(|| {
                self.faults += 1;
                0
            }),
            regs::ID_REV => self.id,
            regs::BYTE_TEST => self.byte_test,
            regs::RX_FIFO_INF => ((self.rx_statuses.len() << 16) | (self.rx_data.len() * 4)) as u32,
            regs::TX_FIFO_INF => ((self.tx_statuses.len() << 16) | (TX_BYTES - self.tx_held)) as u32,
            regs::FREE_RUN => self.clock,
            regs::RX_DROP => core::mem::take(&mut self.dropped),
            regs::E2P_CMD if self.loading > 0 => regs::EEPROM_BUSY,
            regs::TX_CFG => {
                let bit = |is_on, bit| if is_on { bit } else { 0 };
                bit(self.is_sending, regs::TX_ON) | bit(self.tx_stopping > 0, regs::TX_STOP)
            }
            regs::MAC_CSR_DATA => self.csr_data,
            regs::INT_STS => {
                let events = self.events;
                if let Some(frame) = self.meanwhile.take() {
                    self.arrive(&frame);
                }
                if core::mem::take(&mut self.link_goes_meanwhile) {
                    self.set_link(false, 0);
                }
                events
            }
            // All other busy bits are gone at once.
            _ => 0,
        }
    }

    fn write(&mut self, offset: usize, value: u32) {
        match offset {
            regs::TX_DATA_FIFO => self.write_data(value),
            regs::HW_CFG if value & regs::SOFT_RESET != 0 => {
                self.mac = [0; 16];
                self.mac[mac::VLAN1 as usize] = 0xffff;
                self.flow = 0;
                self.loading = 10;
            }
            regs::AFC_CFG => self.flow = value,
            regs::INT_STS => self.events &= !value,
            regs::INT_EN => self.enabled = value,
            regs::FIFO_INT => {
                self.fifo_int = value;
                self.raise_levels();
            }
            regs::RX_CFG if value & regs::RX_DUMP != 0 => {
                // Emptied while the receiver writes to it.
                let is_running = self.mac[mac::CR as usize] & mac::RX_ENABLE != 0;
                self.faults += u32::from(is_running || self.rx_stopping > 0);
                self.rx_data.clear();
                self.rx_statuses.clear();
                self.rx_left = 0;
            }
            regs::RX_DP_CTRL if value & regs::RX_FAST_FORWARD != 0 => {
                // The chip skips only what has four words at least.
                self.faults += u32::from(self.rx_left < 4);
                self.rx_data.drain(..self.rx_left);
                self.rx_left = 0;
            }
            regs::TX_CFG => self.configure_sending(value),
            regs::MAC_CSR_DATA => self.csr_data = value,
            regs::MAC_CSR_CMD => self.csr(value),
            _ => {}
        }
    }
}

impl Registers for Rc<RefCell<Model>> {
    fn read(&mut self, offset: usize) -> u32 {
        self.borrow_mut().read(offset)
    }

    fn write(&mut self, offset: usize, value: u32) {
        self.borrow_mut().write(offset, value);
    }
}
