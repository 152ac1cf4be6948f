//! Where we do otherwise than the RFCs on purpose. `tcp/mod.rs` lists the same for readers.

use super::events::Event;
use super::starts::Start;
use alloc::format;
use alloc::string::String;

/// A departure, and the rows that show it.
pub struct Departure {
    pub rule: &'static str,
    pub ours: &'static str,
    pub reason: &'static str,
    pub concerns: fn(Start, Event) -> bool,
}

impl Departure {
    /// Its row in a table, without the outer bars.
    pub fn words(&self) -> String {
        format!("{} | {} | {}", self.rule, self.ours, self.reason)
    }
}

pub static DEPARTURES: &[Departure] = &[
    Departure {
        rule: "RFC 9293 section 3.10.7.2 and 3.10.7.3: a SYN with FIN opens",
        ours: "it is dropped",
        reason: "only scanners send it",
        concerns: |start, event| event == Event::SynFin && matches!(start, Start::Listen | Start::SynSent),
    },
    Departure {
        rule: "RFC 9293 section 3.10.2: SEND before ESTABLISHED is queued",
        ours: "refused, but for a TCP Fast Open; WRITABLE tells when",
        reason: "nothing is held for connections that may never be",
        concerns: |start, event| {
            event == Event::Send && matches!(start, Start::SynSent | Start::SynReceivedActive)
        },
    },
    Departure {
        rule: "RFC 9293 section 3.10.4: CLOSE in SYN-RECEIVED sends FIN at once",
        ours: "FIN waits for ESTABLISHED",
        reason: "many peers drop a FIN that comes with their SYN unacknowledged",
        concerns: |start, event| {
            matches!(event, Event::Shutdown | Event::Close) && start == Start::SynReceivedActive
        },
    },
    Departure {
        rule: "RFC 9293 section 3.10.7.4: the SYN again in SYN-RECEIVED gets an ACK",
        ours: "a SYN-ACK again",
        reason: "ours was lost, else it would not come again",
        concerns: |start, event| event == Event::SynOld && start.is_syn_received(),
    },
    Departure {
        rule: "RFC 9293 section 3.10.7.4: a SYN-ACK below the window is not acceptable",
        ours: "in SYN-RECEIVED its ACK counts",
        reason: "simultaneous open as in figure 8 of section 3.5",
        concerns: |start, event| event == Event::SynAckOld && start.is_syn_received(),
    },
    Departure {
        rule: "RFC 9293 section 3.10.7.4: a SYN in the window ends SYN-RECEIVED",
        ours: "a challenge ACK",
        reason: "a forged SYN must not; RFC 5961 section 4.2 says so for the other states",
        concerns: |start, event| {
            let syn = matches!(
                event,
                Event::Syn | Event::SynData | Event::SynFin | Event::SynAck | Event::SynAckFuture
            );
            syn && start == Start::SynReceivedPassive
        },
    },
    Departure {
        rule: "RFC 9293 section 3.10.7.4: data beyond the peer's FIN is ignored",
        ours: "acknowledged, not taken",
        reason: "shows a confused peer where we stand",
        concerns: |start, event| {
            let data = matches!(
                event,
                Event::Data | Event::DataAckAll | Event::DataGap | Event::DataOverlap | Event::DataUrgent
            );
            let is_over = start == Start::LastAck && event == Event::DataAckAll;
            data && start.peer_finished() && !is_over
        },
    },
    Departure {
        rule: "RFC 9293 section 3.10.5: ABORT in CLOSING and LAST-ACK is silent",
        ours: "a RST",
        reason: "the peer learns at once that data was given up",
        concerns: |start, event| event == Event::Abort && matches!(start, Start::Closing | Start::LastAck),
    },
    Departure {
        rule: "RFC 9293 section 3.10.7.4: a RST ends TIME-WAIT",
        ours: "every RST is ignored",
        reason: "RFC 1337; a challenge ACK (RFC 5961 section 3.2) would ask for one that has no effect either",
        concerns: |start, event| {
            let reset = matches!(
                event,
                Event::Reset | Event::ResetInside | Event::ResetAck | Event::ResetAckFuture | Event::SynRst
            );
            reset && start == Start::TimeWait
        },
    },
    Departure {
        rule: "RFC 9293 section 3.8.4: keep-alive is off, its interval two hours",
        ours: "on, after 60 s ([`SocketOptions::keep_alive`](linerate_transport::SocketOptions::keep_alive))",
        reason: "a client that vanished must not keep its memory",
        concerns: |start, event| {
            let quiet = matches!(start, Start::Established | Start::CloseWait | Start::FinWait2);
            let silence = matches!(event, Event::Silence | Event::TwoMsl);
            quiet && (silence || event == Event::UserTimeout && start == Start::FinWait2)
        },
    },
    Departure {
        rule: "RFC 9293 section 3.8.3: give up after 100 s, a SYN after 3 min",
        ours: "after 60 s ([`SocketOptions::user_timeout`](linerate_transport::SocketOptions::user_timeout))",
        reason: "a client that stalls must not keep its memory",
        concerns: |start, event| {
            let outstanding = start == Start::SynSent || start.is_syn_received() || start.fin_outstanding();
            event == Event::TwoMsl && outstanding
        },
    },
];
