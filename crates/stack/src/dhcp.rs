//! A DHCPv4 client (RFC 2131) as a machine: messages and time go in, messages and leases come out.
//!
//! ```text
//!            DISCOVER          OFFER / REQUEST            ACK
//!   INIT ────────────▶ SELECTING ────────────▶ REQUESTING ────▶ BOUND ◀──────────┐
//!    ▲                                            │ NAK, or        │ T1           │ ACK
//!    │                                            │ no answer      ▼              │
//!    ├────────────────────────────────────────────┘            RENEWING ──────────┤
//!    │ NAK, or the lease is over                                   │ T2           │
//!    ├──────────────────────────────────────────────────────── REBINDING ─────────┤
//!    │ NAK, or no answer                                                          │
//!    └─────────────────────────────────────────────────────── REBOOTING ──────────┘
//! ```
//!
//! Whoever has a lease is in REBOOTING when the link comes back: there may be other servers now. Where none answers, the client
//! begins anew, as a server may be silent about addresses that are not its own. The address stays in use until another
//! one is given or the lease is over: RFC 2131 section 3.2, point 4, allows that. T1 and T2 do not matter meanwhile: a
//! DISCOVER, which names the address, goes to all servers more often.
//!
//! Of a lease it takes the address, the mask and the first router. Replies are asked for by broadcast, because a
//! packet to an address that is not ours yet would be dropped.

use crate::config::Cidr;
use crate::net::is_martian4;
use core::net::{IpAddr, Ipv4Addr};
use core::time::Duration;
use linerate_nic::MacAddr;
use linerate_wire::dhcpv4::{Builder, DhcpOption, Message, MessageType, Operation, code};
use linerate_wire::units::Instant;

/// Requests sent before the client starts over.
const REQUESTS: u8 = 4;
/// RFC 2131 section 4.1: 4 s, doubled up to 64 s, each with up to 1 s more or less.
const FIRST_DELAY_S: u64 = 4;
const MOST_DELAY_S: u64 = 64;
/// RFC 2131 section 3.1, point 5: a client that declined waits this long.
const DECLINE_DELAY: Duration = Duration::from_secs(10);
/// Least time between renewals (RFC 2131 section 4.4.5).
const LEAST_RENEWAL: Duration = Duration::from_secs(60);
/// Shorter leases count as this long: a server cannot keep us busy.
const LEAST_LEASE_S: u32 = 30;
/// What a message takes at most.
pub(crate) const MAX_MESSAGE: usize = 400;

const WANTED: [u8; 5] =
    [code::SUBNET_MASK, code::ROUTERS, code::LEASE_TIME, code::RENEWAL_TIME, code::REBINDING_TIME];

/// What a server gave us.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lease {
    pub(crate) address: Cidr,
    pub(crate) router: Option<Ipv4Addr>,
    server: Ipv4Addr,
    renew_at: Instant,
    rebind_at: Instant,
    expires_at: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Init,
    Selecting { sent: u8 },
    Requesting { ip: Ipv4Addr, server: Ipv4Addr, sent: u8 },
    Bound(Lease),
    Renewing(Lease),
    Rebinding(Lease),
    Rebooting { sent: u8 },
}

/// What the owner has to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DhcpAction {
    /// Send this message.
    Send(DhcpSend),
    /// The address is ours now, or still.
    Bound(Lease),
    /// The address is not ours any more.
    Lost(Lease),
}

/// A message to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DhcpSend {
    kind: MessageType,
    transaction_id: u32,
    elapsed_s: u16,
    /// Our address; unspecified while we have none.
    pub(crate) client_ip: Ipv4Addr,
    requested: Option<Ipv4Addr>,
    server_id: Option<Ipv4Addr>,
    /// Where it goes: everybody, or our server.
    pub(crate) destination: Ipv4Addr,
}

/// The client.
pub(crate) struct DhcpClient {
    mac: MacAddr,
    state: State,
    /// A lease from before the link was interrupted, while it is in use and the state has none.
    held: Option<Lease>,
    transaction_id: u32,
    began: Instant,
    next: Instant,
}

