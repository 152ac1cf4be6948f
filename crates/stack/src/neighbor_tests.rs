//! Tests of the neighbour cache.

use super::*;
use core::net::Ipv4Addr;

const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);
const OTHER: MacAddr = MacAddr([2, 0, 0, 0, 0, 10]);

fn ip(last: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(192, 168, 1, last))
}

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn cache(capacity: usize) -> NeighborCache<u32> {
    NeighborCache::new(capacity, 64, KeyedState::new(&[5; 32]))
}

fn pending(cache: &mut NeighborCache<u32>, last: u8, now: Instant) -> NeighborRef {
    match cache.resolve(ip(last), now) {
        Lookup::Pending(neighbor) => neighbor,
        other => panic!("{other:?}"),
    }
}

#[test]
fn three_requests_a_second_apart_and_then_failure() {
    let mut cache = cache(8);
    let neighbor = pending(&mut cache, 1, at(0));
    let mut sent = Vec::new();
    let mut now = at(0);
    for _ in 0..10 {
        while let Some(solicit) = cache.poll_solicit(now) {
            assert_eq!(solicit, Solicit { ip: ip(1), unicast: None });
            sent.push(now.as_millis());
        }
        let Some(deadline) = cache.deadline(neighbor.slot) else { break };
        now = deadline;
        if cache.handle_timeout(neighbor.slot, now) == Outcome::Failed(neighbor.slot) {
            break;
        }
    }
    assert_eq!(sent, [0, 1_000, 2_000]);
    assert_eq!(now, at(3_000));
    assert_eq!(cache.len(), 0);
    assert_eq!(cache.resolve_ref(neighbor, now), None, "an old handle reaches nothing");
    pending(&mut cache, 1, now);
}

#[test]
fn an_answer_wakes_and_is_confirmed_or_probed() {
    let mut cache = cache(8);
    let neighbor = pending(&mut cache, 1, at(0));
    assert_eq!(cache.park(neighbor, 7), None);
    assert_eq!(cache.advertise(ip(1), Some(MAC), true, true, at(10)), Outcome::Resolved(neighbor.slot));
    assert_eq!(cache.unpark(neighbor.slot), Some(7));
    assert_eq!(cache.resolve(ip(1), at(10)), Lookup::Known(neighbor, MAC));
    // Reachable for 30 s, then stale; progress keeps it reachable.
    cache.confirm(neighbor, at(20_000));
    assert_eq!(cache.handle_timeout(neighbor.slot, at(30_010)), Outcome::Nothing);
    assert_eq!(cache.deadline(neighbor.slot), Some(at(50_000)));
    cache.handle_timeout(neighbor.slot, at(50_000));
    assert_eq!(cache.deadline(neighbor.slot), None);
    // Its use starts the probe, five seconds later to its own address; three unanswered and it is gone.
    assert_eq!(cache.resolve_ref(neighbor, at(60_000)), Some(Lookup::Known(neighbor, MAC)));
    let mut probes = 0;
    let mut outcome = Outcome::Nothing;
    while let Some(deadline) = cache.deadline(neighbor.slot) {
        outcome = cache.handle_timeout(neighbor.slot, deadline);
        while let Some(solicit) = cache.poll_solicit(deadline) {
            assert_eq!(solicit.unicast, Some(MAC));
            probes += 1;
        }
    }
    assert_eq!((probes, outcome), (3, Outcome::Failed(neighbor.slot)));
}

