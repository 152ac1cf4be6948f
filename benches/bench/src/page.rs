//! `docs/BENCHMARKS.md`: every row with what came of it, and how to read it.

use crate::report::{Report, RowReport, Verdict};
use crate::verdict::limit;
use crate::{spent, table};
use std::collections::BTreeMap;
use std::fmt::Write as _;

const HOW: &str = "## How to run, how to read

    cargo xtask bench                    all rows; writes this page and its picture, and target/bench/report.{json,html}
    cargo xtask bench http-354-keep-64   one row; the page is left alone
    cargo xtask bench --profile          all rows, and where each contender's processor time goes
    cargo xtask bench --long             4 GiB, files in memory and out of the page cache, stored on disk, and settings as well
    cargo xtask bench --list             what rows there are
    cargo xtask bench --from target/bench/report.json    this page again, with what benches/bench/reasons.txt says by now

As root, on a machine with two cores that does nothing else. Clients and servers have a core each. Each contender runs in network
namespaces of its own; in a row all take turns, round by round, and the ratio is the median of the rounds' ratios, with
the least and the most beside it. The client of a row is the same program for all: iperf3, wrk or curl; kernels use Reno. Processor time is that
of the server's process with its children, as the scheduler counts it; a write to a TAP or to a veth pair runs part of
the client's receive path in the process that writes, with all contenders alike.

The *floor* is a bare responder of our own (`benches/bench/src/floor`): it moves frames, one system call each, and
acknowledges every second segment or each super-segment; it has no congestion control, no reassembly and one prepared
response, verifies no checksum, and knows the sum of what it sends beforehand. Opening the device is the code of linerate's drivers. A stack that acknowledges less often may be faster than it.

A row is *refused* where the client had no processor time left and the server had, so that its rate says nothing, or where
other processes took more than a quarter of a core. `>=` and `<=` are what is asked of the ratio.

A virtual machine may give memory that was not used for some seconds back to its host; to get it again takes four times as long as
to copy into it. Before each upload as much memory as it takes is therefore written and let go of, twice to five times, until that is as
cheap as it was before in the row (processor time, within a quarter). Where it stayed half as dear again, the row is refused; what gets
cold between that and the upload goes unnoticed. Each round begins with another contender.

Rows of *two-queues* in memory have server and clients in one process, a core for each queue; what counts is the time that
the servers' turns take. *Two servers* share nothing, and so tell what the machine's cores allow.

Rows of latency have a client of ours (`openloop`): *latency-1* asks for one byte over one connection and asks again when it is
there; *latency-64-half* asks over 64 connections at fixed times, half as often as the slowest contender can answer. A
latency counts from the time at which a request was due (coordinated omission is corrected).

All write a log of requests, a line for each, several lines at a time. Settings of the peers are Debian's defaults but for: one worker, `sendfile`,
keep-alive without a limit of requests, room for 4,096 connections, nginx's log (`buffer=64k flush=20ms`, `log_not_found off`). FTP sessions log in
once and move the file several times; for uploads linerate and pure-ftpd verify a password whose hash takes 10 ms, for downloads pure-ftpd one whose
hash takes next to nothing; all others are anonymous. Files
are served from disk, and lie in the page cache; uploads go to memory (`/dev/shm`). Rows of *-tmpfs* are served from memory, of *-cold* from disk when
the page cache has nothing of the file, of *-disk* stored on disk; what the disk takes is the same for all, and on a shared machine what others leave of it.
";

const PLACES: &str = "Stacks of the servers' processes, sampled by perf (cpu-clock, 1,999 Hz) in a measurement more; shares of the samples times the \
median cost of the rounds. *program* is code of the server's own, *libraries* shared ones, the C library above all, *arrival* packets on their way up \
through the kernel in the server's time (the client's part of a write to a device too), *wake-ups* waking the client, *sleep* falling asleep and \
coming back, *copies* of bytes wherever they are made; *send*, *receive*, *poll* and *files* are the rest of these system calls.\n\n";

const ABSENT: &str = "## Not measured

