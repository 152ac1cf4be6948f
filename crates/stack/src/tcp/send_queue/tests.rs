//! The send queue: bytes in, pieces out, nothing lost.

use super::*;
use crate::tcp::budget::MemoryBudget;
use alloc::vec;
use alloc::vec::Vec;
use linerate_transport::FileId;
use proptest::prelude::*;

const START: u64 = 1_000;

fn queue() -> (SendQueue, MemoryBudget) {
    let budget = MemoryBudget::new(1 << 20);
    (SendQueue::new(START, budget.charge()), budget)
}

fn bytes_of(queue: &SendQueue, from: u64, len: u64) -> Vec<u8> {
    let mut packet = TxPacket::new();
    let got = queue.gather(from, len, &mut packet);
    let bytes: Vec<u8> = packet.chunks().iter().flat_map(|chunk| chunk.bytes().to_vec()).collect();
    assert_eq!(bytes.len() as u64, got);
    bytes
}

fn file(offset: u64, len: u64) -> FileRange {
    FileRange { file: FileId::new(1, 1), offset, len }
}

#[test]
fn any_range_comes_out_across_pieces() {
    let (mut queue, budget) = queue();
    queue.push(Chunk::constant(b"abc"), 0).unwrap();
    queue.push(Chunk::Shared(vec![b'd', b'e'].into()), 2).unwrap();
    queue.push(Chunk::constant(b"fgh"), 0).unwrap();
    let all = b"abcdefgh";
    for from in 0..8 {
        for len in 0..(8 - from) {
            let expected = &all[from as usize..(from + len) as usize];
            assert_eq!(bytes_of(&queue, START + from, len), expected);
        }
    }
    assert_eq!(budget.used(), 2);
    queue.acknowledge(START + 4);
    assert_eq!(bytes_of(&queue, START + 4, 9), b"efgh");
    assert_eq!((queue.len(), queue.loaded(), budget.used()), (4, 4, 2));
    queue.acknowledge(START + 5);
    assert_eq!(budget.used(), 0);
    queue.acknowledge(START + 99);
    assert_eq!((queue.len(), queue.loaded()), (0, 0));
}

#[test]
fn short_writes_share_a_page_that_nobody_else_reads() {
    let (mut queue, budget) = queue();
    let pool = Pool::new(3, 8);
    assert!(queue.copy(b"abc", &pool) && queue.copy(b"de", &pool));
    assert_eq!(pool.free(), 2);
    let mut packet = TxPacket::new();
    queue.gather(START, 5, &mut packet);
    assert!(queue.copy(b"fg", &pool), "the page is in the ring: a fresh one");
    assert_eq!((pool.free(), budget.used()), (1, 16));
    packet.clear();
    queue.acknowledge(START + 6);
    assert_eq!(bytes_of(&queue, START + 6, 1), b"g");
    assert!(queue.copy(b"hijklmnopqrstu", &pool));
    assert_eq!(bytes_of(&queue, START + 6, 99), b"ghijklmnopqrstu");
    assert!(!queue.copy(&[0; 16], &pool), "two more pages are not there");
    assert_eq!(queue.len(), 15, "all or nothing");
    queue.acknowledge(queue.end());
    assert_eq!((pool.free(), budget.used()), (3, 0));
}

#[test]
fn files_are_read_a_bounded_amount_ahead_and_in_any_order() {
    let (mut queue, budget) = queue();
    queue.push(Chunk::constant(b"head"), 0).unwrap();
    queue.push_file(file(100, 50_000));
    queue.push(Chunk::constant(b"tail"), 0).unwrap();
    queue.push_file(file(7, 3));
    assert_eq!(queue.len(), 50_011);
    assert_eq!(queue.ready_end(), START + 4);
    let mut asked = vec![];
    while let Some(wanted) = queue.next_read(64_000) {
        assert_eq!(queue.next_read(64_000), Some(wanted), "asking changes nothing");
        queue.read_started(&wanted);
        asked.push(wanted);
    }
    assert_eq!(asked.iter().map(|w| w.range.len).collect::<Vec<_>>(), [16_000, 16_000, 16_000, 2_000]);
    assert_eq!(budget.used(), 50_000, "others see what is being read");
    assert_eq!((asked[0].range, asked[1].range), (file(100, 16_000), file(16_100, 16_000)));
    queue.read_done(asked[2].at, Bytes::from(vec![3; 16_000])).unwrap();
    queue.read_done(asked[1].at, Bytes::from(vec![2; 16_000])).unwrap();
    assert_eq!(queue.ready_end(), START + 4, "the first piece is missing");
    queue.read_done(asked[0].at, Bytes::from(vec![1; 17_000])).unwrap();
    assert_eq!((queue.ready_end(), budget.used()), (START + 48_004, 50_000));
    assert_eq!(bytes_of(&queue, START + 2, 5), b"ad\x01\x01\x01");
    assert_eq!(bytes_of(&queue, START + 16_002, 4), [1, 1, 2, 2]);
    queue.acknowledge(START + 48_004);
    let mut rest = vec![];
    while let Some(wanted) = queue.next_read(64_000) {
        queue.read_started(&wanted);
        rest.push(wanted);
    }
    assert_eq!(rest.iter().map(|w| w.range.len).collect::<Vec<_>>(), [3]);
    for wanted in rest.iter().chain(&asked[3..]) {
        queue.read_done(wanted.at, Bytes::from(vec![9; wanted.range.len as usize])).unwrap();
    }
    assert_eq!(queue.ready_end(), queue.end());
    assert_eq!(bytes_of(&queue, queue.end() - 8, 99), b"\x09tail\x09\x09\x09");
}

