//! The contracts of this crate: the device and its only queue; link and reset.

use crate::device::{Capabilities, Device, DeviceError, LinkState};
use crate::frame::RxBatch;
use crate::meta::{MacAddr, TxToken};
use crate::queue::QueuePair;
use crate::tx::TxQueue;
use crate::virtio::receive::Broken;
use crate::virtio::{Stats, Transport, Virtio, open, regs};
use core::fmt;
use linerate_wire::units::Instant;

/// The number in [`DeviceError::Io`] when the device does not come out of its reset.
const ERROR_RESET: i32 = 1;

impl<P: Transport> Device for Virtio<P> {
    fn mac(&self) -> MacAddr {
        self.mac
    }

    fn mtu(&self) -> usize {
        self.mtu
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// What was agreed on with the device holds until a reset: of it, coalesced frames keep coming, and so cannot be
    /// switched off ([`Settings::offloads`](crate::virtio::Settings) does, before).
    fn enable(&mut self, wanted: Capabilities) -> Result<(), DeviceError> {
        let keeps_coalescing = !self.capabilities.rx_coalescing || wanted.rx_coalescing;
        if wanted.and(self.capabilities) != wanted || !keeps_coalescing {
            return Err(DeviceError::Unsupported);
        }
        self.enabled = wanted;
        Ok(())
    }

    fn link(&self) -> LinkState {
        self.link
    }
}

impl<P: Transport> QueuePair for Virtio<P> {
    fn enabled(&self) -> Capabilities {
        self.enabled
    }

    fn receive(&mut self, _now: Instant, batch: &mut RxBatch) -> Result<usize, DeviceError> {
        self.alive()?;
        // Who is awake needs no interrupts: they are let through until this says otherwise, where the device knows no events.
        self.receiver.ring.silence();
        self.transmitter.ring.silence();
        if self.board.load(self.rings.note) != 0 {
            self.look()?;
        }
        match self.receiver.receive(batch, self.enabled.rx_checksum, &mut self.stats) {
            Ok(count) => Ok(count),
            Err(Broken) => self.restart().map(|()| 0),
        }
    }

    fn transmit(&mut self, _now: Instant, queue: &mut TxQueue) -> Result<usize, DeviceError> {
        self.alive()?;
        match self.transmitter.transmit(queue, self.enabled, &mut self.stats) {
            Ok(count) => Ok(count),
            Err(Broken) => self.restart().map(|()| 0),
        }
    }

    fn poll_completion(&mut self) -> Option<TxToken> {
        if self.is_lost {
            return None;
        }
        match self.transmitter.poll_completion() {
            Ok(token) => token,
            // What it says then is found in the next turn.
            Err(Broken) => {
                self.restart().ok().and_then(|()| self.transmitter.poll_completion().ok().flatten())
            }
        }
    }

    /// Completions interrupt when all packets have left, not one by one.
    fn arm(&mut self, _now: Instant) -> bool {
        self.arm_at(1)
    }

    fn waiting(&mut self) -> u32 {
        self.receiver.ring.waiting().into()
    }

    /// Counts buffers, of which a coalesced frame takes several.
    fn arm_for(&mut self, _now: Instant, frames: u32) -> Option<bool> {
        Some(self.arm_at(frames.clamp(1, self.receiver.most_waiting().into()) as u16))
    }

    fn most_counted(&self) -> Option<u32> {
        Some(self.receiver.most_waiting().into())
    }
}

impl<P: Transport> Virtio<P> {
    /// Asks for an interrupt after so many buffers, and looks; true if there is something to do.
    fn arm_at(&mut self, buffers: u16) -> bool {
        if self.is_lost {
            return true;
        }
        self.stats.arms += 1;
        self.receiver.refill(&mut self.stats);
        self.receiver.ring.interrupt_after(buffers);
        let sent = self.transmitter.arm();
        let sent = sent.unwrap_or_else(|Broken| {
            // Failing to begin anew is told by the next turn.
            let _comes_back = self.restart().is_ok();
            true
        });
        sent || self.receiver.ring.waiting() >= buffers || self.board.load(self.rings.note) != 0
    }

    fn alive(&self) -> Result<(), DeviceError> {
        if self.is_lost { Err(DeviceError::Io(ERROR_RESET)) } else { Ok(()) }
    }

    /// Finds out what the device's change of configuration was.
    fn look(&mut self) -> Result<(), DeviceError> {
        // Before the look: what changes after it is noted anew.
        self.board.store(self.rings.note, 0);
        if self.board.read(regs::STATUS) & regs::NEEDS_RESET != 0 {
            return self.restart();
        }
        self.read_link();
        Ok(())
    }

    pub(super) fn read_link(&mut self) {
        let has_status = self.features & regs::F_STATUS != 0;
        let is_up = !has_status || self.board.read16(regs::CONFIG_STATUS) & regs::LINK_UP != 0;
        let link = if is_up { LinkState::UP } else { LinkState::DOWN };
        self.stats.link_changes += u64::from(link != self.link);
        self.link = link;
    }

    /// Begins anew with the same buffers. Packets that the device had are reported and not sent again, frames in its ring
    /// are lost.
    fn restart(&mut self) -> Result<(), DeviceError> {
        self.stats.resets += 1;
        if !open::reset(&self.board) {
            self.is_lost = true;
            return self.alive();
        }
        self.receiver.reclaim();
        self.transmitter.reclaim();
        self.is_lost = self.start().is_err();
        self.alive()
    }

    /// Agrees with the device and starts both rings.
    pub(super) fn start(&mut self) -> Result<(), open::OpenError> {
        open::agree(&self.board, self.features)?;
        let has_events = self.features & regs::F_EVENT_IDX != 0;
        for (name, started) in [
            ("receive", self.receiver.ring.start(has_events)),
            ("transmit", self.transmitter.ring.start(has_events)),
        ] {
            if !started {
                return Err(open::OpenError::Ring(name));
            }
        }
        let ready = regs::ACKNOWLEDGE | regs::DRIVER | regs::FEATURES_OK | regs::DRIVER_OK;
        self.board.write(regs::STATUS, ready);
        self.receiver.refill(&mut self.stats);
        self.read_link();
        Ok(())
    }
}

impl<P: Transport> Drop for Virtio<P> {
    fn drop(&mut self) {
        if self.is_lost || !open::reset(&self.board) {
            // Better lost than written to by the device while somebody else has them.
            self.receiver.abandon();
            self.transmitter.abandon();
        }
    }
}

impl<P: Transport> fmt::Debug for Virtio<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stats: &Stats = &self.stats;
        f.debug_struct("Virtio").field("mac", &self.mac).field("stats", stats).finish_non_exhaustive()
    }
}
