//! How often explanations name what was injected: a confusion matrix, as Markdown and as a picture.

use crate::explain::cause::Cause;
use crate::report::plot::{FAINT, INK, SERIES, hex, style};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// Pairs of causes that some captures cannot tell apart, and why. There a verdict that says it does not know, with one of
/// the two as the runner-up, is right.
pub const ALIKE: [(Cause, Cause, &str); 0] = [];

/// A case and the verdict on its capture.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Judged {
    /// What was injected.
    pub cause: Cause,
    /// What kind of transfer it was.
    pub name: String,
    /// Whether it was kept from those who wrote the rules.
    pub held_out: bool,
    /// What the verdict names.
    pub found: Cause,
    /// What it would have named else.
    pub runner_up: Option<Cause>,
}

impl Judged {
    /// Whether the verdict names what was injected.
    pub fn is_right(&self) -> bool {
        let cannot_tell = self.found == Cause::Unknown
            && self.runner_up.is_some_and(|runner_up| {
                ALIKE.iter().any(|(a, b, _)| [*a, *b].contains(&self.cause) && [*a, *b].contains(&runner_up))
            });
        self.found == self.cause || cannot_tell
    }
}

/// How many of some cases are right.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Score {
    /// Whose verdict names what was injected.
    pub right: usize,
    /// All.
    pub all: usize,
}

impl Score {
    /// Of the cases that `keep` keeps.
    pub fn of(judged: &[Judged], keep: impl Fn(&Judged) -> bool) -> Score {
        let kept = judged.iter().filter(|one| keep(one));
        kept.fold(Score::default(), |score, one| Score {
            right: score.right + usize::from(one.is_right()),
            all: score.all + 1,
        })
    }

    /// The share of those that are right, 0 to 1; of no cases 1.
    pub fn share(&self) -> f64 {
        if self.all == 0 { 1.0 } else { self.right as f64 / self.all as f64 }
    }
}

impl std::fmt::Display for Score {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} ({:.1} %)", self.right, self.all, 100.0 * self.share())
    }
}

/// What a verdict can name, in the order of the columns.
fn columns() -> impl Iterator<Item = Cause> {
    Cause::INJECTED.into_iter().chain([Cause::Unknown])
}

fn count(judged: &[Judged], cause: Cause, found: Cause) -> usize {
    judged.iter().filter(|one| one.cause == cause && one.found == found).count()
}

/// The matrix as a Markdown table: a row for each injected cause, a column for each that verdicts named.
pub fn markdown(judged: &[Judged]) -> String {
    let mut text = "| injected | ".to_owned();
    for number in 1..=Cause::INJECTED.len() {
        let _ = write!(text, "{number} | ");
    }
    text.push_str("unknown | right |\n|---|");
    text.push_str(&"--:|".repeat(Cause::INJECTED.len() + 2));
    text.push('\n');
    for (index, cause) in Cause::INJECTED.into_iter().enumerate() {
        let _ = write!(text, "| {} {cause} | ", index + 1);
        for found in columns() {
            match count(judged, cause, found) {
                0 => text.push_str("| "),
                cases => {
                    let _ = write!(text, "{cases} | ");
                }
            }
        }
        let score = Score::of(judged, |one| one.cause == cause);
        let _ = writeln!(text, "{}/{} |", score.right, score.all);
    }
    text
}

/// What the verdicts got right, in a few lines, and what they got wrong, a line each.
pub fn summary(judged: &[Judged]) -> String {
    let mut text = format!(
        "{} right: {} of the cases that the rules were tuned on, {} of those held out.\n",
        Score::of(judged, |_| true),
        Score::of(judged, |one| !one.held_out),
        Score::of(judged, |one| one.held_out)
    );
    for one in judged.iter().filter(|one| !one.is_right()) {
        let kept = if one.held_out { ", held out" } else { "" };
        let _ = writeln!(text, "* {} ({}{kept}): {}", one.cause, one.name, one.found);
    }
    text
}

/// Sides of a cell in pixels.
const CELL: usize = 34;
/// Room for the names of causes.
const NAMES: usize = 210;
/// Height of a heading and of the numbers of the columns.
const HEAD: usize = 54;

