//! Tests of segments: vectors, round trips, truncations, arbitrary bytes.

extern crate std;
use super::*;
use crate::checksum::pseudo_header4;
use core::net::Ipv4Addr;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::vec::Vec;

fn block(left: u32, right: u32) -> SackBlock {
    SackBlock { left: SeqNumber(left), right: SeqNumber(right) }
}

fn blocks(list: &[(u32, u32)]) -> SackBlocks {
    let mut blocks = SackBlocks::EMPTY;
    for &(left, right) in list {
        blocks.push(block(left, right));
    }
    blocks
}

fn check_options(bytes: &[u8], expected: Options) {
    assert_eq!(Options::parse(bytes), expected, "{bytes:02x?}");
}

#[test]
fn options_parse() {
    let none = Options::default();
    check_options(&[], none);
    check_options(&[2, 4, 5, 0xb4], Options { mss: Some(1460), ..none });
    check_options(&[3, 3, 7, 1], Options { window_scale: Some(7), ..none });
    check_options(&[1, 3, 3, 15], Options { window_scale: Some(14), ..none });
    check_options(&[1, 1, 4, 2], Options { sack_permitted: true, ..none });
    let stamps = Some(Timestamps { value: 0x01020304, echo: 0x05060708 });
    check_options(&[1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8], Options { timestamps: stamps, ..none });
    check_options(&[8, 10, 1, 2, 3, 4, 5, 6, 7, 8, 1, 1], Options { timestamps: stamps, ..none });
    check_options(&[1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2], Options { sack_blocks: blocks(&[(1, 2)]), ..none });
    // Unknown kinds are skipped, the end of the list ends it.
    check_options(&[254, 4, 9, 9, 2, 4, 0, 9], Options { mss: Some(9), ..none });
    check_options(&[0, 2, 4, 5, 0xb4], none);
}

#[test]
fn malformed_options_keep_what_came_before() {
    let mss = Options { mss: Some(1460), ..Options::default() };
    let with = |kind| Options { malformed: Some(kind), ..mss };
    // Lengths of zero and one, past the end, and missing.
    check_options(&[2, 4, 5, 0xb4, 8, 0, 1, 1], with(8));
    check_options(&[2, 4, 5, 0xb4, 77, 1, 1, 1], with(77));
    check_options(&[2, 4, 5, 0xb4, 8, 10, 1, 1], with(8));
    check_options(&[2, 4, 5, 0xb4, 1, 1, 1, 8], with(8));
    // A known option of a wrong length is skipped.
    check_options(&[3, 4, 7, 7, 2, 4, 5, 0xb4], with(3));
    check_options(&[5, 2, 1, 1, 2, 4, 5, 0xb4], with(5));
    check_options(&[5, 9, 1, 1, 1, 1, 1, 1, 1, 2, 4, 5, 0xb4], with(5));
    check_options(&[2, 4, 5, 0xb4, 2, 3, 1, 1], with(2));
}

#[test]
fn fast_open_cookies_have_an_even_number_of_bytes() {
    // RFC 7413 section 4.1.1: 4 to 16 bytes, or none, which asks for a cookie.
    let with = |cookie: &[u8]| Options { fast_open: FastOpenCookie::new(cookie), ..Options::default() };
    check_options(&[1, 1, 34, 2], with(&[]));
    check_options(&[34, 6, 1, 2, 3, 4, 1, 1], with(&[1, 2, 3, 4]));
    let mut bytes = [7; 40];
    for len in 0..=38u8 {
        bytes[..2].copy_from_slice(&[34, 2 + len]);
        let options = Options::parse(&bytes[..usize::from(2 + len)]);
        let is_legal = len == 0 || (4..=16).contains(&len) && len.is_multiple_of(2);
        assert_eq!(options.fast_open.is_some(), is_legal, "{len}");
        assert_eq!(options.malformed, (!is_legal).then_some(34), "{len}");
    }
}

