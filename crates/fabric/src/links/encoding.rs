//! How a serial line codes data: so many line bits for so many data bits.

use crate::units::{BitsPerSecond, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::fmt;
use std::str::FromStr;

/// A block code, written "8b10b", "8b9b" or "64b66b".
///
/// IEEE 802.3 clause 36 (8b/10b, also that of PCIe 2 and of RapidIO) spends 10 line bits on 8 data bits; clause 49 spends
/// 66 on 64. The guide (section 8) describes HyperLink's scrambled code as equivalent to 8b/9b.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoding {
    data_bits: u16,
    line_bits: u16,
}

impl Encoding {
    /// No expansion: the given rate is the rate of data, as Ethernet names its rates.
    pub const PLAIN: Self = Self { data_bits: 1, line_bits: 1 };

    /// A code of `data_bits` in `line_bits`; `None` where there are more of the former, or none.
    pub const fn new(data_bits: u16, line_bits: u16) -> Option<Self> {
        if data_bits == 0 || line_bits < data_bits { None } else { Some(Self { data_bits, line_bits }) }
    }

    /// Data bits per line bit, 0 to 1.
    pub fn efficiency(self) -> Ratio {
        Ratio::new(f64::from(self.data_bits) / f64::from(self.line_bits))
    }

    /// What a lane of this baud rate carries in data.
    pub fn data_rate(self, line: BitsPerSecond) -> BitsPerSecond {
        line * self.efficiency()
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}b{}b", self.data_bits, self.line_bits)
    }
}

impl FromStr for Encoding {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no block code; expected \"8b10b\" or the like");
        let rest = text.strip_suffix('b').ok_or_else(wrong)?;
        let (data, line) = rest.split_once('b').ok_or_else(wrong)?;
        let number = |digits: &str| digits.parse::<u16>().ok().filter(|bits| *bits <= 1024);
        let (data, line) = number(data).zip(number(line)).ok_or_else(wrong)?;
        Self::new(data, line).ok_or_else(wrong)
    }
}

impl Serialize for Encoding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Encoding {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for Encoding {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Encoding".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "data bits and line bits of a block code, as in \"8b10b\"",
            "pattern": "^[0-9]+b[0-9]+b$",
        })
    }
}
