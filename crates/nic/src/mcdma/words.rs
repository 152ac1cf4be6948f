//! App words: what a packet to transmit asks for, and what was found out about a received one.
//!
//! Five words of a descriptor: in the first of a packet that is transmitted, in the last of one that is received. Subsystems with the same engine differ in
//! where they have what; [`AppWords`] says which one it is.

use crate::device::Capabilities;
use crate::mcdma::regs::{axienet_rx, axienet_tx, seed_rx, seed_tx};
use crate::meta::{ChecksumRequest, ChecksumStatus, RxMeta, Segmentation};

/// Whose app words they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AppWords {
    /// Those of the 10G Ethernet subsystem with a checksum engine in programmable logic: transmit App1 to App3, receive App3 and
    /// App4. The words that it leaves free hold segmentation and, on receive, hash and coalescing.
    #[default]
    TenGig,
    /// Those of AXI Ethernet (PG138): transmit App0 to App2, receive App2 and App3.
    AxiEthernet,
}

/// Where the pseudo-header's sum is when hardware begins to sum.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Seeding {
    /// In the checksum field of the packet, where the stack (as Linux) has put it.
    #[default]
    Field,
    /// In an app word; the field of the packet is zero.
    Word,
}

/// What a packet to transmit asks of the hardware.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Request {
    /// Where to sum and where to put the complement.
    pub checksum: Option<ChecksumRequest>,
    /// What the sum begins with.
    pub seed: u16,
    /// How to split it.
    pub segmentation: Segmentation,
    /// Bytes of all headers, where it is to be split.
    pub header_len: u8,
    /// Where the IP header begins, where it is to be split.
    pub ip_start: u8,
}

impl Request {
    /// The five app words.
    pub fn encode(&self, words: AppWords) -> [u32; 5] {
        match words {
            AppWords::TenGig => self.encode_ten_gig(),
            AppWords::AxiEthernet => self.encode_axi_ethernet(),
        }
    }

    fn encode_ten_gig(&self) -> [u32; 5] {
        use seed_tx as tx;
        let (begin, insert) = self.range();
        let split = match self.segmentation {
            Segmentation::None => 0,
            Segmentation::Tcp4(_) => tx::APP0_SEG_TCP << tx::APP0_SEG_SHIFT,
            Segmentation::Tcp6(_) => tx::APP0_SEG_TCP << tx::APP0_SEG_SHIFT | tx::APP0_IPV6,
        };
        let headers = u32::from(self.header_len) << tx::APP0_HDR_LEN_SHIFT
            | u32::from(self.ip_start) << tx::APP0_L3_START_SHIFT;
        let sum = if self.checksum.is_some() { tx::APP1_CSUM_PARTIAL } else { tx::APP1_CSUM_NONE };
        let size = u32::from(self.segmentation.segment_size()) << tx::APP1_SEG_SIZE_SHIFT;
        [
            split | headers,
            sum << tx::APP1_CSUM_SHIFT | size,
            u32::from(self.seed) << tx::APP2_CSUM_INIT_SHIFT,
            begin << tx::APP3_CSUM_BEGIN_SHIFT | insert << tx::APP3_CSUM_INSERT_SHIFT,
            0,
        ]
    }

    fn encode_axi_ethernet(&self) -> [u32; 5] {
        use axienet_tx as tx;
        let (begin, insert) = self.range();
        let split = match self.segmentation {
            Segmentation::None => 0,
            Segmentation::Tcp4(_) => tx::APP4_SEG_TCP << tx::APP4_SEG_SHIFT,
            Segmentation::Tcp6(_) => tx::APP4_SEG_TCP << tx::APP4_SEG_SHIFT | tx::APP4_IPV6,
        };
        let sum = if self.checksum.is_some() { tx::APP0_CSUM_PARTIAL } else { tx::APP0_CSUM_NONE };
        [
            sum << tx::APP0_CSUM_SHIFT,
            begin << tx::APP1_CSUM_BEGIN_SHIFT | insert << tx::APP1_CSUM_INSERT_SHIFT,
            u32::from(self.seed) << tx::APP2_CSUM_INIT_SHIFT,
            u32::from(self.ip_start) << tx::APP3_L3_START_SHIFT
                | u32::from(self.header_len) << tx::APP3_HDR_LEN_SHIFT
                | u32::from(self.segmentation.segment_size()) << tx::APP3_SEG_SIZE_SHIFT,
            split,
        ]
    }

