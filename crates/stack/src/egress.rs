//! Frames: Ethernet and IP headers around what the layers above made.

use crate::counters::Counters;
use crate::packet::must;
use crate::packet::{Packet, v4, v6};
use crate::random::KeyedState;
use crate::tcp::{Connection, Head};
use core::hash::BuildHasher;
use core::net::{IpAddr, SocketAddr};
use linerate_nic::{ChecksumRequest, MacAddr, Segmentation, TxMeta, TxPacket, TxQueue, TxToken};
use linerate_transport::ConnId;
use linerate_wire::checksum::{self, Sum};
use linerate_wire::ethernet::{self, EtherType};
use linerate_wire::ip::{Ecn, Protocol};
use linerate_wire::vlan::{MAX_TAGS, TAG_LEN, Tag, Tags};
use linerate_wire::{arp, ipv4, ipv6, tcp};

/// Why a packet did not leave, or not all of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Emitted {
    /// It left.
    Done,
    /// The transmit queue is full; the packet knows which fragments left.
    Full,
}

/// The longest headers below TCP.
const MAX_FRONT: usize = ethernet::HEADER_LEN + MAX_TAGS * TAG_LEN + ipv6::HEADER_LEN;
/// The usual ones: Ethernet without tags, IPv4 without options.
const USUAL_FRONT: usize = ethernet::HEADER_LEN + ipv4::MIN_HEADER_LEN;
/// To the end of the checksum of TCP behind them.
const USUAL_END: usize = USUAL_FRONT + tcp::CHECKSUM_OFFSET + 2;
/// Where the lengths are in the headers of IP, and the checksum in that of IPv4.
const IPV4_LEN: usize = 2;
const IPV4_CHECKSUM: usize = 10;
const IPV6_LEN: usize = 4;
/// Room for all headers of an acknowledgement with timestamps.
const BARE_ACK: usize = 96;
const _: () = assert!(MAX_FRONT + STAMPED_LEN <= BARE_ACK);
/// The header of TCP with timestamps alone.
const STAMPED_LEN: usize = 32;

/// How the packets of a connection go, between its ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpWay {
    pub(crate) tos: u8,
    pub(crate) mac: MacAddr,
}

/// Builds frames.
pub(crate) struct Egress {
    link: Link,
    hasher: KeyedState,
    identification: u32,
    /// The headers of the connection that sent last, and what they are made for: itself, its next hop, its type of service; and its
    /// addresses.
    front: Front,
    front_for: Option<(ConnId, MacAddr, u8)>,
    front_between: Option<(IpAddr, IpAddr)>,
    /// The same for who acknowledged last, with the header of TCP.
    bare_ack: BareAck,
    bare_ack_for: Option<(ConnId, MacAddr, u8)>,
}

/// What all frames of an interface begin with.
struct Link {
    mac: MacAddr,
    tags: Tags,
}

impl Link {
    fn ethernet(&self, out: &mut [u8], destination: MacAddr, ether_type: EtherType) -> usize {
        let header = ethernet::Builder { destination, source: self.mac, tags: self.tags, ether_type };
        // The header block has room for all headers that we write (MAX_HEADER).
        header.emit(out).unwrap_or(0)
    }
}

impl Egress {
    /// Frames from `mac`, tagged for `vlan`.
    pub(crate) fn new(mac: MacAddr, vlan: Option<u16>, hasher: KeyedState, identification: u32) -> Self {
        let tags = match vlan {
            Some(id) => Tags::one(Tag { protocol: EtherType::VLAN, priority: 0, drop_eligible: false, id }),
            None => Tags::NONE,
        };
        Egress {
            link: Link { mac, tags },
            hasher,
            identification,
            front: Front::NONE,
            front_for: None,
            front_between: None,
            bare_ack: BareAck::NONE,
            bare_ack_for: None,
        }
    }

    /// Bytes of the Ethernet header.
    pub(crate) fn link_len(&self) -> usize {
        ethernet::HEADER_LEN + self.link.tags.emitted_len()
    }

    /// Where layer 4 begins in a frame of TCP over the family of `ip`.
    pub(crate) fn l4_offset(&self, ip: IpAddr) -> usize {
        self.link_len() + ip_header_len(ip)
    }

    /// An ARP packet; false when the queue is full.
    pub(crate) fn arp(
        &mut self,
        packet: &arp::Builder,
        destination: MacAddr,
        queue: &mut TxQueue,
        counters: &mut Counters,
    ) -> bool {
        let Some(slot) = queue.vacant() else { return false };
        let link_len = self.link_len();
        let out = slot.header_mut(link_len + arp::PACKET_LEN);
        self.link.ethernet(out, destination, EtherType::ARP);
        must(packet.emit(&mut out[link_len..]));
        counters.arp_out += 1;
        count_frame(slot, counters);
        queue.commit();
        true
    }

