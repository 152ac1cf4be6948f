//! Frames as they come in: Ethernet, VLAN, and the way to ARP, IPv4 and IPv6.

use crate::stack::Stack;
use linerate_nic::{ChecksumStatus, Frame, MacAddr, Slice};
use linerate_wire::ethernet::{self, EtherType};

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
        let counters = &mut self.net.counters;
        counters.frames_in += 1;
        counters.bytes_in += frame.len() as u64;
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