#[test]
fn the_longest_cookie_fits_beside_all_options_of_a_syn() {
    let syn = Options {
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps { value: 1, echo: 2 }),
        fast_open: FastOpenCookie::new(&[9; 16]),
        ..Options::default()
    };
    let mut out = [0xee; 40];
    assert_eq!((syn.emit(&mut out), syn.max_sack_blocks()), (Ok(40), 0));
    assert_eq!(out[20..24], [1, 1, 34, 18]);
    assert_eq!(Options::parse(&out), syn);
}

#[test]
fn options_lie_on_word_boundaries() {
    let timestamps = Some(Timestamps { value: 1, echo: 2 });
    let established =
        Options { timestamps, sack_blocks: blocks(&[(1, 2), (3, 4), (5, 6), (7, 8)]), ..Options::default() };
    let mut out = [0xee; 40];
    assert_eq!((established.max_sack_blocks(), established.emit(&mut out)), (3, Ok(40)));
    assert_eq!(out[..4], [1, 1, 8, 10]);
    assert_eq!(out[12..16], [1, 1, 5, 26]);
    let syn = Options {
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps,
        ..Options::default()
    };
    assert_eq!(syn.emit(&mut out), Ok(20));
    assert_eq!(out[..20], [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 3, 3, 7]);
}

/// A SYN as a Linux client sends it, with its checksum.
const SYN: [u8; 40] = [
    0xc0, 0x22, 0x14, 0x51, 0x4f, 0xe5, 0x16, 0x1d, 0, 0, 0, 0, 0xa0, 0x02, 0xfa, 0xf0, 0, 0, 0, 0, 2, 4, 5,
    0xb4, 4, 2, 8, 10, 0x84, 0xa2, 0x5c, 0x35, 0, 0, 0, 0, 1, 3, 3, 7,
];

#[test]
fn a_syn_reads_and_writes_back() {
    let (source, destination) = (Ipv4Addr::new(192, 168, 1, 1), Ipv4Addr::new(192, 168, 1, 4));
    let pseudo = pseudo_header4(source, destination, 6, 40);
    let mut sum = pseudo;
    sum.add(&SYN);
    let mut syn = SYN;
    set_checksum(&mut syn, sum.finish()).expect("long enough");
    let header = Header::parse(&syn).expect("a segment");
    assert!(header.verify_checksum(pseudo));
    assert_eq!((header.source_port(), header.destination_port()), (49186, 5201));
    assert_eq!((header.sequence(), header.acknowledgement()), (SeqNumber(0x4fe5161d), SeqNumber(0)));
    assert_eq!((header.flags(), header.window(), header.urgent()), (Flags::SYN, 64240, 0));
    assert_eq!((header.header_len(), header.payload(), header.sequence_len()), (40, &[][..], 1));
    let builder = Builder {
        source_port: 49186,
        destination_port: 5201,
        sequence: header.sequence(),
        flags: Flags::SYN,
        window: 64240,
        checksum: header.checksum(),
        options: header.options(),
        ..Builder::default()
    };
    let mut out = [0; 40];
    assert_eq!(builder.emit(&mut out), Ok(40));
    assert_eq!(out, syn);
    out[30] ^= 1;
    assert!(!Header::parse(&out).expect("a segment").verify_checksum(pseudo));
}

#[test]
fn short_headers_are_refused_with_the_reason() {
    for len in 0..SYN.len() {
        let needed = if len < 20 { 20 } else { 40 };
        let error = ParseError::Truncated { layer: Layer::Tcp, needed, available: len as u32 };
        assert_eq!(Header::parse(&SYN[..len]), Err(error));
    }
    let mut bad = SYN;
    bad[12] = 0x40;
    assert_eq!(Header::parse(&bad), Err(ParseError::Invalid { field: Field::TcpDataOffset, found: 4 }));
}

