//! Clients, and what they say of a measurement.

use crate::latency::Outcome;
use crate::queues;
use crate::rows::{Client, Contender};
use anyhow::{Context, Result, bail};
use linerate_lab::measure::place::{Place, SERVER, run};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// What a client counted.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Counted {
    /// Bytes, requests or packets.
    pub units: f64,
    /// In so many seconds.
    pub seconds: f64,
    /// Share of packets that were lost.
    pub lost: f64,
    /// Requests that failed.
    pub errors: u64,
    /// Latencies, in seconds, where they were measured: p50, p99, p99.9.
    pub latency: [f64; 3],
}

/// What a client needs to know beside its row.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// The row's client.
    pub client: Client,
    /// For how long, where it is not a number of files.
    pub seconds: u32,
    /// Requests a second, where the client has a rate of its own.
    pub rate: f64,
    /// Name and password for FTP.
    pub login: &'a str,
    /// Where the files lie that are stored.
    pub files: &'a Path,
    /// Where our own clients lie.
    pub built: &'a Path,
    /// The core to run on.
    pub core: Option<usize>,
    /// Who serves, where client and server are one process.
    pub serves: Option<Contender>,
    /// Differs for each measurement.
    pub number: u32,
}

/// Runs the client of a row.
pub fn measure(place: &Place, task: &Task<'_>) -> Result<Counted> {
    let seconds = task.seconds.to_string();
    match task.client {
        Client::Bulk { out } => {
            let mut iperf = place.client(task.core, "iperf3");
            iperf.args(["-c", SERVER, "-t", &seconds, "-J"]).args(out.then_some("-R"));
            iperf_tcp(&run(&mut iperf)?)
        }
        Client::Udp { len } => {
            let mut iperf = place.client(task.core, "iperf3");
            iperf.args(["-c", SERVER, "-t", &seconds, "-J", "-u", "-b", "0", "-l", &len.to_string()]);
            iperf_udp(&run(&mut iperf)?)
        }
        Client::Requests { path, connections, closing, status, .. } => {
            let mut wrk = place.client(task.core, "wrk");
            wrk.args(["-t", "1", "-c", &connections.to_string(), "-d", &format!("{seconds}s")]);
            if closing {
                wrk.args(["-H", "Connection: close"]);
            }
            wrk_report(&run(wrk.arg(format!("http://{SERVER}{path}")))?, status)
        }
        Client::Latency { path, connections, .. } => {
            let mut client = place.client(task.core, &task.built.join("openloop").display().to_string());
            client.args([&format!("{SERVER}:80"), path, &connections.to_string()]);
            latency_report(&run(client.args([&task.rate.to_string(), &seconds]))?)
        }
        Client::Memory { work } => {
            let Some(Contender::OursMemory(queues)) = task.serves else {
                bail!("only queues in memory have clients in memory");
            };
            // On cores of its own choice.
            let mut program = place.client(None, &task.built.join("memory-queues").display().to_string());
            let text = run(program.args([work.name(), queues.name(), &seconds]))?;
            let found: queues::Outcome =
                serde_json::from_str(&text).context("memory-queues writes no JSON")?;
            let (units, seconds, errors) = (found.units, found.seconds, found.errors);
            Ok(Counted { units, seconds, errors, ..Counted::default() })
        }
        Client::Download { path, times } => {
            let mut curl = place.client(task.core, "curl");
            curl_report(&run(transfers(&mut curl, times, |curl, _| {
                curl.args(["-o", "/dev/null"]).arg(format!("http://{SERVER}{path}"));
            }))?)
        }
        Client::Ftp { up, file, times } => {
            let mut curl = place.client(task.core, "curl");
            let base = format!("ftp://{}@{SERVER}", task.login);
            curl_report(&run(transfers(&mut curl, times, |curl, at| {
                if up {
                    // A name of its own each time: the anonymous user of some servers may not overwrite.
                    curl.arg("-T")
                        .arg(task.files.join(file))
                        .arg(format!("{base}/up/{}-{at}.bin", task.number));
                } else {
                    curl.args(["-o", "/dev/null"]).arg(format!("{base}/{file}"));
                }
            }))?)
        }
    }
}

fn transfers(curl: &mut Command, times: u32, each: impl Fn(&mut Command, u32)) -> &mut Command {
    curl.args(["-sSf", "-w", "%{size_download} %{size_upload} %{time_total}\\n"]);
    for at in 0..times {
        each(curl, at);
    }
    curl
}

fn report(text: &str) -> Result<Value> {
    let report: Value = serde_json::from_str(text).context("iperf3 writes no JSON")?;
    if let Some(error) = report["error"].as_str() {
        bail!("iperf3 says: {error}");
    }
    Ok(report)
}

fn number(report: &Value, place: &str) -> Result<f64> {
    report.pointer(place).and_then(Value::as_f64).with_context(|| format!("iperf3 says nothing at {place}"))
}

fn iperf_tcp(text: &str) -> Result<Counted> {
    let report = report(text)?;
    let units = number(&report, "/end/sum_received/bytes")?;
    Ok(Counted { units, seconds: number(&report, "/end/sum_sent/seconds")?, ..Counted::default() })
}

fn iperf_udp(text: &str) -> Result<Counted> {
    let report = report(text)?;
    let (sent, lost) = (number(&report, "/end/sum/packets")?, number(&report, "/end/sum/lost_packets")?);
    let seconds = number(&report, "/end/sum/seconds")?;
    Ok(Counted { units: sent - lost, seconds, lost: lost / sent.max(1.0), ..Counted::default() })
}