    /// An IP packet to the station `mac`, in fragments where it is longer than `mtu`.
    pub(crate) fn ip(
        &mut self,
        packet: &mut Packet,
        mac: MacAddr,
        mtu: usize,
        queue: &mut TxQueue,
        counters: &mut Counters,
    ) -> Emitted {
        let header_len = ip_header_len(packet.fields.destination);
        if packet.fragmented == 0 && header_len + packet.len() <= mtu {
            return self.whole(packet, mac, queue, counters);
        }
        if packet.fragmented == 0 {
            self.begin_fragments(packet);
        }
        let extension = if packet.fields.destination.is_ipv4() { 0 } else { ipv6::Fragment::LEN };
        let step = mtu.saturating_sub(header_len + extension) / 8 * 8;
        while packet.fragmented < packet.len() && step > 0 {
            let Some(slot) = queue.vacant() else { return Emitted::Full };
            let end = (packet.fragmented + step).min(packet.len());
            self.fragment(packet, mac, end, slot);
            count_frame(slot, counters);
            count_ip(packet.fields.destination, counters);
            counters.fragments_out += 1;
            queue.commit();
            packet.fragmented = end;
        }
        Emitted::Done
    }

    fn whole(
        &mut self,
        packet: &mut Packet,
        mac: MacAddr,
        queue: &mut TxQueue,
        counters: &mut Counters,
    ) -> Emitted {
        let Some(slot) = queue.vacant() else { return Emitted::Full };
        if routers_may_cut(packet) {
            self.identify(packet);
        }
        let l4 = self.l4_offset(packet.fields.destination);
        let len = packet.len();
        if let Some(offset) = packet.checksum {
            let sum = packet.fields.pseudo_header(len).folded();
            put16(packet.head_mut(), usize::from(offset), sum);
            slot.meta.checksum = Some(ChecksumRequest { start: l4 as u16, offset: u16::from(offset) });
        }
        let head = packet.head();
        let out = slot.header_mut(l4 + head.len());
        self.ip_headers(packet, mac, len, None, out);
        out[l4..].copy_from_slice(head);
        slot.meta.header_len = (l4 + head.len()) as u16;
        if let Some(tail) = &packet.tail {
            must(slot.push_chunk(tail.chunk(0..tail.len())));
        }
        count_frame(slot, counters);
        count_ip(packet.fields.destination, counters);
        queue.commit();
        Emitted::Done
    }

    /// Chooses the identification of a packet that is cut, here or by routers.
    fn identify(&mut self, packet: &mut Packet) {
        self.identification = self.identification.wrapping_add(1);
        // A counter per destination that nobody else can tell from another's (RFC 7739 section 5.3).
        let offset = self.hasher.hash_one(packet.fields.destination) as u32;
        packet.identification = self.identification.wrapping_add(offset);
    }

    /// Chooses the identification and computes the checksum over the whole, which no device can do over fragments.
    fn begin_fragments(&mut self, packet: &mut Packet) {
        self.identify(packet);
        if let Some(offset) = packet.checksum.take() {
            let mut sum = packet.fields.pseudo_header(packet.len());
            sum.add(packet.head());
            sum.add(packet.tail.as_ref().map_or(&[], |tail| tail.bytes()));
            put16(packet.head_mut(), usize::from(offset), sum.finish_udp());
        }
    }

    /// The fragment from `packet.fragmented` to `end` of the layer-4 part.
    fn fragment(&self, packet: &Packet, mac: MacAddr, end: usize, slot: &mut TxPacket) {
        let start = packet.fragmented;
        let head = packet.head();
        let inline = if start == 0 { head } else { &[] };
        let extension = if packet.fields.destination.is_ipv4() { 0 } else { ipv6::Fragment::LEN };
        let l4 = self.l4_offset(packet.fields.destination) + extension;
        let out = slot.header_mut(l4 + inline.len());
        let part = Part { start, more: end < packet.len() };
        self.ip_headers(packet, mac, end - start, Some(part), out);
        out[l4..].copy_from_slice(inline);
        slot.meta.header_len = (l4 + inline.len()) as u16;
        if let Some(tail) = &packet.tail {
            let range = start.max(head.len()) - head.len()..end - head.len();
            must(slot.push_chunk(tail.chunk(range)));
        }
    }

