//! The sending half: segmentation, windows, Nagle, silly windows, probes (RFC 9293 sections 3.7 and 3.8).

use super::solo::{ACK, FIN, Solo, ms, offer};
use super::world::{Network, World};
use super::{config, stream};
use crate::tcp::{Config, State, TxLimits};
use alloc::vec::Vec;
use core::time::Duration;
use linerate_nic::{Chunk, TxPacket};
use linerate_transport::{
    BufferSize, CloseReason, ConnState, LimitCause, Payload, Ready, SendError, SocketOptions,
};
use linerate_wire::tcp::{Flags, SeqNumber};

fn with(change: impl FnOnce(&mut SocketOptions)) -> Config {
    let mut socket = SocketOptions::default();
    change(&mut socket);
    Config::new(socket, 1_460)
}

#[test]
fn a_super_segment_is_cut_into_full_segments() {
    let mut solo = Solo::established();
    solo.limits.max_payload = 65_000;
    solo.send(10_000);
    let mut packet = TxPacket::new();
    let info = solo.connection.poll_transmit(solo.now, &solo.limits, &mut packet, 34).unwrap();
    assert_eq!((info.payload_len, info.segment_size, info.segments), (10_000, 1_460, 7));
    assert_eq!(packet.header().len(), 54);
    assert!(info.completion.is_none() && !info.retransmission);
    assert_eq!(solo.connection.counters().segments_sent, 7);
}

#[test]
fn a_super_segment_ends_on_a_segment_boundary_while_more_follows() {
    let mut solo = Solo::established();
    solo.limits.max_payload = 5_000;
    solo.send(7_000);
    let lengths = solo.lengths();
    assert_eq!(lengths, [(0, 1_460), (1_460, 1_460), (2_920, 1_460), (4_380, 1_460), (5_840, 1_160)]);
}

#[test]
fn payload_goes_by_reference() {
    static BYTES: [u8; 3_000] = [7; 3_000];
    let mut solo = Solo::established();
    solo.limits.max_payload = 65_000;
    solo.connection.send(solo.now, Payload::Static(&BYTES)).unwrap();
    let mut packet = TxPacket::new();
    solo.connection.poll_transmit(solo.now, &solo.limits, &mut packet, 34).unwrap();
    let [Chunk::Shared(bytes)] = packet.chunks() else { panic!("{:?}", packet.chunks()) };
    assert!(core::ptr::eq(bytes.as_ptr(), BYTES.as_ptr()));
}

#[test]
fn sack_blocks_leave_less_room_for_payload() {
    let mut solo = Solo::established();
    let _ = solo.input(ACK, 2_000, 0, 100);
    solo.send(3_000);
    let sent = solo.output();
    assert_eq!(sent[0].len, 1_460 - 12, "a block takes 12 bytes");
    assert_eq!(sent[0].wire.options.sack_blocks.len(), 1);
    assert!(sent.iter().all(|s| s.len + s.wire.options.emitted_len() <= 1_460));
}

#[test]
fn the_initial_window_is_ten_segments() {
    let mut solo = Solo::established();
    solo.send(60_000);
    assert_eq!(solo.output().len(), 10);
    assert_eq!(solo.connection.limited_by(), Some(LimitCause::Congestion));
    solo.ack(2_920);
    assert_eq!(solo.lengths().len(), 4, "slow start: two acknowledged, four sent");
}

#[test]
fn a_completion_does_not_blame_the_processor() {
    // The peer's window has room for less than a segment: what the device has sent changes nothing about that.
    let mut solo = Solo::established();
    solo.limits = TxLimits { max_payload: 0, completions: true };
    solo.window = 4_000;
    let _ = solo.input(ACK, 0, 0, 0);
    solo.send(10_000);
    let mut packet = TxPacket::new();
    let mut tags = Vec::new();
    while let Some(info) = solo.connection.poll_transmit(solo.now, &solo.limits, &mut packet, 34) {
        tags.push(info.completion.unwrap());
        packet.clear();
    }
    assert_eq!(solo.connection.limited_by(), Some(LimitCause::Device), "until it has sent what it has");
    solo.report_up_to(tags[1]);
    assert_eq!(solo.connection.limited_by(), Some(LimitCause::PeerWindow));
}

