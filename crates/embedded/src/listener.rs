//! TCP listeners.

use crate::clock::Clock;
use crate::error::Error;
use crate::net::{Net, Shared, Waiting};
use crate::tcp::TcpSocket;
use crate::waits::QueueId;
use core::future::poll_fn;
use core::net::SocketAddr;
use core::task::Poll;
use linerate_transport::{Engine, ListenAddr, ListenOptions, ListenerId};

impl<E: Engine, C: Clock> Net<E, C> {
    /// Listens for TCP connections. The length of the queue of those not yet accepted is in `options`.
    ///
    /// # Errors
    ///
    /// [`Error::Open`].
    pub fn listen(&self, addr: ListenAddr, options: &ListenOptions) -> Result<Listener<'_>, Error> {
        let shared: &dyn Shared = self;
        let id = shared.with(|net, _| net.listen(crate::tcp::OWNER, addr, options)).map_err(Error::Open)?;
        Ok(Listener { shared, id })
    }
}

/// A TCP listener. Dropped, it closes, and connections that nobody accepted are reset; accepted ones live on.
pub struct Listener<'a> {
    shared: &'a dyn Shared,
    id: ListenerId,
}

impl<'a> Listener<'a> {
    /// The next connection. Several tasks may wait for it; each connection goes to one of them. Dropped before it has
    /// returned, it leaves the connection to the next call.
    pub async fn accept(&self) -> TcpSocket<'a> {
        let mut waiting = Waiting::new(self.shared, QueueId::Listener(self.id));
        let conn = poll_fn(|cx| {
            self.shared.with(|net, waits| match net.accept(self.id) {
                Some(conn) => Poll::Ready(conn),
                None => {
                    waiting.wait(waits, cx);
                    Poll::Pending
                }
            })
        });
        TcpSocket::new(self.shared, conn.await)
    }

    /// The address it is bound to; an unspecified IP where it listens on all of them.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.shared.with(|net, _| net.listener_addr(self.id))
    }
}

impl Drop for Listener<'_> {
    fn drop(&mut self) {
        self.shared.with(|net, waits| {
            net.close_listener(self.id);
            waits.call();
        });
    }
}
