//! When flows are closed, and how the machine relates to the software fallback.

use super::*;
use crate::frame::{Frame, RxBatch};
use crate::gro::{Gro, GroConfig};
use crate::meta::{ChecksumStatus, RxMeta};
use crate::pool::Pool;
use crate::selftest::flat;
use crate::selftest::frames::Plan;
use alloc::vec;
use proptest::prelude::*;

const CONFIG: CoalesceConfig =
    CoalesceConfig { flows: 2, max_packet: 65_535, block_bytes: 128, max_held: 1_000, timeout: 100 };

fn arrived(bytes: Vec<u8>) -> Arrived<()> {
    Arrived { bytes, may_join: true, arrival: 0, meta: () }
}

/// A segment of three bytes, the `index`-th of the flow from `port`.
fn segment(port: u16, index: u32) -> Arrived<()> {
    let plan = Plan { source_port: port, sequence: index * 3, ..Plan::default() };
    arrived(plan.frame(&[index as u8; 3]))
}

/// Source port and segments of all that leaves.
fn leaves(table: &mut Coalesce<()>) -> Vec<(u16, u8)> {
    core::iter::from_fn(|| table.pop())
        .map(|frame| {
            let layers = parse(&frame.bytes, frame.bytes.len()).expect("headers that fit");
            let port = u16::from_be_bytes([frame.bytes[layers.layer4], frame.bytes[layers.layer4 + 1]]);
            (port, frame.coalesced.map_or(1, |of| of.segments))
        })
        .collect()
}

#[test]
fn time_runs_from_the_first_segment() {
    let mut table = Coalesce::new(CONFIG);
    assert_eq!(table.push(segment(1, 0), 10), Decision::Opened { evicted: false });
    assert_eq!(table.push(segment(1, 1), 100), Decision::Joined);
    assert_eq!(table.push(segment(2, 0), 100), Decision::Opened { evicted: false });
    table.expire(109);
    assert_eq!(leaves(&mut table), []);
    table.expire(110);
    assert_eq!(leaves(&mut table), [(1, 2)]);
    assert_eq!(table.deadline(), Some(200));
    table.expire(200);
    assert_eq!((leaves(&mut table), table.open()), (vec![(2, 1)], 0));
}

#[test]
fn the_oldest_makes_room() {
    let mut table = Coalesce::new(CONFIG);
    for port in [1, 2] {
        assert_eq!(table.push(segment(port, 0), 0), Decision::Opened { evicted: false });
    }
    assert_eq!(table.push(segment(1, 1), 0), Decision::Joined);
    assert_eq!(table.push(segment(3, 0), 0), Decision::Opened { evicted: true });
    assert_eq!(leaves(&mut table), [(1, 2)]);
    assert_eq!(table.push(segment(2, 1), 0), Decision::Joined);
    assert_eq!(table.push(segment(1, 2), 0), Decision::Opened { evicted: true });
    assert_eq!(leaves(&mut table), [(2, 2)]);
}

#[test]
fn memory_is_bounded() {
    let mut table = Coalesce::new(CoalesceConfig { max_held: 3, ..CONFIG });
    for (port, index, crowded) in [(1, 0, false), (1, 1, false), (2, 0, false), (2, 1, true)] {
        table.push(segment(port, index), 0);
        assert_eq!(table.is_crowded(), crowded);
    }
    assert!(table.relieve());
    assert!(!table.relieve());
    assert_eq!((leaves(&mut table), table.open()), (vec![(1, 2)], 1));
}

#[test]
fn a_frame_that_belongs_to_an_open_flow_does_not_pass_it() {
    let mut table = Coalesce::new(CONFIG);
    table.push(segment(1, 0), 0);
    table.push(segment(2, 0), 0);
    // A pure acknowledgement; a segment whose checksum nobody has verified.
    let ack = Plan { source_port: 1, sequence: 3, ..Plan::default() }.frame(&[]);
    assert_eq!(table.push(arrived(ack), 0), Decision::Passed);
    assert_eq!(leaves(&mut table), [(1, 1), (1, 1)]);
    let unverified = Arrived { may_join: false, ..segment(2, 1) };
    assert_eq!(table.push(unverified, 0), Decision::Passed);
    assert_eq!(leaves(&mut table), [(2, 1), (2, 1)]);
}

