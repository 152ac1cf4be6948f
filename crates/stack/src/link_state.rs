//! What the link's state means for us, and which groups we listen to on it.

use crate::stack::Stack;
use alloc::vec::Vec;
use core::net::IpAddr;
use linerate_nic::MacAddr;
use linerate_wire::ipv6::{self, solicited_node};
use linerate_wire::units::Instant;

impl Stack {
    /// The link went up or down.
    ///
    /// After an interruption we may be plugged in elsewhere: addresses are probed and announced from the beginning, and used
    /// meanwhile if they were in use (RFC 5227 section 2.1, RFC 4862 section 5.4); routers are asked for; a lease is confirmed
    /// with whatever server answers (INIT-REBOOT, RFC 2131 section 3.2).
    /// Connections whose retransmissions had become rare send again at once: the next one might come after the user timeout.
    pub fn handle_link(&mut self, now: Instant, is_up: bool) {
        self.set_now(now);
        self.net.counters.link_changes += 1;
        if !is_up {
            log::warn!("the link is down");
            return;
        }
        log::info!("the link is up");
        self.net.addresses.start_over(now);
        if !self.team.seat.is_member() {
            // If another station had it before, we may be elsewhere now.
            self.net.add_link_local();
        }
        let usable: Vec<IpAddr> = self.net.addresses.usable().collect();
        for ip in usable {
            if let IpAddr::V6(ip) = ip {
                self.join_group(solicited_node(ip));
            }
        }
        self.slaac.start(now);
        if let Some(dhcp) = &mut self.dhcp {
            dhcp.confirm(now);
        }
        self.arm_autoconfiguration();
        self.tell_of_return();
        self.retransmit_all_soon();
    }

    /// The link is back, be it said by the device or by the stack that watches it.
    pub(crate) fn retransmit_all_soon(&mut self) {
        for slot in 0..self.net.config.max_connections as u32 {
            self.retransmit_soon(slot);
        }
    }

    /// A number that changes with [`Stack::groups`].
    pub fn groups_version(&self) -> u32 {
        self.net.addresses.version()
    }

    /// The groups that a device's filter must let through: all IPv6 nodes, and the solicited-node groups of our addresses
    /// (also of those that are still being probed).
    pub fn groups(&self) -> Vec<MacAddr> {
        let mut groups: Vec<MacAddr> = Vec::new();
        for own in self.net.addresses.iter() {
            if let IpAddr::V6(ip) = own.cidr.address() {
                for group in [ipv6::ALL_NODES, solicited_node(ip)].map(MacAddr::ipv6_multicast) {
                    // There are few: the library's sort is five KiB of code.
                    if let Err(at) = groups.binary_search_by_key(&group.0, |known| known.0) {
                        groups.insert(at, group);
                    }
                }
            }
        }
        groups
    }
}
