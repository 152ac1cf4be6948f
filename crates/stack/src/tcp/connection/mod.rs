//! One connection: what it is made of, and how it begins and ends.

mod accounts;
mod ack;
mod application;
mod blocked;
mod counters;
mod device;
mod dormant;
mod ecn;
mod expected;
mod fast_open;
mod handshake;
mod info;
mod input;
mod life;
mod loss_probe;
mod output;
mod pacing;
mod path;
mod receiving;
mod recovery;
mod sender;
mod tally;
mod timeout;
mod transmit;

use super::autotune::{self, ReceiveTuner};
use super::config::{Config, Resources};
use super::congestion::{CongestionControl as _, Control};
use super::path_size::PathSize;
use super::receiver::Receiver;
use super::segment::{DropReason, SegmentIn};
use super::send_queue::SendQueue;
use super::sequence::origin;
use super::spare::Queues;
use super::state::{Event, State};
use super::timers::{Timer, Timers};
use accounts::{Accounts, Last};
use alloc::rc::Rc;
use core::net::SocketAddr;
pub use counters::Counters;
use device::InDevice;
pub(crate) use device::Packet;
pub(crate) use dormant::Dormant;
use handshake::{Handshake, Opened};
use life::Life;
use linerate_nic::Pool;
use linerate_transport::{CloseReason, FileId, Ready};
use linerate_wire::tcp::SeqNumber;
use linerate_wire::units::Instant;
use path::Path;
use receiving::Receiving;
use recovery::LossRecovery;
use sender::Sender;
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

/// A TCP connection from its SYN to the end of TIME-WAIT. See the module for the order of calls.
#[derive(Debug)]
pub struct Connection {
    local: SocketAddr,
    remote: SocketAddr,
    config: Rc<Config>,
    pages: Pool,
    timers: Timers,
    /// Its state, and what its end depends on.
    life: Life,
    /// What was agreed upon, and what it takes to agree.
    handshake: Handshake,
    /// The size of segments.
    path: Path,
    /// What is sent, and what the windows allow.
    sender: Sender,
    /// What of that waits in the device.
    device: InDevice,
    /// What of that was lost.
    loss: LossRecovery,
    /// What comes in, and what is owed for it.
    receiving: Receiving,
    /// What happened, and where the time went.
    accounts: Accounts,
}

