//! Handing packets to the kernel: one gather list each, and what its answer means for the packet.

use crate::stats::DeviceStats;
use crate::sys::packet::MAX_BATCH;
use linerate_nic::{DeviceError, MAX_CHUNKS, Segmentation, TxPacket, TxQueue, TxToken};
use linerate_wire::units::Instant;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io::IoSlice;
use std::time::Duration;

/// Most completions that wait to be polled. Transmitting stops when so many do.
const MAX_COMPLETIONS: usize = 4096;

/// How long a packet that draws ENOBUFS is offered again. An AF_PACKET socket says so where the interface's queue is full for a
/// moment, and also of each packet that is always dropped: by a filter, or as too long for what is behind the interface.
const PATIENCE: Duration = Duration::from_millis(10);
/// For how long, after one was given up, others that draw it are lost at once: they would hold up all that are let through.
const HASTE: Duration = Duration::from_millis(40);
/// The same where the next packet was taken at once, so that the interface's queue was not full.
const LONG_HASTE: Duration = Duration::from_secs(1);

/// Pieces of one packet: virtio-net header, header block, payload.
pub(crate) const MAX_PIECES: usize = 2 + MAX_CHUNKS;

/// What the kernel's refusal means for a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    /// It is lost, and the reason has been counted.
    Lost,
    /// It stays in the queue: there is no room now.
    Full,
    /// It stays, and the call is made again.
    Again,
}

/// What ENOBUFS came to.
#[derive(Default)]
struct Jam {
    /// Since when the front packet has been refused.
    since: Option<Instant>,
    /// Until when none is offered again.
    hasty_until: Option<Instant>,
    /// The packet before was given up.
    has_given_up: bool,
}

impl Jam {
    /// Whether the front packet, refused again, is given up.
    fn gives_up(&mut self, now: Instant) -> bool {
        if self.hasty_until.is_some_and(|until| now < until) {
            self.has_given_up = false;
            return true;
        }
        let since = *self.since.get_or_insert(now);
        if now.saturating_since(since) < PATIENCE {
            return false;
        }
        *self = Jam { since: None, hasty_until: Some(now + HASTE), has_given_up: true };
        true
    }

    /// A packet was taken.
    fn passed(&mut self, now: Instant) {
        self.since = None;
        if std::mem::take(&mut self.has_given_up) {
            self.hasty_until = Some(now + LONG_HASTE);
        }
    }
}

/// Tokens of packets that have left, and what holds up the next one.
pub(crate) struct Completions {
    tokens: VecDeque<TxToken>,
    jam: Jam,
}

impl Completions {
    pub(crate) fn new() -> Self {
        Completions { tokens: VecDeque::with_capacity(MAX_COMPLETIONS), jam: Jam::default() }
    }

    /// Whether the front packet is to be offered again in a moment, of which the descriptor does not tell.
    pub(crate) fn is_jammed(&self) -> bool {
        self.jam.since.is_some()
    }

    pub(crate) fn pop(&mut self) -> Option<TxToken> {
        self.tokens.pop_front()
    }

    /// Whether the packets of one more call may find no place.
    fn is_full(&self) -> bool {
        self.tokens.len() + MAX_BATCH > MAX_COMPLETIONS
    }

    /// Takes the front packet off `queue` and notes that it has left.
    fn retire(&mut self, queue: &mut TxQueue) {
        if let Some(packet) = queue.front() {
            let token = packet.meta.token;
            if token != TxToken(0) {
                self.tokens.push_back(token);
            }
        }
        queue.pop();
    }
}

/// Lets `send` take packets from the front of `queue` until the queue is empty or there is no room; returns how many
/// left it. `send` says how many it sent (1 to [`MAX_BATCH`]); its error is about the front packet.
pub(crate) fn drain(
    now: Instant,
    queue: &mut TxQueue,
    completions: &mut Completions,
    stats: &mut DeviceStats,
    mut send: impl FnMut(&TxQueue) -> Result<usize, Errno>,
) -> Result<usize, DeviceError> {
    let mut taken = 0;
    while !queue.is_empty() && !completions.is_full() {
        match send(queue) {
            Ok(sent) => {
                completions.jam.passed(now);
                for _ in 0..sent.clamp(1, MAX_BATCH).min(queue.len()) {
                    count_sent(queue, stats);
                    completions.retire(queue);
                    taken += 1;
                }
            }
            Err(error) => match judge(now, error, &mut completions.jam, stats) {
                Ok(Fate::Again) => {}
                Ok(Fate::Full) => break,
                Ok(Fate::Lost) => {
                    completions.jam.since = None;
                    completions.retire(queue);
                    taken += 1;
                }
                // The caller hears of the packets that left first, and of the failure at the next call.
                Err(_) if taken > 0 => break,
                Err(error) => return Err(error),
            },
        }
    }
    Ok(taken)
}

fn count_sent(queue: &TxQueue, stats: &mut DeviceStats) {
    if let Some(packet) = queue.front() {
        stats.tx_frames += 1;
        stats.tx_bytes += packet.len() as u64;
        stats.tx_super_frames += u64::from(packet.meta.segmentation != Segmentation::None);
    }
}

