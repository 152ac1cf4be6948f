//! Opening a connection (RFC 9293 sections 3.5 and 3.10.7.3, RFC 6298 section 5, RFC 7323, RFC 5961).

use super::solo::{ACK, FIN, FIN_ACK, RST, SYN, SYN_ACK, Solo, ms, offer};
use super::world::{Network, World};
use super::{addr, config, resources};
use crate::tcp::{Config, Connection, DropReason, Outcome, SegmentIn, State};
use alloc::vec::Vec;
use core::time::Duration;
use linerate_transport::{BufferSize, CloseReason, ConnState, Ready, SocketOptions};
use linerate_wire::tcp::{Flags, Options, SeqNumber, Timestamps};

#[test]
fn a_syn_offers_everything() {
    let mut solo = Solo::active(config());
    let syn = solo.output().remove(0);
    assert_eq!((syn.seq, syn.flags, syn.len), (-1, SYN, 0));
    assert_eq!(syn.wire.window, 65_535, "unscaled in a SYN");
    let expected = Options {
        mss: Some(1_460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps { value: 5_000, echo: 0 }),
        ..Options::default()
    };
    assert_eq!(syn.wire.options, expected);
    assert!(solo.output().is_empty());
    assert_eq!(solo.connection.state(), ConnState::Connecting);
}

#[test]
fn a_syn_ack_answers_only_what_was_offered() {
    for (mss, scale, sack, timestamps) in
        [(None, None, false, false), (Some(1_000), Some(3), true, true), (None, Some(2), false, true)]
    {
        let offered = Options {
            mss,
            window_scale: scale,
            sack_permitted: sack,
            timestamps: timestamps.then_some(Timestamps { value: 77, echo: 0 }),
            ..Options::default()
        };
        let mut solo = Solo::passive(config(), offered);
        let answer = solo.output().remove(0);
        assert_eq!((answer.seq, answer.ack, answer.flags), (-1, 0, SYN_ACK));
        let options = answer.wire.options;
        assert_eq!(options.mss, Some(1_460));
        assert_eq!(options.window_scale.is_some(), scale.is_some());
        assert_eq!(options.sack_permitted, sack);
        assert_eq!(options.timestamps.map(|t| t.echo), timestamps.then_some(77));
        let _ = solo.input(ACK, 0, 0, 0);
        let expected = u32::from(mss.unwrap_or(536)) - if timestamps { 12 } else { 0 };
        assert_eq!(solo.connection.info(solo.now).send_mss, expected);
        assert_eq!(solo.connection.poll_ready(), Ready::WRITABLE);
    }
}

#[test]
fn a_peer_without_mss_over_ipv6_gets_1220() {
    let resources = resources();
    let now = linerate_wire::units::Instant::ZERO;
    let six = |port| core::net::SocketAddr::new(core::net::Ipv6Addr::LOCALHOST.into(), port);
    let syn = SegmentIn { flags: SYN, window: 1_000, ..SegmentIn::default() };
    let mut made = Connection::active(now, config(), &resources, six(1), six(2), SeqNumber(1));
    made.answer(now, &syn).unwrap();
    assert_eq!(made.info(now).send_mss, 1_220);
}

#[test]
fn only_a_syn_opens() {
    for flags in [ACK, SYN_ACK, SYN | RST, SYN | FIN, FIN, Flags::EMPTY] {
        let segment = SegmentIn { flags, ..SegmentIn::default() };
        let now = linerate_wire::units::Instant::ZERO;
        let mut made = Connection::active(now, config(), &resources(), addr(1, 1), addr(2, 2), SeqNumber(0));
        assert_eq!(made.answer(now, &segment), Err(DropReason::Handshake), "{flags:?}");
    }
}

/// What a connection that sent its SYN does with a segment (RFC 9293 section 3.10.7.3).
#[track_caller]
fn check_syn_sent(flags: Flags, ack: i64, outcome: Outcome, state: State, reply: &[(i64, Flags)]) {
    let mut solo = Solo::in_state(State::SynSent);
    assert_eq!(solo.input_with(flags, -1, ack, 0, offer(true, false)), outcome);
    assert_eq!(solo.connection.tcp_state(), state);
    let sent: alloc::vec::Vec<_> = solo.output().iter().map(|s| (s.seq, s.flags)).collect();
    assert_eq!(sent, reply);
}

