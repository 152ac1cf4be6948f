//! `linerate fabric audit`.

use super::args::{Audit, Format};
use super::builtin;
use super::error::FabricError;
use linerate_fabric::audit::{self, Finding, OfModel, Severity};
use linerate_fabric::guide::Guide;
use linerate_fabric::soc::Soc;
use linerate_lab::report::page;
use serde_json::json;
use std::fmt::Write as _;

/// What the command prints.
pub fn run(args: &Audit) -> Result<String, FabricError> {
    let guide = builtin::guide(&args.guide)?;
    let findings = match args.chip() {
        Some(name) => findings(&guide, &builtin::soc(name)?),
        None => audit::run(&guide, None),
    };
    Ok(match args.format {
        Format::Text => text(&guide.title, &findings),
        Format::Json => format!("{:#}\n", json!({ "guide": guide.title, "findings": findings })),
    })
}

/// The findings in a guide, its theoretical figures held against a chip's description too.
pub fn findings(guide: &Guide, soc: &Soc) -> Vec<Finding> {
    audit::run(guide, Some(&OfModel(soc)))
}

/// The findings one after the other, and how many there are.
fn text(title: &str, findings: &[Finding]) -> String {
    let mut text = format!("{title}\n\n");
    for finding in findings {
        let _ = writeln!(text, "{finding}\n");
    }
    text.push_str(&count(findings));
    text.push('\n');
    text
}

/// "3 errors, 2 warnings, 5 notes".
pub fn count(findings: &[Finding]) -> String {
    let of = |severity, one: &str, many: &str| {
        let count = findings.iter().filter(|finding| finding.severity == severity).count();
        format!("{count} {}", if count == 1 { one } else { many })
    };
    [
        of(Severity::Error, "error", "errors"),
        of(Severity::Warning, "warning", "warnings"),
        of(Severity::Note, "note", "notes"),
    ]
    .join(", ")
}

/// The findings for a page.
pub fn items(findings: &[Finding]) -> Vec<page::Finding> {
    let item = |finding: &Finding| page::Finding {
        grade: match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        },
        label: finding.rule.to_owned(),
        place: finding.place.to_string(),
        text: finding.message.clone(),
        evidence: finding.arithmetic.clone(),
    };
    findings.iter().map(item).collect()
}
