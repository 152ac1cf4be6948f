//! What all protocols share: addresses, routes, neighbours, queues of packets to send, timers, counters.

use crate::addresses::{Addresses, is_link_local};
use crate::config::StackConfig;
use crate::counters::Counters;
use crate::demux::FlowKey;
use crate::egress::{Egress, Emitted};
use crate::fast_open::FastOpenCookies;
use crate::iss::{IssGenerator, Secrets};
use crate::lists::Lists;
use crate::memory::StackPools;
use crate::neighbor::{Lookup, NeighborCache, NeighborRef};
use crate::packet::{IpFields, NextHop, Outgoing, Packet};
use crate::pmtu::PathMtus;
use crate::ports::Sequences;
use crate::random::{KeyedState, Random};
use crate::rate::{RateLimit, SourceLimit};
use crate::reassembly::Reassembly;
use crate::route::Routes;
use crate::syn_cookie::SynCookies;
use crate::timers::{Timer, Timers};
use alloc::collections::VecDeque;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use linerate_nic::{MacAddr, TxQueue};
use linerate_wire::arp;
use linerate_wire::tcp::SeqNumber;
use linerate_wire::units::Instant;

/// One place in this many of the control queue is not for answers to others; other answers than those of address
/// resolution leave twice as many.
const CONTROL_RESERVE: usize = 8;

/// Path MTUs of datagrams lowered per second.
const TOO_BIG_PER_SECOND: u32 = 20;

/// How urgent a control packet is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Priority {
    /// The stack cannot work without it: address resolution and configuration, resets.
    Control,
    /// An answer of address resolution: who does not get it gets nothing at all, so floods of SYNs must not push it out.
    Neighbor,
    /// Any other answer that somebody asked for; a flood of questions must not push out the others.
    Reply,
}

/// The shared state.
pub(crate) struct Net {
    pub(crate) config: StackConfig,
    pub(crate) now: Instant,
    /// Frames wait in the device.
    pub(crate) has_backlog: bool,
    pub(crate) counters: Counters,
    pub(crate) random: Random,
    pub(crate) iss: IssGenerator,
    /// Ports of the connections that are opened here.
    pub(crate) ports: Sequences,
    pub(crate) cookies: SynCookies,
    pub(crate) fast_open: FastOpenCookies,
    pub(crate) pools: StackPools,
    pub(crate) addresses: Addresses,
    /// The ends of the last plain packet that was let in, with the version of our addresses then.
    pub(crate) let_in: Option<(u32, IpAddr, IpAddr)>,
    pub(crate) routes: Routes,
    pub(crate) neighbors: NeighborCache<Packet>,
    /// Connections that wait for a neighbour, by the neighbour's slot.
    pub(crate) waiting: Lists,
    /// For TCP, whose quoted segments can be checked.
    pub(crate) paths: PathMtus,
    /// For datagrams besides.
    pub(crate) datagram_paths: PathMtus,
    pub(crate) reassembly: Reassembly,
    pub(crate) egress: Egress,
    pub(crate) timers: Timers,
    /// ARP announcements in defence of our addresses.
    pub(crate) defence_limit: RateLimit,
    pub(crate) errors_limit: SourceLimit,
    pub(crate) resets_limit: SourceLimit,
    pub(crate) too_big_limit: RateLimit,
    pub(crate) reports_limit: RateLimit,
    control: VecDeque<Outgoing>,
    datagrams: VecDeque<Packet>,
}

impl Net {
    /// The secrets of a new connection between these ends, ours first, and its initial sequence number.
    pub(crate) fn numbers(&self, local: SocketAddr, remote: SocketAddr) -> (Secrets, SeqNumber) {
        let secrets = self.iss.secrets(&FlowKey::of(local, remote));
        (secrets, SeqNumber(self.iss.iss(secrets, self.now)))
    }

