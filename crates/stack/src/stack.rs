//! The stack: what goes in and what comes out. The work is done in the files that are named after it.

use crate::addresses::AddressOrigin;
use crate::config::{Cidr, LEAST_MTU, StackConfig};
use crate::conns::{Brink, Conns};
use crate::counters::Counters;
use crate::dhcp::DhcpClient;
use crate::memory::{MemoryStats, StackPools};
use crate::net::Net;
use crate::random::KeyedState;
use crate::ready::ReadyQueue;
use crate::route::Origin;
use crate::slaac::Slaac;
use crate::tcp::{MemoryBudget, Resources};
use crate::team::Team;
use crate::timers::Timer;
use crate::udp::UdpSockets;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use linerate_nic::{RxBatch, TxToken};
use linerate_wire::ipv6;
use linerate_wire::units::Instant;

/// A TCP/IP stack on one interface queue, without I/O and without a clock.
///
/// # Order of calls
///
/// [`Node`](crate::Node) puts a stack on a device and keeps this order. In each turn of the loop, the owner
/// 1. tells the time ([`Stack::set_now`]; every other call that takes `now` does it too),
/// 2. hands in what came: [`Stack::handle_frames`] until the batch is empty, [`Stack::handle_completion`],
///    [`Stack::handle_file_data`], and [`Stack::handle_timeout`] when [`Stack::poll_timeout`] has passed,
/// 3. takes events ([`Transport::poll_event`](linerate_transport::Transport::poll_event)) and lets the servers work,
/// 4. takes file requests ([`Stack::poll_file_request`]) and packets ([`Stack::poll_transmit`]), and gives these to the
///    device,
/// 5. sleeps until frames, completions, file data or the timeout come, but not at all while
///    [`Stack::wants_transmit`].
///
/// Nothing waits, nothing is locked, nothing is shared with other stacks.
pub struct Stack {
    pub(crate) net: Net,
    pub(crate) conns: Conns,
    pub(crate) udp: UdpSockets,
    pub(crate) ready: ReadyQueue,
    pub(crate) slaac: Slaac,
    pub(crate) dhcp: Option<DhcpClient>,
    pub(crate) team: Team,
}

impl Stack {
    /// A stack with these settings; what of them it cannot honour, as [`StackConfig::check`] tells, is left out, and numbers out of
    /// range are brought into it. `seed` must be random and secret, and
    /// different at every start: initial sequence numbers, ports and hash keys come from it. Stacks that share a link
    /// ([`StackConfig::seat`]) get the same, so that a cookie of one is good at the others. Tables take their memory now.
    pub fn new(config: StackConfig, seed: [u8; 32], pools: StackPools) -> Self {
        if config.mtu < LEAST_MTU {
            log::warn!("an MTU of {} is too small for IP: packets have up to {LEAST_MTU} bytes", config.mtu);
        }
        let config = config.in_range();
        let state = KeyedState::new(&seed);
        let budget = MemoryBudget::with_receive(config.memory, pools.receive.clone(), pools.device_queue);
        let resources = Resources { budget: budget.clone(), pages: pools.pages.clone() };
        let mut stack = Stack {
            conns: Conns::new(&config, state, resources),
            udp: UdpSockets::new(config.max_udp_sockets, budget),
            ready: ReadyQueue::new(config.max_listeners, config.max_connections, config.max_udp_sockets),
            slaac: Slaac::new(config.slaac),
            dhcp: None,
            team: Team::new(config.seat),
            net: Net::new(config, &seed, pools),
        };
        stack.configure();
        stack
    }

    fn configure(&mut self) {
        if self.team.seat.is_member() {
            // The owner tells us.
            return;
        }
        let net = &mut self.net;
        let addresses = core::mem::take(&mut net.config.addresses);
        let gateways = core::mem::take(&mut net.config.gateways);
        net.add_link_local();
        for cidr in &addresses {
            if !cidr.is_of_one_host() {
                log::warn!("{cidr} is left out: no address that a host may have (RFC 1122 section 3.2.1.3)");
            } else if cidr.address().is_ipv4() || net.config.ipv6 {
                net.add_address(cidr.address(), cidr.prefix_len(), AddressOrigin::Static);
            } else {
                log::warn!("{cidr} is left out: without IPv6, which takes an MTU of 1,280 bytes");
            }
        }
        for gateway in &gateways {
            net.add_gateway(*gateway, Origin::Static);
        }
        net.config.addresses = addresses;
        net.config.gateways = gateways;
        if net.config.dhcp {
            self.dhcp = Some(DhcpClient::new(net.config.mac, net.random.next_u32()));
        }
        self.slaac.start(Instant::ZERO);
        self.arm_autoconfiguration();
    }

    /// Tells the time. It never goes back: an earlier `now` counts as the latest one.
    #[inline]
    pub fn set_now(&mut self, now: Instant) {
        self.net.now = self.net.now.max(now);
    }

