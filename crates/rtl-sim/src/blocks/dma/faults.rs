//! Everything that goes wrong: what the queue says then, that the others go on, and that a reset makes all good.

mod life;
mod receive;
mod transmit;

use super::super::Coverage;
use super::memory::Response;
use super::traffic::Rings;
use super::world::{Manner, Way, World, queue};
use crate::{Dut, Pause};

/// Clocks after which something that was to happen has not.
const PATIENCE: u64 = 60_000;

/// A round's fault, in one queue: its name.
type Scenario = fn(&mut World<'_>, &mut Rings, usize) -> Result<&'static str, String>;

const SCENARIOS: &[Scenario] = &[
    transmit::nonsense,
    transmit::unreadable,
    transmit::cut,
    transmit::bad_descriptor,
    receive::nonsense,
    receive::unwritable,
    receive::bad_descriptor,
    receive::patience,
    life::stop_and_go,
    life::serves,
    life::reset_while_running,
    life::reset_within_frames,
    life::delays,
    life::reset_of_all,
];

pub fn run(dut: &mut Dut, manner: Manner, seed: u64, coverage: &mut Coverage) -> Result<(), String> {
    for (index, scenario) in SCENARIOS.iter().enumerate() {
        let manner = if index % 2 == 0 { manner } else { Manner { streams: [Pause::Never; 2], ..manner } };
        let mut world = World::new(dut, manner, seed.wrapping_add(index as u64))?;
        world.write(0x524, 1 << 16)?;
        let mut rings = Rings::new(&mut world)?;
        let all: Vec<usize> = (0..world.queues).collect();
        exercise(&mut world, &mut rings, &all)?;
        life::stop_at_rest(&mut world, &mut rings)?;
        let victim = world.rng.below(world.queues as u64) as usize;
        let kind =
            scenario(&mut world, &mut rings, victim).map_err(|fault| format!("scenario {index}: {fault}"))?;
        // All is well again, everywhere.
        exercise(&mut world, &mut rings, &all).map_err(|fault| format!("after {kind}: {fault}"))?;
        coverage.frames += rings.left + rings.arrived;
        coverage.count(kind);
    }
    Ok(())
}

/// Frames both ways through these queues, until all have come through.
fn exercise(world: &mut World<'_>, rings: &mut Rings, queues: &[usize]) -> Result<(), String> {
    for &queue in queues {
        let before = rings.tx[queue].sent;
        for _ in 0..world.rng.between(1, 6) {
            let len = world.rng.between(1, 2_500);
            rings.send(world, queue, len);
        }
        // A doorbell without anything new would mean a whole lap.
        if rings.tx[queue].sent != before {
            rings.tx[queue].ring(world)?;
        }
        for _ in 0..world.rng.between(1, 4) {
            let len = world.rng.between(14, 600);
            rings.offer(world, queue, len);
        }
    }
    let end = world.dut.cycles() + PATIENCE;
    loop {
        for &queue in queues {
            if rings.refill(world, queue) {
                rings.rx[queue].ring(world)?;
            }
        }
        world.steps(30)?;
        rings.poll(world)?;
        let rx_done = queues.iter().all(|&queue| rings.rx[queue].expected.is_empty());
        let tx_done = queues
            .iter()
            .all(|&queue| rings.tx[queue].expected.is_empty() && rings.tx[queue].outstanding() == 0);
        if rx_done && tx_done {
            return Ok(());
        }
        if world.dut.cycles() > end {
            return Err(format!("frames do not come through: transmit {tx_done}, receive {rx_done}"));
        }
    }
}

/// Waits until the queue has stopped, looks why, lets the others go on, and starts it again.
fn stopped(
    world: &mut World<'_>,
    rings: &mut Rings,
    way: Way,
    victim: usize,
    kinds: u32,
) -> Result<(), String> {
    let base = way.queue(victim);
    let status = world.wait(base + queue::STATUS, "stop", |status| {
        status & (queue::HALTED | queue::ERROR) == queue::HALTED | queue::ERROR
    })?;
    if status & queue::KINDS != kinds || !world.interrupt(way, victim) {
        return Err(format!("{way:?}: status {status:#x} instead of {kinds:#x}"));
    }
    let control = world.read(base + queue::CONTROL)?;
    world.write(base + queue::CONTROL, control | queue::RUN)?;
    if control & queue::RUN != 0 || world.read(base + queue::CONTROL)? & queue::RUN != 0 {
        return Err("a queue that failed runs without a reset".to_owned());
    }
    let errors = world.read(way.base() + 0x10)?;
    let shift = if kinds & queue::DESCRIPTOR != 0 { 4 } else { 0 };
    rings.errors[way as usize] |= ((kinds >> 8) & 7) << shift;
    if errors != rings.errors[way as usize] {
        return Err(format!("{way:?}: errors {errors:#x} of status {status:#x}"));
    }
    // The interrupt of the error goes, when it is acknowledged; what went wrong stays.
    world.write(base + queue::STATUS, 0xF0)?;
    let status = world.read(base + queue::STATUS)?;
    world.interrupts.acknowledge_failure(way, victim);
    if status & (queue::ERROR | queue::KINDS) != kinds {
        return Err(format!("{way:?}: status {status:#x} when the error was acknowledged"));
    }
    let others: Vec<usize> = (0..world.queues).filter(|queue| *queue != victim).collect();
    exercise(world, rings, &others)?;
    restart(world, rings, way, victim)
}

/// Resets a queue and starts it on a fresh ring.
fn restart(world: &mut World<'_>, rings: &mut Rings, way: Way, victim: usize) -> Result<(), String> {
    world.reset(way, victim)?;
    renew(world, rings, way, victim)
}

fn renew(world: &mut World<'_>, rings: &mut Rings, way: Way, victim: usize) -> Result<(), String> {
    let first = match way {
        Way::Transmit => {
            rings.tx[victim].rewind(world);
            rings.tx[victim].next_address()
        }
        Way::Receive => {
            rings.rx[victim].rewind(world);
            rings.rx[victim].next_address()
        }
    };
    // Started and reset at once.
    if world.rng.chance(50) {
        world.write(way.queue(victim) + queue::CONTROL, queue::RUN)?;
        world.reset(way, victim)?;
    }
    // What is rung while it does not run is not heard.
    if world.rng.chance(30) {
        let anywhere = world.rng.bits();
        world.ring(way, victim, anywhere)?;
    }
    world.start(way, victim, first)
}

/// An error, and what a queue's status shows of it.
fn any_error(world: &mut World<'_>) -> (Response, u32) {
    world.rng.pick(&[(Response::Slave, queue::SLAVE), (Response::Decode, queue::DECODE)])
}

/// Bits of an address that the hardware does not have, if there are any.
fn beyond(world: &mut World<'_>) -> Result<u64, String> {
    let bits = world.dut.bits(world.dut.port("m_axi_araddr")?);
    if bits == 64 {
        return Ok(0);
    }
    let bit = world.rng.between(bits as usize, 63);
    Ok(1 << bit | if world.rng.chance(50) { world.rng.bits() >> bits << bits } else { 0 })
}

/// Waits until a queue has stopped.
fn halted(world: &mut World<'_>, way: Way, victim: usize, what: &str) -> Result<(), String> {
    world.wait(way.queue(victim) + queue::STATUS, what, |status| status & queue::HALTED != 0).map(drop)
}
