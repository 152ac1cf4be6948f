//! Tests of the audit: the arithmetic, a guide without mistakes, planted ones, and two guides that were published.

mod am243x;
mod arithmetic;
mod clean;
mod errata;
mod keystone2;
mod kinds;
mod planted;

use super::{Finding, run};
use crate::guide::{Guide, load};

/// A guide without a mistake.
const CLEAN: &str = include_str!("clean.toml");

fn clean() -> Guide {
    load(CLEAN).unwrap()
}

fn keystone2() -> Guide {
    load(include_str!("../../../../boards/guides/keystone2.toml")).unwrap()
}

/// The identifiers of what the audit finds without a chip.
fn ids(guide: &Guide) -> Vec<String> {
    run(guide, None).into_iter().map(|finding| finding.id).collect()
}

/// The findings in full, for the message of a test that fails.
fn shown(findings: &[Finding]) -> String {
    findings.iter().map(|finding| format!("{}\n{finding}\n", finding.id)).collect()
}
