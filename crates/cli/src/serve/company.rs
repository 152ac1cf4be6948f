//! The threads of the other queues, as the first one sees them.

use super::ServeError;
use super::engine::Figures;
use super::post::{Ending, Post, PostOffice, Told};
use super::worker::Worker;
use std::io;
use std::thread::JoinHandle;

/// The other threads; none where there is one queue.
#[derive(Default)]
pub struct Company {
    threads: Vec<JoinHandle<()>>,
    /// Whether each has nothing under way, by seat.
    idle: Vec<bool>,
    /// What was told since they were asked, while not all have.
    gathered: Option<Vec<Told>>,
    /// What those had moved that have ended.
    pub ended: Figures,
    cut_off: u64,
}

impl Company {
    /// These threads; seats are counted from 1 on.
    pub fn new(threads: Vec<JoinHandle<()>>) -> Company {
        Company { idle: vec![false; threads.len()], threads, ..Company::default() }
    }

    /// Asks all for what they count; false when there is nobody to ask.
    pub fn ask(&mut self, post: Option<&PostOffice>) -> bool {
        let Some(post) = post.filter(|_| !self.threads.is_empty()) else { return false };
        post.out.tell_others(|| Post::Ask);
        self.gathered = Some(Vec::new());
        true
    }

    /// Whether answers are under way.
    pub fn gathers(&self) -> bool {
        self.gathered.is_some()
    }

    /// Takes an answer; returns all when it is the last.
    pub fn gather(&mut self, told: Told) -> Option<Vec<Told>> {
        let all = self.gathered.as_mut()?;
        all.push(told);
        if all.len() < self.threads.len() { None } else { self.gathered.take() }
    }

    /// Lets all finish what is under way.
    pub fn drain(&self, post: Option<&PostOffice>) {
        post.into_iter().for_each(|post| post.out.tell_others(|| Post::Drain));
    }

    /// Whether none of them has anything under way.
    pub fn is_idle(&self) -> bool {
        self.idle.iter().all(|idle| *idle)
    }

    /// What the thread of this seat says of itself.
    pub fn set_idle(&mut self, seat: usize, is_idle: bool) {
        if let Some(idle) = seat.checked_sub(1).and_then(|at| self.idle.get_mut(at)) {
            *idle = is_idle;
        }
    }

    /// The thread of this seat has ended.
    ///
    /// # Errors
    /// When nobody had told it to.
    pub fn note_end(&mut self, seat: usize, ending: Ending) -> Result<(), ServeError> {
        match ending {
            Ending::Done { figures, cut_off } => {
                self.ended = self.ended + figures;
                self.cut_off += cut_off;
                Ok(())
            }
            Ending::Failed(error) => Err(ServeError::Device(error)),
            Ending::Panicked => {
                Err(ServeError::System(io::Error::other(format!("the thread of queue {seat} has panicked"))))
            }
        }
    }

    /// Tells all to end; false when there is nobody.
    pub fn tell_end(&self, post: Option<&PostOffice>, resets: bool) -> bool {
        let Some(post) = post.filter(|_| !self.threads.is_empty()) else { return false };
        post.out.tell_others(|| Post::End { resets });
        true
    }

    /// Waits until all have ended; returns how many connections they cut off.
    pub fn join(&mut self, worker: &mut Worker) -> Result<u64, ServeError> {
        for thread in self.threads.drain(..) {
            // One that panicked has said so by post.
            let _ = thread.join();
        }
        let mut told = std::mem::take(&mut worker.orders);
        told.extend(std::iter::from_fn(|| worker.post.as_mut()?.poll()));
        for order in told {
            if let Post::Ended(seat, ending) = order {
                self.note_end(seat, ending)?;
            }
        }
        Ok(self.cut_off)
    }
}