/// What becomes of the front packet after `error`, counted.
fn judge(now: Instant, error: Errno, jam: &mut Jam, stats: &mut DeviceStats) -> Result<Fate, DeviceError> {
    match error {
        Errno::INTR => return Ok(Fate::Again),
        Errno::AGAIN => {
            jam.since = None;
            stats.tx_full += 1;
            return Ok(Fate::Full);
        }
        Errno::NOBUFS if jam.gives_up(now) => stats.tx_refused += 1,
        Errno::NOBUFS => {
            stats.tx_full += 1;
            return Ok(Fate::Full);
        }
        // A TAP says EIO, an AF_PACKET socket ENETDOWN, while the interface is down.
        Errno::IO | Errno::NETDOWN => stats.tx_link_down += 1,
        Errno::NOMEM => stats.tx_no_memory += 1,
        Errno::INVAL | Errno::MSGSIZE | Errno::FAULT => stats.tx_refused += 1,
        other => return Err(device_error(other)),
    }
    Ok(Fate::Lost)
}

/// What an error number that is about the device, not about one frame, means.
pub(crate) fn device_error(error: Errno) -> DeviceError {
    match error {
        // A TAP says EBADFD, an AF_PACKET socket ENXIO or ENODEV, after the interface was removed.
        Errno::BADFD | Errno::NXIO | Errno::NODEV => DeviceError::Gone,
        other => DeviceError::Io(other.raw_os_error()),
    }
}

