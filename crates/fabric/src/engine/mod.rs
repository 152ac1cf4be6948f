//! Follows each burst of concurrent transfers through the resources that they share.
//!
//! The closed forms average; this engine does not. It has the same resources and costs ([`crate::edma::queues`]), but
//! each burst takes its turn: a controller sends a read when its bus is free and its window has room, the burst occupies
//! every resource on its way in the order of arrival, and its room in the window is free again when the round trip is
//! over and the data is written. Where both apply, they agree; the tests say how closely.

use crate::edma::{self, Flow, Mode, Transfer, TransferError};
use crate::soc::Soc;
use crate::units::{Bytes, BytesPerSecond, Nanoseconds};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fmt;

#[cfg(test)]
mod tests;

/// The most bursts of one run.
pub const MAX_BURSTS: u64 = 1_000_000;

/// What a run gives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Simulated {
    /// All bytes over the time until the last one is written.
    pub rate: BytesPerSecond,
    /// That time.
    pub time: Nanoseconds,
    /// How many bursts were followed.
    pub bursts: u64,
}

/// Why transfers are not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineError {
    /// They cannot be worked out at all.
    Transfer(TransferError),
    /// They have more bursts than [`MAX_BURSTS`].
    TooLong(u64),
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transfer(error) => error.fmt(f),
            Self::TooLong(bursts) => write!(f, "{bursts} bursts; expected at most {MAX_BURSTS}"),
        }
    }
}

impl std::error::Error for EngineError {}

/// One controller at work.
struct Controller<'a> {
    flows: &'a [Flow],
    /// Which flow is being sent, and how many of its bytes are left to send.
    at: usize,
    left: f64,
    /// When its bus takes the next burst, in ns.
    bus: f64,
    /// Bursts under way: when each is over, and its bytes.
    window: VecDeque<(f64, f64)>,
    under_way: f64,
}

/// A moment in picoseconds; whole numbers, so that the order of events is the same everywhere.
fn moment(time_ns: f64) -> u64 {
    (time_ns * 1e3).round() as u64
}

/// Follows transfers that start together; those of one controller follow each other.
///
/// # Errors
/// When a transfer has no shape or no way, or there are too many bursts.
pub fn simulate(soc: &Soc, transfers: &[Transfer]) -> Result<Simulated, EngineError> {
    let (queues, resources) =
        edma::queues(soc, transfers, Mode::Achievable).map_err(EngineError::Transfer)?;
    let bursts: f64 = queues.iter().flatten().map(|flow| flow.bytes.over(flow.burst).value().ceil()).sum();
    if bursts > MAX_BURSTS as f64 {
        return Err(EngineError::TooLong(bursts as u64));
    }
    let mut free = vec![0.0f64; resources.len()];
    let mut controllers: Vec<Controller> = queues
        .iter()
        .map(|flows| Controller {
            flows,
            at: 0,
            left: flows.first().map_or(0.0, |flow| flow.bytes.value()),
            bus: 0.0,
            window: VecDeque::new(),
            under_way: 0.0,
        })
        .collect();
    let mut events: BinaryHeap<Reverse<(u64, usize)>> =
        (0..controllers.len()).map(|index| Reverse((0, index))).collect();
    let (mut end, mut sent) = (0.0f64, 0u64);
    // Each event sends a burst, or waits for the window to move, which it does once per burst.
    while let Some(Reverse((now, index))) = events.pop() {
        let Some(controller) = controllers.get_mut(index) else { continue };
        let Some(next) = controller.step(now as f64 / 1e3, &mut free, &mut end, &mut sent) else { continue };
        events.push(Reverse((moment(next).max(now), index)));
    }
    let bytes: Bytes = transfers.iter().map(|transfer| transfer.shape.bytes()).sum();
    let time = Nanoseconds::new(end);
    Ok(Simulated { rate: bytes / time, time, bursts: sent })
}

impl Controller<'_> {
    /// Sends a burst at `now` if the window has room; the time of the next try, or `None` when all is sent.
    fn step(&mut self, now: f64, free: &mut [f64], end: &mut f64, sent: &mut u64) -> Option<f64> {
        while self.left <= 0.0 {
            self.at += 1;
            self.left = self.flows.get(self.at)?.bytes.value();
        }
        let flow = self.flows.get(self.at)?;
        while let Some((over, bytes)) = self.window.front().copied() {
            // A picosecond of tolerance, as the events are rounded to it.
            if over > now + 1e-3 {
                break;
            }
            self.under_way -= bytes;
            self.window.pop_front();
        }
        let burst = flow.burst.value().min(self.left);
        if self.under_way + burst > flow.outstanding.value()
            && let Some((over, _)) = self.window.front()
        {
            return Some(over + 1e-3);
        }
        let (mut start, mut done) = (now, now);
        for (place, (resource, cost)) in flow.costs.iter().enumerate() {
            let Some(free) = free.get_mut(*resource) else { continue };
            start = start.max(*free);
            *free = start + cost * burst;
            done = done.max(*free);
            if place == 0 {
                self.bus = *free;
            }
        }
        let round = if flow.cap.is_finite() { flow.outstanding.value() / flow.cap } else { 0.0 };
        // Answers come in the order of the questions.
        let over = self.window.back().map_or(0.0, |(over, _)| *over).max(done).max(now + round);
        self.window.push_back((over, burst));
        self.under_way += burst;
        self.left -= burst;
        *end = end.max(over);
        *sent += 1;
        Some(self.bus.max(now))
    }
}
