//! A node on a device whose completions and room come when they please.

mod common;

use common::Setup;
use common::frames::PEER4;
use linerate_nic::{
    Capabilities, Device, DeviceError, Filter, Frame, Link, LinkState, MacAddr, Pool, Port, PortConfig,
    QueuePair, RxBatch, RxMeta, TxQueue, TxToken,
};
use linerate_stack::{Node, NodeConfig, StackConfig, StackPools};
use linerate_transport::{
    ConnState, Engine as _, Left, ListenAddr, ListenOptions, Owner, SocketOptions, Transport as _,
};
use linerate_wire::tcp::Flags;
use linerate_wire::units::Instant;
use std::collections::VecDeque;
use std::time::Duration;

/// Takes `room` packets, and says that they have left when the test says so.
struct Slow {
    pool: Pool,
    arriving: VecDeque<Vec<u8>>,
    sent: Vec<Vec<u8>>,
    waiting: VecDeque<TxToken>,
    completed: VecDeque<TxToken>,
    room: usize,
    fails: bool,
    link: LinkState,
    /// When it wants to be looked at.
    look_at: Option<Instant>,
    /// The filters that were set: groups, all groups, everything.
    filters: Vec<(Vec<MacAddr>, bool, bool)>,
    /// Whether it tells groups apart.
    is_exact: bool,
}

impl Slow {
    fn complete(&mut self) {
        self.completed.append(&mut self.waiting);
    }
}

impl Device for Slow {
    fn mac(&self) -> MacAddr {
        common::frames::HOST_MAC
    }

    fn mtu(&self) -> usize {
        1_500
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::NONE
    }

    fn enable(&mut self, wanted: Capabilities) -> Result<(), DeviceError> {
        if wanted == Capabilities::NONE { Ok(()) } else { Err(DeviceError::Unsupported) }
    }

    fn link(&self) -> LinkState {
        self.link
    }

    fn set_filter(&mut self, filter: &Filter<'_>) -> Result<(), DeviceError> {
        if !self.is_exact && !filter.promiscuous {
            return Err(DeviceError::Unsupported);
        }
        self.filters.push((filter.groups.to_vec(), filter.all_groups, filter.promiscuous));
        Ok(())
    }
}

impl QueuePair for Slow {
    fn poll_timeout(&self) -> Option<Instant> {
        self.look_at
    }

    fn arm(&mut self, _now: Instant) -> bool {
        !self.arriving.is_empty() || !self.completed.is_empty()
    }

    fn enabled(&self) -> Capabilities {
        Capabilities::NONE
    }

    fn receive(&mut self, _now: Instant, batch: &mut RxBatch) -> Result<usize, DeviceError> {
        let mut count = 0;
        while !batch.is_full() {
            let Some(bytes) = self.arriving.pop_front() else { break };
            let mut buffer = self.pool.take().expect("a buffer");
            buffer.bytes_mut()[..bytes.len()].copy_from_slice(&bytes);
            batch.push(Frame::new(buffer.freeze(0..bytes.len()), RxMeta::default())).expect("room");
            count += 1;
        }
        if count == 0 && self.fails { Err(DeviceError::Gone) } else { Ok(count) }
    }

    fn transmit(&mut self, _now: Instant, queue: &mut TxQueue) -> Result<usize, DeviceError> {
        let mut count = 0;
        while self.room > 0
            && let Some(packet) = queue.front()
        {
            let mut bytes = vec![0; packet.len()];
            packet.linearise(&mut bytes).expect("room");
            if packet.meta.token != TxToken(0) {
                self.waiting.push_back(packet.meta.token);
            }
            self.sent.push(bytes);
            queue.pop();
            self.room -= 1;
            count += 1;
        }
        Ok(count)
    }

    fn poll_completion(&mut self) -> Option<TxToken> {
        self.completed.pop_front()
    }
}

struct Bench {
    node: Node<Slow>,
    now: Instant,
}

impl Bench {
    /// A node at 10.0.0.1 that listens on port 80 and knows its peer.
    fn new() -> Bench {
        Bench::over(true)
    }

    /// The same; `is_exact`: the device's filter tells groups apart.
    fn over(is_exact: bool) -> Bench {
        Bench::with(is_exact, NodeConfig::default())
    }

