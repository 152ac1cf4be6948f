//! Streams: handshakes, data, readiness, ends.

use super::*;

/// `len` bytes, no two neighbouring kilobytes alike.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i ^ (i >> 10)) as u8).collect()
}

/// Sends `len` bytes from `a` to `b` in whatever portions are taken, and checks them.
fn transfer(world: &mut World, port: u16, len: usize) {
    let (client, server) = world.connected(port);
    let expected = pattern(len);
    let (mut sent, mut received) = (0, Vec::new());
    let (mut refused, mut partial) = (0, 0);
    world.until(|world| {
        while sent < len {
            let is_writable = world.a.poll(client, libc::POLLOUT) != 0;
            let count = world.a.write(client, &expected[sent..]);
            assert!(!is_writable || count > 0, "{count}");
            if count == -(libc::EAGAIN as ssize_t) {
                refused += 1;
                break;
            }
            assert!(count > 0, "{count}");
            partial += usize::from((count as usize) < len - sent);
            sent += count as usize;
        }
        while let Ok(bytes) = world.b.read(server, 7_001) {
            received.extend(bytes);
        }
        received.len() >= len
    });
    assert!(received == expected);
    assert!(refused > 0 && partial > 0, "the buffer was never full");
    assert_eq!((world.a.close(client), world.b.close(server)), (0, 0));
}

#[test]
fn data_arrives_whatever_the_device_is() {
    let all = LR_DEVICE_TX_CHECKSUM | LR_DEVICE_RX_CHECKSUM | LR_DEVICE_TSO | LR_DEVICE_RX_COALESCING;
    for capabilities in
        [0, LR_DEVICE_RX_CHECKSUM, LR_DEVICE_RX_COALESCING, LR_DEVICE_IP, all, all | LR_DEVICE_IP]
    {
        for completions in [false, true] {
            let mut world = World::shaped(Shape { capabilities, completions, memory: None });
            let before = world.a.stats().memory_used;
            transfer(&mut world, 80, 9_000_000);
            world.pass(1_000);
            let stats = world.a.stats();
            assert_eq!(stats.memory_used, before, "{capabilities} {completions}");
            if capabilities & LR_DEVICE_TSO != 0 {
                assert!(stats.frames_sent < 9_000_000 / 1_460, "super-segments");
            }
        }
    }
}

#[test]
fn as_much_is_written_as_there_is_memory_for() {
    // Less than what is written at once, and than what a send buffer holds by default.
    for memory in [16 << 10, 20 << 10, 32 << 10, 64 << 10, 1 << 20] {
        let mut world = World::shaped(Shape { capabilities: 0, completions: false, memory: Some(memory) });
        transfer(&mut world, 80, 300_000.max(memory * 3));
    }
}

#[test]
fn losses_are_repaired_and_counted() {
    let mut world = World::new();
    let (client, server) = world.connected(80);
    // SAFETY: the end lives as long as the world, and no turn is under way.
    unsafe { (*world.a.end).lose = 1 };
    assert_eq!(world.a.write(client, b"lost once"), 9);
    world.until(|world| world.b.poll(server, libc::POLLIN) != 0);
    assert_eq!(world.b.read(server, 99).unwrap(), b"lost once");
    assert!(world.a.stats().retransmits > 0);
}

#[test]
fn a_stream_names_no_sender_with_its_data() {
    let mut world = World::new();
    let (client, server) = world.connected(80);
    assert_eq!(world.a.write(client, b"who is it?"), 10);
    world.until(|world| world.b.poll(server, libc::POLLIN) != 0);
    let (mut room, mut length) = ([0u8; 16], 77);
    // SAFETY: room for 16 bytes and a length, both live; no address is asked for.
    let got = unsafe {
        lr_recvfrom(
            world.b.stack,
            server,
            room.as_mut_ptr().cast(),
            16,
            0,
            core::ptr::null_mut(),
            &mut length,
        )
    };
    assert_eq!((got, &room[..10], length), (10, &b"who is it?"[..], 0));
}

