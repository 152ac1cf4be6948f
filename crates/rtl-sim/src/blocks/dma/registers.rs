//! The register file of an engine at rest: every address, every bit, partial writes, resets; and what it sets at the ports.

use super::world::{Manner, Way, World, queue};
use crate::{Dut, Port};
use std::collections::BTreeMap;

/// Accesses of a round.
const ACCESSES: u64 = 300;

const SG_CACHE: u32 = 0x4B0;
const INFO: u32 = 0x4F0;
const PATIENCE: u32 = 0x524;
const TX_CACHE: u32 = 0x024;
const RX_CACHE: u32 = 0x51C;

/// Outputs that never change, and what they are.
const CONSTANT: &[(&str, u64)] = &[
    ("m_axi_awid", 0),
    ("m_axi_arid", 0),
    ("m_axi_sg_awid", 0),
    ("m_axi_sg_arid", 0),
    ("m_axi_awprot", 2),
    ("m_axi_arprot", 2),
    ("m_axi_sg_awprot", 2),
    ("m_axi_sg_arprot", 2),
];

/// What is expected of each register that is not 0, and which bits of it are kept.
struct File {
    values: BTreeMap<u32, u32>,
    masks: BTreeMap<u32, u32>,
    queues: u32,
}

impl File {
    fn new(queues: u32, address_bits: u32, width: u32) -> Self {
        let high = (u64::MAX >> (96 - address_bits)) as u32;
        let mut masks = BTreeMap::from([
            (0x008, 0xFF),
            (0x508, 0xFF),
            (TX_CACHE, 0xF),
            (RX_CACHE, 0xF),
            (SG_CACHE, 0x000F_000F),
            (PATIENCE, 0x1_FFFF),
        ]);
        for index in 0..queues as usize {
            for (way, control) in [(Way::Transmit, 0xFFFF_00E1), (Way::Receive, 0xFFFF_00F1)] {
                let base = way.queue(index);
                masks.insert(base + queue::CONTROL, control);
                for address in [queue::CURRENT, queue::TAIL] {
                    masks.insert(base + address, !0x3F);
                    masks.insert(base + address + 4, high);
                }
            }
        }
        let info = 8 << 24 | address_bits << 16 | width << 8 | queues;
        let mut file = File { values: BTreeMap::from([(INFO, info), (SG_CACHE, 0x3_0003)]), masks, queues };
        file.reset(Way::Transmit);
        file.reset(Way::Receive);
        file
    }

    fn get(&self, address: u32) -> u32 {
        self.values.get(&address).copied().unwrap_or(0)
    }

    fn set(&mut self, address: u32, value: u32) {
        if let Some(mask) = self.masks.get(&address) {
            self.values.insert(address, value & mask);
        }
    }

    /// The registers of a direction as they are after power on, but for its addresses, which stay.
    fn reset(&mut self, way: Way) {
        let base = way.base();
        self.values.insert(base + 4, 1);
        self.values.insert(base + 8, 0);
        self.values.insert(if way == Way::Transmit { TX_CACHE } else { RX_CACHE }, 3);
        if way == Way::Receive {
            self.values.insert(PATIENCE, 0);
        }
        for index in 0..self.queues as usize {
            self.reset_queue(way, index);
        }
    }

    fn reset_queue(&mut self, way: Way, index: usize) {
        self.values.insert(way.queue(index) + queue::CONTROL, 1 << 16);
        self.values.insert(way.queue(index) + queue::STATUS, queue::HALTED);
    }
}

/// Attributes of the bursts at the ports.
struct Caches([(Port, u32, u32); 4]);

impl Caches {
    fn of(dut: &Dut) -> Result<Self, String> {
        Ok(Caches([
            (dut.port("m_axi_arcache")?, TX_CACHE, 0),
            (dut.port("m_axi_awcache")?, RX_CACHE, 0),
            (dut.port("m_axi_sg_arcache")?, SG_CACHE, 0),
            (dut.port("m_axi_sg_awcache")?, SG_CACHE, 16),
        ]))
    }

    fn check(&self, dut: &Dut, file: &File) -> Result<(), String> {
        for (port, address, shift) in self.0 {
            let (seen, expected) = (dut.get(port), u64::from(file.get(address) >> shift & 0xF));
            if seen != expected {
                return Err(format!(
                    "attributes {seen:#x} at a port instead of {expected:#x} of {address:#x}"
                ));
            }
        }
        Ok(())
    }
}

