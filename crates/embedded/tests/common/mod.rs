//! Two nets on one link, a clock of their own, and an executor that lets time pass when nobody has anything to do.
#![allow(dead_code)]

pub mod cable;
pub mod http;
pub mod time;

use futures::future::{Either, LocalBoxFuture, select};
use futures::stream::{FuturesUnordered, Stream};
use linerate_embedded::Net;
use linerate_nic::loopback::Verdict;
use linerate_nic::{Capabilities, Frame, Link, Pool, Port, PortConfig};
use linerate_stack::{Node, NodeConfig, StackConfig, StackPools};
use linerate_transport::Engine;
use linerate_wire::units::Instant;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use time::Time;

pub const A: &str = "10.0.0.1";
pub const B: &str = "10.0.0.2";

/// Time after which a test has failed, whatever it waits for.
const LIMIT: Instant = Instant::from_millis(600_000);

/// Bytes of a body: none is like its neighbours, and no two lengths are like each other.
pub fn body(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251 + len) as u8).collect()
}

/// Set when any task is woken.
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `main` beside the tasks in the background until it is done. Each task has its own waker, and is polled only when that
/// was used; time passes when none was. Fails when nothing will ever happen again, or only after ten minutes.
pub fn run<'a>(time: &Time, background: Vec<LocalBoxFuture<'a, ()>>, main: impl Future<Output = ()> + 'a) {
    let done = Rc::new(Cell::new(false));
    let mut tasks: FuturesUnordered<LocalBoxFuture<'a, ()>> = background.into_iter().collect();
    tasks.push(Box::pin({
        let done = Rc::clone(&done);
        async move {
            main.await;
            done.set(true);
        }
    }));
    let flag = Arc::new(Flag(AtomicBool::new(false)));
    let waker = Waker::from(Arc::clone(&flag));
    loop {
        while let Poll::Ready(Some(())) = Pin::new(&mut tasks).poll_next(&mut Context::from_waker(&waker)) {}
        if done.get() {
            return;
        }
        if !flag.0.swap(false, Ordering::Relaxed) {
            assert!(time.advance(), "nothing will ever happen again");
            assert!(time.now() < LIMIT, "ten minutes have passed");
        }
    }
}

pub type TestNet = Net<Node<Link>, Rc<Time>>;

/// Woken when a frame is under way to the end of a link that it belongs to.
type Bell = Rc<RefCell<Option<Waker>>>;

/// Two nets, 10.0.0.1 / fd00::1 and 10.0.0.2 / fd00::2, a millisecond from each other.
pub struct World {
    pub time: Rc<Time>,
    pub a: TestNet,
    pub b: TestNet,
    links: [Link; 2],
    bells: [Bell; 2],
}

/// Settings of one host of a world.
pub fn config(last: u8) -> StackConfig {
    StackConfig {
        addresses: vec![
            format!("10.0.0.{last}/24").parse().expect("an address"),
            format!("fd00::{last}/64").parse().expect("an address"),
        ],
        dad_transmits: 0,
        memory: 8 << 20,
        max_connections: 64,
        ..StackConfig::default()
    }
}

impl World {
    pub fn new() -> World {
        World::with(|config| config, |pools| pools)
    }

    pub fn with(
        change: impl Fn(StackConfig) -> StackConfig,
        change_pools: impl Fn(StackPools) -> StackPools,
    ) -> World {
        let time = Rc::new(Time::new());
        let pool = Pool::new(4_096, 2_048);
        let (left, right) = Link::pair(&pool, 1_500, Capabilities::NONE, 2_048);
        let net = |link: &Link, last: u8| {
            let config = change(config(last));
            let pools = StackPools::for_memory(config.memory).with_receive(pool.clone());
            let pools = change_pools(pools);
            let port = Port::new(link.clone(), PortConfig::default()).expect("a link");
            let node = Node::new(port, config, [last; 32], pools, NodeConfig::default());
            Net::new(node, Rc::clone(&time))
        };
        let (a, b) = (net(&left, 1), net(&right, 2));
        let world = World { time, a, b, links: [left, right], bells: Default::default() };
        world.lose(|_| false);
        for link in &world.links {
            link.set_delay(Duration::from_millis(1));
        }
        world
    }

    /// From now on, frames of which `lost` says so are lost, in both directions. It gets the number of the frame.
    pub fn lose(&self, lost: impl Fn(u64) -> bool + Clone + 'static) {
        for (link, bell) in self.links.iter().zip(self.bells.iter().rev()) {
            let (lost, bell, mut count) = (lost.clone(), Rc::clone(bell), 0);
            link.set_hook(move |_: &Frame| {
                count += 1;
                if lost(count) {
                    return Verdict::Drop;
                }
                if let Some(waker) = bell.borrow_mut().take() {
                    waker.wake();
                }
                Verdict::Deliver
            });
        }
    }

    /// Frames that A, and that B has sent.
    pub fn frames(&self) -> [u64; 2] {
        [self.links[0].stats().sent, self.links[1].stats().sent]
    }

    /// Returns when so much time has passed.
    pub async fn pass(&self, time: Duration) {
        self.time.sleep(self.time.now() + time).await;
    }

    /// What the future returns; `None`, and the future is dropped, if it takes longer.
    pub async fn within<T>(&self, time: Duration, future: impl Future<Output = T>) -> Option<T> {
        match select(pin!(future), pin!(self.pass(time))).await {
            Either::Left((found, _)) => Some(found),
            Either::Right(_) => None,
        }
    }

    /// Returns when `what` has become true, for which it looks every ten milliseconds.
    pub async fn until(&self, what: impl Fn() -> bool) {
        while !what() {
            self.pass(Duration::from_millis(10)).await;
        }
    }

    /// The tasks that run both nets.
    pub fn runners(&self) -> Vec<LocalBoxFuture<'_, ()>> {
        let [left, right] = &self.links;
        vec![
            Box::pin(self.runner(&self.a, left, &self.bells[0])),
            Box::pin(self.runner(&self.b, right, &self.bells[1])),
        ]
    }

    async fn runner(&self, net: &TestNet, link: &Link, bell: &Bell) {
        let mut alarm = None;
        let gone = net.run(|node, waker| {
            *bell.borrow_mut() = Some(waker.clone());
            // What is under way already arrives at a time that is known.
            let retry = node.waits_for_room().then(|| self.time.now() + Duration::from_millis(1));
            if let Some(at) = link.poll_timeout().into_iter().chain(retry).min() {
                // Where that is now, arming the engine says so.
                let sleep = Pin::new(alarm.insert(self.time.sleep(at)));
                let _due = sleep.poll(&mut Context::from_waker(waker));
            }
        });
        let Err(error) = gone.await;
        panic!("a link fails only when it is cut: {error}");
    }

    /// Runs `main` and the `background` over both nets.
    pub fn run<'a>(&'a self, background: Vec<LocalBoxFuture<'a, ()>>, main: impl Future<Output = ()> + 'a) {
        run(&self.time, self.runners().into_iter().chain(background).collect(), main);
    }
}

/// An address of host A or B.
pub fn addr(ip: &str, port: u16) -> std::net::SocketAddr {
    std::net::SocketAddr::new(ip.parse().expect("an address"), port)
}
