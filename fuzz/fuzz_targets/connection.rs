//! One connection against a peer that knows the true sequence numbers, so that most of its segments are nearly right.
//!
//! The peer checks every segment of the host: its bytes, its place in the window, that acknowledgements and the window's
//! edge never go back. The host's application checks every byte that it reads. No step may keep the stack busy, timers
//! lie in the future, and at the end everything is free again.
#![no_main]

#[path = "connection/ops.rs"]
mod ops;
#[path = "connection/peer.rs"]
mod peer;
#[path = "connection/streams.rs"]
mod streams;
#[path = "connection/world.rs"]
mod world;

use libfuzzer_sys::fuzz_target;
use ops::Input;
use world::World;

pub const HOST_PORT: u16 = 80;
pub const PEER_PORT: u16 = 5_000;

/// Most steps of one input.
const STEPS: usize = 300;

fuzz_target!(|input: Input| {
    let mut world = World::new(&input.setup);
    for step in input.steps.iter().take(STEPS) {
        world.step(&input.setup, step);
    }
    world.finish(&input.setup);
});
