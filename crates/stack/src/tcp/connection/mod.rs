//! One connection: what it is made of, and how it begins and ends.

mod ack;
mod application;
mod blocked;
mod counters;
mod device;
mod dormant;
mod ecn;
mod fast_open;
mod handshake;
mod info;
mod input;
mod loss_probe;
mod output;
mod pacing;
mod path;
mod recovery;
mod tally;
mod timeout;
mod transmit;

use super::autotune::{self, ReceiveTuner};
use super::config::{Config, Resources};
use super::congestion::{CongestionControl as _, Control};
use super::delayed_ack::AckPolicy;
use super::ecn::Ecn;
use super::limits::LimitClock;
use super::pacing::Pacer;
use super::path_size::PathSize;
use super::receiver::Receiver;
use super::rtt::RttEstimator;
use super::scoreboard::Scoreboard;
use super::segment::{DropReason, SegmentIn};
use super::send_queue::SendQueue;
use super::sequence::origin;
use super::state::{Event, State};
use super::timers::{Timer, Timers};
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use blocked::Open;
use core::net::SocketAddr;
pub use counters::Counters;
pub(crate) use dormant::Dormant;
use fast_open::FastOpen;
use linerate_nic::Pool;
use linerate_transport::{CloseReason, FileId, LimitCause, Ready};
use linerate_wire::tcp::SeqNumber;
use linerate_wire::units::Instant;
use recovery::Repair;
pub use tally::Tally;

/// Least segment size that a peer or a path can talk us into, in bytes with options: a smaller one would let anybody
/// make us send mountains of headers.
pub const MIN_MSS: u16 = 88;

/// Send buffer of a connection whose peer keeps its window closed while memory is tight, in bytes.
const STALLED_SEND: usize = 16 << 10;

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

/// Where loss recovery stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Recovery {
    /// Nothing is known to be lost.
    Open,
    /// Fast recovery until this position is acknowledged (RFC 6675, RFC 6582).
    Fast { until: u64 },
    /// Slow start after a timeout, until this position is acknowledged.
    Timeout { until: u64 },
}

/// The peer's window (RFC 9293 section 3.3.1).
#[derive(Clone, Copy, Debug, Default)]
struct PeerWindow {
    /// First position beyond it (SND.UNA + SND.WND).
    edge: u64,
    /// Its size when last updated, in bytes.
    size: u64,
    /// The greatest size ever.
    max: u64,
    /// SND.WL1 and SND.WL2.
    updated_by: (u64, u64),
    scale: u8,
}

/// How the connection began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Opened {
    /// By us (RFC 9293: an active OPEN).
    Actively,
    /// By the peer's SYN.
    Passively,
    /// By the ACK of a SYN cookie: its timestamp carries options and measures nothing.
    ByCookie,
}

/// When something happened last; at first, when the connection was made or established.
#[derive(Clone, Copy, Debug)]
struct Last {
    /// Data or FIN was sent.
    sent: Instant,
    /// An acceptable segment came.
    received: Instant,
    /// Payload came.
    data: Instant,
    /// An acknowledgement came.
    ack: Instant,
}

impl Last {
    fn at(now: Instant) -> Self {
        Last { sent: now, received: now, data: now, ack: now }
    }
}

/// The timestamps that were agreed upon (RFC 7323 section 4).
#[derive(Clone, Copy, Debug)]
struct TimestampState {
    /// TS.Recent, and when it was set.
    recent: u32,
    recent_at: Instant,
}

/// A packet that was handed to the device and has not left it.
#[derive(Clone, Copy, Debug)]
struct InDevice {
    tag: u32,
    start: u64,
    end: u64,
    /// Number of the transmission on the scoreboard.
    serial: u64,
    retransmission: bool,
    /// The device has reported it.
    reported: bool,
}

/// Limits the rate of challenge ACKs (RFC 5961 section 7).
#[derive(Clone, Copy, Debug, Default)]
struct ChallengeLimit {
    second: Instant,
    sent: u8,
}

/// A TCP connection from its SYN to the end of TIME-WAIT. See the module for the order of calls.
#[derive(Debug)]
pub struct Connection {
    local: SocketAddr,
    remote: SocketAddr,
    state: State,
    reason: Option<CloseReason>,
    soft_error: Option<CloseReason>,
    config: Rc<Config>,
    pages: Pool,
    timers: Timers,
    counters: Counters,
    tally: Tally,
    ready: Ready,
    limits: LimitClock,
    open: Option<Open>,
    /// What limits beside the device that is blamed for it.
    behind: Option<LimitCause>,

