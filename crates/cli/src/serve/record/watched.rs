//! A device that a recorder looks at. While nobody looks, a call costs one comparison more.

use super::{Recorder, Step};
use crate::serve::own::{HostDevice, pass_on_host};
use linerate_linux::clock::MonotonicClock;
use linerate_linux::netconfig::LinkWatch;
use linerate_nic::{Chunk, Device, DeviceError, QueuePair, RxBatch, Slice, TxQueue, pass_on};
use linerate_wire::pcapng::Seen;
use linerate_wire::units::Instant;
use std::iter::once;
use std::os::fd::{AsFd, BorrowedFd};

/// See the module.
pub struct Watched<D> {
    device: D,
    recorder: Option<Recorder>,
}

impl<D> Watched<D> {
    /// The device, and nobody looks.
    pub fn new(device: D) -> Self {
        Watched { device, recorder: None }
    }
}

impl<D: QueuePair> Watched<D> {
    #[cold]
    fn watch_receive(
        device: &mut D,
        recorder: &Recorder,
        now: Instant,
        batch: &mut RxBatch,
    ) -> Result<usize, DeviceError> {
        let clock = MonotonicClock::new();
        let (from, before) = (clock.now(), batch.len());
        let result = device.receive(now, batch);
        let frames = batch.len().saturating_sub(before);
        if frames > 0 {
            recorder.span(Step::Receive(frames as u32), from, clock.now());
        }
        if recorder.captures {
            for frame in batch.iter_mut().skip(before) {
                let more = frame.more.iter().map(Slice::bytes);
                recorder.frame(from, Seen::Inbound, once(frame.data.bytes()).chain(more));
            }
        }
        result
    }

    #[cold]
    fn watch_transmit(
        device: &mut D,
        recorder: &Recorder,
        now: Instant,
        queue: &mut TxQueue,
    ) -> Result<usize, DeviceError> {
        let waiting = queue.len();
        if waiting == 0 {
            return device.transmit(now, queue);
        }
        let clock = MonotonicClock::new();
        let from = clock.now();
        // Packets that leave are gone afterwards.
        if recorder.captures {
            for packet in queue.iter() {
                let chunks = packet.chunks().iter().map(Chunk::bytes);
                recorder.frame(from, Seen::Outbound, once(packet.header()).chain(chunks));
            }
        }
        let result = device.transmit(now, queue);
        let sent = waiting.saturating_sub(queue.len());
        if sent > 0 {
            recorder.span(Step::Send(sent as u32), from, clock.now());
        }
        if recorder.captures {
            recorder.take_back(queue.len());
        }
        result
    }
}

impl<D: QueuePair> QueuePair for Watched<D> {
    pass_on!(device: enabled, poll_completion, arm, poll_timeout, set_pacing);

    #[inline]
    fn receive(&mut self, now: Instant, batch: &mut RxBatch) -> Result<usize, DeviceError> {
        match &self.recorder {
            None => self.device.receive(now, batch),
            Some(recorder) => Self::watch_receive(&mut self.device, recorder, now, batch),
        }
    }

    #[inline]
    fn transmit(&mut self, now: Instant, queue: &mut TxQueue) -> Result<usize, DeviceError> {
        match &self.recorder {
            None => self.device.transmit(now, queue),
            Some(recorder) => Self::watch_transmit(&mut self.device, recorder, now, queue),
        }
    }
}

impl<D: Device> Device for Watched<D> {
    pass_on!(device: all of Device);
}

impl<D: AsFd> AsFd for Watched<D> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

impl<D: HostDevice> HostDevice for Watched<D> {
    pass_on_host!(device);

    fn link_watch(&self) -> Option<&LinkWatch> {
        self.device.link_watch()
    }

    fn watch(&mut self, recorder: Recorder) {
        recorder.set_mac(self.device.mac().0);
        self.recorder = Some(recorder);
    }
}
