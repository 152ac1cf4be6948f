//! The ramps of seed 003, from its tables A.1 to A.3: httperf against nginx on a MicroBlaze of 100 MHz.

use crate::published;
use crate::schema::{Record, SchemaError};

/// The document's workloads and what they are called in a key.
pub const WORKLOADS: [(&str, &str); 3] = [("http-354", "354 B"), ("http-10k", "10 KiB"), ("http-404", "404")];

/// One line of a table.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// Requests a second that were demanded.
    pub demanded: f64,
    /// Answers a second.
    pub responses: f64,
    /// Mean time to an answer in milliseconds, counted from when it was sent.
    pub response_ms: f64,
    /// Share of requests that failed.
    pub errors: f64,
    /// Bytes a second.
    pub io_rate: f64,
}

/// The lines of a workload's table; none of another workload.
pub fn levels(workload: &str) -> Result<Vec<Point>, SchemaError> {
    Ok(points(&published::of("003")?, workload))
}

/// The levels that records hold of a workload, whatever their origin, by rising rate: what is told by the tuning `N requests/s
/// demanded`.
pub fn points(records: &[Record], workload: &str) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    for record in records.iter().filter(|record| record.workload == workload) {
        let Some(demanded) =
            record.tuning.split_once(" requests/s demanded").and_then(|(rate, _)| rate.parse().ok())
        else {
            continue;
        };
        if points.last().is_none_or(|last| last.demanded != demanded) {
            let nothing = f64::NAN;
            points.push(Point {
                demanded,
                responses: nothing,
                response_ms: nothing,
                errors: nothing,
                io_rate: nothing,
            });
        }
        let Some(point) = points.last_mut() else { continue };
        match (record.figure.as_str(), record.unit.as_str()) {
            ("responses", "1/s") => point.responses = record.value,
            ("response-time", "ms") => point.response_ms = record.value,
            ("errors", "%") => point.errors = record.value / 100.0,
            // httperf counts in units of 1,024.
            ("io", "KB/s") => point.io_rate = record.value * 1_024.0,
            _ => {}
        }
    }
    points.retain(|point| point.responses.is_finite());
    points.sort_by(|one, other| one.demanded.total_cmp(&other.demanded));
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_whole_and_agree_with_themselves() {
        for (workload, _) in WORKLOADS {
            let points = levels(workload).unwrap();
            assert_eq!(points.iter().map(|point| point.demanded).sum::<f64>(), 2310.0, "{workload}");
            for point in points {
                assert!(point.responses <= point.demanded && point.errors < 0.3, "{point:?}");
                // Head, answer and request have a size that hardly varies: rate and bytes are in proportion.
                let per_answer = point.io_rate / point.responses;
                let expected = match workload {
                    "http-354" => 563.0,
                    "http-10k" => 10_560.0,
                    _ => 398.0,
                };
                assert!((per_answer / expected - 1.0).abs() < 0.02, "{workload} {point:?}: {per_answer}");
            }
        }
        assert!(levels("none").unwrap().is_empty());
    }

    #[test]
    fn processor_shares_add_up_to_their_total() {
        let records = published::of("003").unwrap();
        let value = |line: u32, figure: &str| {
            let tuning = format!("Conn. {line}");
            let found = records.iter().find(|record| record.tuning == tuning && record.figure == figure);
            found.map(|record| record.value).unwrap()
        };
        for line in 1..=10 {
            let parts: f64 = ["usr", "sys", "nic", "io", "irq", "sirq"]
                .map(|part| value(line, &format!("cpu-{part}")))
                .iter()
                .sum();
            let (total, idle) = (value(line, "cpu-total"), value(line, "cpu-idle"));
            assert!(
                (parts - total).abs() < 0.25 && (total + idle - 100.0).abs() < 0.45,
                "line {line}: {parts} {total} {idle}"
            );
        }
    }
}
