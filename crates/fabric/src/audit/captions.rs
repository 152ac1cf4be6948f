//! Captions against the lists of tables and figures, each other, their footnotes, headings and rows.

use std::collections::{BTreeMap, BTreeSet};

use super::expression::unit;
use super::{Confidence, Finding, Place, Severity, show, words};
use crate::guide::{Cell, Entry, Guide, Number, Relation, Table};

/// Words of which a caption can hold only one for its table.
pub const OPPOSITES: [(&str, &str); 5] = [
    ("read", "write"),
    ("transmit", "receive"),
    ("maximum", "measured"),
    ("unidirectional", "bidirectional"),
    ("master", "memory"),
];

/// Checks captions.
pub fn check(guide: &Guide, findings: &mut Vec<Finding>) {
    let tables: Vec<_> = guide
        .tables
        .iter()
        .filter(|table| !table.caption.is_empty())
        .map(|table| Caption { number: &table.id, text: &table.caption, section: &table.section })
        .collect();
    let figures: Vec<_> = guide
        .figures
        .iter()
        .map(|figure| Caption { number: &figure.number, text: &figure.caption, section: &figure.section })
        .collect();
    for (kind, captions, list) in
        [("table", &tables, &guide.table_list), ("figure", &figures, &guide.figure_list)]
    {
        against_list(kind, captions, list, findings);
        twice(kind, captions, findings);
    }
    figure_rates(guide, findings);
    for table in &guide.tables {
        marks(guide, table, findings);
        footnote_rows(table, findings);
        rows_and_corner(table, findings);
        corner_of_another(guide, table, findings);
        parts(table, findings);
    }
}

/// A caption under its number.
struct Caption<'g> {
    number: &'g str,
    text: &'g str,
    section: &'g str,
}

fn place(kind: &str, number: &str, section: &str) -> Place {
    if kind == "table" {
        return Place { section: section.to_owned(), table: Some(number.to_owned()), ..Place::default() };
    }
    Place { section: section.to_owned(), what: Some(format!("{kind} {number}")), ..Place::default() }
}

/// A caption for comparison: without a mark in parentheses at its end, and without blanks, as marks and blanks are
/// typesetting.
fn plain(caption: &str) -> String {
    words(mark(caption).map_or(caption, |(rest, _)| rest)).concat()
}

/// A mark in parentheses at the end of a text, as in `... 3C (1)`, and what stands before it.
fn mark(text: &str) -> Option<(&str, &str)> {
    let (rest, mark) = text.trim_end().strip_suffix(')')?.rsplit_once('(')?;
    (!mark.is_empty() && mark.bytes().all(|byte| byte.is_ascii_digit())).then_some((rest, mark))
}

fn against_list(kind: &str, captions: &[Caption<'_>], list: &[Entry], findings: &mut Vec<Finding>) {
    let listed: BTreeMap<&str, &Entry> = list.iter().map(|entry| (entry.number.as_str(), entry)).collect();
    let numbers: BTreeSet<&str> = captions.iter().map(|caption| caption.number).collect();
    for caption in captions {
        let at = place(kind, caption.number, caption.section);
        let Some(entry) = listed.get(caption.number) else {
            if !list.is_empty() {
                findings.push(Finding::new("caption-list", Severity::Note, Confidence::Certain, at).says(
                    format!("{kind} {} is not in the list of {kind}s", caption.number),
                    format!("the list has {} entries, none with this number", list.len()),
                    "list it",
                ));
            }
            continue;
        };
        if plain(&entry.text) != plain(caption.text) {
            findings.push(Finding::new("caption-list", Severity::Warning, Confidence::Certain, at).says(
                format!("{kind} {} has one caption in the list and another where it stands", caption.number),
                format!("list \"{}\", page {}; caption \"{}\"", entry.text, entry.page, caption.text),
                "print the caption that its content bears out in both places",
            ));
        }
    }
    for entry in list.iter().filter(|entry| !numbers.contains(entry.number.as_str())) {
        let finding =
            Finding::new("caption-list", Severity::Note, Confidence::Certain, place(kind, &entry.number, ""));
        findings.push(finding.says(
            format!("the list names {kind} {}, which is not there", entry.number),
            format!("\"{}\", page {}", entry.text, entry.page),
            "print it, or take it off the list",
        ));
    }
}

/// Two captions with the same words: one of them is another table's.
fn twice(kind: &str, captions: &[Caption<'_>], findings: &mut Vec<Finding>) {
    let all: BTreeSet<String> = captions.iter().map(|caption| plain(caption.text)).collect();
    let mut first: BTreeMap<String, &Caption<'_>> = BTreeMap::new();
    for later in captions {
        let text = plain(later.text);
        let base = text.trim_end_matches(|c: char| c.is_ascii_digit());
        // `PHY1` is `PHY` with a mark when another caption ends without it.
        let unmarked = if all.contains(base) { base.to_owned() } else { text };
        let Some(earlier) = first.get(&unmarked) else {
            first.insert(unmarked, later);
            continue;
        };
        let at = place(kind, later.number, later.section);
        findings.push(Finding::new("caption-twice", Severity::Warning, Confidence::Likely, at).says(
            format!("{kind}s {} and {} have the same caption", earlier.number, later.number),
            format!("\"{}\" and \"{}\"", earlier.text, later.text),
            "name in each what sets it apart from the other",
        ));
    }
}

/// Rates named in a text: value in base units, and the words.
pub fn rates(text: &str) -> Vec<(f64, String)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let from = rest.get(start..).unwrap_or_default();
        let digits = from.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(from.len());
        let (number, after) = from.split_at(digits);
        let word: String =
            after.trim_start().chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '/').collect();
        if let (Ok(value), Some(unit)) = (number.parse::<f64>(), unit(&word))
            && (unit.bits, unit.seconds) == (1, -1)
        {
            found.push((value * unit.value, format!("{number} {word}")));
        }
        rest = after;
    }
    found
}

