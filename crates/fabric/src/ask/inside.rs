//! Transfers inside a chip, from their text form to a prediction.

use super::outside::{controllers, refused, unknown};
use super::{AskError, Edma, Sync};
use crate::edma::{self, Shape};
use crate::engine::{self, Simulated};
use crate::hierarchy::{self, Question};
use crate::memory::{self, Pattern};
use crate::predict::Prediction;
use crate::soc::Soc;

/// The aggregate of EDMA transfers that start together. With `setup`, the time before the first byte counts.
///
/// # Errors
/// What the chip does not have.
pub fn edma(soc: &Soc, transfers: &[&Edma], setup: bool) -> Result<Prediction, AskError> {
    edma::predict(soc, &edma_transfers(soc, transfers)?, setup).map_err(refused)
}

/// The same by following each burst; without the time before the first byte.
///
/// # Errors
/// As [`edma()`], and more bursts than are followed.
pub fn simulate(soc: &Soc, transfers: &[&Edma]) -> Result<Simulated, AskError> {
    engine::simulate(soc, &edma_transfers(soc, transfers)?).map_err(refused)
}

/// The transfers as the model knows them: both ways are two of them.
///
/// # Errors
/// Controllers and memories that the chip does not have.
pub fn edma_transfers(soc: &Soc, transfers: &[&Edma]) -> Result<Vec<edma::Transfer>, AskError> {
    let mut asked = Vec::new();
    for transfer in transfers {
        let one = edma::Transfer {
            controller: controller(soc, &transfer.controller)?,
            source: endpoint(soc, &transfer.from)?,
            destination: endpoint(soc, &transfer.to)?,
            shape: shape(transfer),
        };
        let back = transfer.both_ways.then(|| edma::Transfer {
            source: one.destination.clone(),
            destination: one.source.clone(),
            ..one.clone()
        });
        asked.push(one);
        asked.extend(back);
    }
    Ok(asked)
}

fn shape(transfer: &Edma) -> Shape {
    let index = transfer.index_bytes.unwrap_or(transfer.a_bytes);
    Shape {
        sync: match transfer.sync {
            Sync::A => edma::Sync::A,
            Sync::Ab => edma::Sync::Ab,
        },
        acnt: transfer.a_bytes,
        bcnt: transfer.b_count,
        ccnt: transfer.c_count,
        source_index: index,
        destination_index: index,
        source_offset: transfer.misaligned_bytes,
        destination_offset: transfer.misaligned_bytes,
    }
}

/// The name of a transfer controller as the chip's description spells it.
fn controller(soc: &Soc, asked: &str) -> Result<String, AskError> {
    let mut names = controllers(soc);
    match names.find(|name| name.eq_ignore_ascii_case(asked)) {
        Some(name) => Ok(name.to_owned()),
        None => Err(unknown("transfer controller", asked, controllers(soc))),
    }
}

/// The name of a memory as the chip's description spells it, with its number where there are several: one name for each, as
/// names tell whether two transfers share a memory.
pub(crate) fn endpoint(soc: &Soc, asked: &str) -> Result<String, AskError> {
    let (kind, number) = asked.split_once('.').unwrap_or((asked, "0"));
    let Some((name, memory)) = soc.endpoints.iter().find(|(name, _)| name.eq_ignore_ascii_case(kind)) else {
        return Err(unknown("memory", asked, soc.endpoints.keys().map(String::as_str)));
    };
    match number.parse::<u32>() {
        Ok(0) if memory.count == 1 => Ok(name.clone()),
        Ok(number) if number < memory.count => Ok(format!("{name}.{number}")),
        _ => {
            let last = memory.count.saturating_sub(1);
            Err(AskError(format!("no memory '{asked}'; expected {name}.0 to {name}.{last}")))
        }
    }
}

/// The cycles of a core's reads.
///
/// # Errors
/// A core or source that the chip does not have.
pub fn read(soc: &Soc, core: &str, memory: &str, pattern: Pattern) -> Result<Prediction, AskError> {
    let Some((core, described)) = soc.cores.iter().find(|(name, _)| name.eq_ignore_ascii_case(core)) else {
        return Err(unknown("core", core, soc.cores.keys().map(String::as_str)));
    };
    match described.reads.keys().find(|name| name.eq_ignore_ascii_case(memory)) {
        Some(source) => memory::read(soc, core, source, pattern).map_err(refused),
        None => Err(unknown("memory", memory, described.reads.keys().map(String::as_str))),
    }
}

/// What a core's loads and stores in a working set take.
///
/// # Errors
/// A core that the chip does not have, or whose levels it does not describe.
pub fn set(soc: &Soc, core: &str, question: Question) -> Result<Prediction, AskError> {
    hierarchy::predict(soc, of_chip(soc, core)?, question).map_err(refused)
}

/// The figure of [`set`] alone.
///
/// # Errors
/// As [`set`].
pub fn set_figure(soc: &Soc, core: &str, question: Question) -> Result<f64, AskError> {
    hierarchy::figure(soc, of_chip(soc, core)?, question).map_err(refused)
}

/// The name of a core as the chip's description spells it.
fn of_chip<'a>(soc: &'a Soc, core: &str) -> Result<&'a str, AskError> {
    match soc.cores.keys().find(|name| name.eq_ignore_ascii_case(core)) {
        Some(core) => Ok(core),
        None => Err(unknown("core", core, soc.cores.keys().map(String::as_str))),
    }
}
