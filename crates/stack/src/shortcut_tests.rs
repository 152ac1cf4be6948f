//! What is done once for several segments, or left out where nothing can have changed, leads to the same as doing all for each:
//! the same transfers with and without it, compared after every step.

use crate::tcp::{compared, exchanges};
use crate::{Node, NodeConfig, StackConfig, StackPools};
use alloc::collections::VecDeque;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::time::Duration;
use linerate_nic::{
    Capabilities, ChecksumStatus, Device, DeviceError, Frame, MacAddr, Pool, Port, PortConfig, QueuePair,
    RxBatch, RxMeta, TxQueue, TxToken,
};
use linerate_transport::{
    BufferSize, ConnId, Engine as _, ListenAddr, ListenOptions, ListenerId, Owner, Payload, SocketOptions,
    Transport as _,
};
use linerate_wire::units::Instant;
use proptest::prelude::*;

type Frames = Rc<RefCell<VecDeque<Vec<u8>>>>;

/// One end of the wire.
struct Wire {
    last: u8,
    /// Frames that it still gives in this turn.
    batch: usize,
    pool: Pool,
    arriving: Frames,
    leaving: Frames,
    /// Frames that `leaving` holds at most.
    ring: usize,
    left: VecDeque<TxToken>,
}

impl Device for Wire {
    fn mac(&self) -> MacAddr {
        MacAddr([2, 0, 0, 0, 0, self.last])
    }

    fn mtu(&self) -> usize {
        1_500
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { tx_checksum4: true, tx_checksum6: true, rx_checksum: true, ..Capabilities::NONE }
    }

    fn enable(&mut self, _wanted: Capabilities) -> Result<(), DeviceError> {
        Ok(())
    }
}

impl QueuePair for Wire {
    fn enabled(&self) -> Capabilities {
        self.capabilities()
    }

    fn receive(&mut self, _now: Instant, batch: &mut RxBatch) -> Result<usize, DeviceError> {
        let before = batch.len();
        while self.batch > 0
            && !batch.is_full()
            && let Some(bytes) = self.arriving.borrow_mut().pop_front()
        {
            self.batch -= 1;
            let Some(mut buffer) = self.pool.take() else { continue };
            buffer.bytes_mut()[..bytes.len()].copy_from_slice(&bytes);
            let meta = RxMeta { checksum: ChecksumStatus::Good, ..RxMeta::default() };
            batch.push(Frame::new(buffer.freeze(0..bytes.len()), meta)).expect("room");
        }
        Ok(batch.len() - before)
    }

    fn transmit(&mut self, _now: Instant, queue: &mut TxQueue) -> Result<usize, DeviceError> {
        let before = queue.len();
        while self.leaving.borrow().len() < self.ring
            && let Some(packet) = queue.front()
        {
            let mut bytes = vec![0; packet.len()];
            packet.linearise(&mut bytes).expect("room");
            self.leaving.borrow_mut().push_back(bytes);
            if packet.meta.token != TxToken(0) {
                self.left.push_back(packet.meta.token);
            }
            queue.pop();
        }
        Ok(before - queue.len())
    }

    fn poll_completion(&mut self) -> Option<TxToken> {
        self.left.pop_front()
    }
}

#[derive(Clone, Debug)]
struct Case {
    seed: u32,
    steps: usize,
    /// Frames lost, overtaken and marked, per thousand.
    faults: [u32; 3],
    ring: usize,
    buffers: usize,
    buffer: usize,
    super_segment: usize,
    completions: bool,
    ipv6: bool,
    /// Each end sends little, and only once all of it has been acknowledged.
    turns: bool,
}

fn case() -> impl Strategy<Value = Case> {
    let faults = prop_oneof![1 => Just([0; 3]), 1 => [0u32..40, 0u32..100, 0u32..60]];
    let sizes = (1usize..24, 40usize..200, 8_000usize..100_000, prop_oneof![Just(0usize), Just(20_000)]);
    (any::<u32>(), 100usize..500, faults, sizes, any::<[bool; 3]>()).prop_map(
        |(seed, steps, faults, (ring, buffers, buffer, super_segment), [completions, ipv6, turns])| Case {
            seed,
            steps,
            faults,
            ring,
            buffers,
            buffer,
            super_segment,
            completions,
            ipv6,
            turns,
        },
    )
}

struct Side {
    node: Node<Wire>,
    listener: Option<ListenerId>,
    conn: Option<ConnId>,
    /// What its application heard and read.
    told: String,
    read: u64,
}

struct Run {
    case: Case,
    state: u32,
    now: Instant,
    sides: [Side; 2],
    wires: [Frames; 2],
}

