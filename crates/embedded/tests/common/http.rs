//! What picoserve asks of those who bring their own sockets and timers: a few lines around ours.

use super::time::Time;
use embedded_io_async::{ErrorType, Read as _, Write as _};
use linerate_embedded::{Error, TcpReader, TcpSocket, TcpWriter};
use picoserve::Timeouts;
use picoserve::mem::{BorrowedBuffer, BorrowedCursor};
use std::rc::Rc;
use std::time::Duration;

/// Names our sockets and timers towards picoserve.
pub struct Runtime;

/// A timer of picoserve's.
pub struct Timer(pub Rc<Time>);

impl picoserve::Timer<Runtime> for Timer {
    async fn delay(&self, duration: picoserve::time::Duration) {
        self.0.sleep(self.0.now() + Duration::from_millis(duration.as_millis())).await;
    }
}

/// The socket of a server.
pub struct Socket<'a>(pub TcpSocket<'a>);

/// What the server writes to.
pub struct Writer<'a>(TcpWriter<'a>);

impl ErrorType for Writer<'_> {
    type Error = Error;
}

impl embedded_io_async::Write for Writer<'_> {
    async fn write(&mut self, buf: &[u8]) -> Result<usize, Error> {
        self.0.write(buf).await
    }

    async fn flush(&mut self) -> Result<(), Error> {
        self.0.flush().await
    }
}

impl picoserve::io::Write for Writer<'_> {
    async fn write_with<F: FnOnce(BorrowedCursor<'_>) -> R, R>(&mut self, f: F) -> Result<R, Error> {
        let mut bytes = [0; 512];
        let mut buffer = BorrowedBuffer::new(&mut bytes);
        let result = f(buffer.unfilled());
        self.0.write_all(buffer.filled()).await?;
        Ok(result)
    }
}

impl picoserve::io::Socket<Runtime> for Socket<'_> {
    type Error = Error;
    type ReadHalf<'a>
        = TcpReader<'a>
    where
        Self: 'a;
    type WriteHalf<'a>
        = Writer<'a>
    where
        Self: 'a;

    fn split(&mut self) -> (TcpReader<'_>, Writer<'_>) {
        let (reader, writer) = self.0.split();
        (reader, Writer(writer))
    }

    async fn abort<T: picoserve::Timer<Runtime>>(
        self,
        _timeouts: &Timeouts,
        _timer: &T,
    ) -> Result<(), picoserve::Error<Error>> {
        self.0.abort();
        Ok(())
    }

    /// FIN, and then what the client still says, until it has finished too.
    async fn shutdown<T: picoserve::Timer<Runtime>>(
        mut self,
        timeouts: &Timeouts,
        timer: &T,
    ) -> Result<(), picoserve::Error<Error>> {
        self.0.shutdown();
        let mut rest = [0; 128];
        let drained = async {
            while self.0.read(&mut rest).await? > 0 {}
            Ok(())
        };
        let drained = timer.run_with_timeout(timeouts.read_request, drained).await;
        drained.map_err(picoserve::Error::ReadTimeout)?.map_err(picoserve::Error::Read)
    }
}
