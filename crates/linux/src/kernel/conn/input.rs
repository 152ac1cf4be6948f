//! The receiving half of a connection: into its buffer, to nowhere, or to a file.

use super::{BUDGET, Conn, Phase};
use crate::files::OpenFile;
use crate::kernel::hub::Hub;
use crate::kernel::receive::Read;
use crate::pipe::Pipe;
use linerate_transport::{Parcel, Ready, Stored};
use rustix::fd::AsFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, sockopt};

impl Conn {
    fn start_storing(&mut self) {
        if !self.stores
            && let Some(fd) = &self.fd
        {
            self.stores = true;
            // A read leaves urgent bytes out and a pipe does not: now both have them in line (RFC 6093).
            let _ = sockopt::set_socket_oobinline(fd, true);
        }
    }

    /// Takes what comes into memory again.
    pub(crate) fn stop_storing(&mut self, hub: &mut Hub) {
        if self.stores {
            self.stores = false;
            if self.can_read {
                self.schedule(hub);
            }
        }
    }

    /// Moves what the socket has to a file; see [`linerate_transport::Transport::store`].
    pub(crate) fn store(
        &mut self,
        file: &OpenFile,
        offset: u64,
        len: usize,
        hub: &mut Hub,
    ) -> Option<Stored> {
        if !file.takes_now() {
            return None;
        }
        let Some(mut pipe) = self.fill(len, hub)? else { return Some(Stored::default()) };
        let (len, error) = file.take_from(&mut pipe, offset);
        Some(Stored { len, error })
    }

    /// Takes what the socket has; see [`linerate_transport::Transport::take`].
    pub(crate) fn take(&mut self, len: usize, hub: &mut Hub) -> Option<Parcel> {
        let pipe = self.fill(len, hub)?;
        Some(pipe.map_or_else(|| Parcel::new(0, ()), |pipe| Parcel::new(pipe.len(), pipe)))
    }

    /// What the socket has, in a pipe, or nothing; `None` where it comes through memory.
    fn fill(&mut self, len: usize, hub: &mut Hub) -> Option<Option<Pipe>> {
        // A pipe stops before an urgent byte, and stays there.
        if !hub.pipes || self.receive.len() > 0 || self.urgent {
            self.stop_storing(hub);
            return None;
        }
        let fd = self.fd.as_ref().filter(|_| self.phase == Phase::Open && !self.finished && self.can_read);
        let Some(fd) = fd else {
            self.start_storing();
            return Some(None);
        };
        let Some(mut pipe) = hub.pipe_pool.take() else {
            self.stop_storing(hub);
            return None;
        };
        let filled = pipe.fill(fd.as_fd(), len);
        self.start_storing();
        match filled {
            Ok(0) => {
                // The end, or an urgent byte: a read tells.
                self.stop_storing(hub);
                None
            }
            Ok(came) => {
                self.moved.1 += came as u64;
                hub.counters.bytes_received += came as u64;
                Some(Some(pipe))
            }
            Err(Errno::AGAIN) => {
                self.can_read = false;
                Some(None)
            }
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM) => {
                // A system, or a filter of system calls, that has no such thing.
                hub.pipes = false;
                self.stop_storing(hub);
                None
            }
            Err(errno) => {
                self.fail_with(errno, hub);
                Some(None)
            }
        }
    }

    /// Reads what fits; whether there is more to read.
    pub(super) fn read(&mut self, hub: &mut Hub, moved: &mut u64) -> bool {
        if self.stores {
            if self.can_read && !self.finished {
                self.mark(Ready::READABLE, hub);
            }
            return false;
        }
        let mut got = 0;
        let mut more = false;
        while self.can_read && !self.finished && self.receive.has_room() {
            if got >= BUDGET {
                more = true;
                break;
            }
            let Some(fd) = &self.fd else { break };
            match self.receive.fill(fd.as_fd(), &mut hub.pool) {
                Read::Some { len, full } => {
                    got += len as u64;
                    self.can_read = full || self.hang_up || self.urgent;
                }
                Read::Nothing => {
                    self.can_read = false;
                    self.urgent = false;
                }
                Read::NoRoom => break,
                Read::Finished => self.finish(hub),
                Read::Error(errno) => {
                    self.fail_with(errno, hub);
                    break;
                }
            }
        }
        if got > 0 {
            *moved += got;
            self.moved.1 += got;
            hub.counters.bytes_received += got;
            self.mark(Ready::READABLE, hub);
        }
        more
    }

    fn finish(&mut self, hub: &mut Hub) {
        self.finished = true;
        self.can_read = false;
        self.mark(Ready::FINISHED, hub);
        self.check_done(hub);
    }

    /// Throws away what a closed connection still receives; whether there is more.
    pub(super) fn discard(&mut self, hub: &mut Hub, moved: &mut u64) -> bool {
        let mut got = 0;
        while self.can_read && !self.finished {
            if got >= BUDGET {
                return true;
            }
            let Some(fd) = &self.fd else { break };
            // With TRUNC, TCP drops the bytes instead of copying them.
            match rustix::net::recv(fd, &mut hub.scratch[..], RecvFlags::TRUNC) {
                Ok((_, 0)) => self.finish(hub),
                Ok((_, len)) => {
                    got += len as u64;
                    *moved += len as u64;
                }
                Err(Errno::AGAIN) => self.can_read = false,
                Err(Errno::INTR) => {}
                Err(errno) => {
                    self.fail_with(errno, hub);
                    break;
                }
            }
        }
        false
    }
}
