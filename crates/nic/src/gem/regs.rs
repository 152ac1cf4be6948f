//! Registers of the controller, named as in AMD UG1087 (module GEM), and the fields that the driver uses.

/// `network_control`: what runs, and the starts.
pub const NETWORK_CONTROL: u32 = 0x000;
/// Frames are received.
pub const ENABLE_RECEIVE: u32 = 1 << 2;
/// Packets are sent.
pub const ENABLE_TRANSMIT: u32 = 1 << 3;
/// The lines to the PHY are driven (`man_port_en`).
pub const MANAGEMENT: u32 = 1 << 4;
/// The statistics begin at zero (`clear_all_stats_regs`).
pub const CLEAR_STATISTICS: u32 = 1 << 5;
/// The doorbell: packets of all queues are looked for (`tx_start_pclk`).
pub const START: u32 = 1 << 9;
/// Sending ends with the packet under way (`tx_halt_pclk`).
pub const HALT: u32 = 1 << 10;
/// What is written while the device runs, by all queues, so that no two of them need to read it first.
pub const RUNNING: u32 = ENABLE_RECEIVE | ENABLE_TRANSMIT | MANAGEMENT;

/// `network_config`: how frames look.
pub const NETWORK_CONFIG: u32 = 0x004;
/// 100 Mb/s.
pub const SPEED_100: u32 = 1 << 0;
/// Both ends send at once.
pub const FULL_DUPLEX: u32 = 1 << 1;
/// Every frame is received (`copy_all_frames`).
pub const PROMISCUOUS: u32 = 1 << 4;
/// Groups are received whose bit in the hash register is set.
pub const MULTICAST_HASH: u32 = 1 << 6;
/// Frames of up to 1,536 bytes are received, for those with tags.
pub const LONG_FRAMES: u32 = 1 << 8;
/// 1,000 Mb/s.
pub const GIGABIT: u32 = 1 << 10;
/// The PCS is used (SGMII); whoever has set up the board's transceivers has said so.
pub const PCS: u32 = 1 << 11 | 1 << 27;
/// The FCS is not written to memory.
pub const REMOVE_FCS: u32 = 1 << 17;
/// Where the divider of the management clock begins.
pub const MANAGEMENT_CLOCK_SHIFT: u32 = 18;
/// Where the width of the data bus begins.
pub const BUS_WIDTH_SHIFT: u32 = 21;
/// Checksums are verified; frames with a wrong one are dropped.
pub const RECEIVE_CHECKSUM: u32 = 1 << 24;

/// `network_status`.
pub const NETWORK_STATUS: u32 = 0x008;
/// The PHY's lines are idle (`man_done`).
pub const MANAGEMENT_IDLE: u32 = 1 << 2;

/// `dma_config`.
pub const DMA_CONFIG: u32 = 0x010;
/// Bursts of up to 16 words.
pub const BURST_16: u32 = 0x10;
/// All of the memory for packets is used, in both directions.
pub const ALL_PACKET_MEMORY: u32 = 3 << 8 | 1 << 10;
/// Checksums are filled in.
pub const TRANSMIT_CHECKSUM: u32 = 1 << 11;
/// Where the size of a receive buffer begins, in units of 64 bytes.
pub const BUFFER_SIZE_SHIFT: u32 = 16;
/// Descriptors of four words (`dma_addr_bus_width_1`).
pub const ADDRESSES_64: u32 = 1 << 30;

/// `transmit_status`: what has happened, until it is written.
pub const TRANSMIT_STATUS: u32 = 0x014;
/// Sending (`transmit_go`), which cannot be written.
pub const TRANSMITTING: u32 = 1 << 3;
/// `receive_status`: what has happened, until it is written.
pub const RECEIVE_STATUS: u32 = 0x020;
/// A frame found no buffer (`buffer_not_available`).
pub const NO_BUFFER: u32 = 1 << 0;

