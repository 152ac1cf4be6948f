//! TCP connections (RFC 9293) as machines without I/O: segments, application calls, device completions and time go in;
//! segments, file requests, readiness and the next deadline come out.
//!
//! A [`Connection`] knows no demultiplexing, no IP and no device. Its owner
//! 1. makes it ([`Connection::active`], and [`Connection::answer`] where a SYN came), where it stays: it is large,
//! 2. hands it what happens: [`Connection::handle_segment`], [`Connection::handle_transmitted`],
//!    [`Connection::handle_timeout`], [`Connection::handle_file_data`], the application's calls,
//! 3. after any of these calls [`Connection::poll_transmit`] until it has nothing to send or the device takes no more
//!    (then [`Connection::handle_link_full`]), asks [`Connection::next_file_read`], takes [`Connection::poll_ready`],
//!    and arms one timer for [`Connection::poll_timeout`],
//! 4. drops it when [`Connection::is_finished`] and the application has let go of it.
//!
//! Segments that belong to no connection are answered with [`reset_for`].
//!
//! # Parts
//!
//! A connection is made of parts that own their fields (`connection/`). What needs several of them is a function of the
//! connection, in the file that is named after it.
//!
//! | part | has |
//! |---|---|
//! | `Life` | the state, how it ends, what the application was not told |
//! | `Handshake` | what was agreed upon, and the SYN |
//! | `Path` | the size of segments, and the search for it |
//! | `Sender` | SND.UNA to SND.NXT, the peer's window, the send queue, congestion control, round-trip times |
//! | `InDevice` | packets handed over and not reported |
//! | `LossRecovery` | the scoreboard, RACK, recovery and its undoing, tail loss probes |
//! | `Receiving` | the receive queue, and the acknowledgements that are owed |
//! | `Accounts` | counters, and where the time went |
//! | `Dormant` | all that is left of these while nothing happens |
//!
//! The plan that says what to send next also says why nothing is to be sent: what limits a connection is decided there, and
//! nowhere else (`connection/blocked.rs`).
//!
//! # Memory
//!
//! Everything that a connection holds is charged to the [`MemoryBudget`] of its [`Resources`]. The send queue holds owned
//! pieces of bytes, not segments, and is the retransmission queue too; file ranges in it are asked for piece by piece, so
//! that at most the size of the send buffer is in memory. Received payload is kept in the buffers that it came in;
//! where it fills less than a quarter of its buffer it is copied into pages of [`Resources::pages`] (copy-break), so a
//! peer that sends small segments cannot hold large buffers. Out-of-order data is the first to be refused when memory is
//! tight, new windows the second, in-order data the last.
//!
//! # Departures from the RFCs
//!
//! | rule | what we do | why |
//! |---|---|---|
//! | RFC 6298 section 2.4: RTO of at least 1 s | SRTT and at least 200 ms ([`Config::min_rto`]): it takes the place of the clock's granularity in section 2.3 | delayed ACKs take at most 200 ms today, beside the round trip |
//! | RFC 9406 section 4.3, RFC 3465 section 2.2: one ACK opens the window by L = 8 segments (2 without HyStart++) | 8 segments or 64 KiB, whichever is more; no limit when paced; 1 segment after a timeout | coalesced ACKs cover 64 KiB: otherwise such a peer's slow start takes four times as long |
//! | RFC 9293 section 3.10.7.2 and 3.10.7.3: a SYN with FIN opens | it is dropped | only scanners send it |
//! | RFC 9293 section 3.10.2: SEND before ESTABLISHED is queued | refused, but for a TCP Fast Open; WRITABLE tells when | nothing is held for connections that may never be |
//! | RFC 9293 section 3.10.4: CLOSE in SYN-RECEIVED sends FIN at once | FIN waits for ESTABLISHED | many peers drop a FIN that comes with their SYN unacknowledged |
//! | RFC 9293 section 3.10.7.4: the SYN again in SYN-RECEIVED gets an ACK | a SYN-ACK again | ours was lost, else it would not come again |
//! | RFC 9293 section 3.10.7.4: a SYN-ACK below the window is not acceptable | in SYN-RECEIVED its ACK counts | simultaneous open as in figure 8 of section 3.5 |
//! | RFC 9293 section 3.10.7.4: a SYN in the window ends SYN-RECEIVED | a challenge ACK | a forged SYN must not; RFC 5961 section 4.2 says so for the other states |
//! | RFC 9293 section 3.10.7.4: data beyond the peer's FIN is ignored | acknowledged, not taken | shows a confused peer where we stand |
//! | RFC 9293 section 3.10.5: ABORT in CLOSING and LAST-ACK is silent | a RST | the peer learns at once that data was given up |
//! | RFC 9293 section 3.10.7.4: a RST ends TIME-WAIT | every RST is ignored | RFC 1337; a challenge ACK (RFC 5961 section 3.2) would ask for one that has no effect either |
//! | RFC 9293 section 3.8.4: keep-alive is off, its interval two hours | on, after 60 s ([`SocketOptions::keep_alive`](linerate_transport::SocketOptions::keep_alive)) | a client that vanished must not keep its memory |
//! | RFC 9293 section 3.8.3: give up after 100 s, a SYN after 3 min | after 60 s ([`SocketOptions::user_timeout`](linerate_transport::SocketOptions::user_timeout)) | a client that stalls must not keep its memory |
//! | RFC 9293 section 3.8.6.1: a closed window is probed for ever | until the user timeout | a client that stalls must not keep its memory |
//! | RFC 9293 section 3.8.6: the window does not shrink | the field may name up to 2^scale - 1 bytes less than before | RFC 7323 section 2.4; what was promised is still taken |
//! | RFC 9293 section 3.10.7.2 and 3.10.7.3: text on a SYN is kept | only with a TCP Fast Open cookie; otherwise it is not acknowledged, so it comes again | nothing is held for half-open connections |
//! | RFC 9293 section 3.10.7.2: an ACK to a listener is reset | dropped while SYN cookies are out (three minutes after the last), unless it fits one | it may be a client's second segment, whose first is lost |
//! | RFC 7323 section 5.4: the timestamp clock | the SYN-ACK of a cookie is up to 64 ms behind it | its low bits carry window scale, SACK and ECN |
//! | RFC 6298 section 5.7, RFC 9293 section 3.8.3: a SYN-ACK as often as a SYN | three times again, 15 s in all ([`Config::syn_ack_retries`]) | whoever is there repeats its SYN |
//! | RFC 8201 section 4, RFC 1191 section 3: a "too big" message is obeyed at once | one that contradicts a size that arrived waits for a timeout; one below 552 (IPv6: 1,280) bytes, or of a packet that fits it, is ignored | RFC 5927 section 7: anybody may have sent it |
//! | RFC 4821 section 7.3: the size is searched as far as the interface | with single longer segments, only upwards after it was lowered | nothing is risked on a path that works |
//! | RFC 9293 section 3.10.4, RFC 1122 section 4.2.2.13: CLOSE with unread data resets, and data after it too | the data is discarded, FIN goes, and a RST once all is delivered and more than a window has come since; the C interface resets at once ([`Connection::close_strictly`]) | a lingering close lets a server's last reply arrive, which a RST could destroy |
//! | RFC 9293 section 3.10.7.4: what is beyond the window is not taken | the ACK field of an empty segment at RCV.NXT + RCV.WND is, beside the answer | a peer that filled our window, of which something was lost, acknowledges from there |
//! | RFC 3522, RFC 3708: a recovery that was not necessary is taken back | not after 10 s in which nothing came (then a connection may fall asleep) | what would tell of it was sent long before |
//! | RFC 9293 section 3.8.5: urgent data | delivered in line, pointer ignored | RFC 6093 |

