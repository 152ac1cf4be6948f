//! A connection on which nothing happens, in a fifth of the bytes.
//!
//! Most of what a connection remembers is about data under way. Where there is none, a [`Dormant`] says all that is left, and
//! [`Dormant::wake`] makes the same connection of it again: what it sends, measures and reports is as if it had been awake. So
//! that this holds, [`Connection::fall_asleep`] refuses whatever is not quiet: anything in flight, queued, unread, due, or to
//! be told.
//!
//! | not kept | because |
//! |---|---|
//! | scoreboard, queues, what waits in the device | they are empty |
//! | positions of the newest arrival and of rounds (RFC 8985, RFC 9406) | whatever is sent next lies beyond them |
//! | how a reduction of the congestion window could be taken back | for [`UNDO_LASTS`] nothing told that it was unnecessary; what still comes was sent long ago |
//!
//! Where loss recovery has left traces, these lie beside it ([`Traces`]), and so do counters of what is not usual.

use super::super::config::{Config, Resources};
use super::super::congestion::{Calm, Control};
use super::super::delayed_ack::Habits;
use super::super::ecn::Ecn;
use super::super::limits::ClockAtRest;
use super::super::pacing::Pacer;
use super::super::path_size::{PathSize, Sizes};
use super::super::rack::{PathTimes, Rack};
use super::super::receiver::ReceiverAtRest;
use super::super::rtt::Estimate;
use super::super::send_queue::SendQueue;
use super::super::state::State;
use super::super::timers::{Timer, Timers};
use super::accounts::{Accounts, Last};
use super::device::InDevice;
use super::handshake::{Handshake, Opened, TimestampState};
use super::life::Life;
use super::loss_probe::LossProbe;
use super::path::Path;
use super::receiving::Receiving;
use super::recovery::LossRecovery;
use super::sender::{PeerWindow, Sender};
use super::{Connection, Counters};
use alloc::boxed::Box;
use alloc::rc::Rc;
use core::net::SocketAddr;
use core::time::Duration;
use linerate_transport::{CloseReason, ConnState, LimitCause};
use linerate_wire::units::Instant;

/// So long after the last segment nothing can tell any more that a reduction was unnecessary.
const UNDO_LASTS: Duration = Duration::from_secs(10);

/// What counts while nothing goes wrong, beside [`Counters::bytes_acked`], where it is no more than this can tell. The rest of
/// [`Counters`] is zero.
#[derive(Clone, Copy, Debug)]
struct Usual {
    segments_received: u32,
    segments_sent: u32,
    acks_sent: u32,
    keep_alive_probes: u32,
    challenge_acks: u32,
}

impl Usual {
    fn of(counters: &Counters) -> Usual {
        let most = |count| u32::try_from(count).unwrap_or(u32::MAX);
        Usual {
            segments_received: most(counters.segments_received),
            segments_sent: most(counters.segments_sent),
            acks_sent: most(counters.acks_sent),
            keep_alive_probes: most(counters.keep_alive_probes),
            challenge_acks: most(counters.challenge_acks),
        }
    }

    fn counters(self, bytes_acked: u64) -> Counters {
        Counters {
            segments_received: self.segments_received.into(),
            segments_sent: self.segments_sent.into(),
            acks_sent: self.acks_sent.into(),
            bytes_acked,
            keep_alive_probes: self.keep_alive_probes.into(),
            challenge_acks: self.challenge_acks.into(),
            ..Counters::default()
        }
    }
}

/// What losses, or a path that is full, leave behind.
#[derive(Clone, Debug)]
struct Traces {
    congestion: Control,
    loss_probe: LossProbe,
}

/// What was learnt by sending.
#[derive(Clone, Debug)]
enum Past {
    /// The first slow start has not ended.
    Calm(Calm),
    Traced(Box<Traces>),
}

/// The peer's window, as [`PeerWindow`]: positions are told from those of the connection, near which they lie. No window is larger
/// than 2^30 bytes (RFC 7323 section 2.3).
#[derive(Clone, Copy, Debug)]
struct Window {
    /// Beyond what is acknowledged.
    open: u32,
    /// The segment that told it last: so far its sequence number lies before what is expected next (behind it by one after a
    /// FIN), and its acknowledgement before what is acknowledged.
    behind: (i32, i32),
    size: u32,
    max: u32,
}

