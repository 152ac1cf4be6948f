//! A trace that is on the disk while the server runs, so that who kills it has what was until then.
//!
//! The file is made of pages of whole lines: names, a mark that says what is gone, events, and what a trace ends with. Only whole
//! pages are written, each with a call of its own, which a signal does not divide: whenever the process ends, the file
//! is a trace that viewers read. Where there are as many pages of events as there may be, the oldest are written over.

use super::write::{Tracks, begin, put};
use super::{Event, Ring};
use linerate_wire::trace::{BETWEEN, GroupName, HEAD, Mark, TAIL, Track, TrackName, Value};
use linerate_wire::units::Instant;
use std::collections::VecDeque;
use std::fmt::Display;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Bytes of a page.
const PAGE: usize = 4_096;
/// Most pages of events of a thread: 64 MiB.
const MOST_PAGES: usize = 1 << 14;
/// How often what was noted is written.
const INTERVAL: Duration = Duration::from_secs(1);

/// A page of events.
#[derive(Clone, Copy, Debug)]
struct Kept {
    events: u64,
    oldest: Instant,
}

/// See the module.
#[derive(Debug)]
pub struct Live {
    file: File,
    tracks: Vec<Tracks>,
    /// Where the first page of events is, in pages.
    first: usize,
    /// Pages of events at most.
    most: usize,
    /// What is in the pages of events, without the one that is being filled.
    kept: Vec<Kept>,
    /// The page that is being filled, and its place among them.
    page: Vec<u8>,
    at: usize,
    filling: Kept,
    /// Whether it has what the file has not.
    is_ahead: bool,
    /// Events that are gone.
    lost: u64,
}

impl Live {
    /// Writes a trace without events for so many threads.
    pub fn new(file: File, threads: usize) -> io::Result<Live> {
        Live::with_pages(file, threads, MOST_PAGES * threads)
    }

    fn with_pages(file: File, threads: usize, most: usize) -> io::Result<Live> {
        let mut names = HEAD.as_bytes().to_vec();
        let mut tracks = Vec::new();
        for (number, group) in (0..threads).zip(1_u32..) {
            let track = |number| Track { group, number };
            // Tracks are numbered through all groups, as in other traces.
            let (turns, device) = (track(2 * group - 1), track(2 * group));
            let thread = format!("thread {number}");
            let lines: [&dyn Display; 3] =
                [&GroupName(group, &thread), &TrackName(turns, "loop"), &TrackName(device, "device")];
            for line in lines {
                names.extend_from_slice(format!("{line}{BETWEEN}").as_bytes());
            }
            tracks.push(Tracks { group, turns, device });
        }
        let live = Live {
            file,
            tracks,
            first: names.len().div_ceil(PAGE) + 1,
            most: most.max(2),
            kept: Vec::new(),
            page: Vec::with_capacity(PAGE),
            at: 0,
            filling: Kept { events: 0, oldest: Instant::ZERO },
            is_ahead: false,
            lost: 0,
        };
        live.put_page(live.first, TAIL.as_bytes())?;
        for (number, page) in names.chunks(PAGE).enumerate() {
            live.put_page(number, page)?;
        }
        // The mark: nothing is gone yet.
        live.put_page(live.first - 1, &[])?;
        Ok(live)
    }

    /// Writes a page, the rest of which is blank.
    fn put_page(&self, number: usize, text: &[u8]) -> io::Result<()> {
        let mut page = [b' '; PAGE];
        page[..text.len()].copy_from_slice(text);
        if text.len() < PAGE {
            page[PAGE - 1] = b'\n';
        }
        self.file.write_all_at(&page, (number * PAGE) as u64)
    }

    /// An event of a thread.
    fn event(&mut self, thread: usize, event: &Event) -> io::Result<()> {
        let Some(tracks) = self.tracks.get(thread) else { return Ok(()) };
        let mut line = String::new();
        put(&mut |event| line = format!("{event}{BETWEEN}"), tracks, event);
        if line.len() > PAGE {
            // No name is that long.
            self.lost += 1;
            return Ok(());
        }
        if self.page.len() + line.len() > PAGE {
            self.turn()?;
        }
        if self.page.is_empty() {
            self.filling.oldest = begin(event);
        }
        self.page.extend_from_slice(line.as_bytes());
        self.filling.events += 1;
        self.is_ahead = true;
        Ok(())
    }

    /// Writes the page that is full, and begins the next, which may have been another before.
    fn turn(&mut self) -> io::Result<()> {
        self.settle()?;
        match self.kept.get_mut(self.at) {
            Some(kept) => *kept = self.filling,
            None => self.kept.push(self.filling),
        }
        self.at = (self.at + 1) % self.most;
        if let Some(gone) = self.kept.get(self.at) {
            self.lost += gone.events;
        }
        self.page.clear();
        self.filling = Kept { events: 0, oldest: Instant::ZERO };
        Ok(())
    }

    /// Writes what there is of the page that is being filled.
    fn settle(&mut self) -> io::Result<()> {
        if !self.is_ahead {
            return Ok(());
        }
        let number = self.first + self.at;
        if self.at >= self.kept.len() {
            // The end first: a trace is read up to its first end.
            self.put_page(number + 1, TAIL.as_bytes())?;
        }
        self.put_page(number, &self.page)?;
        self.is_ahead = false;
        Ok(())
    }

    /// Says at the start how many events are gone.
    fn mark(&mut self) -> io::Result<()> {
        let Some(tracks) = self.tracks.first().filter(|_| self.lost > 0) else { return Ok(()) };
        // The page after the one that is being filled is the oldest, where there are as many as there may be.
        let oldest = self.kept.get(self.at + 1).or(self.kept.first()).unwrap_or(&self.filling);
        let details = [("events", Value::Number(self.lost))];
        let name = "older events are gone";
        let mark = Mark { track: tracks.turns, name, at: oldest.oldest, details: &details };
        self.put_page(self.first - 1, format!("{mark}{BETWEEN}").as_bytes())
    }

