//! Header prediction (Jacobson 1990): segments of one connection come in rows, and the headers of the next differ from those of
//! the last in a few known fields. Where all else is equal, nothing of it is looked at again: not the addresses, not the options,
//! not the table of connections.

use crate::tcp::Head;
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
const DATA_OFFSET: usize = 12;
const VERSION_AND_LEN: u8 = 0x45;
/// Headers of TCP without options, and with timestamps alone, in words of four bytes; and the latter in bytes.
const BARE: u8 = 5;
const STAMPED: u8 = 8;
const STAMPED_LEN: usize = 32;

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
    /// The header of TCP has timestamps and nothing else among its options; otherwise it has none.
    is_stamped: bool,
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
    pub(crate) head: Head,
}

/// An acknowledgement that waits for the end of its batch.
pub(crate) struct HeldAck {
    pub(crate) slot: u32,
    pub(crate) head: Head,
    /// What was sent when it came: later ones acknowledge no more.
    pub(crate) sent: SeqNumber,
    /// Those that it stands for beside itself.
    pub(crate) joined: u64,
}

impl HeldAck {
    /// Whether a later one says more, and all else that may join them depends on is as it was.
    #[inline]
    pub(crate) fn goes_on(&self, slot: u32, head: &Head) -> bool {
        self.slot == slot
            && head.seq == self.head.seq
            && head.timestamps == self.head.timestamps
            && head.ack.gt(self.head.ack)
            && !head.ack.gt(self.sent)
    }
}

