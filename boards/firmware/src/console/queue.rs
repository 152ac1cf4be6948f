//! What waits between the console's task and that of the network.

use alloc::string::String;
use core::cell::RefCell;
use critical_section::Mutex;

/// How many wait at most.
const PLACES: usize = 4;

/// Commands, or answers, on their way between the console's task and that of the network: a few at most, none of which is ever
/// replaced.
#[derive(Debug)]
pub struct Queue(Mutex<RefCell<[Option<String>; PLACES]>>);

impl Queue {
    /// With nothing in it.
    pub const fn new() -> Queue {
        Queue(Mutex::new(RefCell::new([const { None }; PLACES])))
    }

    /// Puts this at the end.
    ///
    /// # Errors
    /// The text itself where the queue is [full](Queue::is_full).
    pub fn put(&self, text: String) -> Result<(), String> {
        critical_section::with(|cs| {
            let mut all = self.0.borrow_ref_mut(cs);
            match all.iter_mut().find(|place| place.is_none()) {
                Some(place) => {
                    *place = Some(text);
                    Ok(())
                }
                None => Err(text),
            }
        })
    }

    /// The first.
    pub fn take(&self) -> Option<String> {
        critical_section::with(|cs| {
            let mut all = self.0.borrow_ref_mut(cs);
            let first = all[0].take();
            all.rotate_left(1);
            first
        })
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        critical_section::with(|cs| self.0.borrow_ref(cs)[0].is_none())
    }

    /// Whether there is no place left.
    pub fn is_full(&self) -> bool {
        critical_section::with(|cs| self.0.borrow_ref(cs)[PLACES - 1].is_some())
    }
}

impl Default for Queue {
    fn default() -> Queue {
        Queue::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_first_is_taken_first_and_nothing_is_replaced() {
        let queue = Queue::new();
        assert!(queue.is_empty() && queue.take().is_none());
        for number in 0..PLACES {
            assert!(!queue.is_full());
            assert_eq!(queue.put(alloc::format!("{number}")), Ok(()));
        }
        assert!(queue.is_full() && !queue.is_empty());
        assert_eq!(queue.put("more".into()), Err("more".into()));
        assert_eq!(queue.take().as_deref(), Some("0"));
        assert_eq!(queue.put("more".into()), Ok(()));
        for expected in [Some("1"), Some("2"), Some("3"), Some("more"), None] {
            assert_eq!(queue.take().as_deref(), expected);
        }
        assert!(queue.is_empty() && !queue.is_full());
    }
}
