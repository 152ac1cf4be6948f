//! What was seen, as words.

use super::Row;
use super::departures::DEPARTURES;
use super::rfc::Rule;
use super::starts::Start;
use super::station::{Segment, Sent, Station};
use crate::counters::Counters;
use crate::tcp::State;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write;
use linerate_transport::{ConnState, Ready, Source, Transport};
use linerate_wire::tcp::Flags;

const INTRODUCTION: &str = "\
# TCP: every state, every event

Written by the test `every_state_and_event_is_as_the_rfcs_say_or_a_listed_departure`; do not edit. Each row: a connection
is driven into the state, the event happens, and this is what follows. Numbers are written as RFC 9293 does, from where
the connection stood before the event. `SEG` is the segment that came. Segments of the peer acknowledge SND.UNA unless
the row says otherwise; what comes within 45 ms (a delayed ACK) belongs to the answer. Calls show what they answer,
events what the application is told. \"Counted\" are the stack's drop counters and challenge ACKs. The RFC column names
the clause that the row was compared with; *D1*, *D2* ... are the departures at the end.
";

/// What is measured against.
pub struct Before {
    nxt: i64,
    rcv: i64,
    counters: Counters,
    challenges: u64,
}

impl Before {
    pub fn of(station: &Station) -> Before {
        Before {
            nxt: station.nxt,
            rcv: station.rcv,
            counters: *station.stack.counters(),
            challenges: challenges(station),
        }
    }
}

fn challenges(station: &Station) -> u64 {
    let conns = &station.stack.conns;
    let counters = conns.table.iter().map(|(_, conn)| conn.counters(&conns.resources));
    counters.map(|counters| counters.challenge_acks).sum()
}

/// What an event led to.
#[derive(Debug)]
pub struct Seen {
    pub next: State,
    /// What the call answered; empty where there was none.
    pub answer: String,
    /// Kinds of segments, each once.
    pub kinds: String,
    segments: String,
    told: String,
    counted: String,
}

impl Seen {
    pub fn of(
        start: Start,
        station: &Station,
        before: &Before,
        answer: String,
        segment: Option<Segment>,
    ) -> Seen {
        // A connection that was accepted ends in CLOSED; the listener that it came from is another socket.
        let next = match station.state() {
            State::Listen if start.is_synchronized() => State::Closed,
            state => state,
        };
        let mut kinds: Vec<&str> = Vec::new();
        for sent in &station.sent {
            if !kinds.contains(&kind(sent)) {
                kinds.push(kind(sent));
            }
        }
        let mut lines: Vec<(String, usize)> = Vec::new();
        for sent in &station.sent {
            let text = notation(sent, before, segment);
            match lines.iter_mut().find(|(known, _)| *known == text) {
                Some((_, count)) => *count += 1,
                None => lines.push((text, 1)),
            }
        }
        // How often is the business of the tests of timers.
        let again = |count| if count > 1 { ", repeated" } else { "" };
        let lines: Vec<String> =
            lines.iter().map(|(text, count)| format!("{text}{}", again(*count))).collect();
        Seen {
            next,
            answer,
            kinds: kinds.join(" "),
            segments: lines.join("<br>"),
            told: told(station),
            counted: counted(station, before),
        }
    }

    /// Whether this is what the rule says.
    pub fn agrees(&self, rule: &Rule) -> bool {
        let granted = rule.granted.is_none_or(|granted| granted == (self.answer == "ok"));
        granted && self.next == rule.next && rule.reply.split('|').any(|reply| reply == self.kinds)
    }
}

fn kind(sent: &Sent) -> &'static str {
    match sent.flags {
        flags if flags.contains(Flags::RST) => "RST",
        flags if flags.contains(Flags::SYN | Flags::ACK) => "SYN-ACK",
        flags if flags.contains(Flags::SYN) => "SYN",
        flags if flags.contains(Flags::FIN) => "FIN",
        _ if sent.len > 0 => "DATA",
        _ => "ACK",
    }
}