    fn with(is_exact: bool, sizes: NodeConfig) -> Bench {
        let pool = Pool::new(256, 2_048);
        let device = Slow {
            pool: pool.clone(),
            arriving: VecDeque::new(),
            sent: Vec::new(),
            waiting: VecDeque::new(),
            completed: VecDeque::new(),
            room: usize::MAX,
            fails: false,
            link: LinkState::UP,
            look_at: None,
            filters: Vec::new(),
            is_exact,
        };
        let config = Setup::default().config[0].clone();
        let pools = StackPools::for_memory(config.memory).with_receive(pool);
        let port = Port::new(device, PortConfig::default()).expect("a port");
        let node = Node::new(port, config, [5; 32], pools, sizes);
        let mut bench = Bench { node, now: Instant::from_millis(1) };
        let listen = ListenAddr { ip: None, port: 80 };
        bench.node.stack.listen(Owner(1), listen, &ListenOptions::default()).expect("free");
        bench.arrive(&common::frames::arp(
            linerate_wire::arp::Operation::REQUEST,
            PEER4,
            common::frames::HOST4,
        ));
        bench.turn();
        bench.device().complete();
        bench.turn();
        bench
    }

    fn device(&mut self) -> &mut Slow {
        self.node.port.device_mut()
    }

    fn arrive(&mut self, frame: &[u8]) {
        self.device().arriving.push_back(frame.to_vec());
    }

    /// One turn; the segments that left.
    fn turn(&mut self) -> Vec<common::peer::Answer> {
        self.node.input(self.now).expect("the device works");
        self.node.output(self.now).expect("the device works");
        common::peer::answers(&std::mem::take(&mut self.device().sent))
    }

    /// Half a turn: what has come or is due, with nothing sent.
    fn input(&mut self) {
        self.node.input(self.now).expect("the device works");
    }
}

/// A connection of a peer, accepted, with its handshake completed by the device.
fn connected(bench: &mut Bench) -> (common::peer::Peer, linerate_transport::ConnId) {
    let mut peer = common::peer::Peer::new(7_000, common::peer::old());
    let syn = linerate_wire::tcp::Builder { options: peer.options, ..peer.segment(Flags::SYN) };
    bench.arrive(&common::frames::tcp4(syn, &[]));
    let answer = bench.turn().pop().expect("a SYN-ACK");
    bench.device().complete();
    peer.next += 1;
    peer.ack = answer.seq + 1;
    bench.arrive(&common::frames::tcp4(peer.segment(Flags::ACK), &[]));
    bench.turn();
    let event = bench.node.net().poll_event().expect("a newcomer");
    let linerate_transport::Source::Listener(listener) = event.source else { panic!("{event:?}") };
    let conn = bench.node.net().accept(listener).expect("a connection");
    (peer, conn)
}

#[test]
fn the_last_packet_is_sent_again_however_late_the_device_says_that_it_left() {
    let mut bench = Bench::new();
    let (_, conn) = connected(&mut bench);
    bench.node.net().write(conn, b"the last").expect("room");
    assert_eq!(bench.turn().len(), 1);
    // The device says so later, in a turn in which nothing is sent.
    bench.now += Duration::from_millis(3);
    bench.device().complete();
    bench.input();
    let at = bench.node.poll_timeout().expect("a timer for the last packet");
    assert!(at <= bench.now + Duration::from_secs(1), "{at:?}");
    bench.now = at;
    let again = bench.turn();
    assert_eq!(again.len(), 1, "sent again");
    assert_eq!(again[0].payload, b"the last");
}

