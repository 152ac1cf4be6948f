//! The clock that a MAC drives an RGMII with, where the board divides it from a faster one.

use linerate_wire::units::Rate;

/// What that clock is at a speed of the link (Reduced Gigabit Media Independent Interface 2.0).
pub fn clock_hz(speed: Rate) -> u64 {
    match speed.as_bps() {
        1_000_000_000.. => 125_000_000,
        100_000_000.. => 25_000_000,
        _ => 2_500_000,
    }
}

/// Two dividers, one behind the other and each of `most` at most, that make this clock of one of `from_hz`; `None` where they miss it by
/// more than a hundredth.
pub fn dividers(from_hz: u64, speed: Rate, most: u64) -> Option<(u32, u32)> {
    let to_hz = clock_hz(speed);
    let both = (from_hz + to_hz / 2) / to_hz;
    let is_near = both > 0 && (both * to_hz).abs_diff(from_hz) * 100 <= from_hz;
    let second =
        (1..=most).find(|second| is_near && both.is_multiple_of(*second) && both / second <= most)?;
    Some(((both / second) as u32, second as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dividers_make_the_clock_of_the_speed() {
        let check = |from_hz, megabits: u64| dividers(from_hz, Rate::from_bps(megabits * 1_000_000), 63);
        // As makers of boards set the PLL of a Zynq UltraScale+: of 33.33 MHz, not of 33 1/3.
        for (from_hz, expected) in [
            (1_499_850_000, [Some((12, 1)), Some((60, 1)), Some((60, 10))]),
            (1_500_000_000, [Some((12, 1)), Some((60, 1)), Some((60, 10))]),
            (1_000_000_000, [Some((8, 1)), Some((40, 1)), Some((50, 8))]),
            (125_000_000, [Some((1, 1)), Some((5, 1)), Some((50, 1))]),
            // No whole number makes it 125 MHz.
            (300_000_000, [None, Some((12, 1)), Some((60, 2))]),
            (0, [None; 3]),
            (u64::from(u32::MAX) * 100, [None; 3]),
        ] {
            assert_eq!([1_000, 100, 10].map(|speed| check(from_hz, speed)), expected, "{from_hz}");
        }
    }
}
