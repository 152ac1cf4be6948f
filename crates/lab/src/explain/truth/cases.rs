//! The cases: one injected cause each, as data.

use super::view::View;
use crate::explain::cause::Cause;
use crate::scenario::file::Scenario;
use crate::scenario::load;
use linerate_fabric::document;
use serde::Deserialize;

/// The files of cases, one for each cause.
const FILES: [(Cause, &str); 12] = [
    (Cause::ReceiverWindow, include_str!("cases/receiver-window.toml")),
    (Cause::ReceiverApplication, include_str!("cases/receiver-application.toml")),
    (Cause::SenderBuffer, include_str!("cases/sender-buffer.toml")),
    (Cause::SenderApplication, include_str!("cases/sender-application.toml")),
    (Cause::CongestionAfterLoss, include_str!("cases/congestion-after-loss.toml")),
    (Cause::RandomLoss, include_str!("cases/random-loss.toml")),
    (Cause::Reordering, include_str!("cases/reordering.toml")),
    (Cause::DelayedAckNagle, include_str!("cases/delayed-ack-nagle.toml")),
    (Cause::PathBandwidth, include_str!("cases/path-bandwidth.toml")),
    (Cause::Queueing, include_str!("cases/queueing.toml")),
    (Cause::Pacing, include_str!("cases/pacing.toml")),
    (Cause::SmallSegments, include_str!("cases/small-segments.toml")),
];

/// A transfer with a cause that was injected.
#[derive(Clone, Debug)]
pub struct Case {
    /// What was injected.
    pub cause: Cause,
    /// What kind of transfer it is.
    pub name: String,
    /// Whether it was kept from those who wrote the rules.
    pub held_out: bool,
    /// How it was captured.
    pub view: View,
    /// The scenario.
    pub scenario: Scenario,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Table {
    /// Where the file does not say it of all.
    cause: Option<Cause>,
    name: String,
    #[serde(default)]
    held_out: bool,
    #[serde(default)]
    view: View,
    scenario: toml::Table,
}

/// Two more of each cause, written after the rules had first run.
const AFTERWARDS: &str = include_str!("cases/afterwards.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    case: Vec<Table>,
}

/// All cases, in the order of their causes.
///
/// # Errors
/// A mistake in a file of cases: which cause, which case, and what is wrong.
pub fn cases() -> Result<Vec<Case>, String> {
    let mut cases = Vec::new();
    for (cause, text) in FILES {
        cases.append(&mut of_file(cause, text)?);
    }
    Ok(cases)
}

/// Cases that were written after the rules had first run, and are not tuned on: all held out.
///
/// # Errors
/// As for [`cases`].
pub fn afterwards() -> Result<Vec<Case>, String> {
    let cases = of_file(Cause::Unknown, AFTERWARDS)?;
    Ok(cases.into_iter().map(|case| Case { held_out: true, ..case }).collect())
}

fn of_file(of_all: Cause, text: &str) -> Result<Vec<Case>, String> {
    let file: File = document::read(text).map_err(|error| format!("{of_all}: {error}"))?;
    let case = |table: Table| {
        let Table { cause, name, held_out, view, scenario } = table;
        let cause = cause.unwrap_or(of_all);
        let scenario =
            load::parse(&scenario.to_string()).map_err(|mistake| format!("{cause}, {name}: {mistake}"))?;
        Ok(Case { cause, name, held_out, view, scenario })
    };
    file.case.into_iter().map(case).collect()
}
