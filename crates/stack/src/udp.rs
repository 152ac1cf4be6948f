//! UDP sockets (RFC 768): bounded receive queues of slices, datagrams read where they lie.

use crate::bound::Bound;
use crate::packet::must;
use crate::packet::{IpFields, Packet, Received, Tail, pseudo_header};
use crate::ports;
use crate::ready::Slot;
use crate::slab::Slab;
use crate::stack::Stack;
use crate::tcp::{Charge, MemoryBudget};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use linerate_nic::{Pool, Slice};
use linerate_transport::{Datagram, ListenAddr, ListenError, Owner, Ready, UdpId, UdpSendError};
use linerate_wire::dhcpv4;
use linerate_wire::ip::Protocol;
use linerate_wire::udp::{self, Header};

/// Longest payload over IPv4: 65,535 less both headers.
const MAX_PAYLOAD4: usize = 65_507;
/// Over IPv6 the IP header does not count.
const MAX_PAYLOAD6: usize = 65_527;
/// Most payload that a packet carries by value: with the UDP header it fits the first fragment of the smallest MTU (68 bytes,
/// RFC 791), as what a packet carries by value is not split.
const MAX_INLINE: usize = 32;

/// A buffer of this length is one of few: a datagram does not stay in it that fills less than half of it.
const LARGE: usize = 16 << 10;

struct Waiting {
    remote: SocketAddr,
    local: SocketAddr,
    data: Kept,
}

/// A datagram's payload until it is read.
enum Kept {
    /// Where it came in.
    There(Slice),
    /// In memory of its own, as the buffer where it came in is far longer.
    Moved(Vec<u8>),
}

impl Kept {
    fn bytes(&self) -> &[u8] {
        match self {
            Kept::There(slice) => slice.bytes(),
            Kept::Moved(bytes) => bytes,
        }
    }

    /// Bytes of memory that it keeps.
    fn held(&self) -> usize {
        match self {
            Kept::There(slice) => slice.held(),
            Kept::Moved(bytes) => bytes.capacity(),
        }
    }
}

pub(crate) struct UdpSocket {
    pub(crate) id: UdpId,
    pub(crate) owner: Owner,
    ip: Option<IpAddr>,
    port: u16,
    /// Differentiated services code point of what it sends; ECN bits zero.
    tos: u8,
    queue: VecDeque<Waiting>,
    limit: usize,
    charge: Charge,
}

impl UdpSocket {
    /// The address (all of ours, if `None`) and port.
    pub(crate) fn bound_to(&self) -> (Option<IpAddr>, u16) {
        (self.ip, self.port)
    }

    /// Bytes that waiting datagrams hold.
    pub(crate) fn held(&self) -> usize {
        self.charge.bytes()
    }
}

/// All UDP sockets.
pub(crate) struct UdpSockets {
    table: Slab<UdpSocket>,
    bound: Bound,
    budget: MemoryBudget,
}

impl UdpSockets {
    /// Tables for so many sockets.
    pub(crate) fn new(capacity: usize, budget: MemoryBudget) -> Self {
        UdpSockets { table: Slab::new(capacity), bound: Bound::new(capacity), budget }
    }

    /// Sockets.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// All sockets with their slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &UdpSocket)> {
        self.table.iter()
    }

    /// The socket in a slot.
    pub(crate) fn at(&self, slot: u32) -> Option<&UdpSocket> {
        self.table.at(slot)
    }

    fn slot_for(&self, ip: IpAddr, port: u16) -> Option<u32> {
        self.bound.find(ip, port)
    }

    /// Whether a socket may have sent from this address and port.
    pub(crate) fn is_bound(&self, ip: IpAddr, port: u16) -> bool {
        self.slot_for(ip, port).is_some()
    }

    fn overlaps(&self, ip: Option<IpAddr>, port: u16) -> bool {
        self.bound.overlaps(ip, port)
    }
}

