//! Registers of the SMSC LAN9118 family (datasheet chapter 5): offsets and bits.

/// Received data, a word at a time; the same FIFO answers at all eight words from here on.
pub const RX_DATA_FIFO: usize = 0x00;
/// Data to send, with its commands; the same FIFO listens at all eight words from here on.
pub const TX_DATA_FIFO: usize = 0x20;
pub const RX_STATUS_FIFO: usize = 0x40;
pub const TX_STATUS_FIFO: usize = 0x48;
pub const ID_REV: usize = 0x50;
pub const IRQ_CFG: usize = 0x54;
pub const INT_STS: usize = 0x58;
pub const INT_EN: usize = 0x5c;
pub const BYTE_TEST: usize = 0x64;
pub const FIFO_INT: usize = 0x68;
pub const RX_CFG: usize = 0x6c;
pub const TX_CFG: usize = 0x70;
pub const HW_CFG: usize = 0x74;
pub const RX_DP_CTRL: usize = 0x78;
pub const RX_FIFO_INF: usize = 0x7c;
pub const TX_FIFO_INF: usize = 0x80;
pub const FREE_RUN: usize = 0x9c;
pub const RX_DROP: usize = 0xa0;
pub const MAC_CSR_CMD: usize = 0xa4;
pub const MAC_CSR_DATA: usize = 0xa8;
pub const AFC_CFG: usize = 0xac;
pub const E2P_CMD: usize = 0xb0;

/// What `BYTE_TEST` reads as when the bus is set up as the driver expects.
pub const BYTE_TEST_VALUE: u32 = 0x8765_4321;

/// `IRQ_CFG`: the pin is driven.
pub const IRQ_ENABLE: u32 = 1 << 8;
/// `IRQ_CFG`: the pin is active high.
pub const IRQ_ACTIVE_HIGH: u32 = 1 << 4;
/// `IRQ_CFG`: the pin is driven both ways.
pub const IRQ_PUSH_PULL: u32 = 1;

/// `INT_STS`: the receiver has stopped.
pub const INT_RX_STOPPED: u32 = 1 << 24;
/// `INT_STS`, `INT_EN`: the PHY has something to say.
pub const INT_PHY: u32 = 1 << 18;
/// The receiver found its FIFO in disorder.
pub const INT_RX_ERROR: u32 = 1 << 14;
/// The transmitter found commands in disorder.
pub const INT_TX_ERROR: u32 = 1 << 13;
/// More of the transmit FIFO is free than `FIFO_INT` says.
pub const INT_TX_SPACE: u32 = 1 << 9;
/// More receive statuses wait than `FIFO_INT` says.
pub const INT_RX_STATUS: u32 = 1 << 3;

/// `RX_CFG`: throw away what is in the receive FIFOs.
pub const RX_DUMP: u32 = 1 << 15;
/// `RX_CFG`: bytes in front of each frame.
pub const RX_OFFSET_SHIFT: u32 = 8;
/// `RX_DP_CTRL`: skip the rest of the frame.
pub const RX_FAST_FORWARD: u32 = 1 << 31;

/// `TX_CFG`: throw away statuses.
pub const TX_STATUS_DUMP: u32 = 1 << 15;
/// `TX_CFG`: throw away data.
pub const TX_DATA_DUMP: u32 = 1 << 14;
/// `TX_CFG`: sending goes on though nobody reads statuses.
pub const TX_STATUS_OVERRUN: u32 = 1 << 2;
/// `TX_CFG`: the transmitter runs.
pub const TX_ON: u32 = 1 << 1;
/// `TX_CFG`: it is to stop behind the frame that it is at; goes with [`TX_ON`] when it has.
pub const TX_STOP: u32 = 1;

/// `HW_CFG`: reset.
pub const SOFT_RESET: u32 = 1;
/// `HW_CFG`: to be written as one.
pub const MUST_BE_ONE: u32 = 1 << 20;
/// `HW_CFG`: KiB of the memory that are for sending; with 5, as after reset, 4,608 bytes of data and 10,560 for receiving.
pub const TX_FIFO_KIB_SHIFT: u32 = 16;