/// The word in a caption that contradicts `value`, unless `value` is there too.
pub fn opposite_in<'c>(value: &str, caption: &'c [String]) -> Option<&'c str> {
    let value = stem(&value.to_lowercase());
    if caption.iter().any(|word| stem(word) == value) {
        return None;
    }
    let opposite = OPPOSITES.iter().find_map(|(one, other)| match value.as_str() {
        value if value == *one => Some(*other),
        value if value == *other => Some(*one),
        _ => None,
    })?;
    caption.iter().find(|word| stem(word) == opposite).map(String::as_str)
}

/// A word without its plural.
fn stem(word: &str) -> String {
    if let Some(rest) = word.strip_suffix("ies") {
        return format!("{rest}y");
    }
    word.strip_suffix('s').unwrap_or(word).to_owned()
}

/// Rates in captions of figures that no table and no sentence names.
fn figure_rates(guide: &Guide, findings: &mut Vec<Finding>) {
    let mut known: Vec<f64> =
        guide.tables.iter().flat_map(|table| rates(&table.caption)).map(|rate| rate.0).collect();
    known.extend(guide.formulas.iter().flat_map(|formula| rates(&formula.text)).map(|rate| rate.0));
    for claim in &guide.claims {
        if let Relation::Describes { attributes, .. } = &claim.relation {
            known.extend(attributes.values().flat_map(|value| rates(value)).map(|rate| rate.0));
        }
    }
    for figure in &guide.figures {
        for (rate, text) in rates(&figure.caption) {
            let nearest = known.iter().copied().min_by(|a, b| (a - rate).abs().total_cmp(&(b - rate).abs()));
            let Some(nearest) = nearest.filter(|nearest| (nearest - rate).abs() > 1e-9 * rate) else {
                continue;
            };
            let at = place("figure", &figure.number, &figure.section);
            findings.push(Finding::new("figure-rate", Severity::Note, Confidence::Likely, at).says(
                format!("the caption names {text}, which no table and no sentence does"),
                format!(
                    "nearest named rate {} Gbps, {} % away; caption \"{}\"",
                    show(nearest / 1e9),
                    show(100.0 * (nearest - rate).abs() / nearest),
                    figure.caption
                ),
                "name the rate as in the tables",
            ));
        }
    }
}

/// Marks in captions and cells that no footnote explains.
fn marks(guide: &Guide, table: &Table, findings: &mut Vec<Finding>) {
    let mut used: Vec<(String, &str)> = Vec::new();
    used.extend(mark(&table.caption).map(|(_, mark)| (mark.to_owned(), "caption")));
    let last = words(&table.caption).pop().unwrap_or_default();
    let base = last.trim_end_matches(|c: char| c.is_ascii_digit());
    let bare = |caption: &str| words(caption).iter().any(|word| word == base);
    if !base.is_empty() && base != last && guide.tables.iter().any(|other| bare(&other.caption)) {
        used.push((last.get(base.len()..).unwrap_or_default().to_owned(), "caption"));
    }
    for (_, _, cell) in table.cells() {
        if let Cell::Text(text) = cell {
            used.extend(mark(text).map(|(_, mark)| (mark.to_owned(), "a cell")));
        }
    }
    for (mark, carrier) in used {
        if table.footnotes.iter().any(|footnote| footnote.mark == mark) {
            continue;
        }
        let at = place("table", &table.id, &table.section);
        findings.push(Finding::new("mark", Severity::Note, Confidence::Likely, at).says(
            format!("{carrier} carries the mark {mark}, and the table has no such footnote"),
            format!("caption \"{}\"; {} footnotes", table.caption, table.footnotes.len()),
            "print the footnote, or take the mark away",
        ));
    }
}

