//! What a packet, a byte and an idle connection cost as their number grows: counted by valgrind and by the bytes that are
//! allocated, and held against bounds. Part of `cargo xtask segments`.

use crate::segments;
use anyhow::{Context, Result, bail};
use std::process::Command;

/// The program of the bench, and its function whose instructions count.
const PROGRAM: &str = "crowd";
const MEASURED: &str = "crowd::*::measured";

/// Requests of each count.
const REQUESTS: u64 = 500;
/// Numbers of connections among which the requests are spread, with the most instructions for a packet among so many,
/// where none has been quiet and where all were quiet for 5 s (0: not measured); in hundredths of what the first takes. 115
/// is the goal. What is beyond it is what was measured (2026-11-28) and a twentieth: a connection that was quiet gets its
/// working state back from the heap, which takes no more than it did when a packet took a fifth more.
const CONNECTIONS: [(u64, u64, u64); 4] =
    [(1, 100, 0), (100, 123, 161), (10_000, 115, 160), (100_000, 115, 0)];
/// Lengths of answers with the most instructions for a byte, in hundredths of what the longest take. What is beyond 115 is
/// what was measured (2026-11-27) and a twentieth: a request takes 16,000 instructions, however few bytes its answer has.
const LENGTHS: [(u64, u64); 5] =
    [(1 << 10, 2_157), (16 << 10, 223), (256 << 10, 115), (4 << 20, 115), (64 << 20, 100)];
/// The goal of all of them, in hundredths.
const FLAT: u64 = 115;

/// Idle connections that are weighed, on our own stack and on the kernel's sockets, and the most bytes for each: the goals.
const IDLE: [(&str, u64, u64); 2] = [("own", 10_000, 1_024), ("kernel", 4_000, 614)];

/// Prints what it counts and returns what is beyond its bound. With `long` the same by time, up to 4 GiB, as
/// instructions do not show what the processor's caches miss.
pub fn run(long: bool) -> Result<Vec<String>> {
    let mut faults = idle()?;
    faults.extend(connections()?);
    faults.extend(lengths()?);
    if long {
        by_time()?;
    }
    Ok(faults)
}

fn idle() -> Result<Vec<String>> {
    println!("\nbytes for each idle HTTP connection, of stack and server together:");
    println!("{:<22} {:>12} {:>10} {:>10}", "sockets", "connections", "bytes", "most");
    let mut faults = Vec::new();
    for (sockets, count, most) in IDLE {
        let text = said(&["idle", sockets, &count.to_string()])?;
        let bytes = number(&text)?;
        println!("{sockets:<22} {count:>12} {bytes:>10} {most:>10}");
        if bytes > most {
            faults
                .push(format!("{bytes} bytes for each of {count} idle connections ({sockets}), most {most}"));
        }
    }
    Ok(faults)
}

/// Instructions of the server for a packet: a request, its answer and the acknowledgement of it are three.
fn connections() -> Result<Vec<String>> {
    println!("\ninstructions of the HTTP server for a packet, requests for 354 bytes in random order:");
    println!("{:<22} {:>12} {:>10} {:>10} {:>10}", "connections", "", "packet", "of one", "most");
    let (mut faults, mut first) = (Vec::new(), 0);
    for (count, busy, idle) in CONNECTIONS {
        for (name, rest, most) in [("busy", &[][..], busy), ("quiet for 5 s before", &["idle"][..], idle)] {
            if most == 0 {
                continue;
            }
            // Quiet ones are asked once each, so that none is awake.
            let requests = if rest.is_empty() { REQUESTS } else { REQUESTS.min(count / 2) };
            let (requests, conns) = (requests.to_string(), count.to_string());
            let mut args = vec!["requests", &requests, &conns];
            args.extend(rest);
            let (instructions, packets) = segments::collected(&segments::path(PROGRAM), &args, MEASURED)?;
            let each = instructions / packets.max(1);
            if first == 0 {
                first = each;
            }
            faults.extend(compared(count, name, each, first, most));
        }
    }
    Ok(faults)
}

fn lengths() -> Result<Vec<String>> {
    println!("\ninstructions of the HTTP server for 1,000 bytes of an answer, over one connection:");
    println!("{:<22} {:>12} {:>10} {:>10} {:>10}", "bytes of an answer", "", "1,000", "of 64 MiB", "most");
    let (mut faults, mut last) = (Vec::new(), 0);
    for (len, most) in LENGTHS.into_iter().rev() {
        let (instructions, bytes) =
            segments::collected(&segments::path(PROGRAM), &["answers", &len.to_string()], MEASURED)?;
        let each = instructions * 1_000 / bytes.max(1);
        if last == 0 {
            last = each;
        }
        faults.extend(compared(len, "", each, last, most));
    }
    Ok(faults)
}

/// Prints what each of `count` takes, beside the first, and returns it if that is more than it may be, in hundredths.
fn compared(count: u64, name: &str, each: u64, first: u64, most: u64) -> Option<String> {
    let share = each * 100 / first.max(1);
    let (of_first, bound, note) = (ratio(share), ratio(most), missed(share, FLAT));
    println!("{count:<22} {name:>12} {each:>10} {of_first:>10} {bound:>10}{note}");
    (share > most).then(|| format!("{each} instructions with {count} {name}"))
}

/// The same in nanoseconds of the whole program, clients and all, by the difference of two runs. Nothing is held against
/// it.
fn by_time() -> Result<()> {
    println!("\nby time, clients included; nothing is held against a bound:");
    for (count, ..) in CONNECTIONS {
        let conns = count.to_string();
        let few = seconds(&["requests", "1000", &conns])?;
        let many = seconds(&["requests", "201000", &conns])?;
        println!("{count:<22} connections {:>10.0} ns a request", (many - few) / 200_000.0 * 1e9);
    }
    for len in [64 << 20, 1_u64 << 30, 4 << 30] {
        let len_text = len.to_string();
        // Each run asks twice, once before what counts.
        let took = seconds(&["answers", &len_text])?;
        println!("{len:<22} bytes       {:>10.3} ns a byte", took / (2.0 * len as f64) * 1e9);
    }
    Ok(())
}

fn seconds(args: &[&str]) -> Result<f64> {
    let start = std::time::Instant::now();
    said(args)?;
    Ok(start.elapsed().as_secs_f64())
}

fn ratio(hundredths: u64) -> String {
    if hundredths == 0 { "-".to_owned() } else { format!("{}.{:02}", hundredths / 100, hundredths % 100) }
}

fn missed(value: u64, goal: u64) -> &'static str {
    if value > goal { "  misses its goal" } else { "" }
}

/// What the bench prints.
fn said(args: &[&str]) -> Result<String> {
    let output =
        Command::new(segments::path(PROGRAM)).args(args).output().context("cannot start the bench")?;
    if !output.status.success() {
        bail!("{} ended with {}: {}", args.join(" "), output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The number that a line begins with.
pub fn number(text: &str) -> Result<u64> {
    let word = text.split_whitespace().next().with_context(|| "the bench prints nothing".to_owned())?;
    word.parse().with_context(|| format!("the bench prints '{}' where a number was expected", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ratios() {
        assert_eq!(number("12015 packets\n").ok(), Some(12_015));
        assert!(number("packets").is_err() && number("").is_err());
        assert_eq!((ratio(115).as_str(), ratio(0).as_str()), ("1.15", "-"));
        assert_eq!((missed(116, 115).is_empty(), missed(115, 115).is_empty()), (false, true));
    }
}
