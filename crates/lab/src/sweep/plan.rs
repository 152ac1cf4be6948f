//! A sweep that was read and checked: which items there are, and what comes of each.

use super::axis::Axis;
use super::cell::{self, Cell, Column, Kind};
use super::file::{Method, SampleTable, SweepFile};
use super::sample::Sample;
use super::subject::{Setting, Subject};
use crate::scenario::error::{Mistake, SimError};
use crate::scenario::load;
use linerate_fabric::document;
use linerate_fabric::soc::Soc;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Table;

/// Most items of a sweep.
pub const MOST_ITEMS: u64 = 100_000_000;
/// The key that items set themselves.
const SEED: &str = "world.seed";
/// Most points of a sample by chance.
const MOST_POINTS: u32 = 10_000_000;

/// See the module.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What the sweep asks, in a line.
    pub title: String,
    /// The axes.
    pub axes: Vec<Axis>,
    /// The columns of its table.
    pub columns: Vec<Column>,
    /// The keys of the heat map from left to right and from bottom to top, as places in `axes`; none for a single axis.
    pub picture: Option<[usize; 2]>,
    /// The column that it shows, and that effects are told of.
    pub figure: usize,
    /// Hash of everything that decides what comes of the items: equal for equal sweeps.
    pub digest: u64,
    /// Worlds of each point.
    pub seeds: u64,
    subject: Subject,
    sample: Sample,
    first_seed: u64,
}

/// A sweep that cannot be.
#[derive(Debug)]
pub struct PlanError {
    path: PathBuf,
    why: Why,
}

#[derive(Debug)]
enum Why {
    Unreadable(std::io::Error),
    Malformed(Mistake),
    Elsewhere(String),
}

impl std::fmt::Display for PlanError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = self.path.display();
        match &self.why {
            Why::Unreadable(why) => write!(f, "cannot read {path}: {why}"),
            Why::Malformed(mistake) => write!(f, "{path}: {mistake}"),
            Why::Elsewhere(why) => write!(f, "{path}: {why}"),
        }
    }
}

impl std::error::Error for PlanError {}

/// Finds a chip by what a file calls it: a name that is known, or a path.
pub type Chips<'a> = &'a dyn Fn(&str) -> Result<Soc, String>;

impl Plan {
    /// The sweep of a file.
    ///
    /// # Errors
    /// The first mistake, with file, line, key and what was expected.
    pub fn load(path: &Path, chips: Chips<'_>) -> Result<Plan, PlanError> {
        let failed = |why| PlanError { path: path.to_owned(), why };
        let text = std::fs::read_to_string(path).map_err(|why| failed(Why::Unreadable(why)))?;
        let read = |name: &str| {
            let beside = path.parent().unwrap_or(Path::new("")).join(name);
            std::fs::read_to_string(&beside)
                .map(|text| (beside.clone(), text))
                .map_err(|why| format!("cannot read {}: {why}", beside.display()))
        };
        Plan::parse(&text, &read, chips).map_err(|why| failed(why.into()))
    }

    /// The sweep of a text; `read` reads the file of a scenario.
    fn parse(text: &str, read: Reader<'_>, chips: Chips<'_>) -> Result<Plan, Mistake> {
        let file: SweepFile = document::read(text)
            .map_err(|error| Mistake::at(text, &error.span().unwrap_or(0..0), error.message()))?;
        let (subject, base) = subject(text, &file, read, chips)?;
        let method = file.sample.as_ref().map_or(Method::Grid, |sample| sample.get_ref().method);
        let axes: Vec<Axis> = file
            .axis
            .iter()
            .map(|table| Axis::new(text, table, method == Method::Grid))
            .collect::<Result<_, _>>()?;
        if axes.is_empty() {
            return Err(Mistake::at(text, &(text.len()..text.len()), "expected an [[axis]] at least"));
        }
        check_axes(text, &axes, &subject)?;
        let sample = sample(text, &file, &axes)?;
        let seeds = seeds(text, &file, &subject)?;
        let first_seed = file.first_seed.or_else(|| subject.seed()).unwrap_or(1);
        if sample.points().saturating_mul(seeds) > MOST_ITEMS {
            let what =
                format!("{} points of {seeds} seeds; expected at most {MOST_ITEMS} items", sample.points());
            return Err(Mistake::at(text, &axes[0].span, what));
        }
        let mut columns = vec![Column::new("item", Kind::Integer), Column::new("seed", Kind::Integer)];
        columns.extend(axes.iter().map(|axis| axis.column.clone()));
        columns.extend(subject.columns());
        columns.push(Column::new("error", Kind::Text));
        let (picture, figure) = picture(text, &file, &axes, &columns, subject.figure())?;
        let version = env!("CARGO_PKG_VERSION");
        Ok(Plan {
            title: file.title.clone().unwrap_or_else(|| "A sweep".to_owned()),
            axes,
            columns,
            picture,
            figure,
            digest: digest(&[text, &base, version]),
            seeds,
            subject,
            sample,
            first_seed,
        })
    }

