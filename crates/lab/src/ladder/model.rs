//! What a rung is expected to reach, before it is run: the least of a few limits, each a formula over the constants.
//!
//! Line, processor and window over round trip are those of [`linerate_fabric::links::tcp`], which is given the state as one of
//! its servers. Here is what that server's numbers are:
//!
//! - a round trip lasts the idle one, the time on the line of the segments that one acknowledgement is for, and the time
//!   that a received frame waits for an interrupt;
//! - the window is what fits the buffer: of a send buffer, whole calls, the last of which may go beyond its end; of a receive
//!   buffer, whole segments;
//! - a segment costs its packet, its calls, its bytes, its part of an acknowledgement and of an interrupt. A processor
//!   that is busy takes a part of a window with each interrupt; one that is not, takes what came in the timer's time.
//! - memory: windows together get four fifths of three quarters of it, in whole receive buffers of 2 KiB, less two segments that are set
//!   aside (`crates/stack/src/tcp/budget.rs`).

use super::constants::{Constants, Whose};
use super::rungs::Limit;
use super::state::{Cycles, Direction, HEADERS, State};
use linerate_fabric::links::Links;
use linerate_fabric::links::ethernet::Ethernet;
use linerate_fabric::links::tcp::{CoreCycles, CyclesPerByte, TcpServer};
use linerate_fabric::units::{BitsPerSecond, Bytes, ClockId, Hertz, Nanoseconds, Ratio};
use linerate_sim::PacingMode;

/// The port's name in the description that `fabric` is given.
const PORT: &str = "port";
/// Ethernet's header and check sequence, preamble and gap (IEEE 802.3).
const ETHERNET: [f64; 4] = [14.0, 4.0, 8.0, 12.0];
/// Bytes that the model of `fabric` counts for IPv4 and TCP; the rest of our headers goes with Ethernet's.
const PLAIN_HEADERS: f64 = 40.0;
/// A busy processor finds this part of the window with each interrupt: some of it is on the way.
const BATCH: f64 = 0.5;
/// Bytes of a receive buffer of the interface.
const RECEIVE_BUFFER: f64 = 2_048.0;
/// The part of the memory that windows may have: four fifths of three quarters.
const WINDOWS: f64 = 0.6;

/// What was predicted.
#[derive(Clone, Debug)]
pub struct Predicted {
    /// Payload in MB/s.
    pub megabytes: f64,
    /// Part of the time that the server's processor is busy.
    pub load: f64,
    /// All limits in MB/s with their arithmetic, the smallest first.
    pub limits: Vec<(Limit, f64, String)>,
}

impl Predicted {
    /// What limits.
    pub fn limit(&self) -> Limit {
        self.limits.first().map_or(Limit::Interface, |(limit, ..)| *limit)
    }

    /// What would limit if that were gone, and at how many MB/s.
    pub fn next(&self) -> Option<(Limit, f64)> {
        self.limits.get(1).map(|(limit, megabytes, _)| (*limit, *megabytes))
    }
}

/// Predicts a state.
///
/// # Errors
/// A state that `fabric` has no formula for.
pub fn predict(state: &State, constants: &Constants, whose: Whose) -> Result<Predicted, String> {
    let first = limits(state, constants, whose, false)?;
    // A busy processor takes more with an interrupt than one that waits for them.
    let is_busy = first.first().is_some_and(|(limit, ..)| *limit == Limit::Processor);
    let limits = if is_busy { limits(state, constants, whose, true)? } else { first };
    let megabytes = limits.first().map_or(0.0, |(_, megabytes, _)| *megabytes);
    let segments = megabytes * 1e6 / state.payload() as f64;
    let cycles = work(state, &state.cycles(constants, whose), constants, is_busy).total();
    Ok(Predicted { megabytes, load: (segments * cycles / constants.clock.value).min(1.0), limits })
}

/// The work of one segment, in cycles.
struct Work {
    segment: f64,
    call: f64,
    acknowledgement: f64,
    every: f64,
    copy: f64,
    checksum: f64,
    payload: f64,
}

impl Work {
    fn total(&self) -> f64 {
        let bytes = (self.copy + self.checksum) * self.payload;
        self.segment + self.call + self.acknowledgement / self.every + bytes
    }
}

fn work(state: &State, cycles: &Cycles, constants: &Constants, is_busy: bool) -> Work {
    let payload = state.payload() as f64;
    let every = segments_per_acknowledgement(state);
    // Frames that come in for each segment.
    let (frames, segment, acknowledgement, calls) = match state.direction {
        Direction::Sending => (1.0 / every, cycles.transmit, cycles.receive, payload / state.call() as f64),
        Direction::Receiving => (1.0, cycles.receive, cycles.transmit, 1.0),
    };
    let interrupts = frames / frames_per_interrupt(state, constants, frames, is_busy);
    let way = if state.gives_way && state.direction == Direction::Sending { cycles.give_way } else { 0.0 };
    let checksum = if state.offload { 0.0 } else { cycles.checksum };
    Work {
        segment: segment + cycles.interrupt * interrupts,
        call: calls * (cycles.call + way),
        acknowledgement: acknowledgement + checksum * (HEADERS + ETHERNET[0]),
        every,
        copy: cycles.copy,
        // The sum goes over headers too.
        checksum: checksum * (payload + HEADERS + ETHERNET[0]) / payload,
        payload,
    }
}

/// The receiver acknowledges when so many full segments' bytes have come, whatever their size.
fn segments_per_acknowledgement(state: &State) -> f64 {
    let every = match state.direction {
        Direction::Sending => f64::from(state.ack_every),
        Direction::Receiving => 2.0,
    };
    let full = state.segment() as f64 / state.payload() as f64;
    if full > 1.0 { ((every - 1.0) * full).ceil() } else { every }
}

