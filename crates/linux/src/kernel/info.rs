//! Measurements of a connection, as the kernel's `struct tcp_info` has them.

use crate::sys::socket::{TCP_INFO_LEN, tcp_info};
use linerate_transport::{ConnInfo, LimitCause, LimitTimes};
use rustix::fd::BorrowedFd;
use std::net::SocketAddr;
use std::time::Duration;

/// `struct tcp_info` by the offsets of its fields in `linux/tcp.h`; a field that the kernel does not have is zero.
struct TcpInfo {
    bytes: [u8; TCP_INFO_LEN],
    len: usize,
}

impl TcpInfo {
    fn of(fd: BorrowedFd<'_>) -> TcpInfo {
        let mut bytes = [0; TCP_INFO_LEN];
        let len = tcp_info(fd, &mut bytes).unwrap_or(0);
        TcpInfo { bytes, len }
    }

    fn u8(&self, at: usize) -> u8 {
        self.field::<1>(at)[0]
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.field(at))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.field(at))
    }

    fn field<const N: usize>(&self, at: usize) -> [u8; N] {
        let known = self.bytes.get(..self.len).unwrap_or(&[]);
        known.get(at..at + N).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; N])
    }
}

const STATE: usize = 0;
const RETRANSMITS_NOW: usize = 2;
const RTO_US: usize = 8;
const SEND_MSS: usize = 16;
const UNACKED: usize = 24;
const SACKED: usize = 28;
const LOST: usize = 32;
const RETRANSMITTED_NOW: usize = 36;
const PATH_MTU: usize = 60;
const RECEIVE_SSTHRESH: usize = 64;
const RTT_US: usize = 68;
const RTT_VAR_US: usize = 72;
const SEND_SSTHRESH: usize = 76;
const SEND_CWND: usize = 80;
const TOTAL_RETRANSMITS: usize = 100;
const BYTES_ACKED: usize = 120;
const BYTES_RECEIVED: usize = 128;
const NOT_SENT_BYTES: usize = 144;
const DATA_SEGMENTS_OUT: usize = 156;
const BUSY_US: usize = 168;
const PEER_WINDOW_LIMITED_US: usize = 176;
const SEND_BUFFER_LIMITED_US: usize = 184;
const BYTES_RETRANSMITTED: usize = 208;
const DUPLICATES_REPORTED: usize = 216;
const REORDERINGS_SEEN: usize = 220;
const SEND_WINDOW: usize = 228;
const RECEIVE_WINDOW: usize = 232;

/// The kernel's "no slow-start threshold yet".
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// Whether a connection that timed out did so for want of keep-alive answers: nothing of ours was unacknowledged.
pub(crate) fn timed_out_idle(fd: BorrowedFd<'_>) -> bool {
    let info = TcpInfo::of(fd);
    info.u8(RETRANSMITS_NOW) == 0 && info.u32(NOT_SENT_BYTES) == 0
}

/// The state of a connection by the names of RFC 9293, in the order of `linux/tcp_states.h`.
pub(crate) fn state_name(fd: BorrowedFd<'_>) -> &'static str {
    match TcpInfo::of(fd).u8(STATE) {
        1 => "established",
        2 => "syn-sent",
        3 | 12 => "syn-received",
        4 => "fin-wait-1",
        5 => "fin-wait-2",
        6 => "time-wait",
        8 => "close-wait",
        9 => "last-ack",
        11 => "closing",
        _ => "closed",
    }
}

/// The measurements of a connection that was established `age_ns` ago.
pub(crate) fn conn_info(fd: BorrowedFd<'_>, local: SocketAddr, remote: SocketAddr, age_ns: u64) -> ConnInfo {
    from_tcp_info(&TcpInfo::of(fd), local, remote, age_ns)
}

fn from_tcp_info(info: &TcpInfo, local: SocketAddr, remote: SocketAddr, age_ns: u64) -> ConnInfo {
    let mss = info.u32(SEND_MSS);
    let some_us = |at| {
        let us = info.u32(at);
        (us > 0).then(|| Duration::from_micros(u64::from(us)))
    };
    let in_flight = (u64::from(info.u32(UNACKED)) + u64::from(info.u32(RETRANSMITTED_NOW)))
        .saturating_sub(u64::from(info.u32(SACKED)) + u64::from(info.u32(LOST)))
        .saturating_mul(u64::from(mss));
    let ssthresh = info.u32(SEND_SSTHRESH);
    let offered = match info.u32(RECEIVE_WINDOW) {
        // Kernels before 6.2 do not tell; the threshold is what the window grows to.
        0 => info.u32(RECEIVE_SSTHRESH),
        window => window,
    };
    ConnInfo {
        local,
        remote,
        rtt: some_us(RTT_US),
        rtt_var: some_us(RTT_VAR_US),
        rto: some_us(RTO_US),
        send_mss: mss,
        congestion_window: info.u32(SEND_CWND).saturating_mul(mss),
        slow_start_threshold: (ssthresh < INFINITE_SSTHRESH).then(|| ssthresh.saturating_mul(mss)),
        send_window: info.u32(SEND_WINDOW),
        receive_window: offered,
        in_flight: u32::try_from(in_flight).unwrap_or(u32::MAX),
        bytes_acked: info.u64(BYTES_ACKED),
        bytes_received: info.u64(BYTES_RECEIVED),
        retransmits: u64::from(info.u32(TOTAL_RETRANSMITS)),
        bytes_retransmitted: info.u64(BYTES_RETRANSMITTED),
        duplicates_reported: u64::from(info.u32(DUPLICATES_REPORTED)),
        reordering_seen: info.u32(REORDERINGS_SEEN) > 0,
        segments_sent: u64::from(info.u32(DATA_SEGMENTS_OUT)),
        path_mtu: info.u32(PATH_MTU),
        limits: limits(info, age_ns),
    }
}

/// The kernel's chronographs: while busy sending, it is limited by the peer's window, by the send buffer, or else by
/// the congestion window; while not busy, by the application.
fn limits(info: &TcpInfo, age_ns: u64) -> LimitTimes {
    let ns = |at| info.u64(at).saturating_mul(1_000);
    let (busy, window, buffer) = (ns(BUSY_US), ns(PEER_WINDOW_LIMITED_US), ns(SEND_BUFFER_LIMITED_US));
    let mut limits = LimitTimes::default();
    limits.ns[LimitCause::Application as usize] = age_ns.saturating_sub(busy);
    limits.ns[LimitCause::PeerWindow as usize] = window;
    limits.ns[LimitCause::SendBuffer as usize] = buffer;
    limits.ns[LimitCause::Congestion as usize] = busy.saturating_sub(window).saturating_sub(buffer);
    limits
}

/// Measurements of a connection of which only the addresses are known.
pub(crate) fn unknown(local: SocketAddr, remote: SocketAddr) -> ConnInfo {
    let nothing = TcpInfo { bytes: [0; TCP_INFO_LEN], len: 0 };
    from_tcp_info(&nothing, local, remote, 0)
}
