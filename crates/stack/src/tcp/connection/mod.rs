//! One connection.

use super::config::{Config, Resources};
use super::segment::{DropReason, Outcome, SegmentIn, TxInfo, TxLimits};
use super::state::State;
use super::timers::Timers;
use core::net::SocketAddr;
use linerate_nic::TxPacket;
use linerate_transport::{
    CloseReason, ConnInfo, ConnState, FileError, FileId, LimitTimes, Payload, Ready, SendError, Shared,
    SocketOptions,
};
use linerate_wire::tcp::SeqNumber;
use linerate_wire::units::Instant;

/// A part of a file that the send queue wants to be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileRead {
    /// Names the request towards [`Connection::handle_file_data`].
    pub index: u64,
    /// The file.
    pub file: FileId,
    /// First byte.
    pub offset: u64,
    /// Bytes wanted; fewer are an error.
    pub len: usize,
}

/// What happened to a connection, counted from its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Segments received, coalesced ones counted one by one.
    pub segments_received: u64,
    /// Segments, or payloads, dropped by [`DropReason`].
    pub dropped: [u64; DropReason::ALL.len()],
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Fast recoveries.
    pub fast_recoveries: u64,
    /// Retransmissions that were found lost without a timeout.
    pub lost_retransmissions: u64,
    /// Duplicate acknowledgements received.
    pub duplicate_acks: u64,
    /// Duplicates that the peer reported (DSACK, RFC 2883).
    pub duplicates_reported: u64,
    /// Challenge ACKs sent (RFC 5961).
    pub challenge_acks: u64,
    /// Challenge ACKs not sent because of their rate limit.
    pub challenge_acks_limited: u64,
    /// Window probes sent.
    pub window_probes: u64,
    /// Keep-alive probes sent.
    pub keep_alive_probes: u64,
    /// Segments without payload sent.
    pub acks_sent: u64,
    /// Payload bytes copied out of large buffers.
    pub bytes_compacted: u64,
}

/// A TCP connection from its SYN to the end of TIME-WAIT. See the module for the order of calls.
#[derive(Debug)]
pub struct Connection {
    local: SocketAddr,
    remote: SocketAddr,
    state: State,
    timers: Timers,
    counters: Counters,
}

impl Connection {
    /// An active open: the SYN comes out of [`Connection::poll_transmit`]. `iss` is the initial sequence number
    /// (RFC 6528 is the caller's business).
    pub fn active(
        _now: Instant,
        _config: Config,
        _resources: &Resources,
        local: SocketAddr,
        remote: SocketAddr,
        _iss: SeqNumber,
    ) -> Self {
        Connection {
            local,
            remote,
            state: State::SynSent,
            timers: Timers::default(),
            counters: Counters::default(),
        }
    }

    /// A connection for a SYN that a listener received: the SYN-ACK comes out of [`Connection::poll_transmit`].
    ///
    /// # Errors
    ///
    /// The segment is not one that opens a connection.
    pub fn passive(
        now: Instant,
        config: Config,
        resources: &Resources,
        local: SocketAddr,
        remote: SocketAddr,
        iss: SeqNumber,
        _syn: &SegmentIn,
    ) -> Result<Self, DropReason> {
        Ok(Connection::active(now, config, resources, local, remote, iss))
    }

    /// Takes a received segment. Replies come out of [`Connection::poll_transmit`].
    pub fn handle_segment(&mut self, _now: Instant, _segment: SegmentIn) -> Outcome {
        Outcome::Dropped(DropReason::Closed)
    }

    /// Whether this SYN may open a new connection in place of this one, which is in TIME-WAIT (RFC 9293 section
    /// 3.10.7.4, RFC 6191). The caller then drops this one and treats the SYN as new.
    pub fn may_reopen(&self, _segment: &SegmentIn) -> bool {
        false
    }

    /// Writes the next packet that is due: the TCP header at `l4_offset` of the header block (whose length is set to
    /// the end of the TCP header), payload into the gather list, checksum field zero. The caller fills in the lower
    /// layers and the checksum and **must** then queue the packet; before it calls, it must have a free slot and know
    /// the way to the next hop. `None`: nothing is due now.
    pub fn poll_transmit(
        &mut self,
        _now: Instant,
        _limits: &TxLimits,
        _packet: &mut TxPacket,
        _l4_offset: usize,
    ) -> Option<TxInfo> {
        None
    }

    /// The device has sent the packet with this completion tag (and all before it).
    pub fn handle_transmitted(&mut self, _now: Instant, _completion: u32) {}

    /// The device, or the queue to it, took no more packets while there was something to send.
    pub fn handle_link_full(&mut self, _now: Instant) {}