#[test]
fn syn_sent_takes_what_the_rfc_says() {
    use DropReason::{BadAck, Handshake};
    use Outcome::{Accepted, Dropped};
    let stays = State::SynSent;
    check_syn_sent(SYN_ACK, 0, Accepted, State::Established, &[(0, ACK)]);
    check_syn_sent(SYN, 0, Accepted, State::SynReceived, &[(-1, SYN_ACK)]);
    check_syn_sent(SYN_ACK, -1, Dropped(BadAck), stays, &[(-1, RST)]);
    check_syn_sent(SYN_ACK, 1, Dropped(BadAck), stays, &[(1, RST)]);
    check_syn_sent(ACK, 1, Dropped(BadAck), stays, &[(1, RST)]);
    check_syn_sent(ACK, 0, Dropped(Handshake), stays, &[]);
    check_syn_sent(RST, 0, Dropped(Handshake), stays, &[]);
    check_syn_sent(RST | ACK, 1, Dropped(BadAck), stays, &[]);
    check_syn_sent(RST | ACK, 0, Accepted, State::Closed, &[]);
    check_syn_sent(FIN, 0, Dropped(Handshake), stays, &[]);
    check_syn_sent(Flags::EMPTY, 0, Dropped(Handshake), stays, &[]);
}

#[test]
fn a_refused_connection_says_so() {
    let mut solo = Solo::in_state(State::SynSent);
    let _ = solo.input(RST | ACK, -1, 0, 0);
    assert_eq!(solo.connection.state(), ConnState::Closed(CloseReason::Refused));
    assert_eq!(solo.connection.poll_ready(), Ready::CLOSED);
    assert!(solo.connection.is_finished());
    assert_eq!(solo.connection.poll_timeout(), None);
}

#[test]
fn simultaneous_open() {
    // RFC 9293 figure 9, from one end.
    let mut solo = Solo::in_state(State::SynSent);
    let _ = solo.input_with(SYN, -1, 0, 0, offer(true, false));
    assert_eq!(solo.output()[0].flags, SYN_ACK);
    assert_eq!(solo.input(SYN_ACK, -1, 0, 0), Outcome::Accepted);
    assert_eq!(solo.connection.tcp_state(), State::Established);
    solo.send(10);
    assert_eq!(solo.lengths(), [(0, 10)]);
}

#[test]
fn the_syn_ack_of_a_simultaneous_open_does_not_wait_for_the_device() {
    let mut solo = Solo::active(config());
    solo.limits.completions = true;
    assert_eq!(solo.output()[0].flags, SYN);
    let _ = solo.input_with(SYN, -1, 0, 0, offer(true, false));
    let sent = solo.output();
    assert_eq!(sent.iter().map(|segment| segment.flags).collect::<Vec<_>>(), [SYN_ACK]);
    solo.report_up_to(2);
    assert!(solo.output().is_empty());
    assert_eq!(solo.input(SYN_ACK, -1, 0, 0), Outcome::Accepted);
    assert_eq!(solo.connection.tcp_state(), State::Established);
    assert!(solo.output().is_empty());
}

#[test]
fn the_window_of_a_syn_ack_is_not_scaled_in_a_simultaneous_open() {
    // RFC 7323 section 2.2.
    let mut solo = Solo::in_state(State::SynSent);
    solo.window = 1_000;
    let options = Options { window_scale: Some(7), ..offer(true, false) };
    let _ = solo.input_with(SYN, -1, 0, 0, options);
    solo.output();
    let _ = solo.input_with(SYN_ACK, -1, 0, 0, options);
    solo.send(5_000);
    assert_eq!(solo.lengths(), [(0, 1_000)]);
    let _ = solo.input(ACK, 0, 1_000, 0);
    assert_eq!(solo.lengths(), [(1_000, 1_460), (2_460, 1_460), (3_920, 1_080)], "from then on it is");
}

