//! Dates of HTTP (RFC 9110 section 5.6.7) and of access logs, from and to seconds since 1970-01-01 UTC.

pub use crate::calendar::Civil;
use crate::calendar::MONTHS;
use alloc::vec::Vec;

/// Length of a date in its preferred form, in bytes.
pub const DATE_LEN: usize = 29;

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
/// The preferred form, as `Sun, 06 Nov 1994 08:49:37 GMT`.
pub fn format(secs: i64) -> [u8; DATE_LEN] {
    let c = Civil::from_secs(secs);
    let mut text = *b"Sun, 06 Nov 1994 08:49:37 GMT";
    text[..3].copy_from_slice(&DAYS[usize::from(c.weekday)].as_bytes()[..3]);
    text[5..7].copy_from_slice(&two(c.day));
    text[8..11].copy_from_slice(MONTHS[usize::from(c.month - 1)].as_bytes());
    text[12..14].copy_from_slice(&two((c.year / 100) as u8));
    text[14..16].copy_from_slice(&two((c.year % 100) as u8));
    for (at, value) in [(17, c.hour), (20, c.minute), (23, c.second)] {
        text[at..at + 2].copy_from_slice(&two(value));
    }
    text
}

/// Appends the form of access logs, as `06/Nov/1994:08:49:37 +0000`.
pub(super) fn append_log_date(out: &mut Vec<u8>, secs: i64) {
    let c = Civil::from_secs(secs);
    out.extend_from_slice(&two(c.day));
    out.push(b'/');
    out.extend_from_slice(MONTHS[usize::from(c.month - 1)].as_bytes());
    out.push(b'/');
    append_year(out, c.year);
    for value in [c.hour, c.minute, c.second] {
        out.push(b':');
        out.extend_from_slice(&two(value));
    }
    out.extend_from_slice(b" +0000");
}

/// Appends `1994-11-06 08:49` for people, or `1994-11-06T08:49:37Z` (RFC 3339) for machines.
pub(super) fn append_iso(out: &mut Vec<u8>, secs: i64, machine: bool) {
    let c = Civil::from_secs(secs);
    append_year(out, c.year);
    for value in [c.month, c.day] {
        out.push(b'-');
        out.extend_from_slice(&two(value));
    }
    out.push(if machine { b'T' } else { b' ' });
    out.extend_from_slice(&two(c.hour));
    out.push(b':');
    out.extend_from_slice(&two(c.minute));
    if machine {
        out.push(b':');
        out.extend_from_slice(&two(c.second));
        out.push(b'Z');
    }
}

fn append_year(out: &mut Vec<u8>, year: u16) {
    out.extend_from_slice(&two((year / 100) as u8));
    out.extend_from_slice(&two((year % 100) as u8));
}

fn two(value: u8) -> [u8; 2] {
    [b'0' + value / 10, b'0' + value % 10]
}

/// Parses any of the three forms that RFC 9110 has a recipient accept. `now_secs` decides the century of the obsolete
/// two-digit year: one that appears to be more than 50 years ahead is in the past.
pub fn parse(text: &[u8], now_secs: i64) -> Option<i64> {
    let comma = text.iter().position(|b| *b == b',');
    let civil = match comma {
        Some(3) => parse_preferred(text)?,
        Some(at) => parse_rfc850(text.get(..at)?, text.get(at + 1..)?, now_secs)?,
        None => parse_asctime(text)?,
    };
    civil.to_secs()
}

fn parse_preferred(text: &[u8]) -> Option<Civil> {
    let text: &[u8; DATE_LEN] = text.try_into().ok()?;
    weekday(&text[..3], 3)?;
    let spaces = [4, 7, 11, 16].iter().all(|at| text[*at] == b' ');
    if !spaces || &text[25..] != b" GMT" {
        return None;
    }
    let year = number(&text[12..16])?;
    civil(year, month(&text[8..11])?, number(&text[5..7])?, &text[17..25])
}

fn parse_rfc850(day_name: &[u8], rest: &[u8], now_secs: i64) -> Option<Civil> {
    weekday(day_name, usize::MAX)?;
    let rest: &[u8; 23] = rest.try_into().ok()?;
    if rest[0] != b' ' || rest[3] != b'-' || rest[7] != b'-' || rest[10] != b' ' || &rest[19..] != b" GMT" {
        return None;
    }
    let this_year = Civil::from_secs(now_secs).year;
    let mut year = this_year - this_year % 100 + number(&rest[8..10])?;
    if year > this_year + 50 {
        year = year.checked_sub(100)?;
    }
    civil(year, month(&rest[4..7])?, number(&rest[1..3])?, &rest[11..19])
}

