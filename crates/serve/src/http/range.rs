//! Byte ranges (RFC 9110 section 14): which parts of a representation a request asks for.

use alloc::vec::Vec;

/// Most ranges in one request that are honoured; a request for more gets the whole representation.
pub const MAX_RANGES: usize = 16;

/// A part of a representation; never empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// First byte.
    pub start: u64,
    /// Number of bytes, at least 1.
    pub len: u64,
}

impl Part {
    /// The last byte's position, as `Content-Range` names it.
    pub fn last(self) -> u64 {
        self.start + self.len - 1
    }
}

/// What to send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Selection {
    /// Everything (200): no range, none that is understood, or more than is reasonable.
    Whole,
    /// One part (206).
    One(Part),
    /// Several parts, at least 2 and at most [`MAX_RANGES`] (206, multipart/byteranges), in the order asked for.
    Many(Vec<Part>),
    /// None of the ranges lies within the representation (416).
    Unsatisfiable,
}

/// What `Range: value` selects from a representation of `len` bytes.
///
/// A field that does not follow the grammar, or names another unit, is ignored (section 14.2); so are more than
/// [`MAX_RANGES`] ranges and ranges that together are longer than the representation, which only overlapping ones can
/// be: they would make a short request ask for a long answer.
pub fn select(value: &[u8], len: u64) -> Selection {
    let Some(specs) = strip_unit(value) else { return Selection::Whole };
    let mut parts: Vec<Part> = Vec::new();
    let (mut count, mut total) = (0usize, 0u64);
    for spec in specs.split(|b| *b == b',').map(<[u8]>::trim_ascii).filter(|spec| !spec.is_empty()) {
        let Some(spec) = Spec::parse(spec) else { return Selection::Whole };
        count += 1;
        if count > MAX_RANGES {
            return Selection::Whole;
        }
        if let Some(part) = spec.within(len) {
            total = total.saturating_add(part.len);
            parts.push(part);
        } else if len == 0 && matches!(spec, Spec::Suffix(1..)) {
            // Satisfiable by the standard, and no Content-Range can tell it.
            return Selection::Whole;
        }
    }
    match (count, parts.as_slice()) {
        (0, _) => Selection::Whole,
        (_, []) => Selection::Unsatisfiable,
        (_, [one]) => Selection::One(*one),
        _ if total > len => Selection::Whole,
        _ => Selection::Many(parts),
    }
}

fn strip_unit(value: &[u8]) -> Option<&[u8]> {
    let (unit, rest) = value.split_at_checked(6)?;
    unit.eq_ignore_ascii_case(b"bytes=").then_some(rest)
}

enum Spec {
    /// From the first to the last byte named.
    FromTo(u64, u64),
    /// From the first byte named to the end.
    From(u64),
    /// The last bytes.
    Suffix(u64),
}

impl Spec {
    fn parse(spec: &[u8]) -> Option<Spec> {
        let dash = spec.iter().position(|b| *b == b'-')?;
        let (first, last) = (&spec[..dash], &spec[dash + 1..]);
        match (first.is_empty(), last.is_empty()) {
            (true, true) => None,
            (true, false) => Some(Spec::Suffix(number(last)?)),
            (false, true) => Some(Spec::From(number(first)?)),
            (false, false) => {
                let (first, last) = (number(first)?, number(last)?);
                (first <= last).then_some(Spec::FromTo(first, last))
            }
        }
    }

    /// The part of it that lies within `len` bytes, if any does.
    fn within(&self, len: u64) -> Option<Part> {
        let (start, end) = match *self {
            Spec::FromTo(first, last) => (first, last.saturating_add(1).min(len)),
            Spec::From(first) => (first, len),
            Spec::Suffix(count) => (len - count.min(len), len),
        };
        (start < end).then(|| Part { start, len: end - start })
    }
}

