//! Whatever is done in whatever order, under all faults: each token once, frames in order and none twice, no buffer lost, and
//! in the end it works again.

use super::*;
use crate::model::Faults;
use linerate_nic::mcdma::{AppWords, Direction};
use proptest::prelude::*;

/// What the test does next.
#[derive(Clone, Debug)]
enum Step {
    /// Offers so many packets, of so many pieces and bytes.
    Offer(usize, usize, usize),
    Transmit,
    Arrive(usize, usize),
    Receive,
    /// Receives and keeps the frames.
    Keep,
    /// Drops the frames that were kept, and writes to their buffers before.
    LetGo,
    Complete,
    Arm,
    Interrupt,
    Pass(u64),
    Link(bool),
    Reset,
    Forget(bool),
    Gather(bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..20usize, 0..12usize, 30..1_514usize).prop_map(|(n, pieces, len)| Step::Offer(n, pieces, len)),
        6 => Just(Step::Transmit),
        4 => (1..40usize, 30..1_514usize).prop_map(|(n, len)| Step::Arrive(n, len)),
        3 => Just(Step::Receive),
        2 => Just(Step::Keep),
        1 => Just(Step::LetGo),
        4 => Just(Step::Complete),
        3 => Just(Step::Arm),
        3 => Just(Step::Interrupt),
        6 => (0..200u64).prop_map(Step::Pass),
        1 => (1_000..7_000_000u64).prop_map(Step::Pass),
        1 => any::<bool>().prop_map(Step::Link),
        1 => Just(Step::Reset),
        1 => any::<bool>().prop_map(Step::Forget),
        1 => any::<bool>().prop_map(Step::Gather),
    ]
}

fn faults() -> impl Strategy<Value = Faults> {
    let often = || prop_oneof![2 => Just(0u64), 1 => 1..300u64];
    let rarely = || prop_oneof![3 => Just(0u64), 1 => 1..30u64];
    let times = (often(), 0..20_000_000u64, any::<bool>(), rarely());
    (times, often(), often(), rarely(), rarely(), rarely(), rarely()).prop_map(
        |((late, by, any_order, never), lost, spurious, error, reset, packet_error, frame_loss)| Faults {
            late,
            late_by: Duration::from_nanos(by),
            any_order,
            never,
            lost_interrupt: lost,
            spurious,
            channel_error: error,
            self_reset: reset,
            packet_error,
            frame_loss,
            ..Faults::default()
        },
    )
}

/// The device, and what has been seen of it.
struct Watched {
    bench: Bench,
    offloads: Capabilities,
    kept: Vec<Frame>,
    lens: Vec<usize>,
    offered: u64,
    reported: Vec<bool>,
    /// Numbers of the last frames that left and came.
    left: u64,
    sent_in: Vec<usize>,
    came: Option<u64>,
}

impl Watched {
    fn new(seed: u64, receive_buffers: usize, words: AppWords, offloads: Capabilities) -> Watched {
        let board = Board::new(seed);
        board.with(|hardware| hardware.words = words);
        let mut bench = Bench::on(board, &settings(), receive_buffers);
        bench.control.enable(offloads).expect("it has everything");
        Watched {
            bench,
            offloads,
            kept: Vec::new(),
            lens: Vec::new(),
            offered: 0,
            reported: Vec::new(),
            left: 0,
            sent_in: Vec::new(),
            came: None,
        }
    }

    fn act(&mut self, step: &Step) {
        match *step {
            Step::Offer(count, pieces, len) => {
                for _ in 0..count.min(self.bench.out.room()) {
                    self.offered += 1;
                    self.lens.push(len);
                    self.reported.push(false);
                    self.bench.offer(self.offered, pieces, len);
                }
            }
            Step::Transmit => {
                self.bench.transmit();
            }
            Step::Arrive(count, len) => {
                for _ in 0..count {
                    let number = self.sent_in.len() as u64;
                    self.sent_in.push(len);
                    self.bench.arrive(frame(number, len, MAC));
                }
            }
            Step::Receive => self.receive(false),
            Step::Keep => self.receive(true),
            Step::LetGo => self.let_go(),
            Step::Complete => self.complete(),
            Step::Arm => {
                self.bench.arm();
            }
            Step::Interrupt => {
                self.bench.is_interrupted();
            }
            Step::Pass(us) => self.bench.pass_us(us),
            Step::Link(is_up) => self.bench.board.with(|hardware| hardware.set_link(is_up)),
            Step::Reset => self.bench.queue.reset().expect("the engine stops"),
            Step::Forget(is_receive) => {
                let direction = if is_receive { Direction::Receive } else { Direction::Transmit };
                self.bench.board.with(|hardware| hardware.forget(direction, 0));
            }
            Step::Gather(gather) => {
                self.bench.control.enable(Capabilities { gather, ..self.offloads }).expect("it can");
            }
        }
        self.look_at_the_wire();
    }

