//! A small checker of the format: what a parser of OpenMetrics 1.0 insists on.

use super::*;
use crate::status::catalogue::GROUPS;
use crate::status::report::{Connections, Memory, PoolReport, Process};
use std::collections::{BTreeMap, BTreeSet};

/// Checks a text and returns its samples: name with labels, and value.
fn parse(text: &str) -> Result<BTreeMap<String, f64>, String> {
    let body = text.strip_suffix("# EOF\n").ok_or("it does not end with # EOF")?;
    let (mut families, mut samples) = (BTreeSet::new(), BTreeMap::new());
    let (mut family, mut kind, mut labels) = (String::new(), String::new(), None);
    for line in body.lines() {
        let fault = |why: &str| Err(format!("{why}: {line}"));
        if let Some(meta) = line.strip_prefix("# ") {
            let mut words = meta.splitn(3, ' ');
            let (what, name, rest) = (words.next(), words.next(), words.next());
            let (Some(what), Some(name), Some(rest)) = (what, name, rest) else {
                return fault("a line that says nothing");
            };
            match what {
                "TYPE" => {
                    if !families.insert(name.to_owned()) {
                        return fault("a family that is there twice");
                    }
                    (family, kind, labels) = (name.to_owned(), rest.to_owned(), None);
                    if !["counter", "gauge", "info"].contains(&rest) || name.ends_with("_total") {
                        return fault("a kind or a name that is not allowed");
                    }
                }
                "UNIT" if name == family && name.ends_with(&format!("_{rest}")) => {}
                "HELP" if name == family => {}
                _ => return fault("out of place"),
            }
            continue;
        }
        let (sample, value) = line.rsplit_once(' ').ok_or("no value")?;
        let suffix = match kind.as_str() {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        let Some(rest) = sample.strip_prefix(&format!("{family}{suffix}")) else {
            return fault("not of the family");
        };
        let names = label_names(rest).ok_or_else(|| format!("labels: {line}"))?;
        if labels.get_or_insert_with(|| names.clone()) != &names {
            return fault("other labels than before");
        }
        let value: f64 = value.parse().map_err(|_| format!("no number: {line}"))?;
        if kind == "counter" && (value.is_nan() || value < 0.0) {
            return fault("a counter below zero");
        }
        if samples.insert(sample.to_owned(), value).is_some() {
            return fault("a sample that is there twice");
        }
    }
    Ok(samples)
}

/// The names of `{a="b",c="d"}`, read with the rules of escaping.
fn label_names(text: &str) -> Option<Vec<String>> {
    let Some(mut rest) = text.strip_prefix('{') else { return text.is_empty().then(Vec::new) };
    let mut names = Vec::new();
    loop {
        let (name, value) = rest.split_once("=\"")?;
        names.push(name.to_owned());
        let mut escaped = false;
        let end = value.char_indices().find_map(|(at, c)| {
            let is_end = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            is_end.then_some(at)
        })?;
        rest = &value[end + 1..];
        match rest {
            "}" => return Some(names),
            _ => rest = rest.strip_prefix(',')?,
        }
    }
}

fn full_report() -> Report {
    let mut count = 0;
    let counters = GROUPS.iter().map(|group| {
        let figures = group.figures().map(|figure| {
            count += 1;
            (figure.name.to_owned(), count)
        });
        (group.name.to_owned(), figures.collect())
    });
    let counts = |names: [&str; 2]| names.map(|name| (name.to_owned(), 1)).into();
    Report {
        version: "0.1.0".to_owned(),
        device: "a \"TAP\" device \\ with\nlines".to_owned(),
        time: 1_800_000_000.5,
        uptime: 12.25,
        process: Process { cpu: 1.5, resident: Some(1 << 20), report: 0.000_1 },
        memory: Memory { owners: counts(["http", "closing"]), ..Memory::default() },
        pools: vec![
            PoolReport { name: "pages".to_owned(), total: 4, ..PoolReport::default() },
            PoolReport { name: "datagrams".to_owned(), total: 2, ..PoolReport::default() },
        ],
        connections: Connections {
            total: 2,
            states: counts(["established", "time-wait"]),
            servers: counts(["http", "iperf3"]),
            limited: counts(["application", "peer's window"]),
            ..Connections::default()
        },
        counters: counters.collect(),
        ..Report::default()
    }
}

#[test]
fn the_text_keeps_the_rules_and_has_everything() {
    let report = full_report();
    let text = text(&report);
    let samples = parse(&text).unwrap_or_else(|fault| panic!("{fault}\n{text}"));
    let figures: usize = GROUPS.iter().map(|group| group.figures().count()).sum();
    assert!(samples.len() > figures, "{} samples of {figures} figures", samples.len());
    let vlan = report.counters["stack"]["drop_vlan"] as f64;
    assert_eq!(samples["linerate_drops_total{group=\"stack\",reason=\"vlan\"}"], vlan);
    let received = report.counters["stack"]["tcp_bytes_in"] as f64;
    assert_eq!(samples["linerate_stack_tcp_in_bytes_total"], received);
    assert_eq!(samples["process_start_time_seconds"], 1_799_999_988.25);
    assert_eq!(samples["linerate_connections_by_state{state=\"time-wait\"}"], 1.0);
    assert_eq!(samples["linerate_pool_buffers{pool=\"pages\"}"], 4.0);
    assert!(text.contains(r#"device="a \"TAP\" device \\ with\nlines"} 1"#), "{text}");
}

#[test]
fn an_empty_report_is_a_valid_text_too() {
    let text = text(&Report::default());
    assert!(parse(&text).is_ok(), "{text}");
}

#[test]
fn the_checker_sees_faults() {
    for bad in [
        "",
        "# TYPE a counter\na_total 1\n",
        "# TYPE a counter\na 1\n# EOF\n",
        "# TYPE a counter\na_total -1\n# EOF\n",
        "# TYPE a counter\na_total 1\na_total 1\n# EOF\n",
        "# TYPE a counter\na_total 1\n# TYPE a counter\n# EOF\n",
        "# TYPE a gauge\n# UNIT a bytes\n# EOF\n",
        "# TYPE a gauge\na{b=\"c\"} 1\na{d=\"c\"} 1\n# EOF\n",
        "# TYPE a gauge\na{b=\"c\"d\"} 1\n# EOF\n",
        "# TYPE a gauge\na one\n# EOF\n",
    ] {
        assert!(parse(bad).is_err(), "{bad:?}");
    }
}
