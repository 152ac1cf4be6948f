//! Drivers of `embassy-net-driver` below the stack: the channel driver of embassy, two of them joined by a cable.

mod common;

use common::cable::{DriverNet, Hardware, MTU, State, carry, net, run_net};
use common::http::{Log, SIZES, fetch, options, servers};
use common::time::Time;
use common::{addr, body, run};
use embassy_net_driver::{Checksum, HardwareAddress, LinkState};
use embassy_net_driver_channel::{self as channel, StateRunner};
use embedded_io_async::{Read as _, Write as _};
use futures::future::{LocalBoxFuture, join, join_all};
use linerate_embedded::{DriverError, EmbassyDevice};
use linerate_nic::Pool;
use linerate_transport::ListenAddr;
use linerate_wire::checksum::Sum;
use linerate_wire::ip::Protocol;
use linerate_wire::{ethernet, ipv4};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

/// What a test has: both nets, both link states, the clock.
struct Rig<'a, 'd> {
    time: Rc<Time>,
    a: &'a DriverNet<'d>,
    b: &'a DriverNet<'d>,
    links: [StateRunner<'d>; 2],
}

/// Runs `test` on two nets, whose drivers leave checksums as `checksums` says; `there` and `back` are the wires. A server
/// on B has three tasks.
fn on_cable(
    checksums: [Checksum; 2],
    frames: usize,
    there: impl FnMut(&mut [u8]) -> bool,
    back: impl FnMut(&mut [u8]) -> bool,
    test: impl for<'a> FnOnce(&'a Rig<'a, '_>) -> LocalBoxFuture<'a, ()>,
) {
    let time = Rc::new(Time::new());
    let (mut left, mut right) = (State::new(), State::new());
    let address = |last| HardwareAddress::Ethernet([2, 0, 0, 0, 0, last]);
    let (runner_a, device_a) = channel::new(&mut left, address(1));
    let (runner_b, device_b) = channel::new(&mut right, address(2));
    let a = net(Hardware(device_a, checksums[0]), 1, frames, &time);
    let b = net(Hardware(device_b, checksums[1]), 2, frames, &time);
    let ((state_a, rx_a, tx_a), (state_b, rx_b, tx_b)) = (runner_a.split(), runner_b.split());
    state_a.set_link_state(LinkState::Up);
    state_b.set_link_state(LinkState::Up);
    let log = Log::default();
    let listener = b.listen(ListenAddr { ip: None, port: 80 }, &options()).unwrap();
    let mut background: Vec<LocalBoxFuture<'_, ()>> = vec![
        Box::pin(run_net(&a)),
        Box::pin(run_net(&b)),
        Box::pin(carry(tx_a, rx_b, there)),
        Box::pin(carry(tx_b, rx_a, back)),
    ];
    background.extend(servers(&time, &listener, &log, 3));
    let rig = Rig { time: Rc::clone(&time), a: &a, b: &b, links: [state_a, state_b] };
    run(&time, background, test(&rig));
}

impl Rig<'_, '_> {
    /// Returns when so much time has passed.
    async fn pass(&self, time: Duration) {
        self.time.sleep(self.time.now() + time).await;
    }
}

async fn fetch_all(rig: &Rig<'_, '_>) {
    let all = (0..8).map(|i| fetch(rig.a, common::B, i % SIZES.len()));
    for (i, fetched) in join_all(all).await.into_iter().enumerate() {
        let len = SIZES[i % SIZES.len()];
        assert!(fetched.unwrap() == body(len), "{len} bytes");
    }
}

#[test]
fn bodies_pass_through_short_rings() {
    on_cable([Checksum::Both; 2], 256, |_| true, |_| true, |rig| Box::pin(fetch_all(rig)));
}

#[test]
fn bodies_pass_under_loss() {
    let lossy = || {
        let mut count = 0_u64;
        move |_: &mut [u8]| {
            count += 1;
            (count * count * 31 + count * 17) % 89 >= 3
        }
    };
    on_cable([Checksum::Both; 2], 256, lossy(), lossy(), |rig| Box::pin(fetch_all(rig)));
}

#[test]
fn a_handful_of_buffers_is_enough() {
    on_cable(
        [Checksum::Both; 2],
        12,
        |_| true,
        |_| true,
        |rig| {
            Box::pin(async {
                for (which, len) in SIZES.into_iter().enumerate() {
                    assert!(fetch(rig.a, common::B, which).await.unwrap() == body(len), "{len} bytes");
                }
                let free = rig.a.with(|node| node.stack.memory().receive.map(|pool| (pool.free, pool.total)));
                assert_eq!(free, Some((12, 12)), "every buffer came back");
            })
        },
    );
}

