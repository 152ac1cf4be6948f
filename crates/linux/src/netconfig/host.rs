//! The host's end of our cable: configured while we run, as it was before when we are gone.

use super::{Link, LinkChange, NetconfigError, Netlink};
use std::net::IpAddr;
use std::time::Duration;

/// How often, and how far apart, to look whether a new address is usable: a second in all.
const ROUTE_TRIES: u32 = 1000;
const ROUTE_PAUSE: Duration = Duration::from_millis(1);

/// An interface of the host, and what we changed of it. Dropping it takes back the addresses that it added.
///
/// Whoever ends by a signal that is not handled leaves the addresses behind on an interface that outlives the program;
/// a TAP does not.
pub struct HostInterface {
    netlink: Netlink,
    link: Link,
    added: Vec<(IpAddr, u8)>,
}

impl HostInterface {
    /// The interface called `name`, unchanged.
    pub fn open(name: &str) -> Result<Self, NetconfigError> {
        let mut netlink = Netlink::open()?;
        let link = netlink.link(name)?;
        Ok(HostInterface { netlink, link, added: Vec::new() })
    }

    /// What the interface was when this was opened.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// The addresses that the interface has, without those that are good on the link alone.
    pub fn addresses(&mut self) -> Result<Vec<(IpAddr, u8)>, NetconfigError> {
        self.netlink.addresses(self.link.index)
    }

    /// Whether something is to be taken back at the end. That needs the right which adding it needed.
    pub fn has_added(&self) -> bool {
        !self.added.is_empty()
    }

    /// Lets the interface keep its addresses of IPv6 while it is down, as it keeps those of IPv4: whoever sets it down and up again
    /// would lose them for good.
    pub fn keep_addresses(&self) {
        let setting = format!("/proc/sys/net/ipv6/conf/{}/keep_addr_on_down", self.link.name);
        if let Err(error) = std::fs::write(&setting, "1") {
            log::debug!("{setting}: {error}");
        }
    }

    /// Takes nothing back at the end: the interface itself will be gone.
    pub fn leave_as_it_is(&mut self) {
        self.added.clear();
    }

    /// Adds an address with its prefix and the route that comes with it. One that the interface had is left alone, now
    /// and at the end. When the interface is up, packets to the address are taken as soon as this returns.
    pub fn add_address(&mut self, address: IpAddr, prefix_len: u8) -> Result<(), NetconfigError> {
        if self.netlink.add_address(self.link.index, address, prefix_len)? {
            self.added.push((address, prefix_len));
        }
        if self.netlink.link(&self.link.name)?.up { self.await_local(address) } else { Ok(()) }
    }

    /// Brings the interface up, and waits until the addresses that were added are usable.
    pub fn up(&mut self) -> Result<(), NetconfigError> {
        // Asking for what is so already would need a right that the owner of a TAP may not have.
        if !self.netlink.link(&self.link.name)?.up {
            let up = LinkChange { up: Some(true), ..LinkChange::default() };
            self.netlink.change_link(self.link.index, &up)?;
        }
        for i in 0..self.added.len() {
            self.await_local(self.added[i].0)?;
        }
        Ok(())
    }

    /// The kernel enters the route of an IPv6 address from a work queue, after the answer to the request. Until then it
    /// drops what comes for the address.
    fn await_local(&mut self, address: IpAddr) -> Result<(), NetconfigError> {
        for _ in 0..ROUTE_TRIES {
            if self.netlink.is_local(address)? {
                return Ok(());
            }
            std::thread::sleep(ROUTE_PAUSE);
        }
        log::warn!("{address} on {} has no route after a second", self.link.name);
        Ok(())
    }

    /// Changes other things of the interface. They stay.
    pub fn change(&mut self, change: &LinkChange) -> Result<(), NetconfigError> {
        self.netlink.change_link(self.link.index, change)
    }
}

impl Drop for HostInterface {
    fn drop(&mut self) {
        for (address, prefix_len) in self.added.drain(..).rev() {
            if let Err(error) = self.netlink.delete_address(self.link.index, address, prefix_len) {
                log::warn!("{address}/{prefix_len} stays on {}: {error}", self.link.name);
            }
        }
    }
}
