//! What cross-validation found, kept beside a chip: working it out takes hundreds of fits.
//!
//! It belongs to one description, the measured cells and the sentences of one guide, and carries a hash of them. [`restored`]
//! takes it for nothing else, and not when the model of today makes other errors with the kept parameters than were kept.

use super::{Calibrated, Errors, Line, Report, kind, measurements};
use crate::document;
use crate::fit::Measurement;
use crate::guide::Guide;
use crate::model::ensemble::{Ensemble, Member, Open, squared_error};
use crate::model::part::{Part, part_of};
use crate::predict::Calibrate;
use crate::soc::{EditError, Soc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Kept figures and those of today may differ by this share: by how a platform rounds in a search for a least sum.
const SAME: f64 = 1e-3;
/// Squared errors below this are none.
const NONE: f64 = 1e-9;

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// A hash of what it was found from.
    inputs: String,
    given: usize,
    /// The names of the parameters that the measurements decide.
    parameters: Vec<String>,
    /// Sentences that every structure contradicts.
    contradicted: Vec<(String, String, String)>,
    /// Half widths of intervals by kind of transfer.
    spreads: BTreeMap<String, f64>,
    calibration: Vec<Calibrated>,
    all: Line,
    groups: Vec<Line>,
    tables: Vec<Line>,
    /// The structures of each part.
    parts: BTreeMap<String, KeptPart>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptPart {
    cells: usize,
    members: Vec<KeptMember>,
}

/// A structure, in the order in which a description lists them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptMember {
    weight: f64,
    squared_error: f64,
    /// The sentences that it contradicts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    broken: Vec<(usize, String)>,
    /// Its parameters, fitted; none for one that is ruled out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    values: Vec<f64>,
}

impl Kept {
    /// What a report found of a chip with a guide.
    pub fn of(report: &Report, soc: &Soc, guide: &Guide) -> Self {
        let measured = parts(&measurements(soc, guide));
        let part = |open: &Open| {
            let member = |one: &Member| KeptMember {
                weight: one.weight,
                squared_error: one.squared_error,
                broken: one.broken.clone(),
                values: if one.weight > 0.0 { values(&one.soc, &open.part) } else { Vec::new() },
            };
            KeptPart { cells: open.cells, members: open.members.iter().map(member).collect() }
        };
        let open = report.ensemble.parts.iter().filter(|open| measured.contains_key(&open.part));
        Self {
            inputs: inputs(soc, guide),
            given: report.given,
            parameters: report.parameters.iter().map(|one| one.name.clone()).collect(),
            contradicted: report.contradicted.clone(),
            spreads: report.ensemble.spreads.iter().map(|(kind, half)| ((*kind).to_owned(), *half)).collect(),
            calibration: report.calibration.clone(),
            all: report.all.clone(),
            groups: report.groups.clone(),
            tables: report.tables.clone(),
            parts: open.map(|open| (open.part.clone(), part(open))).collect(),
        }
    }

    /// Reads what [`Self::text`] wrote; none for anything else.
    pub fn read(text: &str) -> Option<Self> {
        document::read(text).ok()
    }

    /// The file.
    ///
    /// # Errors
    /// What TOML cannot hold; found figures are finite.
    pub fn text(&self) -> Result<String, String> {
        toml::to_string(self).map_err(|error| error.to_string())
    }

    /// What is kept and no longer true, if anything.
    pub fn stale(&self, now: &Kept) -> Option<String> {
        if self.inputs != now.inputs {
            return Some("the description, the guide's cells or its sentences changed".to_owned());
        }
        let (mut kept, mut found) = (Vec::new(), Vec::new());
        self.figures(&mut kept);
        now.figures(&mut found);
        if kept.len() != found.len() || self.words() != now.words() {
            return Some("structures, cells or parameters changed".to_owned());
        }
        let apart = kept.iter().zip(&found).find(|((_, a), (_, b))| !same(*a, *b))?;
        let ((name, a), (_, b)) = apart;
        Some(format!("{name}: {a} is kept, {b} is found"))
    }

    fn words(&self) -> (&[String], Vec<&str>, Vec<&str>) {
        let said = self.contradicted.iter().map(|(section, ..)| section.as_str()).collect();
        (&self.parameters, said, self.calibration.iter().map(|line| line.kind.as_str()).collect())
    }