    /// The chip that is asked, if it is one.
    pub fn chip(&self) -> Option<String> {
        match &self.subject {
            Subject::Worlds(_) => None,
            Subject::Chip { soc, .. } => Some(soc.chip.name.clone()),
        }
    }

    /// How many items there are, from 0.
    pub fn items(&self) -> u64 {
        self.sample.points() * self.seeds
    }

    /// The names of the columns as a line of CSV.
    pub fn header(&self) -> String {
        cell::line(self.columns.iter().map(|column| column.name.as_str()))
    }

    /// What comes of an item, as a line of CSV. An item that cannot be says why in its last column.
    pub fn run(&self, item: u64) -> String {
        let (settings, seed) = self.settings(item);
        match self.subject.answer(&settings, seed) {
            Ok(cells) => self.row(item, Ok(cells)),
            Err(why) => self.row(item, Err(why)),
        }
    }

    /// The line of an item for which there is no answer.
    pub fn failed(&self, item: u64, why: &str) -> String {
        self.row(item, Err(why.to_owned()))
    }

    /// Keys and values of an item, and its seed.
    fn settings(&self, item: u64) -> (Vec<Setting>, u64) {
        let values = self.sample.values(&self.axes, item / self.seeds);
        let settings =
            self.axes.iter().zip(values).map(|(axis, value)| (axis.key.clone(), value.to_string()));
        (settings.collect(), self.seed(item))
    }

    fn seed(&self, item: u64) -> u64 {
        self.first_seed.wrapping_add(item % self.seeds)
    }

    fn row(&self, item: u64, answer: Result<Vec<Cell>, String>) -> String {
        let values = self.sample.values(&self.axes, item / self.seeds);
        let mut cells = vec![Cell::Integer(item), Cell::Integer(self.seed(item))];
        cells.extend(self.axes.iter().zip(&values).map(|(axis, value)| axis.cell(value)));
        let answers = self.columns.len() - cells.len() - 1;
        let (answer, error) = match answer {
            Ok(answer) => (answer, Cell::Empty),
            Err(why) => (vec![Cell::Empty; answers], Cell::Text(why)),
        };
        cells.extend(answer);
        cells.push(error);
        cell::row(&cells)
    }
}

impl From<Mistake> for Why {
    fn from(mistake: Mistake) -> Why {
        // A mistake in another file has its own place in its text.
        match mistake.what.strip_prefix(ELSEWHERE) {
            Some(what) => Why::Elsewhere(what.to_owned()),
            None => Why::Malformed(mistake),
        }
    }
}

/// What begins the text of a mistake that names its own place.
const ELSEWHERE: &str = "\u{0}";

type Reader<'a> = &'a dyn Fn(&str) -> Result<(PathBuf, String), String>;

/// What is asked, and the text that it begins with where that is not in the file itself.
fn subject(
    text: &str,
    file: &SweepFile,
    read: Reader<'_>,
    chips: Chips<'_>,
) -> Result<(Subject, String), Mistake> {
    let end = text.len()..text.len();
    match (&file.scenario, &file.scenario_file, &file.chip, &file.transfer) {
        (Some(scenario), None, None, None) => {
            load::check(text, scenario)?;
            let whole: Table =
                text.parse().map_err(|error: toml::de::Error| Mistake::at(text, &(0..0), error.message()))?;
            let table = whole.get("scenario").and_then(|value| value.as_table()).cloned();
            Ok((Subject::Worlds(table.unwrap_or_default()), String::new()))
        }
        (None, Some(name), None, None) => {
            let at = |what: String| Mistake::at(text, &name.span(), what);
            let (path, base) = read(name.get_ref()).map_err(at)?;
            let elsewhere = |mistake: Mistake| {
                let error = SimError::Malformed { path, mistake };
                Mistake { what: format!("{ELSEWHERE}{error}"), ..at(String::new()) }
            };
            load::parse(&base).map_err(elsewhere)?;
            let table: Table =
                base.parse().map_err(|error: toml::de::Error| at(error.message().to_owned()))?;
            Ok((Subject::Worlds(table), base))
        }
        (None, None, Some(chip), Some(transfer)) => {
            let soc = chips(chip.get_ref()).map_err(|what| Mistake::at(text, &chip.span(), what))?;
            let subject = Subject::Chip { soc: Box::new(soc), transfer: transfer.get_ref().clone() };
            subject.answer(&[], 0).map_err(|what| Mistake::at(text, &transfer.span(), what))?;
            // Whatever the description has decides what is answered.
            let description = match &subject {
                Subject::Chip { soc, .. } => format!("{soc:?}"),
                Subject::Worlds(_) => String::new(),
            };
            Ok((subject, description))
        }
        (None, None, Some(chip), None) => Err(Mistake::at(
            text,
            &chip.span(),
            "expected a transfer beside it, as in transfer = \"edma:TC0:MSMC->DDR3A:32KiB\"",
        )),
        _ => {
            let what = "expected one of [scenario], scenario-file = \"FILE.toml\", and chip = \"NAME\" with transfer";
            Err(Mistake::at(text, &end, what))
        }
    }
}

