//! Dates as FTP writes them: `YYYYMMDDHHMMSS` in UTC (RFC 3659 section 2.3) and the columns of `ls -l`.

use crate::calendar::{Civil, MONTHS};
use core::fmt::{self, Write};

const NS_PER_SECOND: i64 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;
/// Files younger than half a year show the time of day, older ones the year (as `ls` does).
const RECENT_NS: i64 = 182 * SECONDS_PER_DAY * NS_PER_SECOND;

/// A date and time of day in UTC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Date {
    civil: Civil,
}

impl Date {
    /// The date `ns` nanoseconds after 1970-01-01 UTC.
    pub(super) fn from_unix_ns(ns: i64) -> Date {
        Date { civil: Civil::from_secs(ns.div_euclid(NS_PER_SECOND)) }
    }

    /// Reads `YYYYMMDDHHMMSS`, with an optional fraction of a second, which is dropped. The second 60 of a leap
    /// second counts as 59. Dates beyond what 64 bits hold in ns (years 1678 to 2262) are refused.
    pub(super) fn parse(text: &str) -> Option<Date> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        if whole.len() != 14 || !digits(whole) || !digits(fraction) {
            return None;
        }
        let number = |from: usize, to: usize| whole.get(from..to)?.parse::<u8>().ok();
        let second = number(12, 14)?;
        let civil = Civil {
            year: whole.get(..4)?.parse().ok()?,
            month: number(4, 6)?,
            day: number(6, 8)?,
            weekday: 0,
            hour: number(8, 10)?,
            minute: number(10, 12)?,
            second: if second == 60 { 59 } else { second },
        };
        Date { civil }.unix_ns().map(Date::from_unix_ns)
    }

    /// Nanoseconds since 1970-01-01 UTC; `None` beyond what 64 bits hold.
    pub(super) fn unix_ns(self) -> Option<i64> {
        self.civil.to_secs()?.checked_mul(NS_PER_SECOND)
    }
}

impl fmt::Display for Date {
    /// `YYYYMMDDHHMMSS`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Civil { year, month, day, hour, minute, second, .. } = self.civil;
        write!(f, "{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}")
    }
}

/// Writes the date column of `ls -l`: `Jan 02 03:04` for the half year before `now_ns`, `Jan 02  2024` otherwise.
pub(super) fn write_ls(out: &mut impl Write, modified_ns: i64, now_ns: i64) -> fmt::Result {
    let Civil { year, month, day, hour, minute, .. } = Date::from_unix_ns(modified_ns).civil;
    let name = MONTHS.get(usize::from(month).wrapping_sub(1)).unwrap_or(&"Jan");
    let age_ns = now_ns.saturating_sub(modified_ns);
    if (0..RECENT_NS).contains(&age_ns) {
        write!(out, "{name} {day:02} {hour:02}:{minute:02}")
    } else {
        write!(out, "{name} {day:02}  {year:04}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};
    use proptest::prelude::*;

    fn check(ns: i64, expected: &str) {
        assert_eq!(Date::from_unix_ns(ns).to_string(), expected);
        assert_eq!(Date::parse(expected).unwrap().unix_ns(), Some(ns - ns.rem_euclid(NS_PER_SECOND)));
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        check(0, "19700101000000");
        check(-1, "19691231235959");
        check(951_782_400 * NS_PER_SECOND, "20000229000000");
        check(1_709_208_000 * NS_PER_SECOND, "20240229120000");
        check(1_767_323_045 * NS_PER_SECOND + 5, "20260102030405");
        check(4_107_542_400 * NS_PER_SECOND, "21000301000000");
    }

    #[test]
    fn what_is_no_date_is_refused() {
        let refused = [
            "",
            "2024",
            "20240230000000",
            "20230229000000",
            "20241301000000",
            "20240001000000",
            "20240101240000",
            "20240101006000",
            "2024010100000a",
            "20240101000000.",
            "20240101000000.x",
            "+0240101000000",
            "99990101000000",
        ];
        for text in refused {
            assert_eq!(Date::parse(text), None, "{text}");
        }
        assert_eq!(Date::parse("20240101000060.25").unwrap().to_string(), "20240101000059");
    }

    #[test]
    fn ls_shows_the_time_of_young_files_and_the_year_of_others() {
        let now = 1_767_323_045 * NS_PER_SECOND;
        for (ns, expected) in [
            (now - 60 * NS_PER_SECOND, "Jan 02 03:03"),
            (now + 86_400 * NS_PER_SECOND, "Jan 03  2026"),
            (1_709_208_000 * NS_PER_SECOND, "Feb 29  2024"),
        ] {
            let mut out = String::new();
            write_ls(&mut out, ns, now).unwrap();
            assert_eq!(out, expected);
        }
    }

    proptest! {
        #[test]
        fn every_second_comes_back(seconds in -9_000_000_000i64..9_000_000_000) {
            let ns = seconds * NS_PER_SECOND;
            let date = Date::from_unix_ns(ns);
            prop_assert_eq!(date.unix_ns(), Some(ns));
            prop_assert_eq!(Date::parse(&date.to_string()), Some(date));
        }

        #[test]
        fn no_time_panics(ns in any::<i64>(), now in any::<i64>()) {
            let mut out = String::new();
            write_ls(&mut out, ns, now).unwrap();
        }
    }
}
