//! Where the processor's instructions and clocks go: a count for each address.

/// Clocks without an instruction after which one has waited for a line: its eight words take a clock each, where they were read ahead.
const WAITED: u64 = 8;

/// What was counted at one address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Times that the instruction was executed.
    pub instructions: u64,
    /// Clocks from the end of the instruction before it to its own.
    pub clocks: u64,
    /// Lines that the instruction cache filled for it.
    pub instruction_fills: u64,
    /// Lines that the data cache filled for it.
    pub data_fills: u64,
}

/// Bytes of a piece of code that the way is told by.
const PIECE: u32 = 8;

/// Counts of every instruction that ends, and the way that execution took.
#[derive(Clone, Debug)]
pub struct Profile {
    /// By half the address: instructions lie at even ones.
    at: Vec<Counted>,
    /// Instructions and lines filled, as the board counted them a clock ago.
    counters: [u64; 3],
    /// What has passed since the last instruction ended, or since one has waited.
    pending: Counted,
    /// The pieces of code that execution came into, in order: where each begins.
    way: Vec<u32>,
}

impl Profile {
    /// Nothing counted yet; the board's counters are at these now.
    pub(super) fn new(counters: [u64; 3]) -> Profile {
        Profile { at: Vec::new(), counters, pending: Counted::default(), way: Vec::new() }
    }

    /// A clock has passed: which instruction was at the pipeline's end in it, and the counters after it.
    pub(super) fn clock(&mut self, pc: u32, counters: [u64; 3]) {
        // They have 32 bits.
        let [executed, fetched, loaded]: [u64; 3] =
            std::array::from_fn(|at| u64::from((counters[at] as u32).wrapping_sub(self.counters[at] as u32)));
        self.counters = counters;
        let pending = &mut self.pending;
        pending.clocks += 1;
        pending.instruction_fills += fetched;
        pending.data_fills += loaded;
        if executed == 0 {
            return;
        }
        let index = pc as usize / 2;
        if self.at.len() <= index {
            self.at.resize(index + 1, Counted::default());
        }
        let piece = pc & !(PIECE - 1);
        if self.way.last() != Some(&piece) {
            self.way.push(piece);
        }
        let counted = &mut self.at[index];
        counted.instructions += executed;
        let clocks = std::mem::take(&mut pending.clocks);
        counted.clocks += clocks;
        // A line is asked for while the instructions before it are still under way: the one that waited needed it.
        if clocks >= WAITED {
            counted.instruction_fills += std::mem::take(&mut pending.instruction_fills);
            counted.data_fills += std::mem::take(&mut pending.data_fills);
        }
    }

    /// Where each piece of eight bytes begins that execution came into, in order; none twice in a row.
    pub fn way(&self) -> &[u32] {
        &self.way
    }

    /// What was counted, by address.
    pub fn counted(&self) -> impl Iterator<Item = (u32, Counted)> {
        let executed = self.at.iter().enumerate().filter(|(_, counted)| counted.instructions > 0);
        executed.map(|(index, counted)| (2 * index as u32, *counted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_and_lines_go_to_the_instruction_that_waited() {
        let most = u64::from(u32::MAX);
        let mut profile = Profile::new([most, 7, 7]);
        // An instruction in a clock, over the end of the counter; a line is asked for meanwhile, which the next one waits for.
        profile.clock(0x100, [0, 7, 7]);
        profile.clock(0x102, [1, 8, 7]);
        for _ in 0..WAITED {
            profile.clock(0x104, [1, 8, 8]);
        }
        profile.clock(0x104, [2, 8, 8]);
        let counted: Vec<_> = profile.counted().collect();
        let one = Counted { instructions: 1, clocks: 1, ..Counted::default() };
        let waited = Counted { instructions: 1, clocks: WAITED + 1, instruction_fills: 1, data_fills: 1 };
        assert_eq!(counted, [(0x100, one), (0x102, one), (0x104, waited)]);
        // Another piece, and back.
        profile.clock(0x108, [3, 8, 8]);
        profile.clock(0x106, [4, 8, 8]);
        assert_eq!(profile.way(), [0x100, 0x108, 0x100]);
    }
}