    /// First byte summed, and where the field lies.
    fn range(&self) -> (u32, u32) {
        self.checksum.map_or((0, 0), |request| {
            (u32::from(request.start), u32::from(request.start) + u32::from(request.offset))
        })
    }
}

/// What the hardware found out about a received frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Of the checksums.
    pub checksum: ChecksumStatus,
    /// Sum over the frame from its 15th byte on; not asked for where the hardware says what the checksums are.
    pub raw_sum: Option<u16>,
    /// Toeplitz hash, if it took one.
    pub rss_hash: Option<u32>,
    /// Payload bytes of each segment where several were joined; else 0.
    pub segment_size: u16,
    /// The MAC says that it is not as it was sent.
    pub is_damaged: bool,
}

impl Report {
    /// From those of the five app words that matter: `load` reads one, which takes long.
    pub fn load(words: AppWords, load: impl Fn(u64) -> u32) -> Self {
        // Both have these at the same place.
        use seed_rx as rx;
        const _: () = assert!(rx::APP1_SEG_SIZE == axienet_rx::APP1_SEG_SIZE);
        const _: () = assert!(rx::APP1_HASH_TYPE == axienet_rx::APP1_HASH_TYPE);
        const _: () = assert!(rx::APP3_CSUM_RAW == axienet_rx::APP3_CSUM_RAW);
        let status = match words {
            AppWords::TenGig => load(4) >> rx::APP4_CSUM_STATUS_SHIFT,
            AppWords::AxiEthernet => load(2) >> axienet_rx::APP2_CSUM_STATUS_SHIFT,
        };
        let checksum = checksum_status(status);
        let about = load(1);
        let is_hashed = about & rx::APP1_HASH_TYPE != 0;
        let segments = (about & rx::APP1_SEG_COUNT) >> rx::APP1_SEG_COUNT_SHIFT;
        let is_unchecked = checksum == ChecksumStatus::Unchecked;
        Report {
            checksum,
            raw_sum: is_unchecked.then(|| (load(3) & rx::APP3_CSUM_RAW) as u16),
            rss_hash: is_hashed.then(|| load(0)),
            segment_size: if segments > 1 { (about >> rx::APP1_SEG_SIZE_SHIFT) as u16 } else { 0 },
            is_damaged: about & rx::APP1_ERROR != 0,
        }
    }

    /// The same as the stack has it. What is switched off is as if it had not been looked at; a sum over frames that were
    /// joined is the sum of none of them.
    pub fn meta(&self, enabled: Capabilities, queue: u16) -> RxMeta {
        let is_joined = self.segment_size != 0;
        let checksum =
            if enabled.rx_checksum || is_joined { self.checksum } else { ChecksumStatus::Unchecked };
        let raw_sum = self.raw_sum.filter(|_| enabled.rx_checksum && !is_joined);
        let (rss_hash, segment_size) = (self.rss_hash, self.segment_size);
        RxMeta { checksum, raw_sum, rss_hash, queue, segment_size, timestamp: None }
    }
}

