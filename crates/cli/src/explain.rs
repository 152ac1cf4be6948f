//! `linerate explain`: what limits transfers, from a capture, or from a running server's own accounts.

use crate::lab::args::Output;
use crate::lab::error::{LabError, check_outputs, json, print, print_json, write};
use crate::status::address::StatusAddress;
use crate::status::report::{Conn, Report};
use crate::top::fetch::fetch;
use clap::Args;
use linerate_lab::explain::{self, Analysis, page, text};
use linerate_lab::measure::provenance::Provenance;
use linerate_lab::progress::Progress;
use linerate_lab::quantity::{byte_rate, bytes, share, span};
use linerate_lab::report::grid::{Cell, Grid, GridFormat};
use linerate_lab::report::page as report;
use linerate_lab::schema::{Origin, Record};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::net::ToSocketAddrs as _;
use std::path::Path;
use std::time::Duration;

/// Most connections that a server is asked for.
const LIVE: u16 = 1_000;
/// Bytes read between two looks at the progress.
const STRIDE: u64 = 1 << 24;

/// Arguments of `explain`.
#[derive(Args, Debug)]
pub struct Explain {
    /// A capture (pcap or pcapng; - for standard input), or where a server tells its status: what `linerate serve` was given as
    /// --status, or its URL
    #[arg(value_name = "FILE|[ADDR:]PORT|URL")]
    pub from: String,

    /// Say more of so many connections, the ones with most bytes
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    pub top: usize,

    /// Say more of this connection alone: its number in the table
    #[arg(long, value_name = "NUMBER")]
    pub connection: Option<usize>,

    /// Forms of the result.
    #[command(flatten)]
    pub output: Output,
}

/// Runs the command and prints its result on standard output.
///
/// # Errors
///
/// The capture or the server cannot be read, or the result not be written.
pub fn run(args: &Explain) -> Result<(), LabError> {
    check_outputs(&[Path::new(&args.from)], &[("--html", args.output.html.as_deref())])?;
    if args.from == "-" || Path::new(&args.from).exists() {
        return capture(args);
    }
    match address(&args.from) {
        Some(address) => live(args, address),
        None if args.from.starts_with("https://") => {
            Err(LabError::Asked(format!("{}: the status is told over http, there is no TLS here", args.from)))
        }
        None => Err(LabError::Asked(format!(
            "{}: no such file, and no address that is known; expected a capture, or where a server tells its status, as 9180, server:9180 or \
             http://server:9180",
            args.from
        ))),
    }
}

/// The address in a port, an address with a port, a name with a port, or a URL.
fn address(text: &str) -> Option<StatusAddress> {
    let text = text.strip_prefix("http://").unwrap_or(text);
    let place = text.split('/').next().unwrap_or(text);
    place.parse().ok().or_else(|| place.to_socket_addrs().ok()?.next().map(StatusAddress))
}

/// Counts what is read.
struct Counted<R> {
    from: R,
    read: u64,
    told: u64,
    progress: Progress,
    file: String,
    len: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.from.read(buffer)?;
        self.read += len as u64;
        if self.read >= self.told + STRIDE {
            self.progress.begin(&format!("{}: {} of {}", self.file, bytes(self.read), bytes(self.len)));
            self.progress.done(1);
            self.told += STRIDE;
        }
        Ok(len)
    }
}

fn capture(args: &Explain) -> Result<(), LabError> {
    let name = if args.from == "-" { "standard input" } else { &args.from };
    let failed = |why: &dyn std::fmt::Display| LabError::Failed(format!("{name}: {why}"));
    let analysis = if args.from == "-" {
        explain::analyse(io::stdin().lock()).map_err(|error| failed(&error))?
    } else {
        let file = File::open(&args.from).map_err(|error| failed(&error))?;
        let len = file.metadata().map_or(0, |about| about.len());
        let progress = Progress::new("capture", len / STRIDE);
        let counted = Counted { from: file, read: 0, told: 0, progress, file: name.to_owned(), len };
        explain::analyse(counted).map_err(|error| failed(&error))?
    };
    args.check_connection(&format!("{name} has"), analysis.connections.len())?;
    let provenance = Provenance::now(1);
    if let Some(file) = &args.output.html {
        let title = Path::new(name).file_name().map_or(name.into(), |name| name.to_string_lossy());
        let page = page::html(&analysis, &title, args.top, args.connection, &provenance);
        write(file, page.map_err(|error| failed(&error))?)?;
    }
    match args.output.json {
        true => print_json(&Explained {
            provenance,
            capture: name,
            notes: analysis.notes(),
            records: records(&analysis, name),
            analysis: &analysis,
        }),
        false => print(&format!(
            "{}{}\n",
            text::text(&analysis, args.top, args.connection, crate::output::width()),
            provenance.sentence()
        )),
    }
}

