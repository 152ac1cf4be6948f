//! Sleeping on sockets and on what others wait for.

use super::*;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use std::time::Duration;

const SHORT: Option<Duration> = Some(Duration::from_micros(100));
const LONG: Option<Duration> = Some(Duration::from_secs(20));

fn other() -> OwnedFd {
    eventfd(0, EventfdFlags::NONBLOCK).unwrap()
}

fn ring(fd: &OwnedFd) {
    rustix::io::write(fd, &1u64.to_ne_bytes()).unwrap();
}

fn hear(fd: &OwnedFd) {
    rustix::io::read(fd, &mut [0; 8]).unwrap();
}

#[test]
fn others_end_a_sleep_and_are_told_apart() {
    let mut rig = Rig::new();
    let others = [other(), other(), other()];
    let fds: Vec<_> = others.iter().map(AsFd::as_fd).collect();
    assert_eq!(rig.net.sleep(&fds, SHORT).unwrap(), 0);
    ring(&others[2]);
    assert_eq!(rig.net.sleep(&fds, LONG).unwrap(), 0b100);
    ring(&others[0]);
    assert_eq!(rig.net.sleep(&fds, LONG).unwrap(), 0b101, "what was not heard is told again");
    hear(&others[0]);
    hear(&others[2]);
    assert_eq!(rig.net.sleep(&fds, SHORT).unwrap(), 0);
    // Who is not asked for does not disturb, whether it is open or not.
    ring(&others[0]);
    ring(&others[1]);
    assert_eq!(rig.net.sleep(&fds[1..2], LONG).unwrap(), 1);
    hear(&others[1]);
    assert_eq!(rig.net.sleep(&[], SHORT).unwrap(), 0);
    drop(others);
    assert_eq!(rig.net.sleep(&[], SHORT).unwrap(), 0);
}

#[test]
fn what_ended_a_sleep_is_what_the_next_turn_works_on() {
    let mut rig = Rig::new();
    let (listener, addr) = rig.listen(Some("127.0.0.1"));
    let bell = other();
    let client = rig.connect(addr);
    let server = rig.accept(listener);
    rig.settle();
    rig.net.write(client, b"hello").unwrap();
    rig.net.turn(rig.now());
    // Nothing is lost by sleeping again, which is none as long as it is not worked on.
    for _ in 0..3 {
        assert_eq!(rig.net.sleep(&[bell.as_fd()], LONG).unwrap(), 0);
    }
    ring(&bell);
    for turn in 0.. {
        assert!(turn < 100, "nothing comes");
        if !rig.net.pending() {
            assert_eq!(rig.net.sleep(&[bell.as_fd()], LONG).unwrap(), 1);
        }
        rig.net.turn(rig.now());
        while rig.net.poll_event().is_some() {}
        if rig.net.peek(server) == b"hello" {
            return;
        }
    }
}
