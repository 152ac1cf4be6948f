//! TCP listeners: the accept queue and its bound.

use crate::fast_open::Pending;
use alloc::collections::VecDeque;
use core::net::IpAddr;
use linerate_transport::{ConnId, ListenOptions, ListenerId, Owner, SocketOptions};

/// Connections that may wait to be accepted after a burst that was answered with cookies, however short the backlog.
const LEAST_OVERFLOW: usize = 64;

/// A listener.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) id: ListenerId,
    pub(crate) owner: Owner,
    /// The address; `None` for all of ours.
    pub(crate) ip: Option<IpAddr>,
    pub(crate) port: u16,
    /// What accepted connections start with.
    pub(crate) options: SocketOptions,
    /// Where TCP Fast Open is on: the connections that use it.
    pub(crate) fast_open: Option<Pending>,
    backlog: usize,
    half_open: usize,
    queue: VecDeque<ConnId>,
}

impl Listener {
    pub(crate) fn new(
        id: ListenerId,
        owner: Owner,
        ip: Option<IpAddr>,
        port: u16,
        options: &ListenOptions,
    ) -> Self {
        let backlog = usize::from(options.backlog.0.max(1));
        let queue = VecDeque::with_capacity(backlog.min(64));
        let fast_open = options.fast_open.map(Pending::new);
        let options = options.socket.clone();
        Listener { id, owner, ip, port, options, fast_open, backlog, half_open: 0, queue }
    }

    /// What connections start with from now on.
    pub(crate) fn set_options(&mut self, options: &SocketOptions) {
        self.options = options.clone();
    }

    /// Whether one more connection may begin: half-open ones and those not accepted yet share the bound, so that a
    /// flood of either kind has the same limit.
    pub(crate) fn has_room(&self) -> bool {
        self.waiting() < self.backlog
    }

    /// Whether nothing more can be accepted before the owner takes what waits.
    pub(crate) fn is_full(&self) -> bool {
        self.queue.len() >= self.backlog
    }

    /// Whether a client that has proved by a cookie that it receives finds no place any more. It was told to come while there
    /// was room, so that the bound for it is twice as far, and never less than [`LEAST_OVERFLOW`].
    pub(crate) fn is_overfull(&self) -> bool {
        self.queue.len() >= (2 * self.backlog).max(LEAST_OVERFLOW)
    }

    /// Connections that are half-open or not accepted yet.
    pub(crate) fn waiting(&self) -> usize {
        self.half_open + self.queue.len()
    }

    /// A SYN came.
    pub(crate) fn begin(&mut self) {
        self.half_open += 1;
    }

    /// A half-open connection became established, or may be used before it is.
    pub(crate) fn establish(&mut self, conn: ConnId) {
        self.half_open = self.half_open.saturating_sub(1);
        self.queue.push_back(conn);
    }

    /// A half-open connection ended.
    pub(crate) fn fail(&mut self) {
        self.half_open = self.half_open.saturating_sub(1);
    }

    /// An established connection ended before it was accepted. A walk over the bounded queue, on a rare event.
    pub(crate) fn forget(&mut self, conn: ConnId) {
        self.queue.retain(|&waiting| waiting != conn);
    }

    /// The oldest established connection.
    pub(crate) fn accept(&mut self) -> Option<ConnId> {
        self.queue.pop_front()
    }

    /// How many are half-open.
    pub(crate) fn half_open(&self) -> usize {
        self.half_open
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_transport::AcceptBacklog;

    #[test]
    fn half_open_and_waiting_connections_share_the_backlog() {
        let id = |index| ConnId::new(index, 0);
        let options = ListenOptions { backlog: AcceptBacklog(3), ..ListenOptions::default() };
        let mut listener = Listener::new(ListenerId::new(0, 0), Owner(1), None, 80, &options);
        for _ in 0..3 {
            assert!(listener.has_room());
            listener.begin();
        }
        assert!(!listener.has_room());
        listener.establish(id(1));
        listener.establish(id(2));
        assert!(!listener.has_room() && !listener.is_full());
        (3..65).for_each(|n| listener.establish(id(n)));
        assert!(listener.is_full() && listener.is_overfull());
        (3..65).for_each(|n| listener.forget(id(n)));
        assert!(!listener.is_overfull());
        listener.begin();
        listener.fail();
        assert!(listener.has_room());
        listener.forget(id(1));
        assert_eq!(listener.accept(), Some(id(2)));
        assert_eq!((listener.accept(), listener.waiting()), (None, 0));
    }
}
