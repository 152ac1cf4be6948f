//! Receive coalescing against its reference.
//!
//! What becomes of a frame follows from the frames before it and from the flows that the timer has closed in between. The block
//! tells its decisions by its events, one for each frame and each flow that it closes for a reason of its own: the reference
//! takes the timer's from there, after a look at the clock, and must come to the same decisions and frames in all else.

mod traffic;

use super::Coverage;
use crate::{Dut, Pause, Port, Received, Rng, RxUser, Sink, Source, UserAt};
use linerate_nic::offload::coalesce::{Arrived, Coalesce, CoalesceConfig, Decision, Departed};
use std::collections::VecDeque;
use traffic::{LONGEST, Offer, Profile, Traffic};

/// Defaults of the module.
const FLOWS: usize = 8;
const MAX_PACKET: usize = 65_535;
const POOL_BYTES: usize = 131_072;

/// Clocks without any progress after which the block is said to hang. The largest frame takes 16,384 at 32 bits.
const PATIENCE: u64 = 40_000;
/// Clocks in which the table answers: it may be busy with a frame, which takes 39 if all flows have its short hash, and closing the
/// oldest flow takes four.
const SLACK: u64 = 48;
/// Clocks from the end of a flow's frame to the event of the frame that closed it, and maybe all other flows.
const EARLY: u64 = 100;
/// Frames that surely find room on their way out: with more of them the table may have to wait.
const QUEUED: usize = 50;

const PROFILES: [Profile; 13] = [
    Profile {
        name: "bulk",
        sizes: (1_400, 1_460),
        odd: 1,
        noise: 1,
        renewed: 0,
        patient: true,
        share: 200,
        ..Profile::PLAIN
    },
    Profile { name: "many", flows: 14, odd: 12, noise: 5, ..Profile::PLAIN },
    // Up to the most segments of a frame.
    Profile {
        name: "small",
        flows: 2,
        sizes: (1, 12),
        renewed: 0,
        patient: true,
        share: 600,
        ..Profile::PLAIN
    },
    Profile { name: "odd", sizes: (1, 200), odd: 40, noise: 3, ..Profile::PLAIN },
    Profile {
        name: "flips",
        flows: 2,
        sizes: (1, 60),
        odd: 5,
        flips: 70,
        renewed: 3,
        share: 500,
        ..Profile::PLAIN
    },
    Profile { name: "noise", flows: 9, sizes: (6, 1_000), odd: 10, noise: 60, ..Profile::PLAIN },
    Profile { name: "jumbo", flows: 5, sizes: (7_000, 8_960), odd: 2, noise: 5, share: 15, ..Profile::PLAIN },
    // A frame has to fit into a quarter of the memory.
    Profile { name: "giant", flows: 2, sizes: (8_000, LONGEST), patient: true, share: 2, ..Profile::PLAIN },
    Profile { name: "padded", sizes: (1, 300), odd: 10, padded: 50, renewed: 5, ..Profile::PLAIN },
    Profile { name: "alike", flows: 12, sizes: (1, 20), odd: 10, alike: true, renewed: 5, ..Profile::PLAIN },
    // As many frames as words on the way out.
    Profile {
        name: "runts",
        flows: 1,
        noise: 100,
        runts: true,
        stall: Some(Pause::Bursts(200)),
        share: 20,
        ..Profile::PLAIN
    },
    // A block that becomes free is soon another frame's, while what it was part of is still being read.
    Profile {
        name: "crowded",
        flows: 8,
        patient: true,
        stall: Some(Pause::Bursts(2_000)),
        share: 400,
        ..Profile::PLAIN
    },
    // All that waits is full.
    Profile {
        name: "stalled",
        flows: 10,
        sizes: (1, 20),
        odd: 60,
        noise: 20,
        stall: Some(Pause::Bursts(12_000)),
        share: 400,
        ..Profile::PLAIN
    },
];

/// What is done with the traffic in one run.
#[derive(Clone, Copy, Debug)]
struct Plan {
    profile: Profile,
    frames: u64,
    input: Pause,
    output: Pause,
    timeout: u64,
    enable: bool,
    /// `cfg_enable` changes in between.
    toggles: bool,
    /// The run ends in the middle of things, by the next one's reset.
    breaks_off: bool,
}

