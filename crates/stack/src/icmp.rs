//! ICMP of both families: echo replies, errors that we get, errors that we send.
//!
//! Errors are sent at a limited rate (RFC 4443 section 2.4(f)), never about an error, a group, a later fragment, or a
//! source that is not one host (RFC 1122 section 3.2.2, RFC 4443 section 2.4(e)). Errors that come are believed as far
//! as the packet that they quote is one that we have in flight (RFC 5927).

use crate::egress::ip_header_len;
use crate::ndp::is_discovery;
use crate::net::Priority;
use crate::packet::must;
use crate::packet::{IpFields, Outgoing, Packet, Received, v6};
use crate::pmtu::{self, Verdict};
use crate::stack::Stack;
use crate::tcp_input::tcp_mss;
use crate::timers::Timer;
use core::net::IpAddr;
use linerate_nic::Slice;
use linerate_transport::CloseReason;
use linerate_wire::checksum::{self, Sum};
use linerate_wire::ip::Protocol;
use linerate_wire::tcp::SeqNumber;
use linerate_wire::{icmpv4, icmpv6, ipv4, ipv6};

/// ICMPv6 type of a multicast listener query (RFC 3810 section 5.1).
const MULTICAST_QUERY: u8 = 130;
/// Of a redirect (RFC 4861 section 4.5).
const REDIRECT: u8 = 137;

/// What a parameter problem tells (RFC 4443 section 3.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Problem {
    pub(crate) code: u8,
    pub(crate) pointer: u32,
}

/// The beginning of a packet of ours that an error quotes.
struct QuotedFlow {
    source: IpAddr,
    destination: IpAddr,
    protocol: Protocol,
    source_port: u16,
    destination_port: u16,
    /// For TCP.
    sequence: SeqNumber,
    /// Length of the whole packet in bytes.
    packet_len: usize,
}

/// What an error means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Meaning {
    /// The packet was too big for a link of this MTU (0: not told).
    TooBig(usize),
    /// Nobody is there; `hard` where trying again is of no use (RFC 1122 section 4.2.3.9).
    Unreachable { hard: bool, reason: CloseReason },
}

impl Stack {
    /// Takes an ICMPv4 message.
    pub(crate) fn receive_icmp4(&mut self, packet: Received) {
        self.net.counters.icmp_in += 1;
        if !icmpv4::verify_checksum(packet.l4_bytes()) {
            self.net.counters.drop_icmp_checksum += 1;
            return;
        }
        let Ok(message) = icmpv4::Message::parse(packet.l4_bytes()) else {
            self.net.counters.drop_icmp_malformed += 1;
            return;
        };
        match message {
            // Neither RFC 792 nor RFC 4443 gives the code of an echo a meaning: it comes back as it was.
            icmpv4::Message::EchoRequest(_) | icmpv4::Message::Other { kind: icmpv4::ECHO_REQUEST, .. } => {
                self.reply_to_echo(packet)
            }
            icmpv4::Message::DestinationUnreachable { code, next_hop_mtu, quoted } => {
                let meaning = match code {
                    icmpv4::UnreachableCode::FRAGMENTATION_NEEDED => {
                        Meaning::TooBig(usize::from(next_hop_mtu))
                    }
                    icmpv4::UnreachableCode::PROTOCOL | icmpv4::UnreachableCode::PORT => {
                        Meaning::Unreachable { hard: true, reason: CloseReason::Refused }
                    }
                    // A filter says no: waiting will not help who opens (RFC 1812 section 5.2.7.1).
                    code => {
                        Meaning::Unreachable { hard: code.is_prohibited(), reason: CloseReason::Unreachable }
                    }
                };
                let quoted = quoted_flow4(quoted.0);
                self.receive_error(&packet, quoted, meaning);
            }
            icmpv4::Message::TimeExceeded { quoted, .. }
            | icmpv4::Message::ParameterProblem { quoted, .. } => {
                let meaning = Meaning::Unreachable { hard: false, reason: CloseReason::Unreachable };
                let quoted = quoted_flow4(quoted.0);
                self.receive_error(&packet, quoted, meaning);
            }
            // We ask nobody for an echo; redirects and source quench are not obeyed (RFC 6633).
            icmpv4::Message::EchoReply(_) | icmpv4::Message::Other { .. } => {
                self.net.counters.drop_icmp_type += 1;
            }
        }
    }