impl DhcpClient {
    /// A client that begins at its first timeout.
    pub(crate) fn new(mac: MacAddr, transaction_id: u32) -> Self {
        let (began, next) = (Instant::ZERO, Instant::ZERO);
        DhcpClient { mac, state: State::Init, held: None, transaction_id, began, next }
    }

    /// When [`DhcpClient::handle_timeout`] is to be called; `None` with a lease for ever.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let end = self.held.map_or(Instant::FAR_FUTURE, |lease| lease.expires_at);
        Some(self.next.min(end)).filter(|&next| next != Instant::FAR_FUTURE)
    }

    /// Does what is due at `now`, one thing per call. `random` spreads retransmissions.
    pub(crate) fn handle_timeout(&mut self, now: Instant, random: u32) -> Option<DhcpAction> {
        if let Some(lease) = self.held.take_if(|lease| now >= lease.expires_at) {
            if matches!(self.state, State::Rebooting { .. }) {
                self.restart(now);
            }
            return Some(DhcpAction::Lost(lease));
        }
        if now < self.next {
            return None;
        }
        match self.state {
            State::Init => {
                self.transaction_id = self.transaction_id.wrapping_add(1);
                self.began = now;
                self.state = State::Selecting { sent: 0 };
                self.handle_timeout(now, random)
            }
            State::Selecting { sent } => {
                self.state = State::Selecting { sent: sent.saturating_add(1) };
                self.next = now + delay(sent, random);
                Some(self.send(now, MessageType::Discover, self.held_address(), None))
            }
            State::Requesting { sent, .. } | State::Rebooting { sent } if sent >= REQUESTS => {
                self.state = State::Init;
                self.handle_timeout(now, random)
            }
            State::Requesting { ip, server, sent } => {
                self.state = State::Requesting { ip, server, sent: sent + 1 };
                self.next = now + delay(sent, random);
                Some(self.send(now, MessageType::Request, Some(ip), Some(server)))
            }
            State::Rebooting { sent } => {
                self.state = State::Rebooting { sent: sent + 1 };
                self.next = now + delay(sent, random);
                Some(self.send(now, MessageType::Request, self.held_address(), None))
            }
            State::Bound(lease) => {
                self.transaction_id = self.transaction_id.wrapping_add(1);
                self.began = now;
                self.state = State::Renewing(lease);
                self.handle_timeout(now, random)
            }
            State::Renewing(lease) if now >= lease.rebind_at => {
                log::warn!(
                    "{} has not renewed the lease of {}: all servers are asked; without an answer the address goes in {} s",
                    lease.server,
                    lease.address.address(),
                    lease.expires_at.saturating_since(now).as_secs()
                );
                self.state = State::Rebinding(lease);
                self.handle_timeout(now, random)
            }
            State::Renewing(lease) => {
                self.next = half_way(now, lease.rebind_at);
                Some(self.send(now, MessageType::Request, None, None))
            }
            State::Rebinding(lease) if now >= lease.expires_at => {
                self.restart(now);
                Some(DhcpAction::Lost(lease))
            }
            State::Rebinding(lease) => {
                self.next = half_way(now, lease.expires_at);
                Some(self.send(now, MessageType::Request, None, None))
            }
        }
    }

    /// Takes a server's message; false (and nothing done) when it is not for us or not for this state.
    pub(crate) fn handle_message(
        &mut self,
        now: Instant,
        message: &Message<'_>,
    ) -> Result<Option<DhcpAction>, NotForUs> {
        if message.operation() != Operation::Reply
            || message.transaction_id() != self.transaction_id
            || message.client_mac() != self.mac
        {
            return Err(NotForUs);
        }
        let kind = message.message_type().ok_or(NotForUs)?;
        match (self.state, kind) {
            (State::Selecting { .. }, MessageType::Offer) => {
                let server = message.server_identifier().ok_or(NotForUs)?;
                given(message).ok_or(NotForUs)?;
                let ip = message.your_ip();
                self.state = State::Requesting { ip, server, sent: 0 };
                self.next = now;
                Ok(None)
            }
            (State::Requesting { ip, server, .. }, MessageType::Ack) => {
                if message.your_ip() != ip || message.server_identifier().is_some_and(|id| id != server) {
                    return Err(NotForUs);
                }
                self.bind(now, message, server)
            }
            (State::Renewing(_) | State::Rebinding(_) | State::Rebooting { .. }, MessageType::Ack) => {
                let old = self.lease().ok_or(NotForUs)?;
                if IpAddr::V4(message.your_ip()) != old.address.address() {
                    return Err(NotForUs);
                }
                let server = message.server_identifier().unwrap_or(old.server);
                self.bind(now, message, server)
            }
            (State::Requesting { server, .. }, MessageType::Nak) => {
                if message.server_identifier() != Some(server) {
                    return Err(NotForUs);
                }
                self.restart(now);
                Ok(None)
            }
            (State::Renewing(_) | State::Rebinding(_) | State::Rebooting { .. }, MessageType::Nak) => {
                let old = self.lease().ok_or(NotForUs)?;
                self.held = None;
                self.restart(now);
                Ok(Some(DhcpAction::Lost(old)))
            }
            _ => Err(NotForUs),
        }
    }

    /// The link was interrupted: asks whatever server there is now whether the lease still stands (RFC 2131 section 3.2), or
    /// begins. It asks again as usual, as the port of a switch may not pass on the first frames.
    pub(crate) fn confirm(&mut self, now: Instant) {
        self.held = self.lease();
        self.transaction_id = self.transaction_id.wrapping_add(1);
        self.began = now;
        self.state = if self.held.is_some() { State::Rebooting { sent: 0 } } else { State::Init };
        self.next = now;
    }

    /// The lease whose address is in use.
    fn lease(&self) -> Option<Lease> {
        match self.state {
            State::Bound(lease) | State::Renewing(lease) | State::Rebinding(lease) => Some(lease),
            _ => self.held,
        }
    }

    fn held_address(&self) -> Option<Ipv4Addr> {
        self.held.map(|lease| crate::packet::v4(lease.address.address()))
    }

    /// The address turned out to be in use: tells the server and starts over later (RFC 2131 section 3.1, point 5).
    pub(crate) fn decline(&mut self, now: Instant) -> Option<DhcpAction> {
        let lease = self.lease()?;
        self.held = None;
        self.state = State::Init;
        self.next = now + DECLINE_DELAY;
        let IpAddr::V4(ip) = lease.address.address() else { return None };
        Some(self.send(now, MessageType::Decline, Some(ip), Some(lease.server)))
    }

    /// The address is not needed any more: tells the server, once (RFC 2131 section 4.4.6). The client is at rest then.
    pub(crate) fn release(&mut self, now: Instant) -> Option<DhcpAction> {
        let lease = self.lease()?;
        self.held = None;
        self.transaction_id = self.transaction_id.wrapping_add(1);
        self.began = now;
        // From the address, to its server alone.
        self.state = State::Renewing(lease);
        let message = self.send(now, MessageType::Release, None, Some(lease.server));
        self.state = State::Init;
        self.next = Instant::FAR_FUTURE;
        Some(message)
    }

    fn bind(
        &mut self,
        now: Instant,
        message: &Message<'_>,
        server: Ipv4Addr,
    ) -> Result<Option<DhcpAction>, NotForUs> {
        let address = given(message).ok_or(NotForUs)?;
        let seconds = message.lease_time_s().unwrap_or(u32::MAX).max(LEAST_LEASE_S);
        let half = message.renewal_time_s().unwrap_or(seconds / 2);
        let most = message.rebinding_time_s().unwrap_or(seconds / 8 * 7);
        // T1 <= T2 <= lease, whatever the server says.
        let most = most.clamp(LEAST_LEASE_S / 2, seconds);
        let half = half.clamp(LEAST_LEASE_S / 2, most);
        let after = |seconds: u32| match seconds {
            u32::MAX => Instant::FAR_FUTURE,
            seconds => now + Duration::from_secs(u64::from(seconds)),
        };
        let lease = Lease {
            address,
            router: message.routers().find(|&router| usable(router).is_some()),
            server,
            renew_at: if seconds == u32::MAX { Instant::FAR_FUTURE } else { after(half) },
            rebind_at: if seconds == u32::MAX { Instant::FAR_FUTURE } else { after(most) },
            expires_at: after(seconds),
        };
        self.state = State::Bound(lease);
        self.held = None;
        self.next = lease.renew_at;
        Ok(Some(DhcpAction::Bound(lease)))
    }

    fn restart(&mut self, now: Instant) {
        self.state = State::Init;
        self.next = now + Duration::from_secs(FIRST_DELAY_S);
    }

    fn send(
        &self,
        now: Instant,
        kind: MessageType,
        requested: Option<Ipv4Addr>,
        server_id: Option<Ipv4Addr>,
    ) -> DhcpAction {
        let (client_ip, destination) = match self.state {
            State::Renewing(lease) => (crate::packet::v4(lease.address.address()), lease.server),
            State::Rebinding(lease) => (crate::packet::v4(lease.address.address()), Ipv4Addr::BROADCAST),
            _ => (Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST),
        };
        let elapsed_s = u16::try_from((now - self.began).as_secs()).unwrap_or(u16::MAX);
        DhcpAction::Send(DhcpSend {
            kind,
            transaction_id: self.transaction_id,
            elapsed_s,
            client_ip,
            requested,
            server_id,
            destination,
        })
    }
}

