//! The GEM driver on a model of the controller: what it must not do, whatever the hardware does.

mod basics;
mod failures;
mod model;
mod properties;
mod several;

use core::time::Duration;
use linerate_nic::gem::{Gem, Interrupt, Settings};
use linerate_nic::{Chunk, Frame, MacAddr, Pool, QueuePair as _, RxBatch, TxQueue, TxToken};
use linerate_wire::units::Instant;
use model::{Board, DESCRIPTORS, DESCRIPTORS_LEN, Kind};

const KINDS: [Kind; 2] = [Kind::Hardware, Kind::Emulator];

/// One interface, and the test in place of the stack.
struct Bench {
    board: Board,
    device: Gem<Board>,
    interrupt: Interrupt<Board>,
    receive: Pool,
    headers: Pool,
    out: TxQueue,
    batch: RxBatch,
    now: Instant,
}

/// Rings of 32, so that tests come round them.
fn settings() -> Settings {
    Settings { mac: Some(MacAddr(model::MAC)), receive_ring: 32, transmit_ring: 32, ..Settings::default() }
}

impl Bench {
    fn new(kind: Kind) -> Bench {
        Bench::on(Board::new(kind), 48, 192)
    }

    /// With so many receive buffers, and so many bytes for headers.
    fn on(board: Board, buffers: usize, header: usize) -> Bench {
        let (receive, headers) = (board.pool(buffers, 1_600, true), board.pool(32, header, false));
        let memory = (DESCRIPTORS, DESCRIPTORS_LEN);
        let device = Gem::open(board.clone(), memory, receive.clone(), &headers, &settings()).expect("opens");
        let interrupt = device.interrupt();
        let (out, batch) = (TxQueue::with_capacity(64), RxBatch::with_limit(16));
        let mut bench =
            Bench { board, device, interrupt, receive, headers, out, batch, now: Instant::from_millis(1) };
        // The first look at the link is over.
        assert!(bench.receive().is_empty());
        bench
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
        self.device.transmit(self.now, &mut self.out).expect("the device works")
    }

    fn receive(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while self.device.receive(self.now, &mut self.batch).expect("the device works") > 0 {
            frames.extend(core::iter::from_fn(|| self.batch.pop()));
        }
        frames
    }

    fn completions(&mut self) -> Vec<u64> {
        core::iter::from_fn(|| self.device.poll_completion()).map(|token| token.0).collect()
    }

    fn arm(&mut self) -> bool {
        self.device.arm(self.now)
    }

    fn step(&mut self) {
        self.board.with(model::Hardware::step);
    }

    fn pass(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
    }

    /// A frame comes from the wire.
    fn arrive(&mut self, frame: Vec<u8>) {
        self.board.with(|hardware| hardware.arrive(frame));
        self.step();
    }

    /// Whether an interrupt has reached the processor; its handler runs.
    fn is_interrupted(&mut self) -> bool {
        self.board.with(|hardware| hardware.is_interrupting(0)) && self.interrupt.handle()
    }

    /// The frames that have left.
    fn wire(&mut self) -> Vec<Vec<u8>> {
        self.board.with(|hardware| hardware.wire.drain(..).map(|(_, frame)| frame).collect())
    }

    /// Both directions work, several times round the rings.
    fn works(&mut self) {
        for number in 1_000..1_100 {
            self.offer(number, 2, 300);
            assert_eq!(self.transmit(), 1);
            self.step();
            assert_eq!(self.wire(), [frame(number, 300)]);
            assert_eq!(self.completions(), [number]);
            self.arrive(frame(number, 1_000));
            let frames = self.receive();
            assert_eq!(frames.len(), 1, "{number}");
            assert_eq!(frames[0].data.bytes(), frame(number, 1_000));
        }
    }
}

/// A frame of `len` bytes to this device that no other number has.
fn frame(number: u64, len: usize) -> Vec<u8> {
    let mut bytes = [&model::MAC[..], &[2, 0, 0, 0, 0, 2], &[0x88, 0xB5], &number.to_be_bytes()].concat();
    bytes.extend((bytes.len()..len).map(|at| (at as u64 * 31 + number * 7) as u8));
    bytes
}

/// A packet of UDP or TCP over IPv4 to a port, with a traffic class, and all checksums right.
fn packet(protocol: u8, port: u16, class: u8) -> Vec<u8> {
    let header = if protocol == 6 { 20 } else { 8 };
    let len = 20 + header + 24;
    let mut bytes = [&model::MAC[..], &[2, 0, 0, 0, 0, 2], &[8, 0, 0x45, class, 0, len as u8]].concat();
    bytes.extend([0, 0, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1]);
    bytes.extend([0x10, 0, (port >> 8) as u8, port as u8, 0, if protocol == 6 { 0 } else { 32 }]);
    bytes.resize(14 + len, 0x5A);
    let field = if protocol == 6 { 50 } else { 40 };
    if protocol == 6 {
        bytes[46] = 0x50;
    }
    bytes[field..field + 2].fill(0);
    let sum = |bytes: &[u8], from: u32| {
        let words = bytes.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
        let sum = words.fold(from, |sum, word| sum + word);
        let sum = (sum & 0xFFFF) + (sum >> 16);
        !((sum & 0xFFFF) + (sum >> 16)) as u16
    };
    let ip = sum(&bytes[14..34], 0);
    bytes[24..26].copy_from_slice(&ip.to_be_bytes());
    let pseudo =
        bytes[26..34].chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum::<u32>();
    let layer4 = sum(&bytes[34..], pseudo + u32::from(protocol) + len as u32 - 20);
    bytes[field..field + 2].copy_from_slice(&layer4.to_be_bytes());
    bytes
}