#[test]
fn a_segment_that_a_capture_has_cut_keeps_what_there_is() {
    let mut bytes = [0; 44];
    let options =
        Options { mss: Some(1460), timestamps: Some(Timestamps { value: 7, echo: 0 }), ..Options::default() };
    let len = Builder { source_port: 80, options, ..Builder::default() }.emit(&mut bytes).unwrap();
    assert_eq!(len, 36);
    for cut in 0..=bytes.len() {
        let Ok(header) = Header::parse_cut(&bytes[..cut]) else {
            assert!(cut < MIN_HEADER_LEN);
            continue;
        };
        assert_eq!((header.told_header_len(), header.header_len()), (36, cut.min(36)));
        assert_eq!(header.payload().len(), cut.saturating_sub(36));
        assert_eq!(header.options().mss.is_some(), cut >= 24, "{cut}");
        assert_eq!(header.options().timestamps.is_some(), cut >= 36, "{cut}");
    }
    bytes[12] = 4 << 4;
    assert!(Header::parse_cut(&bytes).is_err());
}

#[test]
fn a_block_that_was_cut_off_begins_somewhere() {
    let options = Options {
        timestamps: Some(Timestamps { value: 1, echo: 2 }),
        sack_blocks: blocks(&[(0x0102_0304, 0x0506_0708)]),
        ..Options::default()
    };
    let mut bytes = [0; 40];
    let len = options.emit(&mut bytes).unwrap();
    assert_eq!(Options::cut_sack(&bytes[..len]), None);
    for cut in 0..len {
        let expected = (cut >= len - 4).then_some(SeqNumber(0x0102_0304));
        assert_eq!(Options::cut_sack(&bytes[..cut]), expected, "{cut} of {len}");
    }
}

fn any_cookie() -> impl Strategy<Value = FastOpenCookie> {
    vec(any::<u8>(), 0..=MAX_COOKIE_LEN)
        .prop_filter_map("a length of cookies", |bytes| FastOpenCookie::new(&bytes))
}

fn any_options() -> impl Strategy<Value = Options> {
    (
        option::of(any::<u16>()),
        option::of(0..=14u8),
        any::<bool>(),
        vec((any::<u32>(), any::<u32>()), 0..=4),
        option::of((any::<u32>(), any::<u32>())),
        option::of(any_cookie()),
    )
        .prop_map(|(mss, window_scale, sack_permitted, sack, stamps, fast_open)| Options {
            mss,
            window_scale,
            sack_permitted,
            sack_blocks: blocks(&sack),
            timestamps: stamps.map(|(value, echo)| Timestamps { value, echo }),
            fast_open,
            malformed: None,
        })
}

fn any_builder() -> impl Strategy<Value = Builder> {
    (any::<[u16; 5]>(), any::<[u32; 2]>(), any::<u8>(), any_options()).prop_map(
        |(short, long, flags, options)| Builder {
            source_port: short[0],
            destination_port: short[1],
            window: short[2],
            checksum: short[3],
            urgent: short[4],
            sequence: SeqNumber(long[0]),
            acknowledgement: SeqNumber(long[1]),
            flags: Flags(flags),
            options,
        },
    )
}

fn rebuilt(header: &Header<'_>) -> Builder {
    Builder {
        source_port: header.source_port(),
        destination_port: header.destination_port(),
        sequence: header.sequence(),
        acknowledgement: header.acknowledgement(),
        flags: header.flags(),
        window: header.window(),
        checksum: header.checksum(),
        urgent: header.urgent(),
        options: header.options(),
    }
}