impl Plan {
    /// Nothing pauses, and the timer is far away.
    const LINE_RATE: Plan = Plan {
        profile: Profile::PLAIN,
        frames: 0,
        input: Pause::Never,
        output: Pause::Never,
        timeout: 1_000_000,
        enable: true,
        toggles: false,
        breaks_off: false,
    };
}

/// Random traffic of each kind.
///
/// # Errors
/// The seed and the first difference.
pub fn compare(dut: &mut Dut, seed: u64, frames: u64) -> Result<Coverage, String> {
    let mut coverage = Coverage::default();
    let mut rng = Rng::new(seed);
    for small in [true, false] {
        throughput(dut, small).map_err(|fault| format!("without pauses, small frames {small}: {fault}"))?;
    }
    short_hash(dut).map_err(|fault| format!("flows with nearly the same hash: {fault}"))?;
    timer_under_load(dut).map_err(|fault| format!("time over under load: {fault}"))?;
    // Of a long run each is longer, too.
    let turns = frames.div_ceil(3_000).clamp(1, 40 + frames / 20_000);
    let shares = PROFILES.iter().map(|profile| profile.share).sum::<u64>();
    for profile in (0..turns).flat_map(|_| PROFILES) {
        let plan = Plan {
            profile,
            frames: (frames * profile.share).div_ceil(turns * shares).max(20),
            input: rng.pick(&[Pause::Never, Pause::Percent(30), Pause::Bursts(200)]),
            output: profile.stall.unwrap_or(rng.pick(&[
                Pause::Never,
                Pause::Percent(20),
                Pause::Bursts(30),
                Pause::Bursts(2_000),
            ])),
            timeout: timeout(&mut rng, profile.patient),
            enable: !rng.chance(8),
            toggles: rng.chance(20),
            breaks_off: rng.chance(20),
        };
        let mut bench = Bench::new(dut, &mut rng, plan)?;
        bench.run(dut, &mut rng, &mut coverage).map_err(|fault| {
            format!("seed {seed}, {plan:?}, clock {}, frame {}: {fault}", dut.cycles(), coverage.frames)
        })?;
    }
    Ok(coverage)
}

/// Clocks of a flow. Each bit is set in some run, also those that no run lives long enough to see.
fn timeout(rng: &mut Rng, patient: bool) -> u64 {
    if patient || rng.chance(40) {
        return (1 << rng.between(17, 31)) | (rng.bits() & rng.bits() & 0xffff_ffff);
    }
    match rng.below(7) {
        0 => rng.below(4),
        1 => rng.below(100),
        2..=4 => rng.below(2_000),
        _ => rng.below(20_000),
    }
}

/// The ports beside the streams.
struct Ports {
    enable: Port,
    /// Opened, joined, passed; timeout, evicted, pressure.
    events: [Port; 6],
}

struct Bench {
    plan: Plan,
    ports: Ports,
    source: Source,
    sink: Sink,
    traffic: Traffic,
    table: Coalesce<RxUser>,
    /// Frames that the block has not decided about.
    undecided: VecDeque<Offer>,
    expected: VecDeque<Departed<RxUser>>,
    /// Frames that came out and are not compared yet, each with its clock.
    received: VecDeque<(u64, Received)>,
    evicted: bool,
    enabled: bool,
    /// `cfg_enable` changes as soon as all that came is decided about.
    is_switching: bool,
    offered: u64,
    last_progress: u64,
    /// When a flow may last have found no room on its way out.
    last_full: u64,
}

impl Bench {
    fn new(dut: &mut Dut, rng: &mut Rng, plan: Plan) -> Result<Self, String> {
        let event = |name: &str| dut.port(&format!("event_{name}"));
        let ports = Ports {
            enable: dut.port("cfg_enable")?,
            events: [
                event("opened")?,
                event("joined")?,
                event("passed")?,
                event("timeout")?,
                event("evicted")?,
                event("pressure")?,
            ],
        };
        let timeout = dut.port("cfg_timeout")?;
        dut.set(timeout, plan.timeout);
        dut.set(ports.enable, u64::from(plan.enable));
        let word = dut.bits(dut.port("s_axis_tdata")?) as usize / 8;
        let block_bytes = if word < 8 { 32 } else { 16 } * word;
        let source = Source::new(dut, "s_axis", plan.input, UserAt::Every, rng.bits())?;
        let sink = Sink::new(dut, "m_axis", plan.output, rng.bits())?;
        dut.reset()?;
        Ok(Bench {
            ports,
            source,
            sink,
            traffic: Traffic::new(rng, plan.profile),
            table: Coalesce::new(CoalesceConfig {
                flows: FLOWS,
                max_packet: MAX_PACKET,
                block_bytes,
                max_held: POOL_BYTES / block_bytes * 3 / 4,
                timeout: plan.timeout,
            }),
            undecided: VecDeque::new(),
            expected: VecDeque::new(),
            received: VecDeque::new(),
            evicted: false,
            enabled: plan.enable,
            is_switching: false,
            offered: 0,
            last_progress: dut.cycles(),
            last_full: 0,
            plan,
        })
    }