impl Window {
    fn of(window: &PeerWindow, next: u64, una: u64) -> Option<Window> {
        let behind = |position: u64, of: u64| i32::try_from(of.wrapping_sub(position).cast_signed()).ok();
        let (seq, ack) = window.updated_by;
        Some(Window {
            open: u32::try_from(window.edge.checked_sub(una)?).ok()?,
            behind: (behind(seq, next)?, behind(ack, una)?),
            size: u32::try_from(window.size).ok()?,
            max: u32::try_from(window.max).ok()?,
        })
    }

    fn window(self, next: u64, una: u64, scale: u8) -> PeerWindow {
        let (seq, ack) = self.behind;
        PeerWindow {
            edge: una + u64::from(self.open),
            size: self.size.into(),
            max: self.max.into(),
            updated_by: (next.wrapping_sub_signed(seq.into()), una.wrapping_sub_signed(ack.into())),
            scale,
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Dormant {
    config: Rc<Config>,
    past: Past,
    bytes_acked: u64,
    /// Everything that was counted, where that is more.
    counters: Option<Box<Counters>>,
    limits: ClockAtRest,
    receiver: ReceiverAtRest,
    /// Keep-alive, and what ends the state where something does; else the user timeout.
    timers: [Instant; 2],
    una: u64,
    last: Last,
    rtt: Estimate,
    path: PathTimes,
    ecn: Ecn,
    pacer: Pacer,
    /// The last timestamp of the peer, and when it came; see `has_timestamps`.
    recent_at: Instant,
    sizes: Sizes,
    usual: Usual,
    window: Window,
    recent: u32,
    timestamp_offset: u32,
    next_tag: u32,
    /// Most bytes in the network of late; see [`Connection::fills_device`].
    carried: u32,
    last_echo: u32,
    peer_mss: u16,
    path_mss: u16,
    habits: Habits,
    state: State,
    reason: Option<CloseReason>,
    soft_error: Option<CloseReason>,
    opened: Opened,
    limited_by: Option<LimitCause>,
    window_scale: u8,
    backoff: u8,
    syn_retries: u8,
    keep_alives: u8,
    has_timestamps: bool,
    sack: bool,
    peer_scales: bool,
    fin_queued: bool,
    fin_sent: bool,
    released: bool,
    is_strict: bool,
}

impl Connection {
    /// Whether nothing is under way, and nothing is to be sent, told or answered.
    fn is_quiet(&self, now: Instant) -> bool {
        let lasts = matches!(
            self.life.state,
            State::Established | State::CloseWait | State::FinWait2 | State::TimeWait
        );
        let may_be_undone = self.loss.undo.is_some() && now - self.accounts.last.received < UNDO_LASTS;
        lasts
            && !may_be_undone
            && !self.handshake.syn_due
            && self.life.is_quiet()
            && self.sender.is_quiet()
            && self.device.is_quiet()
            && self.loss.is_quiet()
            && self.receiving.is_quiet(now)
            && self.accounts.is_quiet()
    }

    /// The connection in few bytes, if it is quiet; what is left here is to be dropped.
    pub(crate) fn fall_asleep(&mut self, now: Instant) -> Option<Dormant> {
        if !self.is_quiet(now) {
            return None;
        }
        let [keep_alive, user_timeout, end] = self.timers.lasting(ending(self.life.state))?;
        let timers = match (ends_by_itself(self.life.state), user_timeout, end) {
            (true, Instant::FAR_FUTURE, end) => [keep_alive, end],
            (false, user_timeout, Instant::FAR_FUTURE) => [keep_alive, user_timeout],
            _ => return None,
        };
        let sizes = self.path.size.sizes()?;
        let habits = self.receiving.ack.habits()?;
        let carried = u32::try_from(self.device.carried.0).ok()?;
        let (limits, limited_by) = self.accounts.limits.at_rest()?;
        let window = Window::of(&self.sender.window, self.receiving.receiver.next(), self.sender.una)?;
        let (rtt, backoff) = self.sender.rtt.found();
        let usual = Usual::of(&self.accounts.counters);
        let bytes_acked = self.accounts.counters.bytes_acked;
        let is_more = !self.accounts.counters.is_usual();
        let calm = self.sender.congestion.calm().filter(|_| self.loss.loss_probe.has_ended());
        let traced = || {
            let (congestion, loss_probe) = (self.sender.congestion.clone(), self.loss.loss_probe.at_rest());
            Past::Traced(Box::new(Traces { congestion, loss_probe }))
        };
        let past = calm.map_or_else(traced, Past::Calm);
        let receiver = self.receiving.receiver.fall_asleep()?;
        Some(Dormant {
            config: Rc::clone(&self.config),
            past,
            usual,
            counters: is_more.then(|| Box::new(self.accounts.counters)),
            bytes_acked,
            limits,
            limited_by,
            receiver,
            timers,
            una: self.sender.una,
            window,
            window_scale: self.sender.window.scale,
            last: self.accounts.last,
            rtt,
            backoff,
            path: self.loss.rack.path(),
            ecn: self.sender.ecn,
            pacer: self.sender.pacer,
            recent_at: self.handshake.timestamps.map_or(Instant::ZERO, |state| state.recent_at),
            recent: self.handshake.timestamps.map_or(0, |state| state.recent),
            has_timestamps: self.handshake.timestamps.is_some(),
            sizes,
            timestamp_offset: self.handshake.timestamp_offset,
            next_tag: self.device.next_tag,
            carried,
            last_echo: self.receiving.last_echo,
            peer_mss: self.handshake.peer_mss,
            path_mss: self.path.mss,
            habits,
            state: self.life.state,
            reason: self.life.reason,
            soft_error: self.life.soft_error,
            opened: self.handshake.opened,
            syn_retries: self.handshake.syn_retries,
            keep_alives: self.life.keep_alives,
            sack: self.handshake.sack,
            peer_scales: self.handshake.peer_scales,
            fin_queued: self.sender.fin_queued,
            fin_sent: self.sender.fin_sent,
            released: self.life.released,
            is_strict: self.life.is_strict,
        })
    }
}

/// Whether time ends a state.
fn ends_by_itself(state: State) -> bool {
    matches!(state, State::FinWait2 | State::TimeWait)
}

/// The timer that ends a state.
fn ending(state: State) -> Timer {
    if state == State::TimeWait { Timer::TimeWait } else { Timer::FinWait2 }
}

impl Dormant {
    /// The connection between these ends (ours first) again.
    pub(crate) fn wake(self, resources: &Resources, ends: (SocketAddr, SocketAddr)) -> Connection {
        let image = self.look(resources, ends);
        let max_waiting = self.config.max_out_of_order_pieces;
        let receiver = self.receiver.wake(resources, max_waiting);
        Connection { receiving: Receiving::after(receiver, self.habits, self.last_echo), ..image }
    }

    /// The connection to look at: it was promised no memory, and must not be used.
    pub(crate) fn look(&self, resources: &Resources, ends: (SocketAddr, SocketAddr)) -> Connection {
        let (congestion, loss_probe) = match &self.past {
            Past::Traced(traces) => (traces.congestion.clone(), traces.loss_probe),
            Past::Calm(calm) => (Control::after(self.config.socket.congestion, calm), LossProbe::default()),
        };
        let counters =
            self.counters.as_deref().map_or_else(|| self.usual.counters(self.bytes_acked), |all| *all);
        let (una, config) = (self.una, Rc::clone(&self.config));
        let receiver = self.receiver.look(resources, config.max_out_of_order_pieces);
        let receiving = Receiving::after(receiver, self.habits, self.last_echo);
        let timestamps = TimestampState { recent: self.recent, recent_at: self.recent_at };
        let queue_end = una - u64::from(self.fin_sent);
        let queue = SendQueue::new(queue_end, resources.budget.charge_sending());
        let blank = Connection::blank(config, resources, ends, una, self.last, receiving, congestion);
        Connection {
            timers: Timers::with(self.lasting(), ending(self.state)),
            life: Life {
                state: self.state,
                reason: self.reason,
                soft_error: self.soft_error,
                keep_alives: self.keep_alives,
                released: self.released,
                is_strict: self.is_strict,
                ..blank.life
            },
            handshake: Handshake {
                timestamps: self.has_timestamps.then_some(timestamps),
                timestamp_offset: self.timestamp_offset,
                sack: self.sack,
                peer_scales: self.peer_scales,
                peer_mss: self.peer_mss,
                syn_retries: self.syn_retries,
                opened: self.opened,
                ..blank.handshake
            },
            path: Path { mss: self.path_mss, size: PathSize::with(self.sizes) },
            sender: Sender {
                window: self.window.window(self.receiver.next, una, self.window_scale),
                queue,
                fin_queued: self.fin_queued,
                fin_sent: self.fin_sent,
                ecn: self.ecn,
                pacer: self.pacer,
                rtt: blank.sender.rtt.with(self.rtt, self.backoff),
                ..blank.sender
            },
            device: InDevice::after(self.next_tag, u64::from(self.carried), una),
            loss: LossRecovery::after(Rack::on(self.path), loss_probe),
            accounts: Accounts { counters, limits: self.limits.clock(self.limited_by), ..blank.accounts },
            ..blank
        }
    }

    /// As [`Timers::lasting`].
    fn lasting(&self) -> [Instant; 3] {
        let [keep_alive, other] = self.timers;
        match ends_by_itself(self.state) {
            true => [keep_alive, Instant::FAR_FUTURE, other],
            false => [keep_alive, other, Instant::FAR_FUTURE],
        }
    }

    /// Nothing came for a while: as [`Connection::rest`].
    pub(crate) fn rest(&mut self) {
        self.receiver.rest();
    }

    /// Its settings.
    pub(crate) fn config(&self) -> &Rc<Config> {
        &self.config
    }

    /// As [`Connection::tcp_state`].
    pub(crate) fn tcp_state(&self) -> State {
        self.state
    }

    /// As [`Connection::path_mss`].
    pub(crate) fn path_mss(&self) -> u16 {
        self.path_mss
    }

    /// As [`Connection::poll_timeout`].
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let first = self.timers.into_iter().fold(Instant::FAR_FUTURE, Instant::min);
        (first != Instant::FAR_FUTURE).then_some(first)
    }

    /// As [`Connection::time_wait_end`].
    pub(crate) fn time_wait_end(&self) -> Option<Instant> {
        (self.state == State::TimeWait).then(|| self.poll_timeout()).flatten()
    }

    /// As [`Connection::progress`].
    pub(crate) fn progress(&self) -> (u64, u64) {
        (self.bytes_acked, self.receiver.bytes_received)
    }

    /// As [`Connection::limited_by`].
    pub(crate) fn limited_by(&self) -> Option<LimitCause> {
        self.limited_by
    }

    /// As [`Connection::state`].
    pub(crate) fn state(&self) -> ConnState {
        match self.reason {
            Some(reason) => ConnState::Closed(reason),
            None => ConnState::Open { finished: self.receiver.finished },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_usual_is_told_by_few_counters() {
        let set: [fn(&mut Counters, u64); 9] = [
            |counters, to| counters.segments_received = to,
            |counters, to| counters.segments_sent = to,
            |counters, to| counters.acks_sent = to,
            |counters, to| counters.bytes_acked = to,
            |counters, to| counters.keep_alive_probes = to,
            |counters, to| counters.challenge_acks = to,
            |counters, to| counters.dropped[3] = to,
            |counters, to| counters.retransmits = to,
            |counters, to| counters.reordering_seen = to > 0,
        ];
        let check = |counters: &Counters| {
            let is_told = Usual::of(counters).counters(counters.bytes_acked) == *counters;
            assert_eq!(counters.is_usual(), is_told, "{counters:?}");
            is_told
        };
        let mut told = 0;
        for values in 0..3_u64.pow(set.len() as u32) {
            let mut counters = Counters::default();
            let mut left = values;
            for set in set {
                set(&mut counters, [0, u64::from(u32::MAX), 1 << 32][(left % 3) as usize]);
                left /= 3;
            }
            told += u32::from(check(&counters));
        }
        assert_eq!(told, 2_u32.pow(5) * 3, "five that 32 bits tell, and one that any number does");
    }
}