    /// Takes what threads have noted and writes it.
    fn take(&mut self, rings: &[Arc<Mutex<Ring>>], spare: &mut VecDeque<Event>) -> io::Result<()> {
        let before = self.lost;
        for (thread, ring) in rings.iter().enumerate() {
            {
                let mut ring = ring.lock().unwrap_or_else(PoisonError::into_inner);
                std::mem::swap(&mut ring.events, spare);
                self.lost += std::mem::take(&mut ring.events_lost);
            }
            for event in spare.drain(..) {
                self.event(thread, &event)?;
            }
        }
        self.settle()?;
        if self.lost == before { Ok(()) } else { self.mark() }
    }
}

/// The thread that writes.
#[derive(Debug)]
pub struct Writer {
    end: Sender<()>,
    thread: JoinHandle<io::Result<()>>,
}

impl Writer {
    /// Starts it.
    pub fn start(mut live: Live, rings: Vec<Arc<Mutex<Ring>>>) -> io::Result<Writer> {
        let (end, ended) = mpsc::channel();
        let run = move || {
            let mut spare = VecDeque::new();
            loop {
                let goes_on = matches!(ended.recv_timeout(INTERVAL), Err(RecvTimeoutError::Timeout));
                live.take(&rings, &mut spare)?;
                if !goes_on {
                    return Ok(());
                }
            }
        };
        Ok(Writer { end, thread: std::thread::Builder::new().name("trace".into()).spawn(run)? })
    }

    /// Writes what is left; says what went wrong since the start.
    pub fn finish(self) -> io::Result<()> {
        // A thread that has ended already says why.
        drop(self.end);
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that writes it panicked")))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Gauge, Step};
    use super::*;

    fn scratch(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("linerate-live-{}-{name}.json", std::process::id()))
    }

    fn span(at: u64) -> Event {
        let (from, to) = (Instant::from_nanos(at), Instant::from_nanos(at + 5));
        Event::Span { step: Step::Receive(2), from, to }
    }

    /// The events of a file, which has to be JSON: their names and times in ns.
    fn read(path: &std::path::Path) -> Vec<(String, f64)> {
        let json: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let events = json["traceEvents"].as_array().unwrap().iter();
        let timed =
            events.filter_map(|event| Some((event["name"].as_str()?.to_owned(), event["ts"].as_f64()?)));
        timed.map(|(name, us)| (name, (us * 1e3).round())).collect()
    }

    /// Whatever was written last, the file is a whole trace of what was taken until then.
    #[test]
    fn the_file_is_whole_after_every_turn() {
        let path = scratch("whole");
        let rings: Vec<Arc<Mutex<Ring>>> = (0..2).map(|_| Arc::default()).collect();
        let mut live = Live::new(File::create(&path).unwrap(), 2).unwrap();
        let mut spare = VecDeque::new();
        assert!(read(&path).is_empty());
        let mut wanted = 0;
        for turn in 0..40_u64 {
            for at in 0..turn {
                rings[(at % 2) as usize].lock().unwrap().note(span(turn * 1_000 + at));
                wanted += 1;
            }
            live.take(&rings, &mut spare).unwrap();
            assert_eq!(read(&path).len(), wanted, "after turn {turn}");
        }
        let level = Event::Level { gauge: Gauge::Memory, at: Instant::from_nanos(9), value: 7 };
        rings[1].lock().unwrap().note(level);
        Writer::start(live, rings).unwrap().finish().unwrap();
        assert_eq!(read(&path).last().unwrap(), &("memory".to_owned(), 9.0));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn the_oldest_pages_are_written_over_and_that_is_said() {
        let path = scratch("round");
        let rings = vec![Arc::<Mutex<Ring>>::default()];
        let mut live = Live::with_pages(File::create(&path).unwrap(), 1, 4).unwrap();
        let mut spare = VecDeque::new();
        let mut largest = 0;
        for turn in 1..=60_u64 {
            (0..10).for_each(|at| rings[0].lock().unwrap().note(span(turn * 1_000 + at)));
            live.take(&rings, &mut spare).unwrap();
            let events = read(&path);
            let marks: Vec<_> = events.iter().filter(|(name, _)| name == "older events are gone").collect();
            let mut times: Vec<f64> =
                events.iter().filter(|(name, _)| name == "receive").map(|(_, at)| *at).collect();
            times.sort_by(f64::total_cmp);
            // What is kept is the newest, without a gap.
            let all: Vec<f64> =
                (1..=turn).flat_map(|turn| (0..10).map(move |at| (turn * 1_000 + at) as f64)).collect();
            assert_eq!(times, all[all.len() - times.len()..], "after turn {turn}");
            assert_eq!(marks.len(), usize::from(times.len() < all.len()), "after turn {turn}");
            if let Some((_, at)) = marks.first() {
                assert_eq!(*at, times[0], "after turn {turn}");
                let text = std::fs::read_to_string(&path).unwrap();
                assert!(text.contains(&format!("{{\"events\":{}}}", all.len() - times.len())), "turn {turn}");
            }
            largest = largest.max(std::fs::metadata(&path).unwrap().len());
        }
        // Names, the mark, four pages and the end.
        assert_eq!(largest, 7 * PAGE as u64);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn what_goes_wrong_is_told_at_the_end() {
        let path = scratch("wrong");
        std::fs::write(&path, "").unwrap();
        assert!(Live::new(File::open(&path).unwrap(), 1).is_err(), "it can only be read");
        std::fs::remove_file(path).unwrap();
    }
}