/// A number with a suffix of wrk, as in `1.05s` or `900.12ms`.
fn wrk_seconds(text: &str) -> Option<f64> {
    let split = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, suffix) = text.split_at(split);
    let scale = match suffix {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * scale)
}

fn wrk_report(text: &str, status: u16) -> Result<Counted> {
    let line = |mark: &str| text.lines().map(str::trim).find(|line| line.contains(mark));
    let numbers = |line: &str| -> Vec<u64> {
        line.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect()
    };
    let summary = line(" requests in ").with_context(|| format!("wrk says no total:\n{text}"))?;
    let words: Vec<&str> = summary.split([' ', ',']).collect();
    let seconds = words.get(3).and_then(|word| wrk_seconds(word));
    let units = words.first().and_then(|word| word.parse().ok());
    let (Some(units), Some(seconds)) = (units, seconds) else { bail!("wrk says '{summary}'") };
    if units == 0.0 {
        bail!("no request was answered");
    }
    let mut errors = line("Socket errors:").map_or(0, |line| numbers(line).iter().sum());
    let other = line("Non-2xx").and_then(|line| numbers(line).last().copied()).unwrap_or(0);
    let expected = if status < 300 { 0 } else { units as u64 };
    errors += other.abs_diff(expected);
    Ok(Counted { units, seconds, errors, ..Counted::default() })
}

fn latency_report(text: &str) -> Result<Counted> {
    let found: Outcome = serde_json::from_str(text).context("the client writes no JSON")?;
    // Without answers there are no latencies: they are not zero.
    if found.requests == 0 {
        bail!("no request was answered, {} failed", found.errors);
    }
    Ok(Counted {
        units: found.requests as f64,
        seconds: found.seconds,
        errors: found.errors,
        latency: [found.p50, found.p99, found.p999],
        ..Counted::default()
    })
}

fn curl_report(text: &str) -> Result<Counted> {
    let mut counted = Counted::default();
    for line in text.lines() {
        let fields: Vec<f64> = line.split_whitespace().filter_map(|field| field.parse().ok()).collect();
        let [down, up, seconds] = fields.as_slice() else { bail!("curl says '{line}'") };
        counted.units += down + up;
        counted.seconds += seconds;
    }
    if counted.units == 0.0 {
        bail!("curl moved nothing");
    }
    Ok(counted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRK: &str = "Running 1s test @ http://192.168.1.4/none.bin
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   630.33us  125.62us   2.77ms   91.61%
    Req/Sec   101.27k     5.06k  107.68k    81.82%
  110773 requests in 1.10s, 22.82MB read
  Socket errors: connect 0, read 3, write 0, timeout 0
  Non-2xx or 3xx responses: 110773
Requests/sec: 100714.31
Transfer/sec:     20.75MB
";

    #[test]
    fn wrk_is_read() {
        let counted = wrk_report(WRK, 404).unwrap();
        assert_eq!(counted, Counted { units: 110_773.0, seconds: 1.1, errors: 3, ..Counted::default() });
        assert_eq!(wrk_report(WRK, 200).unwrap().errors, 110_776);
        assert!(wrk_report("unable to connect", 200).is_err());
        let none = wrk_report(
            "  0 requests in 1.10s, 0B read\n  Socket errors: connect 0, read 0, write 0, timeout 64",
            200,
        );
        assert_eq!(none.unwrap_err().to_string(), "no request was answered");
        assert_eq!(wrk_seconds("900.12ms"), Some(0.90012));
        assert_eq!(wrk_seconds("3.5h"), None);
    }

    #[test]
    fn latencies_are_read_and_those_of_no_answer_are_none() {
        let said = |requests, errors| {
            let found = Outcome { requests, errors, seconds: 2.0, p50: 1e-4, p99: 2e-4, p999: 3e-4 };
            latency_report(&serde_json::to_string(&found).unwrap())
        };
        let counted = said(1_000, 3).unwrap();
        assert_eq!((counted.units, counted.errors, counted.latency), (1_000.0, 3, [1e-4, 2e-4, 3e-4]));
        assert_eq!(said(0, 7).unwrap_err().to_string(), "no request was answered, 7 failed");
    }

    #[test]
    fn iperf3_is_read() {
        // As iperf3 3.12 writes it, without the intervals.
        let tcp = r#"{"start":{},"end":{"streams":[],"sum_sent":{"start":0,"end":2.00012,"seconds":2.00012,
            "bytes":9000000,"bits_per_second":1.0,"retransmits":0,"sender":true},
            "sum_received":{"start":0,"end":2.00032,"seconds":2.00012,"bytes":8000000,"sender":true}}}"#;
        let counted = iperf_tcp(tcp).unwrap();
        assert_eq!((counted.units, counted.seconds), (8e6, 2.00012));
        let udp = r#"{"end":{"sum":{"start":0,"end":1.0,"seconds":1.0,"bytes":64000,"bits_per_second":512000,
            "jitter_ms":0.001,"lost_packets":250,"packets":1000,"lost_percent":25.0,"sender":true}}}"#;
        assert_eq!(
            iperf_udp(udp).unwrap(),
            Counted { units: 750.0, seconds: 1.0, lost: 0.25, ..Counted::default() }
        );
        let error = iperf_tcp(r#"{"start":{},"error":"unable to connect to server"}"#).unwrap_err();
        assert!(error.to_string().contains("unable to connect"));
    }

    #[test]
    fn curl_is_read() {
        let counted = curl_report("268435456 0 0.125000\n268435456 0 0.250000\n").unwrap();
        assert_eq!((counted.units, counted.seconds), (536_870_912.0, 0.375));
        assert!(curl_report("").is_err());
        assert!(curl_report("curl: (7) no\n").is_err());
    }
}
