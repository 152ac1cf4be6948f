//! A measured time that knows which clock paces it, so that it can be carried to other rates.

use crate::units::{BitsPerSecond, ClockId, Hertz, Nanoseconds, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A time as measured at one line rate and one core clock, and which part of it each of the two paces.
///
/// The part paced by the line is counted in symbols: it shrinks when the line gets faster. The rest is counted in cycles of
/// a clock of the chip. Measurements at one line rate fix the sum and say nothing on the parts: the share is argued from the
/// protocol, and a prediction at another rate spans what is possible between `line_share_min` and `line_share_max`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClockedTime {
    /// How long it took when measured.
    pub time: Nanoseconds,
    /// The clock of the chip that paces the part that the line does not.
    pub clock: ClockId,
    /// What that clock ran at in the measurement.
    pub measured_at: Hertz,
    /// The part that the line paces, as the protocol suggests; none when left out.
    #[serde(default)]
    pub line_share: Ratio,
    /// The least of it that is possible; as `line_share` when left out.
    #[serde(default)]
    pub line_share_min: Option<Ratio>,
    /// The most of it that is possible; as `line_share` when left out.
    #[serde(default)]
    pub line_share_max: Option<Ratio>,
    /// What that clock runs at now; as in the measurement when nothing is said.
    #[serde(skip)]
    pub runs_at: Option<Hertz>,
}

/// Which share of a [`ClockedTime`] to take for line-paced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Structure {
    /// What the protocol suggests.
    Argued,
    /// As little as possible.
    LeastOnLine,
    /// As much as possible.
    MostOnLine,
}

/// The rates at which a link is asked about, against those at which it was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// The line rate asked for.
    pub line: BitsPerSecond,
    /// The line rate of the measurements.
    pub measured_line: BitsPerSecond,
    /// The core clock asked for; as in the measurement when `None`.
    pub core: Option<Hertz>,
}

impl ClockedTime {
    /// The time at other rates, by one structure.
    pub fn at(&self, rates: Rates, structure: Structure) -> Nanoseconds {
        let argued = self.line_share.value();
        let share = match structure {
            Structure::Argued => argued,
            Structure::LeastOnLine => self.line_share_min.map_or(argued, Ratio::value),
            Structure::MostOnLine => self.line_share_max.map_or(argued, Ratio::value),
        };
        let line = rates.measured_line.over(rates.line).value();
        let core = rates.core.or(self.runs_at).map_or(1.0, |clock| self.measured_at.over(clock).value());
        self.time * (share * line + (1.0 - share) * core)
    }

    /// What is wrong with it, and what was expected.
    pub(super) fn fault(&self) -> Option<&'static str> {
        let least = self.line_share_min.unwrap_or(self.line_share).value();
        let most = self.line_share_max.unwrap_or(self.line_share).value();
        let share = self.line_share.value();
        if self.measured_at.value() <= 0.0 {
            Some("measured_at above 0 Hz")
        } else if !(0.0..=1.0).contains(&least) || most > 1.0 || least > share || share > most {
            Some("0 % <= line_share_min <= line_share <= line_share_max <= 100 %")
        } else {
            None
        }
    }
}
