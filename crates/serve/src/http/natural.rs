//! The order of names that people expect: `file2` before `file10`, without regard to case.

use core::cmp::Ordering;
use core::iter::Peekable;

/// Compares two names: runs of digits by their value, everything else character by character in lower case. Names that
/// are equal by that are in the order of their bytes, so that only equal names are equal.
pub(super) fn compare(a: &str, b: &str) -> Ordering {
    let mut left = a.chars().flat_map(char::to_lowercase).peekable();
    let mut right = b.chars().flat_map(char::to_lowercase).peekable();
    loop {
        let order = match (left.peek().copied(), right.peek().copied()) {
            (None, None) => return a.cmp(b),
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(x), Some(y)) if x.is_ascii_digit() && y.is_ascii_digit() => {
                compare_numbers(&mut left, &mut right)
            }
            (Some(x), Some(y)) => {
                left.next();
                right.next();
                x.cmp(&y)
            }
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// Takes a run of digits from both and compares their values, however long they are.
fn compare_numbers<L, R>(left: &mut Peekable<L>, right: &mut Peekable<R>) -> Ordering
where
    L: Iterator<Item = char>,
    R: Iterator<Item = char>,
{
    while left.next_if_eq(&'0').is_some() {}
    while right.next_if_eq(&'0').is_some() {}
    let mut first_difference = Ordering::Equal;
    loop {
        match (left.next_if(char::is_ascii_digit), right.next_if(char::is_ascii_digit)) {
            (None, None) => return first_difference,
            // Without leading zeros the longer number is the larger one.
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(x), Some(y)) => first_difference = first_difference.then(x.cmp(&y)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn check(ordered: &[&str]) {
        for (at, pair) in ordered.windows(2).enumerate() {
            assert_eq!(compare(pair[0], pair[1]), Ordering::Less, "{pair:?} at {at}");
            assert_eq!(compare(pair[1], pair[0]), Ordering::Greater, "{pair:?} at {at}");
        }
    }

    #[test]
    fn numbers_count_by_their_value() {
        check(&["file1", "file2", "file10", "file10a", "file10b", "file11", "fileA"]);
        check(&["1.9", "1.10", "2.0"]);
        check(&["img9.jpg", "IMG10.jpg", "img11.jpg"]);
        check(&["v99999999999999999999", "v100000000000000000000"]);
    }

    #[test]
    fn equal_values_still_have_an_order() {
        check(&["a0", "a000", "a01", "a1"]);
        check(&["README", "readme"]);
        assert_eq!(compare("x1", "x1"), Ordering::Equal);
    }

    proptest! {
        #[test]
        fn it_is_a_total_order(mut names in proptest::collection::vec("[aAbÄ012 .İ-]{0,6}", 0..12)) {
            // The standard library's sort panics, or not, on an order that is none: look at all triples instead.
            for a in &names {
                for b in &names {
                    prop_assert_eq!(compare(a, b), compare(b, a).reverse());
                    prop_assert_eq!(compare(a, b) == Ordering::Equal, a == b);
                    for c in &names {
                        if compare(a, b).is_le() && compare(b, c).is_le() {
                            prop_assert!(compare(a, c).is_le(), "{a:?} {b:?} {c:?}");
                        }
                    }
                }
            }
            let before: Vec<String> = names.clone();
            names.sort_by(|a, b| compare(a, b));
            prop_assert_eq!(before.len(), names.len());
        }
    }
}
