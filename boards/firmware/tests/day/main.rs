//! A day of virtual time: a machine that is left alone but for a lease of an hour, and a client once in ten minutes, takes not
//! one byte more of its heap in the last hour than in the third.

mod bench;
mod dhcp;
mod wire;

use bench::Bench;
use core::time::Duration;
use linerate_firmware::{Error, Interrupts, Parts, Settings, run, trace};
use linerate_nic::{Capabilities, DeviceError, Link, Pool};
use linerate_wire::units::Instant;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use wire::Wire;

const HOUR: Duration = Duration::from_secs(3_600);
/// Looks at the heap, at half past each hour.
const LOOKS: usize = 25;

thread_local! {
    /// Bytes that this thread has allocated and not given back. A constant without a destructor needs no memory itself.
    static BYTES: Cell<isize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call goes to the system's allocator as it came; counting touches no memory but the counter.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.set(BYTES.get() + layout.size() as isize);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        BYTES.set(BYTES.get() - layout.size() as isize);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Settings of a small board, without an IPv4 address: it asks DHCP.
const SETTINGS: Settings = Settings {
    name: "day",
    cores: 1,
    mac: [2, 0, 0, 0, 0, 1],
    addresses: &[],
    gateways: &[],
    ipv6: true,
    offloads: true,
    interrupts: Interrupts::AT_ONCE,
    watchdog: 8,
    http: &[80],
    iperf3: &[5201],
    iperf3_by_core: None,
    ftp: &[21],
    ftp_users: &[],
    ftp_anonymous: true,
    connections: 8,
    socket_memory: 64 << 10,
    send_buffer: 8 << 10,
    receive_buffer: 8 << 10,
    receive_buffers: 16,
    ram_disk: 16 << 10,
    trace: 0,
    capture: 0,
};

#[test]
fn a_day_alone_costs_no_memory_and_no_lease() {
    let pool = Pool::new(256, 2_048);
    let (machine, peer) = Link::pair(&pool, 1_500, Capabilities::NONE, 64);
    // No look at the heap falls on a client.
    let mut bench =
        Bench::new(peer, &pool, (0..LOOKS as u32).map(|hour| Instant::ZERO + HOUR * hour + HOUR / 2));
    let parts = Parts {
        device: Wire::new(machine, false),
        receive: pool.clone(),
        device_queue: 64,
        batch: 8,
        flash: &[],
        built_ns: 0,
        exchange: None,
        tracer: Box::leak(Box::new(trace::Shared::new(Box::leak(Box::default())))),
    };
    let ended = run(&mut bench, &SETTINGS, parts);
    assert!(matches!(ended, Err(Error::Device(DeviceError::Gone))), "{ended:?}");

    assert_eq!(bench.weights.len(), LOOKS);
    let settled = &bench.weights[2..];
    assert!(settled.iter().all(|bytes| *bytes == settled[0]), "bytes at each hour: {:?}", bench.weights);
    // The first lease, and a renewal whenever half of one is over; at the end one is just due.
    let leases = bench.leases();
    assert!((49..=50).contains(&leases), "{leases} leases");
    assert_eq!(bench.answers, 6 * (LOOKS - 1) + 3);
    assert_eq!(bench.failures, 0);
    // A watchdog has nothing to say of a day with nothing to do.
    assert!(bench.longest_turn <= Duration::from_secs(1), "{:?} without a turn", bench.longest_turn);
    let shown = bench.answered.join("\n");
    assert!(shown.contains("10.0.0.77/24"), "{shown}");
    assert!(!shown.contains("drop_no_buffer"), "{shown}");
}