#[test]
fn pieces_are_gathered_and_scattered() {
    let mut world = World::new();
    let (client, server) = world.connected(80);
    let (mut x, mut y, mut z) = (*b"ab", *b"", *b"cdefg");
    let pieces = [piece(&mut x), piece(&mut y), piece(&mut z)];
    // SAFETY: three live pieces.
    assert_eq!(unsafe { lr_writev(world.a.stack, client, pieces.as_ptr(), 3) }, 7);
    world.until(|world| world.b.poll(server, libc::POLLIN) != 0);
    let (mut x, mut y, mut z) = ([0; 1], [0; 4], [0; 9]);
    let pieces = [piece(&mut x), piece(&mut y), piece(&mut z)];
    // SAFETY: three live pieces, used by nobody else.
    assert_eq!(unsafe { lr_readv(world.b.stack, server, pieces.as_ptr(), 3) }, 7);
    assert_eq!((&x, &y, &z), (b"a", b"bcde", b"fg\0\0\0\0\0\0\0"));
    assert_eq!(world.b.read(server, 9), Err(-(libc::EAGAIN as ssize_t)));
}

#[test]
fn peeking_leaves_the_data() {
    let mut world = World::new();
    let (client, server) = world.connected(80);
    world.a.write(client, b"hello");
    world.until(|world| world.b.poll(server, libc::POLLIN) != 0);
    for _ in 0..2 {
        assert_eq!(world.b.recv(server, 3, libc::MSG_PEEK).unwrap(), b"hel");
    }
    let mut waiting: c_int = 0;
    // SAFETY: a live number.
    let code = unsafe { lr_ioctl(world.b.stack, server, libc::FIONREAD as _, (&raw mut waiting).cast()) };
    assert_eq!((code, waiting), (0, 5));
    assert_eq!(world.b.read(server, 99).unwrap(), b"hello");
    assert_eq!(world.b.poll(server, libc::POLLIN), 0);
    assert_eq!(world.b.recv(server, 3, libc::MSG_OOB), Err(-(libc::EOPNOTSUPP as ssize_t)));
}

#[test]
fn a_peek_shows_what_a_read_would_give() {
    let mut world = World::new();
    let (client, server) = world.connected(80);
    for part in [&b"several "[..], b"segments, ", b"one peek"] {
        world.a.write(client, part);
        world.pass(300);
    }
    assert_eq!(world.b.recv(server, 99, libc::MSG_PEEK).unwrap(), b"several segments, one peek");
    assert_eq!(world.b.recv(server, 12, libc::MSG_PEEK).unwrap(), b"several segm");
    assert_eq!(world.b.read(server, 99).unwrap(), b"several segments, one peek");
}

#[test]
fn a_name_on_a_connected_stream_is_not_looked_at() {
    let mut world = World::new();
    let (client, server) = world.connected(80);
    let (elsewhere, data) = (inet("10.9.9.9", 9), *b"data");
    // SAFETY: a live stack and live locals of the lengths that are given.
    let sent = unsafe {
        let to = (&raw const elsewhere).cast();
        lr_sendto(world.a.stack, client, data.as_ptr().cast(), data.len(), 0, to, INET)
    };
    assert_eq!(sent, 4);
    world.until(|world| world.b.poll(server, libc::POLLIN) != 0);
    assert_eq!(world.b.read(server, 9).unwrap(), b"data");
}

#[test]
fn data_after_close_is_answered_with_a_reset() {
    let mut world = World::new();
    let (client, server) = world.connected(80);
    world.b.close(server);
    world.pass(100);
    assert_eq!(world.a.read(client, 9).unwrap(), b"", "the end of the stream");
    world.a.write(client, b"too late");
    world.pass(100);
    assert_eq!(world.a.error(client), libc::ECONNRESET);
}

#[test]
fn what_comes_after_a_shutdown_for_reading_can_be_read() {
    let mut world = World::new();
    let (client, server) = world.connected(80);
    assert_eq!(world.b.shutdown(server, libc::SHUT_RD), 0);
    assert_eq!(world.b.read(server, 9).unwrap(), b"");
    world.a.write(client, b"late");
    world.pass(100);
    assert_eq!(world.b.read(server, 9).unwrap(), b"late");
    assert_eq!(world.b.read(server, 9).unwrap(), b"");
}

