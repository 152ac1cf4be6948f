//! Every state and every event: what the connection does, what it sends, what the application sees, beside what the RFCs
//! say ([`rfc`]). The result is `transitions.md`, which the test compares; `LINERATE_BLESS=1` writes it anew. A row
//! that differs from the RFCs must be one of [`departures::DEPARTURES`], and each of these must be seen.

mod departures;
mod events;
mod render;
mod rfc;
mod starts;
mod station;

use departures::{DEPARTURES, Departure};
use events::Event;
use rfc::Rule;
use starts::Start;

extern crate std;

/// Where the table is kept.
const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/tcp/tests/transitions.md");

/// A row of the table.
struct Row {
    start: Start,
    event: Event,
    seen: render::Seen,
    rule: Rule,
    departure: Option<&'static Departure>,
}

fn row(start: Start, event: Event) -> Row {
    let mut station = start.station();
    let rule = rfc::expect(start, event, &station);
    let before = render::Before::of(&station);
    let answer = event.happen(start, &mut station);
    let seen = render::Seen::of(start, &station, &before, answer, event.segment(&start.station()));
    let departure = DEPARTURES.iter().find(|departure| (departure.concerns)(start, event));
    Row { start, event, seen, rule, departure }
}

#[test]
fn every_state_and_event_is_as_the_rfcs_say_or_a_listed_departure() {
    let mut rows = alloc::vec::Vec::new();
    for start in Start::ALL {
        let events = Event::ALL.iter().copied().filter(|event| rfc::applies(start, *event));
        rows.extend(events.map(|event| row(start, event)));
    }
    let text = render::table(&rows);
    if std::env::var_os("LINERATE_BLESS").is_some() {
        std::fs::write(TABLE, &text).expect("the table can be written");
    }
    let mut faults = alloc::vec::Vec::new();
    for row in &rows {
        let agrees = row.seen.agrees(&row.rule);
        let what = alloc::format!("{:?} x {:?}", row.start, row.event);
        match (agrees, row.departure) {
            (false, None) => faults.push(alloc::format!("{what}: {:?}, but {:?}", row.seen, row.rule)),
            (true, Some(_)) => faults.push(alloc::format!("{what}: listed as a departure, but is none")),
            _ => {}
        }
    }
    for departure in DEPARTURES {
        if !rows.iter().any(|row| row.departure.is_some_and(|other| core::ptr::eq(other, departure))) {
            faults.push(alloc::format!("no row shows the departure {:?}", departure.rule));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let kept = std::fs::read_to_string(TABLE).unwrap_or_default();
    let different = kept.lines().zip(text.lines()).find(|(kept, now)| kept != now);
    assert!(
        kept == text,
        "transitions.md is out of date (LINERATE_BLESS=1 writes it anew); first difference: {different:#?}"
    );
}

#[test]
fn every_departure_is_in_the_documentation() {
    let documentation = include_str!("../../mod.rs");
    for departure in DEPARTURES {
        let words = departure.words();
        assert!(documentation.contains(&words), "tcp/mod.rs does not have this row: | {words} |");
    }
}

#[test]
fn every_state_is_reached() {
    for start in Start::ALL {
        let station = start.station();
        assert_eq!(station.state(), start.state(), "{}", start.heading());
    }
}
