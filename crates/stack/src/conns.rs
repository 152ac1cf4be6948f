//! The TCP connections and listeners of a stack, and the tables that lead to them.

use crate::bound::Bound;
use crate::config::StackConfig;
use crate::demux::{Demux, FlowKey};
use crate::dormancy::{Tcp, Wakefulness};
use crate::listener::Listener;
use crate::lists::Lists;
use crate::neighbor::NeighborRef;
use crate::prediction::{Before, HeldAck, Prediction};
use crate::random::KeyedState;
use crate::ring::Ring;
use crate::slab::Slab;
use crate::tcp::{RecentConfigs, Resources};
use core::net::IpAddr;
use core::ops::{Deref, DerefMut};
use linerate_nic::TxToken;
use linerate_transport::{ConnId, ListenerId, Owner, Ready};
use linerate_wire::units::Instant;

/// How far a connection has come towards its owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// A listener's, handshake under way.
    HalfOpen(ListenerId),
    /// A listener's, established, not accepted yet.
    Waiting(ListenerId),
    /// The owner has its id.
    Owned,
    /// The owner has let go; it finishes alone.
    Orphan,
}

/// A connection with what the stack knows of it.
pub(crate) struct Conn {
    pub(crate) tcp: Tcp,
    pub(crate) about: About,
}

/// What the stack knows of a connection, awake or not.
pub(crate) struct About {
    pub(crate) id: ConnId,
    pub(crate) owner: Owner,
    pub(crate) flow: FlowKey,
    pub(crate) stage: Stage,
    /// What happened before the owner accepted it.
    pub(crate) pending: Ready,
    /// Whether the flow leads here.
    pub(crate) in_demux: bool,
    /// Whether it was counted as established.
    pub(crate) is_counted: bool,
    /// Whether it was awake for anybody since the last look.
    pub(crate) is_touched: bool,
    pub(crate) tos: u8,
    /// The listener whose Fast Open requests it counts among, while its handshake lasts.
    pub(crate) fast_open: Option<ListenerId>,
    pub(crate) next_hop: IpAddr,
    /// The version of the routes that it was taken from.
    pub(crate) routes: u32,
    pub(crate) neighbor: Option<NeighborRef>,
    /// Since when nobody answers for the next hop; `FAR_FUTURE` where somebody does.
    pub(crate) unreachable_since: Instant,
    /// When to look for the next hop again; `FAR_FUTURE` for never.
    pub(crate) retry_at: Instant,
    /// Set while memory is short.
    pub(crate) mark: Mark,
}

impl Deref for Conn {
    type Target = About;

    fn deref(&self) -> &About {
        &self.about
    }
}

impl DerefMut for Conn {
    fn deref_mut(&mut self) -> &mut About {
        &mut self.about
    }
}

/// How far a connection had come when it was last looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    /// `FAR_FUTURE`: never.
    pub(crate) at: Instant,
    /// Payload bytes acknowledged by the peer.
    pub(crate) sent: u64,
    /// Payload bytes received in order.
    pub(crate) received: u64,
}

impl Mark {
    pub(crate) const NONE: Mark = Mark { at: Instant::FAR_FUTURE, sent: 0, received: 0 };
}

impl About {
    /// Somebody answers for the next hop.
    pub(crate) fn forget_unreachable(&mut self) {
        self.unreachable_since = Instant::FAR_FUTURE;
    }
}

/// Why a connection may have to give way to others. It has one reason at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Brink {
    /// Its handshake is under way, and it has no owner.
    HalfOpen,
    /// Its owner has let go; TIME-WAIT excluded.
    Orphan,
    TimeWait,
}

const BRINKS: usize = 3;

/// A read that a connection waits for.
pub(crate) struct FileWait {
    pub(crate) conn: ConnId,
    pub(crate) index: u64,
    pub(crate) token: u64,
}

