//! The two streams: every byte follows from its position, so that each can be checked wherever it turns up.

/// Period of the host's stream.
const PERIOD: usize = 251;
/// Longest piece sent at once.
pub const MOST: usize = 16_384;

static TABLE: [u8; PERIOD + MOST] = {
    let mut table = [0; PERIOD + MOST];
    let mut i = 0;
    while i < table.len() {
        table[i] = (i % PERIOD) as u8;
        i += 1;
    }
    table
};

/// The host's bytes from this position on.
pub fn host_bytes(position: u64, len: usize) -> &'static [u8] {
    let start = (position % PERIOD as u64) as usize;
    &TABLE[start..start + len.min(MOST)]
}

/// The peer's byte at this position, which wraps as sequence numbers do.
pub fn peer_byte(position: u32) -> u8 {
    (position.wrapping_mul(0x9e37_79b1) >> 24) as u8
}
