//! What is at the end of a cable.

use crate::host::Host;
use crate::link::LinkPath;
use crate::parcel::Parcel;
use crate::raw::Peer;
use crate::timeline::Timeline;
use linerate_nic::MacAddr;
use linerate_wire::units::Instant;
use std::net::IpAddr;

pub(crate) enum Kind {
    Host(Box<Host>),
    Raw(Box<Raw>),
}

/// A node and its cable.
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) mac: MacAddr,
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) kind: Kind,
    pub(crate) up: LinkPath,
    pub(crate) down: LinkPath,
}

impl Node {
    /// Where segments wait that are on their way to the node and have left all paths, as `parcel` has.
    pub(crate) fn inbound_for(&mut self, parcel: &Parcel) -> &mut Timeline {
        match &mut self.kind {
            Kind::Host(host) => host.inbound_for(parcel),
            Kind::Raw(raw) => &mut raw.inbound,
        }
    }
}

/// A scripted node.
#[derive(Default)]
pub(crate) struct Raw {
    pub(crate) inbound: Timeline,
    pub(crate) received: Vec<(Instant, Vec<u8>)>,
    pub(crate) discards: bool,
    pub(crate) peer: Option<Box<dyn Peer>>,
}

/// The Ethernet address of a node that is not told one.
pub(crate) fn mac_of(index: usize) -> MacAddr {
    let number = (index as u32 + 1).to_be_bytes();
    MacAddr([2, 0, number[0], number[1], number[2], number[3]])
}
