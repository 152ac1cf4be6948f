//! Captures of both ends in one file.

use super::super::connection::{self, Connection};
use super::super::copies::Copies;
use super::super::places::Places;
use super::super::segment::Segment;
use super::super::table::Table;
use super::{RTT_US, Trace, bursts};
use linerate_wire::tcp::{Flags, Timestamps};
use std::net::SocketAddr;

/// The connections of packets at one interface.
fn all(segments: &[Segment]) -> Vec<Connection> {
    let (mut copies, mut table) = (Copies::default(), Table::default());
    segments.iter().for_each(|segment| copies.take(0, segment.clone(), &mut table));
    copies.finish(&mut table);
    table.finish();
    Places::default().settle(&mut table, &mut Vec::new());
    connection::connections(table.views, 0)
}

/// The only connection of packets at one interface.
fn explained(segments: &[Segment]) -> Connection {
    let mut connections = all(segments);
    assert_eq!(connections.len(), 1);
    connections.remove(0)
}

/// What the client's end saw, each packet with a number of its own.
fn at_the_client() -> Vec<Segment> {
    let mut segments = bursts(|_| 20_000).segments;
    for (number, segment) in segments.iter_mut().enumerate() {
        segment.identification = Some(number as u16 + 1);
        // Time before the first, for another clock.
        segment.at_ns += 1_000_000_000;
    }
    segments.sort_by_key(|segment| segment.at_ns);
    segments
}

/// The same as the server's end saw it: half a round trip later what the client sent, as much sooner what it answered; by its own clock.
fn at_the_server(segments: &[Segment], clock_us: i64) -> Vec<Segment> {
    let moved = |segment: &Segment| {
        let way_us = RTT_US as i64 / 2;
        let later_us = if segment.from.port() == 80 { -way_us } else { way_us };
        let at_ns = segment.at_ns.saturating_add_signed((later_us + clock_us) * 1_000);
        Segment { at_ns, ..segment.clone() }
    };
    segments.iter().map(moved).collect()
}

fn merged(mut one: Vec<Segment>, other: Vec<Segment>) -> Vec<Segment> {
    one.extend(other);
    one.sort_by_key(|segment| segment.at_ns);
    one
}

fn is_noted(found: &Connection) -> bool {
    found.notes.iter().any(|note| note.contains("each segment twice"))
}

#[test]
fn both_ends_in_one_file_are_two_views() {
    let client = at_the_client();
    let whole = explained(&client);
    assert!(!is_noted(&whole) && whole.views.len() == 1);
    // Clocks alike, apart by less than the way takes, and by more.
    for clock_us in [0, -3_000, 3_000, -20_000, 20_000] {
        let found = explained(&merged(client.clone(), at_the_server(&client, clock_us)));
        assert!(is_noted(&found), "{clock_us}: {:?}", found.notes);
        assert_eq!(found.verdict, whole.verdict, "{clock_us}");
        assert_eq!(found.directions[0].rtt_ns, whole.directions[0].rtt_ns, "{clock_us}");
        assert!(found.views.iter().all(|view| view.halves[0].wire.counts.again() == 0), "{clock_us}");
    }
}

#[test]
fn both_ends_in_one_file_without_the_opening() {
    let client = at_the_client();
    let both = merged(client.clone(), at_the_server(&client, 0));
    // The file begins where some were seen at one end already.
    let cut_ns = client[300].at_ns - RTT_US * 1_000 / 4;
    let late = |segments: &[Segment]| {
        explained(&segments.iter().filter(|one| one.at_ns >= cut_ns).cloned().collect::<Vec<_>>())
    };
    let (found, whole) = (late(&both), late(&client));
    assert!(is_noted(&found));
    assert_eq!(found.verdict.cause, whole.verdict.cause);
    assert_eq!(found.directions[0].again, 0);
}

