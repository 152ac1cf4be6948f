//! TCP connections as `embedded-io-async` reads and writes them.

use crate::clock::Clock;
use crate::error::Error;
use crate::net::{Net, Shared};
use core::future::poll_fn;
use core::net::SocketAddr;
use core::task::{Context, Poll};
use embedded_io_async::{ErrorType, Read, ReadReady, Write, WriteReady};
use linerate_transport::{
    CloseReason, ConnId, ConnInfo, ConnState, Engine, MAX_PAYLOAD, Owner, Payload, SendError, SocketOptions,
    Transport,
};

/// Whose the sockets of a net are: nobody else takes events from its engine.
pub(crate) const OWNER: Owner = Owner(0);

/// Where memory is short, no smaller piece than this is tried.
const LEAST: usize = 256;

impl<E: Engine, C: Clock> Net<E, C> {
    /// Connects, from a source address and port of the stack's choice, with the settings of [`Net::with_options`].
    /// Dropped before it has returned, it gives the attempt up.
    ///
    /// # Errors
    ///
    /// [`Error::Connect`] when there is no way to start, [`Error::Closed`] when the peer refused or did not answer.
    pub async fn connect(&self, remote: SocketAddr) -> Result<TcpSocket<'_>, Error> {
        self.connect_with(None, remote, self.options()).await
    }

    /// As [`Net::connect`], from this address (port 0 for any) and with these settings.
    ///
    /// # Errors
    ///
    /// As [`Net::connect`].
    pub async fn connect_with(
        &self,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        options: &SocketOptions,
    ) -> Result<TcpSocket<'_>, Error> {
        let shared: &dyn Shared = self;
        let id = shared
            .with(|net, waits| {
                waits.call();
                net.connect(OWNER, local, remote, options)
            })
            .map_err(Error::Connect)?;
        let socket = TcpSocket::new(shared, id);
        poll_fn(|cx| {
            shared.with(|net, waits| match net.state(id) {
                ConnState::Connecting => {
                    waits.write(id, cx);
                    Poll::Pending
                }
                ConnState::Open { .. } | ConnState::Closed(CloseReason::Done) => Poll::Ready(Ok(())),
                ConnState::Closed(reason) => Poll::Ready(Err(Error::Closed(reason))),
            })
        })
        .await?;
        Ok(socket)
    }
}

/// A TCP connection.
///
/// - Reading and writing are safe to cancel: a future of `read`, `write` or `flush` that is dropped before it has returned has
///   taken and queued nothing. (`read_exact` and `write_all` are loops over these.)
/// - `read` returns 0 at the end of what the peer sends. After a reset, and whatever else ends a connection before that, it
///   fails; data that was not read before a reset is gone.
/// - `write` copies into the send buffer, and waits while that is full.
/// - `flush` waits until the peer has acknowledged everything written.
/// - Dropped, it closes: what was written is still delivered, in the background, and what the peer sends from then on is
///   discarded. If there is received data that nobody read, the connection is reset instead, so that the peer does not take
///   it for read (RFC 2525 section 2.17).
pub struct TcpSocket<'a> {
    shared: &'a dyn Shared,
    id: ConnId,
}

/// The receiving half of a [`TcpSocket`].
pub struct TcpReader<'a> {
    shared: &'a dyn Shared,
    id: ConnId,
}

/// The sending half of a [`TcpSocket`].
pub struct TcpWriter<'a> {
    shared: &'a dyn Shared,
    id: ConnId,
}

impl<'a> TcpSocket<'a> {
    pub(crate) fn new(shared: &'a dyn Shared, id: ConnId) -> Self {
        TcpSocket { shared, id }
    }

    /// Both halves, for two tasks or two futures of one.
    pub fn split(&mut self) -> (TcpReader<'_>, TcpWriter<'_>) {
        (self.reader(), self.writer())
    }