/// What `--json` has of a capture.
#[derive(Serialize)]
struct Explained<'a> {
    provenance: Provenance,
    capture: &'a str,
    notes: Vec<String>,
    records: Vec<Record>,
    analysis: &'a Analysis,
}

/// Figures of all connections in the form that every command of the lab has.
fn records(analysis: &Analysis, capture: &str) -> Vec<Record> {
    let mut records = Vec::new();
    for connection in &analysis.connections {
        let main = &connection.directions[connection.main];
        let rtt_ms = main.rtt_ns.median().map(|ns| ns as f64 / 1e6);
        let figures = [
            ("throughput", "Mbit/s", Some(main.goodput_bps / 1e6)),
            ("rtt", "ms", rtt_ms),
            ("sent-again", "segments", Some(main.again as f64)),
            ("confidence", "", Some(connection.verdict.confidence)),
        ];
        for (figure, unit, value) in figures {
            let Some(value) = value else { continue };
            records.push(Record {
                board: "capture".to_owned(),
                workload: format!("{} {}", connection.client, connection.server),
                tuning: connection.verdict.cause.name().to_owned(),
                figure: figure.to_owned(),
                unit: unit.to_owned(),
                value,
                origin: Origin::Measured,
                source: format!("{capture}, connection {}", connection.number),
            });
        }
    }
    records
}

impl Explain {
    /// Whether the connection that is asked for is one of `count`.
    fn check_connection(&self, who_has: &str, count: usize) -> Result<(), LabError> {
        let Some(number) = self.connection.filter(|number| !(1..=count).contains(number)) else {
            return Ok(());
        };
        Err(LabError::Asked(match count {
            0 => format!("{who_has} no connection at all"),
            _ => format!("{who_has} no connection {number}: expected 1 to {count}"),
        }))
    }
}

fn live(args: &Explain, address: StatusAddress) -> Result<(), LabError> {
    let report = fetch(address, LIVE).map_err(|error| LabError::Failed(error.to_string()))?;
    let list = &report.connections.list;
    args.check_connection(&format!("{address} lists"), list.len())?;
    let provenance = Provenance::now(1);
    if let Some(file) = &args.output.html {
        let page = live_page(&report, address, args, &provenance)
            .map_err(|error| LabError::Failed(error.to_string()))?;
        write(file, page)?;
    }
    match args.output.json {
        true => {
            let connections: Vec<_> = list.iter().map(live_json).collect();
            print(&json(&json!({
                "provenance": provenance, "status": address.to_string(),
                "connections": connections, "records": live_records(&report),
            }))?)
        }
        false => print(&format!("{}{}\n", live_text(&report, args), provenance.sentence())),
    }
}

fn live_records(report: &Report) -> Vec<Record> {
    let record = |conn: &Conn, figure: &str, unit: &str, value: f64| Record {
        board: report.device.clone(),
        workload: format!("{} {}", conn.server, conn.remote),
        tuning: conn.bottleneck.clone(),
        figure: figure.to_owned(),
        unit: unit.to_owned(),
        value,
        origin: Origin::Measured,
        source: format!("the stack's own accounts over {:.1} s", conn.span),
    };
    let of = |conn: &Conn| {
        let mut all = vec![record(conn, "throughput", "Mbit/s", conn.send_rate / 1e6)];
        all.extend(conn.rtt.map(|rtt| record(conn, "rtt", "ms", rtt * 1e3)));
        all
    };
    report.connections.list.iter().flat_map(of).collect()
}

fn live_json(conn: &Conn) -> serde_json::Value {
    json!({
        "server": conn.server,
        "local": conn.local,
        "remote": conn.remote,
        "bottleneck": conn.bottleneck,
        "because": conn.because,
        "advice": conn.advice,
        "shares": conn.shares,
        "send_rate": conn.send_rate,
        "receive_rate": conn.receive_rate,
        "rtt": conn.rtt,
        "mss": conn.mss,
        "cwnd": conn.cwnd,
        "send_window": conn.send_window,
        "in_flight": conn.in_flight,
        "retransmits": conn.retransmits,
    })
}

fn live_table(report: &Report) -> Grid {
    let headers = ["", "server", "peer", "sent", "rate", "RTT", "again", "cause"];
    let mut grid = Grid::new("connections", "Connections now, by the stack's own accounts", &headers);
    for (index, conn) in report.connections.list.iter().enumerate() {
        grid.rows.push(vec![
            Cell::number((index + 1) as f64, 0),
            Cell::text(conn.server.clone()),
            Cell::text(conn.remote.clone()),
            Cell::text(bytes(conn.bytes_acked)),
            Cell::text(byte_rate(conn.send_rate)),
            Cell::text(conn.rtt.map_or("-".to_owned(), |rtt| span(Duration::from_secs_f64(rtt.max(0.0))))),
            Cell::number(conn.retransmits as f64, 0),
            Cell::text(conn.bottleneck.clone()),
        ]);
    }
    grid
}

