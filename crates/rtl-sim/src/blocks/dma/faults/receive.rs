//! What goes wrong in a receive queue.

use super::super::receive::{self, Buffer, COMPLETE, FIRST, LAST};
use super::super::traffic::Rings;
use super::super::world::{Way, World, queue};
use super::{PATIENCE, any_error, beyond, halted, restart, stopped};

/// Good buffers behind one that cannot be used.
fn spare(world: &mut World<'_>, rings: &mut Rings, victim: usize) -> Vec<Buffer> {
    let mut buffers = Vec::new();
    while buffers.len() < 2 && rings.rx[victim].room() > 0 {
        rings.rx[victim].give(world, 2_048);
        buffers.extend(rings.rx[victim].disown());
    }
    buffers
}

/// The length of a frame that meets a descriptor that cannot be used: often so short that the next one is here while the queue stops.
fn short_or_not(world: &mut World<'_>) -> usize {
    let most = world.rng.pick(&[16, 16, 700]);
    world.rng.between(14, most)
}

/// Frames right behind one that met such a descriptor: how many. All of them are dropped.
fn follow(world: &mut World<'_>, rings: &mut Rings, victim: usize) -> u64 {
    let count = 1 + world.rng.below(2);
    for _ in 0..count {
        rings.offer(world, victim, 14);
        rings.rx[victim].expected.pop_back();
    }
    count
}

/// Often the descriptors are there before the frames.
fn ring_ahead(world: &mut World<'_>, rings: &Rings, victim: usize) -> Result<(), String> {
    rings.rx[victim].ring(world)?;
    let clocks = world.rng.pick(&[0, 600, 600]);
    world.steps(clocks)
}

/// They have been, and good buffers were not used.
fn all_dropped(world: &mut World<'_>, victim: usize, drops: u64, spare: &[Buffer]) -> Result<(), String> {
    let end = world.dut.cycles() + PATIENCE;
    while world.source.waiting() > 0 && world.dut.cycles() < end {
        world.step()?;
    }
    world.steps(20)?;
    let used = spare.iter().filter(|buffer| world.memory.load_word(buffer.descriptor + 0x18) != 0).count();
    if world.pulses.rx_drops[victim] != drops || used > 0 {
        return Err(format!("{used} buffers used by a queue that has failed; {:?}", world.pulses));
    }
    Ok(())
}