#[test]
fn what_is_sent_again_is_no_copy_and_what_is_lost_has_none() {
    let mut client = at_the_client();
    // Each hundredth packet of data is lost, and sent again 30 ms later.
    let is_lost = |number: usize, segment: &Segment| number % 100 == 60 && segment.len > 0;
    let lost: Vec<(usize, Segment)> =
        client.iter().cloned().enumerate().filter(|(number, segment)| is_lost(*number, segment)).collect();
    let (again, kept): (Vec<Segment>, Vec<Segment>) = (
        lost.iter()
            .map(|(number, segment)| Segment {
                at_ns: segment.at_ns + 30_000_000,
                identification: Some(60_000 + (*number / 10) as u16),
                ..segment.clone()
            })
            .collect(),
        client
            .iter()
            .enumerate()
            .filter(|(number, segment)| !is_lost(*number, segment))
            .map(|(_, segment)| segment.clone())
            .collect(),
    );
    client = merged(client, again.clone());
    let server = at_the_server(&merged(kept, again.clone()), 0);
    let (found, whole) = (explained(&merged(client.clone(), server)), explained(&client));
    assert!(is_noted(&found));
    assert!(!again.is_empty() && whole.directions[0].again == again.len() as u64);
    assert_eq!(found.directions[0].again, whole.directions[0].again);
    assert_eq!(found.verdict.cause, whole.verdict.cause);
}

#[test]
fn an_interface_that_segments_has_copies_that_are_cut_elsewhere() {
    let mut client = at_the_client();
    for segment in &mut client {
        let value = (segment.at_ns / 1_000_000) as u32;
        segment.options.timestamps = Some(Timestamps { value, echo: 0 });
    }
    let mut server = at_the_server(&client, 0);
    let halves = |segment: Segment| {
        let half = segment.len / 2;
        let second = Segment {
            seq: segment.seq.wrapping_add(half),
            len: segment.len - half,
            at_ns: segment.at_ns + 100,
            ..segment.clone()
        };
        let first = Segment { len: if half > 0 { half } else { segment.len }, ..segment };
        if half > 0 { vec![first, second] } else { vec![first] }
    };
    server = server.into_iter().flat_map(halves).collect();
    let (found, whole) = (explained(&merged(client.clone(), server)), explained(&client));
    assert!(is_noted(&found));
    assert_eq!((found.directions[0].again, found.verdict.cause), (0, whole.verdict.cause));
}

#[test]
fn what_looks_the_same_for_another_reason_is_no_copy() {
    // Questions whether the other end is there, without timestamps or numbers.
    for count in [2, 3, 40] {
        let mut trace = Trace::new(1_460).open(true);
        trace.send(20_000, 100, true);
        trace.ack(20_000 + RTT_US, 100);
        for number in 1..=count {
            trace.take(number * 75_000_000, true, Flags::ACK, 0).seq -= 1;
            trace.ack(number * 75_000_000 + RTT_US, 100);
        }
        let found = explained(&trace.segments);
        assert!(!is_noted(&found) && found.views.len() == 1, "{count}");
    }
}

#[test]
fn the_first_connection_is_the_one_that_began_first() {
    // The short one is held back to the end of the file; the long one tells sooner that it comes once.
    let short = Trace::new(1_460).open(true).segments;
    let mut long = Trace::new(1_460).open(true);
    for number in 1..=1_000 {
        long.ack(RTT_US + number * 100, 0);
    }
    let moved = |segment: &Segment| {
        let client = |end: SocketAddr| if end.port() == 80 { end } else { SocketAddr::new(end.ip(), 9) };
        Segment {
            from: client(segment.from),
            to: client(segment.to),
            at_ns: segment.at_ns + 1,
            ..segment.clone()
        }
    };
    let found = all(&merged(short, long.segments.iter().map(moved).collect()));
    let ports: Vec<bool> = found.iter().map(|one| one.client.port() == 9).collect();
    assert_eq!(ports, [false, true]);
}
