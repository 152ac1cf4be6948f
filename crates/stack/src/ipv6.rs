//! IPv6 packets as they come in (RFC 8200).

use crate::icmp::Problem;
use crate::ingress::LinkPayload;
use crate::ndp;
use crate::packet::Received;
use crate::reassembly::{Fragment, FragmentKey, Reassembled};
use crate::stack::Stack;
use crate::timers::Timer;
use core::net::{IpAddr, Ipv6Addr};
use linerate_nic::{Pieces, Slice};
use linerate_wire::ip::Protocol;
use linerate_wire::ipv6::{self, Chain, ChainError, HEADER_LEN, Header, walk};

/// A packet whose fixed header was read.
struct Packet6 {
    received: Received,
    /// What follows the fixed header.
    next_header: Protocol,
}

/// Where the header names what follows it.
pub(crate) const NEXT_HEADER_OFFSET: usize = 6;

impl Stack {
    /// Takes a packet from its header on.
    pub(crate) fn receive_ipv6(&mut self, mut link: LinkPayload) {
        self.net.counters.ipv6_in += 1;
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
            self.net.counters.drop_ipv6_malformed += 1;
            return;
        };
        let total_len = HEADER_LEN + usize::from(header.payload_len());
        if !link.frame.more.is_empty() && total_len != link.frame.len() {
            self.net.counters.drop_ipv6_malformed += 1;
            return;
        }
        let (source, destination) = (header.source(), header.destination());
        let Some(is_group) = self.check_addresses6(source, destination, link.is_group) else { return };
        let next_header = header.next_header();
        let (hop_limit, ecn) = (header.hop_limit(), header.ecn());
        let is_checked = link.is_checked();
        let mut data = link.frame.data;
        data.truncate(total_len);
        let received = Received {
            source: IpAddr::V6(source),
            destination: IpAddr::V6(destination),
            protocol: next_header,
            hop_limit,
            ecn,
            is_group,
            is_checked,
            data,
            l4: HEADER_LEN,
            protocol_offset: NEXT_HEADER_OFFSET,
            more: link.frame.more,
            segment_size: link.frame.meta.segment_size,
        };
        match next_header {
            // Nothing to walk over: the common case.
            Protocol::TCP | Protocol::UDP | Protocol::ICMPV6 => self.receive_layer4(received),
            next_header => self.receive_chain(Packet6 { received, next_header }),
        }
    }

    pub(crate) fn check_addresses6(
        &mut self,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        link_group: bool,
    ) -> Option<bool> {
        let addresses = &self.net.addresses;
        // Whoever has an address that is being probed says so from it, to a group (RFC 4861 section 7.2.4).
        let is_rival = || destination.is_multicast() && addresses.is_unconfirmed(IpAddr::V6(source));
        if source == destination || addresses.is_ours(IpAddr::V6(source)) && !is_rival() {
            self.net.counters.drop_land += 1;
            return None;
        }
        let is_martian = |ip: Ipv6Addr| ip.is_loopback() || ip.to_ipv4_mapped().is_some();
        if source.is_multicast() || is_martian(source) || is_martian(destination) {
            self.net.counters.drop_martian_source += 1;
            return None;
        }
        if destination.is_multicast() {
            if !addresses.in_group(destination) {
                self.net.counters.drop_not_our_address += 1;
                return None;
            }
            return Some(true);
        }
        if !addresses.is_ours(IpAddr::V6(destination)) {
            self.net.counters.drop_not_our_address += 1;
            return None;
        }
        Some(link_group)
    }

    /// Walks the extension headers; a fragment goes to reassembly, anything else to layer 4.
    fn receive_chain(&mut self, packet: Packet6) {
        let Packet6 { mut received, next_header } = packet;
        let payload = received.data.bytes().get(HEADER_LEN..).unwrap_or_default();
        let destination_is_group = match received.destination {
            IpAddr::V6(ip) => ip.is_multicast(),
            IpAddr::V4(_) => false,
        };
        match walk(next_header, payload, destination_is_group) {
            Ok(Chain { fragment: Some(_), .. }) if self.pass_to_owner(&received) => {}
            Ok(Chain { fragment: Some(fragment), offset, payload, .. }) => {
                let outcome = self.take_fragment6(&received, &fragment, payload);
                self.after_fragment6(received, outcome, offset);
            }
            Ok(chain) if chain.is_atomic && is_discovery(&chain) => {
                self.net.counters.drop_ndp_invalid += 1;
            }
            Ok(chain) => {
                let (upper, offset, protocol_offset) = (chain.upper, chain.offset, chain.next_header_offset);
                received.protocol = upper;
                received.l4 = offset;
                received.protocol_offset = protocol_offset;
                self.receive_layer4(received);
            }
            Err(ChainError::Malformed(_)) => self.net.counters.drop_ipv6_malformed += 1,
            Err(ChainError::Discard { .. }) => self.net.counters.drop_ipv6_extension += 1,
            Err(ChainError::ParameterProblem { offender, pointer }) => {
                self.net.counters.drop_ipv6_extension += 1;
                self.send_parameter_problem6(&received, Problem { code: offender.code(), pointer });
            }
        }
    }

    fn take_fragment6(
        &mut self,
        packet: &Received,
        fragment: &ipv6::Fragment,
        payload: &[u8],
    ) -> Reassembled {
        self.net.counters.fragments_in += 1;
        // RFC 7112 section 5: the first fragment must hold the whole chain and the upper layer's header.
        if fragment.offset == 0 && !holds_upper_layer(fragment, payload) {
            self.net.counters.drop_fragment_tiny += 1;
            return Reassembled::Tiny;
        }
        let fragment = Fragment {
            key: FragmentKey {
                source: packet.source,
                destination: packet.destination,
                identification: fragment.identification,
                protocol: Protocol(0),
            },
            header: packet.data.bytes().get(..HEADER_LEN).unwrap_or_default(),
            protocol: fragment.next_header,
            offset: usize::from(fragment.offset),
            more: fragment.more,
            is_group: packet.is_group,
            ecn: packet.ecn,
            payload,
        };
        let net = &mut self.net;
        let outcome = net.reassembly.handle(&fragment, net.now, &mut net.counters);
        net.timers.set(Timer::Reassembly, net.reassembly.poll_timeout());
        outcome
    }

    fn after_fragment6(&mut self, packet: Received, outcome: Reassembled, payload_offset: usize) {
        match outcome {
            Reassembled::Nothing => {}
            Reassembled::Complete { data, is_group } => {
                self.receive_reassembled6(Received { is_group, ..packet }, data);
            }
            // RFC 8200 section 4.5: the pointers are to the payload length and to the fragment offset.
            Reassembled::BadLength => {
                self.send_parameter_problem6(&packet, Problem { code: 0, pointer: 4 });
            }
            Reassembled::TooLong => {
                let pointer = (payload_offset.saturating_sub(ipv6::Fragment::LEN) + 2) as u32;
                self.send_parameter_problem6(&packet, Problem { code: 0, pointer });
            }
            Reassembled::Tiny => {
                self.send_parameter_problem6(&packet, Problem { code: 3, pointer: 0 });
            }
        }
    }

    fn receive_reassembled6(&mut self, fragment: Received, data: Slice) {
        let Ok(header) = Header::parse(data.bytes()) else {
            self.net.counters.drop_ipv6_malformed += 1;
            return;
        };
        let next_header = header.next_header();
        if next_header == Protocol::FRAGMENT {
            // Fragments within fragments would let a few bytes walk through the table again and again.
            self.net.counters.drop_ipv6_extension += 1;
            return;
        }
        let (hop_limit, ecn) = (header.hop_limit(), header.ecn());
        let received = Received {
            protocol: next_header,
            hop_limit,
            ecn,
            is_checked: false,
            data,
            l4: HEADER_LEN,
            protocol_offset: NEXT_HEADER_OFFSET,
            more: Pieces::new(),
            segment_size: 0,
            ..fragment
        };
        self.receive_whole_chain(received);
    }

    /// Walks what a reassembled packet begins with; another fragment header in it is refused.
    fn receive_whole_chain(&mut self, mut received: Received) {
        let payload = received.data.bytes().get(HEADER_LEN..).unwrap_or_default();
        match walk(received.protocol, payload, received.is_group) {
            Ok(chain) if is_discovery(&chain) => self.net.counters.drop_ndp_invalid += 1,
            Ok(Chain { fragment: None, upper, offset, next_header_offset, .. }) => {
                received.protocol = upper;
                received.l4 = offset;
                received.protocol_offset = next_header_offset;
                self.receive_layer4(received);
            }
            Ok(_) | Err(ChainError::Discard { .. }) => self.net.counters.drop_ipv6_extension += 1,
            Err(ChainError::Malformed(_)) => self.net.counters.drop_ipv6_malformed += 1,
            Err(ChainError::ParameterProblem { offender, pointer }) => {
                self.net.counters.drop_ipv6_extension += 1;
                self.send_parameter_problem6(&received, Problem { code: offender.code(), pointer });
            }
        }
    }
}

/// Whether a chain leads to neighbour discovery, which must not come in fragments (RFC 6980 section 5): what inspects it on its way
/// sees whole packets alone.
fn is_discovery(chain: &Chain<'_>) -> bool {
    chain.upper == Protocol::ICMPV6 && chain.payload.first().is_some_and(|&kind| ndp::is_discovery(kind))
}

/// Whether the first fragment's payload reaches an upper layer and holds its header.
fn holds_upper_layer(fragment: &ipv6::Fragment, payload: &[u8]) -> bool {
    match walk(fragment.next_header, payload, true) {
        Ok(chain) => {
            let least = match chain.upper {
                Protocol::TCP => 20,
                Protocol::UDP | Protocol::ICMPV6 => 8,
                _ => 0,
            };
            chain.payload.len() >= least
        }
        // What else is wrong with it shows when it is whole.
        Err(ChainError::Malformed(_)) => false,
        Err(_) => true,
    }
}

/// Whether a packet in several pieces is a TCP segment, whose payload may stay in pieces.
fn is_coalesced_tcp(link: &LinkPayload) -> bool {
    Header::parse_quoted(link.frame.data.bytes()).is_ok_and(|header| header.next_header() == Protocol::TCP)
}