/// In each queue, as each has its own part of what stops them.
pub fn nonsense(world: &mut World<'_>, rings: &mut Rings, victim: usize) -> Result<&'static str, String> {
    for other in 1..world.queues {
        no_sense(world, rings, (victim + other) % world.queues)?;
    }
    no_sense(world, rings, victim)
}

/// A descriptor that makes no sense, behind some that do.
fn no_sense(world: &mut World<'_>, rings: &mut Rings, victim: usize) -> Result<&'static str, String> {
    restart(world, rings, Way::Receive, victim)?;
    world.interrupts.expect_failure(Way::Receive, victim);
    let beyond = beyond(world)?;
    let kinds = ["misaligned", "too short", "complete already", "buffer beyond memory", "link beyond memory"];
    let kind = kinds[world.rng.below(if beyond == 0 { 3 } else { 5 }) as usize];
    let (mut drops, mut before) = (world.pulses.rx_drops[victim], 0);
    // So many good ones in front, for a part of the frame.
    if rings.rx[victim].room() > 2 {
        for _ in 0..world.rng.below(3) {
            let len = 64 * world.rng.between(1, 3);
            rings.rx[victim].give(world, len);
            before += len;
        }
    }
    let ring = &mut rings.rx[victim];
    let mut buffer = ring.buffer(world, 2_112);
    let mut len = 2_048;
    match kind {
        "misaligned" => {
            buffer += world.rng.pick(&[1, 2, 4, 8, 16, 32, 63]);
            len = world.rng.pick(&[64, 2_048]);
        }
        "too short" => len = world.rng.pick(&[0, 1, 32, 63]),
        "buffer beyond memory" => buffer |= beyond,
        _ => {}
    }
    ring.put(world, buffer, len, 0);
    let Some(last) = ring.disown() else { return Err("a descriptor that was just put".to_owned()) };
    match kind {
        "complete already" => world.memory.store_word(last.descriptor + 0x18, COMPLETE),
        "link beyond memory" => {
            // Its lower bits lead nowhere either.
            let link = world.rng.bits() >> 24 | beyond;
            world.memory.store(last.descriptor, &link.to_le_bytes());
        }
        _ => {}
    }
    let spare = spare(world, rings, victim);
    ring_ahead(world, rings, victim)?;
    let len = before + short_or_not(world);
    rings.offer(world, victim, len);
    drops += 1 + follow(world, rings, victim);
    halted(world, Way::Receive, victim, kind)?;
    all_dropped(world, victim, drops, &spare)?;
    let status = world.memory.load_word(last.descriptor + 0x18);
    let first = if before == 0 { FIRST } else { 0 };
    let (expected, kinds) = match kind {
        "complete already" => (COMPLETE, queue::DESCRIPTOR | queue::INTERNAL),
        "link beyond memory" => (0, queue::DESCRIPTOR | queue::DECODE),
        _ => (COMPLETE | 1 << 28 | first, queue::INTERNAL),
    };
    if status != expected {
        return Err(format!("{kind}: status {status:#x}"));
    }
    rings.poll(world)?;
    rings.rx[victim].give_up()?;
    rings.rx[victim].expected.clear();
    if rings.rx[victim].outstanding() > 0 {
        return Err(format!("{kind}: a descriptor before it has no status"));
    }
    stopped(world, rings, Way::Receive, victim, kinds)?;
    Ok(kind)
}

/// Bytes of a buffer cannot be written, for a frame in one buffer or several.
pub fn unwritable(world: &mut World<'_>, rings: &mut Rings, victim: usize) -> Result<&'static str, String> {
    restart(world, rings, Way::Receive, victim)?;
    world.interrupts.expect_failure(Way::Receive, victim);
    let len = world.rng.between(200, 1_000);
    let mut given = Vec::new();
    let most = rings.rx[victim].room().min(3);
    let (count, mut rest) = (world.rng.between(1, most), len);
    for at in 0..count {
        let room = if at + 1 == count { 2_048 } else { 64 * world.rng.between(1, 2.min(rest / 65)) };
        rings.rx[victim].give(world, room);
        given.extend(rings.rx[victim].disown().map(|buffer| (buffer, rest.min(room))));
        rest -= rest.min(room);
    }
    let bad = world.rng.below(given.len() as u64) as usize;
    let mut broken = Vec::new();
    let mut kinds = 0;
    for _ in 0..world.rng.between(1, 2) {
        let (response, kind) = any_error(world);
        let at = given[bad].0.address + world.rng.below(given[bad].1 as u64);
        // Two in one burst make one answer.
        let burst = 16 * world.width as u64;
        if broken.iter().any(|other: &u64| other / burst == at / burst) {
            continue;
        }
        world.memory.set_broken(at, Some(response));
        broken.push(at);
        kinds |= kind;
    }
    rings.rx[victim].ring(world)?;
    rings.offer(world, victim, len);
    halted(world, Way::Receive, victim, "unwritable")?;
    for (at, (buffer, len)) in given.iter().enumerate() {
        let status = world.memory.load_word(buffer.descriptor + 0x18);
        let errors = if at == bad { kinds >> 8 } else { 0 };
        let first = if at == 0 { FIRST } else { 0 };
        let last = if at + 1 == given.len() { LAST } else { 0 };
        if status != (8 | errors) << 28 | first | last | *len as u32 {
            return Err(format!("status {status:#x} of a buffer that cannot be written, {kinds:#x}"));
        }
    }
    broken.iter().for_each(|at| world.memory.set_broken(*at, None));
    rings.rx[victim].expected.clear();
    stopped(world, rings, Way::Receive, victim, kinds)?;
    Ok("unwritable")
}

/// A descriptor cannot be read, or its status or app words cannot be written.
pub fn bad_descriptor(
    world: &mut World<'_>,
    rings: &mut Rings,
    victim: usize,
) -> Result<&'static str, String> {
    restart(world, rings, Way::Receive, victim)?;
    world.interrupts.expect_failure(Way::Receive, victim);
    let (response, kind) = any_error(world);
    rings.rx[victim].give(world, 2_048);
    let Some(last) = rings.rx[victim].disown() else { return Err("no buffer".to_owned()) };
    let is_write = world.rng.chance(60);
    let word = last.descriptor + 4 * if is_write { 6 + world.rng.below(7) } else { world.rng.below(8) };
    if is_write {
        world.memory.set_unwritable(word, Some(response));
    } else {
        world.memory.set_unreadable(word, Some(response));
    }
    // What cannot be written is seen late: frames behind may have been placed by then.
    let mut behind = if is_write { Vec::new() } else { spare(world, rings, victim) };
    ring_ahead(world, rings, victim)?;
    if !behind.is_empty() && rings.rx[victim].room() > 0 {
        // Nobody knows where a descriptor leads that could not be read, whatever the doorbell says.
        behind.extend(spare(world, rings, victim));
        rings.rx[victim].ring(world)?;
        world.steps(300)?;
    }
    let len = short_or_not(world);
    rings.offer(world, victim, len);
    let user = rings.rx[victim].expected.pop_back().map(|(_, user)| receive::app_words(user));
    let drops = if is_write { 0 } else { 1 + follow(world, rings, victim) };
    halted(world, Way::Receive, victim, "descriptor")?;
    all_dropped(world, victim, drops + rings.rx[victim].missing, &behind)?;
    let status = world.memory.load_word(last.descriptor + 0x18);
    // A write of which a word fails is not done at all here; the status says nothing of app words.
    let expected = if word >= last.descriptor + 0x20 { COMPLETE | FIRST | LAST | len as u32 } else { 0 };
    let expected = if is_write { expected } else { 0 };
    let has_app = user == Some(receive::app_of(world, last.descriptor));
    if status != expected || has_app != (is_write && word < last.descriptor + 0x20) {
        return Err(format!("status {status:#x} instead of {expected:#x}, app words {has_app}"));
    }
    world.memory.set_unwritable(word, None);
    world.memory.set_unreadable(word, None);
    stopped(world, rings, Way::Receive, victim, queue::DESCRIPTOR | kind)?;
    Ok(if is_write { "receive status unwritable" } else { "receive descriptor unreadable" })
}

/// A queue without descriptors holds up the others for as long as it is told, and no longer.
pub fn patience(world: &mut World<'_>, rings: &mut Rings, victim: usize) -> Result<&'static str, String> {
    restart(world, rings, Way::Receive, victim)?;
    let other = (victim + 1) % world.queues;
    if world.queues > 1 && rings.refill(world, other) {
        rings.rx[other].ring(world)?;
    }
    let is_forever = world.rng.chance(20);
    let most = world.rng.pick(&[8, 8, 64, 256]);
    let units = world.rng.below(most);
    world.write(0x524, units as u32 | u32::from(is_forever) << 16)?;
    let drops = world.pulses.rx_drops[victim];
    // So short that it is taken as a whole before it is placed.
    rings.offer(world, victim, 14);
    while world.source.waiting() > 0 && world.pulses.rx_drops[victim] == drops {
        world.step()?;
    }
    let from = world.dut.cycles();
    if is_forever {
        world.steps(64 * (units + 3))?;
        if world.pulses.rx_drops[victim] != drops {
            return Err("a frame that waits for ever was dropped".to_owned());
        }
        rings.rx[victim].give(world, 2_048);
        rings.rx[victim].ring(world)?;
    } else {
        while world.pulses.rx_drops[victim] == drops && world.dut.cycles() < from + 64 * (units + 3) {
            world.step()?;
        }
        let waited = world.dut.cycles() - from;
        // The clock of 64 runs on its own. At 32 bits the frame's end is taken only when it is dropped.
        let is_soon = world.width >= 8 && waited + 4 < 64 * units.saturating_sub(1);
        if world.pulses.rx_drops[victim] == drops || is_soon || waited > 64 * units + 12 {
            return Err(format!("a frame waited {waited} clocks, with {units} times 64 allowed"));
        }
        rings.rx[victim].write_off();
    }
    world.write(0x524, 1 << 16)?;
    Ok("patience")
}
