//! The receiving half of a connection: into its buffer, to nowhere, or to a file.

use super::{BUDGET, Conn, Phase};
use crate::files::OpenFile;
use crate::kernel::hub::Hub;
use crate::kernel::pipe::{self, Pipe};
use crate::kernel::receive::Read;
use linerate_transport::{Ready, Stored};
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
        // A pipe stops before an urgent byte, and stays there.
        let may = hub.pipes && self.receive.len() == 0 && !self.urgent && file.takes_now();
        if !may {
            self.stop_storing(hub);
            return None;
        }
        self.start_storing();
        if self.phase != Phase::Open || self.finished || !self.can_read {
            return Some(Stored::default());
        }
        let Some(fd) = &self.fd else { return Some(Stored::default()) };
        let pipe = match hub.pipe.take().map_or_else(Pipe::new, Ok) {
            Ok(pipe) => pipe,
            Err(_) => {
                self.stop_storing(hub);
                return None;
            }
        };
        let filled = pipe.fill(fd.as_fd(), len.min(pipe::LEN));
        match filled {
            Ok(0) => {
                // The end, or an urgent byte: a read tells.
                hub.pipe = Some(pipe);
                self.stop_storing(hub);
                return None;
            }
            Ok(came) => {
                self.moved.1 += came as u64;
                hub.counters.bytes_received += came as u64;
                let (len, error) = file.take_from(pipe.output(), offset, came);
                // A pipe in which something is left is dropped with it: the file takes no more.
                if error.is_none() {
                    hub.pipe = Some(pipe);
                }
                return Some(Stored { len, error });
            }
            Err(Errno::AGAIN) => self.can_read = false,
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM) => {
                // A system, or a filter of system calls, that has no such thing.
                hub.pipes = false;
                self.stop_storing(hub);
                return None;
            }
            Err(errno) => self.fail_with(errno, hub),
        }
        hub.pipe = Some(pipe);
        Some(Stored::default())
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
