//! What all sockets of a transport share: queues of work and events, buffers, deadlines, counters.

use super::receive::BufferPool;
use crate::files::{FileAccess, ReadAheadDone};
use crate::mailbox::Mailbox;
use crate::pipe::PipePool;
use crate::slab::Key;
use linerate_transport::{ConnId, ListenerId, Source, UdpId};
use linerate_wire::units::Instant;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Settings of a [`super::KernelTransport`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelConfig {
    /// Most connections at once, closing ones included. Beyond them, and where no descriptor is left, connections that their
    /// server has closed give way: of the oldest few one whose data is all sent, else the oldest, which is reset. Where none is closed,
    /// newcomers are reset at once. Where fewer than 16 descriptors are left, only those whose data is all sent give way. It should
    /// leave descriptors for files and listeners. Default: 16,384.
    pub connections_max: usize,
    /// Memory for receive buffers and queued payload, in bytes, half of it each. Where it is used up, connections
    /// still work with 4 KiB to receive and one payload to send. Default: 256 MiB.
    pub memory_max: usize,
    /// How long a closed connection whose data is all sent waits for the peer's FIN, so that no data of the peer
    /// turns into a reset that overtakes ours. Default: 10 s.
    pub linger: Duration,
}

impl Default for KernelConfig {
    fn default() -> Self {
        KernelConfig { connections_max: 16_384, memory_max: 256 << 20, linger: Duration::from_secs(10) }
    }
}

linerate_wire::figures! {
    /// Counters of a [`super::KernelTransport`] since its start, and two gauges.
    pub struct KernelCounters {
        /// Connections accepted.
        accepted,
        /// Connections opened by us.
        connected,
        /// Times that nothing was accepted because descriptors, memory or connections ran out.
        accept_starved,
        /// Closed connections that gave way before their peer's FIN came.
        gave_way,
        /// Connections accepted and reset at once, because descriptors or connections ran out.
        accept_refused [drop],
        /// Connections that broke: reset, refused, unreachable, timed out.
        broken,
        /// Connections reset by us because a file range could not be read to its end.
        file_failed [drop],
        /// Closed connections given up because the peer took too long.
        linger_expired [drop],
        /// Payload bytes received.
        bytes_received [bytes],
        /// Payload bytes taken by the kernel.
        bytes_sent [bytes],
        /// Pieces of files that had to be read from a disk first.
        read_aheads,
        /// Times that a large receive buffer was refused for want of memory.
        buffers_refused,
        /// Datagrams received.
        datagrams_received,
        /// Datagrams sent.
        datagrams_sent,
        /// Connections now, closing ones included.
        connections [gauge],
        /// Bytes of memory that large receive buffers and queued payload hold now.
        memory [gauge bytes],
    }
}

/// What an epoll event is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Conn = 0,
    Listener = 1,
    Udp = 2,
    /// The mailbox of read-aheads, or what others sleep on.
    Other = 3,
}

const KIND_SHIFT: u32 = 62;

/// Kind and key as the 64 bits that epoll carries.
fn event_data(kind: Kind, key: Key) -> EventData {
    EventData::new_u64((kind as u64) << KIND_SHIFT | u64::from(key.generation) << 32 | u64::from(key.index))
}

pub(crate) fn parse_event_data(data: EventData) -> (Kind, Key) {
    let bits = data.u64();
    let kind = match bits >> KIND_SHIFT {
        0 => Kind::Conn,
        1 => Kind::Listener,
        2 => Kind::Udp,
        _ => Kind::Other,
    };
    let generation = (bits >> 32) as u32 & ((1 << 30) - 1);
    (kind, Key { index: bits as u32, generation })
}

/// Bytes that a closed connection's peer may send per call before they are thrown away.
const SCRATCH_LEN: usize = 64 << 10;
/// Where fewer descriptors than these are left, connections that their servers have closed do not linger once their data is all sent.
pub(crate) const DESCRIPTORS_FOR_FILES: u64 = 16;

