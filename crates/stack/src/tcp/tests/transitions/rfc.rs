//! What the RFCs say should happen: RFC 9293 section 3.10 written down once more, without looking at our connection, with
//! RFC 5961 (blind attacks), 7323 (timestamps), 6191 (TIME-WAIT), 5927 (ICMP) where they add to it.

use super::events::Event;
use super::starts::Start;
use super::station::{Segment, Station};
use crate::tcp::State;
use linerate_wire::tcp::Flags;

/// The greatest window that the peer ever offered here (MAX.SND.WND of RFC 5961 section 5.2).
const MAX_SND_WND: i64 = 65_535;
/// Further away than our window reaches; the events that are beyond it are further still.
const RCV_WND: i64 = 4_000_000;

/// What should follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule {
    pub next: State,
    /// Kinds of segments in reply, each once, in order; alternatives are separated by `|`.
    pub reply: &'static str,
    pub clause: &'static str,
    /// For calls of the application: whether the call is granted. `None`: either, or not a call.
    pub granted: Option<bool>,
}

fn rule(next: State, reply: &'static str, clause: &'static str) -> Rule {
    Rule { next, reply, clause, granted: None }
}

/// Whether the event can happen in this state at all.
pub fn applies(start: Start, event: Event) -> bool {
    let call = matches!(
        event,
        Event::Send
            | Event::Receive
            | Event::ReceiveData
            | Event::Shutdown
            | Event::Close
            | Event::Abort
            | Event::Status
    );
    match event {
        // Nobody has the connection's id before it is accepted.
        _ if call && start == Start::SynReceivedPassive => false,
        Event::ReceiveData => start.is_synchronized() && !start.peer_finished(),
        Event::ZeroWindow => matches!(start, Start::Established | Start::CloseWait),
        _ => true,
    }
}

/// What the RFCs say of this event in this state; `station` is as it was before.
pub fn expect(start: Start, event: Event, station: &Station) -> Rule {
    if let Some(segment) = event.segment(station) {
        let numbers = Numbers { una: station.una, nxt: station.nxt, rcv: station.rcv };
        return match start {
            Start::Closed => arrives_closed(&segment),
            Start::Listen => arrives_listen(&segment),
            Start::SynSent => arrives_syn_sent(&segment, &numbers),
            _ => arrives_otherwise(start, &segment, &numbers),
        };
    }
    match event {
        Event::Connect | Event::Listen => opens(start, event),
        Event::Send | Event::Receive | Event::ReceiveData | Event::Status => uses(start, event),
        Event::Shutdown | Event::Close => closes(start),
        Event::Abort => aborts(start),
        Event::PortUnreachable
        | Event::HostUnreachable
        | Event::UnreachableOld
        | Event::Prohibited
        | Event::TooBig => icmp(start, event),
        _ => times_out(start, event),
    }
}

fn opens(start: Start, event: Event) -> Rule {
    let is_open = event == Event::Connect;
    let clause = "9293 3.10.1";
    let (next, reply, granted) = match start {
        Start::Closed if is_open => (State::SynSent, "SYN", true),
        Start::Closed => (State::Listen, "", true),
        Start::Listen if is_open => (State::SynSent, "SYN", true),
        // The port has no listener: a connection with unspecified remote end is another one.
        Start::SynSent | Start::SynReceivedActive if !is_open => (start.state(), "", true),
        _ => (start.state(), "", false),
    };
    Rule { granted: Some(granted), ..rule(next, reply, clause) }
}

fn uses(start: Start, event: Event) -> Rule {
    let stay = start.state();
    match (event, start) {
        (Event::Send, Start::Closed | Start::Listen) => {
            Rule { granted: Some(false), ..rule(stay, "", "9293 3.10.2") }
        }
        (Event::Send, Start::Established | Start::CloseWait) => {
            Rule { granted: Some(true), ..rule(stay, "DATA", "9293 3.10.2") }
        }
        (Event::Send, Start::SynSent | Start::SynReceivedActive) => {
            Rule { granted: Some(true), ..rule(stay, "", "9293 3.10.2") }
        }
        (Event::Send, _) => Rule { granted: Some(false), ..rule(stay, "", "9293 3.10.2") },
        (Event::Status, _) => rule(stay, "", "9293 3.10.6"),
        _ => rule(stay, "|ACK", "9293 3.10.3"),
    }
}

