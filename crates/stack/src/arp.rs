//! ARP as it comes in (RFC 826), with conflict detection and defence (RFC 5227).
//!
//! An entry of the neighbour cache is made only for who asks for us, changed only from on-link addresses, and a
//! changed address counts as unconfirmed until it answers; a gratuitous packet changes what is known but makes nothing.

use crate::neighbor::Outcome;
use crate::net::Priority;
use crate::packet::Outgoing;
use crate::stack::Stack;
use crate::timers::Timer;
use core::net::{IpAddr, Ipv4Addr};
use linerate_nic::{MacAddr, Slice};
use linerate_wire::arp::{Builder, Operation, Packet};

impl Stack {
    /// Takes an ARP packet that the station `link_source` sent.
    pub(crate) fn receive_arp(&mut self, data: &Slice, link_source: MacAddr) {
        self.net.counters.arp_in += 1;
        let Ok(packet) = Packet::parse(data.bytes()) else {
            self.net.counters.drop_arp_malformed += 1;
            return;
        };
        let (operation, mac) = (packet.operation(), packet.sender_mac());
        let (sender, target) = (packet.sender_ip(), packet.target_ip());
        let is_known = operation == Operation::REQUEST || operation == Operation::REPLY;
        // A packet that speaks for another station is forged, or a proxy's that we need not believe.
        if !is_known || mac != link_source || !mac.is_unicast() {
            self.net.counters.drop_arp_malformed += 1;
            return;
        }
        if self.is_arp_conflict(operation, sender, target) {
            self.handle_arp_conflict(mac, sender, target);
            return;
        }
        let for_us = self.net.addresses.is_ours(IpAddr::V4(target));
        if !sender.is_unspecified() && self.net.routes.on_link(IpAddr::V4(sender)) {
            self.learn_from_arp(operation, sender, mac, for_us);
        }
        if operation == Operation::REQUEST && for_us {
            let reply = Builder {
                operation: Operation::REPLY,
                sender_mac: self.net.config.mac,
                sender_ip: target,
                target_mac: mac,
                target_ip: sender,
            };
            // A flood of questions must not push out what we need ourselves.
            self.net.send(Outgoing::Arp(reply, mac), Priority::Neighbor);
        }
    }

    fn learn_from_arp(&mut self, operation: Operation, sender: Ipv4Addr, mac: MacAddr, for_us: bool) {
        let (ip, now) = (IpAddr::V4(sender), self.net.now);
        let outcome = if operation == Operation::REPLY && for_us {
            self.net.neighbors.advertise(ip, Some(mac), true, true, now)
        } else {
            self.net.neighbors.observe(ip, mac, for_us, now)
        };
        self.after_neighbor(outcome);
    }

    /// Somebody uses an address of ours, or probes for the one that we probe for (RFC 5227 section 2.1.1). If we use it
    /// meanwhile, such a probe is answered instead: who probes gives way.
    fn is_arp_conflict(&self, operation: Operation, sender: Ipv4Addr, target: Ipv4Addr) -> bool {
        let addresses = &self.net.addresses;
        let claims = |ip: Ipv4Addr| addresses.is_ours(ip.into()) || addresses.is_probing(ip.into());
        let probes_for_ours =
            operation == Operation::REQUEST && sender.is_unspecified() && addresses.is_probing(target.into());
        claims(sender) || probes_for_ours
    }

    fn handle_arp_conflict(&mut self, mac: MacAddr, sender: Ipv4Addr, target: Ipv4Addr) {
        self.net.counters.arp_conflicts += 1;
        let ip = if sender.is_unspecified() { target } else { sender };
        if self.net.addresses.is_unconfirmed(IpAddr::V4(ip)) {
            // RFC 5227 section 2.1.1.
            self.lose_address(IpAddr::V4(ip), Some(mac));
        } else if self.net.defence_limit.allow(self.net.now) {
            // RFC 5227 section 2.4(c): we keep the address and say so, at a limited rate.
            log::warn!("{mac} uses our address {ip}, too");
            self.announce(ip);
        }
    }

    /// Tells everybody that an address is ours (RFC 5227 section 2.3).
    pub(crate) fn announce(&mut self, ip: Ipv4Addr) {
        let packet = Builder {
            operation: Operation::REQUEST,
            sender_mac: self.net.config.mac,
            sender_ip: ip,
            target_mac: MacAddr::default(),
            target_ip: ip,
        };
        self.net.send_arp(packet, MacAddr::BROADCAST);
    }

    /// Asks whether somebody has an address (RFC 5227 section 2.1.1).
    pub(crate) fn probe_arp(&mut self, ip: Ipv4Addr) {
        let packet = Builder {
            operation: Operation::REQUEST,
            sender_mac: self.net.config.mac,
            sender_ip: Ipv4Addr::UNSPECIFIED,
            target_mac: MacAddr::default(),
            target_ip: ip,
        };
        self.net.send_arp(packet, MacAddr::BROADCAST);
    }

    /// Wakes who waits for a neighbour that became known.
    pub(crate) fn after_neighbor(&mut self, outcome: Outcome) {
        self.tell_of_neighbor(outcome);
        match outcome {
            Outcome::Nothing | Outcome::Moved(_) => {}
            Outcome::Disputed(slot) => {
                self.net.counters.neighbors_disputed += 1;
                self.net.timers.set(Timer::Neighbor(slot), self.net.neighbors.deadline(slot));
            }
            Outcome::Resolved(slot) => {
                while let Some(conn) = self.net.waiting.pop(slot) {
                    if let Some(conn) = self.conns.table.at_mut(conn) {
                        conn.forget_unreachable();
                    }
                    self.conns.sending.push(conn);
                }
                self.net.unpark(slot);
            }
            Outcome::Failed(slot) => {
                self.net.counters.neighbors_unreachable += 1;
                while self.net.neighbors.unpark(slot).is_some() {
                    self.net.counters.drop_neighbor_unreachable += 1;
                }
                while let Some(conn) = self.net.waiting.pop(slot) {
                    self.handle_unreachable(conn);
                }
                self.retransmit_over(slot);
            }
        }
    }

    /// The timer of a neighbour entry fired.
    pub(crate) fn run_neighbor(&mut self, slot: u32) {
        let outcome = self.net.neighbors.handle_timeout(slot, self.net.now);
        let deadline = self.net.neighbors.deadline(slot);
        self.net.timers.set(Timer::Neighbor(slot), deadline);
        self.after_neighbor(outcome);
    }
}
