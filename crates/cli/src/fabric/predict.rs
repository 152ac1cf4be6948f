//! `linerate fabric predict`.

use super::args::{Predict, SweepFormat};
use super::change::apply;
use super::error::FabricError;
use super::show::{self, Answer};
use super::{builtin, what_if};
use linerate_fabric::ask::{self, Edma, Transfer};
use linerate_fabric::model::mixture::mix;
use linerate_fabric::model::part::part_of;
use linerate_fabric::model::tables::TRANSFER;
use linerate_fabric::predict::Prediction;
use linerate_fabric::soc::Soc;

/// What the command prints.
pub fn run(args: &Predict) -> Result<String, FabricError> {
    let soc = apply(builtin::soc(&args.soc)?, &args.set)?;
    if let Some(sweep) = &args.sweep {
        return what_if::run(&soc, args, sweep);
    }
    let answers = answers(&soc, &args.transfer, !args.without_setup, args.engine)?;
    match args.format {
        SweepFormat::Text => Ok(show::text(&answers)),
        SweepFormat::Json => Ok(show::json(&answers)),
        SweepFormat::Csv | SweepFormat::Svg => {
            Err(FabricError::value("--format", "csv or svg", "text or json without --sweep"))
        }
    }
}

/// One answer for each question; EDMA transfers are one question together, as they share what they pass.
///
/// With `engine`, EDMA transfers are followed burst by burst too.
pub fn answers(
    soc: &Soc,
    transfers: &[Transfer],
    setup: bool,
    engine: bool,
) -> Result<Vec<Answer>, FabricError> {
    let edma: Vec<&Edma> = transfers
        .iter()
        .filter_map(|transfer| match transfer {
            Transfer::Edma(edma) => Some(edma),
            _ => None,
        })
        .collect();
    let mut answers = Vec::new();
    if !edma.is_empty() {
        let question = edma.iter().map(|transfer| transfer.to_string()).collect::<Vec<_>>().join(" and ");
        let prediction = mixed(soc, "chip", |soc| Ok(ask::edma(soc, &edma, setup)?))?;
        let simulated = if engine { Some(ask::simulate(soc, &edma)?) } else { None };
        answers.push(Answer { question, prediction, simulated });
    }
    for transfer in transfers {
        if matches!(transfer, Transfer::Edma(_)) {
            continue;
        }
        let part = part_of(TRANSFER, &transfer.to_string());
        let prediction = mixed(soc, &part, |soc| Ok(ask::single(soc, transfer)?))?;
        answers.push(Answer { question: transfer.to_string(), prediction, simulated: None });
    }
    Ok(answers)
}

/// The prediction over all that is open of a part, each answer by the weight that the file gives it.
fn mixed(
    soc: &Soc,
    part: &str,
    ask: impl Fn(&Soc) -> Result<Prediction, FabricError>,
) -> Result<Prediction, FabricError> {
    let plain = ask(soc)?;
    if !soc.alternatives.values().any(|open| open.part() == part) {
        return Ok(plain);
    }
    let structures = soc.structures(part).map_err(|error| FabricError::Failed(error.to_string()))?;
    let mut members = Vec::new();
    for structure in structures.iter().filter(|structure| structure.weight > 0.0) {
        members.push((structure.weight, ask(&structure.soc)?));
    }
    Ok(mix(&members, None).unwrap_or(plain))
}
