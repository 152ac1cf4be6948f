//! The loop with an engine and files that do what a test wrote down.

use super::*;
use crate::service::StartError;
use crate::testing::{MemoryFiles, MemoryNet};
use alloc::vec;
use alloc::vec::Vec;
use core::cell::Cell;
use linerate_transport::{Bytes, Event, FileDone, FileId, Input, Output, Ready, Source, Transport, UdpId};

/// An engine that does what a test wrote down, and notes what was asked of it.
struct Scripted {
    net: MemoryNet,
    wants: Vec<FileRequest>,
    got: Vec<(u64, Result<usize, FileError>)>,
    left: Left,
    more: bool,
    outputs: u32,
}

impl Engine for Scripted {
    type Error = ();

    fn net(&mut self) -> &mut dyn Transport {
        &mut self.net
    }

    fn input(&mut self, _now: Instant) -> Result<Input, ()> {
        Ok(Input { moved: false, more: self.more })
    }

    fn output(&mut self, _now: Instant) -> Result<Output, ()> {
        self.outputs += 1;
        Ok(Output { moved: false, left: self.left })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(Instant::from_millis(70))
    }

    fn waits_for_room(&self) -> bool {
        self.left == Left::DeviceFull
    }

    fn poll_file_request(&mut self) -> Option<FileRequest> {
        self.wants.pop()
    }

    fn handle_file_data(&mut self, _now: Instant, token: u64, data: Result<Bytes, FileError>) {
        self.got.push((token, data.map(|data| data.len())));
    }

    fn memory_used(&self) -> usize {
        0
    }

    fn refused(&self) -> u64 {
        0
    }

    fn unfinished(&self) -> usize {
        0
    }

    fn abort_all(&mut self, _now: Instant) -> usize {
        0
    }
}

/// Takes `room` operations, and answers each reading with as many bytes as were asked for.
struct Shelf {
    room: usize,
    done: Vec<FileDone>,
    /// As it is submitted, without telling anybody.
    at_once: bool,
}

impl Files for Shelf {
    fn submit(&mut self, owner: Owner, tag: u64, op: FileOp) -> Result<(), FileOp> {
        if self.room == 0 {
            return Err(op);
        }
        self.room -= 1;
        let FileOp::Read { len, .. } = op else { return Err(op) };
        let result = Ok(FileReply::Data(vec![1; len].into()));
        self.done.insert(0, FileDone { owner, tag, result });
        Ok(())
    }

    fn poll_done(&mut self) -> Option<FileDone> {
        self.done.pop()
    }

    fn has_done(&self) -> bool {
        self.at_once && !self.done.is_empty()
    }
}

#[derive(Default)]
struct Noting {
    events: usize,
    files: Vec<u64>,
    timeouts: usize,
    at: Option<Instant>,
    asked: Cell<usize>,
    /// What it reads again and again.
    reads: Option<usize>,
}

impl Service for Noting {
    fn start(&mut self, _ctx: &mut Context<'_>) -> Result<(), StartError> {
        Ok(())
    }

    fn handle_event(&mut self, _ctx: &mut Context<'_>, _event: Event) {
        self.events += 1;
    }

    fn handle_file(&mut self, ctx: &mut Context<'_>, done: FileDone) {
        self.files.push(done.tag);
        if let Some(len) = self.reads {
            let op = FileOp::Read { file: FileId::new(0, 0), offset: 0, len };
            ctx.files.submit(done.owner, done.tag, op).unwrap();
        }
    }

    fn handle_timeout(&mut self, _ctx: &mut Context<'_>) {
        self.timeouts += 1;
        self.at = None;
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.asked.set(self.asked.get() + 1);
        self.at
    }

    fn drain(&mut self, _ctx: &mut Context<'_>) {}

    fn is_idle(&self) -> bool {
        true
    }
}

/// A clock that a test sets.
struct Clock(Instant);

impl Host for Clock {
    fn now(&mut self) -> Instant {
        self.0
    }

    fn wall_ns(&mut self) -> i64 {
        0
    }

