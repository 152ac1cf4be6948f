//! The receiving half: what came, and the acknowledgements that are owed for it.

use super::super::delayed_ack::{AckPolicy, Habits};
use super::super::receiver::Receiver;
use core::time::Duration;
use linerate_wire::units::Instant;

/// Challenge ACKs are limited in each of these (RFC 5961 section 7).
const SECOND: Duration = Duration::from_secs(1);

/// Limits the rate of challenge ACKs (RFC 5961 section 7).
#[derive(Clone, Copy, Debug, Default)]
struct ChallengeLimit {
    second: Instant,
    sent: u8,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Receiving {
    pub(super) receiver: Receiver,
    pub(super) ack: AckPolicy,
    pub(super) last_ack_sent: u64,
    challenges: ChallengeLimit,
    /// The last echo that a full segment of the peer carried.
    pub(super) last_echo: u32,
}

impl Receiving {
    /// Nothing came; the first `quick_acks` acknowledgements will not be delayed.
    pub(super) fn new(receiver: Receiver, quick_acks: u8) -> Receiving {
        Receiving {
            receiver,
            ack: AckPolicy::new(quick_acks),
            last_ack_sent: 0,
            challenges: ChallengeLimit::default(),
            last_echo: 0,
        }
    }

    /// The same after a pause, by what outlasted it.
    pub(super) fn after(receiver: Receiver, habits: Habits, last_echo: u32) -> Receiving {
        Receiving {
            ack: AckPolicy::with(habits),
            last_ack_sent: receiver.next(),
            challenges: ChallengeLimit::default(),
            last_echo,
            receiver,
        }
    }

    /// An ACK that lets an honest peer show where it stands (RFC 5961), `most` of them in a second. False where that limits.
    pub(super) fn challenge(&mut self, now: Instant, most: u8) -> bool {
        if now - self.challenges.second >= SECOND {
            self.challenges = ChallengeLimit { second: now, sent: 0 };
        }
        let may = self.challenges.sent < most;
        if may {
            self.challenges.sent += 1;
            self.ack.now();
        }
        may
    }

    /// Whether everything that came is acknowledged, and challenges are not limited any more.
    pub(super) fn is_quiet(&self, now: Instant) -> bool {
        let is_limited = self.challenges.sent > 0 && now - self.challenges.second < SECOND;
        !is_limited && self.last_ack_sent == self.receiver.next()
    }
}
