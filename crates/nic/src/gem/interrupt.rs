//! What the interrupt handler of a queue does.

use crate::bus::Bus;
use crate::gem::regs::{QueueRegisters, cause};

/// The interrupt of one queue. It lives in the handler, apart from the queue: the two share registers and some words of
/// descriptor memory. The handler runs on the queue's core, and may come between any two accesses of the queue's. Where
/// the queues share a line, all are asked.
#[derive(Clone, Copy, Debug)]
pub struct Interrupt<P> {
    board: P,
    registers: QueueRegisters,
    notes: u64,
}

impl<P: Bus> Interrupt<P> {
    pub(super) fn new(board: P, queue: u16, notes: u64) -> Self {
        Interrupt { board, registers: QueueRegisters::of(queue), notes }
    }

    /// Acknowledges what has come and lets nothing through but errors until the queue is armed again. True if there was
    /// something: the loop is to be woken. False for an interrupt without a cause, or with one elsewhere on a shared line.
    ///
    /// It looks at no ring; the loop looks at both, whatever woke it.
    pub fn handle(&self) -> bool {
        let come = self.board.read(self.registers.status);
        if come == 0 {
            return false;
        }
        // Some parts have cleared it by the reading, others wait for this (UG1087: write to clear).
        self.board.write(self.registers.status, come);
        if come & (cause::RECEIVE | cause::SENT) != 0 {
            self.shut();
        }
        if come & cause::ERRORS != 0 {
            for bit in bits(come & cause::ERRORS) {
                self.board.store(self.notes + 4 * u64::from(bit), 1);
            }
            // Each has a word, and who reads them clears this one first: none is lost between the two.
            self.board.store(self.notes, 1);
        }
        true
    }

    /// Forgets all that was noted, and shuts everything.
    pub(super) fn reset(&self) {
        self.board.write(self.registers.disable, cause::ALL);
        (0..16).for_each(|word| self.board.store(self.notes + 4 * word, 0));
        self.acknowledge(cause::ALL);
    }

    /// Lets errors through: from here on, and always.
    pub(super) fn start(&self) {
        self.board.write(self.registers.enable, cause::ERRORS);
    }

    /// Lets through what the loop waits for. What came before is forgotten: it is in the rings.
    pub(super) fn arm(&self, causes: u32) {
        self.acknowledge(causes);
        self.board.write(self.registers.enable, causes);
    }

    pub(super) fn shut(&self) {
        self.board.write(self.registers.disable, cause::RECEIVE | cause::SENT);
    }

    fn acknowledge(&self, causes: u32) {
        self.board.write(self.registers.status, causes);
    }

    /// Errors that have come since the last look, as bits of [`cause`].
    pub(super) fn errors(&self) -> u32 {
        if self.board.load(self.notes) == 0 {
            return 0;
        }
        self.board.store(self.notes, 0);
        bits(cause::ERRORS).fold(0, |come, bit| {
            let word = self.notes + 4 * u64::from(bit);
            if self.board.load(word) == 0 {
                return come;
            }
            self.board.store(word, 0);
            come | 1 << bit
        })
    }
}

/// The numbers of the bits that are set.
fn bits(causes: u32) -> impl Iterator<Item = u32> {
    (0..u32::BITS).filter(move |bit| causes >> bit & 1 != 0)
}
