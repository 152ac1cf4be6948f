//! What the stack counts of its connections, handed over as it happens.

use super::Connection;

/// Events since the last [`Connection::take_tally`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Challenge ACKs sent (RFC 5961).
    pub challenge_acks: u32,
    /// Challenge ACKs not sent because of their rate limit.
    pub challenge_acks_limited: u32,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Retransmission timeouts taken back because nothing had been lost.
    pub timeouts_undone: u32,
    /// Fast recoveries.
    pub fast_recoveries: u32,
    /// Fast recoveries taken back because nothing had been lost.
    pub fast_recoveries_undone: u32,
    /// Tail loss probes sent (RFC 8985 section 7).
    pub tail_loss_probes: u32,
    /// Timeouts that were taken for a black hole in the path (RFC 4821).
    pub black_holes: u32,
    /// Longer segments sent to learn whether the path carries them (RFC 4821).
    pub size_probes: u32,
    /// Size probes that were lost.
    pub size_probes_lost: u32,
}

impl Connection {
    /// Takes the events since the last call; `None` when there were none.
    pub fn take_tally(&mut self) -> Option<Tally> {
        self.accounts.take_tally()
    }
}
