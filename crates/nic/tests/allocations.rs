//! Nothing is allocated per packet: a port sends, splits, verifies and coalesces with what it got when it was made.

use linerate_nic::{
    Capabilities, ChecksumRequest, Chunk, Device, Link, Pool, Port, PortConfig, RxBatch, Segmentation,
    TxMeta, TxQueue, TxToken,
};
use linerate_wire::checksum::{Sum, pseudo_header4};
use linerate_wire::units::Instant;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Of this thread: the test harness has its own. A constant without a destructor needs no memory of the allocator.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call goes to the system's allocator as it came; counting touches no memory but the counter.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const PAYLOAD: usize = 29_200;

/// Ethernet, IPv4 and TCP headers of a super-segment.
fn headers(sequence: u32) -> [u8; 54] {
    let mut bytes = [0; 54];
    bytes[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
    bytes[16..18].copy_from_slice(&((40 + PAYLOAD) as u16).to_be_bytes());
    bytes[20..24].copy_from_slice(&[0x40, 0, 64, 6]);
    bytes[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    let mut sum = Sum::ZERO;
    sum.add(&bytes[14..34]);
    bytes[24..26].copy_from_slice(&sum.finish().to_be_bytes());
    bytes[34..38].copy_from_slice(&[0x30, 0x39, 0, 80]);
    bytes[38..42].copy_from_slice(&sequence.to_be_bytes());
    bytes[46..50].copy_from_slice(&[0x50, 0x10, 0xff, 0xff]);
    let pseudo = pseudo_header4([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 6, (20 + PAYLOAD) as u32);
    bytes[50..52].copy_from_slice(&pseudo.folded().to_be_bytes());
    bytes
}

fn turn(
    a: &mut Port<Link>,
    b: &mut Port<Link>,
    queue: &mut TxQueue,
    batch: &mut RxBatch,
    pages: &Pool,
    round: u32,
) {
    let packet = queue.vacant().expect("a slot");
    packet.header_mut(54).copy_from_slice(&headers(round.wrapping_mul(PAYLOAD as u32)));
    let page = pages.take().expect("a page").freeze(0..PAYLOAD);
    packet.push_chunk(Chunk::Pool(page)).expect("room for a chunk");
    packet.meta = TxMeta {
        checksum: Some(ChecksumRequest { start: 34, offset: 16 }),
        segmentation: Segmentation::Tcp4(1460),
        header_len: 54,
        token: TxToken(u64::from(round) + 1),
    };
    queue.commit();
    a.transmit(Instant::ZERO, queue).expect("a device");
    assert_eq!(a.poll_completion(), Some(TxToken(u64::from(round) + 1)));
    assert_eq!(b.receive(Instant::ZERO, batch), Ok(1));
    let frame = batch.pop().expect("a frame");
    assert_eq!((frame.len(), frame.more.len()), (54 + PAYLOAD, 19));
}

#[test]
fn a_packet_in_software_allocates_nothing() {
    let (pages, wire) = (Pool::new(4, 32_768), Pool::new(64, 2048));
    let (a, b) = Link::pair(&wire, 1500, Capabilities::NONE, 64);
    assert_eq!(a.capabilities(), Capabilities::NONE);
    let mut a = Port::new(a, PortConfig::default()).expect("a port");
    let mut b = Port::new(b, PortConfig::default()).expect("a port");
    let (mut queue, mut batch) = (TxQueue::with_capacity(4), RxBatch::with_limit(64));
    let before = ALLOCATIONS.get();
    for round in 0..100 {
        turn(&mut a, &mut b, &mut queue, &mut batch, &pages, round);
    }
    assert_eq!(ALLOCATIONS.get() - before, 0);
    assert_eq!((a.stats().tx.software_segments, b.stats().rx.coalesced), (2000, 1900));
    assert_eq!((pages.free(), wire.free()), (4, 64));
}