/// The message is another client's, or comes at the wrong time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NotForUs;

impl DhcpSend {
    /// Writes the message to the front of `out`, which should have [`MAX_MESSAGE`] bytes; returns its length.
    pub(crate) fn emit(&self, mac: MacAddr, out: &mut [u8]) -> Option<usize> {
        let mut identifier = [1; 7];
        identifier[1..].copy_from_slice(&mac.0);
        let mut options = [DhcpOption::MessageType(self.kind); 6];
        let mut count = 1;
        let mut add = |option| {
            if let Some(place) = options.get_mut(count) {
                *place = option;
                count += 1;
            }
        };
        add(DhcpOption::ClientIdentifier(&identifier));
        if let Some(ip) = self.requested {
            add(DhcpOption::RequestedIp(ip));
        }
        if let Some(ip) = self.server_id {
            add(DhcpOption::ServerIdentifier(ip));
        }
        if !matches!(self.kind, MessageType::Decline | MessageType::Release) {
            add(DhcpOption::ParameterRequestList(&WANTED));
            add(DhcpOption::MaxMessageLen(1_400));
        }
        let message = Builder {
            elapsed_s: self.elapsed_s,
            broadcast: self.client_ip.is_unspecified(),
            client_ip: self.client_ip,
            ..Builder::request(self.transaction_id, mac, options.get(..count)?)
        };
        message.emit(out).ok()
    }
}

