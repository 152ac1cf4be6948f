//! Nothing is allocated per packet: two stacks move megabytes, and a stack stands a flood of SYNs, with what they got when
//! they were made.

mod common;

use common::frames::{HOST4, PEER4, arp, tcp4_from};
use common::peer::{Peer, modern};
use common::{Bench, Setup, World};
use core::net::Ipv4Addr;
use core::time::Duration;
use linerate_nic::{Capabilities, TxQueue};
use linerate_transport::{Payload, SendError, Transport};
use linerate_wire::arp::Operation;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Of this thread: the test harness has its own. A constant without a destructor needs no memory of the allocator.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call goes to the system's allocator as it came; counting touches no memory but the counter.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static DATA: [u8; 65_536] = [0x5a; 65_536];

/// Moves `len` bytes from `a` to `b`, read in place, and returns how many allocations that took.
fn transfer(
    world: &mut World,
    client: linerate_transport::ConnId,
    server: linerate_transport::ConnId,
    len: usize,
) -> u64 {
    let before = ALLOCATIONS.get();
    let (mut sent, mut received) = (0, 0);
    let done = world.run_for(Duration::from_secs(60), |world| {
        while sent < len {
            match world.a.stack.send(client, Payload::Static(&DATA)) {
                Ok(()) => sent += DATA.len(),
                Err(SendError::Full) => break,
                Err(error) => panic!("{error:?}"),
            }
        }
        loop {
            let piece = world.b.stack.peek(server).len();
            if piece == 0 {
                break;
            }
            received += piece;
            world.b.stack.consume(server, piece);
        }
        while world.a.stack.poll_event().is_some() || world.b.stack.poll_event().is_some() {}
        received >= len
    });
    assert!(done);
    ALLOCATIONS.get() - before
}

#[test]
fn a_transfer_allocates_nothing_per_packet() {
    // Single frames; and super-frames, each in one large buffer (the link allocates lists of several).
    for (offloads, buffer_size) in [(Capabilities::NONE, 2_048), (Capabilities::ALL, 66_000)] {
        let setup = Setup { offloads, buffer_size, receive_buffers: 512, ..Setup::default() };
        let mut world = World::new(setup);
        let (client, server) = world.connected("10.0.0.2:80");
        // Queues grow to what the windows need.
        transfer(&mut world, client, server, 20 << 20);
        let before = world.b.stack.counters().tcp_in;
        let allocations = transfer(&mut world, client, server, 20 << 20);
        let segments = world.b.stack.counters().tcp_in - before;
        assert!(segments > 14_000, "{segments}");
        assert!(allocations < 20, "{allocations} allocations for {segments} segments");
    }
}

#[test]
fn a_flood_of_syns_allocates_nothing() {
    let mut config = Setup::default().config[0].clone();
    config.gateways = vec![PEER4.into()];
    config.max_half_open = 16;
    let mut bench = Bench::new(config);
    bench.receive();
    bench.ask(&arp(Operation::REQUEST, PEER4, HOST4));
    bench.host.listen(80);
    let frames: Vec<Vec<u8>> = (0..2_000u32)
        .map(|n| {
            let source = Ipv4Addr::from(0x0b00_0000 + n);
            tcp4_from(source, Peer::new(1_024 + n as u16, modern()).syn(), &[])
        })
        .collect();
    let mut queue = TxQueue::with_capacity(256);
    let mut flood = |bench: &mut Bench| {
        for batch in frames.chunks(100) {
            batch.iter().for_each(|frame| bench.feed(frame));
            bench.host.stack.poll_transmit(bench.now, &mut queue);
            (0..queue.len()).for_each(|_| queue.pop());
        }
    };
    flood(&mut bench);
    let before = ALLOCATIONS.get();
    flood(&mut bench);
    assert_eq!(ALLOCATIONS.get() - before, 0);
    let counters = bench.host.stack.counters();
    assert_eq!(
        (counters.syn_cookies_sent, counters.drop_control_full),
        (2 * (2_000 - 16), 0),
        "16 are half-open"
    );
}
