//! What the servers of all threads have in common: how many connections there are, and whose; the names of uploads.

use linerate_serve::admission::{Census, Source};
use linerate_serve::ftp::{NameSet, UploadNames};
use linerate_transport::VirtualPath;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A census for servers in several threads; clones count in the same book.
#[derive(Clone, Debug, Default)]
pub struct SharedCensus(Arc<Mutex<Book>>);

#[derive(Debug, Default)]
struct Book {
    total: usize,
    by_source: HashMap<Source, usize>,
}

impl SharedCensus {
    /// A thread that panicked in here left the book whole but for its own line.
    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Census for SharedCensus {
    fn total(&self) -> usize {
        self.book().total
    }

    fn held_by(&self, source: Source) -> usize {
        self.book().by_source.get(&source).copied().unwrap_or_default()
    }

    fn change(&self, source: Source, comes: bool) {
        let mut book = self.book();
        if comes {
            book.total += 1;
            *book.by_source.entry(source).or_default() += 1;
            return;
        }
        book.total = book.total.saturating_sub(1);
        let Some(held) = book.by_source.get_mut(&source) else { return };
        *held = held.saturating_sub(1);
        if *held == 0 {
            book.by_source.remove(&source);
        }
    }
}

/// The names that are being uploaded to in any thread.
#[derive(Clone, Debug, Default)]
pub struct SharedNames(Arc<Mutex<NameSet>>);

impl SharedNames {
    fn names(&self) -> MutexGuard<'_, NameSet> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UploadNames for SharedNames {
    fn take(&self, name: &VirtualPath) -> bool {
        self.names().take(name)
    }

    fn release(&self, name: &VirtualPath) {
        self.names().release(name);
    }

    fn holds(&self, path: &VirtualPath) -> bool {
        self.names().holds(path)
    }

    fn holds_itself(&self, name: &VirtualPath) -> bool {
        self.names().holds_itself(name)
    }
}

/// All of it; clones are of the same.
#[derive(Clone, Debug, Default)]
pub struct Common {
    /// Connections of HTTP.
    pub http: SharedCensus,
    /// Sessions of FTP.
    pub ftp: SharedCensus,
    /// Uploads of FTP.
    pub uploads: SharedNames,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_count_in_one_book_and_nobody_stays_in_it() {
        let census = SharedCensus::default();
        let source = |n: u8| Source::of([10, 0, 0, n].into());
        let count = |n: u8| {
            let census = census.clone();
            std::thread::spawn(move || {
                (0..100).for_each(|_| census.change(source(n % 2), true));
                (0..90).for_each(|_| census.change(source(n % 2), false));
            })
        };
        for thread in [0, 1, 2].map(count) {
            thread.join().unwrap();
        }
        let held = [0, 1, 2].map(|n| census.held_by(source(n)));
        assert_eq!((census.total(), held), (30, [20, 10, 0]));
        for n in [0, 0, 1] {
            (0..10).for_each(|_| census.change(source(n), false));
        }
        assert!(census.total() == 0 && census.book().by_source.is_empty());
    }
}
