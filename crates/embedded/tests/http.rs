//! Programs that are not ours over our sockets: picoserve serves, reqwless fetches, byte for byte.

mod common;

use common::http::{Log, SIZES, fetch, options, servers};
use common::{World, addr, body};
use embedded_io_async::{ErrorKind, Read as _, Write as _};
use futures::future::{LocalBoxFuture, join_all};
use linerate_embedded::{Error, Literals, NoNames};
use linerate_transport::ListenAddr;
use reqwless::client::HttpClient;
use reqwless::request::RequestBuilder;

#[test]
fn bodies_arrive_byte_for_byte() {
    let (world, log) = (World::new(), Log::default());
    let listener = world.b.listen(ListenAddr { ip: None, port: 80 }, &options()).unwrap();
    let log = &log;
    world.run(servers(&world.time, &listener, log, 1), async {
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
    world.run(servers(&world.time, &listener, &log, 3), async {
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
    world.run(servers(&world.time, &listener, log, 1), async {
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
    world.run(servers(&world.time, &listener, log, 1), async {
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
