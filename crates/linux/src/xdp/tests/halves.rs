//! Receiver and sender over rings in a file, whose other ends the test has: a kernel that says what it should not.

use crate::stats::DeviceStats;
use crate::sys::map::{self, Scoped};
use crate::sys::rings::{CONTINUES, Consumer, Descriptor, HAS_METADATA, Layout, Producer};
use crate::xdp::receive::Receiver;
use crate::xdp::transmit::{Abilities, FRONT, METADATA, Sender};
use linerate_nic::{ChecksumRequest, Chunk, Pool, RxBatch, RxMeta, TxQueue};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::io::Errno;

const LAYOUT: Layout = Layout { producer: 0, consumer: 64, flags: 128, entries: 192 };
const RING: u32 = 8;
const CHUNK: usize = 2_048;

fn file() -> OwnedFd {
    let fd = memfd_create("rings", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&fd, 4_096).unwrap();
    fd
}

fn mapped(fd: &OwnedFd) -> Scoped {
    map::map(fd.as_fd(), 4_096).unwrap().scoped()
}

fn pool(count: usize) -> (Pool, usize) {
    let area = map::anonymous(count * CHUNK).unwrap();
    let base = area.address();
    (Pool::over(area.into_bytes(), CHUNK, CHUNK).unwrap(), base)
}

/// A receiver with twelve buffers, and the kernel's ends of its rings.
struct Bench {
    receiver: Receiver,
    pool: Pool,
    frames: Producer<Descriptor>,
    free: Consumer<u64>,
    batch: RxBatch,
    stats: DeviceStats,
}

impl Bench {
    fn new(pieces: usize) -> Bench {
        let (ring, fill) = (file(), file());
        let (pool, base) = pool(12);
        let receiver = Receiver::new(
            Consumer::new(mapped(&ring), LAYOUT, RING).unwrap(),
            Producer::new(mapped(&fill), LAYOUT, RING).unwrap(),
            pool.clone(),
            base,
            pieces,
            RING as usize,
        );
        Bench {
            receiver,
            pool,
            frames: Producer::new(mapped(&ring), LAYOUT, RING).unwrap(),
            free: Consumer::new(mapped(&fill), LAYOUT, RING).unwrap(),
            batch: RxBatch::with_limit(16),
            stats: DeviceStats::default(),
        }
    }

    /// A buffer that the receiver has given the kernel.
    fn buffer(&mut self) -> u64 {
        let address = self.free.pop().expect("a buffer to fill");
        self.free.release();
        address
    }

    /// Lets the kernel say this; returns how many frames the receiver makes of it.
    fn say(&mut self, descriptors: &[(u64, u32, u32)]) -> usize {
        for &(address, len, options) in descriptors {
            assert!(self.frames.push(Descriptor { address, len, options }));
        }
        self.frames.publish();
        let before = self.batch.len();
        self.receiver.receive(&mut self.batch, &mut self.stats, |_| RxMeta::default());
        self.batch.len() - before
    }
}

#[test]
fn only_what_was_lent_becomes_a_frame() {
    let mut bench = Bench::new(1);
    assert_eq!(bench.free.waiting(), RING);
    let address = bench.buffer();
    assert_eq!(bench.say(&[(address + 258, 60, 0)]), 1);
    assert_eq!(bench.batch.pop().unwrap().len(), 60);
    // A second time, a buffer that the pool has, memory that does not exist.
    for wrong in [address + 258, 12 * CHUNK as u64, u64::MAX, 1 << 40] {
        assert_eq!(bench.say(&[(wrong, 60, 0)]), 0, "{wrong:#x}");
    }
    assert_eq!(bench.stats.rx_refused, 4);
    // Beyond the end of its buffer: refused, and the buffer is lent again.
    let address = bench.buffer();
    assert_eq!(bench.say(&[(address + 2_000, 49, 0)]), 0);
    let address = bench.buffer();
    assert_eq!(bench.say(&[(address, u32::MAX, 0)]), 0);
    assert_eq!(bench.stats.rx_refused, 6);
    assert_eq!(bench.pool.free() + RING as usize, 12, "nothing is lost");
}

#[test]
fn pieces_are_joined_and_broken_frames_are_skipped() {
    let mut bench = Bench::new(3);
    let (a, b, c) = (bench.buffer(), bench.buffer(), bench.buffer());
    // A frame whose pieces come in two turns.
    assert_eq!(bench.say(&[(a + 258, 1_000, CONTINUES), (b + 258, 1_000, CONTINUES)]), 0);
    assert_eq!(bench.say(&[(c + 258, 7, 0)]), 1);
    let frame = bench.batch.pop().unwrap();
    assert_eq!((frame.len(), frame.more.len()), (2_007, 2));
    drop(frame);
    // One of whose pieces is nothing: the rest goes with it, and the next frame is whole.
    let (a, b, c) = (bench.buffer(), bench.buffer(), bench.buffer());
    let said = [(a, 9, CONTINUES), (a, 9, CONTINUES), (b, 9, 0), (c, 9, 0)];
    assert_eq!(bench.say(&said), 1);
    assert_eq!(bench.batch.pop().unwrap().len(), 9);
    // More pieces than any frame has.
    let four: Vec<_> = (0..4).map(|at| (bench.buffer(), 5, if at < 3 { CONTINUES } else { 0 })).collect();
    assert_eq!(bench.say(&four), 0);
    assert_eq!(bench.stats.rx_cut, 1);
    assert_eq!(bench.pool.free() + RING as usize, 12, "nothing is lost");
}

