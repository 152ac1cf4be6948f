//! What goes wrong in a transmit queue.

use super::super::memory::READ;
use super::super::traffic::Rings;
use super::super::transmit::{self, COMPLETE, EOF, MOST, SOF};
use super::super::world::{Way, World, queue};
use super::{PATIENCE, any_error, beyond, halted, stopped};

/// What a descriptor says that makes no sense, behind others that do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nonsense {
    /// It is complete already.
    Stale,
    /// What its control word says.
    Control,
    /// The address of its buffer.
    Buffer,
    /// The address of the next one.
    Link,
    /// It is the last, and its frame has no end.
    Tail,
}

const NONSENSE: &[(&str, Nonsense, &[u32])] = &[
    ("stale", Nonsense::Stale, &[SOF | EOF | 60]),
    ("stale within a frame", Nonsense::Stale, &[SOF | 60, EOF | 60]),
    ("empty", Nonsense::Control, &[SOF | EOF]),
    ("empty within a frame", Nonsense::Control, &[SOF | 60, EOF]),
    ("no beginning", Nonsense::Control, &[EOF | 60]),
    ("two beginnings", Nonsense::Control, &[SOF | 60, SOF | EOF | 60]),
    ("buffer beyond memory", Nonsense::Buffer, &[SOF | EOF | 60]),
    ("buffer beyond memory within a frame", Nonsense::Buffer, &[SOF | 60, 33, EOF | 60]),
    ("link beyond memory", Nonsense::Link, &[SOF | EOF | 60]),
    ("link beyond memory within a frame", Nonsense::Link, &[SOF | 60, EOF | 60]),
    ("no end", Nonsense::Tail, &[SOF | 60, 70]),
];

/// Frames in front of what goes wrong, which must leave, handed over together with it or before.
fn lead(world: &mut World<'_>, rings: &mut Rings, victim: usize) -> Result<(), String> {
    for _ in 0..world.rng.below(3) {
        if rings.tx[victim].room() > 10 {
            let len = world.rng.between(1, 300);
            rings.send(world, victim, len);
            if world.rng.chance(30) {
                rings.tx[victim].ring(world)?;
            }
        }
    }
    Ok(())
}

/// Those frames have left.
fn led(world: &mut World<'_>, rings: &mut Rings, victim: usize) -> Result<(), String> {
    rings.poll(world)?;
    let end = world.dut.cycles() + PATIENCE;
    while !rings.tx[victim].expected.is_empty() && world.dut.cycles() < end {
        world.steps(20)?;
        rings.poll(world)?;
    }
    if !rings.tx[victim].expected.is_empty() || rings.tx[victim].outstanding() > 0 {
        return Err("a frame before the fault has not left, or has no status".to_owned());
    }
    Ok(())
}

