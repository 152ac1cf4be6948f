//! Predictions for people and for programs.

use linerate_fabric::ask::ready::{self, Said, Undecided};
use linerate_fabric::engine::Simulated;
use linerate_fabric::predict::{Prediction, Unit};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// How many bottlenecks are printed; the rest has room anyway.
const SHOWN: usize = 6;
/// How many ways in which a chip may be have their limits printed.
const WAYS: usize = 3;

/// Below this a rate says nothing in millions.
const SMALL: f64 = 0.01;

/// One question with its answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The question in words.
    pub question: String,
    /// The answer.
    pub prediction: Prediction,
    /// The answer of the engine that follows each burst, where it was asked.
    pub simulated: Option<Simulated>,
    /// What is open and makes a difference, with what would decide it.
    pub open: Vec<Undecided>,
    /// What each way in which the chip may be says, where something is open; the likeliest first.
    pub said: Vec<Said>,
}

/// Lines for people.
pub fn text(answers: &[Answer]) -> String {
    let mut text = String::new();
    for (number, answer) in answers.iter().enumerate() {
        if number > 0 {
            text.push('\n');
        }
        one(&mut text, answer);
    }
    text
}

fn one(text: &mut String, answer: &Answer) {
    let Answer { question, prediction, simulated, .. } = answer;
    let (unit, size) = readable(prediction);
    let shown = |value: f64| figure(value * size);
    let rate = is_rate(prediction.unit);
    let _ = writeln!(text, "{question}");
    // The least time that is possible is none, which says nothing.
    if rate || prediction.theoretical > 0.0 {
        let _ = writeln!(text, "  theoretical  {:>10} {unit}", shown(prediction.theoretical));
    }
    let efficiency = match rate && prediction.theoretical > 0.0 {
        true => format!(", {:.1} % of theoretical", prediction.efficiency() * 100.0),
        false => String::new(),
    };
    let _ = writeln!(
        text,
        "  predicted    {:>10} {unit}   ({} to {}{efficiency})",
        shown(prediction.predicted),
        shown(prediction.low),
        shown(prediction.high)
    );
    if let Some(simulated) = simulated {
        let rate = figure(simulated.rate.megabytes());
        let _ = writeln!(text, "  engine       {rate:>10} MB/s   ({} bursts, no setup)", simulated.bursts);
    }
    for open in &answer.open {
        undecided(text, open, unit);
    }
    let ways = ready::joined(&answer.said);
    // Where all ways are limited alike, one stands for all.
    if ways.len() < 2 {
        limits(text, "limits, the most used first", prediction);
        return;
    }
    for (weight, way) in ways.iter().take(WAYS) {
        let choices: Vec<&str> = answer
            .open
            .iter()
            .filter_map(|open| way.choices.iter().find(|(name, _)| *name == open.name))
            .map(|(_, choice)| choice.as_str())
            .collect();
        let of = format!("{:.0} %, {} {unit}", weight * 100.0, figure(way.prediction.predicted));
        limits(text, &format!("limits if {} ({of})", choices.join("; ")), &way.prediction);
    }
    if let Some(more) = ways.len().checked_sub(WAYS).filter(|more| *more > 0) {
        let _ = writeln!(text, "  and {more} more, less likely; --format json has all");
    }
}

/// A question that is open, what each answer gives, and what would tell.
fn undecided(text: &mut String, open: &Undecided, unit: &str) {
    let _ = writeln!(text, "  open: {}", open.question);
    let width = open.answers.iter().map(|(answer, ..)| answer.chars().count()).max().unwrap_or(0);
    for (answer, weight, low, high) in &open.answers {
        let (low, high) = (figure(*low), figure(*high));
        let range = if low == high { low } else { format!("{low} to {high}") };
        let _ = writeln!(text, "    {:>5.1} %  {answer:<width$}  {range} {unit}", weight * 100.0);
    }
    let _ = writeln!(text, "    to decide, measure {}", open.decides);
}

fn limits(text: &mut String, heading: &str, prediction: &Prediction) {
    if prediction.bottlenecks.is_empty() {
        return;
    }
    let _ = writeln!(text, "  {heading}");
    let widest = prediction.bottlenecks.iter().take(SHOWN).map(|limit| limit.name.chars().count()).max();
    let width = widest.unwrap_or(0);
    for (place, limit) in prediction.bottlenecks.iter().take(SHOWN).enumerate() {
        let _ = writeln!(
            text,
            "  {:>2}. {:>5.1} %  {:<width$}  {}",
            place + 1,
            limit.share * 100.0,
            limit.name,
            limit.explanation
        );
    }
}

/// One JSON array with an object for each question.
pub fn json(answers: &[Answer]) -> String {
    let object = |answer: &Answer| {
        let mut value = serde_json::to_value(&answer.prediction).unwrap_or(Value::Null);
        if let Some(object) = value.as_object_mut() {
            object.insert("question".to_owned(), json!(answer.question));
            if !answer.open.is_empty() {
                object.insert("open".to_owned(), answer.open.iter().map(undecided_json).collect());
                object.insert("ways".to_owned(), answer.said.iter().map(way_json).collect());
            }
            if let Some(simulated) = &answer.simulated {
                let (rate, bursts) = (simulated.rate.megabytes(), simulated.bursts);
                object.insert("engine".to_owned(), json!({ "rate": rate, "unit": "MB/s", "bursts": bursts }));
            }
        }
        value
    };
    let all = answers.iter().map(object).collect::<Vec<_>>();
    format!("{:#}\n", Value::Array(all))
}

