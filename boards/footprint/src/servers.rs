//! The loop around servers.

use crate::Machine;
use alloc::collections::VecDeque;
use core::hint::black_box;
use linerate_serve::{Group, Host, Loop, Service};
use linerate_transport::{FileDone, FileError, FileOp, Files, Owner};
use linerate_wire::units::Instant;

/// A file system without files: flash and cards come with a board.
pub struct NoFiles {
    done: VecDeque<(Owner, u64)>,
}

impl NoFiles {
    /// One that keeps up to eight answers.
    pub fn new() -> Self {
        NoFiles { done: VecDeque::with_capacity(8) }
    }
}

impl Default for NoFiles {
    fn default() -> Self {
        NoFiles::new()
    }
}

impl Files for NoFiles {
    fn submit(&mut self, owner: Owner, tag: u64, op: FileOp) -> Result<(), FileOp> {
        if self.done.len() == self.done.capacity() {
            return Err(op);
        }
        self.done.push_back((owner, tag));
        Ok(())
    }

    fn poll_done(&mut self) -> Option<FileDone> {
        let (owner, tag) = self.done.pop_front()?;
        Some(FileDone { owner, tag, result: Err(FileError::NotFound) })
    }
}

/// Time and numbers that the compiler cannot foresee, though they stand still.
struct Bare {
    seed: u64,
}

impl Host for Bare {
    fn now(&mut self) -> Instant {
        black_box(Instant::ZERO)
    }

    fn wall_ns(&mut self) -> i64 {
        black_box(0)
    }

    fn random(&mut self) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.seed
    }
}

/// Turns machine and servers for ever; the owner of a server's sockets is its place in the list, counted from 1.
pub fn run(services: &mut [Option<&mut dyn Service>]) -> ! {
    let Some(machine) = Machine::new() else { panic!("the interface refuses") };
    let mut host = Bare { seed: 1 };
    let mut serving = Loop::new(machine.node, NoFiles::new(), Group::new(services));
    black_box(serving.with(&mut host, |services, ctx| services.start(ctx).is_ok()));
    loop {
        black_box(serving.take_in(&mut host).is_ok());
        black_box(serving.serve(&mut host).is_ok());
    }
}