    fn run(&mut self, dut: &mut Dut, rng: &mut Rng, coverage: &mut Coverage) -> Result<(), String> {
        loop {
            let all_offered = self.offered == self.plan.frames;
            self.switch(dut);
            if !all_offered && !self.is_switching && self.source.waiting() < 2 {
                self.is_switching = self.plan.toggles && rng.chance(4);
                let offer = self.traffic.next(rng);
                self.source.push(offer.bytes.clone(), offer.user.to_words());
                self.undecided.push_back(offer);
                self.offered += 1;
            }
            if all_offered && self.plan.breaks_off {
                return Ok(());
            }
            if all_offered && self.undecided.is_empty() {
                if self.table.open() == 0 && self.expected.is_empty() {
                    return self.nothing_more(dut);
                }
                // Flows whose time is far away leave when the block is switched off.
                if self.plan.timeout > 3_000 {
                    self.enabled = false;
                    dut.set(self.ports.enable, 0);
                }
            }
            self.source.drive(dut);
            self.sink.drive(dut);
            dut.settle();
            self.source.observe(dut);
            self.sink.observe(dut);
            self.events(dut, coverage)?;
            self.compare_received(dut)?;
            dut.edge();
            if dut.cycles() - self.last_progress > PATIENCE {
                return Err("nothing moves".to_owned());
            }
        }
    }

    /// Changes `cfg_enable`: on again when no flow is open any more, as the last ones that leave say nothing else than the timer's.
    fn switch(&mut self, dut: &mut Dut) {
        if !self.is_switching || !self.undecided.is_empty() || (!self.enabled && self.table.open() > 0) {
            return;
        }
        self.is_switching = false;
        self.enabled = !self.enabled;
        dut.set(self.ports.enable, u64::from(self.enabled));
    }

    /// Takes the block's decisions over, in the order of its events.
    fn events(&mut self, dut: &Dut, coverage: &mut Coverage) -> Result<(), String> {
        let now = dut.cycles();
        let [opened, joined, passed, timeout, evicted, pressure] =
            self.ports.events.map(|port| dut.get(port) != 0);
        if [opened, joined, passed, timeout, evicted, pressure].into_iter().filter(|event| *event).count() > 1
        {
            return Err("two events at once".to_owned());
        }
        if pressure {
            if !self.table.relieve() {
                return Err("event_pressure without pressure".to_owned());
            }
            coverage.count("pressure");
        }
        if self.expected.len() >= QUEUED {
            self.last_full = now;
        }
        let due = self.table.deadline();
        if timeout {
            if self.enabled && due.is_none_or(|due| now < due) {
                return Err(format!("event_timeout, but the deadline is {due:?}"));
            }
            if !self.table.close_oldest() {
                return Err("event_timeout without a flow".to_owned());
            }
            coverage.count("timeout");
        } else if due.is_some_and(|due| now > due.max(self.last_full) + SLACK * (1 + FLOWS as u64)) {
            return Err(format!("the oldest flow should have left at {due:?}"));
        }
        self.evicted |= evicted;
        if opened || joined || passed {
            self.last_progress = now;
            self.decide(now, opened, joined, coverage)?;
        }
        while let Some(frame) = self.table.pop() {
            coverage.frames += u64::from(frame.coalesced.map_or(1, |of| of.segments));
            if let Some(of) = frame.coalesced {
                coverage.count("coalesced");
                if of.segments > 40 {
                    coverage.count("coalesced of more than 40");
                }
            }
            self.expected.push_back(frame);
        }
        Ok(())
    }

