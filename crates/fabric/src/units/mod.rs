//! Quantities with their unit: nothing is added to, or divided by, what it has no business with.
//!
//! Arithmetic exists only where the dimensions agree: bytes over nanoseconds are bytes per second, a width times a
//! frequency is a rate, and so on. Adding bytes to nanoseconds does not compile. A chip file writes each quantity as text
//! with its unit ("256 bit", "97 ns", "1.2 GHz"); a missing or a wrong unit is refused on load.
//!
//! ```
//! use linerate_fabric::units::{Bytes, Nanoseconds};
//! assert_eq!((Bytes::new(512.0) / Nanoseconds::new(100.0)).megabytes(), 5120.0);
//! ```
//!
//! ```compile_fail
//! use linerate_fabric::units::{Bytes, Nanoseconds};
//! let nonsense = Bytes::new(512.0) + Nanoseconds::new(100.0);
//! ```

mod parse;
#[cfg(test)]
mod tests;

pub use parse::{UnitError, split_number};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, Div, Mul, Sub};

/// Declares a quantity: an `f64` in one unit, that adds to and compares with its own kind only.
macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident, $unit:literal, $min:expr, $max:expr, [$($suffix:literal => $factor:expr),+ $(,)?]) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
        pub struct $name(f64);

        impl $name {
            /// The unit of [`Self::value`].
            pub const UNIT: &'static str = $unit;
            /// Less than this in a file is taken for a mistake.
            pub const MIN: f64 = $min;
            /// More than this in a file is taken for a mistake.
            pub const MAX: f64 = $max;
            /// None of it.
            pub const ZERO: Self = Self(0.0);

            /// This much, in [`Self::UNIT`].
            pub const fn new(value: f64) -> Self {
                Self(value)
            }

            /// The number, in [`Self::UNIT`].
            pub const fn value(self) -> f64 {
                self.0
            }

            /// The lesser of two.
            #[must_use]
            pub fn min(self, other: Self) -> Self {
                Self(self.0.min(other.0))
            }

            /// The greater of two.
            #[must_use]
            pub fn max(self, other: Self) -> Self {
                Self(self.0.max(other.0))
            }

            /// How many times `other` goes into this; 0 where `other` is nothing.
            pub fn over(self, other: Self) -> Ratio {
                Ratio::new(if other.0 == 0.0 { 0.0 } else { self.0 / other.0 })
            }
        }

        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }

        impl Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }

        impl Mul<f64> for $name {
            type Output = Self;
            fn mul(self, factor: f64) -> Self {
                Self(self.0 * factor)
            }
        }

        impl Div<f64> for $name {
            type Output = Self;
            fn div(self, divisor: f64) -> Self {
                Self(self.0 / divisor)
            }
        }

        impl std::iter::Sum for $name {
            fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
                Self(all.map(|one| one.0).sum())
            }
        }

        impl fmt::Display for $name {
            /// The number in [`Self::UNIT`], exactly; with `{:#}` in the largest unit that it has a whole of, to four
            /// digits.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                if f.alternate() {
                    return parse::scaled(f, self.0, &[$(($suffix, $factor)),+]);
                }
                match f.precision() {
                    Some(digits) => write!(f, "{:.*} {}", digits, self.0, $unit),
                    None => write!(f, "{} {}", self.0, $unit),
                }
            }
        }

        impl std::str::FromStr for $name {
            type Err = UnitError;
            fn from_str(text: &str) -> Result<Self, UnitError> {
                parse::quantity(text, $unit, $min..=$max, &[$(($suffix, $factor)),+]).map(Self)
            }
        }

        impl TryFrom<String> for $name {
            type Error = UnitError;
            fn try_from(text: String) -> Result<Self, UnitError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(quantity: $name) -> String {
                quantity.to_string()
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(parse::Text::new(concat!(
                    "text with a unit, such as \"1 ", $unit, "\""
                )))
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "string",
                    "description": concat!("a number and a unit, as in \"1 ", $unit, "\""),
                    "pattern": parse::pattern(&[$($suffix),+]),
                })
            }
        }
    };
}

