//! Programs that are not ours over our sockets: picoserve serves, reqwless fetches, byte for byte.

mod common;

use common::http::{Runtime, Socket, Timer};
use common::time::Time;
use common::{World, addr, body};
use embedded_io_async::{ErrorKind, Read as _, Write as _};
use embedded_nal_async::TcpConnect;
use futures::future::{LocalBoxFuture, join_all};
use linerate_embedded::{Error, Listener, Literals, NoNames};
use linerate_transport::{AcceptBacklog, BufferSize, ListenAddr, ListenOptions, SocketOptions};
use picoserve::routing::get;
use picoserve::{Config, Timeouts};
use reqwless::client::HttpClient;
use reqwless::request::{Method, RequestBuilder};
use std::cell::RefCell;
use std::rc::Rc;

const SIZES: [usize; 4] = [1, 10 << 10, 1 << 20, 0];

/// What became of a connection, in picoserve's words.
type Log = RefCell<Vec<String>>;

/// Buffers as firmware has them, much smaller than the largest body.
fn options() -> ListenOptions {
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
        let server =
            picoserve::Server::<Runtime, _, _, _>::custom(&app, Timer(time.clone()), &config, &mut buffer);
        let entry = match server.serve(socket).await {
            Ok(info) => format!("{} requests", info.handled_requests_count),
            Err(error) => format!("{error:?}"),
        };
        log.borrow_mut().push(entry);
    }
}

/// `count` servers on B's port 80, as tasks.
fn servers<'a>(
    world: &'a World,
    listener: &'a Listener<'a>,
    log: &'a Log,
    count: usize,
) -> Vec<LocalBoxFuture<'a, ()>> {
    let serve = |_| -> LocalBoxFuture<'a, ()> { Box::pin(serve(listener, world.time.clone(), log)) };
    (0..count).map(serve).collect()
}

/// Fetches a body on a connection of its own, as reqwless does.
async fn fetch(net: &impl TcpConnect, host: &str, which: usize) -> Result<Vec<u8>, reqwless::Error> {
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

#[test]
fn bodies_arrive_byte_for_byte() {
    let (world, log) = (World::new(), Log::default());
    let listener = world.b.listen(ListenAddr { ip: None, port: 80 }, &options()).unwrap();
    let log = &log;
    world.run(servers(&world, &listener, log, 1), async {
        for (which, len) in SIZES.into_iter().enumerate() {
            assert!(fetch(&world.a, common::B, which).await.unwrap() == body(len), "{len} bytes");
        }
        world.until(|| log.borrow().len() == SIZES.len()).await;
        assert_eq!(*log.borrow(), ["1 requests"; SIZES.len()]);
    });
}

#[test]
fn several_at_once_under_loss() {
    let (world, log) = (World::new(), Log::default());
    // One frame in about thirty, in no pattern.
    world.lose(|count| (count * count * 31 + count * 17) % 89 < 3);
    let listener = world.b.listen(ListenAddr { ip: None, port: 80 }, &options()).unwrap();
    world.run(servers(&world, &listener, &log, 3), async {
        let all = (0..9).map(|i| fetch(&world.a, common::B, i % 3));
        for (i, fetched) in join_all(all).await.into_iter().enumerate() {
            assert!(fetched.unwrap() == body(SIZES[i % 3]), "{} bytes", SIZES[i % 3]);
        }
    });
}

#[test]
fn requests_follow_each_other_on_one_connection_and_carry_bodies() {
    let (world, log) = (World::new(), Log::default());
    let listener = world.b.listen(ListenAddr { ip: None, port: 80 }, &options()).unwrap();
    let log = &log;
    world.run(servers(&world, &listener, log, 1), async {
        let dns = Literals(NoNames);
        let mut client = HttpClient::new(&world.a, &dns);
        let mut resource = client.resource("http://10.0.0.2").await.unwrap();
        for len in [1, 500, 1_500] {
            let (posted, mut buffer) = (body(len), [0; 4_096]);
            let request = resource.post("/back").body(&posted[..]);
            let response = request.send(&mut buffer).await.unwrap();
            assert!(response.body().read_to_end().await.unwrap() == posted, "{len} bytes");
        }
        drop(resource);
        world.until(|| !log.borrow().is_empty()).await;
        assert_eq!(*log.borrow(), ["3 requests"]);
    });
}

#[test]
fn a_client_that_goes_away_frees_the_server() {
    let (world, log) = (World::new(), Log::default());
    let listener = world.b.listen(ListenAddr { ip: None, port: 80 }, &options()).unwrap();
    let log = &log;
    world.run(servers(&world, &listener, log, 1), async {
        let mut conn = world.a.connect(addr(common::B, 80)).await.unwrap();
        conn.write_all(b"GET /2 HTTP/1.1\r\nHost: b\r\n\r\n").await.unwrap();
        let mut first = [0; 5_000];
        conn.read_exact(&mut first).await.unwrap();
        // There is unread data, so that it ends with a reset.
        drop(conn);
        assert!(fetch(&world.a, common::B, 1).await.unwrap() == body(SIZES[1]));
        assert_eq!(*log.borrow(), ["Write(Closed(Reset))"]);
    });
}

#[test]
fn a_server_that_resets_is_an_error_of_the_client() {
    let world = World::new();
    let listener = world.b.listen(ListenAddr { ip: None, port: 80 }, &options()).unwrap();
    let server: LocalBoxFuture<'_, ()> = Box::pin(async {
        let mut conn = listener.accept().await;
        conn.read(&mut [0; 512]).await.unwrap();
        conn.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nsome").await.unwrap();
        conn.flush().await.unwrap();
        conn.abort();
    });
    world.run(vec![server], async {
        let error = fetch(&world.a, common::B, 0).await.unwrap_err();
        assert!(matches!(error, reqwless::Error::Network(ErrorKind::ConnectionReset)), "it was {error:?}");
        let refused = world.a.connect(addr(common::B, 81)).await.map(drop).unwrap_err();
        assert_eq!(refused, Error::Closed(linerate_transport::CloseReason::Refused));
    });
}