fn undecided_json(open: &Undecided) -> Value {
    let answers: Vec<Value> = open
        .answers
        .iter()
        .map(|(answer, weight, low, high)| {
            json!({ "answer": answer, "weight": weight, "least": low, "most": high })
        })
        .collect();
    json!({ "name": open.name, "question": open.question, "decides": open.decides, "answers": answers })
}

fn way_json(way: &Said) -> Value {
    let choices: serde_json::Map<String, Value> =
        way.choices.iter().map(|(name, choice)| (name.clone(), json!(choice))).collect();
    let mut value = serde_json::to_value(&way.prediction).unwrap_or(Value::Null);
    if let Some(object) = value.as_object_mut() {
        object.insert("weight".to_owned(), json!(way.weight));
        object.insert("answers".to_owned(), Value::Object(choices));
    }
    value
}

fn is_rate(unit: Unit) -> bool {
    matches!(
        unit,
        Unit::MegabytesPerSecond
            | Unit::MegabitsPerSecond
            | Unit::GigabitsPerSecond
            | Unit::RequestsPerSecond
    )
}

/// The unit in which a prediction is printed, and its size in the unit that it has: a rate too small for that one is printed in
/// bytes or bits a second.
fn readable(prediction: &Prediction) -> (&'static str, f64) {
    let (small, size) = match prediction.unit {
        Unit::MegabytesPerSecond => ("B/s", 1e6),
        Unit::MegabitsPerSecond => ("bit/s", 1e6),
        Unit::GigabitsPerSecond => ("bit/s", 1e9),
        unit => return (unit.symbol(), 1.0),
    };
    if prediction.predicted < SMALL { (small, size) } else { (prediction.unit.symbol(), 1.0) }
}

/// Four significant digits or all whole ones.
pub fn figure(value: f64) -> String {
    match value.abs() {
        small if small > 0.0 && small < 0.01 => format!("{value:.3e}"),
        1000.0.. => format!("{value:.0}"),
        100.0..1000.0 => format!("{value:.1}"),
        10.0..100.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_fabric::predict::Bottleneck;

    fn answer() -> Answer {
        let limit = |name: &str, share| Bottleneck {
            name: name.to_owned(),
            rate: 100.0,
            share,
            explanation: "512 B / 97 ns".to_owned(),
        };
        let limits = vec![limit("line", 0.5), limit("read window", 1.0)];
        let prediction = Prediction::rate(12_800.0, 5278.0, 0.04, Unit::MegabytesPerSecond, limits);
        Answer {
            question: "edma:TC0:ddr3a->msmc".to_owned(),
            prediction,
            simulated: None,
            open: Vec::new(),
            said: Vec::new(),
        }
    }

    #[test]
    fn lines() {
        assert_eq!(
            text(&[answer()]),
            "edma:TC0:ddr3a->msmc\n  theoretical       12800 MB/s\n  predicted          5278 MB/s   (5067 to 5489, \
             41.2 % of theoretical)\n  limits, the most used first\n   1. 100.0 %  read window  512 B / 97 ns\n   \
             2.  50.0 %  line         512 B / 97 ns\n"
        );
        assert_eq!(text(&[answer(), answer()]).matches("\n\n").count(), 1);
    }

    #[test]
    fn a_small_rate_keeps_its_digits() {
        let prediction = Prediction::rate(8e-6, 3.54e-6, 0.0, Unit::MegabytesPerSecond, Vec::new());
        let lines = text(&[Answer { prediction, ..answer() }]);
        assert!(lines.contains("theoretical       8.000 B/s"), "{lines}");
        assert!(lines.contains("predicted         3.540 B/s   (3.540 to 3.540, 44.2 % of"), "{lines}");
    }

    #[test]
    fn json_reads_back() {
        let value: Value = serde_json::from_str(&json(&[answer()])).unwrap();
        assert_eq!(value[0]["question"], "edma:TC0:ddr3a->msmc");
        assert_eq!(value[0]["unit"], "MB/s");
        assert_eq!(value[0]["bottlenecks"][0]["name"], "read window");
    }

    #[test]
    fn a_latency_has_no_theoretical_figure() {
        let prediction = Prediction { theoretical: 0.0, unit: Unit::Cycles, ..answer().prediction };
        let lines = text(&[Answer { prediction, question: "core:app:dram:single".to_owned(), ..answer() }]);
        assert!(lines.starts_with("core:app:dram:single\n  predicted "), "{lines}");
        assert!(!lines.contains("theoretical"), "{lines}");
    }

    #[test]
    fn figures() {
        for (value, shown) in [
            (0.0, "0.000"),
            (0.0012, "1.200e-3"),
            (3.5, "3.500"),
            (20.144, "20.14"),
            (209.72, "209.7"),
            (12_800.4, "12800"),
        ] {
            assert_eq!(figure(value), shown);
        }
    }
}