    /// All figures with names; parameters of fits only by the errors that they make, as ties have no least.
    fn figures(&self, all: &mut Vec<(String, f64)>) {
        let mut add = |name: String, value: f64| all.push((name, value));
        for (kind, half) in &self.spreads {
            add(format!("spread of {kind}"), *half);
        }
        for line in &self.calibration {
            add(format!("cells of {} inside", line.kind), line.inside as f64);
            add(format!("width for {}", line.kind), line.width);
        }
        for line in std::iter::once(&self.all).chain(&self.groups).chain(&self.tables) {
            for (of, Errors { cells, mean, max }) in [
                ("fitted", line.fitted),
                ("without table", line.without_table),
                ("alternate", line.alternate),
            ] {
                add(format!("{} {of} cells", line.name), cells as f64);
                add(format!("{} {of} mean", line.name), mean);
                add(format!("{} {of} max", line.name), max);
            }
        }
        for (part, open) in &self.parts {
            for (at, member) in open.members.iter().enumerate() {
                add(format!("{part}, structure {at}, weight"), member.weight);
            }
        }
    }
}

fn same(a: f64, b: f64) -> bool {
    (a - b).abs() <= SAME * a.abs().max(b.abs()) + 1e-6
}

/// The parameters of a part.
fn values(soc: &Soc, part: &str) -> Vec<f64> {
    let free = Part { soc: soc.clone(), name: part.to_owned() }.free();
    free.into_iter().map(|one| one.value).collect()
}

/// The measured cells by part.
fn parts(cells: &[Measurement]) -> BTreeMap<String, Vec<Measurement>> {
    let mut parts: BTreeMap<String, Vec<Measurement>> = BTreeMap::new();
    for cell in cells {
        parts.entry(part_of(&cell.table, &cell.row)).or_default().push(cell.clone());
    }
    parts
}

/// A hash of a description, and of the cells and sentences of a guide that it is fitted to (FNV-1a).
fn inputs(soc: &Soc, guide: &Guide) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut add = |text: &str| {
        for byte in text.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    add(&soc.text().unwrap_or_default());
    for cell in measurements(soc, guide) {
        add(&format!("{} {} {} {}", cell.table, cell.row, cell.column, cell.value));
    }
    for sentence in &guide.sentences {
        add(&format!("{:?}", sentence.says));
    }
    format!("{hash:016x}")
}

/// The report that was kept, where it is of this chip and this guide and the model still makes the errors that it made.
///
/// # Errors
/// A change that the chip refuses; a loaded chip has none.
pub fn restored(kept: &Kept, soc: &Soc, guide: &Guide) -> Result<Option<Report>, EditError> {
    if kept.inputs != inputs(soc, guide) {
        return Ok(None);
    }
    let cells = measurements(soc, guide);
    let mut open = Vec::new();
    for (part, own) in parts(&cells) {
        let Some(found) = kept.parts.get(&part) else { return Ok(None) };
        let structures = soc.structures(&part)?;
        if structures.len() != found.members.len() || own.len() != found.cells {
            return Ok(None);
        }
        let mut members = Vec::new();
        for (structure, member) in structures.into_iter().zip(&found.members) {
            let mut soc = structure.soc;
            if member.weight > 0.0 {
                let model = Part::new(&soc, &part);
                if model.free().len() != member.values.len() {
                    return Ok(None);
                }
                let model = model.with_free(&member.values);
                let now = squared_error(&model, &own);
                if (now - member.squared_error).abs() > 1e-6 * now.max(member.squared_error) + NONE {
                    return Ok(None);
                }
                soc = model.into_chip(&soc);
            }
            members.push(Member {
                choices: structure.choices,
                soc,
                weight: member.weight,
                squared_error: member.squared_error,
                broken: member.broken.clone(),
            });
        }
        open.push(Open { part, members, cells: found.cells });
    }
    let kinds = cells.iter().filter_map(|cell| kind(&cell.table, &cell.row));
    let spreads = kinds.filter_map(|kind| Some((kind, *kept.spreads.get(kind)?))).collect();
    let ensemble = Ensemble::new(soc, open, &guide.sentences, spreads)?;
    let mut all = soc.free();
    all.extend(soc.links.free());
    Ok(Some(Report {
        all: kept.all.clone(),
        calibration: kept.calibration.clone(),
        ensemble,
        tables: kept.tables.clone(),
        groups: kept.groups.clone(),
        parameters: all.into_iter().filter(|one| kept.parameters.contains(&one.name)).collect(),
        contradicted: kept.contradicted.clone(),
        given: kept.given,
    }))
}
