//! The registers: where they lie, and what their bits mean.
//!
//! Each direction has a block of common registers and one of 0x40 bytes for each channel; channels count from 1. The MAC has its
//! own block.

/// A direction of the engine: the offset of its block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From memory to the wire.
    Transmit,
    /// From the wire to memory.
    Receive,
}

impl Direction {
    /// Where its block begins.
    pub const fn base(self) -> u32 {
        match self {
            Direction::Transmit => 0x000,
            Direction::Receive => 0x500,
        }
    }

    /// Where the block of channel `number` begins.
    pub const fn channel(self, number: u32) -> u32 {
        self.base() + 0x40 * number
    }
}

/// Most channels of one direction.
pub const MAX_CHANNELS: usize = 16;

/// Offsets in the common block of a direction.
pub mod common {
    /// Control: bit 0 lets the engine run.
    pub const CONTROL: u32 = 0x00;
    /// Status: bit 0 says that it is halted.
    pub const STATUS: u32 = 0x04;
    /// Channels that may run, channel 1 at bit 0.
    pub const ENABLE: u32 = 0x08;
    /// In [`CONTROL`]: run.
    pub const RUN: u32 = 1 << 0;
}

/// Offsets in the block of a channel, and their bits.
pub mod channel {
    /// Control, see below.
    pub const CONTROL: u32 = 0x00;
    /// Status, see below; writing ones clears interrupts.
    pub const STATUS: u32 = 0x04;
    /// The descriptor that the engine works on or will work on next: its address, low and high half. Written while the channel does
    /// not run.
    pub const CURRENT: u32 = 0x08;
    /// The last descriptor that the engine may work on: its address, low and high half. Writing the low half is the doorbell.
    pub const TAIL: u32 = 0x10;

    /// Control: the channel works on descriptors.
    pub const RUN: u32 = 1 << 0;
    /// Control: forgets all descriptors and stops; reads as one until that is done. Registers are as after power on then.
    pub const RESET: u32 = 1 << 2;
    /// Control: so many packets make an interrupt (1 to 255).
    pub const THRESHOLD_SHIFT: u32 = 16;
    /// Control: so many ticks after the newest packet an interrupt comes although there are fewer; 0 for never.
    pub const DELAY_SHIFT: u32 = 24;

    /// Status: the channel does not run.
    pub const HALTED: u32 = 1 << 0;
    /// Status: it waits for a doorbell.
    pub const IDLE: u32 = 1 << 1;
    /// Status: a descriptor made no sense, or was complete already. The channel has stopped until its reset.
    pub const INTERNAL_ERROR: u32 = 1 << 8;
    /// Status: memory answered with an error. The same.
    pub const SLAVE_ERROR: u32 = 1 << 9;
    /// Status: there is no memory at an address. The same.
    pub const DECODE_ERROR: u32 = 1 << 10;
    /// Status: after which only a reset helps.
    pub const FAILED: u32 = HALTED | INTERNAL_ERROR | SLAVE_ERROR | DECODE_ERROR;

    /// Interrupt, in status (has come) and control (is let through): the threshold is reached.
    pub const COMPLETE: u32 = 1 << 5;
    /// Interrupt: the delay is over.
    pub const DELAYED: u32 = 1 << 6;
    /// Interrupt: the channel has failed.
    pub const ERROR: u32 = 1 << 7;
    /// All three.
    pub const INTERRUPTS: u32 = COMPLETE | DELAYED | ERROR;
}

/// Registers of the MAC and their bits.
pub mod mac {
    /// Own address: the first four bytes, the first lowest.
    pub const ADDRESS_LOW: u32 = 0x1000;
    /// Own address: the last two bytes.
    pub const ADDRESS_HIGH: u32 = 0x1004;
    /// What it lets through, see below.
    pub const MODE: u32 = 0x1008;
    /// State of the link, see below.
    pub const LINK: u32 = 0x100C;
    /// Bit 0: the link has changed, cleared by writing one. Bit 1: that interrupts.
    pub const LINK_INTERRUPT: u32 = 0x1010;
    /// Groups that are let through, by hash: values 0 to 31.
    pub const HASH_LOW: u32 = 0x1014;
    /// Groups that are let through, by hash: values 32 to 63.
    pub const HASH_HIGH: u32 = 0x1018;
    /// The first of [`PORTS`] entries of the map from destination ports to channels.
    pub const PORT_MAP: u32 = 0x1080;
    /// Entries of the map.
    pub const PORTS: usize = 16;

    /// Mode: frames pass.
    pub const ENABLE: u32 = 1 << 0;
    /// Mode: everything is received.
    pub const PROMISCUOUS: u32 = 1 << 1;
    /// Mode: all groups are received.
    pub const ALL_GROUPS: u32 = 1 << 2;
    /// Mode: what is sent is received, and does not leave.
    pub const LOOPBACK: u32 = 1 << 3;
    /// Mode: checksums of received frames are verified.
    pub const VERIFY: u32 = 1 << 4;

    /// Link: up.
    pub const UP: u32 = 1 << 0;
    /// Link: both ends may send at once.
    pub const FULL_DUPLEX: u32 = 1 << 1;
    /// Link: megabits per second.
    pub const SPEED_SHIFT: u32 = 8;

    /// Link interrupt: the link has changed.
    pub const CHANGED: u32 = 1 << 0;
    /// Link interrupt: let through.
    pub const CHANGED_ENABLE: u32 = 1 << 1;

    /// Port map: the entry counts.
    pub const PORT_VALID: u32 = 1 << 31;

    /// The port map's entry that sends frames to destination `port` to channel `number`.
    pub const fn port_entry(port: u16, number: u32) -> u32 {
        PORT_VALID | (number & 0xFF) << 16 | port as u32
    }

    /// The hash of a group's address: its bits, six at a time, exclusive-or.
    pub const fn group_hash(address: [u8; 6]) -> u32 {
        let [a, b, c, d, e, f] = address;
        let bits = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        let half = (bits ^ bits >> 24) & 0xFF_FFFF;
        let quarter = half ^ half >> 12;
        ((quarter ^ quarter >> 6) & 0x3F) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_lie_where_the_manual_says() {
        for (direction, number, offset) in [
            (Direction::Transmit, 1, 0x40),
            (Direction::Transmit, 16, 0x400),
            (Direction::Receive, 1, 0x540),
            (Direction::Receive, 2, 0x580),
        ] {
            assert_eq!(direction.channel(number), offset, "{direction:?} {number}");
        }
    }

    #[test]
    fn the_hash_of_a_group_depends_on_all_its_bits() {
        let group = [0x33, 0x33, 0xFF, 0x12, 0x34, 0x56];
        for bit in 0..48 {
            let mut other = group;
            other[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(mac::group_hash(other), mac::group_hash(group), "bit {bit}");
        }
        // 001100 110011 001111 111111 | 000100 100011 010001 010110
        let expected = [0b001100, 0b110011, 0b001111, 0b111111, 0b000100, 0b100011, 0b010001, 0b010110];
        assert_eq!(mac::group_hash(group), expected.into_iter().fold(0, |hash, six| hash ^ six));
    }
}
