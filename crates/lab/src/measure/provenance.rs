//! Where figures come from: machine, command, date, rounds. Every report has it.

use super::machine;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a reader needs to measure again.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Provenance {
    /// Version of the program that measured.
    pub version: String,
    /// The command line.
    pub command: String,
    /// Date and time, UTC, as in `2026-11-24 06:00`.
    pub date: String,
    /// The machine: processor, cores, kernel, memory, load.
    pub machine: BTreeMap<String, String>,
    /// How often everything was measured; figures are medians.
    pub rounds: usize,
}

impl Provenance {
    /// Of the program that runs now.
    pub fn now(rounds: usize) -> Provenance {
        Provenance {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: command(std::env::args()),
            date: machine::date(),
            machine: machine::describe(),
            rounds,
        }
    }

    /// One sentence, to stand below a table.
    pub fn sentence(&self) -> String {
        let part = |name: &str| self.machine.get(name).map_or("?", String::as_str);
        let rounds = match self.rounds {
            1 => "1 round".to_owned(),
            rounds => format!("medians of {rounds} rounds"),
        };
        format!(
            "linerate {}, {}, {rounds}; {}, {} cores, {}; {}",
            self.version,
            self.date,
            part("processor"),
            part("cores"),
            part("kernel"),
            self.command
        )
    }
}

/// A command line as somebody would type it: the program's name without its folder, words with blanks quoted.
fn command(words: impl IntoIterator<Item = String>) -> String {
    let mut words: Vec<String> = words.into_iter().collect();
    if let Some(program) = words.first_mut() {
        *program = program.rsplit('/').next().unwrap_or_default().to_owned();
    }
    let quoted =
        words.into_iter().map(|word| match word.contains([' ', '*', '"', '&', '?']) || word.is_empty() {
            true => format!("'{word}'"),
            false => word,
        });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_typed_again() {
        let words = ["/a/b/linerate", "lab", "ramp", "http://x/a b"].map(str::to_owned);
        assert_eq!(command(words), "linerate lab ramp 'http://x/a b'");
    }

    #[test]
    fn a_sentence_names_all() {
        let machine = [("processor", "P"), ("cores", "2"), ("kernel", "Linux 6")];
        let origin = Provenance {
            version: "1.0".into(),
            command: "linerate lab guide".into(),
            date: "2026-11-24 06:00".into(),
            machine: machine.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            rounds: 3,
        };
        assert_eq!(
            origin.sentence(),
            "linerate 1.0, 2026-11-24 06:00, medians of 3 rounds; P, 2 cores, Linux 6; linerate lab guide"
        );
    }
}