#[test]
fn short_and_unasked_data_are_errors() {
    let (mut queue, budget) = queue();
    queue.push_file(file(0, 10));
    let wanted = queue.next_read(100).unwrap();
    assert_eq!(queue.read_done(wanted.at, Bytes::from(vec![0; 10])), Err(ShortFile), "not asked for yet");
    queue.read_started(&wanted);
    assert_eq!(queue.read_done(wanted.at + 1, Bytes::from(vec![0; 10])), Err(ShortFile));
    assert_eq!(queue.read_done(wanted.at, Bytes::from(vec![0; 9])), Err(ShortFile));
    queue.read_done(wanted.at, Bytes::from(vec![0; 10])).unwrap();
    assert_eq!(budget.used(), 10);
    queue.clear();
    assert_eq!((budget.used(), queue.len()), (0, 0));
    assert_eq!(queue.read_done(wanted.at, Bytes::from(vec![0; 10])), Err(ShortFile));
}

#[test]
fn the_gather_list_bounds_a_packet() {
    let (mut queue, _budget) = queue();
    for _ in 0..100 {
        queue.push(Chunk::constant(b"x"), 0).unwrap();
    }
    assert_eq!(bytes_of(&queue, START, 100).len(), linerate_nic::MAX_CHUNKS);
}

proptest! {
    /// Whatever is given back between reads, and however often: every byte comes out once and in order, and nothing stays
    /// charged.
    #[test]
    fn what_was_given_back_is_read_anew(
        pieces in prop::collection::vec((any::<bool>(), 1..60_000_u64), 1..8),
        steps in prop::collection::vec((0..5_u8, any::<u32>()), 1..200),
    ) {
        let (mut queue, budget) = queue();
        let mut stream = vec![];
        for (is_file, len) in pieces {
            let at = stream.len() as u64;
            let bytes: Vec<u8> = (at..at + len).map(|place| (place % 251) as u8).collect();
            if is_file {
                queue.push_file(file(at, len));
            } else {
                let cost = bytes.len();
                prop_assert!(queue.push(Chunk::Shared(Bytes::from(bytes.clone())), cost).is_ok());
            }
            stream.extend(bytes);
        }
        let mut asked: Vec<Wanted> = vec![];
        let (mut una, mut nxt) = (START, START);
        let finish = (0..2_000).map(|step| (step as u8 % 4, 0));
        for (step, which) in steps.into_iter().chain(finish) {
            match step {
                0 => while let Some(wanted) = queue.next_read(40_000) {
                    queue.read_started(&wanted);
                    asked.push(wanted);
                }
                1 if !asked.is_empty() => {
                    let Wanted { at, range } = asked.swap_remove(which as usize % asked.len());
                    let data = &stream[range.offset as usize..][..range.len as usize];
                    prop_assert_eq!(at - START, range.offset);
                    prop_assert!(queue.read_done(at, Bytes::copy_from_slice(data)).is_ok());
                }
                2 => {
                    let ready = queue.ready_end() - nxt;
                    let len = (u64::from(which) % (ready + 1)).max(ready.min(20_000));
                    let sent = bytes_of(&queue, nxt, len);
                    let at = (nxt - START) as usize;
                    prop_assert_eq!(&sent[..], &stream[at..at + sent.len()]);
                    nxt += sent.len() as u64;
                }
                3 => {
                    una = (una + (u64::from(which) % (nxt - una + 1)).max((nxt - una) / 2 + 1)).min(nxt);
                    queue.acknowledge(una);
                }
                4 => {
                    queue.unload(nxt + u64::from(which) % 50_000);
                    prop_assert!(queue.ready_end() >= nxt && queue.loaded() <= queue.len());
                }
                _ => {}
            }
        }
        prop_assert_eq!((una, queue.len(), budget.used()), (START + stream.len() as u64, 0, 0));
    }
}