    /// Takes an ICMPv6 message.
    pub(crate) fn receive_icmp6(&mut self, packet: Received) {
        self.net.counters.icmp_in += 1;
        let (source, destination) = (v6(packet.source), v6(packet.destination));
        if !icmpv6::verify_checksum(source, destination, packet.l4_bytes()) {
            self.net.counters.drop_icmp_checksum += 1;
            return;
        }
        let kind = packet.l4_bytes().first().copied().unwrap_or_default();
        let is_ndp = is_discovery(kind);
        if (is_ndp || kind == MULTICAST_QUERY) && self.pass_to_owner(&packet) {
            return;
        }
        if is_ndp {
            self.receive_ndp(&packet);
            return;
        }
        let Ok(message) = icmpv6::Message::parse(packet.l4_bytes()) else {
            self.net.counters.drop_icmp_malformed += 1;
            return;
        };
        match message {
            icmpv6::Message::EchoRequest(_) | icmpv6::Message::Other { kind: icmpv6::ECHO_REQUEST, .. } => {
                self.reply_to_echo(packet)
            }
            icmpv6::Message::PacketTooBig { mtu, quoted } => {
                let mtu = usize::try_from(mtu).unwrap_or(usize::MAX);
                let quoted = quoted_flow6(quoted.0);
                self.receive_error(&packet, quoted, Meaning::TooBig(mtu.max(1)));
            }
            icmpv6::Message::DestinationUnreachable { code, quoted } => {
                let meaning = match code {
                    icmpv6::UnreachableCode::PORT => {
                        Meaning::Unreachable { hard: true, reason: CloseReason::Refused }
                    }
                    code => {
                        Meaning::Unreachable { hard: code.is_prohibited(), reason: CloseReason::Unreachable }
                    }
                };
                let quoted = quoted_flow6(quoted.0);
                self.receive_error(&packet, quoted, meaning);
            }
            icmpv6::Message::TimeExceeded { quoted, .. }
            | icmpv6::Message::ParameterProblem { quoted, .. } => {
                let meaning = Meaning::Unreachable { hard: false, reason: CloseReason::Unreachable };
                let quoted = quoted_flow6(quoted.0);
                self.receive_error(&packet, quoted, meaning);
            }
            icmpv6::Message::Other { kind: MULTICAST_QUERY, .. } => self.answer_multicast_query(&packet),
            icmpv6::Message::EchoReply(_) | icmpv6::Message::Other { .. } => {
                self.net.counters.drop_icmp_type += 1;
            }
        }
    }

