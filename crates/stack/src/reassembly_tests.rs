//! Tests of reassembly.

use super::*;
use core::net::{Ipv4Addr, Ipv6Addr};
use proptest::prelude::*;

const A4: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const B4: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const A6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1));
const HEADER4: [u8; 20] = [0x46, 0, 0, 0, 0, 7, 0x20, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];

struct Bench {
    table: Reassembly,
    counters: Counters,
    pool: Pool,
}

fn bench(limit: usize) -> Bench {
    bench_with(limit, DATAGRAM_BUFFER)
}

/// With buffers of so many bytes.
fn bench_with(limit: usize, buffer: usize) -> Bench {
    let pool = Pool::new(4, buffer);
    Bench { table: Reassembly::new(pool.clone(), limit), counters: Counters::default(), pool }
}

fn key(id: u32) -> FragmentKey {
    FragmentKey { source: A4, destination: B4, identification: id, protocol: Protocol::UDP }
}

impl Bench {
    fn put(&mut self, id: u32, offset: usize, more: bool, payload: &[u8]) -> Reassembled {
        let fragment = Fragment {
            key: key(id),
            header: &HEADER4,
            protocol: Protocol::UDP,
            offset,
            more,
            is_group: false,
            ecn: Ecn::NotCapable,
            payload,
        };
        self.table.handle(&fragment, Instant::from_millis(u64::from(id)), &mut self.counters)
    }

