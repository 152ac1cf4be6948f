//! What a model answers: a figure, the bounds it lies between, and which resources are in the way.

use crate::units::{BitsPerSecond, BytesPerSecond, Nanoseconds};
use serde::Serialize;

/// The unit of the figures of a [`Prediction`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Unit {
    /// Millions of bytes per second.
    #[serde(rename = "MB/s")]
    MegabytesPerSecond,
    /// Millions of bits per second.
    #[serde(rename = "Mb/s")]
    MegabitsPerSecond,
    /// Thousands of millions of bits per second.
    #[serde(rename = "Gb/s")]
    GigabitsPerSecond,
    /// Cycles of the core that reads.
    #[serde(rename = "cycles")]
    Cycles,
    /// Bytes.
    #[serde(rename = "B")]
    Bytes,
    /// Hundredths of the theoretical figure.
    #[serde(rename = "%")]
    Percent,
    /// Requests per second.
    #[serde(rename = "1/s")]
    RequestsPerSecond,
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds,
}

impl Unit {
    /// How the unit is written.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::MegabytesPerSecond => "MB/s",
            Self::MegabitsPerSecond => "Mb/s",
            Self::GigabitsPerSecond => "Gb/s",
            Self::Cycles => "cycles",
            Self::Bytes => "B",
            Self::Percent => "%",
            Self::RequestsPerSecond => "1/s",
            Self::Nanoseconds => "ns",
        }
    }

    /// A rate of bytes in this unit; `None` where this is no unit of rate.
    pub fn of_rate(self, rate: BytesPerSecond) -> Option<f64> {
        match self {
            Self::MegabytesPerSecond => Some(rate.megabytes()),
            Self::MegabitsPerSecond => Some(rate.bits().megabits()),
            Self::GigabitsPerSecond => Some(rate.bits().gigabits()),
            _ => None,
        }
    }
}

/// One thing that holds a transfer back.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bottleneck {
    /// What it is: "DDR3 read window of one TC", "SRIO line", "bridge Br_5".
    pub name: String,
    /// The rate it would allow on its own, in the unit of the prediction; for latencies, the time in it.
    pub rate: f64,
    /// How much of it the predicted transfer takes up: 1 for what limits, less for what has room; 0 to 1.
    pub share: f64,
    /// The arithmetic, with numbers and units: "512 B / 97 ns".
    pub explanation: String,
}

/// What a transfer can be expected to do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    /// What widths and clocks alone allow, before any overhead; what a datasheet calls theoretical.
    pub theoretical: f64,
    /// What the model expects; never above `theoretical` for a rate.
    pub predicted: f64,
    /// The lower bound of the interval that the truth is expected in nine times of ten.
    pub low: f64,
    /// Its upper bound.
    pub high: f64,
    /// The unit of the four figures.
    pub unit: Unit,
    /// What is in the way, the most binding first.
    pub bottlenecks: Vec<Bottleneck>,
}

impl Prediction {
    /// A figure that is known exactly, with no interval: a formula over widths and clocks.
    pub fn exact(value: f64, unit: Unit) -> Self {
        Self { theoretical: value, predicted: value, low: value, high: value, unit, bottlenecks: Vec::new() }
    }

    /// A rate with an interval of a relative half width, and the limits sorted by how binding they are.
    ///
    /// The upper bound never leaves `theoretical`.
    pub fn rate(theoretical: f64, predicted: f64, spread: f64, unit: Unit, limits: Vec<Bottleneck>) -> Self {
        let predicted = predicted.min(theoretical);
        Self {
            theoretical,
            predicted,
            low: (predicted * (1.0 - spread)).max(0.0),
            high: (predicted * (1.0 + spread)).min(theoretical),
            unit,
            bottlenecks: limits,
        }
        .ranked()
    }

    /// The same with the bottlenecks sorted, the most used first.
    #[must_use]
    pub fn ranked(mut self) -> Self {
        self.bottlenecks.sort_by(|a, b| b.share.total_cmp(&a.share));
        self
    }

    /// Predicted over theoretical, 0 to 1 for a rate; 0 where nothing is possible.
    pub fn efficiency(&self) -> f64 {
        if self.theoretical > 0.0 { self.predicted / self.theoretical } else { 0.0 }
    }
}

impl Bottleneck {
    /// A rate limit in bytes per second, as part of a prediction of `predicted` in `unit`.
    ///
    /// The share is the part of the limit that the prediction uses.
    pub fn limit(
        name: impl Into<String>,
        rate: BytesPerSecond,
        predicted: BytesPerSecond,
        unit: Unit,
    ) -> Self {
        Self {
            name: name.into(),
            rate: unit.of_rate(rate).unwrap_or_else(|| rate.value()),
            share: predicted.over(rate).value().clamp(0.0, 1.0),
            explanation: String::new(),
        }
    }

    /// The same with its arithmetic.
    #[must_use]
    pub fn because(mut self, explanation: impl Into<String>) -> Self {
        self.explanation = explanation.into();
        self
    }

    /// The same with a share that is worked out elsewhere; it is kept within 0 and 1.
    #[must_use]
    pub fn with_share(mut self, share: f64) -> Self {
        self.share = share.clamp(0.0, 1.0);
        self
    }

    /// A time that is part of a whole, as a part of a latency or of a transfer.
    pub fn part(name: impl Into<String>, time: Nanoseconds, whole: Nanoseconds) -> Self {
        Self {
            name: name.into(),
            rate: time.value(),
            share: time.over(whole).value().clamp(0.0, 1.0),
            explanation: format!("{time:.2} of {whole:.2}"),
        }
    }

    /// A limit in bits per second.
    pub fn line(name: impl Into<String>, rate: BitsPerSecond, predicted: BitsPerSecond, unit: Unit) -> Self {
        Self::limit(name, rate.bytes(), predicted.bytes(), unit)
    }
}

/// A model of one or more tables of a guide.
///
/// Accuracy, printed tables and the file of predictions all ask through this one method, so that they cannot differ.
pub trait TableModel {
    /// The prediction for the cell in `column` (counted from 1 behind the row's first cell) of the row whose first cell
    /// reads `row`, of the table with this `table` number (or `10gbe`); `None` where the model says nothing on the cell.
    fn cell(&self, table: &str, row: &str, column: usize) -> Option<Prediction>;

    /// The figure of [`Self::cell`] alone, for fits that ask many times.
    fn figure(&self, table: &str, row: &str, column: usize) -> Option<f64> {
        Some(self.cell(table, row, column)?.predicted)
    }
}

/// A number of a model that measurements decide, within what physics allows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FreeParameter {
    /// Where it stands in the chip file: "links.srio.request_latency".
    pub name: String,
    /// Its value, in `unit`.
    pub value: f64,
    /// The least that makes sense.
    pub min: f64,
    /// The most that makes sense.
    pub max: f64,
    /// Its unit with the clock domain: "ns", "cycles @ dsp3".
    pub unit: String,
}

/// Makes a model with other values of its parameters.
pub type Setter<'a, M> = Box<dyn Fn(&[f64]) -> M + 'a>;

/// A model that can be fitted again to a part of the measurements, as cross-validation does.
pub trait Calibrate: TableModel + Sized {
    /// The parameters that measurements decide; each is shared by several cells.
    fn free(&self) -> Vec<FreeParameter>;

    /// The same model with these values, in the order of [`Self::free`].
    #[must_use]
    fn with_free(&self, values: &[f64]) -> Self;

    /// [`Self::with_free`] for who asks many times: what does not depend on the values is worked out once.
    fn setter(&self) -> Setter<'_, Self> {
        Box::new(|values| self.with_free(values))
    }
}
