//! `linerate fabric explain`: the way of a transfer with the room of each part of it, and what to change first.

use super::args::{Explain, ExplainFormat};
use super::change::apply;
use super::error::FabricError;
use super::show::{self, figure};
use super::{builtin, predict, way};
use crate::apart::apart;
use linerate_fabric::ask::advice::{self, Advice};
use linerate_fabric::ask::ready;
use std::fmt::Write as _;

/// How many pieces of advice are given.
const ADVICE: usize = 5;

/// What the command prints.
pub fn run(args: &Explain) -> Result<String, FabricError> {
    apart(&builtin::files(&[&args.soc]), &[("--output", args.output.as_deref())])?;
    let soc = apply(builtin::soc(&args.soc)?, &args.set)?;
    let answers = predict::answers(&soc, std::slice::from_ref(&args.transfer), true, false)?;
    let Some(answer) = answers.into_iter().next() else { return Ok(String::new()) };
    let advice = advice::of(&soc, &args.transfer.to_string(), ADVICE);
    let text = match args.format {
        ExplainFormat::Text => text(&answer, &advice),
        ExplainFormat::Svg => {
            // Where ways are limited differently, the picture is of the likeliest: a mean of several has no way.
            let ways = ready::joined(&answer.said);
            let likeliest = ways.first().filter(|_| ways.len() > 1);
            let shown = likeliest.map_or(&answer.prediction, |(_, way)| &way.prediction);
            way::picture(&soc, &args.transfer, shown, &below(&answer, &advice))
        }
    };
    match &args.output {
        None => Ok(text),
        Some(path) => {
            let to = path.display().to_string();
            std::fs::write(path, &text).map_err(|why| FabricError::Write { to: to.clone(), why })?;
            Ok(format!("wrote {to}\n"))
        }
    }
}

fn text(answer: &show::Answer, advice: &[Advice]) -> String {
    let mut text = show::text(std::slice::from_ref(answer));
    text.push_str(if advice.is_empty() {
        "nothing in the description that may be changed alone helps by 1 %\n"
    } else {
        "what to change first\n"
    });
    for (place, one) in advice.iter().enumerate() {
        let _ = writeln!(text, "  {:>2}. {}", place + 1, said(one));
    }
    text
}

/// What stands below the picture.
fn below(answer: &show::Answer, advice: &[Advice]) -> Vec<String> {
    let mut lines = Vec::new();
    for open in &answer.open {
        lines.push(format!("open: {}", open.question));
        for (choice, weight, low, high) in &open.answers {
            let (low, high) = (figure(*low), figure(*high));
            let range = if low == high { low } else { format!("{low} to {high}") };
            let unit = answer.prediction.unit.symbol();
            lines.push(format!("  if {choice}: {range} {unit} (counts {:.0} %)", weight * 100.0));
        }
        lines.push(format!("  to decide, measure {}", open.decides));
    }
    lines.push(if advice.is_empty() {
        "nothing that may be changed alone helps by 1 %".to_owned()
    } else {
        "what to change first".to_owned()
    });
    lines.extend(advice.iter().enumerate().map(|(place, one)| format!("  {}. {}", place + 1, said(one))));
    lines
}

fn said(one: &Advice) -> String {
    let more = match one.keys.len().saturating_sub(1) {
        0 => String::new(),
        1 => " (or 1 other)".to_owned(),
        others => format!(" (or {others} others)"),
    };
    let key = one.keys.first().map_or("", String::as_str);
    let (to, from) = (plain(&one.to), plain(&one.from));
    format!("{key}: {to} instead of {from} gives {:.1} % more{more}", one.gain * 100.0)
}

/// A frequency in MHz, as descriptions have it; anything else as it is.
fn plain(value: &str) -> String {
    match value.strip_suffix(" Hz").and_then(|number| number.parse::<f64>().ok()) {
        Some(hertz) => format!("{} MHz", (hertz / 1e3).round() / 1e3),
        None => value.to_owned(),
    }
}