proptest! {
    #[test]
    fn a_plain_header_is_that_of_the_general_builder(
        ports: (u16, u16),
        numbers: (u32, u32),
        flags in 0u8..=255,
        window: u16,
        stamps in option::of(any::<(u32, u32)>()),
        room in 0usize..40,
    ) {
        let timestamps = stamps.map(|(value, echo)| Timestamps { value, echo });
        let plain = PlainBuilder {
            source_port: ports.0,
            destination_port: ports.1,
            sequence: SeqNumber(numbers.0),
            acknowledgement: SeqNumber(numbers.1),
            flags: Flags(flags),
            window,
            timestamps,
        };
        let general = Builder {
            source_port: ports.0,
            destination_port: ports.1,
            sequence: SeqNumber(numbers.0),
            acknowledgement: SeqNumber(numbers.1),
            flags: Flags(flags),
            window,
            options: Options { timestamps, ..Options::default() },
            ..Builder::default()
        };
        let (mut out, mut expected) = ([0xee; 40], [0xee; 40]);
        let written = plain.emit(&mut out[..room]);
        prop_assert_eq!(written.ok(), general.emit(&mut expected[..room]).ok());
        prop_assert_eq!(plain.header_len(), general.header_len());
        if written.is_ok() {
            prop_assert_eq!(out, expected);
        }
    }

    #[test]
    fn a_renewed_header_is_one_written_anew(
        numbers: [(u32, u32); 2],
        windows: [u16; 2],
        stamps: [(u32, u32); 2],
        has_timestamps: bool,
        flags: u8,
        room in 0usize..40,
    ) {
        let stamp = |(value, echo)| has_timestamps.then_some(Timestamps { value, echo });
        let plain = |at: usize| PlainBuilder {
            source_port: 4_000,
            destination_port: 80,
            sequence: SeqNumber(numbers[at].0),
            acknowledgement: SeqNumber(numbers[at].1),
            flags: Flags(flags),
            window: windows[at],
            timestamps: stamp(stamps[at]),
        };
        let (mut renewed, mut anew) = ([0xee; 40], [0xee; 40]);
        let len = plain(0).emit(&mut renewed).unwrap();
        plain(1).emit(&mut anew).unwrap();
        let PlainBuilder { sequence, acknowledgement, window, timestamps, .. } = plain(1);
        let room = room.min(len);
        let result = renew(&mut renewed[..room], (sequence, acknowledgement), window, timestamps);
        prop_assert_eq!(result.is_ok(), room == len);
        if result.is_ok() {
            prop_assert_eq!(renewed, anew);
        }
    }

    #[test]
    fn written_headers_read_back(builder in any_builder(), payload in vec(any::<u8>(), 0..64)) {
        let mut bytes = [0xee; MAX_HEADER_LEN + 64];
        let len = builder.emit(&mut bytes).expect("room for any header");
        prop_assert_eq!(len, builder.header_len());
        prop_assert!(len <= MAX_HEADER_LEN && len % 4 == 0);
        bytes[len..len + payload.len()].copy_from_slice(&payload);
        let header = Header::parse(&bytes[..len + payload.len()]).expect("a segment");
        prop_assert_eq!(header.payload(), &payload[..]);
        let mut expected = builder;
        let fit = builder.options.max_sack_blocks();
        let kept: Vec<_> = builder.options.sack_blocks.as_slice().iter().take(fit).map(|b| (b.left.0, b.right.0)).collect();
        expected.options.sack_blocks = blocks(&kept);
        prop_assert_eq!(rebuilt(&header), expected);
        for short in 0..len {
            prop_assert!(builder.emit(&mut bytes[..short]).is_err());
            prop_assert!(Header::parse(&bytes[..short]).is_err());
        }
    }

    #[test]
    fn arbitrary_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..100)) {
        if let Ok(header) = Header::parse(&bytes) {
            prop_assert_eq!(header.header_len() + header.payload().len(), bytes.len());
            let options = header.options();
            prop_assert!(options.window_scale.is_none_or(|scale| scale <= 14));
            // What was understood can be written, and then reads the same.
            let mut out = [0; MAX_OPTIONS_LEN];
            let len = options.emit(&mut out).expect("options that came from 40 bytes fit into 40");
            let again = Options::parse(&out[..len]);
            prop_assert_eq!((again.mss, again.timestamps), (options.mss, options.timestamps));
            prop_assert_eq!(again.fast_open, options.fast_open);
        }
    }

    #[test]
    fn arbitrary_options_end(bytes in vec(prop_oneof![0u8..12, Just(34), any::<u8>()], 0..=40)) {
        let options = Options::parse(&bytes);
        prop_assert!(options.sack_blocks.len() <= MAX_SACK_BLOCKS);
    }
}