fn closes(start: Start) -> Rule {
    let (next, reply) = match start {
        Start::Listen | Start::SynSent | Start::Closed => (State::Closed, ""),
        Start::SynReceivedPassive | Start::SynReceivedActive | Start::Established => (State::FinWait1, "FIN"),
        Start::CloseWait => (State::LastAck, "FIN"),
        _ => (start.state(), ""),
    };
    rule(next, reply, "9293 3.10.4")
}

fn aborts(start: Start) -> Rule {
    let reply = match start {
        Start::Closed | Start::Listen | Start::SynSent => "",
        Start::Closing | Start::LastAck | Start::TimeWait => "",
        _ => "RST",
    };
    rule(State::Closed, reply, "9293 3.10.5")
}

/// Where a connection that is reset ends up: one that came from LISTEN goes back there.
fn over(start: Start) -> State {
    if start == Start::SynReceivedPassive { State::Listen } else { State::Closed }
}

fn icmp(start: Start, event: Event) -> Rule {
    let stay = start.state();
    let in_flight = start == Start::SynSent
        || start.is_syn_received()
        || start.fin_outstanding()
        || matches!(start, Start::Established | Start::CloseWait);
    match event {
        _ if !in_flight => rule(stay, "", "5927 4.1"),
        Event::UnreachableOld => rule(stay, "", "5927 4.1"),
        Event::HostUnreachable => rule(stay, "", "9293 3.9.2.2 MUST-56"),
        Event::TooBig => rule(stay, "|DATA|FIN", "1191 6.5, 5927 7"),
        // Neither soft nor hard by RFC 9293 section 3.9.2.2.
        Event::Prohibited if !start.is_synchronized() => rule(over(start), "", "1812 5.2.7.1"),
        Event::Prohibited => rule(stay, "", "1812 5.2.7.1, 5927 4.2"),
        _ if start.is_synchronized() => rule(stay, "", "5927 4.2 (not 9293 3.9.2.2)"),
        _ => rule(over(start), "", "9293 3.9.2.2"),
    }
}

fn times_out(start: Start, event: Event) -> Rule {
    let stay = start.state();
    let out = match start {
        Start::SynSent => "SYN",
        Start::SynReceivedPassive | Start::SynReceivedActive => "SYN-ACK",
        Start::FinWait1 | Start::Closing | Start::LastAck => "FIN",
        Start::Established | Start::CloseWait if event != Event::Silence && event != Event::TwoMsl => "DATA",
        _ => "",
    };
    let is_long = matches!(event, Event::UserTimeout | Event::Silence);
    match event {
        Event::ZeroWindow => rule(stay, "DATA", "9293 3.8.6.1"),
        _ if start == Start::TimeWait && event != Event::RetransmitTimeout => {
            rule(State::Closed, "", "9293 3.10.8, 3.6.1")
        }
        _ if out.is_empty() => rule(stay, "", "9293 3.8.4"),
        _ if !is_long => rule(stay, out, "6298 5, 9293 3.8.3"),
        // The peer may be told; the RFC does not ask for it.
        _ if out == "DATA" => rule(over(start), "DATA|DATA RST", "9293 3.10.8, 3.8.3"),
        _ if out == "FIN" => rule(over(start), "FIN|FIN RST", "9293 3.10.8, 3.8.3"),
        _ => rule(over(start), out, "9293 3.10.8, 3.8.3"),
    }
}

struct Numbers {
    una: i64,
    nxt: i64,
    rcv: i64,
}

fn arrives_closed(segment: &Segment) -> Rule {
    let reply = if segment.flags.contains(Flags::RST) { "" } else { "RST" };
    rule(State::Closed, reply, "9293 3.10.7.1")
}

fn arrives_listen(segment: &Segment) -> Rule {
    let has = |flags| segment.flags.contains(flags);
    match () {
        () if has(Flags::RST) => rule(State::Listen, "", "9293 3.10.7.2 first"),
        () if has(Flags::ACK) => rule(State::Listen, "RST", "9293 3.10.7.2 second"),
        () if has(Flags::SYN) => rule(State::SynReceived, "SYN-ACK", "9293 3.10.7.2 third"),
        () => rule(State::Listen, "", "9293 3.10.7.2 fourth"),
    }
}

