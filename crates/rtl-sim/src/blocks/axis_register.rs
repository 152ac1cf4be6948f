//! The register slice against nothing at all: what goes in comes out.

use super::Coverage;
use crate::{Dut, Pause, Rng, Sink, Source, UserAt};

/// Clocks without any progress after which the block is said to hang.
const PATIENCE: u64 = 1_000;

/// Random frames through the block, the first half of them without a pause on either side: then a beat passes in each clock.
///
/// # Errors
/// The seed and the first difference.
pub fn compare(dut: &mut Dut, seed: u64, frames: u64) -> Result<Coverage, String> {
    let mut coverage = Coverage::default();
    for (part, pause) in [Pause::Never, Pause::Percent(40), Pause::Bursts(9)].into_iter().enumerate() {
        run(dut, seed.wrapping_add(part as u64), frames.div_ceil(3), pause, &mut coverage)
            .map_err(|fault| format!("seed {seed}, {pause:?}: {fault}"))?;
    }
    Ok(coverage)
}

fn run(dut: &mut Dut, seed: u64, frames: u64, pause: Pause, coverage: &mut Coverage) -> Result<(), String> {
    let mut rng = Rng::new(seed);
    let mut source = Source::new(dut, "s_axis", pause, UserAt::Every, rng.bits())?;
    let mut sink = Sink::new(dut, "m_axis", pause, rng.bits())?;
    dut.reset()?;
    let mut expected = std::collections::VecDeque::new();
    let (mut beats, mut last_progress) = (0, dut.cycles());
    let (began, width) = (dut.cycles(), dut.bits(dut.port("s_axis_tdata")?) as usize / 8);
    while sink.count() < frames {
        if source.waiting() < 2 && source.sent() + (source.waiting() as u64) < frames {
            let mut frame = vec![0; rng.between(1, 200)];
            rng.fill(&mut frame);
            let user =
                core::array::from_fn(|word| rng.bits() as u32 & if word == 3 { 0xf_ffff } else { u32::MAX });
            beats += frame.len().div_ceil(width) as u64;
            expected.push_back((frame.clone(), user));
            source.push(frame, user);
        }
        source.drive(dut);
        sink.drive(dut);
        dut.settle();
        source.observe(dut);
        sink.observe(dut);
        dut.edge();
        while let Some(received) = sink.pop()? {
            let (frame, user) = expected.pop_front().ok_or("a frame that was never sent")?;
            if received.data != frame || received.user != user || !received.user_constant {
                return Err(format!("frame {} came out changed", coverage.frames));
            }
            coverage.frames += 1;
            last_progress = dut.cycles();
        }
        if dut.cycles() - last_progress > PATIENCE {
            return Err(format!("nothing comes out after frame {}", coverage.frames));
        }
    }
    let took = dut.cycles() - began;
    if pause == Pause::Never && took > beats + 5 {
        return Err(format!("{beats} beats took {took} clocks"));
    }
    Ok(())
}
