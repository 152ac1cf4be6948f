//! Requests that are sound and requests that are not.

use super::*;
use crate::selftest::frames::{Kind, Plan};
use alloc::vec;
use alloc::vec::Vec;
use proptest::prelude::*;

const LIMIT: usize = 4096;

/// What a driver asks for the frame of `plan`, whose pseudo-header sum is in the field, or in the request if `seeded`.
fn asked(plan: &Plan, payload: &[u8], seeded: bool) -> (Vec<u8>, Request) {
    let mut frame = plan.partial_header(payload.len());
    frame.extend_from_slice(payload);
    let begin = plan.layer4();
    let insert = begin + plan.checksum_offset();
    let mut init = 0;
    if seeded {
        init = u16::from_be_bytes([frame[insert], frame[insert + 1]]);
        frame[insert..insert + 2].fill(0);
    }
    if !plan.v6 {
        // Not to be relied on.
        frame[plan.ip() + 10] ^= 0x5a;
    }
    let layer4 = Layer4::Partial(Partial { init, begin: begin as u16, insert: insert as u16 });
    (frame, Request { layer4, ip: (!plan.v6).then_some(plan.ip() as u8) })
}

proptest! {
    #[test]
    fn frames_are_as_if_written_by_hand(
        v6: bool, is_udp: bool, tags in 0u8..=2, options in 0usize..=10, seeded: bool,
        payload in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let kind = if is_udp { Kind::Udp } else { Kind::Tcp };
        let plan = Plan { v6, kind, tags, options: vec![1; options * 4], ..Plan::default() };
        let (mut frame, request) = asked(&plan, &payload, seeded);
        prop_assert_eq!(insert(&mut frame, &request, LIMIT), Outcome::Inserted);
        prop_assert_eq!(frame, plan.frame(&payload));
    }

    #[test]
    fn the_software_fallback_writes_the_same(
        bytes in proptest::collection::vec(any::<u8>(), 2..200), begin in 1u16..60, offset in 0u16..60,
    ) {
        let (begin, offset) = (begin * 2, offset * 2);
        let (mut ours, mut theirs) = (bytes.clone(), bytes);
        let layer4 = Layer4::Partial(Partial { init: 0, begin, insert: begin + offset });
        let outcome = insert(&mut ours, &Request { layer4, ip: None }, LIMIT);
        let filled = checksum::fill(&mut theirs, &[], crate::ChecksumRequest { start: begin, offset });
        prop_assert_eq!(outcome == Outcome::Inserted, filled.is_some());
        prop_assert_eq!(ours, theirs);
    }
}

#[test]
fn what_is_not_sound_is_refused_and_the_frame_left_alone() {
    type Change = fn(&mut Request, &mut Vec<u8>);
    fn partial(request: &mut Request) -> &mut Partial {
        let Layer4::Partial(partial) = &mut request.layer4 else { panic!("not partial") };
        partial
    }
    let check = |change: Change, expected| {
        let (mut frame, mut request) = asked(&Plan::default(), &[7; 20], false);
        change(&mut request, &mut frame);
        let before = frame.clone();
        assert_eq!(insert(&mut frame, &request, LIMIT), expected, "{request:?}");
        assert_eq!(frame == before, expected != Outcome::Inserted, "{request:?}");
    };
    check(|_, _| {}, Outcome::Inserted);
    check(|request, _| request.ip = None, Outcome::Inserted);
    check(|request, _| request.layer4 = Layer4::None, Outcome::Inserted);
    check(|request, _| *request = Request::default(), Outcome::Bypassed);
    check(|request, _| request.layer4 = Layer4::Full, Outcome::Refused);
    check(|request, _| partial(request).begin += 1, Outcome::Refused);
    check(|request, _| partial(request).insert += 1, Outcome::Refused);
    check(|request, _| partial(request).insert = 32, Outcome::Refused);
    check(|request, _| partial(request).insert = 74, Outcome::Refused);
    check(|request, _| partial(request).insert = 72, Outcome::Inserted);
    // In the IPv4 header, in front of it.
    check(|request, _| partial(request).begin = 32, Outcome::Refused);
    check(|request, _| partial(request).begin = 12, Outcome::Refused);
    check(|request, _| request.ip = Some(15), Outcome::Refused);
    check(|request, _| request.ip = Some(74), Outcome::Refused);
    check(|_, frame| frame[14] = 0x44, Outcome::Refused);
    check(|_, frame| frame[14] = 0x46, Outcome::Refused);
    check(|_, frame| frame.resize(LIMIT + 1, 0), Outcome::Overlong);
    let in_front = Partial { init: 0, begin: 0, insert: 2 };
    let request = Request { layer4: Layer4::Partial(in_front), ip: None };
    assert_eq!(insert(&mut [9; 20], &request, LIMIT), Outcome::Refused);
}