#[test]
fn a_connect_runs_through_its_errors() {
    let mut world = World::new();
    let listener = world.listener(80);
    let client = world.a.socket(libc::SOCK_STREAM);
    assert_eq!(world.a.poll(client, libc::POLLOUT), libc::POLLOUT | libc::POLLHUP);
    assert_eq!(world.a.write(client, b"x"), -(libc::ENOTCONN as ssize_t));
    assert_eq!(world.a.connect(client, "10.0.0.2", 80), -libc::EINPROGRESS);
    assert_eq!(world.a.connect(client, "10.0.0.2", 80), -libc::EALREADY);
    assert_eq!(world.a.poll(client, libc::POLLIN | libc::POLLOUT), 0);
    assert_eq!(world.a.write(client, b"x"), -(libc::EAGAIN as ssize_t));
    assert_eq!(world.a.read(client, 1), Err(-(libc::EAGAIN as ssize_t)));
    assert_eq!(world.a.peer(client), Err(-libc::ENOTCONN));
    assert_eq!(world.b.accept(listener), -libc::EAGAIN);
    world.until(|world| world.a.poll(client, libc::POLLOUT) != 0);
    assert_eq!((world.a.error(client), world.a.connect(client, "10.0.0.2", 80)), (0, -libc::EISCONN));
    assert_eq!(world.a.peer(client).unwrap(), "10.0.0.2:80");
    world.until(|world| world.b.poll(listener, libc::POLLIN) != 0);
    let server = world.b.accept(listener);
    assert_eq!(world.b.peer(server).unwrap(), world.a.name(client));
    assert_eq!(world.b.name(server), "10.0.0.2:80");
    assert_eq!(world.b.name(listener), "0.0.0.0:80");
    assert_eq!(world.a.connect(listener + 9, "10.0.0.2", 80), -libc::EBADF);
}

#[test]
fn a_refused_connect_is_told_once_and_can_be_repeated() {
    let mut world = World::new();
    let client = world.a.socket(libc::SOCK_STREAM);
    assert_eq!(world.a.connect(client, "10.0.0.2", 81), -libc::EINPROGRESS);
    world.until(|world| world.a.poll(client, 0) != 0);
    let bits = libc::POLLERR | libc::POLLHUP | libc::POLLIN | libc::POLLOUT;
    assert_eq!(world.a.poll(client, bits), bits);
    assert_eq!((world.a.error(client), world.a.error(client)), (libc::ECONNREFUSED, 0));
    let listener = world.listener(81);
    assert_eq!(world.a.connect(client, "10.0.0.2", 81), -libc::EINPROGRESS);
    world.until(|world| world.b.poll(listener, libc::POLLIN) != 0);
}

#[test]
fn a_refused_connect_that_data_told_of_can_be_repeated() {
    let refused = -(libc::ECONNREFUSED as ssize_t);
    for writes in [true, false] {
        let mut world = World::new();
        let client = world.a.socket(libc::SOCK_STREAM);
        assert_eq!(world.a.connect(client, "10.0.0.2", 81), -libc::EINPROGRESS);
        world.until(|world| world.a.poll(client, 0) != 0);
        if writes {
            assert_eq!(world.a.write(client, b"x"), refused);
        } else {
            assert_eq!(world.a.read(client, 1), Err(refused));
        }
        let listener = world.listener(81);
        assert_eq!(world.a.connect(client, "10.0.0.2", 81), -libc::EINPROGRESS, "writes: {writes}");
        world.until(|world| world.b.poll(listener, libc::POLLIN) != 0);
    }
}

