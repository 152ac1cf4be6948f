//! What work costs a core: cycles, and cycles per byte.

use crate::units::{Hertz, Nanoseconds, UnitError, split_number};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::fmt;
use std::str::FromStr;

/// More than this is taken for a mistake.
const MAX: f64 = 1e12;

/// Declares a cost: a number of one unit, of the clock of the core that does the work.
macro_rules! cost {
    ($(#[$doc:meta])* $name:ident, $unit:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
        pub struct $name(f64);

        impl $name {
            /// This many.
            pub const fn new(count: f64) -> Self {
                Self(count)
            }

            /// How many.
            pub const fn count(self) -> f64 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{} {}", self.0, $unit)
            }
        }

        impl FromStr for $name {
            type Err = UnitError;

            fn from_str(text: &str) -> Result<Self, UnitError> {
                parse(text, $unit).map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "string",
                    "description": concat!("a number and its unit, as in \"12 ", $unit, "\""),
                    "pattern": concat!("^[0-9]+(\\.[0-9]+)? ?", $unit, "$"),
                })
            }
        }
    };
}

cost!(
    /// Cycles of the core that does the work.
    CoreCycles,
    "cycles"
);
cost!(
    /// Cycles for each byte.
    CyclesPerByte,
    "cycles/B"
);

impl CoreCycles {
    /// The time these take on a core of this clock.
    pub fn at(self, clock: Hertz) -> Nanoseconds {
        clock.period() * self.0
    }
}

fn parse(text: &str, unit: &str) -> Result<f64, UnitError> {
    let (number, rest) = split_number(text);
    let units = || unit.to_owned();
    let Ok(value) = number.parse::<f64>() else {
        return Err(UnitError::NoNumber { text: text.into(), units: units() });
    };
    if rest.is_empty() {
        return Err(UnitError::NoUnit { text: text.into(), units: units() });
    }
    if rest != unit {
        return Err(UnitError::WrongUnit { unit: rest.into(), units: units() });
    }
    if !(0.0..=MAX).contains(&value) {
        return Err(UnitError::Absurd {
            text: text.into(),
            min: format!("0 {unit}"),
            max: format!("{MAX} {unit}"),
        });
    }
    Ok(value)
}
