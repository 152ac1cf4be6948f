//! The TCP control bits (RFC 9293 section 3.1; ECE and CWR of RFC 3168).

use core::fmt;
use core::ops::{BitAnd, BitOr, BitOrAssign};

/// A set of control bits, laid out as in the header's 14th byte.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// No bit.
    pub const EMPTY: Flags = Flags(0);
    /// No more data from the sender.
    pub const FIN: Flags = Flags(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Flags = Flags(0x02);
    /// Reset the connection.
    pub const RST: Flags = Flags(0x04);
    /// Push.
    pub const PSH: Flags = Flags(0x08);
    /// The acknowledgement field counts.
    pub const ACK: Flags = Flags(0x10);
    /// The urgent pointer counts.
    pub const URG: Flags = Flags(0x20);
    /// ECN echo.
    pub const ECE: Flags = Flags(0x40);
    /// Congestion window reduced.
    pub const CWR: Flags = Flags(0x80);

    /// Whether all bits of `other` are set.
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any bit of `other` is set.
    pub const fn intersects(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether no bit is set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// These and those of `other`; as `|`, but `const`.
    pub const fn union(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// These but not those of `other`.
    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }
}

impl BitOr for Flags {
    type Output = Flags;
    fn bitor(self, rhs: Flags) -> Flags {
        self.union(rhs)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, rhs: Flags) {
        *self = self.union(rhs);
    }
}

impl BitAnd for Flags {
    type Output = Flags;
    fn bitand(self, rhs: Flags) -> Flags {
        Flags(self.0 & rhs.0)
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 8] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];
        if self.is_empty() {
            return f.write_str("-");
        }
        let mut first = true;
        for (bit, name) in NAMES.iter().enumerate() {
            if self.0 >> bit & 1 == 1 {
                if !first {
                    f.write_str("|")?;
                }
                f.write_str(name)?;
                first = false;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::format;

    #[test]
    fn sets_behave_as_sets() {
        let flags = Flags::SYN | Flags::ACK;
        assert!(flags.contains(Flags::SYN) && !flags.contains(Flags::SYN | Flags::FIN));
        assert!(flags.intersects(Flags::SYN | Flags::FIN) && !flags.intersects(Flags::RST));
        assert_eq!(flags.without(Flags::ACK), Flags::SYN);
        assert_eq!(flags & Flags::ACK, Flags::ACK);
        assert_eq!(format!("{:?} {:?}", flags, Flags::EMPTY), "SYN|ACK -");
    }
}
