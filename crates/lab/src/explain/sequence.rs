//! Sequence numbers of a stream as numbers that do not wrap.

/// Numbers begin here, so that some may come before the first that was seen.
const FIRST: u64 = 1 << 32;

/// Finds where in a stream a 32-bit sequence number belongs: as near as can be to the last one.
#[derive(Clone, Copy, Default, Debug)]
pub struct Unwrapped {
    near: Option<u64>,
}

impl Unwrapped {
    /// The position of `seq`. The first one asked for is that of the stream's beginning as far as it was captured.
    pub fn position(&mut self, seq: u32) -> u64 {
        let position = self.peek(seq);
        self.near = Some(position);
        position
    }

    /// The same, for a number that may be anything: the next one is not looked for near it.
    pub fn peek(&self, seq: u32) -> u64 {
        let Some(near) = self.near else { return FIRST | u64::from(seq) };
        let step = i64::from(seq.wrapping_sub(near as u32) as i32);
        near.saturating_add_signed(step)
    }

    /// Whether anything was seen.
    pub fn has_begun(&self) -> bool {
        self.near.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_go_on_where_numbers_wrap() {
        let mut stream = Unwrapped::default();
        assert!(!stream.has_begun());
        let first = stream.position(0xffff_fff0);
        let check = |stream: &mut Unwrapped, seq: u32, distance: i64| {
            assert_eq!(stream.position(seq) as i64 - first as i64, distance, "{seq:#x}");
        };
        check(&mut stream, 0x10, 0x20);
        check(&mut stream, 0xffff_ff00, -0xf0);
        check(&mut stream, 0x7000_0000, 0x7000_0010);
        check(&mut stream, 0xe000_0000, 0xe000_0010);
        check(&mut stream, 0x5000_0000, 0x1_5000_0010);
        assert_eq!(stream.peek(0x4fff_ffff) as i64 - first as i64, 0x1_5000_000f);
    }
}
