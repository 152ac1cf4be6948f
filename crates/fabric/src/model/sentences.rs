//! What a guide says of transfers in words, as inequalities that a chip has to meet.

use crate::guide::{Sentence, Statement};
use crate::model::part::part_of;
use crate::model::tables::TRANSFER;
use crate::soc::Soc;

/// The part of a chip that a sentence is about.
pub fn part(sentence: &Sentence) -> String {
    let first = match &sentence.says {
        Statement::Less { less, .. } => less.first(),
        Statement::Alike { transfers, .. } => transfers.first(),
        Statement::Closer { closer, .. } => closer.first(),
    };
    part_of(TRANSFER, first.map_or("", String::as_str))
}

/// Whether the chip does what the sentence says; else what it does instead. `None` for transfers that it cannot do.
pub fn check(soc: &Soc, sentence: &Sentence) -> Option<Result<(), String>> {
    let rates = |all: &[String]| -> Option<Vec<f64>> {
        all.iter().map(|text| Some(crate::ask::answer(soc, text).ok()?.predicted)).collect()
    };
    let bounds = |rates: &[f64]| {
        (rates.iter().copied().fold(f64::INFINITY, f64::min), rates.iter().copied().fold(0.0, f64::max))
    };
    Some(match &sentence.says {
        Statement::Less { less, than, by_percent } => {
            let ((_, most), (least, _)) = (bounds(&rates(less)?), bounds(&rates(than)?));
            let margin = 1.0 + by_percent / 100.0;
            if most * margin <= least {
                Ok(())
            } else {
                Err(format!("{most:.2} and {least:.2}: not less by {by_percent} %"))
            }
        }
        Statement::Alike { transfers, within_percent } => {
            let (least, most) = bounds(&rates(transfers)?);
            let apart = (most / least - 1.0) * 100.0;
            if apart <= *within_percent {
                Ok(())
            } else {
                Err(format!("{least:.2} to {most:.2}: {apart:.1} % apart"))
            }
        }
        Statement::Closer { closer, apart } => {
            let (near, far) = (bounds(&rates(closer)?), bounds(&rates(apart)?));
            let (near, far) = (near.1 - near.0, far.1 - far.0);
            if near < far { Ok(()) } else { Err(format!("{near:.2} apart and {far:.2}")) }
        }
    })
}
