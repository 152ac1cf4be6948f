//! Known parameters are found again from measurements made of them, and what data cannot tell is said.

use super::*;
use crate::links::Links;
use crate::predict::{Setter, TableModel};
use proptest::prelude::*;

fn keystone2() -> Links {
    let file: toml::Table =
        toml::from_str(include_str!("../../../../boards/socs/k2h.toml")).expect("the chip file is TOML");
    file.get("links").expect("it has links").clone().try_into().expect("its links are known")
}

/// Measurements that `model` itself makes, `noise(n)` off in the n-th.
fn synthetic(model: &impl TableModel, tables: &[&str], noise: impl Fn(usize) -> f64) -> Vec<Measurement> {
    let payloads = ["8", "16", "32", "64", "128", "256", "512", "1024", "2048", "4096", "8192"];
    let mut data = Vec::new();
    for table in tables {
        for row in payloads {
            for column in 1..=6 {
                // Messages end at 4096 B.
                let Some(cell) = model.cell(table, row, column) else { continue };
                let value = cell.predicted * (1.0 + noise(data.len()));
                let line = data.len() + 2;
                data.push(Measurement {
                    table: (*table).into(),
                    row: row.into(),
                    column,
                    value,
                    error: None,
                    line,
                });
            }
        }
    }
    data
}

/// A deterministic scatter within one part in 200.
fn scatter(at: usize) -> f64 {
    ((at * 7919 + 13) % 101) as f64 / 101.0 * 0.01 - 0.005
}

fn with(links: &Links, changes: &[(&str, f64)]) -> Links {
    let free = links.free();
    let values: Vec<f64> = free
        .iter()
        .map(|one| changes.iter().find(|(name, _)| *name == one.name).map_or(one.value, |(_, value)| *value))
        .collect();
    links.with_free(&values)
}

fn estimate<'a, M>(fitted: &'a Fitted<M>, name: &str) -> &'a Estimate {
    fitted.report.estimates.iter().find(|one| one.name == name).expect("the parameter")
}

#[test]
fn known_parameters_come_back_from_noisy_data() {
    let truth = [
        ("links.srio.issue.time", 350.0),
        ("links.srio.round_trip.time", 1300.0),
        ("links.srio.copy.time", 400.0),
        ("links.srio.memory.DDR3.time", 60.0),
        ("links.srio.descriptor.L2.time", 500.0),
        ("links.srio.descriptor.DDR3.time", 1200.0),
    ];
    let links = keystone2();
    let data = synthetic(&with(&links, &truth), &["16", "17", "20"], scatter);
    let fitted = fit(&links, &data).expect("a fit");
    for (name, value) in truth {
        let found = estimate(&fitted, name);
        assert!((found.value / value - 1.0).abs() < 0.04, "{name}: {found:?}");
        assert!(found.low <= value && value <= found.high, "{name}: {value} not within {found:?}");
        assert_eq!(found.identified, Identified::Yes, "{name}");
        assert!(found.unit.starts_with("ns @ "), "{found:?}");
    }
    assert!(
        fitted.report.mean_error < 0.005 && fitted.report.mean_error_before > 0.05,
        "{:?}",
        fitted.report
    );
    assert!(fitted.report.alternate_rows_error.expect("many rows") < 0.006, "{:?}", fitted.report);
    assert!(fitted.report.left_out_table_error.is_some());
}

#[test]
fn one_line_rate_cannot_say_what_scales_with_it() {
    let links = keystone2();
    let share = "links.srio.round_trip.line_share";
    let one_rate = fit(&links, &synthetic(&links, &["16", "17", "20"], scatter)).expect("a fit");
    let open = estimate(&one_rate, share);
    assert_eq!((open.identified, open.value), (Identified::No, open.before));
    assert!(open.low.abs() < 1e-9 && (open.high - 0.73).abs() < 1e-9, "{open:?}");
    let said = &one_rate.report.identifiability;
    assert!(
        said.ties.iter().any(|tie| tie.names == [share] && tie.explanation.contains("second line rate")),
        "{said:?}"
    );
    assert!(said.rank < said.parameters);
    let width = |fitted: &Fitted<Links>, table: &str| {
        let cell = fitted.predict(table, "64", 1).expect("a cell");
        (cell.high - cell.low) / cell.predicted
    };
    assert!(width(&one_rate, "19") > 5.0 * width(&one_rate, "17"), "the other rate is open");

    let truth = with(&links, &[(share, 0.3)]);
    let two_rates = fit(&links, &synthetic(&truth, &["16", "17", "18", "19", "20"], scatter)).expect("a fit");
    let found = estimate(&two_rates, share);
    assert_eq!(found.identified, Identified::Yes);
    assert!((found.value - 0.3).abs() < 0.03, "{found:?}");
    assert!(width(&two_rates, "19") < 0.5 * width(&one_rate, "19"));
}

