//! What the driver asks of the board, on Linux: registers, descriptors, bus addresses, barriers.

use crate::sys::map::{Words, after_read, before_write};
use linerate_nic::Dma;
use linerate_nic::mcdma::Bus;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Registers by UIO, and memory of a DMA buffer that no cache stands before. Clones are the same.
#[derive(Clone, Debug)]
pub struct UioBoard {
    parts: Arc<Parts>,
}

#[derive(Debug)]
pub(super) struct Parts {
    pub registers: Words,
    pub descriptors: Words,
    /// Bus address of the first descriptor.
    pub descriptors_bus: u64,
    /// Addresses of the buffers, and the bus address of the first.
    pub buffers: Range<usize>,
    pub buffers_bus: u64,
}

impl UioBoard {
    pub(super) fn new(parts: Parts) -> Self {
        UioBoard { parts: Arc::new(parts) }
    }

    fn descriptor(&self, address: u64) -> usize {
        // An address that is too low wraps round to one that is too high, which `Words` refuses.
        address.wrapping_sub(self.parts.descriptors_bus) as usize
    }
}

impl Bus for UioBoard {
    fn read(&self, register: u32) -> u32 {
        self.parts.registers.read(register as usize)
    }

    fn write(&self, register: u32, value: u32) {
        self.parts.registers.write(register as usize, value);
    }

    fn load(&self, address: u64) -> u32 {
        self.parts.descriptors.read(self.descriptor(address))
    }

    fn store(&self, address: u64, value: u32) {
        self.parts.descriptors.write(self.descriptor(address), value);
    }

    fn pause(&self) {
        std::thread::sleep(Duration::from_micros(20));
    }
}

impl Dma for UioBoard {
    /// Only what lies in the DMA buffer: other memory has no bus address that a process knows.
    fn bus_address(&self, bytes: &[u8]) -> Option<u64> {
        let start = bytes.as_ptr() as usize;
        let Range { start: first, end } = self.parts.buffers;
        let is_inside = start >= first && start.checked_add(bytes.len())? <= end;
        is_inside.then(|| self.parts.buffers_bus + (start - first) as u64)
    }

    fn clean(&self, bytes: &[u8]) {
        std::hint::black_box(bytes);
        before_write();
    }

    fn invalidate(&self, bytes: &mut [u8]) {
        after_read();
        std::hint::black_box(bytes);
    }
}
