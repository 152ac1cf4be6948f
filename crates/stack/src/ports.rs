//! Ephemeral ports (RFC 6056): of listeners and UDP sockets any random one, of connections the next one towards that peer.

use crate::demux::FlowKey;
use crate::random::{Key, Random, purpose};
use core::hash::{Hash, Hasher};
use core::net::{IpAddr, SocketAddr};
use core::ops::RangeInclusive;

/// The range that ephemeral ports come from (RFC 6335 section 6).
pub(crate) const EPHEMERAL: RangeInclusive<u16> = 49_152..=65_535;
/// How many they are.
const COUNT: u16 = *EPHEMERAL.end() - *EPHEMERAL.start() + 1;
/// Counters of [`Sequences`], a power of two.
const COUNTERS: usize = 16;

/// The first of the ports from `start` on, in a circle, for which `is_free` holds, and how many come before it.
fn first_free(start: u32, mut is_free: impl FnMut(u16) -> bool) -> Option<(u16, u16)> {
    let start = (start % u32::from(COUNT)) as u16;
    // The sum of two below 16,384 fits.
    (0..COUNT).map(|step| (EPHEMERAL.start() + (start + step) % COUNT, step)).find(|&(port, _)| is_free(port))
}

/// A random port of [`EPHEMERAL`] for which `is_free` holds (RFC 6056 section 3.3.1, algorithm 1): a random start, then the
/// ports after it. `None` when none is free.
pub(crate) fn ephemeral(random: &mut Random, is_free: impl FnMut(u16) -> bool) -> Option<u16> {
    first_free(random.next_u32(), is_free).map(|(port, _)| port)
}

/// Ports of connections, one after the other for each pair of an address and a peer, each pair from a place that outsiders cannot
/// guess (RFC 6056 section 3.3.4, algorithm 4).
///
/// A port that was drawn at random could be the one that was closed a moment ago. The peer, in TIME-WAIT, takes no SYN
/// whose timestamp and sequence number are not beyond those of the old connection (RFC 6191), and the new one would wait a
/// second for its timer.
pub(crate) struct Sequences {
    key: Key,
    counters: [u16; COUNTERS],
}

impl Sequences {
    /// Those of one of the stacks that share `seed`.
    pub(crate) fn new(seed: &[u8; 32], seat: u16) -> Sequences {
        let key = Key::derive(seed, purpose::PORTS | u64::from(seat) << 32);
        let counter = |at: usize| {
            let mut hasher = key.hasher();
            hasher.write_u64(at as u64);
            (hasher.finish() % u64::from(COUNT)) as u16
        };
        Sequences { key, counters: core::array::from_fn(counter) }
    }

    /// The next port from `local` towards `remote` for which `is_free` holds; `None` when none is free.
    pub(crate) fn choose(
        &mut self,
        local: IpAddr,
        remote: SocketAddr,
        is_free: impl FnMut(u16) -> bool,
    ) -> Option<u16> {
        let mut hasher = self.key.hasher();
        FlowKey::new(local, 0, remote.ip(), remote.port()).hash(&mut hasher);
        let hash = hasher.finish();
        // Start and counter come of bits that have nothing to do with each other.
        let (start, at) = (hash as u32 % u32::from(COUNT), (hash >> 32) as usize % COUNTERS);
        let counter = &mut self.counters[at];
        let (port, step) = first_free(start + u32::from(*counter), is_free)?;
        *counter = (*counter + step + 1) % COUNT;
        Some(port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;

    fn sequences() -> Sequences {
        Sequences::new(&[9; 32], 0)
    }

    fn ends(last: u8) -> (IpAddr, SocketAddr) {
        (IpAddr::from([10, 0, 0, 1]), SocketAddr::from(([10, 0, 0, last], 80)))
    }

    #[test]
    fn ports_are_random_and_every_free_one_is_found() {
        let mut random = Random::new(&[9; 32]);
        let first: BTreeSet<u16> = (0..100).filter_map(|_| ephemeral(&mut random, |_| true)).collect();
        assert!(first.len() > 90, "100 draws out of 16,384 rarely repeat");
        assert!(first.iter().all(|port| EPHEMERAL.contains(port)));
        assert_eq!(ephemeral(&mut random, |port| port == 65_535), Some(65_535));
        assert_eq!(ephemeral(&mut random, |port| port == 49_152), Some(49_152));
        assert_eq!(ephemeral(&mut random, |_| false), None);
    }

    #[test]
    fn a_port_towards_a_peer_comes_again_after_all_others() {
        let mut sequences = sequences();
        let (local, remote) = ends(2);
        let mut round =
            || -> Vec<u16> { (0..COUNT).filter_map(|_| sequences.choose(local, remote, |_| true)).collect() };
        let first = round();
        assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), usize::from(COUNT));
        assert_eq!(round(), first);
    }

    #[test]
    fn ports_that_are_taken_are_passed_over() {
        let mut sequences = sequences();
        let (local, remote) = ends(2);
        let of_seat = |port: u16| port % 4 == 3;
        let count = usize::from(COUNT) / 4;
        let chosen: BTreeSet<u16> =
            (0..count).filter_map(|_| sequences.choose(local, remote, of_seat)).collect();
        assert_eq!(chosen.len(), count);
        assert!(chosen.iter().all(|&port| of_seat(port)));
        assert_eq!(sequences.choose(local, remote, |port| port == 65_535), Some(65_535));
        assert_eq!(sequences.choose(local, remote, |port| port == 49_152), Some(49_152));
        assert_eq!(sequences.choose(local, remote, |_| false), None);
    }

    #[test]
    fn one_peer_learns_nothing_of_the_ports_towards_another() {
        let mut sequences = sequences();
        let mut first = |last| {
            let (local, remote) = ends(last);
            sequences.choose(local, remote, |_| true).unwrap_or_default()
        };
        let starts: BTreeSet<u16> = (2..=101).map(&mut first).collect();
        assert!(starts.len() > 90, "100 places out of 16,384 rarely repeat");
        let near = (2..=100).filter(|&last| first(last).abs_diff(first(last + 1)) < 164).count();
        assert!(near < 10, "{near} of 99 lie within a hundredth of the range of the next");
    }
}
