//! Explicit congestion notification on whole connections (RFC 3168).

use super::solo::{ACK, SYN, SYN_ACK, Solo, ms, offer};
use super::{config, drain};
use crate::tcp::{Config, TxLimits};
use linerate_transport::Ecn as Policy;
use linerate_wire::ip::Ecn;
use linerate_wire::tcp::{Flags, Options};

const SETUP: Flags = Flags(0xc2);
const ECE: Flags = Flags(0x50);

fn with(policy: Policy) -> Config {
    let mut config = config();
    config.socket.ecn = policy;
    config
}

/// Established as a client whose server agreed.
fn agreed() -> Solo {
    let mut solo = Solo::active(with(Policy::Request));
    assert_eq!(solo.output()[0].flags, SETUP);
    let _ = solo.input_with(SYN_ACK | Flags::ECE, -1, 0, 0, offer(true, false));
    solo.output();
    solo
}

impl Solo {
    /// `len` bytes arrive at `seq` in a packet with this mark.
    fn input_marked(&mut self, flags: Flags, seq: i64, len: usize, mark: Ecn) {
        self.mark = mark;
        let _ = self.input(flags, seq, 0, len);
        self.mark = Ecn::NotCapable;
    }
}

#[test]
fn section_6_1_1_a_server_accepts_and_a_client_asks() {
    let check = |policy, syn, answer| {
        let mut solo = Solo::passive_with_flags(with(policy), syn, offer(true, false));
        assert_eq!(solo.output()[0].flags, answer, "{policy:?} {syn:?}");
    };
    check(Policy::Accept, SETUP, SYN_ACK | Flags::ECE);
    check(Policy::Accept, SYN, SYN_ACK);
    check(Policy::Accept, SYN | Flags::ECE, SYN_ACK);
    check(Policy::Off, SETUP, SYN_ACK);
    for (policy, flags) in [(Policy::Off, SYN), (Policy::Accept, SYN), (Policy::Request, SETUP)] {
        assert_eq!(Solo::active(with(policy)).output()[0].flags, flags, "{policy:?}");
    }
}

#[test]
fn section_6_1_1_1_a_syn_that_is_lost_is_sent_again_without_the_bits() {
    let mut solo = Solo::active(with(Policy::Request));
    solo.output();
    solo.fire();
    assert_eq!(solo.output()[0].flags, SYN);
    let _ = solo.input_with(SYN_ACK | Flags::ECE, -1, 0, 0, offer(true, false));
    solo.send(1_000);
    assert!(solo.output().iter().all(|segment| segment.wire.ecn == Ecn::NotCapable));
}

#[test]
fn a_server_whose_client_fell_back_falls_back_too() {
    let mut solo = Solo::passive_with_flags(with(Policy::Accept), SETUP, offer(true, false));
    solo.output();
    let _ = solo.input_with(SYN, -1, 0, 0, offer(true, false));
    assert_eq!(solo.output()[0].flags, SYN_ACK);
}

#[test]
fn section_6_1_4_only_new_data_is_marked_capable() {
    let mut solo = Solo::active(with(Policy::Request));
    assert_eq!(solo.output()[0].wire.ecn, Ecn::NotCapable, "SYN");
    let _ = solo.input_with(SYN_ACK | Flags::ECE, -1, 0, 0, offer(true, false));
    assert_eq!(solo.output()[0].wire.ecn, Ecn::NotCapable, "pure ACK");
    solo.send(2_920);
    assert!(solo.output().iter().all(|segment| segment.wire.ecn == Ecn::Capable0));
    solo.fire();
    solo.pass(ms(2_000));
    assert!(solo.output().iter().all(|segment| segment.wire.ecn == Ecn::NotCapable), "retransmission");
}

#[test]
fn section_6_1_6_window_probes_are_not_marked() {
    let mut solo = agreed();
    solo.window = 0;
    solo.ack(0);
    solo.send(1_000);
    solo.output();
    solo.fire();
    let probe = solo.output();
    assert_eq!((probe[0].len, probe[0].wire.ecn), (1, Ecn::NotCapable));
}