    /// Answers an echo request with its own bytes: only type and checksum are new.
    fn reply_to_echo(&mut self, packet: Received) {
        // To a broadcast address it would multiply (RFC 1122 section 3.2.2.6 allows silence); to the all-nodes group
        // it is answered (RFC 4443 section 4.2).
        if packet.source.is_ipv4() && packet.is_group || packet.source.is_unspecified() {
            self.net.counters.drop_icmp_broadcast += 1;
            return;
        }
        let local = Some(packet.destination).filter(|&ip| self.net.addresses.is_ours(ip));
        let Some((source, _)) = self.net.route(local, packet.source) else {
            self.net.counters.drop_no_route += 1;
            return;
        };
        let Some(request) = packet.l4_bytes().first_chunk::<8>().copied() else { return };
        let old = u16::from_be_bytes([request[2], request[3]]);
        let (protocol, kind) = match packet.source {
            IpAddr::V4(_) => (Protocol::ICMPV4, 0),
            IpAddr::V6(_) => (Protocol::ICMPV6, 129),
        };
        let mut sum = checksum::update(old, u16::from(request[0]) << 8, u16::from(kind) << 8);
        if let (IpAddr::V6(asked), IpAddr::V6(answers)) = (packet.destination, source) {
            // The pseudo-header changes where a group was asked.
            for (old, new) in asked.segments().into_iter().zip(answers.segments()) {
                sum = checksum::update(sum, old, new);
            }
        }
        let mut tail = packet.data;
        tail.trim_front(packet.l4 + 8);
        // Where all but the type was zero, the update ends in the wrong one of two zeros: it computes as if something that is
        // not zero were left (RFC 1624 section 3). Never so with a pseudo-header.
        let mut rest = request[4..].iter().chain(tail.bytes());
        if sum == 0 && source.is_ipv4() && request[1] == 0 && rest.all(|&byte| byte == 0) {
            sum = 0xffff;
        }
        let fields = IpFields::new(source, packet.source, protocol);
        let reply = Packet::new(fields, 8, |head| {
            head.copy_from_slice(&request);
            head[0] = kind;
            head[2..4].copy_from_slice(&sum.to_be_bytes());
        });
        self.net.counters.icmp_out += 1;
        self.net.counters.echo_replies += 1;
        self.net.send(Outgoing::Ip(reply.with_tail(tail)), Priority::Reply);
    }

    /// Acts on an error about a packet that we sent, if we did.
    fn receive_error(&mut self, packet: &Received, quoted: Option<QuotedFlow>, meaning: Meaning) {
        let quoted = quoted.filter(|quoted| self.net.addresses.is_ours(quoted.source));
        let is_known = quoted.is_some_and(|quoted| self.handle_error(&quoted, meaning));
        if !is_known && !self.pass_on(packet) {
            self.net.counters.drop_icmp_error_unknown += 1;
        }
    }

    /// False when the packet that is quoted is none of ours.
    fn handle_error(&mut self, quoted: &QuotedFlow, meaning: Meaning) -> bool {
        let is_known = match quoted.protocol {
            Protocol::TCP => self.handle_tcp_error(quoted, meaning),
            Protocol::UDP => self.udp.is_bound(quoted.source, quoted.source_port),
            // Echo replies: nothing but a name and a number that anybody can forge.
            _ => false,
        };
        if let (true, Meaning::TooBig(mtu), Protocol::UDP) = (is_known, meaning, quoted.protocol) {
            self.lower_datagram_path(quoted, mtu);
        }
        is_known
    }

    /// A datagram cannot show that it was sent, so what is said about one counts for datagrams only, at a limited rate.
    fn lower_datagram_path(&mut self, quoted: &QuotedFlow, reported: usize) {
        let net = &mut self.net;
        match pmtu::judge(quoted.destination, quoted.packet_len, reported) {
            Verdict::Absurd => net.counters.drop_icmp_too_big_absurd += 1,
            Verdict::Names(_) if !net.too_big_limit.allow(net.now) => {
                net.counters.drop_icmp_too_big_limited += 1;
            }
            Verdict::Names(mtu) => {
                let is_lower = net.datagram_paths.lower(quoted.destination, mtu, net.now);
                net.counters.path_mtu_lowered += u64::from(is_lower);
                if is_lower {
                    self.tell_of_path(quoted.destination, mtu, true);
                }
            }
        }
    }

    /// The same for a TCP segment. False when there is no such connection or the segment is not in flight.
    fn handle_tcp_error(&mut self, quoted: &QuotedFlow, meaning: Meaning) -> bool {
        let found = self
            .find_flow((quoted.source, quoted.source_port), (quoted.destination, quoted.destination_port));
        let Some(slot) = found else { return false };
        match meaning {
            Meaning::Unreachable { hard, reason } => {
                let now = self.net.now;
                let Some(conn) = self.conns.awake(slot) else { return false };
                if !conn.tcp.handle_icmp_error(now, quoted.sequence, hard, reason) {
                    self.net.counters.drop_icmp_error_not_in_flight += 1;
                }
                self.settle(slot);
                true
            }
            Meaning::TooBig(mtu) => self.lower_tcp_path(slot, quoted, mtu),
        }
    }

