//! Automation for the workspace: `cargo xtask <command>`.
//!
//! `cargo xtask test` runs every test on a fresh machine; the other commands are the checks that CI adds.

mod bench;
mod big_endian;
mod board;
mod capi;
mod circles;
mod firmware;
mod fuzz;
mod growth;
mod lab;
mod licences;
mod packages;
mod rtl;
mod sanitize;
mod segments;
mod shell;
mod suites;
mod targets;
mod test;
mod tidy;

use anyhow::{Result, bail};
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask <command>

  test [FILTER]    install the Debian packages that are missing (as root), then run every test;
                   with FILTER, only the end-to-end tests whose name contains it
  tidy             check file and module rules and the direction of dependencies
  licences         check licences and duplicate versions of dependencies against deny.toml
  firmware         link stack and servers for four bare processors; print and bound how much code each part is
  board NAME [serve|test|count|bench|offloads|livelock|build|setup]
                   build a board's firmware and start it in an emulator (`cargo xtask board` for more)
  big-endian [--long]
                   run the portable crates' tests on a big-endian processor, emulated; --long: all of the stack's
  fabric-accuracy  print how well the 66AK2H's predictions meet the throughput guide, with cross-validation
  goodput          print TCP's goodput as a share of the ideal over rates, round-trip times, losses and reordering
  segments [--long]
                   count the instructions of one TCP segment, beside smoltcp, of a packet and a byte as connections and
                   answers grow, and the bytes of an idle connection; --long: by time as well, up to 4 GiB
  bench [ROW ...] [--rounds N] [--list] [--smoke]
                   measure our servers beside others and beside a floor, write docs/BENCHMARKS.md (as root)
  rtl [STEP] [BLOCK ...]
                   the network interface in RTL: lint, test benches, comparison, proofs, synthesis (`cargo xtask rtl -h`)
  lab              install what the lab's tests need into target/lab/venv, as crates/lab/requirements.txt pins it (once)
  sanitize         run the tests of unsafe code under the address sanitizer, and of what threads share under the thread sanitizer
  capi [update]    check (or write) linerate.h, build and run everything in C
  fuzz [SECONDS [TARGET=SECONDS ...]]
                   run every fuzz target this long (default 60), those that are named as long as they are given
";

fn main() -> ExitCode {
    if let Some(code) = board::compile() {
        return code;
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Without the backtrace that `Result` from main would print: these are messages for people.
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    std::env::set_current_dir(shell::root())?;
    match args.as_slice() {
        ["test"] => test::run(None),
        ["test", filter] => test::run(Some(filter)),
        ["tidy"] => tidy::run(),
        ["licences"] => licences::run(),
        ["firmware"] => firmware::run(),
        ["big-endian"] => big_endian::run(false),
        ["big-endian", "--long"] => big_endian::run(true),
        ["fabric-accuracy"] => suites::example("fabric_accuracy", &[]),
        ["goodput", cells @ ..] => suites::example("goodput", cells),
        ["board", args @ ..] => board::run(args),
        ["segments"] => segments::run(false),
        ["segments", "--long"] => segments::run(true),
        ["bench", args @ ..] => bench::run(args),
        ["rtl", args @ ..] => rtl::run(args),
        ["lab"] => lab::prepare(),
        ["sanitize"] => sanitize::run(),
        ["capi"] => capi::run(false),
        ["capi", "update"] => capi::run(true),
        ["fuzz", args @ ..] => fuzz::run(args),
        _ => bail!("{USAGE}"),
    }
}
