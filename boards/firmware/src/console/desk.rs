//! What waits between the console's task and that of the network.

use super::Console;
use alloc::string::String;
use core::cell::RefCell;
use critical_section::Mutex;

/// How many wait at most.
const PLACES: usize = 4;

/// Commands on their way from the console's task to that of the network, and answers on their way back: none is lost or replaced.
#[derive(Debug, Default)]
pub struct Desk {
    commands: Queue,
    answers: Queue,
}

impl Desk {
    /// With nothing on it.
    pub const fn new() -> Desk {
        Desk { commands: Queue::new(), answers: Queue::new() }
    }

    /// For the network task: the first command that waits; not before the answers so far were printed, so that there is always a place
    /// for the next one.
    pub fn take_command(&self) -> Option<String> {
        if self.answers.is_empty() { self.commands.take() } else { None }
    }

    /// For the network task: an answer.
    pub fn answer(&self, text: String) {
        // Beside the answer to one command there are the greeting and the report of one test: that is less than there are places.
        let placed = self.answers.put(text);
        debug_assert!(placed.is_ok(), "no place for {placed:?}");
    }

    /// For the console's task: prints the answers that are there and takes what was typed, and calls `turns` for each command. Whether
    /// any waits.
    pub fn serve(&self, console: &mut Console, mut turns: impl FnMut()) -> bool {
        while let Some(text) = self.answers.take() {
            console.answer(&text);
        }
        // Where it is full keys stay in the line's hardware until the network task has taken a command, which it answers.
        while !self.commands.is_full()
            && let Some(command) = console.command()
        {
            turns();
            // There is a place: nobody else puts commands there.
            let placed = self.commands.put(command);
            debug_assert!(placed.is_ok(), "no place for {placed:?}");
        }
        !self.commands.is_empty()
    }
}

/// A few texts at most.
#[derive(Debug)]
struct Queue(Mutex<RefCell<[Option<String>; PLACES]>>);

impl Queue {
    const fn new() -> Queue {
        Queue(Mutex::new(RefCell::new([const { None }; PLACES])))
    }

    /// Puts this at the end; what is too much comes back.
    fn put(&self, text: String) -> Result<(), String> {
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
    fn take(&self) -> Option<String> {
        critical_section::with(|cs| {
            let mut all = self.0.borrow_ref_mut(cs);
            let first = all[0].take();
            all.rotate_left(1);
            first
        })
    }

    /// Whether nothing waits.
    fn is_empty(&self) -> bool {
        critical_section::with(|cs| self.0.borrow_ref(cs)[0].is_none())
    }

    /// Whether there is no place left.
    fn is_full(&self) -> bool {
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
