//! One direction of a cable: what it can be told to do to segments.

use crate::loss::Loss;
use crate::queue::Queue;
use linerate_wire::units::Instant;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// How the delay varies from segment to segment.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Jitter {
    /// Not at all.
    #[default]
    None,
    /// From zero to this much more, all values alike.
    Uniform(Duration),
    /// About normally distributed with this standard deviation around the delay; never below half the delay.
    Normal(Duration),
}

/// What happens to IP packets that are longer than the path can carry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TooLong {
    /// They vanish: a black hole.
    #[default]
    Drop,
    /// They vanish, and a router with these addresses tells the sender: "fragmentation needed" (RFC 1191) for IPv4 packets
    /// that must not be fragmented, "packet too big" (RFC 8201) for IPv6. IPv4 packets that may be fragmented vanish in
    /// silence.
    Tell {
        /// The router's IPv4 address.
        v4: Ipv4Addr,
        /// The router's IPv6 address.
        v6: Ipv6Addr,
    },
}

/// A direction of a cable. [`Path::default`] changes nothing: no limit of rate, no delay, no faults.
///
/// A segment meets, in this order: the MTU, the queue and the rate (only if there is a rate), loss, corruption,
/// duplication, delay with jitter, and reordering. So what is lost has used the rate before.
/// Probabilities go from 0 to 1 and are per segment on the wire: a super-segment is many.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Path {
    /// Bits per second on the wire, where a frame takes 24 bytes more than its own (preamble, frame check sequence, gap)
    /// and at least 84. `None`: no limit, and no queue.
    pub rate_bps: Option<u64>,
    /// The queue in front of the rate.
    pub queue: Queue,
    /// Time on the way.
    pub delay: Duration,
    /// How that varies.
    pub jitter: Jitter,
    /// Whether segments may overtake each other by jitter. If not, one that would waits for the one before.
    pub jitter_reorders: bool,
    /// What is lost.
    pub loss: Loss,
    /// Probability that a segment is held back by `reorder_delay`, so that later ones overtake it.
    pub reorder: f64,
    /// How long it is held back.
    pub reorder_delay: Duration,
    /// Probability that it arrives twice.
    pub duplicate: f64,
    /// Probability that one of its bits is flipped.
    pub corrupt: f64,
    /// Largest IP packet in bytes; `None`: no limit.
    pub mtu: Option<usize>,
    /// What happens to longer ones.
    pub too_long: TooLong,
}

impl Path {
    /// A path with a delay alone.
    pub fn with_delay(delay: Duration) -> Path {
        Path { delay, ..Path::default() }
    }

    /// Whether every segment passes at once or after a fixed delay, whatever else passes.
    pub(crate) fn is_plain(&self) -> bool {
        self.rate_bps.is_none()
            && self.jitter == Jitter::None
            && self.loss == Loss::None
            && self.reorder <= 0.0
            && self.duplicate <= 0.0
            && self.corrupt <= 0.0
            && self.mtu.is_none()
    }
}

/// A change of a path while the world runs.
#[derive(Clone, PartialEq, Debug)]
pub enum Change {
    /// A new rate, from the next segment on that is begun.
    Rate(Option<u64>),
    /// A new delay, for segments that have not left the queue.
    Delay(Duration),
    /// A new model of loss, which begins anew.
    Loss(Loss),
    /// A new MTU.
    Mtu(Option<usize>),
    /// New probabilities of reordering (with its delay), duplication and corruption.
    Faults {
        /// Probability of being held back.
        reorder: f64,
        /// How long.
        reorder_delay: Duration,
        /// Probability of arriving twice.
        duplicate: f64,
        /// Probability of a flipped bit.
        corrupt: f64,
    },
    /// Nothing passes; a queue fills up, and without a rate segments wait without bound.
    Pause,
    /// The end of a pause.
    Resume,
    /// All of it at once. A model of loss that stays the same goes on where it stands.
    All(Box<Path>),
}

/// What a path has counted. All are segments on the wire unless said otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PathStats {
    /// Came to the path.
    pub offered: u64,
    /// Bytes of their frames.
    pub offered_bytes: u64,
    /// Left it at its other end, duplicates included.
    pub delivered: u64,
    /// Bytes of their frames.
    pub delivered_bytes: u64,
    /// Lost by the model of loss.
    pub lost: u64,
    /// Bytes of their frames.
    pub lost_bytes: u64,
    /// Dropped by a script.
    pub scripted: u64,
    /// Dropped because the queue was full.
    pub queue_full: u64,
    /// Dropped by CoDel.
    pub codel_dropped: u64,
    /// Longer than the MTU.
    pub too_long: u64,
    /// Marked with congestion experienced.
    pub marked: u64,
    /// Damaged.
    pub corrupted: u64,
    /// Sent twice.
    pub duplicated: u64,
    /// Held back so that others overtake.
    pub reordered: u64,
    /// Runs of segments lost one after the other by the model of loss: as many as `lost` where each is lost alone.
    pub lost_runs: u64,
    /// Time that segments waited in the queue until they were begun, in ns, of all together.
    pub queue_wait_ns: u64,
    /// Time that segments were on the way for longer than the delay says, by jitter or being held back, in ns, of all
    /// together.
    pub late_ns: u64,
    /// Most segments that ever waited in the queue.
    pub queue_max: usize,
    /// Most bytes that ever waited in the queue.
    pub queue_max_bytes: usize,
}

/// A change and its time.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Scheduled {
    pub(crate) at: Instant,
    pub(crate) change: Change,
}
