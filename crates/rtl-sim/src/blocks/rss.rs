//! Receive-side scaling against `nic::offload::steer`: flow rules, port map, hash and table, all written while frames pass.

mod traffic;

use super::Coverage;
use crate::dut::Port;
use crate::{Dut, Pause, Rng, RxUser, Sink, Source, UserAt};
use linerate_nic::Version;
use linerate_nic::offload::steer::{
    self, Action, Decision, MAX_RULES, Network, Rule, Steer, Steered, Tuple, Write,
};
use linerate_wire::ip::Protocol;
use std::collections::VecDeque;
use std::net::IpAddr;

/// Clocks without any progress after which the block is said to hang.
const PATIENCE: u64 = 1_000;

/// Clocks in which written rules have come into force, however much is looked up meanwhile.
const FILLING: u64 = 10_000;

/// Frames between changes of the settings.
const EPOCH: usize = 400;

/// Of these, so many have flows for which rules are written, and others differ from them in a bit.
const RULED: usize = 24;

/// Clocks from a frame's last beat on the way in to the same on the way out, at least, and what reset and start cost.
const LATENCY: u64 = 40;

/// The block's ports beside its streams.
struct Ports {
    key: Port,
    hash_tcp: Port,
    hash_udp: Port,
    default_channel: Port,
    rule_enable: Port,
    port_enable: Port,
    write: Port,
    address: Port,
    data: Port,
    busy: Port,
    /// In the order of [`Counts`].
    events: [Port; 4],
    /// Of a beat.
    bytes: usize,
}

impl Ports {
    fn of(dut: &Dut) -> Result<Ports, String> {
        Ok(Ports {
            key: dut.port("cfg_key")?,
            hash_tcp: dut.port("cfg_hash_tcp")?,
            hash_udp: dut.port("cfg_hash_udp")?,
            default_channel: dut.port("cfg_default_channel")?,
            rule_enable: dut.port("cfg_rule_enable")?,
            port_enable: dut.port("cfg_port_enable")?,
            write: dut.port("cfg_write")?,
            address: dut.port("cfg_address")?,
            data: dut.port("cfg_data")?,
            busy: dut.port("rules_busy")?,
            events: [
                dut.port("event_rule")?,
                dut.port("event_drop")?,
                dut.port("event_port")?,
                dut.port("event_not_ip")?,
            ],
            bytes: dut.bits(dut.port("s_axis_tdata")?) as usize / 8,
        })
    }
}

/// Rules that decided, that dropped, ports that decided, frames that are not IP.
type Counts = [u64; 4];

/// The block, what is to come out of it, and what is yet to be written.
struct Bench<'a> {
    dut: &'a mut Dut,
    ports: Ports,
    source: Source,
    sink: Sink,
    rng: Rng,
    steer: Steer,
    /// Rules as they are written, whether they are on or not.
    rules: [Option<Rule>; MAX_RULES],
    writes: VecDeque<Write>,
    expected: VecDeque<(Vec<u8>, RxUser)>,
    counted: Counts,
    due: Counts,
    /// Beats of the frames, and the clocks that they take at eight for a lookup.
    beats: u64,
    lookups: u64,
    came_out: u64,
    coverage: Coverage,
}

/// Random frames, rules and tables.
///
/// # Errors
/// The seed and the first difference.
pub fn compare(dut: &mut Dut, seed: u64, frames: u64) -> Result<Coverage, String> {
    let mut coverage = Coverage::default();
    let pauses = [Pause::Never, Pause::Percent(30), Pause::Bursts(40)];
    for (part, pause) in (0..).zip(pauses) {
        let target = frames * (part + 1) / pauses.len() as u64;
        coverage = run(dut, seed.wrapping_add(part), target, pause, coverage)
            .map_err(|fault| format!("seed {seed}, {pause:?}: {fault}"))?;
    }
    Ok(coverage)
}

