//! A receiver while nothing waits in it, in few bytes.

use super::super::autotune::ReceiveTuner;
use super::super::budget::{KeptPromise, Promise};
use super::super::config::Resources;
use super::super::reassembly::Reassembly;
use super::super::spare;
use super::Receiver;
use alloc::collections::VecDeque;
use linerate_nic::Slice;

/// What there is to know of a [`Receiver`] that holds nothing.
#[derive(Debug)]
pub(in super::super) struct ReceiverAtRest {
    /// The next byte expected, FIN not counted.
    pub next: u64,
    edge: u64,
    pub bytes_received: u64,
    bytes_compacted: u64,
    tuner: ReceiveTuner,
    promise: KeptPromise,
    cost: u16,
    mss: u16,
    scale: u8,
    pub finished: bool,
    discard: bool,
    rests: bool,
}

impl Receiver {
    /// Memory for pieces that another has left, where there is none.
    pub fn lend(&mut self, queue: VecDeque<Slice>) {
        spare::lend(&mut self.queue, queue);
    }

    /// What is left of that; this is done with.
    pub fn take_memory(&mut self) -> VecDeque<Slice> {
        spare::left_of(&mut self.queue)
    }

    /// Whether it holds nothing, and nothing is to be reported.
    pub fn is_at_rest(&self) -> bool {
        self.queue.is_empty()
            && self.charge.bytes() == 0
            && self.duplicate.is_none()
            && !self.has_gap()
            && self.fin.is_some() == self.finished
    }

    /// All there is to know of one that is at rest; `None` for another. The promise goes with it: what is left is to be
    /// dropped.
    pub fn fall_asleep(&mut self) -> Option<ReceiverAtRest> {
        if !self.is_at_rest() {
            return None;
        }
        let fit = |number: usize| u16::try_from(number).ok();
        let (cost, mss) = (fit(self.cost)?, fit(self.mss)?);
        Some(ReceiverAtRest {
            next: self.next,
            edge: self.edge,
            bytes_received: self.bytes_received,
            bytes_compacted: self.bytes_compacted,
            tuner: self.tuner.clone(),
            cost,
            mss,
            scale: self.scale,
            finished: self.finished,
            discard: self.discard,
            rests: self.rests,
            promise: self.promise.keep()?,
        })
    }
}

impl ReceiverAtRest {
    /// The receiver again.
    pub fn wake(mut self, resources: &Resources, max_waiting: usize) -> Receiver {
        let promise = self.promise.take();
        self.image(promise, resources, max_waiting)
    }

    /// The receiver to look at, which was promised nothing.
    pub fn look(&self, resources: &Resources, max_waiting: usize) -> Receiver {
        self.image(resources.budget.promise(0), resources, max_waiting)
    }

    fn image(&self, promise: Promise, resources: &Resources, max_waiting: usize) -> Receiver {
        Receiver {
            next: self.next,
            edge: self.edge,
            scale: self.scale,
            queue: VecDeque::new(),
            queued: 0,
            waiting: Reassembly::default(),
            waiting_len: 0,
            waiting_held: 0,
            max_waiting,
            fin: self.finished.then_some(self.next),
            finished: self.finished,
            discard: self.discard,
            duplicate: None,
            tuner: self.tuner.clone(),
            charge: resources.budget.charge(),
            promise,
            rests: self.rests,
            cost: usize::from(self.cost),
            mss: usize::from(self.mss),
            pages: resources.pages.clone(),
            bytes_received: self.bytes_received,
            bytes_compacted: self.bytes_compacted,
        }
    }

    /// As [`Receiver::rest`].
    pub fn rest(&mut self) {
        self.rests = true;
        let mut promise = self.promise.take();
        if self.finished || self.discard {
            promise.end();
        } else {
            promise.set(0, 0);
        }
        // It has become smaller, and fits again.
        if let Some(kept) = promise.keep() {
            self.promise = kept;
        }
    }
}
