//! What a TCP socket promises: nothing lost, nothing twice, halves that end alone, futures that may be dropped.

mod common;

use common::{World, addr, body};
use embedded_io_async::{Error as _, ErrorKind, Read as _, ReadReady as _, Write as _, WriteReady as _};
use futures::future::{LocalBoxFuture, join, join_all};
use linerate_embedded::{Error, TcpSocket};
use linerate_nic::Pool;
use linerate_stack::StackPools;
use linerate_transport::{
    BufferSize, CloseReason, ConnectError, Engine as _, FileId, FileRange, ListenAddr, ListenError,
    ListenOptions, Payload, SocketOptions,
};
use std::cell::Cell;
use std::time::Duration;

const ANY: ListenAddr = ListenAddr { ip: None, port: 7 };

fn small_buffers() -> SocketOptions {
    SocketOptions {
        send_buffer: BufferSize::Fixed(8 << 10),
        receive_buffer: BufferSize::Fixed(8 << 10),
        ..SocketOptions::default()
    }
}

/// A connection from A to B, both ends.
async fn pair(world: &World) -> (TcpSocket<'_>, TcpSocket<'_>) {
    let options = ListenOptions { socket: small_buffers(), ..ListenOptions::default() };
    let listener = world.b.listen(ANY, &options).unwrap();
    let options = small_buffers();
    let connect = world.a.connect_with(None, addr(common::B, 7), &options);
    let (near, far) = join(connect, listener.accept()).await;
    (near.unwrap(), far)
}

async fn read_all(socket: &mut TcpSocket<'_>) -> Result<Vec<u8>, Error> {
    let (mut all, mut piece) = (Vec::new(), [0; 700]);
    loop {
        match socket.read(&mut piece).await? {
            0 => return Ok(all),
            len => all.extend_from_slice(&piece[..len]),
        }
    }
}

/// Runs a test on a connection of a fresh world.
fn with_pair(test: impl for<'a> FnOnce(&'a World, TcpSocket<'a>, TcpSocket<'a>) -> LocalBoxFuture<'a, ()>) {
    let world = World::new();
    world.run(Vec::new(), async {
        let (near, far) = pair(&world).await;
        test(&world, near, far).await;
    });
}

#[test]
fn both_halves_work_at_once() {
    with_pair(|_, mut near, mut far| {
        Box::pin(async move {
            let sent = body(300_000);
            let echo = async {
                let (mut reader, mut writer) = far.split();
                let mut piece = [0; 1_000];
                loop {
                    match reader.read(&mut piece).await.unwrap() {
                        0 => return writer.shutdown(),
                        len => writer.write_all(&piece[..len]).await.unwrap(),
                    }
                }
            };
            let talk = async {
                let (mut reader, mut writer) = near.split();
                let write = async {
                    writer.write_all(&sent).await.unwrap();
                    writer.shutdown();
                };
                let mut back = vec![0; sent.len()];
                join(write, async { reader.read_exact(&mut back).await.unwrap() }).await;
                assert!(back == sent);
                assert_eq!(reader.read(&mut [0]).await, Ok(0), "the end comes once, and stays");
                assert_eq!(reader.read(&mut [0]).await, Ok(0));
            };
            join(echo, talk).await;
        })
    });
}

#[test]
fn a_half_ends_alone() {
    with_pair(|_, mut near, mut far| {
        Box::pin(async move {
            near.write_all(b"question").await.unwrap();
            near.shutdown();
            assert_eq!(near.write(b"more").await, Err(Error::ShutDown));
            assert_eq!(Error::ShutDown.kind(), ErrorKind::BrokenPipe);
            assert_eq!(read_all(&mut far).await.unwrap(), b"question");
            let answer = body(50_000);
            let (_, back) = join(
                async {
                    far.write_all(&answer).await.unwrap();
                    drop(far);
                },
                read_all(&mut near),
            )
            .await;
            assert!(back.unwrap() == answer);
        })
    });
}

#[test]
fn a_read_that_is_dropped_takes_nothing() {
    with_pair(|world, mut near, mut far| {
        Box::pin(async move {
            let sent = body(40_000);
            let write = async {
                for part in sent.chunks(1_000) {
                    near.write_all(part).await.unwrap();
                    world.pass(Duration::from_millis(3)).await;
                }
                near.shutdown();
            };
            let read = async {
                let (mut all, mut piece, mut dropped) = (Vec::new(), [0; 300], 0);
                loop {
                    match world.within(Duration::from_micros(1_100), far.read(&mut piece)).await {
                        Some(Ok(0)) => break,
                        Some(read) => all.extend_from_slice(&piece[..read.unwrap()]),
                        None => dropped += 1,
                    }
                }
                assert!(dropped > 20, "only {dropped} reads were dropped");
                all
            };
            assert!(join(write, read).await.1 == sent);
        })
    });
}