    /// Whether frames wait in the device that were not handed over yet. Timers that look for losses wait for them, up to 100 ms:
    /// the acknowledgement that they miss may be among them.
    pub fn set_backlog(&mut self, has_backlog: bool) {
        self.net.has_backlog = has_backlog;
    }

    /// Takes up to [`StackConfig::receive_budget`] frames from the batch; the rest stays there.
    pub fn handle_frames(&mut self, now: Instant, batch: &mut RxBatch) {
        self.set_now(now);
        if !batch.is_empty() {
            self.conns.wakefulness.stir();
        }
        for _ in 0..self.net.config.receive_budget {
            if !self.receive_first(batch) {
                break;
            }
        }
        self.conns.before = None;
        self.take_held_ack();
        self.settle_last();
        self.watch_pressure();
        self.watch_dormancy();
    }

    /// The device has sent the packet with this token.
    pub fn handle_completion(&mut self, now: Instant, token: TxToken) {
        self.handle_completions(now, core::iter::once(token));
    }

    /// The device has sent the packets with these tokens; false if there were none.
    pub fn handle_completions(&mut self, now: Instant, tokens: impl Iterator<Item = TxToken>) -> bool {
        self.set_now(now);
        let mut any = false;
        for token in tokens {
            self.complete(token);
            any = true;
        }
        self.arm_last();
        any
    }

    /// Runs what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.set_now(now);
        // Each timer fires once per call, even if it is set to the past again.
        for _ in 0..self.net.timers.len() {
            let Some(timer) = self.net.timers.pop(self.net.now) else { break };
            match timer {
                Timer::Address => self.run_addresses(),
                Timer::Dhcp => self.run_dhcp(),
                Timer::Reassembly => self.run_reassembly(),
                Timer::Pressure => self.run_pressure(),
                Timer::Dormancy => self.run_dormancy(),
                Timer::TimeWait => self.run_time_wait(),
                Timer::Neighbor(slot) => self.run_neighbor(slot),
                Timer::Conn(slot) => self.run_conn(slot),
            }
        }
    }

    /// When [`Stack::handle_timeout`] is to be called next; it may be earlier than needed.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.net.timers.next()
    }

    /// What was counted since the start.
    pub fn counters(&self) -> &Counters {
        &self.net.counters
    }

    /// How much memory is in use.
    pub fn memory(&self) -> MemoryStats {
        let budget = &self.conns.resources.budget;
        let pools = &self.net.pools;
        MemoryStats {
            used: budget.used(),
            promised: budget.promised(),
            granted: budget.granted(),
            limit: budget.limit(),
            refused: budget.refused(),
            pages: pools.pages.stats(),
            datagrams: pools.datagrams.stats(),
            receive: pools.receive.as_ref().map(|pool| pool.stats()),
            connections: self.conns.table.len(),
            time_wait: self.conns.count(Brink::TimeWait),
            listeners: self.conns.listeners.len(),
            udp_sockets: self.udp.len(),
        }
    }

    /// Our addresses that may be used now.
    pub fn addresses(&self) -> impl Iterator<Item = Cidr> + '_ {
        let addresses = &self.net.addresses;
        addresses.iter().map(|own| own.cidr).filter(|cidr| addresses.is_ours(cidr.address()))
    }
}

impl fmt::Debug for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stack").field("now", &self.net.now).field("memory", &self.memory()).finish()
    }
}

impl Net {
    /// Adds the link-local address that is formed from our Ethernet address, where there is IPv6 (RFC 4862 section 5.3).
    pub(crate) fn add_link_local(&mut self) {
        if self.config.ipv6 {
            let link_local = IpAddr::V6(ipv6::link_local(self.config.mac));
            self.add_address(link_local, 64, AddressOrigin::LinkLocal);
        }
    }

    /// Adds an address and the route to its network; false where there is no room.
    pub(crate) fn add_address(&mut self, ip: IpAddr, prefix_len: u8, origin: AddressOrigin) -> bool {
        let Some(cidr) = Cidr::new(ip, prefix_len) else { return false };
        self.addresses.add(cidr, origin, None, None, self.now)
            && self.routes.add(cidr, None, route_origin(origin))
    }

    /// Adds a default route; false where there is no room.
    pub(crate) fn add_gateway(&mut self, gateway: IpAddr, origin: Origin) -> bool {
        let any = match gateway {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        Cidr::new(any, 0).is_some_and(|any| self.routes.add(any, Some(gateway), origin))
    }
}

/// Who made the route to an address's network.
pub(crate) fn route_origin(origin: AddressOrigin) -> Origin {
    match origin {
        AddressOrigin::Static | AddressOrigin::LinkLocal => Origin::Static,
        AddressOrigin::Dhcp => Origin::Dhcp,
        AddressOrigin::Slaac => Origin::RouterAdvertisement,
    }
}
