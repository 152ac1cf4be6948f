//! The driver on the model: what it must not do, whatever the hardware does.

mod basics;
mod caches;
mod cores;
mod loopback;
mod properties;
mod several;
mod transfers;
mod world;

use crate::model::{Board, DESCRIPTORS, DESCRIPTORS_LEN};
use crate::{Control, Interrupt, Queue, Settings, open};
use core::time::Duration;
use linerate_nic::{
    Capabilities, Chunk, Device as _, Frame, MacAddr, Pool, QueuePair as _, RxBatch, TxQueue, TxToken,
};
use linerate_wire::units::Instant;

pub const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const PEER: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

/// One device with one queue, and the test in place of the stack.
pub struct Bench {
    pub board: Board,
    pub control: Control<Board>,
    pub queue: Queue<Board>,
    pub interrupt: Interrupt<Board>,
    pub receive: Pool,
    pub transmit: Pool,
    pub now: Instant,
    pub out: TxQueue,
    batch: RxBatch,
}

/// Rings of 32, so that tests come round them.
pub fn settings() -> Settings {
    Settings { transmit_ring: 32, receive_ring: 32, ..Settings::new(MAC) }
}

impl Bench {
    pub fn new(seed: u64) -> Bench {
        Bench::with(seed, &settings(), 64)
    }

    /// With so many receive buffers.
    pub fn with(seed: u64, settings: &Settings, receive_buffers: usize) -> Bench {
        let board = Board::new(seed);
        let (mut control, queues) =
            open(board.clone(), DESCRIPTORS, DESCRIPTORS_LEN, settings).expect("it opens");
        let wanted = Capabilities { gather: true, rx_checksum: true, ..Capabilities::NONE };
        control.enable(wanted).expect("it has these");
        let (receive, transmit) = (board.pool(receive_buffers, 2_048, true), board.pool(32, 1_536, false));
        let stopped = queues.into_iter().next().expect("a queue");
        let interrupt = stopped.interrupt();
        let queue = stopped.start(receive.clone(), transmit.clone()).expect("it starts");
        Bench {
            board,
            control,
            queue,
            interrupt,
            receive,
            transmit,
            now: Instant::from_millis(1),
            out: TxQueue::with_capacity(64),
            batch: RxBatch::with_limit(64),
        }
    }

    /// Queues a frame whose content tells its number, in `pieces` of payload; `token` is the number, too.
    pub fn offer(&mut self, number: u64, pieces: usize, len: usize) {
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

    pub fn transmit(&mut self) -> usize {
        self.queue.transmit(self.now, &mut self.out).expect("the device works")
    }

    pub fn receive(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while self.queue.receive(self.now, &mut self.batch).expect("the device works") > 0 {
            frames.extend(core::iter::from_fn(|| self.batch.pop()));
        }
        frames
    }

    pub fn completions(&mut self) -> Vec<u64> {
        core::iter::from_fn(|| self.queue.poll_completion()).map(|token| token.0).collect()
    }

    pub fn arm(&mut self) -> bool {
        self.queue.arm(self.now)
    }

    /// Lets time pass for the hardware.
    pub fn pass(&mut self, time: Duration) {
        self.now += time;
        self.board.with(|hardware| hardware.step(self.now));
    }

    /// Lets so many microseconds pass.
    pub fn pass_us(&mut self, us: u64) {
        self.pass(Duration::from_micros(us));
    }

    /// A frame comes from the wire now.
    pub fn arrive(&mut self, frame: Vec<u8>) {
        self.board.with(|hardware| hardware.arrive(self.now, frame));
        self.pass_us(1);
    }

    /// The frames that have left.
    pub fn wire(&mut self) -> Vec<Vec<u8>> {
        self.board.with(|hardware| hardware.wire.drain(..).collect())
    }

    /// Whether an interrupt has reached the processor; its handler runs.
    pub fn is_interrupted(&mut self) -> bool {
        let mut is_woken = false;
        while self.board.with(|hardware| hardware.poll_interrupt()).is_some() {
            is_woken |= self.interrupt.handle();
        }
        is_woken
    }
}

/// A frame of `len` bytes that no other number has.
pub fn frame(number: u64, len: usize, to: MacAddr) -> Vec<u8> {
    let mut bytes = [&to.0[..], &MAC.0, &[0x88, 0xB5], &number.to_be_bytes()].concat();
    bytes.extend(
        (bytes.len()..len).map(|at| (at as u64).wrapping_mul(31).wrapping_add(number.wrapping_mul(7)) as u8),
    );
    bytes
}

/// The number of a frame that is as [`frame`] made it (short ones are padded on the wire).
pub fn number(bytes: &[u8], len: usize) -> u64 {
    let number = u64::from_be_bytes(bytes[14..22].try_into().expect("eight bytes"));
    let to = MacAddr(bytes[..6].try_into().expect("six bytes"));
    assert_eq!(bytes[..len], frame(number, len, to), "frame {number} is damaged");
    number
}