/// What all sockets share.
#[derive(Debug)]
pub(crate) struct Hub {
    pub(crate) epoll: OwnedFd,
    pub(crate) config: KernelConfig,
    pub(crate) now: Instant,
    pub(crate) files: FileAccess,
    pub(crate) ahead: Arc<Mailbox<ReadAheadDone>>,
    pub(crate) pool: BufferPool,
    pub(crate) spare: Vec<Vec<u8>>,
    pub(crate) scratch: Box<[u8]>,
    /// What received bytes go through on their way to a file.
    pub(crate) pipe_pool: Arc<PipePool>,
    /// Whether that is possible, as far as is known.
    pub(crate) pipes: bool,
    /// Bytes of memory payload queued in all connections.
    pub(crate) queued_memory: usize,
    /// Connections with input or output to do.
    pub(crate) run: VecDeque<Key>,
    /// Accepted connections that epoll does not report yet.
    pub(crate) unwatched: VecDeque<Key>,
    /// UDP sockets with input to do.
    pub(crate) run_udp: VecDeque<Key>,
    /// Sockets with events to report; each at most once.
    pub(crate) events: VecDeque<Source>,
    pub(crate) deadlines: BTreeSet<(Instant, Key)>,
    pub(crate) counters: KernelCounters,
    /// Ports that several transports listen on, and whether this is the first of them.
    pub(crate) shared_ports: (Vec<u16>, bool),
    /// From this number on descriptors are short.
    short_from: RawFd,
    /// A descriptor kept for the moment when there are no others: with it a connection can be accepted, and refused.
    reserve: Option<OwnedFd>,
}

impl Hub {
    pub(crate) fn new(config: KernelConfig, files: FileAccess) -> std::io::Result<Hub> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let hub = Hub {
            epoll,
            config,
            now: Instant::ZERO,
            files,
            ahead: Arc::new(Mailbox::new()?),
            pool: BufferPool::new(config.memory_max / 2),
            spare: Vec::new(),
            scratch: vec![0; SCRATCH_LEN].into_boxed_slice(),
            pipe_pool: Arc::default(),
            pipes: true,
            queued_memory: 0,
            run: VecDeque::new(),
            unwatched: VecDeque::new(),
            run_udp: VecDeque::new(),
            events: VecDeque::new(),
            deadlines: BTreeSet::new(),
            counters: KernelCounters::default(),
            shared_ports: (Vec::new(), true),
            short_from: short_from(),
            reserve: reserve(),
        };
        hub.watch(&*hub.ahead, Kind::Other, Key { index: 0, generation: 0 }, EventFlags::IN)?;
        Ok(hub)
    }

    /// Registers a descriptor; closing it is what takes it out again.
    pub(crate) fn watch(&self, fd: impl AsFd, kind: Kind, key: Key, flags: EventFlags) -> Result<(), Errno> {
        epoll::add(&self.epoll, fd, event_data(kind, key), flags)
    }

    /// Calls `f` with one more descriptor to be had than before; `None` if the reserve is gone already.
    pub(crate) fn with_reserve<R>(&mut self, f: impl FnOnce(&mut Hub) -> R) -> Option<R> {
        drop(self.reserve.take()?);
        let result = f(self);
        self.reserve = reserve();
        Some(result)
    }

    /// Whether few descriptors are left, as the number of this one tells: a new one has the lowest that is free.
    pub(crate) fn is_short_of_descriptors(&self, fd: &OwnedFd) -> bool {
        fd.as_raw_fd() >= self.short_from
    }

    /// Gets the reserve back after somebody else was faster.
    pub(crate) fn restore_reserve(&mut self) {
        if self.reserve.is_none() {
            self.reserve = reserve();
        }
    }

    /// Whether queued payload is to be kept short, because all of them together hold much.
    pub(crate) fn is_tight(&self) -> bool {
        self.queued_memory >= self.config.memory_max / 2
    }
}

/// The first of the last few descriptors, which are left for files.
fn short_from() -> RawFd {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    RawFd::try_from(limit.saturating_sub(DESCRIPTORS_FOR_FILES)).unwrap_or(RawFd::MAX)
}

/// A descriptor that stands for nothing.
fn reserve() -> Option<OwnedFd> {
    rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).ok()
}

pub(crate) fn conn_id(key: Key) -> ConnId {
    ConnId::new(key.index, key.generation)
}

pub(crate) fn listener_id(key: Key) -> ListenerId {
    ListenerId::new(key.index, key.generation)
}

pub(crate) fn udp_id(key: Key) -> UdpId {
    UdpId::new(key.index, key.generation)
}
