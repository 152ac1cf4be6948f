//! The MAC: which frames come in, and on which channel.

use super::{CHANNELS, Hardware};
use linerate_nic::mcdma::nic_regs::register as mac;
use linerate_wire::toeplitz::Input;
use linerate_wire::units::Instant;
use std::collections::HashMap;

/// A gigabit, both ways.
const GIGABIT: u32 = 1_000 << mac::LINK_SPEED_SHIFT | mac::LINK_FULL_DUPLEX;

/// Everything that there is.
pub const ALL: u32 = mac::FEATURES_TX_CHECKSUM
    | mac::FEATURES_RX_CHECKSUM
    | mac::FEATURES_TSO
    | mac::FEATURES_LRO
    | mac::FEATURES_RSS
    | mac::FEATURES_PACER
    | mac::FEATURES_FILTER;

/// Registers of the MAC, and its link.
pub struct Mac {
    registers: HashMap<u32, u32>,
    pub is_up: bool,
    has_changed: bool,
    /// When the wire is free.
    pub free_at: Instant,
    /// Frames that the filter kept out.
    pub filtered: u64,
    /// What is built in.
    pub features: u32,
}

impl Default for Mac {
    fn default() -> Self {
        Mac {
            registers: HashMap::new(),
            is_up: true,
            has_changed: false,
            free_at: Instant::ZERO,
            filtered: 0,
            features: ALL,
        }
    }
}

impl Mac {
    pub fn read(&self, register: u32) -> u32 {
        match register {
            mac::FEATURES => self.features,
            mac::LINK => {
                if self.is_up {
                    GIGABIT | mac::LINK_UP
                } else {
                    0
                }
            }
            mac::LINK_INTERRUPT => {
                self.register(register) & mac::LINK_INTERRUPT_CHANGED_ENABLE | u32::from(self.has_changed)
            }
            _ => self.register(register),
        }
    }

    pub fn write(&mut self, register: u32, value: u32) {
        if register == mac::LINK_INTERRUPT {
            self.has_changed &= value & mac::LINK_INTERRUPT_CHANGED == 0;
        }
        self.registers.insert(register, value);
    }

    pub fn set_link(&mut self, is_up: bool) {
        self.has_changed |= self.is_up != is_up;
        self.is_up = is_up;
    }

    pub fn interrupts(&self) -> bool {
        self.has_changed && self.register(mac::LINK_INTERRUPT) & mac::LINK_INTERRUPT_CHANGED_ENABLE != 0
    }

    pub fn is_looped(&self) -> bool {
        self.has(mac::MODE_LOOPBACK)
    }

    pub fn verifies(&self) -> bool {
        self.has(mac::MODE_VERIFY)
    }

    pub fn joins(&self) -> bool {
        self.has(mac::MODE_JOIN)
    }

    /// The key of the hash.
    pub fn key(&self) -> [u8; 40] {
        let mut key = [0; 40];
        for (at, bytes) in (0u32..).zip(key.chunks_exact_mut(4)) {
            bytes.copy_from_slice(&self.register(mac::KEY + 4 * at).to_be_bytes());
        }
        key
    }

    /// Mode, threshold and timer of a queue's pacer, which counts ticks of 800 ns.
    pub fn pacing(&self, index: usize) -> (u32, u32, u32) {
        let at = mac::PACING_BASE + mac::PACING_STRIDE * index as u32;
        let word = self.register(at);
        (word >> 16 & 0b11, word & 0xFFFF, self.register(at + 4) & 0xFFFF)
    }

    /// Whether frames leave.
    pub fn passes(&self) -> bool {
        self.has(mac::MODE_ENABLE) && (self.is_up || self.is_looped())
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
        if self.has(mac::MODE_PROMISCUOUS) || to == [a, b, c, d, e, f] || to == [0xFF; 6] {
            return true;
        }
        if to[0] & 1 == 0 {
            return false;
        }
        // Bit by bit, and not by the driver's function.
        let bits = (0..48).map(|at| (at, to[at / 8] >> (7 - at % 8) & 1));
        let hash = bits.fold(0, |hash, (at, bit)| hash ^ u32::from(bit) << (5 - at % 6));
        let table = if hash < 32 { mac::HASH_LOW } else { mac::HASH_HIGH };
        self.has(mac::MODE_ALL_GROUPS) || self.register(table) >> (hash % 32) & 1 != 0
    }

    /// The channel that the map of ports, or the hash, has for a frame.
    fn channel(&self, frame: &[u8]) -> usize {
        let port = destination_port(frame).map(u32::from);
        let entries = (0..mac::PORT_MAP_COUNT as u32).map(|at| self.register(mac::PORT_MAP + 4 * at));
        let matches = |entry: &u32| entry & mac::PORT_MAP_VALID != 0 && Some(entry & 0xFFFF) == port;
        let by_port =
            entries.into_iter().find(matches).map(|entry| entry >> mac::PORT_MAP_QUEUE_SHIFT & 0xFF);
        let channel = by_port.unwrap_or_else(|| {
            let low = hash(frame, &self.key()).map_or(0, |(hash, _)| hash & 0x7F);
            self.register(mac::INDIRECTION + 4 * (low / 8)) >> (4 * (low % 8)) & 0xF
        });
        (channel as usize).min(CHANNELS - 1)
    }
}

/// The hash of a frame and what it was taken over, for TCP and UDP without options.
pub fn hash(frame: &[u8], key: &[u8; 40]) -> Option<(u32, u32)> {
    let word = |at: usize| frame.get(at..at + 2).map(|two| u16::from_be_bytes([two[0], two[1]]));
    let (input, kind) = match (frame.get(12..15)?, frame.get(23)?, frame.get(20)?) {
        ([8, 0, 0x45], protocol @ (6 | 17), _) => {
            let at = |at: usize| <[u8; 4]>::try_from(&frame[at..at + 4]).expect("four bytes").into();
            (Input::ipv4_ports(at(26), at(30), word(34)?, word(36)?), if *protocol == 6 { 2 } else { 3 })
        }
        ([0x86, 0xDD, _], _, protocol @ (6 | 17)) if frame.len() >= 58 => {
            let at = |at: usize| <[u8; 16]>::try_from(&frame[at..at + 16]).expect("sixteen bytes").into();
            (Input::ipv6_ports(at(22), at(38), word(54)?, word(56)?), if *protocol == 6 { 5 } else { 6 })
        }
        _ => return None,
    };
    Some((input.hash(key), kind))
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
