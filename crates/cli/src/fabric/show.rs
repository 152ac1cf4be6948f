//! Predictions for people and for programs.

use linerate_fabric::engine::Simulated;
use linerate_fabric::predict::{Prediction, Unit};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// How many bottlenecks are printed; the rest has room anyway.
const SHOWN: usize = 6;

/// One question with its answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The question in words.
    pub question: String,
    /// The answer.
    pub prediction: Prediction,
    /// The answer of the engine that follows each burst, where it was asked.
    pub simulated: Option<Simulated>,
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

fn one(text: &mut String, Answer { question, prediction, simulated }: &Answer) {
    let unit = prediction.unit.symbol();
    let rate = is_rate(prediction.unit);
    let _ = writeln!(text, "{question}");
    // The least time that is possible is none, which says nothing.
    if rate || prediction.theoretical > 0.0 {
        let _ = writeln!(text, "  theoretical  {:>10} {unit}", figure(prediction.theoretical));
    }
    let efficiency = match rate && prediction.theoretical > 0.0 {
        true => format!(", {:.1} % of theoretical", prediction.efficiency() * 100.0),
        false => String::new(),
    };
    let _ = writeln!(
        text,
        "  predicted    {:>10} {unit}   ({} to {}{efficiency})",
        figure(prediction.predicted),
        figure(prediction.low),
        figure(prediction.high)
    );
    if let Some(simulated) = simulated {
        let rate = figure(simulated.rate.megabytes());
        let _ = writeln!(text, "  engine       {rate:>10} MB/s   ({} bursts, no setup)", simulated.bursts);
    }
    if prediction.bottlenecks.is_empty() {
        return;
    }
    let _ = writeln!(text, "  limits, the most used first");
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

fn is_rate(unit: Unit) -> bool {
    matches!(
        unit,
        Unit::MegabytesPerSecond
            | Unit::MegabitsPerSecond
            | Unit::GigabitsPerSecond
            | Unit::RequestsPerSecond
    )
}

/// Four significant digits or all whole ones.
pub fn figure(value: f64) -> String {
    match value.abs() {
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
        Answer { question: "edma:TC0:ddr3a->msmc".to_owned(), prediction, simulated: None }
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
    fn json_reads_back() {
        let value: Value = serde_json::from_str(&json(&[answer()])).unwrap();
        assert_eq!(value[0]["question"], "edma:TC0:ddr3a->msmc");
        assert_eq!(value[0]["unit"], "MB/s");
        assert_eq!(value[0]["bottlenecks"][0]["name"], "read window");
    }

    #[test]
    fn a_latency_has_no_theoretical_figure() {
        let prediction = Prediction { theoretical: 0.0, unit: Unit::Cycles, ..answer().prediction };
        let lines =
            text(&[Answer { prediction, question: "core:app:dram:single".to_owned(), simulated: None }]);
        assert!(lines.starts_with("core:app:dram:single\n  predicted "), "{lines}");
        assert!(!lines.contains("theoretical"), "{lines}");
    }

    #[test]
    fn figures() {
        for (value, shown) in
            [(0.0, "0.000"), (3.5, "3.500"), (20.144, "20.14"), (209.72, "209.7"), (12_800.4, "12800")]
        {
            assert_eq!(figure(value), shown);
        }
    }
}