    // Agreed upon in the handshake.
    timestamps: Option<TimestampState>,
    sack: bool,
    peer_scales: bool,
    peer_mss: u16,
    path_mss: u16,
    path_size: PathSize,
    /// Where our timestamp clock starts.
    timestamp_offset: u32,
    syn_due: bool,
    syn_retries: u8,
    opened: Opened,
    fast_open: FastOpen,
    /// Position of the peer's first byte.
    peer_start: u64,

    // Sending. Positions: SND.UNA, SND.NXT; SYN and FIN take one each.
    una: u64,
    nxt: u64,
    /// Everything up to here has left the device at least once.
    left_end: u64,
    /// After the byte of a window probe that is not counted as sent.
    probe_end: u64,
    window: PeerWindow,
    queue: SendQueue,
    fin_queued: bool,
    fin_sent: bool,
    board: Scoreboard,
    recovery: Recovery,
    /// Duplicate acknowledgements in a row.
    duplicates: u64,
    /// The next retransmission goes out whatever the congestion window says.
    force: bool,
    /// Timeouts in a row without progress, and our timestamp at the first of them.
    expired: u32,
    expired_at: u32,
    congestion: Control,
    ecn: Ecn,
    pacer: Pacer,
    rtt: RttEstimator,
    repair: Repair,
    device: VecDeque<InDevice>,
    /// Bytes of these packets.
    device_bytes: u64,
    /// Most bytes that had left the device and were in the network, of late: see `peak`.
    carried: (u64, u64),
    next_tag: u32,
    device_full: bool,
    /// The retransmission timer runs for the device, which has not reported anything since it was set.
    watches_device: bool,
    /// Most bytes in the network of late, and the position that must be acknowledged for that to be past: a window of
    /// which half is used is used, however the acknowledgements are batched (RFC 7661 section 4.2).
    peak: (u64, u64),
    last: Last,
    /// Since when the peer has made no progress with what is outstanding.
    stalled_since: Option<Instant>,
    probe_due: bool,
    probes: u32,
    write_refused: bool,

    // Receiving.
    receiver: Receiver,
    ack: AckPolicy,
    last_ack_sent: u64,
    challenges: ChallengeLimit,
    /// The last echo that a full segment of the peer carried.
    last_echo: u32,
    keep_alive_due: bool,
    keep_alives: u8,

    // Ending.
    reset_due: bool,
    /// A reset that answers one segment and changes nothing.
    reset_reply: Option<SeqNumber>,
    /// The application has let go.
    released: bool,
    /// Data that comes after that resets.
    is_strict: bool,
}

impl Connection {
    /// An active open: the SYN comes out of [`Connection::poll_transmit`]. `iss` is the initial sequence number
    /// (RFC 6528 is the caller's business).
    pub fn active(
        now: Instant,
        config: impl Into<Rc<Config>>,
        resources: &Resources,
        local: SocketAddr,
        remote: SocketAddr,
        iss: SeqNumber,
    ) -> Self {
        let config = config.into();
        let mss = u64::from(config.mss.max(MIN_MSS));
        let congestion = Control::new(config.socket.congestion, mss, config.initial_window_segments);
        let receiver = new_receiver(now, &config, resources);
        let ends = (local, remote);
        let last = Last::at(now);
        let mut connection =
            Connection::blank(config, resources, ends, origin(iss), last, receiver, congestion);
        connection.syn_due = true;
        connection.stall(now);
        connection
    }

