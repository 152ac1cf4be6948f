//! References: every one points to something, and a document has one number.

use std::collections::BTreeMap;

use super::{Confidence, Finding, Place, Severity, words};
use crate::guide::{Guide, Kind, Reference};

/// What share of the words of two titles has to agree for them to name one document.
const SAME_TITLE: f64 = 0.8;

/// Checks references.
pub fn check(guide: &Guide, findings: &mut Vec<Finding>) {
    mentions(guide, findings);
    documents(guide, findings);
}

fn at(section: &str, what: &str) -> Place {
    Place { section: section.to_owned(), what: Some(what.to_owned()), ..Place::default() }
}

/// References to tables, figures and sections.
fn mentions(guide: &Guide, findings: &mut Vec<Finding>) {
    for mention in &guide.mentions {
        let target = &mention.target;
        let (kind, there) = match mention.kind {
            Kind::Table => ("table", guide.table(target).is_some()),
            Kind::Figure => ("figure", guide.figures.iter().any(|figure| figure.number == *target)),
            Kind::Section => ("section", guide.sections.iter().any(|section| section.number == *target)),
            Kind::Missing => {
                let place = at(&mention.section, &format!("\"{target}\""));
                findings.push(
                    Finding::new("reference-missing", Severity::Note, Confidence::Certain, place).says(
                        "a sentence lacks the table or figure that it speaks of".to_owned(),
                        format!("section {}: \"{target}\"", mention.section),
                        "put the reference back",
                    ),
                );
                continue;
            }
        };
        if !there {
            let place = at(&mention.section, &format!("{kind} {target}"));
            findings.push(
                Finding::new("reference-dangling", Severity::Warning, Confidence::Certain, place).says(
                    format!("{kind} {target} is referred to and not there"),
                    format!("section {}", mention.section),
                    "print it, or correct its number",
                ),
            );
        }
    }
}

/// The words of a title that tell documents apart, each once.
fn title_words(title: &str) -> Vec<String> {
    let mut all = words(title);
    all.retain(|word| word.len() > 1);
    all.sort();
    all.dedup();
    all
}

/// What share of the shorter title's words stands in the other.
fn likeness(left: &str, right: &str) -> f64 {
    let (left, right) = (title_words(left), title_words(right));
    let common = left.iter().filter(|word| right.contains(word)).count();
    let shorter = left.len().min(right.len());
    if shorter == 0 { 0.0 } else { common as f64 / shorter as f64 }
}

/// Documents: one number for one title, and every cited one listed.
fn documents(guide: &Guide, findings: &mut Vec<Finding>) {
    let all: Vec<&Reference> = guide.citations.iter().chain(&guide.references).collect();
    let mut numbers: BTreeMap<&str, Vec<&Reference>> = BTreeMap::new();
    for reference in &all {
        numbers.entry(&reference.number).or_default().push(reference);
    }
    for (number, uses) in &numbers {
        let Some(first) = uses.first() else { continue };
        if let Some(other) = uses.iter().find(|other| likeness(&first.title, &other.title) < SAME_TITLE) {
            let place = at(&other.section, number);
            findings.push(
                Finding::new("document-number", Severity::Warning, Confidence::Likely, place).says(
                    format!("{number} stands for two documents"),
                    format!(
                        "\"{}\" in section {}, \"{}\" in section {}",
                        first.title, first.section, other.title, other.section
                    ),
                    "look up the number of the second",
                ),
            );
        }
    }
    for (index, (number, uses)) in numbers.iter().enumerate() {
        for (other, other_uses) in numbers.iter().skip(index + 1) {
            let Some((one, two)) = uses.first().zip(other_uses.first()) else { continue };
            if likeness(&one.title, &two.title) < 1.0 {
                continue;
            }
            let place = at(&two.section, &format!("{number} and {other}"));
            findings.push(Finding::new("document-title", Severity::Note, Confidence::Possible, place).says(
                "one title stands under two numbers".to_owned(),
                format!("\"{}\" {number}, \"{}\" {other}", one.title, two.title),
                "cite the document of the device family throughout",
            ));
        }
    }
    unlisted(guide, findings);
}

/// Citations that the list at the end lacks.
fn unlisted(guide: &Guide, findings: &mut Vec<Finding>) {
    if guide.references.is_empty() {
        return;
    }
    let mut reported: Vec<&str> = Vec::new();
    for citation in &guide.citations {
        let listed = guide.references.iter().any(|reference| reference.number == citation.number);
        if listed || reported.contains(&citation.number.as_str()) {
            continue;
        }
        reported.push(&citation.number);
        let place = at(&citation.section, &citation.number);
        findings.push(Finding::new("citation-unlisted", Severity::Note, Confidence::Certain, place).says(
            format!("{} is cited and not among the references", citation.number),
            format!("\"{}\"; {} references", citation.title, guide.references.len()),
            "add it to the references",
        ));
    }
}
