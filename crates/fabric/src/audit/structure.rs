//! The text as a whole: contents, announced subsections, lists, copied paragraphs, legends.

use std::collections::{BTreeMap, BTreeSet};

use super::{Confidence, Finding, Place, Severity, words};
use crate::guide::{Entry, Guide};

/// The shortest paragraph whose copy in another section is more than a turn of phrase, in words.
const MIN_WORDS: u32 = 25;

/// Checks the structure of the text.
pub fn check(guide: &Guide, findings: &mut Vec<Finding>) {
    contents(guide, findings);
    announced(guide, findings);
    items(guide, findings);
    paragraphs(guide, findings);
    legends(guide, findings);
    for (name, list) in [
        ("contents", &guide.contents),
        ("list of tables", &guide.table_list),
        ("list of figures", &guide.figure_list),
    ] {
        pages(name, list, findings);
    }
}

fn at(section: &str, what: &str) -> Place {
    Place { section: section.to_owned(), what: Some(what.to_owned()), ..Place::default() }
}

/// Titles in the contents against those of the sections.
fn contents(guide: &Guide, findings: &mut Vec<Finding>) {
    for entry in &guide.contents {
        let section = guide.sections.iter().find(|section| section.number == entry.number);
        let title = section.map_or("", |section| section.title.as_str());
        if words(title) == words(&entry.text) {
            continue;
        }
        let place = at(&entry.number, "contents");
        findings.push(Finding::new("contents", Severity::Note, Confidence::Certain, place).says(
            format!("section {} has another title in the contents", entry.number),
            format!("contents \"{}\", section \"{title}\"", entry.text),
            "print the same title in both places",
        ));
    }
}

/// Subsections as a section announces them against those that it has.
fn announced(guide: &Guide, findings: &mut Vec<Finding>) {
    for section in guide.sections.iter().filter(|section| !section.announces.is_empty()) {
        let is_child = |number: &str| {
            let rest = number.strip_prefix(&section.number).and_then(|rest| rest.strip_prefix('.'));
            rest.is_some_and(|rest| !rest.is_empty() && !rest.contains('.'))
        };
        let children: Vec<&str> = guide
            .sections
            .iter()
            .filter(|other| is_child(&other.number))
            .map(|other| other.title.as_str())
            .collect();
        let known = |titles: &[&str], title: &str| titles.iter().any(|other| words(other) == words(title));
        let promised: Vec<&str> = section.announces.iter().map(String::as_str).collect();
        let unannounced: Vec<&str> =
            children.iter().filter(|title| !known(&promised, title)).copied().collect();
        let absent: Vec<&str> = promised.iter().filter(|title| !known(&children, title)).copied().collect();
        let twice: Vec<&str> = promised
            .iter()
            .enumerate()
            .filter(|(index, title)| known(promised.get(..*index).unwrap_or_default(), title))
            .map(|(_, title)| *title)
            .collect();
        let mut wrong = Vec::new();
        for (what, titles) in
            [("not announced", unannounced), ("not there", absent), ("announced twice", twice)]
        {
            if !titles.is_empty() {
                wrong.push(format!("{what}: {}", titles.join(", ")));
            }
        }
        if wrong.is_empty() {
            continue;
        }
        let place = at(&section.number, "announced subsections");
        findings.push(Finding::new("announced", Severity::Note, Confidence::Certain, place).says(
            format!("section {} announces other subsections than it has", section.number),
            wrong.join("; "),
            "announce the subsections that follow",
        ));
    }
}

/// Items that stand twice in a list.
fn items(guide: &Guide, findings: &mut Vec<Finding>) {
    for list in &guide.lists {
        let mut seen = BTreeSet::new();
        for (index, item) in list.items.iter().enumerate() {
            if seen.insert(words(item)) {
                continue;
            }
            let place = at(&list.section, &format!("\"{item}\""));
            findings.push(Finding::new("item-twice", Severity::Note, Confidence::Certain, place).says(
                "an item stands twice in a list".to_owned(),
                format!("item {} of {} repeats an earlier one", index + 1, list.items.len()),
                "take one away, or say what was meant",
            ));
        }
    }
}

/// Paragraphs that stand word by word in two sections.
fn paragraphs(guide: &Guide, findings: &mut Vec<Finding>) {
    let mut seen: BTreeMap<(&str, u32), &str> = BTreeMap::new();
    for paragraph in guide.paragraphs.iter().filter(|paragraph| paragraph.words >= MIN_WORDS) {
        let key = (paragraph.digest.as_str(), paragraph.words);
        let Some(first) = seen.get(&key) else {
            seen.insert(key, &paragraph.section);
            continue;
        };
        let place = at(&paragraph.section, &format!("\"{} ...\"", paragraph.opening));
        findings.push(Finding::new("paragraph-twice", Severity::Note, Confidence::Possible, place).says(
            format!("a paragraph of section {first} stands word by word in section {}", paragraph.section),
            format!("{} words with digest {}", paragraph.words, paragraph.digest),
            "say whether it holds for both subjects",
        ));
    }
}

/// Symbols of one table with one meaning.
fn legends(guide: &Guide, findings: &mut Vec<Finding>) {
    for table in &guide.tables {
        for (index, entry) in table.legend.iter().enumerate() {
            let before = table.legend.get(..index).unwrap_or_default();
            let Some(other) = before.iter().find(|other| words(&other.meaning) == words(&entry.meaning))
            else {
                continue;
            };
            let count =
                |symbol: &str| table.cells().filter(|(_, _, cell)| cell.to_string() == symbol).count();
            let place =
                Place { section: table.section.clone(), table: Some(table.id.clone()), ..Place::default() };
            findings.push(Finding::new("legend", Severity::Warning, Confidence::Certain, place).says(
                format!("`{}` and `{}` have the same meaning", other.symbol, entry.symbol),
                format!(
                    "both \"{}\"; {} cells `{}`, {} cells `{}`",
                    entry.meaning,
                    count(&other.symbol),
                    other.symbol,
                    count(&entry.symbol),
                    entry.symbol
                ),
                "give the symbol of the rarer cells the opposite meaning, if that is what they mark",
            ));
        }
    }
}

/// Pages of a list that run backwards.
fn pages(name: &str, list: &[Entry], findings: &mut Vec<Finding>) {
    for (before, after) in list.iter().zip(list.iter().skip(1)) {
        if after.page < before.page {
            let place = at("", &format!("{name}, entry {}", after.number));
            findings.push(Finding::new("page-order", Severity::Note, Confidence::Likely, place).says(
                format!("the {name} runs backwards"),
                format!("{} on page {}, {} on page {}", before.number, before.page, after.number, after.page),
                "correct the page",
            ));
        }
    }
}