- smoltcp, lwIP and gVisor's stack take part without offloads only: smoltcp's device for TAPs and lwIP have none, and all are to do the same.
- lwIP has no server of files that would be one beside ours: it takes part with TCP streams, and in the instructions of a segment (performance.md).
";

/// The page. `reasons` has what profiling found of a row, by its name.
pub fn write(report: &Report, reasons: &BTreeMap<String, String>) -> String {
    let mut page = format!(
        "# Benchmarks\n\nGenerated by `{}`, {} UTC, {} rounds of {} s ({} s for requests), {} s in all. Do not edit.\n\n",
        report.command, report.date, report.rounds, report.seconds.0, report.seconds.1, report.took
    );
    page += &summary(&report.rows);
    page += "\n![Ours, peers and floor: TCP, HTTP, files, FTP, UDP](benchmarks.svg)\n\n| | |\n|---|---|\n";
    for (name, value) in report.machine.iter().chain(&report.versions) {
        let _ = writeln!(page, "| {name} | {value} |");
    }
    page += "\n## Comparisons\n\n";
    let _ = writeln!(page, "| {} |\n|{}", table::HEADS.join(" | "), "---|".repeat(table::HEADS.len()));
    for row in &report.rows {
        for judgement in &row.judgements {
            let _ = writeln!(page, "| {} |", table::cells(row, judgement).join(" | "));
        }
    }
    page += "\n## Rows that miss or cannot be told\n\n";
    for row in &report.rows {
        let missed: Vec<_> =
            row.judgements.iter().filter(|judgement| judgement.verdict == Verdict::Missed).collect();
        let mut lines = table::notes(row);
        if !missed.is_empty() {
            let mut found: Vec<String> =
                missed.iter().filter_map(|judgement| spent::reason(row, judgement)).collect();
            // Several figures of the same two contenders have one profile.
            found.dedup();
            found.extend(reasons.get(&row.name).cloned());
            if found.is_empty() {
                found.push("not profiled yet".into());
            }
            lines.extend(found.iter().map(|reason| format!("missed: {reason}")));
        }
        for line in lines {
            let _ = writeln!(page, "- {}: {line}", row.name);
        }
    }
    if let Some(table) = spent::table(&report.rows) {
        page += "\n## Where processor time goes\n\n";
        page += PLACES;
        page += &table;
    }
    page += "\n## All figures\n\n";
    page += &figures(&report.rows);
    page += &latencies(&report.rows);
    page.push('\n');
    page + HOW + "\n" + ABSENT
}

fn summary(rows: &[RowReport]) -> String {
    let all: Vec<&Verdict> =
        rows.iter().flat_map(|row| &row.judgements).map(|judgement| &judgement.verdict).collect();
    let count = |wanted: fn(&Verdict) -> bool| all.iter().filter(|verdict| wanted(verdict)).count();
    format!(
        "{} comparisons in {} rows: {} meet their goal, {} miss it, {} are refused.\n",
        all.len(),
        rows.len(),
        count(|verdict| *verdict == Verdict::Met),
        count(|verdict| *verdict == Verdict::Missed),
        count(|verdict| matches!(verdict, Verdict::Refused(_)))
    )
}

/// Medians of every contender.
fn figures(rows: &[RowReport]) -> String {
    use crate::rows::Metric::{Loss, Rate};
    use linerate_lab::measure::statistics::spread;
    let mut text = String::from(
        "Medians; shares of a core are those of the server's and the client's processes.\n\n\
         | row | contender | rate | | lost % | server CPU ms | for | server's share | client's share |\n|---|---|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        for contestant in &row.contestants {
            let median = |value: &dyn Fn(&crate::report::Sample) -> f64| {
                spread(contestant.samples.iter().map(value)).map_or("-".into(), |s| table::short(s.median))
            };
            let bytes = row.scale > 1.0;
            let (per, what) = if bytes { (1e9, "GB") } else { (1e3, "1,000") };
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {what} | {} | {} |",
                row.name,
                contestant.name,
                median(&|sample| sample.value(Rate) / row.scale),
                row.unit,
                median(&|sample| sample.value(Loss) * 100.0),
                median(&|sample| sample.server_cpu * 1e3 / sample.units * per),
                median(&|sample| sample.server_cpu / sample.wall),
                median(&|sample| sample.client_cpu / sample.wall),
            );
        }
    }
    text
}

