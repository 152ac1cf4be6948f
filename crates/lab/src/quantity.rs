//! Figures as people read them: short, with a unit.

use std::time::Duration;

/// Four digits at most, no needless ones.
fn digits(value: f64) -> String {
    let decimals = if value >= 100.0 { 0 } else { 2 - value.abs().max(1.0).log10().floor() as usize };
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Bits per second.
pub fn rate(bps: f64) -> String {
    match bps {
        1e9.. => format!("{} Gbit/s", digits(bps / 1e9)),
        1e6.. => format!("{} Mbit/s", digits(bps / 1e6)),
        1e3.. => format!("{} kbit/s", digits(bps / 1e3)),
        _ => format!("{} bit/s", digits(bps)),
    }
}

/// Bits per second as bytes per second, which is how programs that copy files count.
pub fn byte_rate(bps: f64) -> String {
    match bps / 8.0 {
        rate @ 1e9.. => format!("{} GB/s", digits(rate / 1e9)),
        rate @ 1e6.. => format!("{} MB/s", digits(rate / 1e6)),
        rate @ 1e3.. => format!("{} kB/s", digits(rate / 1e3)),
        rate => format!("{} B/s", digits(rate)),
    }
}

/// A number of bytes.
pub fn bytes(bytes: u64) -> String {
    let value = bytes as f64;
    match bytes {
        0x4000_0000.. => format!("{} GiB", digits(value / 1_073_741_824.0)),
        0x10_0000.. => format!("{} MiB", digits(value / 1_048_576.0)),
        0x400.. => format!("{} KiB", digits(value / 1_024.0)),
        _ => format!("{bytes} B"),
    }
}

/// A time.
pub fn span(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        1.0.. => format!("{} s", digits(seconds)),
        1e-3.. => format!("{} ms", digits(seconds * 1e3)),
        _ => format!("{} us", digits(seconds * 1e6)),
    }
}

/// A time by the clock, in its two largest units, for what lasts: minutes or days.
pub fn age(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        86_400.. => format!("{} d {} h", seconds / 86_400, seconds / 3_600 % 24),
        3_600.. => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
        60.. => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{seconds} s"),
    }
}

/// How often something happens in a second.
pub fn per_second(number: f64) -> String {
    match number {
        ..100.0 => format!("{}/s", digits(number)),
        // A number that is not finite, or too large, becomes the nearest that is.
        _ => format!("{}/s", count(number.round_ties_even() as u64)),
    }
}

/// A share of a whole.
pub fn share(part: f64) -> String {
    format!("{} %", digits(part * 100.0))
}

/// A number with its thousands apart.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with three digits that count.
pub fn short(number: f64) -> String {
    const UNITS: [(f64, &str); 4] = [(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")];
    let size = number.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    let (unit, name) = UNITS.into_iter().find(|(unit, _)| size >= *unit).unwrap_or((1.0, ""));
    let scaled = number / unit;
    let digits = (2 - scaled.abs().log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{scaled:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        assert_eq!(rate(94_930_000.0), "94.9 Mbit/s");
        assert_eq!(rate(1e9), "1 Gbit/s");
        assert_eq!(byte_rate(94_930_000.0), "11.9 MB/s");
        assert_eq!(byte_rate(1e10), "1.25 GB/s");
        assert_eq!(byte_rate(12_000.0), "1.5 kB/s");
        assert_eq!(byte_rate(80.0), "10 B/s");
        assert_eq!(bytes(65_536), "64 KiB");
        assert_eq!(bytes(1_000), "1000 B");
        assert_eq!(span(Duration::from_micros(2_346)), "2.35 ms");
        assert_eq!(span(Duration::from_secs(10)), "10 s");
        assert_eq!(age(Duration::from_millis(59_900)), "59 s");
        assert_eq!(age(Duration::from_secs(3_599)), "59 min 59 s");
        assert_eq!(age(Duration::from_secs(90_000)), "1 d 1 h");
        assert_eq!(age(Duration::from_secs(7_260)), "2 h 1 min");
        assert_eq!(per_second(0.25), "0.25/s");
        assert_eq!(per_second(1_234.6), "1,235/s");
        assert_eq!(share(0.00512), "0.51 %");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(999), "999");
    }

    #[test]
    fn numbers_for_people_are_short() {
        let check = |number: f64, expected: &str| assert_eq!(short(number), expected);
        check(0.0, "0");
        check(94_123_456.0, "94.1M");
        check(1_000.0, "1k");
        check(0.004_567, "0.00457");
        check(999.0, "999");
        check(-2.5, "-2.5");
        check(100.0, "100");
    }
}
