//! Initial sequence numbers and timestamp offsets that outsiders cannot guess (RFC 6528, RFC 7323 section 5.4).

use crate::demux::FlowKey;
use crate::random::{Key, purpose};
use core::hash::{Hash, Hasher};
use linerate_wire::units::Instant;

/// Makes initial sequence numbers.
pub(crate) struct IssGenerator {
    sequence: Key,
    timestamp: Key,
}

impl IssGenerator {
    /// The generator of one of the stacks that share this seed. Timestamps are the same for all; initial sequence numbers are not:
    /// a SYN that comes twice, on two queues, opens two connections at first, and what the peer acknowledges tells which of
    /// them it knows.
    pub(crate) fn new(seed: &[u8; 32], seat: u16) -> Self {
        IssGenerator {
            sequence: Key::derive(seed, purpose::ISS | u64::from(seat) << 32),
            timestamp: Key::derive(seed, purpose::TIMESTAMP),
        }
    }

    /// ISN = M + F(local, remote, key), M a timer of 4 us (RFC 6528 section 3): a new incarnation of a flow starts
    /// beyond the old one's numbers, and flows tell nothing of each other.
    pub(crate) fn iss(&self, flow: &FlowKey, now: Instant) -> u32 {
        let mut hasher = self.sequence.hasher();
        flow.hash(&mut hasher);
        (hasher.finish() as u32).wrapping_add((now.as_micros() / 4) as u32)
    }

    /// What is added to the clock in the timestamps of a flow: constant per flow, so that a new incarnation's
    /// timestamps go on rising (RFC 7323 section 5.4 and 5.8).
    pub(crate) fn timestamp_offset(&self, flow: &FlowKey) -> u32 {
        let mut hasher = self.timestamp.hasher();
        flow.hash(&mut hasher);
        hasher.finish() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{IpAddr, Ipv4Addr};

    fn flow(port: u16) -> FlowKey {
        let address = |last| IpAddr::V4(Ipv4Addr::new(192, 168, 1, last));
        FlowKey::new(address(4), 80, address(1), port)
    }

    #[test]
    fn numbers_of_a_flow_rise_with_time_and_flows_are_unrelated() {
        let generator = IssGenerator::new(&[3; 32], 0);
        let at = |ms| generator.iss(&flow(5000), Instant::from_millis(ms));
        assert_eq!(at(1000).wrapping_sub(at(0)), 250_000);
        let near = generator.iss(&flow(5001), Instant::ZERO).wrapping_sub(at(0)) as i32;
        assert!(near.unsigned_abs() > 1_000, "neighbouring ports must not get neighbouring numbers");
        assert_ne!(generator.timestamp_offset(&flow(5000)), generator.timestamp_offset(&flow(5001)));
        let other = IssGenerator::new(&[4; 32], 0);
        assert_ne!(other.iss(&flow(5000), Instant::ZERO), at(0));
        let neighbour = IssGenerator::new(&[3; 32], 1);
        assert_ne!(neighbour.iss(&flow(5000), Instant::ZERO), at(0), "another seat");
        assert_eq!(neighbour.timestamp_offset(&flow(5000)), generator.timestamp_offset(&flow(5000)));
    }
}
