//! The loop around servers.

use crate::Machine;
use alloc::collections::VecDeque;
use core::hint::black_box;
use linerate_serve::{Context, Service};
use linerate_transport::{FileDone, FileError, FileOp, Files, Owner, Transport};

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

/// Turns machine and servers for ever; the owner of a server's sockets is its place in the list, counted from 1.
pub fn run(services: &mut [&mut dyn Service]) -> ! {
    let Some(mut machine) = Machine::new() else { panic!("the interface refuses") };
    let mut files = NoFiles::new();
    let mut seed = 1_u64;
    let mut started = false;
    loop {
        let now = machine.turn();
        let mut random = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            seed
        };
        let event = machine.stack.poll_event();
        let net: &mut dyn Transport = &mut machine.stack;
        let done = files.poll_done();
        let mut ctx = Context { net, files: &mut files, now, wall_ns: black_box(0), random: &mut random };
        if !started {
            started = true;
            for service in services.iter_mut() {
                black_box(service.start(&mut ctx).is_ok());
            }
        }
        let place = |owner: Owner| usize::from(owner.0).wrapping_sub(1);
        if let Some(event) = event {
            if let Some(service) = services.get_mut(place(event.owner)) {
                service.handle_event(&mut ctx, event);
            }
        }
        if let Some(done) = done {
            if let Some(service) = services.get_mut(place(done.owner)) {
                service.handle_file(&mut ctx, done);
            }
        }
        for service in services.iter_mut() {
            if service.poll_timeout().is_some_and(|at| at <= now) {
                service.handle_timeout(&mut ctx);
            }
        }
    }
}
