//! Several stacks on one link, one for each queue of its device and none of them sharing anything: what belongs to the link
//! has one owner, and the others learn of it by letters that the host carries.
//!
//! ```text
//!              ARP, NDP, DHCP, fragments; "who is 10.0.0.7?"
//!   member 1 ───────────────────────────────────────────────▶ owner (seat 0)
//!            ◀───────────────────────────────────────────────
//!              addresses, routes, neighbours that are known
//!
//!   all      ──── packets of flows that are at another's ────▶ the next seat, round and round
//!            ──── path MTUs ─────────────────────────────────▶ all others
//! ```
//!
//! A connection lives in the stack that saw its SYN, or that opened it. Which queue a packet comes in on is the device's
//! business, and it may change its mind (flows that move, a first fragment hashed by ports and the others without, errors
//! about a packet): a packet that nobody here knows goes to the next seat, and only the last one answers for all that
//! nobody does. So a socket may be anywhere, and no table of who has what has to be kept equal.

use crate::addresses::OwnAddress;
use crate::ingress::LinkPayload;
use crate::neighbor::Outcome;
use crate::packet::Received;
use crate::route::Route;
use crate::rss::Rss;
use crate::stack::Stack;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::IpAddr;
use linerate_nic::{ChecksumStatus, Frame, MacAddr, Pieces, RxMeta, Slice};
use linerate_wire::units::Instant;

/// Letters that may wait to be carried; packets beyond that are dropped and counted.
const MOST_LETTERS: usize = 1_024;

/// Which of the stacks on a link this one is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seat {
    /// From 0 on; seat 0 owns what belongs to the link. Brought below `seats`.
    pub index: u16,
    /// How many stacks there are, at least 1.
    pub seats: u16,
}

impl Seat {
    /// A stack that has its link for itself.
    pub const ALONE: Seat = Seat { index: 0, seats: 1 };

    /// Whether others sit here too.
    pub const fn is_shared(self) -> bool {
        self.seats > 1
    }

    /// Whether what belongs to the link belongs to another.
    pub const fn is_member(self) -> bool {
        self.index > 0
    }

    /// Whether this stack may choose `port` by itself: each has ports of its own, so that no two choose the same.
    pub(crate) fn may_choose(self, port: u16) -> bool {
        port % self.seats.max(1) == self.index
    }
}

/// To whom a letter goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum To {
    /// Seat 0.
    Owner,
    /// The seat after the sender's; after the last comes the first.
    Next,
    /// All but the sender.
    Others,
}

impl To {
    /// The seats that a letter from `sender` goes to.
    pub fn seats(self, sender: Seat) -> impl Iterator<Item = u16> {
        let Seat { index, seats } = sender;
        (0..seats).filter(move |&seat| match self {
            To::Owner => seat == 0,
            To::Next => seat == (index + 1) % seats,
            To::Others => seat != index,
        })
    }
}

/// What stacks tell each other. It holds no handle to anybody's memory and may cross to another core.
#[derive(Clone, Debug)]
pub struct Message(Kind);

impl Message {
    /// Whether it is a packet, which may be lost as on any link. Nobody sends the others again.
    pub fn is_packet(&self) -> bool {
        matches!(self.0, Kind::Packet(_))
    }

    /// Bytes of the packet that it carries; 0 if it carries none.
    pub fn packet_len(&self) -> usize {
        match &self.0 {
            Kind::Packet(passed) => passed.bytes.len(),
            _ => 0,
        }
    }
}

#[derive(Clone, Debug)]
enum Kind {
    /// A packet that belongs elsewhere.
    Packet(Passed),
    /// Our addresses, and the routes.
    Link { addresses: Vec<OwnAddress>, routes: Vec<Route>, mtu6: usize },
    /// The link, which was down, is up.
    LinkUp,
    /// A neighbour was resolved, has moved, or (`None`) does not answer.
    Neighbor { ip: IpAddr, mac: Option<MacAddr> },
    /// Whose address is this?
    Ask(IpAddr),
    /// A path carries no more than this; learned for datagrams or for segments.
    PathMtu { destination: IpAddr, mtu: usize, is_datagram: bool },
}

/// A packet on its way to another stack: a copy, as buffers belong to one core.
#[derive(Clone, Debug)]
struct Passed {
    /// From the network header on, without padding.
    bytes: Box<[u8]>,
    /// The sender's station, if it is ARP.
    arp_from: Option<MacAddr>,
    is_group: bool,
    is_checked: bool,
    segment_size: u16,
    /// Seats that did not know it.
    hops: u16,
}

/// A message and where it goes.
#[derive(Debug)]
pub struct Letter {
    /// To whom.
    pub to: To,
    /// What.
    pub message: Message,
}

/// A stack's side of the exchange.
pub(crate) struct Team {
    pub(crate) seat: Seat,
    letters: VecDeque<Letter>,
    /// Seats that did not know the packet that is being looked at.
    hops: u16,
    /// The versions of addresses and routes that the others know, and the MTU.
    told: Option<(u32, u32, usize)>,
    /// How the device spreads what it receives, where that is known.
    pub(crate) rss: Option<Rss>,
}

