//! A TCP echo server on a TAP device of its own. As root: `cargo run -p echo`, then `nc 192.168.70.4 7`.
use linerate_linux::clock::MonotonicClock;
use linerate_linux::netconfig::HostInterface;
use linerate_linux::poller::{self, PollFd, PollFlags};
use linerate_linux::{RxPools, tap::Tap, tap::TapConfig};
use linerate_nic::{Port, PortConfig};
use linerate_stack::{Node, NodeConfig, Stack, StackConfig, StackPools};
use linerate_transport::{ConnId, ConnState, Engine, Left, ListenAddr, ListenOptions};
use linerate_transport::{Owner, Payload, Source, Transport};
use std::{error::Error, fs::File, io::Read};

fn main() -> Result<(), Box<dyn Error>> {
    let pools = RxPools::for_memory(8 << 20, 1_500);
    let tap = Tap::open(TapConfig { name: "echo0".into(), ..TapConfig::new(pools.clone()) })?;
    let mut host = HostInterface::open(tap.name())?;
    host.add_address("192.168.70.1".parse()?, 24)?;
    host.up()?;
    host.leave_as_it_is(); // The device goes with us, and its address with it.
    let config = StackConfig { addresses: vec!["192.168.70.4/24".parse()?], ..StackConfig::default() };
    let stack_pools = StackPools::for_memory(config.memory).with_receive(pools.small.clone());
    let mut seed = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut seed)?;
    let port = Port::new(tap, PortConfig::default())?;
    let mut node = Node::new(port, config, seed, stack_pools, NodeConfig::default());
    node.stack.listen(Owner(1), ListenAddr { ip: None, port: 7 }, &ListenOptions::default())?;
    let clock = MonotonicClock::new();
    println!("echo on 192.168.70.4 port 7");
    loop {
        let input = node.input(clock.now())?;
        while let Some(event) = node.stack.poll_event() {
            match event.source {
                Source::Listener(listener) => while node.stack.accept(listener).is_some() {},
                Source::Conn(conn) => echo(&mut node.stack, conn),
                Source::Udp(_) => {}
            }
        }
        let output = node.output(clock.now())?;
        if !input.moved && !output.moved && output.left != Left::More {
            let timeout = node.poll_timeout().map(|at| at - clock.now());
            let room = if node.waits_for_room() { PollFlags::OUT } else { PollFlags::empty() };
            poller::wait(&mut [PollFd::new(node.port.device(), PollFlags::IN | room)], timeout)?;
        }
    }
}

/// Sends back what has come, as far as there is room; called again when more has come or left.
fn echo(stack: &mut Stack, conn: ConnId) {
    while stack.readable(conn) > 0 && stack.sendable(conn) > 0 {
        let bytes = stack.peek(conn).to_vec();
        let len = bytes.len();
        if stack.send(conn, Payload::Shared(bytes.into())).is_err() {
            return;
        }
        stack.consume(conn, len);
    }
    let over = !matches!(stack.state(conn), ConnState::Open { finished: false } | ConnState::Connecting);
    if over && stack.readable(conn) == 0 {
        stack.close(conn);
    }
}
