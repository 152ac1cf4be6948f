//! The virtio driver on a model of the device: what it must not do, whatever the device does.

mod basics;
mod failures;
mod model;
mod properties;

use linerate_nic::virtio::{Interrupt, Settings, Virtio};
use linerate_nic::{Chunk, Frame, Pool, QueuePair as _, RxBatch, TxQueue, TxToken};
use linerate_wire::units::Instant;
use model::{Board, DESCRIPTORS, DESCRIPTORS_LEN};

/// One device, and the test in place of the stack.
struct Bench {
    board: Board,
    device: Virtio<Board>,
    interrupt: Interrupt<Board>,
    receive: Pool,
    out: TxQueue,
    batch: RxBatch,
}

/// Rings of 32, so that tests come round them.
fn settings() -> Settings {
    Settings { receive_ring: 32, transmit_ring: 32, ..Settings::default() }
}

impl Bench {
    fn new() -> Bench {
        Bench::on(Board::new(model::ALL), 48, 512)
    }

    /// With so many receive buffers of so many bytes.
    fn on(board: Board, buffers: usize, size: usize) -> Bench {
        let receive = board.pool(buffers, size.max(1_600), true);
        let headers = board.pool(32, 172, false);
        let device = Virtio::open(
            board.clone(),
            (DESCRIPTORS, DESCRIPTORS_LEN),
            receive.clone(),
            &headers,
            &settings(),
        )
        .expect("it opens");
        let interrupt = device.interrupt();
        let (out, batch) = (TxQueue::with_capacity(64), RxBatch::with_limit(16));
        Bench { board, device, interrupt, receive, out, batch }
    }

    /// Queues a frame whose content tells its number, in `pieces` of payload; `token` is the number, too.
    fn offer(&mut self, number: u64, pieces: usize, len: usize) {
        let frame = frame(number, len);
        let packet = self.out.vacant().expect("room");
        // Header blocks are 160 bytes at most.
        let headers = if pieces == 0 { len.min(160) } else { 14 };
        packet.header_mut(headers).copy_from_slice(&frame[..headers]);
        for piece in frame[headers..].chunks((len - headers).div_ceil(pieces.max(1)).max(1)) {
            packet.push_chunk(Chunk::Shared(piece.to_vec().into())).expect("room in the list");
        }
        packet.meta.token = TxToken(number);
        self.out.commit();
    }

    fn transmit(&mut self) -> usize {
        self.device.transmit(Instant::ZERO, &mut self.out).expect("the device works")
    }

    fn receive(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while self.device.receive(Instant::ZERO, &mut self.batch).expect("the device works") > 0 {
            frames.extend(core::iter::from_fn(|| self.batch.pop()));
        }
        frames
    }

    fn completions(&mut self) -> Vec<u64> {
        core::iter::from_fn(|| self.device.poll_completion()).map(|token| token.0).collect()
    }

    fn arm(&mut self) -> bool {
        self.device.arm(Instant::ZERO)
    }

    fn step(&mut self) {
        self.board.with(model::Hardware::step);
    }

    /// A frame comes from the wire.
    fn arrive(&mut self, frame: Vec<u8>) {
        self.board.with(|hardware| hardware.arrive([0; 12], frame));
        self.step();
    }

    /// Whether an interrupt has reached the processor; its handler runs.
    fn is_interrupted(&mut self) -> bool {
        self.board.with(|hardware| hardware.is_interrupting()) && self.interrupt.handle()
    }

    /// The frames that have left.
    fn wire(&mut self) -> Vec<Vec<u8>> {
        self.board.with(|hardware| hardware.wire.drain(..).map(|sent| sent.frame).collect())
    }
}

/// A frame of `len` bytes that no other number has.
fn frame(number: u64, len: usize) -> Vec<u8> {
    let mut bytes = [&[2, 0, 0, 0, 0, 2], &model::MAC[..], &[0x88, 0xB5], &number.to_be_bytes()].concat();
    bytes.extend((bytes.len()..len).map(|at| (at as u64 * 31 + number * 7) as u8));
    bytes
}

/// All bytes of a frame in several buffers.
fn bytes(frame: &Frame) -> Vec<u8> {
    let mut bytes = frame.data.bytes().to_vec();
    frame.more.iter().for_each(|piece| bytes.extend_from_slice(piece.bytes()));
    bytes
}