impl Stack {
    /// Takes a datagram.
    pub(crate) fn receive_udp(&mut self, packet: Received) {
        self.net.counters.udp_in += 1;
        let Ok(header) = Header::parse(packet.l4_bytes()) else {
            self.net.counters.drop_udp_malformed += 1;
            return;
        };
        if packet.segment_size != 0 {
            // Several datagrams in one: no device is asked to do that.
            self.net.counters.drop_udp_malformed += 1;
            return;
        }
        if !is_checksum_right(&packet, &header) {
            self.net.counters.drop_udp_checksum += 1;
            return;
        }
        let local = SocketAddr::new(packet.destination, header.destination_port());
        let remote = SocketAddr::new(packet.source, header.source_port());
        if local.port() == dhcpv4::CLIENT_PORT
            && remote.port() == dhcpv4::SERVER_PORT
            && self.receive_dhcp(header.payload())
        {
            return;
        }
        let Some(slot) = self.udp.slot_for(local.ip(), local.port()) else {
            if self.pass_on(&packet) {
                return;
            }
            self.net.counters.drop_udp_port += 1;
            self.send_port_unreachable(&packet);
            return;
        };
        let at = packet.l4 + udp::HEADER_LEN;
        let mut data = packet.data.clone();
        data.trim_front(at);
        data.truncate(header.payload().len());
        drop(packet);
        let data = compact(data, &self.net.pools.pages);
        self.queue_datagram(slot, Waiting { remote, local, data });
    }

    fn queue_datagram(&mut self, slot: u32, datagram: Waiting) {
        let Some(socket) = self.udp.table.at_mut(slot) else { return };
        let cost = datagram.data.held();
        // One datagram always fits, however small the buffer that was asked for.
        if !socket.queue.is_empty() && socket.charge.bytes() + cost > socket.limit {
            self.net.counters.drop_udp_receive_full += 1;
            return;
        }
        if !socket.charge.try_add(cost) {
            self.net.counters.drop_udp_no_memory += 1;
            return;
        }
        socket.queue.push_back(datagram);
        self.ready.raise(Slot::Udp(slot), Ready::READABLE);
    }

    pub(crate) fn bind_udp(
        &mut self,
        owner: Owner,
        addr: ListenAddr,
        receive_buffer: usize,
    ) -> Result<UdpId, ListenError> {
        let ip = self.local_ip(addr.ip)?;
        let port = match addr.port {
            0 => {
                let (udp, seat) = (&self.udp, self.team.seat);
                let is_free = |port| seat.may_choose(port) && !udp.overlaps(ip, port);
                ports::ephemeral(&mut self.net.random, is_free).ok_or(ListenError::NoMemory)?
            }
            port if self.udp.overlaps(ip, port) => return Err(ListenError::InUse),
            port => port,
        };
        let charge = self.udp.budget.charge();
        let queue = VecDeque::with_capacity((receive_buffer / 2_048).clamp(4, 1_024));
        let slot = self.udp.table.insert(|index, generation| UdpSocket {
            id: UdpId::new(index, generation),
            owner,
            ip,
            port,
            tos: 0,
            queue,
            limit: receive_buffer,
            charge,
        });
        let slot = slot.ok_or(ListenError::NoMemory)?;
        self.udp.bound.insert(ip, port, slot);
        self.ready.clear(Slot::Udp(slot));
        self.udp.table.at(slot).map(|socket| socket.id).ok_or(ListenError::NoMemory)
    }

    pub(crate) fn close_udp(&mut self, id: UdpId) {
        if self.udp.table.find(id.index(), id.generation()).is_none() {
            return;
        }
        if let Some(socket) = self.udp.table.remove(id.index()) {
            self.udp.bound.remove(socket.port, id.index());
            self.ready.clear(Slot::Udp(id.index()));
        }
    }

    pub(crate) fn set_udp_tos(&mut self, id: UdpId, tos: u8) {
        if let Some(socket) = self.udp.table.find_mut(id.index(), id.generation()) {
            socket.tos = tos & !3;
        }
    }

    /// Datagrams of up to so many bytes together wait in the socket from now on, and at least one. Those that wait already stay; an
    /// unknown id changes nothing.
    pub fn set_udp_receive_buffer(&mut self, id: UdpId, bytes: usize) {
        if let Some(socket) = self.udp.table.find_mut(id.index(), id.generation()) {
            socket.limit = bytes;
        }
    }

