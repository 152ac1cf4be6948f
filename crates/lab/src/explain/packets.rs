//! The newest packets of one direction, by which a duplicate is told: a packet that comes a second time was sent once. What is sent
//! again is another packet, with a number of its own (RFC 6864).

use super::segment::Segment;
use std::collections::VecDeque;

/// Packets among which a duplicate is looked for: it comes at once, or is overtaken by a few.
const KEPT: usize = 32;

/// Sequence number, bytes of payload, identification and clock of each.
#[derive(Clone, Default, Debug)]
pub struct Packets(VecDeque<(u32, u32, u16, Option<u32>)>);

impl Packets {
    /// Whether the very packet has passed shortly before; one whose bytes are new has not. Where packets have no numbers (IPv6, or hosts
    /// that leave them zero), nothing tells.
    pub fn has_passed(&mut self, segment: &Segment, is_old: bool) -> bool {
        let Some(identification) = segment.identification.filter(|own| *own != 0 && segment.len > 1) else {
            return false;
        };
        let clock = segment.options.timestamps.map(|stamps| stamps.value);
        let packet = (segment.seq, segment.len, identification, clock);
        if is_old && self.0.contains(&packet) {
            return true;
        }
        if self.0.len() >= KEPT {
            self.0.pop_front();
        }
        self.0.push_back(packet);
        false
    }
}
