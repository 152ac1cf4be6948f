//! App words as the hardware reads and writes them, after `rtl/regs/mcdma.toml` and with no code of the driver's.

use super::{checksum, split};
use linerate_nic::mcdma::AppWords;

/// What a packet asks for.
pub struct Asked {
    is_summed: bool,
    seed: u16,
    begin: usize,
    insert: usize,
    /// Payload bytes of a segment, bytes of headers, where IP begins, and whether that is IPv6.
    split: Option<(usize, usize, usize, bool)>,
}

impl Asked {
    pub fn read(words: AppWords, app: [u32; 5]) -> Asked {
        let field = |word: usize, low: u32, bits: u32| (app[word] >> low & ((1 << bits) - 1)) as usize;
        let (control, begin, insert, sizes) = match words {
            AppWords::TenGig => (
                field(1, 10, 2),
                field(3, 0, 16),
                field(3, 16, 16),
                [field(0, 0, 2), field(1, 16, 16), field(0, 8, 8), field(0, 16, 8), field(0, 2, 1)],
            ),
            AppWords::AxiEthernet => (
                field(0, 0, 2),
                field(1, 16, 16),
                field(1, 0, 16),
                [field(4, 0, 2), field(3, 16, 16), field(3, 8, 8), field(3, 0, 8), field(4, 2, 1)],
            ),
        };
        let [kind, size, headers, ip, v6] = sizes;
        // What cannot be passes unchanged.
        let can_split = kind == 1 && control == 1 && size > 0 && (54..=128).contains(&headers);
        Asked {
            is_summed: control == 1,
            seed: app[2] as u16,
            begin,
            insert,
            split: can_split.then_some((size, headers, ip, v6 == 1)),
        }
    }

    /// The frames that leave, their checksums not filled in yet.
    pub fn split(&self, frame: Vec<u8>) -> Vec<(Vec<u8>, u16)> {
        match self.split {
            None => vec![(frame, self.seed)],
            Some((size, headers, ip, is_v6)) => split::split(&frame, size, headers, ip, is_v6)
                .into_iter()
                .map(|(segment, change)| (segment, checksum::add(self.seed, change)))
                .collect(),
        }
    }

    pub fn fill_in(&self, frame: &mut [u8], seed: u16, lies: bool) {
        if self.is_summed {
            checksum::insert(frame, seed, self.begin, self.insert, lies);
        }
    }
}

/// What was found out about a received frame.
pub struct Found {
    pub status: u32,
    pub raw_sum: u16,
    pub segments: u32,
    pub segment_size: u32,
    pub queue: u32,
    hash: Option<(u32, u32)>,
}

impl Found {
    pub fn of(frame: &[u8], key: &[u8; 40], verifies: bool, lies: bool) -> Found {
        let status = if lies { 0b010 } else { checksum::status(frame) };
        Found {
            status: if verifies { status } else { 0 },
            raw_sum: checksum::raw_sum(frame),
            segments: 1,
            segment_size: 0,
            queue: 0,
            hash: super::mac::hash(frame, key),
        }
    }

    pub fn write(&self, words: AppWords) -> [u32; 5] {
        let (hash, kind) = self.hash.unwrap_or((0, 0));
        let app1 = self.segment_size << 16 | self.segments << 8 | self.queue << 4 | kind;
        let raw = u32::from(self.raw_sum);
        match words {
            AppWords::TenGig => [hash, app1, 0, raw, self.status],
            AppWords::AxiEthernet => [hash, app1, self.status << 3, raw, 0],
        }
    }
}
