//! The receive FIFO against its reference, clock by clock: every output in every clock.

use super::Coverage;
use crate::{Dut, Port, Rng, RxUser};
use linerate_nic::offload::rx_fifo::{Fate, RxFifo, RxFifoConfig, Tail};

/// Defaults of the module.
const FIFO_BYTES: usize = 32_768;
const FRAMES: usize = 512;
const MAX_FRAME: usize = 9_018;

/// How busy the two sides are.
#[derive(Clone, Copy, Debug)]
struct Load {
    /// Chance in percent of a word in each clock, and of the consumer's being ready.
    arrives: u64,
    taken: u64,
    /// Frames are short, so that entries run out before words.
    short: bool,
}

const LOADS: [Load; 5] = [
    Load { arrives: 100, taken: 100, short: false },
    Load { arrives: 70, taken: 75, short: false },
    Load { arrives: 100, taken: 40, short: false },
    Load { arrives: 100, taken: 0, short: true },
    Load { arrives: 90, taken: 97, short: true },
];

/// The ports.
struct Ports {
    data: Port,
    keep: Port,
    valid: Port,
    last: Port,
    user: Port,
    now: Port,
    pause_high: Port,
    pause_low: Port,
    ready: Port,
    out: [Port; 5],
    in_ready: Port,
    pause_request: Port,
    events: [Port; 5],
}

impl Ports {
    fn of(dut: &Dut) -> Result<Self, String> {
        let out =
            ["tvalid", "tdata", "tkeep", "tlast", "tuser"].map(|name| dut.port(&format!("m_axis_{name}")));
        let events =
            ["frame", "error", "too_long", "rule", "overflow"].map(|name| dut.port(&format!("event_{name}")));
        let [valid, data, keep, last, user] = out;
        let [frame, error, too_long, rule, overflow] = events;
        Ok(Ports {
            data: dut.port("s_axis_tdata")?,
            keep: dut.port("s_axis_tkeep")?,
            valid: dut.port("s_axis_tvalid")?,
            last: dut.port("s_axis_tlast")?,
            user: dut.port("s_axis_tuser")?,
            now: dut.port("now")?,
            pause_high: dut.port("cfg_pause_high")?,
            pause_low: dut.port("cfg_pause_low")?,
            ready: dut.port("m_axis_tready")?,
            out: [valid?, data?, keep?, last?, user?],
            in_ready: dut.port("s_axis_tready")?,
            pause_request: dut.port("pause_request")?,
            events: [frame?, error?, too_long?, rule?, overflow?],
        })
    }
}

/// A frame on its way in.
struct Incoming {
    bytes: Vec<u8>,
    at: usize,
    user: RxUser,
}

impl Incoming {
    fn random(rng: &mut Rng, short: bool, word: usize) -> Self {
        let len = match rng.below(if short { 3 } else { 8 }) {
            0 => rng.between(1, word),
            1 => rng.between(word, 2 * word),
            2 => 60,
            3 => rng.between(MAX_FRAME - 2 * word, MAX_FRAME + 2 * word),
            4 => rng.between(8_000, 12_000),
            _ => rng.between(60, 1_600),
        };
        let mut bytes = vec![0; len];
        rng.fill(&mut bytes);
        let user = RxUser {
            error: rng.chance(4),
            csum_status: rng.below(8) as u8,
            csum_raw: rng.bits() as u16,
            hash: rng.bits() as u32,
            hash_type: rng.below(8) as u8,
            channel: rng.below(16) as u8,
            drop: rng.chance(5),
            seg_count: rng.bits() as u8,
            seg_size: rng.bits() as u16,
            arrival: rng.bits() as u32,
        };
        Incoming { bytes, at: 0, user }
    }
}

/// What was driven in one clock, as it will be seen one clock later.
type Driven = Option<(Vec<u8>, Option<Tail<RxUser>>)>;

/// Random frames with random loads; a reset between two loads, in the middle of whatever is on its way.
///
/// # Errors
/// The seed and the first difference.
pub fn compare(dut: &mut Dut, seed: u64, frames: u64) -> Result<Coverage, String> {
    let mut coverage = Coverage::default();
    let mut rng = Rng::new(seed);
    let rounds = frames.div_ceil(1_000).max(1) * LOADS.len() as u64;
    let each = frames.div_ceil(rounds);
    for round in 0..rounds {
        let load = LOADS[round as usize % LOADS.len()];
        // Enough to fill it even if few frames are asked for.
        let goal = if load.taken == 0 || load.short { each.max(600) } else { each };
        run(dut, &mut rng, goal, load, &mut coverage)
            .map_err(|fault| format!("seed {seed}, {load:?}, clock {}: {fault}", dut.cycles()))?;
    }
    Ok(coverage)
}

