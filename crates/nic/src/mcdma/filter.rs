//! Which frames come in, and to which queue: what entries of the tables are.

use crate::mcdma::nic_regs::register::{INDIRECTION_COUNT, PORT_MAP_QUEUE_SHIFT, PORT_MAP_VALID};

/// Entries of the indirection table: eight in each register.
pub const ENTRIES: usize = 8 * INDIRECTION_COUNT;

/// The port map's entry that sends frames to destination `port` to `queue`.
pub const fn port_entry(port: u16, queue: u16) -> u32 {
    PORT_MAP_VALID | (queue as u32) << PORT_MAP_QUEUE_SHIFT | port as u32
}

/// The hash of a group's address: its bits, six at a time, exclusive-or.
pub const fn group_hash(address: [u8; 6]) -> u32 {
    let [a, b, c, d, e, f] = address;
    let bits = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
    let half = (bits ^ bits >> 24) & 0xFF_FFFF;
    let quarter = half ^ half >> 12;
    ((quarter ^ quarter >> 6) & 0x3F) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_a_group_depends_on_all_its_bits() {
        let group = [0x33, 0x33, 0xFF, 0x12, 0x34, 0x56];
        for bit in 0..48 {
            let mut other = group;
            other[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(group_hash(other), group_hash(group), "bit {bit}");
        }
        // 001100 110011 001111 111111 | 000100 100011 010001 010110
        let expected = [0b001100, 0b110011, 0b001111, 0b111111, 0b000100, 0b100011, 0b010001, 0b010110];
        assert_eq!(group_hash(group), expected.into_iter().fold(0, |hash, six| hash ^ six));
    }
}
