//! TCP_INFO as Linux lays it out.

use core::time::Duration;
use linerate_stack::tcp::{Details, Phase, State};
use linerate_transport::{ConnInfo, LimitCause};

/// What `lr_getsockopt` gives for TCP_INFO: the first 232 bytes of Linux's `struct tcp_info`, in its layout and its
/// units, so that programs may read it with either type. What the stack does not count is 0.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct lr_tcp_info {
    /// The state, by Linux's numbers: 1 ESTABLISHED, 2 SYN-SENT, 3 SYN-RECEIVED, 4 FIN-WAIT-1, 5 FIN-WAIT-2,
    /// 6 TIME-WAIT, 7 CLOSED, 8 CLOSE-WAIT, 9 LAST-ACK, 10 LISTEN, 11 CLOSING.
    pub tcpi_state: u8,
    /// Loss recovery, by Linux's numbers: 0 open, 1 disorder, 2 window reduced for a congestion mark, 3 fast recovery, 4 loss.
    pub tcpi_ca_state: u8,
    /// Timeouts in a row without progress.
    pub tcpi_retransmits: u8,
    /// Window or keep-alive probes in a row without an answer.
    pub tcpi_probes: u8,
    /// How often the retransmission timeout is doubled.
    pub tcpi_backoff: u8,
    /// What was agreed upon: 1 timestamps, 2 SACK, 4 window scaling, 8 ECN.
    pub tcpi_options: u8,
    /// Window scales: the peer's, and ours times 16.
    pub tcpi_wscale: u8,
    /// 0: not counted.
    pub tcpi_flags: u8,
    /// Retransmission timeout in microseconds.
    pub tcpi_rto: u32,
    /// 0: not counted.
    pub tcpi_ato: u32,
    /// Largest segment sent, in bytes of payload.
    pub tcpi_snd_mss: u32,
    /// Full segments of the peer, as far as seen, in bytes of payload.
    pub tcpi_rcv_mss: u32,
    /// Segments of the largest size in flight, rounded up.
    pub tcpi_unacked: u32,
    /// Segments that the peer reported beyond a gap.
    pub tcpi_sacked: u32,
    /// Segments taken to be lost, whether or not they were sent again.
    pub tcpi_lost: u32,
    /// Segments that were sent again and are in the network.
    pub tcpi_retrans: u32,
    /// 0: not counted.
    pub tcpi_fackets: u32,
    /// Milliseconds since data was sent last.
    pub tcpi_last_data_sent: u32,
    /// 0: not counted.
    pub tcpi_last_ack_sent: u32,
    /// Milliseconds since data came, or the connection was established.
    pub tcpi_last_data_recv: u32,
    /// Milliseconds since an acknowledgement came.
    pub tcpi_last_ack_recv: u32,
    /// Path MTU in bytes.
    pub tcpi_pmtu: u32,
    /// 0: not counted.
    pub tcpi_rcv_ssthresh: u32,
    /// Smoothed round-trip time in microseconds.
    pub tcpi_rtt: u32,
    /// Its variation in microseconds.
    pub tcpi_rttvar: u32,
    /// Slow-start threshold in segments; 0x7fffffff before the first loss.
    pub tcpi_snd_ssthresh: u32,
    /// Congestion window in segments.
    pub tcpi_snd_cwnd: u32,
    /// The segment size that we offer, less our timestamps, in bytes.
    pub tcpi_advmss: u32,
    /// By how many segments the path was seen to reorder, at least 3.
    pub tcpi_reordering: u32,
    /// 0: not counted.
    pub tcpi_rcv_rtt: u32,
    /// The window that we offer, in bytes.
    pub tcpi_rcv_space: u32,
    /// Segments retransmitted since the start.
    pub tcpi_total_retrans: u32,
    /// 0: not counted.
    pub tcpi_pacing_rate: u64,
    /// 0: not counted.
    pub tcpi_max_pacing_rate: u64,
    /// Payload bytes that the peer acknowledged.
    pub tcpi_bytes_acked: u64,
    /// Payload bytes received in order.
    pub tcpi_bytes_received: u64,
    /// 0: not counted.
    pub tcpi_segs_out: u32,
    /// Segments received.
    pub tcpi_segs_in: u32,
    /// Payload bytes queued and neither sent nor acknowledged.
    pub tcpi_notsent_bytes: u32,
    /// Least round-trip time of late in microseconds; 0xffffffff without one.
    pub tcpi_min_rtt: u32,
    /// 0: not counted.
    pub tcpi_data_segs_in: u32,
    /// Segments with payload sent.
    pub tcpi_data_segs_out: u32,
    /// 0: not counted.
    pub tcpi_delivery_rate: u64,
    /// Microseconds in which there was something to send, or to be acknowledged.
    pub tcpi_busy_time: u64,
    /// Microseconds in which the peer's window was the limit.
    pub tcpi_rwnd_limited: u64,
    /// Microseconds in which the send buffer was the limit.
    pub tcpi_sndbuf_limited: u64,
    /// 0: not counted.
    pub tcpi_delivered: u32,
    /// 0: not counted.
    pub tcpi_delivered_ce: u32,
    /// Payload bytes sent, retransmissions included.
    pub tcpi_bytes_sent: u64,
    /// Payload bytes retransmitted.
    pub tcpi_bytes_retrans: u64,
    /// Duplicates that the peer reported.
    pub tcpi_dsack_dups: u32,
    /// 1 if the path was seen to reorder.
    pub tcpi_reord_seen: u32,
    /// 0: not counted.
    pub tcpi_rcv_ooopack: u32,
    /// The window that the peer offers, in bytes.
    pub tcpi_snd_wnd: u32,
}