#[test]
fn a_refused_connect_leaves_the_socket_bound() {
    let mut world = World::new();
    let client = world.a.socket(libc::SOCK_STREAM);
    assert_eq!(world.a.bind(client, "10.0.0.1", 5_000), 0);
    assert_eq!(world.a.connect(client, "10.0.0.2", 81), -libc::EINPROGRESS);
    world.until(|world| world.a.poll(client, 0) != 0);
    let other = world.a.socket(libc::SOCK_STREAM);
    assert_eq!(world.a.bind(other, "10.0.0.1", 5_000), -libc::EADDRINUSE, "it will be bound again");
    assert_eq!(world.a.error(client), libc::ECONNREFUSED);
    assert_eq!(world.a.name(client), "10.0.0.1:5000");
    assert_eq!(world.a.bind(client, "10.0.0.1", 5_001), -libc::EINVAL, "bound already");
    let listener = world.listener(81);
    assert_eq!(world.a.connect(client, "10.0.0.2", 81), -libc::EINPROGRESS);
    world.until(|world| world.b.poll(listener, libc::POLLIN) != 0);
    let server = world.b.accept(listener);
    assert_eq!(world.b.peer(server).unwrap(), "10.0.0.1:5000");
}

#[test]
fn both_directions_are_shut_one_after_the_other() {
    let mut world = World::new();
    let (client, server) = world.connected(80);
    assert_eq!(world.a.write(client, b"last words"), 10);
    assert_eq!(world.a.shutdown(client, libc::SHUT_WR), 0);
    assert_eq!(world.a.write(client, b"x"), -(libc::EPIPE as ssize_t));
    world.until(|world| world.b.poll(server, libc::POLLRDHUP) != 0);
    assert_eq!(world.b.read(server, 99).unwrap(), b"last words");
    assert_eq!(world.b.read(server, 99).unwrap(), b"", "the end of the stream");
    assert_eq!(world.b.poll(server, libc::POLLIN | libc::POLLOUT), libc::POLLIN | libc::POLLOUT);
    assert_eq!(world.b.write(server, b"answer"), 6);
    world.until(|world| world.a.poll(client, libc::POLLIN) != 0);
    assert_eq!(world.a.read(client, 99).unwrap(), b"answer");
    assert_eq!(world.b.shutdown(server, libc::SHUT_WR), 0);
    world.until(|world| world.a.poll(client, 0) == libc::POLLHUP);
    assert_eq!(world.a.read(client, 99).unwrap(), b"");
    let info = world.a.get(client, libc::IPPROTO_TCP, libc::TCP_INFO, lr_tcp_info::default()).unwrap();
    assert_eq!(info.tcpi_state, 6, "TIME-WAIT");
    assert_eq!((world.a.close(client), world.b.close(server)), (0, 0));
    assert_eq!(world.a.close(client), -libc::EBADF);
}

#[test]
fn closing_with_unread_data_resets() {
    let mut world = World::new();
    let (client, server) = world.connected(80);
    world.a.write(client, b"never read");
    world.until(|world| world.b.poll(server, libc::POLLIN) != 0);
    assert_eq!(world.b.close(server), 0);
    world.until(|world| world.a.poll(client, 0) & libc::POLLERR != 0);
    assert_eq!(world.a.read(client, 9), Err(-(libc::ECONNRESET as ssize_t)), "told once");
    assert_eq!(world.a.read(client, 9).unwrap(), b"");
    assert_eq!(world.a.write(client, b"x"), -(libc::EPIPE as ssize_t));
}

#[test]
fn lingering_for_no_time_resets() {
    let mut world = World::new();
    let (client, server) = world.connected(80);
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    assert_eq!(world.a.set(client, libc::SOL_SOCKET, libc::SO_LINGER, &linger), 0);
    assert_eq!(world.a.close(client), 0);
    world.until(|world| world.b.poll(server, 0) & libc::POLLERR != 0);
    assert_eq!(world.b.error(server), libc::ECONNRESET);
}

#[test]
fn a_silent_peer_times_out() {
    let mut world = World::new();
    let (client, _) = world.connected(80);
    let timeout: c_int = 3_000;
    assert_eq!(world.a.set(client, libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, &timeout), 0);
    // SAFETY: the end lives as long as the world, and no turn is under way.
    unsafe { (*world.a.end).lose = usize::MAX };
    world.a.write(client, b"anybody there?");
    world.until(|world| world.a.poll(client, 0) != 0);
    assert_eq!(world.a.read(client, 9), Err(-(libc::ETIMEDOUT as ssize_t)));
}

