//! Mailboxes: what one core hands to another, first in, first out, within a bound.

use alloc::collections::VecDeque;
use core::cell::RefCell;
use core::sync::atomic::{AtomicUsize, Ordering};
use critical_section::Mutex;

/// A queue between cores. All cores are kept out of it only while handles are moved, never while bytes are.
pub struct Mailbox<T> {
    items: Mutex<RefCell<VecDeque<T>>>,
    /// How many there are, for whoever only wants to know whether there is anything.
    len: AtomicUsize,
}

impl<T: Send> Mailbox<T> {
    /// An empty one, with memory for so many.
    pub fn with_room(room: usize) -> Self {
        Mailbox { items: Mutex::new(RefCell::new(VecDeque::with_capacity(room))), len: AtomicUsize::new(0) }
    }

    /// Whether there is nothing. What was put in before a core is woken is seen by it then: this and the bell are in one order.
    pub fn is_empty(&self) -> bool {
        self.len.load(Ordering::SeqCst) == 0
    }

    fn with<R>(&self, work: impl FnOnce(&mut VecDeque<T>) -> R) -> R {
        critical_section::with(|cs| {
            let mut items = self.items.borrow_ref_mut(cs);
            let result = work(&mut items);
            self.len.store(items.len(), Ordering::SeqCst);
            result
        })
    }

    /// Puts something in behind the rest, or gives it back where so many wait already.
    pub fn push_within(&self, most: usize, item: T) -> Result<(), T> {
        self.with(|items| {
            if items.len() >= most {
                return Err(item);
            }
            items.push_back(item);
            Ok(())
        })
    }

    /// Puts all of these in behind the rest.
    pub fn push_all(&self, from: &mut VecDeque<T>) {
        if !from.is_empty() {
            self.with(|items| items.append(from));
        }
    }

    /// Takes the oldest.
    pub fn pop(&self) -> Option<T> {
        if self.is_empty() { None } else { self.with(VecDeque::pop_front) }
    }

    /// Takes everything, the oldest first, behind what is in `into` already.
    pub fn take_all(&self, into: &mut VecDeque<T>) {
        if !self.is_empty() {
            self.with(|items| into.append(items));
        }
    }
}