/// `AFC_CFG`: flow control begins when the receive FIFO holds 7 KiB, and ends when it holds 3.5.
pub const AFC_LEVELS: u32 = 0x006e_3740;
/// `AFC_CFG`: whatever frame comes in then; without it no pause frame is sent in full duplex.
pub const AFC_ANY_FRAME: u32 = 1;
/// `E2P_CMD`: the EEPROM is being read.
pub const EEPROM_BUSY: u32 = 1 << 31;

/// `MAC_CSR_CMD`: go, and still going.
pub const CSR_BUSY: u32 = 1 << 31;
/// `MAC_CSR_CMD`: read.
pub const CSR_READ: u32 = 1 << 30;

/// Registers of the MAC, reached through `MAC_CSR_CMD`.
pub mod mac {
    pub const CR: u32 = 1;
    pub const ADDRH: u32 = 2;
    pub const ADDRL: u32 = 3;
    pub const HASHH: u32 = 4;
    pub const HASHL: u32 = 5;
    pub const MII_ACC: u32 = 6;
    pub const MII_DATA: u32 = 7;
    pub const FLOW: u32 = 8;
    pub const VLAN1: u32 = 9;

    /// `CR`: send while receiving.
    pub const FULL_DUPLEX: u32 = 1 << 20;
    /// `CR`: all groups.
    pub const ALL_GROUPS: u32 = 1 << 19;
    /// `CR`: everything.
    pub const PROMISCUOUS: u32 = 1 << 18;
    /// `CR`: groups by hash, one's own address by comparison.
    pub const HASH_PERFECT: u32 = 1 << 13;
    pub const TX_ENABLE: u32 = 1 << 3;
    pub const RX_ENABLE: u32 = 1 << 2;

    /// `MII_ACC`: the address of the internal PHY.
    pub const INTERNAL_PHY: u32 = 1 << 11;
    pub const MII_REGISTER_SHIFT: u32 = 6;
    pub const MII_WRITE: u32 = 1 << 1;
    pub const MII_BUSY: u32 = 1;

    /// `FLOW`: pauses are obeyed, and asked for with the longest time.
    pub const PAUSE: u32 = 0xffff_0002;
    /// `VLAN1`: behind this type a frame may have four bytes more (IEEE 802.1Q).
    pub const TAG: u32 = 0x8100;
}

/// Registers of the PHY (IEEE 802.3 clause 22, and two of the chip's own).
pub mod phy {
    pub const BMCR: u32 = 0;
    pub const BMSR: u32 = 1;
    pub const ANAR: u32 = 4;
    pub const ANLPAR: u32 = 5;
    pub const INTERRUPT_SOURCE: u32 = 29;
    pub const INTERRUPT_MASK: u32 = 30;

    /// `BMCR`: negotiate, and begin now.
    pub const NEGOTIATE: u16 = 1 << 12 | 1 << 9;
    /// `BMSR`: frames pass.
    pub const LINK_UP: u16 = 1 << 2;
    /// `ANAR`: 10 and 100 Mb/s, both duplexes, pause, IEEE 802.3.
    pub const ADVERTISED: u16 = 0x05e1;
    /// Abilities of both: pause frames.
    pub const PAUSE: u16 = 1 << 10;
    /// 100 Mb/s, full duplex.
    pub const FULL_100: u16 = 1 << 8;
    /// 100 Mb/s, half duplex.
    pub const HALF_100: u16 = 1 << 7;
    /// 10 Mb/s, full duplex.
    pub const FULL_10: u16 = 1 << 6;
    /// `INTERRUPT_*`: negotiation is over; the link is down.
    pub const LINK_CHANGED: u16 = 1 << 6 | 1 << 4;
}

/// Transmit command A: first piece of a frame.
pub const TX_FIRST: u32 = 1 << 13;
/// Transmit command A: last piece of a frame.
pub const TX_LAST: u32 = 1 << 12;
/// Transmit status: the frame was not sent.
pub const TX_FAILED: u32 = 1 << 15;

/// Receive status: the frame has an error.
pub const RX_BAD: u32 = 1 << 15;
/// Receive status: the frame passed no filter.
pub const RX_FILTERED: u32 = 1 << 30;