#[test]
fn the_chip_file_holds_what_the_guide_fits() {
    let guide =
        crate::guide::load(include_str!("../../../../boards/guides/keystone2.toml")).expect("the guide");
    let mut data = Vec::new();
    for table in guide.tables.iter().filter(|table| ["16", "17", "20"].contains(&table.id.as_str())) {
        for (row, column, cell) in table.cells() {
            let Some(value) = cell.value() else { continue };
            let (row, line) = (table.rows[row].name.clone(), table.rows[row].line);
            data.push(Measurement {
                table: table.id.clone(),
                row,
                column: column + 1,
                value,
                error: None,
                line,
            });
        }
    }
    assert_eq!(data.len(), 186);
    let fitted = fit(&keystone2(), &data).expect("a fit");
    let report = &fitted.report;
    // All reads depend on the round trip, which only their own table sees; so do writes, and messages of less than a packet.
    assert!(report.left_out_table_error.expect("tables") < 0.005, "{report:?}");
    assert!((66..186).contains(&report.left_out_table_untested), "{}", report.left_out_table_untested);
    assert_eq!(report.alternate_rows_untested, 0);
    assert!(report.mean_error < 0.004 && report.mean_error_before < report.mean_error * 1.1, "{report:?}");
    assert!(report.alternate_rows_error.expect("rows") < 0.005, "{report:?}");
    for one in report.estimates.iter().filter(|one| one.identified == Identified::Yes) {
        let moved = (one.value / one.before - 1.0).abs();
        assert!(
            moved < 0.02 || one.name.ends_with("maintenance") || one.name.contains("doorbell"),
            "{one:?}"
        );
    }
    let open = report
        .estimates
        .iter()
        .filter(|one| one.name.starts_with("links.srio") && one.identified != Identified::Yes);
    let open: Vec<&str> = open.map(|one| one.name.as_str()).collect();
    assert_eq!(
        open,
        // Messages were measured at another clock of the cores, which tells what paces the packet engine.
        ["links.srio.round_trip.line_share", "links.srio.copy.line_share"]
    );
}

/// `a * b` in table 1, and `a + b` in table 2 when the row is larger than 0.
#[derive(Debug, Clone)]
struct Toy {
    a: f64,
    b: f64,
}

impl TableModel for Toy {
    fn cell(&self, table: &str, row: &str, column: usize) -> Option<Prediction> {
        let x: f64 = row.parse().ok()?;
        let value = match table {
            "1" => self.a * self.b * x,
            "2" => self.a + self.b * x,
            _ => return None,
        };
        (column == 1).then(|| Prediction::exact(value, crate::predict::Unit::Nanoseconds))
    }
}

impl Calibrate for Toy {
    fn free(&self) -> Vec<FreeParameter> {
        let parameter = |name: &str, value| FreeParameter {
            name: name.into(),
            value,
            min: 0.1,
            max: 100.0,
            unit: "ns".into(),
        };
        vec![parameter("a", self.a), parameter("b", self.b)]
    }

    fn with_free(&self, values: &[f64]) -> Self {
        Self { a: values[0], b: values[1] }
    }
}

fn toy(table: &str, rows: &[f64], truth: &Toy) -> Vec<Measurement> {
    let measure = |(at, row): (usize, &f64)| Measurement {
        table: table.into(),
        row: row.to_string(),
        column: 1,
        value: truth.cell(table, &row.to_string(), 1).expect("a cell").predicted,
        error: None,
        line: at + 2,
    };
    rows.iter().enumerate().map(measure).collect()
}

#[test]
fn a_product_does_not_tell_its_factors() {
    let fitted =
        fit(&Toy { a: 1.0, b: 1.0 }, &toy("1", &[1.0, 2.0, 3.0], &Toy { a: 4.0, b: 3.0 })).expect("a fit");
    let values: Vec<f64> = fitted.report.estimates.iter().map(|one| one.value).collect();
    assert!((values[0] * values[1] - 12.0).abs() < 1e-3, "{values:?}");
    assert!(fitted.report.estimates.iter().all(|one| one.identified == Identified::Tied));
    let said = &fitted.report.identifiability;
    assert_eq!((said.rank, said.parameters), (1, 2));
    assert_eq!(said.ties[0].names, ["a", "b"]);
    // A sum of both is then open from nothing to the bounds.
    let cell = fitted.predict("2", "1", 1).expect("a cell");
    assert!(cell.low < values[0] && cell.low < cell.predicted, "{cell:?}");
}