    fn decide(
        &mut self,
        now: u64,
        opened: bool,
        joined: bool,
        coverage: &mut Coverage,
    ) -> Result<(), String> {
        let offer = self.undecided.pop_front().ok_or("an event without a frame")?;
        if self.table.is_crowded() {
            return Err("a frame was decided about under pressure".to_owned());
        }
        let arrived = Arrived {
            may_join: offer.user.csum_status == 2 && offer.user.seg_size == 0 && self.enabled,
            bytes: offer.bytes,
            arrival: offer.user.arrival,
            meta: offer.user,
        };
        let decision = self.table.push(arrived, now);
        let seen = if opened {
            Decision::Opened { evicted: core::mem::take(&mut self.evicted) }
        } else if joined {
            Decision::Joined
        } else {
            Decision::Passed
        };
        coverage.count(match decision {
            Decision::Opened { evicted: true } => "evicted",
            Decision::Opened { evicted: false } => "opened",
            Decision::Joined => "joined",
            Decision::Passed => "passed",
        });
        if seen != decision || self.evicted {
            return Err(format!("the block says {seen:?} (evicted {}), not {decision:?}", self.evicted));
        }
        Ok(())
    }

    /// A flow that is closed in front of a frame may leave before the block tells of the frame, and with it of the flow.
    fn compare_received(&mut self, dut: &Dut) -> Result<(), String> {
        let now = dut.cycles();
        while let Some(received) = self.sink.pop()? {
            self.received.push_back((now, received));
        }
        while !self.expected.is_empty() {
            let Some((_, received)) = self.received.pop_front() else { break };
            let Some(expected) = self.expected.pop_front() else { break };
            self.last_progress = now;
            compare_frames(&received.data, received.user, received.user_constant, &expected)?;
        }
        if self.received.front().is_some_and(|(came, _)| now - came > EARLY) {
            return Err("a frame that was never sent".to_owned());
        }
        Ok(())
    }

    /// Sends what waits: clocks from the last beat to the event, and whether it says opened or joined. What comes out is not looked at.
    fn decision(&mut self, dut: &mut Dut) -> (u64, bool, bool) {
        let mut sent = dut.cycles();
        loop {
            self.source.drive(dut);
            self.sink.drive(dut);
            dut.settle();
            let waiting = self.source.waiting();
            self.source.observe(dut);
            if waiting > self.source.waiting() {
                sent = dut.cycles();
            }
            let [opened, joined, passed, ..] = self.ports.events.map(|port| dut.get(port) != 0);
            let clocks = dut.cycles() - sent;
            dut.edge();
            if opened || joined || passed || clocks > PATIENCE {
                return (clocks, opened, joined);
            }
        }
    }

    /// Some clocks more, in which nothing may come.
    fn nothing_more(&mut self, dut: &mut Dut) -> Result<(), String> {
        if !self.received.is_empty() {
            return Err("a frame that was never sent".to_owned());
        }
        for _ in 0..200 {
            self.sink.drive(dut);
            dut.settle();
            self.sink.observe(dut);
            if self.sink.pop()?.is_some() || self.ports.events.iter().any(|port| dut.get(*port) != 0) {
                return Err("something comes after the end".to_owned());
            }
            dut.edge();
        }
        Ok(())
    }
}

fn compare_frames(
    data: &[u8],
    user: [u32; 4],
    constant: bool,
    expected: &Departed<RxUser>,
) -> Result<(), String> {
    let mut meta = expected.meta;
    meta.arrival = expected.arrival;
    if let Some(of) = expected.coalesced {
        meta.csum_raw = 0;
        meta.seg_count = of.segments;
        meta.seg_size = of.segment_size;
    }
    if data != expected.bytes {
        let at = data.iter().zip(&expected.bytes).position(|(a, b)| a != b);
        return Err(format!(
            "a frame of {} bytes instead of {}, first difference at {at:?}, {:?}",
            data.len(),
            expected.bytes.len(),
            expected.coalesced
        ));
    }
    if user != meta.to_words() {
        return Err(format!("tuser {:?} instead of {meta:?}", RxUser::from_words(user)));
    }
    if !constant {
        return Err("tuser changes within a frame".to_owned());
    }
    Ok(())
}

