//! What is at the end of a cable.

use crate::host::Host;
use crate::journal::{Journal, Part, Pen};
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
    /// Notes what passes the interface.
    pub(crate) pen: Pen,
}

impl Node {
    /// Notes what happens here, as the node with this number, from now on.
    pub(crate) fn keep_journal(&mut self, journal: &Journal, index: usize) {
        self.pen = journal.pen(index, Part::Interface);
        self.up.set_pen(journal.pen(index, Part::Up));
        self.down.set_pen(journal.pen(index, Part::Down));
        if let Kind::Host(host) = &mut self.kind {
            host.set_pens(|queue| journal.pen(index, Part::Core(queue)));
        }
    }

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