#[test]
fn a_write_that_is_dropped_queues_nothing() {
    with_pair(|world, mut near, mut far| {
        Box::pin(async move {
            let sent = body(100_000);
            let mut written = 0;
            // Until both buffers are full, and a few times beyond.
            for _ in 0..100 {
                let write = near.write(&sent[written..]);
                if let Some(len) = world.within(Duration::from_millis(5), write).await {
                    written += len.unwrap();
                }
            }
            assert!(!near.write_ready().unwrap() && far.read_ready().unwrap());
            assert!((8_000..100_000).contains(&written), "{written} bytes");
            let rest = async {
                near.write_all(&sent[written..]).await.unwrap();
                near.shutdown();
            };
            let (_, all) = join(rest, read_all(&mut far)).await;
            assert!(all.unwrap() == sent);
        })
    });
}

#[test]
fn dropped_it_delivers_what_was_written() {
    with_pair(|_, mut near, mut far| {
        Box::pin(async move {
            near.write_all(&body(6_000)).await.unwrap();
            drop(near);
            assert!(read_all(&mut far).await.unwrap() == body(6_000));
        })
    });
}

#[test]
fn dropped_with_unread_data_it_resets() {
    with_pair(|world, near, mut far| {
        Box::pin(async move {
            far.write_all(b"nobody reads that").await.unwrap();
            far.flush().await.unwrap();
            drop(near);
            let error = read_all(&mut far).await.unwrap_err();
            assert_eq!(
                (error, error.kind()),
                (Error::Closed(CloseReason::Reset), ErrorKind::ConnectionReset)
            );
            assert_eq!(far.write(b"x").await, Err(error), "and so says every half");
            drop(far);
            world.pass(Duration::from_secs(1)).await;
            assert_eq!(world.a.with(|node| node.stack.memory().connections), 0);
            assert_eq!(world.b.with(|node| node.stack.memory().connections), 0);
        })
    });
}

#[test]
fn flush_waits_for_the_peer_and_pieces_leave_together() {
    with_pair(|world, mut near, mut far| {
        Box::pin(async move {
            let (begun, frames) = (world.time.now(), world.frames()[0]);
            for byte in body(1_000) {
                near.write_all(&[byte]).await.unwrap();
            }
            let (_, read) = join(near.flush(), async {
                let mut all = vec![0; 1_000];
                far.read_exact(&mut all).await.map(|()| all)
            })
            .await;
            assert!(read.unwrap() == body(1_000));
            assert!(world.time.now() - begun >= Duration::from_millis(2), "there and back");
            assert_eq!(world.frames()[0] - frames, 1, "a thousand writes, one frame");
        })
    });
}

#[test]
fn payload_is_sent_without_a_copy_and_read_where_it_lies() {
    with_pair(|world, mut near, mut far| {
        Box::pin(async move {
            static CONSTANT: [u8; 5_000] = [7; 5_000];
            near.send(Payload::Static(&CONSTANT)).await.unwrap();
            near.send(Payload::Shared(body(3_000).into())).await.unwrap();
            let pages = world.a.with(|node| node.stack.memory().pages);
            assert_eq!(pages.total, pages.free, "a copy would lie in a page");
            let range = FileRange { file: FileId::new(0, 0), offset: 0, len: 1 };
            assert_eq!(near.send(Payload::File(range)).await, Err(Error::Payload));
            assert_eq!(near.send(Payload::Shared(vec![0; 65_537].into())).await, Err(Error::Payload));
            near.shutdown();
            let mut all = Vec::new();
            loop {
                let len = far.read_with(|bytes| {
                    all.extend_from_slice(bytes);
                    (bytes.len(), bytes.len())
                });
                if len.await.unwrap() == 0 {
                    break;
                }
            }
            assert!(all == [&CONSTANT[..], &body(3_000)].concat());
        })
    });
}

#[test]
fn a_peer_that_is_gone_ends_the_wait() {
    with_pair(|world, mut near, _far| {
        Box::pin(async move {
            world.lose(|_| true);
            near.write_all(b"anybody there?").await.unwrap();
            let (flushed, read) = {
                let (mut reader, mut writer) = near.split();
                join(writer.flush(), async move { reader.read(&mut [0]).await }).await
            };
            assert_eq!(flushed, Err(Error::Closed(CloseReason::TimedOut)));
            assert_eq!(read, Err(Error::Closed(CloseReason::TimedOut)), "both halves are told");
            assert_eq!(read.unwrap_err().kind(), ErrorKind::TimedOut);
        })
    });
}