/// Without a pause on either side nothing is held back: frames of 60 bytes that pass, join, and close a flow each; or segments
/// of an MTU of 1500.
fn throughput(dut: &mut Dut, small: bool) -> Result<(), String> {
    let mut rng = Rng::new(7);
    let size = if small { 6 } else { 1_460 };
    // None has the short hash of another, which takes longer to find.
    let plain = Profile { siblings: 0, renewed: 0, padded: 0, ..Profile::PLAIN };
    let profile = Profile { name: "line rate", flows: 2, sizes: (size, size), ..plain };
    for kind in 0..3 {
        let plan = Plan { profile, enable: kind != 0, ..Plan::LINE_RATE };
        let mut bench = Bench::new(dut, &mut rng, plan)?;
        let word = dut.bits(dut.port("s_axis_tdata")?) as usize / 8;
        // Wider streams take a frame of 60 bytes in less time than it takes to decide.
        if small && word > 8 {
            continue;
        }
        let mut beats = 0;
        for at in 0..200u32 {
            let mut offer = bench.traffic.next(&mut rng);
            if kind == 2 && offer.bytes.len() > 46 && at % 2 == 0 {
                // A gap: the flow leaves, and another begins.
                let ip = if offer.bytes[12..14] == [0x08, 0] { 14 } else { 18 };
                offer.bytes[ip + 30] ^= 1;
            }
            beats += offer.bytes.len().div_ceil(word) as u64;
            bench.source.push(offer.bytes, offer.user.to_words());
        }
        let began = dut.cycles();
        let mut ended = began;
        while bench.source.waiting() > 0 && ended - began < 3 * beats {
            bench.source.drive(dut);
            bench.sink.drive(dut);
            dut.settle();
            bench.source.observe(dut);
            bench.sink.observe(dut);
            dut.edge();
            ended = dut.cycles();
        }
        // The first block's number comes a few clocks after the reset.
        if ended - began > beats + 6 {
            return Err(format!("kind {kind}: {beats} beats took {} clocks", ended - began));
        }
    }
    Ok(())
}

/// Clocks from a frame's last beat to the event, of a flow that opens and of one that is joined.
const OPENS_IN: u64 = 11;
const JOINS_IN: u64 = 13;

/// A flow is found at once, also if another one differs in one of the bits that the short hash is made of.
fn short_hash(dut: &mut Dut) -> Result<(), String> {
    let mut rng = Rng::new(8);
    let mut bench = Bench::new(dut, &mut rng, Plan::LINE_RATE)?;
    // The first block's number comes a few clocks after the reset.
    let [(first, _), ..] = traffic::neighbours(&mut rng, false, 0);
    bench.source.push(first.bytes, first.user.to_words());
    bench.decision(dut);
    for (bit, v6) in (0..48).flat_map(|bit| [(bit, false), (bit, true)]) {
        for (offer, opens) in traffic::neighbours(&mut rng, v6, bit) {
            bench.source.push(offer.bytes, offer.user.to_words());
            let (clocks, opened, joined) = bench.decision(dut);
            let expected = if opens { OPENS_IN } else { JOINS_IN };
            if (clocks, opened, joined) != (expected, opens, !opens) {
                return Err(format!(
                    "bit {bit}, IPv6 {v6}: opened {opened}, joined {joined} after {clocks} clocks, not {expected}"
                ));
            }
        }
    }
    Ok(())
}

/// A flow whose time is over leaves also while frames come without a gap, each of which closes another flow and opens it anew.
fn timer_under_load(dut: &mut Dut) -> Result<(), String> {
    const TIMEOUT: u64 = 300;
    let mut rng = Rng::new(9);
    let mut bench = Bench::new(dut, &mut rng, Plan { timeout: TIMEOUT, ..Plan::LINE_RATE })?;
    let [(old, _), (again, _), ..] = traffic::neighbours(&mut rng, false, 0);
    bench.source.push(old.bytes, old.user.to_words());
    bench.decision(dut);
    let opened = dut.cycles();
    // The same bytes once more are not what comes next in their flow.
    for _ in 0..20 * TIMEOUT {
        bench.source.push(again.bytes.clone(), again.user.to_words());
    }
    let [_, _, _, timeout, _, _] = bench.ports.events;
    while dut.cycles() - opened <= TIMEOUT + SLACK {
        bench.source.drive(dut);
        bench.sink.drive(dut);
        dut.settle();
        let is_over = dut.get(timeout) != 0;
        bench.source.observe(dut);
        bench.sink.observe(dut);
        dut.edge();
        if is_over {
            return Ok(());
        }
    }
    Err(format!("a flow of {TIMEOUT} clocks is still there after {}", dut.cycles() - opened))
}
