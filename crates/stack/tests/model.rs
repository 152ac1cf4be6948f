//! Two stacks against the simplest model of what they do: two lists of bytes, and who said that it has no more.
//!
//! A case is a list of calls, of faults of the network, and of time. After each, what the applications and the wire see
//! must be what the model allows. A few hundred cases run each time; `PROPTEST_CASES=20000 cargo test --release -p
//! linerate-stack --test model` runs more. A failure prints the shortest list that shows it.

mod common;

use common::{Setup, World, file_bytes, shown};
use core::time::Duration;
use linerate_nic::loopback::Verdict;
use linerate_nic::{Capabilities, Frame};
use linerate_stack::Stack;
use linerate_transport::{
    BufferSize, Bytes, ConnId, ConnState, FileId, FileRange, Payload, SendError, SocketOptions, Transport,
};
use linerate_wire::tcp::{self, Flags};
use linerate_wire::{ethernet, ipv4};
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// One of the two ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    Client,
    Server,
}

#[derive(Clone, Debug)]
enum Step {
    Send(Side, usize),
    Write(Side, usize),
    SendFile(Side, u64),
    Read(Side, usize),
    Shutdown(Side),
    Close(Side),
    Abort(Side),
    SetBuffers(Side, usize),
    Pass(u64),
    /// What the network does with the next TCP frames of a side.
    Faults(Side, Vec<Fault>),
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    None,
    Drop,
    Duplicate,
    Delay(u64),
    Corrupt(u16, u8),
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Client), Just(Side::Server)]
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        3 => Just(Fault::None),
        2 => Just(Fault::Drop),
        1 => Just(Fault::Duplicate),
        1 => (1u64..50).prop_map(Fault::Delay),
        1 => (14u16..1_600, 1u8..=255).prop_map(|(at, mask)| Fault::Corrupt(at, mask)),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (side(), 0usize..60_000).prop_map(|(side, len)| Step::Send(side, len)),
        4 => (side(), 0usize..5_000).prop_map(|(side, len)| Step::Write(side, len)),
        2 => (side(), 0u64..200_000).prop_map(|(side, len)| Step::SendFile(side, len)),
        8 => (side(), 0usize..100_000).prop_map(|(side, len)| Step::Read(side, len)),
        1 => side().prop_map(Step::Shutdown),
        1 => (side(), 4_000usize..200_000).prop_map(|(side, size)| Step::SetBuffers(side, size)),
        8 => (0u64..400).prop_map(Step::Pass),
        8 => (side(), prop::collection::vec(fault(), 1..12)).prop_map(|(side, faults)| Step::Faults(side, faults)),
    ]
}

/// Most cases end in order; some end by `close` or `abort` at some point.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let ending = prop_oneof![
        4 => Just(None),
        1 => side().prop_map(|side| Some(Step::Close(side))),
        1 => side().prop_map(|side| Some(Step::Abort(side))),
    ];
    (prop::collection::vec(step(), 1..60), ending, any::<prop::sample::Index>()).prop_map(
        |(mut steps, ending, at)| {
            if let Some(ending) = ending {
                steps.insert(at.index(steps.len()), ending);
            }
            steps
        },
    )
}

/// One direction as the model knows it.
#[derive(Default)]
struct Stream {
    bytes: Vec<u8>,
    read: usize,
    is_ended: bool,
}

/// What is on the wire, seen from one end: its last acknowledgement, and how far the other may send.
#[derive(Clone, Copy, Default)]
struct Wire {
    scale: u8,
    acked: Option<u32>,
    edge: Option<u32>,
}

/// What the network does to a side's frames, and what it has seen.
struct Network {
    faults: [VecDeque<Fault>; 2],
    wires: [Wire; 2],
}

