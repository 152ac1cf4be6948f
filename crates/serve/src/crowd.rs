//! Tables with a place for each of many connections.

use alloc::vec::Vec;

/// Makes a table longer, with an eighth to spare in place of as much again: a place that nobody uses costs as much as one in use.
pub(crate) fn grow<T>(table: &mut Vec<T>, len: usize, make: impl FnMut() -> T) {
    let more = len.saturating_sub(table.len());
    if more > table.capacity() - table.len() {
        table.reserve_exact(more.max(table.len() / 8).max(4));
    }
    table.resize_with(len, make);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_by_an_eighth_and_seldom() {
        let mut table = Vec::new();
        let mut moves = 0;
        for len in 1..=10_000 {
            let before = table.capacity();
            grow(&mut table, len, || 0_u64);
            moves += usize::from(table.capacity() != before);
            assert_eq!(table.len(), len);
        }
        assert!(
            table.capacity() <= 10_000 + 10_000 / 8 && moves < 100,
            "{} places, {moves} moves",
            table.capacity()
        );
    }
}
