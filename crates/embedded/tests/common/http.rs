//! A server with picoserve and a client with reqwless, and what picoserve asks of those who bring their own sockets and
//! timers: a few lines around ours.

use super::body;
use super::time::Time;
use embedded_io_async::{ErrorType, Read as _, Write as _};
use embedded_nal_async::TcpConnect;
use futures::future::LocalBoxFuture;
use linerate_embedded::{Error, Listener, Literals, NoNames, TcpReader, TcpSocket, TcpWriter};
use linerate_transport::{AcceptBacklog, BufferSize, ListenOptions, SocketOptions};
use picoserve::mem::{BorrowedBuffer, BorrowedCursor};
use picoserve::routing::get;
use picoserve::{Config, Timeouts};
use reqwless::client::HttpClient;
use reqwless::request::Method;
use std::cell::RefCell;
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

/// Lengths of the bodies, by their number.
pub const SIZES: [usize; 4] = [1, 10 << 10, 1 << 20, 0];

/// What became of a connection, in picoserve's words.
pub type Log = RefCell<Vec<String>>;

/// Buffers as firmware has them, much smaller than the largest body.
pub fn options() -> ListenOptions {
    let socket = SocketOptions {
        send_buffer: BufferSize::Fixed(16 << 10),
        receive_buffer: BufferSize::Fixed(16 << 10),
        ..SocketOptions::default()
    };
    ListenOptions { backlog: AcceptBacklog(4), socket, ..ListenOptions::default() }
}

/// Serves the bodies of all sizes, and `/back`, which answers with what was posted.
async fn serve(listener: &Listener<'_>, time: Rc<Time>, log: &Log) {
    let app = picoserve::Router::new()
        .route("/0", get(|| async { body(SIZES[0]) }))
        .route("/1", get(|| async { body(SIZES[1]) }))
        .route("/2", get(|| async { body(SIZES[2]) }))
        .route("/3", get(|| async { body(SIZES[3]) }))
        .route("/back", picoserve::routing::post(|posted: Vec<u8>| async move { posted }));
    let timeouts = Timeouts {
        start_read_request: picoserve::time::Duration::from_secs(5),
        persistent_start_read_request: picoserve::time::Duration::from_secs(5),
        read_request: picoserve::time::Duration::from_secs(5),
        write: picoserve::time::Duration::from_secs(5),
    };
    let config = Config::new(timeouts).keep_connection_alive();
    let mut buffer = [0; 2_048];
    loop {
        let socket = Socket(listener.accept().await);
        let server = picoserve::Server::<Runtime, _, _, _>::custom(
            &app,
            Timer(Rc::clone(&time)),
            &config,
            &mut buffer,
        );
        let entry = match server.serve(socket).await {
            Ok(info) => format!("{} requests", info.handled_requests_count),
            Err(error) => format!("{error:?}"),
        };
        log.borrow_mut().push(entry);
    }
}

/// `count` servers on B's port 80, as tasks.
pub fn servers<'a>(
    time: &Rc<Time>,
    listener: &'a Listener<'a>,
    log: &'a Log,
    count: usize,
) -> Vec<LocalBoxFuture<'a, ()>> {
    let serve = |_| -> LocalBoxFuture<'a, ()> { Box::pin(serve(listener, Rc::clone(time), log)) };
    (0..count).map(serve).collect()
}

/// Fetches a body on a connection of its own, as reqwless does.
pub async fn fetch(net: &impl TcpConnect, host: &str, which: usize) -> Result<Vec<u8>, reqwless::Error> {
    let url = format!("http://{host}/{which}");
    let dns = Literals(NoNames);
    let mut client = HttpClient::new(net, &dns);
    let mut headers = [0; 1_024];
    let mut request = client.request(Method::GET, &url).await?;
    let response = request.send(&mut headers).await?;
    assert!(response.status.is_successful());
    let (mut reader, mut all, mut piece) = (response.body().reader(), Vec::new(), [0; 1_000]);
    loop {
        match reader.read(&mut piece).await? {
            0 => return Ok(all),
            len => all.extend_from_slice(&piece[..len]),
        }
    }
}