#[test]
fn an_idle_connection_starts_anew() {
    // RFC 5681 section 4.1.
    let mut solo = Solo::established();
    solo.send(30_000);
    let mut acked = 0;
    while acked < 30_000 {
        acked += solo.output().iter().map(|s| s.len as i64).sum::<i64>();
        solo.pass(ms(10));
        solo.ack(acked);
    }
    assert!(solo.connection.info(solo.now).congestion_window > 29_000);
    solo.pass(ms(1_000));
    solo.send(60_000);
    assert_eq!(solo.output().len(), 10);
}

#[test]
fn the_peers_window_is_respected_and_full_segments_are_preferred() {
    let mut solo = Solo::established();
    solo.window = 4_000;
    let _ = solo.input(ACK, 0, 0, 0);
    solo.send(10_000);
    assert_eq!(solo.lengths(), [(0, 1_460), (1_460, 1_460)], "1,080 bytes would be a silly segment");
    assert_eq!(solo.connection.limited_by(), Some(LimitCause::PeerWindow));
    solo.window = 2_000;
    solo.ack(1_460);
    assert!(solo.lengths().is_empty(), "the edge has not moved");
    solo.window = 2_960;
    solo.ack(1_460);
    assert_eq!(solo.lengths(), [(2_920, 1_460)]);
}

#[test]
fn a_small_window_is_used_after_the_override_timeout() {
    // RFC 9293 section 3.8.6.2.1, case (4).
    let mut solo = Solo::established();
    solo.window = 700;
    let _ = solo.input(ACK, 0, 0, 0);
    solo.send(10_000);
    assert!(solo.lengths().is_empty());
    let waited = solo.fire();
    assert!(waited >= ms(100) && waited <= ms(1_000), "{waited:?}");
    assert_eq!(solo.lengths(), [(0, 700)]);
}

#[test]
fn half_of_the_greatest_window_is_enough() {
    // The peer's greatest window is 1,000 bytes: 500 are worth sending, 499 are not.
    let mut small = Solo::active(config());
    small.output();
    small.window = 1_000;
    let _ = small.input_with(Flags::SYN | ACK, -1, 0, 0, offer(true, false));
    small.output();
    small.send(10_000);
    assert_eq!(small.lengths(), [(0, 1_000)]);
    small.window = 499;
    small.ack(1_000);
    assert_eq!(small.lengths(), []);
    small.window = 500;
    small.ack(1_000);
    assert_eq!(small.lengths(), [(1_000, 500)]);
}

#[test]
fn nagle_waits_for_the_acknowledgement() {
    let nagle = with(|socket| socket.no_delay = false);
    let mut solo = Solo::established_with(nagle.clone(), offer(true, false));
    solo.send(100);
    assert_eq!(solo.lengths(), [(0, 100)], "nothing was unacknowledged");
    solo.send(100);
    solo.send(200);
    assert!(solo.lengths().is_empty());
    solo.send(1_300);
    assert_eq!(solo.lengths(), [(100, 1_460)], "a full segment goes, its rest waits");
    solo.ack(1_560);
    assert_eq!(solo.lengths(), [(1_560, 140)]);
    solo.send(50);
    solo.connection.shutdown(solo.now);
    assert_eq!(solo.lengths(), [(1_700, 50)], "before a FIN nothing waits");
    let mut solo = Solo::established_with(nagle, offer(true, false));
    solo.limits.max_payload = 65_000;
    solo.send(3_000);
    assert_eq!(solo.lengths(), [(0, 1_460), (1_460, 1_460)]);
    let mut solo = Solo::established();
    for _ in 0..3 {
        solo.send(100);
        assert_eq!(solo.lengths().len(), 1, "no_delay");
    }
}

#[test]
fn a_closed_window_is_probed_with_one_byte_and_doubled_intervals() {
    // RFC 9293 section 3.8.6.1.
    let mut solo = Solo::established();
    solo.window = 0;
    let _ = solo.input(ACK, 0, 0, 0);
    solo.send(5_000);
    assert!(solo.lengths().is_empty());
    let mut waits = Vec::new();
    for _ in 0..5 {
        waits.push(solo.fire().as_millis());
        assert_eq!(solo.lengths(), [(0, 1)]);
        let _ = solo.input(ACK, 0, 0, 0);
        assert!(solo.lengths().is_empty());
    }
    assert!(waits.windows(2).all(|pair| pair[1] == pair[0] * 2), "{waits:?}");
    assert_eq!(solo.connection.counters().window_probes, 5);
    assert_eq!(solo.connection.info(solo.now).in_flight, 0, "a probe does not count as sent");
    solo.window = 65_535;
    let _ = solo.input(ACK, 0, 0, 0);
    assert_eq!(solo.lengths()[0], (0, 1_460));
}

