//! What is right is left alone.

use std::sync::OnceLock;

use proptest::prelude::*;

use super::{clean, ids, keystone2, shown};
use crate::audit::run;
use crate::guide::{Cell, Guide, Number, Role};

#[test]
fn a_guide_without_mistakes_gives_no_finding() {
    let findings = run(&clean(), None);
    assert!(findings.is_empty(), "{}", shown(&findings));
}

#[test]
fn the_same_guide_gives_the_same_findings_in_the_same_order() {
    let first = run(&keystone2(), None);
    assert!(!first.is_empty());
    assert_eq!(first, run(&keystone2(), None));
    let json = serde_json::to_value(&first).unwrap();
    assert_eq!(json[0]["severity"], "error");
    let text = first[0].to_string();
    assert!(text.contains("where:") && text.contains("because:") && text.contains("resolves:"), "{text}");
    let mut names = ids(&keystone2());
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count, "identifiers are unique");
}

/// A measurement with two decimals.
fn number(value: f64) -> Cell {
    Cell::read(&format!("{value:.2}"))
}

/// The link tables measured anew: a fixed time and a line, each measurement off by its own share of the noise.
fn measured_again(guide: &mut Guide, fixed_ns: f64, gbps: f64, off: &[f64]) {
    let mut off = off.iter().cycle();
    for table in guide.tables.iter_mut().filter(|table| table.id == "6" || table.id == "7") {
        table.conditions.insert("core".into(), "1000 MHz".into());
        table.conditions.insert("transactions".into(), "16".into());
        for row in &mut table.rows {
            let size = Number::read(&row.name).unwrap().value;
            for (cell, column) in row.cells.iter_mut().zip(&table.columns) {
                let lanes: f64 = column.tags["lanes"].parse().unwrap();
                let ns = fixed_ns + size * 8.0 / (lanes * gbps);
                *cell = number(size * 8e3 / ns * (1.0 + off.next().unwrap() / 100.0));
            }
        }
    }
}

/// The guide and its findings, read once for all cases.
static KEYSTONE2: OnceLock<(Guide, Vec<String>)> = OnceLock::new();

fn withhold(guide: &mut Guide, pick: usize) {
    let cells = guide.tables.iter_mut().flat_map(|table| &mut table.rows).flat_map(|row| &mut row.cells);
    let mut cells: Vec<&mut Cell> = cells.filter(|cell| cell.number().is_some()).collect();
    let count = cells.len();
    *cells[pick % count] = Cell::Withheld;
}

#[test]
fn a_guide_that_keeps_everything_back_is_evidence_for_no_number() {
    let mut guide = keystone2();
    for row in guide.tables.iter_mut().flat_map(|table| &mut table.rows) {
        for cell in row.cells.iter_mut().filter(|cell| cell.number().is_some()) {
            *cell = Cell::Withheld;
        }
    }
    let about_cells =
        ["quotient", "copy", "constant-time", "above", "falls", "fewer", "burst", "formula-cell", "unit"];
    let found: Vec<String> =
        ids(&guide).into_iter().filter(|id| about_cells.iter().any(|rule| id.starts_with(rule))).collect();
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn what_is_parameter_or_theory_is_no_copy() {
    // Every theoretical row of the EDMA tables says 12800: equal by computation, not by copying.
    let mut guide = keystone2();
    for table in &mut guide.tables {
        for row in &mut table.rows {
            if row.role == Some(Role::Measured) {
                row.role = Some(Role::Theoretical);
            }
        }
        for column in &mut table.columns {
            column.role = Role::Theoretical;
        }
    }
    assert!(ids(&guide).iter().all(|id| !id.starts_with("copy") && !id.starts_with("constant-time")));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Measurements that scatter within the stated noise are nothing to report, whatever the link.
    #[test]
    fn noise_is_no_finding(
        fixed_ns in 50f64..3000.0,
        gbps in 0.5f64..2.9,
        off in prop::collection::vec(-0.25f64..0.25, 72),
    ) {
        let mut guide = clean();
        measured_again(&mut guide, fixed_ns, gbps, &off);
        let findings = run(&guide, None);
        prop_assert!(findings.is_empty(), "{}", shown(&findings));
    }

    /// Keeping a cell back never makes a finding.
    #[test]
    fn a_withheld_cell_makes_no_finding(pick in any::<prop::sample::Index>()) {
        let (guide, known) = KEYSTONE2.get_or_init(|| (keystone2(), ids(&keystone2())));
        let mut guide = guide.clone();
        withhold(&mut guide, pick.index(100_000));
        for id in ids(&guide) {
            prop_assert!(known.contains(&id), "{id}");
        }
    }
}