#[test]
fn few_measurements_are_fitted_and_none_refused() {
    let one = fit(&Toy { a: 2.0, b: 2.0 }, &toy("2", &[1.0], &Toy { a: 4.0, b: 3.0 })).expect("a fit");
    assert!(one.report.mean_error < 1e-3 && one.report.alternate_rows_error.is_none());
    assert_eq!((one.report.identifiability.rank, one.report.alternate_rows_untested), (1, 1));
    assert_eq!(fit(&Toy { a: 2.0, b: 2.0 }, &[]).expect_err("no data"), FitError::NoData);
    let mut strange = toy("2", &[1.0], &Toy { a: 4.0, b: 3.0 });
    strange[0].table = "9".into();
    let error = fit(&Toy { a: 2.0, b: 2.0 }, &strange).expect_err("no such table");
    assert_eq!(error.to_string(), "line 2: the chip has no prediction for table 9, row \"1\", column 1");
}

#[test]
fn csv_mistakes_have_lines() {
    let check = |text: &str, expected: Result<usize, &str>| match (read(text), expected) {
        (Ok(rows), Ok(count)) => assert_eq!(rows.len(), count, "{text:?}"),
        (Err(error), Err(said)) => assert!(error.to_string().starts_with(said), "{text:?}: {error}"),
        (found, _) => panic!("{text:?}: {found:?}"),
    };
    check("table,row,column,value\n17,8,1,54.46\n\n# a word\n17,16,1,107\n", Ok(2));
    check("table,row,column,value,error_percent\n17,8,1,54.46,0.5\n17,8,2,52.57,\n", Ok(2));
    check("table,row,column,value\n7,\"TC2, TC6\",1,5\n7,\"say \"\"x\"\"\",1,5", Ok(2));
    check("", Err("line 1: \"\"; expected the header"));
    check("a,b\n", Err("line 1: \"a,b\"; expected the header"));
    check("table,row,column,value\n", Err("line 1: expected measurements"));
    check("table,row,column,value\n17,8,1\n", Err("line 2: 3 fields"));
    check("table,row,column,value\n17,8,1,5,1,1\n", Err("line 2: 6 fields"));
    check("table,row,column,value\n\n17,8,0,5\n", Err("line 3: \"0\"; expected the number of a column"));
    check("table,row,column,value\n17,8,1,-5\n", Err("line 2: \"-5\"; expected a number"));
    check("table,row,column,value\n17,8,1,nan\n", Err("line 2: \"nan\"; expected a number"));
    check("table,row,column,value\n17,8,1,5,0\n", Err("line 2: \"0\"; expected a percentage"));
    check("table,row,column,value\n,8,1,5\n", Err("line 2: expected the name"));
    check("table,row,column,value\n17,\"8,1,5\n", Err("line 2: expected a closing quote"));
    check("table,row,column,value\n17,8,1,5\n17,8,1,6\n", Err("line 3: the same cell as on line 2"));
}

proptest! {
    #[test]
    fn csv_never_panics(text in "(table,row,column,value\n)?[0-9a-z,\"\n.# -]{0,80}") {
        let _ = read(&text);
    }

    #[test]
    fn estimates_stay_within_their_bounds(a in 0.2f64..=90.0, b in 0.2f64..=90.0, start in 0.2f64..=90.0) {
        let data = toy("2", &[0.5, 1.0, 2.0, 8.0], &Toy { a, b });
        let fitted = fit(&Toy { a: start, b: start }, &data).expect("a fit");
        for one in &fitted.report.estimates {
            prop_assert!(one.low <= one.value && one.value <= one.high);
            prop_assert!((0.1..=100.0).contains(&one.value));
        }
        prop_assert!(fitted.report.mean_error < 1e-3, "{:?}", fitted.report);
    }
}

/// A model that counts how often it is asked for a figure.
#[derive(Clone)]
struct Counted<'a> {
    model: crate::model::part::Whole,
    asked: &'a std::cell::Cell<usize>,
}

impl TableModel for Counted<'_> {
    fn cell(&self, table: &str, row: &str, column: usize) -> Option<Prediction> {
        self.model.cell(table, row, column)
    }

    fn figure(&self, table: &str, row: &str, column: usize) -> Option<f64> {
        self.asked.set(self.asked.get() + 1);
        self.model.figure(table, row, column)
    }
}

