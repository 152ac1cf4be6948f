//! Pool pages that short pieces of bytes are copied into, one after the other.

use linerate_nic::{Pool, Slice};

/// Copies as much of `bytes` as fits behind `last`, a slice that ends at byte `fill` of its page, and returns the longer
/// slice and how much was copied. Gives `last` back when somebody else holds the page, or it is full.
pub(super) fn append(last: Slice, fill: usize, bytes: &[u8]) -> Result<(Slice, usize), Slice> {
    let room = last.held().saturating_sub(fill).min(bytes.len());
    if room == 0 {
        return Err(last);
    }
    let start = fill - last.len().min(fill);
    let mut page = last.try_into_buffer()?;
    if let (Some(to), Some(from)) = (page.bytes_mut().get_mut(fill..fill + room), bytes.get(..room)) {
        to.copy_from_slice(from);
    }
    Ok((page.freeze(start..fill + room), room))
}

/// Copies as much of `bytes` as fits into a fresh page; `None` when the pool has none.
pub(super) fn fresh(pool: &Pool, bytes: &[u8]) -> Option<(Slice, usize)> {
    let mut page = pool.take()?;
    let len = page.len().min(bytes.len());
    if let (Some(to), Some(from)) = (page.bytes_mut().get_mut(..len), bytes.get(..len)) {
        to.copy_from_slice(from);
    }
    Some((page.freeze(0..len), len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_filled_while_nobody_else_reads_it() {
        let pool = Pool::new(2, 8);
        let (mut slice, copied) = fresh(&pool, b"abcd").unwrap();
        slice.trim_front(1);
        assert_eq!((slice.bytes(), copied), (&b"bcd"[..], 4));
        let (slice, copied) = append(slice, 4, b"efghij").unwrap();
        assert_eq!((slice.bytes(), copied), (&b"bcdefgh"[..], 4));
        assert!(append(slice, 8, b"x").is_err());
        let (slice, _) = fresh(&pool, b"12").unwrap();
        let other = slice.clone();
        let slice = append(slice, 2, b"3").unwrap_err();
        drop(other);
        assert_eq!(append(slice, 2, b"3").unwrap().0.bytes(), b"123");
    }
}