    /// The state of a stack with this configuration, whose numbers are in range.
    pub(crate) fn new(config: StackConfig, seed: &[u8; 32], pools: StackPools) -> Self {
        let state = KeyedState::new(seed);
        let mut random = Random::for_seat(seed, config.seat.index);
        let identification = random.next_u32();
        let datagrams = pools.datagrams.stats().total;
        let groups = config.max_connections;
        Net {
            now: Instant::ZERO,
            has_backlog: false,
            counters: Counters::default(),
            iss: IssGenerator::new(seed, config.seat.index),
            ports: Sequences::new(seed, config.seat.index),
            cookies: SynCookies::new(seed),
            fast_open: FastOpenCookies::new(seed),
            addresses: Addresses::new(config.dad_transmits),
            let_in: None,
            routes: Routes::new(),
            neighbors: NeighborCache::new(config.max_neighbors, config.max_parked, state),
            waiting: Lists::new(config.max_neighbors, config.max_connections),
            paths: PathMtus::new(config.mtu, config.max_paths, state),
            datagram_paths: PathMtus::new(config.mtu, config.max_paths, state),
            // One buffer in four stays for sending.
            reassembly: Reassembly::new(pools.datagrams.clone(), (datagrams * 3 / 4).max(datagrams.min(1))),
            egress: Egress::new(config.mac, config.vlan, state, identification),
            timers: Timers::new(config.max_neighbors, config.max_connections),
            defence_limit: RateLimit::new(10, 20),
            errors_limit: SourceLimit::new(config.icmp_errors_per_second, 20, groups, state),
            resets_limit: SourceLimit::new(config.resets_per_second, 100, groups, state),
            reports_limit: RateLimit::new(1, 2),
            too_big_limit: RateLimit::new(TOO_BIG_PER_SECOND, 32),
            control: VecDeque::with_capacity(config.control_queue),
            datagrams: VecDeque::with_capacity(config.datagram_queue),
            random,
            pools,
            config,
        }
    }

    /// Queues a control packet; drops and counts it when there is no room.
    pub(crate) fn send(&mut self, packet: Outgoing, priority: Priority) {
        let places = self.config.control_queue;
        let room = places - self.control.len().min(places);
        let reserve = match priority {
            Priority::Control => 0,
            Priority::Neighbor => places / CONTROL_RESERVE,
            Priority::Reply => 2 * places / CONTROL_RESERVE,
        };
        if room > reserve {
            self.control.push_back(packet);
        } else {
            self.counters.drop_control_full += 1;
        }
    }

    /// Queues an ARP packet.
    pub(crate) fn send_arp(&mut self, packet: arp::Builder, destination: MacAddr) {
        self.send(Outgoing::Arp(packet, destination), Priority::Control);
    }

    /// Whether one more UDP datagram may be queued.
    pub(crate) fn has_datagram_room(&self) -> bool {
        self.datagrams.len() < self.config.datagram_queue
    }

    /// Queues a UDP datagram, if [`Net::has_datagram_room`].
    pub(crate) fn send_datagram(&mut self, packet: Packet) {
        if self.has_datagram_room() {
            self.datagrams.push_back(packet);
        }
    }

    /// Whether anything waits to be sent.
    pub(crate) fn has_packets(&self) -> bool {
        !self.control.is_empty() || !self.datagrams.is_empty() || self.neighbors.has_due()
    }

    /// Moves control packets to the device's queue, as far as there is room.
    #[inline]
    pub(crate) fn transmit_control(&mut self, queue: &mut TxQueue) {
        if !self.control.is_empty() {
            self.transmit_all_control(queue);
        }
    }

    #[inline(never)]
    fn transmit_all_control(&mut self, queue: &mut TxQueue) {
        while queue.room() > 0 {
            let Some(outgoing) = self.control.pop_front() else { return };
            match outgoing {
                Outgoing::Arp(packet, mac) => {
                    self.egress.arp(&packet, mac, queue, &mut self.counters);
                }
                Outgoing::Ip(mut packet) => match self.transmit(&mut packet, queue) {
                    Sent::Done => {}
                    Sent::Waits(neighbor) => self.park(neighbor, packet),
                    Sent::Full => {
                        self.control.push_front(Outgoing::Ip(packet));
                        return;
                    }
                },
            }
        }
    }

    /// Moves up to `budget` datagrams to the device's queue while more than `reserve` slots are free; returns how many.
    pub(crate) fn transmit_datagrams(&mut self, queue: &mut TxQueue, reserve: usize, budget: usize) -> usize {
        for count in 0..budget {
            if queue.room() <= reserve {
                return count;
            }
            let Some(mut packet) = self.datagrams.pop_front() else { return count };
            match self.transmit(&mut packet, queue) {
                Sent::Done => {}
                Sent::Waits(neighbor) => self.park(neighbor, packet),
                Sent::Full => {
                    self.datagrams.push_front(packet);
                    return count;
                }
            }
        }
        budget
    }

    /// Sends a packet now, or drops it, if neither its neighbour nor the device's queue is waited for.
    fn transmit(&mut self, packet: &mut Packet, queue: &mut TxQueue) -> Sent {
        let mac = match packet.fields.next_hop {
            NextHop::Direct(mac) => mac,
            NextHop::Route => match self.link_destination(&packet.fields) {
                LinkDestination::Known(mac) => mac,
                LinkDestination::Pending(neighbor) => return Sent::Waits(neighbor),
                LinkDestination::NoRoute => {
                    self.counters.drop_no_route += 1;
                    return Sent::Done;
                }
                LinkDestination::Refused => {
                    self.counters.drop_neighbor_unreachable += 1;
                    return Sent::Done;
                }
            },
        };
        let destination = packet.fields.destination;
        let mtu = self.paths.mtu(destination, self.now).min(self.datagram_paths.mtu(destination, self.now));
        match self.egress.ip(packet, mac, mtu, queue, &mut self.counters) {
            Emitted::Done => Sent::Done,
            Emitted::Full => Sent::Full,
        }
    }

