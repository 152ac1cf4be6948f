//! Known frames, written field by field: the reference that devices and software are compared with.

use crate::meta::{ChecksumRequest, TxMeta};
use alloc::vec::Vec;
use linerate_wire::checksum::Sum;

/// What lies above IP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Tcp,
    Udp,
    /// An echo request of the IP version.
    Icmp,
}

/// The fields of a frame.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub kind: Kind,
    pub v6: bool,
    /// VLAN tags.
    pub tags: u8,
    /// IPv4 options (a multiple of 4), or IPv6 extension headers whose last one names what follows.
    pub ip_extra: Vec<u8>,
    /// The type of the first extension header.
    pub first_extension: u8,
    pub traffic_class: u8,
    pub ttl: u8,
    pub ident: u16,
    /// IPv4 flags and fragment offset.
    pub fragment: u16,
    pub source_port: u16,
    pub sequence: u32,
    pub acknowledgement: u32,
    pub flags: u8,
    pub window: u16,
    /// TCP options (a multiple of 4).
    pub options: Vec<u8>,
}

impl Default for Plan {
    fn default() -> Self {
        Plan {
            kind: Kind::Tcp,
            v6: false,
            tags: 0,
            ip_extra: Vec::new(),
            first_extension: 0,
            traffic_class: 0,
            ttl: 64,
            ident: 0x1234,
            fragment: 0x4000,
            source_port: 49_204,
            sequence: 0xffff_ff00,
            acknowledgement: 0x0102_0304,
            flags: 0x10,
            window: 0xfaf0,
            options: Vec::new(),
        }
    }
}

const SOURCE: [u8; 16] = [0xfd, 0, 0x6c, 0x72, 0, 0, 0, 0, 0, 0, 0, 0, 192, 168, 1, 11];
const DESTINATION: [u8; 16] = [0xfd, 0, 0x6c, 0x72, 0, 0, 0, 0, 0, 0, 0, 0, 192, 168, 1, 4];

impl Plan {
    /// Where the IP header begins.
    pub fn ip(&self) -> usize {
        14 + 4 * usize::from(self.tags)
    }

    /// Where layer 4 begins.
    pub fn layer4(&self) -> usize {
        self.ip() + if self.v6 { 40 } else { 20 } + self.ip_extra.len()
    }

    /// Where in layer 4 the checksum lies.
    pub fn checksum_offset(&self) -> usize {
        match self.kind {
            Kind::Tcp => 16,
            Kind::Udp => 6,
            Kind::Icmp => 2,
        }
    }

    fn protocol(&self) -> u8 {
        match (self.kind, self.v6) {
            (Kind::Tcp, _) => 6,
            (Kind::Udp, _) => 17,
            (Kind::Icmp, false) => 1,
            (Kind::Icmp, true) => 58,
        }
    }

    /// What to ask of a device that shall fill in the checksum.
    pub fn meta(&self) -> TxMeta {
        let request = ChecksumRequest { start: self.layer4() as u16, offset: self.checksum_offset() as u16 };
        TxMeta {
            checksum: Some(request),
            header_len: self.partial_header(0).len() as u16,
            ..TxMeta::default()
        }
    }

    /// The whole frame with its checksum.
    pub fn frame(&self, payload: &[u8]) -> Vec<u8> {
        let mut frame = self.partial_header(payload.len());
        frame.extend_from_slice(payload);
        let layer4 = self.layer4();
        let mut sum = Sum::ZERO;
        sum.add(&frame[layer4..]);
        let value = if self.kind == Kind::Udp { sum.finish_udp() } else { sum.finish() };
        put16(&mut frame, layer4 + self.checksum_offset(), value);
        frame
    }

