//! Sequence numbers as positions: 64 bits that never wrap inside, 32 bits on the wire.

use linerate_wire::tcp::SeqNumber;

/// The position that stands for `first` at the start of a connection. There is room below for what came before.
pub(super) fn origin(first: SeqNumber) -> u64 {
    (1 << 32) + u64::from(first.0)
}

/// The position nearest to `near` that has this number on the wire.
pub(super) fn unwrap(near: u64, seq: SeqNumber) -> u64 {
    near.saturating_add_signed(i64::from(seq.0.wrapping_sub(near as u32) as i32))
}

/// The number on the wire.
pub(super) fn wrap(position: u64) -> SeqNumber {
    SeqNumber(position as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn positions_survive_the_wire(near in (1u64 << 32)..(1 << 50), away in -0x7fff_ffffi64..0x7fff_ffff) {
            let position = near.saturating_add_signed(away);
            prop_assert_eq!(unwrap(near, wrap(position)), position);
        }
    }

    #[test]
    fn an_origin_has_room_below() {
        assert_eq!(wrap(origin(SeqNumber(7))), SeqNumber(7));
        assert_eq!(unwrap(origin(SeqNumber(0)), SeqNumber(u32::MAX)), (1 << 32) - 1);
    }
}