/// Several matrices, each with its heading, as a picture in SVG.
pub fn svg(panels: &[(&str, &[Judged])]) -> String {
    let rows = Cause::INJECTED.len();
    let width = NAMES + CELL * (rows + 1) + 16;
    let each = HEAD + CELL * rows + 18;
    let height = each * panels.len();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\"><style>{}</style>\
         <rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\n",
        style()
    );
    for (index, (title, judged)) in panels.iter().enumerate() {
        panel(&mut svg, index * each, title, judged);
    }
    svg.push_str("</svg>\n");
    svg
}

fn panel(svg: &mut String, top: usize, title: &str, judged: &[Judged]) {
    let ink = hex(INK);
    let score = Score::of(judged, |_| true);
    let _ = writeln!(
        svg,
        "<text x=\"12\" y=\"{}\" fill=\"{ink}\" font-weight=\"bold\">{title}: {score} right</text>",
        top + 22
    );
    let middle = |place: usize| place * CELL + CELL / 2;
    for (column, cause) in columns().enumerate() {
        let name = if cause == Cause::Unknown { "?".to_owned() } else { (column + 1).to_string() };
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" fill=\"{ink}\" text-anchor=\"middle\">{name}</text>",
            NAMES + middle(column),
            top + HEAD - 6
        );
    }
    for (row, cause) in Cause::INJECTED.into_iter().enumerate() {
        let y = top + HEAD + row * CELL;
        let _ = writeln!(
            svg,
            "<text x=\"12\" y=\"{}\" fill=\"{ink}\">{} {cause}</text>",
            y + CELL / 2 + 4,
            row + 1
        );
        let all = judged.iter().filter(|one| one.cause == cause).count().max(1);
        for (column, found) in columns().enumerate() {
            cell(svg, NAMES + column * CELL, y, count(judged, cause, found), all, found == cause);
        }
    }
}

fn cell(svg: &mut String, x: usize, y: usize, cases: usize, all: usize, is_right: bool) {
    let (side, faint) = (CELL - 2, hex(FAINT));
    let _ = writeln!(
        svg,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{side}\" height=\"{side}\" fill=\"none\" stroke=\"{faint}\"/>"
    );
    if cases == 0 {
        return;
    }
    let colour = hex(if is_right { SERIES[0] } else { SERIES[1] });
    let opacity = 0.15 + 0.45 * cases as f64 / all as f64;
    let _ = writeln!(
        svg,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{side}\" height=\"{side}\" fill=\"{colour}\" opacity=\"{opacity:.2}\"/>\
         <text x=\"{}\" y=\"{}\" fill=\"{}\" text-anchor=\"middle\">{cases}</text>",
        x + CELL / 2 - 1,
        y + CELL / 2 + 4,
        hex(INK)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(cause: Cause, found: Cause, runner_up: Option<Cause>, held_out: bool) -> Judged {
        Judged { cause, name: "a".to_owned(), held_out, found, runner_up }
    }

    #[test]
    fn counts_what_is_right() {
        let all = [
            judged(Cause::Pacing, Cause::Pacing, None, false),
            judged(Cause::Pacing, Cause::Queueing, Some(Cause::Pacing), true),
            judged(Cause::Queueing, Cause::Unknown, Some(Cause::Queueing), true),
            judged(Cause::Queueing, Cause::Queueing, Some(Cause::Pacing), true),
        ];
        assert_eq!(Score::of(&all, |_| true), Score { right: 2, all: 4 });
        assert_eq!(Score::of(&all, |one| one.held_out), Score { right: 1, all: 3 });
        assert_eq!(Score::of(&[], |_| true).share(), 1.0);
        let text = summary(&all);
        assert!(text.starts_with("2 of 4 (50.0 %) right: 1 of 1 (100.0 %) of the cases"), "{text}");
        assert!(text.contains("* pacing (a, held out): queueing"), "{text}");
        let table = markdown(&all);
        let row = table.lines().find(|line| line.contains("11 pacing")).unwrap();
        assert_eq!(row, "| 11 pacing | | | | | | | | | | 1 | 1 | | | 1/2 |");
        let picture = svg(&[("simulator", &all)]);
        assert!(picture.contains("simulator: 2 of 4 (50.0 %) right"), "{picture}");
    }
}
