//! `linerate fabric explain`: the way of a transfer with the room of each part of it, and what to change first.

use super::args::{Explain, ExplainFormat};
use super::change::apply;
use super::error::FabricError;
use super::page::escape;
use super::show::{self, figure};
use super::{builtin, predict};
use linerate_fabric::ask::advice::{self, Advice};
use linerate_fabric::predict::{Bottleneck, Prediction};
use std::fmt::Write as _;

/// How many pieces of advice are given.
const ADVICE: usize = 5;
/// The picture, in its own units.
const WIDTH: usize = 720;
const ROW: usize = 46;
const HEAD: usize = 64;

/// What the command prints.
pub fn run(args: &Explain) -> Result<String, FabricError> {
    let soc = apply(builtin::soc(&args.soc)?, &args.set)?;
    let answers = predict::answers(&soc, std::slice::from_ref(&args.transfer), true, false)?;
    let Some(answer) = answers.into_iter().next() else { return Ok(String::new()) };
    let advice = advice::of(&soc, &args.transfer.to_string(), ADVICE);
    let text = match args.format {
        ExplainFormat::Text => text(&answer, &advice),
        ExplainFormat::Svg => svg(&answer.question, &answer.prediction, &advice),
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

fn said(one: &Advice) -> String {
    let more =
        if one.keys.len() > 1 { format!(" (or {} others)", one.keys.len() - 1) } else { String::new() };
    let key = one.keys.first().map_or("", String::as_str);
    format!("{key}: {} instead of {} gives {:.1} % more{more}", one.to, one.from, one.gain * 100.0)
}

/// The rooms from top to bottom, each a bar as full as the transfer makes it.
fn svg(question: &str, found: &Prediction, advice: &[Advice]) -> String {
    let rooms: Vec<&Bottleneck> = found.bottlenecks.iter().collect();
    let height = HEAD + ROW * rooms.len() + 34 + 20 * advice.len().max(1);
    let unit = found.unit.symbol();
    let title = escape(question);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         font-family=\"sans-serif\" font-size=\"13\"><title>{title}</title>\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\
         <text x=\"16\" y=\"26\" font-weight=\"bold\">{title}</text>\
         <text x=\"16\" y=\"46\">{} {unit}, between {} and {}</text>",
        figure(found.predicted),
        figure(found.low),
        figure(found.high)
    );
    for (place, room) in rooms.iter().enumerate() {
        let top = HEAD + place * ROW;
        let full = (room.share * 668.0).clamp(1.0, 668.0);
        let colour = if room.share >= 0.995 { "#b3261e" } else { "#4a7fb5" };
        let _ = write!(
            svg,
            "<rect x=\"16\" y=\"{}\" width=\"668\" height=\"20\" fill=\"#eef1f4\" stroke=\"#8a949e\"/>\
             <rect x=\"16\" y=\"{}\" width=\"{full:.1}\" height=\"20\" fill=\"{colour}\"/>\
             <text x=\"16\" y=\"{}\">{}: {:.1} %</text>\
             <text x=\"684\" y=\"{}\" text-anchor=\"end\" fill=\"#44505c\">{}</text>",
            top + 18,
            top + 18,
            top + 13,
            escape(&room.name),
            room.share * 100.0,
            top + 13,
            escape(&room.explanation)
        );
    }
    let below = HEAD + ROW * rooms.len() + 24;
    if advice.is_empty() {
        let _ =
            write!(svg, "<text x=\"16\" y=\"{below}\">nothing that may be changed alone helps by 1 %</text>");
    } else {
        let _ = write!(svg, "<text x=\"16\" y=\"{below}\" font-weight=\"bold\">what to change first</text>");
    }
    for (place, one) in advice.iter().enumerate() {
        let _ =
            write!(svg, "<text x=\"16\" y=\"{}\">{}</text>", below + 20 * (place + 1), escape(&said(one)));
    }
    svg.push_str("</svg>\n");
    svg
}
