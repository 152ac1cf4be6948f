//! What a rung is expected to reach, before it is run: the least of a few limits, each a formula over the constants.
//!
//! Line, processor and window over round trip are those of [`linerate_fabric::links::tcp`], which is given the state as one of
//! its servers. Here is what that server's numbers are:
//!
//! - a round trip lasts the idle one, the time on the line until an acknowledgement is due, and the time that a received
//!   frame waits for an interrupt;
//! - the window is what fits the buffer: of a send buffer, whole calls, the last of which may go beyond its end; of a receive
//!   buffer, whole segments. It moves in steps of what is acknowledged together;
//! - a segment costs its packet, its calls, its bytes, its part of an acknowledgement and of an interrupt. A processor
//!   that waits takes with an interrupt what came in the timer's time; one that is behind, up to half a window, and answers it with
//!   one acknowledgement. So its limit is that of large batches, and its load is full before;
//! - memory: a quarter is kept for sending; of the rest a connection is granted two segments and promised four fifths of
//!   what is left (`crates/stack/src/tcp/budget.rs`), in receive buffers of 2 KiB. Two of them hold what an acknowledgement is for while it
//!   offers the window.

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
pub(super) const ETHERNET: [f64; 4] = [14.0, 4.0, 8.0, 12.0];
/// Bytes that the model of `fabric` counts for IPv4 and TCP; the rest of our headers goes with Ethernet's.
const PLAIN_HEADERS: f64 = 40.0;
/// A busy processor finds this part of the window with each interrupt: some of it is on the way.
const BATCH: f64 = 0.5;
/// After this time our stack acknowledges what came, however little.
const DELAYED_ACK_NS: f64 = 40e6;
/// Bytes of a receive buffer of the interface.
const RECEIVE_BUFFER: f64 = 2_048.0;
/// Segments that a connection may receive whatever the memory.
const GRANTED: f64 = 2.0;
/// The part of the memory that is not kept for sending.
const RECEIVING: f64 = 0.75;
/// The part of what is left that one connection is promised.
const SHARE: f64 = 0.8;

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
    let limits = limits(state, constants, whose)?;
    let megabytes = limits.first().map_or(0.0, |(_, megabytes, _)| *megabytes);
    let segments = megabytes * 1e6 / state.payload() as f64;
    let waiting = frames_per_interrupt(state, constants);
    let cycles = Work::new(state, &state.cycles(constants, whose), waiting).total();
    // A processor that is busy takes more with an interrupt, and is busy all the same.
    Ok(Predicted { megabytes, load: (segments * cycles / constants.clock.value).min(1.0), limits })
}

/// Cycles that a byte of payload costs a processor which is behind.
pub fn cycles_per_byte(state: &State, constants: &Constants, whose: Whose) -> f64 {
    let behind = frames_when_behind(state, constants);
    Work::new(state, &state.cycles(constants, whose), behind).total() / state.payload() as f64
}

/// The window in bytes: what is under way at a time.
pub fn window_bytes(state: &State, constants: &Constants) -> f64 {
    round(state, constants, &window(state)).0
}

/// The work of one segment, in cycles.
struct Work {
    segment: f64,
    call: f64,
    acknowledgement: f64,
    /// Segments for which there is one acknowledgement.
    every: f64,
    copy: f64,
    checksum: f64,
    payload: f64,
}

impl Work {
    /// With so many frames for each interrupt.
    fn new(state: &State, cycles: &Cycles, batch: f64) -> Work {
        let payload = state.payload() as f64;
        let every = segments_per_acknowledgement(state);
        let (segment, acknowledgement, calls, every) = match state.direction {
            Direction::Sending => (cycles.transmit, cycles.receive, payload / state.call() as f64, every),
            // What comes together is acknowledged together.
            Direction::Receiving => (cycles.receive, cycles.transmit, 1.0, every.max(batch)),
        };
        let way =
            if state.gives_way && state.direction == Direction::Sending { cycles.give_way } else { 0.0 };
        let checksum = if state.offload { 0.0 } else { cycles.checksum };
        Work {
            segment: segment + cycles.interrupt * frames_per_segment(state) / batch,
            call: calls * (cycles.call + way),
            acknowledgement: acknowledgement + checksum * (HEADERS + ETHERNET[0]),
            every,
            copy: cycles.copy,
            // The sum goes over headers too.
            checksum: checksum * (payload + HEADERS + ETHERNET[0]) / payload,
            payload,
        }
    }

    fn total(&self) -> f64 {
        let bytes = (self.copy + self.checksum) * self.payload;
        self.segment + self.call + self.acknowledgement / self.every + bytes
    }
}

/// The receiver acknowledges when so many full segments' bytes have come, whatever their size.
fn segments_per_acknowledgement(state: &State) -> f64 {
    let every = f64::from(state.ack_every);
    let full = state.segment() as f64 / state.payload() as f64;
    if full > 1.0 { ((every - 1.0) * full).ceil() } else { every }
}

/// Frames that the server receives for each segment of data.
fn frames_per_segment(state: &State) -> f64 {
    match state.direction {
        Direction::Sending => 1.0 / segments_per_acknowledgement(state),
        Direction::Receiving => 1.0,
    }
}

