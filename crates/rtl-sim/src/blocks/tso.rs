//! Segmentation against `nic::offload::segment`, and on to finished frames against `nic::offload::checksum_tx`.

use super::transmit::{EVENTS, Job, PAUSES, Packet, Run};
use super::{Coverage, csum_tx};
use crate::user::{SegmentMode, TxUser};
use crate::{Dut, Pause, Rng};
use linerate_nic::offload::checksum_tx::{Outcome, Partial};
use linerate_nic::offload::segment::{Kind, Request, segment};

const TSO_EVENTS: [&str; 4] = ["event_super", "event_segment", "event_malformed", "event_length"];
const PATH_EVENTS: [&str; EVENTS] = [
    "event_super",
    "event_segment",
    "event_malformed",
    "event_length",
    "event_inserted",
    "event_refused",
    "event_overlong",
];

/// Clocks without a beat in front of a super-frame at most; more if its headers are longer in coming.
const SETUP: u64 = 21;

/// Random frames and super-frames through the block, counted as they come out; then large ones back to back.
///
/// # Errors
/// The seed and the first difference.
pub fn compare(dut: &mut Dut, seed: u64, frames: u64) -> Result<Coverage, String> {
    run(dut, seed, frames, false)
}

/// The same with the checksums behind it.
///
/// # Errors
/// The seed and the first difference.
pub fn compare_path(dut: &mut Dut, seed: u64, frames: u64) -> Result<Coverage, String> {
    run(dut, seed, frames, true)
}

fn run(dut: &mut Dut, seed: u64, frames: u64, path: bool) -> Result<Coverage, String> {
    let mut coverage = Coverage::default();
    for (part, pauses) in PAUSES.into_iter().enumerate() {
        let mut rng = Rng::new(seed.wrapping_mul(16).wrapping_add(part as u64));
        let (mut made, enough) = (0, frames.div_ceil(PAUSES.len() as u64));
        let mut run = Run { dut, events: events(path), pauses, seed: rng.bits() };
        let next = || {
            let job = (made < enough).then(|| random(&mut rng, path))?;
            made += job.expected.len() as u64;
            Some(job)
        };
        run.jobs(next, &mut coverage).map_err(|fault| format!("seed {seed}, {pauses:?}: {fault}"))?;
    }
    throughput(dut, seed, path).map_err(|fault| format!("seed {seed}, back to back: {fault}"))?;
    Ok(coverage)
}

fn events(path: bool) -> &'static [&'static str] {
    if path { &PATH_EVENTS } else { &TSO_EVENTS }
}

/// What must become of a frame.
fn job(frame: Vec<u8>, user: TxUser, kind: &'static str, path: bool) -> Job {
    let plain = TxUser { seg: SegmentMode::None, seg_size: 0, hdr_len: 0, ..user };
    let mut events = [0; EVENTS];
    let mut kind = kind;
    let frames = match user.seg {
        SegmentMode::None => vec![(frame.clone(), plain)],
        mode => {
            let checksum = Partial { init: user.csum_init, begin: user.csum_begin, insert: user.csum_insert };
            let request = Request {
                kind: if mode == SegmentMode::Tcp { Kind::Tcp } else { Kind::Udp },
                size: user.seg_size,
                header_len: user.hdr_len,
                ip: user.l3_start,
                ipv6: user.ipv6,
                checksum: (user.csum == 1).then_some(checksum),
            };
            match segment(&frame, &request) {
                Err(_) => {
                    events[2] = 1;
                    kind = "malformed";
                    Vec::new()
                }
                Ok(all) => {
                    events[..2].copy_from_slice(&[1, all.segments.len() as u64]);
                    events[3] = u64::from(all.is_length_wrong);
                    let frames = all.segments.into_iter();
                    frames
                        .map(|segment| {
                            let user = TxUser {
                                csum_init: segment.checksum.init,
                                ip_csum: segment.ip_checksum,
                                ..plain
                            };
                            (segment.data, user)
                        })
                        .collect()
                }
            }
        }
    };
    let finish = |(data, user): (Vec<u8>, TxUser)| {
        if !path {
            return (data, user.to_words());
        }
        let (data, outcome) = csum_tx::expect(&data, user);
        match outcome {
            Outcome::Inserted => events[4] += 1,
            Outcome::Refused => events[5] += 1,
            Outcome::Overlong => events[6] += 1,
            Outcome::Bypassed => {}
        }
        (data, [u32::from(user.channel), 0, 0, 0])
    };
    let expected = frames.into_iter().map(finish).collect();
    Job { frame, user: user.to_words(), expected, events, kind }
}