mod autotune;
mod budget;
mod config;
mod congestion;
mod connection;
mod cubic;
mod delayed_ack;
mod departures;
mod details;
mod ecn;
mod limits;
mod newreno;
mod ordered;
mod pacing;
mod pages;
mod path_size;
mod prr;
mod rack;
mod ranges;
mod reassembly;
mod receiver;
mod rtt;
mod scoreboard;
mod segment;
mod send_queue;
mod sequence;
mod slow_start;
mod spare;
mod state;
mod timers;

pub use autotune::LEAST_BUFFER;
pub use budget::{Charge, MemoryBudget};
pub(crate) use config::RecentConfigs;
pub use config::{Config, Resources};
pub(crate) use connection::Dormant;
pub use connection::{Connection, Counters, FileRead, MIN_MSS, Tally};
pub use details::{Details, Phase};
pub(crate) use segment::Head;
pub use segment::{DropReason, Outcome, SegmentIn, TxInfo, TxLimits};
pub(crate) use spare::Queues;
pub use state::State;
pub use timers::Timer;

use core::net::IpAddr;
use linerate_transport::SocketOptions;
use linerate_wire::tcp::{Builder, Flags};
use linerate_wire::units::Instant;

/// Whether what is only a shorter way to the same is left out: for tests that compare.
#[inline]
fn shortcuts_are_off() -> bool {
    #[cfg(test)]
    return tests::SHORTCUTS_OFF.get();
    #[cfg(not(test))]
    false
}

