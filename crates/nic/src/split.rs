//! TCP segmentation in software: one super-segment becomes many frames that share its payload.

use crate::checksum::{self, set_ipv4_checksum};
use crate::device::Capabilities;
use crate::layers::{self, Version, put, u16_at};
use crate::meta::{ChecksumRequest, Segmentation, TxMeta, TxToken};
use crate::offload::segment::{Fields, Kind, Part, pseudo_of_segment};
use crate::tx::{TxPacket, TxQueue};
use linerate_wire::checksum::update;
use linerate_wire::ip::Protocol;
use linerate_wire::{ipv4, tcp};

/// Bytes from the header of IPv4 without options to the end of the sequence number behind it.
const USUAL: usize = ipv4::MIN_HEADER_LEN + 8;

/// Why a packet cannot be split.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SplitError {
    /// Its headers are not those that its meta data speak of.
    Headers,
    /// It asks for segments of no bytes, or carries none.
    Size,
}

/// What one call of [`Splitter::run`] made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Made {
    pub segments: u64,
    /// Those whose checksum it filled in.
    pub summed: u64,
    /// Their bytes, headers included.
    pub bytes: u64,
}

/// Splits one super-segment at a time, and goes on where it was when the output queue has room again.
#[derive(Debug)]
pub(crate) struct Splitter {
    /// The super-segment; its headers are those of the segment that was made last.
    packet: TxPacket,
    /// What changes in its headers.
    fields: Fields,
    request: ChecksumRequest,
    /// Payload bytes per segment; 0 while there is nothing to split.
    size: usize,
    /// Payload bytes that have been put into segments.
    done: usize,
    segments: u16,
    /// The segment made last was full and had the flags of all: such differ in number and sequence number alone.
    is_usual: bool,
    /// Where the next segment's payload begins in the gather list.
    chunk: usize,
    chunk_offset: usize,
    /// The sum of the whole super-segment's pseudo-header.
    pseudo: u16,
}

impl Splitter {
    /// A splitter without a packet.
    pub fn new() -> Self {
        Splitter {
            packet: TxPacket::new(),
            fields: Fields::of(&[], Version::V4, Kind::Tcp, 0, 0),
            request: ChecksumRequest { start: 0, offset: 0 },
            size: 0,
            done: 0,
            segments: 0,
            is_usual: false,
            chunk: 0,
            chunk_offset: 0,
            pseudo: 0,
        }
    }

    /// Whether there are segments left to be made.
    pub fn is_busy(&self) -> bool {
        self.size > 0
    }

    /// Takes over the contents of `packet` to split them. Must not be busy. On error `packet` keeps them.
    pub fn begin(&mut self, packet: &mut TxPacket) -> Result<(), SplitError> {
        debug_assert!(!self.is_busy(), "begin while busy");
        let meta = packet.meta;
        let header = packet.header();
        let request = meta.checksum.ok_or(SplitError::Headers)?;
        let layers = layers::parse(header, packet.len()).ok_or(SplitError::Headers)?;
        let version = match meta.segmentation {
            Segmentation::None => return Err(SplitError::Size),
            Segmentation::Tcp4(_) => Version::V4,
            Segmentation::Tcp6(_) => Version::V6,
        };
        let tcp = layers.layer4;
        let as_told = layers.version == version
            && layers.protocol == Protocol::TCP
            && !layers.fragment
            && layers.end == packet.len()
            && usize::from(meta.header_len) == header.len()
            && usize::from(request.start) == tcp
            && usize::from(request.offset) == tcp::CHECKSUM_OFFSET;
        let data_offset = header.get(tcp + 12).map_or(0, |byte| usize::from(byte >> 4) * 4);
        if !as_told || data_offset < tcp::MIN_HEADER_LEN || tcp + data_offset != header.len() {
            return Err(SplitError::Headers);
        }
        let size = usize::from(meta.segmentation.segment_size());
        if size == 0 || packet.payload_len() == 0 {
            return Err(SplitError::Size);
        }
        // The field holds the pseudo-header's sum with the whole length in it.
        self.pseudo = u16_at(header, tcp + tcp::CHECKSUM_OFFSET).unwrap_or(0);
        self.fields = Fields::of(header, version, Kind::Tcp, layers.ip, tcp);
        (self.request, self.size) = (request, size);
        (self.done, self.segments, self.chunk, self.chunk_offset) = (0, 0, 0, 0);
        self.is_usual = false;
        self.packet.swap(packet);
        Ok(())
    }

