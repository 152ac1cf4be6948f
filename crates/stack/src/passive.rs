//! Passive opens: what a listener does with SYNs, and with the ACKs of SYN cookies.
//!
//! A SYN takes a connection while its listener's backlog, the half-open connections of the stack and the table have room.
//! Beyond that it is answered with a cookie ([`crate::syn_cookie`]), which costs a reply and no memory. A SYN is dropped
//! where the connection could not be accepted anyway: the accept queue is full, or memory is short. It is never
//! refused with a RST: the client tries again (RFC 9293 section 3.10.7.2 leaves it open).
//!
//! The ACK of a cookie is the end of a handshake that the client takes for done. Where there is no place for the
//! connection any more, a RST says so at once: a client that waits for the server to speak first would wait for ever.

use crate::conns::{Brink, Conns, Stage};
use crate::demux::FlowKey;
use crate::net::Priority;
use crate::packet::must;
use crate::packet::{IpFields, Outgoing, Packet};
use crate::stack::Stack;
use crate::syn_cookie::Offer;
use crate::tcp::{self, Connection, Outcome, SegmentIn};
use crate::tcp_input::{Arrived, NewConn, tcp_mss};
use alloc::rc::Rc;
use core::net::IpAddr;
use linerate_transport::{Ecn, ListenerId, Owner};
use linerate_wire::ip::Protocol;
use linerate_wire::tcp::{Builder, CHECKSUM_OFFSET, Flags, Options, Timestamps};

/// How far beyond the last number of a connection in TIME-WAIT the one that takes its place begins, at least: what was sent
/// without window scaling lies below (RFC 9293 section 3.6.1). Where a cookie answers, its number is what it is.
const BEYOND: i32 = 65_537;

impl Stack {
    /// Takes a SYN for a listener.
    pub(crate) fn open_passively(&mut self, listener: u32, syn: &mut Arrived) {
        let Some(listening) = self.conns.listeners.at(listener) else { return };
        if listening.is_full() {
            self.net.counters.drop_syn_backlog += 1;
            return;
        }
        let has_room =
            listening.has_room() && self.conns.count(Brink::HalfOpen) < self.net.config.max_half_open;
        if self.refuses_newcomers() {
            self.net.counters.drop_syn_no_memory += 1;
            return;
        }
        let Some((_, next_hop)) = self.net.route(Some(syn.local.ip()), syn.remote.ip()) else {
            self.net.counters.drop_no_route += 1;
            return;
        };
        if has_room && self.make_room() {
            self.begin_handshake(listener, syn, next_hop);
        } else {
            self.answer_with_cookie(listener, syn);
        }
    }

    fn begin_handshake(&mut self, listener: u32, syn: &mut Arrived, next_hop: IpAddr) {
        let Some((id, owner, config)) = self.accepting(listener, syn.remote.ip()) else { return };
        let (secrets, mut iss) = self.net.numbers(syn.local, syn.remote);
        if let Some(last) = syn.last
            && iss - last < BEYOND
        {
            iss = last + BEYOND as u32;
        }
        let verdict = self.judge_fast_open(listener, syn);
        let now = self.net.now;
        let mut place = self.conns.free_place();
        let resources = &self.conns.resources;
        let tcp = place.insert(Connection::active(now, config, resources, syn.local, syn.remote, iss));
        match tcp.answer(now, &syn.segment) {
            Ok(()) => {
                tcp.offer_cookie(verdict.cookie);
                if verdict.accepts {
                    let has_data = syn.segment.payload_len() > 0;
                    let taken = tcp.open_early(now, core::mem::take(&mut syn.segment));
                    self.net.counters.tfo_data_accepted += u64::from(has_data && taken == Outcome::Accepted);
                }
                let new = NewConn { place, owner, stage: Stage::HalfOpen(id), next_hop, secrets };
                if let Some(slot) = self.insert_half_open(listener, new) {
                    if verdict.accepts {
                        self.open_early(listener, slot);
                    }
                    self.conns.urgent.push(slot);
                    self.settle(slot);
                }
            }
            Err(reason) => {
                self.conns.give_back(place);
                self.net.counters.count_tcp_drop(reason);
            }
        }
    }