#[test]
fn nobody_takes_the_place_of_a_reachable_neighbour_without_its_silence() {
    for (solicited, overrides) in [(true, true), (false, true), (true, false), (false, false)] {
        let mut cache = cache(8);
        let neighbor = pending(&mut cache, 1, at(0));
        cache.poll_solicit(at(0));
        cache.advertise(ip(1), Some(MAC), true, true, at(0));
        let disputed = cache.advertise(ip(1), Some(OTHER), solicited, overrides, at(1));
        assert_eq!(disputed, Outcome::Disputed(neighbor.slot));
        assert_eq!(cache.observe(ip(1), OTHER, true, at(2)), Outcome::Nothing, "it is being asked already");
        assert_eq!(cache.resolve(ip(1), at(2)), Lookup::Known(neighbor, MAC), "in use meanwhile");
        assert_eq!(cache.poll_solicit(at(2)), Some(Solicit { ip: ip(1), unicast: Some(MAC) }));
        // Its answer settles it; the other's does not.
        cache.advertise(ip(1), Some(OTHER), true, true, at(3));
        cache.advertise(ip(1), Some(MAC), true, true, at(4));
        assert_eq!(cache.deadline(neighbor.slot), Some(at(30_004)));
        assert_eq!(cache.resolve(ip(1), at(4)), Lookup::Known(neighbor, MAC));
    }
}

#[test]
fn a_neighbour_that_moved_is_found_after_three_seconds() {
    let mut cache = cache(8);
    let neighbor = pending(&mut cache, 1, at(0));
    cache.advertise(ip(1), Some(MAC), true, true, at(0));
    cache.observe(ip(1), OTHER, true, at(1));
    let mut now = at(1);
    let mut outcome = Outcome::Nothing;
    while let Some(deadline) = cache.deadline(neighbor.slot) {
        cache.poll_solicit(now);
        now = deadline;
        outcome = cache.handle_timeout(neighbor.slot, now);
    }
    assert_eq!((outcome, now), (Outcome::Failed(neighbor.slot), at(3_001)));
    let again = pending(&mut cache, 1, now);
    assert_eq!(cache.advertise(ip(1), Some(OTHER), true, true, now), Outcome::Resolved(again.slot));
    assert_eq!(cache.resolve(ip(1), now), Lookup::Known(again, OTHER));
}

#[test]
fn progress_of_connections_does_not_settle_a_dispute() {
    let mut cache = cache(8);
    let neighbor = pending(&mut cache, 1, at(0));
    cache.advertise(ip(1), Some(MAC), true, true, at(0));
    cache.confirm(neighbor, at(1));
    assert_eq!(cache.deadline(neighbor.slot), Some(at(30_001)));
    cache.observe(ip(1), OTHER, true, at(2));
    cache.poll_solicit(at(2));
    // An acknowledgement that came by way of the other one.
    cache.confirm(neighbor, at(3));
    assert_eq!(cache.deadline(neighbor.slot), Some(at(1_002)), "it is still being asked");
    cache.advertise(ip(1), Some(MAC), true, true, at(4));
    cache.confirm(neighbor, at(5));
    assert_eq!(cache.deadline(neighbor.slot), Some(at(30_005)));
}

#[test]
fn an_answer_that_nobody_asked_for_confirms_nothing() {
    let mut cache = cache(8);
    cache.observe(ip(1), MAC, true, at(0));
    let Lookup::Known(neighbor, _) = cache.resolve(ip(1), at(0)) else { panic!("known") };
    cache.advertise(ip(1), Some(MAC), true, true, at(1));
    assert_eq!(cache.deadline(neighbor.slot), Some(at(5_000)), "it is still to be probed");
    cache.handle_timeout(neighbor.slot, at(5_000));
    assert!(cache.poll_solicit(at(5_000)).is_some());
    cache.advertise(ip(1), Some(MAC), true, true, at(5_001));
    assert_eq!(cache.deadline(neighbor.slot), Some(at(35_001)));
}

#[test]
fn claims_cause_ten_questions_a_second() {
    let mut cache = cache(8);
    let neighbor = pending(&mut cache, 1, at(0));
    cache.advertise(ip(1), Some(MAC), true, true, at(0));
    let mut asked = 0;
    for ms in 0..1_000 {
        cache.observe(ip(1), OTHER, true, at(ms));
        while cache.poll_solicit(at(ms)).is_some() {
            asked += 1;
            cache.advertise(ip(1), Some(MAC), true, true, at(ms));
        }
    }
    assert!((10..=20).contains(&asked), "{asked}");
    assert_eq!(cache.resolve(ip(1), at(1_000)), Lookup::Known(neighbor, MAC));
}