/// The tables.
pub(crate) struct Conns {
    pub(crate) table: Slab<Conn>,
    pub(crate) wakefulness: Wakefulness,
    demux: Demux,
    pub(crate) prediction: Prediction,
    pub(crate) held_ack: Option<HeldAck>,
    /// The segment before this one in the batch, if it brought the next bytes and nothing has happened to its connection since.
    pub(crate) before: Option<Before>,
    pub(crate) listeners: Slab<Listener>,
    /// Listeners by what they are bound to.
    pub(crate) bound: Bound,
    /// Connections that may owe an acknowledgement: one packet each, before all others.
    pub(crate) urgent: Ring,
    /// Connections that may have something to send.
    pub(crate) sending: Ring,
    /// Whether the queue to the device was full when it was last filled.
    pub(crate) link_full: bool,
    /// Connections that may want to read a file.
    pub(crate) reading: Ring,
    pub(crate) reads: Slab<FileWait>,
    /// Connections that may have to give way, by [`Brink`], the oldest first.
    brinks: Lists,
    brink_lens: [usize; BRINKS],
    /// A connection that took a segment, of which nothing but [`Stack::settle`](crate::Stack) is left to do: once for all
    /// segments that come in a row.
    pub(crate) unsettled: Option<u32>,
    /// The same for a connection of which the device has reported packets, and its timer.
    pub(crate) unarmed: Option<u32>,
    /// Whether connections to give up are being looked for.
    pub(crate) under_pressure: bool,
    /// Since memory is short, somebody new was turned away because of that.
    pub(crate) has_refused: bool,
    pub(crate) resources: Resources,
    pub(crate) configs: RecentConfigs,
}

impl Conns {
    /// The tables of a stack with this configuration, whose numbers are in range.
    pub(crate) fn new(config: &StackConfig, state: KeyedState, resources: Resources) -> Self {
        let (connections, listeners) = (config.max_connections, config.max_listeners);
        Conns {
            table: Slab::new(connections),
            wakefulness: Wakefulness::new(connections, config.memory),
            demux: Demux::new(connections, state),
            prediction: Prediction::default(),
            held_ack: None,
            before: None,
            listeners: Slab::new(listeners),
            bound: Bound::new(listeners),
            urgent: Ring::new(connections),
            sending: Ring::new(connections),
            link_full: false,
            reading: Ring::new(connections),
            reads: Slab::new(config.max_file_reads),
            brinks: Lists::new(BRINKS, connections),
            brink_lens: [0; BRINKS],
            unsettled: None,
            unarmed: None,
            under_pressure: false,
            has_refused: false,
            resources,
            configs: RecentConfigs::default(),
        }
    }

    /// The connection that an owner means by `id`.
    #[inline]
    pub(crate) fn owned(&self, id: ConnId) -> Option<&Conn> {
        self.table.find(id.index(), id.generation()).filter(|conn| conn.stage == Stage::Owned)
    }

    /// The slot of the connection that a flow belongs to.
    pub(crate) fn find(&self, flow: &FlowKey) -> Option<u32> {
        self.demux.find(flow, |slot| self.table.at(slot).map(|conn| &conn.about.flow))
    }

    /// From now on the flow of the connection in this slot leads there; false if it leads to another.
    pub(crate) fn attach(&mut self, slot: u32) -> bool {
        let flow_of = |slot| self.table.at(slot).map(|conn| conn.flow);
        flow_of(slot).is_some_and(|flow| self.demux.insert(flow, slot, flow_of))
    }

    /// Nothing leads to the connection in this slot any more.
    pub(crate) fn detach(&mut self, slot: u32) {
        self.prediction.forget(slot);
        if let Some(conn) = self.table.at_mut(slot)
            && core::mem::take(&mut conn.in_demux)
        {
            self.demux.remove(&conn.about.flow, slot);
        }
    }

    /// The listener that takes connections to this address and port.
    pub(crate) fn listener_for(&self, ip: IpAddr, port: u16) -> Option<u32> {
        self.bound.find(ip, port)
    }

