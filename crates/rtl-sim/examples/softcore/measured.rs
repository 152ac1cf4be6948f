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
    /// The units, and a line for each instruction: address, times, clocks, lines of code and of data that were filled for it, and
    /// how many instructions ended before it did for the first time.
    pub fn counts(&self) -> String {
        let mut text = format!("{}\n", self.units);
        for (address, counted) in self.profile.iter().flat_map(Profile::counted) {
            let fills = (counted.instruction_fills, counted.data_fills);
            let (times, clocks, first) = (counted.instructions, counted.clocks, counted.first);
            // Writing to a string does not fail.
            let _ = writeln!(text, "{address:x} {times} {clocks} {} {} {first}", fills.0, fills.1);
        }
        text
    }
}
