//! A device without a link layer: Ethernet headers are put on and taken off, and neighbours are invented.
//!
//! The stack speaks Ethernet. On a device that carries plain IP packets every next hop has the same made-up address:
//! ARP requests and neighbour solicitations are answered here, and nothing that concerns the link alone leaves.

use core::net::Ipv6Addr;
use linerate_nic::{MacAddr, TxPacket};
use linerate_wire::arp;
use linerate_wire::ethernet::{self, EtherType};
use linerate_wire::ip::Protocol;
use linerate_wire::ipv6;
use linerate_wire::ndp::{self, Message, NdpOption};
use std::collections::VecDeque;

/// The stack's own address on such a device.
pub(crate) const OUR_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
/// The address of everybody else.
const PEER_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

/// The longest packet that is answered here: a neighbour solicitation with a few options.
const MAX_QUESTION: usize = 256;
/// The longest answer: Ethernet, IPv6, neighbour advertisement with one option.
const MAX_ANSWER: usize = 14 + 40 + 32;
/// Answers that can wait. The stack repeats what was not answered.
const MAX_WAITING: usize = 64;

/// Answers that wait for the stack.
pub(crate) struct IpLink {
    waiting: VecDeque<([u8; MAX_ANSWER], usize)>,
}

impl IpLink {
    /// Nothing waits.
    pub(crate) fn new() -> Self {
        IpLink { waiting: VecDeque::with_capacity(MAX_WAITING) }
    }

    /// Whether the packet concerns the link alone; if it asks something, the answer waits from now on.
    pub(crate) fn answers(&mut self, packet: &TxPacket, mac: MacAddr) -> bool {
        let Ok(header) = ethernet::Header::parse(packet.header()) else { return true };
        let mut bytes = [0; MAX_QUESTION];
        match header.ether_type() {
            EtherType::ARP => {
                let len = packet.linearise(&mut bytes).unwrap_or(0);
                let answer = bytes.get(ethernet::HEADER_LEN..len).and_then(|arp| answer_arp(arp, mac));
                self.keep(answer);
                true
            }
            EtherType::IPV6 => {
                let Some(target) = packet.header().get(ethernet::HEADER_LEN..).and_then(destination) else {
                    return true;
                };
                let solicitation = packet
                    .linearise(&mut bytes)
                    .and_then(|len| bytes.get(ethernet::HEADER_LEN..len))
                    .and_then(|ip| answer_solicitation(ip, mac));
                let is_answered = solicitation.is_some();
                self.keep(solicitation);
                // ff02::/16 reaches only the link.
                is_answered || target.segments()[0] == 0xff02
            }
            _ => false,
        }
    }

    /// Whether an answer waits.
    pub(crate) fn has_reply(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn keep(&mut self, answer: Option<([u8; MAX_ANSWER], usize)>) {
        if self.waiting.len() < MAX_WAITING {
            self.waiting.extend(answer);
        }
    }

    /// Writes the next answer to the front of `out`, a whole frame; returns its length.
    pub(crate) fn reply(&mut self, out: &mut [u8]) -> Option<usize> {
        let (bytes, len) = self.waiting.pop_front()?;
        out.get_mut(..len)?.copy_from_slice(&bytes[..len]);
        Some(len)
    }
}

/// Puts an Ethernet header in front of a received packet, whose place begins 14 bytes into `buffer`. The first four bits
/// of the packet tell its family.
pub(crate) fn frame(buffer: &mut [u8]) {
    let is_ipv6 = buffer.get(ethernet::HEADER_LEN).is_some_and(|byte| byte >> 4 == 6);
    let ether_type = if is_ipv6 { EtherType::IPV6 } else { EtherType::IPV4 };
    let header =
        ethernet::Builder { destination: OUR_MAC, source: PEER_MAC, ether_type, ..Default::default() };
    let _ = header.emit(buffer);
}

/// The header block has the whole IPv6 header, but not the whole packet.
fn destination(ip: &[u8]) -> Option<Ipv6Addr> {
    ipv6::Header::parse_quoted(ip).ok().map(|header| header.destination())
}

fn answer_arp(bytes: &[u8], mac: MacAddr) -> Option<([u8; MAX_ANSWER], usize)> {
    let question = arp::Packet::parse(bytes).ok()?;
    // Probes and announcements of our own address want no answer (RFC 5227).
    let is_probe = question.sender_ip().is_unspecified() || question.sender_ip() == question.target_ip();
    if question.operation() != arp::Operation::REQUEST || is_probe {
        return None;
    }
    let reply = arp::Builder {
        operation: arp::Operation::REPLY,
        sender_mac: PEER_MAC,
        sender_ip: question.target_ip(),
        target_mac: mac,
        target_ip: question.sender_ip(),
    };
    let mut out = [0; MAX_ANSWER];
    let ethernet = ethernet_header(mac, EtherType::ARP);
    let start = ethernet.emit(&mut out).ok()?;
    let len = reply.emit(&mut out[start..]).ok()?;
    Some((out, start + len))
}

fn answer_solicitation(bytes: &[u8], mac: MacAddr) -> Option<([u8; MAX_ANSWER], usize)> {
    let header = ipv6::Header::parse(bytes).ok()?;
    if header.next_header() != Protocol::ICMPV6 || header.source().is_unspecified() {
        return None;
    }
    let (source, hops) = (header.source(), header.hop_limit());
    let question = ndp::Packet::parse(header.payload(), source, header.destination(), hops).ok()?;
    let Message::NeighbourSolicitation { target } = question.message() else { return None };
    let message = Message::NeighbourAdvertisement { router: false, solicited: true, overrides: true, target };
    let options = [NdpOption::TargetLinkLayer(PEER_MAC)];
    let mut ip = ipv6::Builder::new(target, source, Protocol::ICMPV6, message.emitted_len(&options));
    ip.hop_limit = ndp::HOP_LIMIT;
    let mut out = [0; MAX_ANSWER];
    let mut len = ethernet_header(mac, EtherType::IPV6).emit(&mut out).ok()?;
    len += ip.emit(&mut out[len..]).ok()?;
    len += message.emit(&options, target, source, &mut out[len..]).ok()?;
    Some((out, len))
}

fn ethernet_header(mac: MacAddr, ether_type: EtherType) -> ethernet::Builder {
    ethernet::Builder { destination: mac, source: PEER_MAC, ether_type, ..Default::default() }
}
