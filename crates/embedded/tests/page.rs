//! The examples of `docs/embedded.md`, compiled and run.

#[path = "page/above.rs"]
mod above;
mod common;

use above::echo;
use common::{World, addr, body};
use embedded_io_async::{Read as _, Write as _};
use futures::future::{join, join_all};

/// The page shows this code, and no other.
fn check(code: &str) {
    let page = include_str!("../../../docs/embedded.md");
    assert!(page.contains(code), "docs/embedded.md does not have this code:\n{code}");
}

#[test]
fn the_page_shows_what_is_tested() {
    check(include_str!("page/above.rs"));
}

#[test]
fn the_echo_server_echoes() {
    let world = World::new();
    let server = async { echo(&world.b).await.expect("nobody else listens") };
    world.run(vec![Box::pin(server)], async {
        let world = &world;
        let client = |len| async move {
            let mut socket = talk(world, len).await;
            socket.shutdown();
            assert_eq!(socket.read(&mut [0]).await, Ok(0));
        };
        join_all([1, 3_000, 70_000].map(client)).await;
    });
}

/// A connection over which so many bytes went there and back.
async fn talk(world: &World, len: usize) -> linerate_embedded::TcpSocket<'_> {
    let mut socket = world.a.connect(addr(common::B, 7)).await.expect("a server");
    let mut back = vec![0; len];
    {
        let (mut reader, mut writer) = socket.split();
        let sent = body(len);
        let (sent_all, read_all) = join(writer.write_all(&sent), reader.read_exact(&mut back)).await;
        sent_all.expect("an open connection");
        read_all.expect("as much as was sent");
    }
    assert!(back == body(len), "{len} bytes");
    socket
}
