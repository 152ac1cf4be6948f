//! Interrupt pacing against `nic::Pacing` and `nic::AdaptivePacing`, with time in clocks.

use super::Coverage;
use crate::dut::Port;
use crate::{Dut, Rng};
use linerate_nic::{AdaptiveConfig, AdaptivePacing, Pacing, PacingConfig, PacingMode};
use linerate_wire::units::Instant;

/// Clocks after which new settings are in force.
const SETTLING: u64 = 4;

/// Clocks of random settings at least: each fault has to meet the settings that show it.
const CLOCKS: u64 = 300_000;

/// The numbers of packets, and of ticks, stop here.
const MOST: u64 = 65_535;

/// The block's ports.
struct Ports {
    tick_clocks: Port,
    mode: Port,
    timer: Port,
    threshold: Port,
    adaptive: Port,
    adaptive_min: Port,
    adaptive_low: Port,
    adaptive_high: Port,
    packet: Port,
    taken: Port,
    masked: Port,
    irq: Port,
    pending: Port,
    timer_in_force: Port,
}

impl Ports {
    fn of(dut: &Dut) -> Result<Ports, String> {
        Ok(Ports {
            tick_clocks: dut.port("cfg_tick_clocks")?,
            mode: dut.port("cfg_mode")?,
            timer: dut.port("cfg_timer")?,
            threshold: dut.port("cfg_threshold")?,
            adaptive: dut.port("cfg_adaptive")?,
            adaptive_min: dut.port("cfg_adaptive_min")?,
            adaptive_low: dut.port("cfg_adaptive_low")?,
            adaptive_high: dut.port("cfg_adaptive_high")?,
            packet: dut.port("packet")?,
            taken: dut.port("taken")?,
            masked: dut.port("masked")?,
            irq: dut.port("irq")?,
            pending: dut.port("pending")?,
            timer_in_force: dut.port("timer")?,
        })
    }
}

/// How one queue is used for a while, in percent of clocks.
#[derive(Clone, Copy, Debug)]
struct Load {
    packets: u64,
    /// Interrupts are taken, with this chance in each clock.
    response: u64,
    /// The queue is looked at though there is no interrupt.
    polls: u64,
    masked: u64,
}

/// One of these, or any number of any length, or one next to a power of two, or next to `near`.
fn any(rng: &mut Rng, usual: &[u32], near: u64) -> u32 {
    let most = MOST as u32;
    match rng.below(100) {
        0..25 => (rng.below(MOST + 1) >> rng.below(16)) as u32,
        25..35 => (1u32 << rng.below(17)).wrapping_sub(rng.below(4) as u32).min(most),
        35..55 => (near as u32).wrapping_add(rng.below(5) as u32).saturating_sub(2).min(most),
        _ => rng.pick(usual),
    }
}

/// One queue's reference.
struct Queue {
    config: PacingConfig,
    adaptive: AdaptiveConfig,
    is_adaptive: bool,
    fixed: Pacing,
    following: AdaptivePacing,
    load: Load,
    is_due: bool,
}

impl Queue {
    fn pacing(&self) -> &Pacing {
        if self.is_adaptive { self.following.pacing() } else { &self.fixed }
    }

    fn configure(&mut self, config: PacingConfig, adaptive: AdaptiveConfig, is_adaptive: bool) {
        (self.config, self.adaptive, self.is_adaptive) = (config, adaptive, is_adaptive);
        self.fixed.set_config(config);
        self.following.set_config(config, adaptive);
    }

    /// What happens in a clock, in the order in which it counts.
    fn clock(&mut self, now: Instant, is_taken: bool, has_packet: bool, is_masked: bool) {
        if is_taken {
            self.fixed.handle_interrupt_taken(now);
            self.following.handle_interrupt_taken(now);
        }
        self.fixed.handle_packet(now, u32::from(has_packet));
        self.following.handle_packet(now, u32::from(has_packet));
        self.is_due = self.pacing().poll_interrupt(now) && !is_masked;
    }
}

/// The block, its reference, and the time.
struct Bench<'a> {
    dut: &'a mut Dut,
    ports: Ports,
    rng: Rng,
    queues: Vec<Queue>,
    now: u64,
    packets: u64,
    coverage: Coverage,
}