    /// Ethernet and IP headers in front of `payload_len` bytes.
    fn ip_headers(
        &self,
        packet: &Packet,
        mac: MacAddr,
        payload_len: usize,
        part: Option<Part>,
        out: &mut [u8],
    ) {
        let fields = &packet.fields;
        let ecn = Ecn::from_bits(fields.tos);
        if fields.destination.is_ipv4() {
            let at = self.link.ethernet(out, mac, EtherType::IPV4);
            let header = ipv4::Builder {
                ttl: fields.hop_limit,
                dscp: fields.tos >> 2,
                ecn,
                identification: packet.identification as u16,
                dont_fragment: part.is_none() && !routers_may_cut(packet),
                more_fragments: part.is_some_and(|part| part.more),
                fragment_offset: part.map_or(0, |part| part.start as u16),
                ..ipv4::Builder::new(v4(fields.source), v4(fields.destination), fields.protocol, payload_len)
            };
            must(header.emit(&mut out[at..]));
            return;
        }
        let at = self.link.ethernet(out, mac, EtherType::IPV6);
        let (next_header, extension) = match part {
            Some(_) => (Protocol::FRAGMENT, ipv6::Fragment::LEN),
            None => (fields.protocol, 0),
        };
        let header = ipv6::Builder {
            hop_limit: fields.hop_limit,
            dscp: fields.tos >> 2,
            ecn,
            ..ipv6::Builder::new(
                v6(fields.source),
                v6(fields.destination),
                next_header,
                payload_len + extension,
            )
        };
        must(header.emit(&mut out[at..]));
        if let Some(part) = part {
            let header = ipv6::Fragment {
                next_header: fields.protocol,
                offset: part.start as u16,
                more: part.more,
                identification: packet.identification,
            };
            must(header.emit(&mut out[at + ipv6::HEADER_LEN..]));
        }
    }

    /// The headers below TCP of the packets of a connection that are marked `ecn`: those of the last time, where it is the same
    /// connection, or one between the same addresses.
    #[inline]
    pub(crate) fn front_of(&mut self, id: ConnId, to: &TcpWay, ecn: Ecn, tcp: &Connection) -> &Front {
        let wanted = Some((id, to.mac, to.tos));
        if self.front_for != wanted || self.front.ecn != ecn {
            self.turn_front_to(id, to, ecn, tcp.ends());
        }
        &self.front
    }

    fn turn_front_to(
        &mut self,
        id: ConnId,
        to: &TcpWay,
        ecn: Ecn,
        (local, remote): (&SocketAddr, &SocketAddr),
    ) {
        let goes_alike = self.front_for.is_some_and(|(_, mac, tos)| (mac, tos) == (to.mac, to.tos));
        let is_between = |(from, to): &(IpAddr, IpAddr)| is_at(local, from) && is_at(remote, to);
        if !goes_alike || self.front.ecn != ecn || !self.front_between.as_ref().is_some_and(is_between) {
            let between = (local.ip(), remote.ip());
            self.front.make(&self.link, to, ecn, between);
            self.front_between = Some(between);
        }
        self.front_for = Some((id, to.mac, to.tos));
    }

    /// Writes an acknowledgement of a connection that says nothing else: that of the last time, where it is the same
    /// connection, with what `head` says.
    #[inline]
    pub(crate) fn bare_ack(
        &mut self,
        id: ConnId,
        to: &TcpWay,
        tcp: &Connection,
        head: &Head,
        slot: &mut TxPacket,
        counters: &mut Counters,
    ) {
        let wanted = Some((id, to.mac, to.tos));
        if self.bare_ack_for != wanted {
            self.bare_ack = self.make_bare_ack(to, tcp, head);
            self.bare_ack_for = wanted;
        }
        let BareAck { bytes, l4, len, is_v4 } = &self.bare_ack;
        if let Some(out) = slot.header_mut(BARE_ACK).first_chunk_mut() {
            *out = *bytes;
        }
        let segment = slot.header_mut(*len).get_mut(*l4..).unwrap_or_default();
        must(tcp::renew(segment, (head.seq, head.ack), head.window, head.timestamps));
        slot.meta.checksum = Some(ChecksumRequest { start: *l4 as u16, offset: tcp::CHECKSUM_OFFSET as u16 });
        slot.meta.header_len = *len as u16;
        count_frame(slot, counters);
        if *is_v4 {
            counters.ipv4_out += 1;
        } else {
            counters.ipv6_out += 1;
        }
    }