    /// The connection decides whether the quoted segment is one of its own in flight, and when it believes the message;
    /// only then do others learn of it (in [`Stack::settle`]).
    fn lower_tcp_path(&mut self, slot: u32, quoted: &QuotedFlow, reported: usize) -> bool {
        let now = self.net.now;
        let Verdict::Names(mtu) = pmtu::judge(quoted.destination, quoted.packet_len, reported) else {
            self.net.counters.drop_icmp_too_big_absurd += 1;
            return true;
        };
        let Some(conn) = self.conns.awake(slot) else { return false };
        if !conn.tcp.handle_path_mss(now, tcp_mss(quoted.destination, mtu), Some(quoted.sequence)) {
            self.net.counters.drop_icmp_error_not_in_flight += 1;
        }
        self.conns.sending.push(slot);
        self.settle(slot);
        true
    }

    /// Tells about a datagram to a port where nobody listens.
    pub(crate) fn send_port_unreachable(&mut self, packet: &Received) {
        match packet.source {
            IpAddr::V4(_) => self.send_error4(packet, |quoted| icmpv4::Message::DestinationUnreachable {
                code: icmpv4::UnreachableCode::PORT,
                next_hop_mtu: 0,
                quoted,
            }),
            IpAddr::V6(_) => self.send_error6(packet, false, |quoted| {
                icmpv6::Message::DestinationUnreachable { code: icmpv6::UnreachableCode::PORT, quoted }
            }),
        }
    }

    /// Tells about a protocol that we do not have.
    pub(crate) fn send_protocol_unreachable(&mut self, packet: &Received) {
        match packet.source {
            IpAddr::V4(_) => self.send_error4(packet, |quoted| icmpv4::Message::DestinationUnreachable {
                code: icmpv4::UnreachableCode::PROTOCOL,
                next_hop_mtu: 0,
                quoted,
            }),
            IpAddr::V6(_) => {
                let pointer = packet.protocol_offset as u32;
                self.send_parameter_problem6(packet, Problem { code: 1, pointer });
            }
        }
    }

    /// Tells about a header that we cannot accept.
    pub(crate) fn send_parameter_problem6(&mut self, packet: &Received, problem: Problem) {
        let Problem { code, pointer } = problem;
        // Only an unknown option may be reported to a packet for a group (RFC 4443 section 2.4(e.3)).
        self.send_error6(packet, code == 2, |quoted| icmpv6::Message::ParameterProblem {
            code,
            pointer,
            quoted,
        });
    }

    /// Drops incomplete datagrams that are too old, and tells their senders (RFC 792, RFC 4443 section 3.3).
    pub(crate) fn run_reassembly(&mut self) {
        while let Some(expired) = self.net.reassembly.pop_expired(self.net.now) {
            self.net.counters.drop_reassembly_timeout += 1;
            if expired.is_group {
                continue;
            }
            let Some(packet) = expired.quote.and_then(quoted_packet) else { continue };
            match packet.source {
                IpAddr::V4(_) => {
                    self.send_error4(&packet, |quoted| icmpv4::Message::TimeExceeded { code: 1, quoted })
                }
                IpAddr::V6(_) => self
                    .send_error6(&packet, false, |quoted| icmpv6::Message::TimeExceeded { code: 1, quoted }),
            }
        }
        self.net.timers.set(Timer::Reassembly, self.net.reassembly.poll_timeout());
    }

