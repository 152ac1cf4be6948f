//! What the threads of a server tell each other.

use linerate_serve::admission::{Census, Source};
use linerate_stack::{Message, Seat, Stack};
use linerate_wire::units::Instant;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The letters of a thread, and whether there are any, which costs less to know.
#[derive(Default)]
struct Tray {
    waits: AtomicBool,
    messages: Mutex<Vec<Message>>,
}

impl Tray {
    fn put(&self, message: Message) {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).push(message);
        self.waits.store(true, Ordering::Release);
    }

    fn take(&self) -> Vec<Message> {
        if !self.waits.swap(false, Ordering::Acquire) {
            return Vec::new();
        }
        std::mem::take(&mut self.messages.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Carries the letters of the servers' stacks, and those of the clients'.
pub struct Post {
    servers: Arc<Vec<Tray>>,
    clients: Arc<Vec<Tray>>,
    /// Letters of this thread.
    pub carried: u64,
}

impl Post {
    /// One for each thread.
    pub fn all(threads: u16) -> Vec<Post> {
        let trays = || Arc::new((0..threads).map(|_| Tray::default()).collect::<Vec<_>>());
        let (servers, clients) = (trays(), trays());
        let post = |_| Post { servers: Arc::clone(&servers), clients: Arc::clone(&clients), carried: 0 };
        (0..threads).map(post).collect()
    }

    /// Takes the letters of a server's stack and hands it those of others.
    pub fn carry_server(&mut self, seat: Seat, now: Instant, stack: &mut Stack) {
        self.carried += carry(&self.servers, seat, now, stack);
    }

    /// The same for a stack of clients.
    pub fn carry_clients(&mut self, seat: Seat, now: Instant, stack: &mut Stack) {
        self.carried += carry(&self.clients, seat, now, stack);
    }
}

fn carry(trays: &[Tray], seat: Seat, now: Instant, stack: &mut Stack) -> u64 {
    if !seat.is_shared() {
        return 0;
    }
    let mut carried = 0;
    while let Some(letter) = stack.poll_letter() {
        for to in letter.to.seats(seat) {
            if let Some(tray) = trays.get(usize::from(to)) {
                tray.put(letter.message.clone());
                carried += 1;
            }
        }
    }
    if let Some(tray) = trays.get(usize::from(seat.index)) {
        tray.take().into_iter().for_each(|message| stack.handle_message(now, message));
    }
    carried
}

/// Counts the connections of all threads, behind a lock as in `linerate serve`.
#[derive(Clone, Debug, Default)]
pub struct Book(Arc<Mutex<HashMap<Source, usize>>>);

impl Census for Book {
    fn total(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().sum()
    }

    fn held_by(&self, source: Source) -> usize {
        let book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        book.get(&source).copied().unwrap_or_default()
    }

    fn change(&self, source: Source, comes: bool) {
        let mut book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let held = book.entry(source).or_default();
        *held = if comes { *held + 1 } else { held.saturating_sub(1) };
    }
}
