//! Neighbour discovery as it comes in, and what we send of it (RFC 4861, RFC 4862, RFC 3810).

use crate::addresses::MAX_ADDRESSES;
use crate::net::Priority;
use crate::packet::must;
use crate::packet::{IpFields, NextHop, Outgoing, Packet, Received, v6};
use crate::stack::Stack;
use core::net::{IpAddr, Ipv6Addr};
use linerate_nic::MacAddr;
use linerate_wire::ip::Protocol;
use linerate_wire::ipv6::{self, solicited_node};
use linerate_wire::ndp::{HOP_LIMIT, Message, NdpOption, Packet as NdpPacket};
use linerate_wire::{mld, ndp};

/// Whether ICMPv6 messages of this type are neighbour discovery that a host may act on.
pub(crate) fn is_discovery(kind: u8) -> bool {
    (ndp::ROUTER_SOLICITATION..=ndp::NEIGHBOUR_ADVERTISEMENT).contains(&kind)
}

impl Stack {
    /// Takes a message of type 133 to 136 whose checksum is right.
    pub(crate) fn receive_ndp(&mut self, packet: &Received) {
        self.net.counters.ndp_in += 1;
        let (source, destination) = (v6(packet.source), v6(packet.destination));
        let Ok(parsed) = NdpPacket::parse(packet.l4_bytes(), source, destination, packet.hop_limit) else {
            self.net.counters.drop_ndp_invalid += 1;
            return;
        };
        match parsed.message() {
            Message::NeighbourSolicitation { target } => {
                self.receive_solicitation(source, target, parsed.source_link_layer());
            }
            Message::NeighbourAdvertisement { solicited, overrides, target, .. } => {
                self.receive_advertisement(target, parsed.target_link_layer(), solicited, overrides);
            }
            Message::RouterAdvertisement(advertisement) => {
                if let Some(mac) = parsed.source_link_layer().filter(|mac| mac.is_unicast()) {
                    let outcome = self.net.neighbors.observe(packet.source, mac, true, self.net.now);
                    self.after_neighbor(outcome);
                }
                self.receive_router_advertisement(source, &advertisement, &parsed);
            }
            // For routers.
            Message::RouterSolicitation => {}
        }
    }

    fn receive_solicitation(&mut self, source: Ipv6Addr, target: Ipv6Addr, mac: Option<MacAddr>) {
        let ip = IpAddr::V6(target);
        if self.net.addresses.is_probing(ip) {
            // Whoever probes for the same address at the same time makes both fail (RFC 4862 section 5.4.3); whoever
            // only asks for it gets no answer yet.
            if source.is_unspecified() {
                self.net.counters.dad_conflicts += 1;
                self.lose_address(ip, mac);
            }
            return;
        }
        if !self.net.addresses.is_ours(ip) {
            return;
        }
        if source.is_unspecified() {
            // A probe for an address of ours: everybody hears that it is taken (RFC 4861 section 7.2.4).
            self.send_advertisement(target, ipv6::ALL_NODES, None);
            return;
        }
        let mac = mac.filter(|mac| mac.is_unicast());
        if let Some(mac) = mac
            && self.net.routes.on_link(IpAddr::V6(source))
        {
            let outcome = self.net.neighbors.observe(IpAddr::V6(source), mac, true, self.net.now);
            self.after_neighbor(outcome);
        }
        self.send_advertisement(target, source, mac);
    }

    fn receive_advertisement(
        &mut self,
        target: Ipv6Addr,
        mac: Option<MacAddr>,
        solicited: bool,
        overrides: bool,
    ) {
        let ip = IpAddr::V6(target);
        if self.net.addresses.is_unconfirmed(ip) {
            self.net.counters.dad_conflicts += 1;
            self.lose_address(ip, mac);
            return;
        }
        if self.net.addresses.is_ours(ip) {
            self.net.counters.dad_conflicts += 1;
            return;
        }
        let mac = mac.filter(|mac| mac.is_unicast());
        let outcome = self.net.neighbors.advertise(ip, mac, solicited, overrides, self.net.now);
        self.after_neighbor(outcome);
    }

    fn send_advertisement(&mut self, target: Ipv6Addr, destination: Ipv6Addr, mac: Option<MacAddr>) {
        let message = Message::NeighbourAdvertisement {
            router: false,
            solicited: !destination.is_multicast(),
            // Nobody is to be taken away an address of which it is open whose it is (RFC 4429 section 3.3).
            overrides: !self.net.addresses.is_unconfirmed(IpAddr::V6(target)),
            target,
        };
        let own = self.net.config.mac;
        let next_hop = mac.map_or(NextHop::Route, NextHop::Direct);
        self.send_ndp(message, &[NdpOption::TargetLinkLayer(own)], target, destination, next_hop);
    }

    /// Tells everybody our address unasked (RFC 4861 section 7.2.6).
    pub(crate) fn advertise_to_all(&mut self, ip: Ipv6Addr) {
        self.send_advertisement(ip, ipv6::ALL_NODES, Some(MacAddr::ipv6_multicast(ipv6::ALL_NODES)));
    }

