//! The counts, indices and alignment of a transfer, and the bursts that they are cut into.

use crate::units::Bytes;
use std::fmt;

/// The largest count or index: the parameter set has 16 bits for each, and a linear transfer may be a chain of sets.
const MAX_COUNT: u64 = 1 << 40;

/// How much one event moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sync {
    /// One array of ACNT bytes.
    A,
    /// One frame of BCNT arrays.
    Ab,
}

/// A transfer in up to three dimensions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape {
    /// How much one event moves.
    pub sync: Sync,
    /// Bytes in an array.
    pub acnt: u64,
    /// Arrays in a frame.
    pub bcnt: u64,
    /// Frames in a block.
    pub ccnt: u64,
    /// From the start of an array to that of the next at the source, in bytes.
    pub source_index: u64,
    /// The same at the destination.
    pub destination_index: u64,
    /// Where the source starts beyond a multiple of the burst size, in bytes.
    pub source_offset: u64,
    /// The same for the destination.
    pub destination_offset: u64,
}

/// Why counts and indices are no transfer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShapeError {
    /// A count is zero or beyond what can be addressed.
    Count {
        /// Which.
        name: &'static str,
        /// Its value.
        value: u64,
    },
}

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Count { name, value } = self;
        write!(f, "{name} is {value}; expected a count that is not zero and fits the address space")
    }
}

impl Shape {
    /// Contiguous bytes, as one array.
    pub fn linear(bytes: Bytes) -> Self {
        Self::arrays(Sync::A, bytes.value() as u64, 1)
    }

    /// `bcnt` arrays of `acnt` bytes without gaps.
    pub fn arrays(sync: Sync, acnt: u64, bcnt: u64) -> Self {
        Self {
            sync,
            acnt,
            bcnt,
            ccnt: 1,
            source_index: acnt,
            destination_index: acnt,
            source_offset: 0,
            destination_offset: 0,
        }
    }

    /// Refuses counts of nothing.
    ///
    /// # Errors
    /// The first count that is zero or too large.
    pub fn check(&self) -> Result<(), ShapeError> {
        let counts = [("ACNT", self.acnt), ("BCNT", self.bcnt), ("CCNT", self.ccnt)];
        for (name, value) in counts {
            if value == 0 || value > MAX_COUNT {
                return Err(ShapeError::Count { name, value });
            }
        }
        let total = self.acnt.checked_mul(self.bcnt).and_then(|frame| frame.checked_mul(self.ccnt));
        match total {
            Some(total) if total <= MAX_COUNT => Ok(()),
            _ => Err(ShapeError::Count { name: "ACNT x BCNT x CCNT", value: u64::MAX }),
        }
    }

    /// All bytes of the transfer.
    pub fn bytes(&self) -> Bytes {
        Bytes::new(self.acnt as f64 * self.bcnt as f64 * self.ccnt as f64)
    }

    /// How many events, each with a transfer request of its own, the whole takes.
    pub fn requests(&self) -> f64 {
        match self.sync {
            Sync::A => self.bcnt as f64 * self.ccnt as f64,
            Sync::Ab => self.ccnt as f64,
        }
    }

    /// Whether the arrays of a request follow each other without a gap on both sides, so that the controller may merge them.
    pub fn is_contiguous(&self) -> bool {
        let merged = self.source_index == self.acnt && self.destination_index == self.acnt;
        self.bcnt == 1 || (self.sync == Sync::Ab && merged)
    }

    /// The mean size of the bursts on one side, when none is larger than `burst` or crosses a multiple of it.
    pub fn mean_burst(&self, burst: Bytes, destination: bool) -> Bytes {
        let burst = burst.value().max(1.0) as u64;
        let offset = if destination { self.destination_offset } else { self.source_offset } % burst;
        if self.is_contiguous() {
            let run = self.acnt * if self.bcnt == 1 { 1 } else { self.bcnt };
            return Bytes::new(run as f64 / (offset + run).div_ceil(burst) as f64);
        }
        let index = if destination { self.destination_index } else { self.source_index };
        Bytes::new(self.acnt as f64 / mean_lines(self.acnt, index, offset, burst))
    }

    /// How many lines of `line` bytes the transfer touches for each of its bytes, which is `1 / line` for aligned runs.
    pub fn lines_per_byte(&self, line: Bytes, destination: bool) -> f64 {
        let line = line.value().max(1.0) as u64;
        let offset = if destination { self.destination_offset } else { self.source_offset } % line;
        if self.is_contiguous() {
            let run = self.acnt * if self.bcnt == 1 { 1 } else { self.bcnt };
            return (offset + run).div_ceil(line) as f64 / run as f64;
        }
        let index = if destination { self.destination_index } else { self.source_index };
        mean_lines(self.acnt, index, offset, line) / self.acnt as f64
    }

    /// How many pages of `page` bytes are opened for each byte, when arrays that follow each other within one share it.
    pub fn pages_per_byte(&self, page: Bytes, destination: bool) -> f64 {
        let index = if destination { self.destination_index } else { self.source_index };
        if self.is_contiguous() {
            return 1.0 / page.value().max(1.0);
        }
        if index as f64 >= page.value() {
            return self.lines_per_byte(page, destination);
        }
        index.max(self.acnt) as f64 / page.value().max(1.0) / self.acnt as f64
    }

    /// How many of `banks` banks, each `line` bytes wide, the arrays reach on the whole.
    pub fn banks_hit(&self, line: Bytes, banks: u32, destination: bool) -> f64 {
        if self.is_contiguous() {
            return f64::from(banks);
        }
        let around = line.value().max(1.0) as u64 * u64::from(banks);
        let index = if destination { self.destination_index } else { self.source_index };
        let starts = around / gcd(index % around, around);
        (starts as f64 * mean_lines(self.acnt, index, 0, line.value().max(1.0) as u64)).min(f64::from(banks))
    }

    /// The part of the banks' width that is used: 1 for aligned runs, less when arrays begin or end inside a bank line.
    pub fn bank_use(&self, line: Bytes, destination: bool) -> f64 {
        let line = line.value().max(1.0) as u64;
        let offset = if destination { self.destination_offset } else { self.source_offset } % line;
        if self.is_contiguous() {
            return 1.0;
        }
        let index = if destination { self.destination_index } else { self.source_index };
        (self.acnt as f64 / (line as f64 * mean_lines(self.acnt, index, offset, line))).min(1.0)
    }
}

/// How many lines of `line` bytes an array of `length` touches on average, when arrays start every `index` bytes.
///
/// Their starts within a line repeat after `line / gcd(index, line)` arrays and are spread evenly, `gcd` bytes apart. All of
/// them touch as many lines as one that starts with the line does, those that start late enough one more.
fn mean_lines(length: u64, index: u64, offset: u64, line: u64) -> f64 {
    let step = gcd(index % line, line);
    let starts = line / step;
    // The last byte of an array lies so many bytes into its line where the array starts with one.
    let last = length.saturating_sub(1) % line;
    let early = (line - last).saturating_sub(offset % step).div_ceil(step).min(starts);
    (length.div_ceil(line) * starts + (starts - early)) as f64 / starts as f64
}

fn gcd(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lines_are_those_that_are_counted(length in 1..700u64, index in 1..700u64, offset in 0..300u64, line in 1..300u64) {
            let starts = line / gcd(index % line, line);
            let touched = |at: u64| ((offset + at * index) % line + length).div_ceil(line);
            let counted: u64 = (0..starts).map(touched).sum();
            prop_assert_eq!(mean_lines(length, index, offset % line, line), counted as f64 / starts as f64);
        }
    }
}
