//! `linerate fabric predict`.

use super::args::{Predict, SweepFormat};
use super::change::apply;
use super::error::FabricError;
use super::show::{self, Answer};
use super::{builtin, what_if};
use linerate_fabric::ask::ready::{Asked, Ready};
use linerate_fabric::ask::{self, Edma, Transfer};
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
        SweepFormat::Csv => Err(FabricError::value("--format", "csv", "text or json without --sweep")),
        SweepFormat::Svg => Err(FabricError::value("--format", "svg", "text or json without --sweep")),
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
    let ready = Ready::new(soc);
    let mut answers = Vec::new();
    if !edma.is_empty() {
        let question = edma.iter().map(|transfer| transfer.to_string()).collect::<Vec<_>>().join(" and ");
        let simulated = if engine { Some(ask::simulate(soc, &edma)?) } else { None };
        answers.push(Answer { simulated, ..answer(&ready, question, Asked::Together(&edma, setup))? });
    }
    for transfer in transfers {
        if !matches!(transfer, Transfer::Edma(_)) {
            answers.push(answer(&ready, transfer.to_string(), Asked::One(transfer))?);
        }
    }
    Ok(answers)
}

/// The mixture of all that is open on the path, and what each way says where they differ.
fn answer(ready: &Ready, question: String, asked: Asked<'_>) -> Result<Answer, FabricError> {
    let prediction = ready.predict(asked)?;
    let said = ready.said(asked)?;
    let open = ready.undecided(&said);
    let said = if open.is_empty() { Vec::new() } else { said };
    Ok(Answer { question, prediction, simulated: None, open, said })
}