// The layout that Linux promised: the offset of a field in the middle, and of the last one.
const _: () = assert!(core::mem::offset_of!(lr_tcp_info, tcpi_pacing_rate) == 104);
const _: () = assert!(core::mem::offset_of!(lr_tcp_info, tcpi_snd_wnd) == 228);
const _: () = assert!(size_of::<lr_tcp_info>() == 232);

/// Linux's number of a state.
pub(crate) fn state_number(state: Option<State>) -> u8 {
    match state {
        Some(State::Established) => 1,
        Some(State::SynSent) => 2,
        Some(State::SynReceived) => 3,
        Some(State::FinWait1) => 4,
        Some(State::FinWait2) => 5,
        Some(State::TimeWait) => 6,
        Some(State::Closed) | None => 7,
        Some(State::CloseWait) => 8,
        Some(State::LastAck) => 9,
        Some(State::Listen) => 10,
        Some(State::Closing) => 11,
    }
}

fn micros(time: Option<Duration>) -> u32 {
    time.map_or(0, |time| u32::try_from(time.as_micros()).unwrap_or(u32::MAX))
}

fn millis(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

/// Linux's number of a phase of loss recovery.
fn phase_number(phase: Phase) -> u8 {
    match phase {
        Phase::Open => 0,
        Phase::Disorder => 1,
        Phase::Reduced => 2,
        Phase::Recovery => 3,
        Phase::Loss => 4,
    }
}

/// Linux's bits of what was agreed upon.
fn option_bits(details: &Details) -> u8 {
    u8::from(details.timestamps)
        | u8::from(details.sack) << 1
        | u8::from(details.scales.is_some()) << 2
        | u8::from(details.ecn) << 3
}

fn bounded(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The measurements of a connection in C's layout; `unsent` are the bytes queued and not acknowledged.
pub(crate) fn tcp_info(state: Option<State>, info: &ConnInfo, details: &Details, unsent: u64) -> lr_tcp_info {
    let mss = info.send_mss.max(1);
    let limited = |cause: LimitCause| info.limits.ns[cause as usize] / 1_000;
    lr_tcp_info {
        tcpi_state: state_number(state),
        tcpi_ca_state: phase_number(details.phase),
        tcpi_retransmits: details.timeouts.min(255) as u8,
        tcpi_probes: details.probes.min(255) as u8,
        tcpi_backoff: details.backoff.min(255) as u8,
        tcpi_options: option_bits(details),
        tcpi_wscale: details.scales.map_or(0, |(theirs, ours)| theirs | ours << 4),
        tcpi_rto: micros(info.rto),
        tcpi_rcv_mss: details.receive_mss,
        tcpi_sacked: bounded(details.sacked),
        tcpi_lost: bounded(details.lost),
        tcpi_retrans: bounded(details.resent),
        tcpi_last_data_sent: millis(details.since_sent),
        tcpi_last_data_recv: millis(details.since_received),
        tcpi_last_ack_recv: millis(details.since_acknowledged),
        tcpi_advmss: details.advertised_mss,
        tcpi_reordering: bounded(details.reordering),
        tcpi_segs_in: bounded(details.segments_received),
        tcpi_min_rtt: details.least_rtt.map_or(u32::MAX, |rtt| micros(Some(rtt))),
        tcpi_dsack_dups: bounded(details.duplicates_reported),
        tcpi_reord_seen: u32::from(details.reordering_seen),
        tcpi_snd_mss: info.send_mss,
        tcpi_unacked: info.in_flight.div_ceil(mss),
        tcpi_pmtu: info.path_mtu,
        tcpi_rtt: micros(info.rtt),
        tcpi_rttvar: micros(info.rtt_var),
        tcpi_snd_ssthresh: info.slow_start_threshold.map_or(0x7fff_ffff, |bytes| bytes / mss),
        tcpi_snd_cwnd: info.congestion_window / mss,
        tcpi_rcv_space: info.receive_window,
        tcpi_total_retrans: bounded(info.retransmits),
        tcpi_bytes_acked: info.bytes_acked,
        tcpi_bytes_received: info.bytes_received,
        tcpi_notsent_bytes: bounded(unsent.saturating_sub(u64::from(info.in_flight))),
        tcpi_data_segs_out: bounded(info.segments_sent),
        tcpi_busy_time: u64::try_from(details.busy.as_micros()).unwrap_or(u64::MAX),
        tcpi_rwnd_limited: limited(LimitCause::PeerWindow),
        tcpi_sndbuf_limited: limited(LimitCause::SendBuffer),
        tcpi_bytes_sent: info.bytes_acked + u64::from(info.in_flight) + info.bytes_retransmitted,
        tcpi_bytes_retrans: info.bytes_retransmitted,
        tcpi_snd_wnd: info.send_window,
        ..lr_tcp_info::default()
    }
}