#[test]
fn simultaneous_open_of_two_connections() {
    let (ours, theirs) = (resources(), resources());
    let now = linerate_wire::units::Instant::from_millis(1);
    let mut a = Connection::active(now, config(), &ours, addr(1, 1), addr(2, 2), SeqNumber(7));
    let mut b = Connection::active(now, config(), &theirs, addr(2, 2), addr(1, 1), SeqNumber(9));
    let limits = crate::tcp::TxLimits { max_payload: 0, completions: false };
    let pool = linerate_nic::Pool::new(8, 64);
    for _ in 0..4 {
        let from_a = super::drain(&mut a, now, &limits);
        let from_b = super::drain(&mut b, now, &limits);
        for segment in from_a {
            let _ = b.handle_segment(now, segment.to_segment(&pool));
        }
        for segment in from_b {
            let _ = a.handle_segment(now, segment.to_segment(&pool));
        }
    }
    assert_eq!((a.tcp_state(), b.tcp_state()), (State::Established, State::Established));
    assert!(super::drain(&mut a, now, &limits).is_empty() && super::drain(&mut b, now, &limits).is_empty());
}

#[test]
fn a_lost_syn_is_repeated_with_doubled_timeouts_and_given_up() {
    let mut solo = Solo::active(config());
    assert_eq!(solo.output().len(), 1);
    for seconds in [1, 2, 4, 8, 16] {
        assert_eq!(solo.fire(), Duration::from_secs(seconds));
        assert_eq!(solo.output()[0].flags, SYN);
    }
    solo.pass(Duration::from_secs(40));
    assert_eq!(solo.connection.state(), ConnState::Closed(CloseReason::TimedOut));
    assert!(solo.output().is_empty());
}

#[test]
fn a_lost_syn_leaves_one_segment_and_a_long_timeout() {
    let mut solo = Solo::active(config());
    solo.output();
    solo.fire();
    solo.output();
    let _ = solo.input_with(SYN_ACK, -1, 0, 0, offer(true, false));
    let info = solo.connection.info(solo.now);
    assert_eq!(info.congestion_window, 1_460, "RFC 5681 section 3.1");
    assert_eq!(info.rto, Some(Duration::from_secs(3)), "RFC 6298 section 5.7");
    assert_eq!(info.rtt, None, "Karn: the SYN was sent twice");
}

#[test]
fn the_handshake_measures_a_round_trip() {
    let mut solo = Solo::active(config());
    solo.output();
    solo.pass(ms(30));
    let _ = solo.input_with(SYN_ACK, -1, 0, 0, offer(true, false));
    let info = solo.connection.info(solo.now);
    assert_eq!((info.rtt, info.rto), (Some(ms(30)), Some(ms(230))));
}

#[test]
fn the_peers_syn_again_is_answered_again() {
    let mut solo = Solo::in_state(State::SynReceived);
    assert_eq!(solo.input_with(SYN, -1, 0, 0, offer(true, false)), Outcome::Dropped(DropReason::Duplicate));
    assert_eq!(solo.output()[0].flags, SYN_ACK);
}

/// What a connection in SYN-RECEIVED does with a segment (RFC 9293 section 3.10.7.4).
#[track_caller]
fn check_syn_received(flags: Flags, seq: i64, ack: i64, state: State, reply: &[(i64, Flags)]) {
    let mut solo = Solo::in_state(State::SynReceived);
    let _ = solo.input(flags, seq, ack, 0);
    assert_eq!(solo.connection.tcp_state(), state);
    let sent: alloc::vec::Vec<_> = solo.output().iter().map(|s| (s.seq, s.flags)).collect();
    assert_eq!(sent, reply);
}

#[test]
fn syn_received_takes_what_the_rfc_says() {
    let stays = State::SynReceived;
    check_syn_received(ACK, 0, 0, State::Established, &[]);
    check_syn_received(FIN_ACK, 0, 0, State::CloseWait, &[(0, ACK)]);
    check_syn_received(ACK, 0, 1, stays, &[(1, RST)]);
    check_syn_received(ACK, 0, -1, stays, &[(-1, RST)]);
    check_syn_received(RST, 0, 0, State::Closed, &[]);
    check_syn_received(RST, 5, 0, stays, &[(0, ACK)]);
    check_syn_received(Flags::EMPTY, 0, 0, stays, &[]);
}

