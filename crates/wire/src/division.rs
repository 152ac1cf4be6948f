//! Divisions of numbers of 64 bits for processors of 32, where each is a call of some sixty instructions: those that can do without it.

/// `n` by 1,000, and by 1,000,000: `n` times `ceil(2^SHIFT / divisor)`, without the lowest `SHIFT` bits of the product. The factor is less than
/// one too large for the divisor, so that the quotient is exact for `n` below 2^63.
const THOUSAND: (u64, u32) = factor(1_000, 73);
const MILLION: (u64, u32) = factor(1_000_000, 83);

const fn factor(divisor: u128, shift: u32) -> (u64, u32) {
    ((1u128 << shift).div_ceil(divisor) as u64, shift - 64)
}

/// The thousandth of `n`, rounded down.
#[inline]
pub const fn thousandth(n: u64) -> u64 {
    if usize::BITS < 64 { quotient(n, THOUSAND, 1_000) } else { n / 1_000 }
}

/// The millionth of `n`, rounded down.
#[inline]
pub const fn millionth(n: u64) -> u64 {
    if usize::BITS < 64 { quotient(n, MILLION, 1_000_000) } else { n / 1_000_000 }
}

/// `n / by`, rounded up; `by` is not zero.
pub const fn div_ceil(n: u64, by: u64) -> u64 {
    if is_short(n, by) { (n as u32).div_ceil(by as u32) as u64 } else { n.div_ceil(by) }
}

/// `n % by`; `by` is not zero.
pub const fn rest(n: u64, by: u64) -> u64 {
    if is_short(n, by) { (n as u32 % by as u32) as u64 } else { n % by }
}

/// Whether both have 32 bits, as most numbers do.
const fn is_short(n: u64, by: u64) -> bool {
    (n | by) >> 32 == 0
}

/// Not in place: it is as long as four calls.
#[inline(never)]
const fn quotient(n: u64, (factor, shift): (u64, u32), by: u64) -> u64 {
    if n >> 63 == 0 { high_half(n, factor) >> shift } else { n / by }
}

/// The upper 64 bits of a product, by four multiplications of 32.
const fn high_half(a: u64, b: u64) -> u64 {
    let (a1, a0, b1, b0) = (a >> 32, a as u32 as u64, b >> 32, b as u32 as u64);
    let low = a1 * b0 + ((a0 * b0) >> 32);
    let middle = a0 * b1 + (low as u32 as u64);
    a1 * b1 + (low >> 32) + (middle >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(n: u64) {
        assert_eq!(quotient(n, THOUSAND, 1_000), n / 1_000, "{n}");
        assert_eq!(quotient(n, MILLION, 1_000_000), n / 1_000_000, "{n}");
    }

    #[test]
    fn the_ends_are_exact() {
        for n in [0, 1, 999, 1_000, 999_999, 1_000_000, u64::MAX, (1 << 63) - 1, 1 << 63] {
            check(n);
        }
        for by in [1_000, 1_000_000] {
            // The last multiple, and what is just below: where a factor too large would show first.
            let last = (1 << 63) / by * by;
            check(last);
            check(last - 1);
        }
        assert_eq!((thousandth(1_999), millionth(1_999_999)), (1, 1));
    }

    proptest! {
        #[test]
        fn any_number(n: u64, by in 1..=u64::MAX, shift in 0u32..64) {
            check(n >> shift);
            let (n, by) = (n >> shift, (by >> shift).max(1));
            prop_assert_eq!(high_half(n, by), ((u128::from(n) * u128::from(by)) >> 64) as u64);
            prop_assert_eq!(div_ceil(n, by), n.div_ceil(by));
            prop_assert_eq!(rest(n, by), n % by);
        }

        #[test]
        fn multiples_of_a_million(k in 0u64..9_223_372_036_854) {
            check(k * 1_000_000);
            check((k * 1_000_000).saturating_sub(1));
        }
    }
}
