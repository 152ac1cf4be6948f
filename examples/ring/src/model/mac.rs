//! The MAC: which frames come in, and on which channel.

use super::{CHANNELS, Hardware};
use crate::registers::mac;
use linerate_wire::units::Instant;
use std::collections::HashMap;

/// A gigabit, both ways.
const GIGABIT: u32 = 1_000 << mac::SPEED_SHIFT | mac::FULL_DUPLEX;

/// Registers of the MAC, and its link.
pub struct Mac {
    registers: HashMap<u32, u32>,
    pub is_up: bool,
    has_changed: bool,
    /// When the wire is free.
    pub free_at: Instant,
    /// Frames that the filter kept out.
    pub filtered: u64,
}

impl Default for Mac {
    fn default() -> Self {
        Mac {
            registers: HashMap::new(),
            is_up: true,
            has_changed: false,
            free_at: Instant::ZERO,
            filtered: 0,
        }
    }
}

impl Mac {
    pub fn read(&self, register: u32) -> u32 {
        match register {
            mac::LINK => {
                if self.is_up {
                    GIGABIT | mac::UP
                } else {
                    0
                }
            }
            mac::LINK_INTERRUPT => {
                self.register(register) & mac::CHANGED_ENABLE | u32::from(self.has_changed)
            }
            _ => self.register(register),
        }
    }

    pub fn write(&mut self, register: u32, value: u32) {
        if register == mac::LINK_INTERRUPT {
            self.has_changed &= value & mac::CHANGED == 0;
        }
        self.registers.insert(register, value);
    }

    pub fn set_link(&mut self, is_up: bool) {
        self.has_changed |= self.is_up != is_up;
        self.is_up = is_up;
    }

    pub fn interrupts(&self) -> bool {
        self.has_changed && self.register(mac::LINK_INTERRUPT) & mac::CHANGED_ENABLE != 0
    }

    pub fn is_looped(&self) -> bool {
        self.has(mac::LOOPBACK)
    }

    pub fn verifies(&self) -> bool {
        self.has(mac::VERIFY)
    }

    /// Whether frames leave.
    pub fn passes(&self) -> bool {
        self.has(mac::ENABLE) && (self.is_up || self.is_looped())
    }

    fn has(&self, mode: u32) -> bool {
        self.register(mac::MODE) & mode != 0
    }

    fn register(&self, register: u32) -> u32 {
        self.registers.get(&register).copied().unwrap_or(0)
    }

    fn lets_in(&self, frame: &[u8]) -> bool {
        let Some(to) = frame.get(..6).and_then(|bytes| <[u8; 6]>::try_from(bytes).ok()) else { return false };
        let [a, b, c, d] = self.register(mac::ADDRESS_LOW).to_le_bytes();
        let [e, f, ..] = self.register(mac::ADDRESS_HIGH).to_le_bytes();
        if self.has(mac::PROMISCUOUS) || to == [a, b, c, d, e, f] || to == [0xFF; 6] {
            return true;
        }
        if to[0] & 1 == 0 {
            return false;
        }
        // Bit by bit, and not by the driver's function.
        let bits = (0..48).map(|at| (at, to[at / 8] >> (7 - at % 8) & 1));
        let hash = bits.fold(0, |hash, (at, bit)| hash ^ u32::from(bit) << (5 - at % 6));
        let table = if hash < 32 { mac::HASH_LOW } else { mac::HASH_HIGH };
        self.has(mac::ALL_GROUPS) || self.register(table) >> (hash % 32) & 1 != 0
    }

    /// The channel, counted from 0, that the port map has for a frame.
    fn channel(&self, frame: &[u8]) -> usize {
        let port = destination_port(frame).map(u32::from);
        let entries = (0..mac::PORTS as u32).map(|at| self.register(mac::PORT_MAP + 4 * at));
        let matches = |entry: &u32| entry & mac::PORT_VALID != 0 && Some(entry & 0xFFFF) == port;
        let number = entries.into_iter().find(matches).map_or(1, |entry| entry >> 16 & 0xFF) as usize;
        number.clamp(1, CHANNELS) - 1
    }
}

impl Hardware {
    /// A frame that has come, to the channel that it is for.
    pub(super) fn deliver(&mut self, frame: Vec<u8>) {
        if self.random.per_mille(self.faults.frame_loss) {
            return;
        }
        if self.mac.lets_in(&frame) {
            let channel = self.mac.channel(&frame);
            self.push(channel, frame);
        } else {
            self.mac.filtered += 1;
        }
    }
}

/// The port that a TCP or UDP frame without options goes to.
fn destination_port(frame: &[u8]) -> Option<u16> {
    let at = match (frame.get(12..15)?, frame.get(23)?, frame.get(20)?) {
        ([8, 0, 0x45], 6 | 17, _) => 14 + 20 + 2,
        ([0x86, 0xDD, _], _, 6 | 17) => 14 + 40 + 2,
        _ => return None,
    };
    Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]))
}
