//! EDMA transfers in closed form: one or several transfer controllers between any two memories.
//!
//! A copy moves at the least of the rates that it passes: the read and write bus of its transfer controller, bridges,
//! ports, memories, and the window of reads under way over the latency of one. Controllers that meet share max-min
//! fairly ([`share`]). A controller works through its transfers one after the other, so the rates hold until one ends;
//! the times of these stretches add up ([`run`]).

mod flow;
mod fluid;
mod resources;
mod shape;
pub mod share;
#[cfg(test)]
mod tests;

pub use flow::{Flow, Mode};
pub use fluid::{Stretch, run};
pub use resources::Resources;
pub use shape::{Shape, ShapeError, Sync};

use crate::predict::{Bottleneck, Prediction, Unit};
use crate::soc::{RouteError, Soc};
use crate::units::{Bytes, BytesPerSecond, Nanoseconds};
use std::fmt;

/// The most transfers of one prediction.
pub const MAX_TRANSFERS: usize = 256;

/// The relative half width of an interval: twice the mean error on the measurements that the parameters are fitted to,
/// and what the guide itself calls measurement accuracy.
const SPREAD: f64 = 0.05;

/// One transfer: who moves what from where to where.
#[derive(Debug, Clone, PartialEq)]
pub struct Transfer {
    /// The transfer controller: "TC0".
    pub controller: String,
    /// The memory that is read: "msmc", "l2.1".
    pub source: String,
    /// The memory that is written.
    pub destination: String,
    /// Its counts, indices and alignment.
    pub shape: Shape,
}

/// Why a transfer cannot be predicted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransferError {
    /// There is nothing to predict, or too much.
    Count(usize),
    /// Its counts or indices are none.
    Shape(ShapeError),
    /// There is no way from a controller to a memory.
    Route(RouteError),
    /// The chip does not say what a model needs; a loaded chip always does.
    Incomplete(String),
}

impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count} transfers; expected 1 to {MAX_TRANSFERS}"),
            Self::Shape(error) => error.fmt(f),
            Self::Route(error) => error.fmt(f),
            Self::Incomplete(what) => write!(f, "the chip file lacks {what}"),
        }
    }
}

impl std::error::Error for TransferError {}

impl From<RouteError> for TransferError {
    fn from(error: RouteError) -> Self {
        Self::Route(error)
    }
}

impl Transfer {
    /// A contiguous transfer of `bytes`, A-synchronised.
    pub fn linear(controller: &str, source: &str, destination: &str, bytes: Bytes) -> Self {
        Self {
            controller: controller.into(),
            source: source.into(),
            destination: destination.into(),
            shape: Shape::linear(bytes),
        }
    }
}

/// Predicts the aggregate rate of transfers that start together: all bytes over the time until the last one ends.
///
/// Transfers of the same controller follow each other in the order given; different controllers work side by side. With
/// `setup`, the time before the first byte counts; the guide's section 5.2 subtracts it.
///
/// # Errors
/// When a transfer has no shape or no way.
pub fn predict(soc: &Soc, transfers: &[Transfer], setup: bool) -> Result<Prediction, TransferError> {
    let ideal = outcome(soc, transfers, Mode::Theoretical, false)?;
    let real = outcome(soc, transfers, Mode::Achievable, setup)?;
    Ok(around(ideal.rate.megabytes(), real.rate.megabytes(), real.bottlenecks))
}

/// As [`predict`], without reasons: for one way of many in which a chip may be.
///
/// # Errors
/// As [`predict`].
pub(crate) fn bounded_rate(
    soc: &Soc,
    transfers: &[Transfer],
    setup: bool,
) -> Result<Prediction, TransferError> {
    let ideal = outcome(soc, transfers, Mode::Theoretical, false)?;
    Ok(around(ideal.rate.megabytes(), rate(soc, transfers, setup)?.megabytes(), Vec::new()))
}

/// The prediction for a rate in MB/s, with the interval that predictions of transfers have.
fn around(theoretical: f64, predicted: f64, bottlenecks: Vec<Bottleneck>) -> Prediction {
    Prediction::rate(theoretical, predicted, SPREAD, Unit::MegabytesPerSecond, bottlenecks)
}

