//! The receiving half: acknowledgements, windows, reassembly, PAWS (RFC 9293 section 3.8, RFC 5681, RFC 2018, RFC 2883,
//! RFC 7323).

use super::solo::{ACK, FIN_ACK, SYN, Solo, ms, offer};
use super::world::{Network, World};
use super::{config, resources, stream};
use crate::tcp::{Config, DropReason, MemoryBudget, Outcome, Resources, State};
use alloc::vec::Vec;
use core::time::Duration;
use linerate_nic::Pool;
use linerate_transport::{BufferSize, DelayedAck, Ready, SendError, SocketOptions};
use linerate_wire::tcp::{Options, Timestamps};
use proptest::prelude::*;

fn with(change: impl FnOnce(&mut SocketOptions)) -> Config {
    let mut socket = SocketOptions::default();
    change(&mut socket);
    Config { quick_acks: 0, ..Config::new(socket, 1_460) }
}

fn sized(receive: usize) -> Config {
    with(|socket| socket.receive_buffer = BufferSize::Fixed(receive))
}

/// SACK blocks of our segment, counted from the peer's first byte.
fn blocks(seen: &super::solo::Seen) -> Vec<(i64, i64)> {
    let count = |n: linerate_wire::tcp::SeqNumber| {
        i64::from(n.0.wrapping_sub(super::solo::IRS).wrapping_sub(1) as i32)
    };
    let blocks = seen.wire.options.sack_blocks;
    blocks.as_slice().iter().map(|block| (count(block.left), count(block.right))).collect()
}

#[test]
fn every_second_full_segment_is_acknowledged() {
    let mut solo = Solo::established();
    let mut acks = Vec::new();
    for n in 0..6 {
        let _ = solo.input(ACK, n * 1_460, 0, 1_460);
        acks.push(solo.output().len());
    }
    assert_eq!(acks, [0, 1, 0, 1, 0, 1]);
}

#[test]
fn reading_is_no_news_to_a_peer_that_cannot_be_offered_more() {
    let options = Options { window_scale: None, ..offer(true, false) };
    let mut solo = Solo::established_with(sized(1 << 20), options);
    for n in 0..4 {
        let _ = solo.input(ACK, n * 1_460, 0, 1_460);
        solo.output();
        solo.connection.consume(solo.now, 1_460);
        assert_eq!(solo.output().len(), 0, "the window is as large as it can be");
    }
}

#[test]
fn delayed_acks_follow_their_settings() {
    for (segments, expected) in [(1, [1, 1, 1, 1]), (2, [0, 1, 0, 1]), (4, [0, 0, 0, 1])] {
        let delayed = DelayedAck { segments, timeout: ms(40) };
        let mut solo = Solo::established_with(with(|s| s.delayed_ack = delayed), offer(true, false));
        let acks: Vec<_> = (0..4)
            .map(|n| {
                let _ = solo.input(ACK, n * 1_000, 0, 1_000);
                solo.output().len()
            })
            .collect();
        assert_eq!(acks, expected, "{segments}");
    }
    for timeout in [5, 40, 200] {
        let delayed = DelayedAck { segments: 2, timeout: ms(timeout) };
        let mut solo = Solo::established_with(with(|s| s.delayed_ack = delayed), offer(true, false));
        let _ = solo.input(ACK, 0, 0, 1_000);
        assert!(solo.output().is_empty());
        assert_eq!(solo.fire(), ms(timeout));
        assert_eq!(solo.output()[0].ack, 1_000);
        assert!(solo.output().is_empty());
    }
}

#[test]
fn a_segment_that_fills_the_window_is_not_waited_upon() {
    // Three segments: after the third, the peer may send nothing more until it hears of us.
    let mut solo = Solo::established_with(sized(3 * 1_460), offer(true, false));
    let mut acks = Vec::new();
    for n in 0..3 {
        let _ = solo.input(ACK, n * 1_460, 0, 1_460);
        acks.push(solo.output().len());
    }
    assert_eq!(acks, [0, 1, 1]);
    // A short one leaves room for another.
    let mut solo = Solo::established_with(sized(3 * 1_460), offer(true, false));
    let _ = solo.input(ACK, 0, 0, 100);
    assert!(solo.output().is_empty());
}

