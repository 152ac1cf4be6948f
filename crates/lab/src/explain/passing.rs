//! How long packets take to pass the narrowest link on the way, by how they follow each other.

use super::histogram::Histogram;

/// Bytes to which times are scaled.
const SCALE: u64 = 1_024;
/// Of the times between packets, the tenth part that is shortest is that of packets which left together: a window's bytes come in
/// bursts. The shortest of all may be the work of whoever captured.
const TOGETHER: f64 = 0.1;
/// Where there are bursts, they come at twice the mean rate or more. Packets that all come at one rate tell nothing.
const BURSTS: u128 = 2;
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
    /// Time and bytes of all packets.
    all: (u64, u64),
    scaled_ns: u64,
}

impl Passing {
    /// A packet of so many bytes came so long after the one before, on a path with this least round trip. Packets that are further
    /// apart did not leave together.
    pub fn took(&mut self, gap_ns: u64, len: u64, rtt_ns: u64) {
        self.all = (self.all.0.saturating_add(gap_ns), self.all.1.saturating_add(len + AROUND));
        if len == 0 || gap_ns > rtt_ns / 2 {
            return;
        }
        let scaled_ns = u128::from(gap_ns) * u128::from(SCALE) / u128::from(len + AROUND);
        self.gaps.record(u64::try_from(scaled_ns).unwrap_or(u64::MAX));
        let count = self.gaps.count();
        if count.is_power_of_two() || count.is_multiple_of(EVERY) {
            let together_ns = self.gaps.quantile(TOGETHER).unwrap_or(0);
            let mean_ns = u128::from(self.all.0) * u128::from(SCALE) / u128::from(self.all.1.max(1));
            self.scaled_ns = if u128::from(together_ns) * BURSTS <= mean_ns { together_ns } else { 0 };
        }
    }

    /// The time that so many bytes take at least, in nanoseconds.
    pub fn of(&self, len: u64) -> u64 {
        let time_ns = u128::from(self.scaled_ns) * u128::from(len) / u128::from(SCALE);
        u64::try_from(time_ns - time_ns / u128::from(ERROR)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_that_left_together_tell() {
        let check = |gaps: &[(u64, u64)], len: u64, time_ns: u64| {
            let mut passing = Passing::default();
            for (gap_ns, of) in gaps.iter().cycle().take(256) {
                passing.took(*gap_ns, *of, 1_000_000);
            }
            let found_ns = passing.of(len);
            assert!(found_ns.abs_diff(time_ns) <= time_ns / 10, "{gaps:?}: {found_ns}");
        };
        // 100 Mbit/s: 80 ns a byte.
        check(&[(80 * 1_538, 1_460), (400_000, 1_460)], 1_460, 80 * 1_460);
        check(&[(80 * 1_538, 1_460), (900_000, 1_460)], 730, 80 * 730);
        // At one rate.
        check(&[(80 * 1_538, 1_460)], 1_460, 0);
        check(&[(80 * 178, 100), (400_000, 1_460), (80 * 1_538, 1_460)], 1_460, 80 * 1_460);
        // Each for itself.
        check(&[(600_000, 1_460), (2_000_000, 200)], 1_460, 0);
    }
}
