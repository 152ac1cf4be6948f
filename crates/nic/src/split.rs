//! TCP segmentation in software: one super-segment becomes many frames that share its payload.

use crate::checksum;
use crate::device::Capabilities;
use crate::layers::{self, Version, put, u16_at, u32_at};
use crate::meta::{ChecksumRequest, Segmentation, TxMeta, TxToken};
use crate::tx::{TxPacket, TxQueue};
use linerate_wire::checksum::Sum;
use linerate_wire::ip::Protocol;
use linerate_wire::tcp::{self, Flags};

/// Why a packet cannot be split.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SplitError {
    /// Its headers are not those that its meta data speak of.
    Headers,
    /// It asks for segments of no bytes, or carries none.
    Size,
}

/// Splits one super-segment at a time, and goes on where it was when the output queue has room again.
#[derive(Debug)]
pub(crate) struct Splitter {
    packet: TxPacket,
    version: Version,
    ip: usize,
    request: ChecksumRequest,
    /// Payload bytes per segment; 0 while there is nothing to split.
    size: usize,
    /// Payload bytes that have been put into segments.
    done: usize,
    segments: u16,
    /// Where the next segment's payload begins in the gather list.
    chunk: usize,
    chunk_offset: usize,
    // The super-segment's fields that change from segment to segment.
    sequence: u32,
    ident: u16,
    flags: Flags,
    pseudo: Sum,
}

impl Splitter {
    /// A splitter without a packet.
    pub fn new() -> Self {
        Splitter {
            packet: TxPacket::new(),
            version: Version::V4,
            ip: 0,
            request: ChecksumRequest { start: 0, offset: 0 },
            size: 0,
            done: 0,
            segments: 0,
            chunk: 0,
            chunk_offset: 0,
            sequence: 0,
            ident: 0,
            flags: Flags::EMPTY,
            pseudo: Sum::ZERO,
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
        // The field holds the pseudo-header's sum with the whole length in it: what is left without that is the same
        // for all segments.
        let partial = u16_at(header, tcp + tcp::CHECKSUM_OFFSET).unwrap_or(0);
        let mut length = Sum::ZERO;
        length.add_u32((packet.len() - tcp) as u32);
        self.pseudo = Sum::from_folded(partial).without_front(length);
        self.sequence = u32_at(header, tcp + 4).unwrap_or(0);
        self.flags = Flags(header.get(tcp + 13).copied().unwrap_or(0));
        self.ident = u16_at(header, layers.ip + 4).unwrap_or(0);
        (self.version, self.ip, self.request, self.size) = (version, layers.ip, request, size);
        (self.done, self.segments, self.chunk, self.chunk_offset) = (0, 0, 0, 0);
        self.packet.swap(packet);
        Ok(())
    }

    /// Makes segments until `out` is full or all are made, summing those whose checksum `enabled` does not cover;
    /// returns how many, and how many of them it summed.
    pub fn run(&mut self, out: &mut TxQueue, enabled: Capabilities) -> (u64, u64) {
        let (mut made, mut summed) = (0, 0);
        while self.is_busy() {
            let Some(segment) = out.vacant() else { break };
            let last = self.segment(segment);
            let by_device = match self.version {
                Version::V4 => enabled.tx_checksum4,
                Version::V6 => enabled.tx_checksum6,
            };
            if !by_device {
                checksum::fill_packet(segment);
                summed += 1;
            }
            out.commit();
            made += 1;
            if last {
                self.packet.clear();
                self.size = 0;
            }
        }
        (made, summed)
    }

    /// Fills `segment` with the next one; returns whether it is the last.
    fn segment(&mut self, segment: &mut TxPacket) -> bool {
        let len = self.size.min(self.packet.payload_len() - self.done);
        let last = self.done + len == self.packet.payload_len();
        let source = self.packet.header();
        let tcp = usize::from(self.request.start);
        let layer4_len = source.len() - tcp + len;
        let header = segment.header_mut(source.len());
        header.copy_from_slice(source);
        match self.version {
            Version::V4 => {
                put(header, self.ip + 2, &((tcp - self.ip + layer4_len) as u16).to_be_bytes());
                put(header, self.ip + 4, &self.ident.wrapping_add(self.segments).to_be_bytes());
                set_ipv4_checksum(header, self.ip, tcp);
            }
            Version::V6 => {
                put(header, self.ip + 4, &((tcp - self.ip - 40 + layer4_len) as u16).to_be_bytes());
            }
        }
        let mut flags = self.flags;
        if !last {
            flags = flags.without(Flags::FIN.union(Flags::PSH));
        }
        if self.segments > 0 {
            flags = flags.without(Flags::CWR);
        }
        put(header, tcp + 4, &self.sequence.wrapping_add(self.done as u32).to_be_bytes());
        put(header, tcp + 13, &[flags.0]);
        let mut pseudo = self.pseudo;
        pseudo.add_u32(layer4_len as u32);
        put(header, tcp + tcp::CHECKSUM_OFFSET, &pseudo.folded().to_be_bytes());
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

/// Writes the checksum of the IPv4 header at `from..to`.
pub(crate) fn set_ipv4_checksum(header: &mut [u8], from: usize, to: usize) {
    put(header, from + 10, &[0, 0]);
    let sum = checksum::sum(header.get(from..to).unwrap_or_default());
    put(header, from + 10, &sum.finish().to_be_bytes());
}

#[cfg(test)]
mod tests;
