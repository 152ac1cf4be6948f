//! Recycled buffers for what is read from files.

use crate::aligned::Aligned;
use crate::mailbox::lock;
use linerate_transport::Bytes;
use std::sync::{Arc, Mutex};

/// Buffer sizes in bytes; a longer read takes a buffer of its own that is not recycled.
const CLASSES: [usize; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];

/// A bounded stock of buffers.
#[derive(Debug)]
pub(crate) struct PagePool {
    stock: Mutex<Stock>,
    max_bytes: usize,
}

#[derive(Debug, Default)]
struct Stock {
    free: [Vec<Aligned>; CLASSES.len()],
    bytes: usize,
}

/// A buffer that returns to its pool with the last handle on it.
#[derive(Debug)]
pub(crate) struct Page {
    bytes: Aligned,
    used: usize,
    pool: Arc<PagePool>,
}

impl PagePool {
    /// A pool that keeps at most `max_bytes` of unused buffers.
    pub(crate) fn new(max_bytes: usize) -> Arc<Self> {
        Arc::new(PagePool { stock: Mutex::default(), max_bytes })
    }

    /// A buffer of at least `len` bytes; its content is arbitrary.
    pub(crate) fn take(self: &Arc<Self>, len: usize) -> Page {
        let class = CLASSES.iter().position(|&size| size >= len);
        let recycled = class.and_then(|class| {
            let mut stock = lock(&self.stock);
            let bytes = stock.free[class].pop()?;
            stock.bytes -= bytes.len();
            Some(bytes)
        });
        let size = class.map_or(len, |class| CLASSES[class]);
        let bytes = recycled.unwrap_or_else(|| Aligned::new(size));
        Page { bytes, used: len, pool: Arc::clone(self) }
    }

    /// Unused bytes in stock.
    #[cfg(test)]
    pub(crate) fn stocked_bytes(&self) -> usize {
        lock(&self.stock).bytes
    }
}

impl Page {
    /// The bytes asked for.
    pub(crate) fn as_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.used]
    }

    /// The first `len` bytes as owned payload.
    pub(crate) fn into_shared(mut self, len: usize) -> Bytes {
        self.used = len.min(self.used);
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Page {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.used]
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let Some(class) = CLASSES.iter().position(|&size| size == self.bytes.len()) else { return };
        let mut stock = lock(&self.pool.stock);
        if stock.bytes + self.bytes.len() <= self.pool.max_bytes {
            stock.bytes += self.bytes.len();
            stock.free[class].push(std::mem::take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_return_with_the_last_handle_and_within_the_bound() {
        let pool = PagePool::new(100 << 10);
        let shared = pool.take(50_000).into_shared(40_000);
        let part = shared.slice(10..20);
        assert_eq!(shared.len(), 40_000);
        drop(shared);
        assert_eq!(pool.stocked_bytes(), 0);
        drop(part);
        assert_eq!(pool.stocked_bytes(), 64 << 10);
        let (a, b) = (pool.take(64 << 10), pool.take(64 << 10));
        assert_eq!(pool.stocked_bytes(), 0);
        drop((a, b));
        assert_eq!(pool.stocked_bytes(), 64 << 10, "the second one is over the bound");
        drop(pool.take(3 << 20));
        assert_eq!(pool.stocked_bytes(), 64 << 10);
    }
}
