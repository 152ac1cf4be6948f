//! Transmit checksums against `nic::offload::checksum_tx`.

use super::Coverage;
use super::transmit::{EVENTS, Job, PAUSES, Packet, Run};
use crate::user::{SegmentMode, TxUser};
use crate::{Dut, Pause, Rng};
use linerate_nic::offload::checksum_tx::{Layer4, Outcome, Partial, Request, insert};

/// FIFO_BYTES in `block.toml`.
pub const LIMIT: usize = 4_096;

const EVENT_NAMES: [&str; 3] = ["event_inserted", "event_refused", "event_overlong"];

/// Random frames through the block, then frames of one size back to back.
///
/// # Errors
/// The seed and the first difference.
pub fn compare(dut: &mut Dut, seed: u64, frames: u64) -> Result<Coverage, String> {
    let mut coverage = Coverage::default();
    for (part, pauses) in PAUSES.into_iter().enumerate() {
        let mut rng = Rng::new(seed.wrapping_mul(16).wrapping_add(part as u64));
        let mut left = frames.div_ceil(PAUSES.len() as u64);
        let mut run = Run { dut, events: &EVENT_NAMES, pauses, seed: rng.bits() };
        let next = || {
            left = left.checked_sub(1)?;
            Some(random(&mut rng))
        };
        run.jobs(next, &mut coverage).map_err(|fault| format!("seed {seed}, {pauses:?}: {fault}"))?;
    }
    for len in [60, 61, 64, 1_514] {
        throughput(dut, seed, len)
            .map_err(|fault| format!("seed {seed}, {len} bytes back to back: {fault}"))?;
    }
    Ok(coverage)
}

/// What the block makes of a frame.
pub fn expect(frame: &[u8], user: TxUser) -> (Vec<u8>, Outcome) {
    let mut data = frame.to_vec();
    let partial = Partial { init: user.csum_init, begin: user.csum_begin, insert: user.csum_insert };
    let layer4 = match user.csum {
        0 => Layer4::None,
        1 => Layer4::Partial(partial),
        _ => Layer4::Full,
    };
    let outcome = insert(&mut data, &Request { layer4, ip: user.ip_csum.then_some(user.l3_start) }, LIMIT);
    (data, outcome)
}

fn job(frame: Vec<u8>, user: TxUser, kind: &'static str) -> Job {
    let (data, outcome) = expect(&frame, user);
    let kind = match outcome {
        Outcome::Refused => "refused",
        Outcome::Overlong => "overlong",
        _ => kind,
    };
    let mut events = [0; EVENTS];
    match outcome {
        Outcome::Inserted => events[0] = 1,
        Outcome::Refused => events[1] = 1,
        Outcome::Overlong => events[2] = 1,
        Outcome::Bypassed => {}
    }
    Job {
        frame,
        user: user.to_words(),
        expected: vec![(data, [u32::from(user.channel), 0, 0, 0])],
        events,
        kind,
    }
}

fn random(rng: &mut Rng) -> Job {
    let len = match rng.below(100) {
        0..40 => rng.between(0, 60),
        40..85 => rng.between(0, 600),
        85..96 => rng.between(900, 1_460),
        // Around what fits.
        96..98 => LIMIT - 90 + rng.between(0, 60),
        98 => rng.between(4_097, 9_000),
        _ => 2_000,
    };
    let mut packet = Packet::random(rng, len);
    let mut user = packet.user(rng);
    user.seg = SegmentMode::None;
    match rng.below(100) {
        0..10 => {
            let cut = rng.between(1, packet.frame.len());
            packet.frame.truncate(cut);
            user = TxUser { csum: 0, ip_csum: false, ..user };
            user.csum_begin = rng.bits() as u16;
            user.csum_insert = rng.bits() as u16;
            job(packet.frame, user, "bypass")
        }
        10..40 => job(packet.frame, user, "sum in the field"),
        40..60 => {
            user.csum_init = packet.take_seed();
            job(packet.frame, user, "seeded")
        }
        60..66 => {
            user.csum_init = rng.bits() as u16;
            job(packet.frame, user, "seeded and in the field")
        }
        66..72 => {
            user.ip_csum = false;
            job(packet.frame, user, "layer 4 alone")
        }
        72..78 => {
            user.csum = 0;
            job(packet.frame, user, "IPv4 alone")
        }
        78..84 if packet.frame.len() >= packet.payload + 2 => {
            packet.make_zero();
            job(packet.frame, user, "a checksum of zero")
        }
        84..90 if packet.frame.len() >= packet.payload + 2 => {
            packet.bring_to_brink(rng);
            job(packet.frame, user, "carries")
        }
        90..92 if packet.frame.len() >= packet.payload + 2 => {
            // The field where it is not that of UDP, or is by chance.
            user.csum_insert = user.csum_begin + 2 * rng.below(24) as u16;
            packet.make_zero();
            job(packet.frame, user, "a checksum of zero elsewhere")
        }
        92 => {
            // Zeros, where the sum itself is zero.
            packet.frame[packet.layer4..].fill(0);
            job(packet.frame, user, "nothing to sum")
        }
        _ => unsound(rng, packet, user),
    }
}