    /// A listener and its owner, and what it lets a connection to this address begin with.
    fn accepting(&mut self, listener: u32, remote: IpAddr) -> Option<(ListenerId, Owner, Rc<tcp::Config>)> {
        let Conns { listeners, configs, .. } = &mut self.conns;
        let listening = listeners.at(listener)?;
        let mss = tcp_mss(remote, self.net.paths.link_mtu(remote));
        let config = configs.of(&listening.options, mss, self.net.config.tcp_options);
        Some((listening.id, listening.owner, config))
    }

    fn insert_half_open(&mut self, listener: u32, new: NewConn) -> Option<u32> {
        let slot = self.insert_conn(new)?;
        self.net.counters.tcp_passive_opens += 1;
        self.conns.enter(Brink::HalfOpen, slot);
        if let Some(listening) = self.conns.listeners.at_mut(listener) {
            listening.begin();
        }
        Some(slot)
    }

    /// Answers a SYN and keeps nothing. No copy of the options, no allocation: this is the path of a flood.
    fn answer_with_cookie(&mut self, listener: u32, syn: &Arrived) {
        let Some(listening) = self.conns.listeners.at(listener) else { return };
        let net = &mut self.net;
        let (local, remote) = (syn.local, syn.remote);
        let flow = FlowKey::of(local, remote);
        let theirs = &syn.segment.options;
        let asks_for_ecn = syn.segment.flags.contains(Flags::ECE | Flags::CWR);
        let ecn = asks_for_ecn && listening.options.ecn != Ecn::Off;
        let offer = Offer::of(theirs, net.config.tcp_options, tcp::default_mss(remote.ip()), ecn);
        let iss = net.cookies.make(&flow, syn.segment.seq, &offer, net.now);
        let (window, scale) = tcp::initial_window(&listening.options, &self.conns.resources.budget);
        let most = tcp_mss(remote.ip(), net.paths.link_mtu(remote.ip()));
        let clock = net.iss.secrets(&flow).timestamp_offset.wrapping_add(net.now.as_millis() as u32);
        let syn_ack = Flags::SYN | Flags::ACK;
        let reply = Builder {
            source_port: local.port(),
            destination_port: remote.port(),
            sequence: iss,
            acknowledgement: syn.segment.seq + 1,
            flags: if offer.ecn { syn_ack | Flags::ECE } else { syn_ack },
            window,
            options: Options {
                mss: Some(listening.options.mss.map_or(most, |mss| mss.min(most))),
                window_scale: offer.window_scale.map(|_| scale),
                sack_permitted: offer.sack,
                timestamps: theirs
                    .timestamps
                    .filter(|_| offer.timestamps)
                    .map(|theirs| Timestamps { value: offer.timestamp(clock), echo: theirs.value }),
                ..Options::default()
            },
            ..Builder::default()
        };
        net.counters.syn_cookies_sent += 1;
        self.send_segment(local.ip(), remote.ip(), &reply);
    }

    /// Sends a segment of no connection.
    pub(crate) fn send_segment(&mut self, source: IpAddr, destination: IpAddr, segment: &Builder) {
        let fields = IpFields::new(source, destination, Protocol::TCP);
        let mut packet = Packet::new(fields, segment.header_len(), |head| {
            must(segment.emit(head));
        });
        packet.checksum = Some(CHECKSUM_OFFSET as u8);
        self.net.counters.tcp_out += 1;
        self.net.send(Outgoing::Ip(packet), Priority::Reply);
    }

