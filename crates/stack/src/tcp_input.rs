//! TCP segments as they come in: to their connection, to a listener, or answered with a reset.

use crate::conns::{About, Brink, Conn, Mark, Stage};
use crate::demux::FlowKey;
use crate::dormancy::Place;
use crate::egress::ip_header_len;
use crate::iss::Secrets;
use crate::packet::Received;
use crate::stack::Stack;
use crate::tcp::{self, Connection, DropReason, Outcome, SegmentIn, State};
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use linerate_nic::{Pieces, Slice};
use linerate_transport::{CloseReason, ConnId, Owner, Ready};
use linerate_wire::ip::Ecn;
use linerate_wire::tcp::{Flags, Header, SeqNumber, Timestamps};
use linerate_wire::units::Instant;

/// A segment with the ends of its connection, from our side.
pub(crate) struct Arrived {
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    pub(crate) segment: SegmentIn,
    /// The last sequence number of ours of the connection that gives way to the one that it opens.
    pub(crate) last: Option<SeqNumber>,
}

impl Arrived {
    /// `ends`: our address and port, and the peer's.
    fn new((local, local_port, remote, remote_port): (IpAddr, u16, IpAddr, u16), segment: SegmentIn) -> Self {
        let (local, remote) = (SocketAddr::new(local, local_port), SocketAddr::new(remote, remote_port));
        Arrived { local, remote, segment, last: None }
    }

    pub(crate) fn flow(&self) -> FlowKey {
        FlowKey::of(self.local, self.remote)
    }
}

/// Largest TCP payload without options that a packet of `mtu` bytes to `destination` carries.
pub(crate) fn tcp_mss(destination: IpAddr, mtu: usize) -> u16 {
    let headers = ip_header_len(destination) + 20;
    u16::try_from(mtu.saturating_sub(headers)).unwrap_or(u16::MAX)
}

/// The packet that carries a TCP payload of `mss` bytes without options, in bytes.
pub(crate) fn mtu_for(destination: IpAddr, mss: u16) -> usize {
    usize::from(mss) + ip_header_len(destination) + 20
}

impl Stack {
    /// Takes a segment.
    pub(crate) fn receive_tcp(&mut self, packet: &mut Received) {
        if packet.is_group || packet.source.is_unspecified() {
            self.net.counters.drop_tcp_broadcast += 1;
            return;
        }
        if !packet.is_checked && !packet.verify_l4() {
            self.net.counters.drop_tcp_checksum += 1;
            return;
        }
        let slot = flow_of(packet).and_then(|flow| self.conns.find(&flow));
        if self.team.seat.is_shared() && !self.is_for_us(slot, packet) && self.pass_on(packet) {
            return;
        }
        let mut segment = SegmentIn::default();
        let Some((local, remote)) = parse(packet, &mut segment) else {
            self.net.counters.drop_tcp_malformed += 1;
            return;
        };
        self.net.counters.tcp_in += segment.segments() as u64;
        self.net.counters.tcp_bytes_in += segment.payload_len() as u64;
        let ends = (packet.destination, local, packet.source, remote);
        match slot {
            Some(slot) if !self.conns.is_on(Brink::TimeWait, slot) => {
                self.receive_for_conn(slot, &mut segment)
            }
            Some(slot) => self.receive_in_time_wait(slot, Arrived::new(ends, segment)),
            None => self.receive_for_listener(&mut Arrived::new(ends, segment)),
        }
    }

    /// Whether a segment belongs to the connection in `slot`, or opens one here; also if it cannot be read.
    fn is_for_us(&mut self, slot: Option<u32>, packet: &Received) -> bool {
        let conn = slot.and_then(|slot| self.conns.table.at(slot));
        if conn.is_some_and(|conn| conn.tcp.tcp_state() != State::SynReceived) {
            return true;
        }
        let Ok(header) = Header::parse(packet.l4_bytes()) else { return true };
        let flags = header.flags();
        if let Some(conn) = conn {
            // A SYN that came again may have come in on another queue, and have been answered there.
            let is_answer = flags.contains(Flags::ACK) && !flags.contains(Flags::RST);
            let ack = header.acknowledgement();
            // Nobody falls asleep in a handshake.
            let tcp = conn.tcp.connection();
            return !(is_answer && tcp.is_some_and(|tcp| tcp.is_of_another_handshake(ack)));
        }
        let (local, remote) = (packet.destination, packet.source);
        let flow = FlowKey::new(local, header.destination_port(), remote, header.source_port());
        let has_listener = self.conns.listener_for(local, header.destination_port()).is_some();
        if has_listener && flags.contains(Flags::ACK) && !flags.intersects(Flags::SYN | Flags::RST) {
            let echo = header.options().timestamps.map(|timestamps| timestamps.echo);
            let (client, cookie) = (header.sequence() - 1, header.acknowledgement() - 1);
            return self.net.cookies.check(&flow, client, cookie, echo, self.net.now).is_some();
        }
        has_listener && flags.contains(Flags::SYN) && !flags.contains(Flags::ACK)
    }