#[test]
fn a_lost_final_ack_is_made_up_for_by_data() {
    let mut solo = Solo::in_state(State::SynReceived);
    let _ = solo.input(ACK, 0, 0, 100);
    assert_eq!(solo.connection.tcp_state(), State::Established);
    assert_eq!(solo.connection.readable(), 100);
}

#[test]
fn data_with_the_syn_ack_is_taken() {
    let mut solo = Solo::in_state(State::SynSent);
    let _ = solo.input_with(SYN_ACK, -1, 0, 50, offer(true, false));
    // The test stream counts from the SYN here.
    assert_eq!(solo.connection.readable(), 50);
    assert_eq!(solo.output()[0].ack, 50);
}

#[test]
fn a_half_open_connection_is_given_up() {
    let mut solo = Solo::in_state(State::SynReceived);
    solo.pass(Duration::from_secs(70));
    assert_eq!(solo.connection.state(), ConnState::Closed(CloseReason::TimedOut));
    assert!(solo.output().is_empty(), "no RST for a SYN that nobody completed");
}

#[test]
fn the_window_scale_fits_the_largest_buffer() {
    for (max, scale) in [(4_000, 0), (65_535, 0), (65_536, 1), (4 << 20, 7), (1 << 30, 14), (usize::MAX, 14)]
    {
        let socket = SocketOptions { receive_buffer: BufferSize::Auto { max }, ..SocketOptions::default() };
        let mut solo = Solo::active(Config::new(socket, 1_460));
        assert_eq!(solo.output()[0].wire.options.window_scale, Some(scale), "{max}");
    }
}

#[test]
fn the_largest_window_scale_works_both_ways() {
    let socket = SocketOptions {
        receive_buffer: BufferSize::Fixed(1 << 30),
        send_buffer: BufferSize::Fixed(1 << 30),
        ..SocketOptions::default()
    };
    let big = Config::new(socket, 1_460);
    let mut world = World::new(1, Network::default(), big.clone(), big);
    world.sides[0].to_send = 500_000;
    world.sides[1].to_send = 500_000;
    world.run_to_end(Duration::from_secs(60));
    let window = world.sides[0].sent.iter().map(|(_, w)| u32::from(w.window)).max().unwrap();
    assert!(window > 1_000, "the budget of 64 MiB bounds it: {window}");
}

#[test]
fn a_peer_cannot_talk_us_into_tiny_segments() {
    for mss in [0, 1, 40, 87] {
        let tiny = Options { mss: Some(mss), ..offer(true, true) };
        let solo = Solo::established_with(config(), tiny);
        assert_eq!(solo.connection.info(solo.now).send_mss, 88 - 12);
    }
}

#[test]
fn soft_and_hard_icmp_errors_while_opening() {
    use linerate_wire::tcp::SeqNumber;
    let syn = SeqNumber(super::solo::ISS);
    let mut solo = Solo::in_state(State::SynSent);
    solo.connection.handle_icmp_error(solo.now, syn + 500, true, CloseReason::Refused);
    assert_eq!(
        solo.connection.tcp_state(),
        State::SynSent,
        "nothing with that number is in flight (RFC 5927)"
    );
    solo.connection.handle_icmp_error(solo.now, syn, false, CloseReason::Unreachable);
    assert_eq!(solo.connection.tcp_state(), State::SynSent);
    for _ in 0..6 {
        solo.pass(Duration::from_secs(40));
        solo.output();
    }
    assert_eq!(solo.connection.state(), ConnState::Closed(CloseReason::Unreachable));
    let mut solo = Solo::in_state(State::SynSent);
    solo.connection.handle_icmp_error(solo.now, syn, true, CloseReason::Refused);
    assert_eq!(solo.connection.state(), ConnState::Closed(CloseReason::Refused));
    let mut solo = Solo::established();
    solo.send(10);
    solo.output();
    solo.connection.handle_icmp_error(solo.now, syn + 1, true, CloseReason::Refused);
    assert_eq!(solo.connection.tcp_state(), State::Established, "soft once established (RFC 5927 section 5)");
}
