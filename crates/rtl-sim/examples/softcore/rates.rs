//! What memory and the interface's engine of the board carry, measured by its image, beside what `fabric` predicts from the chip file.

use linerate_fabric::predict::{Prediction, Unit};
use linerate_fabric::soc::Soc;
use linerate_fabric::{ask, soc};
use linerate_rtl_sim::softcore::{CLOCK_NS, Cable, Softcore};
use std::fmt::Write as _;

const CHIP: &str = include_str!("../../../../boards/socs/softcore.toml");
/// Clocks that start and measurements may take: some times what they do.
const LIMIT: u64 = 50_000_000;
/// Questions that the image has figures for.
const QUESTIONS: u32 = 42;
/// How far a prediction may be off, in per cent.
const CLOSE: f64 = 5.0;

/// Runs the image to its end: a line for each question.
pub fn run(mut core: Softcore) -> Result<String, String> {
    let chip = soc::load(CHIP).map_err(|error| error.to_string())?;
    core.plug(Cable::Unlimited);
    let mut table =
        format!("{:<44}{:>10}{:>11}{:>9}  {}\n", "", "measured", "predicted", "error", "limited by");
    let (mut said, mut worst, mut asked) = (Vec::new(), 0.0_f64, 0);
    while core.clocks() < LIMIT {
        core.clock();
        while core.receive().is_some() {}
        let Some(text) = line(&mut core, &mut said) else { continue };
        let words: Vec<&str> = text.split_whitespace().collect();
        match words[..] {
            ["rate", "end", ..] if asked != QUESTIONS => {
                return Err(format!("{asked} figures, not {QUESTIONS}\n{table}"));
            }
            ["rate", "end", ..] => return close(table, worst),
            ["rate", question, count, clocks] => {
                let error = compare(&chip, question, number(count)?, number(clocks)?, &mut table)?;
                worst = if error.is_nan() { f64::INFINITY } else { worst.max(error.abs()) };
                asked += 1;
            }
            ["frames", size, count] => {
                let frame = frame(number(size)? as usize);
                (0..number(count)?).for_each(|_| core.send(frame.clone()));
            }
            _ => eprintln!("{}", text.trim_end()),
        }
    }
    Err(format!("no end within {LIMIT} clocks\n{table}"))
}

/// What the console has said, once that ends with a line; `said` is what it has said since the last.
pub fn line(core: &mut Softcore, said: &mut Vec<u8>) -> Option<String> {
    let piece = core.console();
    said.extend(piece.iter().filter(|byte| **byte != b'\r'));
    let is_whole = piece.last() == Some(&b'\n');
    is_whole.then(|| String::from_utf8_lossy(&std::mem::take(said)).into_owned())
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|error| format!("{text}: {error}"))
}

fn close(table: String, worst: f64) -> Result<String, String> {
    let within = format!("{table}no prediction is further off than {worst:.1} %");
    if worst <= CLOSE { Ok(within) } else { Err(format!("{within}, where {CLOSE} % are allowed")) }
}

/// Writes a line, and returns by how many per cent the prediction is off.
fn compare(chip: &Soc, question: &str, count: u64, clocks: u64, table: &mut String) -> Result<f64, String> {
    let prediction = ask::answer(chip, question).map_err(|error| format!("{question}: {error}"))?;
    let measured = figure(&prediction, question, count as f64, clocks as f64);
    let predicted = prediction.predicted;
    let error = 100.0 * (predicted / measured - 1.0);
    let unit = match prediction.unit {
        Unit::MegabytesPerSecond => "MB/s",
        Unit::MegabitsPerSecond => "Mb/s",
        _ => "clocks",
    };
    let limit = prediction.bottlenecks.first().map_or("", |limit| limit.name.as_str());
    // Writing to a string does not fail.
    let _ =
        writeln!(table, "{question:<44}{measured:>10.1}{predicted:>11.1}{error:>+8.1}%  {unit:<7} {limit}");
    Ok(error)
}

/// What was measured, in the unit of the prediction: loads, bytes, or frames of the size that the question has.
fn figure(prediction: &Prediction, question: &str, count: f64, clocks: f64) -> f64 {
    let ns = clocks * CLOCK_NS as f64;
    match prediction.unit {
        Unit::MegabytesPerSecond => count * 1e3 / ns,
        Unit::MegabitsPerSecond => {
            let size = question.split([':', ',']).nth(1).and_then(|size| size.parse().ok());
            count * size.unwrap_or(f64::NAN) * 8e3 / ns
        }
        _ => clocks / count,
    }
}

/// A frame to everybody, of a type that nothing in the interface looks into.
pub fn frame(size: usize) -> Vec<u8> {
    let mut frame = vec![0; size];
    frame[..6].fill(0xff);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 100]);
    // For experiments (IEEE 802, 9.2.3).
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame
}
