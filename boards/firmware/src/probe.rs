//! The place between stack and driver where instruments look on: how long the driver takes, and what passes.

mod leaving;

use crate::capture::{Capture, WHOLE};
use crate::counting::Counting;
use crate::exchange::Watched;
use crate::held::Held;
use crate::trace::{Event, Tracer, What};
use core::iter::once;
use leaving::Leaving;
use linerate_nic::{Device, DeviceError, PacingConfig, QueuePair, RxBatch, Slice, TxQueue, pass_on};
use linerate_wire::pcapng::Seen;
use linerate_wire::units::Instant;

/// Calls of the driver in one direction, and how long they took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Calls {
    /// Calls.
    pub(crate) count: u64,
    /// Time in them, in ns; interrupts that came meanwhile are in it.
    pub(crate) ns: u64,
}

/// A driver that instruments look at. While all are off, a call costs one comparison more.
pub(crate) struct Probe<D> {
    device: D,
    pacing: PacingConfig,
    /// Whether one of the instruments is on.
    is_watched: bool,
    tracer: &'static dyn Tracer,
    capture: Held<Capture>,
    leaving: Leaving,
    /// Whether calls are timed.
    profiles: bool,
    received: Calls,
    sent: Calls,
}

impl<D> Probe<D> {
    /// The driver, with this pacing, and all instruments off.
    pub(crate) fn new(
        device: D,
        pacing: PacingConfig,
        tracer: &'static dyn Tracer,
        capture: Held<Capture>,
    ) -> Self {
        Probe {
            device,
            pacing,
            is_watched: false,
            tracer,
            capture,
            leaving: Leaving::default(),
            profiles: false,
            received: Calls::default(),
            sent: Calls::default(),
        }
    }

    /// The pacing of its interrupts.
    pub(crate) fn pacing(&self) -> PacingConfig {
        self.pacing
    }

    /// The trace.
    pub(crate) fn tracer(&self) -> &'static dyn Tracer {
        self.tracer
    }

    /// Calls that received, and those that sent, while they were timed.
    pub(crate) fn calls(&self) -> (Calls, Calls) {
        (self.received, self.sent)
    }

    /// Whether calls are timed.
    pub(crate) fn profiles(&self) -> bool {
        self.profiles
    }

    /// Times calls from now on, from zero; or no more.
    pub(crate) fn profile(&mut self, is_on: bool) {
        if is_on {
            (self.received, self.sent) = (Calls::default(), Calls::default());
        }
        self.profiles = is_on;
        self.look_again();
    }

    /// Switches the trace.
    pub(crate) fn trace(&mut self, is_on: bool) {
        self.tracer.switch(is_on);
        self.look_again();
    }

    /// Keeps frames from now on, of each so many bytes or all.
    pub(crate) fn start_capture(&mut self, snap_len: Option<usize>) {
        self.capture.with(|capture| capture.start(snap_len.unwrap_or(WHOLE)));
        self.look_again();
    }

    /// Keeps no more.
    pub(crate) fn stop_capture(&mut self) {
        self.capture.with(Capture::stop);
        self.look_again();
    }

    /// Looks at the capture.
    pub(crate) fn with_capture<R>(&self, look: impl FnOnce(&Capture) -> R) -> R {
        self.capture.with(|capture| look(capture))
    }

    /// Trace and capture may be switched off elsewhere: whoever fetches them does.
    fn look_again(&mut self) {
        let captures = self.capture.with(|capture| capture.is_on());
        if !captures {
            // With its memory.
            self.leaving = Leaving::default();
        }
        self.is_watched = self.profiles || self.tracer.is_on() || captures;
    }

    /// Notes a call that began at `from` and moved so many frames, which the capture has at `at`: so the trace has them there, too.
    fn note(&mut self, at: Instant, from: Instant, seen: Seen, frames: usize) {
        let to = self.tracer.now();
        if self.profiles {
            let calls = if seen == Seen::Inbound { &mut self.received } else { &mut self.sent };
            calls.count += 1;
            calls.ns += to.as_nanos() - from.as_nanos();
        }
        if frames > 0 && self.tracer.is_on() {
            let frames = u16::try_from(frames).unwrap_or(u16::MAX);
            let what = if seen == Seen::Inbound { What::Received(frames) } else { What::Sent(frames) };
            self.tracer.with(&mut |ring| ring.push(Event::new(what, at, to)));
        }
        self.look_again();
    }
}

impl<D: QueuePair> Probe<D> {
    #[cold]
    fn watch_receive(&mut self, now: Instant, batch: &mut RxBatch) -> Result<usize, DeviceError> {
        let (from, before) = (self.tracer.now(), batch.len());
        let result = self.device.receive(now, batch);
        let frames = batch.len().saturating_sub(before);
        self.note(from, from, Seen::Inbound, frames);
        self.capture.with(|capture| {
            if capture.is_on() {
                for frame in batch.iter_mut().skip(before) {
                    let more = frame.more.iter().map(Slice::bytes);
                    capture.keep(from, Seen::Inbound, once(frame.data.bytes()).chain(more));
                }
            }
        });
        result
    }

    #[cold]
    fn watch_transmit(&mut self, now: Instant, queue: &mut TxQueue) -> Result<usize, DeviceError> {
        let waiting = queue.len();
        let at = self.tracer.now();
        // Packets that leave are gone afterwards, and those that stay are not to take the place of frames that passed.
        if self.capture.with(|capture| capture.is_on()) {
            self.leaving.gather(queue);
        }
        let from = self.tracer.now();
        let result = self.device.transmit(now, queue);
        let left = waiting.saturating_sub(queue.len());
        self.note(at, from, Seen::Outbound, left);
        self.capture.with(|capture| {
            if capture.is_on() {
                self.leaving.keep(capture, at, left);
            }
        });
        self.leaving.clear();
        result
    }
}

impl<D: QueuePair> QueuePair for Probe<D> {
    pass_on!(device: enabled, poll_completion, arm, most_counted, poll_timeout);

    fn set_pacing(&mut self, pacing: PacingConfig) -> Result<(), DeviceError> {
        self.device.set_pacing(pacing).inspect(|()| self.pacing = pacing)
    }

    #[inline]
    fn receive(&mut self, now: Instant, batch: &mut RxBatch) -> Result<usize, DeviceError> {
        if self.is_watched {
            return self.watch_receive(now, batch);
        }
        self.device.receive(now, batch)
    }

    #[inline]
    fn transmit(&mut self, now: Instant, queue: &mut TxQueue) -> Result<usize, DeviceError> {
        if self.is_watched {
            return self.watch_transmit(now, queue);
        }
        self.device.transmit(now, queue)
    }
}

impl<D: Device> Device for Probe<D> {
    pass_on!(device: all of Device);
}

impl<D> Watched for Probe<D> {
    fn is_watched(&self) -> bool {
        self.is_watched
    }
}

impl<D: Counting> Counting for Probe<D> {
    fn count(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.device.count(visit);
    }
}

#[cfg(test)]
mod tests;