    /// Makes segments until `out` is full or all are made, summing those whose checksum `enabled` does not cover.
    pub fn run(&mut self, out: &mut TxQueue, enabled: Capabilities) -> Made {
        let mut made = Made::default();
        while self.is_busy() {
            let Some(segment) = out.vacant() else { break };
            let last = self.segment(segment);
            let by_device = match self.fields.version {
                Version::V4 => enabled.tx_checksum4,
                Version::V6 => enabled.tx_checksum6,
            };
            if !by_device {
                checksum::fill_packet(segment);
                made.summed += 1;
            }
            made.bytes += segment.len() as u64;
            made.segments += 1;
            out.commit();
            if last {
                self.packet.clear();
                self.size = 0;
            }
        }
        made
    }

    /// Fills `segment` with the next one; returns whether it is the last.
    fn segment(&mut self, segment: &mut TxPacket) -> bool {
        let len = self.size.min(self.packet.payload_len() - self.done);
        let last = self.done + len == self.packet.payload_len();
        let part = Part { index: self.segments, done: self.done, len, last };
        let is_usual = len == self.size && !self.fields.marks(part);
        if core::mem::replace(&mut self.is_usual, is_usual) && is_usual {
            self.number_header(part);
        } else {
            self.make_header(part);
        }
        segment.copy_header(&self.packet);
        segment.meta = TxMeta {
            checksum: Some(self.request),
            segmentation: Segmentation::None,
            header_len: self.packet.meta.header_len,
            token: if last { self.packet.meta.token } else { TxToken(0) },
        };
        self.payload(segment, len);
        self.done += len;
        self.segments = self.segments.wrapping_add(1);
        last
    }

    /// Turns the headers into those of the next segment.
    fn make_header(&mut self, part: Part) {
        let payload = self.packet.payload_len();
        let header = self.packet.header_bytes_mut();
        let Fields { version, ip, layer4: tcp, .. } = self.fields;
        let layer4_header = header.len() - tcp;
        self.fields.rewrite(header, part);
        if version == Version::V4 {
            set_ipv4_checksum(header, ip, tcp);
        }
        let pseudo = pseudo_of_segment(self.pseudo, layer4_header + payload, layer4_header + part.len);
        put(header, tcp + tcp::CHECKSUM_OFFSET, &pseudo.folded().to_be_bytes());
    }

    /// The same where the segment before it was as long and had the same flags.
    fn number_header(&mut self, part: Part) {
        let Fields { version, ip, layer4, .. } = self.fields;
        let header = self.packet.header_bytes_mut();
        let (ident, sequence) = self.fields.numbers(part);
        let ip_header = header.get_mut(ip..).and_then(|ip| ip.first_chunk_mut::<USUAL>());
        if let (Version::V4, Some(fields)) = (version, ip_header) {
            let sum = u16::from_be_bytes([fields[10], fields[11]]);
            let sum = update(sum, u16::from_be_bytes([fields[4], fields[5]]), ident);
            [fields[4], fields[5]] = ident.to_be_bytes();
            [fields[10], fields[11]] = sum.to_be_bytes();
            if layer4 == ip + ipv4::MIN_HEADER_LEN {
                [fields[USUAL - 4], fields[USUAL - 3], fields[USUAL - 2], fields[USUAL - 1]] =
                    sequence.to_be_bytes();
                return;
            }
        }
        put(header, layer4 + 4, &sequence.to_be_bytes());
    }

    /// Moves on by `len` bytes in the gather list, appending them to `segment`. They are never more pieces than the
    /// gather list has.
    fn payload(&mut self, segment: &mut TxPacket, mut len: usize) {
        while len > 0 {
            let Some(chunk) = self.packet.chunks().get(self.chunk) else { break };
            let count = len.min(chunk.len() - self.chunk_offset);
            if count > 0 {
                // Cannot fail: the source has no more chunks than fit a packet.
                let pushed = segment.push_chunk(chunk.slice(self.chunk_offset..self.chunk_offset + count));
                debug_assert!(pushed.is_ok(), "no room in the gather list");
            }
            len -= count;
            self.chunk_offset += count;
            if self.chunk_offset == chunk.len() {
                self.chunk += 1;
                self.chunk_offset = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests;
