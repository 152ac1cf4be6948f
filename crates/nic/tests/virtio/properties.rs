//! Whatever is done in whatever order: each token once, frames in order and none twice, no buffer lost, and a loop that sleeps on
//! nothing but interrupts hears of everything.

use super::*;
use proptest::prelude::*;

/// What happens next.
#[derive(Clone, Debug)]
enum Step {
    /// The host has so many packets, of so many pieces and bytes, and takes a turn.
    Offer(usize, usize, usize),
    Arrive(usize, usize),
    /// The device works.
    Device,
    /// The host is awake for a turn.
    Turn,
    /// The host keeps the frames that it gets, or lets go of them.
    Keep(bool),
    HoldBack(bool),
    AnyOrder(bool),
    Reset,
    Plug(bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (1..12usize, 0..17usize, 40..1_400usize).prop_map(|(n, pieces, len)| Step::Offer(n, pieces, len)),
        5 => (1..30usize, 40..9_000usize).prop_map(|(n, len)| Step::Arrive(n, len)),
        8 => Just(Step::Device),
        3 => Just(Step::Turn),
        1 => any::<bool>().prop_map(Step::Keep),
        1 => any::<bool>().prop_map(Step::HoldBack),
        1 => any::<bool>().prop_map(Step::AnyOrder),
        1 => Just(Step::Reset),
        1 => any::<bool>().prop_map(Step::Plug),
    ]
}

/// The host: it sleeps whenever arming says that it may, and is woken by interrupts alone.
struct Host {
    bench: Bench,
    is_awake: bool,
    keeps: bool,
    kept: Vec<Frame>,
    arrived: u64,
    newest: Option<u64>,
    received: usize,
    offered: u64,
    done: Vec<u64>,
    resets: u64,
}

impl Host {
    /// Turns until it may sleep.
    fn turn(&mut self) {
        for _ in 0..1_000 {
            for frame in self.bench.receive() {
                let number = u64::from_be_bytes(bytes(&frame)[14..22].try_into().unwrap());
                assert_eq!(bytes(&frame), super::frame(number, frame.len()));
                assert!(self.newest.is_none_or(|newest| newest < number), "{number} after {:?}", self.newest);
                self.newest = Some(number);
                self.received += 1;
                self.kept.push(frame);
            }
            if !self.keeps {
                self.kept.clear();
            }
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
        if self.is_awake {
            self.turn();
        }
    }
}

fn hardware_lives(events: bool, steps: Vec<Step>) {
    let events = if events { model::EVENT_IDX } else { 0 };
    let bench = Bench::on(Board::new(model::ALL & !model::EVENT_IDX | events), 64, 1_600);
    let mut host = Host {
        bench,
        is_awake: true,
        keeps: false,
        kept: Vec::new(),
        arrived: 0,
        newest: None,
        received: 0,
        offered: 0,
        done: Vec::new(),
        resets: 0,
    };
    for step in steps {
        match step {
            Step::Offer(count, pieces, len) => {
                for _ in 0..count.min(host.bench.out.room()) {
                    host.offered += 1;
                    host.bench.offer(host.offered, pieces, len);
                }
                host.is_awake = true;
            }
            Step::Arrive(count, len) => {
                for _ in 0..count {
                    host.arrived += 1;
                    let frame = super::frame(host.arrived, len);
                    host.bench.board.with(|hardware| hardware.arrive([0; 12], frame));
                }
            }
            Step::Device => host.bench.step(),
            Step::Turn => host.is_awake = true,
            Step::Keep(keeps) => host.keeps = keeps,
            Step::HoldBack(holds) => host.bench.board.with(|hardware| hardware.holds_back = holds),
            Step::AnyOrder(any) => host.bench.board.with(|hardware| hardware.any_order = any),
            Step::Reset => {
                host.resets += 1;
                host.bench.board.with(model::Hardware::give_up);
            }
            Step::Plug(is_up) => host.bench.board.with(|hardware| hardware.plug(is_up)),
        }
        host.run();
    }
    // Peace: the device works, and the host is woken by nothing but interrupts.
    host.bench.board.with(|hardware| hardware.holds_back = false);
    host.keeps = false;
    host.kept.clear();
    host.is_awake = true;
    for _ in 0..500 {
        host.run();
        host.bench.step();
    }
    let mut done = core::mem::take(&mut host.done);
    done.sort_unstable();
    assert_eq!(done, (1..=host.offered).collect::<Vec<_>>(), "each token once");
    assert!(host.bench.out.is_empty());
    if host.resets == 0 {
        let sent = host.bench.wire().len() as u64;
        let lost = host.bench.device.stats().drop_rx_no_buffer;
        assert_eq!((sent, host.received as u64 + lost), (host.offered, host.arrived));
    }
    assert_eq!(host.bench.receive.free(), 64 - 32, "every buffer is back or the device's");
    assert_eq!(host.bench.board.with(|hardware| hardware.held()[1]), 0);
}

proptest! {
    #[test]
    fn nothing_is_lost_and_nobody_waits_for_ever(
        events in any::<bool>(),
        steps in proptest::collection::vec(step(), 1..200),
    ) {
        hardware_lives(events, steps);
    }
}