/// Random packets, interrupts taken and settings for every queue; `frames` counts packets.
///
/// # Errors
/// The seed and the first difference.
pub fn compare(dut: &mut Dut, seed: u64, frames: u64) -> Result<Coverage, String> {
    let ports = Ports::of(dut)?;
    let rng = Rng::new(seed);
    let coverage = Coverage::default();
    let mut bench = Bench { dut, ports, rng, queues: Vec::new(), now: 0, packets: 0, coverage };
    bench.run(frames).map_err(|fault| format!("seed {seed}: {fault}"))?;
    bench.coverage.frames = bench.packets;
    Ok(bench.coverage)
}

impl Bench<'_> {
    fn run(&mut self, frames: u64) -> Result<(), String> {
        self.counters_stop()?;
        let until = self.now + CLOCKS + 20 * frames;
        while self.packets < frames || self.now < until {
            self.reset()?;
            for _ in 0..self.rng.between(1, 8) {
                self.configure()?;
                let clocks = self.rng.pick(&[50, 300, 1_000, 3_000]);
                self.clocks(clocks)?;
            }
            if self.rng.chance(50) {
                self.wide_timers()?;
            }
            if self.rng.chance(12) {
                self.many_packets()?;
            } else if self.rng.chance(12) {
                self.long_wait()?;
            }
        }
        Ok(())
    }

    /// The largest timer and threshold, with one clock a tick.
    fn counters_stop(&mut self) -> Result<(), String> {
        self.reset_with(1)?;
        let config = PacingConfig { mode: PacingMode::LastInterrupt, ..self.widest(1) };
        for queue in &mut self.queues {
            queue.configure(config, AdaptiveConfig::default(), false);
            queue.load = Load { packets: 0, response: 0, polls: 0, masked: 0 };
        }
        self.write_settings(1);
        self.quiet()?;
        // The timer of the first queue runs out exactly when it may; that of the others stops and waits for a packet.
        self.queues[0].load.packets = 1;
        self.clocks(MOST + 100)?;
        self.queues.iter_mut().for_each(|queue| queue.load.packets = 1);
        self.clocks(500)?;
        // Packets are counted until the number stops, which fires by the largest threshold; there is no timer.
        self.reset_with(1)?;
        let config = PacingConfig { mode: PacingMode::None, ..self.widest(1) };
        for queue in &mut self.queues {
            queue.configure(config, AdaptiveConfig::default(), false);
            queue.load = Load { packets: 100, response: 0, polls: 0, masked: 0 };
        }
        self.write_settings(1);
        self.quiet()?;
        self.clocks(MOST + 20)?;
        self.queues.iter_mut().for_each(|queue| queue.load.polls = 50);
        self.clocks(10)?;
        Ok(())
    }

    /// Packets in every clock that nobody takes, then settings next to their number.
    fn many_packets(&mut self) -> Result<(), String> {
        self.configure()?;
        for queue in &mut self.queues {
            queue.load = Load { packets: 100, response: 0, polls: 0, masked: 0 };
        }
        let clocks = (1 << self.rng.between(9, 15)) + self.rng.below(200);
        self.clocks(clocks)?;
        for _ in 0..self.rng.between(4, 12) {
            self.configure()?;
            // Sometimes without a packet before one is taken.
            for queue in &mut self.queues {
                queue.load.packets = self.rng.pick(&[0, 50, 100]);
            }
            self.clocks(2)?;
            let takes = self.rng.chance(40);
            self.queues.iter_mut().for_each(|queue| queue.load.polls = if takes { 100 } else { 0 });
            self.clocks(1)?;
            self.queues.iter_mut().for_each(|queue| (queue.load.packets, queue.load.polls) = (100, 0));
            let clocks = if takes { 1 << self.rng.between(5, 13) } else { 5 };
            self.clocks(clocks)?;
        }
        Ok(())
    }

    /// A packet now and then, with ticks and timers as long as they come.
    fn long_wait(&mut self) -> Result<(), String> {
        let shift = self.rng.pick(&[0, 0, 0, 1, 2, 4, 8, 12, 16]);
        let tick = 1 + (self.rng.below(MOST) >> shift);
        self.reset_with(tick)?;
        self.configure()?;
        let room = (MOST / tick).max(1) as u32;
        for queue in &mut self.queues {
            queue.config.timer_ticks =
                room.saturating_sub(self.rng.below(u64::from(room)) as u32 >> self.rng.below(8));
            queue.config.threshold = MOST as u32;
            queue.configure(queue.config, queue.adaptive, self.rng.chance(20));
            queue.load = Load { packets: 100, response: self.rng.pick(&[0, 50]), polls: 0, masked: 0 };
        }
        self.write_settings(tick);
        self.quiet()?;
        self.clocks(1)?;
        self.queues.iter_mut().for_each(|queue| queue.load.packets = 0);
        self.clocks(MOST + 10)
    }

    /// Timers that follow the load, in all their width: they start at the shortest, which then becomes another one, and a few
    /// interrupts move them.
    fn wide_timers(&mut self) -> Result<(), String> {
        for _ in 0..20 {
            let start = any(&mut self.rng, &[1, MOST as u32], MOST);
            self.adapt(start, |_, _| MOST as u32)?;
            let min = any(&mut self.rng, &[0, 1, start / 2], u64::from(start / 2));
            self.adapt(min, |rng, start| any(rng, &[MOST as u32, start], u64::from(start)))?;
            for queue in &mut self.queues {
                queue.load = Load { packets: 100, response: 0, polls: 100, masked: 0 };
            }
            let clocks = self.rng.between(1, 7) as u64;
            self.clocks(clocks)?;
        }
        Ok(())
    }

    /// The timer follows the load from `min` to what `longest` makes of the one in force: either way, or not at all.
    fn adapt(&mut self, min: u32, longest: fn(&mut Rng, u32) -> u32) -> Result<(), String> {
        let most = MOST as u32;
        let (low, high) = self.rng.pick(&[(most, most), (0, 0), (0, 1), (0, most), (1, 2)]);
        for queue in &mut self.queues {
            let now = queue.following.pacing().config().timer_ticks;
            let config = PacingConfig { timer_ticks: longest(&mut self.rng, now), ..queue.config };
            queue.configure(config, AdaptiveConfig { min_ticks: min, low, high }, true);
        }
        let tick = u64::from(self.queues[0].config.tick_ns);
        self.write_settings(tick);
        self.quiet()
    }

    fn widest(&self, tick: u32) -> PacingConfig {
        let most = MOST as u32;
        PacingConfig { mode: PacingMode::None, timer_ticks: most, tick_ns: tick, threshold: most }
    }

    fn reset(&mut self) -> Result<(), String> {
        let tick = self.rng.pick(&[0, 1, 2, 3, 7, 25, 300, 1_100]);
        self.reset_with(tick)
    }

    /// Starts again, with ticks of so many clocks.
    fn reset_with(&mut self, tick: u64) -> Result<(), String> {
        let count = self.dut.bits(self.ports.irq) as usize;
        let config = PacingConfig { mode: PacingMode::None, threshold: 1, ..self.widest(tick.max(1) as u32) };
        let config = PacingConfig { timer_ticks: 0, ..config };
        let adaptive = AdaptiveConfig { min_ticks: 0, low: 0, high: 0 };
        let start = Instant::from_nanos(self.now);
        self.queues.clear();
        for _ in 0..count {
            self.queues.push(Queue {
                config,
                adaptive,
                is_adaptive: false,
                fixed: Pacing::new(config, start),
                following: AdaptivePacing::new(config, adaptive, start),
                load: Load { packets: 0, response: 0, polls: 0, masked: 0 },
                is_due: false,
            });
        }
        for port in [self.ports.packet, self.ports.taken] {
            // What happens during the reset does not count.
            let bits = self.rng.bits();
            self.dut.set(port, bits);
        }
        self.write_settings(tick);
        self.dut.reset()
    }

    /// New settings for every queue. A mode changes only while no packet waits; see the block's header.
    fn configure(&mut self) -> Result<(), String> {
        let rng = &mut self.rng;
        // The settings of all are next to what one of the queues has.
        let at = rng.between(0, self.queues.len() - 1);
        let waiting = self.queues[at].pacing().pending();
        let ticks = u64::from(self.queues[at].following.pacing().config().timer_ticks);
        let low = any(rng, &[0, 1, 2, 5], waiting);
        let more = any(rng, &[0, 1, 3, 12], 0);
        let high = if rng.chance(50) { low + more } else { low.max(any(rng, &[0, 1], waiting)) };
        let high = high.min(MOST as u32);
        let min_ticks = any(rng, &[0, 1, 2, 9], ticks);
        let adaptive = AdaptiveConfig { min_ticks, low, high };
        let tick = self.queues[0].config.tick_ns;
        for queue in &mut self.queues {
            let mode =
                if queue.fixed.pending() == 0 { self.rng.pick(&PacingMode::ALL) } else { queue.config.mode };
            let config = PacingConfig {
                mode,
                timer_ticks: any(&mut self.rng, &[0, 1, 2, 3, 10, 40, 256], ticks),
                tick_ns: tick,
                threshold: any(&mut self.rng, &[0, 1, 2, 3, 10, 100, 300], waiting),
            };
            queue.configure(config, adaptive, self.rng.chance(40));
            queue.load = Load {
                packets: self.rng.pick(&[1, 5, 20, 50, 100]),
                response: self.rng.pick(&[1, 10, 50, 100]),
                polls: self.rng.pick(&[0, 0, 1, 20]),
                masked: self.rng.pick(&[0, 0, 1, 50]),
            };
            self.coverage.count(format!("{:?}", mode));
        }
        let tick = if tick == 1 { self.rng.below(2) } else { u64::from(tick) };
        self.write_settings(tick);
        self.quiet()
    }

    fn write_settings(&mut self, tick: u64) {
        let mut words = [[0u32; 4]; 2];
        let (mut modes, mut adaptive) = (0, 0);
        for (index, queue) in self.queues.iter().enumerate() {
            modes |= (queue.config.mode as u64) << (2 * index);
            adaptive |= u64::from(queue.is_adaptive) << index;
            let shift = 16 * (index % 2);
            words[0][index / 2] |= queue.config.timer_ticks << shift;
            words[1][index / 2] |= queue.config.threshold << shift;
        }
        let shared = self.queues[0].adaptive;
        self.dut.set(self.ports.tick_clocks, tick);
        self.dut.set(self.ports.mode, modes);
        self.dut.set(self.ports.adaptive, adaptive);
        self.dut.set_wide(self.ports.timer, &words[0]);
        self.dut.set_wide(self.ports.threshold, &words[1]);
        self.dut.set(self.ports.adaptive_min, u64::from(shared.min_ticks));
        self.dut.set(self.ports.adaptive_low, u64::from(shared.low));
        self.dut.set(self.ports.adaptive_high, u64::from(shared.high));
    }

    /// Nothing happens until new settings are in force.
    fn quiet(&mut self) -> Result<(), String> {
        for _ in 0..SETTLING {
            self.clock(true)?;
        }
        Ok(())
    }

    fn clocks(&mut self, count: u64) -> Result<(), String> {
        for _ in 0..count {
            self.clock(false)?;
        }
        Ok(())
    }

    /// One clock; with `is_settling` nothing comes in and only the number of packets is compared.
    fn clock(&mut self, is_settling: bool) -> Result<(), String> {
        let (mut packets, mut taken, mut masked) = (0, 0, 0);
        for (index, queue) in self.queues.iter().enumerate() {
            let (load, rng) = (queue.load, &mut self.rng);
            let takes = rng.chance(load.polls) || queue.is_due && rng.chance(load.response);
            taken |= u64::from(takes && !is_settling) << index;
            packets |= u64::from(rng.chance(load.packets) && !is_settling) << index;
            masked |= u64::from(rng.chance(load.masked)) << index;
        }
        self.dut.set(self.ports.packet, packets);
        self.dut.set(self.ports.taken, taken);
        self.dut.set(self.ports.masked, masked);
        self.dut.settle();
        let irq = self.dut.get(self.ports.irq);
        let waiting: [u32; 4] = self.dut.get_wide(self.ports.pending);
        let timers: [u32; 4] = self.dut.get_wide(self.ports.timer_in_force);
        let now = Instant::from_nanos(self.now);
        for (index, queue) in self.queues.iter_mut().enumerate() {
            let field = |words: [u32; 4]| u64::from(words[index / 2] >> (16 * (index % 2)) & 0xffff);
            let found = (irq >> index & 1 == 1, field(waiting), field(timers));
            let pacing = queue.pacing();
            let ticks = u64::from(pacing.config().timer_ticks);
            let expected = (queue.is_due, pacing.pending().min(MOST), ticks);
            if found.1 != expected.1 || !is_settling && found != expected {
                return Err(format!(
                    "clock {}, queue {index}: (irq, pending, timer) {found:?}, expected {expected:?} with {:?}, {:?}",
                    self.now, queue.config, queue.adaptive
                ));
            }
            let bit = |word: u64| word >> index & 1 == 1;
            self.packets += u64::from(bit(packets));
            if bit(taken) && bit(packets) {
                self.coverage.count("taken and packet in one clock");
            }
            if queue.is_due && bit(taken) {
                self.coverage.count("interrupts taken");
            }
            queue.clock(now, bit(taken), bit(packets), bit(masked));
        }
        self.dut.edge();
        self.now += 1;
        Ok(())
    }
}