/// Time between two frames that the server receives, in ns, while the line is busy.
fn between_frames_ns(state: &State, constants: &Constants) -> f64 {
    line_ns(state, constants) / frames_per_segment(state)
}

/// Frames that one interrupt brings to a processor that waits for it.
fn frames_per_interrupt(state: &State, constants: &Constants) -> f64 {
    let between = between_frames_ns(state, constants);
    let paced = &state.interrupts;
    let timer = paced.timer.as_nanos() as f64;
    let threshold = f64::from(paced.threshold.max(1));
    match paced.mode {
        PacingMode::None => threshold,
        PacingMode::LastInterrupt => (timer / between).clamp(1.0, threshold),
        PacingMode::FirstNewPacket => (1.0 + (timer / between).floor()).min(threshold),
        PacingMode::LastNewPacket if timer < between => 1.0,
        PacingMode::LastNewPacket => threshold,
    }
}

/// Frames that one interrupt brings to a processor that is behind: what has come in the meantime.
fn frames_when_behind(state: &State, constants: &Constants) -> f64 {
    let waiting = frames_per_interrupt(state, constants);
    if state.gives_way {
        return waiting;
    }
    let window = window(state).segments;
    waiting.max(BATCH * window * frames_per_segment(state))
}

/// How long a frame that another one waits for lies in the ring, in ns.
fn interrupt_wait_ns(state: &State, constants: &Constants) -> f64 {
    let paced = &state.interrupts;
    let timer = paced.timer.as_nanos() as f64;
    let between = between_frames_ns(state, constants);
    match paced.mode {
        PacingMode::None => 0.0,
        PacingMode::LastInterrupt => timer / 2.0,
        PacingMode::FirstNewPacket => timer,
        PacingMode::LastNewPacket if timer < between => timer,
        PacingMode::LastNewPacket => between * f64::from(paced.threshold),
    }
}

/// The time of a segment on the line in ns.
fn line_ns(state: &State, constants: &Constants) -> f64 {
    let around: f64 = ETHERNET.iter().sum();
    (state.payload() as f64 + HEADERS + around) * 8e9 / constants.line.value
}

/// A window in segments.
struct Window {
    segments: f64,
    /// Segments that are acknowledged, or that the writer is woken for, together.
    step: f64,
    bounded_by: Limit,
}

fn window(state: &State) -> Window {
    let payload = state.payload() as f64;
    let step = segments_per_acknowledgement(state);
    let whole = |bytes: f64| (bytes / payload).floor();
    match state.direction {
        Direction::Sending => {
            let buffer = state.buffer as f64;
            let call = state.call() as f64;
            let own = ((buffer / call).ceil() * call / payload).floor();
            let peer = whole(state.peer_window as f64);
            if own > peer {
                return Window { segments: peer, step, bounded_by: Limit::ReceiveBuffer };
            }
            // The writer is woken when a quarter of the buffer is free.
            let acknowledgements = (buffer / 4.0 / (step * payload)).ceil().max(1.0);
            Window { segments: own, step: step * acknowledgements, bounded_by: Limit::SendBuffer }
        }
        Direction::Receiving => {
            let own = whole(state.buffer as f64);
            let lent = state.heap.map_or(f64::INFINITY, |heap| lent_segments(heap as f64));
            if own <= lent {
                return Window { segments: own, step, bounded_by: Limit::ReceiveBuffer };
            }
            Window { segments: lent, step, bounded_by: Limit::Memory }
        }
    }
}

/// Segments for which a window has memory.
fn lent_segments(heap: f64) -> f64 {
    let grant = GRANTED * RECEIVE_BUFFER;
    let lent = grant + SHARE * (RECEIVING * heap - grant).max(0.0);
    ((lent / RECEIVE_BUFFER).floor() - GRANTED).max(1.0)
}

/// The bytes of a window that are under way, and the round trip that they take in ns. Only whole steps move: what is left of
/// the window waits at the receiver, so that less is missing until the next acknowledgement.
fn round(state: &State, constants: &Constants, window: &Window) -> (f64, f64) {
    let steps = (window.segments / window.step).floor();
    let idle = state.round_trip_ns(constants) + interrupt_wait_ns(state, constants);
    let line = line_ns(state, constants);
    if steps < 1.0 {
        // Nothing but the timer makes the receiver acknowledge.
        return (window.segments * state.payload() as f64, idle + line * window.segments + DELAYED_ACK_NS);
    }
    let left = window.segments - steps * window.step;
    (steps * window.step * state.payload() as f64, idle + line * (window.step - left))
}

/// All limits, the smallest first.
fn limits(state: &State, constants: &Constants, whose: Whose) -> Result<Vec<(Limit, f64, String)>, String> {
    let behind = frames_when_behind(state, constants);
    let work = Work::new(state, &state.cycles(constants, whose), behind);
    let bounds = window(state);
    let bounded_by = bounds.bounded_by;
    let (window, trip) = round(state, constants, &bounds);
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