/// Sends so many datagrams from A to a port of B, more than B has buffers for.
async fn send_datagrams(rig: &Rig<'_, '_>, port: u16, count: u8) {
    // So that none waits for its neighbour's address.
    assert!(fetch(rig.a, common::B, 0).await.is_ok());
    let mut client = rig.a.bind(ListenAddr { ip: None, port: 0 }, 0).unwrap();
    for number in 0..count {
        client.send(None, addr(common::B, port), &[number; 1_400]).await.unwrap();
    }
    rig.pass(Duration::from_millis(100)).await;
}

#[test]
fn buffers_of_datagrams_that_were_read_are_filled_at_once() {
    on_cable(
        [Checksum::Both; 2],
        12,
        |_| true,
        |_| true,
        |rig| {
            Box::pin(async {
                let mut server = rig.b.bind(ListenAddr { ip: None, port: 9 }, 64 << 10).unwrap();
                send_datagrams(rig, 9, 30).await;
                let begun = rig.time.now();
                for number in 0..30 {
                    let mut buffer = [0; 1_400];
                    assert_eq!(server.receive(&mut buffer).await.len, 1_400);
                    assert!(buffer == [number; 1_400], "datagram {} in place of {number}", buffer[0]);
                    assert!(rig.time.now() - begun < Duration::from_millis(1), "datagram {number}");
                }
            })
        },
    );
}

#[test]
fn buffers_of_a_datagram_socket_that_is_dropped_are_filled_at_once() {
    on_cable(
        [Checksum::Both; 2],
        12,
        |_| true,
        |_| true,
        |rig| {
            Box::pin(async {
                let server = rig.b.bind(ListenAddr { ip: None, port: 9 }, 64 << 10).unwrap();
                send_datagrams(rig, 9, 30).await;
                drop(server);
                let begun = rig.time.now();
                assert!(rig.a.connect(addr(common::B, 80)).await.is_ok());
                let took = rig.time.now() - begun;
                assert!(took < Duration::from_millis(1), "{took:?}");
            })
        },
    );
}

/// The TCP segment of an IPv4 frame, and the sum that its checksum starts with.
fn tcp(frame: &mut [u8]) -> Option<(Sum, &mut [u8])> {
    let (at, end, sum) = {
        let ethernet = ethernet::Header::parse(frame).ok()?;
        let ip = ipv4::Header::parse(ethernet.payload()).ok()?;
        let at = ethernet.header_len() + ip.header_len();
        let end = ethernet.header_len() + usize::from(ip.total_len());
        (ip.protocol() == Protocol::TCP).then_some((at, end, ip.pseudo_header()))?
    };
    Some((sum, &mut frame[at..end]))
}

#[test]
fn checksums_are_left_to_a_driver_that_does_them() {
    // A's hardware fills in what A leaves out, and vouches for what comes: the sums of what it is given are wrong.
    let filled = Rc::new(Cell::new(0));
    let count = Rc::clone(&filled);
    let fill = move |frame: &mut [u8]| {
        if let Some((mut sum, segment)) = tcp(frame) {
            assert_eq!(segment[16..18], [0, 0], "the field is zero, for the hardware to fill");
            sum.add(segment);
            segment[16..18].copy_from_slice(&sum.finish().to_be_bytes());
            count.set(count.get() + 1);
        }
        true
    };
    let break_sum = |frame: &mut [u8]| {
        if let Some((_, segment)) = tcp(frame) {
            segment[16] ^= 0x5a;
        }
        true
    };
    on_cable([Checksum::None, Checksum::Both], 256, fill, break_sum, |rig| {
        Box::pin(async {
            fetch_all(rig).await;
            let stats = rig.a.with(|node| node.port.stats());
            assert_eq!(stats.rx.software_bad, 0);
        })
    });
    assert!(filled.get() > 100, "{} segments", filled.get());
}

/// A cable that changes a byte of one TCP segment in ten.
fn break_some() -> impl FnMut(&mut [u8]) -> bool + 'static {
    let mut count = 0;
    move |frame| {
        if let Some((_, segment)) = tcp(frame) {
            count += 1;
            let last = segment.len() - 1;
            segment[last] ^= u8::from(count % 10 == 7);
        }
        true
    }
}

