//! How long packets take to pass the narrowest link on the way, by how they follow each other.

use super::histogram::Histogram;

/// Bytes to which times are scaled.
const SCALE: u64 = 1_024;
/// Of the times between packets, the tenth part that is shortest is that of packets which left together: a window's bytes come in
/// bursts. The shortest of all may be the work of whoever captured.
const TOGETHER: f64 = 0.1;
/// Bytes of a frame that are no payload. A packet without any takes their time as well, and by such the least turn is known.
const AROUND: u64 = 78;
/// Times are kept with an error of so small a part.
const ERROR: u64 = 16;
/// After so many packets, the time is looked up anew.
const EVERY: u64 = 64;

/// The narrowest link's time.
#[derive(Clone, Default, Debug)]
pub struct Passing {
    gaps: Histogram,
    scaled_ns: u64,
}

impl Passing {
    /// A packet of so many bytes came so long after the one before, on a path with this least round trip. Packets that are further
    /// apart did not leave together.
    pub fn took(&mut self, gap_ns: u64, len: u64, rtt_ns: u64) {
        if len == 0 || gap_ns > rtt_ns / 2 {
            return;
        }
        let scaled_ns = u128::from(gap_ns) * u128::from(SCALE) / u128::from(len + AROUND);
        self.gaps.record(u64::try_from(scaled_ns).unwrap_or(u64::MAX));
        let count = self.gaps.count();
        if count.is_power_of_two() || count.is_multiple_of(EVERY) {
            self.scaled_ns = self.gaps.quantile(TOGETHER).unwrap_or(0);
        }
    }

    /// The time that so many bytes take at least, in nanoseconds.
    pub fn of(&self, len: u64) -> u64 {
        let time_ns = u128::from(self.scaled_ns) * u128::from(len) / u128::from(SCALE);
        u64::try_from(time_ns - time_ns / u128::from(ERROR)).unwrap_or(u64::MAX)
    }
}