/// One thing that is perhaps not right.
fn unsound(rng: &mut Rng, mut packet: Packet, mut user: TxUser) -> Job {
    let end = packet.frame.len() as u16;
    match rng.below(17) {
        0 => user.csum_begin ^= 1,
        1 => user.csum_insert ^= 1,
        2 => user.csum_insert = end.saturating_sub(rng.below(6) as u16),
        3 => user.csum_insert = user.csum_begin.wrapping_sub(rng.below(20) as u16),
        4 => user.csum_begin = rng.below(80) as u16 & !1,
        5 => user.csum_insert = user.csum_begin + rng.below(20) as u16 * 2,
        6 => user.csum = rng.pick(&[2, 3]),
        7 => user.l3_start = rng.below(100) as u8,
        8 => user.l3_start = (rng.below(100) as u8) & !1,
        9 => packet.frame[packet.ip] = 0x40 | rng.below(16) as u8,
        10 => {
            let cut = rng.between(1, packet.payload.min(packet.frame.len()));
            packet.frame.truncate(cut);
        }
        11 => {
            packet.frame.truncate(packet.layer4 + 1);
            user.csum = 0;
            let cut = packet.frame.len() - rng.between(0, 4);
            packet.frame.truncate(cut);
        }
        12 => {
            // Far beyond: the upper bits of an offset count.
            let far = 1 << rng.between(6, 15);
            *either(rng, &mut user) ^= far;
        }
        13..16 => {
            // A header anywhere, of any length, and layer 4 from where it ends, or nearly so.
            let (at, words) = (2 * rng.between(0, 50), rng.between(4, 15));
            if let Some(byte) = packet.frame.get_mut(at) {
                *byte = 0x40 | words as u8;
            }
            user.l3_start = at as u8;
            user.ip_csum = true;
            user.csum_begin = ((at + 4 * words) as u16).wrapping_sub(rng.pick(&[0, 2, 2, 4, 6, 0xfffe]));
            user.csum_insert = user.csum_begin.wrapping_add(2 * rng.below(12) as u16);
            let cut = if rng.chance(30) { at + 4 * words + rng.between(0, 9) } else { packet.frame.len() };
            packet.frame.truncate(cut.max(1));
        }
        _ => user.csum_begin = user.csum_begin.wrapping_sub(2 * rng.below(12) as u16),
    }
    job(packet.frame, user, "odd but sound")
}

fn either<'a>(rng: &mut Rng, user: &'a mut TxUser) -> &'a mut u16 {
    if rng.chance(50) { &mut user.csum_begin } else { &mut user.csum_insert }
}

/// Frames of one size: one enters while the one before leaves, in each clock a beat.
fn throughput(dut: &mut Dut, seed: u64, len: usize) -> Result<(), String> {
    let mut rng = Rng::new(seed);
    let mut left = 100;
    let beats = len.div_ceil(dut.bits(dut.port("s_axis_tdata")?) as usize / 8) as u64;
    let mut run = Run { dut, events: &EVENT_NAMES, pauses: (Pause::Never, Pause::Never), seed };
    let next = || {
        left -= 1;
        (left >= 0).then(|| {
            let mut frame = vec![0; len];
            rng.fill(&mut frame);
            frame[14] = 0x45;
            let user = TxUser {
                l3_start: 14,
                ip_csum: true,
                csum: 1,
                csum_begin: 34,
                csum_insert: 50,
                ..TxUser::default()
            };
            job(frame, user, "back to back")
        })
    };
    let timing = run.jobs(next, &mut Coverage::default())?;
    // It is not ready in the first clock behind a reset.
    if timing.span != timing.beats || timing.stalls > 1 {
        return Err(format!("bubbles: {timing:?}"));
    }
    if timing.latency != beats + 7 {
        return Err(format!("latency: {timing:?}"));
    }
    Ok(())
}