    fn random(&mut self) -> u64 {
        4
    }
}

fn request(token: u64) -> FileRequest {
    FileRequest { token, file: FileId::new(0, 0), offset: 0, len: 2 }
}

fn serving<F: Files>(files: F) -> Loop<Scripted, F, Noting> {
    let engine = Scripted {
        net: MemoryNet::new(),
        wants: Vec::new(),
        got: Vec::new(),
        left: Left::Nothing,
        more: false,
        outputs: 0,
    };
    Loop::new(engine, files, Noting::default())
}

#[test]
fn a_file_request_without_room_is_asked_for_again_and_none_is_lost() {
    let mut serving = serving(Shelf { room: 1, done: Vec::new(), at_once: false });
    let mut clock = Clock(Instant::from_millis(1));
    serving.engine.wants = vec![request(3), request(2), request(1)];
    assert_eq!(serving.serve(&mut clock), Ok(true));
    assert_eq!(serving.engine.wants, [request(3)], "one was taken, one is remembered, one was not asked for");
    assert_eq!(serving.serve(&mut clock), Ok(true));
    assert_eq!(serving.engine.got, [(1, Ok(2))]);
    assert_eq!(serving.serve(&mut clock), Ok(false));
    serving.files.room = 9;
    assert_eq!(serving.serve(&mut clock), Ok(true));
    assert_eq!(serving.serve(&mut clock), Ok(true));
    assert_eq!(serving.engine.got, [(1, Ok(2)), (2, Ok(2)), (3, Ok(2))]);
    assert!(serving.services.files.is_empty(), "what the engine asked for is no server's");
}

#[test]
fn what_is_read_at_once_leaves_in_the_same_turn_and_a_turn_has_a_bound() {
    let mut serving = serving(Shelf { room: 99, done: Vec::new(), at_once: true });
    let mut clock = Clock(Instant::from_millis(1));
    let len = 256 << 10;
    serving.engine.wants = (0..9).map(|token| FileRequest { len, ..request(token) }).collect();
    assert_eq!(serving.serve(&mut clock), Ok(true));
    assert_eq!(serving.engine.got.len(), 4, "a mebibyte");
    assert_eq!(serving.serve(&mut clock), Ok(true));
    assert_eq!(serving.serve(&mut clock), Ok(true));
    assert_eq!(serving.engine.got.len(), 9);
    assert_eq!(serving.serve(&mut clock), Ok(false));
    // Submitted outside a turn: it does not sleep before that is handed out.
    serving.files.submit(Owner(1), 7, FileOp::Read { file: FileId::new(0, 0), offset: 0, len: 2 }).unwrap();
    assert!(serving.arm(clock.0));
    assert_eq!(serving.serve(&mut clock), Ok(true));
    assert!(!serving.arm(clock.0));
    assert_eq!(serving.services.files, [7]);
}

#[test]
fn a_server_that_reads_on_and_on_gives_packets_their_turn() {
    let mut serving = serving(Shelf { room: usize::MAX, done: Vec::new(), at_once: true });
    let mut clock = Clock(Instant::from_millis(1));
    let len = 100 << 10;
    serving.services_mut().reads = Some(len);
    serving.files.submit(Owner(1), 7, FileOp::Read { file: FileId::new(0, 0), offset: 0, len }).unwrap();
    assert!(serving.hand_out_files(&mut clock));
    assert_eq!(serving.services.files.len(), 3, "a quarter of a mebibyte, and one piece more at most");
    assert_eq!(serving.serve(&mut clock), Ok(true));
    assert!(serving.services.files.len() <= 12);
    assert_eq!(serving.settle(&mut clock), Ok(false), "nor does it sleep");
}

#[test]
fn an_answer_that_is_no_data_is_an_error_to_the_engine() {
    let mut serving = serving(Shelf { room: 0, done: Vec::new(), at_once: false });
    for (tag, result) in [(1, Ok(FileReply::Done)), (2, Err(FileError::Stale))] {
        serving.files.done.insert(0, FileDone { owner: Owner::TRANSPORT, tag, result });
    }
    serving.files.done.insert(0, FileDone { owner: Owner(1), tag: 9, result: Ok(FileReply::Done) });
    assert_eq!(serving.serve(&mut Clock(Instant::ZERO)), Ok(true));
    assert_eq!(serving.engine.got, [(1, Err(FileError::Io)), (2, Err(FileError::Stale))]);
    assert_eq!(serving.services.files, [9]);
}

#[test]
fn deadlines_are_of_engine_and_servers_and_each_fires_once() {
    let mut serving = serving(MemoryFiles::new());
    assert_eq!(serving.poll_timeout(), Some(Instant::from_millis(70)));
    serving.services_mut().at = Some(Instant::from_millis(5));
    assert_eq!(serving.poll_timeout(), Some(Instant::from_millis(5)));
    assert_eq!(serving.serve(&mut Clock(Instant::from_millis(4))), Ok(false));
    assert_eq!(serving.serve(&mut Clock(Instant::from_millis(5))), Ok(true));
    assert_eq!(serving.serve(&mut Clock(Instant::from_millis(6))), Ok(false));
    assert_eq!((serving.services.timeouts, serving.engine.outputs), (1, 3));
}

#[test]
fn servers_are_asked_again_when_they_are_due_only_after_one_was_called() {
    let mut serving = serving(Shelf { room: 9, done: Vec::new(), at_once: false });
    let mut clock = Clock(Instant::from_millis(1));
    for step in 0..4 {
        match step {
            1 => serving.engine.net.event(Owner(1), Source::Udp(UdpId::new(1, 0)), Ready::READABLE),
            2 => serving.files.done.push(FileDone { owner: Owner(1), tag: 9, result: Ok(FileReply::Done) }),
            3 => serving.services_mut().at = Some(clock.0),
            _ => {}
        }
        serving.serve(&mut clock).unwrap();
        serving.serve(&mut clock).unwrap();
        // A deadline is found, and the servers called, in the last step.
        let due = usize::from(step == 3);
        assert_eq!((serving.services.asked.get(), serving.services.timeouts), (step + 1 + due, due));
        assert_eq!(serving.poll_timeout(), Some(Instant::from_millis(70)));
    }
}

/// A clock that counts how often it was read.
struct Counting(u64);

impl Host for Counting {
    fn now(&mut self) -> Instant {
        self.0 += 1;
        Instant::from_millis(self.0)
    }