    fn send_error4(
        &mut self,
        packet: &Received,
        message: impl for<'a> Fn(icmpv4::Quoted<'a>) -> icmpv4::Message<'a>,
    ) {
        let is_error = packet.protocol == Protocol::ICMPV4
            && icmpv4::Message::parse(packet.l4_bytes()).is_ok_and(|message| message.is_error());
        let Some(source) = self.error_source(packet, is_error || packet.is_group) else { return };
        let quote = quote(packet, icmpv4::MAX_ERROR_LEN - ipv4::MIN_HEADER_LEN - icmpv4::HEADER_LEN);
        let mut sum = Sum::ZERO;
        sum.add(quote.bytes());
        let fields = IpFields::new(source, packet.source, Protocol::ICMPV4);
        let error = Packet::new(fields, icmpv4::HEADER_LEN, |head| {
            must(message(icmpv4::Quoted(quote.bytes())).emit_header(head, sum));
        });
        self.queue_error(error.with_tail(quote));
    }

    fn send_error6(
        &mut self,
        packet: &Received,
        even_to_group: bool,
        message: impl for<'a> Fn(icmpv6::Quoted<'a>) -> icmpv6::Message<'a>,
    ) {
        let is_barred = is_error6(packet.data.bytes()) || packet.is_group && !even_to_group;
        let Some(source) = self.error_source(packet, is_barred) else { return };
        let quote = quote(packet, icmpv6::MAX_ERROR_LEN - ipv6::HEADER_LEN - icmpv6::HEADER_LEN);
        let mut sum = Sum::ZERO;
        sum.add(quote.bytes());
        let (from, to) = (v6(source), v6(packet.source));
        let fields = IpFields::new(source, packet.source, Protocol::ICMPV6);
        let error = Packet::new(fields, icmpv6::HEADER_LEN, |head| {
            let message = message(icmpv6::Quoted(quote.bytes()));
            must(message.emit_header(from, to, head, sum, quote.len()));
        });
        self.queue_error(error.with_tail(quote));
    }

    /// The address that an error about `packet` comes from; `None` when none may be sent now.
    fn error_source(&mut self, packet: &Received, is_barred: bool) -> Option<IpAddr> {
        if is_barred || packet.source.is_unspecified() {
            return None;
        }
        let local = Some(packet.destination).filter(|&ip| self.net.addresses.is_ours(ip));
        let (source, _) = self.net.route(local, packet.source)?;
        let net = &mut self.net;
        if !net.errors_limit.allow(packet.source, net.now, &mut net.random) {
            net.counters.drop_icmp_error_limited += 1;
            return None;
        }
        Some(source)
    }

    fn queue_error(&mut self, error: Packet) {
        self.net.counters.icmp_out += 1;
        self.net.counters.icmp_errors_out += 1;
        self.net.send(Outgoing::Ip(error), Priority::Reply);
    }
}

/// As much of a packet as an error may quote, in place.
fn quote(packet: &Received, most: usize) -> Slice {
    let mut quote = packet.data.clone();
    quote.truncate(most);
    quote
}

/// Whether an IPv6 packet is an ICMPv6 error or a redirect, which no error may answer (RFC 4443 section 2.4(e.1) and (e.2)), whatever
/// headers stand before it and whether they are in order: it may be for their sake that there is something to report.
fn is_error6(packet: &[u8]) -> bool {
    let Ok(header) = ipv6::Header::parse_quoted(packet) else { return false };
    let (mut kind, mut rest) = (header.next_header(), header.payload());
    loop {
        let len = match (kind, rest) {
            (Protocol::ICMPV6, [kind, ..]) => return *kind < 128 || *kind == REDIRECT,
            // Only the first fragment shows what it is.
            (Protocol::FRAGMENT, [_, _, high, low, ..]) if (*high, *low & 0xf8) == (0, 0) => 8,
            (Protocol::HOP_BY_HOP | Protocol::ROUTING | Protocol::DESTINATION_OPTIONS, [_, units, ..]) => {
                (usize::from(*units) + 1) * 8
            }
            _ => return false,
        };
        (kind, rest) = (Protocol(rest[0]), rest.get(len..).unwrap_or_default());
    }
}

