//! The sum of each frame from its 15th byte on against the software's, and with it the sum core in both of its forms.

use super::Coverage;
use crate::frames::append_to_brink;
use crate::{Dut, Rng};
use linerate_wire::checksum::Sum;

/// Clocks from the last beat to the sum.
const LATENCY: usize = 2;

/// Random frames of 1 to 300 bytes, some long ones among them, back to back and with idle clocks.
///
/// # Errors
/// The seed and the first difference.
pub fn compare(dut: &mut Dut, seed: u64, frames: u64) -> Result<Coverage, String> {
    let mut coverage = Coverage::default();
    let mut rng = Rng::new(seed);
    for idle in [0, 30] {
        dut.set(dut.port("in_valid")?, 0);
        dut.reset()?;
        // What is due in this clock and the next ones.
        let mut due = [None; LATENCY + 1];
        for frame in 0..frames.div_ceil(2) {
            let len = if rng.chance(2) { rng.between(8_000, 66_000) } else { rng.between(1, 300) };
            let mut bytes = vec![0; len];
            match rng.below(8) {
                0 => {}
                1 => bytes.fill(0xff),
                // Near the top, where carries run far.
                2 => bytes.iter_mut().for_each(|byte| *byte = 0xff ^ u8::from(rng.chance(2))),
                _ => rng.fill(&mut bytes),
            }
            if rng.chance(40) {
                append_to_brink(&mut rng, &mut bytes);
            }
            let len = bytes.len();
            coverage.count(if len % 2 == 1 { "odd" } else { "even" });
            send(dut, &mut rng, &bytes, idle, &mut due).map_err(|fault| {
                format!("seed {seed}, {idle} % idle, frame {frame} of {len} bytes: {fault}")
            })?;
            coverage.frames += 1;
        }
        for _ in 0..LATENCY {
            clock(dut, &mut due)?;
        }
    }
    Ok(coverage)
}

fn send(
    dut: &mut Dut,
    rng: &mut Rng,
    bytes: &[u8],
    idle: u64,
    due: &mut [Option<u16>; LATENCY + 1],
) -> Result<(), String> {
    let (data, keep, valid, last) =
        (dut.port("in_data")?, dut.port("in_keep")?, dut.port("in_valid")?, dut.port("in_last")?);
    let width = dut.bits(data) as usize / 8;
    let mut sum = Sum::ZERO;
    sum.add(bytes.get(14..).unwrap_or_default());
    let mut beats = bytes.chunks(width).peekable();
    while let Some(beat) = beats.next() {
        let mut lanes = [0; 64];
        while rng.chance(idle) {
            rng.fill(&mut lanes);
            put(dut, &lanes);
            dut.set(keep, rng.bits());
            dut.set(last, u64::from(rng.chance(50)));
            dut.set(valid, 0);
            clock(dut, due)?;
        }
        rng.fill(&mut lanes);
        lanes[..beat.len()].copy_from_slice(beat);
        put(dut, &lanes);
        dut.set(keep, u64::MAX >> (64 - beat.len()));
        dut.set(last, u64::from(beats.peek().is_none()));
        dut.set(valid, 1);
        if beats.peek().is_none() {
            due[LATENCY] = Some(sum.folded());
        }
        clock(dut, due)?;
        dut.set(valid, 0);
    }
    Ok(())
}

fn put(dut: &mut Dut, lanes: &[u8; 64]) {
    let words: [u32; 16] = core::array::from_fn(|at| {
        u32::from_le_bytes([lanes[4 * at], lanes[4 * at + 1], lanes[4 * at + 2], lanes[4 * at + 3]])
    });
    if let Ok(port) = dut.port("in_data") {
        dut.set_wide(port, &words);
    }
}

/// One clock: what is due now must be there, and nothing else.
fn clock(dut: &mut Dut, due: &mut [Option<u16>; LATENCY + 1]) -> Result<(), String> {
    let (sum, valid) = (dut.port("sum")?, dut.port("sum_valid")?);
    dut.settle();
    let seen = (dut.get(valid) != 0).then(|| dut.get(sum) as u16);
    if seen != due[0] {
        return Err(format!("sum {seen:x?}, expected {:x?}", due[0]));
    }
    due.rotate_left(1);
    due[LATENCY] = None;
    dut.edge();
    Ok(())
}
