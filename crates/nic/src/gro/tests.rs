//! Which segments join and which do not, and that no byte is lost.

use super::rules::TIMESTAMPS;
use super::*;
use crate::checksum;
use crate::layers::{Version, parse};
use crate::meta::RxMeta;
use crate::pool::{Pool, Slice};
use crate::selftest::flat;
use crate::selftest::frames::{Kind, Plan};
use alloc::string::String;
use alloc::vec;
use proptest::prelude::*;

const CONFIG: GroConfig = GroConfig { flows: 2, frames: 4, segments: 8 };

/// A frame with verified checksums, as it comes out of verification.
fn frame(pool: &Pool, bytes: &[u8]) -> Frame {
    let mut buffer = pool.take().expect("a free buffer");
    buffer.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
    let meta = RxMeta { checksum: ChecksumStatus::Good, ..RxMeta::default() };
    Frame::new(buffer.freeze(0..bytes.len()), meta)
}

fn coalesce(gro: &mut Gro, frames: Vec<Frame>) -> Vec<Frame> {
    let mut batch = RxBatch::with_limit(frames.len());
    frames.into_iter().for_each(|frame| batch.push(frame).expect("room"));
    gro.join(&mut batch, 0, |frame, _| parse(frame.data.bytes(), frame.len()));
    gro.finish(&mut batch);
    core::iter::from_fn(|| batch.pop()).collect()
}

fn timestamps(value: u32, echo: u32) -> Vec<u8> {
    let mut options = TIMESTAMPS.to_vec();
    options.extend_from_slice(&value.to_be_bytes());
    options.extend_from_slice(&echo.to_be_bytes());
    options
}