/// `hash_bottom`; the other half follows.
pub const HASH: u32 = 0x080;
/// `spec_add1_bottom`: writing it switches the address off.
pub const ADDRESS_LOW: u32 = 0x088;
/// `spec_add1_top`: writing it switches the address on.
pub const ADDRESS_HIGH: u32 = 0x08C;
/// `phy_management`: a read or a write of a register of the PHY.
pub const PHY_MANAGEMENT: u32 = 0x034;
/// `revision_reg`.
pub const REVISION: u32 = 0x0FC;
/// The first module that is a GEM, and not its predecessor.
pub const FIRST_GEM: u32 = 2;
/// `designcfg_debug1`.
pub const DESIGN_1: u32 = 0x280;
/// `designcfg_debug6`: queues, and whether addresses have 64 bits.
pub const DESIGN_6: u32 = 0x294;
/// Addresses of 64 bits are built in.
pub const HAS_64: u32 = 1 << 23;
/// `designcfg_debug8`: how many screeners.
pub const DESIGN_8: u32 = 0x29C;

/// `upper_tx_q_base_addr`: for the rings of all queues.
pub const TRANSMIT_BASE_HIGH: u32 = 0x4C8;
/// `upper_rx_q_base_addr`.
pub const RECEIVE_BASE_HIGH: u32 = 0x4D4;

/// `screening_type_1_register_0`.
pub const SCREENER_1: u32 = 0x500;
/// `screening_type_2_register_0`.
pub const SCREENER_2: u32 = 0x540;
/// `screening_type_2_ethertype_reg_0`.
pub const SCREENER_ETHERTYPE: u32 = 0x6E0;
/// `type2_compare_0_word_0`; two words each.
pub const SCREENER_COMPARE: u32 = 0x700;

/// Bits of the interrupt registers (`int_status` and those of the other queues).
pub mod cause {
    /// A frame was received.
    pub const RECEIVED: u32 = 1 << 1;
    /// A frame found no buffer.
    pub const NO_BUFFER: u32 = 1 << 2;
    /// Memory did not deliver a packet in time.
    pub const UNDERRUN: u32 = 1 << 4;
    /// A packet was sent in vain too often, or met another late.
    pub const RETRY: u32 = 1 << 5;
    /// A packet broke off in the middle, by an error of the bus or for want of its next descriptor.
    pub const CORRUPTED: u32 = 1 << 6;
    /// A packet was sent.
    pub const SENT: u32 = 1 << 7;
    /// A frame came faster than memory took it.
    pub const OVERRUN: u32 = 1 << 10;
    /// The bus refused an access of the device's (HRESP).
    pub const BUS: u32 = 1 << 11;
    /// What the loop is woken for when it has armed, beside packets that were sent.
    pub const RECEIVE: u32 = RECEIVED | NO_BUFFER;
    /// What is always let through.
    pub const ERRORS: u32 = UNDERRUN | RETRY | CORRUPTED | OVERRUN | BUS;
    /// All that the driver knows.
    pub const ALL: u32 = RECEIVE | SENT | ERRORS;
}

/// The registers of one queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueRegisters {
    /// Where the receive ring lies (`receive_q_ptr`).
    pub receive_base: u32,
    /// Where the transmit ring lies (`transmit_q_ptr`).
    pub transmit_base: u32,
    /// Interrupts that have come.
    pub status: u32,
    /// Lets interrupts through.
    pub enable: u32,
    /// Shuts them.
    pub disable: u32,
    /// Bytes of a receive buffer in units of 64; the first queue's are in [`DMA_CONFIG`].
    pub buffer_size: Option<u32>,
}

impl QueueRegisters {
    /// Those of the queue with this index, at most 7.
    pub const fn of(queue: u16) -> QueueRegisters {
        if queue == 0 {
            return QueueRegisters {
                receive_base: 0x018,
                transmit_base: 0x01C,
                status: 0x024,
                enable: 0x028,
                disable: 0x02C,
                buffer_size: None,
            };
        }
        let at = 4 * (queue as u32 - 1);
        QueueRegisters {
            receive_base: 0x480 + at,
            transmit_base: 0x440 + at,
            status: 0x400 + at,
            enable: 0x600 + at,
            disable: 0x620 + at,
            buffer_size: Some(0x4A0 + at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_lie_where_the_manual_says() {
        let second = QueueRegisters::of(1);
        assert_eq!(
            (second.receive_base, second.transmit_base, second.buffer_size),
            (0x480, 0x440, Some(0x4A0))
        );
        assert_eq!((second.status, second.enable, second.disable), (0x400, 0x600, 0x620));
        assert_eq!(QueueRegisters::of(3).status, 0x408);
        assert_eq!(cause::ALL, 0xCF6);
    }
}