/// Whether each value fits alone, and no key stands twice.
fn check_axes(text: &str, axes: &[Axis], subject: &Subject) -> Result<(), Mistake> {
    for (number, axis) in axes.iter().enumerate() {
        if axes[..number].iter().any(|other| other.key == axis.key) {
            return Err(Mistake::at(text, &axis.span, format!("{} is varied twice", axis.key)));
        }
        if axis.key == SEED && subject.is_random() {
            let what = format!("{SEED} is the item's; expected seeds = N and first-seed in its place");
            return Err(Mistake::at(text, &axis.span, what));
        }
        let values: Vec<toml::Value> = match axis.is_list() {
            true => (0..axis.len()).map(|index| axis.at(index)).collect(),
            false => vec![axis.between(0.0), axis.between(1.0)],
        };
        // Keys that need others are right only together: then all others have their first value.
        let others = || axes.iter().filter(|other| other.key != axis.key);
        for value in values {
            let own = (axis.key.clone(), value.to_string());
            let Err(why) = subject.check(std::slice::from_ref(&own)) else { continue };
            let mut settings: Vec<Setting> =
                others().map(|other| (other.key.clone(), other.between(0.0).to_string())).collect();
            settings.push(own);
            if subject.check(&settings).is_err() {
                return Err(Mistake::at(text, &axis.span, format!("{} = {value}: {why}", axis.key)));
            }
        }
    }
    Ok(())
}

fn sample(text: &str, file: &SweepFile, axes: &[Axis]) -> Result<Sample, Mistake> {
    let Some(table) = &file.sample else { return Ok(Sample::new(Method::Grid, 0, 1, axes)) };
    let SampleTable { method, points, seed } = *table.get_ref();
    let wrong = |what: String| Err(Mistake::at(text, &table.span(), what));
    match (method, points) {
        (Method::Grid, Some(_)) => {
            wrong("a grid has as many points as combinations; expected no points".to_owned())
        }
        (Method::Grid, None) => Ok(Sample::new(method, 0, seed, axes)),
        (_, Some(points)) if (1..=MOST_POINTS).contains(&points) => {
            Ok(Sample::new(method, points, seed, axes))
        }
        _ => wrong(format!("expected points = N, from 1 to {MOST_POINTS}")),
    }
}

fn seeds(text: &str, file: &SweepFile, subject: &Subject) -> Result<u64, Mistake> {
    match &file.seeds {
        None => Ok(1),
        Some(seeds) if *seeds.get_ref() == 0 => {
            Err(Mistake::at(text, &seeds.span(), "expected 1 seed or more"))
        }
        Some(seeds) if *seeds.get_ref() > 1 && !subject.is_random() => {
            Err(Mistake::at(text, &seeds.span(), "nothing is left to chance in a chip; expected no seeds"))
        }
        Some(seeds) => Ok((*seeds.get_ref()).into()),
    }
}

/// The axes of the heat map and the column that it shows.
fn picture(
    text: &str,
    file: &SweepFile,
    axes: &[Axis],
    columns: &[Column],
    usual: &str,
) -> Result<(Option<[usize; 2]>, usize), Mistake> {
    let place = |name: &str| columns.iter().position(|column| column.name == name);
    let Some(table) = &file.picture else {
        return Ok(((axes.len() > 1).then_some([1, 0]), place(usual).unwrap_or(0)));
    };
    let axis = |key: &toml::Spanned<String>| {
        let names: Vec<&str> = axes.iter().map(|axis| axis.key.as_str()).collect();
        let found = axes.iter().position(|axis| axis.key == *key.get_ref());
        found.ok_or_else(|| Mistake::at(text, &key.span(), format!("expected one of {}", names.join(", "))))
    };
    let both = [axis(&table.x)?, axis(&table.y)?];
    if both[0] == both[1] {
        return Err(Mistake::at(text, &table.y.span(), "expected another key than x"));
    }
    let figure = match &table.figure {
        None => place(usual).unwrap_or(0),
        Some(name) => {
            let numbers = columns.iter().filter(|column| column.kind != Kind::Text);
            let names: Vec<&str> = numbers.map(|column| column.name.as_str()).collect();
            let found = place(name.get_ref()).filter(|place| columns[*place].kind != Kind::Text);
            found.ok_or_else(|| {
                Mistake::at(text, &name.span(), format!("expected one of {}", names.join(", ")))
            })?
        }
    };
    Ok((Some(both), figure))
}

/// A hash of texts (FNV-1a, 64 bits).
pub(super) fn digest(texts: &[&str]) -> u64 {
    let bytes = texts.iter().flat_map(|text| text.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Numbers of items, from `A-B` (both included) or `A`.
///
/// # Errors
/// What was expected.
pub fn items(text: &str, most: u64) -> Result<Range<u64>, String> {
    let expected = || format!("expected FIRST-LAST of the items 0 to {}", most.saturating_sub(1));
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |text: &str| text.trim().parse::<u64>().map_err(|_| expected());
    let (first, last) = (number(first)?, number(last)?);
    if first > last || last >= most {
        return Err(expected());
    }
    Ok(first..last + 1)
}

#[cfg(test)]
mod tests;