fn run(dut: &mut Dut, seed: u64, target: u64, pause: Pause, coverage: Coverage) -> Result<Coverage, String> {
    let mut rng = Rng::new(seed);
    reset_within_a_frame(dut, &mut rng)?;
    let other = if pause == Pause::Never || rng.chance(50) { pause } else { Pause::Never };
    let source = Source::new(dut, "s_axis", pause, UserAt::Last, rng.bits())?;
    let sink = Sink::new(dut, "m_axis", other, rng.bits())?;
    let ports = Ports::of(dut)?;
    let mut bench = Bench {
        dut,
        ports,
        source,
        sink,
        rng,
        steer: Steer::new([0; 40]),
        rules: [None; MAX_RULES],
        writes: VecDeque::new(),
        expected: VecDeque::new(),
        counted: [0; 4],
        due: [0; 4],
        beats: 0,
        lookups: 0,
        came_out: 0,
        coverage,
    };
    // Every rule is written, and every table, before anything counts.
    let mut epoch = bench.frames(&[]);
    bench.write_rules(&epoch, u32::MAX);
    bench.drain()?;
    loop {
        bench.settings(&epoch);
        bench.drain()?;
        // Rules that are off are written for the next frames, while these pass.
        let enabled = bench.enable();
        let next = bench.frames(&epoch);
        bench.write_rules(&next, !enabled);
        bench.pass(&epoch, pause == Pause::Never)?;
        bench.drain()?;
        if bench.coverage.frames >= target {
            return Ok(bench.coverage);
        }
        epoch = next;
    }
}

/// What is on its way is forgotten: nothing of it comes out later.
fn reset_within_a_frame(dut: &mut Dut, rng: &mut Rng) -> Result<(), String> {
    dut.reset()?;
    let mut source = Source::new(dut, "s_axis", Pause::Never, UserAt::Last, rng.bits())?;
    for _ in 0..rng.below(60) {
        if source.waiting() < 2 {
            let len = rng.between(1, 300);
            source.push(vec![1; len], [0; 4]);
        }
        source.drive(dut);
        dut.settle();
        source.observe(dut);
        dut.edge();
    }
    let valid = dut.port("s_axis_tvalid")?;
    dut.set(valid, 0);
    dut.reset()
}

/// A rule for this flow, with wildcards; now and then it differs in a bit, and fits nothing.
fn rule_for(rng: &mut Rng, tuple: &Tuple) -> Rule {
    let mut tuple = *tuple;
    let spoiled = if rng.chance(25) { 1 + rng.below(5) } else { 0 };
    let flip = |rng: &mut Rng, address: IpAddr| match address {
        IpAddr::V4(address) => IpAddr::from((address.to_bits() ^ 1 << rng.below(32)).to_be_bytes()),
        IpAddr::V6(address) => IpAddr::from((address.to_bits() ^ 1 << rng.below(128)).to_be_bytes()),
    };
    match spoiled {
        1 => tuple.source = flip(rng, tuple.source),
        2 => tuple.destination = flip(rng, tuple.destination),
        3 => tuple.protocol.0 ^= 1 << rng.below(8),
        4 | 5 => {
            if let Some(ports) = &mut tuple.ports {
                ports[spoiled as usize - 4] ^= 1 << rng.below(16);
            }
        }
        _ => {}
    }
    let action = if rng.chance(30) { Action::Drop } else { Action::Queue(rng.below(16) as u8) };
    let mut rule = Rule::flow(&tuple, action);
    // What was spoiled must count.
    for (field, chance) in [(1, 40), (2, 40), (3, 40), (4, 50), (5, 50)] {
        if field == spoiled || !rng.chance(chance) {
            continue;
        }
        let network = |rng: &mut Rng, network: Option<Network>| {
            let prefix_len = rng.between(8, 128) as u8;
            network.filter(|_| rng.chance(50)).map(|network| Network { prefix_len, ..network })
        };
        match field {
            1 => rule.source = network(rng, rule.source),
            2 => rule.destination = network(rng, rule.destination),
            3 => rule.protocol = None,
            4 => rule.source_port = None,
            _ => rule.destination_port = None,
        }
    }
    // Not so wide that it takes most of the frames.
    if rule.source.is_none() && rule.destination.is_none() && rng.chance(90) {
        rule.destination = Some(Network::host(tuple.destination));
    }
    if rng.chance(20) {
        // With an address of the other version it would be a rule that nothing fits, and which is not written.
        let is_free = rule.source.is_none() && rule.destination.is_none();
        let own = if tuple.source.is_ipv4() { Version::V4 } else { Version::V6 };
        rule.version = Some(if is_free { rng.pick(&[Version::V4, Version::V6]) } else { own });
    }
    rule
}