    fn park(&mut self, neighbor: NeighborRef, packet: Packet) {
        if self.neighbors.park(neighbor, packet).is_some() {
            self.counters.drop_neighbor_queue += 1;
        }
    }

    fn link_destination(&mut self, fields: &IpFields) -> LinkDestination {
        if let Some(mac) = self.group_mac(fields.destination) {
            return LinkDestination::Known(mac);
        }
        let Some(next_hop) = self.routes.next_hop(fields.destination) else {
            return LinkDestination::NoRoute;
        };
        match self.resolve(next_hop) {
            Lookup::Known(_, mac) => LinkDestination::Known(mac),
            Lookup::Pending(neighbor) => LinkDestination::Pending(neighbor),
            Lookup::Refused => LinkDestination::Refused,
        }
    }

    /// The Ethernet group of a multicast or broadcast address.
    fn group_mac(&self, destination: IpAddr) -> Option<MacAddr> {
        match destination {
            IpAddr::V4(ip) if ip.is_multicast() => Some(MacAddr::ipv4_multicast(ip)),
            IpAddr::V4(ip) => self.addresses.is_broadcast(ip).then_some(MacAddr::BROADCAST),
            IpAddr::V6(ip) => ip.is_multicast().then(|| MacAddr::ipv6_multicast(ip)),
        }
    }

    /// Looks a neighbour up and arms its timer.
    pub(crate) fn resolve(&mut self, next_hop: IpAddr) -> Lookup {
        let lookup = self.neighbors.resolve(next_hop, self.now);
        self.arm_neighbor(&lookup);
        self.counters.neighbors_evicted = self.neighbors.evicted;
        lookup
    }

    /// The same with a handle from an earlier lookup, which may have become invalid.
    pub(crate) fn resolve_ref(&mut self, neighbor: Option<NeighborRef>, next_hop: &IpAddr) -> Lookup {
        match neighbor.and_then(|neighbor| self.neighbors.resolve_ref(neighbor, self.now)) {
            Some(lookup) => {
                self.arm_neighbor(&lookup);
                lookup
            }
            None => self.resolve(*next_hop),
        }
    }

    fn arm_neighbor(&mut self, lookup: &Lookup) {
        if let Lookup::Known(neighbor, _) | Lookup::Pending(neighbor) = lookup {
            self.timers.set(Timer::Neighbor(neighbor.slot), self.neighbors.deadline(neighbor.slot));
        }
    }

    /// Sends the packets that waited for a neighbour which is known now.
    pub(crate) fn unpark(&mut self, slot: u32) {
        while let Some(packet) = self.neighbors.unpark(slot) {
            self.send(Outgoing::Ip(packet), Priority::Control);
        }
    }

    /// Whether a packet to this address can be sent at all, and from which of our addresses.
    pub(crate) fn route(&self, local: Option<IpAddr>, destination: IpAddr) -> Option<(IpAddr, IpAddr)> {
        if self.addresses.is_ours(destination) || is_loopback(destination) {
            return None;
        }
        let next_hop = match self.group_mac(destination) {
            Some(_) => destination,
            None => self.routes.next_hop(destination)?,
        };
        let source = match local {
            Some(local) => local,
            None => self.addresses.source_for(destination, self.now)?,
        };
        // A link-local source cannot be answered from beyond the link.
        if source.is_ipv6() && is_link_local(source) && next_hop != destination && !is_link_local(destination)
        {
            return None;
        }
        Some((source, next_hop))
    }
}

/// What became of a packet.
enum Sent {
    /// It left, or nobody can be sent it.
    Done,
    /// It must wait for its neighbour.
    Waits(NeighborRef),
    /// It must wait for room in the device's queue.
    Full,
}

/// Where a packet can go on the link.
enum LinkDestination {
    Known(MacAddr),
    Pending(NeighborRef),
    NoRoute,
    Refused,
}

/// Whether an address means the host itself.
pub(crate) fn is_loopback(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.octets()[0] == 127,
        IpAddr::V6(ip) => ip.is_loopback(),
    }
}

/// IPv4 addresses that nobody sends from (RFC 1122 section 3.2.1.3, RFC 6890).
pub(crate) fn is_martian4(ip: Ipv4Addr) -> bool {
    let first = ip.octets()[0];
    first == 0 || first == 127 || first >= 224
}
