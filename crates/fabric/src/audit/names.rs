//! Names that do not fit their kind: a memory that is called static and dynamic at once.

use std::collections::BTreeMap;

use super::{Confidence, Finding, Place, Severity};
use crate::guide::Guide;

/// What a memory is made of. One is never another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Static,
    Dynamic,
    Lasting,
}

impl Kind {
    /// The kind that a word names: the kind itself, or an interface that only it has.
    fn of(word: &str) -> Option<Kind> {
        let word = word.to_ascii_lowercase();
        let ddr = word.trim_start_matches("lp").strip_prefix("ddr");
        // `DDR3`, `LPDDR4X`, `DDR3B`: a generation, and perhaps the letter of a controller. `DDR` alone is a way to clock
        // pins, which flash and static memories have too.
        let generation = |rest: &str| {
            let letters = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            letters.len() < rest.len()
                && letters.len() <= 1
                && letters.bytes().all(|byte| byte.is_ascii_alphabetic())
        };
        match word.as_str() {
            "sram" | "tcm" | "itcm" | "dtcm" => Some(Kind::Static),
            "sdram" | "dram" => Some(Kind::Dynamic),
            "flash" | "eeprom" | "rom" => Some(Kind::Lasting),
            _ if ddr.is_some_and(generation) => Some(Kind::Dynamic),
            _ => None,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Kind::Static => "static",
            Kind::Dynamic => "dynamic",
            Kind::Lasting => "non-volatile",
        }
    }
}

/// Where something has a name, and the name.
type Uses<'t> = Vec<(&'t Place, String)>;

/// Checks names: within each, and what one thing is called in different places.
pub fn check(guide: &Guide, findings: &mut Vec<Finding>) {
    let texts = texts(guide);
    let mut called: BTreeMap<String, BTreeMap<Kind, Uses<'_>>> = BTreeMap::new();
    let mut reported: Vec<String> = Vec::new();
    for (place, text) in &texts {
        for (first, second) in neighbours(text) {
            let Some(kind) = Kind::of(second) else { continue };
            let name = format!("{first} {second}");
            match Kind::of(first) {
                Some(other) if other != kind => {
                    if !reported.contains(&name) {
                        findings.push(contradiction(place, &name, (first, other), (second, kind), &texts));
                        reported.push(name);
                    }
                }
                Some(_) => {}
                None => {
                    let uses = called.entry(first.to_ascii_lowercase()).or_default().entry(kind).or_default();
                    uses.push((place, name));
                }
            }
        }
    }
    for kinds in called.values().filter(|kinds| kinds.len() > 1) {
        // Words such as `the` or `between` stand before every kind; a name has a capital or a digit.
        let named = |uses: &Uses<'_>| {
            uses.first().is_some_and(|(_, name)| name.starts_with(|c: char| c.is_ascii_uppercase()))
        };
        let rarest = kinds.values().min_by_key(|uses| uses.len());
        let commonest = kinds.values().rev().max_by_key(|uses| uses.len());
        let Some((rare, common)) =
            rarest.zip(commonest).filter(|(rare, common)| named(rare) && named(common))
        else {
            continue;
        };
        let Some(((place, name), (_, other))) = rare.first().zip(common.first()).filter(|(a, b)| a != b)
        else {
            continue;
        };
        findings.push(Finding::new("name-kind", Severity::Note, Confidence::Possible, at(place, name)).says(
            format!("one memory is called {name} and {other}"),
            format!("{name} {} times, {other} {} times", rare.len(), common.len()),
            "call it what it is in every place",
        ));
    }
}

fn at(place: &Place, name: &str) -> Place {
    Place { what: Some(format!("\"{name}\"")), ..place.clone() }
}

fn contradiction(
    place: &Place,
    name: &str,
    (first, of_first): (&str, Kind),
    (second, of_second): (&str, Kind),
    texts: &[(Place, &str)],
) -> Finding {
    let siblings = texts.iter().flat_map(|(_, text)| neighbours(text));
    let right = siblings.filter(|(head, kind)| {
        head.eq_ignore_ascii_case(first) && Kind::of(kind).is_some_and(|kind| kind == of_first)
    });
    Finding::new("name-kind", Severity::Note, Confidence::Certain, at(place, name)).says(
        format!("`{name}` names two kinds of memory at once"),
        format!(
            "{first} is {} and {second} {}; other places that call it {}: {}",
            of_first.word(),
            of_second.word(),
            of_first.word(),
            right.count()
        ),
        "name the kind that the part has",
    )
}

/// Two words that stand side by side with nothing but a blank between them.
fn neighbours(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let all = text.split_whitespace();
    all.clone().zip(all.skip(1)).filter_map(|(first, second)| {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let second = second.trim_end_matches(|c: char| !plain(c));
        let whole = |word: &str| !word.is_empty() && word.chars().all(plain);
        (whole(first) && whole(second)).then_some((first, second))
    })
}

/// Every text of the guide in which something has a name.
fn texts(guide: &Guide) -> Vec<(Place, &str)> {
    let section = |section: &str| Place { section: section.to_owned(), ..Place::default() };
    let mut texts: Vec<(Place, &str)> = Vec::new();
    texts.extend(guide.sections.iter().map(|of| (section(&of.number), of.title.as_str())));
    for table in &guide.tables {
        let place = Place { table: Some(table.id.clone()), ..section(&table.section) };
        texts.push((place.clone(), &table.caption));
        texts.extend(table.rows.iter().map(|row| (place.clone(), row.name.as_str())));
        let headings = table.columns.iter().flat_map(|column| &column.heading);
        texts.extend(headings.map(|heading| (place.clone(), heading.as_str())));
    }
    texts.extend(guide.figures.iter().map(|figure| (section(&figure.section), figure.caption.as_str())));
    texts.extend(guide.claims.iter().map(|claim| (section(&claim.section), claim.text.as_str())));
    for list in &guide.lists {
        texts.extend(list.items.iter().map(|item| (section(&list.section), item.as_str())));
    }
    texts.extend(guide.names.iter().map(|name| (section(&name.section), name.text.as_str())));
    texts
}
