//! Preconditions (RFC 9110 section 13): whether a request still applies to what the server has.

use super::date;

/// What identifies the representation that would be sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Validators<'a> {
    /// The opaque part of an entity tag, with its quotes.
    pub etag: Option<&'a [u8]>,
    /// Whether the tag is a weak one.
    pub weak: bool,
    /// Last modification in seconds since 1970.
    pub modified_secs: Option<i64>,
}

/// What the preconditions say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Answer as without them.
    Proceed,
    /// The client has it already (304).
    NotModified,
    /// A precondition is false (412).
    Failed,
}

/// Evaluates preconditions in the order of section 13.2.2. `get_or_head` decides between 304 and 412.
///
/// `fields` finds all values of the field of a name.
pub fn evaluate<'a, F, I>(fields: F, get_or_head: bool, validators: &Validators<'_>, now_secs: i64) -> Outcome
where
    F: Fn(&'static str) -> I,
    I: Iterator<Item = &'a [u8]>,
{
    // A field that must come once and comes several times says nothing reliable.
    let single_date = |name| {
        let mut values = fields(name);
        let first = values.next()?;
        if values.next().is_some() { None } else { date::parse(first, now_secs) }
    };
    if fields("if-match").next().is_some() {
        if !fields("if-match").any(|value| list_holds(value, validators, Compare::Strong)) {
            return Outcome::Failed;
        }
    } else if let (Some(date), Some(modified)) =
        (single_date("if-unmodified-since"), validators.modified_secs)
        && modified > date
    {
        return Outcome::Failed;
    }
    if fields("if-none-match").next().is_some() {
        if fields("if-none-match").any(|value| list_holds(value, validators, Compare::Weak)) {
            return if get_or_head { Outcome::NotModified } else { Outcome::Failed };
        }
    } else if let (true, Some(date), Some(modified)) =
        (get_or_head, single_date("if-modified-since"), validators.modified_secs)
        && modified <= date
    {
        return Outcome::NotModified;
    }
    Outcome::Proceed
}

/// Whether `If-Range: value` names exactly what the server has (section 13.1.5), so that a range may be sent.
///
/// A date counts only when it equals the last modification and that lies at least a second before now, as another
/// change within the same second would not show (section 8.8.2.2).
pub fn if_range_holds(value: &[u8], validators: &Validators<'_>, now_secs: i64) -> bool {
    if value.first() == Some(&b'"') {
        return !validators.weak && validators.etag.is_some_and(|etag| etag == value);
    }
    match (date::parse(value, now_secs), validators.modified_secs) {
        (Some(date), Some(modified)) => date == modified && modified < now_secs,
        _ => false,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Compare {
    /// Both tags must be strong.
    Strong,
    /// The opaque parts must be equal.
    Weak,
}

/// Whether a list of entity tags holds ours, or is `*`. What follows a breach of the grammar is not read.
fn list_holds(value: &[u8], ours: &Validators<'_>, compare: Compare) -> bool {
    let mut rest = value.trim_ascii();
    if rest == b"*" {
        return true;
    }
    let Some(etag) = ours.etag else { return false };
    loop {
        while let [b',' | b' ' | b'\t', tail @ ..] = rest {
            rest = tail;
        }
        let weak = rest.starts_with(b"W/");
        let tag = if weak { &rest[2..] } else { rest };
        let [b'"', inner @ ..] = tag else { return false };
        let Some(end) = inner.iter().position(|b| *b == b'"') else { return false };
        // With both quotes.
        let (tag, tail) = tag.split_at(end + 2);
        if tag == etag && !((weak || ours.weak) && compare == Compare::Strong) {
            return true;
        }
        rest = tail.trim_ascii_start();
        if !rest.starts_with(b",") {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: i64 = 1_767_323_045;
    const MODIFIED: i64 = 784_111_777;
    const SAME: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";
    const OURS: Validators<'static> =
        Validators { etag: Some(b"\"abc\""), weak: false, modified_secs: Some(MODIFIED) };

    fn check_for(get: bool, fields: &[(&str, &str)], expected: Outcome) {
        let find = |name: &'static str| {
            fields.iter().filter(move |(known, _)| *known == name).map(|(_, value)| value.as_bytes())
        };
        assert_eq!(evaluate(find, get, &OURS, NOW), expected, "{fields:?}");
    }

    fn check(fields: &[(&str, &str)], expected: Outcome) {
        check_for(true, fields, expected);
    }

    #[test]
    fn each_precondition_by_itself() {
        use Outcome::*;
        check(&[], Proceed);
        check(&[("if-match", "\"abc\"")], Proceed);
        check(&[("if-match", "*")], Proceed);
        check(&[("if-match", "\"x\", \"abc\"")], Proceed);
        check(&[("if-match", "\"x\""), ("if-match", "\"abc\"")], Proceed);
        check(&[("if-match", "\"x\"")], Failed);
        check(&[("if-match", "W/\"abc\"")], Failed);
        check(&[("if-match", "abc")], Failed);
        check(&[("if-match", "")], Failed);
        check(&[("if-none-match", "\"abc\"")], NotModified);
        check(&[("if-none-match", "W/\"abc\"")], NotModified);
        check(&[("if-none-match", "*")], NotModified);
        check(&[("if-none-match", "\"x,y\" ,, \"abc\"")], NotModified);
        check(&[("if-none-match", "\"x\"")], Proceed);
        check(&[("if-none-match", "\"abc")], Proceed);
        check(&[("if-none-match", "\"x\" \"abc\"")], Proceed);
        check_for(false, &[("if-none-match", "\"abc\"")], Failed);
        check(&[("if-modified-since", SAME)], NotModified);
        check(&[("if-modified-since", AFTER)], NotModified);
        check(&[("if-modified-since", BEFORE)], Proceed);
        check(&[("if-modified-since", "yesterday")], Proceed);
        check(&[("if-modified-since", SAME), ("if-modified-since", SAME)], Proceed);
        check_for(false, &[("if-modified-since", SAME)], Proceed);
        check(&[("if-unmodified-since", SAME)], Proceed);
        check(&[("if-unmodified-since", BEFORE)], Failed);
        check(&[("if-unmodified-since", "0")], Proceed);
    }

    #[test]
    fn tags_come_before_dates_and_matching_before_not_matching() {
        use Outcome::*;
        check(&[("if-match", "\"abc\""), ("if-unmodified-since", BEFORE)], Proceed);
        check(&[("if-none-match", "\"x\""), ("if-modified-since", SAME)], Proceed);
        check(&[("if-none-match", "\"abc\""), ("if-modified-since", BEFORE)], NotModified);
        check(&[("if-match", "\"x\""), ("if-none-match", "\"abc\"")], Failed);
        check(&[("if-unmodified-since", BEFORE), ("if-none-match", "\"abc\"")], Failed);
        check(&[("if-match", "\"abc\""), ("if-none-match", "\"abc\"")], NotModified);
    }

    #[test]
    fn a_range_needs_a_strong_validator() {
        let check = |value: &str, now: i64, expected| {
            assert_eq!(if_range_holds(value.as_bytes(), &OURS, now), expected, "{value}");
        };
        check("\"abc\"", NOW, true);
        check("W/\"abc\"", NOW, false);
        check("\"x\"", NOW, false);
        check(SAME, NOW, true);
        check(SAME, MODIFIED, false);
        check(AFTER, NOW, false);
        check(BEFORE, NOW, false);
        check("abc", NOW, false);
        check("", NOW, false);
    }

    #[test]
    fn a_weak_tag_of_ours_serves_caches_only() {
        let weak = Validators { weak: true, ..OURS };
        let check = |name: &'static str, value: &'static str, expected: Outcome| {
            let find = |asked: &'static str| (asked == name).then_some(value.as_bytes()).into_iter();
            assert_eq!(evaluate(find, true, &weak, NOW), expected, "{name}: {value}");
        };
        check("if-none-match", "W/\"abc\"", Outcome::NotModified);
        check("if-none-match", "\"abc\"", Outcome::NotModified);
        check("if-match", "\"abc\"", Outcome::Failed);
        check("if-match", "W/\"abc\"", Outcome::Failed);
        check("if-match", "*", Outcome::Proceed);
        assert!(!if_range_holds(b"\"abc\"", &weak, NOW) && !if_range_holds(b"W/\"abc\"", &weak, NOW));
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(value in "[W/\", *a-c]{0,30}") {
            let find = |_: &'static str| [value.as_bytes()].into_iter();
            evaluate(find, true, &OURS, NOW);
            if_range_holds(value.as_bytes(), &OURS, NOW);
        }
    }
}
