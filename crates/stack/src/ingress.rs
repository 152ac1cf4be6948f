//! Frames as they come in: Ethernet, VLAN, and the way to ARP, IPv4 and IPv6.

use crate::packet::Received;
use crate::stack::Stack;
use core::net::{IpAddr, Ipv4Addr};
use linerate_nic::{ChecksumStatus, Frame, MacAddr, PlainPacket, Slice, Version};
use linerate_wire::ethernet::{self, EtherType};
use linerate_wire::ip::{Ecn, Protocol};
use linerate_wire::{ipv4, ipv6};

/// A frame's payload on its way to IP.
#[derive(Debug)]
pub(crate) struct LinkPayload {
    /// The frame; `data` begins with the network header.
    pub(crate) frame: Frame,
    /// Sent to a group or to all.
    pub(crate) is_group: bool,
}

impl LinkPayload {
    /// Whether the device vouches for the checksums.
    pub(crate) fn is_checked(&self) -> bool {
        self.frame.meta.checksum == ChecksumStatus::Good
    }
}

impl Stack {
    /// Takes one frame.
    pub(crate) fn receive_frame(&mut self, mut frame: Frame) {
        self.net.counters.frames_in += 1;
        self.net.counters.bytes_in += frame.len() as u64;
        if let Some(plain) = frame.plain()
            && self.is_to_us(&frame, &plain)
        {
            return self.receive_plain(frame, &plain);
        }
        let counters = &mut self.net.counters;
        if frame.meta.checksum == ChecksumStatus::Bad {
            counters.drop_checksum_device += 1;
            return;
        }
        let Ok(header) = ethernet::Header::parse(frame.data.bytes()) else {
            counters.drop_ethernet_malformed += 1;
            return;
        };
        if !is_our_vlan(&header, self.net.config.vlan) {
            counters.drop_vlan += 1;
            return;
        }
        let (source, destination) = (header.source(), header.destination());
        if !source.is_unicast() || source == self.net.config.mac {
            counters.drop_ethernet_source += 1;
            return;
        }
        if destination != self.net.config.mac && !is_our_group(destination) {
            counters.drop_ethernet_not_for_us += 1;
            return;
        }
        let (ether_type, header_len) = (header.ether_type(), header.header_len());
        frame.data.trim_front(header_len);
        match ether_type {
            EtherType::IPV4 => {
                let is_group = destination.is_multicast();
                self.receive_ipv4(LinkPayload { frame, is_group });
            }
            EtherType::IPV6 => {
                let is_group = destination.is_multicast();
                self.receive_ipv6(LinkPayload { frame, is_group });
            }
            EtherType::ARP if self.pass_arp(&frame.data, source) => {}
            EtherType::ARP => {
                self.settle_last();
                self.receive_arp(&frame.data, source);
            }
            _ => self.net.counters.drop_ethertype += 1,
        }
    }

    /// Whether a frame with a plain TCP segment comes from another station to ours, and is in order in all that is looked at
    /// below IP: nothing in it needs to be read again. Whatever is not so is looked at in detail, and counted.
    fn is_to_us(&self, frame: &Frame, plain: &PlainPacket) -> bool {
        let bytes = frame.data.bytes();
        let Some(&[d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5]) = bytes.first_chunk() else {
            return false;
        };
        let (destination, source) = (MacAddr([d0, d1, d2, d3, d4, d5]), MacAddr([s0, s1, s2, s3, s4, s5]));
        let config = &self.net.config;
        let is_whole = frame.more.is_empty() || plain.end as usize == frame.len();
        destination == config.mac
            && source != config.mac
            && source.is_unicast()
            && config.vlan.is_none()
            && usize::from(plain.ip) == ethernet::HEADER_LEN
            && plain.protocol == Protocol::TCP
            && frame.meta.checksum == ChecksumStatus::Good
            && is_whole
    }

    /// Takes such a frame.
    fn receive_plain(&mut self, frame: Frame, plain: &PlainPacket) {
        let mut data = frame.data;
        data.truncate(plain.end as usize);
        data.trim_front(plain.ip.into());
        let bytes = data.bytes();
        let (source, destination, group, hop_limit, ecn) = match plain.version {
            Version::V4 => {
                self.net.counters.ipv4_in += 1;
                let Some(header) = bytes.first_chunk::<{ ipv4::MIN_HEADER_LEN }>() else { return };
                let [_, tos, .., s0, s1, s2, s3, d0, d1, d2, d3] = *header;
                let (source, destination) = (Ipv4Addr::new(s0, s1, s2, s3), Ipv4Addr::new(d0, d1, d2, d3));
                let group = self.check_addresses4(source, destination, false);
                (IpAddr::V4(source), IpAddr::V4(destination), group, header[8], Ecn::from_bits(tos))
            }
            Version::V6 => {
                self.net.counters.ipv6_in += 1;
                let Ok(header) = ipv6::Header::parse(bytes) else { return };
                let (source, destination) = (header.source(), header.destination());
                let group = self.check_addresses6(source, destination, false);
                (IpAddr::V6(source), IpAddr::V6(destination), group, header.hop_limit(), header.ecn())
            }
        };
        let Some(is_group) = group else { return };
        self.receive_tcp(&mut Received {
            source,
            destination,
            protocol: plain.protocol,
            hop_limit,
            ecn,
            is_group,
            is_checked: true,
            data,
            l4: plain.ip_header_len(),
            protocol_offset: if plain.version == Version::V4 { 9 } else { 6 },
            more: frame.more,
            segment_size: frame.meta.segment_size,
        });
    }

    /// One contiguous copy of a packet in several pieces (a datagram in small receive buffers; not TCP), in a datagram
    /// buffer. `None` when there is no buffer, or none that is long enough.
    pub(crate) fn linearise(&mut self, frame: &Frame) -> Option<Slice> {
        let len = frame.len();
        let mut buffer = self.net.pools.datagrams.take()?;
        let mut out = buffer.bytes_mut().get_mut(..len)?;
        for piece in core::iter::once(&frame.data).chain(&frame.more) {
            let (place, rest) = out.split_at_mut_checked(piece.len())?;
            place.copy_from_slice(piece.bytes());
            out = rest;
        }
        Some(buffer.freeze(0..len))
    }
}

/// Untagged or priority-tagged frames for an untagged interface, and frames of exactly our VLAN otherwise.
fn is_our_vlan(header: &ethernet::Header<'_>, vlan: Option<u16>) -> bool {
    match (header.tags().as_slice(), vlan) {
        ([], None) => true,
        ([tag], None) => tag.id == 0,
        ([tag], Some(vlan)) => tag.id == vlan,
        _ => false,
    }
}

/// Groups that can matter to us; IP decides by its own addresses.
fn is_our_group(destination: MacAddr) -> bool {
    destination.is_broadcast()
        || matches!(destination.0, [0x33, 0x33, ..])
        || matches!(destination.0, [0x01, 0x00, 0x5e, ..])
}