    /// The slot of the connection between these ends, ours first.
    pub(crate) fn find_flow(&self, local: (IpAddr, u16), remote: (IpAddr, u16)) -> Option<u32> {
        self.conns.find(&FlowKey::new(local.0, local.1, remote.0, remote.1))
    }

    /// A segment of a connection in TIME-WAIT, which gives way to a new one that it may begin.
    #[cold]
    fn receive_in_time_wait(&mut self, slot: u32, mut arrived: Arrived) {
        let reopens = |conn: &Conn| conn.may_reopen(&self.conns.resources, &arrived.segment);
        if self.conns.table.at(slot).is_some_and(reopens) && self.has_listener(&arrived) {
            self.settle_last();
            arrived.last = self.conns.awake(slot).map(|conn| conn.tcp.next_sequence());
            self.recycle(slot);
            self.receive_for_listener(&mut arrived);
        } else {
            self.receive_for_conn(slot, &mut arrived.segment);
        }
    }

    pub(crate) fn receive_for_conn(&mut self, slot: u32, segment: &mut SegmentIn) {
        let owes_ack = segment.sequence_len() > 0;
        self.receive_with(slot, owes_ack, |tcp, now| tcp.take_segment(now, segment));
    }

    /// A segment for the connection in `slot`, which `take` gives to it; it `owes_ack` where it takes sequence numbers.
    #[inline]
    pub(crate) fn receive_with(
        &mut self,
        slot: u32,
        owes_ack: bool,
        take: impl FnOnce(&mut Connection, Instant) -> Outcome,
    ) {
        let now = self.net.now;
        let Some(conn) = self.conns.awake(slot) else { return };
        match take(conn.tcp, now) {
            Outcome::Accepted => {
                // What arrives in its window shows that our packets arrive there (RFC 4861 section 7.3.1).
                if let Some(neighbor) = conn.neighbor {
                    self.net.neighbors.confirm(neighbor, now);
                }
            }
            Outcome::Dropped(reason) => self.net.counters.count_tcp_drop(reason),
        }
        let is_steady = conn.is_counted && conn.tcp.tcp_state() == State::Established;
        if owes_ack {
            self.conns.urgent.push(slot);
        } else {
            self.conns.sending.push(slot);
        }
        if is_steady {
            self.conns.prediction.confirm(slot);
        }
        self.settle_later(slot, is_steady);
    }

    fn has_listener(&self, arrived: &Arrived) -> bool {
        self.conns.listener_for(arrived.local.ip(), arrived.local.port()).is_some()
    }

    /// A segment of no connection: a SYN for a listener, or RFC 9293 section 3.10.7.1.
    fn receive_for_listener(&mut self, arrived: &mut Arrived) {
        self.settle_last();
        let flags = arrived.segment.flags;
        let listener = self.conns.listener_for(arrived.local.ip(), arrived.local.port());
        let is_syn = flags.contains(Flags::SYN) && !flags.intersects(Flags::ACK | Flags::RST | Flags::FIN);
        let is_ack = flags.contains(Flags::ACK) && !flags.intersects(Flags::SYN | Flags::RST);
        match listener {
            Some(listener) if is_syn => return self.open_passively(listener, arrived),
            Some(listener) if is_ack && self.net.cookies.are_out(self.net.now) => {
                return self.accept_cookie(listener, arrived);
            }
            // RFC 9293 section 3.10.7.2, fourth: whoever looks for listeners this way learns nothing.
            Some(_) if !flags.intersects(Flags::ACK | Flags::RST) => {
                return self.net.counters.count_tcp_drop(DropReason::NoAck);
            }
            _ => {}
        }
        self.net.counters.drop_tcp_no_connection += 1;
        self.reset(arrived);
    }

    /// Tells a new connection of its path, and where its timestamps start.
    fn set_out(&mut self, secrets: Secrets, tcp: &mut Connection) {
        let (now, remote) = (self.net.now, tcp.remote().ip());
        let path_mtu = self.net.paths.mtu(remote, now);
        tcp.set_out(now, tcp_mss(remote, path_mtu), secrets.timestamp_offset);
    }