#[test]
fn section_6_1_3_marks_are_echoed_until_cwr() {
    let mut solo = agreed();
    let flags = |solo: &mut Solo| -> alloc::vec::Vec<Flags> {
        solo.output().iter().map(|segment| segment.flags).collect()
    };
    solo.input_marked(ACK, 0, 1_460, Ecn::Congested);
    assert_eq!(flags(&mut solo), [ECE], "at once");
    solo.input_marked(ACK, 1_460, 1_460, Ecn::Capable0);
    solo.input_marked(ACK, 2_920, 1_460, Ecn::Capable0);
    assert_eq!(flags(&mut solo), [ECE]);
    solo.send(100);
    assert!(solo.output()[0].flags.contains(Flags::ECE), "data acknowledges too");
    solo.input_marked(ACK | Flags::CWR, 4_380, 1_460, Ecn::Capable0);
    solo.input_marked(ACK, 5_840, 1_460, Ecn::Capable0);
    assert_eq!(flags(&mut solo), [ACK]);
    assert_eq!(solo.connection.counters().congestion_experienced, 1);
}

#[test]
fn marks_mean_nothing_where_ecn_was_not_agreed() {
    let mut solo = Solo::established();
    solo.input_marked(ACK, 0, 1_460, Ecn::Congested);
    solo.input_marked(ACK, 1_460, 1_460, Ecn::Capable0);
    assert_eq!(solo.output()[0].flags, ACK);
    solo.send(14_600);
    solo.output();
    let _ = solo.input(ECE, 2_920, 1_460, 0);
    let counters = solo.connection.counters();
    assert_eq!((counters.ecn_echoes, counters.ecn_reductions), (0, 0));
}

#[test]
fn section_6_1_2_the_window_is_reduced_once_per_round_trip_and_cwr_says_so() {
    let mut solo = agreed();
    solo.send(60_000);
    assert_eq!(solo.output().len(), 10);
    let _ = solo.input(ECE, 0, 1_460, 0);
    // Half of the flight, and what this acknowledgement adds; no retransmission.
    let window = solo.connection.info(solo.now).congestion_window;
    assert!((7_300..=8_760).contains(&window), "{window}");
    assert!(solo.output().is_empty(), "more is in flight than the window holds");
    for ack in 2..10 {
        let _ = solo.input(ECE, 0, 1_460 * ack, 0);
    }
    let sent = solo.output();
    assert!(sent[0].flags.contains(Flags::CWR) && sent[0].len == 1_460 && sent[0].seq == 14_600);
    assert!(sent[1..].iter().all(|segment| !segment.flags.contains(Flags::CWR)));
    let counters = *solo.connection.counters();
    assert_eq!((counters.ecn_reductions, counters.retransmits), (1, 0));
    let _ = solo.input(ECE, 0, 14_600 + 1_460, 0);
    assert_eq!(solo.connection.counters().ecn_reductions, 2, "the next round trip");
}

#[test]
fn a_loss_in_the_round_trip_of_a_mark_reduces_no_further() {
    let mut solo = agreed();
    solo.send(60_000);
    solo.output();
    let _ = solo.input(ECE, 0, 1_460, 0);
    let threshold = solo.connection.info(solo.now).slow_start_threshold;
    solo.sack(1_460, &[(2_920, 14_600)]);
    assert_eq!(solo.connection.counters().fast_recoveries, 1);
    assert_eq!(solo.connection.info(solo.now).slow_start_threshold, threshold);
}

#[test]
fn cwr_goes_out_in_a_single_segment() {
    let mut solo = agreed();
    solo.limits = TxLimits { max_payload: 65_535, completions: false };
    solo.send(60_000);
    solo.output();
    let _ = solo.input(ECE, 0, 14_600, 0);
    let mut packet = linerate_nic::TxPacket::new();
    let mut infos = alloc::vec::Vec::new();
    while let Some(info) = solo.connection.poll_transmit(solo.now, &solo.limits, &mut packet, 34) {
        infos.push((info.segments, packet.header()[34 + 13] & Flags::CWR.0 != 0));
        packet.clear();
    }
    assert_eq!(infos[0], (1, true));
    assert!(infos[1..].iter().any(|info| info.0 > 1) && infos[1..].iter().all(|info| !info.1), "{infos:?}");
    assert!(drain(&mut solo.connection, solo.now, &solo.limits).is_empty());
}

#[test]
fn resets_carry_no_ecn_bits() {
    let mut solo = agreed();
    solo.input_marked(ACK, 0, 1_000, Ecn::Congested);
    solo.connection.abort(solo.now, linerate_transport::CloseReason::Reset);
    let reset = solo.output().pop().unwrap();
    assert_eq!((reset.flags, reset.wire.ecn), (Flags(0x14), Ecn::NotCapable));
    assert_eq!(reset.wire.options, Options::default());
}