quantity!(
    /// A time in nanoseconds, up to an hour.
    Nanoseconds, "ns", 0.0, 3.6e12,
    ["ps" => 1e-3, "ns" => 1.0, "us" => 1e3, "ms" => 1e6, "s" => 1e9]
);
quantity!(
    /// An amount of data in bytes.
    Bytes, "B", 0.0, 1e15,
    ["B" => 1.0, "KiB" => 1024.0, "MiB" => 1_048_576.0, "GiB" => 1_073_741_824.0]
);
quantity!(
    /// What a bus carries in one cycle of its clock, in bytes.
    BytesPerCycle, "B/cycle", 0.125, 65_536.0,
    ["B/cycle" => 1.0, "bit" => 0.125]
);
quantity!(
    /// A frequency in hertz.
    Hertz, "Hz", 1.0, 1e12,
    ["Hz" => 1.0, "kHz" => 1e3, "MHz" => 1e6, "GHz" => 1e9]
);
quantity!(
    /// A rate of data in bytes per second.
    BytesPerSecond, "B/s", 1.0, 1e15,
    ["B/s" => 1.0, "kB/s" => 1e3, "MB/s" => 1e6, "GB/s" => 1e9]
);
quantity!(
    /// A rate of bits on a wire, in bits per second.
    BitsPerSecond, "bit/s", 1.0, 1e15,
    ["bit/s" => 1.0, "kbit/s" => 1e3, "Mbit/s" => 1e6, "Gbit/s" => 1e9, "Gbps" => 1e9, "Mbps" => 1e6, "Gbaud" => 1e9]
);
quantity!(
    /// A share of a whole, or how many times one quantity goes into another.
    Ratio, "x", 0.0, 1e9,
    ["x" => 1.0, "%" => 0.01]
);

/// The name of a clock of the chip.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ClockId(pub String);

impl fmt::Display for ClockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A number of cycles of one clock, written "3 cycles @ dsp3".
///
/// Cycles of different clocks do not add: they become time first ([`Cycles::at`]).
#[derive(Debug, Clone, PartialEq)]
pub struct Cycles {
    /// How many; fractions are averages.
    pub count: f64,
    /// Of which clock.
    pub clock: ClockId,
}

impl Cycles {
    /// The time these take when their clock runs at `frequency`.
    pub fn at(&self, frequency: Hertz) -> Nanoseconds {
        frequency.period() * self.count
    }
}

impl fmt::Display for Cycles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cycles @ {}", self.count, self.clock)
    }
}

impl std::str::FromStr for Cycles {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse::cycles(text)
    }
}

impl<'de> Deserialize<'de> for Cycles {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(parse::Text::new("cycles of a named clock, such as \"3 cycles @ dsp3\""))
    }
}

impl Serialize for Cycles {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Cycles {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Cycles".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "cycles of a named clock, as in \"3 cycles @ dsp3\"",
            "pattern": "^[0-9]+(\\.[0-9]+)? cycles? @ [A-Za-z0-9_]+$",
        })
    }
}

impl Hertz {
    /// The time of one cycle; infinite at 0 Hz, which no checked chip has.
    pub fn period(self) -> Nanoseconds {
        Nanoseconds::new(1e9 / self.0)
    }
}

impl BytesPerSecond {
    /// In the millions of bytes per second that the guide prints.
    pub fn megabytes(self) -> f64 {
        self.0 / 1e6
    }

    /// The same rate counted in bits.
    pub fn bits(self) -> BitsPerSecond {
        BitsPerSecond::new(self.0 * 8.0)
    }
}

impl BitsPerSecond {
    /// The same rate counted in bytes.
    pub fn bytes(self) -> BytesPerSecond {
        BytesPerSecond::new(self.0 / 8.0)
    }

    /// In the millions of bits per second that the guide prints.
    pub fn megabits(self) -> f64 {
        self.0 / 1e6
    }

    /// In thousands of millions of bits per second.
    pub fn gigabits(self) -> f64 {
        self.0 / 1e9
    }
}

impl Mul<Hertz> for BytesPerCycle {
    type Output = BytesPerSecond;
    fn mul(self, frequency: Hertz) -> BytesPerSecond {
        BytesPerSecond::new(self.0 * frequency.0)
    }
}

impl Div<Nanoseconds> for Bytes {
    type Output = BytesPerSecond;
    fn div(self, time: Nanoseconds) -> BytesPerSecond {
        BytesPerSecond::new(self.0 * 1e9 / time.0)
    }
}

impl Div<BytesPerSecond> for Bytes {
    type Output = Nanoseconds;
    fn div(self, rate: BytesPerSecond) -> Nanoseconds {
        Nanoseconds::new(self.0 * 1e9 / rate.0)
    }
}

impl Mul<Nanoseconds> for BytesPerSecond {
    type Output = Bytes;
    fn mul(self, time: Nanoseconds) -> Bytes {
        Bytes::new(self.0 * time.0 / 1e9)
    }
}

impl Mul<Ratio> for BytesPerSecond {
    type Output = BytesPerSecond;
    fn mul(self, share: Ratio) -> BytesPerSecond {
        BytesPerSecond::new(self.0 * share.0)
    }
}

impl Mul<Ratio> for BitsPerSecond {
    type Output = BitsPerSecond;
    fn mul(self, share: Ratio) -> BitsPerSecond {
        BitsPerSecond::new(self.0 * share.0)
    }
}