/// The first fragment of an incomplete datagram as a packet to send an error about.
fn quoted_packet(data: Slice) -> Option<Received> {
    let is_v4 = data.bytes().first()? >> 4 == 4;
    let (source, destination, protocol, l4) = if is_v4 {
        let header = ipv4::Header::parse_quoted(data.bytes()).ok()?;
        (header.source().into(), header.destination().into(), header.protocol(), header.header_len())
    } else {
        let header = ipv6::Header::parse_quoted(data.bytes()).ok()?;
        (header.source().into(), header.destination().into(), header.next_header(), ipv6::HEADER_LEN)
    };
    Some(Received {
        source,
        destination,
        protocol,
        hop_limit: 0,
        ecn: Default::default(),
        is_group: false,
        is_checked: false,
        data,
        l4,
        protocol_offset: 0,
        more: Default::default(),
        segment_size: 0,
    })
}

fn quoted_flow4(quoted: &[u8]) -> Option<QuotedFlow> {
    let header = ipv4::Header::parse_quoted(quoted).ok()?;
    if header.fragment_offset() != 0 {
        return None;
    }
    let ports = header.payload().first_chunk::<8>()?;
    Some(QuotedFlow {
        packet_len: usize::from(header.total_len()),
        ..flow(header.source().into(), header.destination().into(), header.protocol(), ports)
    })
}

fn quoted_flow6(quoted: &[u8]) -> Option<QuotedFlow> {
    let header = ipv6::Header::parse_quoted(quoted).ok()?;
    let chain = header.chain().ok()?;
    if chain.fragment.is_some_and(|fragment| fragment.offset != 0) {
        return None;
    }
    let ports = chain.payload.first_chunk::<8>()?;
    Some(QuotedFlow {
        packet_len: ip_header_len(header.source().into()) + usize::from(header.payload_len()),
        ..flow(header.source().into(), header.destination().into(), chain.upper, ports)
    })
}

fn flow(source: IpAddr, destination: IpAddr, protocol: Protocol, front: &[u8; 8]) -> QuotedFlow {
    let [a, b, c, d, e, f, g, h] = *front;
    QuotedFlow {
        source,
        destination,
        protocol,
        source_port: u16::from_be_bytes([a, b]),
        destination_port: u16::from_be_bytes([c, d]),
        sequence: SeqNumber(u32::from_be_bytes([e, f, g, h])),
        packet_len: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_packets_are_found_as_far_as_they_are_there() {
        let mut bytes = [0; 28];
        let header = ipv4::Builder::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), Protocol::TCP, 1_460);
        header.emit(&mut bytes).unwrap();
        bytes[20..28].copy_from_slice(&[0, 80, 0xc0, 1, 1, 2, 3, 4]);
        let quoted = quoted_flow4(&bytes).unwrap();
        assert_eq!((quoted.source, quoted.source_port), (IpAddr::from([10, 0, 0, 1]), 80));
        assert_eq!((quoted.destination_port, quoted.sequence.0), (0xc001, 0x0102_0304));
        assert_eq!(quoted.packet_len, 1_480);
        assert!(quoted_flow4(&bytes[..27]).is_none());
        assert!(quoted_flow6(&bytes).is_none());
    }

    /// Somebody on the path quotes as much as it likes.
    #[test]
    fn a_quoted_fragment_may_end_anywhere() {
        let mut bytes = [0; 40 + 8 + 8 + 13];
        let header = ipv6::Builder::new(1.into(), 2.into(), Protocol::FRAGMENT, 1_460);
        header.emit(&mut bytes).unwrap();
        let fragment =
            ipv6::Fragment { next_header: Protocol::UDP, offset: 0, more: true, identification: 7 };
        fragment.emit(&mut bytes[40..]).unwrap();
        bytes[48..50].copy_from_slice(&[0x13, 0x88]);
        for len in 56..bytes.len() {
            let quoted = quoted_flow6(&bytes[..len]).unwrap();
            assert_eq!(
                (quoted.protocol, quoted.source_port, quoted.packet_len),
                (Protocol::UDP, 5_000, 1_500)
            );
        }
        assert!(quoted_flow6(&bytes[..55]).is_none());
    }
}