    fn receive(&mut self, keep: bool) {
        for frame in self.bench.receive() {
            let len = frame.len();
            let number = number(frame.data.bytes(), len);
            assert_eq!(Some(&len), self.sent_in.get(number as usize), "frame {number} has its length");
            assert!(self.came.is_none_or(|last| last < number), "frame {number} twice, or out of order");
            self.came = Some(number);
            self.kept.push(frame);
        }
        if !keep {
            self.let_go();
        }
    }

    fn let_go(&mut self) {
        for frame in self.kept.drain(..) {
            let mut buffer = frame.data.try_into_buffer().expect("nobody else has it");
            buffer.bytes_mut().fill(0xEE);
        }
    }

    fn complete(&mut self) {
        for token in self.bench.completions() {
            let was = std::mem::replace(&mut self.reported[token as usize - 1], true);
            assert!(!was, "token {token} twice");
        }
    }

    fn look_at_the_wire(&mut self) {
        for bytes in self.bench.wire() {
            let claimed = u64::from_be_bytes(bytes[14..22].try_into().expect("eight bytes"));
            let len = *self.lens.get(claimed as usize - 1).expect("a frame that was offered");
            assert_eq!(bytes.len(), len.max(60));
            let number = number(&bytes, len);
            assert!(number > self.left, "frame {number} twice, or out of order, after {}", self.left);
            self.left = number;
        }
    }

    /// The hardware is well again: whatever is under way comes to an end within some looks of the watchdog, and frames pass.
    fn recover(&mut self) {
        self.bench.board.with(|hardware| {
            hardware.faults = Faults::default();
            hardware.set_link(true);
        });
        self.let_go();
        for _ in 0..40 {
            self.act(&Step::Transmit);
            self.act(&Step::Pass(500_000));
            self.act(&Step::Receive);
            self.act(&Step::Complete);
            self.act(&Step::Arm);
        }
        assert!(self.bench.out.is_empty(), "the ring stays full");
        assert!(self.reported.iter().all(|reported| *reported), "a token is missing");
        let (left, came) = (self.offered, self.sent_in.len() as u64);
        self.act(&Step::Offer(1, 2, 300));
        self.act(&Step::Transmit);
        self.act(&Step::Arrive(1, 300));
        self.act(&Step::Pass(100));
        self.act(&Step::Receive);
        self.act(&Step::Complete);
        assert_eq!((self.left, self.came), (left + 1, Some(came)), "it works again");
        assert!(self.reported.iter().all(|reported| *reported));
    }
}

proptest! {
    #[test]
    fn each_token_once_and_nothing_lost(
        seed in any::<u64>(),
        receive_buffers in 8..80usize,
        faults in faults(),
        preempts in any::<bool>(),
        access_ns in 0..300u64,
        is_axi in any::<bool>(),
        joins in any::<bool>(),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let words = if is_axi { AppWords::AxiEthernet } else { AppWords::TenGig };
        let offloads = Capabilities { rx_coalescing: joins, ..Capabilities::ALL };
        let mut watched = Watched::new(seed, receive_buffers, words, offloads);
        let may_stop = faults.channel_error + faults.self_reset > 0
            || steps.iter().any(|step| matches!(step, Step::Forget(_)));
        watched.bench.board.with(|hardware| {
            (hardware.faults, hardware.access) = (faults, Duration::from_nanos(access_ns));
        });
        if preempts {
            let interrupt = watched.bench.interrupt.clone();
            watched.bench.board.set_handler(move |_| {
                interrupt.handle();
            });
        }
        steps.iter().for_each(|step| watched.act(step));
        watched.recover();
        watched.bench.board.clear_handler();
        let Watched { bench: Bench { queue, receive, transmit, .. }, kept, .. } = watched;
        prop_assert!(kept.is_empty());
        prop_assert!(may_stop || queue.stats().failures == 0, "the engine found a descriptor that makes no sense");
        prop_assert_eq!(transmit.free(), transmit.len());
        drop(queue);
        prop_assert_eq!(receive.free(), receive.len());
    }
}
