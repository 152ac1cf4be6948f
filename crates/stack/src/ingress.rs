//! Frames as they come in: Ethernet, VLAN, and the way to ARP, IPv4 and IPv6.

use crate::packet::{Received, v6};
use crate::prediction::{Before, HeldAck, Predicted};
use crate::stack::Stack;
use crate::tcp::{Head, Outcome};
use core::net::IpAddr;
use linerate_nic::{ChecksumStatus, Frame, MacAddr, PlainPacket, RxBatch, Slice, Version};
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
    /// Takes the oldest frame of a batch; false if there is none.
    #[inline]
    pub(crate) fn receive_first(&mut self, batch: &mut RxBatch) -> bool {
        let Some(frame) = batch.first() else { return false };
        self.net.counters.frames_in += 1;
        match self.conns.prediction.read(frame, self.net.addresses.version()) {
            // Nothing of it is kept.
            Some(Predicted { slot, is_v4, payload: (start, end), head }) if start == end => {
                self.count_predicted(frame, is_v4);
                self.receive_ack(slot, &head);
                batch.drop_first();
            }
            predicted => match (batch.pop(), predicted) {
                (Some(frame), Some(predicted)) => self.receive_predicted(frame, predicted),
                (Some(frame), None) => self.receive_any(frame),
                (None, _) => {}
            },
        }
        true
    }

    #[inline(never)]
    fn receive_any(&mut self, mut frame: Frame) {
        self.net.counters.bytes_in += frame.len() as u64;
        self.conns.before = None;
        self.take_held_ack();
        if let Some(plain) = frame.plain()
            && self.is_to_us(&frame, &plain)
        {
            let bytes = frame.data.bytes().get(usize::from(plain.ip)..).unwrap_or_default();
            match plain.version {
                Version::V4 => {
                    if let Some(header) = ipv4::Header::known_plain(bytes) {
                        let ends = (IpAddr::V4(header.source()), IpAddr::V4(header.destination()));
                        let (hop_limit, ecn) = (header.ttl(), header.ecn());
                        return self.receive_plain(frame, &plain, ends, hop_limit, ecn);
                    }
                }
                Version::V6 => {
                    if let Some(header) = ipv6::Header::known_plain(bytes) {
                        let ends = (IpAddr::V6(header.source()), IpAddr::V6(header.destination()));
                        let (hop_limit, ecn) = (header.hop_limit(), header.ecn());
                        return self.receive_plain(frame, &plain, ends, hop_limit, ecn);
                    }
                }
            }
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
        let Some((destination, source)) = ethernet::addresses(frame.data.bytes()) else { return false };
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

    /// Takes such a frame. Inline, as the packet is made where it is known of which family it is: otherwise its addresses are copied once more,
    /// by a call where words lie at multiples of four alone.
    #[inline(always)]
    fn receive_plain(
        &mut self,
        frame: Frame,
        plain: &PlainPacket,
        (source, destination): (IpAddr, IpAddr),
        hop_limit: u8,
        ecn: Ecn,
    ) {
        let mut packet = Received {
            source,
            destination,
            protocol: plain.protocol,
            hop_limit,
            ecn,
            is_group: false,
            is_checked: true,
            data: frame.data,
            l4: plain.ip_header_len(),
            protocol_offset: match plain.version {
                Version::V4 => crate::ipv4::PROTOCOL_OFFSET,
                Version::V6 => crate::ipv6::NEXT_HEADER_OFFSET,
            },
            more: frame.more,
            segment_size: frame.meta.segment_size,
        };
        self.take_plain(&mut packet, plain);
    }

    fn take_plain(&mut self, packet: &mut Received, plain: &PlainPacket) {
        match plain.version {
            Version::V4 => self.net.counters.ipv4_in += 1,
            Version::V6 => self.net.counters.ipv6_in += 1,
        }
        let Some(is_group) = self.check_addresses(&packet.source, &packet.destination) else { return };
        packet.is_group = is_group;
        self.conns.prediction.begin(packet.data.bytes(), packet.ecn, self.net.addresses.version());
        packet.data.truncate(plain.end as usize);
        packet.data.trim_front(plain.ip.into());
        self.receive_tcp(packet);
        self.conns.prediction.end();
    }

    /// Counts a frame whose headers are those of the one before it. It is in one piece.
    #[inline]
    fn count_predicted(&mut self, frame: &Frame, is_v4: bool) {
        let counters = &mut self.net.counters;
        counters.bytes_in += frame.data.len() as u64;
        if is_v4 {
            counters.ipv4_in += 1;
        } else {
            counters.ipv6_in += 1;
        }
        counters.tcp_in += 1;
    }

    /// Takes such a frame that has payload.
    #[inline]
    fn receive_predicted(&mut self, frame: Frame, predicted: Predicted) {
        let Predicted { slot, is_v4, payload: (start, end), head } = predicted;
        self.count_predicted(&frame, is_v4);
        self.net.counters.tcp_bytes_in += (end - start) as u64;
        let mut data = frame.data;
        data.truncate(end);
        data.trim_front(start);
        self.receive_next(slot, head, data);
    }

    /// Takes such a frame that has none.
    #[inline]
    fn receive_ack(&mut self, slot: u32, head: &Head) {
        self.conns.before = None;
        if !self.hold_ack(slot, head) {
            self.take_held_ack();
            self.receive_with(slot, false, |tcp, now| tcp.take_any(now, &mut head.segment(None)));
        }
    }

    /// Takes a segment with payload. Of several in a row that bring the next bytes each, what they have in common is looked at
    /// once.
    fn receive_next(&mut self, slot: u32, head: Head, data: Slice) {
        let mut payload = Some(data);
        if let Some(before) = self.conns.before.take()
            && before.slot == slot
            && before.head.is_like(&head)
            && let Some(conn) = self.conns.awake(slot)
            && conn.tcp.take_alike(self.net.now, &head, &mut payload)
        {
            self.conns.before = Some(Before { slot, head });
            return;
        }
        self.take_held_ack();
        let mut is_expected = false;
        self.receive_with(slot, true, |tcp, now| {
            is_expected = tcp.take_expected(now, &head, &mut payload);
            if is_expected {
                return Outcome::Accepted;
            }
            tcp.take_any(now, &mut head.segment(payload))
        });
        if is_expected && self.conns.unsettled == Some(slot) {
            self.conns.before = Some(Before { slot, head });
        }
    }

    /// Keeps an acknowledgement for the rest of the batch, if nothing is lost by that: of several in a row, all but the last
    /// tell nothing. False where it is to be taken now, behind the one that is kept.
    fn hold_ack(&mut self, slot: u32, head: &Head) -> bool {
        let mut joined = 0;
        if let Some(held) = &mut self.conns.held_ack {
            if held.goes_on(slot, head) {
                held.head = *head;
                held.joined += 1;
                return true;
            }
            if held.slot != slot || !head.ack.gt(held.head.ack) {
                return false;
            }
            joined = held.joined + 1;
        }
        let Some(conn) = self.conns.awake(slot) else { return false };
        if !conn.tcp.may_join_acks(head) {
            return false;
        }
        let sent = conn.tcp.sent_until();
        self.conns.held_ack = Some(HeldAck { slot, head: *head, sent, joined });
        true
    }

    /// Takes the acknowledgement that was kept: before anything else that comes, and at the end of a batch.
    #[inline]
    pub(crate) fn take_held_ack(&mut self) {
        if self.conns.held_ack.is_some() {
            self.take_last_ack();
        }
    }

    #[inline(never)]
    fn take_last_ack(&mut self) {
        if let Some(HeldAck { slot, head, joined, .. }) = self.conns.held_ack.take() {
            self.receive_with(slot, false, |tcp, now| {
                tcp.count_joined(joined);
                tcp.take_any(now, &mut head.segment(None))
            });
        }
    }

    /// Whether these addresses let a packet in, and if so whether it went to a group. Packets come in rows: those of the last one
    /// need no other look while ours stay what they are.
    fn check_addresses(&mut self, source: &IpAddr, destination: &IpAddr) -> Option<bool> {
        let version = self.net.addresses.version();
        // Compared where they lie: a copy of each takes longer.
        if let Some((at, from, to)) = &self.net.let_in
            && *at == version
            && from == source
            && to == destination
        {
            return Some(false);
        }
        let is_group = match (*source, *destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                self.check_addresses4(source, destination, false)
            }
            (source, destination) => self.check_addresses6(v6(source), v6(destination), false),
        }?;
        self.net.let_in = (!is_group).then_some((version, *source, *destination));
        Some(is_group)
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

#[cfg(test)]
mod tests {
    use crate::{Node, NodeConfig, StackConfig, StackPools};
    use alloc::vec;
    use core::net::Ipv4Addr;
    use linerate_nic::{Capabilities, Device as _, Link, Pool, Port, PortConfig, QueuePair as _, TxQueue};
    use linerate_transport::Engine as _;
    use linerate_wire::ethernet::{self, EtherType};
    use linerate_wire::ip::Protocol;
    use linerate_wire::units::Instant;
    use linerate_wire::{ipv4, tcp};

    #[test]
    fn an_address_that_is_given_up_lets_nothing_in_though_the_packet_before_was_let_in() {
        let (host, peer) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 9));
        let now = Instant::from_millis(1);
        let (near, mut far) = Link::pair(&Pool::new(8, 2_048), 1_500, Capabilities::ALL, 8);
        let (destination, source) = (near.mac(), far.mac());
        let port = Port::new(near, PortConfig::default()).unwrap();
        let config =
            StackConfig { addresses: vec!["10.0.0.1/24".parse().unwrap()], ..StackConfig::default() };
        let pools = StackPools::for_memory(config.memory);
        let mut node = Node::new(port, config, [1; 32], pools, NodeConfig::default());
        let mut queue = TxQueue::with_capacity(4);
        let mut check = |node: &mut Node<Link>, tcp_in, dropped| {
            let header = queue.vacant().unwrap().header_mut(54);
            let link =
                ethernet::Builder { destination, source, ether_type: EtherType::IPV4, ..Default::default() };
            link.emit(header).unwrap();
            let ip = ipv4::Builder::new(peer, host, Protocol::TCP, 20);
            ip.emit(&mut header[14..]).unwrap();
            let segment = tcp::Builder { source_port: 9, destination_port: 9, ..tcp::Builder::default() };
            segment.emit(&mut header[34..]).unwrap();
            let mut sum = ip.pseudo_header();
            sum.add(&header[34..]);
            tcp::set_checksum(&mut header[34..], sum.finish()).unwrap();
            queue.commit();
            far.transmit(now, &mut queue).unwrap();
            node.input(now).unwrap();
            let counters = node.stack.counters();
            assert_eq!((counters.tcp_in, counters.drop_not_our_address), (tcp_in, dropped));
        };
        check(&mut node, 1, 0);
        check(&mut node, 2, 0);
        node.stack.net.addresses.remove(host.into());
        check(&mut node, 2, 1);
        check(&mut node, 2, 2);
    }
}
