//! Values that scenarios and flags share: each parses from text and says what it wanted when it cannot.

use linerate_nic::Capabilities;
use linerate_transport::Congestion;
use serde::de::{self, Visitor};
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

/// A text that is not a value; the flag or key it stood at is named by whoever parsed it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ValueError {
    /// What was expected, to follow "expected".
    expected: String,
}

impl ValueError {
    /// Such a text, where `expected` was expected.
    pub fn new(expected: impl Into<String>) -> Self {
        ValueError { expected: expected.into() }
    }
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}", self.expected)
    }
}

impl std::error::Error for ValueError {}

/// Deserializes a value from the text that its flag would take.
#[macro_export]
macro_rules! from_text {
    ($($name:ty),*) => {$(
        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str($crate::values::Text::new())
            }
        }
    )*};
}

from_text!(Offload, CongestionName);

/// Reads a value from text, for [`from_text!`].
pub struct Text<T>(PhantomData<T>);

impl<T> Text<T> {
    /// A reader.
    #[allow(clippy::new_without_default, reason = "nobody but the macro makes one")]
    pub fn new() -> Self {
        Text(PhantomData)
    }
}

impl<T: FromStr<Err = ValueError>> Visitor<'_> for Text<T> {
    type Value = T;

    /// Nothing is no value of any of these types, so that its error tells the form.
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match "".parse::<T>() {
            Err(error) => write!(f, "a text in quotes: {}", error.expected),
            Ok(_) => f.write_str("a text in quotes"),
        }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(|error| E::custom(format_args!("invalid value {text:?}: {error}")))
    }
}

/// Which offloads may be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offload(pub Capabilities);

impl Offload {
    const NAMES: &str = "all, none, or a comma-separated list of tx-checksum, rx-checksum, tso, gro, gather";
}

impl FromStr for Offload {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        match text {
            "all" => return Ok(Offload(Capabilities::ALL)),
            "none" => return Ok(Offload(Capabilities::NONE)),
            _ => {}
        }
        let mut wanted = Capabilities::NONE;
        for name in text.split(',') {
            match name.trim() {
                "tx-checksum" => {
                    wanted.tx_checksum4 = true;
                    wanted.tx_checksum6 = true;
                }
                "rx-checksum" => wanted.rx_checksum = true,
                "tso" => {
                    wanted.tso4 = true;
                    wanted.tso6 = true;
                }
                "gro" => wanted.rx_coalescing = true,
                "gather" => wanted.gather = true,
                _ => return Err(ValueError::new(Offload::NAMES)),
            }
        }
        Ok(Offload(wanted))
    }
}

impl fmt::Display for Offload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = self.0;
        let names = [
            ("tx-checksum", on.tx_checksum4 || on.tx_checksum6),
            ("rx-checksum", on.rx_checksum),
            ("tso", on.tso4 || on.tso6),
            ("gro", on.rx_coalescing),
            ("gather", on.gather),
        ];
        let names: Vec<&str> = names.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect();
        f.write_str(&if names.is_empty() { "none".to_owned() } else { names.join(",") })
    }
}

/// A congestion control algorithm: `cubic`, `newreno` (or `new-reno`, `reno`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CongestionName(pub Congestion);

impl FromStr for CongestionName {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        Congestion::from_name(text)
            .map(CongestionName)
            .ok_or_else(|| ValueError::new("cubic or reno (or newreno, new-reno)"))
    }
}
