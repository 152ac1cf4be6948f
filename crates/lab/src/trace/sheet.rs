//! A trace that is written: groups and tracks get their numbers when they are named, events go out at once.

use linerate_wire::trace::{BETWEEN, GroupName, HEAD, TAIL, Track, TrackName};
use std::fmt::Display;
use std::io::{self, Write};

/// See the module.
pub struct Sheet<W> {
    out: W,
    groups: u32,
    tracks: u32,
    /// Names and events so far.
    lines: u64,
}

impl<W: Write> Sheet<W> {
    /// Begins a trace.
    ///
    /// # Errors
    ///
    /// What `out` says.
    pub fn new(mut out: W) -> io::Result<Sheet<W>> {
        out.write_all(HEAD.as_bytes())?;
        Ok(Sheet { out, groups: 0, tracks: 0, lines: 0 })
    }

    /// A new group with this name.
    ///
    /// # Errors
    ///
    /// What the writer says.
    pub fn group(&mut self, name: &str) -> io::Result<u32> {
        self.groups += 1;
        self.put(&GroupName(self.groups, name))?;
        Ok(self.groups)
    }

    /// A new track of a group, with this name.
    ///
    /// # Errors
    ///
    /// What the writer says.
    pub fn track(&mut self, group: u32, name: &str) -> io::Result<Track> {
        self.tracks += 1;
        let track = Track { group, number: self.tracks };
        self.put(&TrackName(track, name))?;
        Ok(track)
    }

    /// An event.
    ///
    /// # Errors
    ///
    /// What the writer says.
    pub fn put(&mut self, event: &dyn Display) -> io::Result<()> {
        self.lines += 1;
        write!(self.out, "{event}{BETWEEN}")
    }

    /// Ends the trace; returns how many names and events are in it.
    ///
    /// # Errors
    ///
    /// What the writer says.
    pub fn end(mut self) -> io::Result<u64> {
        self.out.write_all(TAIL.as_bytes())?;
        self.out.flush()?;
        Ok(self.lines)
    }
}