#[test]
fn a_small_window_holds_whole_segments() {
    for (timestamps, segment) in [(false, 1_460), (true, 1_448)] {
        // A device with room for four frames: the window is the least, two segments.
        let budget = MemoryBudget::with_receive(1 << 20, Some(Pool::new(64, 1_536)), Some(4));
        let resources = Resources { budget, ..resources() };
        let config = with(|socket| socket.receive_buffer = BufferSize::Fixed(32 << 10));
        let options = Options { window_scale: Some(0), ..offer(true, timestamps) };
        let mut solo = Solo::established_in(config, options, resources);
        for n in 0..8 {
            let _ = solo.input(ACK, n * segment, 0, segment as usize);
            solo.connection.consume(solo.now, segment as usize);
            let _ = solo.output();
        }
        let window = solo.connection.info(solo.now).receive_window;
        assert_eq!(i64::from(window) % segment, 0, "a window of {window} bytes, segments of {segment}");
    }
}

#[test]
fn a_batch_is_acknowledged_once() {
    let mut solo = Solo::established();
    for n in 0..20 {
        let _ = solo.input(ACK, n * 1_460, 0, 1_460);
    }
    let sent = solo.output();
    assert_eq!((sent.len(), sent[0].ack), (1, 29_200));
}

#[test]
fn data_carries_the_acknowledgement() {
    let mut solo = Solo::established();
    let _ = solo.input(ACK, 0, 0, 1_460);
    let _ = solo.input(ACK, 1_460, 0, 1_460);
    solo.send(10);
    let sent = solo.output();
    assert_eq!((sent.len(), sent[0].ack, sent[0].len), (1, 2_920, 10));
    solo.pass(ms(100));
    assert!(solo.output().is_empty(), "nothing is left to acknowledge");
}

#[test]
fn a_gap_is_reported_at_once_newest_block_first() {
    let mut solo = Solo::established();
    let expected: [&[(i64, i64)]; 6] = [
        &[(1_000, 1_100)],
        &[(3_000, 3_100), (1_000, 1_100)],
        &[(5_000, 5_100), (3_000, 3_100), (1_000, 1_100)],
        &[(7_000, 7_100), (5_000, 5_100), (3_000, 3_100), (1_000, 1_100)],
        &[(9_000, 9_100), (7_000, 7_100), (5_000, 5_100), (3_000, 3_100)],
        &[(3_000, 3_200), (9_000, 9_100), (7_000, 7_100), (5_000, 5_100)],
    ];
    for (at, expected) in [1_000, 3_000, 5_000, 7_000, 9_000, 3_100].into_iter().zip(expected) {
        assert_eq!(solo.input(ACK, at, 0, 100), Outcome::Accepted);
        let sent = solo.output();
        assert_eq!((sent.len(), sent[0].ack), (1, 0));
        assert_eq!(blocks(&sent[0]), expected);
    }
    let _ = solo.input(ACK, 0, 0, 1_000);
    let sent = solo.output();
    assert_eq!((sent[0].ack, solo.connection.readable()), (1_100, 1_100), "acknowledged at once");
}

#[test]
fn with_timestamps_three_blocks_fit() {
    let mut solo = Solo::established_with(config(), offer(true, true));
    for at in [1_000, 3_000, 5_000, 7_000] {
        let _ = solo.input(ACK, at, 0, 100);
    }
    let sent = solo.output();
    assert_eq!(blocks(&sent[0]), [(5_000, 5_100), (3_000, 3_100), (1_000, 1_100)]);
    assert_eq!(blocks(&sent[1]), [(7_000, 7_100), (5_000, 5_100), (3_000, 3_100)]);
    assert_eq!(sent.len(), 2, "RFC 2018 section 4: all that a batch brought is reported, by as few as can");
}

