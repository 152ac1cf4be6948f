//! Initial sequence numbers and timestamp offsets that outsiders cannot guess (RFC 6528, RFC 7323 section 5.4).

use crate::demux::FlowKey;
use crate::random::{Key, Random, purpose};
use core::hash::{Hash, Hasher};
use linerate_wire::units::Instant;

/// What a flow's numbers begin with, as far as time does not tell it. Flows tell nothing of each other, and a half nothing of the other.
#[derive(Clone, Copy)]
pub(crate) struct Secrets {
    /// F(local, remote, key) of RFC 6528 section 3, for [`IssGenerator::iss`].
    sequence: u32,
    /// What is added to the clock in the timestamps of a flow: constant per flow, so that a new incarnation's timestamps go on
    /// rising (RFC 7323 section 5.4 and 5.8).
    pub(crate) timestamp_offset: u32,
}

/// Makes initial sequence numbers.
pub(crate) struct IssGenerator {
    key: Key,
    /// What makes the numbers of one seat others than those of the next.
    seat: u32,
}

impl IssGenerator {
    /// The generator of one of the stacks that share this seed. Timestamps are the same for all; initial sequence numbers are not:
    /// a SYN that comes twice, on two queues, opens two connections at first, and what the peer acknowledges tells which of
    /// them it knows.
    pub(crate) fn new(seed: &[u8; 32], seat: u16) -> Self {
        IssGenerator {
            key: Key::derive(seed, purpose::TIMESTAMP),
            seat: Random::for_purpose(seed, purpose::ISS | u64::from(seat) << 32).next_u32(),
        }
    }

    /// Both secrets of a flow: the halves of one keyed hash.
    pub(crate) fn secrets(&self, flow: &FlowKey) -> Secrets {
        let mut hasher = self.key.hasher();
        flow.hash(&mut hasher);
        let both = hasher.finish();
        Secrets { sequence: (both >> 32) as u32, timestamp_offset: both as u32 }
    }

    /// ISN = M + F(local, remote, key), M a timer of 4 us (RFC 6528 section 3): a new incarnation of a flow starts
    /// beyond the old one's numbers.
    pub(crate) fn iss(&self, secrets: Secrets, now: Instant) -> u32 {
        let clock = (now.as_micros() / 4) as u32;
        secrets.sequence.wrapping_add(self.seat).wrapping_add(clock)
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
        let iss = |generator: &IssGenerator, port, ms| {
            generator.iss(generator.secrets(&flow(port)), Instant::from_millis(ms))
        };
        let offset = |generator: &IssGenerator, port| generator.secrets(&flow(port)).timestamp_offset;
        let first = iss(&generator, 5000, 0);
        assert_eq!(iss(&generator, 5000, 1000).wrapping_sub(first), 250_000);
        let near = iss(&generator, 5001, 0).wrapping_sub(first) as i32;
        assert!(near.unsigned_abs() > 1_000, "neighbouring ports must not get neighbouring numbers");
        assert_ne!(offset(&generator, 5000), offset(&generator, 5001));
        assert_ne!(offset(&generator, 5000), first, "one does not tell the other");
        assert_ne!(iss(&IssGenerator::new(&[4; 32], 0), 5000, 0), first);
        let neighbour = IssGenerator::new(&[3; 32], 1);
        assert_ne!(iss(&neighbour, 5000, 0), first, "another seat");
        assert_eq!(offset(&neighbour, 5000), offset(&generator, 5000));
    }
}
