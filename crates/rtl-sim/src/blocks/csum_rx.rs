//! Receive checksums: status codes and raw sums of random frames against the software's.

use super::Coverage;
use crate::frames::{Mix, append_to_brink, random};
use crate::{Dut, Pause, Port, Received, Rng, RxUser, Sink, Source, UserAt};
use linerate_nic::offload::checksum_rx::{Status, raw_sum, status};
use std::collections::VecDeque;

/// Clocks without any progress after which the block is said to hang.
const PATIENCE: u64 = 100_000;
/// Most clocks from a frame's last beat going in to it coming out, when nothing is in the way.
const LATENCY: u64 = 14;

/// Random frames through the block, with and without pauses on both sides.
///
/// # Errors
/// The seed and the first difference.
pub fn compare(dut: &mut Dut, seed: u64, frames: u64) -> Result<Coverage, String> {
    let mut coverage = Coverage::default();
    let parts = [
        (Pause::Never, Pause::Never, true),
        (Pause::Percent(40), Pause::Percent(30), true),
        (Pause::Never, Pause::Bursts(60), true),
        (Pause::Bursts(9), Pause::Never, true),
        (Pause::Never, Pause::Percent(30), false),
    ];
    for (part, (idle, stalls, enable)) in parts.into_iter().enumerate() {
        let count = if enable { frames.div_ceil(4) } else { frames.div_ceil(40) };
        Run::new(dut, seed.wrapping_add(part as u64), (idle, stalls), enable)
            .and_then(|run| run.go(dut, count, &mut coverage))
            .map_err(|fault| {
                format!("seed {seed}, idle {idle:?}, stalls {stalls:?}, enabled {enable}: {fault}")
            })?;
    }
    Ok(coverage)
}

struct Run {
    rng: Rng,
    source: Source,
    sink: Sink,
    expected: VecDeque<(Vec<u8>, RxUser)>,
    enable: bool,
    /// Without a pause on either side the number of clocks is known.
    is_exact: bool,
    beats: u64,
    /// Pulses of IP and layer 4 that were seen, and that are due.
    events: [u64; 2],
    events_due: [u64; 2],
    event_ports: [Port; 2],
    /// Bytes in a beat.
    width: usize,
}

impl Run {
    fn new(dut: &mut Dut, seed: u64, pauses: (Pause, Pause), enable: bool) -> Result<Run, String> {
        let mut rng = Rng::new(seed);
        let source = Source::new(dut, "s_axis", pauses.0, UserAt::Last, rng.bits())?;
        let sink = Sink::new(dut, "m_axis", pauses.1, rng.bits())?;
        dut.set(dut.port("cfg_enable")?, u64::from(enable));
        dut.reset()?;
        Ok(Run {
            rng,
            source,
            sink,
            expected: VecDeque::new(),
            enable,
            is_exact: pauses == (Pause::Never, Pause::Never),
            beats: 0,
            events: [0; 2],
            events_due: [0; 2],
            event_ports: [dut.port("event_ip_bad")?, dut.port("event_layer4_bad")?],
            width: dut.bits(dut.port("s_axis_tdata")?) as usize / 8,
        })
    }

    fn go(mut self, dut: &mut Dut, frames: u64, coverage: &mut Coverage) -> Result<(), String> {
        let (began, mut last_progress) = (dut.cycles(), dut.cycles());
        let mut pushed = 0;
        while self.sink.count() < frames {
            while self.source.waiting() < 2 && pushed < frames {
                self.push(coverage);
                pushed += 1;
            }
            self.clock(dut);
            while let Some(received) = self.sink.pop()? {
                self.check(&received)?;
                coverage.frames += 1;
                last_progress = dut.cycles();
            }
            if dut.cycles() - last_progress > PATIENCE {
                return Err(format!("nothing comes out after frame {}", self.sink.count()));
            }
        }
        let took = dut.cycles() - began;
        // Two clocks more: the first in which it is ready, and that of the last beat itself.
        if self.is_exact && took > self.beats + LATENCY + 2 {
            return Err(format!("{} beats took {took} clocks", self.beats));
        }
        for _ in 0..2 * LATENCY {
            self.clock(dut);
        }
        if self.sink.is_in_frame() || self.sink.count() != frames {
            return Err("more comes out than went in".into());
        }
        if self.events != self.events_due {
            return Err(format!("pulses {:?}, due {:?}", self.events, self.events_due));
        }
        Ok(())
    }

    fn clock(&mut self, dut: &mut Dut) {
        self.source.drive(dut);
        self.sink.drive(dut);
        dut.settle();
        self.source.observe(dut);
        self.sink.observe(dut);
        for (count, port) in self.events.iter_mut().zip(self.event_ports) {
            *count += dut.get(port);
        }
        dut.edge();
    }

    fn push(&mut self, coverage: &mut Coverage) {
        let mut frame = random(&mut self.rng, &Mix { giant: 4, ..Mix::default() });
        if self.rng.chance(2) {
            // So short that frames follow each other in each clock.
            frame.truncate(self.rng.between(1, 20));
        } else if self.rng.chance(10) {
            append_to_brink(&mut self.rng, &mut frame);
        }
        let rng = &mut self.rng;
        let user = RxUser {
            error: rng.chance(10),
            csum_status: rng.below(8) as u8,
            csum_raw: rng.bits() as u16,
            hash: rng.bits() as u32,
            hash_type: rng.below(8) as u8,
            channel: rng.below(16) as u8,
            drop: rng.chance(10),
            seg_count: rng.bits() as u8,
            seg_size: rng.bits() as u16,
            arrival: rng.bits() as u32,
        };
        let found = status(&frame);
        let told = if self.enable { found } else { Status::Unchecked };
        self.events_due[0] += u64::from(told == Status::IpBad);
        self.events_due[1] += u64::from(matches!(told, Status::TcpBad | Status::UdpBad));
        coverage.count(format!("{found:?}"));
        self.beats += frame.len().div_ceil(self.width) as u64;
        let due = RxUser { csum_status: told.code(), csum_raw: raw_sum(&frame), ..user };
        self.source.push(frame.clone(), user.to_words());
        self.expected.push_back((frame, due));
    }

    fn check(&mut self, received: &Received) -> Result<(), String> {
        let (frame, user) = self.expected.pop_front().ok_or("a frame that was never sent")?;
        let told = RxUser::from_words(received.user);
        if received.data == frame && told == user {
            return Ok(());
        }
        Err(format!(
            "frame {}: {} bytes in, {} out, {user:x?} due, {told:x?} told, {:02x?}",
            self.sink.count(),
            frame.len(),
            received.data.len(),
            &frame[..frame.len().min(160)],
        ))
    }
}
