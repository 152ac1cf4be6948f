//! What a connection counts of itself.

use super::super::segment::DropReason;

/// What a counter of a connection at rest can tell at most, where nothing went wrong.
const MOST: u64 = u32::MAX as u64;

/// What happened to a connection, counted from its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Segments received, coalesced ones counted one by one.
    pub segments_received: u64,
    /// Segments, or payloads, dropped by [`DropReason`].
    pub dropped: [u64; DropReason::ALL.len()],
    /// Segments received in IP packets marked "congestion experienced" (RFC 3168).
    pub congestion_experienced: u64,
    /// Acknowledgements that asked for a reduction of the congestion window because of marks (ECE).
    pub ecn_echoes: u64,
    /// Reductions of the congestion window because of marks.
    pub ecn_reductions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Fast recoveries.
    pub fast_recoveries: u64,
    /// Retransmissions that were found lost without a timeout.
    pub lost_retransmissions: u64,
    /// Fast recoveries taken back because nothing had been lost (RFC 3522, RFC 3708, RFC 4015).
    pub spurious_recoveries_undone: u64,
    /// Timeouts taken back because nothing had been lost (RFC 3522, RFC 3708, RFC 5682, RFC 4015).
    pub spurious_timeouts_undone: u64,
    /// Losses that only the reordering timer found (RFC 8985 section 6.2).
    pub reordering_timeouts: u64,
    /// Whether the path was found to reorder (RFC 8985 section 6.2 step 3).
    pub reordering_seen: bool,
    /// How far behind the highest position that had arrived something came that had been sent once, at most, in bytes.
    pub reordering_distance: u64,
    /// Tail loss probes sent (RFC 8985 section 7).
    pub tail_loss_probes: u64,
    /// Losses that a tail loss probe repaired by itself.
    pub tail_losses_repaired: u64,
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
    /// Segments sent with payload.
    pub segments_sent: u64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Payload bytes sent again.
    pub bytes_retransmitted: u64,
    /// Payload bytes acknowledged by the peer.
    pub bytes_acked: u64,
    /// Black holes taken for the reason of repeated timeouts (RFC 4821 section 7.7).
    pub black_holes: u64,
    /// Longer segments sent to learn whether the path carries them (RFC 4821).
    pub size_probes: u64,
    /// Size probes that were lost.
    pub size_probes_lost: u64,
}

impl Counters {
    /// Whether nothing but what is usual was counted, and of that but for [`Counters::bytes_acked`] no more than 32 bits tell. Each counter is looked
    /// at once, as a connection that falls asleep is asked this.
    pub(super) fn is_usual(&self) -> bool {
        let Counters {
            bytes_acked: _,
            dropped,
            reordering_seen,
            segments_received,
            segments_sent,
            acks_sent,
            keep_alive_probes,
            challenge_acks,
            congestion_experienced,
            ecn_echoes,
            ecn_reductions,
            timeouts,
            fast_recoveries,
            lost_retransmissions,
            spurious_recoveries_undone,
            spurious_timeouts_undone,
            reordering_timeouts,
            reordering_distance,
            tail_loss_probes,
            tail_losses_repaired,
            duplicate_acks,
            duplicates_reported,
            challenge_acks_limited,
            window_probes,
            retransmits,
            bytes_retransmitted,
            black_holes,
            size_probes,
            size_probes_lost,
        } = *self;
        let usual = segments_received | segments_sent | acks_sent | keep_alive_probes | challenge_acks;
        let rare = congestion_experienced
            | ecn_echoes
            | ecn_reductions
            | timeouts
            | fast_recoveries
            | lost_retransmissions
            | spurious_recoveries_undone
            | spurious_timeouts_undone
            | reordering_timeouts
            | reordering_distance
            | tail_loss_probes
            | tail_losses_repaired
            | duplicate_acks
            | duplicates_reported
            | challenge_acks_limited
            | window_probes
            | retransmits
            | bytes_retransmitted
            | black_holes
            | size_probes
            | size_probes_lost;
        dropped.into_iter().fold(rare, |all, count| all | count) == 0 && !reordering_seen && usual <= MOST
    }
}
