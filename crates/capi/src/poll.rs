//! Readiness by level, as `poll` tells it, over a stack that tells edges.

use crate::errno::Result;
use crate::host::Host;
use crate::table::Kind;
use core::ffi::c_int;
use libc::{POLLERR, POLLHUP, POLLIN, POLLOUT, POLLRDHUP, POLLRDNORM, POLLWRNORM, c_short};
use linerate_transport::{ConnState, Transport as _};

/// Bits of data to read.
const READABLE: c_short = POLLIN | POLLRDNORM;
/// Bits of room to write.
const WRITABLE: c_short = POLLOUT | POLLWRNORM;

impl Host {
    /// Everything that is true of a socket now; POLLNVAL is the caller's to say.
    pub(crate) fn readiness(&mut self, fd: c_int) -> Result<c_short> {
        match &mut self.sockets.get(fd)?.kind {
            Kind::Idle { .. } => Ok(WRITABLE | POLLHUP),
            Kind::Listening { .. } => Ok(if self.peek_accept(fd)?.is_some() { READABLE } else { 0 }),
            Kind::Datagram { .. } => Ok(WRITABLE | if self.has_datagram(fd)? { READABLE } else { 0 }),
            Kind::Stream(stream) => {
                let stack = &self.node.stack;
                let state = stream.state(stack);
                let finished = match state {
                    ConnState::Connecting => return Ok(0),
                    ConnState::Open { finished } => finished,
                    ConnState::Closed(_) => {
                        let error = if stream.pending_error(stack).is_some() { POLLERR } else { 0 };
                        return Ok(READABLE | WRITABLE | POLLRDHUP | POLLHUP | error);
                    }
                };
                let no_more = finished || stream.read_shut;
                let mut bits = 0;
                if no_more || stack.readable(stream.id) > 0 {
                    bits |= READABLE;
                }
                if no_more {
                    bits |= POLLRDHUP;
                }
                if stream.write_shut || stack.writable(stream.id) > 0 {
                    bits |= WRITABLE;
                }
                if no_more && stream.write_shut {
                    bits |= POLLHUP;
                }
                Ok(bits)
            }
        }
    }
}
