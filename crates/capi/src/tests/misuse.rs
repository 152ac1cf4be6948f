//! Random calls with random arguments: whatever a program does, it gets a number back, and the stack works afterwards.

use super::*;
use proptest::prelude::*;

/// A call: which function, which descriptor, and two numbers to make arguments of.
type Call = (u8, c_int, c_int, i64);

fn fd() -> impl Strategy<Value = c_int> {
    prop_oneof![8 => 0..6, 1 => any::<c_int>()]
}

fn number() -> impl Strategy<Value = c_int> {
    prop_oneof![4 => 0..64, 1 => any::<c_int>()]
}

fn size() -> impl Strategy<Value = i64> {
    prop_oneof![4 => 0..4_000i64, 1 => 0..70_000i64, 1 => any::<i64>()]
}

/// Most bytes that the arguments may name without being refused for their length alone.
const ROOM: usize = 70_000;

/// Makes one call. Buffers are as long as the call is told, or null, or the length is one that is refused.
fn call(node: &Node, memory: &mut [u8], (what, fd, number, size): Call) {
    let stack = node.stack;
    let len = size.unsigned_abs() as usize;
    let buffer: *mut c_void = if len <= ROOM { memory.as_mut_ptr().cast() } else { null_mut() };
    let kind = [libc::SOCK_STREAM, libc::SOCK_DGRAM][number.rem_euclid(2) as usize];
    let peer = inet(["10.0.0.1", "10.0.0.2", "0.0.0.0", "255.255.255.255"][len % 4], (len % 9) as u16);
    let at: *const sockaddr = if number == 63 { null() } else { (&raw const peer).cast() };
    let address_len = if number == 62 { 3 } else { INET };
    let mut length = (len % 40) as socklen_t;
    let level = [libc::SOL_SOCKET, libc::IPPROTO_TCP, libc::IPPROTO_IP, libc::IPPROTO_IPV6, 77][len % 5];
    let pieces = [iovec { iov_base: buffer, iov_len: len }, iovec { iov_base: null_mut(), iov_len: 0 }];
    let mut entries = [pollfd { fd, events: number as i16, revents: 0 }; 3];
    // SAFETY: a live stack; addresses are null or live and as long as said or longer; `buffer` is null or has ROOM
    // bytes, of which at most `len` are used; pieces, entries and lengths are live locals. `memory` is only named by
    // these pointers.
    unsafe {
        match what {
            0 => drop(lr_socket(stack, [libc::AF_INET, libc::AF_INET6, number][len % 3], kind, 0)),
            1 => drop(lr_bind(stack, fd, at, address_len)),
            2 => drop(lr_listen(stack, fd, number)),
            3 => drop(lr_accept(stack, fd, null_mut(), null_mut())),
            4 | 5 => drop(lr_connect(stack, fd, at, address_len)),
            6 => drop(lr_shutdown(stack, fd, number % 4)),
            7 => drop(lr_close(stack, fd)),
            8 => drop(lr_read(stack, fd, buffer, len)),
            9 => drop(lr_write(stack, fd, buffer, len)),
            10 => drop(lr_recv(stack, fd, buffer, len, number)),
            11 => drop(lr_send(stack, fd, buffer, len, number)),
            12 => drop(lr_readv(stack, fd, pieces.as_ptr(), number % 4 - 1)),
            13 => drop(lr_writev(stack, fd, pieces.as_ptr(), if number < 2 { number } else { 2 })),
            14 => drop(lr_sendto(stack, fd, buffer, len, 0, at, address_len)),
            15 => drop(lr_getsockopt(stack, fd, level, number, memory.as_mut_ptr().cast(), &mut length)),
            16 => drop(lr_setsockopt(stack, fd, level, number, memory.as_ptr().cast(), length)),
            17 => drop(lr_getsockname(stack, fd, memory.as_mut_ptr().cast(), &mut length)),
            18 => drop(lr_getpeername(stack, fd, memory.as_mut_ptr().cast(), &mut length)),
            19 => drop(lr_poll(stack, entries.as_mut_ptr(), 3)),
            20 => drop(lr_fcntl(stack, fd, number, number)),
            21 => drop(lr_ioctl(stack, fd, libc::FIONREAD as _, memory.as_mut_ptr().cast())),
            22 => drop(lr_recvmsg(stack, fd, null_mut(), number)),
            _ => drop(lr_sendmsg(stack, fd, null(), number)),
        }
    }
}

/// Arrays of two pieces, so a negative or a larger count must not be read.
fn is_sound((what, _, number, _): &Call) -> bool {
    *what != 13 || *number >= -1
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_sequence_of_calls_breaks_a_stack(
        calls in proptest::collection::vec((0u8..24, fd(), number(), size()), 1..200),
        sides in any::<u64>(),
    ) {
        let mut world = World::new();
        let mut memory = vec![1u8; ROOM + 64];
        for (index, one) in calls.into_iter().filter(is_sound).enumerate() {
            let node = if sides >> (index % 64) & 1 == 0 { &world.a } else { &world.b };
            call(node, &mut memory, one);
            world.step();
        }
        for node in [&world.a, &world.b] {
            for fd in 0..16 {
                node.close(fd);
            }
        }
        let (client, server) = world.connected(4_000);
        prop_assert_eq!(world.a.write(client, b"still here"), 10);
        world.until(|world| world.b.poll(server, libc::POLLIN) != 0);
        prop_assert_eq!(world.b.read(server, 99).unwrap(), b"still here");
    }
}