    /// A connection of which only this is known, with nothing under way.
    fn blank(
        config: Rc<Config>,
        resources: &Resources,
        (local, remote): (SocketAddr, SocketAddr),
        first: u64,
        last: Last,
        receiver: Receiver,
        congestion: Control,
    ) -> Self {
        Connection {
            local,
            remote,
            state: State::SynSent,
            reason: None,
            soft_error: None,
            pages: resources.pages.clone(),
            timers: Timers::default(),
            counters: Counters::default(),
            tally: Tally::default(),
            ready: Ready::NONE,
            limits: LimitClock::default(),
            open: None,
            behind: None,
            timestamps: None,
            sack: false,
            peer_scales: false,
            peer_mss: super::default_mss(remote.ip()),
            path_mss: config.mss,
            path_size: PathSize::default(),
            timestamp_offset: 0,
            syn_due: false,
            syn_retries: 0,
            opened: Opened::Actively,
            fast_open: FastOpen::default(),
            peer_start: 0,
            una: first,
            nxt: first,
            left_end: first,
            probe_end: first,
            window: PeerWindow::default(),
            queue: SendQueue::new(first + 1, resources.budget.charge_sending()),
            fin_queued: false,
            fin_sent: false,
            board: Scoreboard::default(),
            recovery: Recovery::Open,
            duplicates: 0,
            force: false,
            expired: 0,
            expired_at: 0,
            congestion,
            ecn: Ecn::default(),
            pacer: Pacer::default(),
            rtt: RttEstimator::new(config.initial_rto, config.min_rto, config.max_rto),
            repair: Repair::default(),
            device: VecDeque::new(),
            device_bytes: 0,
            carried: (0, 0),
            next_tag: 1,
            device_full: false,
            watches_device: false,
            peak: (0, 0),
            last,
            stalled_since: None,
            probe_due: false,
            probes: 0,
            write_refused: false,
            receiver,
            ack: AckPolicy::new(config.quick_acks),
            last_ack_sent: 0,
            challenges: ChallengeLimit::default(),
            last_echo: 0,
            keep_alive_due: false,
            keep_alives: 0,
            reset_due: false,
            reset_reply: None,
            released: false,
            is_strict: false,
            config,
        }
    }

    /// Tells a new connection what is its own. `path_mss`: as [`Config::mss`] for the path to the peer, as far as it is
    /// known: what we send. The peer's path to us is another one, so it does not count for what we offer; without a call it is
    /// [`Config::mss`]. `timestamp_offset`: where our timestamp clock starts; a secret per connection keeps uptime private (RFC
    /// 7323 section 5.4).
    pub fn set_out(&mut self, now: Instant, path_mss: u16, timestamp_offset: u32) {
        self.path_mss = path_mss.min(self.config.mss);
        self.path_size = PathSize::new(now, path_mss, self.config.mss);
        self.timestamp_offset = timestamp_offset;
    }

    /// A connection for a SYN that a listener received: the SYN-ACK comes out of [`Connection::poll_transmit`].
    ///
    /// # Errors
    ///
    /// The segment is not one that opens a connection.
    pub fn passive(
        now: Instant,
        config: impl Into<Rc<Config>>,
        resources: &Resources,
        local: SocketAddr,
        remote: SocketAddr,
        iss: SeqNumber,
        syn: &SegmentIn,
    ) -> Result<Self, DropReason> {
        let mut connection = Connection::active(now, config, resources, local, remote, iss);
        connection.begin_passive(now, syn, 0)?;
        Ok(connection)
    }

    /// A connection whose SYN and SYN-ACK went by without one (a SYN cookie, RFC 4987): `iss` is the number of the
    /// SYN-ACK, `syn` the peer's SYN as far as the cookie remembers it. The segment that completes the handshake is to be
    /// handed in next.
    ///
    /// # Errors
    ///
    /// As [`Connection::passive`].
    pub fn resumed(
        now: Instant,
        config: impl Into<Rc<Config>>,
        resources: &Resources,
        local: SocketAddr,
        remote: SocketAddr,
        iss: SeqNumber,
        syn: &SegmentIn,
    ) -> Result<Self, DropReason> {
        let config = config.into();
        let (told, _) = super::initial_window(&config.socket, &resources.budget);
        let mut connection = Connection::active(now, config, resources, local, remote, iss);
        connection.begin_passive(now, syn, told)?;
        connection.nxt = connection.una + 1;
        connection.left_end = connection.nxt;
        connection.syn_due = false;
        connection.opened = Opened::ByCookie;
        Ok(connection)
    }

    /// Ends an open that has not completed, without a word to the peer.
    pub fn give_up(&mut self, now: Instant) {
        if !self.state.is_synchronized() {
            self.end(now, CloseReason::NoMemory);
        }
    }

    /// Whether it is closed and has nothing left to send: it may be dropped.
    pub fn is_finished(&self) -> bool {
        self.state == State::Closed && !self.reset_due && self.reset_reply.is_none()
    }

    /// The state of RFC 9293.
    pub fn tcp_state(&self) -> State {
        self.state
    }

    /// Our address.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// The peer's address.
    pub fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// When [`Connection::handle_timeout`] is to be called next; later calls may move it both ways.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// What newly happened, to be reported to the application. Each call clears it.
    pub fn poll_ready(&mut self) -> Ready {
        core::mem::take(&mut self.ready)
    }