/// One segment of a test: its payload as text, and what differs from the segment before.
struct Step(&'static str, fn(&mut Plan));

fn same(_: &mut Plan) {}

/// Sends the steps, each with the sequence number that follows the last, and expects these payloads, a dot where two
/// segments were joined.
fn check(name: &str, base: &Plan, steps: &[Step], expected: &[&str]) {
    let pool = Pool::new(64, 2048);
    let mut gro = Gro::new(CONFIG);
    let mut plan = base.clone();
    let mut frames = Vec::new();
    for Step(payload, change) in steps {
        change(&mut plan);
        frames.push(frame(&pool, &plan.frame(payload.as_bytes())));
        plan.sequence = plan.sequence.wrapping_add(payload.len() as u32);
        plan.ident = plan.ident.wrapping_add(1);
    }
    let joined = steps.len() - expected.len();
    let frames = coalesce(&mut gro, frames);
    let got: Vec<String> = frames
        .iter()
        .map(|frame| {
            let layers = parse(frame.data.bytes(), frame.len()).expect("headers that fit the frame");
            if layers.version == Version::V4 {
                let header = &frame.data.bytes()[layers.ip..layers.layer4];
                assert!(checksum::sum(header).is_valid(), "{name}: IPv4 header checksum");
            }
            let segment = Segment::of(frame.data.bytes(), &layers, true).expect("a segment");
            let mut text = String::from_utf8_lossy(&frame.data.bytes()[segment.payload..]).into_owned();
            for piece in &frame.more {
                text.push('.');
                text.push_str(core::str::from_utf8(piece.bytes()).unwrap());
            }
            assert_eq!(layers.end - segment.payload, text.replace('.', "").len(), "{name}: IP length");
            text
        })
        .collect();
    assert_eq!(got, expected, "{name}");
    assert_eq!(gro.coalesced as usize, joined, "{name}");
    drop(frames);
    assert_eq!((pool.free(), gro.shelf.free()), (64, CONFIG.frames), "{name}: everything is returned");
}

#[test]
fn segments_join_by_the_rules() {
    let v4 = Plan::default();
    let v6 = Plan { v6: true, ..Plan::default() };
    let stamped = Plan { options: timestamps(100, 50), ..Plan::default() };
    let tagged = Plan { tags: 2, ..Plan::default() };
    for base in [&v4, &v6, &stamped, &tagged] {
        let steps = [Step("abc", same), Step("def", same), Step("ghi", same)];
        check("in order", base, &steps, &["abc.def.ghi"]);
        let steps = [Step("abc", same), Step("de", same), Step("fgh", same), Step("ijk", same)];
        check("a short one is the last", base, &steps, &["abc.de", "fgh.ijk"]);
        let steps = [Step("ab", same), Step("cde", same), Step("fgh", same)];
        check("a longer one starts anew", base, &steps, &["ab", "cde.fgh"]);
        let steps = [Step("abc", same), Step("def", |p| p.flags = 0x18), Step("ghi", |p| p.flags = 0x10)];
        check("PSH joins and closes", base, &steps, &["abc.def", "ghi"]);
        let steps = [Step("abc", |p| p.flags = 0x18), Step("def", |p| p.flags = 0x10), Step("ghi", same)];
        check("PSH in the first opens nothing", base, &steps, &["abc", "def.ghi"]);
        let steps = [Step("abc", same), Step("", same), Step("def", same), Step("ghi", same)];
        check("a pure ACK stays and keeps its place", base, &steps, &["abc", "", "def.ghi"]);
        let steps = [Step("abc", same), Step("def", |p| p.sequence += 3), Step("ghi", same)];
        check("a gap", base, &steps, &["abc", "def.ghi"]);
        let steps = [Step("abc", same), Step("abc", |p| p.sequence -= 3), Step("def", same)];
        check("a retransmission", base, &steps, &["abc", "abc.def"]);
        let steps = [Step("abc", same), Step("def", |p| p.acknowledgement += 9), Step("ghi", same)];
        check("ACK going on", base, &steps, &["abc.def.ghi"]);
        let steps = [Step("abc", same), Step("def", |p| p.acknowledgement -= 1), Step("ghi", same)];
        check("ACK going back", base, &steps, &["abc", "def.ghi"]);
        let steps = [Step("abc", same), Step("def", |p| p.traffic_class = 3), Step("ghi", same)];
        check("CE", base, &steps, &["abc", "def.ghi"]);
        let steps = [Step("abc", same), Step("def", |p| p.ttl = 63), Step("ghi", same)];
        check("TTL", base, &steps, &["abc", "def.ghi"]);
        let steps = [Step("abc", |p| p.flags = 0x50), Step("def", same), Step("ghi", |p| p.flags = 0x10)];
        check("ECE", base, &steps, &["abc.def", "ghi"]);
        let steps = [
            Step("abc", same),
            Step("xyz", |p| p.tags = (p.tags + 1) % 2),
            Step("def", |p| p.tags = (p.tags + 1) % 2),
        ];
        check("another VLAN is another flow", base, &steps, &["abc", "xyz", "def"]);
    }
}

#[test]
fn special_flags_close_the_flow_and_pass_alone() {
    for flags in [0x11u8, 0x12, 0x14, 0x30, 0x90, 0x00] {
        let pool = Pool::new(4, 128);
        let mut gro = Gro::new(CONFIG);
        let mut plan = Plan::default();
        let mut frames = Vec::new();
        for (payload, flags) in [(b"abc", 0x10), (b"def", flags), (b"ghi", 0x10)] {
            plan.flags = flags;
            frames.push(frame(&pool, &plan.frame(payload)));
            plan.sequence = plan.sequence.wrapping_add(3);
        }
        assert_eq!(coalesce(&mut gro, frames).len(), 3, "flags {flags:02x}");
    }
}

#[test]
fn timestamps_and_options_decide() {
    let stamped = Plan { options: timestamps(u32::MAX, 50), ..Plan::default() };
    let steps = [Step("abc", same), Step("def", |p| p.options = timestamps(0, 51)), Step("ghi", same)];
    check("going on over the wrap", &stamped, &steps, &["abc.def.ghi"]);
    let steps =
        [Step("abc", same), Step("def", |p| p.options = timestamps(u32::MAX - 1, 50)), Step("ghi", same)];
    check("value going back", &stamped, &steps, &["abc", "def.ghi"]);
    let steps = [Step("abc", same), Step("def", |p| p.options = timestamps(u32::MAX, 49)), Step("ghi", same)];
    check("echo going back", &stamped, &steps, &["abc", "def.ghi"]);
    let steps = [Step("abc", same), Step("def", |p| p.options.clear()), Step("ghi", same)];
    check("another layout", &stamped, &steps, &["abc", "def.ghi"]);
    let sack = [1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2].to_vec();
    let steps = [Step("abc", same), Step("def", same)];
    check("other options", &Plan { options: sack, ..Plan::default() }, &steps, &["abc", "def"]);
    let steps = [Step("abc", same), Step("def", same)];
    check("no DF", &Plan { fragment: 0, ..Plan::default() }, &steps, &["abc", "def"]);
    check("IPv4 options", &Plan { ip_extra: vec![1; 4], ..Plan::default() }, &steps, &["abc", "def"]);
    let ip_extra = vec![6, 0, 1, 4, 0, 0, 0, 0];
    check("IPv6 extensions", &Plan { v6: true, ip_extra, ..Plan::default() }, &steps, &["abc", "def"]);
}

/// A flag of accurate ECN lies beside the data offset (RFC 9768), and tells of this segment alone.
#[test]
fn bits_beside_the_data_offset_are_not_lost() {
    let pool = Pool::new(4, 128);
    let mut gro = Gro::new(CONFIG);
    let mut plan = Plan::default();
    let mut frames = Vec::new();
    for bits in [0, 1, 1] {
        let mut bytes = plan.frame(b"abc");
        bytes[plan.layer4() + 12] |= bits;
        frames.push(frame(&pool, &bytes));
        plan.sequence = plan.sequence.wrapping_add(3);
    }
    let frames = coalesce(&mut gro, frames);
    assert_eq!(frames.iter().map(|frame| frame.more.len()).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn the_headers_are_those_of_one_segment() {
    let pool = Pool::new(4, 128);
    let mut gro = Gro::new(CONFIG);
    let first = Plan { options: timestamps(7, 8), ..Plan::default() };
    let last = Plan {
        sequence: first.sequence.wrapping_add(3),
        acknowledgement: first.acknowledgement + 100,
        window: 77,
        flags: 0x18,
        options: timestamps(9, 10),
        ident: 99,
        ..first.clone()
    };
    // Padding of both must go.
    let mut frames = Vec::new();
    for (plan, payload) in [(&first, b"abc"), (&last, b"def")] {
        let mut bytes = plan.frame(payload);
        bytes.extend_from_slice(&[0xee; 5]);
        frames.push(frame(&pool, &bytes));
    }
    frames[0].meta.raw_sum = Some(1);
    let frames = coalesce(&mut gro, frames);
    assert_eq!(frames.len(), 1);
    let meta = RxMeta { checksum: ChecksumStatus::Good, segment_size: 3, ..RxMeta::default() };
    assert_eq!(frames[0].meta, meta);
    let expected = Plan { sequence: first.sequence, ident: first.ident, ..last }.frame(b"abcdef");
    let mut got = flat(&frames[0]);
    // The one field that is not made again.
    let field = first.layer4() + 16;
    got[field..field + 2].copy_from_slice(&expected[field..field + 2]);
    assert_eq!(got, expected);
}

#[test]
fn frames_that_may_not_be_touched_pass_alone() {
    type Change = fn(&mut Frame) -> Option<Slice>;
    let changes: [(&str, Change); 4] = [
        ("shared", |frame| Some(frame.data.clone())),
        ("not verified", |frame| {
            frame.meta.checksum = ChecksumStatus::Unchecked;
            None
        }),
        ("bad", |frame| {
            frame.meta.checksum = ChecksumStatus::Bad;
            None
        }),
        ("coalesced by the device", |frame| {
            frame.meta.segment_size = 3;
            None
        }),
    ];
    for (name, change) in changes {
        for which in 0..2 {
            let pool = Pool::new(4, 128);
            let mut gro = Gro::new(CONFIG);
            let mut plan = Plan::default();
            let mut frames = vec![frame(&pool, &plan.frame(b"abc"))];
            plan.sequence = plan.sequence.wrapping_add(3);
            frames.push(frame(&pool, &plan.frame(b"def")));
            let _other = change(&mut frames[which]);
            assert_eq!(coalesce(&mut gro, frames).len(), 2, "{name}, frame {which}");
        }
    }
}

#[test]
fn all_bounds_hold() {
    let run = |config: GroConfig, plans: &[(u16, u32)], len: usize| {
        let pool = Pool::new(plans.len(), 2048);
        let mut gro = Gro::new(config);
        let frames = plans
            .iter()
            .map(|(source_port, sequence)| {
                let plan = Plan { source_port: *source_port, sequence: *sequence, ..Plan::default() };
                frame(&pool, &plan.frame(&vec![7; len]))
            })
            .collect();
        coalesce(&mut gro, frames).iter().map(|frame| frame.more.len()).collect::<Vec<_>>()
    };
    let two = [(1, 0), (2, 0), (1, 10), (2, 10)];
    assert_eq!(run(CONFIG, &two, 10), [1, 1]);
    assert_eq!(run(GroConfig { flows: 1, ..CONFIG }, &two, 10), [0, 0, 0, 0]);
    assert_eq!(run(GroConfig { flows: 0, ..CONFIG }, &two, 10), [0, 0, 0, 0]);
    assert_eq!(run(GroConfig { frames: 1, ..CONFIG }, &two, 10), [1, 0, 0]);
    assert_eq!(run(GroConfig { segments: 0, ..CONFIG }, &two, 10), [0, 0, 0, 0]);
    let many: Vec<_> = (0..20).map(|i| (1, i * 10)).collect();
    assert_eq!(run(CONFIG, &many, 10), [8, 8, 1]);
    let large: Vec<_> = (0..50).map(|i| (1, i * 1460)).collect();
    // 44 segments of 1460 bytes are 64,240; the 45th would make 65,740 with headers.
    assert_eq!(run(GroConfig { segments: 64, ..CONFIG }, &large, 1460), [43, 5]);
}

#[test]
fn other_protocols_pass_untouched() {
    let pool = Pool::new(4, 128);
    let mut gro = Gro::new(CONFIG);
    let udp = Plan { kind: Kind::Udp, ..Plan::default() }.frame(b"abc");
    let frames = vec![frame(&pool, &udp), frame(&pool, &udp), frame(&pool, &[1; 60])];
    let frames = coalesce(&mut gro, frames);
    assert_eq!(frames.len(), 3);
    assert_eq!((flat(&frames[0]), flat(&frames[2])), (udp, vec![1; 60]));
}

proptest! {
    /// Whatever is joined, each flow's bytes and their order stay, and every frame still parses.
    #[test]
    fn no_byte_is_lost_added_or_moved(
        steps in proptest::collection::vec((0u16..3, 0usize..5, any::<u8>(), 0u8..8), 1..40),
        flows in 0usize..4,
        frames in 0usize..4,
        segments in 0usize..5,
    ) {
        let pool = Pool::new(64, 256);
        let mut gro = Gro::new(GroConfig { flows, frames, segments });
        let mut sequence = [0u32; 3];
        let mut sent = [const { Vec::new() }; 3];
        let mut input = Vec::new();
        for (flow, len, byte, odd) in steps {
            let at = usize::from(flow);
            if odd == 0 {
                sequence[at] = sequence[at].wrapping_add(1);
            }
            let plan = Plan {
                v6: flow == 2,
                source_port: flow,
                sequence: sequence[at],
                flags: if odd == 1 { 0x18 } else { 0x10 },
                traffic_class: if odd == 2 { 3 } else { 0 },
                ..Plan::default()
            };
            let payload = vec![byte; len];
            sent[at].extend(payload.iter().enumerate().map(|(i, byte)| (sequence[at].wrapping_add(i as u32), *byte)));
            sequence[at] = sequence[at].wrapping_add(len as u32);
            input.push(frame(&pool, &plan.frame(&payload)));
        }
        let mut got = [const { Vec::new() }; 3];
        for frame in coalesce(&mut gro, input) {
            let layers = parse(frame.data.bytes(), frame.len()).expect("layers");
            let segment = Segment::of(frame.data.bytes(), &layers, true).expect("a segment");
            prop_assert_eq!(layers.end, frame.len());
            let bytes = flat(&frame);
            let at = usize::from(bytes[layers.layer4 + 1]);
            got[at].extend(
                bytes[segment.payload..].iter().enumerate()
                    .map(|(i, byte)| (segment.sequence.0.wrapping_add(i as u32), *byte)),
            );
        }
        prop_assert_eq!(got, sent);
        prop_assert_eq!((pool.free(), gro.shelf.free()), (64, frames));
    }
}