    /// Whether a listener takes connections that one on `ip` (all, if `None`) and `port` would take.
    pub(crate) fn is_listening(&self, ip: Option<IpAddr>, port: u16) -> bool {
        self.bound.overlaps(ip, port)
    }

    /// The listener with this id, to change.
    pub(crate) fn listener_mut(&mut self, id: ListenerId) -> Option<&mut Listener> {
        self.listeners.find_mut(id.index(), id.generation())
    }

    /// Puts a connection at the end of a list, unless it is in it, and takes it out of another.
    pub(crate) fn enter(&mut self, brink: Brink, slot: u32) {
        if brink == Brink::TimeWait {
            self.prediction.forget(slot);
        }
        if !self.is_on(brink, slot) {
            self.leave_any(slot);
            self.brinks.join(brink as u32, slot);
            self.brink_lens[brink as usize] += 1;
        }
    }

    /// Takes a connection out of the list that it is in.
    pub(crate) fn leave_any(&mut self, slot: u32) {
        if let Some(list) = self.brinks.list_of(slot) {
            self.brinks.leave(slot);
            self.brink_lens[list as usize] -= 1;
        }
    }

    /// Takes a connection out of a list, if it is in it.
    pub(crate) fn leave(&mut self, brink: Brink, slot: u32) {
        if self.is_on(brink, slot) {
            self.leave_any(slot);
        }
    }

    /// Whether a connection is in a list.
    #[inline]
    pub(crate) fn is_on(&self, brink: Brink, slot: u32) -> bool {
        self.brinks.list_of(slot) == Some(brink as u32)
    }

    /// Connections in a list.
    pub(crate) fn count(&self, brink: Brink) -> usize {
        self.brink_lens[brink as usize]
    }

    /// The first connection of a list.
    pub(crate) fn first(&self, brink: Brink) -> Option<u32> {
        self.brinks.first(brink as u32)
    }

    /// The first connection of a list; it is taken out.
    pub(crate) fn oldest(&mut self, brink: Brink) -> Option<u32> {
        let slot = self.brinks.pop(brink as u32)?;
        self.brink_lens[brink as usize] -= 1;
        Some(slot)
    }

    /// Half-open connections, the oldest first: at most [`StackConfig::max_half_open`](crate::StackConfig::max_half_open).
    pub(crate) fn half_open(&self) -> impl Iterator<Item = u32> + '_ {
        let first = self.brinks.first(Brink::HalfOpen as u32);
        core::iter::successors(first, |&slot| self.brinks.next(slot))
    }
}

/// Packs a connection's slot and generation and the completion tag of a packet: 20 bits, 11 bits, 32 bits, and a one on
/// top that makes the token different from "none".
pub(crate) fn token(id: ConnId, completion: Option<u32>) -> TxToken {
    match completion {
        Some(tag) => {
            let slot = u64::from(id.index() & 0xf_ffff) << 32;
            let generation = u64::from(id.generation() & 0x7ff) << 52;
            TxToken(1 << 63 | generation | slot | u64::from(tag))
        }
        None => TxToken(0),
    }
}

/// Slot, low bits of the generation, and completion tag of a token.
pub(crate) fn unpack(token: TxToken) -> Option<(u32, u32, u32)> {
    if token.0 >> 63 == 0 {
        return None;
    }
    Some(((token.0 >> 32) as u32 & 0xf_ffff, (token.0 >> 52) as u32 & 0x7ff, token.0 as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_back() {
        let check = |slot, generation, tag| {
            let token = token(ConnId::new(slot, generation), Some(tag));
            assert_eq!(unpack(token), Some((slot, generation & 0x7ff, tag)));
        };
        check(0, 0, 1);
        check(0xf_ffff, 0x7ff, u32::MAX);
        check(77, 0x12345, 0);
        assert_eq!(unpack(token(ConnId::new(5, 5), None)), None);
    }
}