/// The latencies of all contenders in the rows that have some.
fn latencies(rows: &[RowReport]) -> String {
    use crate::rows::Metric::{P50, P99, P999};
    use linerate_lab::measure::statistics::spread;
    let mut text = String::new();
    for row in rows.iter().filter(|row| row.has_latency()) {
        if text.is_empty() {
            text += "\nLatency in microseconds, medians of the rounds:\n\n| row | contender | p50 | p99 | p99.9 | asked |\n|---|---|---|---|---|---|\n";
        }
        for contestant in &row.contestants {
            let median = |metric, scale| {
                let values = contestant.samples.iter().map(|sample| sample.value(metric) / scale);
                spread(values).map_or("-".into(), |s| table::short(s.median))
            };
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {}/s |",
                row.name,
                contestant.name,
                median(P50, 1e-6),
                median(P99, 1e-6),
                median(P999, 1e-6),
                median(crate::rows::Metric::Rate, 1.0),
            );
        }
    }
    text
}

/// The rows of `sweep`: what each setting does to latency and to processor time, beside the defaults.
pub fn sweep(rows: &[RowReport]) -> Option<String> {
    use crate::rows::Metric::{P50, P99, PerCpu};
    use linerate_lab::measure::statistics::spread;
    let mut text = String::from(
        "| row | setting | p50, us | p99, us | server CPU us a request | rounds | |\n|---|---|---|---|---|---|---|\n",
    );
    let swept: Vec<&RowReport> = rows.iter().filter(|row| row.name.starts_with("sweep-")).collect();
    for row in &swept {
        for contestant in &row.contestants {
            let median = |value: &dyn Fn(&crate::report::Sample) -> f64| {
                spread(contestant.samples.iter().map(value)).map_or("-".into(), |s| table::short(s.median))
            };
            let disturbed =
                contestant.samples.iter().any(|sample| limit(sample) == Some(crate::report::Limit::Machine));
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {} |",
                row.name,
                contestant.name,
                median(&|sample| sample.value(P50) * 1e6),
                median(&|sample| sample.value(P99) * 1e6),
                median(&|sample| 1e6 / sample.value(PerCpu).max(1e-9)),
                contestant.samples.len(),
                if disturbed { "others used the processors" } else { "" },
            );
        }
    }
    (!swept.is_empty()).then_some(text)
}

/// `docs/latency-sweep.md`: the table of [`sweep`] with what it is of.
pub fn sweep_page(report: &Report, table: &str) -> String {
    format!(
        "# Settings that trade latency for processor time\n\nGenerated by `{}`, {} UTC, {} rounds of {} s. Do not edit.\n\n\
         Each contender is linerate over TAP with one setting away from its default; the first has none, and the last is on the \
         kernel's sockets. *sweep-1* is a ping-pong of requests for one byte over HTTP; the others ask over 64 connections at \
         fixed times, half as often as the slowest can answer. Medians of the rounds.\n\n{table}",
        report.command, report.date, report.rounds, report.seconds.0
    )
}

/// Reads the reasons: a line `row: reason` each.
pub fn reasons(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pairs = lines.filter_map(|line| line.split_once(": "));
    pairs.map(|(row, reason)| (row.trim().to_owned(), reason.trim().to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_miss_has_its_reason() {
        let report = Report { rows: vec![table::tests::row(Verdict::Missed)], ..Report::default() };
        let page = write(&report, &reasons("# what was found\ntap-in: a copy of each frame\n"));
        assert!(page.contains("- tap-in: missed: a copy of each frame\n"), "{page}");
        assert!(page.contains("1 comparisons in 1 rows: 0 meet their goal, 1 miss it, 0 are refused."));
        assert!(write(&report, &BTreeMap::new()).contains("missed: not profiled yet"));
    }
}