#[test]
fn a_probe_that_the_peer_took_counts() {
    let mut solo = Solo::established();
    solo.window = 0;
    let _ = solo.input(ACK, 0, 0, 0);
    solo.send(5_000);
    solo.output();
    solo.fire();
    assert_eq!(solo.lengths(), [(0, 1)]);
    solo.window = 65_535;
    solo.ack(1);
    assert_eq!(solo.lengths()[0], (1, 1_460));
    assert_eq!(solo.connection.unsent(), 4_999);
}

#[test]
fn a_fin_goes_out_at_a_closed_window_as_a_probe() {
    let mut solo = Solo::established();
    solo.window = 0;
    let _ = solo.input(ACK, 0, 0, 0);
    solo.connection.shutdown(solo.now);
    assert!(solo.output().is_empty());
    solo.fire();
    let sent = solo.output();
    assert!(sent[0].flags.contains(FIN) && sent[0].seq == 0);
    solo.ack(1);
    assert_eq!(solo.connection.tcp_state(), State::FinWait2);
}

#[test]
fn a_peer_that_keeps_its_window_closed_is_left_after_the_user_timeout() {
    let mut solo = Solo::established();
    solo.window = 0;
    let _ = solo.input(ACK, 0, 0, 0);
    solo.send(5_000);
    solo.output();
    let start = solo.now;
    while solo.connection.tcp_state() == State::Established {
        solo.fire();
        solo.output();
        if solo.connection.tcp_state() == State::Established {
            let _ = solo.input(ACK, 0, 0, 0);
        }
    }
    assert_eq!(solo.connection.state(), ConnState::Closed(CloseReason::TimedOut));
    assert_eq!(solo.now - start, Duration::from_secs(60));
    // One that reads a little now and then is not.
    let mut solo = Solo::established();
    solo.send(60_000);
    let mut acked = 0;
    for _ in 0..20 {
        acked += solo.lengths().iter().map(|s| s.1 as i64).sum::<i64>();
        solo.window = 0;
        solo.ack(acked);
        solo.lengths();
        solo.pass(Duration::from_secs(30));
        solo.lengths();
        solo.window = 1_460;
        solo.ack(acked);
    }
    assert_eq!(solo.connection.tcp_state(), State::Established);
}

#[test]
fn a_lost_window_update_does_not_stop_the_transfer() {
    let network = Network { loss: 100, ..Network::default() };
    let socket = SocketOptions { receive_buffer: BufferSize::Fixed(4_000), ..SocketOptions::default() };
    for seed in 0..10 {
        let small = Config::new(socket.clone(), 1_460);
        let mut world = World::new(seed, network.clone(), config(), small);
        world.sides[0].to_send = 50_000;
        world.sides[1].reads = false;
        world.run_for(ms(3_000));
        world.sides[1].reads = true;
        world.run_to_end(Duration::from_secs(1_000));
    }
}

#[test]
fn a_window_that_shrinks_is_no_end() {
    // RFC 9293 section 3.8.6: the sender must be robust against it.
    let mut solo = Solo::established();
    solo.send(10_000);
    assert_eq!(solo.output().len(), 7);
    // The peer takes 2,920 bytes, keeps 1,000 bytes of window, and has thrown the rest away.
    solo.window = 1_000;
    solo.ack(2_920);
    assert!(solo.lengths().is_empty());
    solo.time_out();
    assert_eq!(solo.lengths(), [(2_920, 1_000)], "within the window that is left");
    solo.window = 0;
    solo.ack(3_920);
    assert!(solo.lengths().is_empty());
    solo.time_out();
    assert_eq!(solo.lengths(), [(3_920, 1_460)], "a closed window is probed by what is outstanding");
    solo.window = 20_000;
    solo.ack(3_920);
    solo.time_out();
    let mut next = 3_920;
    while next < 10_000 {
        for (seq, len) in solo.lengths() {
            next = next.max(seq + len as i64);
        }
        solo.ack(next);
        if next < 10_000 && solo.connection.poll_timeout().is_some() {
            solo.pass(ms(1));
        }
    }
    assert_eq!(solo.connection.unsent(), 0);
}

