//! The host's end of our cable: configured while we run, as it was before when we are gone.

use super::{Link, LinkChange, NetconfigError, Netlink};
use std::net::IpAddr;

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

    /// Adds an address with its prefix and the route that comes with it. One that the interface had is left alone, now
    /// and at the end.
    pub fn add_address(&mut self, address: IpAddr, prefix_len: u8) -> Result<(), NetconfigError> {
        if self.netlink.add_address(self.link.index, address, prefix_len)? {
            self.added.push((address, prefix_len));
        }
        Ok(())
    }

    /// Brings the interface up.
    pub fn up(&mut self) -> Result<(), NetconfigError> {
        self.netlink.change_link(self.link.index, &LinkChange { up: Some(true), ..LinkChange::default() })
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