#[test]
fn bound_ports_are_kept_apart() {
    let world = World::new();
    let first = world.b.socket(libc::SOCK_STREAM);
    let second = world.b.socket(libc::SOCK_STREAM);
    assert_eq!(world.b.bind(first, "10.0.0.2", 80), 0);
    assert_eq!(world.b.bind(first, "10.0.0.2", 81), -libc::EINVAL, "bound already");
    assert_eq!(world.b.bind(second, "0.0.0.0", 80), -libc::EADDRINUSE);
    assert_eq!(world.b.bind(second, "10.0.0.9", 80), -libc::EADDRNOTAVAIL);
    assert_eq!(world.b.listen(first, 1), 0);
    assert_eq!(world.b.bind(second, "0.0.0.0", 80), -libc::EADDRINUSE);
    assert_eq!(world.b.bind(second, "0.0.0.0", 0), 0);
    assert_ne!(world.b.name(second), "0.0.0.0:0");
}

#[test]
fn connections_that_nobody_accepted_are_reset_with_their_listener() {
    let mut world = World::new();
    let listener = world.listener(80);
    let client = world.a.socket(libc::SOCK_STREAM);
    world.a.connect(client, "10.0.0.2", 80);
    world.until(|world| world.b.poll(listener, libc::POLLIN) != 0);
    assert_eq!(world.b.close(listener), 0);
    world.until(|world| world.a.poll(client, 0) & libc::POLLERR != 0);
    assert_eq!(world.a.error(client), libc::ECONNRESET);
}

#[test]
fn a_callback_cannot_call_its_stack() {
    let mut world = World::new();
    let stack = world.a.stack;
    // SAFETY: the end lives as long as the world, and no turn is under way.
    unsafe { (*world.a.end).stack = stack };
    world.pass(1);
    let client = world.a.socket(libc::SOCK_STREAM);
    world.a.connect(client, "10.0.0.2", 80);
    world.pass(1);
    // SAFETY: as above.
    assert_eq!(unsafe { (*world.a.end).reentered }, Some(-libc::EBUSY));
}

#[test]
fn a_write_that_is_refused_leaves_the_next_timeout_where_it_is() {
    let mut world = World::shaped(Shape { capabilities: 0, completions: false, memory: Some(16 << 10) });
    let (client, _) = world.connected(80);
    // SAFETY: the end lives as long as the world, and no turn is under way.
    unsafe { (*world.a.end).lose = usize::MAX };
    let refused = -(libc::EAGAIN as ssize_t);
    while world.a.write(client, &[1; 64]) != refused {
        world.step();
    }
    let end = world.now_ns + 1_000_000_000;
    let mut wakes = 0;
    // The loop of docs/c.md: a turn, the sockets, and sleep until there is something to do.
    while world.now_ns < end && wakes < 1_000 {
        // SAFETY: a live stack.
        let bits = unsafe { lr_stack_turn(world.a.stack, world.now_ns) };
        assert!(bits >= 0, "{bits}");
        let answer = world.a.write(client, &[1; 64]);
        assert!(answer == refused || answer == 64, "{answer}");
        // SAFETY: a live stack.
        world.now_ns = unsafe { lr_stack_next_timeout(world.a.stack) }.max(world.now_ns);
        wakes += 1;
    }
    assert!(wakes < 200, "{wakes} wakes in a second");
}

#[test]
fn the_next_timeout_says_when_to_come_back() {
    let mut world = World::new();
    let (client, _) = world.connected(80);
    world.pass(100);
    // SAFETY: live stacks.
    let next = |world: &World| unsafe { lr_stack_next_timeout(world.a.stack) };
    assert!(next(&world) > world.now_ns, "nothing to do");
    world.a.write(client, b"x");
    assert_eq!(next(&world), world.now_ns, "something to send");
}
