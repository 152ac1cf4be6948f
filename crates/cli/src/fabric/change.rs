//! What if: keys of a description set to other values, one of them swept over a range.

use super::error::FabricError;
use linerate_fabric::soc::Soc;
use linerate_fabric::units::split_number;
use std::fmt;
use std::str::FromStr;

/// Points of a sweep that says nothing else.
pub const DEFAULT_POINTS: u32 = 9;

/// The most points of a sweep.
pub const MAX_POINTS: u32 = 1000;

/// A key and its value, as `KEY=VALUE`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    /// The key.
    pub key: String,
    /// The value.
    pub value: String,
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
        match parts {
            Some((key, value)) if !key.is_empty() && !value.is_empty() => {
                Ok(Setting { key: key.to_owned(), value: value.to_owned() })
            }
            _ => Err("expected KEY=VALUE such as clock.ddr=400MHz".to_owned()),
        }
    }
}

/// A key and the range that it goes through, as `KEY=FROM..TO`.
#[derive(Clone, PartialEq, Debug)]
pub struct Sweep {
    /// The key.
    pub key: String,
    from: f64,
    to: f64,
    /// Behind each number.
    pub unit: String,
}

impl FromStr for Sweep {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected = || "expected KEY=FROM..TO such as clock.ddr=400MHz..800MHz".to_owned();
        let Setting { key, value } = text.parse().map_err(|_| expected())?;
        let (from, to) = value.split_once("..").ok_or_else(expected)?;
        let ((from, first), (to, unit)) = (split_number(from), split_number(to));
        let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
        let (from, to) = number(from).zip(number(to)).ok_or_else(expected)?;
        if !first.is_empty() && first != unit {
            return Err(format!("the range goes from '{first}' to '{unit}'; expected one unit"));
        }
        Ok(Sweep { key, from, to, unit: unit.to_owned() })
    }
}

impl Sweep {
    /// The numbers of a sweep, in equal steps.
    pub fn points(&self, count: u32) -> Vec<f64> {
        let last = count.max(2) - 1;
        (0..=last)
            .map(|at| {
                let share = f64::from(at) / f64::from(last);
                // Without the last digits that only the division makes.
                let number = self.from + (self.to - self.from) * share;
                (number * 1e9).round() / 1e9
            })
            .collect()
    }

    /// The setting of a point.
    pub fn setting(&self, number: f64) -> Setting {
        Setting { key: self.key.clone(), value: format!("{number} {}", self.unit).trim().to_owned() }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

/// The chip with all settings made.
pub fn apply(soc: Soc, settings: &[Setting]) -> Result<Soc, FabricError> {
    if settings.is_empty() {
        return Ok(soc);
    }
    let changes: Vec<(String, String)> =
        settings.iter().map(|one| (one.key.clone(), one.value.clone())).collect();
    soc.with(&changes).map_err(|error| {
        let all: Vec<String> = settings.iter().map(Setting::to_string).collect();
        FabricError::Change { name: "--set", value: all.join(" "), why: error.what }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        let check = |text: &str, expected: Result<&[f64], &str>| match (text.parse::<Sweep>(), expected) {
            (Ok(sweep), Ok(points)) => assert_eq!(sweep.points(3), points, "{text}"),
            (Err(error), Err(said)) => assert!(error.contains(said), "{text}: {error}"),
            (found, _) => panic!("{text}: {found:?}"),
        };
        check("clock.ddr=400MHz..800MHz", Ok(&[400.0, 600.0, 800.0]));
        check("clock.ddr=400..800MHz", Ok(&[400.0, 600.0, 800.0]));
        check("cores.x.count=1..3", Ok(&[1.0, 2.0, 3.0]));
        check("clock.ddr=400", Err("expected KEY=FROM..TO"));
        check("clock.ddr=a..b", Err("expected KEY=FROM..TO"));
        check("clock.ddr=1GHz..800MHz", Err("one unit"));
        assert_eq!("k=1GHz..2GHz".parse::<Sweep>().unwrap().setting(1.5).to_string(), "k=1.5 GHz");
        assert!("k".parse::<Setting>().is_err() && "=1".parse::<Setting>().is_err());
    }
}
