//! What a client prints: text as it goes, or JSON at the end.

use super::args::Iperf3;
use linerate_linux::clock::wall_clock_ns;
use linerate_serve::http::date;
use linerate_serve::iperf3::client::{Client, ClientError, ClientEvent, Interval, json, text};
use serde_json::{Map, Value};
use std::io::Write as _;
use std::net::SocketAddr;

/// Prints a report.
pub struct Printer {
    json: bool,
    title: Option<String>,
    host: String,
    intervals: Vec<Interval>,
    began_s: u64,
}

impl Printer {
    /// For these arguments; says what it connects to.
    pub fn new(args: &Iperf3, server: SocketAddr) -> Printer {
        let printer = Printer {
            json: args.json,
            title: args.title.clone(),
            host: args.host.clone(),
            intervals: Vec::new(),
            began_s: wall_clock_ns() / 1_000_000_000,
        };
        if !printer.json {
            let title = printer.title.as_ref().map_or_else(String::new, |title| format!("{title}:  "));
            put(&format!("{title}Connecting to host {}, port {}\n", printer.host, server.port()));
        }
        printer
    }

    /// What has happened since.
    pub fn print_events(&mut self, client: &mut Client) {
        while let Some(event) = client.poll_event() {
            let title = self.title.as_deref();
            match event {
                ClientEvent::Started(connected) if !self.json => {
                    put(&text::head(client.params(), &connected, title));
                }
                ClientEvent::Started(_) => {}
                ClientEvent::Interval(interval) => {
                    if self.json {
                        self.intervals.push(interval);
                    } else {
                        put(&text::interval(client.params(), &interval, title));
                    }
                }
            }
        }
    }

    /// The report.
    pub fn finish(&mut self, client: &Client, outcome: Result<(), ClientError>) {
        let report = client.report();
        if self.json {
            let value = json::report(&report, &self.intervals, &self.about(), outcome);
            put(&format!("{value:#}\n"));
            return;
        }
        if report.duration_s > 0.0 {
            put(&text::end(&report));
        }
        if outcome.is_ok() {
            put(&text::closing(outcome, self.title.as_deref()));
        }
    }

    /// What the client itself does not know.
    fn about(&self) -> Map<String, Value> {
        let mut about = Map::new();
        let uname = system();
        about.insert("version".into(), concat!("linerate ", env!("CARGO_PKG_VERSION")).into());
        about.insert("system_info".into(), uname.into());
        let date = date::format(self.began_s as i64);
        let time = String::from_utf8_lossy(&date);
        about.insert("timestamp".into(), serde_json::json!({ "time": time, "timesecs": self.began_s }));
        about
    }
}

/// The system's name and release, without a call of our own.
fn system() -> String {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
    format!("{} {}", read("ostype").trim(), read("osrelease").trim())
}

fn put(text: &str) {
    let mut stdout = std::io::stdout().lock();
    // Who closed standard output does not want to read it; the test goes on.
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}
