//! `linerate fabric fit`.

use super::args::{Fit, Format};
use super::builtin;
use super::error::FabricError;
use super::show;
use linerate_fabric::ask;
use linerate_fabric::fit::{self, Estimate, FitError, Fitted, Identified, Measurement, Report, Tie};
use linerate_fabric::model::ensemble;
use linerate_fabric::model::part::{Whole, part_of};
use linerate_fabric::model::tables::TRANSFER;
use linerate_fabric::predict::{Calibrate, Prediction, TableModel};
use linerate_fabric::soc::Soc;
use linerate_fabric::units::split_number;
use linerate_lab::progress::Progress;
use linerate_lab::report::grid::{Cell, Grid, GridFormat};
use serde_json::{Value, json};
use std::fmt;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::str::FromStr;
use std::time::{Duration, Instant};

/// A fit that takes longer tells how far it is.
const QUIET: Duration = Duration::from_secs(1);

/// A cell of a guide's tables, as `TABLE,ROW,COLUMN`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CellName {
    table: String,
    row: String,
    column: usize,
}

impl FromStr for CellName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split_once(',').and_then(|(table, rest)| Some((table, rest.rsplit_once(',')?)));
        let expected = || "expected TABLE,ROW,COLUMN such as 18,4096,1; columns count from 1".to_owned();
        let (table, (row, column)) = parts.ok_or_else(expected)?;
        let column = column.trim().parse().ok().filter(|column| *column > 0).ok_or_else(expected)?;
        Ok(CellName { table: table.trim().to_owned(), row: row.trim().to_owned(), column })
    }
}

impl fmt::Display for CellName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.table == TRANSFER {
            return f.write_str(&self.row);
        }
        write!(f, "{},{},{}", self.table, self.row, self.column)
    }
}

/// A measured transfer, as `TRANSFER=VALUE`.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    transfer: String,
    value: f64,
    unit: String,
}

impl FromStr for Measured {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // Options of a transfer have an equals sign too: the value stands behind the last one.
        let (transfer, value) = text
            .rsplit_once('=')
            .ok_or_else(|| "expected TRANSFER=VALUE such as edma:D0:dram->sram:64KiB=840MB/s".to_owned())?;
        let (number, unit) = split_number(value);
        match number.parse::<f64>() {
            Ok(value) if value > 0.0 && value.is_finite() => {
                Ok(Measured { transfer: fit::canonical(transfer)?, value, unit: unit.to_owned() })
            }
            _ => Err(format!("'{value}' for the value; expected a number above 0, with a unit or without")),
        }
    }
}

impl Measured {
    /// As the fit reads it: in the unit of the prediction.
    fn measurement(&self, soc: &Soc, line: usize) -> Result<Measurement, FabricError> {
        let unit = ask::answer(soc, &self.transfer)?.unit;
        // In millions of bits: units of rate have one in common.
        let scale = |unit: &str| match unit {
            "MB/s" => Some(8.0),
            "GB/s" => Some(8000.0),
            "Mb/s" | "Mbit/s" => Some(1.0),
            "Gb/s" | "Gbit/s" => Some(1000.0),
            _ => None,
        };
        let factor = match self.unit.as_str() {
            "" => Some(1.0),
            own if own == unit.symbol() => Some(1.0),
            own => scale(own).zip(scale(unit.symbol())).map(|(from, to)| from / to),
        };
        let Some(factor) = factor else {
            let given = format!("{}={} {}", self.transfer, self.value, self.unit);
            return Err(FabricError::value("--transfer", given, format!("a value in {}", unit.symbol())));
        };
        Ok(Measurement {
            table: TRANSFER.to_owned(),
            row: self.transfer.clone(),
            column: 1,
            value: self.value * factor,
            error: None,
            line,
        })
    }
}

/// A fit that tells how far it is where it takes long, and what is doubtful of what it found.
fn fitted<M: Calibrate>(model: &M, data: &[Measurement]) -> Result<Fitted<M>, FitError> {
    let begin = Instant::now();
    let mut progress: Option<Progress> = None;
    let fitted = fit::fit_told(model, data, &mut |part, parts, what| {
        if progress.is_none() && begin.elapsed() < QUIET {
            return;
        }
        let behind = if progress.is_some() { 1 } else { part as u64 - 1 };
        let progress = progress.get_or_insert_with(|| Progress::new("fit", parts as u64));
        progress.done(behind);
        progress.begin(what);
    })?;
    drop(progress);
    for doubt in doubts(&fitted, data) {
        // Where nobody reads it, the answer is the same.
        drop(writeln!(io::stderr(), "linerate: warning: {doubt}"));
    }
    Ok(fitted)
}