    /// Follows the state diagram; an event that cannot happen in this state changes nothing.
    fn follow(&mut self, now: Instant, event: Event) {
        let Some(state) = self.state.after(event) else { return };
        self.state = state;
        match state {
            State::FinWait2 => self.on_fin_wait_2(now),
            State::TimeWait => self.on_time_wait(now),
            State::Closed => self.on_closed(now),
            _ => {}
        }
    }

    fn on_fin_wait_2(&mut self, now: Instant) {
        if self.released {
            self.timers.set_if_idle(Timer::FinWait2, now + self.config.fin_wait_timeout);
        }
    }

    fn on_time_wait(&mut self, now: Instant) {
        self.timers.clear();
        self.timers.set(Timer::TimeWait, now + self.config.time_wait);
        self.finish(now, CloseReason::Done);
    }

    fn on_closed(&mut self, now: Instant) {
        self.timers.clear();
        self.finish(now, CloseReason::Done);
    }

    /// It is over for the application. The first reason counts.
    fn finish(&mut self, now: Instant, reason: CloseReason) {
        if self.reason.is_none() {
            self.reason = Some(reason);
            self.tell(Ready::CLOSED);
        }
        (self.open, self.behind) = (None, None);
        self.limits.stop(now);
        self.limits.busy.set(now, false);
        self.stalled_since = None;
        self.queue.clear();
        self.board = Scoreboard::default();
        self.device = VecDeque::new();
        self.device_bytes = 0;
    }

    /// Ends the connection for `reason`, without a RST.
    fn end(&mut self, now: Instant, reason: CloseReason) {
        if self.reason.is_none() {
            self.reason = Some(reason);
            self.tell(Ready::CLOSED);
        }
        if reason != CloseReason::Done {
            self.receiver.clear();
        }
        self.syn_due = false;
        self.reset_reply = None;
        self.follow(now, Event::Abort);
    }

    fn tell(&mut self, ready: Ready) {
        if !self.released {
            self.ready |= ready;
        }
    }

    /// Bytes per segment without options that we send: what peer, path, socket and device allow.
    fn segment_limit(&self) -> u16 {
        let own = self.offered_mss();
        own.min(self.peer_mss).min(self.path_mss).max(MIN_MSS)
    }

    /// The segment size that we offer.
    fn offered_mss(&self) -> u16 {
        self.config.socket.mss.map_or(self.config.mss, |mss| mss.min(self.config.mss)).max(MIN_MSS)
    }

    /// Payload bytes of a full segment without SACK blocks.
    fn mss(&self) -> u64 {
        u64::from(self.segment_limit()) - if self.timestamps.is_some() { 12 } else { 0 }
    }

    /// Size of the send buffer now.
    fn send_limit(&self) -> usize {
        let tight = self.receiver.budget().is_tight();
        let limit = autotune::send_limit(self.config.socket.send_buffer, self.congestion.window(), tight);
        // Who keeps the window closed is served from little memory.
        if tight && self.window.size == 0 { limit.min(STALLED_SEND) } else { limit }
    }

    /// Our timestamp clock: a tick per millisecond.
    fn timestamp(&self, now: Instant) -> u32 {
        self.timestamp_offset.wrapping_add(now.as_millis() as u32)
    }

    /// The user timeout begins to count, or counts anew.
    fn stall(&mut self, now: Instant) {
        self.stalled_since = Some(now);
        self.timers.set_if_idle(Timer::UserTimeout, now + self.config.socket.user_timeout);
    }

    /// Bytes in the network.
    fn pipe(&self) -> u64 {
        self.board.pipe(self.una, self.nxt)
    }
}

fn new_receiver(now: Instant, config: &Config, resources: &Resources) -> Receiver {
    let tuner = ReceiveTuner::new(now, config.socket.receive_buffer);
    let max_waiting = config.max_out_of_order_pieces;
    let scale = if config.window_scaling { scale_for(tuner.max()) } else { 0 };
    let mss = usize::from(config.socket.mss.map_or(config.mss, |mss| mss.min(config.mss)).max(MIN_MSS));
    let pages = resources.pages.clone();
    let mut receiver = Receiver::new(tuner, &resources.budget, pages, mss, max_waiting);
    receiver.scale = scale;
    receiver
}

/// The least window scale that expresses a window of `bytes` (RFC 7323 section 2.3).
pub(super) fn scale_for(bytes: usize) -> u8 {
    (0..14).find(|&scale| bytes >> scale <= usize::from(u16::MAX)).unwrap_or(14)
}