impl Team {
    pub(crate) fn new(seat: Seat) -> Self {
        Team { seat, letters: VecDeque::new(), hops: 0, told: None, rss: None }
    }
}

impl Stack {
    /// Which of the stacks on its link this one is.
    pub fn seat(&self) -> Seat {
        self.team.seat
    }

    /// The next letter to carry to other stacks, to be given to [`Stack::handle_message`] there; to be asked for at the end
    /// of each turn until `None`.
    pub fn poll_letter(&mut self) -> Option<Letter> {
        self.tell_of_link();
        self.team.letters.pop_front()
    }

    /// To be told of a letter that the host had no room for. Only packets may be lost.
    pub fn handle_lost_letter(&mut self) {
        self.net.counters.drop_letters_full += 1;
    }

    /// Takes what another stack has sent.
    pub fn handle_message(&mut self, now: Instant, message: Message) {
        self.set_now(now);
        match message.0 {
            Kind::Packet(passed) => self.receive_passed(passed),
            Kind::Link { addresses, routes, mtu6 } => {
                self.net.addresses.replace(addresses);
                self.net.routes.replace(routes);
                self.set_link_mtu6(mtu6);
            }
            Kind::LinkUp => self.retransmit_all_soon(),
            Kind::Neighbor { ip, mac } => {
                let outcome = self.net.neighbors.learn(ip, mac, self.net.now);
                self.after_neighbor(outcome);
            }
            Kind::Ask(ip) => {
                // What is known is told at once; the rest when it is.
                if let crate::neighbor::Lookup::Known(_, mac) = self.net.resolve(ip) {
                    self.post(To::Others, Kind::Neighbor { ip, mac: Some(mac) });
                }
            }
            Kind::PathMtu { destination, mtu, is_datagram } => {
                let paths = if is_datagram { &mut self.net.datagram_paths } else { &mut self.net.paths };
                paths.lower(destination, mtu, self.net.now);
            }
        }
    }

    fn post(&mut self, to: To, kind: Kind) {
        // What is no packet is little, bounded by tables, and told once.
        if matches!(kind, Kind::Packet(_)) && self.team.letters.len() >= MOST_LETTERS {
            self.net.counters.drop_letters_full += 1;
            return;
        }
        self.net.counters.letters_out += 1;
        self.team.letters.push_back(Letter { to, message: Message(kind) });
    }

    /// The owner tells the others of addresses and routes when they have changed.
    fn tell_of_link(&mut self) {
        let Seat { index, seats } = self.team.seat;
        if seats <= 1 || index > 0 {
            return;
        }
        let net = &self.net;
        let mtu6 = net.paths.link_mtu(IpAddr::V6(core::net::Ipv6Addr::UNSPECIFIED));
        let versions = (net.addresses.version(), net.routes.version(), mtu6);
        if self.team.told == Some(versions) {
            return;
        }
        self.team.told = Some(versions);
        let addresses = net.addresses.iter().copied().collect();
        let routes = net.routes.iter().copied().collect();
        self.post(To::Others, Kind::Link { addresses, routes, mtu6 });
    }

    /// The owner, who is told of the link, tells the others that it is back.
    pub(crate) fn tell_of_return(&mut self) {
        let Seat { index, seats } = self.team.seat;
        if seats > 1 && index == 0 {
            self.post(To::Others, Kind::LinkUp);
        }
    }

    /// The owner tells the others what became of a neighbour.
    pub(crate) fn tell_of_neighbor(&mut self, outcome: Outcome) {
        let Seat { index, seats } = self.team.seat;
        if seats <= 1 || index > 0 {
            return;
        }
        let (slot, is_known) = match outcome {
            Outcome::Resolved(slot) | Outcome::Moved(slot) => (slot, true),
            Outcome::Failed(slot) => (slot, false),
            Outcome::Nothing | Outcome::Disputed(_) => return,
        };
        if let Some((ip, mac)) = self.net.neighbors.named(slot) {
            self.post(To::Others, Kind::Neighbor { ip, mac: Some(mac).filter(|_| is_known) });
        }
    }

    /// Asks the owner for a neighbour; false when this is the owner, who asks the link.
    pub(crate) fn ask_owner(&mut self, ip: IpAddr) -> bool {
        let is_member = self.team.seat.is_member();
        if is_member {
            self.post(To::Owner, Kind::Ask(ip));
        }
        is_member
    }

    /// Tells the others of a path MTU that was believed here.
    pub(crate) fn tell_of_path(&mut self, destination: IpAddr, mtu: usize, is_datagram: bool) {
        if self.team.seat.is_shared() {
            self.post(To::Others, Kind::PathMtu { destination, mtu, is_datagram });
        }
    }

    /// Passes a packet that nobody here knows on to the next seat; false when all others have seen it, so that it is ours to
    /// answer.
    pub(crate) fn pass_on(&mut self, packet: &Received) -> bool {
        let hops = self.team.hops + 1;
        if hops >= self.team.seat.seats {
            return false;
        }
        self.pass(To::Next, packet, hops);
        true
    }

