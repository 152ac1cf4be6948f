//! Figures of a ramp in the form of all figures, and ramps of other origin as series.

use super::level::{Level, QUANTILES};
use super::run::Ramp;
use super::seed::{Point, WORKLOADS, points};
use crate::schema::{Origin, Record};

/// All figures of the ramps. A level's tuning is `N requests/s demanded`, as in the tables of seed 003.
pub fn records(ramps: &[Ramp]) -> Vec<Record> {
    let mut records = Vec::new();
    for ramp in ramps {
        for level in &ramp.levels {
            if !level.is_valid() {
                continue;
            }
            let tuning = tuning(ramp, level);
            let mut add = |figure: &str, unit: &str, value: Option<f64>| {
                if let Some(value) = value.filter(|value| value.is_finite()) {
                    records.push(record(ramp, &tuning, figure, unit, value));
                }
            };
            add("connections", "1/s", level.connection_rate);
            add("responses", "1/s", Some(level.answered_rate));
            // As httperf counts it: from a request that was sent to the first byte of its answer.
            add("response-time", "ms", level.first_byte_ms.map(|times| times.mean));
            add("errors", "%", Some(level.error_share() * 100.0));
            add("io", "KB/s", Some(level.received_rate / 1_024.0));
            for (name, of) in QUANTILES {
                add(&format!("response-time-from-due-{name}"), "ms", level.response_ms.as_ref().map(of));
            }
            add("connect-time-p99", "ms", level.connect_ms.map(|times| times.p99));
            add("connections-open", "1", Some(level.most_open as f64));
            add("cpu-server", "%", level.seen.cpu.server.map(|share| share * 100.0));
            add("cpu-client", "%", Some(level.seen.cpu.client * 100.0));
            add("cpu-interrupts", "%", Some(level.seen.cpu.interrupts * 100.0));
        }
        records.extend(ramp.knee.offered_rate.map(|rate| record(ramp, "", "knee", "requests/s", rate)));
    }
    records
}

/// What tells a level's figures from another's.
pub fn tuning(ramp: &Ramp, level: &Level) -> String {
    let each = ramp
        .requests_per_connection
        .map_or("kept connections".to_owned(), |each| format!("{each} a connection"));
    let demanded = (level.offered_rate * 10.0).round() / 10.0;
    format!("{demanded} requests/s demanded, {each}")
}

fn record(ramp: &Ramp, tuning: &str, figure: &str, unit: &str, value: f64) -> Record {
    Record {
        board: ramp.name.clone(),
        workload: ramp.workload.clone(),
        tuning: tuning.to_owned(),
        figure: figure.to_owned(),
        unit: unit.to_owned(),
        value,
        origin: Origin::Measured,
        source: format!("linerate lab ramp {}", ramp.url),
    }
}

/// A ramp that was measured elsewhere.
#[derive(Clone, PartialEq, Debug)]
pub struct Beside {
    /// Its name.
    pub name: String,
    /// Its levels.
    pub points: Vec<Point>,
}

/// The ramps that records hold, by board and workload, in their order.
pub fn beside(records: &[Record]) -> Vec<Beside> {
    let mut found: Vec<Beside> = Vec::new();
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for record in records {
        let key = (record.board.as_str(), record.workload.as_str());
        if seen.contains(&key) {
            continue;
        }
        seen.push(key);
        let own: Vec<Record> = records.iter().filter(|other| other.board == key.0).cloned().collect();
        let points = points(&own, key.1);
        if points.is_empty() {
            continue;
        }
        let what = WORKLOADS.iter().find(|(workload, _)| *workload == key.1).map_or(key.1, |(_, what)| what);
        let name = match record.source.split(',').next() {
            Some(seed) if record.origin == Origin::Published => format!("{seed}, {what}"),
            // A ramp of a preset has it in its name.
            _ if key.0.ends_with(what) => key.0.to_owned(),
            _ => format!("{}, {what}", key.0),
        };
        found.push(Beside { name, points });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::knee::{find, tests::level};
    use super::*;

    #[test]
    fn what_is_written_is_read_as_a_ramp() {
        let levels = vec![level(100.0, 99.0, 1.0), level(1234.56, 1000.0, 2.0)];
        let knee = find(&levels);
        let ramp = Ramp {
            name: "board".into(),
            url: "http://x/".into(),
            workload: "http-3".into(),
            status: 200,
            requests_per_connection: Some(3),
            server_pid: None,
            levels,
            knee,
        };
        let records = records(&[ramp]);
        let text = crate::schema::write(&records);
        let beside = beside(&crate::schema::read("t", &text).unwrap());
        assert_eq!(beside.len(), 1);
        assert_eq!(beside[0].name, "board, http-3");
        let points: Vec<(f64, f64, f64)> = beside[0]
            .points
            .iter()
            .map(|point| (point.demanded, point.responses, point.response_ms))
            .collect();
        assert_eq!(points, [(100.0, 99.0, 1.0), (1234.6, 1000.0, 2.0)]);
        let mut named = crate::schema::read("t", &text).unwrap();
        for record in &mut named {
            (record.board, record.workload) = ("board, 354 B".into(), "http-354".into());
        }
        assert_eq!(super::beside(&named)[0].name, "board, 354 B");
    }

    #[test]
    fn the_document_has_three() {
        let names: Vec<String> =
            beside(&crate::published::of("003").unwrap()).into_iter().map(|beside| beside.name).collect();
        assert_eq!(names, ["seed 003, 354 B", "seed 003, 10 KiB", "seed 003, 404"]);
    }
}