/// What of a fit cannot be.
fn doubts<M: Calibrate>(fitted: &Fitted<M>, data: &[Measurement]) -> Vec<String> {
    let mut doubts: Vec<String> = data
        .iter()
        .filter_map(|one| {
            let most = fitted.above_theory(one)?;
            let (value, most) = (show::figure(one.value), show::figure(most));
            let cell =
                if one.table == TRANSFER { one.row.clone() } else { format!("{},{}", one.table, one.row) };
            Some(format!("{cell}: {value} was measured, widths and clocks allow {most}; is the unit right?"))
        })
        .collect();
    doubts.extend(fitted.at_the_end().into_iter().map(|one| {
        let (min, max) = (show::figure(one.min), show::figure(one.max));
        format!(
            "{} went to the end of its range, {min} to {max} {}: expected measurements that it can explain",
            one.name, one.unit
        )
    }));
    doubts
}

/// A fitted part of a chip, and what is predicted with it.
struct Part {
    name: &'static str,
    report: Report,
    predictions: Vec<(String, Prediction)>,
}

/// The measurements of the file and of the arguments.
fn measured(args: &Fit, soc: &Soc) -> Result<(String, Vec<Measurement>), FabricError> {
    let file = args.data.as_ref().map_or_else(|| "--transfer".to_owned(), |path| path.display().to_string());
    let mut data = match &args.data {
        None => Vec::new(),
        Some(path) => fit::read(&builtin::read(path)?)
            .map_err(|error| FabricError::Malformed { file: file.clone(), why: error.to_string() })?,
    };
    for (number, one) in args.transfer.iter().enumerate() {
        data.push(one.measurement(soc, number + 1)?);
    }
    Ok((file, data))
}

/// What the command prints.
pub fn run(args: &Fit) -> Result<String, FabricError> {
    let soc = builtin::soc(&args.soc)?;
    if args.data.is_none() && args.transfer.is_empty() {
        return Err(FabricError::Usage("no measurements: expected DATA.csv, or --transfer TRANSFER=VALUE"));
    }
    let (file, data) = measured(args, &soc)?;
    let malformed = |why: String| FabricError::Malformed { file: file.clone(), why };
    let mut asked = args.cell.clone();
    asked.extend(args.predict.iter().map(|transfer| CellName {
        table: TRANSFER.to_owned(),
        row: transfer.to_string(),
        column: 1,
    }));
    let mut parts = Vec::new();
    if data.iter().any(|one| one.table == TRANSFER) {
        // Transfers may take any way through the chip, so all of it is fitted at once.
        let fitted = fitted(&Whole(soc.clone()), &data).map_err(|error| malformed(error.to_string()))?;
        parts.push(part("the chip", &fitted, &asked));
    } else {
        // Links and the rest share no parameter: each is fitted to its own cells, and sees no others.
        let (links, chip): (Vec<Measurement>, Vec<Measurement>) =
            data.iter().cloned().partition(|one| soc.links.cell(&one.table, &one.row, one.column).is_some());
        if !chip.is_empty() {
            let fitted = fitted(&soc, &chip).map_err(|error| malformed(error.to_string()))?;
            parts.push(part("memories, EDMA and cores", &fitted, &asked));
        }
        if !links.is_empty() {
            let fitted = fitted(&soc.links, &links).map_err(|error| malformed(error.to_string()))?;
            parts.push(part("links", &fitted, &asked));
        }
    }
    if parts.is_empty() {
        return Err(malformed("no measurements".to_owned()));
    }
    for cell in &asked {
        let name = cell.to_string();
        if !parts.iter().any(|part| part.predictions.iter().any(|(known, _)| *known == name)) {
            return Err(FabricError::value(
                "--cell",
                name,
                "a cell that the fitted part of the chip predicts",
            ));
        }
    }
    Ok(match args.format {
        Format::Text => {
            let mut said = parts.iter().map(text).collect::<Vec<_>>().join("\n");
            said.push_str(&open(&soc, &data)?);
            said
        }
        Format::Json => format!("{:#}\n", Value::Array(parts.iter().map(object).collect())),
    })
}