    /// Passes a packet on to the owner, whose business it is; false when that is here.
    pub(crate) fn pass_to_owner(&mut self, packet: &Received) -> bool {
        let is_member = self.team.seat.is_member();
        if is_member {
            self.pass(To::Owner, packet, 0);
        }
        is_member
    }

    fn pass(&mut self, to: To, packet: &Received, hops: u16) {
        let mut bytes = Vec::with_capacity(packet.data.len() + packet.more.len_bytes());
        for piece in core::iter::once(&packet.data).chain(&packet.more) {
            bytes.extend_from_slice(piece.bytes());
        }
        let passed = Passed {
            bytes: bytes.into_boxed_slice(),
            arp_from: None,
            is_group: packet.is_group,
            is_checked: packet.is_checked,
            segment_size: packet.segment_size,
            hops,
        };
        self.post(to, Kind::Packet(passed));
    }

    /// Passes an ARP packet from `source` on to the owner; false when that is here.
    pub(crate) fn pass_arp(&mut self, packet: &Slice, source: MacAddr) -> bool {
        let is_member = self.team.seat.is_member();
        if is_member {
            self.pass_raw(packet.bytes(), Some(source), true);
        }
        is_member
    }

    /// Passes a fragment of IPv4 from its header on to the owner.
    pub(crate) fn pass_fragment(&mut self, packet: &[u8], is_group: bool) {
        self.pass_raw(packet, None, is_group);
    }

    /// Passes on to the owner what layer 4 is not known of.
    fn pass_raw(&mut self, bytes: &[u8], arp_from: Option<MacAddr>, is_group: bool) {
        let bytes = bytes.into();
        let passed = Passed { bytes, arp_from, is_group, is_checked: false, segment_size: 0, hops: 0 };
        self.post(To::Owner, Kind::Packet(passed));
    }

    fn receive_passed(&mut self, passed: Passed) {
        let Some((data, more)) = self.copy_in(&passed.bytes) else {
            self.net.counters.drop_letters_no_buffer += 1;
            return;
        };
        self.team.hops = passed.hops;
        let counters = &self.net.counters;
        let [ipv4_in, ipv6_in, udp_in, icmp_in] =
            [counters.ipv4_in, counters.ipv6_in, counters.udp_in, counters.icmp_in];
        let fragments_in = counters.fragments_in;
        let version = data.bytes().first().map_or(0, |first| first >> 4);
        match (passed.arp_from, version) {
            (Some(source), _) => self.receive_arp(&data, source),
            (None, version) => {
                let checksum =
                    if passed.is_checked { ChecksumStatus::Good } else { ChecksumStatus::Unchecked };
                let meta = RxMeta { checksum, segment_size: passed.segment_size, ..RxMeta::default() };
                let link =
                    LinkPayload { frame: Frame::in_pieces(data, more, meta), is_group: passed.is_group };
                if version == 4 { self.receive_ipv4(link) } else { self.receive_ipv6(link) }
            }
        }
        self.team.hops = 0;
        // It was counted where it came in: as far up as it was known there, of a fragment only IP.
        let counters = &mut self.net.counters;
        (counters.ipv4_in, counters.ipv6_in) = (ipv4_in, ipv6_in);
        if counters.fragments_in == fragments_in {
            (counters.udp_in, counters.icmp_in) = (udp_in, icmp_in);
        }
        self.settle_last();
    }

    /// A copy in buffers of ours: as received frames lie, or in pages where there is no receive pool.
    fn copy_in(&self, bytes: &[u8]) -> Option<(Slice, Pieces)> {
        let pools = &self.net.pools;
        let pool = pools.receive.as_ref().unwrap_or(&pools.pages);
        let mut slices = Vec::new();
        for part in bytes.chunks(pool.buffer_size()) {
            let mut buffer = pool.take()?;
            buffer.bytes_mut().get_mut(..part.len())?.copy_from_slice(part);
            slices.push(buffer.freeze(0..part.len()));
        }
        let rest = slices.split_off(1.min(slices.len()));
        Some((slices.pop()?, Pieces::from(rest)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{StackConfig, StackPools};

    #[test]
    fn packets_that_wait_push_out_nothing_that_is_told_once() {
        let config = StackConfig { seat: Seat { index: 0, seats: 2 }, ..StackConfig::default() };
        let pools = StackPools::for_memory(config.memory);
        let mut stack = Stack::new(config, [1; 32], pools);
        for _ in 0..MOST_LETTERS + 10 {
            stack.pass_fragment(&[0x45], false);
        }
        let letters: Vec<Letter> = core::iter::from_fn(|| stack.poll_letter()).collect();
        let packets = letters.iter().filter(|letter| letter.message.is_packet()).count();
        let is_link = |letter: &Letter| matches!(letter.message.0, Kind::Link { .. });
        assert_eq!((packets, stack.counters().drop_letters_full), (MOST_LETTERS, 10));
        assert_eq!(letters.iter().filter(|letter| is_link(letter)).count(), 1, "the owner's addresses");
    }
}
