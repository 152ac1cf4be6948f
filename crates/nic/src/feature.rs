//! The offloads by name, and where each of them is done.

use crate::device::Capabilities;
use core::fmt;

/// One offload.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Feature {
    /// [`Capabilities::tx_checksum4`].
    TxChecksum4,
    /// [`Capabilities::tx_checksum6`].
    TxChecksum6,
    /// [`Capabilities::rx_checksum`].
    RxChecksum,
    /// [`Capabilities::tso4`].
    Tso4,
    /// [`Capabilities::tso6`].
    Tso6,
    /// [`Capabilities::rx_coalescing`].
    RxCoalescing,
    /// [`Capabilities::gather`].
    Gather,
}

impl Feature {
    /// All of them.
    pub const ALL: [Feature; 7] = [
        Feature::TxChecksum4,
        Feature::TxChecksum6,
        Feature::RxChecksum,
        Feature::Tso4,
        Feature::Tso6,
        Feature::RxCoalescing,
        Feature::Gather,
    ];

    /// Its name for people: in settings, logs and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Feature::TxChecksum4 => "tx-checksum4",
            Feature::TxChecksum6 => "tx-checksum6",
            Feature::RxChecksum => "rx-checksum",
            Feature::Tso4 => "tso4",
            Feature::Tso6 => "tso6",
            Feature::RxCoalescing => "rx-coalescing",
            Feature::Gather => "gather",
        }
    }

    /// The feature of that name.
    pub fn from_name(name: &str) -> Option<Feature> {
        Feature::ALL.into_iter().find(|feature| feature.name() == name)
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Capabilities {
    /// Whether `feature` is among them.
    pub const fn has(self, feature: Feature) -> bool {
        match feature {
            Feature::TxChecksum4 => self.tx_checksum4,
            Feature::TxChecksum6 => self.tx_checksum6,
            Feature::RxChecksum => self.rx_checksum,
            Feature::Tso4 => self.tso4,
            Feature::Tso6 => self.tso6,
            Feature::RxCoalescing => self.rx_coalescing,
            Feature::Gather => self.gather,
        }
    }

    /// The same with `feature` switched on or off.
    #[must_use]
    pub const fn with(mut self, feature: Feature, on: bool) -> Capabilities {
        match feature {
            Feature::TxChecksum4 => self.tx_checksum4 = on,
            Feature::TxChecksum6 => self.tx_checksum6 = on,
            Feature::RxChecksum => self.rx_checksum = on,
            Feature::Tso4 => self.tso4 = on,
            Feature::Tso6 => self.tso6 = on,
            Feature::RxCoalescing => self.rx_coalescing = on,
            Feature::Gather => self.gather = on,
        }
        self
    }
}

/// Where an offload is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// In the device.
    Device,
    /// In software, because.
    Software(Reason),
    /// Nowhere: receive coalescing that the user does not allow, or a gather list that the device copies, because.
    Off(Reason),
}

/// Why the device does not do something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The user does not allow it.
    NotAllowed,
    /// The device is not able to.
    NotCapable,
    /// Splitting needs the checksum of the same IP version, which is not done by the device.
    NeedsChecksum,
    /// The device is able to but refused to switch it on (together with the others).
    Refused,
    /// The device does it wrongly.
    SelfTest,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::NotAllowed => "not allowed by the settings",
            Reason::NotCapable => "the device is not able to",
            Reason::NeedsChecksum => "splitting needs the checksum offload, which is off",
            Reason::Refused => "the device refused to switch it on",
            Reason::SelfTest => "the device failed the self-test",
        })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Device => f.write_str("device"),
            Place::Software(reason) => write!(f, "software ({reason})"),
            Place::Off(reason) => write!(f, "off ({reason})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_and_switch_means_one_feature() {
        for feature in Feature::ALL {
            assert_eq!(Feature::from_name(feature.name()), Some(feature));
            let only = Capabilities::NONE.with(feature, true);
            for other in Feature::ALL {
                assert_eq!(only.has(other), other == feature);
            }
            assert!(!Capabilities::ALL.with(feature, false).has(feature));
        }
        assert_eq!(Feature::from_name("tso"), None);
    }
}