    /// Puts a connection into the tables; `None` when they are full or the flow is taken.
    pub(crate) fn insert_conn(&mut self, new: NewConn) -> Option<u32> {
        let NewConn { mut place, owner, stage, next_hop, secrets } = new;
        let tcp = place.as_mut().as_mut()?;
        if self.conns.table.is_full() {
            self.conns.give_back(place);
            return None;
        }
        let (flow, tos) = (FlowKey::of(tcp.local(), tcp.remote()), tcp.config().socket.tos & !3);
        self.set_out(secrets, tcp);
        let routes = self.net.routes.version();
        let tcp = self.conns.settle_in(place);
        let about = |id| About {
            id,
            owner,
            flow,
            stage,
            pending: Ready::NONE,
            in_demux: true,
            is_counted: false,
            is_touched: true,
            tos,
            fast_open: None,
            next_hop,
            routes,
            neighbor: None,
            unreachable_since: Instant::FAR_FUTURE,
            retry_at: Instant::FAR_FUTURE,
            mark: Mark::NONE,
        };
        let conn = |index, generation| Conn { tcp, about: about(ConnId::new(index, generation)) };
        let slot = self.conns.table.insert(conn)?;
        if !self.conns.attach(slot) {
            self.conns.remove(slot);
            return None;
        }
        self.conns.welcome(slot, self.net.now);
        self.ready.clear(crate::ready::Slot::Conn(slot));
        Some(slot)
    }

    /// Whether there is a slot for one more connection; the oldest in TIME-WAIT gives way.
    pub(crate) fn make_room(&mut self) -> bool {
        while self.conns.table.is_full() {
            // Each turn takes one out of the list, whether or not its owner still keeps the slot.
            let Some(oldest) = self.conns.oldest(Brink::TimeWait) else { return false };
            self.net.counters.tcp_time_wait_recycled += 1;
            self.recycle(oldest);
        }
        true
    }

    /// Ends a connection in TIME-WAIT early.
    pub(crate) fn recycle(&mut self, slot: u32) {
        let now = self.net.now;
        let Some(conn) = self.conns.table.at(slot) else { return };
        if conn.stage == Stage::Orphan {
            self.release(slot);
        } else if let Some(conn) = self.conns.awake(slot) {
            conn.tcp.abort(now, CloseReason::Done);
            self.finish(slot);
        }
    }

    /// Answers a segment of no connection with a RST, within the limit of them.
    pub(crate) fn reset(&mut self, arrived: &Arrived) {
        let reset = tcp::reset_for(&arrived.segment, arrived.remote.port(), arrived.local.port());
        let Some(reset) = reset else { return };
        let net = &mut self.net;
        if !net.resets_limit.allow(arrived.remote.ip(), net.now, &mut net.random) {
            net.counters.drop_reset_limited += 1;
            return;
        }
        self.net.counters.tcp_resets_out += 1;
        self.send_segment(arrived.local.ip(), arrived.remote.ip(), &reset);
    }
}

/// A connection about to be put into the tables.
pub(crate) struct NewConn {
    /// Where it was made.
    pub(crate) place: Place,
    pub(crate) owner: Owner,
    pub(crate) stage: Stage,
    pub(crate) next_hop: IpAddr,
    pub(crate) secrets: Secrets,
}

/// The flow of a segment, from our side; `None` if its ports are not there.
fn flow_of(packet: &Received) -> Option<FlowKey> {
    let &[a, b, c, d] = packet.l4_bytes().first_chunk()?;
    let (remote, local) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    Some(FlowKey::new(packet.destination, local, packet.source, remote))
}

/// Moves the segment of a packet to where `segment` is; its ports, ours first.
fn parse(packet: &mut Received, segment: &mut SegmentIn) -> Option<(u16, u16)> {
    let header = Header::parse(packet.data.bytes().get(packet.l4..)?).ok()?;
    let (local, remote) = (header.destination_port(), header.source_port());
    segment.seq = header.sequence();
    segment.ack = header.acknowledgement();
    segment.flags = header.flags();
    segment.window = header.window();
    match header.options_bytes() {
        [] => {}
        bytes => match Timestamps::alone(bytes) {
            timestamps @ Some(_) => segment.options.timestamps = timestamps,
            None => segment.options = header.options(),
        },
    }
    segment.segment_size = packet.segment_size;
    segment.congestion_experienced = packet.ecn == Ecn::Congested;
    let payload_at = packet.l4 + header.header_len();
    let mut data = core::mem::take(&mut packet.data);
    data.trim_front(payload_at);
    if !packet.more.is_empty() {
        segment.more = core::mem::take(&mut packet.more);
    }
    if !data.is_empty() {
        segment.payload = Some(data);
    } else if !segment.more.is_empty() {
        // Headers alone in the first buffer: the payload, if any, begins with the next piece.
        segment.payload = take_first(&mut segment.more);
    }
    // Nobody can be connected to port 0 (RFC 6335 section 6), and no answer could be sent there.
    (remote != 0 && local != 0).then_some((local, remote))
}

/// Takes the first piece out of a list. It allocates for the others: a buffer that ends with the headers is rare.
fn take_first(pieces: &mut Pieces) -> Option<Slice> {
    let mut all = pieces.drain();
    let first = all.next()?;
    let rest: Vec<Slice> = all.collect();
    *pieces = Pieces::from(rest);
    Some(first)
}