/// A segment as RFC 9293 writes it.
fn notation(sent: &Sent, before: &Before, segment: Option<Segment>) -> String {
    let is_syn = sent.flags.contains(Flags::SYN);
    let is_reset = sent.flags.contains(Flags::RST);
    let from_segment = segment.filter(|_| is_reset);
    let seq = match from_segment {
        Some(segment) if segment.flags.contains(Flags::ACK) && sent.seq == segment.ack => "SEG.ACK".into(),
        Some(segment) if !segment.flags.contains(Flags::ACK) => "0".into(),
        _ if is_syn => "ISS".into(),
        _ => offset("SND.NXT", sent.seq - before.nxt),
    };
    let ack = match from_segment {
        Some(_) => "SEG.SEQ+SEG.LEN".into(),
        None if is_syn => "IRS+1".into(),
        None => offset("RCV.NXT", sent.ack - before.rcv),
    };
    let mut text = format!("`<SEQ={seq}>");
    if sent.flags.contains(Flags::ACK) {
        let _ = write!(text, "<ACK={ack}>");
    }
    let names = format!("{:?}", sent.flags).replace('|', ",");
    if sent.len > 0 {
        let _ = write!(text, "<LEN={}>", sent.len);
    }
    let _ = write!(text, "<CTL={names}>`");
    text
}

fn offset(name: &str, by: i64) -> String {
    match by {
        0 => name.to_string(),
        _ => format!("{name}{by:+}"),
    }
}

fn told(station: &Station) -> String {
    let mut words: Vec<String> = Vec::new();
    for (source, ready) in &station.told {
        match source {
            Source::Listener(_) => words.push("to accept".into()),
            _ => words.extend(names(*ready).map(|name| name.to_string())),
        }
    }
    words.dedup();
    let is_closed = station.told.iter().any(|(_, ready)| ready.contains(Ready::CLOSED));
    if is_closed
        && let Some(conn) = station.conn
        && let ConnState::Closed(reason) = station.stack.state(conn)
    {
        words.push(format!("({reason:?})"));
    }
    words.join(" ")
}

fn names(ready: Ready) -> impl Iterator<Item = &'static str> {
    let all = [
        (Ready::READABLE, "READABLE"),
        (Ready::WRITABLE, "WRITABLE"),
        (Ready::SENT, "SENT"),
        (Ready::FINISHED, "FINISHED"),
        (Ready::CLOSED, "CLOSED"),
    ];
    all.into_iter().filter(move |(bit, _)| ready.contains(*bit)).map(|(_, name)| name)
}

fn counted(station: &Station, before: &Before) -> String {
    let now = station.stack.counters().iter();
    let drops = now.zip(before.counters.iter()).filter(|(now, was)| now.1 > was.1);
    let mut words: Vec<String> =
        drops.filter_map(|(now, _)| now.0.strip_prefix("drop_")).map(|name| name.to_string()).collect();
    if challenges(station) > before.challenges {
        words.push("challenge".into());
    }
    words.join(" ")
}

/// The name of a state as the RFC writes it.
fn name(state: State) -> &'static str {
    match state {
        State::Listen => "LISTEN",
        State::SynSent => "SYN-SENT",
        State::SynReceived => "SYN-RECEIVED",
        State::Established => "ESTABLISHED",
        State::FinWait1 => "FIN-WAIT-1",
        State::FinWait2 => "FIN-WAIT-2",
        State::CloseWait => "CLOSE-WAIT",
        State::Closing => "CLOSING",
        State::LastAck => "LAST-ACK",
        State::TimeWait => "TIME-WAIT",
        State::Closed => "CLOSED",
    }
}

/// The whole file.
pub fn table(rows: &[Row]) -> String {
    let mut text = INTRODUCTION.to_string();
    for start in Start::ALL {
        let _ = write!(text, "\n## {}\n\n", start.heading());
        text.push_str(
            "| event | next state | sent | application | counted | RFC |\n|---|---|---|---|---|---|\n",
        );
        for row in rows.iter().filter(|row| row.start == start) {
            line(&mut text, row);
        }
    }
    text.push_str("\n## Departures\n\n| | rule | what we do | why |\n|---|---|---|---|\n");
    for (index, departure) in DEPARTURES.iter().enumerate() {
        let _ = writeln!(text, "| D{} | {} |", index + 1, departure.words());
    }
    text
}

fn line(text: &mut String, row: &Row) {
    let Seen { answer, segments, told, counted, .. } = &row.seen;
    let stays = row.seen.next == row.start.state();
    let next = if stays { "·".to_string() } else { format!("**{}**", name(row.seen.next)) };
    let application = match (answer.as_str(), told.as_str()) {
        ("", told) => told.to_string(),
        (answer, "") => answer.to_string(),
        (answer, told) => format!("{answer}; {told}"),
    };
    let departure = row.departure.and_then(|departure| {
        DEPARTURES.iter().position(|other| core::ptr::eq(other, departure)).map(|index| index + 1)
    });
    let departure = departure.map_or(String::new(), |index| format!(" *D{index}*"));
    let (event, clause) = (row.event.text(), row.rule.clause);
    let _ =
        writeln!(text, "| {event} | {next} | {segments} | {application} | {counted} | {clause}{departure} |");
}
