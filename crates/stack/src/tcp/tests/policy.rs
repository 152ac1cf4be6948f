//! Keep-alive, user timeout, buffers that grow, sequence numbers that wrap.

use super::solo::{ACK, FIN_ACK, Solo, ms, offer};
use super::world::{Network, World};
use crate::tcp::{Config, State};
use alloc::vec::Vec;
use core::time::Duration;
use linerate_transport::{CloseReason, ConnState, KeepAlive, Ready, SocketOptions};
use linerate_wire::tcp::Flags;

const S: u64 = 1_000;

fn keep_alive(idle: u64, interval: u64, probes: u8) -> Config {
    let keep_alive = Some(KeepAlive { idle: ms(idle), interval: ms(interval), probes });
    Config::new(SocketOptions { keep_alive, ..SocketOptions::default() }, 1_460)
}

#[test]
fn a_silent_peer_is_probed_and_given_up() {
    let mut solo = Solo::established_with(keep_alive(10 * S, 2 * S, 3), offer(true, false));
    let start = solo.now;
    let mut probes = Vec::new();
    while solo.connection.tcp_state() == State::Established {
        solo.fire();
        probes
            .extend(solo.output().into_iter().map(|s| ((solo.now - start).as_secs(), s.seq, s.len, s.flags)));
    }
    assert_eq!(probes[..3], [(10, -1, 0, ACK), (12, -1, 0, ACK), (14, -1, 0, ACK)]);
    assert_eq!(probes[3].3, Flags::RST | ACK);
    assert_eq!(solo.connection.state(), ConnState::Closed(CloseReason::KeepAlive));
    assert_eq!((solo.now - start).as_secs(), 16);
    assert_eq!(solo.connection.poll_ready(), Ready::CLOSED);
}

#[test]
fn a_peer_that_answers_lives() {
    let mut solo = Solo::established_with(keep_alive(10 * S, 2 * S, 3), offer(true, false));
    for _ in 0..50 {
        solo.fire();
        for probe in solo.output() {
            assert_eq!(probe.len, 0);
            solo.ack(0);
        }
    }
    assert_eq!(solo.connection.tcp_state(), State::Established);
    assert!(solo.connection.counters().keep_alive_probes >= 20);
    let mut solo = Solo::established_with(keep_alive(10 * S, 2 * S, 3), offer(true, false));
    for n in 0..50 {
        solo.pass(ms(9 * S));
        let _ = solo.input(ACK, n, 0, 1);
        solo.output();
    }
    assert_eq!(solo.connection.counters().keep_alive_probes, 0, "traffic needs no probes");
}

#[test]
fn keep_alive_can_be_switched() {
    let none = Config::new(SocketOptions { keep_alive: None, ..SocketOptions::default() }, 1_460);
    let mut solo = Solo::established_with(none, offer(true, false));
    solo.pass(ms(5_000 * S));
    assert_eq!((solo.output().len(), solo.connection.tcp_state()), (0, State::Established));
    let on = keep_alive(10 * S, 2 * S, 3).socket;
    solo.connection.set_options(solo.now, &on);
    assert_eq!(solo.fire(), ms(10 * S));
    assert_eq!(solo.output().len(), 1);
}

#[test]
fn data_that_nobody_acknowledges_ends_the_connection() {
    for seconds in [5, 60, 300] {
        let user_timeout = Duration::from_secs(seconds);
        let socket = SocketOptions { user_timeout, ..SocketOptions::default() };
        let mut solo = Solo::established_with(Config::new(socket, 1_460), offer(true, false));
        solo.pass(ms(7 * S));
        solo.send(5_000);
        solo.output();
        let start = solo.now;
        while solo.connection.tcp_state() == State::Established {
            solo.fire();
            solo.output();
        }
        assert_eq!(solo.now - start, user_timeout);
        assert_eq!(solo.connection.state(), ConnState::Closed(CloseReason::TimedOut));
        assert_eq!(solo.resources.budget.used(), 0);
    }
}

#[test]
fn a_shorter_user_timeout_counts_at_once() {
    let mut solo = Solo::established();
    let user_timeout = Duration::from_secs(3);
    // The timer of the handshake still runs, by the old timeout.
    solo.connection.set_options(solo.now, &SocketOptions { user_timeout, ..SocketOptions::default() });
    solo.send(100);
    solo.output();
    let start = solo.now;
    while solo.connection.tcp_state() == State::Established {
        solo.fire();
        solo.output();
    }
    assert_eq!(solo.now - start, user_timeout);
}

#[test]
fn progress_starts_the_user_timeout_anew() {
    let mut solo = Solo::established();
    solo.send(14_600);
    solo.output();
    for n in 1..10 {
        for _ in 0..25 {
            solo.pass(ms(2 * S));
            solo.output();
        }
        solo.ack(n * 1_460);
        solo.output();
    }
    assert_eq!(solo.connection.tcp_state(), State::Established);
}

#[test]
fn an_idle_connection_has_only_its_keep_alive() {
    let none = Config::new(SocketOptions { keep_alive: None, ..SocketOptions::default() }, 1_460);
    let mut solo = Solo::established_with(none, offer(true, false));
    solo.send(100);
    solo.output();
    solo.ack(100);
    solo.pass(ms(200 * S));
    assert_eq!(solo.connection.poll_timeout(), None);
    assert_eq!(solo.connection.tcp_state(), State::Established);
}

#[test]
fn a_last_ack_that_gets_no_answer_ends() {
    let mut solo = Solo::in_state(State::LastAck);
    while solo.connection.tcp_state() == State::LastAck {
        solo.fire();
        solo.output();
    }
    assert_eq!(solo.connection.state(), ConnState::Closed(CloseReason::TimedOut));
}

#[test]
fn sequence_numbers_wrap_in_both_directions() {
    // The bench starts 1,000 and 10 bytes before the wrap.
    let mut solo = Solo::established();
    let (mut sent, mut received) = (0, 0);
    for _ in 0..50 {
        solo.send(1_000);
        for segment in solo.output() {
            sent = sent.max(segment.seq + segment.len as i64);
        }
        let _ = solo.input(ACK, received, sent, 100);
        received += 100;
    }
    assert_eq!((sent, solo.connection.readable(), solo.connection.unsent()), (50_000, 5_000, 0));
    let _ = solo.input(FIN_ACK, received, sent, 0);
    assert_eq!(solo.connection.tcp_state(), State::CloseWait);
}

#[test]
fn transfers_cross_the_wrap_with_loss() {
    for seed in 0..8 {
        // Random initial sequence numbers; 300 KiB each way with a window scale of 7, and loss around the wrap.
        let network = Network { loss: 30, reorder: 20, ..Network::default() };
        let mut world = World::plain(seed, network);
        world.sides[0].to_send = 300_000;
        world.sides[1].to_send = 300_000;
        world.run_to_end(Duration::from_secs(600));
    }
}

#[test]
fn buffers_grow_to_fill_a_long_fat_path() {
    let network = Network { delay: ms(25), bottleneck: Some((50_000_000, 4_000_000)), ..Network::default() };
    let mut world = World::plain(1, network);
    for side in &mut world.sides {
        side.limits.max_payload = 65_000;
        side.piece = 64 << 10;
        side.coalesce = 44;
    }
    world.sides[0].to_send = 100 << 20;
    let start = world.now;
    world.run_to_end(Duration::from_secs(600));
    let seconds = (world.now - start).as_secs_f64();
    assert!(seconds < 2.2 * 1.3, "{seconds} s; 2.2 s at 50 MB/s");
    assert_eq!(world.sides[0].connection.counters().retransmits, 0);
}
