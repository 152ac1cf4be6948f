//! A device on an interface of the host, which knows whether that is up.

use super::own::{HostDevice, pass_on_host};
use linerate_linux::netconfig::LinkWatch;
use linerate_nic::{Device, LinkState, QueuePair, pass_on};
use std::os::fd::{AsFd, BorrowedFd};

/// See the module.
pub struct Plugged<D> {
    device: D,
    link: Option<LinkWatch>,
}

impl<D> Plugged<D> {
    /// The device, on the interface of this name if it is one of the host's. Where it cannot be watched, it counts as up.
    pub fn new(device: D, interface: Option<&str>) -> Self {
        let watch = |name: &str| {
            LinkWatch::open(name)
                .map_err(|error| log::warn!("{name} is not watched for being up: {error}"))
                .ok()
        };
        Plugged { device, link: interface.and_then(watch) }
    }
}

impl<D: Device> Device for Plugged<D> {
    pass_on!(device: mac, mtu, capabilities, enable, set_filter, queues, set_steering);

    fn link(&self) -> LinkState {
        match &self.link {
            None => self.device.link(),
            Some(link) if link.is_up() => LinkState::UP,
            Some(_) => LinkState::DOWN,
        }
    }
}

impl<D: QueuePair> QueuePair for Plugged<D> {
    pass_on!(device: all of QueuePair);
}

impl<D: AsFd> AsFd for Plugged<D> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

impl<D: HostDevice> HostDevice for Plugged<D> {
    pass_on_host!(device);

    fn link_watch(&self) -> Option<&LinkWatch> {
        self.link.as_ref()
    }
}
