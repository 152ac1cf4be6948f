//! Whatever is done in whatever order: each token once, frames in order and none twice, no buffer lost, and a loop that sleeps on
//! nothing but interrupts and its deadline hears of everything.

use super::*;
use crate::model::Fault;
use proptest::prelude::*;

/// What happens next.
#[derive(Clone, Debug)]
enum Step {
    /// The host has so many packets, of so many pieces and bytes, and takes a turn.
    Offer(usize, usize, usize),
    Arrive(usize, usize),
    /// The device works.
    Device,
    /// So many milliseconds pass.
    Pass(u64),
    /// The host keeps the frames that it gets, or lets go of them.
    Keep(bool),
    HoldBack(bool),
    Fault(Fault),
    /// An error that belongs to no packet: an overrun, or one of the bus.
    Fail(bool),
    Plug(bool),
    /// An interrupt without a cause.
    Spurious,
}

fn step() -> impl Strategy<Value = Step> {
    let fault =
        prop_oneof![Just(Fault::Underrun), Just(Fault::Retry), Just(Fault::Corrupted), Just(Fault::Bus)];
    prop_oneof![
        5 => (1..12usize, 0..17usize, 40..1_400usize).prop_map(|(n, pieces, len)| Step::Offer(n, pieces, len)),
        5 => (1..40usize, 40..1_500usize).prop_map(|(n, len)| Step::Arrive(n, len)),
        8 => Just(Step::Device),
        2 => (1..400u64).prop_map(Step::Pass),
        1 => any::<bool>().prop_map(Step::Keep),
        1 => any::<bool>().prop_map(Step::HoldBack),
        1 => fault.prop_map(Step::Fault),
        1 => any::<bool>().prop_map(Step::Fail),
        1 => any::<bool>().prop_map(Step::Plug),
        1 => Just(Step::Spurious),
    ]
}

/// The host: it sleeps whenever arming says that it may, and is woken by interrupts and deadlines alone.
struct Host {
    bench: Bench,
    is_awake: bool,
    keeps: bool,
    kept: Vec<Frame>,
    arrived: u64,
    newest: Option<u64>,
    received: u64,
    offered: u64,
    done: Vec<u64>,
    failed: bool,
}

impl Host {
    /// Turns until it may sleep.
    fn turn(&mut self) {
        for _ in 0..1_000 {
            self.bench.is_interrupted();
            for frame in self.bench.receive() {
                let bytes = frame.data.bytes();
                let number = u64::from_be_bytes(bytes[14..22].try_into().unwrap());
                let sent = super::frame(number, bytes.len());
                // Short ones are padded.
                assert_eq!(bytes[..40], sent[..40]);
                assert!(bytes.len() == 60 || bytes == sent);
                assert!(self.newest.is_none_or(|newest| newest < number), "{number} after {:?}", self.newest);
                self.newest = Some(number);
                self.received += 1;
                self.kept.push(frame);
            }
            if !self.keeps {
                self.kept.clear();
            }
            self.bench.is_interrupted();
            self.bench.transmit();
            let done = self.bench.completions();
            self.done.extend(done);
            if !self.bench.arm() {
                self.is_awake = false;
                return;
            }
        }
        panic!("it never sleeps");
    }

    fn run(&mut self) {
        self.is_awake |= self.bench.is_interrupted();
        self.is_awake |= self.bench.device.poll_timeout().is_some_and(|at| at <= self.bench.now);
        if self.is_awake {
            self.turn();
        }
    }

    fn take(&mut self, step: Step) {
        let board = self.bench.board.clone();
        match step {
            Step::Offer(count, pieces, len) => {
                for _ in 0..count.min(self.bench.out.room()) {
                    self.offered += 1;
                    self.bench.offer(self.offered, pieces, len.max(if pieces == 0 { 22 } else { 40 }));
                }
                self.is_awake = true;
            }
            Step::Arrive(count, len) => {
                for _ in 0..count {
                    self.arrived += 1;
                    board.with(|hardware| hardware.arrive(super::frame(self.arrived, len)));
                }
            }
            Step::Device => self.bench.step(),
            Step::Pass(ms) => self.bench.pass(ms),
            Step::Keep(keeps) => self.keeps = keeps,
            Step::HoldBack(holds) => board.with(|hardware| hardware.holds_back = holds),
            Step::Fault(fault) => {
                self.failed = true;
                board.with(|hardware| hardware.fault = Some((0, fault)));
            }
            Step::Fail(of_bus) => {
                self.failed |= of_bus;
                board.with(|hardware| hardware.fail(0, if of_bus { 11 } else { 10 }));
            }
            Step::Plug(is_up) => {
                self.failed |= !is_up;
                board.with(|hardware| hardware.plug(is_up));
            }
            Step::Spurious => {
                self.bench.interrupt.handle();
                self.is_awake = true;
            }
        }
    }
}

fn hardware_lives(kind: Kind, steps: Vec<Step>) {
    let mut host = Host {
        bench: Bench::on(Board::new(kind), 64, 192),
        is_awake: true,
        keeps: false,
        kept: Vec::new(),
        arrived: 0,
        newest: None,
        received: 0,
        offered: 0,
        done: Vec::new(),
        failed: false,
    };
    for step in steps {
        host.take(step);
        host.run();
    }
    // Peace: the device works, and the host is woken by nothing but interrupts and deadlines.
    host.bench.board.with(|hardware| {
        hardware.holds_back = false;
        hardware.plug(true);
    });
    host.keeps = false;
    host.kept.clear();
    for _ in 0..200 {
        host.run();
        host.bench.step();
        host.bench.pass(10);
    }
    let mut done = core::mem::take(&mut host.done);
    done.sort_unstable();
    assert_eq!(done, (1..=host.offered).collect::<Vec<_>>(), "each token once");
    assert!(host.bench.out.is_empty());
    if !host.failed {
        let sent = host.bench.wire().len() as u64;
        let dropped = host.bench.device.stats().drop_rx_no_buffer;
        let lost = host.bench.board.with(|hardware| hardware.lost);
        assert_eq!((sent, host.received + dropped + lost), (host.offered, host.arrived));
    }
    assert_eq!(host.bench.receive.free(), 64 - 31, "every buffer is back or the device's");
    host.bench.wire();
    host.bench.board.with(|hardware| hardware.fault = None);
    host.bench.works();
}

proptest! {
    #[test]
    fn nothing_is_lost_and_nobody_waits_for_ever(
        is_emulator in any::<bool>(),
        steps in proptest::collection::vec(step(), 1..200),
    ) {
        hardware_lives(if is_emulator { Kind::Emulator } else { Kind::Hardware }, steps);
    }
}