#[test]
fn what_waits_in_the_device_is_read_before_anything_is_thought_lost() {
    // A segment was sent, and its timer is due now.
    let sent = || {
        let mut bench = Bench::with(true, NodeConfig { rx_batch: 2, ..NodeConfig::default() });
        let (peer, conn) = connected(&mut bench);
        bench.node.net().write(conn, b"the last").expect("room");
        assert_eq!(bench.turn().len(), 1);
        bench.device().complete();
        bench.input();
        bench.now = bench.node.poll_timeout().expect("a timer for the last packet");
        (bench, peer, conn)
    };
    let stranger = common::peer::Peer::new(9, common::peer::old()).segment(Flags::ACK);
    let arrive = |bench: &mut Bench, strangers: usize| {
        (0..strangers).for_each(|_| bench.arrive(&common::frames::tcp4(stranger, &[])));
    };
    // Segments with data in each of some turns.
    let data = |bench: &mut Bench, turns: usize, strangers: usize| -> Vec<usize> {
        let turn = |_| {
            arrive(bench, strangers);
            bench.now += Duration::from_millis(5);
            bench.turn().iter().filter(|answer| !answer.payload.is_empty()).count()
        };
        (0..turns).map(turn).collect()
    };
    // Its acknowledgement came in time, behind other frames.
    let (mut bench, mut peer, conn) = sent();
    peer.ack += 8;
    arrive(&mut bench, 3);
    bench.arrive(&common::frames::tcp4(peer.segment(Flags::ACK), &[]));
    assert_eq!(data(&mut bench, 3, 0), [0, 0, 0]);
    assert_eq!((bench.node.stack.unsent(conn), bench.device().arriving.len()), (0, 0));
    // It did not come: sent again when nothing waits any more.
    let (mut bench, ..) = sent();
    arrive(&mut bench, 5);
    assert_eq!(data(&mut bench, 3, 0), [0, 0, 1]);
    // Frames never cease to wait: sent again all the same, a tenth of a second later.
    let (mut bench, ..) = sent();
    let sent = data(&mut bench, 30, 3);
    assert_eq!(sent.iter().position(|count| *count > 0), Some(19), "{sent:?}");
}

#[test]
fn a_full_device_keeps_what_waits_and_says_so() {
    let mut bench = Bench::new();
    let (_, conn) = connected(&mut bench);
    bench.device().room = 0;
    bench.node.net().write(conn, &[7; 4_000]).expect("room");
    let output = bench.node.output(bench.now).expect("works");
    assert_eq!(output.left, Left::DeviceFull);
    assert!(bench.node.waits_for_room());
    bench.device().room = 1;
    let output = bench.node.output(bench.now).expect("works");
    assert_eq!(output.left, Left::DeviceFull);
    bench.device().room = usize::MAX;
    let output = bench.node.output(bench.now).expect("works");
    assert_eq!((output.moved, output.left), (true, Left::Nothing));
    assert!(!bench.node.waits_for_room());
    let sent = std::mem::take(&mut bench.device().sent);
    let bytes: usize = common::peer::answers(&sent).iter().map(|answer| answer.payload.len()).sum();
    assert_eq!(bytes, 4_000, "each byte once");
}

#[test]
fn what_came_before_an_error_is_taken() {
    let mut bench = Bench::new();
    let (peer, conn) = connected(&mut bench);
    let segment = common::frames::tcp4(peer.segment(Flags::ACK), b"in time");
    bench.arrive(&segment);
    bench.device().fails = true;
    assert!(bench.node.input(bench.now).is_ok_and(|input| input.moved));
    assert_eq!(bench.node.net().peek(conn), b"in time");
    assert_eq!(bench.node.input(bench.now), Err(DeviceError::Gone));
}

#[test]
fn reports_in_any_order_arm_the_timer_of_what_was_sent_first() {
    let mut bench = Bench::new();
    let (_, conn) = connected(&mut bench);
    for _ in 0..2 {
        bench.node.net().write(conn, &[7; 1_072]).expect("room");
        assert!(!bench.turn().is_empty());
    }
    let (first, second) = (bench.device().waiting[0], bench.device().waiting[1]);
    bench.device().waiting.clear();
    bench.device().completed.extend([second, first, second, TxToken(77)]);
    bench.input();
    bench.now = bench.node.poll_timeout().expect("a timer");
    // The probe for a lost tail, or the timeout.
    assert_eq!(bench.turn().len(), 1, "sent again");
}

