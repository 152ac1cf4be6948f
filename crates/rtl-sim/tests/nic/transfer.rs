//! Two nodes on two interfaces with a cable between them: the same bytes arrive, with every offload and with none.

use super::{Device, device, now};
use linerate_nic::{Capabilities, Pool, Port, PortConfig};
use linerate_rtl_sim::nic::Board;
use linerate_rtl_sim::{Pause, Rng, Timing};
use linerate_stack::{Node, NodeConfig, StackConfig, StackPools};
use linerate_transport::{
    ConnId, ConnState, Engine as _, ListenAddr, ListenOptions, ListenerId, Owner, Payload, SocketOptions,
    Transport as _,
};
use linerate_wire::units::Instant;

const OWNER: Owner = Owner(1);

/// Turns after which a transfer has failed.
const TURNS: u64 = 20_000;

/// Clocks that the hardware is given in a turn, if it has something to do.
const CLOCKS: u64 = 4_000;

struct Host {
    node: Node<Device>,
    board: Board,
    listener: Option<ListenerId>,
    conn: Option<ConnId>,
    data: Vec<u8>,
    sent: usize,
    received: Vec<u8>,
    is_finished: bool,
}

impl Host {
    fn new(last: u8, timing: Timing, offloads: Capabilities, len: usize) -> Option<Host> {
        let (board, device) = device(last, timing)?;
        let mut data = vec![0; len];
        Rng::new(u64::from(last)).fill(&mut data);
        let mut port = Port::new(device, PortConfig::default()).expect("a port");
        port.set_offloads(offloads).expect("the device switches");
        let addresses = [format!("10.0.0.{last}/24"), format!("fd00::{last}/64")];
        let config = StackConfig {
            addresses: addresses.map(|text| text.parse().expect("an address")).to_vec(),
            dad_transmits: 0,
            ..StackConfig::default()
        };
        let pools = StackPools::for_memory(config.memory).with_receive(Pool::new(256, 2_048));
        let node = Node::new(port, config, [last; 32], pools, NodeConfig::default());
        let (sent, received) = (0, Vec::new());
        Some(Host { node, board, listener: None, conn: None, data, sent, received, is_finished: false })
    }

    fn turn(&mut self, now: Instant) {
        self.node.input(now).expect("the device works");
        while self.node.stack.poll_event().is_some() {}
        let stack = &mut self.node.stack;
        if let (Some(listener), None) = (self.listener, self.conn) {
            self.conn = stack.accept(listener);
        }
        if let Some(conn) = self.conn {
            while !stack.peek(conn).is_empty() {
                let len = stack.peek(conn).len();
                self.received.extend_from_slice(stack.peek(conn));
                stack.consume(conn, len);
            }
            while self.sent < self.data.len() && stack.sendable(conn) > 0 {
                let piece = &self.data[self.sent..self.data.len().min(self.sent + 10_007)];
                if stack.send(conn, Payload::Shared(piece.to_vec().into())).is_err() {
                    break;
                }
                self.sent += piece.len();
                if self.sent == self.data.len() {
                    stack.shutdown(conn);
                }
            }
            match stack.state(conn) {
                ConnState::Open { finished } => self.is_finished |= finished,
                ConnState::Connecting => {}
                ConnState::Closed(_) => self.is_finished = true,
            }
        }
        self.node.output(now).expect("the device works");
    }
}

/// Sends `len` bytes each way; returns the clocks that it took, and the hosts.
fn transfer(to: &str, timing: Timing, offloads: Capabilities, len: usize) -> Option<(u64, [Host; 2])> {
    let (mut a, mut b) = (Host::new(1, timing, offloads, len)?, Host::new(2, timing, offloads, len)?);
    let listen = ListenAddr { ip: None, port: 80 };
    b.listener = Some(b.node.stack.listen(OWNER, listen, &ListenOptions::default()).expect("free"));
    let to = to.parse().expect("an address");
    a.conn = Some(a.node.stack.connect(OWNER, None, to, &SocketOptions::default()).expect("a route"));
    let mut hosts = [a, b];
    let mut turns = 0;
    while !hosts.iter().all(|host| host.is_finished) {
        turns += 1;
        assert!(turns < TURNS, "{:?} bytes have come", hosts.each_ref().map(|host| host.received.len()));
        for host in &mut hosts {
            host.board.hardware_mut().settle(500, CLOCKS);
            let now = now(&host.board);
            host.turn(now);
        }
        for index in 0..2 {
            loop {
                let Some(frame) = hosts[index].board.hardware_mut().sent() else { break };
                hosts[1 - index].board.hardware_mut().receive(frame, false);
            }
        }
    }
    for host in &hosts {
        host.board.hardware().check().expect("no rule of a bus is broken");
    }
    let [a, b] = &hosts;
    assert!(a.received == b.data && b.received == a.data, "the bytes are not those that were sent");
    let cycles = hosts[0].board.hardware().cycles();
    Some((cycles, hosts))
}

#[test]
fn a_megabyte_each_way_with_every_offload() {
    let Some((_, hosts)) = transfer("10.0.0.2:80", Timing::steady(20), Capabilities::ALL, 1 << 20) else {
        return;
    };
    for host in &hosts {
        let stats = host.node.port.stats();
        assert_eq!(stats.tx.software_checksums, 0, "the hardware sums");
        assert_eq!(stats.rx.software_good, 0, "the hardware verifies");
        let joined = host.node.port.device().queue.stats().received_joined;
        assert!(joined > 10, "segments are joined: {joined}");
    }
}

#[test]
fn over_version_6_of_the_protocol() {
    transfer("[fd00::2]:80", Timing::steady(20), Capabilities::ALL, 300_000);
}

#[test]
fn with_no_offload_at_all() {
    let Some((_, hosts)) = transfer("10.0.0.2:80", Timing::steady(20), Capabilities::NONE, 300_000) else {
        return;
    };
    assert!(hosts[0].node.port.stats().tx.software_checksums > 100);
}

#[test]
fn with_memory_that_is_slow_now_and_then() {
    let timing = Timing { latency: (5, 200), ready: Pause::Percent(30), beats: Pause::Bursts(20) };
    transfer("10.0.0.2:80", timing, Capabilities::ALL, 300_000);
}