#[test]
fn what_hides_tcp_passes_nobody() {
    let options = Plan { ip_extra: vec![1; 4], ..Plan::default() };
    let extension = Plan { v6: true, ip_extra: vec![6, 0, 1, 4, 0, 0, 0, 0], ..Plan::default() };
    for plan in [options, extension] {
        let mut table = Coalesce::new(CONFIG);
        table.push(segment(1, 0), 0);
        table.push(segment(2, 0), 0);
        assert_eq!(table.push(arrived(plan.frame(b"abc")), 0), Decision::Passed);
        assert_eq!((table.leaving.len(), table.open()), (3, 0));
    }
    // No other protocol does.
    let mut table = Coalesce::new(CONFIG);
    table.push(segment(1, 0), 0);
    let udp = Plan { kind: crate::selftest::frames::Kind::Udp, ip_extra: vec![1; 4], ..Plan::default() };
    table.push(arrived(udp.frame(b"abc")), 0);
    assert_eq!((table.leaving.len(), table.open()), (1, 1));
}

#[test]
fn the_count_does_not_run_over() {
    let mut table = Coalesce::new(CONFIG);
    for index in 0..256 {
        table.push(segment(1, index), 0);
    }
    assert_eq!(leaves(&mut table), [(1, 255)]);
    assert_eq!(table.open(), 1);
}

/// What one step of the property does: flow, payload bytes, a byte, and what is odd about it.
type Step = (u16, usize, u8, u8);

fn frames(steps: &[Step]) -> Vec<Vec<u8>> {
    let mut sequence = [0u32; 3];
    let mut frames = Vec::new();
    for (flow, len, byte, odd) in steps {
        let at = usize::from(*flow);
        if *odd == 0 {
            sequence[at] = sequence[at].wrapping_add(1);
        }
        let plan = Plan {
            v6: at == 2,
            tags: u8::from(at == 1),
            source_port: *flow,
            sequence: sequence[at],
            flags: if *odd == 1 { 0x18 } else { 0x10 },
            traffic_class: if *odd == 2 { 3 } else { 0 },
            ..Plan::default()
        };
        let mut frame = plan.frame(&vec![*byte; *len]);
        if *odd == 3 {
            frame.extend_from_slice(&[0xee; 7]);
        }
        frames.push(frame);
        sequence[at] = sequence[at].wrapping_add(*len as u32);
    }
    frames
}

/// Each flow's bytes with their sequence numbers, in the order in which they come.
fn streams(frames: &[Vec<u8>]) -> [Vec<(u32, u8)>; 3] {
    let mut streams = [const { Vec::new() }; 3];
    for frame in frames {
        let layers = parse(frame, frame.len()).expect("headers that fit");
        let segment = Segment::of(frame, &layers, true).expect("a segment");
        let payload = frame[segment.payload..layers.end].iter().enumerate();
        let at = usize::from(frame[layers.layer4 + 1]);
        streams[at].extend(payload.map(|(i, byte)| (segment.sequence.0.wrapping_add(i as u32), *byte)));
    }
    streams
}

fn software(frames: &[Vec<u8>], flows: usize) -> Vec<Vec<u8>> {
    let pool = Pool::new(frames.len(), 256);
    let mut gro = Gro::new(GroConfig { flows, frames: frames.len(), segments: 64 });
    let mut batch = RxBatch::with_limit(frames.len());
    for bytes in frames {
        let mut buffer = pool.take().expect("a free buffer");
        buffer.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        let meta = RxMeta { checksum: ChecksumStatus::Good, ..RxMeta::default() };
        batch.push(Frame::new(buffer.freeze(0..bytes.len()), meta)).expect("room");
    }
    gro.join(&mut batch, 0, |frame, _| parse(frame.data.bytes(), frame.len()));
    gro.finish(&mut batch);
    core::iter::from_fn(|| batch.pop()).map(|frame| flat(&frame)).collect()
}

proptest! {
    /// Without the timer and the bound of memory the frames are those of the software, whatever their order; with them each
    /// flow's bytes still come in their order, none lost and none added.
    #[test]
    fn it_makes_what_the_software_makes(
        steps in proptest::collection::vec((0u16..3, 0usize..5, any::<u8>(), 0u8..9), 1..40),
        flows in 1usize..4,
        timeout in 1u64..30,
        max_held in 1usize..8,
    ) {
        let input = frames(&steps);
        let run = |config: CoalesceConfig| {
            let mut table = Coalesce::new(config);
            for (now, bytes) in (0u64..).zip(&input) {
                table.expire(now);
                table.push(arrived(bytes.clone()), now);
                while table.relieve() {}
            }
            while table.close_oldest() {}
            core::iter::from_fn(|| table.pop()).map(|frame| frame.bytes).collect::<Vec<_>>()
        };
        let mut hardware = run(CoalesceConfig { flows, timeout: u64::MAX / 2, max_held: usize::MAX, ..CONFIG });
        prop_assert_eq!(streams(&hardware), streams(&input));
        let mut software = software(&input, flows);
        hardware.sort();
        software.sort();
        prop_assert_eq!(hardware, software);
        let hardware = run(CoalesceConfig { flows, timeout, max_held, ..CONFIG });
        prop_assert_eq!(streams(&hardware), streams(&input));
    }
}
