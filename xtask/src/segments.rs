//! What one segment costs in instructions, counted by valgrind, beside smoltcp and lwIP in the same run, and what a short HTTP request
//! does; and how costs grow.

use crate::{growth, packages, shell};
use anyhow::{Context, Result, bail, ensure};
use std::process::Command;

const MANIFEST: &str = "benches/segments/Cargo.toml";
const OUT: &str = "target/segments";

/// Segments of the two runs whose difference is counted, so that what comes before the first does not count.
const COUNTS: [u64; 2] = [2_000, 12_000];

/// Most instructions of ours where the device does the checksums: what was measured (3,364 on 2026-11-27, 3,370 a day later, rustc 1.95) and 3 %.
/// Checksums in software depend on the processor.
const MOST: u64 = 3_465;

/// Short HTTP requests: what the bench calls them and how many clients ask, what they are, and the most instructions of ours, found as
/// above. A device does the checksums. What one client costs more is what a turn costs that finds nothing else to do.
const REQUESTS: [([&str; 2], &str, u64); 4] = [
    (["keep", "64"], "64 clients, connections are kept", 8_440),
    (["keep", "1"], "one client, connections are kept", 9_400),
    (["close", "64"], "64 clients, a connection each", 23_450),
    (["close", "1"], "one client, a connection each", 29_100),
];

/// Fetches lwIP and builds two programs on it: one is counted here, the other is a peer of the harness in `benches/bench`.
const LWIP: &str = "benches/lwip/build.sh";
/// Where that harness looks for it.
const LWIP_OUT: &str = "target/bench/release/lwip";

/// Functions of the bench whose instructions are those of the two ends.
const ENDS: [&str; 2] = ["sender", "receiver"];

/// Builds the bench, prints the table and compares with the bound.
pub fn run(long: bool) -> Result<()> {
    packages::require(&["valgrind"])?;
    shell::run(shell::cargo().args(["build", "--quiet", "--release", "--locked"]).args([
        "--manifest-path",
        MANIFEST,
        "--target-dir",
        OUT,
    ]))?;
    println!(
        "instructions for each 1,460 bytes of a stream, 8 segments a turn, an acknowledgement for every second:"
    );
    println!("{:<22} {:<10} {:>10} {:>10} {:>10}", "checksums", "stack", "sending", "receiving", "both");
    let mut stacks = vec!["linerate", "smoltcp"];
    match lwip() {
        Ok(()) => stacks.push("lwip"),
        // A peer that cannot be had fails nothing: what is bounded is ours.
        Err(error) => eprintln!("lwIP is left out: {error:#}"),
    }
    let mut ours_without = 0;
    for (name, sums) in [("computed by software", "sums"), ("left to the device", "none")] {
        for &stack in &stacks {
            let [sending, receiving] = per_segment(stack, sums)?;
            let both = sending + receiving;
            println!("{name:<22} {stack:<10} {sending:>10} {receiving:>10} {both:>10}");
            if (stack, sums) == ("linerate", "none") {
                ours_without = both;
            }
        }
    }
    let mut faults = Vec::new();
    if ours_without > MOST {
        faults.push(format!("{ours_without} instructions a segment, most {MOST}"));
    }
    println!("\ninstructions of the server for each HTTP request of 354 bytes, no access log:");
    for (how, name, most) in REQUESTS {
        let request = each(&path("requests"), &how, "requests::server")?;
        println!("{name:<33} {request:>10}");
        if request > most {
            faults.push(format!("{request} instructions a request ({name}), most {most}"));
        }
    }
    faults.extend(growth::run(long)?);
    ensure!(
        faults.is_empty(),
        "more than its bound in xtask/src/segments.rs or growth.rs: {}",
        faults.join("; ")
    );
    Ok(())
}

fn per_segment(stack: &str, sums: &str) -> Result<[u64; 2]> {
    let [sender, receiver] = ENDS;
    let of = |end| match stack {
        "lwip" => each(&format!("{LWIP_OUT}/lwip-ends"), &[sums], end),
        _ => each(&path("segments"), &[stack, sums], &format!("segments::*::{end}")),
    };
    Ok([of(sender)?, of(receiver)?])
}

/// Fetches and builds lwIP where that was not done before.
fn lwip() -> Result<()> {
    packages::require(&["curl", "gcc", "xz-utils"])?;
    shell::run(Command::new(LWIP).arg(LWIP_OUT))
}

/// Instructions within the function of one end for each of what is counted.
fn each(program: &str, args: &[&str], function: &str) -> Result<u64> {
    let [few, many] = COUNTS;
    let run = |count: u64| collected(program, &[args, &[&count.to_string()]].concat(), function);
    between(run(few)?.0, run(many)?.0).with_context(|| format!("{program} {} in {function}", args.join(" ")))
}

/// Instructions for each of those by which the second run had more than the first.
fn between(few: u64, many: u64) -> Result<u64> {
    ensure!(many > few, "{many} instructions for {} turns, {few} for {}", COUNTS[1], COUNTS[0]);
    Ok((many - few) / (COUNTS[1] - COUNTS[0]))
}

/// Where a program of the bench is, once it is built.
pub fn path(program: &str) -> String {
    format!("{OUT}/release/{program}")
}

/// Instructions of one run of a program within a function, and the number that the run prints.
pub fn collected(program: &str, args: &[&str], function: &str) -> Result<(u64, u64)> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(format!("--toggle-collect={function}*"))
        .arg(program)
        .args(args)
        .output()
        .context("cannot start valgrind")?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("{program} {} ended with {}:\n{text}", args.join(" "), output.status);
    }
    let count = counted(&text).with_context(|| format!("{program} {} in {function}", args.join(" ")))?;
    Ok((count, growth::number(&String::from_utf8_lossy(&output.stdout))?))
}

/// The instructions that valgrind says it has counted. None at all means that the program has no such function: it is under every
/// bound, and says nothing.
fn counted(text: &str) -> Result<u64> {
    let collected = text.lines().find_map(|line| line.split_once("Collected : "));
    let (_, count) = collected.with_context(|| format!("valgrind says no count:\n{text}"))?;
    let count = count.trim().parse().with_context(|| format!("valgrind's count is '{count}'"))?;
    ensure!(count > 0, "valgrind counted no instruction: is the function called otherwise?");
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_that_is_not_there_is_an_error() {
        assert_eq!(counted("==7== Events    : Ir\n==7== Collected : 12015\n").unwrap(), 12_015);
        assert!(counted("==7== Collected : 0\n").unwrap_err().to_string().contains("no instruction"));
        assert!(counted("==7== \n").is_err());
        assert_eq!(between(1_000, 11_000_999).unwrap(), 1_099);
        assert!(between(5, 5).is_err());
    }
}