    pub(crate) fn peek_udp(&self, id: UdpId) -> Option<Datagram<'_>> {
        let socket = self.udp.table.find(id.index(), id.generation())?;
        let oldest = socket.queue.front()?;
        Some(Datagram { remote: oldest.remote, local: oldest.local, data: oldest.data.bytes() })
    }

    pub(crate) fn consume_udp(&mut self, id: UdpId) {
        if let Some(socket) = self.udp.table.find_mut(id.index(), id.generation())
            && let Some(oldest) = socket.queue.pop_front()
        {
            socket.charge.sub(oldest.data.held());
        }
    }

    pub(crate) fn send_udp(
        &mut self,
        id: UdpId,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        (head, body): (&[u8], &'static [u8]),
    ) -> Result<(), UdpSendError> {
        let socket = self.udp.table.find(id.index(), id.generation()).ok_or(UdpSendError::Closed)?;
        let remote_ip = remote.ip().to_canonical();
        let bound = local.map(|local| local.ip().to_canonical()).filter(|ip| !ip.is_unspecified());
        let from = bound.or(socket.ip);
        let most = if remote_ip.is_ipv4() { MAX_PAYLOAD4 } else { MAX_PAYLOAD6 };
        let len = head.len() + body.len();
        if len > most {
            return Err(UdpSendError::TooLong);
        }
        if from.is_some_and(|ip| !self.net.addresses.is_ours(ip)) {
            return Err(UdpSendError::Address);
        }
        if from.is_some_and(|ip| ip.is_ipv4() != remote_ip.is_ipv4()) || remote.port() == 0 {
            return Err(UdpSendError::Unreachable);
        }
        let (source, _) = self.net.route(from, remote_ip).ok_or(UdpSendError::Unreachable)?;
        let (source_port, tos) = (socket.port, socket.tos);
        let parts = if self.net.has_datagram_room() { self.lay_out(head, body) } else { None };
        let Some((inline, tail)) = parts else {
            self.net.counters.drop_udp_send_full += 1;
            return Err(UdpSendError::Full);
        };
        let fields = IpFields { tos, ..IpFields::new(source, remote_ip, Protocol::UDP) };
        let mut packet = Packet::new(fields, udp::HEADER_LEN + inline.len(), |front| {
            let (header, rest) = front.split_at_mut(udp::HEADER_LEN);
            let builder =
                udp::Builder { source_port, destination_port: remote.port(), payload_len: len, checksum: 0 };
            must(builder.emit(header));
            rest.copy_from_slice(inline);
        });
        packet.tail = tail;
        packet.checksum = Some(udp::CHECKSUM_OFFSET as u8);
        self.net.counters.udp_out += 1;
        self.net.send_datagram(packet);
        Ok(())
    }

    /// What of a datagram goes into the packet by value, and what follows; `None` without memory for a copy.
    fn lay_out<'a>(&self, head: &'a [u8], body: &'static [u8]) -> Option<(&'a [u8], Option<Tail>)> {
        if head.len() > MAX_INLINE {
            let copy = self.copy_datagram(head, body)?;
            return Some((&[], Some(Tail::Pool(copy))));
        }
        Some((head, (!body.is_empty()).then_some(Tail::Constant(body))))
    }

    /// A copy in a page or, where that is too short, a datagram buffer. An eighth of the pages stays for others.
    fn copy_datagram(&self, head: &[u8], body: &[u8]) -> Option<Slice> {
        let pools = &self.net.pools;
        let len = head.len() + body.len();
        let pool = if len <= pools.pages.buffer_size() { &pools.pages } else { &pools.datagrams };
        if pool.free() <= pool.stats().total / 8 {
            return None;
        }
        let mut buffer = pool.take()?;
        let (front, back) = buffer.bytes_mut().get_mut(..len)?.split_at_mut(head.len());
        front.copy_from_slice(head);
        back.copy_from_slice(body);
        Some(buffer.freeze(0..len))
    }
}

/// A copy of `data` in a buffer of `pool`.
fn copy_to(pool: &Pool, data: &[u8]) -> Option<Slice> {
    let mut buffer = pool.take()?;
    buffer.bytes_mut().get_mut(..data.len())?.copy_from_slice(data);
    Some(buffer.freeze(0..data.len()))
}

/// Moves a payload out of a buffer that is much larger, so that what is charged is what is held: a short one to a page, and what
/// came in fragments, in one of few buffers for the longest datagram, to memory of its own.
fn compact(data: Slice, pages: &Pool) -> Kept {
    let (page, len, held) = (pages.buffer_size(), data.len(), data.held());
    if len > page && len * 2 <= held && held >= LARGE {
        let mut bytes = Vec::new();
        if bytes.try_reserve_exact(len).is_ok() {
            bytes.extend_from_slice(data.bytes());
            return Kept::Moved(bytes);
        }
    } else if held > page
        && len * 4 < held
        && let Some(copy) = copy_to(pages, data.bytes())
    {
        return Kept::There(copy);
    }
    Kept::There(data)
}

fn is_checksum_right(packet: &Received, header: &Header<'_>) -> bool {
    // The checksum may be absent over IPv4 only (RFC 8200 section 8.1), whatever the device says.
    if packet.source.is_ipv6() && header.checksum() == 0 {
        return false;
    }
    if packet.is_checked {
        return true;
    }
    let len = usize::from(header.len());
    let sum = pseudo_header(packet.source, packet.destination, Protocol::UDP, len);
    header.verify_checksum4(sum)
}