/// A footnote that speaks of another row than the one that carries its mark.
fn footnote_rows(table: &Table, findings: &mut Vec<Finding>) {
    let base = |name: &str| words(name.split('(').next().unwrap_or(name)).concat();
    for footnote in &table.footnotes {
        let text = words(&footnote.text).concat();
        let speaks_of = |name: &str| base(name).len() > 2 && text.contains(&base(name));
        let carries = |cell: &Cell| matches!(cell, Cell::Text(text) if mark(text).is_some_and(|(_, mark)| mark == footnote.mark));
        let carriers: Vec<&str> = table
            .rows
            .iter()
            .filter(|row| row.cells.iter().any(carries))
            .map(|row| row.name.as_str())
            .collect();
        if carriers.is_empty() || carriers.iter().any(|name| speaks_of(name)) {
            continue;
        }
        let Some(other) = table.rows.iter().find(|row| speaks_of(&row.name)) else { continue };
        let mut at = place("table", &table.id, &table.section);
        at.what = Some(format!("footnote {}", footnote.mark));
        findings.push(Finding::new("footnote-row", Severity::Note, Confidence::Possible, at).says(
            format!(
                "footnote {} stands at {} and speaks of {}",
                footnote.mark,
                carriers.join(", "),
                other.name
            ),
            format!("\"{}\"", footnote.text),
            "move the mark, or name the row that it stands at",
        ));
    }
}

/// Rows and the heading of the first column against the caption: `Write to L2` under `Read Throughput`.
fn rows_and_corner(table: &Table, findings: &mut Vec<Finding>) {
    let caption = words(&table.caption);
    let mut contradicting = Vec::new();
    for row in &table.rows {
        for word in words(&row.name) {
            contradicting
                .extend(opposite_in(&word, &caption).map(|other| (other.to_owned(), row.name.clone())));
        }
    }
    if let Some((other, _)) = contradicting.first() {
        let rows: Vec<&str> = contradicting.iter().map(|(_, row)| row.as_str()).collect();
        let at = place("table", &table.id, &table.section);
        findings.push(Finding::new("caption-rows", Severity::Warning, Confidence::Likely, at).says(
            format!("the caption says `{other}` and the rows say the opposite"),
            format!("caption \"{}\"; rows {}", table.caption, rows.join(", ")),
            "name the rows as the caption does, or correct the caption",
        ));
    }
    for word in words(&table.corner) {
        if let Some(other) = opposite_in(&word, &caption) {
            let at = place("table", &table.id, &table.section);
            findings.push(Finding::new("caption-corner", Severity::Note, Confidence::Likely, at).says(
                format!("the first column is headed `{}` and the caption speaks of `{other}`", table.corner),
                format!("caption \"{}\"", table.caption),
                "head the column with what its rows are",
            ));
        }
    }
}

/// A heading of the first column that names the subject of another table: it came with the table that was copied.
fn corner_of_another(guide: &Guide, table: &Table, findings: &mut Vec<Finding>) {
    let corner = table.corner.trim();
    let is_name =
        corner.len() > 2 && corner.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    let names_it = |other: &Table| words(&other.caption).contains(&corner.to_lowercase());
    if !is_name || table.caption.is_empty() || names_it(table) {
        return;
    }
    let Some(other) = guide.tables.iter().find(|other| other.corner.trim() == corner && names_it(other))
    else {
        return;
    };
    let at = place("table", &table.id, &table.section);
    findings.push(Finding::new("caption-corner", Severity::Note, Confidence::Likely, at).says(
        format!("the first column is headed `{corner}`, which is what {} is about", other.label()),
        format!("caption \"{}\"; caption there \"{}\"", table.caption, other.caption),
        "head the column with what its rows are",
    ));
}

/// A caption that lists its rows (`of A, B and C`) must have them.
fn parts(table: &Table, findings: &mut Vec<Finding>) {
    let Some((_, list)) = table.caption.split_once(" of ") else { return };
    if !list.contains(", ") {
        return;
    }
    let names: Vec<String> = table
        .rows
        .iter()
        .map(|row| row.name.to_lowercase())
        .chain(table.columns.iter().map(|column| column.name().to_lowercase()))
        .collect();
    for part in list.split(", ").flat_map(|part| part.split(" and ")) {
        let part = part.trim();
        if part.is_empty() || part.contains(' ') || Number::read(part).is_some() {
            continue;
        }
        if names.iter().any(|name| words(name).iter().any(|word| word.starts_with(&part.to_lowercase()))) {
            continue;
        }
        let mut at = place("table", &table.id, &table.section);
        at.what = Some(part.to_owned());
        findings.push(Finding::new("caption-parts", Severity::Note, Confidence::Likely, at).says(
            format!("the caption promises `{part}`, and no row or column has it"),
            format!("caption \"{}\"; {} rows", table.caption, table.rows.len()),
            "add the row, or take it out of the caption",
        ));
    }
}
