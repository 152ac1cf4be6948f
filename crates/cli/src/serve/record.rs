//! What a server did when, written while it runs, and the frames that its device passed: kept, and written when it ends.
//!
//! Each thread notes its own, and another one writes the events every second; of events and of frames the last ones are kept. All times are those of the system's monotonic
//! clock, in the trace and in the capture.

mod live;
pub mod watched;
mod write;

use linerate_transport::ConnInfo;
use linerate_wire::pcapng::Seen;
use linerate_wire::units::Instant;
use std::collections::VecDeque;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fmt, io};

/// Most events of a thread that wait to be written: 56 bytes each.
const MOST_EVENTS: usize = 1 << 19;
/// Most bytes of frames of a thread.
const MOST_BYTES: usize = 64 << 20;
/// Connections that are looked at closely at a time.
pub const MOST_CONNECTIONS: usize = 16;

/// A part of a turn of the loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Packets were taken in.
    Input,
    /// Servers acted, and packets went out.
    Serve,
    /// What followed from that was done.
    Settle,
    /// Nothing was to be done.
    Sleep,
    /// The device gave so many frames.
    Receive(u32),
    /// It took so many packets.
    Send(u32),
}

/// A value at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gauge {
    /// Connections.
    Connections,
    /// Bytes that they hold.
    Memory,
    /// Packets that wait for the device.
    Waiting,
    /// Segments retransmitted so far.
    Retransmits,
    /// A connection's congestion window in bytes.
    Window(SocketAddr),
    /// What it has in flight, in bytes.
    InFlight(SocketAddr),
    /// Its smoothed round-trip time, in ns.
    RoundTrip(SocketAddr),
}

/// What is noted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Event {
    Span { step: Step, from: Instant, to: Instant },
    Level { gauge: Gauge, at: Instant, value: u64 },
}

/// A frame that passed.
#[derive(Debug)]
struct Frame {
    at: Instant,
    seen: Seen,
    bytes: Vec<u8>,
}

/// What a thread has noted.
#[derive(Debug, Default)]
struct Ring {
    mac: [u8; 6],
    events: VecDeque<Event>,
    events_lost: u64,
    frames: VecDeque<Frame>,
    frames_lost: u64,
    bytes: usize,
}

/// A file that cannot be made.
#[derive(Debug)]
pub struct RecordError {
    path: PathBuf,
    why: io::Error,
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot write {}: {}", self.path.display(), self.why)
    }
}

impl std::error::Error for RecordError {}

/// Where the trace goes.
#[derive(Debug)]
enum Trace {
    /// Into a file, once somebody writes it.
    Ready(Box<live::Live>),
    /// Into a file, by a thread.
    Written(live::Writer),
    /// Into a pipe or a device, whole and at the end.
    Whole(File),
}

/// The files of a server, and what will be in them.
#[derive(Debug)]
pub struct Recording {
    trace: Option<(PathBuf, Trace)>,
    capture: Option<(PathBuf, File)>,
    rings: Vec<Arc<Mutex<Ring>>>,
}

impl Recording {
    /// Makes the files that are asked for, while the user still may; `None` if none is.
    ///
    /// # Errors
    /// A file that cannot be made.
    pub fn open(
        trace: Option<&Path>,
        capture: Option<&Path>,
        threads: usize,
    ) -> Result<Option<Recording>, RecordError> {
        if trace.is_none() && capture.is_none() {
            return Ok(None);
        }
        let threads = threads.max(1);
        let failed = |path: &Path| {
            let path = path.to_owned();
            |why| RecordError { path, why }
        };
        let create = |path: &Path| File::create(path).map_err(failed(path));
        let trace = trace.map(|path| {
            let file = create(path)?;
            if !file.metadata().is_ok_and(|about| about.is_file()) {
                return Ok((path.to_owned(), Trace::Whole(file)));
            }
            let live = live::Live::new(file, threads).map_err(failed(path))?;
            Ok((path.to_owned(), Trace::Ready(Box::new(live))))
        });
        let capture = capture.map(|path| Ok((path.to_owned(), create(path)?)));
        let rings = (0..threads).map(|_| Arc::default()).collect();
        Ok(Some(Recording { trace: trace.transpose()?, capture: capture.transpose()?, rings }))
    }