/// The connections that details are wanted of, with their numbers.
fn live_chosen<'a>(report: &'a Report, args: &Explain) -> Vec<(usize, &'a Conn)> {
    let wanted =
        |(number, _): &(usize, &Conn)| args.connection.map_or(*number <= args.top, |only| only == *number);
    report.connections.list.iter().enumerate().map(|(index, conn)| (index + 1, conn)).filter(wanted).collect()
}

/// The window's arithmetic of a live connection.
fn window(conn: &Conn) -> Option<String> {
    let under_way = bytes(conn.in_flight.into());
    if conn.send_window == 0 {
        return Some(format!("peer's window is closed; {under_way} under way"));
    }
    let rtt = conn.rtt.filter(|rtt| *rtt > 0.0)?;
    Some(format!(
        "peer's window {} / {} = {}; {} measured; {under_way} under way",
        bytes(conn.send_window.into()),
        span(Duration::from_secs_f64(rtt)),
        byte_rate(f64::from(conn.send_window) / rtt * 8.0),
        byte_rate(conn.send_rate),
    ))
}

fn shares(shares: &BTreeMap<String, f64>) -> String {
    let mut parts: Vec<(&String, f64)> = shares.iter().map(|(name, part)| (name, *part)).collect();
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    let worth = parts.into_iter().filter(|(_, part)| *part >= 0.005);
    worth.map(|(name, part)| format!("{} {name}", share(part))).collect::<Vec<_>>().join(", ")
}

fn live_text(report: &Report, args: &Explain) -> String {
    if report.connections.list.is_empty() {
        return format!("linerate {} on {}: nobody is connected\n", report.version, report.device);
    }
    let mut text = live_table(report).render(GridFormat::Terminal, crate::output::width());
    for (number, conn) in live_chosen(report, args) {
        let _ = writeln!(text, "\n{number}. {} to {}: {}", conn.server, conn.remote, conn.bottleneck);
        let lines = [
            Some(conn.because.clone()),
            window(conn),
            Some(shares(&conn.shares)).filter(|text| !text.is_empty()).map(|text| format!("time: {text}")),
            Some(conn.advice.clone()).filter(|text| !text.is_empty()).map(|text| format!("advice: {text}")),
        ];
        for line in lines.into_iter().flatten().filter(|line| !line.is_empty()) {
            let _ = writeln!(text, "   {line}");
        }
    }
    text
}

fn live_page(
    report: &Report,
    address: StatusAddress,
    args: &Explain,
    provenance: &Provenance,
) -> Result<String, impl std::fmt::Display> {
    let findings = live_chosen(report, args).into_iter().map(|(number, conn)| report::Finding {
        grade: "note",
        label: conn.bottleneck.clone(),
        place: format!("{number}. {} to {}", conn.server, conn.remote),
        text: [Some(conn.because.clone()), window(conn)].into_iter().flatten().collect::<Vec<_>>().join("; "),
        evidence: format!("time: {}; advice: {}", shares(&conn.shares), conn.advice),
    });
    let section = report::Section {
        id: "connections".to_owned(),
        title: "Connections".to_owned(),
        blocks: vec![report::Block::Grid(live_table(report)), report::Block::Findings(findings.collect())],
    };
    report::page(&format!("What limits {address}"), &provenance.sentence(), &[section])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_in_their_forms() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(address(text).map(|address| address.to_string()).as_deref(), expected, "{text}");
        };
        check("9180", Some("127.0.0.1:9180"));
        check("192.168.1.4:9180", Some("192.168.1.4:9180"));
        check("http://[::1]:9180/status.json", Some("[::1]:9180"));
        check("http://127.0.0.1:80", Some("127.0.0.1:80"));
        check("no-such-file.pcap", None);
    }

    #[test]
    fn rates_of_a_server_are_told_in_bits() {
        let conn = Conn { send_rate: 80e6, send_window: 100_000, rtt: Some(0.01), ..Conn::default() };
        let told = window(&conn).unwrap();
        assert!(told.contains("= 10 MB/s; 10 MB/s measured"), "{told}");
        let mut report = Report::default();
        report.connections.list.push(conn);
        let table = live_table(&report).render(GridFormat::Terminal, crate::output::width());
        assert!(table.contains(" 10 MB/s "), "{table}");
        assert_eq!(live_records(&report)[0].value, 80.0);
    }
}