    fn wall_ns(&mut self) -> i64 {
        0
    }

    fn random(&mut self) -> u64 {
        4
    }
}

#[test]
fn a_short_turn_reads_the_clock_once_and_each_turn_anew() {
    let mut serving = serving(Shelf { room: 99, done: Vec::new(), at_once: false });
    let mut host = Counting(0);
    let mut readings = 0;
    // Each eight events more, and what was read of files, take their time.
    for (events, reads, expected) in [(0, 0, 1), (1, 0, 1), (8, 0, 1), (9, 0, 2), (25, 0, 4), (1, 2, 2)] {
        for index in 0..events {
            let source = Source::Udp(UdpId::new(index, 0));
            serving.engine.net.event(Owner(1), source, Ready::READABLE);
        }
        serving.engine.wants = (0..reads).map(request).collect();
        serving.take_in(&mut host).unwrap();
        serving.serve(&mut host).unwrap();
        assert_eq!(host.0 - readings, expected, "{events} events, {reads} reads");
        readings = host.0;
    }
    // By itself as well, as who only saves what is left does.
    serving.files.done.clear();
    serving.serve(&mut host).unwrap();
    assert_eq!(host.0, readings + 1);
}

#[test]
fn only_what_would_move_keeps_the_loop_awake() {
    let mut serving = serving(MemoryFiles::new());
    let mut clock = Clock(Instant::ZERO);
    for (left, awake, idle) in
        [(Left::Nothing, false, true), (Left::DeviceFull, false, false), (Left::More, true, true)]
    {
        serving.engine.left = left;
        assert_eq!((serving.serve(&mut clock), serving.is_idle()), (Ok(awake), idle), "{left:?}");
    }
}

#[test]
fn events_beyond_the_budget_wait_for_the_next_turn() {
    let mut serving = serving(MemoryFiles::new());
    serving.engine.left = Left::Nothing;
    let mut clock = Clock(Instant::ZERO);
    for index in 0..PER_TURN as u32 + 5 {
        let source = Source::Udp(UdpId::new(index, 0));
        serving.engine.net.event(Owner(1), source, Ready::READABLE);
    }
    assert_eq!(serving.serve(&mut clock), Ok(true));
    assert_eq!(serving.services.events, PER_TURN);
    assert_eq!(serving.serve(&mut clock), Ok(true));
    assert_eq!(serving.services.events, PER_TURN + 5);
}

#[test]
fn a_turn_is_settled_when_nothing_it_led_to_is_left() {
    let mut clock = Clock(Instant::ZERO);
    for (left, more, settled) in [
        (Left::Nothing, false, true),
        (Left::DeviceFull, false, true),
        (Left::More, false, false),
        (Left::Nothing, true, false),
    ] {
        let mut serving = serving(Shelf { room: 9, done: Vec::new(), at_once: false });
        (serving.engine.left, serving.engine.more) = (left, more);
        assert_eq!(serving.take_in(&mut clock), Ok(false));
        serving.serve(&mut clock).unwrap();
        // Sending has led to an event, and to a request whose answer is there at once.
        serving.engine.net.event(Owner(1), Source::Udp(UdpId::new(1, 0)), Ready::SENT);
        serving.engine.wants = vec![request(1)];
        assert_eq!(serving.settle(&mut clock), Ok(settled), "{left:?} {more}");
        let did = !more;
        assert_eq!(serving.services.events, usize::from(did));
        assert_eq!(serving.engine.got.len(), usize::from(did));
        assert_eq!(serving.engine.outputs, if did { 3 } else { 1 });
    }
}

#[test]
fn what_does_not_come_to_rest_is_not_settled() {
    let mut serving = serving(Shelf { room: usize::MAX, done: Vec::new(), at_once: false });
    let mut clock = Clock(Instant::ZERO);
    serving.serve(&mut clock).unwrap();
    // Each answer is followed by another.
    serving.files.done =
        (0..99).map(|tag| FileDone { owner: Owner(1), tag, result: Ok(FileReply::Done) }).collect();
    serving.engine.wants = (0..99).map(request).collect();
    assert_eq!(serving.settle(&mut clock), Ok(true));
    for index in 0..(SETTLE_ROUNDS * PER_TURN) as u32 + 1 {
        serving.engine.net.event(Owner(1), Source::Udp(UdpId::new(index, 0)), Ready::READABLE);
    }
    assert_eq!(serving.settle(&mut clock), Ok(false));
}