/// The gather list of a packet behind `virtio` bytes (none if that is empty); returns how many of `pieces` it takes, at
/// most [`MAX_PIECES`].
pub(crate) fn gather<'a>(pieces: &mut [IoSlice<'a>], virtio: &'a [u8], packet: &'a TxPacket) -> usize {
    let mut count = 0;
    let bytes =
        [virtio, packet.header()].into_iter().chain(packet.chunks().iter().map(|chunk| chunk.bytes()));
    for (slot, bytes) in pieces.iter_mut().zip(bytes.filter(|bytes| !bytes.is_empty())) {
        *slot = IoSlice::new(bytes);
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_nic::Chunk;

    fn queue_of(count: u64) -> TxQueue {
        let mut queue = TxQueue::with_capacity(8);
        for token in 1..=count {
            let packet = queue.vacant().unwrap();
            packet.header_mut(14);
            packet.push_chunk(Chunk::constant(b"payload")).unwrap();
            packet.meta.token = TxToken(token);
            queue.commit();
        }
        queue
    }

    fn drain(
        queue: &mut TxQueue,
        completions: &mut Completions,
        stats: &mut DeviceStats,
        send: impl FnMut(&TxQueue) -> Result<usize, Errno>,
    ) -> Result<usize, DeviceError> {
        super::drain(Instant::ZERO, queue, completions, stats, send)
    }

    /// Three packets, the second of which draws `error`: what is taken, left and completed, and what is counted.
    fn check(
        error: Errno,
        taken: Result<usize, DeviceError>,
        tokens: &[u64],
        counted: fn(&DeviceStats) -> u64,
    ) {
        let (mut queue, mut completions, mut stats) =
            (queue_of(3), Completions::new(), DeviceStats::default());
        let mut calls = 0;
        let got = drain(&mut queue, &mut completions, &mut stats, |_| {
            calls += 1;
            if calls == 2 { Err(error) } else { Ok(1) }
        });
        assert_eq!(got, taken, "{error:?}");
        let left = std::iter::from_fn(|| completions.pop()).map(|token| token.0).collect::<Vec<_>>();
        assert_eq!(left, tokens, "{error:?}");
        assert_eq!(queue.len(), 3 - tokens.len());
        assert_eq!(counted(&stats), 1, "{error:?}");
        let sent = if tokens.len() == 3 { 2 } else { tokens.len() as u64 };
        assert_eq!((stats.tx_frames, stats.tx_bytes), (sent, sent * 21));
    }

    #[test]
    fn each_answer_has_its_meaning() {
        check(Errno::AGAIN, Ok(1), &[1], |s| s.tx_full);
        check(Errno::NOBUFS, Ok(1), &[1], |s| s.tx_full);
        check(Errno::IO, Ok(3), &[1, 2, 3], |s| s.tx_link_down);
        check(Errno::NETDOWN, Ok(3), &[1, 2, 3], |s| s.tx_link_down);
        check(Errno::NOMEM, Ok(3), &[1, 2, 3], |s| s.tx_no_memory);
        check(Errno::INVAL, Ok(3), &[1, 2, 3], |s| s.tx_refused);
        check(Errno::MSGSIZE, Ok(3), &[1, 2, 3], |s| s.tx_refused);
        check(Errno::BADFD, Ok(1), &[1], |s| s.tx_frames);
    }

    #[test]
    fn a_packet_that_is_always_refused_holds_up_the_others_for_a_moment() {
        let (mut completions, mut stats) = (Completions::new(), DeviceStats::default());
        let mut at = |ms, queue: &mut TxQueue, send: &mut dyn FnMut(&TxQueue) -> Result<usize, Errno>| {
            let taken = super::drain(Instant::from_millis(ms), queue, &mut completions, &mut stats, send);
            (taken.unwrap(), completions.is_jammed())
        };
        let is_odd = |queue: &TxQueue| queue.front().is_some_and(|packet| packet.meta.token.0 % 2 == 1);
        let mut refuse_odd = |queue: &TxQueue| if is_odd(queue) { Err(Errno::NOBUFS) } else { Ok(1) };
        let mut queue = queue_of(4);
        assert_eq!(at(0, &mut queue, &mut refuse_odd), (0, true));
        assert_eq!(at(9, &mut queue, &mut refuse_odd), (0, true));
        assert_eq!(at(10, &mut queue, &mut refuse_odd), (4, false), "the third packet is not waited for");
        let mut queue = queue_of(4);
        assert_eq!(at(1_009, &mut queue, &mut refuse_odd), (4, false));
        let mut queue = queue_of(2);
        assert_eq!(at(1_010, &mut queue, &mut refuse_odd), (0, true));
        // A queue that was full for a moment loses nothing, and one that the descriptor tells of is left to it.
        assert_eq!(at(1_015, &mut queue, &mut |_| Ok(2)), (2, false));
        let mut queue = queue_of(1);
        assert_eq!(at(1_020, &mut queue, &mut refuse_odd), (0, true));
        assert_eq!(at(1_025, &mut queue, &mut |_| Err(Errno::AGAIN)), (0, false));
        assert_eq!(at(1_060, &mut queue, &mut |_| Err(Errno::AGAIN)), (0, false));
        // Where all are refused it may be that the queue is full: they are waited for again soon.
        let mut refuse_all = |_: &TxQueue| Err(Errno::NOBUFS);
        let mut queue = queue_of(2);
        assert_eq!(at(2_000, &mut queue, &mut refuse_all), (0, true));
        assert_eq!(at(2_010, &mut queue, &mut refuse_all), (2, false));
        let mut queue = queue_of(1);
        assert_eq!(at(2_050, &mut queue, &mut refuse_all), (0, true));
        // What another error takes is waited for no more.
        assert_eq!(at(2_055, &mut queue, &mut |_| Err(Errno::INVAL)), (1, false));
        let mut queue = queue_of(1);
        assert_eq!(at(9_000, &mut queue, &mut refuse_all), (0, true));
        assert_eq!((stats.tx_refused, stats.tx_frames), (7, 6));
    }

    #[test]
    fn several_leave_by_one_call_and_an_interrupted_one_is_repeated() {
        let (mut queue, mut completions, mut stats) =
            (queue_of(5), Completions::new(), DeviceStats::default());
        let mut answers = [Err(Errno::INTR), Ok(3), Err(Errno::INVAL), Ok(9)].into_iter();
        let got = drain(&mut queue, &mut completions, &mut stats, |_| answers.next().unwrap());
        assert_eq!(got, Ok(5));
        assert_eq!((stats.tx_frames, stats.tx_refused), (4, 1));
        assert_eq!(std::iter::from_fn(|| completions.pop()).map(|token| token.0).sum::<u64>(), 15);
    }

    #[test]
    fn a_failure_of_the_device_is_told_when_nothing_left() {
        for (error, wanted) in
            [(Errno::BADFD, DeviceError::Gone), (Errno::PERM, DeviceError::Io(Errno::PERM.raw_os_error()))]
        {
            let (mut queue, mut completions) = (queue_of(1), Completions::new());
            let got = drain(&mut queue, &mut completions, &mut DeviceStats::default(), |_| Err(error));
            assert_eq!(got, Err(wanted));
            assert_eq!(queue.len(), 1);
        }
    }

    #[test]
    fn completions_are_bounded() {
        let mut completions = Completions::new();
        let mut sent = 0;
        for _ in 0..MAX_COMPLETIONS {
            let mut queue = queue_of(3);
            sent += drain(&mut queue, &mut completions, &mut DeviceStats::default(), |_| Ok(1)).unwrap();
        }
        assert_eq!(sent, MAX_COMPLETIONS - MAX_BATCH + 1);
        assert_eq!(completions.pop(), Some(TxToken(1)));
    }

    #[test]
    fn the_gather_list_skips_what_is_empty() {
        let queue = queue_of(1);
        let packet = queue.front().unwrap();
        let mut pieces = [IoSlice::new(&[]); MAX_PIECES];
        assert_eq!(gather(&mut pieces, &[0; 12], packet), 3);
        assert_eq!(pieces[..3].iter().map(|piece| piece.len()).collect::<Vec<_>>(), [12, 14, 7]);
        let mut pieces = [IoSlice::new(&[]); MAX_PIECES];
        assert_eq!(gather(&mut pieces, &[], packet), 2);
    }
}