/// Whether acknowledgements in a row are taken one by one: for tests that compare all else.
#[inline]
fn joining_is_off() -> bool {
    #[cfg(test)]
    return tests::JOINING_OFF.get();
    #[cfg(not(test))]
    false
}

/// Runs `work` without joined acknowledgements, and without the shortcuts if `is_long`.
#[cfg(test)]
pub(crate) fn compared<R>(is_long: bool, work: impl FnOnce() -> R) -> R {
    tests::JOINING_OFF.set(true);
    tests::SHORTCUTS_OFF.set(is_long);
    let result = work();
    tests::JOINING_OFF.set(false);
    tests::SHORTCUTS_OFF.set(false);
    result
}

/// An acknowledgement of all that was in flight came with the next data, and was taken the short way.
#[cfg(test)]
pub(crate) fn count_exchange() {
    tests::EXCHANGES.set(tests::EXCHANGES.get() + 1);
}

/// How many since the last call.
#[cfg(test)]
pub(crate) fn exchanges() -> u64 {
    tests::EXCHANGES.take()
}

/// The reset that answers a segment for which there is no connection (RFC 9293 section 3.10.7.1); `None` where none is
/// due: a RST is never answered. Ports are the received segment's, exchanged; the caller passes them as received.
pub fn reset_for(segment: &SegmentIn, source_port: u16, destination_port: u16) -> Option<Builder> {
    if segment.flags.contains(Flags::RST) {
        return None;
    }
    let mut reset = Builder {
        source_port: destination_port,
        destination_port: source_port,
        flags: Flags::RST,
        ..Builder::default()
    };
    if segment.flags.contains(Flags::ACK) {
        reset.sequence = segment.ack;
    } else {
        reset.flags |= Flags::ACK;
        reset.acknowledgement = segment.seq + segment.sequence_len() as u32;
    }
    Some(reset)
}

/// Window field and window scale of a SYN-ACK for a socket with these settings, before there is a connection. The same
/// whatever is in use, so that it is known when the connection begins.
pub(crate) fn initial_window(socket: &SocketOptions, budget: &MemoryBudget) -> (u16, u8) {
    let tuner = autotune::ReceiveTuner::new(Instant::ZERO, socket.receive_buffer);
    let window = tuner.limit().min(receiver::first_window_of(budget));
    (u16::try_from(window).unwrap_or(u16::MAX), connection::scale_for(tuner.max()))
}

/// Segment size of a peer that names none (RFC 9293 section 3.7.1; IPv6 section 8.3 of RFC 8200).
pub(crate) fn default_mss(peer: IpAddr) -> u16 {
    if peer.is_ipv4() { 536 } else { 1_220 }
}

#[cfg(test)]
mod tests;
