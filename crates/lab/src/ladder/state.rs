//! A state of tuning: everything that a rung of the ladder may change.

use super::constants::{Constants, Whose};
use linerate_sim::PacingMode;
use std::time::Duration;

/// Bytes of IPv4 and TCP headers with timestamps, which our stack always asks for.
pub const HEADERS: f64 = 52.0;

/// Which way the data goes, seen from the server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// The server sends: `get`.
    Sending,
    /// The server receives: `put`.
    Receiving,
}

impl Direction {
    /// As a figure's workload: `ftp-tx`, `ftp-rx`.
    pub fn workload(self) -> &'static str {
        match self {
            Direction::Sending => "ftp-tx",
            Direction::Receiving => "ftp-rx",
        }
    }
}

/// When received frames interrupt the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interrupts {
    /// What the timer counts from.
    pub mode: PacingMode,
    /// The timer.
    pub timer: Duration,
    /// Frames that interrupt at once.
    pub threshold: u32,
}

impl Interrupts {
    /// An interrupt for each frame, unless the processor is busy: the document's timer of 0.
    pub const EACH: Interrupts =
        Interrupts { mode: PacingMode::LastInterrupt, timer: Duration::ZERO, threshold: 1 };

    /// One of the modes with the document's 50 us, and a threshold that the window reaches.
    pub const fn paced(mode: PacingMode) -> Interrupts {
        Interrupts { mode, timer: Duration::from_micros(50), threshold: 16 }
    }
}

/// See the module.
#[derive(Clone, PartialEq, Debug)]
pub struct State {
    /// Which way the data goes.
    pub direction: Direction,
    /// Bytes that the application writes with a call; 0 for a full segment.
    pub write: u64,
    /// Whether it gives way after each call.
    pub gives_way: bool,
    /// Whether the software is compiled for speed.
    pub optimized: bool,
    /// Whether payload is copied between application and stack.
    pub copies: bool,
    /// The server's send and receive buffers in bytes.
    pub buffer: u64,
    /// Memory for the server's sockets in bytes; enough where it is `None`.
    pub heap: Option<u64>,
    /// The window that the client offers, in bytes.
    pub peer_window: u64,
    /// Whether the round trip is the longer one.
    pub is_far: bool,
    /// Full segments for which the receiver acknowledges.
    pub ack_every: u8,
    /// Whether the interface does checksums.
    pub offload: bool,
    /// Whether the driver has been improved.
    pub driver_improved: bool,
    /// When received frames interrupt.
    pub interrupts: Interrupts,
    /// The largest IP packet in bytes.
    pub mtu: usize,
}

impl State {
    /// The server as the document found it.
    pub fn as_ported(direction: Direction) -> State {
        State {
            direction,
            write: 512,
            gives_way: true,
            optimized: false,
            copies: true,
            buffer: 8 << 10,
            heap: None,
            peer_window: 65_535,
            is_far: false,
            ack_every: 2,
            offload: false,
            driver_improved: false,
            interrupts: Interrupts::EACH,
            mtu: 1_500,
        }
    }

    /// Payload of a full segment in bytes.
    pub fn segment(&self) -> u64 {
        self.mtu as u64 - HEADERS as u64
    }

    /// Payload of the segments that are sent: who gives way after each small call sends them one by one.
    pub fn payload(&self) -> u64 {
        match self.direction {
            Direction::Sending if self.gives_way => self.call().min(self.segment()),
            _ => self.segment(),
        }
    }

    /// Bytes of a call that writes.
    pub fn call(&self) -> u64 {
        if self.write == 0 { self.segment() } else { self.write }
    }

    /// What the server's processor needs, in cycles, by part.
    pub fn cycles(&self, constants: &Constants, whose: Whose) -> Cycles {
        let costs = constants.costs(whose);
        let factor = if self.optimized { 1.0 } else { constants.unoptimized.value };
        let driver = if self.driver_improved { &costs.driver_after } else { &costs.driver }.value;
        let (transmit, receive, call) = match self.direction {
            Direction::Sending => (&costs.transmit, &costs.receive_acknowledgement, &costs.call),
            Direction::Receiving => (&costs.transmit_acknowledgement, &costs.receive, &costs.read),
        };
        let copies = if self.copies { costs.copy.value } else { 0.0 };
        Cycles {
            transmit: factor * (transmit.value + driver),
            receive: factor * receive.value,
            interrupt: factor * costs.interrupt.value,
            call: factor * call.value,
            give_way: factor * costs.give_way.value,
            copy: factor * copies,
            // Sums are written in assembly, and compiled for speed in every build.
            checksum: costs.checksum.value,
        }
    }

    /// The round trip when nothing waits, in nanoseconds.
    pub fn round_trip_ns(&self, constants: &Constants) -> f64 {
        if self.is_far { constants.far_round_trip.value } else { constants.round_trip.value }
    }
}

/// Cycles of the server's processor.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cycles {
    /// A packet sent.
    pub transmit: f64,
    /// A frame received.
    pub receive: f64,
    /// An interrupt.
    pub interrupt: f64,
    /// A call that writes or reads.
    pub call: f64,
    /// Giving way once.
    pub give_way: f64,
    /// A byte copied.
    pub copy: f64,
    /// A byte summed in software.
    pub checksum: f64,
}
