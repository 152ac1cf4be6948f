//! Memory as the device sees it: pages that come into being when they are touched.

use std::collections::HashMap;

const PAGE: u64 = 4096;

/// Memory by bus address.
#[derive(Debug, Default)]
pub struct SystemMemory {
    pages: HashMap<u64, Box<[u8; PAGE as usize]>>,
}

impl SystemMemory {
    fn page(&mut self, address: u64) -> (&mut [u8; PAGE as usize], usize) {
        let page = self.pages.entry(address / PAGE).or_insert_with(|| Box::new([0xa5; PAGE as usize]));
        (page, (address % PAGE) as usize)
    }

    /// Reads.
    pub fn load(&mut self, mut address: u64, mut to: &mut [u8]) {
        while !to.is_empty() {
            let (page, at) = self.page(address);
            let count = to.len().min(page.len() - at);
            let (now, later) = to.split_at_mut(count);
            now.copy_from_slice(&page[at..at + count]);
            address += count as u64;
            to = later;
        }
    }

    /// Writes.
    pub fn store(&mut self, mut address: u64, mut from: &[u8]) {
        while !from.is_empty() {
            let (page, at) = self.page(address);
            let count = from.len().min(page.len() - at);
            page[at..at + count].copy_from_slice(&from[..count]);
            address += count as u64;
            from = &from[count..];
        }
    }

    /// Writes those bytes of a beat whose bit is set. A beat lies in one page.
    pub fn store_some(&mut self, address: u64, from: &[u8], strobes: u64) {
        let (page, at) = self.page(address);
        let Some(beat) = page.get_mut(at..at + from.len()) else { return };
        for (index, (to, byte)) in beat.iter_mut().zip(from).enumerate() {
            if strobes >> index & 1 != 0 {
                *to = *byte;
            }
        }
    }
}
