//! Packets on their way out (not those of TCP connections, which are made where they leave), and packets that came in.

use core::fmt::Debug;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::ops::Range;
use linerate_nic::{Chunk, MacAddr, Pieces, Slice};
use linerate_wire::arp;
use linerate_wire::checksum::{Sum, pseudo_header4, pseudo_header6};
use linerate_wire::ip::{Ecn, Protocol};

/// Most bytes that a packet carries by value: its layer-4 header, or a whole short message.
pub(crate) const MAX_HEAD: usize = 72;

/// Hop limit of what we send, unless a protocol demands another.
pub(crate) const HOP_LIMIT: u8 = 64;

/// Writing that cannot fail, because what is written was measured before: a header in its place, a piece in a gather list.
#[track_caller]
pub(crate) fn must<T, E: Debug>(written: Result<T, E>) {
    debug_assert!(written.is_ok(), "{:?}", written.err());
}

/// Where on the link a packet goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NextHop {
    /// Where the routes and the neighbour cache say.
    Route,
    /// To this station or group.
    Direct(MacAddr),
}

/// What a packet is made of, besides its layer-4 part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct IpFields {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) protocol: Protocol,
    pub(crate) hop_limit: u8,
    /// Differentiated services code point and ECN bits.
    pub(crate) tos: u8,
    pub(crate) next_hop: NextHop,
}

impl IpFields {
    /// A packet that the routes lead.
    pub(crate) fn new(source: IpAddr, destination: IpAddr, protocol: Protocol) -> Self {
        IpFields { source, destination, protocol, hop_limit: HOP_LIMIT, tos: 0, next_hop: NextHop::Route }
    }

    /// The sum of the pseudo-header for a layer-4 part of `len` bytes.
    pub(crate) fn pseudo_header(&self, len: usize) -> Sum {
        pseudo_header(self.source, self.destination, self.protocol, len)
    }
}

/// The sum of the pseudo-header; addresses of different families count as the unspecified one.
pub(crate) fn pseudo_header(source: IpAddr, destination: IpAddr, protocol: Protocol, len: usize) -> Sum {
    let len = u32::try_from(len).unwrap_or(u32::MAX);
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => pseudo_header4(source, destination, protocol.0, len),
        _ => pseudo_header6(v6(source), v6(destination), protocol.0, len),
    }
}

/// An IPv4 address as one; the unspecified one for IPv6.
pub(crate) fn v4(ip: IpAddr) -> Ipv4Addr {
    match ip {
        IpAddr::V4(ip) => ip,
        IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
    }
}

/// An IPv6 address as one; the unspecified one for IPv4.
pub(crate) fn v6(ip: IpAddr) -> Ipv6Addr {
    match ip {
        IpAddr::V6(ip) => ip,
        IpAddr::V4(_) => Ipv6Addr::UNSPECIFIED,
    }
}

/// What follows the head of a packet. Not a [`Chunk`], which takes 16 bytes more: packets have their places in queues, by the hundred.
#[derive(Debug)]
pub(crate) enum Tail {
    Pool(Slice),
    Constant(&'static [u8]),
}

impl Tail {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Tail::Pool(slice) => slice.bytes(),
            Tail::Constant(bytes) => bytes,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes().len()
    }

    /// A part of it as a piece of a frame.
    pub(crate) fn chunk(&self, range: Range<usize>) -> Chunk {
        match self {
            Tail::Pool(slice) => Chunk::Pool(slice.slice(range)),
            Tail::Constant(bytes) => Chunk::constant(&bytes[range]),
        }
    }
}

/// An IP packet that waits to be sent.
#[derive(Debug)]
pub(crate) struct Packet {
    pub(crate) fields: IpFields,
    head: [u8; MAX_HEAD],
    head_len: u8,
    /// What follows the head.
    pub(crate) tail: Option<Tail>,
    /// Where in the head the UDP checksum lies that is still to be computed; it is zero then.
    pub(crate) checksum: Option<u8>,
    /// How much of the layer-4 part has left in fragments.
    pub(crate) fragmented: usize,
    /// What the fragments have in common, also those that routers make; chosen when the first leaves.
    pub(crate) identification: u32,
}

impl Packet {
    /// A packet whose layer-4 part begins with `head_len` bytes that `fill` writes (at most [`MAX_HEAD`]).
    #[inline]
    pub(crate) fn new(fields: IpFields, head_len: usize, fill: impl FnOnce(&mut [u8])) -> Self {
        let head_len = head_len.min(MAX_HEAD);
        let mut head = [0; MAX_HEAD];
        fill(&mut head[..head_len]);
        Packet {
            fields,
            head,
            head_len: head_len as u8,
            tail: None,
            checksum: None,
            fragmented: 0,
            identification: 0,
        }
    }

    /// The same with `tail` behind the head.
    pub(crate) fn with_tail(mut self, tail: Slice) -> Self {
        self.tail = Some(Tail::Pool(tail));
        self
    }

    /// The bytes held by value.
    pub(crate) fn head(&self) -> &[u8] {
        &self.head[..usize::from(self.head_len)]
    }

    /// The bytes held by value, to change.
    pub(crate) fn head_mut(&mut self) -> &mut [u8] {
        &mut self.head[..usize::from(self.head_len)]
    }

    /// Length of the layer-4 part in bytes.
    pub(crate) fn len(&self) -> usize {
        usize::from(self.head_len) + self.tail.as_ref().map_or(0, Tail::len)
    }
}

/// Something that waits to be sent.
#[derive(Debug)]
pub(crate) enum Outgoing {
    /// An IP packet.
    Ip(Packet),
    /// An ARP packet to a station or to all.
    Arp(arp::Builder, MacAddr),
}

/// An IP packet that came in, addressed to us, whole, its headers checked.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    /// What layer 4 is.
    pub(crate) protocol: Protocol,
    pub(crate) hop_limit: u8,
    pub(crate) ecn: Ecn,
    /// Sent to a group or to all, at the link layer or above: nothing is answered that could be multiplied.
    pub(crate) is_group: bool,
    /// Layer-4 checksums are known to be right.
    pub(crate) is_checked: bool,
    /// From the IP header on, without padding.
    pub(crate) data: Slice,
    /// Where layer 4 begins in `data`.
    pub(crate) l4: usize,
    /// Where in `data` the field is that names the layer-4 protocol.
    pub(crate) protocol_offset: usize,
    /// Further payload of a coalesced TCP segment.
    pub(crate) more: Pieces,
    /// Payload bytes of each coalesced segment; 0 if it is one segment.
    pub(crate) segment_size: u16,
}

impl Received {
    /// The layer-4 part, as far as it lies in the first piece.
    pub(crate) fn l4_bytes(&self) -> &[u8] {
        self.data.bytes().get(self.l4..).unwrap_or_default()
    }

    /// Length of the layer-4 part in bytes, all pieces together.
    pub(crate) fn l4_len(&self) -> usize {
        self.data.len().saturating_sub(self.l4) + self.more.len_bytes()
    }

    /// Whether the layer-4 checksum is right, computed over all pieces with the pseudo-header.
    pub(crate) fn verify_l4(&self) -> bool {
        let mut sum = pseudo_header(self.source, self.destination, self.protocol, self.l4_len());
        sum.add(self.l4_bytes());
        for piece in &self.more {
            sum.add(piece.bytes());
        }
        sum.is_valid()
    }
}
