//! Devices that fail, are full, or lie.

use super::*;

/// One turn of `a` whose device answers so.
fn turn(world: &mut World, transmitted: c_int, received: ssize_t) -> c_int {
    world.now_ns += STEP_NS;
    // SAFETY: the end lives as long as the world, and no turn is under way.
    unsafe { (*world.a.end).answers = (transmitted, received) };
    // SAFETY: a live stack.
    let bits = unsafe { lr_stack_turn(world.a.stack, world.now_ns) };
    // SAFETY: as above.
    unsafe { (*world.a.end).answers = (0, 0) };
    bits
}

#[test]
fn errors_of_a_device_are_told_and_survived() {
    let mut world = World::new();
    let (client, server) = world.connected(80);
    assert_eq!(world.a.set(client, libc::IPPROTO_TCP, libc::TCP_NODELAY, &1), 0);
    for (told, expected) in [
        (-(libc::EIO as ssize_t), -libc::EIO),
        (-(libc::ENODEV as ssize_t), -libc::ENODEV),
        (100_000, -libc::EMSGSIZE),
        (ssize_t::MIN, -libc::EIO),
        (-(libc::EAGAIN as ssize_t), 0),
    ] {
        assert_eq!(turn(&mut world, 0, told), expected, "{told}");
    }
    for (told, expected) in [(-libc::EIO, -libc::EIO), (7, -libc::EIO), (c_int::MIN, -libc::EIO)] {
        world.a.write(client, b"once more ");
        assert_eq!(turn(&mut world, told, 0), expected, "{told}");
    }
    world.a.write(client, b"and again");
    assert_eq!(turn(&mut world, -libc::EAGAIN, 0), LR_TURN_DEVICE_FULL);
    let mut got = Vec::new();
    world.until(|world| {
        got.extend(world.b.read(server, 99).unwrap_or_default());
        got.len() == 39
    });
    assert_eq!(got, b"once more once more once more and again", "what the device lost was sent again");
}
