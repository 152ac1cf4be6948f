//! The examples of `docs/embedded.md`, compiled and run.

extern crate alloc;

#[path = "page/above.rs"]
mod above;
#[path = "page/below.rs"]
mod below;
#[path = "page/clock.rs"]
mod clock;
mod common;

use above::echo;
use common::cable::{Hardware, State, carry, net, run_net};
use common::time::Time;
use common::{World, addr, body, run};
use embassy_net_driver::{Checksum, HardwareAddress, LinkState};
use embassy_net_driver_channel as channel;
use embedded_io_async::{Read as _, Write as _};
use futures::future::{LocalBoxFuture, join, join_all};
use linerate_embedded::{Clock, Net};
use linerate_transport::Engine;
use linerate_wire::units::Instant;
use std::rc::Rc;
use std::task::Waker;

/// The page shows this code, and no other.
fn check(code: &str) {
    let page = include_str!("../../../docs/embedded.md");
    assert!(page.contains(code), "docs/embedded.md does not have this code:\n{code}");
}

#[test]
fn the_page_shows_what_is_tested() {
    check(include_str!("page/above.rs"));
    check(include_str!("page/below.rs"));
    check(include_str!("page/clock.rs"));
}

#[test]
fn the_echo_server_echoes() {
    let world = World::new();
    let server = async { echo(&world.b).await.expect("nobody else listens") };
    world.run(vec![Box::pin(server)], talk_all(&world.a));
}

thread_local! {
    /// What embassy's clock shows to a test.
    static TIME: Rc<Time> = Rc::new(Time::new());
}

/// The time of the tests in embassy's ticks.
struct TestTicks;

impl embassy_time_driver::Driver for TestTicks {
    fn now(&self) -> u64 {
        TIME.with(|time| time.now().as_micros())
    }

    fn schedule_wake(&self, at: u64, waker: &Waker) {
        TIME.with(|time| time.wake_at(Instant::from_micros(at), waker));
    }
}

embassy_time_driver::time_driver_impl!(static TICKS: TestTicks = TestTicks);

#[test]
fn the_driver_serves_in_little_memory() {
    assert_eq!(embassy_time_driver::TICK_HZ, 1_000_000);
    let time = TIME.with(Rc::clone);
    let (mut left, mut right) = (State::new(), State::new());
    let (runner_a, device_a) = channel::new(&mut left, HardwareAddress::Ethernet([2, 0, 0, 0, 0, 1]));
    let (runner_b, device_b) = channel::new(&mut right, HardwareAddress::Ethernet([2, 0, 0, 0, 0, 2]));
    let ((link_a, rx_a, tx_a), (link_b, rx_b, tx_b)) = (runner_a.split(), runner_b.split());
    link_a.set_link_state(LinkState::Up);
    link_b.set_link_state(LinkState::Up);
    let mut count = 0;
    let client = net(Hardware(device_a, Checksum::Both), 1, 256, &time);
    let background: Vec<LocalBoxFuture<'_, ()>> = vec![
        Box::pin(run_net(&client)),
        Box::pin(below::serve(device_b, clock::Ticks, "10.0.0.2/24", [2; 32])),
        Box::pin(carry(tx_a, rx_b, |_| true)),
        // One frame in eleven is lost, so that the clock has to do with it.
        Box::pin(carry(tx_b, rx_a, move |_| {
            count += 1;
            count % 11 != 0
        })),
    ];
    run(&time, background, talk_all(&client));
}

/// Three clients at once of an echo server for two at a time.
async fn talk_all<E: Engine, C: Clock>(net: &Net<E, C>) {
    join_all([1, 3_000, 70_000].map(|len| talk(net, len))).await;
}

/// Sends so many bytes there and gets them back.
async fn talk<E: Engine, C: Clock>(net: &Net<E, C>, len: usize) {
    let mut socket = net.connect(addr(common::B, 7)).await.expect("a server");
    let mut back = vec![0; len];
    {
        let (mut reader, mut writer) = socket.split();
        let sent = body(len);
        let (sent_all, read_all) = join(writer.write_all(&sent), reader.read_exact(&mut back)).await;
        sent_all.expect("an open connection");
        read_all.expect("as much as was sent");
    }
    assert!(back == body(len), "{len} bytes");
    socket.shutdown();
    assert_eq!(socket.read(&mut [0]).await, Ok(0));
}
