//! One TCP listener over a kernel socket.

use super::hub::Hub;
use super::socket;
use crate::sys::socket as sys;
use linerate_transport::{BufferSize, ListenAddr, ListenError, ListenOptions, Owner, Ready, SocketOptions};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{self, SocketFlags, SocketType, sockopt};
use std::net::SocketAddr;
use std::time::Duration;

/// Most connections accepted per listener and turn, so that a storm of them leaves time for the others.
const ACCEPTS_PER_TURN: u32 = 64;
/// Connections that broke before they were accepted, skipped by one call.
const SKIPS_MAX: u32 = 16;

/// How asking for a connection ended.
#[derive(Debug)]
pub(crate) enum Accept {
    /// A connection.
    Conn(OwnedFd, SocketAddr),
    /// None is there.
    Nothing,
    /// Enough for this turn.
    Budget,
    /// There is no descriptor for it.
    NoDescriptor,
    /// Memory ran out.
    Starved,
}

#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) fd: OwnedFd,
    pub(crate) owner: Owner,
    /// What accepted connections start with; the kernel hands its part of it down by itself.
    pub(crate) options: SocketOptions,
    pub(crate) ready: Ready,
    pub(crate) in_events: bool,
    /// More may wait than this turn's budget, or the means, allowed to accept.
    pub(crate) unfinished: bool,
    accepts_left: u32,
    /// The receive buffer that it was opened with, while connections get another one.
    buffer: Option<usize>,
}

/// Closes a connection with a reset.
pub(crate) fn refuse(fd: OwnedFd) {
    // If this fails, the peer gets a FIN instead, and no answer either.
    let _ = sockopt::set_socket_linger(&fd, Some(Duration::ZERO));
}

impl Listener {
    pub(crate) fn open(
        owner: Owner,
        addr: ListenAddr,
        options: &ListenOptions,
        is_shared: bool,
    ) -> Result<Listener, ListenError> {
        let (fd, _) = socket::bind(addr, SocketType::STREAM, |fd| {
            sockopt::set_socket_reuseaddr(fd, true)?;
            if is_shared {
                sockopt::set_socket_reuseport(fd, true)?;
            }
            socket::apply(fd, &options.socket);
            Ok(())
        })?;
        net::listen(&fd, i32::from(options.backlog.0.max(1))).map_err(|errno| match errno {
            Errno::ADDRINUSE => ListenError::InUse,
            _ => ListenError::NoMemory,
        })?;
        Ok(Listener {
            fd,
            owner,
            options: options.socket.clone(),
            ready: Ready::NONE,
            in_events: false,
            unfinished: false,
            accepts_left: ACCEPTS_PER_TURN,
            buffer: None,
        })
    }

    /// See [`linerate_transport::Transport::offer_buffer`].
    ///
    /// A client splits its segments by half the largest window that it was ever told (`tcp_bound_to_half_wnd`), and does not
    /// send into a window that is smaller than one of them: where loopback's handshake offered 64 KiB and the buffer
    /// became smaller afterwards, it sends by its persist timer only.
    pub(crate) fn offer_buffer(&mut self, receive_buffer: Option<usize>) {
        if receive_buffer.is_some() && self.buffer.is_none() {
            self.buffer = sockopt::socket_recv_buffer_size(&self.fd).ok();
        }
        let result = match (receive_buffer, self.buffer) {
            (Some(bytes), _) => sockopt::set_socket_recv_buffer_size(&self.fd, bytes),
            (None, None) => Ok(()),
            (None, Some(bytes)) => {
                self.buffer = None;
                // The kernel tells twice of what it was given.
                sockopt::set_socket_recv_buffer_size(&self.fd, bytes / 2).and_then(|()| self.free_buffer())
            }
        };
        if let Err(errno) = result {
            log::debug!("the kernel refused a listener's receive buffer of {receive_buffer:?}: {errno}");
        }
    }

    /// Lets the receive buffers of connections grow again, unless it was opened with a fixed one.
    fn free_buffer(&self) -> Result<(), Errno> {
        let is_fixed = |size| matches!(size, BufferSize::Fixed(_));
        if is_fixed(self.options.receive_buffer) {
            return Ok(());
        }
        sys::set_fixed_buffers(&self.fd, is_fixed(self.options.send_buffer), false)
    }

    /// A new turn, a new budget.
    pub(crate) fn refill(&mut self) {
        self.accepts_left = ACCEPTS_PER_TURN;
    }

    /// Accepts one connection with the last descriptor and resets it, so that its client hears of it at once. False when that
    /// is not possible either.
    pub(crate) fn refuse_one(&mut self, hub: &mut Hub) -> bool {
        let fd = &self.fd;
        let accepted = hub.with_reserve(|_| net::accept_with(fd, SocketFlags::CLOEXEC).map(refuse).is_ok());
        if accepted == Some(true) {
            hub.counters.accept_refused += 1;
            self.accepts_left = self.accepts_left.saturating_sub(1);
            return true;
        }
        hub.counters.accept_starved += 1;
        hub.restore_reserve();
        false
    }

    pub(crate) fn accept(&mut self, hub: &mut Hub) -> Accept {
        if self.accepts_left == 0 {
            self.unfinished = true;
            return Accept::Budget;
        }
        let mut skips = 0;
        loop {
            match net::acceptfrom_with(&self.fd, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok((fd, addr)) => {
                    self.accepts_left -= 1;
                    // A peer that is gone already has no address; the first read will tell.
                    let remote = addr.and_then(socket::ip_addr);
                    let unknown = SocketAddr::new(std::net::Ipv4Addr::UNSPECIFIED.into(), 0);
                    return Accept::Conn(fd, remote.unwrap_or(unknown));
                }
                Err(Errno::AGAIN) => return Accept::Nothing,
                Err(Errno::MFILE | Errno::NFILE) => return Accept::NoDescriptor,
                Err(Errno::NOBUFS | Errno::NOMEM) => {
                    hub.counters.accept_starved += 1;
                    self.unfinished = true;
                    return Accept::Starved;
                }
                // Errors of the connection that was to be accepted: go on to the next.
                Err(_) if skips < SKIPS_MAX => skips += 1,
                Err(_) => {
                    self.unfinished = true;
                    return Accept::Budget;
                }
            }
        }
    }
}