    /// Runs the timers that are due.
    pub fn handle_timeout(&mut self, _now: Instant) {}

    /// When [`Connection::handle_timeout`] is to be called next; later calls may move it both ways.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// What newly happened, to be reported to the application. Each call clears it.
    pub fn poll_ready(&mut self) -> Ready {
        Ready::NONE
    }

    /// The next file range to read, if one is wanted now. It stays the next one until
    /// [`Connection::file_read_started`].
    pub fn next_file_read(&self) -> Option<FileRead> {
        None
    }

    /// The read was submitted; [`Connection::handle_file_data`] will answer it.
    pub fn file_read_started(&mut self, _read: &FileRead) {}

    /// Bytes of a file, in any order of the requests. Fewer than asked for, or an error, resets the connection
    /// ([`CloseReason::File`]).
    pub fn handle_file_data(&mut self, _now: Instant, _index: u64, _data: Result<Shared, FileError>) {}

    /// An ICMP error for a segment of ours with sequence number `seq` (RFC 5927: ignored unless it is in flight). A
    /// hard error ends an open that has not completed with `reason`; everything else is soft.
    pub fn handle_icmp_error(&mut self, _now: Instant, _seq: SeqNumber, _hard: bool, _reason: CloseReason) {}

    /// The path carries packets of `mss` payload bytes at most (MTU minus headers, as [`Config::mss`]). `seq`: of the
    /// segment that was too long, `None` where that is not known. What is in flight in longer segments is sent again.
    pub fn handle_path_mss(&mut self, _now: Instant, _mss: u16, _seq: Option<SeqNumber>) {}

    /// The first contiguous piece of received data, in place; empty when there is none.
    pub fn peek(&self) -> &[u8] {
        &[]
    }

    /// Releases the first `len` received bytes (at most [`Connection::readable`]).
    pub fn consume(&mut self, _now: Instant, _len: usize) {}

    /// Bytes received and not consumed.
    pub fn readable(&self) -> usize {
        0
    }

    /// Queues owned payload without copying it; see `Transport::send`.
    ///
    /// # Errors
    ///
    /// No room, the wrong state, or more than 64 KiB of memory.
    pub fn send(&mut self, _now: Instant, _payload: Payload) -> Result<(), SendError> {
        Err(SendError::Closed)
    }

    /// Queues a copy of `bytes`, all or nothing, in pages of [`Resources::pages`]; see `Transport::write`.
    ///
    /// # Errors
    ///
    /// No room, the wrong state, or more than 64 KiB.
    pub fn write(&mut self, _now: Instant, _bytes: &[u8]) -> Result<(), SendError> {
        Err(SendError::Closed)
    }

    /// Bytes of memory payload that may be queued now; zero when full or closed.
    pub fn sendable(&self) -> usize {
        0
    }

    /// Bytes queued and not acknowledged; file ranges count with their whole length.
    pub fn unsent(&self) -> u64 {
        0
    }

    /// Half-close: FIN after everything queued.
    pub fn shutdown(&mut self, _now: Instant) {}

    /// The application lets go: queued data and FIN are still delivered, what arrives is acknowledged and discarded,
    /// bounded by the user timeout and the FIN-WAIT-2 timeout. No readiness is reported any more.
    pub fn close(&mut self, _now: Instant) {}

    /// Ends the connection at once with `reason`; a RST is due where the peer knows of the connection.
    pub fn abort(&mut self, _now: Instant, _reason: CloseReason) {}

    /// Whether it is closed and has nothing left to send: it may be dropped.
    pub fn is_finished(&self) -> bool {
        self.state == State::Closed
    }

    /// The state of RFC 9293.
    pub fn tcp_state(&self) -> State {
        self.state
    }

    /// The state as applications see it.
    pub fn state(&self) -> ConnState {
        ConnState::Closed(CloseReason::Stale)
    }

    /// Our address.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// The peer's address.
    pub fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// Measurements up to `now`.
    pub fn info(&self, _now: Instant) -> ConnInfo {
        ConnInfo {
            local: self.local,
            remote: self.remote,
            rtt: None,
            rtt_var: None,
            rto: None,
            send_mss: 0,
            congestion_window: 0,
            slow_start_threshold: None,
            send_window: 0,
            receive_window: 0,
            in_flight: 0,
            bytes_acked: 0,
            bytes_received: 0,
            retransmits: 0,
            bytes_retransmitted: 0,
            segments_sent: 0,
            path_mtu: 0,
            limits: LimitTimes::default(),
        }
    }

    /// What happened so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Changes the settings that can change on a live connection: all but an MSS above the negotiated one.
    pub fn set_options(&mut self, _now: Instant, _options: &SocketOptions) {}
}