    /// Has the trace written from now on, by a thread that may what this one may.
    ///
    /// # Errors
    /// A thread that cannot be started.
    pub fn start(mut self) -> Result<Recording, RecordError> {
        self.trace = match self.trace {
            Some((path, Trace::Ready(live))) => {
                let writer = live::Writer::start(*live, self.rings.clone());
                let writer = writer.map_err(|why| RecordError { path: path.clone(), why })?;
                Some((path, Trace::Written(writer)))
            }
            other => other,
        };
        Ok(self)
    }

    /// What each thread notes with.
    pub fn recorders(&self) -> Vec<Recorder> {
        let captures = self.capture.is_some();
        self.rings.iter().map(|ring| Recorder { ring: Arc::clone(ring), captures }).collect()
    }
}

/// A thread's end of the recording.
#[derive(Clone, Debug)]
pub struct Recorder {
    ring: Arc<Mutex<Ring>>,
    /// Whether frames are kept.
    pub captures: bool,
}

impl Recorder {
    fn lock(&self) -> MutexGuard<'_, Ring> {
        // Whoever panicked has left it whole.
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The address of the interface that frames pass.
    pub fn set_mac(&self, mac: [u8; 6]) {
        self.lock().mac = mac;
    }

    /// Notes something that took time.
    pub fn span(&self, step: Step, from: Instant, to: Instant) {
        self.lock().note(Event::Span { step, from, to });
    }

    /// Notes a value.
    pub fn level(&self, gauge: Gauge, at: Instant, value: u64) {
        self.lock().note(Event::Level { gauge, at, value });
    }

    /// Notes the measurements of a connection.
    pub fn connection(&self, at: Instant, info: &ConnInfo) {
        let remote = info.remote;
        self.level(Gauge::Window(remote), at, info.congestion_window.into());
        self.level(Gauge::InFlight(remote), at, info.in_flight.into());
        if let Some(rtt) = info.rtt {
            self.level(Gauge::RoundTrip(remote), at, linerate_wire::units::nanos(rtt));
        }
    }

    /// Keeps a frame that lies in these pieces.
    pub fn frame<'a>(&self, at: Instant, seen: Seen, pieces: impl Iterator<Item = &'a [u8]>) {
        let bytes: Vec<u8> = pieces.flatten().copied().collect();
        self.lock().keep(Frame { at, seen, bytes });
    }

    /// Takes the last frames back, which did not leave after all.
    pub fn take_back(&self, frames: usize) {
        let mut ring = self.lock();
        for _ in 0..frames {
            let Some(frame) = ring.frames.pop_back() else { return };
            ring.bytes -= frame.bytes.len();
        }
    }
}

impl Ring {
    fn note(&mut self, event: Event) {
        if self.events.len() >= MOST_EVENTS {
            self.events.pop_front();
            self.events_lost += 1;
        }
        self.events.push_back(event);
    }

    fn keep(&mut self, frame: Frame) {
        self.bytes += frame.bytes.len();
        self.frames.push_back(frame);
        while self.bytes > MOST_BYTES {
            let Some(oldest) = self.frames.pop_front() else { return };
            self.bytes -= oldest.bytes.len();
            self.frames_lost += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_events_and_frames_are_kept() {
        let mut ring = Ring::default();
        let level = |at| Event::Level { gauge: Gauge::Memory, at: Instant::from_nanos(at), value: at };
        (0..MOST_EVENTS as u64 + 3).for_each(|at| ring.note(level(at)));
        assert_eq!((ring.events.len(), ring.events_lost), (MOST_EVENTS, 3));
        assert_eq!(ring.events.front(), Some(&level(3)));
        let frame = |at| Frame { at: Instant::from_nanos(at), seen: Seen::Inbound, bytes: vec![0; 1 << 20] };
        (0..70).for_each(|at| ring.keep(frame(at)));
        assert_eq!((ring.frames.len(), ring.frames_lost), (MOST_BYTES >> 20, 70 - (MOST_BYTES as u64 >> 20)));
        assert!(ring.bytes <= MOST_BYTES);
        let recorder = Recorder { ring: Arc::new(Mutex::new(ring)), captures: true };
        recorder.take_back(60);
        let ring = recorder.lock();
        assert_eq!((ring.frames.len(), ring.bytes), (4, 4 << 20));
    }
}
