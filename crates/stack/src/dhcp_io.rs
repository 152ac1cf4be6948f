//! The DHCP client's messages on the wire, and what its leases change.

use crate::addresses::{AddressOrigin, OwnAddress};
use crate::config::Cidr;
use crate::dhcp::{DhcpAction, DhcpSend, Lease, MAX_MESSAGE};
use crate::net::Priority;
use crate::packet::must;
use crate::packet::{IpFields, NextHop, Outgoing, Packet};
use crate::route::Origin;
use crate::stack::Stack;
use core::net::{IpAddr, Ipv4Addr};
use linerate_nic::MacAddr;
use linerate_wire::dhcpv4::{self, Message};
use linerate_wire::ip::Protocol;
use linerate_wire::udp;
use linerate_wire::units::Instant;

impl Stack {
    /// Runs the client's timer.
    pub(crate) fn run_dhcp(&mut self) {
        let random = self.net.random.next_u32();
        let action = self.dhcp.as_mut().and_then(|dhcp| dhcp.handle_timeout(self.net.now, random));
        self.act_for_dhcp(action);
    }

    /// Takes the payload of a datagram from a server's port to the client's. False when DHCP is off.
    pub(crate) fn receive_dhcp(&mut self, payload: &[u8]) -> bool {
        let Some(dhcp) = &mut self.dhcp else { return false };
        self.net.counters.dhcp_in += 1;
        let Ok(message) = Message::parse(payload) else {
            self.net.counters.drop_dhcp += 1;
            return true;
        };
        match dhcp.handle_message(self.net.now, &message) {
            Ok(action) => self.act_for_dhcp(action),
            Err(_) => self.net.counters.drop_dhcp += 1,
        }
        true
    }

    /// Tells the server that somebody else has the address.
    pub(crate) fn decline_dhcp(&mut self) {
        let action = self.dhcp.as_mut().and_then(|dhcp| dhcp.decline(self.net.now));
        self.net.routes.remove_origin(Origin::Dhcp);
        self.act_for_dhcp(action);
    }

    /// Gives the address back that a server lent us, if one did: for the end, as it may not be used any more. The message leaves
    /// with the next packets.
    pub fn release_lease(&mut self, now: Instant) -> bool {
        self.set_now(now);
        let action = self.dhcp.as_mut().and_then(|dhcp| dhcp.release(self.net.now));
        let is_lent = action.is_some();
        self.act_for_dhcp(action);
        is_lent
    }

    fn act_for_dhcp(&mut self, action: Option<DhcpAction>) {
        match action {
            None => {}
            Some(DhcpAction::Send(message)) => self.send_dhcp(&message),
            Some(DhcpAction::Bound(lease)) => self.take_lease(&lease),
            Some(DhcpAction::Lost(lease)) => {
                self.net.routes.remove_origin(Origin::Dhcp);
                self.net.addresses.remove(lease.address.address());
                log::warn!(
                    "the lease of {} is over: the address is not ours any more",
                    lease.address.address()
                );
            }
        }
        self.arm_autoconfiguration();
    }

    /// The parameters are those of the last DHCPACK (RFC 2131 section 4.4.5), whose mask and router may be others than before.
    fn take_lease(&mut self, lease: &Lease) {
        let ip = lease.address.address();
        let is_other = |own: &OwnAddress| own.origin == AddressOrigin::Dhcp && own.cidr.address() != ip;
        let other = self.net.addresses.iter().find(|own| is_other(own)).map(|own| own.cidr.address());
        if let Some(other) = other {
            self.forget_address(other);
            self.abort_connections_of(other);
        }
        let router = lease.router.map(IpAddr::V4);
        let network = (lease.address.network(), None);
        let gateway =
            router.and_then(|router| Some((Cidr::new(Ipv4Addr::UNSPECIFIED.into(), 0)?, Some(router))));
        if !self.net.routes.of(Origin::Dhcp).eq([network].into_iter().chain(gateway)) {
            self.net.routes.remove_origin(Origin::Dhcp);
        }
        self.net.add_address(ip, lease.address.prefix_len(), AddressOrigin::Dhcp);
        if let Some(router) = router {
            self.net.add_gateway(router, Origin::Dhcp);
        }
    }

    fn send_dhcp(&mut self, message: &DhcpSend) {
        let Some(mut page) = self.net.pools.pages.take() else {
            // The client's timer sends it again.
            self.net.counters.drop_control_full += 1;
            return;
        };
        let mac = self.net.config.mac;
        let room = page.bytes_mut().get_mut(..MAX_MESSAGE).unwrap_or_default();
        let Some(len) = message.emit(mac, room) else { return };
        let next_hop = match message.destination.is_broadcast() {
            true => NextHop::Direct(MacAddr::BROADCAST),
            false => NextHop::Route,
        };
        let fields = IpFields {
            next_hop,
            ..IpFields::new(message.client_ip.into(), message.destination.into(), Protocol::UDP)
        };
        let mut packet = Packet::new(fields, udp::HEADER_LEN, |head| {
            let header = udp::Builder {
                source_port: dhcpv4::CLIENT_PORT,
                destination_port: dhcpv4::SERVER_PORT,
                payload_len: len,
                checksum: 0,
            };
            must(header.emit(head));
        })
        .with_tail(page.freeze(0..len));
        packet.checksum = Some(udp::CHECKSUM_OFFSET as u8);
        self.net.counters.dhcp_out += 1;
        self.net.counters.udp_out += 1;
        self.net.send(Outgoing::Ip(packet), Priority::Control);
    }
}
