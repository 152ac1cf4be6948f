//! What travels beside a frame, as `rtl/common/rtl/nic_pkg.sv` packs it: the first field in the highest bits.

/// How a super-frame is split (`seg_mode_t`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SegmentMode {
    /// It is one frame.
    #[default]
    None,
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// `tx_user_t`: what the driver asks for one frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TxUser {
    /// Queue it came from.
    pub channel: u8,
    /// How it is split.
    pub seg: SegmentMode,
    /// Payload bytes of a segment.
    pub seg_size: u16,
    /// Bytes of all headers.
    pub hdr_len: u8,
    /// Where the IP header begins.
    pub l3_start: u8,
    /// IPv6, not IPv4.
    pub ipv6: bool,
    /// Fill in the IPv4 header checksum.
    pub ip_csum: bool,
    /// `csum_mode_t`: 0 none, 1 partial, 2 full.
    pub csum: u8,
    /// Added to the sum.
    pub csum_init: u16,
    /// First byte summed.
    pub csum_begin: u16,
    /// Where the complement is written.
    pub csum_insert: u16,
}

/// `rx_user_t`: what was found out about a received frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RxUser {
    /// The MAC says that the frame is damaged.
    pub error: bool,
    /// Status code, RX_CS_STS.
    pub csum_status: u8,
    /// Sum from the 15th byte on.
    pub csum_raw: u16,
    /// Toeplitz hash.
    pub hash: u32,
    /// What it was taken over.
    pub hash_type: u8,
    /// Queue it goes to.
    pub channel: u8,
    /// A flow rule says drop.
    pub drop: bool,
    /// Segments that were coalesced.
    pub seg_count: u8,
    /// Payload bytes of the first.
    pub seg_size: u16,
    /// Arrival of the last, in clocks.
    pub arrival: u32,
}

/// Fields as one number, the first in the highest bits.
fn packed(fields: &[(u64, u32)]) -> [u32; 4] {
    let all = fields.iter().fold(0u128, |all, (value, bits)| {
        debug_assert!(*value < 1 << bits, "{value} in {bits} bits");
        all << bits | u128::from(*value)
    });
    core::array::from_fn(|index| (all >> (32 * index)) as u32)
}

/// Takes fields from a number, the last in the lowest bits.
struct Unpacked(u128);

impl Unpacked {
    fn new(words: [u32; 4]) -> Self {
        Unpacked(words.iter().rev().fold(0, |all, word| all << 32 | u128::from(*word)))
    }

    fn take(&mut self, bits: u32) -> u64 {
        let value = self.0 & ((1 << bits) - 1);
        self.0 >>= bits;
        value as u64
    }
}

impl TxUser {
    /// As the port takes it.
    pub fn to_words(self) -> [u32; 4] {
        packed(&[
            (u64::from(self.channel), 4),
            (self.seg as u64, 2),
            (u64::from(self.seg_size), 16),
            (u64::from(self.hdr_len), 8),
            (u64::from(self.l3_start), 8),
            (u64::from(self.ipv6), 1),
            (u64::from(self.ip_csum), 1),
            (u64::from(self.csum), 2),
            (u64::from(self.csum_init), 16),
            (u64::from(self.csum_begin), 16),
            (u64::from(self.csum_insert), 16),
        ])
    }

    /// What a port shows.
    pub fn from_words(words: [u32; 4]) -> Self {
        let mut fields = Unpacked::new(words);
        let csum_insert = fields.take(16) as u16;
        let csum_begin = fields.take(16) as u16;
        let csum_init = fields.take(16) as u16;
        let csum = fields.take(2) as u8;
        let ip_csum = fields.take(1) != 0;
        let ipv6 = fields.take(1) != 0;
        let l3_start = fields.take(8) as u8;
        let hdr_len = fields.take(8) as u8;
        let seg_size = fields.take(16) as u16;
        let seg = match fields.take(2) {
            1 => SegmentMode::Tcp,
            2 => SegmentMode::Udp,
            _ => SegmentMode::None,
        };
        let channel = fields.take(4) as u8;
        TxUser {
            channel,
            seg,
            seg_size,
            hdr_len,
            l3_start,
            ipv6,
            ip_csum,
            csum,
            csum_init,
            csum_begin,
            csum_insert,
        }
    }
}

impl RxUser {
    /// As the port takes it.
    pub fn to_words(self) -> [u32; 4] {
        packed(&[
            (u64::from(self.error), 1),
            (u64::from(self.csum_status), 3),
            (u64::from(self.csum_raw), 16),
            (u64::from(self.hash), 32),
            (u64::from(self.hash_type), 3),
            (u64::from(self.channel), 4),
            (u64::from(self.drop), 1),
            (u64::from(self.seg_count), 8),
            (u64::from(self.seg_size), 16),
            (u64::from(self.arrival), 32),
        ])
    }

    /// What a port shows.
    pub fn from_words(words: [u32; 4]) -> Self {
        let mut fields = Unpacked::new(words);
        let arrival = fields.take(32) as u32;
        let seg_size = fields.take(16) as u16;
        let seg_count = fields.take(8) as u8;
        let drop = fields.take(1) != 0;
        let channel = fields.take(4) as u8;
        let hash_type = fields.take(3) as u8;
        let hash = fields.take(32) as u32;
        let csum_raw = fields.take(16) as u16;
        let csum_status = fields.take(3) as u8;
        let error = fields.take(1) != 0;
        RxUser { error, csum_status, csum_raw, hash, hash_type, channel, drop, seg_count, seg_size, arrival }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_from_where_they_were_put() {
        let tx = TxUser {
            channel: 9,
            seg: SegmentMode::Udp,
            seg_size: 1_448,
            hdr_len: 74,
            l3_start: 18,
            ipv6: true,
            ip_csum: false,
            csum: 1,
            csum_init: 0xbeef,
            csum_begin: 34,
            csum_insert: 50,
        };
        assert_eq!(TxUser::from_words(tx.to_words()), tx);
        assert_eq!(tx.to_words()[3], 0, "90 bits");
        assert_eq!(tx.to_words()[2] >> 22, 9, "the first field lies highest");
        let rx = RxUser {
            error: true,
            csum_status: 6,
            csum_raw: 0x1234,
            hash: 0xdead_beef,
            hash_type: 5,
            channel: 3,
            drop: true,
            seg_count: 44,
            seg_size: 1_460,
            arrival: 0x8000_0001,
        };
        assert_eq!(RxUser::from_words(rx.to_words()), rx);
        assert_eq!(rx.to_words()[3] >> 19, 1, "116 bits, the first field highest");
    }
}
