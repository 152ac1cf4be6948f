//! Header prediction (Jacobson 1990): segments of one connection come in rows, and the headers of the next differ from those of
//! the last in a few known fields. Where all else is equal, nothing of it is looked at again: not the addresses, not the options,
//! not the table of connections.

use crate::tcp::SegmentIn;
use linerate_nic::{ChecksumStatus, Frame};
use linerate_wire::ethernet::HEADER_LEN;
use linerate_wire::ip::Ecn;
use linerate_wire::ipv4;
use linerate_wire::ipv6;
use linerate_wire::tcp::{Flags, MIN_HEADER_LEN, SeqNumber, Timestamps};

/// Where TCP begins behind IPv4 and IPv6.
const TCP4: usize = HEADER_LEN + ipv4::MIN_HEADER_LEN;
const TCP6: usize = HEADER_LEN + ipv6::HEADER_LEN;
/// Words of eight bytes that reach up to the flags.
const WORDS4: usize = 6;
const WORDS6: usize = 9;
const FLAGS: usize = 13;
const VERSION_AND_LEN: u8 = 0x45;

/// Length, identification and checksum may differ; sequence and acknowledgement numbers; PSH.
const MASK4: [u64; WORDS4] = mask([(16, 20), (24, 26), (TCP4 + 4, TCP4 + 12)], TCP4 + FLAGS);
/// Length; sequence and acknowledgement numbers; PSH, and the window behind it.
const MASK6: [u64; WORDS6] = mask([(18, 20), (TCP6 + 4, TCP6 + 12), (TCP6 + 14, TCP6 + 18)], TCP6 + FLAGS);

const fn mask<const N: usize>(holes: [(usize, usize); 3], flags: usize) -> [u64; N] {
    let mut words = [0; N];
    let mut word = 0;
    while word < N {
        let mut bytes = [0xff_u8; 8];
        let mut byte = 0;
        while byte < 8 {
            let at = word * 8 + byte;
            let mut hole = 0;
            while hole < holes.len() {
                if at >= holes[hole].0 && at < holes[hole].1 {
                    bytes[byte] = 0;
                }
                hole += 1;
            }
            if at == flags {
                bytes[byte] = !Flags::PSH.0;
            }
            byte += 1;
        }
        words[word] = u64::from_ne_bytes(bytes);
        word += 1;
    }
    words
}

/// The headers of the last segment that was taken for a connection.
#[derive(Default)]
pub(crate) struct Prediction {
    /// The connection, once its segment was taken.
    slot: Option<u32>,
    /// The addresses that were ours then.
    addresses: u32,
    is_v4: bool,
    head: [u64; WORDS6],
    /// A segment with these headers is being taken.
    is_open: bool,
}

/// A segment that was predicted.
pub(crate) struct Predicted {
    pub(crate) slot: u32,
    pub(crate) is_v4: bool,
    /// From where to where its payload lies in the frame.
    pub(crate) payload: (usize, usize),
    pub(crate) segment: SegmentIn,
}

/// An acknowledgement that waits for the end of its batch.
pub(crate) struct HeldAck {
    pub(crate) slot: u32,
    pub(crate) segment: SegmentIn,
}

impl Prediction {
    /// A segment with these headers is about to be taken; nothing is predicted before it was.
    pub(crate) fn begin(&mut self, frame: &[u8], ecn: Ecn, addresses: u32) {
        self.slot = None;
        self.addresses = addresses;
        self.is_v4 = frame.get(HEADER_LEN) == Some(&VERSION_AND_LEN);
        let known = if self.is_v4 {
            read(frame, &MASK4, &mut self.head)
        } else {
            read(frame, &MASK6, &mut self.head)
        };
        // Nothing but ACK, nothing marked: what else there is to be told is told of each.
        let tcp = if self.is_v4 { TCP4 } else { TCP6 };
        let flags = frame.get(tcp + FLAGS).map(|&flags| Flags(flags).without(Flags::PSH));
        self.is_open = known && flags == Some(Flags::ACK) && ecn != Ecn::Congested;
    }

    /// The segment was taken for the connection in this slot, which is open: more may come.
    pub(crate) fn confirm(&mut self, slot: u32) {
        if self.is_open {
            self.slot = Some(slot);
        }
    }

    /// It was looked at, whatever became of it.
    pub(crate) fn end(&mut self) {
        self.is_open = false;
    }

    /// Nothing leads to the connection in this slot any more.
    pub(crate) fn forget(&mut self, slot: u32) {
        if self.slot == Some(slot) {
            self.slot = None;
        }
    }

    /// The segment in a frame whose headers are the predicted ones.
    #[inline]
    pub(crate) fn read(&self, frame: &Frame, addresses: u32) -> Option<Predicted> {
        let slot = self.slot?;
        let meta = &frame.meta;
        let is_plain =
            meta.checksum == ChecksumStatus::Good && meta.segment_size == 0 && frame.more.is_empty();
        if !is_plain || addresses != self.addresses {
            return None;
        }
        let bytes = frame.data.bytes();
        let (is_it, tcp, len_at, ip) = if self.is_v4 {
            (equals(bytes, &MASK4, &self.head), TCP4, HEADER_LEN + 2, 0)
        } else {
            (equals(bytes, &MASK6, &self.head), TCP6, HEADER_LEN + 4, ipv6::HEADER_LEN)
        };
        if !is_it {
            return None;
        }
        let &[a, b] = bytes.get(len_at..)?.first_chunk()?;
        let end = HEADER_LEN + ip + usize::from(u16::from_be_bytes([a, b]));
        let segment = bytes.get(tcp..end)?;
        let header: &[u8; MIN_HEADER_LEN] = segment.first_chunk()?;
        let header_len = usize::from(header[12] >> 4) * 4;
        let options = segment.get(MIN_HEADER_LEN..header_len)?;
        let mut taken = SegmentIn {
            seq: SeqNumber(u32::from_be_bytes([header[4], header[5], header[6], header[7]])),
            ack: SeqNumber(u32::from_be_bytes([header[8], header[9], header[10], header[11]])),
            flags: Flags(header[FLAGS]),
            window: u16::from_be_bytes([header[14], header[15]]),
            ..SegmentIn::default()
        };
        if !options.is_empty() {
            taken.options.timestamps = Some(Timestamps::alone(options)?);
        }
        Some(Predicted { slot, is_v4: self.is_v4, payload: (tcp + header_len, end), segment: taken })
    }
}

/// Copies what is masked; false if the frame is too short.
fn read<const N: usize>(frame: &[u8], mask: &[u64; N], head: &mut [u64]) -> bool {
    let Some(frame) = frame.get(..N * 8) else { return false };
    for ((word, mask), bytes) in head.iter_mut().zip(mask).zip(frame.chunks_exact(8)) {
        *word = word_of(bytes) & mask;
    }
    true
}

#[inline]
fn equals<const N: usize>(frame: &[u8], mask: &[u64; N], head: &[u64]) -> bool {
    let Some(frame) = frame.get(..N * 8) else { return false };
    let mut differs = 0;
    for ((word, mask), bytes) in head.iter().zip(mask).zip(frame.chunks_exact(8)) {
        differs |= (word_of(bytes) & mask) ^ word;
    }
    differs == 0
}

#[inline]
fn word_of(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}