#[test]
fn a_full_send_buffer_refuses_and_tells_when_there_is_room() {
    let mut solo =
        Solo::established_with(with(|s| s.send_buffer = BufferSize::Fixed(20_000)), offer(true, false));
    assert_eq!(solo.connection.sendable(), 20_000);
    solo.send(19_999);
    assert_eq!(solo.connection.sendable(), 1);
    solo.send(60_000);
    assert_eq!(solo.connection.sendable(), 0);
    let more = Payload::Static(b"x");
    assert_eq!(solo.connection.send(solo.now, more.clone()), Err(SendError::Full));
    assert_eq!(solo.connection.write(solo.now, b"x"), Err(SendError::Full));
    static LONG: [u8; 65_537] = [0; 65_537];
    assert_eq!(solo.connection.send(solo.now, Payload::Static(&LONG)), Err(SendError::TooLong));
    let (mut acked, mut woken) = (0, 0);
    while acked < 79_999 {
        acked += solo.lengths().iter().map(|s| s.1 as i64).sum::<i64>();
        solo.ack(acked);
        if solo.connection.poll_ready().contains(Ready::WRITABLE) {
            woken += 1;
            assert!(solo.connection.sendable() >= 5_000, "a quarter of the buffer is worth it");
        }
    }
    assert_eq!(woken, 1);
    assert_eq!(solo.connection.unsent(), 0);
}

#[test]
fn who_only_looks_at_the_room_is_told_too() {
    let small = with(|s| s.send_buffer = BufferSize::Fixed(20_000));
    let mut solo = Solo::established_with(small, offer(true, false));
    solo.send(20_000);
    assert_eq!(solo.connection.sendable(), 0);
    solo.output();
    solo.ack(2_920);
    assert_eq!(solo.connection.poll_ready(), Ready::NONE, "too little to be worth it");
    solo.ack(5_840);
    assert_eq!(solo.connection.poll_ready(), Ready::WRITABLE);
}

#[test]
fn sent_comes_when_everything_is_acknowledged() {
    let mut solo = Solo::established();
    solo.send(3_000);
    solo.output();
    solo.ack(1_460);
    assert_eq!(solo.connection.poll_ready(), Ready::NONE);
    solo.ack(3_000);
    assert_eq!(solo.connection.poll_ready(), Ready::SENT);
    assert_eq!(solo.connection.info(solo.now).bytes_acked, 3_000);
}

#[test]
fn an_application_that_found_no_memory_is_told_to_try_again() {
    let mut solo = Solo::established();
    let taken: Vec<_> = core::iter::from_fn(|| solo.resources.pages.take()).collect();
    assert_eq!(solo.connection.write(solo.now, b"hello"), Err(SendError::Full));
    drop(taken);
    assert_eq!(solo.connection.poll_ready(), Ready::NONE);
    solo.pass(ms(10));
    assert_eq!(solo.connection.poll_ready(), Ready::WRITABLE);
    solo.connection.write(solo.now, b"hello").unwrap();
    assert_eq!(solo.lengths(), [(0, 5)]);
}

#[test]
fn a_path_with_smaller_packets_cuts_anew() {
    let mut solo = Solo::established();
    solo.send(6_000);
    assert_eq!(solo.output().len(), 5);
    let foreign = SeqNumber(super::solo::ISS) + 90_000;
    solo.connection.handle_path_mss(solo.now, 500, Some(foreign));
    assert!(solo.output().is_empty(), "RFC 5927: not of a segment in flight");
    let window = solo.connection.info(solo.now).congestion_window;
    solo.connection.handle_path_mss(solo.now, 500, Some(SeqNumber(super::solo::ISS) + 1));
    let sent = solo.lengths();
    assert_eq!(sent.len(), 12);
    assert!(sent.iter().enumerate().all(|(n, s)| *s == (n as i64 * 500, 500)));
    assert_eq!(solo.connection.info(solo.now).congestion_window, window, "no sign of congestion");
    assert_eq!(solo.connection.info(solo.now).path_mtu, 540);
    solo.connection.handle_path_mss(solo.now, 9_000, None);
    assert_eq!(solo.connection.info(solo.now).send_mss, 1_460, "never above what we offered");
}

