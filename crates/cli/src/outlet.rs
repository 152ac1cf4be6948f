//! Standard output and error of a server: whoever is to read them and does not is no reason to stop serving.

use std::time::{Duration, Instant};

/// Most bytes that wait for their reader.
const ROOM: usize = 1 << 20;

/// Lines on their way to a descriptor.
///
/// They are written as far as that needs no waiting. Those beyond 1 MiB are dropped and counted.
pub struct Outlet {
    bytes: Vec<u8>,
    /// Lines for which there was no room.
    dropped: u64,
    /// Takes what it can without waiting, and says how many bytes that were.
    write: fn(&[u8]) -> usize,
}

impl Outlet {
    /// Nothing waits yet.
    pub const fn new(write: fn(&[u8]) -> usize) -> Outlet {
        Outlet { bytes: Vec::new(), dropped: 0, write }
    }

    /// Bytes that wait.
    pub const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Adds whole lines.
    pub fn append(&mut self, lines: &[u8]) {
        if self.bytes.len() + lines.len() > ROOM {
            self.dropped += lines.iter().filter(|byte| **byte == b'\n').count() as u64;
        } else {
            self.bytes.extend_from_slice(lines);
        }
    }

    /// Writes what can be written now; true if nothing waits any more.
    pub fn write_out(&mut self) -> bool {
        if !self.bytes.is_empty() {
            let taken = (self.write)(&self.bytes);
            self.bytes.drain(..taken);
        }
        self.bytes.is_empty()
    }

    /// Writes everything, unless nobody takes it for so long.
    pub fn finish(&mut self, patience: Duration) {
        let until = Instant::now() + patience;
        while !self.write_out() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// How many lines were dropped since the last time; none while others wait before them.
    pub fn take_dropped(&mut self) -> u64 {
        if self.bytes.is_empty() { std::mem::take(&mut self.dropped) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_taken_waits_and_what_is_too_much_is_counted() {
        let mut outlet = Outlet::new(|_| 0);
        outlet.append(&[b'\n'; ROOM]);
        assert!(!outlet.write_out());
        outlet.append(b"one\ntwo\n");
        assert_eq!((outlet.len(), outlet.take_dropped()), (ROOM, 0));
        outlet.write = |bytes| bytes.len() - 2;
        assert!(!outlet.write_out());
        assert_eq!((outlet.len(), outlet.take_dropped()), (2, 0));
        outlet.append(b"three\n");
        outlet.write = <[u8]>::len;
        assert!(outlet.write_out());
        assert_eq!((outlet.take_dropped(), outlet.take_dropped()), (2, 0));
    }
}