    fn reader(&self) -> TcpReader<'_> {
        TcpReader { shared: self.shared, id: self.id }
    }

    fn writer(&self) -> TcpWriter<'_> {
        TcpWriter { shared: self.shared, id: self.id }
    }

    /// As [`TcpReader::read_with`].
    ///
    /// # Errors
    ///
    /// Those of `read`.
    pub async fn read_with<R>(&mut self, f: impl FnOnce(&[u8]) -> (usize, R)) -> Result<R, Error> {
        self.reader().read_with(f).await
    }

    /// As [`TcpWriter::send`].
    ///
    /// # Errors
    ///
    /// Those of `write`, and [`Error::Payload`].
    pub async fn send(&mut self, payload: Payload) -> Result<(), Error> {
        self.writer().send(payload).await
    }

    /// Ends sending: FIN after everything written. Reading goes on.
    pub fn shutdown(&mut self) {
        self.writer().shutdown();
    }

    /// Closes; the same as dropping it.
    pub fn close(self) {}

    /// Resets the connection; what was written and not yet acknowledged is lost.
    pub fn abort(self) {
        self.shared.with(|net, waits| {
            net.abort(self.id);
            waits.call();
        });
    }

    /// Where the connection stands.
    pub fn state(&self) -> ConnState {
        self.shared.with(|net, _| net.state(self.id))
    }

    /// Measurements: round-trip time, windows, what limits it.
    pub fn info(&self) -> Option<ConnInfo> {
        self.shared.with(|net, _| net.info(self.id))
    }

    /// The peer's address.
    pub fn remote_addr(&self) -> Option<SocketAddr> {
        self.shared.with(|net, _| net.remote_addr(self.id))
    }

    /// Our address.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.info().map(|info| info.local)
    }

    /// Changes settings: keep-alive, timeouts, pacing.
    pub fn set_options(&mut self, options: &SocketOptions) {
        self.shared.with(|net, waits| {
            net.set_options(self.id, options);
            waits.call();
        });
    }
}

impl Drop for TcpSocket<'_> {
    fn drop(&mut self) {
        self.shared.with(|net, waits| {
            // After `abort` the id is nobody's, and both calls do nothing.
            if net.readable(self.id) > 0 {
                net.abort(self.id);
            } else {
                net.close(self.id);
            }
            waits.forget_conn(self.id);
            waits.call();
        });
    }
}

/// What a reader finds when there are no bytes: the end, an error, or a reason to wait.
fn at_end(state: ConnState) -> Poll<Result<(), Error>> {
    match state {
        ConnState::Open { finished: true } | ConnState::Closed(CloseReason::Done) => Poll::Ready(Ok(())),
        ConnState::Closed(reason) => Poll::Ready(Err(Error::Closed(reason))),
        ConnState::Open { finished: false } | ConnState::Connecting => Poll::Pending,
    }
}

impl TcpReader<'_> {
    /// Waits for data and calls `f` with the first piece of it where it lies, or with nothing at the end. `f` returns how many
    /// bytes it has used, and what it has made of them. It must not use the net.
    ///
    /// # Errors
    ///
    /// Those of `read`.
    pub async fn read_with<R>(&mut self, f: impl FnOnce(&[u8]) -> (usize, R)) -> Result<R, Error> {
        let mut f = Some(f);
        poll_fn(|cx| {
            self.shared.with(|net, waits| {
                if net.readable(self.id) == 0 && at_end(net.state(self.id))?.is_pending() {
                    waits.read(self.id, cx);
                    return Poll::Pending;
                }
                let Some(f) = f.take() else { return Poll::Pending };
                let (used, result) = f(net.peek(self.id));
                if used > 0 {
                    net.consume(self.id, used);
                    waits.call();
                }
                Poll::Ready(Ok(result))
            })
        })
        .await
    }

    fn poll_read(&self, cx: &Context<'_>, buf: &mut [u8]) -> Poll<Result<usize, Error>> {
        self.shared.with(|net, waits| {
            let mut count = 0;
            while count < buf.len() {
                let piece = net.peek(self.id);
                let len = piece.len().min(buf.len() - count);
                if len == 0 {
                    break;
                }
                buf[count..count + len].copy_from_slice(&piece[..len]);
                net.consume(self.id, len);
                count += len;
            }
            if count > 0 {
                // The window has opened, of which the peer may have to hear.
                waits.call();
                return Poll::Ready(Ok(count));
            }
            if buf.is_empty() {
                return Poll::Ready(Ok(0));
            }
            let end = at_end(net.state(self.id));
            if end.is_pending() {
                waits.read(self.id, cx);
            }
            end.map_ok(|()| 0)
        })
    }
}

