//! Handing packets to the kernel: one gather list each, and what its answer means for the packet.

use crate::stats::DeviceStats;
use linerate_nic::{DeviceError, MAX_CHUNKS, Segmentation, TxPacket, TxQueue, TxToken};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io::IoSlice;

/// Most completions that wait to be polled. Transmitting stops when so many do.
const MAX_COMPLETIONS: usize = 4096;

/// Pieces of one packet: virtio-net header, header block, payload.
pub(crate) const MAX_PIECES: usize = 2 + MAX_CHUNKS;

/// What the kernel's answer means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    /// It was taken.
    Sent,
    /// It is lost, and the reason has been counted.
    Lost,
    /// It stays in the queue: there is no room now.
    Full,
}

/// Tokens of packets that have left.
pub(crate) struct Completions {
    tokens: VecDeque<TxToken>,
}

impl Completions {
    pub(crate) fn new() -> Self {
        Completions { tokens: VecDeque::with_capacity(MAX_COMPLETIONS) }
    }

    pub(crate) fn pop(&mut self) -> Option<TxToken> {
        self.tokens.pop_front()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.tokens.len() >= MAX_COMPLETIONS
    }

    /// Takes the front packet off `queue` and notes that it has left.
    pub(crate) fn retire(&mut self, queue: &mut TxQueue) {
        if let Some(packet) = queue.front() {
            let token = packet.meta.token;
            if token != TxToken(0) {
                self.tokens.push_back(token);
            }
        }
        queue.pop();
    }
}

/// Gives the packets of `queue` to `send`, oldest first, until the queue is empty or there is no room; returns how many
/// left it. `send` writes one packet.
pub(crate) fn drain(
    queue: &mut TxQueue,
    completions: &mut Completions,
    stats: &mut DeviceStats,
    mut send: impl FnMut(&TxPacket) -> Result<usize, Errno>,
) -> Result<usize, DeviceError> {
    let mut taken = 0;
    while let Some(packet) = queue.front() {
        if completions.is_full() {
            break;
        }
        match judge(send(packet), packet, stats) {
            Ok(Fate::Sent | Fate::Lost) => {
                completions.retire(queue);
                taken += 1;
            }
            Ok(Fate::Full) => break,
            // The caller hears of the packets that left first, and of the failure at the next call.
            Err(_) if taken > 0 => break,
            Err(error) => return Err(error),
        }
    }
    Ok(taken)
}

/// Counts what happened to `packet`.
fn judge(
    answer: Result<usize, Errno>,
    packet: &TxPacket,
    stats: &mut DeviceStats,
) -> Result<Fate, DeviceError> {
    match answer {
        Ok(_) => {
            stats.tx_frames += 1;
            stats.tx_bytes += packet.len() as u64;
            stats.tx_super_frames += u64::from(packet.meta.segmentation != Segmentation::None);
            return Ok(Fate::Sent);
        }
        // An AF_PACKET socket says ENOBUFS when the interface's queue is full. An interrupted call is made again.
        Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR) => {
            stats.tx_full += 1;
            return Ok(Fate::Full);
        }
        // A TAP says EIO, an AF_PACKET socket ENETDOWN, while the interface is down.
        Err(Errno::IO | Errno::NETDOWN) => stats.tx_link_down += 1,
        Err(Errno::NOMEM) => stats.tx_no_memory += 1,
        Err(Errno::INVAL | Errno::MSGSIZE | Errno::FAULT) => stats.tx_refused += 1,
        Err(error) => return Err(device_error(error)),
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

/// The gather list of a packet behind `virtio` bytes (none if that is empty); returns how many pieces there are.
pub(crate) fn gather<'a>(
    pieces: &mut [IoSlice<'a>; MAX_PIECES],
    virtio: &'a [u8],
    packet: &'a TxPacket,
) -> usize {
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
            packet.push_chunk(Chunk::Static(b"payload")).unwrap();
            packet.meta.token = TxToken(token);
            queue.commit();
        }
        queue
    }

    /// Three packets, the second of which gets `answer`: what is taken, left and completed, and what is counted.
    fn check(
        answer: Result<usize, Errno>,
        taken: Result<usize, DeviceError>,
        tokens: &[u64],
        counted: fn(&DeviceStats) -> u64,
    ) {
        let (mut queue, mut completions, mut stats) =
            (queue_of(3), Completions::new(), DeviceStats::default());
        let mut calls = 0;
        let got = drain(&mut queue, &mut completions, &mut stats, |_| {
            calls += 1;
            if calls == 2 { answer } else { Ok(21) }
        });
        assert_eq!(got, taken, "{answer:?}");
        let left = std::iter::from_fn(|| completions.pop()).map(|token| token.0).collect::<Vec<_>>();
        assert_eq!(left, tokens, "{answer:?}");
        assert_eq!(queue.len(), 3 - tokens.len());
        assert_eq!(counted(&stats), 1, "{answer:?}");
        let sent = if answer.is_err() && tokens.len() == 3 { 2 } else { tokens.len() as u64 };
        assert_eq!((stats.tx_frames, stats.tx_bytes), (sent, sent * 21));
    }

    #[test]
    fn each_answer_has_its_meaning() {
        check(Err(Errno::AGAIN), Ok(1), &[1], |s| s.tx_full);
        check(Err(Errno::NOBUFS), Ok(1), &[1], |s| s.tx_full);
        check(Err(Errno::IO), Ok(3), &[1, 2, 3], |s| s.tx_link_down);
        check(Err(Errno::NETDOWN), Ok(3), &[1, 2, 3], |s| s.tx_link_down);
        check(Err(Errno::NOMEM), Ok(3), &[1, 2, 3], |s| s.tx_no_memory);
        check(Err(Errno::INVAL), Ok(3), &[1, 2, 3], |s| s.tx_refused);
        check(Err(Errno::MSGSIZE), Ok(3), &[1, 2, 3], |s| s.tx_refused);
        check(Err(Errno::BADFD), Ok(1), &[1], |s| s.tx_frames);
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
            sent += drain(&mut queue, &mut completions, &mut DeviceStats::default(), |_| Ok(21)).unwrap();
        }
        assert_eq!(sent, MAX_COMPLETIONS);
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
