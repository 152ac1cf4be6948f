//! The send queue and the receive buffer, over a socket pair.

use super::super::receive::{BufferPool, Read, ReceiveBuffer};
use super::super::send_queue::{Flush, SendQueue};
use super::{check_pattern, pattern};
use proptest::prelude::*;
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

fn pair() -> (OwnedFd, OwnedFd) {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap()
}

#[derive(Clone, Debug)]
enum Push {
    Static(usize),
    Shared(usize),
    Copy(usize),
}

fn push() -> impl Strategy<Value = Push> {
    prop_oneof![
        (1usize..60_000).prop_map(Push::Static),
        (1usize..60_000).prop_map(Push::Shared),
        (1usize..3_000).prop_map(Push::Copy),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is queued, in whatever portions it is flushed, read and consumed: the bytes arrive in order.
    #[test]
    fn what_is_queued_arrives(
        pushes in prop::collection::vec(push(), 1..100),
        budget in 1u64..200_000,
        portion in 1usize..50_000,
        memory in prop_oneof![Just(0usize), Just(1 << 20)],
    ) {
        let (near, far) = pair();
        let (mut queue, mut spare) = (SendQueue::default(), Vec::new());
        let (mut buffer, mut pool) = (ReceiveBuffer::default(), BufferPool::new(memory));
        let mut total = 0;
        for push in pushes {
            let (Push::Static(len) | Push::Shared(len) | Push::Copy(len)) = push;
            let piece = pattern(total, len as u64);
            total += piece.len() as u64;
            match push {
                Push::Static(_) => queue.push_static(piece),
                Push::Shared(_) => queue.push_shared(piece.to_vec().into()),
                Push::Copy(_) => queue.push_copy(piece, &mut spare),
            }
        }
        prop_assert_eq!(queue.total(), total);
        prop_assert_eq!(queue.memory() as u64, total);
        let (mut sent, mut got) = (0, 0);
        while got < total {
            let end = queue.flush(near.as_fd(), budget, false, &mut sent, &mut spare);
            prop_assert!(matches!(end, Flush::Empty | Flush::Budget | Flush::Blocked), "{:?}", end);
            prop_assert_eq!(queue.total(), total - sent);
            let read = buffer.fill(far.as_fd(), &mut pool);
            prop_assert!(matches!(read, Read::Some { .. } | Read::NoRoom | Read::Nothing), "{:?}", read);
            let mut left = portion;
            while left > 0 && buffer.len() > 0 {
                let piece = buffer.peek();
                let len = piece.len().min(left);
                got = check_pattern(got, &piece[..len]);
                buffer.consume(len, &mut pool);
                left -= len;
            }
        }
        prop_assert_eq!(pool.large_bytes(), 0);
        prop_assert!(matches!(queue.flush(near.as_fd(), 1, false, &mut sent, &mut spare), Flush::Empty));
        drop(near);
        prop_assert_eq!(buffer.fill(far.as_fd(), &mut pool), Read::Finished);
    }
}