/// How the answers to what is open of the chip do on the measurements.
fn open(soc: &Soc, data: &[Measurement]) -> Result<String, FabricError> {
    let mut said = String::new();
    for part in soc.open_parts() {
        let own: Vec<Measurement> =
            data.iter().filter(|one| part_of(&one.table, &one.row) == part).cloned().collect();
        if own.is_empty() {
            continue;
        }
        let structures = soc.structures(&part).map_err(|error| FabricError::Failed(error.to_string()))?;
        let left: Vec<_> = structures.into_iter().filter(|structure| structure.weight > 0.0).collect();
        let found = ensemble::open(&left, &part, &own, &[]);
        for (name, question) in soc.alternatives.iter().filter(|(_, open)| open.part() == part) {
            let _ = writeln!(said, "open: {}", question.question);
            for (answer, weight) in found.answers(name) {
                let _ = writeln!(said, "  {:>5.1} %  {answer}", weight * 100.0);
            }
            let _ = writeln!(said, "  measure to decide: {}", *question.decides);
        }
    }
    Ok(said)
}

fn part<M: Calibrate>(name: &'static str, fitted: &Fitted<M>, cells: &[CellName]) -> Part {
    let predict =
        |cell: &CellName| Some((cell.to_string(), fitted.predict(&cell.table, &cell.row, cell.column)?));
    Part { name, report: fitted.report.clone(), predictions: cells.iter().filter_map(predict).collect() }
}

fn object(part: &Part) -> Value {
    let predictions =
        part.predictions.iter().map(|(cell, prediction)| json!({"cell": cell, "prediction": prediction}));
    json!({"part": part.name, "report": part.report, "predictions": predictions.collect::<Vec<_>>()})
}

fn text(part: &Part) -> String {
    let report = &part.report;
    let percent = |ratio: f64| format!("{:.2} %", ratio * 100.0);
    let mut text =
        parameters(part.name, &report.estimates).render(GridFormat::Terminal, crate::output::width());
    let _ = writeln!(
        text,
        "\n{} measurements: mean error {} (before {}), largest {}",
        report.measurements,
        percent(report.mean_error),
        percent(report.mean_error_before),
        percent(report.worst_error)
    );
    let unseen = [("rows", report.alternate_rows_error), ("tables", report.left_out_table_error)];
    for (what, error) in unseen {
        let error = error.map_or_else(|| "too few to say".to_owned(), percent);
        let _ = writeln!(text, "on {what} that the fit has not seen: {error}");
    }
    let known = &report.identifiability;
    let _ = writeln!(
        text,
        "identifiability: {} of {} parameters or combinations are seen, condition {:.3e}",
        known.rank, known.parameters, known.condition
    );
    for (explanation, names) in gathered(&known.ties) {
        let _ = writeln!(text, "  {}: {explanation}", names.join(", "));
    }
    let moved = |one: &&Estimate| {
        one.identified != Identified::No && (one.value - one.before).abs() > 1e-6 * one.before.abs()
    };
    let settings: Vec<String> = report
        .estimates
        .iter()
        .filter(moved)
        .map(|one| format!("--set '{}'", setting(&one.name, one.value, &one.unit)))
        .collect();
    if !settings.is_empty() {
        let _ = writeln!(text, "the fitted chip: linerate fabric predict SOC {}", settings.join(" "));
    }
    for (cell, prediction) in &part.predictions {
        let _ = writeln!(
            text,
            "cell {cell}: {} {} ({} to {})",
            show::figure(prediction.predicted),
            prediction.unit.symbol(),
            show::figure(prediction.low),
            show::figure(prediction.high)
        );
    }
    text
}

/// A parameter as `--set` takes it: cycles keep the clock that the key has, and plain counts have no unit.
fn setting(name: &str, value: f64, unit: &str) -> String {
    let unit = unit.split(' ').next().filter(|unit| !matches!(*unit, "cycles" | "reads" | "pages"));
    format!("{name}={value:.4} {}", unit.unwrap_or("")).trim_end().to_owned()
}