#[test]
fn a_path_mtu_that_falls_in_the_middle_of_a_transfer() {
    for max_payload in [0, 65_000] {
        let mut world = World::plain(4, Network::default());
        world.sides[0].to_send = 3 << 20;
        world.sides[0].limits.max_payload = max_payload;
        world.run_for(ms(60));
        world.network.max_payload = 1_000;
        let now = world.now;
        world.sides[0].connection.handle_path_mss(now, 1_012, None);
        world.run_to_end(Duration::from_secs(100));
        let counters = world.sides[0].connection.counters();
        assert!(counters.timeouts <= 1, "{counters:?}");
    }
}

#[test]
fn small_writes_share_segments() {
    let mut solo = Solo::established();
    for n in 0..300u64 {
        solo.connection.write(solo.now, &stream(n * 10..n * 10 + 10)).unwrap();
    }
    assert_eq!(solo.lengths(), [(0, 1_460), (1_460, 1_460), (2_920, 80)]);
    assert_eq!(solo.resources.pages.free(), 256 - 2);
}

#[test]
fn time_is_accounted_by_cause() {
    let mut solo = Solo::established();
    let start = solo.now;
    solo.output();
    solo.pass(ms(5));
    solo.send(60_000);
    solo.pass(ms(1));
    solo.output();
    solo.pass(ms(10));
    solo.window = 0;
    solo.ack(14_600);
    solo.output();
    solo.pass(ms(3));
    solo.window = 65_535;
    solo.ack(14_600);
    solo.connection.handle_link_full(solo.now);
    solo.pass(ms(7));
    let limits = solo.connection.info(solo.now).limits.ns;
    let in_ms: Vec<_> = limits.iter().map(|ns| ns / 1_000_000).collect();
    assert_eq!(in_ms, [5, 0, 10, 3, 7, 1, 0, 0]);
    assert_eq!(limits.iter().sum::<u64>(), (solo.now - start).as_nanos() as u64);
}

#[test]
fn a_send_buffer_that_is_all_in_flight_is_named() {
    let small = with(|s| s.send_buffer = BufferSize::Fixed(5_000));
    let mut solo = Solo::established_with(small, offer(true, false));
    solo.send(5_000);
    solo.output();
    assert_eq!(solo.connection.limited_by(), Some(LimitCause::SendBuffer));
    solo.ack(5_000);
    solo.output();
    assert_eq!(solo.connection.limited_by(), Some(LimitCause::Application));
}

#[test]
fn what_nagle_holds_back_is_named() {
    let nagle = with(|socket| {
        socket.no_delay = false;
        socket.send_buffer = BufferSize::Fixed(3_000);
    });
    let mut solo = Solo::established_with(nagle, offer(true, false));
    solo.send(100);
    solo.output();
    solo.send(200);
    solo.output();
    assert_eq!(solo.connection.limited_by(), Some(LimitCause::Nagle));
    solo.send(2_700);
    solo.output();
    assert_eq!(
        solo.connection.limited_by(),
        Some(LimitCause::SendBuffer),
        "no room for the rest of a segment"
    );
    solo.ack(1_560);
    solo.output();
    solo.ack(3_000);
    solo.output();
    assert_eq!(solo.connection.limited_by(), Some(LimitCause::Application));
}

#[test]
fn options_can_change_on_a_live_connection() {
    let mut solo = Solo::established();
    let socket = SocketOptions { mss: Some(1_000), no_delay: false, ..SocketOptions::default() };
    solo.connection.set_options(solo.now, &socket);
    solo.send(2_500);
    assert_eq!(solo.lengths(), [(0, 1_000), (1_000, 1_000)]);
    let socket = SocketOptions { mss: Some(9_000), ..SocketOptions::default() };
    solo.connection.set_options(solo.now, &socket);
    assert_eq!(solo.connection.info(solo.now).send_mss, 1_460, "not above the negotiated one");
    assert_eq!(solo.lengths(), [(2_000, 500)]);
}

#[test]
fn nothing_is_sent_that_the_packet_has_no_room_for() {
    let mut solo = Solo::established();
    solo.send(1_000);
    let mut packet = TxPacket::new();
    // A header block that cannot take the TCP header: the segment is not sent, and not lost either.
    assert!(solo.connection.poll_transmit(solo.now, &solo.limits, &mut packet, 150).is_none());
    assert_eq!(solo.connection.info(solo.now).in_flight, 0);
    assert_eq!(solo.lengths(), [(0, 1_000)]);
}