fn delay(sent: u8, random: u32) -> Duration {
    let seconds = FIRST_DELAY_S.checked_shl(u32::from(sent)).unwrap_or(MOST_DELAY_S).clamp(1, MOST_DELAY_S);
    Duration::from_millis(seconds * 1_000 - 1_000 + u64::from(random % 2_000))
}

/// Half of the time that is left, but not less than a minute, and not beyond the end.
fn half_way(now: Instant, end: Instant) -> Instant {
    let half = ((end - now) / 2).max(LEAST_RENEWAL);
    (now + half).min(end)
}

fn usable(ip: Ipv4Addr) -> Option<Ipv4Addr> {
    (!is_martian4(ip)).then_some(ip)
}

/// The address that a server gives, with its network: one that a host may have, in a network that is not all there is.
fn given(message: &Message<'_>) -> Option<Cidr> {
    let ip = usable(message.your_ip())?;
    let prefix_len = message.prefix_len().unwrap_or(class_prefix(ip));
    Cidr::new(IpAddr::V4(ip), prefix_len).filter(|cidr| prefix_len > 0 && cidr.is_of_one_host())
}

/// The prefix length that an address had before there were masks; for servers that tell none.
fn class_prefix(ip: Ipv4Addr) -> u8 {
    match ip.octets()[0] {
        0..128 => 8,
        128..192 => 16,
        _ => 24,
    }
}

#[cfg(test)]
#[path = "dhcp_tests.rs"]
mod tests;