/// Beats of the longest of these frames.
fn frame_beats(ports: &Ports, frames: &[Vec<u8>]) -> u64 {
    frames.iter().map(|frame| frame.len().div_ceil(ports.bytes) as u64).max().unwrap_or(0)
}

impl Bench<'_> {
    /// Frames of the next settings, some of them of flows that were there before. Rules are for flows of the first [`RULED`].
    fn frames(&mut self, before: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let rng = &mut self.rng;
        let mut all: Vec<Vec<u8>> = Vec::with_capacity(EPOCH);
        while all.len() < EPOCH {
            let ruled = rng.between(0, RULED - 1);
            let frame = match rng.below(100) {
                0..35 if all.len() > RULED => traffic::sibling(rng, &all[ruled]),
                35..45 if all.len() > RULED => all[ruled].clone(),
                45..55 if !before.is_empty() => before[rng.between(0, before.len() - 1)].clone(),
                55..62 => traffic::brink(rng),
                _ => traffic::any(rng),
            };
            // Rules are for flows.
            if all.len() < RULED
                && Tuple::of_frame(&frame).is_none_or(|tuple| tuple.ports.is_none())
                && rng.chance(90)
            {
                continue;
            }
            all.push(frame);
        }
        all
    }

    /// Writes the rules of `which`, for flows of these frames.
    fn write_rules(&mut self, frames: &[Vec<u8>], which: u32) {
        let ruled = &frames[..RULED];
        let tuples: Vec<Tuple> = ruled.iter().filter_map(|frame| Tuple::of_frame(frame)).collect();
        for index in (0..MAX_RULES).filter(|index| which >> index & 1 == 1) {
            // Some of the flows have several rules: the lowest that is on counts.
            let among = if self.rng.chance(50) { &tuples[..tuples.len().min(4)] } else { &tuples[..] };
            let tuple = self.rng.pick(among);
            let rule = rule_for(&mut self.rng, &tuple);
            self.rules[index] = Some(rule);
            self.writes.extend(steer::writes_of_rule(index, &rule).into_iter().flatten());
        }
    }

    /// New key, table and port map. Nothing is on its way.
    fn settings(&mut self, frames: &[Vec<u8>]) {
        let rng = &mut self.rng;
        rng.fill(&mut self.steer.key);
        (self.steer.hash_tcp, self.steer.hash_udp) = (rng.chance(75), rng.chance(75));
        self.steer.default_channel = rng.below(16) as u8;
        self.steer.indirection.fill_with(|| rng.below(16) as u8);
        self.writes.extend(steer::writes_of_indirection(&self.steer.indirection));
        for index in 0..self.steer.ports.len() {
            let tuple = Tuple::of_frame(&frames[rng.between(0, frames.len() - 1)]);
            let [source, port] = tuple.and_then(|tuple| tuple.ports).unwrap_or([80, 443]);
            let port = match rng.below(6) {
                0 => source,
                1 => port ^ 1 << rng.below(16),
                _ => port,
            };
            let channel = rng.below(16) as u8;
            self.steer.ports[index] = Some((port, channel)).filter(|_| rng.chance(70));
            self.writes.extend(steer::write_of_port(index, port, channel));
        }
        let enabled =
            (0..16).fold(0, |bits, index| bits | u64::from(self.steer.ports[index].is_some()) << index);
        let mut words = [0; 10];
        for (word, bytes) in words.iter_mut().zip(self.steer.key.chunks_exact(4)) {
            *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        self.dut.set_wide(self.ports.key, &words);
        self.dut.set(self.ports.hash_tcp, u64::from(self.steer.hash_tcp));
        self.dut.set(self.ports.hash_udp, u64::from(self.steer.hash_udp));
        self.dut.set(self.ports.default_channel, u64::from(self.steer.default_channel));
        self.dut.set(self.ports.port_enable, enabled);
    }

    /// Switches rules on: those that were written last, and some of those that were on. All have been taken over.
    fn enable(&mut self) -> u32 {
        let before = self.steer.rules;
        let mut bits = 0;
        for (index, rule) in self.rules.iter().enumerate() {
            let was_on = before[index].is_some();
            let on = self.rng.chance(if was_on { 30 } else { 85 });
            self.steer.rules[index] = rule.filter(|_| on);
            bits |= u32::from(on) << index;
        }
        self.dut.set(self.ports.rule_enable, u64::from(bits));
        bits
    }

    fn push(&mut self, frame: &[u8]) {
        let rng = &mut self.rng;
        let offered = RxUser {
            error: rng.chance(10),
            csum_status: rng.below(8) as u8,
            csum_raw: rng.bits() as u16,
            hash: rng.bits() as u32,
            hash_type: rng.below(8) as u8,
            channel: rng.below(16) as u8,
            drop: rng.chance(50),
            seg_count: rng.bits() as u8,
            seg_size: rng.bits() as u16,
            arrival: rng.bits() as u32,
        };
        let Steered { hash, hash_type, channel, drop, decided_by } = self.steer.steer(frame);
        let user = RxUser { hash, hash_type: hash_type as u8, channel, drop, ..offered };
        self.due[0] += u64::from(decided_by == Decision::Rule);
        self.due[1] += u64::from(drop);
        self.due[2] += u64::from(decided_by == Decision::Port);
        self.due[3] += u64::from(decided_by == Decision::NotIp);
        if frame.len() >= 14 {
            self.coverage.frames += 1;
            self.coverage.count(format!("{hash_type:?} hash"));
            let protocol = Tuple::of_frame(frame).map(|tuple| tuple.protocol);
            if matches!(protocol, Some(Protocol::TCP | Protocol::UDP)) {
                self.coverage.count("TCP or UDP");
            }
            self.coverage.count(format!("by {decided_by:?}"));
            if drop {
                self.coverage.count("dropped");
            }
        }
        let beats = frame.len().div_ceil(self.ports.bytes) as u64;
        self.beats += beats;
        self.lookups += beats.max(8);
        self.expected.push_back((frame.to_vec(), user));
        self.source.push(frame.to_vec(), offered.to_words());
    }

    /// The frames through the block; without pauses, each in the clocks that it may take.
    fn pass(&mut self, frames: &[Vec<u8>], is_timed: bool) -> Result<(), String> {
        // Then those alone that are as short as they may be: at 64 bit each comes as the lookup before it ends.
        let short: Vec<Vec<u8>> = frames.iter().filter(|frame| frame.len() == 60).cloned().collect();
        // And those that are no frames at all, so that more of them are held than beats.
        let runts: Vec<Vec<u8>> = (0..40).map(|_| vec![1; self.rng.between(1, 10)]).collect();
        let limit = PATIENCE + 20 * frame_beats(&self.ports, frames);
        for all in [frames, &short, &runts] {
            let began = self.dut.cycles();
            (self.beats, self.lookups) = (0, 0);
            for frame in all {
                let mut waited = 0;
                while self.source.waiting() > 1 {
                    self.clock()?;
                    waited += 1;
                    if waited > limit {
                        return Err("the block does not take what is offered".into());
                    }
                }
                self.push(frame);
            }
            self.settle()?;
            let took = self.dut.cycles() - began;
            if is_timed && (took > self.lookups + LATENCY || took < self.beats) {
                return Err(format!("{} beats took {took} clocks, expected {}", self.beats, self.lookups));
            }
        }
        Ok(())
    }

    /// Until all frames have come out.
    fn settle(&mut self) -> Result<(), String> {
        let mut waited = 0;
        while !self.expected.is_empty() {
            let before = self.expected.len();
            let beats_left = self.expected.iter().map(|(frame, _)| frame.len() as u64).max().unwrap_or(0);
            self.clock()?;
            waited = if self.expected.len() < before { 0 } else { waited + 1 };
            if waited > PATIENCE + 8 * beats_left {
                return Err(format!("nothing comes out; {} frames are missing", self.expected.len()));
            }
        }
        Ok(())
    }

    /// Until all is written and in force, and everything has been counted.
    fn drain(&mut self) -> Result<(), String> {
        let mut waited = 0;
        while !self.writes.is_empty() || self.is_busy() {
            self.clock()?;
            waited += 1;
            if waited > FILLING + 2_000 {
                return Err("the rules do not come into force".into());
            }
        }
        // What is written where nothing lies changes nothing.
        for _ in 0..4 {
            let stray = (self.stray_address(), self.rng.bits() as u32);
            self.writes.push_back(stray);
            self.clock()?;
        }
        for _ in 0..2 {
            self.clock()?;
        }
        if self.is_busy() {
            return Err("busy again".into());
        }
        if self.counted != self.due {
            return Err(format!(
                "events (rule, drop, port, not IP): {:?}, expected {:?}",
                self.counted, self.due
            ));
        }
        Ok(())
    }

    /// An address that differs in a bit from one where something lies.
    fn stray_address(&mut self) -> u16 {
        loop {
            let near = self.rng.pick(&[0x000, 0x080, 0x0a0, 0x0c0]) + self.rng.below(16) as u16;
            let address = near ^ 1 << self.rng.between(4, 9);
            if !matches!(address, 0..0x010 | 0x080..0x090 | 0x0a0..0x0c1 | 0x400..) {
                return address;
            }
        }
    }

    fn is_busy(&self) -> bool {
        self.dut.get(self.ports.busy) != 0
    }

    fn clock(&mut self) -> Result<(), String> {
        let write = self.writes.pop_front();
        self.dut.set(self.ports.write, u64::from(write.is_some()));
        // What is not written must not matter.
        let (address, data) = write.unwrap_or((self.rng.bits() as u16, self.rng.bits() as u32));
        self.dut.set(self.ports.address, u64::from(address));
        self.dut.set(self.ports.data, u64::from(data));
        self.source.drive(self.dut);
        self.sink.drive(self.dut);
        self.dut.settle();
        self.source.observe(self.dut);
        self.sink.observe(self.dut);
        for (count, port) in self.counted.iter_mut().zip(self.ports.events) {
            *count += self.dut.get(port);
        }
        self.dut.edge();
        while let Some(received) = self.sink.pop()? {
            let (frame, user) = self.expected.pop_front().ok_or("a frame that was never sent")?;
            let found = RxUser::from_words(received.user);
            if found != user {
                return Err(format!(
                    "frame {} of {} bytes: {found:?}, expected {user:?}; it begins {:02x?}",
                    self.came_out,
                    frame.len(),
                    &frame[..frame.len().min(100)]
                ));
            }
            if received.data != frame {
                return Err(format!("frame {} came out changed", self.came_out));
            }
            self.came_out += 1;
        }
        Ok(())
    }
}
