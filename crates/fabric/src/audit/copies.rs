//! Measurements that agree too well: rows or columns that are copies of others, and times that never move.

use std::collections::BTreeMap;

use super::noise::Noise;
use super::{Confidence, Finding, Place, Severity, measured, show};
use crate::guide::{Cell, Guide, Number, Relation, Role, Table};

/// How probable a coincidence may be, over all the places where it could have happened, and still be reported.
pub const MAX_COINCIDENCE: f64 = 1e-6;

/// How many rows and columns are compared with each other; a guide with more is told so.
const MAX_LINES: usize = 4096;

/// What share of the compared cells has to agree.
pub const MIN_SHARE: f64 = 0.9;

/// How many sizes in a row have to take the same time.
const MIN_RUN: usize = 4;

/// What a cell is to this rule.
#[derive(Clone, Copy)]
enum Slot<'g> {
    /// A measurement, and the decimal logarithm of the probability that another prints the same digits.
    Measured(&'g Number, f64),
    /// A measurement that is kept back: it can never be shown to agree.
    Withheld,
    /// No measurement.
    Other,
}

impl<'g> Slot<'g> {
    fn new(noise: &Noise, table: &'g Table, row: usize, column: usize) -> Slot<'g> {
        if table.role(row, column) != Some(Role::Measured) {
            return Slot::Other;
        }
        match table.rows.get(row).and_then(|row| row.cells.get(column)) {
            Some(Cell::Number(number)) => {
                Slot::Measured(number, noise.log_chance(table, row, column, number))
            }
            Some(Cell::Withheld) => Slot::Withheld,
            _ => Slot::Other,
        }
    }
}

/// The columns, or the rows, of one table as lines of measured numbers.
struct Lines<'g> {
    table: &'g Table,
    /// Whether the lines are columns.
    columns: bool,
    /// Each line that has two measurements or more: its position, and its cells by theirs.
    cells: Vec<(usize, Vec<Slot<'g>>)>,
}

impl<'g> Lines<'g> {
    fn new(noise: &Noise, table: &'g Table, columns: bool) -> Lines<'g> {
        let (rows, across) = (table.rows.len(), table.columns.len());
        let column = |index: usize| (0..rows).map(|row| Slot::new(noise, table, row, index)).collect();
        let row = |index: usize| (0..across).map(|column| Slot::new(noise, table, index, column)).collect();
        let mut cells: Vec<(usize, Vec<_>)> = if columns {
            (0..across).map(|index| (index, column(index))).collect()
        } else {
            (0..rows).map(|index| (index, row(index))).collect()
        };
        cells.retain(|(_, line)| line.iter().filter(|slot| matches!(slot, Slot::Measured(..))).count() >= 2);
        Lines { table, columns, cells }
    }

    fn name(&self, index: usize) -> String {
        if self.columns {
            format!(
                "column {} ({})",
                index + 1,
                self.table.columns.get(index).map_or_else(String::new, short)
            )
        } else {
            format!("row {}", self.table.rows.get(index).map_or("", |row| row.name.as_str()))
        }
    }
}

/// A column by its tags, or by its heading if it has none.
fn short(column: &crate::guide::Column) -> String {
    if column.tags.is_empty() {
        return column.name();
    }
    let tags: Vec<String> = column.tags.iter().map(|(key, value)| format!("{key} {value}")).collect();
    tags.join(", ")
}

/// Two lines that agree.
struct Pair {
    tables: (String, String),
    section: String,
    names: (String, String),
    equal: usize,
    compared: usize,
    /// The decimal logarithm of the probability under the scatter of the tables.
    log_probability: f64,
}

/// Reports rows and columns that are copies, and runs of sizes that take exactly the same time.
///
/// Two independent measurements of one value scatter by the noise; that both print the same digits has about the
/// probability of one last digit over the width of the scatter. Over a line of cells the probabilities multiply.
pub fn check(guide: &Guide, noises: &[Noise], findings: &mut Vec<Finding>) {
    let mut lines = Vec::new();
    for (table, noise) in guide.tables.iter().zip(noises) {
        lines.push(Lines::new(noise, table, true));
        lines.push(Lines::new(noise, table, false));
    }
    bound(&mut lines, findings);
    let mut pairs = Vec::new();
    let mut compared = 0u32;
    for (index, left) in lines.iter().enumerate() {
        for right in lines.iter().skip(index).filter(|right| right.columns == left.columns) {
            compare(left, right, &mut compared, &mut pairs);
        }
    }
    let chances = f64::from(compared.max(1)).log10();
    let limit = MAX_COINCIDENCE.log10();
    let copies = pairs.into_iter().filter(|pair| pair.log_probability + chances <= limit);
    report(guide, copies, compared, findings);
    for (table, noise) in guide.tables.iter().zip(noises) {
        constant_time(noise, table, findings);
    }
}

/// Leaves out the lines beyond the bound, and says so.
fn bound(lines: &mut [Lines<'_>], findings: &mut Vec<Finding>) {
    let mut room = MAX_LINES;
    let mut left_out = 0usize;
    for line in lines {
        let fits = line.cells.len().min(room);
        left_out += line.cells.len() - fits;
        line.cells.truncate(fits);
        room -= fits;
    }
    if left_out > 0 {
        findings.push(
            Finding::new("copy-bound", Severity::Note, Confidence::Certain, Place::default()).says(
                "not all rows and columns were searched for copies".to_owned(),
                format!("{left_out} lines beyond {MAX_LINES} were left out"),
                "split the guide",
            ),
        );
    }
}

fn compare(left: &Lines<'_>, right: &Lines<'_>, compared: &mut u32, pairs: &mut Vec<Pair>) {
    let same_table = std::ptr::eq(left.table, right.table);
    for (i, one) in &left.cells {
        for (j, two) in &right.cells {
            if same_table && j <= i {
                continue;
            }
            let Some((equal, of)) = agreement(one, two) else { continue };
            *compared = compared.saturating_add(1);
            if (equal.len() as f64) < MIN_SHARE * of as f64 {
                continue;
            }
            pairs.push(Pair {
                tables: (left.table.id.clone(), right.table.id.clone()),
                section: left.table.section.clone(),
                names: (left.name(*i), right.name(*j)),
                equal: equal.len(),
                compared: of,
                log_probability: equal.iter().sum(),
            });
        }
    }
}

/// How probable each agreement is, and how many measurements there are to compare; `None` if there are fewer than two. A withheld cell
/// is one to compare that does not agree, so that keeping cells back never makes a copy.
fn agreement(one: &[Slot<'_>], two: &[Slot<'_>]) -> Option<(Vec<f64>, usize)> {
    if one.len() != two.len() {
        return None;
    }
    let mut equal = Vec::new();
    let (mut of, mut both) = (0usize, 0usize);
    for slots in one.iter().zip(two) {
        match slots {
            (Slot::Measured(one, chance), Slot::Measured(two, other)) => {
                both += 1;
                of += 1;
                if one.value == two.value {
                    equal.push(chance.max(*other));
                }
            }
            (Slot::Withheld, _) | (_, Slot::Withheld) => of += 1,
            _ => {}
        }
    }
    (both >= 2).then_some((equal, of))
}

/// One finding for each two tables (or one table with itself): the pairs in it are one mistake, not many.
fn report(guide: &Guide, pairs: impl Iterator<Item = Pair>, compared: u32, findings: &mut Vec<Finding>) {
    let mut groups: BTreeMap<(String, String), Vec<Pair>> = BTreeMap::new();
    for pair in pairs {
        groups.entry(pair.tables.clone()).or_default().push(pair);
    }
    for ((left, right), pairs) in groups {
        let (equal, of) = pairs.iter().fold((0, 0), |sum, pair| (sum.0 + pair.equal, sum.1 + pair.compared));
        let named: Vec<String> =
            pairs.iter().map(|pair| format!("{} = {}", pair.names.0, pair.names.1)).collect();
        let best = pairs.iter().map(|pair| pair.log_probability).fold(0.0, f64::min);
        let place = Place {
            section: pairs.first().map_or_else(String::new, |pair| pair.section.clone()),
            table: Some(left.clone()),
            what: (left != right).then(|| format!("table {right}")),
            ..Place::default()
        };
        findings.push(Finding::new("copy", Severity::Warning, Confidence::Likely, place).says(
            if left == right {
                format!("table {left} prints measurements twice, digit by digit")
            } else {
                format!("table {right} prints measurements of table {left} over again, digit by digit")
            },
            format!(
                "{equal} of {of} cells the same: {}; under their scatter one pair of lines has a probability of \
                 10^{best:.0}, and {compared} pairs of lines were compared",
                named.join("; ")
            ) + &donor(guide, &left, &right),
            "say that only one of them was measured, or print the measurements of the other",
        ));
    }
}

/// Which of the copied columns were measured, if the text says with what: the others have it from them.
fn donor(guide: &Guide, left: &str, right: &str) -> String {
    let Some(table) = guide.table(left).filter(|_| left == right) else { return String::new() };
    for claim in &guide.claims {
        let Relation::Describes { table: of, attributes, also } = &claim.relation else { continue };
        if of != left && also.iter().all(|other| other != left) {
            continue;
        }
        for (key, value) in attributes {
            let tags = || table.columns.iter().filter_map(|column| column.tags.get(key));
            if tags().any(|tag| tag == value) && tags().any(|tag| tag != value) {
                return format!(
                    "; the text says that {key} was {value}: the other columns have theirs from these"
                );
            }
        }
    }
    String::new()
}

/// Rows of growing size whose time (size over rate) is the same within what was printed.
fn constant_time(noise: &Noise, table: &Table, findings: &mut Vec<Finding>) {
    let sizes: Vec<Option<f64>> =
        table.rows.iter().map(|row| Number::read(&row.name).map(|number| number.value)).collect();
    let mut runs = Vec::new();
    for column in 0..table.columns.len() {
        let rate = |row: usize| measured(table, row, column).filter(|number| number.value > 0.0);
        let mut start: Option<(f64, f64, usize, f64)> = None;
        for (row, size) in sizes.iter().enumerate() {
            let Some((size, number)) = size.filter(|size| *size > 0.0).zip(rate(row)) else {
                start = close(start, &mut runs, column);
                continue;
            };
            // The time lies between these bounds, in size units per rate unit.
            let low = size / (number.value + number.half_unit());
            let high = size / (number.value - number.half_unit());
            let grows = row > 0 && sizes.get(row - 1).copied().flatten().is_some_and(|before| before < size);
            start = match start {
                Some((from, to, count, chance)) if grows && low <= to && high >= from => Some((
                    from.max(low),
                    to.min(high),
                    count + 1,
                    chance + noise.log_chance(table, row, column, number),
                )),
                other => {
                    close(other, &mut runs, column);
                    Some((low, high, 1, 0.0))
                }
            };
        }
        close(start, &mut runs, column);
    }
    let columns = (table.columns.len().max(1) as f64).log10();
    runs.retain(|run| run.count >= MIN_RUN && run.log_probability + columns <= MAX_COINCIDENCE.log10());
    let Some(longest) = runs.iter().max_by_key(|run| run.count) else { return };
    let named: Vec<String> =
        runs.iter().map(|run| format!("column {}: {} sizes", run.column + 1, run.count)).collect();
    let place = Place {
        section: table.section.clone(),
        table: Some(table.id.clone()),
        what: Some("small sizes".to_owned()),
        ..Place::default()
    };
    findings.push(Finding::new("constant-time", Severity::Note, Confidence::Possible, place).says(
        "different sizes took exactly the same time, far closer than measurements scatter".to_owned(),
        format!(
            "size / rate stays at {} within the printed digits ({}); under their scatter the longest run has a \
             probability of 10^{:.0}",
            show(longest.time),
            named.join(", "),
            longest.log_probability
        ),
        "state the resolution of the clock that timed it, or what fixed time bounds small transfers",
    ));
}

/// A run of sizes with one time.
struct Run {
    column: usize,
    count: usize,
    time: f64,
    log_probability: f64,
}

type Open = Option<(f64, f64, usize, f64)>;

/// Ends a run.
fn close(open: Open, runs: &mut Vec<Run>, column: usize) -> Open {
    if let Some((from, to, count, log_probability)) = open {
        runs.push(Run { column, count, time: f64::midpoint(from, to), log_probability });
    }
    None
}
