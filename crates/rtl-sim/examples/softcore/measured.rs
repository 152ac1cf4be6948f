//! A figure, and what was counted while it was measured.

use linerate_rtl_sim::softcore::Profile;
use std::fmt::Write as _;

/// What a measurement found.
pub struct Measured {
    /// For people.
    pub figure: String,
    /// Requests, or segments of 1,460 bytes.
    pub units: f64,
    /// Each instruction that ended meanwhile.
    pub profile: Option<Profile>,
}

impl Measured {
    /// The units, and a line for each instruction: address, times, clocks, lines of code and of data that were filled for it.
    pub fn counts(&self) -> String {
        let mut text = format!("{}\n", self.units);
        for (address, counted) in self.profile.iter().flat_map(Profile::counted) {
            let fills = (counted.instruction_fills, counted.data_fills);
            let (times, clocks) = (counted.instructions, counted.clocks);
            // Writing to a string does not fail.
            let _ = writeln!(text, "{address:x} {times} {clocks} {} {}", fills.0, fills.1);
        }
        text
    }

    /// The way that execution took: where each piece of eight bytes begins that it came into, four bytes for each, the lowest first.
    pub fn way(&self) -> Vec<u8> {
        self.profile.iter().flat_map(|profile| profile.way().iter().flat_map(|at| at.to_le_bytes())).collect()
    }
}