    #[inline(never)]
    fn make_bare_ack(&self, to: &TcpWay, tcp: &Connection, head: &Head) -> BareAck {
        let (local, remote) = (tcp.local(), tcp.remote());
        let mut front = Front::NONE;
        front.make(&self.link, to, Ecn::NotCapable, (local.ip(), remote.ip()));
        let mut bytes = [0; BARE_ACK];
        let (l4, is_v4) = (front.l4, front.is_v4);
        let plain = tcp::PlainBuilder {
            source_port: local.port(),
            destination_port: remote.port(),
            flags: head.flags,
            timestamps: head.timestamps,
            ..tcp::PlainBuilder::default()
        };
        must(plain.emit(bytes.get_mut(l4..).unwrap_or_default()));
        let len = plain.header_len();
        front.write(&mut bytes, len);
        BareAck { bytes, l4, len: l4 + len, is_v4 }
    }
}

/// All headers of an acknowledgement without payload and options but timestamps.
struct BareAck {
    bytes: [u8; BARE_ACK],
    /// Where TCP begins, and where its header ends.
    l4: usize,
    len: usize,
    is_v4: bool,
}

impl BareAck {
    /// Before anybody acknowledged.
    const NONE: BareAck = BareAck { bytes: [0; BARE_ACK], l4: 0, len: 0, is_v4: true };
}

/// Ethernet and IP headers for a payload of no bytes, and the sum of its pseudo-header: what the packets of a connection have in
/// common.
pub(crate) struct Front {
    bytes: [u8; MAX_FRONT],
    ip: usize,
    /// Where TCP begins.
    l4: usize,
    is_v4: bool,
    pseudo: Sum,
    ecn: Ecn,
}

impl Front {
    /// Before anybody sent.
    const NONE: Front =
        Front { bytes: [0; MAX_FRONT], ip: 0, l4: 0, is_v4: true, pseudo: Sum::ZERO, ecn: Ecn::NotCapable };

    /// Makes it those of packets from one address to another, in place: where connections of many peers send in turn, that is once for each
    /// packet.
    #[inline(never)]
    fn make(&mut self, link: &Link, to: &TcpWay, ecn: Ecn, (local, remote): (IpAddr, IpAddr)) {
        let bytes = &mut self.bytes;
        let dscp = to.tos >> 2;
        (self.ip, self.pseudo) = match (local, remote) {
            (IpAddr::V4(local), IpAddr::V4(remote)) => {
                let ip = link.ethernet(bytes, to.mac, EtherType::IPV4);
                let header =
                    ipv4::Builder { dscp, ecn, ..ipv4::Builder::new(local, remote, Protocol::TCP, 0) };
                must(header.emit(&mut bytes[ip..]));
                (ip, header.pseudo_header())
            }
            (local, remote) => {
                let ip = link.ethernet(bytes, to.mac, EtherType::IPV6);
                let (local, remote) = (v6(local), v6(remote));
                let header =
                    ipv6::Builder { dscp, ecn, ..ipv6::Builder::new(local, remote, Protocol::TCP, 0) };
                must(header.emit(&mut bytes[ip..]));
                (ip, header.pseudo_header())
            }
        };
        (self.l4, self.is_v4, self.ecn) = (self.ip + ip_header_len(remote), remote.is_ipv4(), ecn);
    }

    /// Completes a packet whose TCP header and payload a connection wrote: lower headers, the pseudo-header's sum over
    /// the full length in the checksum field, and what the device is asked for.
    pub(crate) fn complete(
        &self,
        slot: &mut TxPacket,
        info: &crate::tcp::TxInfo,
        token: TxToken,
        counters: &mut Counters,
    ) {
        let len = info.header_len + info.payload_len;
        let out = slot.header_bytes_mut();
        if !self.write_usual(out, len) {
            self.write(out, len);
        }
        let (size, is_v4) = (info.segment_size, self.is_v4);
        slot.meta = TxMeta {
            checksum: Some(ChecksumRequest { start: self.l4 as u16, offset: tcp::CHECKSUM_OFFSET as u16 }),
            segmentation: match size {
                0 => Segmentation::None,
                size if is_v4 => Segmentation::Tcp4(size),
                size => Segmentation::Tcp6(size),
            },
            header_len: (self.l4 + info.header_len) as u16,
            token,
        };
        count_frame(slot, counters);
        if is_v4 {
            counters.ipv4_out += 1;
        } else {
            counters.ipv6_out += 1;
        }
    }

