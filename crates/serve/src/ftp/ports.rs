//! Which passive ports a server takes, where several of them share a range.

use core::ops::RangeInclusive;

/// The part of a range of ports that one of several servers has, so that no two take the same: those that are `index` modulo
/// `servers`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortShare {
    /// Below `servers`.
    pub index: u16,
    /// At least 1.
    pub servers: u16,
}

impl PortShare {
    /// All ports.
    pub const ALL: PortShare = PortShare { index: 0, servers: 1 };

    /// The first port of this share in `ports`, and how many there are; `None` if there are none. The others follow at steps of
    /// `servers`.
    pub fn of(self, ports: &RangeInclusive<u16>) -> Option<(u16, u16)> {
        let servers = self.servers.max(1);
        let behind = (self.index % servers + servers - ports.start() % servers) % servers;
        let first = ports.start().checked_add(behind)?;
        let room = ports.end().checked_sub(first)?;
        // With one server and all ports there would be one too many for the type; port 0 is none to listen on.
        Some((first, (room / servers).saturating_add(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_disjoint_and_leave_nothing_out() {
        for (ports, servers) in
            [(49_152..=65_535, 4), (40_000..=40_001, 3), (5_000..=5_009, 3), (1..=65_535, 1)]
        {
            let mut taken = alloc::vec::Vec::new();
            for index in 0..servers {
                let Some((first, count)) = (PortShare { index, servers }).of(&ports) else { continue };
                let ports = (0..count).map(|number| first + number * servers);
                assert!(ports.clone().all(|port| port % servers == index), "{index} of {servers}");
                taken.extend(ports);
            }
            taken.sort_unstable();
            assert!(taken.iter().copied().eq(ports.clone()), "{ports:?} among {servers}");
        }
        assert_eq!(PortShare { index: 2, servers: 3 }.of(&(40_000..=40_000)), None);
        assert_eq!(PortShare { index: 1, servers: 4 }.of(&(65_535..=65_535)), None, "nothing overflows");
        assert_eq!(PortShare { index: 0, servers: 0 }.of(&(7..=8)), Some((7, 2)), "brought into range");
    }
}
