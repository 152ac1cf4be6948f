//! TCP connections (RFC 9293) as machines without I/O: segments, application calls, device completions and time go in;
//! segments, file requests, readiness and the next deadline come out.
//!
//! A [`Connection`] knows no demultiplexing, no IP and no device. Its owner
//! 1. makes it ([`Connection::active`], or [`Connection::passive`] from a SYN),
//! 2. hands it what happens: [`Connection::handle_segment`], [`Connection::handle_transmitted`],
//!    [`Connection::handle_timeout`], [`Connection::handle_file_data`], the application's calls,
//! 3. after any of these calls [`Connection::poll_transmit`] until it has nothing to send or the device takes no more
//!    (then [`Connection::handle_link_full`]), asks [`Connection::next_file_read`], takes [`Connection::poll_ready`],
//!    and arms one timer for [`Connection::poll_timeout`],
//! 4. drops it when [`Connection::is_finished`] and the application has let go of it.
//!
//! Segments that belong to no connection are answered with [`reset_for`].

mod autotune;
mod budget;
mod config;
mod congestion;
mod connection;
mod delayed_ack;
mod limits;
mod newreno;
mod pages;
mod ranges;
mod reassembly;
mod receiver;
mod rtt;
mod scoreboard;
mod segment;
mod send_queue;
mod sequence;
mod state;
mod timers;

pub use budget::{Charge, MemoryBudget};
pub use config::{Config, Resources};
pub use connection::{Connection, Counters, FileRead};
pub use segment::{DropReason, Outcome, SegmentIn, TxInfo, TxLimits};
pub use state::State;
pub use timers::Timer;

use linerate_wire::tcp::{Builder, Flags};

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

#[cfg(test)]
mod tests;
