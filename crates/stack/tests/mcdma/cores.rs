//! Two nodes on the two queues of one device, each with a loop of its own, and letters between them.

use super::*;
use crate::model::{Faults, Line};
use linerate_nic::{Interface, Joined, Member, Port, PortConfig, Steering};
use linerate_stack::{Message, Node, NodeConfig, Seat, StackPools};
use linerate_transport::{
    ConnId, ConnState, Engine as _, Left, ListenAddr, ListenOptions, Owner, SocketOptions, Source,
    Transport as _,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const OWNER: Owner = Owner(1);

/// Bytes that each client sends and wants back.
const LEN: usize = 60_000;
/// Bound of virtual time, as in the transfers of one queue.
const LIMIT: Duration = Duration::from_secs(1_200);

/// Ports at which the owner listens, the member, and both; in each list the first comes in on queue 0 and the second on queue 1.
const AT_OWNER: [u16; 2] = [80, 81];
const AT_MEMBER: [u16; 2] = [90, 91];
const AT_BOTH: [u16; 2] = [100, 101];

/// A node on one queue and the loop around it, which sleeps on its interrupt, its letters, and its deadline.
struct Core<D> {
    node: Node<D>,
    signal: Arc<AtomicBool>,
    letters: VecDeque<Message>,
    is_awake: bool,
    wake_at: Option<Instant>,
    /// What each connection has for its peer: what it has received, on the server.
    conns: BTreeMap<ConnId, Conn>,
    is_server: bool,
}

#[derive(Default)]
struct Conn {
    data: Vec<u8>,
    sent: usize,
    received: Vec<u8>,
    is_finished: bool,
    is_shut: bool,
}

impl<D: Interface> Core<D> {
    fn new(device: D, last: u8, seat: Seat, receive: &Pool, signal: Arc<AtomicBool>) -> Self {
        let port = Port::new(device, PortConfig::default()).expect("a port");
        let config = linerate_stack::StackConfig { seat, ..world::config(last) };
        let pools = StackPools::for_memory(config.memory).with_receive(receive.clone());
        let seed = [last + 10 * seat.index as u8; 32];
        let node = Node::new(port, config, seed, pools, NodeConfig::default());
        Core {
            node,
            signal,
            letters: VecDeque::new(),
            is_awake: true,
            wake_at: None,
            conns: BTreeMap::new(),
            is_server: last == 2,
        }
    }

    fn listen(&mut self, ports: &[u16]) {
        for &port in ports {
            let addr = ListenAddr { ip: None, port };
            self.node.stack.listen(OWNER, addr, &ListenOptions::default()).expect("free");
        }
    }

    fn wake_if_due(&mut self, now: Instant) {
        self.is_awake |= self.signal.load(Ordering::Relaxed) || !self.letters.is_empty();
        self.is_awake |= self.wake_at.is_some_and(|at| at <= now);
    }

    /// One turn of the loop, if it does not sleep; the letters that came of it.
    fn turn(&mut self, now: Instant) -> Vec<(usize, Message)> {
        self.wake_if_due(now);
        if !self.is_awake {
            return Vec::new();
        }
        self.wake_at = None;
        self.signal.store(false, Ordering::Relaxed);
        for message in std::mem::take(&mut self.letters) {
            self.node.stack.handle_message(now, message);
        }
        let input = self.node.input(now).expect("the device works");
        while let Some(event) = self.node.stack.poll_event() {
            if let Source::Listener(listener) = event.source {
                while let Some(conn) = self.node.stack.accept(listener) {
                    self.conns.insert(conn, Conn::default());
                }
            }
        }
        self.move_data();
        let output = self.node.output(now).expect("the device works");
        let seat = self.node.stack.seat();
        let mut letters = Vec::new();
        while let Some(letter) = self.node.stack.poll_letter() {
            let to = letter.to.seats(seat).map(usize::from);
            letters.extend(to.map(|seat| (seat, letter.message.clone())));
        }
        let moved = input.moved || input.more || output.moved || output.left == Left::More;
        if !moved && letters.is_empty() && !self.node.arm(now) {
            self.is_awake = false;
            self.wake_at = self.node.poll_timeout();
        }
        letters
    }

    /// Reads what there is, and sends what there is to send: on the server, what was read.
    fn move_data(&mut self) {
        let stack = &mut self.node.stack;
        for (&id, conn) in &mut self.conns {
            loop {
                let piece = stack.peek(id);
                if piece.is_empty() {
                    break;
                }
                let len = piece.len();
                conn.received.extend_from_slice(piece);
                if self.is_server {
                    conn.data.extend_from_slice(piece);
                }
                stack.consume(id, len);
            }
            while conn.sent < conn.data.len() {
                let piece = &conn.data[conn.sent..conn.data.len().min(conn.sent + 5_003)];
                if stack.write(id, piece).is_err() {
                    break;
                }
                conn.sent += piece.len();
            }
            match stack.state(id) {
                ConnState::Connecting => {}
                ConnState::Open { finished } => {
                    conn.is_finished |= finished;
                    let may_end = conn.sent == conn.data.len() && (finished || !self.is_server);
                    if may_end && !conn.is_shut {
                        conn.is_shut = true;
                        stack.shutdown(id);
                    }
                }
                ConnState::Closed(reason) => {
                    conn.is_finished = true;
                    assert_eq!(reason, linerate_transport::CloseReason::Done);
                }
            }
        }
    }
}

/// A server with two queues, a client with one, and the wire between them.
struct Cores {
    boards: [Board; 2],
    owner: Core<Joined<Control<Board>, Queue<Board>>>,
    member: Core<Member<Queue<Board>>>,
    client: Core<world::Device>,
    now: Instant,
}

fn steer(control: &mut Control<Board>, second: [u16; 3]) {
    let ports = second.map(|port| (port, 1));
    let steering = Steering { key: &[0; 40], indirection: &[0], ports: &ports };
    control.set_steering(&steering).expect("by ports");
}

impl Cores {
    fn new(seed: u64, faults: &Faults) -> Cores {
        let boards = [Board::new(seed), Board::new(seed + 1)];
        for board in &boards {
            board.with(|hardware| {
                hardware.access = Duration::from_nanos(100);
                hardware.faults = faults.clone();
            });
        }
        let signals = [(); 3].map(|()| Arc::new(AtomicBool::new(false)));
        let settings = Settings {
            queues: 2,
            transmit_ring: 64,
            receive_ring: 64,
            ..Settings::new(MacAddr([2, 0, 0, 0, 0, 2]))
        };
        let (mut control, queues) =
            open(boards[0].clone(), DESCRIPTORS, DESCRIPTORS_LEN, &settings).expect("opens");
        steer(&mut control, [AT_OWNER[1], AT_MEMBER[1], AT_BOTH[1]]);
        let [first, second]: [linerate_nic::mcdma::StoppedQueue<Board>; 2] =
            queues.try_into().ok().expect("two queues");
        let interrupts = [first.interrupt(), second.interrupt()];
        let [a, b, c] = signals.clone();
        boards[0].set_handler(move |line| {
            if let Line::Queue(queue) = line
                && interrupts[queue].handle()
            {
                [&a, &b][queue].store(true, Ordering::Relaxed);
            }
        });
        let pools = || (boards[0].pool(256, 2_048, true), boards[0].pool(96, 1_536, false));
        let [one, two] = [pools(), pools()];
        let first = first.start(one.0.clone(), one.1).expect("starts");
        let second = second.start(two.0.clone(), two.1).expect("starts");
        let member = Member::new(second, &control);
        let seat = |index| Seat { index, seats: 2 };
        let mut owner =
            Core::new(Joined { control, queue: first }, 2, seat(0), &one.0, Arc::clone(&signals[0]));
        let mut member = Core::new(member, 2, seat(1), &two.0, Arc::clone(&signals[1]));
        owner.listen(&[AT_OWNER, AT_BOTH].concat());
        member.listen(&[AT_MEMBER, AT_BOTH].concat());
        let pools = (boards[1].pool(256, 2_048, true), boards[1].pool(96, 1_536, false));
        let (device, interrupt) = world::device(1, &boards[1], (64, Default::default()), &pools.0, &pools.1);
        boards[1].set_handler(move |line| {
            if line != Line::Mac && interrupt.handle() {
                c.store(true, Ordering::Relaxed);
            }
        });
        let mut client = Core::new(device, 1, Seat::ALONE, &pools.0, Arc::clone(&signals[2]));
        let mut random = crate::model::Random::new(seed);
        for port in [AT_OWNER, AT_MEMBER, AT_BOTH, AT_BOTH].concat() {
            let to = format!("10.0.0.2:{port}").parse().expect("an address");
            let conn =
                client.node.stack.connect(OWNER, None, to, &SocketOptions::default()).expect("a route");
            let data = (0..LEN).map(|_| random.next() as u8).collect();
            client.conns.insert(conn, Conn { data, ..Conn::default() });
        }
        Cores { boards, owner, member, client, now: Instant::from_millis(1) }
    }

    fn moment(&mut self) {
        let now = self.now;
        for at in 0..2 {
            self.boards[at].with(|hardware| hardware.step(now));
            self.boards[at].interrupt();
            let frames = self.boards[at].with(|hardware| std::mem::take(&mut hardware.wire));
            let arrives = now + Duration::from_micros(5);
            self.boards[1 - at]
                .with(|other| frames.into_iter().for_each(|frame| other.arrive(arrives, frame)));
        }
        let letters = [self.owner.turn(now), self.member.turn(now)].concat();
        for (seat, message) in letters {
            [&mut self.owner.letters, &mut self.member.letters][seat].push_back(message);
        }
        self.client.turn(now);
    }

    /// Runs until every client has back what it sent.
    fn run(&mut self, name: &str) {
        let end = self.now + LIMIT;
        for _ in 0..3_000_000 {
            if self.client.conns.values().all(|conn| conn.is_finished) {
                return;
            }
            assert!(self.now < end, "{name}: not done in time");
            self.moment();
            let now = self.now;
            self.owner.wake_if_due(now);
            self.member.wake_if_due(now);
            let is_awake = self.owner.is_awake || self.member.is_awake || self.client.is_awake;
            let later = now + Duration::from_micros(2);
            let next = [self.owner.wake_at, self.member.wake_at, self.client.wake_at]
                .into_iter()
                .chain(self.boards.iter().map(|board| board.with(|hardware| hardware.poll_timeout())));
            let next = next.flatten().min().unwrap_or(end);
            self.now = if is_awake { later } else { next.max(later).min(end) };
        }
        panic!("{name}: the loops do not come to rest");
    }
}

fn check(name: &str, seed: u64, faults: &Faults, moves: bool) {
    let mut cores = Cores::new(seed, faults);
    if moves {
        // The device changes its mind when the flows are under way: those of queue 1 come in on queue 0, and the other way.
        let is_open = |cores: &Cores| cores.client.conns.values().all(|conn| conn.received.len() > 2_000);
        while !is_open(&cores) {
            cores.moment();
            cores.now += Duration::from_micros(2);
        }
        let device = cores.owner.node.port.device_mut();
        steer(&mut device.control, [AT_OWNER[0], AT_MEMBER[0], AT_BOTH[0]]);
    }
    cores.run(name);
    for conn in cores.client.conns.values() {
        assert!(conn.received == conn.data, "{name}: {} of {LEN} bytes", conn.received.len());
    }
    let counters = [cores.owner.node.stack.counters(), cores.member.node.stack.counters()];
    let established = counters.map(|counters| counters.tcp_established);
    assert_eq!(established, [4, 4], "{name}: by listener, and by queue where both listen");
    let arp = counters.map(|counters| counters.arp_in);
    assert!(arp[0] > 0 && arp[1] == 0, "{name}: {arp:?}");
    for counters in counters {
        let letters = counters.letters_out;
        assert!(letters > 4, "{name}: {letters} letters, though packets come in where nobody knows them");
        assert_eq!(counters.drop_letters_full, 0);
    }
}

#[test]
fn two_nodes_on_two_queues_serve_every_flow() {
    check("no faults", 1, &Faults::default(), false);
    check("flows that move", 2, &Faults::default(), true);
}

#[test]
fn two_nodes_with_completions_late_and_interrupts_lost() {
    let late = Faults { late: 500, late_by: Duration::from_millis(3), any_order: true, ..Faults::default() };
    check("completions late", 3, &late, true);
    check("interrupts lost", 4, &Faults { lost_interrupt: 100, ..Faults::default() }, true);
    check("interrupts without cause", 5, &Faults { spurious: 500, ..Faults::default() }, true);
    let all = Faults { lost_interrupt: 50, spurious: 200, frame_loss: 5, ..late };
    (6..9).for_each(|seed| check("everything", seed, &all, seed % 2 == 0));
}