impl Network {
    /// Checks a frame of `side` and says what becomes of it.
    fn judge(&mut self, side: usize, frame: &Frame) -> Verdict {
        let Ok(header) = ethernet::Header::parse(frame.data.bytes()) else { return Verdict::Deliver };
        let Ok(packet) = ipv4::Header::parse_quoted(header.payload()) else { return Verdict::Deliver };
        let Ok(segment) = tcp::Header::parse(packet.payload()) else { return Verdict::Deliver };
        let len = usize::from(packet.total_len()) - packet.header_len() - segment.header_len();
        self.watch(side, &segment, len);
        match self.faults[side].pop_front() {
            None | Some(Fault::None) => Verdict::Deliver,
            Some(Fault::Drop) => Verdict::Drop,
            Some(Fault::Duplicate) => Verdict::Duplicate,
            Some(Fault::Delay(ms)) => Verdict::Delay(Duration::from_millis(ms)),
            Some(Fault::Corrupt(at, mask)) => Verdict::Corrupt { at: usize::from(at), mask },
        }
    }

    fn watch(&mut self, side: usize, segment: &tcp::Header<'_>, len: usize) {
        let flags = segment.flags();
        if flags.contains(Flags::RST) {
            return;
        }
        if let Some(edge) = self.wires[1 - side].edge {
            let end = segment.sequence().0.wrapping_add(len as u32);
            let beyond = end.wrapping_sub(edge) as i32;
            assert!(len == 0 || beyond <= 1, "{beyond} bytes beyond the window");
        }
        let wire = &mut self.wires[side];
        if flags.contains(Flags::SYN) {
            wire.scale = segment.options().window_scale.unwrap_or(0);
        }
        if !flags.contains(Flags::ACK) {
            return;
        }
        let acked = segment.acknowledgement().0;
        let back = wire.acked.map_or(0, |last| last.wrapping_sub(acked) as i32);
        assert!(back <= 0, "an acknowledgement goes back by {back}");
        wire.acked = Some(acked);
        let scale = if flags.contains(Flags::SYN) { 0 } else { wire.scale };
        let edge = acked.wrapping_add(u32::from(segment.window()) << scale);
        let shrunk = wire.edge.map_or(0, |last| last.wrapping_sub(edge) as i32);
        assert!(shrunk < 1 << scale, "the window shrinks by {shrunk}");
        // The greatest edge counts: what was promised once may be sent.
        if shrunk < 0 || wire.edge.is_none() {
            wire.edge = Some(edge);
        }
    }
}

/// The two stacks, the connection between them, and the model.
struct Case {
    world: World,
    conns: [Option<ConnId>; 2],
    /// By the side that sends.
    streams: [Stream; 2],
    network: Rc<RefCell<Network>>,
    /// Somebody closed, or aborted: the other may see an early end.
    is_cut: bool,
}

impl Case {
    fn new(offloads: bool, delay: u64) -> Case {
        let offloads = if offloads { Capabilities::ALL } else { Capabilities::NONE };
        let mut setup = Setup { offloads, receive_buffers: 512, ..Setup::default() };
        for config in &mut setup.config {
            config.memory = 2 << 20;
            config.max_connections = 8;
        }
        let mut world = World::new(setup);
        let network = Network { faults: Default::default(), wires: Default::default() };
        let network = Rc::new(RefCell::new(network));
        for (side, host) in [&world.a, &world.b].into_iter().enumerate() {
            let network = Rc::clone(&network);
            host.port.device().set_delay(Duration::from_millis(delay));
            host.port.device().set_hook(move |frame| network.borrow_mut().judge(side, frame));
        }
        let (client, server) = world.connected("10.0.0.2:80");
        let conns = [Some(client), Some(server)];
        Case { world, conns, streams: Default::default(), network, is_cut: false }
    }

