//! Writes how often explanations are right: `cargo run --release -p linerate-lab --example explain_truth -- FOLDER
//! [KERNEL.json]`.
//!
//! The simulator's cases are run here; those between kernels by the end-to-end test, which writes the JSON
//! (`docs/lab/explain-confusion.md` says how). `explain-confusion.md` and `explain-confusion.svg` go into the folder.

use linerate_lab::explain::truth::cases::{self, Case};
use linerate_lab::explain::truth::judge;
use linerate_lab::explain::truth::matrix::{ALIKE, Judged, markdown, summary, svg};
use linerate_lab::measure::provenance::Provenance;
use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;

const HEAD: &str = "# How often explanations are right

Transfers with one injected cause each, and what `linerate explain` says of the capture alone. A case counts only where the
injected cause is what limited most: in the simulator by the stack's own clocks and the path's counters, between kernels by the
sender's `tcp_info` and the counters of the relay between them. Rows are what was injected, columns what the verdict names.
Half of the cases of each cause were held out when the rules were written. When all first ran, 53 of 60 of those held out were right
in the simulator, and 78 of 113 in all between kernels. The rules were then corrected, twice, by what was missed (snap lengths that cut
options, one direction alone, no SACK, CoDel, what Linux pushes; then refilled buffers, paced super-frames, the turn as a receiver sees it, clocks echoed in data alone), so the figures below are no independent ones any more. Those of
*afterwards* were written after that first run and not tuned on: 22 of 24 were right when they first ran, before the corrections.

![Confusion matrices](explain-confusion.svg)

The cases are data: `crates/lab/src/explain/truth/cases` and `crates/cli/tests/e2e/explain/cases`. They vary rate (1 Mbit/s to
10 Gbit/s), round trip (0.1 to 200 ms), MTU, direction, IP version, congestion control, offloads, options of TCP, the end at
which the capture is made, its snap length, its direction, and frames that it lacks. To run them again:

    cargo test -p linerate-lab --test explain_truth -- --nocapture
    LINERATE_EXPLAIN=/tmp/explain cargo test -p linerate-cli --test e2e -- --ignored --nocapture explain_names_every
    cargo run --release -p linerate-lab --example explain_truth -- docs/lab /tmp/explain/kernel.json
";

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("expected a folder to write into")?);
    let judged = |cases: &[Case]| -> Vec<Judged> {
        judge::try_all(cases).into_iter().map(|tried| tried.judged).collect()
    };
    let mut panels = vec![
        ("Simulator", judged(&cases::cases()?)),
        ("Simulator, afterwards", judged(&cases::afterwards()?)),
    ];
    if let Some(file) = arguments.next() {
        panels.push(("Linux kernels", serde_json::from_slice(&std::fs::read(file)?)?));
    }
    let mut text = HEAD.to_owned();
    let _ = writeln!(text, "\nMade so: {}", Provenance::now(1).sentence());
    for (title, judged) in &panels {
        let _ = write!(text, "\n## {title}\n\n{}\n{}", summary(judged), markdown(judged));
    }
    text.push_str("\n## What cannot be told apart\n\n");
    if ALIKE.is_empty() {
        text.push_str("No pair of causes is excused: a verdict of \"unknown\" counts as wrong everywhere.\n");
    }
    for (a, b, why) in ALIKE {
        let _ = writeln!(text, "* {a} and {b}: {why}");
    }
    let borrowed: Vec<(&str, &[Judged])> = panels.iter().map(|(title, all)| (*title, &all[..])).collect();
    std::fs::write(folder.join("explain-confusion.md"), text)?;
    std::fs::write(folder.join("explain-confusion.svg"), svg(&borrowed))?;
    Ok(())
}