    /// All headers, with the pseudo-header's sum in the checksum field.
    pub fn partial_header(&self, payload_len: usize) -> Vec<u8> {
        let mut frame = Vec::new();
        frame.extend_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
        for tag in (0..self.tags).rev() {
            // The outer of two is a service tag.
            frame.extend_from_slice(if tag == 1 { &[0x88, 0xa8, 0, 9] } else { &[0x81, 0, 0x20, 7] });
        }
        frame.extend_from_slice(if self.v6 { &[0x86, 0xdd] } else { &[8, 0] });
        let layer4 = self.layer4_header(payload_len);
        let len = layer4.len() + payload_len;
        if self.v6 {
            self.ipv6(&mut frame, len)
        } else {
            self.ipv4(&mut frame, len)
        }
        frame.extend_from_slice(&layer4);
        let mut pseudo = Sum::ZERO;
        if self.kind != Kind::Icmp || self.v6 {
            let from = if self.v6 { 0 } else { 12 };
            pseudo.add(&SOURCE[from..]);
            pseudo.add(&DESTINATION[from..]);
            pseudo.add_u32(len as u32);
            pseudo.add_u16(u16::from(self.protocol()));
        }
        put16(&mut frame, self.layer4() + self.checksum_offset(), pseudo.folded());
        frame
    }

    fn ipv4(&self, frame: &mut Vec<u8>, len: usize) {
        let at = frame.len();
        let header_len = 20 + self.ip_extra.len();
        frame.extend_from_slice(&[0x40 | (header_len / 4) as u8, self.traffic_class]);
        frame.extend_from_slice(&((header_len + len) as u16).to_be_bytes());
        frame.extend_from_slice(&self.ident.to_be_bytes());
        frame.extend_from_slice(&self.fragment.to_be_bytes());
        frame.extend_from_slice(&[self.ttl, self.protocol(), 0, 0]);
        frame.extend_from_slice(&SOURCE[12..]);
        frame.extend_from_slice(&DESTINATION[12..]);
        frame.extend_from_slice(&self.ip_extra);
        let mut sum = Sum::ZERO;
        sum.add(&frame[at..]);
        put16(frame, at + 10, sum.finish());
    }

    fn ipv6(&self, frame: &mut Vec<u8>, len: usize) {
        let next = if self.ip_extra.is_empty() { self.protocol() } else { self.first_extension };
        frame.extend_from_slice(&[0x60 | self.traffic_class >> 4, self.traffic_class << 4, 0, 0]);
        frame.extend_from_slice(&((self.ip_extra.len() + len) as u16).to_be_bytes());
        frame.extend_from_slice(&[next, self.ttl]);
        frame.extend_from_slice(&SOURCE);
        frame.extend_from_slice(&DESTINATION);
        frame.extend_from_slice(&self.ip_extra);
    }

    fn layer4_header(&self, payload_len: usize) -> Vec<u8> {
        let mut header = Vec::new();
        match self.kind {
            Kind::Tcp => {
                header.extend_from_slice(&self.source_port.to_be_bytes());
                header.extend_from_slice(&[0, 80]);
                header.extend_from_slice(&self.sequence.to_be_bytes());
                header.extend_from_slice(&self.acknowledgement.to_be_bytes());
                header.extend_from_slice(&[((20 + self.options.len()) * 4) as u8, self.flags]);
                header.extend_from_slice(&self.window.to_be_bytes());
                header.extend_from_slice(&[0; 4]);
                header.extend_from_slice(&self.options);
            }
            Kind::Udp => {
                header.extend_from_slice(&self.source_port.to_be_bytes());
                header.extend_from_slice(&[0, 80]);
                header.extend_from_slice(&((8 + payload_len) as u16).to_be_bytes());
                header.extend_from_slice(&[0; 2]);
            }
            Kind::Icmp => {
                let kind = if self.v6 { 128 } else { 8 };
                header.extend_from_slice(&[kind, 0, 0, 0, 0x12, 0x34, 0, 1]);
            }
        }
        header
    }
}

/// Writes two bytes.
pub(crate) fn put16(bytes: &mut [u8], at: usize, value: u16) {
    if let Some(to) = bytes.get_mut(at..at + 2) {
        to.copy_from_slice(&value.to_be_bytes());
    }
}