    /// Takes an ACK for a listener that belongs to no connection, while cookies are out: the end of a handshake with one
    /// makes a connection. An ACK that fits none is dropped in silence: it may be of a client whose first segment is
    /// lost.
    pub(crate) fn accept_cookie(&mut self, listener: u32, arrived: &mut Arrived) {
        let now = self.net.now;
        let flow = arrived.flow();
        let segment = &arrived.segment;
        let echo = segment.options.timestamps.map(|timestamps| timestamps.echo);
        let client = segment.seq - 1;
        let offer = self.net.cookies.check(&flow, client, segment.ack - 1, echo, now);
        let Some(offer) = offer else {
            self.net.counters.syn_cookies_failed += 1;
            return;
        };
        let Some(listening) = self.conns.listeners.at(listener) else { return };
        if listening.is_overfull() {
            self.net.counters.drop_syn_cookie_backlog += 1;
            return self.reset(arrived);
        }
        if self.refuses_newcomers() {
            self.net.counters.drop_syn_no_memory += 1;
            return;
        }
        if !self.make_room_for_proven() {
            self.net.counters.drop_syn_cookie_table += 1;
            return self.reset(arrived);
        }
        self.resume_handshake(listener, arrived, &offer);
    }

    fn resume_handshake(&mut self, listener: u32, arrived: &mut Arrived, offer: &Offer) {
        let Arrived { local, remote, segment, .. } = arrived;
        let (local, remote, segment) = (*local, *remote, core::mem::take(segment));
        let Some((_, next_hop)) = self.net.route(Some(local.ip()), remote.ip()) else { return };
        let Some((id, owner, config)) = self.accepting(listener, remote.ip()) else { return };
        let (secrets, _) = self.net.numbers(local, remote);
        let offered = Options {
            mss: Some(offer.mss),
            window_scale: offer.window_scale,
            sack_permitted: offer.sack,
            timestamps: segment.options.timestamps.filter(|_| offer.timestamps),
            ..Options::default()
        };
        let syn = SegmentIn {
            seq: segment.seq - 1,
            flags: if offer.ecn { Flags::SYN | Flags::ECE | Flags::CWR } else { Flags::SYN },
            window: segment.window,
            options: offered,
            ..SegmentIn::default()
        };
        let mut place = self.conns.free_place();
        let (now, resources, iss) = (self.net.now, &self.conns.resources, segment.ack - 1);
        let (told, _) = tcp::initial_window(&config.socket, &resources.budget);
        let tcp = place.insert(Connection::active(now, config, resources, local, remote, iss));
        if let Err(reason) = tcp.resume(now, &syn, told) {
            self.conns.give_back(place);
            return self.net.counters.count_tcp_drop(reason);
        }
        let new = NewConn { place, owner, stage: Stage::HalfOpen(id), next_hop, secrets };
        let Some(slot) = self.insert_half_open(listener, new) else { return };
        self.net.counters.syn_cookies_accepted += 1;
        let Some(conn) = self.conns.awake(slot) else { return };
        if let Outcome::Dropped(reason) = conn.tcp.handle_segment(self.net.now, segment) {
            self.net.counters.count_tcp_drop(reason);
        }
        self.conns.urgent.push(slot);
        self.settle(slot);
    }

    /// As [`Stack::make_room`], for a connection whose peer is known to receive: the oldest half-open one gives way too, or
    /// a stalled orphan.
    pub(crate) fn make_room_for_proven(&mut self) -> bool {
        if self.make_room() {
            return true;
        }
        let Some(oldest) = self.conns.oldest(Brink::HalfOpen) else {
            return self.shed_orphan(true) && !self.conns.table.is_full();
        };
        self.net.counters.tcp_half_open_evicted += 1;
        self.finish_quietly(oldest);
        !self.conns.table.is_full()
    }

    /// Ends a half-open connection without a RST: nobody may be there to hear it.
    fn finish_quietly(&mut self, slot: u32) {
        if let Some(conn) = self.conns.awake(slot) {
            conn.tcp.give_up(self.net.now);
            self.finish(slot);
        }
    }
}
