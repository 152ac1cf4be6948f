//! The name of a congestion control algorithm.

use crate::Congestion;

/// The name of a congestion control algorithm as systems and tools write it: `cubic`, `reno`, `bbr`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AlgorithmName {
    bytes: [u8; Self::MAX_LEN],
    len: u8,
}

impl AlgorithmName {
    /// Longest name in bytes (Linux has 16 with the final NUL).
    pub const MAX_LEN: usize = 15;

    /// This name; `None` if it is empty or too long.
    pub fn new(name: &str) -> Option<AlgorithmName> {
        let mut bytes = [0; Self::MAX_LEN];
        bytes.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
        (!name.is_empty()).then_some(AlgorithmName { bytes, len: name.len() as u8 })
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        // It was made of text, so that the default never comes.
        core::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
}

impl Congestion {
    /// The name that other systems have for it too, and that [`Congestion::from_name`] understands.
    pub const fn name(self) -> &'static str {
        match self {
            Congestion::Cubic => "cubic",
            Congestion::NewReno => "reno",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_not_empty() {
        for name in ["bbr", "cubic", "fifteen-letters"] {
            assert_eq!(AlgorithmName::new(name).unwrap().as_str(), name);
        }
        assert!(AlgorithmName::new("").is_none() && AlgorithmName::new("sixteen-letters!").is_none());
        for ours in [Congestion::Cubic, Congestion::NewReno] {
            assert_eq!(Congestion::from_name(ours.name()), Some(ours));
        }
    }
}
