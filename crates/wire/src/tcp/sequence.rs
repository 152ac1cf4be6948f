//! TCP sequence numbers: 32 bits that wrap (RFC 9293 section 3.4, arithmetic of RFC 1982).

use core::fmt;
use core::ops::{Add, AddAssign, Sub, SubAssign};

/// A sequence number.
///
/// Order is that of the circle: `a.lt(b)` if `b` lies less than 2^31 ahead. It is not transitive, so the type has
/// neither `Ord` nor `PartialOrd`, and numbers exactly 2^31 apart are each "less" than the other (RFC 1982 leaves
/// that undefined; no window reaches so far).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SeqNumber(pub u32);

impl SeqNumber {
    /// Whether `self` comes before `other`.
    pub const fn lt(self, other: SeqNumber) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }

    /// Whether `self` comes before `other` or is it.
    pub const fn le(self, other: SeqNumber) -> bool {
        self.0 == other.0 || self.lt(other)
    }

    /// Whether `self` comes after `other`.
    pub const fn gt(self, other: SeqNumber) -> bool {
        other.lt(self)
    }

    /// Whether `self` comes after `other` or is it.
    pub const fn ge(self, other: SeqNumber) -> bool {
        other.le(self)
    }

    /// The later of two.
    pub const fn max(self, other: SeqNumber) -> SeqNumber {
        if self.lt(other) { other } else { self }
    }

    /// The earlier of two.
    pub const fn min(self, other: SeqNumber) -> SeqNumber {
        if other.lt(self) { other } else { self }
    }

    /// Bytes from `earlier` to `self` going forward around the circle.
    pub const fn distance_from(self, earlier: SeqNumber) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }

    /// Whether `self` lies in the `len` numbers that begin with `start`.
    pub const fn is_within(self, start: SeqNumber, len: u32) -> bool {
        self.distance_from(start) < len
    }
}

impl Add<u32> for SeqNumber {
    type Output = SeqNumber;
    fn add(self, rhs: u32) -> SeqNumber {
        SeqNumber(self.0.wrapping_add(rhs))
    }
}

impl AddAssign<u32> for SeqNumber {
    fn add_assign(&mut self, rhs: u32) {
        *self = *self + rhs;
    }
}

impl Sub<u32> for SeqNumber {
    type Output = SeqNumber;
    fn sub(self, rhs: u32) -> SeqNumber {
        SeqNumber(self.0.wrapping_sub(rhs))
    }
}

impl SubAssign<u32> for SeqNumber {
    fn sub_assign(&mut self, rhs: u32) {
        *self = *self - rhs;
    }
}

impl Sub<SeqNumber> for SeqNumber {
    type Output = i32;
    /// Signed distance: positive if `self` comes after `rhs`.
    fn sub(self, rhs: SeqNumber) -> i32 {
        self.0.wrapping_sub(rhs.0) as i32
    }
}

impl fmt::Display for SeqNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for SeqNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(a: u32, b: u32, less: bool, distance: i32) {
        let (a, b) = (SeqNumber(a), SeqNumber(b));
        assert_eq!((a.lt(b), a.ge(b), b.gt(a), b.le(a)), (less, !less, less, !less), "{a} {b}");
        assert_eq!(b - a, distance, "{b} - {a}");
    }

    #[test]
    fn order_wraps() {
        check(0, 1, true, 1);
        check(1, 0, false, -1);
        check(7, 7, false, 0);
        check(0xffff_fff0, 0x10, true, 0x20);
        check(0x10, 0xffff_fff0, false, -0x20);
        check(0, 0x7fff_ffff, true, i32::MAX);
        check(0x7fff_ffff, 0, false, -i32::MAX);
    }

    #[test]
    fn windows_wrap() {
        assert!(SeqNumber(3).is_within(SeqNumber(u32::MAX), 5));
        assert!(!SeqNumber(4).is_within(SeqNumber(u32::MAX), 5));
        assert!(!SeqNumber(9).is_within(SeqNumber(9), 0));
        assert_eq!(SeqNumber(u32::MAX).max(SeqNumber(2)), SeqNumber(2));
        assert_eq!(SeqNumber(u32::MAX).min(SeqNumber(2)), SeqNumber(u32::MAX));
        assert_eq!(SeqNumber(0) - 1, SeqNumber(u32::MAX));
    }

    proptest! {
        #[test]
        fn forward_steps_below_half_the_circle_are_later(start: u32, step in 1u32..0x8000_0000) {
            let (a, b) = (SeqNumber(start), SeqNumber(start) + step);
            prop_assert!(a.lt(b) && b.gt(a) && !b.le(a));
            prop_assert_eq!(b.distance_from(a), step);
            prop_assert_eq!(b - a, step as i32);
            prop_assert_eq!(b - step, a);
        }
    }
}