    /// Asks for an address of somebody else; from one of ours, to the neighbour itself or to its group.
    pub(crate) fn solicit(&mut self, target: Ipv6Addr, unicast: Option<MacAddr>) {
        let Some(IpAddr::V6(source)) = self.net.addresses.source_for(IpAddr::V6(target), self.net.now) else {
            return;
        };
        let own = self.net.config.mac;
        let group = solicited_node(target);
        let (destination, mac) = match unicast {
            Some(mac) => (target, mac),
            None => (group, MacAddr::ipv6_multicast(group)),
        };
        let option = [NdpOption::SourceLinkLayer(own)];
        // As long as it is open whose address that is, nobody is to be told that it is at ours (RFC 4429 section 3.2). But who is
        // asked by his group may not know us, and must be told where to answer (RFC 4861 section 4.3).
        let is_needed = unicast.is_none() || !self.net.addresses.is_unconfirmed(IpAddr::V6(source));
        let options = if is_needed { &option[..] } else { &[] };
        let message = Message::NeighbourSolicitation { target };
        self.send_ndp(message, options, source, destination, NextHop::Direct(mac));
    }

    /// Asks whether somebody has the address that we want (RFC 4862 section 5.4.2), after joining its group so that
    /// switches let the answer through.
    pub(crate) fn probe_ndp(&mut self, target: Ipv6Addr) {
        self.join_group(solicited_node(target));
        let message = Message::NeighbourSolicitation { target };
        let group = solicited_node(target);
        let next_hop = NextHop::Direct(MacAddr::ipv6_multicast(group));
        self.send_ndp(message, &[], Ipv6Addr::UNSPECIFIED, group, next_hop);
    }

    /// Asks for routers (RFC 4861 section 6.3.7).
    pub(crate) fn solicit_routers(&mut self) {
        let own = self.net.config.mac;
        let option = [NdpOption::SourceLinkLayer(own)];
        let (source, options) = match self.net.addresses.link_local() {
            Some(source) if !self.net.addresses.is_unconfirmed(source.into()) => (source, &option[..]),
            _ => (Ipv6Addr::UNSPECIFIED, &[][..]),
        };
        let next_hop = NextHop::Direct(MacAddr::ipv6_multicast(ipv6::ALL_ROUTERS));
        self.send_ndp(Message::RouterSolicitation, options, source, ipv6::ALL_ROUTERS, next_hop);
    }

    /// Tells snooping switches that we listen to a group (RFC 3810 section 5.2).
    pub(crate) fn join_group(&mut self, group: Ipv6Addr) {
        self.report_group(mld::RecordKind::CHANGE_TO_EXCLUDE, group);
    }

    /// Answers a multicast listener query with all our groups. Departures from RFC 3810 section 5.1.3 and 6.2: at once
    /// instead of after a random delay, and whatever group is asked for; a second query within a second is ignored.
    pub(crate) fn answer_multicast_query(&mut self, packet: &Received) {
        let is_from_router = v6(packet.source).is_unicast_link_local() && packet.hop_limit == mld::HOP_LIMIT;
        if !is_from_router || !self.net.reports_limit.allow(self.net.now) {
            self.net.counters.drop_icmp_type += 1;
            return;
        }
        for at in 0..MAX_ADDRESSES {
            let Some(own) = self.net.addresses.iter().nth(at) else { return };
            if let IpAddr::V6(ip) = own.cidr.address() {
                self.report_group(mld::RecordKind::MODE_IS_EXCLUDE, solicited_node(ip));
            }
        }
    }

    fn report_group(&mut self, kind: mld::RecordKind, group: Ipv6Addr) {
        let source = self.net.addresses.link_local().unwrap_or(Ipv6Addr::UNSPECIFIED);
        let record = mld::Record { kind, group };
        let fields = IpFields {
            hop_limit: mld::HOP_LIMIT,
            ..IpFields::new(source.into(), mld::REPORT_DESTINATION.into(), Protocol::HOP_BY_HOP)
        };
        let len = ipv6::ROUTER_ALERT_MLD_LEN + mld::report_len(1);
        let packet = Packet::new(fields, len, |head| {
            let (alert, report) = head.split_at_mut(ipv6::ROUTER_ALERT_MLD_LEN);
            alert.copy_from_slice(&ipv6::ROUTER_ALERT_MLD);
            must(mld::emit_report(&[record], source, report));
        });
        self.net.counters.icmp_out += 1;
        self.net.send(Outgoing::Ip(packet), Priority::Control);
    }

    fn send_ndp(
        &mut self,
        message: Message,
        options: &[NdpOption<'_>],
        source: Ipv6Addr,
        destination: Ipv6Addr,
        next_hop: NextHop,
    ) {
        let fields = IpFields {
            hop_limit: HOP_LIMIT,
            next_hop,
            ..IpFields::new(source.into(), destination.into(), Protocol::ICMPV6)
        };
        let packet = Packet::new(fields, message.emitted_len(options), |head| {
            must(message.emit(options, source, destination, head));
        });
        self.net.counters.ndp_out += 1;
        self.net.counters.icmp_out += 1;
        // A flood of questions must not push out what we need ourselves.
        let is_answer = matches!(message, Message::NeighbourAdvertisement { .. });
        let priority = if is_answer { Priority::Neighbor } else { Priority::Control };
        self.net.send(Outgoing::Ip(packet), priority);
    }
}