#[test]
fn what_a_driver_does_not_vouch_for_is_verified() {
    // `Rx` leaves verifying to us, `Tx` computing.
    on_cable(
        [Checksum::Tx, Checksum::Both],
        256,
        |_| true,
        break_some(),
        |rig| {
            Box::pin(async {
                // This driver vouches for damaged frames, and the stack must take its word.
                let mut socket = rig.a.connect(addr(common::B, 80)).await.unwrap();
                socket.write_all(b"GET /1 HTTP/1.0\r\n\r\n").await.unwrap();
                let mut all = Vec::new();
                let mut piece = [0; 1_000];
                while let Ok(len @ 1..) = socket.read(&mut piece).await {
                    all.extend_from_slice(&piece[..len]);
                }
                assert!(
                    all.len() > SIZES[1] && !all.ends_with(&body(SIZES[1])),
                    "a byte was changed on the way"
                );
            })
        },
    );
    on_cable(
        [Checksum::Both, Checksum::Both],
        256,
        |_| true,
        break_some(),
        |rig| {
            Box::pin(async {
                fetch_all(rig).await;
                let stats = rig.a.with(|node| node.port.stats());
                assert!(stats.rx.software_bad > 10, "{stats:?}");
            })
        },
    );
}

#[test]
fn the_stack_hears_of_the_link() {
    on_cable(
        [Checksum::Both; 2],
        256,
        |_| true,
        |_| true,
        |rig| {
            Box::pin(async {
                let is_up = || rig.a.with(|node| node.port.link().is_up);
                assert!(is_up());
                rig.links[0].set_link_state(LinkState::Down);
                rig.pass(Duration::from_millis(1)).await;
                assert!(
                    !is_up(),
                    "nothing was sent or received, so that only the driver's waker can have told"
                );
                rig.links[0].set_link_state(LinkState::Up);
                rig.pass(Duration::from_millis(1)).await;
                assert!(is_up());
                assert!(fetch(rig.a, common::B, 1).await.unwrap() == body(SIZES[1]));
            })
        },
    );
}

#[test]
fn both_ends_send_at_once() {
    on_cable(
        [Checksum::Both; 2],
        64,
        |_| true,
        |_| true,
        |rig| {
            Box::pin(async {
                let options = options();
                let listener = rig.b.listen(ListenAddr { ip: None, port: 7 }, &options).unwrap();
                let connect = rig.a.connect_with(None, addr(common::B, 7), &options.socket);
                let (near, far) = join(connect, listener.accept()).await;
                let (mut near, mut far) = (near.unwrap(), far);
                let both = |len: usize, other: usize| (body(len), vec![0; other]);
                let ((sent_a, mut got_a), (sent_b, mut got_b)) =
                    (both(300_000, 200_000), both(200_000, 300_000));
                let ((mut read_a, mut write_a), (mut read_b, mut write_b)) = (near.split(), far.split());
                let a = join(write_a.write_all(&sent_a), read_a.read_exact(&mut got_a));
                let b = join(write_b.write_all(&sent_b), read_b.read_exact(&mut got_b));
                let ((wrote_a, came_a), (wrote_b, came_b)) = join(a, b).await;
                wrote_a.and(wrote_b).unwrap();
                came_a.unwrap();
                came_b.unwrap();
                assert!(got_a == sent_b && got_b == sent_a);
            })
        },
    );
}

#[test]
fn what_is_no_ethernet_device_is_refused() {
    let make = |address, buffer| {
        let mut state = State::new();
        let (_, device) = channel::new(&mut state, address);
        EmbassyDevice::new(device, Pool::new(2, buffer)).map(drop)
    };
    let ethernet = HardwareAddress::Ethernet([2, 0, 0, 0, 0, 1]);
    assert_eq!(make(ethernet, MTU), Ok(()));
    assert_eq!(make(ethernet, 1_500), Err(DriverError::SmallBuffers { buffer: 1_500, longest: MTU }));
    assert_eq!(make(HardwareAddress::Ip, MTU), Err(DriverError::NotEthernet));
    let mut state = channel::State::<500, 1, 1>::new();
    let (_, device) = channel::new(&mut state, ethernet);
    let short = EmbassyDevice::new(device, Pool::new(2, MTU)).map(drop);
    assert_eq!(short, Err(DriverError::ShortFrames { longest: 500 }));
}