fn arrives_syn_sent(segment: &Segment, numbers: &Numbers) -> Rule {
    let has = |flags| segment.flags.contains(flags);
    let acceptable = has(Flags::ACK) && numbers.una < segment.ack && segment.ack <= numbers.nxt;
    if has(Flags::ACK) && !acceptable {
        let reply = if has(Flags::RST) { "" } else { "RST" };
        return rule(State::SynSent, reply, "9293 3.10.7.3 first");
    }
    if has(Flags::RST) {
        let next = if acceptable { State::Closed } else { State::SynSent };
        return rule(next, "", "9293 3.10.7.3 second, 5961 3.2");
    }
    if has(Flags::SYN) {
        return match acceptable {
            true => rule(State::Established, "ACK", "9293 3.10.7.3 fourth"),
            false => rule(State::SynReceived, "SYN-ACK", "9293 3.10.7.3 fourth"),
        };
    }
    rule(State::SynSent, "", "9293 3.10.7.3 fifth")
}

fn arrives_otherwise(start: Start, segment: &Segment, numbers: &Numbers) -> Rule {
    let stay = start.state();
    let has = |flags| segment.flags.contains(flags);
    let only_syn = has(Flags::SYN) && !segment.flags.intersects(Flags::ACK | Flags::RST | Flags::FIN);
    if start == Start::TimeWait && only_syn {
        let beyond = segment.seq >= numbers.rcv;
        return match segment.tick.map_or(beyond, |tick| tick > 0 || (tick == 0 && beyond)) {
            true => rule(State::SynReceived, "SYN-ACK", "6191 2, 9293 3.6.1 MAY-2"),
            false => rule(stay, "|ACK", "6191 2"),
        };
    }
    // RFC 5961 section 4.2: a SYN is challenged in any synchronized state.
    if !has(Flags::RST) && (!has(Flags::SYN) || start.is_syn_received()) {
        match segment.tick {
            None => return rule(stay, "", "7323 3.2"),
            Some(tick) if tick < 0 => return rule(stay, "ACK", "7323 5.3 R1"),
            Some(_) => {}
        }
    }
    let len = segment.len as i64 + i64::from(has(Flags::SYN)) + i64::from(has(Flags::FIN));
    let (first, last) = (segment.seq, segment.seq + len.max(1) - 1);
    let inside = |at: i64| at >= numbers.rcv && at < numbers.rcv + RCV_WND;
    if !inside(first) && !inside(last) {
        let reply = if has(Flags::RST) { "" } else { "ACK" };
        return rule(stay, reply, "9293 3.10.7.4 first");
    }
    if has(Flags::RST) {
        return match segment.seq == numbers.rcv {
            true => rule(over(start), "", "9293 3.10.7.4 second, 5961 3.2"),
            false => rule(stay, "ACK", "5961 3.2"),
        };
    }
    if has(Flags::SYN) {
        return match start {
            Start::SynReceivedPassive => rule(State::Listen, "", "9293 3.10.7.4 fourth"),
            _ => rule(stay, "ACK", "9293 3.10.7.4 fourth, 5961 4.2"),
        };
    }
    if !has(Flags::ACK) {
        return rule(stay, "", "9293 3.10.7.4 fifth");
    }
    acknowledges(start, segment, numbers)
}

/// The fifth step with ACK set, and those after it.
fn acknowledges(start: Start, segment: &Segment, numbers: &Numbers) -> Rule {
    let all = segment.ack == numbers.nxt;
    let mut state = start.state();
    if start.is_syn_received() {
        if !(numbers.una < segment.ack && segment.ack <= numbers.nxt) {
            return rule(state, "RST", "9293 3.10.7.4 fifth");
        }
        state = State::Established;
    }
    if segment.ack > numbers.nxt || segment.ack < numbers.una - MAX_SND_WND {
        return rule(state, "ACK", "9293 3.10.7.4 fifth, 5961 5.2");
    }
    match start {
        Start::FinWait1 if all => state = State::FinWait2,
        Start::Closing if all => state = State::TimeWait,
        Start::LastAck if all => return rule(State::Closed, "", "9293 3.10.7.4 fifth"),
        _ => {}
    }
    let fin = segment.flags.contains(Flags::FIN);
    let in_order = segment.seq <= numbers.rcv;
    if segment.len > 0 && !fin {
        let takes = matches!(state, State::Established | State::FinWait1 | State::FinWait2);
        return rule(state, if takes { "ACK" } else { "" }, "9293 3.10.7.4 seventh");
    }
    if !fin {
        return rule(state, "", "9293 3.10.7.4 fifth");
    }
    if !in_order {
        return rule(state, "ACK", "9293 3.10.7.4 (held for order), 5681 4.2");
    }
    let next = match state {
        State::SynReceived | State::Established => State::CloseWait,
        State::FinWait1 => State::Closing,
        State::FinWait2 => State::TimeWait,
        other => other,
    };
    rule(next, "ACK", "9293 3.10.7.4 eighth")
}