#[test]
fn duplicates_are_reported_once() {
    // RFC 2883.
    let mut solo = Solo::established();
    let _ = solo.input(ACK, 0, 0, 1_000);
    assert_eq!(solo.input(ACK, 200, 0, 300), Outcome::Dropped(DropReason::Duplicate));
    assert_eq!(blocks(&solo.output()[0]), [(200, 500)]);
    let _ = solo.input(ACK, 2_000, 0, 100);
    assert_eq!(blocks(&solo.output()[0]), [(2_000, 2_100)]);
    let _ = solo.input(ACK, 2_000, 0, 100);
    assert_eq!(blocks(&solo.output()[0]), [(2_000, 2_100), (2_000, 2_100)], "a duplicate above the gap");
    let _ = solo.input(ACK, 900, 0, 200);
    assert_eq!(blocks(&solo.output()[0]), [(900, 1_000), (2_000, 2_100)], "half old, half new");
    assert_eq!(solo.connection.readable(), 1_100);
}

#[test]
fn peers_without_sack_get_one_duplicate_per_segment() {
    // RFC 5681 section 4.2, and the segments of a coalesced frame count one by one.
    let mut solo = Solo::established_with(config(), offer(false, false));
    for at in [2_000, 3_000, 4_000] {
        let _ = solo.input(ACK, at, 0, 1_000);
    }
    solo.send(100);
    let sent = solo.output();
    assert_eq!(sent.iter().map(|s| s.len).collect::<Vec<_>>(), [0, 0, 0, 100], "no data in duplicates");
    assert!(sent.iter().all(|s| s.ack == 0 && s.wire.options.sack_blocks.is_empty()));
}

#[test]
fn a_fin_out_of_order_waits() {
    let mut solo = Solo::established();
    let _ = solo.input(FIN_ACK, 1_000, 0, 500);
    assert_eq!(solo.connection.tcp_state(), State::Established);
    assert_eq!(solo.connection.poll_ready(), Ready::NONE);
    let _ = solo.input(ACK, 0, 0, 1_000);
    assert_eq!(solo.connection.tcp_state(), State::CloseWait);
    assert_eq!(solo.connection.poll_ready(), Ready::READABLE | Ready::FINISHED);
    assert_eq!(solo.output()[0].ack, 1_501);
}

#[test]
fn readiness_comes_with_every_arrival() {
    let mut solo = Solo::established();
    for n in 0..3 {
        let _ = solo.input(ACK, n * 10, 0, 10);
        assert_eq!(solo.connection.poll_ready(), Ready::READABLE);
        assert_eq!(solo.connection.poll_ready(), Ready::NONE);
    }
    assert_eq!(solo.connection.peek(), stream(0..30).as_slice(), "short segments were joined in a page");
    solo.connection.consume(solo.now, 15);
    assert_eq!((solo.connection.readable(), solo.connection.peek()), (15, &stream(15..30)[..]));
    solo.connection.consume(solo.now, 99);
    assert_eq!((solo.connection.readable(), solo.connection.peek()), (0, &[][..]));
}

#[test]
fn the_window_is_never_more_than_the_buffer_and_its_edge_never_moves_back() {
    let mut solo = Solo::established_with(sized(20_000), offer(true, false));
    let mut edge = 0;
    let mut at = 0;
    for n in 0..14 {
        let _ = solo.input(ACK, at, 0, 1_400);
        at += 1_400;
        for segment in solo.output() {
            let window = i64::from(segment.wire.window);
            assert!(window <= 20_000 - at);
            assert!(segment.ack + window >= edge);
            edge = segment.ack + window;
        }
        if n == 7 {
            solo.connection.consume(solo.now, 500);
        }
    }
    assert_eq!(edge, 20_000, "500 bytes are not worth a step of the edge");
    solo.connection.consume(solo.now, 2_000);
    let _ = solo.input(ACK, at, 0, 400);
    let _ = solo.input(ACK, at + 300, 0, 1_460);
    let last = solo.output().pop().unwrap();
    assert!(last.ack + i64::from(last.wire.window) >= 22_000);
}