pub fn run(dut: &mut Dut, manner: Manner, seed: u64) -> Result<(), String> {
    let mut world = World::new(dut, Manner { paces: 0, ..manner }, seed)?;
    let address_bits = world.dut.bits(world.dut.port("m_axi_araddr")?);
    let mut file = File::new(world.queues as u32, address_bits, world.width as u32);
    let caches = Caches::of(world.dut)?;
    let places: Vec<u32> = file.masks.keys().copied().collect();
    // As after power on.
    caches.check(world.dut, &file)?;
    for address in file.masks.keys().chain(file.values.keys()) {
        expect(*address, world.read(*address)?, file.get(*address))?;
    }
    for _ in 0..ACCESSES {
        let place = world.rng.pick(&places);
        let value =
            if world.rng.chance(20) { world.rng.pick(&[0, u32::MAX]) } else { world.rng.bits() as u32 };
        // No reset, unless one is meant.
        let value = if place & 0x3F == 0 { value & !queue::RESET } else { value };
        match world.rng.below(20) {
            0..=8 => {
                world.write(place, value)?;
                file.set(place, value);
                if world.rng.chance(50) {
                    expect(place, world.read(place)?, file.get(place))?;
                }
            }
            9 => {
                let strobe = world.rng.below(15);
                world.write_bytes(place, value, strobe)?;
            }
            10 => {
                let seen = world.write_and_read(place, value, place)?;
                file.set(place, value);
                expect(place, seen, file.get(place))?;
            }
            11 => {
                // Where there is no register, or one that is only read.
                let address = 4 * world.rng.below(1_024) as u32;
                if !file.masks.contains_key(&address) && address != 0 && address != 0x500 {
                    world.write(address, value)?;
                }
            }
            12 if world.rng.chance(20) => reset(&mut world, &mut file)?,
            13..=15 => {
                let seen = world.read(place)?;
                expect(place, seen, file.get(place))?;
            }
            _ => {
                let address = 4 * world.rng.below(1_024) as u32;
                let seen = world.read(address)?;
                expect(address, seen, file.get(address))?;
            }
        }
        if world.rng.chance(20) {
            caches.check(world.dut, &file)?;
        }
    }
    for (name, value) in CONSTANT {
        let port = world.dut.port(name)?;
        if world.dut.get(port) != *value {
            return Err(format!("{name} is {}", world.dut.get(port)));
        }
    }
    while_running(&mut world, &mut file)
}

fn expect(address: u32, seen: u32, expected: u32) -> Result<(), String> {
    if seen == expected {
        return Ok(());
    }
    Err(format!("the register at {address:#x} reads {seen:#x} instead of {expected:#x}"))
}

fn reset(world: &mut World<'_>, file: &mut File) -> Result<(), String> {
    let way = world.rng.pick(&[Way::Transmit, Way::Receive]);
    if world.rng.chance(50) {
        world.reset_all(way)?;
        file.reset(way);
    } else {
        let index = world.rng.below(world.queues as u64) as usize;
        world.reset(way, index)?;
        file.reset_queue(way, index);
    }
    Ok(())
}

/// The registers of a queue that runs, and those of a direction of which one queue does.
fn while_running(world: &mut World<'_>, file: &mut File) -> Result<(), String> {
    for way in [Way::Transmit, Way::Receive] {
        world.reset_all(way)?;
        file.reset(way);
        let index = world.rng.below(world.queues as u64) as usize;
        let (base, common) = (way.queue(index), way.base());
        // RS of the direction, the queue's bit of CHEN and RS of the queue, in any order.
        let mut parts = [(common, 1), (common + 8, 1 << index), (base + queue::CONTROL, 0x0001_0001)];
        let first = world.rng.below(3) as usize;
        parts.swap(0, first);
        for (address, value) in parts {
            expect(common + 4, world.read(common + 4)?, 1)?;
            expect(base + queue::STATUS, world.read(base + queue::STATUS)?, queue::HALTED)?;
            world.write(address, value)?;
            expect(address, world.read(address)?, value)?;
        }
        world.steps(4)?;
        expect(common + 4, world.read(common + 4)?, 2)?;
        expect(base + queue::STATUS, world.read(base + queue::STATUS)?, queue::IDLE)?;
        // Where it is, is its own now.
        let value = world.rng.bits() as u32;
        for offset in [queue::CURRENT, queue::CURRENT + 4] {
            world.write(base + offset, value)?;
            expect(base + offset, world.read(base + offset)?, file.get(base + offset))?;
        }
        // Only its high half: the low half is the doorbell.
        world.write(base + queue::TAIL + 4, value)?;
        file.set(base + queue::TAIL + 4, value);
        for other in 0..world.queues {
            for offset in [queue::CURRENT, queue::CURRENT + 4, queue::TAIL, queue::TAIL + 4] {
                let address = way.queue(other) + offset;
                expect(address, world.read(address)?, file.get(address))?;
            }
        }
    }
    Ok(())
}