/// The meaning of the three bits of the status. What was not checked in full counts as not checked: software looks again.
pub fn checksum_status(code: u32) -> ChecksumStatus {
    match code & 0b111 {
        // Nothing; IP good, but layer 4 not looked at; reserved.
        0b000 | 0b001 | 0b100 => ChecksumStatus::Unchecked,
        // IP and TCP good; IP and UDP good.
        0b010 | 0b011 => ChecksumStatus::Good,
        // IP bad; IP good and TCP bad; IP good and UDP bad.
        _ => ChecksumStatus::Bad,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(words: AppWords, app: [u32; 5]) -> Report {
        Report::load(words, |at| app[at as usize])
    }

    #[test]
    fn every_checksum_status_has_its_meaning() {
        use ChecksumStatus::{Bad, Good, Unchecked};
        let expected = [Unchecked, Unchecked, Good, Good, Unchecked, Bad, Bad, Bad];
        for (code, expected) in (0..).zip(expected) {
            assert_eq!(checksum_status(code), expected, "{code:03b}");
            assert_eq!(checksum_status(0xFFFF_FFF8 | code), expected, "other bits do not count");
            // RX_CS_STS in App4[2:0]; RxFullCsumStatus in App2[5:3].
            let ten_gig = decode(AppWords::TenGig, [0, 0, 0, 0xABCD_1234, 0xFFFF_FFF8 | code]);
            let axi = decode(AppWords::AxiEthernet, [0, 0, !0o70 | code << 3, 0xABCD_1234, 0]);
            let raw_sum = (expected == Unchecked).then_some(0x1234);
            let report = Report { checksum: expected, raw_sum, ..Report::default() };
            assert_eq!((ten_gig, axi), (report, report));
        }
    }

    #[test]
    fn requests_are_laid_out_as_the_manuals_say() {
        let checksum = Some(ChecksumRequest { start: 34, offset: 16 });
        let plain = Request { checksum, ..Request::default() };
        // TxCsumCntrl in App1[11:10], TxCsBegin in App3[15:0], TxCsInsert in App3[31:16].
        assert_eq!(plain.encode(AppWords::TenGig), [0, 0x400, 0, 50 << 16 | 34, 0]);
        // App0[1:0], App1 with begin above.
        assert_eq!(plain.encode(AppWords::AxiEthernet), [1, 34 << 16 | 50, 0, 0, 0]);
        let seeded = Request { seed: 0xBEEF, ..plain };
        assert_eq!(seeded.encode(AppWords::TenGig)[2], 0xBEEF);
        assert_eq!(seeded.encode(AppWords::AxiEthernet)[2], 0xBEEF);
        let segmentation = Segmentation::Tcp6(1_428);
        let split = Request { segmentation, header_len: 86, ip_start: 14, ..plain };
        assert_eq!(
            split.encode(AppWords::TenGig),
            [14 << 16 | 86 << 8 | 5, 1_428 << 16 | 0x400, 0, 50 << 16 | 34, 0]
        );
        assert_eq!(split.encode(AppWords::AxiEthernet), [1, 34 << 16 | 50, 0, 1_428 << 16 | 86 << 8 | 14, 5]);
        for words in [AppWords::TenGig, AppWords::AxiEthernet] {
            assert_eq!(Request::default().encode(words), [0; 5]);
        }
    }

    #[test]
    fn a_joined_frame_has_no_sum_and_keeps_its_status() {
        // Hash of TCP over IPv4, three segments of 1,448 bytes.
        let app = [0x51CC_C178, 1_448 << 16 | 3 << 8 | 2, 0, 0x9999, 2];
        let report = decode(AppWords::TenGig, app);
        assert_eq!((report.rss_hash, report.segment_size), (Some(0x51CC_C178), 1_448));
        let meta = report.meta(Capabilities::NONE, 3);
        assert_eq!((meta.checksum, meta.raw_sum, meta.queue), (ChecksumStatus::Good, None, 3));
        let alone = decode(AppWords::TenGig, [0, 1 << 8, 0, 0x9999, 2]);
        let meta = alone.meta(Capabilities::NONE, 0);
        assert_eq!((meta.checksum, meta.raw_sum, meta.rss_hash), (ChecksumStatus::Unchecked, None, None));
        let meta = alone.meta(Capabilities::ALL, 0);
        assert_eq!((meta.checksum, meta.raw_sum), (ChecksumStatus::Good, None));
        let unknown = decode(AppWords::TenGig, [0, 1 << 8, 0, 0x9999, 0]).meta(Capabilities::ALL, 0);
        assert_eq!((unknown.checksum, unknown.raw_sum), (ChecksumStatus::Unchecked, Some(0x9999)));
        let with_size = decode(AppWords::TenGig, [0, 1_448 << 16 | 1 << 8, 0, 0, 2]);
        assert_eq!(with_size.segment_size, 0, "a frame of its own, whatever its size");
        assert!(decode(AppWords::AxiEthernet, [0, 8, 0, 0, 0]).is_damaged);
    }
}
