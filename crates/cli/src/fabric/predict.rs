//! `linerate fabric predict`.

use super::args::{Format, Predict};
use super::error::FabricError;
use super::show::{self, Answer};
use super::builtin;
use linerate_fabric::ask::{self, Edma, Transfer};
use linerate_fabric::soc::Soc;

/// What the command prints.
pub fn run(args: &Predict) -> Result<String, FabricError> {
    let soc = builtin::soc(&args.soc)?;
    let answers = answers(&soc, &args.transfer, !args.without_setup, args.engine)?;
    Ok(match args.format {
        Format::Text => show::text(&answers),
        Format::Json => show::json(&answers),
    })
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
        let prediction = ask::edma(soc, &edma, setup)?;
        let simulated = if engine { Some(ask::simulate(soc, &edma)?) } else { None };
        answers.push(Answer { question, prediction, simulated });
    }
    for transfer in transfers {
        if matches!(transfer, Transfer::Edma(_)) {
            continue;
        }
        let prediction = ask::single(soc, transfer)?;
        answers.push(Answer { question: transfer.to_string(), prediction, simulated: None });
    }
    Ok(answers)
}