impl Run {
    fn new(case: &Case) -> Run {
        let wires = [Frames::default(), Frames::default()];
        let side = |last: u8| {
            let pool = Pool::new(case.buffers, 2_048);
            let (mine, other) = (usize::from(last - 1), usize::from(2 - last));
            let device = Wire {
                last,
                batch: 0,
                pool: pool.clone(),
                arriving: Rc::clone(&wires[mine]),
                leaving: Rc::clone(&wires[other]),
                ring: case.ring,
                left: VecDeque::new(),
            };
            let mut port = Port::new(device, PortConfig::default()).unwrap();
            port.set_offloads(Capabilities { rx_coalescing: false, ..Capabilities::ALL }).unwrap();
            let config = StackConfig {
                addresses: [format!("10.0.0.{last}/24"), format!("fd00::{last}/64")]
                    .map(|cidr| cidr.parse().unwrap())
                    .into(),
                dad_transmits: 0,
                max_super_segment: case.super_segment,
                completions: case.completions,
                ..StackConfig::default()
            };
            let pools = StackPools::for_memory(config.memory).with_receive(pool);
            let node = Node::new(port, config, [last; 32], pools, NodeConfig::default());
            Side { node, listener: None, conn: None, told: String::new(), read: 0 }
        };
        let sides = [side(1), side(2)];
        let mut run =
            Run { case: case.clone(), state: case.seed, now: Instant::from_millis(1), sides, wires };
        let size = BufferSize::Fixed(case.buffer);
        let socket = SocketOptions { send_buffer: size, receive_buffer: size, ..SocketOptions::default() };
        let options = ListenOptions { socket: socket.clone(), ..ListenOptions::default() };
        let any = ListenAddr { ip: None, port: 80 };
        run.sides[1].listener = run.sides[1].node.stack.listen(Owner(1), any, &options).ok();
        let to = if case.ipv6 { "[fd00::2]:80" } else { "10.0.0.2:80" };
        run.sides[0].conn =
            run.sides[0].node.stack.connect(Owner(1), None, to.parse().unwrap(), &socket).ok();
        run
    }

    fn random(&mut self, below: u32) -> u32 {
        self.state = self.state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.state >> 12) % below.max(1)
    }

    /// Loses, overtakes and marks frames on their way to one side.
    fn disturb(&mut self, side: usize) {
        let [lost, overtaken, marked] = self.case.faults;
        let wire = Rc::clone(&self.wires[side]);
        if self.random(1_000) < lost {
            wire.borrow_mut().pop_front();
        }
        if self.random(1_000) < overtaken && wire.borrow().len() > 1 {
            wire.borrow_mut().swap(0, 1);
        }
        if self.random(1_000) < marked
            && let Some(frame) = wire.borrow_mut().front_mut()
            && frame[12..14] == [0x86, 0xdd]
        {
            frame[15] |= 0x30;
        }
    }

    fn step(&mut self) {
        let side = self.random(2) as usize;
        let (what, amount, later) = (self.random(8), self.random(20), self.random(400));
        self.disturb(side);
        let now = self.now;
        let Side { node, listener, conn, told, read } = &mut self.sides[side];
        match (what, *conn) {
            (0..=2, _) => {
                node.port.device_mut().batch = 1 + amount as usize / 2;
                node.input(now).unwrap();
                while let Some(event) = node.stack.poll_event() {
                    told.push_str(&format!("{event:?}"));
                }
                *conn = conn.or_else(|| node.stack.accept((*listener)?));
            }
            (3 | 4, _) => drop(node.output(now).unwrap()),
            (5, Some(id)) => {
                // Both send, the first more.
                let len = if side == 0 && !self.case.turns { amount * 700 } else { amount * 30 } as usize;
                if self.case.turns && node.stack.unsent(id) > 0 {
                    return;
                }
                let result = node.stack.send(id, Payload::Shared(vec![side as u8; len].into()));
                told.push_str(&format!("{result:?}"));
            }
            (6, Some(id)) => {
                for _ in 0..amount {
                    let len = node.stack.peek(id).len();
                    node.stack.consume(id, len);
                    *read += len as u64;
                }
            }
            _ => {
                let later = if amount == 0 { later * 150 } else { later };
                self.now += Duration::from_micros(later.into());
            }
        }
    }

    /// All that can be told of both sides.
    fn shown(&self) -> String {
        let show = |side: &Side| {
            let stack = &side.node.stack;
            let conn = side.conn.and_then(|id| stack.conns.table.at(id.index()));
            let conn = conn.and_then(|conn| conn.tcp.connection());
            format!(
                "{} {} {:?} {:?} {conn:?} {:?} {:?}\n",
                side.told,
                side.read,
                stack.poll_timeout(),
                stack.counters(),
                stack.memory(),
                side.node.wants_transmit()
            )
        };
        let wires = self.wires.each_ref().map(|wire| wire.borrow().clone());
        format!("{} {} {wires:?}", show(&self.sides[0]), show(&self.sides[1]))
    }
}

/// What is there after each step, and how much was moved.
fn run(case: &Case) -> (Vec<String>, u64) {
    let mut run = Run::new(case);
    let mut shown = Vec::new();
    for _ in 0..case.steps {
        run.step();
        shown.push(run.shown());
    }
    (shown, run.sides[0].read + run.sides[1].read)
}

#[test]
fn most_is_moved_the_short_way() {
    let case = Case {
        seed: 1,
        steps: 4_000,
        faults: [0; 3],
        ring: 16,
        buffers: 100,
        buffer: 60_000,
        super_segment: 20_000,
        completions: true,
        ipv6: false,
        turns: false,
    };
    let (_, moved) = run(&case);
    assert!(moved > 1_000_000, "{moved}");
    exchanges();
    let (_, moved) = run(&Case { turns: true, ..case });
    let exchanges = exchanges();
    assert!(moved > 20_000 && exchanges > 100, "{moved} bytes, {exchanges} exchanges");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn the_short_way_is_the_long_way(case in case()) {
        let (short, long) = (compared(false, || run(&case)), compared(true, || run(&case)));
        for (step, (short, long)) in short.0.iter().zip(&long.0).enumerate() {
            prop_assert_eq!(short, long, "step {}", step);
        }
    }
}