fn random(rng: &mut Rng, path: bool) -> Job {
    if rng.chance(30) {
        let len = if rng.chance(70) { rng.between(0, 90) } else { rng.between(0, 1_400) };
        let packet = Packet::random(rng, len);
        let mut user = packet.user(rng);
        user.seg = SegmentMode::None;
        user.hdr_len = rng.bits() as u8;
        if rng.chance(50) {
            // Whatever it says beside that: it is handed on.
            (user.csum_init, user.csum_begin) = (rng.bits() as u16, rng.bits() as u16);
            (user.csum_insert, user.l3_start) = (rng.bits() as u16, rng.bits() as u8);
            (user.csum, user.ip_csum, user.ipv6) = (rng.below(4) as u8, rng.chance(50), rng.chance(50));
        }
        return job(packet.frame, user, "not segmented", path);
    }
    let size = match rng.below(10) {
        0 => rng.between(1, 20),
        1 => rng.between(1, 200),
        2 => rng.pick(&[536, 1_220, 8_948]),
        3 => rng.between(200, 2_000),
        _ => rng.pick(&[1_460, 1_448, 1_440, 1_428, 1_472, 1_452]),
    };
    let len = match rng.below(20) {
        0 if rng.chance(50) => 70_000,
        1 => size * rng.between(1, 6),
        2 => rng.between(1, size),
        3..5 => rng.between(1, 40_000),
        _ => rng.between(1, 6_000),
    };
    let mut packet = Packet::random(rng, len.clamp(1, size * 60));
    let mut user = packet.user(rng);
    user.seg = if packet.udp { SegmentMode::Udp } else { SegmentMode::Tcp };
    user.seg_size = size as u16;
    user.ip_csum = rng.chance(50);
    if rng.chance(40) {
        user.csum_init = packet.take_seed();
    } else if rng.chance(5) {
        user.csum_init = rng.pick(&[0xffff, packet.frame.len() as u16, rng.clone().bits() as u16]);
    }
    if rng.chance(8) && packet.frame.len() >= packet.payload + 2 {
        packet.bring_to_brink(rng);
    }
    if rng.chance(20) {
        return unsound(rng, packet, user, path);
    }
    let kind = match (packet.udp, packet.ipv6) {
        (false, false) => "TCP over IPv4",
        (false, true) => "TCP over IPv6",
        (true, false) => "UDP over IPv4",
        (true, true) => "UDP over IPv6",
    };
    job(packet.frame, user, kind, path)
}

/// One thing that is perhaps not right.
fn unsound(rng: &mut Rng, mut packet: Packet, mut user: TxUser, path: bool) -> Job {
    let len = packet.frame.len();
    match rng.below(17) {
        0 => user.seg_size = 0,
        1 => user.hdr_len ^= 1 << rng.below(8),
        2 => user.hdr_len = user.hdr_len.wrapping_add(rng.pick(&[1, 4, 8, 255, 252, 128])),
        3 => user.csum = rng.pick(&[0, 2, 3]),
        4 => user.l3_start ^= 1 << rng.below(8),
        5 => user.csum_begin ^= 1 << rng.below(16),
        6 => user.csum_insert ^= 1 << rng.below(16),
        7 => user.ipv6 ^= true,
        8 => user.seg = if packet.udp { SegmentMode::Tcp } else { SegmentMode::Udp },
        // A header with a wrong bit; in its first byte the version and length are.
        9 | 10 => {
            let first = rng.pick(&[packet.ip, packet.layer4]);
            let any = rng.between(packet.ip, packet.payload - 1);
            let at = rng.pick(&[first, first + if packet.udp { 0 } else { 12 }, any]);
            let at = at.min(packet.payload - 1);
            packet.frame[at] ^= 1 << rng.below(8);
        }
        // Ends in the headers, or nearly so.
        11 => packet.frame.truncate(rng.between(1, packet.payload + 9).min(len)),
        // Fewer bytes than the header says, or more.
        12 | 13 => {
            let segments = rng.between(0, 4) * usize::from(user.seg_size);
            packet.frame.truncate((packet.payload + segments + rng.between(1, 20)).min(len));
        }
        14 => packet.frame.truncate(rng.between(packet.payload + 1, len)),
        15 => {
            // The same request in the wrong places: both offsets moved.
            user.l3_start = user.l3_start.wrapping_add(4);
            user.csum_begin = user.csum_begin.wrapping_add(4);
            user.csum_insert = user.csum_insert.wrapping_add(4);
        }
        _ => packet.frame.resize(len + rng.between(1, 40), 0xee),
    }
    let mut job = job(packet.frame, user, "odd", path);
    if job.events[2] > 0 && rng.chance(10) {
        // There is no such mode.
        job.user[2] |= 3 << 20;
    }
    job
}

/// Two super-frames of the largest size, then frames that are not segmented: no clock without a beat but for the setup.
fn throughput(dut: &mut Dut, seed: u64, path: bool) -> Result<(), String> {
    let mut rng = Rng::new(seed);
    let width = dut.bits(dut.port("s_axis_tdata")?) as usize / 8;
    let mut left = 2;
    let mut headers = 0;
    let mut run = Run { dut, events: events(path), pauses: (Pause::Never, Pause::Never), seed };
    let next = || {
        left -= 1;
        let mut packet = Packet::random(&mut rng, 60_000);
        while packet.udp || packet.payload > 128 {
            packet = Packet::random(&mut rng, 60_000);
        }
        let user = TxUser { seg_size: 1_448, ..packet.user(&mut rng) };
        headers = packet.payload.div_ceil(width) as u64;
        (left >= 0).then(|| job(packet.frame, user, "back to back", path))
    };
    let timing = run.jobs(next, &mut Coverage::default())?;
    // Between the two; behind the checksums some of it is hidden.
    if timing.span > timing.beats + SETUP.max(headers + 14) + if path { 2 } else { 0 } {
        return Err(format!("bubbles: {timing:?}"));
    }
    let mut left = 200;
    let next = || {
        left -= 1;
        let user = TxUser { csum: 0, ..TxUser::default() };
        (left >= 0).then(|| job(vec![left as u8; 60], user, "back to back", path))
    };
    let timing = run.jobs(next, &mut Coverage::default())?;
    if timing.span != timing.beats || timing.stalls > 0 {
        return Err(format!("bubbles between small frames: {timing:?}"));
    }
    Ok(())
}