    fn put_complete(&mut self, id: u32, offset: usize, more: bool, payload: &[u8]) -> Slice {
        match self.put(id, offset, more, payload) {
            Reassembled::Complete { data: packet, .. } => packet,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn fragments_in_any_order_make_one_packet() {
    let mut bench = bench(4);
    assert!(matches!(bench.put(1, 16, false, b"tail"), Reassembled::Nothing));
    assert!(matches!(bench.put(1, 8, true, b"middle.."), Reassembled::Nothing));
    assert!(matches!(bench.put(1, 8, true, b"middle.."), Reassembled::Nothing), "a repetition is ignored");
    let packet = bench.put_complete(1, 0, true, b"01234567");
    assert_eq!(&packet.bytes()[20..], b"01234567middle..tail");
    assert_eq!(packet.bytes()[0], 0x45, "options are gone");
    assert_eq!(&packet.bytes()[2..4], &[0, 40]);
    assert_eq!(&packet.bytes()[6..8], &[0, 0]);
    assert!(checksum::verify(&packet.bytes()[..20]));
    drop(packet);
    assert_eq!((bench.pool.free(), bench.table.len()), (4, 0));
}

#[test]
fn a_datagram_is_as_long_as_a_buffer_at_most() {
    let mut small = bench_with(4, HEADROOM + 24);
    assert!(matches!(small.put(1, 16, false, b"12345678"), Reassembled::Nothing));
    assert_eq!(small.put_complete(1, 0, true, b"0123456789abcdef").len(), 20 + 24);
    assert!(matches!(small.put(2, 0, true, b"0123456789abcdef"), Reassembled::Nothing));
    assert_eq!(small.table.len(), 1);
    assert!(matches!(small.put(2, 16, false, b"123456789"), Reassembled::Nothing));
    assert_eq!((small.table.len(), small.pool.free(), small.counters.drop_reassembly_full), (0, 4, 1));
    let mut none = bench_with(4, HEADROOM);
    assert!(matches!(none.put(1, 0, false, b"1"), Reassembled::Nothing));
    assert_eq!((none.pool.free(), none.counters.drop_reassembly_full), (4, 1));
}

#[test]
fn an_overlap_drops_the_whole_datagram() {
    // Second fragment after 0..16 of "aaaaaaaaaaaaaaaa": each contradicts it.
    let check = |offset, more, payload: &[u8], is_dropped: bool| {
        let mut bench = bench(4);
        bench.put(1, 0, true, b"aaaaaaaaaaaaaaaa");
        bench.put(1, offset, more, payload);
        assert_eq!(bench.table.len(), usize::from(!is_dropped), "{offset} {more} {payload:?}");
        assert_eq!(bench.counters.drop_fragment_overlap, u64::from(is_dropped));
    };
    check(8, true, b"aaaaaaaa", false);
    check(8, true, b"aaaaaaab", true);
    check(8, true, b"aaaaaaaabbbbbbbb", true);
    check(0, true, b"aaaaaaaaaaaaaaaabbbbbbbb", true);
    check(8, false, b"aaaa", true);
    check(24, true, b"cccccccc", false);
    let mut bench = bench(4);
    bench.put(2, 16, false, b"end");
    bench.put(2, 24, true, b"beyond..");
    assert_eq!(bench.counters.drop_fragment_overlap, 1);
    bench.put(3, 16, false, b"end");
    bench.put(3, 16, false, b"ending");
    assert_eq!(bench.counters.drop_fragment_overlap, 2);
}

#[test]
fn shapes_that_only_attacks_have_are_refused() {
    let mut bench = bench(4);
    assert!(matches!(bench.put(1, 0, true, b"1234567"), Reassembled::BadLength));
    assert!(matches!(bench.put(1, 8, false, b""), Reassembled::BadLength));
    assert!(matches!(bench.put(1, 65_512, false, b"12345678"), Reassembled::TooLong));
    let tcp = |offset, more, payload: &'static [u8]| Fragment {
        key: key(9),
        header: &HEADER4,
        protocol: Protocol::TCP,
        offset,
        more,
        is_group: false,
        ecn: Ecn::NotCapable,
        payload,
    };
    for fragment in [tcp(0, true, b"0123456789abcdef"), tcp(8, true, b"01234567"), tcp(16, false, b"0123")] {
        let outcome = bench.table.handle(&fragment, Instant::ZERO, &mut bench.counters);
        assert!(matches!(outcome, Reassembled::Tiny), "{fragment:?}");
    }
    assert_eq!(bench.counters.drop_fragment_tiny, 3);
    assert_eq!((bench.table.len(), bench.pool.free()), (0, 4));
}

#[test]
fn the_oldest_gives_way_and_holes_are_bounded() {
    let mut bench = bench(2);
    for id in 1..=3 {
        bench.put(id, 0, true, b"01234567");
    }
    assert_eq!((bench.table.len(), bench.counters.drop_reassembly_full), (2, 1));
    bench.put_complete(2, 8, false, b"end");
    assert!(matches!(bench.put(1, 8, false, b"end"), Reassembled::Nothing), "1 was dropped");
    let mut bench = self::bench(2);
    for hole in 0..=MAX_HOLES {
        bench.put(1, hole * 16, true, b"01234567");
    }
    assert_eq!((bench.table.len(), bench.counters.drop_fragment_holes), (0, 1));
}

#[test]
fn old_datagrams_expire_with_a_quote_of_the_first_fragment() {
    let mut bench = bench(4);
    bench.put(1, 0, true, b"01234567");
    bench.put(2, 8, true, b"01234567");
    assert_eq!(bench.table.poll_timeout(), Some(Instant::from_millis(30_001)));
    assert!(bench.table.pop_expired(Instant::from_millis(30_000)).is_none());
    let quote = bench.table.pop_expired(Instant::from_millis(30_001)).unwrap().quote.unwrap();
    assert_eq!(&quote.bytes()[20..], b"01234567");
    assert!(bench.table.pop_expired(Instant::from_millis(30_002)).unwrap().quote.is_none());
    let fragment = Fragment {
        key: FragmentKey { source: A6, destination: A6, identification: 1, protocol: Protocol(0) },
        header: &[0; 40],
        protocol: Protocol::UDP,
        offset: 0,
        more: true,
        is_group: false,
        ecn: Ecn::NotCapable,
        payload: b"01234567",
    };
    bench.table.handle(&fragment, Instant::ZERO, &mut bench.counters);
    assert_eq!(bench.table.poll_timeout(), Some(Instant::from_millis(60_000)));
}

/// RFC 3168 section 5.3.
#[test]
fn a_mark_of_congestion_is_not_lost() {
    use Ecn::{Capable0, Capable1, Congested, NotCapable};
    let check = |marks: [Ecn; 3], expected: Option<Ecn>| {
        for (source, header, at, shift) in [(A4, &HEADER4[..], 1, 0), (A6, &[0x60; 40][..], 1, 4)] {
            let mut bench = bench(4);
            let mut whole = None;
            for (i, ecn) in marks.into_iter().enumerate() {
                let mut header = header.to_vec();
                header[at] = header[at] & !(3 << shift) | ecn.bits() << shift;
                let fragment = Fragment {
                    key: FragmentKey { source, ..key(1) },
                    header: &header,
                    protocol: Protocol::UDP,
                    offset: i * 8,
                    more: i < 2,
                    is_group: false,
                    ecn,
                    payload: b"12345678",
                };
                match bench.table.handle(&fragment, Instant::ZERO, &mut bench.counters) {
                    Reassembled::Complete { data, .. } => whole = Some(data),
                    other => assert!(matches!(other, Reassembled::Nothing)),
                }
            }
            let found = whole.map(|packet| Ecn::from_bits(packet.bytes()[at] >> shift));
            assert_eq!(found, expected, "{marks:?} from {source}");
            assert_eq!(bench.counters.drop_fragment_ecn, u64::from(expected.is_none()));
            assert_eq!((bench.table.len(), bench.pool.free()), (0, 4));
        }
    };
    check([NotCapable; 3], Some(NotCapable));
    check([Capable1; 3], Some(Capable1));
    check([Capable0; 3], Some(Capable0));
    check([Congested; 3], Some(Congested));
    check([Congested, Capable0, Capable0], Some(Congested));
    check([Capable0, Capable0, Congested], Some(Congested));
    check([Capable1, Congested, Capable1], Some(Congested));
    check([NotCapable, NotCapable, Congested], None);
    check([Congested, NotCapable, NotCapable], None);
}

proptest! {
    /// Any cut of any datagram, in any order, comes out as it was; arbitrary fragments never panic or leak.
    #[test]
    fn cuts_come_together(
        len in 1usize..5_000, unit in 1usize..100, order in any::<u64>(), ipv6 in any::<bool>()
    ) {
        let mut bench = bench(1);
        let data: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
        let unit = (unit * 8).max(len / 60 / 8 * 8 + 8);
        let mut cuts: Vec<usize> = (0..len).step_by(unit).collect();
        let mut random = order | 1;
        for i in (1..cuts.len()).rev() {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            cuts.swap(i, (random >> 33) as usize % (i + 1));
        }
        let source = if ipv6 { A6 } else { A4 };
        let header: &[u8] = if ipv6 { &[0; 40] } else { &HEADER4 };
        let mut whole = None;
        for (n, &at) in cuts.iter().enumerate() {
            let end = (at + unit).min(len);
            let fragment = Fragment {
                key: FragmentKey { source, ..key(1) },
                header,
                protocol: Protocol(99),
                offset: at,
                more: end < len,
                is_group: false, ecn: Ecn::NotCapable,
                payload: &data[at..end],
            };
            match bench.table.handle(&fragment, Instant::ZERO, &mut bench.counters) {
                Reassembled::Complete { data: packet, .. } => {
                    prop_assert_eq!(n + 1, cuts.len());
                    whole = Some(packet);
                }
                Reassembled::Nothing => prop_assert!(n + 1 < cuts.len()),
                other => panic!("{other:?}"),
            }
        }
        let whole = whole.unwrap();
        prop_assert_eq!(&whole.bytes()[header.len()..], &data[..]);
    }

    #[test]
    fn arbitrary_fragments_leave_nothing_behind(
        fragments in proptest::collection::vec((0u32..3, 0usize..40, any::<bool>(), 0usize..64), 0..100)
    ) {
        let mut bench = bench(3);
        for (id, offset, more, len) in fragments {
            bench.put(id, offset * 8, more, &[0x5a; 64][..len]);
        }
        while bench.table.pop_expired(Instant::FAR_FUTURE).is_some() {}
        prop_assert_eq!((bench.table.len(), bench.pool.free()), (0, 4));
    }
}