fn run(dut: &mut Dut, rng: &mut Rng, frames: u64, load: Load, coverage: &mut Coverage) -> Result<(), String> {
    let ports = Ports::of(dut)?;
    let word = dut.bits(ports.data) as usize / 8;
    let words = FIFO_BYTES / word;
    let mut model =
        RxFifo::new(RxFifoConfig { word_bytes: word, words, frames: FRAMES, max_frame: MAX_FRAME });
    let (high, low) = thresholds(rng);
    dut.set(ports.pause_high, high as u64);
    dut.set(ports.pause_low, low as u64);
    // What comes during the reset is not there.
    dut.set(ports.valid, rng.below(2));
    dut.set(ports.last, rng.below(2));
    dut.set(ports.ready, rng.below(2));
    dut.reset()?;
    dut.set(ports.valid, 0);
    let (mut delayed, mut fate, mut used, mut pause) = (None, None, 0, false);
    let mut incoming: Option<Incoming> = None;
    let (mut sent, mut settled) = (0, 0);
    while settled < 3 {
        let ready = rng.chance(if sent < frames { load.taken } else { 80 });
        let now = rng.bits() as u32;
        dut.set(ports.ready, u64::from(ready));
        dut.set(ports.now, u64::from(now));
        if incoming.is_none() && sent < frames {
            incoming = Some(Incoming::random(rng, load.short, word));
        }
        let driven = drive(dut, &ports, rng, &mut incoming, load, now);
        if driven.as_ref().is_some_and(|(_, tail)| tail.is_some()) {
            sent += 1;
        }
        dut.settle();
        outputs(dut, &ports, &model, fate, pause)?;
        if sent == frames && model.used() == 0 && model.offered().is_none() && driven.is_none() {
            settled += 1;
        }
        // Registers of the fill level: what the outputs show in the next clock.
        pause = if high != 0 && used >= high {
            true
        } else if used <= low || high == 0 {
            false
        } else {
            pause
        };
        used = model.used();
        let input: Driven = core::mem::replace(&mut delayed, driven);
        fate = model.clock(input.as_ref().map(|(bytes, tail)| (&bytes[..], *tail)), ready);
        if let Some(fate) = fate {
            coverage.frames += 1;
            coverage.count(format!("{fate:?}").to_lowercase());
        }
        if pause {
            coverage.kinds.entry("paused".to_owned()).or_insert(1);
        }
        dut.edge();
    }
    Ok(())
}

/// Bytes at which a pause is asked for, and no longer: also those that the memory never holds, as all 32 bits count.
fn thresholds(rng: &mut Rng) -> (usize, usize) {
    let far = |rng: &mut Rng| 1usize << rng.between(15, 31) | rng.below(FIFO_BYTES as u64) as usize;
    let high = match rng.below(20) {
        0 | 1 => 0,
        2..6 => far(rng),
        6 => 1 << rng.below(32),
        7..10 => rng.between(1, 4_000),
        _ => rng.between(1, FIFO_BYTES),
    };
    let low = match rng.below(20) {
        0 => 0,
        1..4 => far(rng),
        4 => 1 << rng.below(32),
        5..9 => high.saturating_sub(8),
        _ => rng.between(0, high.min(FIFO_BYTES)),
    };
    (high, low)
}

fn drive(
    dut: &mut Dut,
    ports: &Ports,
    rng: &mut Rng,
    incoming: &mut Option<Incoming>,
    load: Load,
    now: u32,
) -> Driven {
    let word = dut.bits(ports.data) as usize / 8;
    let mut data = [0; 64];
    rng.fill(&mut data[..word]);
    let Some(frame) = incoming.as_mut().filter(|_| rng.chance(load.arrives)) else {
        dut.set(ports.valid, 0);
        dut.set(ports.last, rng.below(2));
        return None;
    };
    let rest = &frame.bytes[frame.at..];
    let count = rest.len().min(word);
    let last = rest.len() <= word;
    let bytes = rest[..count].to_vec();
    data[..count].copy_from_slice(&bytes);
    let data: [u32; 16] = core::array::from_fn(|at| {
        u32::from_le_bytes([data[4 * at], data[4 * at + 1], data[4 * at + 2], data[4 * at + 3]])
    });
    dut.set(ports.valid, 1);
    dut.set_wide(ports.data, &data);
    dut.set(ports.keep, u64::MAX >> (64 - count));
    dut.set(ports.last, u64::from(last));
    frame.at += count;
    if !last {
        dut.set_wide(ports.user, &core::array::from_fn::<u32, 4, _>(|_| rng.bits() as u32));
        return Some((bytes, None));
    }
    dut.set_wide(ports.user, &frame.user.to_words());
    let meta = RxUser { arrival: now, seg_count: 1, seg_size: 0, ..frame.user };
    let tail = Tail { meta, error: meta.error, rule: meta.drop };
    *incoming = None;
    Some((bytes, Some(tail)))
}

/// Compares all outputs of this clock.
fn outputs(
    dut: &Dut,
    ports: &Ports,
    model: &RxFifo<RxUser>,
    fate: Option<Fate>,
    pause: bool,
) -> Result<(), String> {
    let [valid, data, keep, last, user] = ports.out;
    if dut.get(ports.in_ready) != 1 {
        return Err("s_axis_tready fell".to_owned());
    }
    let expected =
        [Fate::Kept, Fate::Error, Fate::TooLong, Fate::Rule, Fate::Overflow].map(|kind| Some(kind) == fate);
    let seen = ports.events.map(|event| dut.get(event) != 0);
    if seen != expected {
        return Err(format!("events {seen:?}, the frame's fate is {fate:?}"));
    }
    if (dut.get(ports.pause_request) != 0) != pause {
        return Err(format!("pause_request is not {pause}, {} bytes in use", model.used()));
    }
    let Some(word) = model.offered() else {
        return if dut.get(valid) == 0 { Ok(()) } else { Err("a word that was never sent".to_owned()) };
    };
    if dut.get(valid) == 0 {
        return Err("a word is missing".to_owned());
    }
    let mut words = [0; 16];
    dut.read_words(data, &mut words);
    let mut bytes = [0; 64];
    for (to, word) in bytes.chunks_exact_mut(4).zip(words) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    let bytes = &bytes[..word.bytes.len()];
    let keeps = u64::MAX >> (64 - word.bytes.len());
    if bytes != word.bytes || dut.get(keep) != keeps || (dut.get(last) != 0) != word.last {
        return Err(format!("{bytes:02x?} instead of {:02x?}, last {}", word.bytes, word.last));
    }
    let seen = dut.get_wide(user);
    if seen != word.meta.to_words() {
        return Err(format!("tuser {:?} instead of {:?}", RxUser::from_words(seen), word.meta));
    }
    Ok(())
}