impl TcpWriter<'_> {
    /// Queues a payload as a whole without copying it: a constant, or shared bytes. Waits while the send buffer is full.
    ///
    /// # Errors
    ///
    /// Those of `write`; [`Error::Payload`] for a range of a file, which nobody reads here, and for more than 64 KiB.
    pub async fn send(&mut self, payload: Payload) -> Result<(), Error> {
        if matches!(payload, Payload::File(_)) {
            return Err(Error::Payload);
        }
        poll_fn(|cx| {
            self.shared.with(|net, waits| {
                waits.call();
                match net.send(self.id, payload.clone()) {
                    Ok(()) => Poll::Ready(Ok(())),
                    Err(SendError::TooLong) => Poll::Ready(Err(Error::Payload)),
                    Err(SendError::Closed) => self.refused(net, waits, cx),
                    Err(SendError::Full) => {
                        waits.write(self.id, cx);
                        Poll::Pending
                    }
                }
            })
        })
        .await
    }

    /// Ends sending: FIN after everything written.
    pub fn shutdown(&mut self) {
        self.shared.with(|net, waits| {
            net.shutdown(self.id);
            waits.call();
        });
    }

    /// Why the transport says that the connection is closed for sending.
    fn refused<T>(
        &self,
        net: &mut dyn Transport,
        waits: &mut crate::waits::Waits,
        cx: &Context<'_>,
    ) -> Poll<Result<T, Error>> {
        match net.state(self.id) {
            ConnState::Closed(reason) => Poll::Ready(Err(Error::Closed(reason))),
            ConnState::Open { .. } => Poll::Ready(Err(Error::ShutDown)),
            ConnState::Connecting => {
                waits.write(self.id, cx);
                Poll::Pending
            }
        }
    }

    fn poll_write(&self, cx: &Context<'_>, buf: &[u8]) -> Poll<Result<usize, Error>> {
        if buf.is_empty() {
            return Poll::Ready(Ok(0));
        }
        self.shared.with(|net, waits| {
            waits.call();
            let mut len = net.sendable(self.id).clamp(1, MAX_PAYLOAD).min(buf.len());
            loop {
                match net.write(self.id, &buf[..len]) {
                    Ok(()) => return Poll::Ready(Ok(len)),
                    Err(SendError::Closed) => return self.refused(net, waits, cx),
                    // Fewer pages are free than it takes, perhaps.
                    Err(SendError::Full | SendError::TooLong) if len > LEAST => len /= 2,
                    Err(SendError::Full | SendError::TooLong) => {
                        waits.write(self.id, cx);
                        return Poll::Pending;
                    }
                }
            }
        })
    }

    fn poll_flush(&self, cx: &Context<'_>) -> Poll<Result<(), Error>> {
        self.shared.with(|net, waits| match net.state(self.id) {
            ConnState::Closed(CloseReason::Done) => Poll::Ready(Ok(())),
            ConnState::Closed(reason) => Poll::Ready(Err(Error::Closed(reason))),
            _ if net.unsent(self.id) == 0 => Poll::Ready(Ok(())),
            _ => {
                waits.write(self.id, cx);
                Poll::Pending
            }
        })
    }
}

impl ErrorType for TcpReader<'_> {
    type Error = Error;
}

impl ErrorType for TcpWriter<'_> {
    type Error = Error;
}

impl ErrorType for TcpSocket<'_> {
    type Error = Error;
}

impl Read for TcpReader<'_> {
    async fn read(&mut self, buf: &mut [u8]) -> Result<usize, Error> {
        poll_fn(|cx| self.poll_read(cx, buf)).await
    }
}

impl ReadReady for TcpReader<'_> {
    fn read_ready(&mut self) -> Result<bool, Error> {
        self.shared.with(|net, _| {
            let ready = net.readable(self.id) > 0 || at_end(net.state(self.id)).is_ready();
            Ok(ready)
        })
    }
}

impl Write for TcpWriter<'_> {
    async fn write(&mut self, buf: &[u8]) -> Result<usize, Error> {
        poll_fn(|cx| self.poll_write(cx, buf)).await
    }

    async fn flush(&mut self) -> Result<(), Error> {
        poll_fn(|cx| self.poll_flush(cx)).await
    }
}

impl WriteReady for TcpWriter<'_> {
    fn write_ready(&mut self) -> Result<bool, Error> {
        self.shared.with(|net, _| {
            let is_over = matches!(net.state(self.id), ConnState::Closed(_));
            Ok(is_over || net.sendable(self.id) > 0)
        })
    }
}

impl Read for TcpSocket<'_> {
    async fn read(&mut self, buf: &mut [u8]) -> Result<usize, Error> {
        self.reader().read(buf).await
    }
}

impl ReadReady for TcpSocket<'_> {
    fn read_ready(&mut self) -> Result<bool, Error> {
        self.reader().read_ready()
    }
}

impl Write for TcpSocket<'_> {
    async fn write(&mut self, buf: &[u8]) -> Result<usize, Error> {
        self.writer().write(buf).await
    }

    async fn flush(&mut self) -> Result<(), Error> {
        self.writer().flush().await
    }
}

impl WriteReady for TcpSocket<'_> {
    fn write_ready(&mut self) -> Result<bool, Error> {
        self.writer().write_ready()
    }
}
