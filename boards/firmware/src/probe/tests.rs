//! Tests of what the instruments see of a driver.

use super::*;
use crate::trace::Ring;
use alloc::vec::Vec;
use linerate_nic::{Capabilities, Chunk, Link, Pool};
use std::boxed::Box;
use std::sync::Mutex;

/// A trace on the host, with a clock that goes on by a microsecond whenever it is read.
struct Bench(Mutex<(u64, Ring)>);

impl Tracer for Bench {
    fn now(&self) -> Instant {
        let mut bench = self.0.lock().unwrap();
        bench.0 += 1_000;
        Instant::from_nanos(bench.0)
    }

    fn is_on(&self) -> bool {
        self.0.lock().unwrap().1.is_on()
    }

    fn switch(&self, is_on: bool) {
        self.0.lock().unwrap().1.switch(is_on, Instant::ZERO);
    }

    fn with(&self, work: &mut dyn FnMut(&mut Ring)) {
        work(&mut self.0.lock().unwrap().1);
    }
}

/// Both ends of a cable with room for two frames, watched.
struct Ends {
    probe: Probe<Link>,
    peer: Link,
    queue: TxQueue,
}

impl Ends {
    fn new() -> Ends {
        let ring = Ring::with_bytes(4_096);
        let bench: &'static Bench = Box::leak(Box::new(Bench(Mutex::new((0, ring)))));
        let (near, peer) = Link::pair(&Pool::new(8, 256), 200, Capabilities::NONE, 2);
        let capture = Capture::with_bytes(4_096, "bench", [2, 0, 0, 0, 0, 1]);
        let probe = Probe::new(near, PacingConfig::default(), bench, Held::own(capture));
        Ends { probe, peer, queue: TxQueue::with_capacity(4) }
    }

    fn fill(&mut self, payloads: &[&'static [u8]]) {
        for payload in payloads {
            let packet = self.queue.vacant().unwrap();
            packet.header_mut(14).fill(0xee);
            packet.push_chunk(Chunk::constant(payload)).unwrap();
            self.queue.commit();
        }
    }

    /// Payloads of the frames in the capture.
    fn captured(&self) -> Vec<Vec<u8>> {
        let file = self.probe.with_capture(|capture| capture.read(0, usize::MAX));
        let mut payloads = Vec::new();
        let mut rest = &file[..];
        while !rest.is_empty() {
            let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap()) as usize;
            if word(0) == 6 {
                payloads.push(rest[28 + 14..28 + word(20)].to_vec());
            }
            rest = &rest[word(4)..];
        }
        payloads
    }
}

#[test]
fn what_did_not_leave_is_captured_when_it_does() {
    let mut ends = Ends::new();
    ends.probe.start_capture(None);
    ends.probe.trace(true);
    ends.fill(&[b"one", b"two", b"three"]);
    assert_eq!(ends.probe.transmit(Instant::ZERO, &mut ends.queue), Ok(2));
    assert_eq!(ends.captured(), [&b"one"[..], b"two"]);
    let mut batch = RxBatch::with_limit(4);
    assert_eq!(ends.peer.receive(Instant::ZERO, &mut batch), Ok(2));
    assert_eq!(ends.probe.transmit(Instant::ZERO, &mut ends.queue), Ok(1));
    assert_eq!(ends.captured(), [&b"one"[..], b"two", b"three"]);
    let mut events = 0;
    ends.probe.tracer().with(&mut |ring| events = ring.len());
    assert_eq!(events, 2);
    ends.probe.stop_capture();
    ends.fill(&[b"four"]);
    ends.probe.transmit(Instant::ZERO, &mut ends.queue).unwrap();
    assert_eq!(ends.captured().len(), 3);
}