    fn stack(&mut self, side: usize) -> &mut Stack {
        if side == 0 { &mut self.world.a.stack } else { &mut self.world.b.stack }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Send(side, len) => {
                let bytes = self.fresh(*side as usize, *len);
                self.offer(*side as usize, bytes.clone(), |stack, conn| {
                    stack.send(conn, Payload::Shared(Bytes::from(bytes)))
                });
            }
            Step::Write(side, len) => {
                let bytes = self.fresh(*side as usize, *len);
                self.offer(*side as usize, bytes.clone(), |stack, conn| stack.write(conn, &bytes));
            }
            Step::SendFile(side, len) => {
                let offset = self.streams[*side as usize].bytes.len() as u64;
                let range = FileRange { file: FileId::new(0, 0), offset, len: *len };
                let bytes = file_bytes(offset, *len as usize);
                self.offer(*side as usize, bytes, |stack, conn| stack.send(conn, Payload::File(range)));
            }
            Step::Read(side, len) => self.read(*side as usize, *len),
            Step::Shutdown(side) => {
                if let Some(conn) = self.conns[*side as usize] {
                    self.stack(*side as usize).shutdown(conn);
                    self.streams[*side as usize].is_ended = true;
                }
            }
            Step::Close(side) => self.let_go(*side as usize, |stack, conn| stack.close(conn)),
            Step::Abort(side) => self.let_go(*side as usize, |stack, conn| stack.abort(conn)),
            Step::SetBuffers(side, size) => {
                let options = SocketOptions {
                    send_buffer: BufferSize::Fixed(*size),
                    receive_buffer: BufferSize::Fixed(*size),
                    ..SocketOptions::default()
                };
                if let Some(conn) = self.conns[*side as usize] {
                    self.stack(*side as usize).set_options(conn, &options);
                }
            }
            Step::Pass(ms) => self.world.pass(Duration::from_millis(*ms)),
            Step::Faults(side, faults) => {
                self.network.borrow_mut().faults[*side as usize].extend(faults.iter().copied());
            }
        }
        self.world.exchange();
        self.check();
    }

    /// Bytes that differ from stream to stream and from place to place.
    fn fresh(&self, side: usize, len: usize) -> Vec<u8> {
        let start = self.streams[side].bytes.len() as u64 * 31 + side as u64 * 7;
        (start..start + len as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
    }

    fn offer(
        &mut self,
        side: usize,
        bytes: Vec<u8>,
        send: impl FnOnce(&mut Stack, ConnId) -> Result<(), SendError>,
    ) {
        let Some(conn) = self.conns[side] else { return };
        let stack = self.stack(side);
        let (room, is_open) = (stack.sendable(conn), matches!(stack.state(conn), ConnState::Open { .. }));
        let result = send(stack, conn);
        let is_ended = self.streams[side].is_ended;
        match result {
            Ok(()) => {
                assert!(is_open && !is_ended, "sent on a closed connection");
                self.streams[side].bytes.extend_from_slice(&bytes);
            }
            Err(SendError::Closed) => assert!(!is_open || is_ended, "open, and refused as closed"),
            Err(SendError::Full) => assert!(is_open && !is_ended),
            Err(SendError::TooLong) => panic!("{} bytes are not too long", bytes.len()),
        }
        assert!(is_open && !is_ended || room == 0, "room for {room} bytes on a closed connection");
    }

    fn read(&mut self, side: usize, most: usize) {
        let Some(conn) = self.conns[side] else { return };
        let mut left = most;
        while left > 0 {
            let piece = self.stack(side).peek(conn).to_vec();
            let len = piece.len().min(left);
            if len == 0 {
                break;
            }
            let stream = &mut self.streams[1 - side];
            let expected = stream.bytes.get(stream.read..stream.read + len).expect("bytes that nobody sent");
            assert!(piece[..len] == *expected, "wrong bytes at {}", stream.read);
            stream.read += len;
            self.stack(side).consume(conn, len);
            left -= len;
        }
    }

    fn let_go(&mut self, side: usize, end: impl FnOnce(&mut Stack, ConnId)) {
        if let Some(conn) = self.conns[side].take() {
            end(self.stack(side), conn);
            self.is_cut = true;
            self.streams[side].is_ended = true;
        }
    }

    /// What must be true after every step.
    fn check(&mut self) {
        for side in 0..2 {
            let memory = self.stack(side).memory();
            assert!(memory.used <= memory.limit, "{memory:?}");
            let Some(conn) = self.conns[side] else { continue };
            let stack = self.stack(side);
            let (readable, piece) = (stack.readable(conn), stack.peek(conn).len());
            let (state, unsent) = (stack.state(conn), stack.unsent(conn));
            assert_eq!(readable > 0, piece > 0);
            assert!(piece <= readable && memory.used >= readable);
            let incoming = &self.streams[1 - side];
            assert!(incoming.read + readable <= incoming.bytes.len(), "more than was sent");
            if state == (ConnState::Open { finished: true }) {
                assert!(incoming.is_ended, "an end that nobody made");
                assert_eq!(incoming.read + readable, incoming.bytes.len(), "an end before the end");
            }
            if let ConnState::Closed(reason) = state {
                let all = self.streams.iter().all(|stream| stream.is_ended);
                assert!(self.is_cut || all, "closed for {reason:?}, and nobody did");
                continue;
            }
            let info = self.stack(side).info(conn).expect("it is ours");
            let outgoing = &self.streams[side];
            assert_eq!(info.bytes_acked + unsent, outgoing.bytes.len() as u64);
            if let Some(other) = self.conns[1 - side] {
                let other = self.stack(1 - side).info(other).expect("it is theirs");
                assert!(info.bytes_acked <= other.bytes_received, "acknowledged, and not received");
            }
        }
        self.check_idle();
    }

    /// When nothing is queued, no memory is held.
    fn check_idle(&mut self) {
        let [Some(client), Some(server)] = self.conns else { return };
        let idle = |stack: &Stack, conn| stack.unsent(conn) == 0 && stack.readable(conn) == 0;
        let (a, b) = (&self.world.a.stack, &self.world.b.stack);
        if idle(a, client) && idle(b, server) {
            assert_eq!((a.memory().used, b.memory().used), (0, 0), "memory held for nothing");
        }
    }

    /// The network heals, everybody reads and has no more: everything must have arrived, and nothing be left.
    fn finish(mut self) {
        self.network.borrow_mut().faults = Default::default();
        for side in 0..2 {
            if let Some(conn) = self.conns[side] {
                self.stack(side).shutdown(conn);
                self.streams[side].is_ended = true;
            }
        }
        // Within the user timeout, and the timeouts that the faults have led to.
        for _ in 0..600 {
            (0..2).for_each(|side| self.read(side, usize::MAX));
            self.world.pass(Duration::from_millis(100));
            self.check();
        }
        if !self.is_cut {
            for stream in &self.streams {
                let (read, sent) = (stream.read, stream.bytes.len());
                let counters = (shown(self.world.a.stack.counters()), shown(self.world.b.stack.counters()));
                assert_eq!(read, sent, "not all arrived: {counters:?}");
            }
        }
        for side in 0..2 {
            if let Some(conn) = self.conns[side].take() {
                self.stack(side).close(conn);
            }
        }
        self.world.pass(Duration::from_secs(200));
        for side in 0..2 {
            let memory = self.stack(side).memory();
            assert_eq!((memory.used, memory.connections), (0, 0), "{memory:?}");
            assert_eq!(memory.pages.free, memory.pages.total);
        }
        assert_eq!(self.world.pool.free(), self.world.pool.stats().total);
    }
}

proptest! {
    #[test]
    fn two_stacks_do_what_two_lists_of_bytes_do(
        steps in steps(),
        offloads in any::<bool>(),
        delay in prop_oneof![Just(0u64), Just(1), Just(10)],
    ) {
        let mut case = Case::new(offloads, delay);
        for step in &steps {
            case.step(step);
        }
        case.finish();
    }
}

#[test]
fn two_ends_that_probe_each_other_hear_each_other() {
    // Each took the byte of the other's window probe, which the other does not count as sent: the acknowledgements of
    // both lay one byte behind what was expected, and were dropped by both.
    let steps = [
        Step::SendFile(Side::Client, 131_057),
        Step::SendFile(Side::Server, 131_057),
        Step::Pass(184),
        Step::Pass(356),
    ];
    let mut case = Case::new(false, 1);
    steps.iter().for_each(|step| case.step(step));
    case.finish();
}