#[test]
fn an_update_is_sent_when_the_window_is_worth_it() {
    // RFC 9293 section 3.8.6.2.2.
    let mut solo = Solo::established_with(sized(8_000), offer(true, false));
    for n in 0..8 {
        let _ = solo.input(ACK, n * 1_000, 0, 1_000);
    }
    assert_eq!(solo.output().pop().unwrap().wire.window, 0);
    for _ in 0..29 {
        solo.connection.consume(solo.now, 100);
        assert!(solo.output().is_empty(), "not for less than two segments");
    }
    solo.connection.consume(solo.now, 100);
    let update = solo.output();
    assert_eq!((update.len(), update[0].wire.window, update[0].len), (1, 3_000, 0));
}

#[test]
fn bytes_beyond_the_window_are_cut() {
    let mut solo = Solo::established_with(sized(3_000), offer(true, false));
    let _ = solo.input(ACK, 0, 0, 1_400);
    let _ = solo.input(ACK, 1_400, 0, 1_400);
    assert_eq!(solo.input(ACK, 2_800, 0, 1_400), Outcome::Dropped(DropReason::OutOfWindow));
    assert_eq!(solo.connection.readable(), 3_000);
    let full = solo.output().pop().unwrap();
    assert_eq!((full.ack, full.wire.window), (3_000, 0));
    // A probe of the closed window is answered, and its acknowledgement counts.
    solo.send(5);
    solo.output();
    assert_eq!(solo.input(ACK, 3_000, 5, 1), Outcome::Dropped(DropReason::OutOfWindow));
    assert_eq!(solo.output()[0].ack, 3_000);
    assert_eq!(solo.connection.unsent(), 0);
}

#[test]
fn segments_outside_the_window_are_answered_and_dropped() {
    let mut solo = Solo::established_with(sized(3_000), offer(true, false));
    assert_eq!(solo.input(ACK, 5_000, 0, 100), Outcome::Dropped(DropReason::OutOfWindow));
    assert_eq!(solo.output().len(), 1);
    assert_eq!(solo.input(ACK, -100, 0, 50), Outcome::Dropped(DropReason::Duplicate));
    assert_eq!(solo.output().len(), 1);
    assert_eq!(solo.input(ACK, -1, 0, 0), Outcome::Accepted, "a keep-alive probe");
    assert_eq!(solo.output().len(), 1);
}

#[test]
fn old_timestamps_are_refused() {
    // RFC 7323 section 5: a segment of a former round of the sequence space.
    let mut solo = Solo::established_with(config(), offer(true, true));
    let stamped = |value| Options { timestamps: Some(Timestamps { value, echo: 0 }), ..Options::default() };
    assert_eq!(solo.input_with(ACK, 0, 0, 100, stamped(5_000)), Outcome::Accepted);
    solo.connection.consume(solo.now, 100);
    let old = solo.input_with(ACK, 100, 0, 100, stamped(4_999));
    assert_eq!(old, Outcome::Dropped(DropReason::OldTimestamp));
    assert_eq!(solo.connection.readable(), 0);
    assert_eq!(solo.output()[0].ack, 100, "answered with an ACK");
    assert_eq!(solo.input_with(ACK, 100, 0, 100, stamped(5_000)), Outcome::Accepted);
    // After 24 days the last timestamp says nothing.
    solo.now += Duration::from_secs(25 * 24 * 3_600);
    assert_eq!(solo.input_with(ACK, 200, 0, 100, stamped(4_000)), Outcome::Accepted);
    solo.timestamps = false;
    let missing = solo.input_with(ACK, 300, 0, 100, Options::default());
    assert_eq!(missing, Outcome::Dropped(DropReason::NoTimestamp));
}