impl Calibrate for Counted<'_> {
    fn free(&self) -> Vec<FreeParameter> {
        self.model.free()
    }

    fn with_free(&self, values: &[f64]) -> Self {
        Self { model: self.model.with_free(values), asked: self.asked }
    }

    fn setter(&self) -> Setter<'_, Self> {
        let set = self.model.setter();
        Box::new(move |values| Self { model: set(values), asked: self.asked })
    }
}

/// What `linerate lab guide` measures of a machine has more than a hundred transfers and some seventy parameters: a search to
/// the last digit for each transfer that is left out would take hours.
#[test]
fn a_measured_machine_is_fitted_with_few_questions() {
    let host = crate::soc::load(include_str!("../hierarchy/host.toml")).expect("the chip loads");
    let model = crate::model::part::Whole(host);
    let mut data = Vec::new();
    for size in (12..26).map(|bits| 1u64 << bits) {
        for question in [
            format!("load:cpu:{size}:single,stride=64"),
            format!("load:cpu:{size}:single,stride=4096"),
            format!("load:cpu:{size}:burst"),
            format!("load:cpu:{size}:burst,stride=128"),
            format!("store:cpu:{size}"),
            format!("memory:cpu:read:{size}"),
            format!("memory:cpu:fill:{size}"),
            format!("memory:cpu:copy:{size}"),
        ] {
            let at = data.len();
            let figure = model.figure(TRANSFER, &question, 1).expect("a figure");
            // Real machines are off by a third here and there.
            let value = figure * (1.0 + 60.0 * scatter(at));
            data.push(Measurement {
                table: TRANSFER.into(),
                row: question,
                column: 1,
                value,
                error: Some(0.05),
                line: at + 2,
            });
        }
    }
    let asked = std::cell::Cell::new(0);
    let mut told = Vec::new();
    let fitted = fit_told(&Counted { model, asked: &asked }, &data, &mut |part, parts, what| {
        told.push((part, parts, what.to_owned()));
    })
    .expect("a fit");
    let report = &fitted.report;
    assert!(report.mean_error < report.mean_error_before, "{report:?}");
    assert!(report.left_out_table_error.is_some(), "{report:?}");
    assert_eq!(told.len(), 1 + FOLDS + GROUPS);
    assert_eq!(told.last().map(|(part, parts, _)| (*part, *parts)), Some((told.len(), told.len())));
    assert!(asked.get() < 4_000_000, "{} questions", asked.get());
}

#[test]
fn what_cannot_be_is_named() {
    let heron = crate::soc::load(include_str!("../../../../boards/socs/examples/heron.toml"))
        .expect("the chip loads");
    let model = crate::model::part::Whole(heron);
    let check = |value: f64, above: bool, at_the_end: bool| {
        let row = canonical("edma:D0:dram->sram:64KiB").expect("a transfer");
        let one = Measurement { table: TRANSFER.into(), row, column: 1, value, error: None, line: 1 };
        let fitted = fit(&model, std::slice::from_ref(&one)).expect("a fit");
        assert_eq!(fitted.above_theory(&one).is_some(), above, "{value}");
        assert_eq!(!fitted.at_the_end().is_empty(), at_the_end, "{value}: {:?}", fitted.at_the_end());
    };
    check(860.0, false, false);
    check(1e9, true, false);
    check(1e-3, false, true);
}

/// A rate is never above what widths and clocks allow; of a latency there is no such bound.
#[test]
fn a_latency_may_be_longer_than_predicted() {
    let soc = crate::soc::load(include_str!("../../../../boards/socs/k2h.toml")).expect("the chip loads");
    let rows = ["L2 SRAM", "MSMC RAM (SL2)", "MSMC RAM (SL3)", "DDR 3A RAM (SL3)", "DDR 3B RAM (SL3)"];
    let mut data = Vec::new();
    for row in rows {
        for column in [3, 4] {
            let value =
                soc.cell("3", row, column).expect("a cell").predicted * (1.0 + 4.0 * scatter(data.len()));
            let (table, row) = ("3".to_owned(), row.to_owned());
            data.push(Measurement { table, row, column, value, error: None, line: data.len() + 2 });
        }
    }
    let fitted = fit(&soc, &data).expect("a fit");
    let read = fitted.predict("transfer", "core:c66x:ddr3a", 1).expect("a prediction");
    assert!(read.unit == Unit::Cycles && read.low < read.predicted, "{read:?}");
    assert!(read.high - read.predicted > 0.9 * (read.predicted - read.low), "{read:?}");
}
