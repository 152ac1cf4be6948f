//! The two directions of the model: what it makes of descriptors.

use super::wire::{fill_in, filter, screen, verify};
use super::{Hardware, Kind, Lie};

impl Hardware {
    fn size(&self) -> u64 {
        if self.is_wide { 16 } else { 8 }
    }

    /// The address in a descriptor, with the flags in its lowest bits.
    fn pointer(&self, at: u64) -> u64 {
        let high = if self.is_wide { u64::from(self.load(at + 8)) } else { 0 };
        u64::from(self.load(at)) | high << 32
    }

    /// Sends packets of the queue with the highest priority first.
    pub(super) fn send(&mut self) {
        let wide = self.written.get(&0x010).copied().unwrap_or(0) >> 30 & 1;
        assert!(self.control & 1 << 3 == 0 || wide == u32::from(self.is_wide), "the width of addresses");
        while self.is_going && !self.is_stuck && !self.holds_back {
            let at = |queue: usize| self.queues[queue].transmit_at;
            let has = |queue: &usize| at(*queue) != 0 && self.load(at(*queue) + 4) >> 31 == 0;
            let Some(queue) = [1, 0].into_iter().find(has) else {
                self.is_going = false;
                self.transmit_status |= 1;
                return;
            };
            self.send_packet(queue);
        }
    }

    fn send_packet(&mut self, queue: usize) {
        let first = self.queues[queue].transmit_at;
        let base = self.queues[queue].transmit_base;
        if let Some((failing, fault)) = self.fault
            && failing == queue
        {
            self.fault = None;
            self.is_going = false;
            // It stops, and is at the beginning of the ring.
            self.queues[queue].transmit_at = base;
            self.memory.store(first + 4, self.load(first + 4) | 1 << 31 | 1 << 29);
            self.raise(queue, 1 << fault as u32);
            return;
        }
        let (mut at, mut bytes) = (first, Vec::new());
        loop {
            let control = self.load(at + 4);
            assert_eq!(control >> 31, 0, "a packet breaks off at {at:#x}");
            let len = (control & 0x3FFF) as usize;
            assert!(len > 0, "an empty piece");
            let address = self.address(self.pointer(at));
            bytes.extend(self.memory.device_read(address, len).expect("memory"));
            at = if control & 1 << 30 != 0 { base } else { at + self.size() };
            if control & 1 << 15 != 0 {
                break;
            }
            assert!(at != first, "a packet without an end");
        }
        if self.written.get(&0x010).copied().unwrap_or(0) & 1 << 11 != 0 {
            fill_in(&mut bytes);
        }
        // The first alone is marked.
        self.memory.store(first + 4, self.load(first + 4) | 1 << 31);
        self.queues[queue].transmit_at = at;
        self.transmit_status |= 1 << 5;
        self.raise(queue, 1 << 7);
        if self.is_up() {
            self.wire.push_back((queue, bytes));
        }
    }

    /// Takes in what has come from the wire.
    pub(super) fn receive(&mut self) {
        while let Some(mut frame) = self.incoming.pop_front() {
            frame.resize(frame.len().max(60), 0);
            let config = self.config();
            if !self.is_up() || !self.receives() && self.kind == Kind::Hardware || frame.len() > 1_532 {
                self.lost += 1;
                continue;
            }
            if !filter(&frame, config, &self.written) {
                continue;
            }
            let verified = if config & 1 << 24 != 0 { verify(&frame) } else { Some(0) };
            // A wrong checksum: the frame is dropped.
            let Some(verified) = verified else { continue };
            let queue = screen(&frame, &self.written);
            if !self.receives() || self.queues[queue].is_blocked {
                // An emulator keeps it until the receiver looks again.
                self.incoming.push_front(frame);
                return;
            }
            if self.is_taken(queue) {
                self.lost += 1;
                continue;
            }
            self.put(queue, &frame, verified);
            if self.kind == Kind::Emulator {
                self.queues[queue].is_blocked = self.is_taken(queue);
            }
        }
    }

    /// Whether the next descriptor is not the device's, which is told.
    fn is_taken(&mut self, queue: usize) -> bool {
        let is_taken = self.load(self.queues[queue].receive_at) & 1 != 0;
        if is_taken {
            self.receive_status |= 1;
            self.raise(queue, 1 << 2);
        }
        is_taken
    }

    fn put(&mut self, queue: usize, frame: &[u8], verified: u32) {
        assert!(self.config() & 1 << 17 != 0, "the FCS would be part of the frame");
        let dma = self.written[&0x010];
        let units = if queue == 0 { dma >> 16 & 0xFF } else { self.written[&0x4A0] & 0xFF };
        assert!(frame.len() <= 64 * units as usize, "a buffer of {units} units");
        let mut at = self.queues[queue].receive_at;
        let next = |this: &Self, at: u64| {
            let wraps = this.load(at) & 2 != 0;
            if wraps { this.queues[queue].receive_base } else { at + this.size() }
        };
        if self.lie == Some(Lie::Ahead) {
            at = next(self, at);
        }
        let address = self.address(self.pointer(at) & !3);
        assert!(self.memory.device_write(address, frame), "memory for frames");
        let status = match self.lie {
            Some(Lie::Empty) => 0xC000,
            Some(Lie::TooLong) => 0xC000 | 0x1FFF,
            Some(Lie::NoStart) => 0x8000 | frame.len() as u32,
            Some(Lie::NoEnd) => 0x4000 | frame.len() as u32,
            Some(Lie::NoStatus) => 0,
            _ => 0xC000 | frame.len() as u32 | verified << 22,
        };
        self.memory.store(at + 4, status);
        self.memory.store(at, self.load(at) | 1);
        self.queues[queue].receive_at = next(self, at);
        self.receive_status |= 2;
        self.raise(queue, 1 << 1);
    }
}