#[test]
fn a_connect_that_is_dropped_gives_up() {
    let world = World::new();
    world.run(Vec::new(), async {
        world.lose(|_| true);
        let connect = world.a.connect(addr(common::B, 7));
        assert!(world.within(Duration::from_secs(2), connect).await.is_none());
        assert_eq!(world.a.with(|node| node.stack.memory().connections), 0);
        world.lose(|_| false);
        let (mut near, mut far) = pair(&world).await;
        near.write_all(b"again").await.unwrap();
        drop(near);
        assert_eq!(read_all(&mut far).await.unwrap(), b"again");
    });
}

#[test]
fn each_connection_is_accepted_once_and_by_whoever_still_waits() {
    let world = World::new();
    world.run(Vec::new(), async {
        let listener = world.b.listen(ANY, &ListenOptions::default()).unwrap();
        assert_eq!(listener.local_addr().unwrap().port(), 7);
        let count = Cell::new(0);
        // One of these is dropped while it waits, and must not take a connection along.
        let impatient = async {
            assert!(world.within(Duration::from_millis(1), listener.accept()).await.is_none());
        };
        let accept = |_| async {
            let mut socket = listener.accept().await;
            count.set(count.get() + 1);
            assert_eq!(read_all(&mut socket).await.unwrap(), b"hello");
        };
        let connect = |i| {
            let to = if i % 2 == 0 { common::B } else { "fd00::2" };
            let world = &world;
            async move {
                world.pass(Duration::from_millis(2)).await;
                let mut socket = world.a.connect(addr(to, 7)).await.unwrap();
                socket.write_all(b"hello").await.unwrap();
            }
        };
        join(impatient, join(join_all((0..20).map(accept)), join_all((0..20).map(connect)))).await;
        assert_eq!(count.get(), 20);
    });
}

#[test]
fn a_listener_that_is_dropped_refuses() {
    let world = World::new();
    world.run(Vec::new(), async {
        let listener = world.b.listen(ANY, &ListenOptions::default()).unwrap();
        let second = world.b.listen(ANY, &ListenOptions::default()).map(drop);
        assert_eq!(second, Err(Error::Open(ListenError::InUse)));
        assert_eq!(second.unwrap_err().kind(), ErrorKind::AddrInUse);
        drop(listener);
        let refused = world.a.connect(addr(common::B, 7)).await.map(drop);
        assert_eq!(refused, Err(Error::Closed(CloseReason::Refused)));
        let nowhere = world.a.connect(addr("203.0.113.1", 7)).await.map(drop);
        assert_eq!(nowhere, Err(Error::Connect(ConnectError::Unreachable)));
    });
}

#[test]
fn a_socket_used_after_a_long_sleep_knows_the_time() {
    let world = World::new();
    world.run(Vec::new(), async {
        world.pass(Duration::from_secs(300)).await;
        let before = world.frames()[0];
        let (near, _far) = pair(&world).await;
        assert_eq!(near.info().map(|info| info.retransmits), Some(0));
        world.pass(Duration::from_millis(100)).await;
        assert_eq!(world.frames()[0] - before, 3, "address resolution, SYN, ACK");
    });
}

#[test]
fn pages_may_be_few_and_small() {
    let pools = |pools: StackPools| StackPools { pages: Pool::new(12, 512), ..pools };
    let world = World::with(|config| config, pools);
    world.run(Vec::new(), async {
        let (mut near, mut far) = pair(&world).await;
        let write = async {
            near.write_all(&body(60_000)).await.unwrap();
            near.shutdown();
        };
        let (_, all) = join(write, read_all(&mut far)).await;
        assert!(all.unwrap() == body(60_000));
    });
}

#[test]
fn whoever_waits_for_something_in_the_engine_hears_of_it() {
    let world =
        World::with(|config| linerate_stack::StackConfig { dad_transmits: 1, ..config }, |pools| pools);
    world.run(Vec::new(), async {
        // Duplicate address detection takes a second.
        let address = world.a.until(|node| node.stack.addresses().find(|cidr| cidr.address().is_ipv6()));
        assert!(address.await.address().is_ipv6());
        assert!(world.time.now().as_millis() >= 1_000);
        assert_eq!(world.a.with(|node| node.unfinished()), 0);
    });
}