/// The achievable rate alone, without theory, bounds and reasons: for sweeps over many points.
///
/// # Errors
/// As [`predict`].
pub fn rate(soc: &Soc, transfers: &[Transfer], setup: bool) -> Result<BytesPerSecond, TransferError> {
    let (queues, resources) = queues(soc, transfers, Mode::Achievable)?;
    let bytes: Bytes = transfers.iter().map(|transfer| transfer.shape.bytes()).sum();
    let stretches = run(&queues, resources.len(), setup);
    Ok(bytes / stretches.iter().map(|stretch| stretch.time).sum::<Nanoseconds>())
}

/// The achievable rate in MB/s without the time before the first byte, bounds and reasons: for fits, which ask many times and
/// whose measured rates lie below any theory.
///
/// # Errors
/// As [`predict`].
pub fn figure(soc: &Soc, transfers: &[Transfer]) -> Result<f64, TransferError> {
    Ok(rate(soc, transfers, false)?.megabytes())
}

/// What one transfer takes, entered into `resources` that others share.
///
/// # Errors
/// When the transfer has no shape or no way.
pub fn flow_of<'a>(
    soc: &'a Soc,
    transfer: &'a Transfer,
    mode: Mode,
    resources: &mut Resources<'a>,
) -> Result<Flow, TransferError> {
    flow::flow(&flow::Clocks::new(soc), transfer, mode, resources)
}

/// What data takes on one side of a controller's way to the memory that `transfer` reads and writes, as (resource, nanoseconds
/// for each byte); without `via` of the memory alone.
///
/// # Errors
/// When there is no way.
pub fn one_way<'a>(
    soc: &'a Soc,
    transfer: &'a Transfer,
    write: bool,
    via: bool,
    resources: &mut Resources<'a>,
) -> Result<Vec<(usize, f64)>, TransferError> {
    flow::one_way(&flow::Clocks::new(soc), transfer, write, via, resources)
}

/// What a core that reads or writes a memory in pieces of `line` takes of it, as (resource, nanoseconds for each byte).
///
/// # Errors
/// When the chip does not say what the model needs; a loaded chip always does.
pub fn core_costs<'a>(
    soc: &'a Soc,
    memory: &'a str,
    write: bool,
    line: Bytes,
    resources: &mut Resources<'a>,
) -> Result<Vec<(usize, f64)>, TransferError> {
    flow::core_costs(&flow::Clocks::new(soc), memory, write, line, resources)
}

struct Outcome {
    rate: BytesPerSecond,
    bottlenecks: Vec<Bottleneck>,
}

fn outcome(soc: &Soc, transfers: &[Transfer], mode: Mode, setup: bool) -> Result<Outcome, TransferError> {
    let (queues, resources) = queues(soc, transfers, mode)?;
    let stretches = run(&queues, resources.len(), setup);
    let bytes: Bytes = transfers.iter().map(|transfer| transfer.shape.bytes()).sum();
    let time = stretches.iter().map(|stretch| stretch.time).sum();
    let bottlenecks = match mode {
        Mode::Theoretical => Vec::new(),
        Mode::Achievable => fluid::bottlenecks(&queues, &resources, &stretches, time),
    };
    Ok(Outcome { rate: bytes / time, bottlenecks })
}

/// The flows of each controller in order, and the resources that they share.
///
/// # Errors
/// When there are none or too many, or a transfer has no shape or no way.
pub fn queues<'a>(
    soc: &'a Soc,
    transfers: &'a [Transfer],
    mode: Mode,
) -> Result<(Vec<Vec<Flow>>, Resources<'a>), TransferError> {
    if transfers.is_empty() || transfers.len() > MAX_TRANSFERS {
        return Err(TransferError::Count(transfers.len()));
    }
    let clocks = flow::Clocks::new(soc);
    let mut resources = Resources::default();
    let mut queues: Vec<(&str, Vec<Flow>)> = Vec::new();
    for transfer in transfers {
        let flow = flow::flow(&clocks, transfer, mode, &mut resources)?;
        match queues.iter_mut().find(|(controller, _)| *controller == transfer.controller) {
            Some((_, queue)) => queue.push(flow),
            None => queues.push((&transfer.controller, vec![flow])),
        }
    }
    Ok((queues.into_iter().map(|(_, queue)| queue).collect(), resources))
}