#[test]
fn what_does_not_leave_takes_no_room_of_what_came() {
    let mut ends = Ends::new();
    ends.probe.start_capture(None);
    let payload = |number: u8| [number; 100];
    // 160 bytes each in the capture.
    for number in 0..25 {
        let packet = ends.queue.vacant().unwrap();
        packet.header_mut(14).fill(0xee);
        packet.push_chunk(Chunk::Shared(payload(number).to_vec().into())).unwrap();
        ends.queue.commit();
        ends.peer.transmit(Instant::ZERO, &mut ends.queue).unwrap();
        assert_eq!(ends.probe.receive(Instant::ZERO, &mut RxBatch::with_limit(4)), Ok(1));
    }
    // The driver is filled while nobody looks.
    ends.fill(&[b"one", b"two"]);
    assert_eq!(ends.probe.device.transmit(Instant::ZERO, &mut ends.queue), Ok(2));
    ends.fill(&[&[1; 120], &[2; 120], &[3; 120]]);
    for _ in 0..100 {
        assert_eq!(ends.probe.transmit(Instant::ZERO, &mut ends.queue), Ok(0));
    }
    assert!(ends.captured() == (0..25).map(payload).collect::<Vec<_>>());
    let status = ends.probe.with_capture(Capture::status);
    assert!(status.contains(", 0 older ones gone"), "{status}");
}

#[test]
fn calls_are_timed_while_somebody_asks() {
    let mut ends = Ends::new();
    let mut batch = RxBatch::with_limit(4);
    ends.probe.receive(Instant::ZERO, &mut batch).unwrap();
    assert_eq!(ends.probe.calls(), (Calls::default(), Calls::default()));
    ends.probe.profile(true);
    ends.fill(&[b"one"]);
    ends.probe.transmit(Instant::ZERO, &mut ends.queue).unwrap();
    ends.probe.receive(Instant::ZERO, &mut batch).unwrap();
    ends.probe.receive(Instant::ZERO, &mut batch).unwrap();
    ends.probe.profile(false);
    ends.probe.receive(Instant::ZERO, &mut batch).unwrap();
    // The clock goes on by a microsecond a reading.
    assert_eq!(ends.probe.calls(), (Calls { count: 2, ns: 2_000 }, Calls { count: 1, ns: 1_000 }));
}

#[test]
fn whoever_fetches_ends_the_watch() {
    let mut ends = Ends::new();
    ends.probe.trace(true);
    assert!(ends.probe.is_watched);
    ends.probe.tracer().switch(false);
    ends.probe.receive(Instant::ZERO, &mut RxBatch::with_limit(1)).unwrap();
    assert!(!ends.probe.is_watched);
}

#[test]
fn trace_and_capture_have_the_same_times() {
    let mut ends = Ends::new();
    ends.probe.start_capture(None);
    ends.probe.trace(true);
    ends.fill(&[b"one", b"two"]);
    ends.probe.transmit(Instant::ZERO, &mut ends.queue).unwrap();
    let sent = core::mem::replace(&mut ends.queue, TxQueue::with_capacity(4));
    assert!(sent.is_empty());
    ends.fill(&[b"back"]);
    ends.peer.transmit(Instant::ZERO, &mut ends.queue).unwrap();
    let mut batch = RxBatch::with_limit(4);
    assert_eq!(ends.probe.receive(Instant::ZERO, &mut batch).unwrap(), 1);
    // By the capture: one time for what left together.
    let file = ends.probe.with_capture(|capture| capture.read(0, usize::MAX));
    let (mut captured, mut rest) = (Vec::new(), &file[..]);
    while !rest.is_empty() {
        let word = |at: usize| u64::from(u32::from_le_bytes(rest[at..at + 4].try_into().unwrap()));
        if word(0) == 6 {
            captured.push(word(12) << 32 | word(16));
        }
        rest = &rest[word(4) as usize..];
    }
    assert_eq!(captured.len(), 3);
    captured.dedup();
    // By the trace: the calls of the driver.
    ends.probe.trace(false);
    let tracer = ends.probe.tracer();
    let file = crate::trace::File::new(tracer, crate::trace::head("bench", &[]).into());
    let text = file.read(tracer, 0, usize::MAX).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let spans = json["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X");
    let traced: Vec<u64> = spans.map(|span| (span["ts"].as_f64().unwrap() * 1e3).round() as u64).collect();
    assert_eq!(traced, captured);
}