/// What cannot be told, each explanation once with all the parameters that it holds for, in order.
fn gathered(ties: &[Tie]) -> Vec<(String, Vec<String>)> {
    let mut gathered: Vec<(String, Vec<String>)> = Vec::new();
    for tie in ties {
        let names = tie.names.join(", ");
        let own = tie.explanation.strip_prefix(&names).and_then(|rest| rest.strip_prefix(": "));
        let explanation = own.unwrap_or(&tie.explanation);
        match gathered.iter_mut().find(|(known, _)| known == explanation) {
            Some((_, all)) => all.push(names),
            None => gathered.push((explanation.to_owned(), vec![names])),
        }
    }
    gathered
}

fn parameters(name: &str, estimates: &[Estimate]) -> Grid {
    let headers =
        ["parameter", "unit and clock", "before", "fitted", "90 % from", "to", "decided by the data"];
    let mut grid = Grid::new("fit", format!("Parameters of {name}"), &headers);
    for estimate in estimates {
        let decided = match estimate.identified {
            Identified::Yes => "yes",
            Identified::Tied => "only together with others",
            Identified::No => "no",
        };
        let number = |value: f64| Cell::number(value, 3);
        grid.rows.push(vec![
            Cell::text(&estimate.name),
            Cell::text(&estimate.unit),
            number(estimate.before),
            number(estimate.value),
            number(estimate.low),
            number(estimate.high),
            Cell::text(decided),
        ]);
    }
    grid
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explanations_stand_once() {
        let tie = |name: &str, explanation: &str| Tie {
            names: vec![name.to_owned()],
            strength: 0.0,
            explanation: explanation.to_owned(),
        };
        let ties = [
            tie("a", "a: nothing sees it"),
            tie("b", "the line or the chip"),
            tie("c", "c: nothing sees it"),
        ];
        let expected = [("nothing sees it", vec!["a", "c"]), ("the line or the chip", vec!["b"])];
        let owned = expected
            .map(|(text, names)| (text.to_owned(), names.iter().map(|&name| name.to_owned()).collect()));
        assert_eq!(gathered(&ties), owned);
    }

    #[test]
    fn what_is_printed_can_be_set() {
        let text = |name: &str| builtin::SOCS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
        let levels = [
            ("memory.conflict", "512 B"),
            ("cache.read_all", "400 MB/s"),
            ("cache.fill_all", "400 MB/s"),
            ("cache.copy_all", "400 MB/s"),
        ];
        let mut levels: Vec<(String, String)> =
            levels.map(|(key, value)| (format!("cores.vexriscv.levels.{key}"), value.to_owned())).into();
        let tlb = "{ entries = 8, unevenness = \"20 %\", page = \"4 KiB\", miss = \"30 cycles @ cpu\", pipeline = \"own\" }";
        levels.push(("cores.vexriscv.tlbs".to_owned(), format!("{{ first = {tlb} }}")));
        for (name, changes) in [("k2h", &[][..]), ("zcu102", &[]), ("softcore", &levels)] {
            let soc = linerate_fabric::soc::load(text(name).unwrap()).unwrap().with(changes).unwrap();
            for one in soc.free().into_iter().chain(soc.links.free()) {
                let said = setting(&one.name, one.value, &one.unit);
                let (key, value) = said.split_once('=').unwrap();
                if let Err(error) = soc.with(&[(key.to_owned(), value.to_owned())]) {
                    panic!("{name}: {said}: {error}");
                }
            }
        }
    }

    #[test]
    fn cell_names() {
        let check = |text: &str, expected: Option<(&str, &str, usize)>| {
            let expected = expected.map(|(table, row, column)| CellName {
                table: table.into(),
                row: row.into(),
                column,
            });
            assert_eq!(text.parse::<CellName>().ok(), expected, "{text}");
        };
        check("18,4096,1", Some(("18", "4096", 1)));
        check("26,Write to L2, 2", Some(("26", "Write to L2", 2)));
        check("7,TC2, TC6, and TC10,3", Some(("7", "TC2, TC6, and TC10", 3)));
        check("18,4096", None);
        check("18,4096,0", None);
        check("18,4096,x", None);
        check("", None);
    }
}
