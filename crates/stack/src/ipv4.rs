//! IPv4 packets as they come in (RFC 791, RFC 1122 section 3.2).

use crate::ingress::LinkPayload;
use crate::net::is_martian4;
use crate::packet::Received;
use crate::reassembly::{Fragment, FragmentKey, Reassembled};
use crate::stack::Stack;
use crate::timers::Timer;
use core::net::{IpAddr, Ipv4Addr};
use linerate_nic::{Pieces, Slice};
use linerate_wire::ip::Protocol;
use linerate_wire::ipv4::{Header, MIN_HEADER_LEN};

/// Where the header names what follows it.
pub(crate) const PROTOCOL_OFFSET: usize = 9;

impl Stack {
    /// Takes a packet from its header on.
    pub(crate) fn receive_ipv4(&mut self, mut link: LinkPayload) {
        self.net.counters.ipv4_in += 1;
        if !link.frame.more.is_empty() && !is_coalesced_tcp(&link) {
            let Some(whole) = self.linearise(&link.frame) else {
                self.net.counters.drop_reassembly_full += 1;
                return;
            };
            link.frame.data = whole;
            link.frame.more = Pieces::new();
        }
        let bytes = link.frame.data.bytes();
        let parsed =
            if link.frame.more.is_empty() { Header::parse(bytes) } else { Header::parse_quoted(bytes) };
        let Ok(header) = parsed else {
            self.net.counters.drop_ipv4_malformed += 1;
            return;
        };
        let total_len = usize::from(header.total_len());
        // What came in several pieces was put together by something that counts exactly.
        if !link.frame.more.is_empty()
            && (header.header_len() != MIN_HEADER_LEN || total_len != link.frame.len())
        {
            self.net.counters.drop_ipv4_malformed += 1;
            return;
        }
        if !link.is_checked() && !header.verify_checksum() {
            self.net.counters.drop_ipv4_checksum += 1;
            return;
        }
        if header.options().any(|option| option.kind.is_source_route()) {
            self.net.counters.drop_ipv4_source_route += 1;
            return;
        }
        let (source, destination) = (header.source(), header.destination());
        let Some(is_group) = self.check_addresses4(source, destination, link.is_group) else { return };
        if header.is_fragment() {
            if self.team.seat.is_member() {
                let whole = bytes.get(..total_len).unwrap_or_default();
                self.pass_fragment(whole, is_group);
                return;
            }
            let front = bytes.get(..MIN_HEADER_LEN).unwrap_or_default();
            self.receive_fragment4(&header, front, is_group);
            return;
        }
        let (l4, protocol) = (header.header_len(), header.protocol());
        let (hop_limit, ecn) = (header.ttl(), header.ecn());
        let is_checked = link.is_checked();
        let mut data = link.frame.data;
        data.truncate(total_len);
        self.receive_layer4(Received {
            source: IpAddr::V4(source),
            destination: IpAddr::V4(destination),
            protocol,
            hop_limit,
            ecn,
            is_group,
            is_checked,
            data,
            l4,
            protocol_offset: PROTOCOL_OFFSET,
            more: link.frame.more,
            segment_size: link.frame.meta.segment_size,
        });
    }

    /// Whether a packet is for us, and if so whether it went to a group; otherwise counts why it is dropped.
    pub(crate) fn check_addresses4(
        &mut self,
        source: Ipv4Addr,
        destination: Ipv4Addr,
        link_group: bool,
    ) -> Option<bool> {
        let addresses = &self.net.addresses;
        if source == destination || addresses.is_ours(IpAddr::V4(source)) {
            self.net.counters.drop_land += 1;
            return None;
        }
        if is_martian4(source) || addresses.is_broadcast(source) {
            self.net.counters.drop_martian_source += 1;
            return None;
        }
        let is_group = addresses.is_broadcast(destination) || destination == Ipv4Addr::new(224, 0, 0, 1);
        if !is_group && !addresses.is_ours(IpAddr::V4(destination)) {
            self.net.counters.drop_not_our_address += 1;
            return None;
        }
        // A unicast packet in a group frame may have reached others too: nothing is answered (RFC 1122 section 3.3.6).
        Some(is_group || link_group)
    }

    fn receive_fragment4(&mut self, header: &Header<'_>, front: &[u8], is_group: bool) {
        self.net.counters.fragments_in += 1;
        let fragment = Fragment {
            key: FragmentKey {
                source: IpAddr::V4(header.source()),
                destination: IpAddr::V4(header.destination()),
                identification: u32::from(header.identification()),
                protocol: header.protocol(),
            },
            header: front,
            protocol: header.protocol(),
            offset: usize::from(header.fragment_offset()),
            more: header.more_fragments(),
            is_group,
            ecn: header.ecn(),
            payload: header.payload(),
        };
        let net = &mut self.net;
        let outcome = net.reassembly.handle(&fragment, net.now, &mut net.counters);
        net.timers.set(Timer::Reassembly, net.reassembly.poll_timeout());
        if let Reassembled::Complete { data, is_group } = outcome {
            self.receive_reassembled4(data, is_group);
        }
    }

    fn receive_reassembled4(&mut self, data: Slice, is_group: bool) {
        let Ok(header) = Header::parse(data.bytes()) else {
            self.net.counters.drop_ipv4_malformed += 1;
            return;
        };
        let (source, destination) = (IpAddr::V4(header.source()), IpAddr::V4(header.destination()));
        let (l4, protocol, hop_limit, ecn) =
            (header.header_len(), header.protocol(), header.ttl(), header.ecn());
        self.receive_layer4(Received {
            source,
            destination,
            protocol,
            hop_limit,
            ecn,
            is_group,
            is_checked: false,
            data,
            l4,
            protocol_offset: PROTOCOL_OFFSET,
            more: Pieces::new(),
            segment_size: 0,
        });
    }

    /// Hands a whole packet to its protocol.
    pub(crate) fn receive_layer4(&mut self, mut packet: Received) {
        if packet.protocol == Protocol::TCP {
            return self.receive_tcp(&mut packet);
        }
        self.settle_last();
        match (packet.protocol, packet.source) {
            (Protocol::UDP, _) => self.receive_udp(packet),
            (Protocol::ICMPV4, IpAddr::V4(_)) => self.receive_icmp4(packet),
            (Protocol::ICMPV6, IpAddr::V6(_)) => self.receive_icmp6(packet),
            (Protocol::NO_NEXT_HEADER, IpAddr::V6(_)) => self.net.counters.drop_ipv6_no_next_header += 1,
            _ => {
                self.net.counters.drop_protocol += 1;
                self.send_protocol_unreachable(&packet);
            }
        }
    }
}

/// Whether a packet in several pieces is a TCP segment, whose payload may stay in pieces.
fn is_coalesced_tcp(link: &LinkPayload) -> bool {
    Header::parse_quoted(link.frame.data.bytes())
        .is_ok_and(|header| header.protocol() == Protocol::TCP && !header.is_fragment())
}
