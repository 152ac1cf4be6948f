//! Whether an interface is up, as it changes.

use super::{NetconfigError, Netlink};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType};
use std::cell::Cell;

/// Most messages thrown away in one look; more of them are the next one's.
const MESSAGES_MAX: usize = 256;

/// A socket that can be read when something about an interface changed, and what was found at the last look.
#[derive(Debug)]
pub struct LinkWatch {
    fd: OwnedFd,
    name: String,
    is_up: Cell<bool>,
}

impl LinkWatch {
    /// Watches the interface called `name`, in the network namespace of this thread. Needs no privilege.
    pub fn open(name: &str) -> Result<LinkWatch, NetconfigError> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        rustix::net::bind(&fd, &SocketAddrNetlink::new(0, libc::RTMGRP_LINK as u32))?;
        // Asked after listening, so that no change falls between.
        let is_up = Cell::new(usable(name)?);
        Ok(LinkWatch { fd, name: name.to_owned(), is_up })
    }

    /// Whether the interface was up and had a carrier at the last look.
    pub fn is_up(&self) -> bool {
        self.is_up.get()
    }

    /// Looks again, if there is news. An interface that is gone is down.
    pub fn look(&self) {
        let mut message = [0; 16];
        let mut any = false;
        for _ in 0..MESSAGES_MAX {
            // What changed does not matter: the interface is asked. So messages may be cut, and lost (`ENOBUFS`).
            match rustix::net::recv(&self.fd, &mut message, RecvFlags::empty()) {
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                _ => any = true,
            }
        }
        if any {
            match usable(&self.name) {
                Ok(is_up) => self.is_up.set(is_up),
                Err(NetconfigError::NoSuchInterface(_)) => self.is_up.set(false),
                Err(error) => log::warn!("whether {} is up: {error}", self.name),
            }
        }
    }
}

impl AsFd for LinkWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn usable(name: &str) -> Result<bool, NetconfigError> {
    let link = Netlink::open()?.link(name)?;
    Ok(link.up && link.has_carrier)
}
