//! Tests of whole connections: alone against hand-made segments ([`solo`]), and two against each other over a network
//! that delays, loses, reorders and duplicates ([`world`]).

mod closing;
mod conformance;
mod device;
mod ecn;
mod expected;
mod faults;
mod files;
mod handshake;
mod hardening_path;
mod pacing;
mod policy;
mod receiving;
mod recovery;
mod recovery_rack;
mod recovery_undo;
mod regressions;
mod robustness;
mod sending;
mod shortcuts;
mod solo;
mod transfer;
mod transitions;
mod world;

use super::{Config, Connection, MemoryBudget, Resources, SegmentIn, TxInfo, TxLimits};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use linerate_nic::{Pool, TxPacket};
use linerate_transport::{Congestion, SocketOptions};
use linerate_wire::ip::Ecn;
use linerate_wire::tcp::{Flags, Header, Options, SeqNumber};
use linerate_wire::units::Instant;

extern crate std;

std::thread_local! {
    /// See [`super::shortcuts_are_off`].
    pub(super) static SHORTCUTS_OFF: core::cell::Cell<bool> = const { core::cell::Cell::new(false) };
    /// See [`super::count_exchange`].
    pub(super) static EXCHANGES: core::cell::Cell<u64> = const { core::cell::Cell::new(0) };
    /// See [`super::joining_is_off`].
    pub(super) static JOINING_OFF: core::cell::Cell<bool> = const { core::cell::Cell::new(false) };
}

/// Bytes of lower headers before the TCP header.
const L4_OFFSET: usize = 34;

/// A segment on the wire.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Wire {
    pub seq: SeqNumber,
    pub ack: SeqNumber,
    pub flags: Flags,
    pub ecn: Ecn,
    pub window: u16,
    pub options: Options,
    pub payload: Vec<u8>,
}

impl Wire {
    /// Turns it into what a stack hands to a connection.
    pub fn to_segment(&self, pool: &Pool) -> SegmentIn {
        let payload = (!self.payload.is_empty()).then(|| {
            let mut buffer = pool.take().expect("a receive buffer");
            buffer.bytes_mut()[..self.payload.len()].copy_from_slice(&self.payload);
            buffer.freeze(0..self.payload.len())
        });
        SegmentIn {
            seq: self.seq,
            ack: self.ack,
            flags: self.flags,
            window: self.window,
            options: self.options,
            congestion_experienced: self.ecn == Ecn::Congested,
            payload,
            ..SegmentIn::default()
        }
    }
}

/// Reads the packet back from its bytes and splits super-segments as a device does.
pub(super) fn to_wire(packet: &TxPacket, info: &TxInfo) -> Vec<Wire> {
    let mut bytes = alloc::vec![0; packet.len()];
    packet.linearise(&mut bytes).expect("room for the packet");
    let header = Header::parse(&bytes[L4_OFFSET..]).expect("a TCP header");
    assert_eq!(header.header_len(), info.header_len);
    assert_eq!(header.payload().len(), info.payload_len);
    let whole = Wire {
        seq: header.sequence(),
        ack: header.acknowledgement(),
        flags: header.flags(),
        ecn: info.ecn,
        window: header.window(),
        options: header.options(),
        payload: header.payload().to_vec(),
    };
    if info.segment_size == 0 {
        assert!(info.segments == 1);
        return alloc::vec![whole];
    }
    let size = usize::from(info.segment_size);
    let count = whole.payload.len().div_ceil(size);
    assert_eq!(count, info.segments as usize);
    let split = whole.payload.chunks(size).enumerate().map(|(index, payload)| {
        let last = index + 1 == count;
        let flags = if last { whole.flags } else { whole.flags.without(Flags::FIN | Flags::PSH) };
        Wire { seq: whole.seq + (index * size) as u32, flags, payload: payload.to_vec(), ..whole }
    });
    split.collect()
}

/// Everything that the connection sends now, as segments.
pub(super) fn drain(connection: &mut Connection, now: Instant, limits: &TxLimits) -> Vec<Wire> {
    let mut sent = Vec::new();
    let mut packet = TxPacket::new();
    while let Some(info) = connection.poll_transmit(now, limits, &mut packet, L4_OFFSET) {
        sent.extend(to_wire(&packet, &info));
        packet.clear();
        assert!(sent.len() < 100_000, "an endless stream of segments");
    }
    sent
}

pub(super) fn addr(last: u8, port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 168, 1, last)), port)
}

pub(super) fn resources() -> Resources {
    Resources { budget: MemoryBudget::new(64 << 20), pages: Pool::new(256, 2_048) }
}

pub(super) fn config() -> Config {
    // NewReno: windows are halved and grow by whole segments, so that expectations can be checked in the head.
    let socket = SocketOptions { congestion: Congestion::NewReno, ..SocketOptions::default() };
    // Delayed acknowledgements from the start, so that their tests need no run-up.
    Config { quick_acks: 0, ..Config::new(socket, 1_460) }
}

/// The byte at a position of the test stream.
pub(super) fn byte_at(position: u64) -> u8 {
    (position.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// A part of the test stream.
pub(super) fn stream(range: core::ops::Range<u64>) -> Vec<u8> {
    range.map(byte_at).collect()
}

/// Sends a connection to sleep and wakes it up again if it is quiet: nobody may notice.
fn doze(connection: &mut Connection, resources: &Resources, now: Instant) {
    let ends = (connection.local(), connection.remote());
    let before = (connection.info(now), connection.details(now), *connection.counters());
    let (state, deadline) = (connection.state(), connection.poll_timeout());
    let room = (connection.sendable(), connection.next_file_read());
    let promised = resources.budget.promised();
    let Some(dormant) = connection.fall_asleep(now) else { return };
    assert_eq!((dormant.state(), dormant.poll_timeout()), (state, deadline));
    assert_eq!(dormant.progress(), (before.0.bytes_acked, before.0.bytes_received));
    let seen = dormant.look(resources, ends);
    assert_eq!((seen.info(now), seen.details(now), *seen.counters()), before);
    *connection = dormant.wake(resources, ends);
    assert_eq!((connection.info(now), connection.details(now), *connection.counters()), before);
    assert_eq!((connection.state(), connection.poll_timeout()), (state, deadline));
    assert_eq!((connection.sendable(), connection.next_file_read()), room);
    assert_eq!(resources.budget.promised(), promised, "what was promised stays promised");
}