#[test]
fn an_unconfirmed_address_gives_way_to_what_is_heard() {
    let mut cache = cache(8);
    assert_eq!(cache.observe(ip(1), MAC, false, at(0)), Outcome::Nothing);
    assert_eq!(cache.len(), 0, "not created for somebody whom we do not talk to");
    cache.observe(ip(1), MAC, true, at(0));
    cache.advertise(ip(1), Some(OTHER), false, false, at(1));
    cache.observe(ip(1), OTHER, true, at(2));
    let Lookup::Known(neighbor, mac) = cache.resolve(ip(1), at(3)) else { panic!("known") };
    assert_eq!(mac, OTHER);
    assert_eq!(cache.deadline(neighbor.slot), Some(at(5_003)), "its use makes it probed");
}

#[test]
fn a_flood_of_new_entries_displaces_only_its_own() {
    let mut cache = cache(16);
    for last in 1..=8 {
        let neighbor = pending(&mut cache, last, at(0));
        cache.advertise(ip(last), Some(MAC), true, true, at(0));
        cache.confirm(neighbor, at(1));
    }
    for second in 1..60 {
        for last in 20..220 {
            cache.observe(ip(last), OTHER, true, at(second * 1_000 + u64::from(last)));
        }
    }
    assert!(cache.evicted > 1_000);
    for last in 1..=8 {
        assert!(matches!(cache.resolve(ip(last), at(60_000)), Lookup::Known(_, MAC)), "{last}");
    }
}

#[test]
fn unanswered_entries_take_half_of_the_table_and_known_ones_give_way_by_age() {
    let mut cache = cache(8);
    for last in 1..=8 {
        cache.observe(ip(last), MAC, true, at(u64::from(last)));
    }
    let results: Vec<bool> =
        (100..110).map(|last| cache.resolve(ip(last), at(50)) != Lookup::Refused).collect();
    assert_eq!(results, [true, true, true, true, false, false, false, false, false, false]);
    assert_eq!((cache.len(), cache.evicted), (8, 4));
    assert!(cache.index.contains_key(&ip(5)), "the four oldest went");
    assert!(!cache.index.contains_key(&ip(4)));
}

#[test]
fn new_entries_come_at_a_limited_rate() {
    let mut cache = cache(1_000);
    let made = (0..=255).filter(|&last| cache.resolve(ip(last), at(0)) != Lookup::Refused).count();
    assert_eq!(made, 64);
    assert!(matches!(cache.resolve(ip(200), at(1_000)), Lookup::Pending(_)));
    // A flood of questions for us leaves our own questions their rate.
    let mut cache = self::cache(1_000);
    for last in 0..=255 {
        cache.observe(ip(last), MAC, true, at(0));
    }
    assert_eq!(cache.len(), 64);
    assert!(matches!(cache.resolve(ip(200), at(0)), Lookup::Pending(_)));
}

#[test]
fn parked_packets_are_bounded_per_neighbour_and_in_all() {
    let mut cache = cache(100);
    let first = pending(&mut cache, 1, at(0));
    let dropped: Vec<_> = (0..6).filter_map(|packet| cache.park(first, packet)).collect();
    assert_eq!(dropped, [0, 1], "the oldest give way");
    let mut kept = 4;
    for last in 2..40 {
        let neighbor = pending(&mut cache, last, at(0));
        for packet in 0..4 {
            kept += usize::from(cache.park(neighbor, packet).is_none());
        }
    }
    assert_eq!(kept, 64);
    assert_eq!(cache.unpark(first.slot), Some(2));
}