#[test]
fn a_syn_is_challenged_whatever_its_timestamp() {
    // RFC 5961 section 4.2: a peer that was restarted learns of the connection it had, also if it knows no timestamps any more.
    let stamped = |value| Options { timestamps: Some(Timestamps { value, echo: 0 }), ..Options::default() };
    for options in [Options::default(), stamped(1), stamped(9_000)] {
        for at in [-500_000, -1, 0, 10, 500_000] {
            let mut solo = Solo::established_with(config(), offer(true, true));
            solo.timestamps = false;
            let _ = solo.input_with(SYN, at, 0, 0, options);
            let sent = solo.output();
            let seen: Vec<_> = sent.iter().map(|segment| (segment.flags, segment.seq, segment.ack)).collect();
            assert_eq!(seen, [(ACK, 0, 0)], "{options:?}, {at}");
            assert_eq!(solo.connection.tcp_state(), State::Established);
        }
    }
}

#[test]
fn the_echo_is_that_of_the_segment_that_filled_the_gap() {
    // RFC 7323 section 4.3, cases (A) to (C).
    let mut solo = Solo::established_with(config(), offer(true, true));
    let stamped = |value| Options { timestamps: Some(Timestamps { value, echo: 0 }), ..Options::default() };
    let mut echo = |at, value| {
        let _ = solo.input_with(ACK, at, 0, 1_000, stamped(value));
        solo.pass(ms(50));
        solo.output().pop().unwrap().wire.options.timestamps.unwrap().echo
    };
    assert_eq!(echo(0, 2_001), 2_001);
    assert_eq!(echo(2_000, 2_003), 2_001);
    assert_eq!(echo(3_000, 2_004), 2_001);
    assert_eq!(echo(1_000, 2_005), 2_005);
}

#[test]
fn small_segments_do_not_hold_large_buffers() {
    let mut solo = Solo::established();
    solo.rx = Pool::new(2_000, 16_384);
    for n in 0..1_000 {
        let _ = solo.input(ACK, n * 10, 0, 10);
    }
    assert_eq!(solo.connection.readable(), 10_000);
    assert_eq!(solo.connection.receive_memory(), 5 * 2_048, "five pages, full");
    assert_eq!(solo.connection.bytes_compacted(), 10_000);
    assert_eq!(solo.rx.free(), 2_000);
    for n in 0..1_000 {
        assert_eq!(solo.connection.peek()[..10], stream(n * 10..n * 10 + 10));
        solo.connection.consume(solo.now, 10);
    }
    assert_eq!(solo.resources.budget.used(), 0);
    // Full segments are not copied.
    let before = solo.connection.bytes_compacted();
    solo.rx = Pool::new(10, 2_048);
    let _ = solo.input(ACK, 10_000, 0, 1_460);
    assert_eq!(solo.connection.bytes_compacted(), before);
}

#[test]
fn pieces_out_of_order_are_bounded() {
    let few = Config { max_out_of_order_pieces: 10, ..config() };
    let mut solo = Solo::established_with(few, offer(true, false));
    for n in 0..20 {
        let outcome = solo.input(ACK, 100 + n * 20, 0, 10);
        let expected = if n < 10 { Outcome::Accepted } else { Outcome::Dropped(DropReason::OutOfOrderFull) };
        assert_eq!(outcome, expected);
    }
    assert_eq!(solo.input(ACK, 0, 0, 110), Outcome::Accepted, "what is in order is always taken");
    assert_eq!(solo.connection.readable(), 110);
}

#[test]
fn a_large_window_of_segments_waits_for_the_one_that_is_missing() {
    let window = 12 << 20;
    let mut solo = Solo::established_with(sized(window), offer(true, false));
    solo.rx = Pool::new(9_000, 2_048);
    for n in 1..8_500 {
        assert_eq!(solo.input(ACK, n * 1_460, 0, 1_460), Outcome::Accepted, "segment {n}");
        solo.output();
    }
    let _ = solo.input(ACK, 0, 0, 1_460);
    assert_eq!(solo.connection.readable(), 8_500 * 1_460);
}