#[test]
fn the_kernel_keeps_some_buffers_whatever_happens() {
    let mut bench = Bench::new(1);
    let mut held = Vec::new();
    for _ in 0..40 {
        let address = bench.buffer();
        bench.say(&[(address, 60, 0)]);
        held.extend(std::iter::from_fn(|| bench.batch.pop()));
    }
    assert_eq!((held.len(), bench.stats.rx_cut), (10, 30));
    held.pop();
    bench.say(&[]);
    let address = bench.buffer();
    assert_eq!(bench.say(&[(address, 60, 0)]), 1);
}

/// A sender with four buffers, and the kernel's ends of its rings.
fn sender(abilities: Abilities) -> (Sender, Consumer<Descriptor>, Producer<u64>, usize) {
    let (ring, complete) = (file(), file());
    let (pool, base) = pool(4);
    let sender = Sender::new(
        Producer::new(mapped(&ring), LAYOUT, RING).unwrap(),
        Consumer::new(mapped(&complete), LAYOUT, RING).unwrap(),
        &pool,
        3 * CHUNK,
        abilities,
    );
    let kernel = Consumer::new(mapped(&ring), LAYOUT, RING).unwrap();
    (sender, kernel, Producer::new(mapped(&complete), LAYOUT, RING).unwrap(), base)
}

fn packets(count: usize, payload: &'static [u8]) -> TxQueue {
    let mut queue = TxQueue::with_capacity(count);
    for _ in 0..count {
        let packet = queue.vacant().unwrap();
        packet.header_mut(3).copy_from_slice(b"abc");
        packet.push_chunk(Chunk::constant(payload)).unwrap();
        packet.meta.checksum = Some(ChecksumRequest { start: 34, offset: 16 });
        queue.commit();
    }
    queue
}

#[test]
fn frames_have_metadata_where_the_kernel_sums() {
    for checksums in [false, true] {
        let (mut sender, mut kernel, _, _) = sender(Abilities { pieces: false, checksums });
        assert_eq!(sender.put(&packets(1, b"defg")), Ok(1));
        assert_eq!(kernel.pop(), None, "not yet shown");
        sender.publish();
        let descriptor = kernel.pop().unwrap();
        assert_eq!(descriptor.len, 7);
        assert_eq!(descriptor.address as usize % CHUNK, FRONT);
        assert!((3..7).contains(&(descriptor.address as usize / CHUNK)));
        assert_eq!(descriptor.options, if checksums { HAS_METADATA } else { 0 });
        let bytes = sender.bytes(&descriptor);
        assert_eq!(&bytes[FRONT..FRONT + 7], b"abcdefg");
        if checksums {
            let metadata = &bytes[FRONT - METADATA..FRONT];
            assert_eq!(metadata[..8], 2u64.to_ne_bytes());
            assert_eq!(metadata[8..12], [34u16.to_ne_bytes(), 16u16.to_ne_bytes()].concat());
            assert!(metadata[12..].iter().all(|&byte| byte == 0));
        }
    }
}

#[test]
fn buffers_come_back_once() {
    let (mut sender, mut kernel, mut complete, _) = sender(Abilities { pieces: false, checksums: false });
    let queue = packets(6, b"x");
    assert_eq!(sender.put(&queue), Ok(4));
    assert_eq!(sender.put(&queue), Err(Errno::NOBUFS));
    sender.publish();
    let sent = kernel.pop().unwrap().address;
    kernel.release();
    let mut say = |sender: &mut Sender, address: u64| {
        assert!(complete.push(address));
        complete.publish();
        sender.reap()
    };
    assert_eq!(say(&mut sender, sent), 1);
    // Again, and what was never given.
    for wrong in [sent, 0, 2 * CHUNK as u64, 7 * CHUNK as u64, u64::MAX] {
        assert_eq!(say(&mut sender, wrong), 0, "{wrong:#x}");
    }
    assert_eq!(sender.put(&queue), Ok(1));
    assert_eq!(sender.put(&queue), Err(Errno::NOBUFS));
}

#[test]
fn long_packets_take_several_buffers_or_none() {
    static LONG: [u8; 4_500] = [7; 4_500];
    let (mut plain, ..) = sender(Abilities { pieces: false, checksums: true });
    assert_eq!(plain.put(&packets(1, &LONG)), Err(Errno::MSGSIZE));
    let (mut sender, mut kernel, _, _) = sender(Abilities { pieces: true, checksums: true });
    let queue = packets(2, &LONG);
    // Three of four buffers.
    assert_eq!(sender.put(&queue), Ok(1));
    assert_eq!(sender.put(&queue), Err(Errno::NOBUFS));
    sender.publish();
    let pieces: Vec<Descriptor> = std::iter::from_fn(|| kernel.pop()).collect();
    let options: Vec<u32> = pieces.iter().map(|piece| piece.options).collect();
    assert_eq!(options, [CONTINUES | HAS_METADATA, CONTINUES, 0]);
    let mut whole = Vec::new();
    for piece in &pieces {
        whole.extend_from_slice(&sender.bytes(piece)[FRONT..FRONT + piece.len as usize]);
    }
    assert!(whole[..3] == *b"abc" && whole[3..] == LONG);
    assert_eq!(sender.put(&packets(1, b"short")), Ok(1), "the fourth");
}