/// Digits only; beyond 64 bits the largest number, which lies beyond every file.
fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0u64, |sum, b| {
        b.is_ascii_digit().then(|| sum.saturating_mul(10).saturating_add(u64::from(b - b'0')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use proptest::prelude::*;

    fn check(value: &str, len: u64, expected: &[(u64, u64)]) {
        let parts = match select(value.as_bytes(), len) {
            Selection::One(part) => alloc::vec![(part.start, part.last())],
            Selection::Many(parts) => parts.iter().map(|p| (p.start, p.last())).collect(),
            other => panic!("{value} of {len}: {other:?}"),
        };
        assert_eq!(parts, expected, "{value} of {len}");
    }

    fn check_not(value: &str, len: u64, expected: Selection) {
        assert_eq!(select(value.as_bytes(), len), expected, "{value} of {len}");
    }

    #[test]
    fn ranges_select_parts() {
        check("bytes=0-499", 10_000, &[(0, 499)]);
        check("bytes=500-999", 10_000, &[(500, 999)]);
        check("bytes=-500", 10_000, &[(9_500, 9_999)]);
        check("bytes=9500-", 10_000, &[(9_500, 9_999)]);
        check("bytes=0-0,-1", 10_000, &[(0, 0), (9_999, 9_999)]);
        check("bytes= 0-0 , , -1,", 10_000, &[(0, 0), (9_999, 9_999)]);
        check("BYTES=1-1", 10, &[(1, 1)]);
        check("bytes=5-99999999999999999999999", 10, &[(5, 9)]);
        check("bytes=5-18446744073709551615", 10, &[(5, 9)]);
        check("bytes=-99999999999999999999999", 10, &[(0, 9)]);
        check("bytes=0-1,10-11", 10, &[(0, 1)]);
        check("bytes=5-6,0-1", 10, &[(5, 6), (0, 1)]);
    }

    #[test]
    fn what_lies_outside_is_unsatisfiable() {
        for value in ["bytes=10-", "bytes=10-20", "bytes=-0", "bytes=10-11,-0", "bytes=99999999999999999999-"]
        {
            check_not(value, 10, Selection::Unsatisfiable);
        }
        check_not("bytes=0-", 0, Selection::Unsatisfiable);
        check_not("bytes=-5", 0, Selection::Whole);
    }

    #[test]
    fn what_is_not_understood_or_too_much_is_ignored() {
        for value in [
            "",
            "bytes",
            "bytes=",
            "bytes=,",
            "items=0-1",
            "bytes=a-b",
            "bytes=5-4",
            "bytes=--5",
            "bytes=1-2-3",
            "bytes=-",
            "bytes=+1-2",
            "bytes 0-1",
            "bytes=0-1;2-3",
            "bytes=0x1-2",
            "bytes=1 -2",
            "bytes=0-1,x",
        ] {
            check_not(value, 10, Selection::Whole);
        }
        check_not("bytes=0-5,3-9", 10, Selection::Whole);
        check_not("bytes=0-,0-,0-", 10, Selection::Whole);
        let many = |n: usize| -> String {
            let specs: Vec<String> = (0..n).map(|i| alloc::format!("{i}-{i}")).collect();
            alloc::format!("bytes={}", specs.join(","))
        };
        assert!(matches!(select(many(16).as_bytes(), 100), Selection::Many(parts) if parts.len() == 16));
        check_not(&many(17), 100, Selection::Whole);
    }

    proptest! {
        #[test]
        fn parts_lie_within_and_never_exceed_the_whole(value in "bytes=[0-9,-]{0,30}", len in 0u64..200) {
            let parts = match select(value.as_bytes(), len) {
                Selection::One(part) => alloc::vec![part],
                Selection::Many(parts) => parts,
                _ => return Ok(()),
            };
            prop_assert!(parts.iter().all(|p| p.len >= 1 && p.start + p.len <= len));
            prop_assert!(parts.iter().map(|p| p.len).sum::<u64>() <= len);
        }

        #[test]
        fn a_range_is_what_it_says(first in 0u64..300, more in 0u64..300, len in 1u64..300) {
            let value = alloc::format!("bytes={first}-{}", first + more);
            let expected = if first >= len {
                Selection::Unsatisfiable
            } else {
                Selection::One(Part { start: first, len: (first + more + 1).min(len) - first })
            };
            prop_assert_eq!(select(value.as_bytes(), len), expected);
        }

        #[test]
        fn any_bytes_are_taken(value in proptest::collection::vec(any::<u8>(), 0..60), len in any::<u64>()) {
            select(&value, len);
        }
    }
}