#[test]
fn memory_that_runs_out_is_a_state_like_others() {
    let mut solo = Solo::established();
    // Somebody else takes nearly all.
    let mut other = solo.resources.budget.charge();
    let limit = solo.resources.budget.limit();
    other.add(limit / 4 * 3 - 5_000);
    let mut sender = solo.resources.budget.charge_sending();
    assert!(sender.try_add(limit / 4 - 5_000) && !sender.try_add(10_000), "a quarter is kept for sending");
    assert_eq!(solo.input(ACK, 0, 0, 1_460), Outcome::Accepted);
    assert_eq!(solo.input(ACK, 1_460, 0, 1_460), Outcome::Accepted);
    assert_eq!(solo.input(ACK, 5_000, 0, 1_000), Outcome::Dropped(DropReason::NoMemory));
    assert_eq!(solo.input(ACK, 2_920, 0, 1_460), Outcome::Dropped(DropReason::NoMemory));
    assert_eq!(solo.output().pop().unwrap().ack, 2_920);
    let shared = || linerate_transport::Payload::Shared(linerate_transport::Bytes::from(stream(0..9_000)));
    assert_eq!(solo.connection.send(solo.now, shared()), Err(SendError::Full));
    drop((other, sender));
    assert_eq!(solo.input(ACK, 2_920, 0, 1_460), Outcome::Accepted);
    solo.connection.poll_ready();
    solo.pass(ms(10));
    assert_eq!(solo.connection.poll_ready(), Ready::WRITABLE);
    assert_eq!(solo.connection.send(solo.now, shared()), Ok(()));
}

#[test]
fn the_receive_buffer_grows_with_the_rate() {
    let network = Network { delay: ms(20), ..Network::default() };
    let mut world = World::plain(1, network);
    world.sides[0].to_send = 20 << 20;
    world.run_to_end(Duration::from_secs(600));
    let window = world.sides[1].sent.iter().map(|(_, wire)| u32::from(wire.window) << 7).max().unwrap();
    assert!(window > 1 << 20, "{window}");
    let seconds = (world.now.as_nanos() / 1_000_000_000) - 1;
    assert!(seconds <= 3, "{seconds} s for 20 MiB over 40 ms");
}

#[test]
fn a_slow_reader_keeps_the_buffer_small() {
    let mut world = World::plain(1, Network::default());
    world.sides[0].to_send = 1 << 20;
    world.sides[1].reads = false;
    world.run_for(ms(2_000));
    let held = world.sides[1].connection.readable();
    assert!(held <= 128 << 10 && held > (128 << 10) - 128, "{held}: up to the granularity of the window");
    world.sides[1].reads = true;
    world.run_to_end(Duration::from_secs(100));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Any segments of the same stream, in any order and overlap: each byte is delivered once and in order.
    #[test]
    fn any_cut_of_the_stream_is_delivered_once(
        cuts in proptest::collection::vec((0i64..3_000, 1usize..600), 1..60),
        reads in proptest::collection::vec(0usize..400, 60)
    ) {
        let mut solo = Solo::established_with(sized(4_000), offer(true, false));
        let mut got = Vec::new();
        let everything = (0..3_600).step_by(500).map(|at| (at, 500));
        for ((at, len), read) in cuts.into_iter().chain(everything).zip(reads.into_iter().cycle()) {
            let _ = solo.input(ACK, at, 0, len);
            solo.output();
            let mut left = read.min(solo.connection.readable());
            while left > 0 {
                let piece = solo.connection.peek();
                let take = piece.len().min(left);
                got.extend_from_slice(&piece[..take]);
                solo.connection.consume(solo.now, take);
                left -= take;
            }
        }
        while !solo.connection.peek().is_empty() {
            let piece = solo.connection.peek().to_vec();
            got.extend_from_slice(&piece);
            solo.connection.consume(solo.now, piece.len());
        }
        prop_assert!(got.len() >= 3_500);
        prop_assert_eq!(&got, &stream(0..got.len() as u64));
        prop_assert_eq!(solo.connection.readable(), 0);
    }
}
