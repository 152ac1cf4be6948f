//! Little memory: an echo whose peer sends faster than it reads never stops, and nothing that was invited is dropped.

mod common;

use common::{Setup, World, shown};
use core::time::Duration;
use linerate_nic::Capabilities;
use linerate_stack::memory::LEAST_MEMORY;
use linerate_transport::{ConnId, SendError, Transport};

/// Sends back what came, as far as there is room.
fn echo(world: &mut World, conn: ConnId) {
    let stack = &mut world.b.stack;
    loop {
        let piece = stack.peek(conn);
        let line = piece[..piece.len().min(2_048)].to_vec();
        if line.is_empty() || stack.write(conn, &line).is_err() {
            return;
        }
        stack.consume(conn, line.len());
    }
}

/// `count` clients send all they can and read afterwards; each must get back what it sent.
fn check(memory: usize, count: usize, offloads: Capabilities) {
    let mut setup = Setup { offloads, receive_buffers: 16_384, ..Setup::default() };
    setup.config[1].memory = memory;
    let mut world = World::new(setup);
    let conns: Vec<_> = (0..count).map(|n| world.connected(&format!("10.0.0.2:{}", 1_000 + n))).collect();
    let len = 1 << 20;
    let data = common::file_bytes(0, len);
    let mut ends: Vec<(usize, Vec<u8>)> = conns.iter().map(|_| (0, Vec::new())).collect();
    let done = world.run_for(Duration::from_secs(600), |world| {
        for ((client, server), (sent, came)) in conns.iter().zip(&mut ends) {
            while *sent < len {
                let end = (*sent + 8_000).min(len);
                match world.a.stack.write(*client, &data[*sent..end]) {
                    Ok(()) => *sent = end,
                    Err(SendError::Full) => break,
                    Err(error) => panic!("{error:?}"),
                }
            }
            echo(world, *server);
            common::read_all(&mut world.a.stack, *client, came);
        }
        while world.a.stack.poll_event().is_some() || world.b.stack.poll_event().is_some() {}
        ends.iter().all(|(_, came)| came.len() >= len)
    });
    let counters = world.b.stack.counters();
    let figures = format!("{memory} bytes, {count} connections: {:?}", shown(counters));
    assert!(done, "{figures}");
    assert!(ends.iter().all(|(_, came)| *came == data), "{figures}");
    assert_eq!((counters.drop_tcp_no_memory, counters.drop_tcp_out_of_order_full), (0, 0), "{figures}");
    assert_eq!(world.a.stack.counters().tcp_retransmits, 0, "{figures}");
}

#[test]
fn an_echo_in_little_memory_never_stops() {
    for memory in [LEAST_MEMORY, 64 << 10, 96 << 10, 128 << 10, 1 << 20] {
        for offloads in [Capabilities::NONE, Capabilities::ALL] {
            check(memory, 1, offloads);
        }
    }
}

#[test]
fn eight_echoes_share_little_memory() {
    for memory in [64 << 10, 128 << 10, 1 << 20] {
        for offloads in [Capabilities::NONE, Capabilities::ALL] {
            check(memory, 8, offloads);
        }
    }
}

#[test]
fn less_than_the_least_is_brought_up_to_it() {
    let mut setup = Setup::default();
    setup.config[1].memory = 0;
    assert_eq!(World::new(setup).b.stack.memory().limit, LEAST_MEMORY);
}