    /// Writes what [`Front::write`] writes where nearly all headers are: at places that are known to the compiler. False where
    /// they are not.
    #[inline]
    fn write_usual(&self, out: &mut [u8], len: usize) -> bool {
        let (Some(out), Ok(len)) = (out.first_chunk_mut::<USUAL_END>(), u16::try_from(len)) else {
            return false;
        };
        let Some(total) = len.checked_add(ipv4::MIN_HEADER_LEN as u16) else { return false };
        // Only IPv4 without options and tags is so short.
        if self.l4 != USUAL_FRONT {
            return false;
        }
        let (mut sum, front) = (self.pseudo, &self.bytes);
        sum.add_u16(len);
        // In two pieces, or it becomes a copy of unknown length.
        out[..32].copy_from_slice(&front[..32]);
        [out[32], out[33]] = [front[32], front[33]];
        let [at, checksum_at] = [IPV4_LEN, IPV4_CHECKSUM].map(|at| ethernet::HEADER_LEN + at);
        let before = u16::from_be_bytes([front[checksum_at], front[checksum_at + 1]]);
        let checksum = checksum::update(before, ipv4::MIN_HEADER_LEN as u16, total);
        [out[at], out[at + 1]] = total.to_be_bytes();
        [out[checksum_at], out[checksum_at + 1]] = checksum.to_be_bytes();
        [out[USUAL_END - 2], out[USUAL_END - 1]] = sum.folded().to_be_bytes();
        true
    }

    /// Writes the headers for a payload of `len` bytes, and the sum of the pseudo-header.
    fn write(&self, out: &mut [u8], len: usize) {
        if let (Some(out), Some(front)) = (out.get_mut(..self.l4), self.bytes.get(..self.l4)) {
            out.copy_from_slice(front);
        }
        let mut sum = self.pseudo;
        sum.add_u32(len as u32);
        put16(out, self.l4 + tcp::CHECKSUM_OFFSET, sum.folded());
        if self.is_v4 {
            let empty = ipv4::MIN_HEADER_LEN as u16;
            let total = u16::try_from(len + ipv4::MIN_HEADER_LEN);
            debug_assert!(total.is_ok(), "{len} bytes in a packet");
            let total = total.unwrap_or(u16::MAX);
            let at = self.ip + IPV4_CHECKSUM;
            let sum = self.bytes.get(at..at + 2).map_or(0, |sum| u16::from_be_bytes([sum[0], sum[1]]));
            put16(out, self.ip + IPV4_LEN, total);
            put16(out, at, checksum::update(sum, empty, total));
        } else {
            let len = u16::try_from(len);
            debug_assert!(len.is_ok(), "{len:?} bytes in a packet");
            put16(out, self.ip + IPV6_LEN, len.unwrap_or(u16::MAX));
        }
    }
}

/// Which fragment.
#[derive(Clone, Copy)]
struct Part {
    start: usize,
    more: bool,
}

/// Whether routers may fragment a packet that leaves whole, over IPv4. Echo replies alone are not known again when a router
/// says that one was too big. All others must not be fragmented, so that their identification means nothing (RFC 6864 section 4.1).
fn routers_may_cut(packet: &Packet) -> bool {
    packet.fields.protocol == Protocol::ICMPV4
}

/// Bytes of the IP header that we write: without options or extensions.
pub(crate) fn ip_header_len(ip: IpAddr) -> usize {
    if ip.is_ipv4() { ipv4::MIN_HEADER_LEN } else { ipv6::HEADER_LEN }
}

fn put16(bytes: &mut [u8], at: usize, value: u16) {
    if let Some(field) = bytes.get_mut(at..at + 2) {
        field.copy_from_slice(&value.to_be_bytes());
    }
}

fn count_frame(slot: &TxPacket, counters: &mut Counters) {
    counters.frames_out += 1;
    counters.bytes_out += slot.len() as u64;
}

fn count_ip(destination: IpAddr, counters: &mut Counters) {
    match destination {
        IpAddr::V4(_) => counters.ipv4_out += 1,
        IpAddr::V6(_) => counters.ipv6_out += 1,
    }
}

/// Whether an end has this address. None is made, of 17 bytes that lie anywhere: this is asked for each packet.
fn is_at(end: &SocketAddr, ip: &IpAddr) -> bool {
    match (end, ip) {
        (SocketAddr::V4(end), IpAddr::V4(ip)) => end.ip() == ip,
        (SocketAddr::V6(end), IpAddr::V6(ip)) => end.ip() == ip,
        _ => false,
    }
}

#[cfg(test)]
#[path = "egress_tests.rs"]
mod tests;