fn parse_asctime(text: &[u8]) -> Option<Civil> {
    let text: &[u8; 24] = text.try_into().ok()?;
    weekday(&text[..3], 3)?;
    if [3, 7, 10, 19].iter().any(|at| text[*at] != b' ') {
        return None;
    }
    let day = if text[8] == b' ' { number(&text[9..10])? } else { number(&text[8..10])? };
    civil(number(&text[20..24])?, month(&text[4..7])?, day, &text[11..19])
}

fn civil(year: u16, month: u8, day: u16, time: &[u8]) -> Option<Civil> {
    if time.len() != 8 || time[2] != b':' || time[5] != b':' {
        return None;
    }
    let second = number(&time[6..8])?;
    Some(Civil {
        year,
        month,
        day: u8::try_from(day).ok()?,
        weekday: 0,
        hour: u8::try_from(number(&time[..2])?).ok()?,
        minute: u8::try_from(number(&time[3..5])?).ok()?,
        // A leap second is the second before it: nothing here has one of its own.
        second: if second == 60 { 59 } else { u8::try_from(second).ok()? },
    })
}

fn weekday(name: &[u8], len: usize) -> Option<()> {
    DAYS.iter().any(|day| &day.as_bytes()[..len.min(day.len())] == name).then_some(())
}

fn month(name: &[u8]) -> Option<u8> {
    MONTHS.iter().position(|month| month.as_bytes() == name).map(|at| at as u8 + 1)
}

fn number(digits: &[u8]) -> Option<u16> {
    digits.iter().try_fold(0u16, |sum, b| b.is_ascii_digit().then(|| sum * 10 + u16::from(b - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::{BEGIN, END};
    use proptest::prelude::*;

    const NOW: i64 = 1_767_323_045; // 2026-01-02T03:04:05Z

    fn check(text: &str, expected: Option<i64>) {
        assert_eq!(parse(text.as_bytes(), NOW), expected, "{text}");
    }

    #[test]
    fn the_three_forms_of_the_standards_example_are_equal() {
        check("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777));
        check("Sunday, 06-Nov-94 08:49:37 GMT", Some(784_111_777));
        check("Sun Nov  6 08:49:37 1994", Some(784_111_777));
        assert_eq!(&format(784_111_777), b"Sun, 06 Nov 1994 08:49:37 GMT");
    }

    #[test]
    fn two_digit_years_are_at_most_fifty_years_ahead() {
        check("Friday, 31-Dec-76 23:59:59 GMT", Some(3_376_684_799));
        check("Saturday, 01-Jan-77 00:00:00 GMT", Some(220_924_800));
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for text in [
            "",
            "0",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 06 nov 1994 08:49:37 GMT",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun, 31 Feb 1994 08:49:37 GMT",
            "Sun, 29 Feb 1900 08:49:37 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:49:37 GMT",
            "Sun, 06 Nov 1994 08:60:37 GMT",
            "Sun, 06 Nov 1994 08:49:61 GMT",
            "Xxx, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 EST",
            "Sund, 06-Nov-94 08:49:37 GMT",
            "Sun Nov 06 08:49:37 19945",
            ",",
            "Sun,",
        ] {
            check(text, None);
        }
        check("Sat, 31 Dec 2016 23:59:60 GMT", Some(1_483_228_799));
        check("Tue, 29 Feb 2000 00:00:00 GMT", Some(951_782_400));
    }

    #[test]
    fn times_out_of_the_calendar_are_cut() {
        assert_eq!(&format(i64::MAX), b"Fri, 31 Dec 9999 23:59:59 GMT");
        assert_eq!(&format(i64::MIN), b"Sat, 01 Jan 0000 00:00:00 GMT");
    }

    #[test]
    fn logs_and_listings_have_their_own_forms() {
        let mut out = Vec::new();
        append_log_date(&mut out, 784_111_777);
        append_iso(&mut out, 784_111_777, false);
        append_iso(&mut out, 784_111_777, true);
        assert_eq!(out, b"06/Nov/1994:08:49:37 +00001994-11-06 08:491994-11-06T08:49:37Z");
    }

    proptest! {
        #[test]
        fn every_second_survives_the_round_trip(secs in BEGIN..END) {
            prop_assert_eq!(parse(&format(secs), NOW), Some(secs));
            prop_assert_eq!(Civil::from_secs(secs).to_secs(), Some(secs));
        }

        #[test]
        fn any_bytes_are_taken(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            parse(&bytes, NOW);
        }

        #[test]
        fn any_bytes_of_the_right_shape_are_taken(text in "[A-Za-z]{3,9}, [0-9 :A-Za-z-]{20,26}") {
            parse(text.as_bytes(), NOW);
        }
    }
}