/// Frames that one interrupt brings, when `frames` come in for each segment.
fn frames_per_interrupt(state: &State, constants: &Constants, frames: f64, is_busy: bool) -> f64 {
    let between = line_ns(state, constants) / frames;
    let paced = &state.interrupts;
    let timer = paced.timer.as_nanos() as f64;
    let threshold = f64::from(paced.threshold.max(1));
    let waiting = match paced.mode {
        PacingMode::None => threshold,
        PacingMode::LastInterrupt => (timer / between).clamp(1.0, threshold.max(1.0)),
        PacingMode::FirstNewPacket => (1.0 + (timer / between).floor()).min(threshold),
        PacingMode::LastNewPacket if timer < between => 1.0,
        PacingMode::LastNewPacket => threshold,
    };
    if !is_busy || state.gives_way {
        return waiting;
    }
    let (window, _) = window(state, constants);
    waiting.max(BATCH * window / state.payload() as f64 * frames)
}

/// How long a frame that another one waits for lies in the ring, in ns.
fn interrupt_wait_ns(state: &State, constants: &Constants) -> f64 {
    let paced = &state.interrupts;
    let timer = paced.timer.as_nanos() as f64;
    match paced.mode {
        PacingMode::None => 0.0,
        PacingMode::LastInterrupt => timer / 2.0,
        PacingMode::FirstNewPacket => timer,
        PacingMode::LastNewPacket => {
            let frames = match state.direction {
                Direction::Sending => 1.0 / segments_per_acknowledgement(state),
                Direction::Receiving => 1.0,
            };
            let between = line_ns(state, constants) / frames;
            if timer < between { timer } else { between * f64::from(paced.threshold) }
        }
    }
}

/// The time of a segment on the line in ns.
fn line_ns(state: &State, constants: &Constants) -> f64 {
    let around: f64 = ETHERNET.iter().sum();
    (state.payload() as f64 + HEADERS + around) * 8e9 / constants.line.value
}

/// The window in bytes, and what bounds it.
fn window(state: &State, constants: &Constants) -> (f64, Limit) {
    let _ = constants;
    let payload = state.payload() as f64;
    let whole = |bytes: f64| (bytes / payload).floor() * payload;
    match state.direction {
        Direction::Sending => {
            let call = state.call() as f64;
            let own = (state.buffer as f64 / call).ceil() * call;
            let peer = whole(state.peer_window as f64);
            if own <= peer { (own, Limit::SendBuffer) } else { (peer, Limit::ReceiveBuffer) }
        }
        Direction::Receiving => {
            let own = whole(state.buffer as f64);
            let Some(heap) = state.heap else { return (own, Limit::ReceiveBuffer) };
            let buffers = (heap as f64 * WINDOWS / RECEIVE_BUFFER).floor() - 2.0;
            let lent = buffers.max(2.0) * payload;
            if own <= lent { (own, Limit::ReceiveBuffer) } else { (lent, Limit::Memory) }
        }
    }
}

/// All limits, the smallest first.
fn limits(
    state: &State,
    constants: &Constants,
    whose: Whose,
    is_busy: bool,
) -> Result<Vec<(Limit, f64, String)>, String> {
    let work = work(state, &state.cycles(constants, whose), constants, is_busy);
    let (window, bounded_by) = window(state, constants);
    let on_line = line_ns(state, constants) * segments_per_acknowledgement(state).min(window / work.payload);
    let trip = state.round_trip_ns(constants) + on_line + interrupt_wait_ns(state, constants);
    let server = TcpServer {
        title: String::new(),
        port: PORT.to_owned(),
        clock: ClockId("cores".to_owned()),
        core_rate: Some(Hertz::new(constants.clock.value)),
        runs_at: None,
        cores: 1,
        application_cores: 1,
        queues: 1,
        segment: Bytes::new(work.payload),
        window: Bytes::new(window),
        window_unit: None,
        round_trip: Nanoseconds::new(trip),
        serial_share: Ratio::new(0.0),
        peer_per_segment: Nanoseconds::new(0.0),
        per_segment: CoreCycles::new(work.segment),
        per_write: CoreCycles::new(work.call),
        per_acknowledgement: CoreCycles::new(work.acknowledgement),
        segments_per_acknowledgement: work.every,
        copies: u8::from(state.copies),
        copy: CyclesPerByte::new(work.copy),
        checksum: CyclesPerByte::new(work.checksum),
        checksum_offload: state.offload,
        memory: None,
        offered: None,
        loss: None,
        requests: None,
        spread: Ratio::new(0.0),
    };
    let prediction = server.predict(&links(state, constants)).map_err(|why| why.to_string())?;
    let mut limits: Vec<(Limit, f64, String)> = prediction
        .bottlenecks
        .into_iter()
        .map(|limit| {
            let name = match limit.name.as_str() {
                "Ethernet line" => Limit::Interface,
                "cores" => Limit::Processor,
                _ => bounded_by,
            };
            (name, limit.rate, limit.explanation)
        })
        .collect();
    limits.sort_by(|a, b| a.1.total_cmp(&b.1));
    Ok(limits)
}

/// The one port, as `fabric` describes ports.
fn links(state: &State, constants: &Constants) -> Links {
    let [header, check_sequence, preamble, gap] = ETHERNET.map(Bytes::new);
    let port = Ethernet {
        rate: BitsPerSecond::new(constants.line.value),
        encoding: None,
        preamble,
        gap,
        header: header + Bytes::new(HEADERS - PLAIN_HEADERS),
        check_sequence,
        mtu: Bytes::new(state.mtu as f64),
        packet_dma: None,
    };
    let mut links = Links::default();
    links.ethernet.insert(PORT.to_owned(), port);
    links
}