impl Connection {
    /// An active open: the SYN comes out of [`Connection::poll_transmit`]. `iss` is the initial sequence number
    /// (RFC 6528 is the caller's business).
    #[inline]
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
        let receiving = Receiving::new(receiver, config.quick_acks);
        let ends = (local, remote);
        let last = Last::at(now);
        let mut connection =
            Connection::blank(config, resources, ends, origin(iss), last, receiving, congestion);
        connection.handshake.syn_due = true;
        connection.stall(now);
        connection
    }

    /// A connection of which only this is known, with nothing under way.
    #[inline(always)]
    fn blank(
        config: Rc<Config>,
        resources: &Resources,
        (local, remote): (SocketAddr, SocketAddr),
        first: u64,
        last: Last,
        receiving: Receiving,
        congestion: Control,
    ) -> Self {
        let charge = resources.budget.charge_sending();
        Connection {
            local,
            remote,
            pages: resources.pages.clone(),
            timers: Timers::default(),
            life: Life::new(),
            handshake: Handshake::new(super::default_mss(remote.ip())),
            path: Path::new(config.mss),
            sender: Sender::new(first, SendQueue::new(first + 1, charge), congestion, &config),
            device: InDevice::new(),
            loss: LossRecovery::default(),
            receiving,
            accounts: Accounts::new(last),
            config,
        }
    }

    /// Tells a new connection what is its own. `path_mss`: as [`Config::mss`] for the path to the peer, as far as it is
    /// known: what we send. The peer's path to us is another one, so it does not count for what we offer; without a call it is
    /// [`Config::mss`]. `timestamp_offset`: where our timestamp clock starts; a secret per connection keeps uptime private (RFC
    /// 7323 section 5.4).
    pub fn set_out(&mut self, now: Instant, path_mss: u16, timestamp_offset: u32) {
        self.path.mss = path_mss.min(self.config.mss);
        self.path.size = PathSize::new(now, path_mss, self.config.mss);
        self.handshake.timestamp_offset = timestamp_offset;
    }

    /// Makes a new connection one for a SYN that a listener received: the SYN-ACK comes out of [`Connection::poll_transmit`].
    ///
    /// # Errors
    ///
    /// The segment is not one that opens a connection.
    pub fn answer(&mut self, now: Instant, syn: &SegmentIn) -> Result<(), DropReason> {
        self.begin_passive(now, syn, 0)
    }

    /// Makes a new connection one whose SYN and SYN-ACK went by without one (a SYN cookie, RFC 4987): its initial number is
    /// that of the SYN-ACK, `syn` the peer's SYN as far as the cookie remembers it, `told` the window that the SYN-ACK told of.
    /// The segment that completes the handshake is to be handed in next.
    ///
    /// # Errors
    ///
    /// As [`Connection::answer`].
    pub fn resume(&mut self, now: Instant, syn: &SegmentIn, told: u16) -> Result<(), DropReason> {
        self.begin_passive(now, syn, told)?;
        self.sender.nxt = self.sender.una + 1;
        self.sender.left_end = self.sender.nxt;
        self.handshake.syn_due = false;
        self.handshake.opened = Opened::ByCookie;
        Ok(())
    }

    /// Memory that another connection's queues have left, for those that have none yet.
    pub(crate) fn lend(&mut self, queues: Queues) {
        self.sender.queue.lend(queues.sending);
        self.loss.board.lend(queues.departures);
        self.device.lend(queues.in_device);
        self.receiving.receiver.lend(queues.received);
    }

    /// What its queues leave to another. It is done with.
    pub(crate) fn take_queues(&mut self) -> Queues {
        Queues {
            sending: self.sender.queue.take_memory(),
            departures: self.loss.board.take_memory(),
            in_device: self.device.take_memory(),
            received: self.receiving.receiver.take_memory(),
        }
    }

    /// Ends an open that has not completed, without a word to the peer.
    pub fn give_up(&mut self, now: Instant) {
        if !self.life.state.is_synchronized() {
            self.end(now, CloseReason::NoMemory);
        }
    }

    /// Whether it is closed and has nothing left to send: it may be dropped.
    pub fn is_finished(&self) -> bool {
        self.life.state == State::Closed && !self.life.reset_due && self.life.reset_reply.is_none()
    }

    /// The state of RFC 9293.
    pub fn tcp_state(&self) -> State {
        self.life.state
    }

    /// Our address.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// The peer's address.
    pub fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// Our address and the peer's, where they lie.
    pub(crate) fn ends(&self) -> (&SocketAddr, &SocketAddr) {
        (&self.local, &self.remote)
    }

    /// When [`Connection::handle_timeout`] is to be called next; later calls may move it both ways.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// A time that [`Connection::poll_timeout`] is not before, known without looking for it; `None` where it is `None`.
    pub(crate) fn not_due_before(&self) -> Option<Instant> {
        self.timers.not_before()
    }

    /// As [`Connection::poll_timeout`], which [`Connection::not_due_before`] then knows.
    pub(crate) fn find_timeout(&mut self) -> Option<Instant> {
        self.timers.find_next()
    }

    /// When TIME-WAIT ends, in that state.
    pub(crate) fn time_wait_end(&self) -> Option<Instant> {
        self.timers.at(Timer::TimeWait)
    }

    /// Whether it is open, and there is nothing to tell of it but readiness and the next deadline.
    pub(crate) fn is_calm(&self) -> bool {
        self.life.state == State::Established
            && !self.accounts.has_tally
            && self.path.size.news.is_none()
            && !self.sender.queue.has_unread()
            && !super::shortcuts_are_off()
    }

    /// What newly happened, to be reported to the application. Each call clears it.
    pub fn poll_ready(&mut self) -> Ready {
        core::mem::take(&mut self.life.ready)
    }

    /// Follows the state diagram; an event that cannot happen in this state changes nothing.
    fn follow(&mut self, now: Instant, event: Event) {
        let Some(state) = self.life.state.after(event) else { return };
        self.life.state = state;
        match state {
            State::FinWait2 => self.on_fin_wait_2(now),
            State::TimeWait => self.on_time_wait(now),
            State::Closed => self.on_closed(now),
            _ => {}
        }
    }

    fn on_fin_wait_2(&mut self, now: Instant) {
        if self.life.released {
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
        self.life.close(reason);
        (self.accounts.open, self.accounts.behind) = (None, None);
        self.accounts.limits.stop(now);
        self.accounts.limits.busy.set(now, false);
        self.sender.stalled_since = None;
        self.sender.queue.clear();
        self.loss.board.reset();
        self.device.clear();
    }

    /// Ends the connection for `reason`, without a RST.
    fn end(&mut self, now: Instant, reason: CloseReason) {
        self.life.close(reason);
        if reason != CloseReason::Done {
            self.receiving.receiver.clear();
        }
        self.handshake.syn_due = false;
        self.life.reset_reply = None;
        self.follow(now, Event::Abort);
    }

    /// Bytes per segment without options that we send: what peer, path, socket and device allow.
    fn segment_limit(&self) -> u16 {
        let own = self.offered_mss();
        own.min(self.handshake.peer_mss).min(self.path.mss).max(MIN_MSS)
    }

    /// The segment size that we offer.
    fn offered_mss(&self) -> u16 {
        self.config.socket.mss.map_or(self.config.mss, |mss| mss.min(self.config.mss)).max(MIN_MSS)
    }

    /// Payload bytes of a full segment without SACK blocks.
    fn mss(&self) -> u64 {
        u64::from(self.segment_limit()) - self.handshake.options_len()
    }

    /// Size of the send buffer now.
    fn send_limit(&self) -> usize {
        let tight = self.is_tight();
        let limit =
            autotune::send_limit(self.config.socket.send_buffer, self.sender.congestion.window(), tight);
        // Who is slow, or keeps the window closed, is served from little memory.
        let most = match self.sender.window.size {
            0 => STALLED_SEND.min(self.sender.most_while_tight as usize),
            _ => self.sender.most_while_tight as usize,
        };
        if tight { limit.min(most) } else { limit }
    }

    /// Whether there is little memory for what is sent.
    fn is_tight(&self) -> bool {
        let budget = self.receiving.receiver.budget();
        budget.is_tight() || budget.is_sending_tight()
    }

    /// The user timeout begins to count, or counts anew.
    fn stall(&mut self, now: Instant) {
        self.sender.stalled_since = Some(now);
        self.timers.set_if_idle(Timer::UserTimeout, now + self.config.socket.user_timeout);
    }

    /// Bytes in the network.
    fn pipe(&self) -> u64 {
        self.loss.board.pipe(self.sender.una, self.sender.nxt)
    }

    /// FlightSize (RFC 5681 section 2), as far as the congestion window allowed it at one time: while a loss waits for the reordering
    /// window (RFC 8985), new data takes the place of what SACK reports, and both together say more than the path holds. The window, or
    /// what slow start leads it back to: the end of a recovery may have made it small, against a burst.
    fn flight(&self) -> u64 {
        let unacknowledged = self.sender.nxt - self.sender.una;
        let unreported = unacknowledged.saturating_sub(self.loss.board.reported());
        let control = &self.sender.congestion;
        let allowed = control.window().max(control.slow_start_threshold().unwrap_or(0));
        unreported.max(unacknowledged.min(allowed))
    }
}

#[inline]
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