#[test]
fn a_link_that_comes_back_is_announced_on() {
    let mut bench = Bench::new();
    bench.now += Duration::from_secs(10);
    while !bench.turn().is_empty() || bench.node.poll_timeout().is_some_and(|at| at <= bench.now) {}
    bench.device().sent.clear();
    bench.device().link = LinkState::DOWN;
    assert!(bench.node.arm(bench.now), "the loop must not sleep over it");
    bench.input();
    assert!(!bench.node.arm(bench.now));
    bench.node.output(bench.now).expect("works");
    assert!(bench.device().sent.is_empty(), "nothing is announced on a dead link");
    bench.device().link = LinkState::UP;
    bench.input();
    for _ in 0..2 {
        bench.node.input(bench.now).expect("works");
        bench.node.output(bench.now).expect("works");
    }
    let sent = std::mem::take(&mut bench.device().sent);
    let ours = linerate_wire::ethernet::EtherType::ARP.0.to_be_bytes();
    let announced = sent.iter().any(|frame| frame[..6] == [255; 6] && frame[12..14] == ours);
    assert!(announced, "{sent:02x?}");
    assert_eq!(bench.node.stack.counters().link_changes, 2);
}

#[test]
fn a_device_that_wants_to_be_looked_at_wakes_the_loop() {
    let mut bench = Bench::new();
    let of_stack = bench.node.poll_timeout();
    let late = bench.now + Duration::from_secs(1_000_000);
    for (look_at, expected) in
        [(Some(bench.now), Some(bench.now)), (Some(late), of_stack.or(Some(late))), (None, of_stack)]
    {
        bench.device().look_at = look_at;
        assert_eq!(bench.node.poll_timeout(), expected);
    }
}

#[test]
fn the_filter_follows_the_addresses_and_is_coarser_where_the_device_is() {
    for is_exact in [true, false] {
        let mut bench = Bench::over(is_exact);
        let filters = std::mem::take(&mut bench.device().filters);
        let (groups, all_groups, promiscuous) = &filters[0];
        let group = linerate_wire::ipv6::solicited_node(common::frames::HOST6);
        assert!(groups.contains(&MacAddr::ipv6_multicast(group)), "{groups:?}");
        assert!(groups.contains(&MacAddr([0x33, 0x33, 0, 0, 0, 1])), "{groups:?}");
        assert_eq!((filters.len(), *all_groups, *promiscuous), (1, !is_exact, !is_exact));
        bench.turn();
        assert!(bench.device().filters.is_empty(), "set once");
    }
}

#[test]
fn what_is_under_way_on_a_link_is_a_reason_to_look() {
    let delay = Duration::from_millis(5);
    let pool = Pool::new(256, 2_048);
    let (left, right) = Link::pair(&pool, 1_500, Capabilities::NONE, 64);
    let [mut a, mut b] = [(left, 1), (right, 2)].map(|(link, last)| {
        link.set_delay(delay);
        let addresses = vec![format!("10.0.0.{last}/24").parse().unwrap()];
        let config = StackConfig { addresses, memory: 1 << 20, max_connections: 8, ..StackConfig::default() };
        let pools = StackPools::for_memory(config.memory).with_receive(pool.clone());
        let port = Port::new(link, PortConfig::default()).unwrap();
        Node::new(port, config, [last; 32], pools, NodeConfig::default())
    });
    let (owner, to) = (Owner(1), "10.0.0.2:80".parse().unwrap());
    b.stack.listen(owner, ListenAddr { ip: None, port: 80 }, &ListenOptions::default()).unwrap();
    // Time for the addresses to be ours.
    let mut now = Instant::from_millis(10_000);
    let began = now;
    let mut conn = None;
    while !conn.is_some_and(|conn| matches!(a.stack.state(conn), ConnState::Open { .. })) {
        for node in [&mut a, &mut b] {
            node.input(now).unwrap();
        }
        let _conn =
            *conn.get_or_insert_with(|| a.stack.connect(owner, None, to, &SocketOptions::default()).unwrap());
        for node in [&mut a, &mut b] {
            node.output(now).unwrap();
        }
        if !a.arm(now) && !b.arm(now) {
            now = [&a, &b]
                .iter()
                .filter_map(|node| node.poll_timeout())
                .min()
                .expect("something is due")
                .max(now);
        }
    }
    // Questions for addresses and their answers, SYN and SYN ACK; no timer of the stack is as short.
    assert!(now - began <= 6 * delay, "{:?}", now - began);
}