/// A segment that was taken as expected, of a connection of which the rest is left for later.
pub(crate) struct Before {
    pub(crate) slot: u32,
    pub(crate) head: Head,
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
        let len = frame.get(tcp + DATA_OFFSET).map_or(0, |offset| offset >> 4);
        self.is_stamped = len == STAMPED;
        let is_plain = flags == Some(Flags::ACK) && (len == BARE || self.is_stamped);
        self.is_open = known && is_plain && ecn != Ecn::Congested;
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
        const V4: (usize, usize) = (HEADER_LEN + 2, HEADER_LEN);
        const V6: (usize, usize) = (HEADER_LEN + 4, TCP6);
        let (payload, head) = match (self.is_v4, self.is_stamped) {
            (true, true) => self.fields::<WORDS4, { TCP4 + STAMPED_LEN }>(bytes, &MASK4, TCP4, V4),
            (true, false) => self.fields::<WORDS4, { TCP4 + MIN_HEADER_LEN }>(bytes, &MASK4, TCP4, V4),
            (false, true) => self.fields::<WORDS6, { TCP6 + STAMPED_LEN }>(bytes, &MASK6, TCP6, V6),
            (false, false) => self.fields::<WORDS6, { TCP6 + MIN_HEADER_LEN }>(bytes, &MASK6, TCP6, V6),
        }?;
        Some(Predicted { slot, is_v4: self.is_v4, payload, head })
    }

    /// From where to where the payload lies, and what is told. All headers are `LEN` bytes; the length at `len_at` counts from
    /// `from` on. That the header of TCP is as long as predicted is among what is compared.
    #[inline]
    fn fields<const WORDS: usize, const LEN: usize>(
        &self,
        bytes: &[u8],
        mask: &[u64; WORDS],
        tcp: usize,
        (len_at, from): (usize, usize),
    ) -> Option<((usize, usize), Head)> {
        // Looked at once whether they are there: all places in them are known to the compiler.
        let headers: &[u8; LEN] = bytes.first_chunk()?;
        if !equals(headers, mask, &self.head) {
            return None;
        }
        let word =
            |at: usize| u32::from_be_bytes([headers[at], headers[at + 1], headers[at + 2], headers[at + 3]]);
        let half = |at: usize| u16::from_be_bytes([headers[at], headers[at + 1]]);
        let timestamps = match LEN - tcp == STAMPED_LEN {
            true => Some(Timestamps::alone(&headers[tcp + MIN_HEADER_LEN..])?),
            false => None,
        };
        let head = Head {
            seq: SeqNumber(word(tcp + 4)),
            ack: SeqNumber(word(tcp + 8)),
            flags: Flags(headers[tcp + FLAGS]),
            window: half(tcp + 14),
            timestamps,
        };
        let end = from + usize::from(half(len_at));
        (LEN <= end && end <= bytes.len()).then_some(((LEN, end), head))
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

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use linerate_nic::{Pool, RxMeta};
    use linerate_wire::ip::Protocol;
    use linerate_wire::tcp::{Builder, Options};

    fn frame(is_v4: bool, has_timestamps: bool) -> Vec<u8> {
        let timestamps = has_timestamps.then_some(Timestamps { value: 7, echo: 9 });
        let segment = Builder {
            source_port: 4_000,
            destination_port: 80,
            flags: Flags::ACK,
            window: 500,
            options: Options { timestamps, ..Options::default() },
            ..Builder::default()
        };
        let ip = if is_v4 { ipv4::MIN_HEADER_LEN } else { ipv6::HEADER_LEN };
        let tcp = HEADER_LEN + ip;
        let mut bytes = vec![0; tcp + segment.header_len() + 100];
        let len = segment.header_len() + 100;
        segment.emit(&mut bytes[tcp..]).unwrap();
        if is_v4 {
            let header = ipv4::Builder::new([10, 0, 0, 9].into(), [10, 0, 0, 1].into(), Protocol::TCP, len);
            header.emit(&mut bytes[HEADER_LEN..]).unwrap();
        } else {
            let header = ipv6::Builder::new(9.into(), 1.into(), Protocol::TCP, len);
            header.emit(&mut bytes[HEADER_LEN..]).unwrap();
        }
        bytes
    }

    fn read(prediction: &Prediction, bytes: &[u8], addresses: u32) -> Option<Predicted> {
        let mut buffer = Pool::new(1, 2_048).take().unwrap();
        buffer.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        let meta = RxMeta { checksum: ChecksumStatus::Good, ..RxMeta::default() };
        prediction.read(&Frame::new(buffer.freeze(0..bytes.len()), meta), addresses)
    }

    fn predicting(bytes: &[u8]) -> Prediction {
        let mut prediction = Prediction::default();
        prediction.begin(bytes, Ecn::NotCapable, 1);
        prediction.confirm(5);
        prediction.end();
        prediction
    }

    #[test]
    fn what_differs_in_a_byte_that_tells_something_is_not_predicted() {
        for (is_v4, has_timestamps) in [(true, true), (true, false), (false, true), (false, false)] {
            let bytes = frame(is_v4, has_timestamps);
            let prediction = predicting(&bytes);
            let tcp = if is_v4 { TCP4 } else { TCP6 };
            let options = tcp + MIN_HEADER_LEN..tcp + MIN_HEADER_LEN + 4;
            for at in 0..bytes.len() {
                let mut other = bytes.clone();
                other[at] ^= 0x40;
                let numbers = tcp + 4..tcp + 12;
                let behind_flags = tcp + 14..bytes.len();
                let ip = if is_v4 { [16..20, 24..26] } else { [18..20, 20..20] };
                let may_differ = numbers.contains(&at)
                    || ip.iter().any(|range| range.contains(&at))
                    || behind_flags.contains(&at) && !(has_timestamps && options.contains(&at));
                // A length with this bit is beyond the frame, or within the headers.
                let is_length = if is_v4 { 16..18 } else { 18..20 };
                let found = read(&prediction, &other, 1);
                if is_length.contains(&at) {
                    assert!(found.is_none_or(|found| found.payload.1 <= bytes.len()), "{at}");
                } else {
                    assert_eq!(found.is_some(), may_differ, "byte {at}, IPv4: {is_v4}");
                }
            }
        }
    }

    #[test]
    fn fields_are_read_and_padding_is_left_out() {
        for is_v4 in [true, false] {
            let mut bytes = frame(is_v4, true);
            let prediction = predicting(&bytes);
            let tcp = if is_v4 { TCP4 } else { TCP6 };
            bytes[tcp + 4..tcp + 16].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8, 0x80, 0x18, 9, 10]);
            bytes.extend([0xee; 9]);
            let found = read(&prediction, &bytes, 1).unwrap();
            assert_eq!((found.slot, found.is_v4), (5, is_v4));
            assert_eq!(found.payload, (tcp + 32, tcp + 132));
            let segment = &found.head;
            assert_eq!((segment.seq, segment.ack), (SeqNumber(0x0102_0304), SeqNumber(0x0506_0708)));
            assert_eq!((segment.flags, segment.window), (Flags::ACK | Flags::PSH, 0x090a));
            assert_eq!(segment.timestamps, Some(Timestamps { value: 7, echo: 9 }));
        }
    }

    #[test]
    fn nothing_is_predicted_before_a_segment_was_taken_nor_after_its_connection() {
        let bytes = frame(true, true);
        let mut prediction = Prediction::default();
        prediction.begin(&bytes, Ecn::NotCapable, 1);
        prediction.end();
        prediction.confirm(5);
        assert!(read(&prediction, &bytes, 1).is_none(), "not taken for a connection");
        prediction = predicting(&bytes);
        assert!(read(&prediction, &bytes, 2).is_none(), "other addresses are ours");
        assert!(read(&prediction, &bytes[..TCP4 + 8], 1).is_none(), "cut short");
        prediction.forget(4);
        assert!(read(&prediction, &bytes, 1).is_some());
        prediction.forget(5);
        assert!(read(&prediction, &bytes, 1).is_none());
        prediction.begin(&bytes, Ecn::Congested, 1);
        prediction.confirm(5);
        assert!(read(&prediction, &bytes, 1).is_none(), "each mark is to be told of");
    }
}
