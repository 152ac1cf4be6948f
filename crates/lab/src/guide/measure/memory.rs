//! The memory that is measured: one block that starts at a page, written once so that the system has given it.

/// The smallest page of the machines that this runs on, in bytes.
pub const PAGE: usize = 4096;

/// A block of words whose first word begins a page.
#[derive(Debug)]
pub struct Block {
    words: Vec<u64>,
    start: usize,
    length: usize,
}

impl Block {
    /// At least `bytes` bytes; all pages are there when it returns.
    pub fn new(bytes: usize) -> Block {
        let length = bytes.div_ceil(8);
        // Not zero, or pages would be one shared page of zeros until they are written.
        let words = vec![1u64; length + PAGE / 8];
        // Safe code may look at an address; nothing but speed depends on it.
        let start = words.as_ptr().align_offset(PAGE).min(PAGE / 8);
        Block { words, start, length }
    }

    /// All words.
    pub fn words(&self) -> &[u64] {
        &self.words[self.start..self.start + self.length]
    }

    /// All bytes.
    pub fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self.words())
    }

    /// All bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(self.words_mut())
    }

    /// All words, to be written.
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words[self.start..self.start + self.length]
    }
}

/// Numbers that look like chance and are the same in every run (Steele, Lea and Flood, SplitMix).
#[derive(Debug, Clone)]
pub struct Chance(pub u64);

impl Chance {
    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// One below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        // The bias of a remainder of 64 bits does not matter for an order.
        (self.number() % bound.max(1) as u64) as usize
    }

    /// The numbers below `count` in a random order.
    pub fn order(&mut self, count: usize) -> Vec<u32> {
        let mut order: Vec<u32> = (0..u32::try_from(count).unwrap_or(u32::MAX)).collect();
        for at in (1..order.len()).rev() {
            let other = self.below(at + 1);
            order.swap(at, other);
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_begin_at_a_page() {
        for bytes in [1, 8, 4096, 100_001] {
            let block = Block::new(bytes);
            assert_eq!(block.words().as_ptr() as usize % PAGE, 0);
            assert_eq!(block.words().len(), bytes.div_ceil(8));
        }
    }

    #[test]
    fn an_order_has_each_once_and_is_the_same_again() {
        let order = Chance(7).order(1000);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..1000).collect::<Vec<u32>>());
        assert_ne!(order, sorted);
        assert_eq!(order, Chance(7).order(1000));
    }
}
