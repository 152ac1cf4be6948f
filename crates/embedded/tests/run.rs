//! The task that runs a net: it leaves room for others, and ends when its device fails.

mod common;

use common::time::Time;
use common::{World, config, run};
use linerate_embedded::Net;
use linerate_nic::{
    Capabilities, Device, DeviceError, Link, Paced, PacingConfig, PacingMode, Pool, Port, PortConfig,
    QueuePair, TxQueue, pass_on,
};
use linerate_stack::{Node, NodeConfig, StackPools};
use linerate_transport::{Engine, Input, Output, Transport};
use linerate_wire::units::Instant;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

/// An engine to which something always comes.
struct Busy(Node<Link>, Rc<Cell<u64>>);

impl Engine for Busy {
    type Error = DeviceError;

    fn net(&mut self) -> &mut dyn Transport {
        self.0.net()
    }

    fn input(&mut self, now: Instant) -> Result<Input, DeviceError> {
        self.1.set(self.1.get() + 1);
        self.0.input(now).map(|input| Input { moved: true, ..input })
    }

    fn output(&mut self, now: Instant) -> Result<Output, DeviceError> {
        self.0.output(now)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.0.poll_timeout()
    }

    fn waits_for_room(&self) -> bool {
        self.0.waits_for_room()
    }

    fn memory_used(&self) -> usize {
        self.0.memory_used()
    }

    fn refused(&self) -> u64 {
        self.0.refused()
    }

    fn unfinished(&self) -> usize {
        self.0.unfinished()
    }

    fn abort_all(&mut self, now: Instant) -> usize {
        self.0.abort_all(now)
    }
}

fn node() -> (Node<Link>, Link) {
    let pool = Pool::new(16, 2_048);
    let link = Link::looped(&pool, 1_500, Capabilities::NONE, 16);
    let port = Port::new(link.clone(), PortConfig::default()).unwrap();
    let pools = StackPools::for_memory(1 << 20).with_receive(pool);
    (Node::new(port, config(1), [1; 32], pools, NodeConfig::default()), link)
}

#[test]
fn other_tasks_have_their_turn_however_busy_it_is() {
    let (time, turns) = (Rc::new(Time::new()), Rc::new(Cell::new(0)));
    let net = Net::new(Busy(node().0, turns.clone()), time.clone());
    let runner = async {
        let Err(error) = net.run(|_, _| {}).await;
        panic!("{error}");
    };
    run(&time, vec![Box::pin(runner)], async {
        for _ in 0..10 {
            let before = turns.get();
            futures::future::poll_fn(|cx| {
                cx.waker().wake_by_ref();
                if turns.get() > before { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        }
    });
}

#[test]
fn it_ends_with_the_device_and_may_be_called_again() {
    let (node, link) = node();
    let time = Rc::new(Time::new());
    let net = Net::new(node, time.clone());
    link.cut();
    run(&time, Vec::new(), async {
        for _ in 0..2 {
            let Err(error) = net.run(|_, _| {}).await;
            assert_eq!(error, DeviceError::Gone);
        }
    });
}

#[test]
fn it_sleeps_when_there_is_nothing_to_do() {
    let (time, turns) = (Rc::new(Time::new()), Rc::new(Cell::new(0)));
    let net = Net::new(node().0, time.clone());
    let runner = async {
        let Err(error) = net.run(|_, _| turns.set(turns.get() + 1)).await;
        panic!("{error}");
    };
    run(&time, vec![Box::pin(runner)], time.sleep(Instant::from_millis(60_000)));
    assert!((1..20).contains(&turns.get()), "{} turns in an idle minute", turns.get());
    // The same holds for two hosts that know each other.
    let world = World::new();
    world.run(Vec::new(), world.pass(Duration::from_secs(60)));
    let frames = world.frames();
    assert!(frames.iter().all(|sent| *sent < 20), "{frames:?} frames in an idle minute");
}

/// An end of a link that tells by a look whether a frame waits, and interrupts.
struct Ring(Link);

impl Device for Ring {
    pass_on!(0: all of Device);
}

impl QueuePair for Ring {
    pass_on!(0: enabled, receive, transmit, poll_completion, arm);

    fn waiting(&mut self) -> u32 {
        self.0.poll_timeout().is_some().into()
    }
}

#[test]
fn a_frame_that_waits_for_others_is_taken_when_its_time_is_over() {
    let time = Rc::new(Time::new());
    let pool = Pool::new(16, 2_048);
    let (mut peer, link) = Link::pair(&pool, 1_500, Capabilities::NONE, 16);
    let mut paced = Paced::new(Ring(link.clone()));
    let mode = PacingMode::FirstNewPacket;
    let pacing = PacingConfig { mode, timer_ticks: 1_000, tick_ns: 1_000, threshold: 32 };
    paced.set_pacing(pacing).unwrap();
    let port = Port::new(paced, PortConfig::default()).unwrap();
    let pools = StackPools::for_memory(1 << 20).with_receive(pool);
    let net = Net::new(Node::new(port, config(1), [1; 32], pools, NodeConfig::default()), time.clone());
    let interrupt: RefCell<Option<Waker>> = RefCell::default();
    let runner = async {
        let Err(error) = net.run(|_, waker| *interrupt.borrow_mut() = Some(waker.clone())).await;
        panic!("{error}");
    };
    run(&time, vec![Box::pin(runner)], async {
        time.sleep(Instant::from_millis(100)).await;
        let mut queue = TxQueue::with_capacity(1);
        queue.vacant().unwrap().header_mut(60).fill(0xff);
        queue.commit();
        assert_eq!(peer.transmit(time.now(), &mut queue), Ok(1));
        interrupt.take().expect("it sleeps").wake();
        time.sleep(Instant::from_micros(100_900)).await;
        assert_eq!(link.stats().received, 0, "it waits for others");
        time.sleep(Instant::from_micros(101_100)).await;
        assert_eq!(link.stats().received, 1);
    });
}
