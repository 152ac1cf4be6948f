//! The driver for MCDMA rings on a model of its hardware: what it must not do, whatever the hardware does.

mod basics;
mod caches;
mod loopback;
mod model;
mod offloads;
mod properties;
mod several;

use core::time::Duration;
use linerate_nic::mcdma::{Control, Interrupt, Queue, Settings, open};
use linerate_nic::{
    Capabilities, Chunk, Device as _, Frame, Joined, MacAddr, Pool, QueuePair as _, RxBatch, TxQueue, TxToken,
};
use linerate_wire::units::Instant;
use model::{Board, DESCRIPTORS, DESCRIPTORS_LEN};

pub(crate) const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const PEER: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

/// One device with one queue, and the test in place of the stack.
pub(crate) struct Bench {
    pub(crate) board: Board,
    pub(crate) control: Control<Board>,
    pub(crate) queue: Queue<Board>,
    pub(crate) interrupt: Interrupt<Board>,
    pub(crate) receive: Pool,
    pub(crate) transmit: Pool,
    pub(crate) now: Instant,
    pub(crate) out: TxQueue,
    batch: RxBatch,
}

/// Rings of 48, so that tests come round them.
pub(crate) fn settings() -> Settings {
    Settings { transmit_ring: 48, receive_ring: 32, ..Settings::new(MAC) }
}

impl Bench {
    pub(crate) fn new(seed: u64) -> Bench {
        Bench::with(seed, &settings(), 64)
    }

    /// With so many receive buffers.
    pub(crate) fn with(seed: u64, settings: &Settings, receive_buffers: usize) -> Bench {
        Bench::on(Board::new(seed), settings, receive_buffers)
    }

    /// On this board.
    pub(crate) fn on(board: Board, settings: &Settings, receive_buffers: usize) -> Bench {
        let (mut control, queues) =
            open(board.clone(), DESCRIPTORS, DESCRIPTORS_LEN, settings).expect("it opens");
        let wanted = Capabilities { gather: true, rx_checksum: true, ..Capabilities::NONE };
        control.enable(wanted.and(control.capabilities())).expect("it has these");
        let (receive, transmit) = (board.pool(receive_buffers, 2_048, true), board.pool(48, 1_536, false));
        let stopped = queues.into_iter().next().expect("a queue");
        let interrupt = stopped.interrupt();
        let queue = stopped.start(receive.clone(), transmit.clone()).expect("it starts");
        let now = Instant::from_millis(1);
        board.with(|hardware| hardware.step(now));
        Bench {
            board,
            control,
            queue,
            interrupt,
            receive,
            transmit,
            now,
            out: TxQueue::with_capacity(64),
            batch: RxBatch::with_limit(64),
        }
    }

    /// Queues a frame whose content tells its number, in `pieces` of payload; `token` is the number, too.
    pub(crate) fn offer(&mut self, number: u64, pieces: usize, len: usize) {
        let frame = frame(number, len, PEER);
        let packet = self.out.vacant().expect("room");
        packet.header_mut(14).copy_from_slice(&frame[..14]);
        let payload = &frame[14..];
        for piece in payload.chunks(payload.len().div_ceil(pieces.max(1))) {
            packet.push_chunk(Chunk::Shared(piece.to_vec().into())).expect("room in the list");
        }
        packet.meta.token = TxToken(number);
        self.out.commit();
    }

    pub(crate) fn transmit(&mut self) -> usize {
        self.queue.transmit(self.now, &mut self.out).expect("the device works")
    }

    pub(crate) fn receive(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while self.queue.receive(self.now, &mut self.batch).expect("the device works") > 0 {
            frames.extend(core::iter::from_fn(|| self.batch.pop()));
        }
        frames
    }

    pub(crate) fn completions(&mut self) -> Vec<u64> {
        core::iter::from_fn(|| self.queue.poll_completion()).map(|token| token.0).collect()
    }

    pub(crate) fn arm(&mut self) -> bool {
        self.queue.arm(self.now)
    }

    /// Lets time pass for the hardware.
    pub(crate) fn pass(&mut self, time: Duration) {
        self.now += time;
        self.board.with(|hardware| hardware.step(self.now));
    }

    /// Lets so many microseconds pass.
    pub(crate) fn pass_us(&mut self, us: u64) {
        self.pass(Duration::from_micros(us));
    }

    /// A frame comes from the wire now.
    pub(crate) fn arrive(&mut self, frame: Vec<u8>) {
        self.board.with(|hardware| hardware.arrive(self.now, frame));
        self.pass_us(1);
    }

    /// The frames that have left.
    pub(crate) fn wire(&mut self) -> Vec<Vec<u8>> {
        self.board.with(|hardware| hardware.wire.drain(..).collect())
    }

    /// Whether an interrupt has reached the processor; its handler runs.
    pub(crate) fn is_interrupted(&mut self) -> bool {
        let mut is_woken = false;
        while self.board.with(|hardware| hardware.poll_interrupt()).is_some() {
            is_woken |= self.interrupt.handle();
        }
        is_woken
    }
}

/// A device with one queue whose control and queue are joined.
pub(crate) fn device(board: &Board, settings: &Settings) -> Joined<Control<Board>, Queue<Board>> {
    let (control, queues) = open(board.clone(), DESCRIPTORS, DESCRIPTORS_LEN, settings).expect("opens");
    let queue = queues.into_iter().next().expect("a queue");
    let pools = (board.pool(128, 2_048, true), board.pool(64, 1_536, false));
    Joined { control, queue: queue.start(pools.0, pools.1).expect("starts") }
}

/// A frame of `len` bytes that no other number has.
pub(crate) fn frame(number: u64, len: usize, to: MacAddr) -> Vec<u8> {
    let mut bytes = [&to.0[..], &MAC.0, &[0x88, 0xB5], &number.to_be_bytes()].concat();
    bytes.extend(
        (bytes.len()..len).map(|at| (at as u64).wrapping_mul(31).wrapping_add(number.wrapping_mul(7)) as u8),
    );
    bytes
}

/// The number of a frame that is as [`frame`] made it (short ones are padded on the wire).
pub(crate) fn number(bytes: &[u8], len: usize) -> u64 {
    let number = u64::from_be_bytes(bytes[14..22].try_into().expect("eight bytes"));
    let to = MacAddr(bytes[..6].try_into().expect("six bytes"));
    assert_eq!(bytes[..len], frame(number, len, to), "frame {number} is damaged");
    number
}