pub fn nonsense(world: &mut World<'_>, rings: &mut Rings, victim: usize) -> Result<&'static str, String> {
    let (kind, nonsense, controls) = world.rng.pick(NONSENSE);
    world.interrupts.expect_failure(Way::Transmit, victim);
    let beyond = beyond(world)?;
    let (kind, nonsense) = if beyond == 0 { ("empty", Nonsense::Control) } else { (kind, nonsense) };
    let controls = if beyond == 0 { &[SOF | EOF] } else { controls };
    lead(world, rings, victim)?;
    let dropped = world.pulses.tx_dropped;
    let mut descriptors = Vec::new();
    for control in controls {
        let ring = &mut rings.tx[victim];
        let buffer = ring.buffer(world, 128);
        world.memory.allow(buffer, 128, READ);
        let is_last = descriptors.len() + 1 == controls.len();
        let bits = if is_last && nonsense == Nonsense::Buffer { beyond } else { 0 };
        descriptors.push(ring.put(world, buffer | bits, *control, None).1);
    }
    let last = descriptors.pop().unwrap_or_default();
    match nonsense {
        Nonsense::Stale => world.memory.store_word(last + 0x1C, COMPLETE),
        Nonsense::Link => {
            let link = world.memory.load_address(last) | beyond;
            world.memory.store(last, &link.to_le_bytes());
        }
        _ => {}
    }
    let is_within = nonsense == Nonsense::Tail;
    if !is_within && rings.tx[victim].room() > 0 && world.rng.chance(50) {
        // A frame behind it never leaves.
        let buffer = rings.tx[victim].buffer(world, 64);
        world.memory.allow(buffer, 64, READ);
        rings.tx[victim].put(world, buffer, SOF | EOF | 64, None);
    }
    rings.tx[victim].ring(world)?;
    halted(world, Way::Transmit, victim, kind)?;
    led(world, rings, victim)?;
    for (descriptor, control) in descriptors.iter().zip(controls) {
        let status = world.memory.load_word(descriptor + 0x1C);
        if status != COMPLETE | control & 0x3FF_FFFF {
            return Err(format!("{kind}: status {status:#x} of a descriptor that makes sense"));
        }
    }
    let status = world.memory.load_word(last + 0x1C);
    let (expected, kinds) = match nonsense {
        Nonsense::Stale => (COMPLETE, queue::DESCRIPTOR | queue::INTERNAL),
        Nonsense::Link => (0, queue::DESCRIPTOR | queue::DECODE),
        Nonsense::Tail => (COMPLETE | 70, queue::INTERNAL),
        _ => (COMPLETE | 1 << 28, queue::INTERNAL),
    };
    let begun = u64::from(controls[0] & SOF != 0 && controls.len() > 1);
    if status != expected || world.pulses.tx_dropped - dropped != begun {
        return Err(format!("{kind}: status {status:#x}, dropped {}", world.pulses.tx_dropped - dropped));
    }
    stopped(world, rings, Way::Transmit, victim, kinds)?;
    Ok(kind)
}

/// Bytes of a frame, in one piece or several, cannot be read.
pub fn unreadable(world: &mut World<'_>, rings: &mut Rings, victim: usize) -> Result<&'static str, String> {
    world.interrupts.expect_failure(Way::Transmit, victim);
    lead(world, rings, victim)?;
    let before = world.pulses.tx_dropped;
    let held = 256 * world.width;
    let len = if world.rng.chance(20) { held.min(MOST) } else { world.rng.between(1, held.min(2_000)) };
    let mut frame = vec![0; len];
    world.rng.fill(&mut frame);
    let (user, pieces) = (transmit::random_user(world), world.rng.between(1, 4));
    let count = rings.tx[victim].give(world, frame, user, pieces);
    let pieces = rings.tx[victim].disown(count);
    rings.tx[victim].expected.pop_back();
    let bad = world.rng.below(count as u64) as usize;
    let mut kinds = 0;
    let mut broken = Vec::new();
    for _ in 0..world.rng.between(1, 2) {
        let (response, kind) = any_error(world);
        let at = pieces[bad].buffer + world.rng.below(pieces[bad].len as u64);
        // The later of two at the same place counts.
        if broken.iter().any(|other: &u64| other / 64 == at / 64) {
            continue;
        }
        world.memory.set_broken(at, Some(response));
        broken.push(at);
        kinds |= kind;
    }
    rings.tx[victim].ring(world)?;
    halted(world, Way::Transmit, victim, "unreadable")?;
    led(world, rings, victim)?;
    for (at, piece) in pieces.iter().enumerate() {
        let status = world.memory.load_word(piece.descriptor + 0x1C);
        let errors = if at == bad { kinds >> 8 } else { 0 };
        if status != (8 | errors) << 28 | piece.len as u32 {
            return Err(format!("status {status:#x} of a piece of unreadable bytes, {kinds:#x}"));
        }
    }
    if world.pulses.tx_dropped != before + 1 {
        return Err(format!("{} dropped", world.pulses.tx_dropped - before));
    }
    broken.iter().for_each(|at| world.memory.set_broken(*at, None));
    stopped(world, rings, Way::Transmit, victim, kinds)?;
    Ok("unreadable")
}

/// An error in a frame that is longer than what is held back: it is cut off.
pub fn cut(world: &mut World<'_>, rings: &mut Rings, victim: usize) -> Result<&'static str, String> {
    world.interrupts.expect_failure(Way::Transmit, victim);
    let held = 256 * world.width;
    // From the shortest that is not held back as a whole on.
    let most = world.rng.pick(&[3 * world.width, 2 * held]);
    let more = world.rng.between(world.width + 1, most);
    let mut frame = vec![0; held + more];
    world.rng.fill(&mut frame);
    let user = transmit::random_user(world);
    rings.tx[victim].give(world, frame.clone(), user, 1);
    let pieces = rings.tx[victim].disown(1);
    rings.tx[victim].expected.clear();
    let (response, kind) = any_error(world);
    let at = world.rng.below(frame.len() as u64);
    let broken = pieces[0].buffer + at;
    world.memory.set_broken(broken, Some(response));
    rings.tx[victim].ring(world)?;
    let end = world.dut.cycles() + PATIENCE;
    let received = loop {
        world.step()?;
        if let Some(received) = world.sink.pop()? {
            break received;
        }
        if world.dut.cycles() > end {
            return Err("a frame that was begun never ends".to_owned());
        }
    };
    // What lies before the error is right; an AXI beat may lie on both sides of it.
    let sure = (at as usize).saturating_sub(64);
    let count = received.data.len();
    if count < sure || count > frame.len() || received.data[..sure] != frame[..sure] {
        return Err(format!("a frame that was cut off has {count} bytes"));
    }
    world.steps(4)?;
    if (world.pulses.tx_cut, world.pulses.tx_dropped) != (1, 0) {
        return Err(format!("{:?} after a frame was cut off", world.pulses));
    }
    halted(world, Way::Transmit, victim, "cut")?;
    let status = world.memory.load_word(pieces[0].descriptor + 0x1C);
    if status != (8 | kind >> 8) << 28 | frame.len() as u32 {
        return Err(format!("status {status:#x} of a frame that was cut off"));
    }
    world.memory.set_broken(broken, None);
    stopped(world, rings, Way::Transmit, victim, kind)?;
    Ok("cut off")
}

/// A descriptor cannot be read, or its status cannot be written.
pub fn bad_descriptor(
    world: &mut World<'_>,
    rings: &mut Rings,
    victim: usize,
) -> Result<&'static str, String> {
    world.interrupts.expect_failure(Way::Transmit, victim);
    let (response, kind) = any_error(world);
    lead(world, rings, victim)?;
    let mut frame = vec![0; world.rng.between(1, 400)];
    world.rng.fill(&mut frame);
    let user = transmit::random_user(world);
    rings.tx[victim].give(world, frame, user, 1);
    let last = rings.tx[victim].disown(1)[0].descriptor;
    let is_write = world.rng.chance(50);
    let word = last + 4 * world.rng.below(16);
    if is_write {
        world.memory.set_unwritable(last + 0x1C, Some(response));
    } else {
        world.memory.set_unreadable(word, Some(response));
        rings.tx[victim].expected.pop_back();
    }
    rings.tx[victim].ring(world)?;
    halted(world, Way::Transmit, victim, "descriptor")?;
    // Where only the status could not be written, the frame leaves.
    led(world, rings, victim)?;
    if world.memory.load_word(last + 0x1C) != 0 {
        return Err("a status that could not be written".to_owned());
    }
    world.memory.set_unwritable(last + 0x1C, None);
    world.memory.set_unreadable(word, None);
    let kinds = queue::DESCRIPTOR | kind;
    stopped(world, rings, Way::Transmit, victim, kinds)?;
    Ok(if is_write { "status unwritable" } else { "descriptor unreadable" })
}
