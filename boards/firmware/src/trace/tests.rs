//! Tests of the ring and of the file made of it.

use super::*;
use alloc::vec::Vec;
use serde_json::Value;
use std::sync::Mutex;

/// A trace on the host, with a clock that stands.
struct Bench(Mutex<Ring>);

impl Tracer for Bench {
    fn now(&self) -> Instant {
        Instant::from_nanos(1_000_000)
    }

    fn is_on(&self) -> bool {
        self.0.lock().unwrap().is_on()
    }

    fn switch(&self, is_on: bool) {
        self.0.lock().unwrap().switch(is_on, self.now());
    }

    fn with(&self, work: &mut dyn FnMut(&mut Ring)) {
        work(&mut self.0.lock().unwrap());
    }
}

fn at(us: u64) -> Instant {
    Instant::from_nanos(us * 1_000 + 7)
}

fn tasks() -> Vec<Task> {
    let task = |number, name: &str| Task {
        number,
        name: name.into(),
        priority: 1,
        state: "ready",
        run_us: 0,
        stack_free: 0,
    };
    [task(1, "network"), task(2, "con\"sole")].into()
}

/// The whole file, read in pieces of a length.
fn file(bench: &Bench, step: usize) -> Vec<u8> {
    let file = File::new(bench, Bytes::from(head("bench", &tasks())));
    let mut out = Vec::new();
    while (out.len() as u64) < file.len() {
        out.extend(file.read(bench, out.len() as u64, step).unwrap());
    }
    assert_eq!(out.len() as u64, file.len());
    out
}

/// The spans: name, track, begin and length in us.
fn spans(bench: &Bench) -> Vec<(alloc::string::String, u64, f64, f64)> {
    let json: Value = serde_json::from_slice(&file(bench, 1 << 20)).unwrap();
    let spans = json["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X");
    let view = |event: &Value| {
        let number = |name: &str| event[name].as_f64().unwrap();
        (event["name"].as_str().unwrap().into(), event["tid"].as_u64().unwrap(), number("ts"), number("dur"))
    };
    spans.map(view).collect()
}

#[test]
fn tasks_are_spans_until_the_next_one_runs() {
    let bench = Bench(Mutex::new(Ring::with_bytes(1_024)));
    bench.with(&mut |ring| ring.run_task(1, at(1)));
    assert!(spans(&bench).is_empty(), "it was off");
    bench.switch(true);
    bench.with(&mut |ring| {
        ring.run_task(1, at(10));
        ring.run_task(1, at(11));
        ring.push(Event::new(What::Interrupt(Interrupt::Timer), at(12), at(13)));
        ring.run_task(2, at(20));
    });
    bench.switch(false);
    bench.with(&mut |ring| ring.run_task(1, at(30)));
    let expected = [
        ("timer".into(), 1_000, 12.007, 1.0),
        ("runs".into(), 1, 10.007, 10.0),
        ("runs".into(), 2, 20.007, 1_000.0 - 20.007),
    ];
    assert_eq!(spans(&bench), expected);
}

#[test]
fn a_ring_that_wrapped_is_whole() {
    let bench = Bench(Mutex::new(Ring::with_bytes(10 * EVENT_LEN)));
    bench.switch(true);
    for turn in 0..23 {
        bench.with(&mut |ring| ring.push(Event::new(What::Sent(turn), at(turn.into()), at(turn.into()))));
    }
    bench.switch(false);
    let begins: Vec<_> = spans(&bench).into_iter().map(|(_, _, ts, _)| ts as u64).collect();
    assert_eq!(begins, (13..23).collect::<Vec<_>>());
    assert_eq!(status(&bench), "trace off, 10 events of 10, 13 older ones overwritten\n");
    for step in [1, 7, LINE, 1_000] {
        assert_eq!(file(&bench, step), file(&bench, usize::MAX));
    }
}

#[test]
fn the_longest_line_fits() {
    let bench = Bench(Mutex::new(Ring::with_bytes(1_024)));
    bench.switch(true);
    let (from, to) = (Instant::from_nanos(u64::MAX - (1 << 33)), Instant::FAR_FUTURE);
    let all = [What::Received(u16::MAX), What::Interrupt(Interrupt::Serial), What::Task(u16::MAX)];
    all.into_iter().for_each(|what| bench.with(&mut |ring| ring.push(Event::new(what, from, to))));
    assert_eq!(spans(&bench).len(), all.len());
}

#[test]
fn a_file_of_a_trace_that_was_begun_anew_is_stale() {
    let bench = Bench(Mutex::new(Ring::with_bytes(1_024)));
    bench.switch(true);
    bench.with(&mut |ring| ring.push(Event::new(What::Sent(1), at(1), at(2))));
    bench.switch(false);
    let old = File::new(&bench, Bytes::from(head("bench", &tasks())));
    bench.switch(true);
    assert_eq!(old.read(&bench, old.len() - 200, 100), None);
}

#[test]
fn without_memory_it_stays_off() {
    let bench = Bench(Mutex::new(Ring::new()));
    bench.switch(true);
    assert!(!bench.is_on());
}
