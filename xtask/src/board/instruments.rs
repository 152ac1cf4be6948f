//! Checks of the instruments: trace, profile, capture.

use super::checks::{Scratch, pattern, stats, url};
use super::machine::Machine;
use crate::lab;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Bytes that are fetched while instruments are on.
const LEN: usize = 100_000;

fn fetch(machine: &Machine<'_>, path: &str) -> Result<Vec<u8>> {
    machine.client("curl", &["-sSf", "-m", "20", &url(machine, path)])
}

fn ask(machine: &mut Machine<'_>, command: &str, expected: &str) -> Result<()> {
    let answer = machine.console.ask(command)?;
    ensure!(answer.contains(expected), "{command} was answered by {answer:?}, expected {expected:?}");
    Ok(())
}

/// Tasks, interrupts and frames are in the trace, and it is JSON, also after the ring has wrapped.
pub fn trace(machine: &mut Machine<'_>) -> Result<String> {
    ask(machine, "trace", "trace off, 0 events")?;
    ask(machine, "trace maybe", "trace: maybe given, on, off or status expected")?;
    let mut said = String::new();
    for wraps in [false, true] {
        ask(machine, "trace on", "trace on, ")?;
        fetch(machine, "/memory/1000")?;
        let mut rounds = 0;
        while wraps && machine.console.ask("trace status")?.contains(", 0 older ones") {
            // An interrupt, two switches of tasks, a frame in and a frame out each.
            machine.client("ping", &["-f", "-c", "2000", "-w", "20", machine.board.address])?;
            rounds += 1;
            ensure!(rounds < 10, "the ring does not wrap");
        }
        let bytes = fetch(machine, "/trace")?;
        let json: Value = serde_json::from_slice(&bytes).context("/trace")?;
        ask(machine, "trace", "trace off")?;
        let spans = look_at(&json)?;
        understood(&bytes, spans)?;
        said = format!("{spans} spans");
        // Begun anew, and looked at twice: the same file.
        ensure!(serde_json::from_slice::<Value>(&fetch(machine, "/trace")?)? == json, "another trace");
    }
    Ok(said)
}

/// Spans of a trace; each lies in a track with a name.
fn look_at(json: &Value) -> Result<usize> {
    let events = json["traceEvents"].as_array().context("no traceEvents")?;
    let mut tracks = BTreeMap::new();
    let mut spans: BTreeMap<(String, String), usize> = BTreeMap::new();
    for event in events {
        let track = event["tid"].as_u64();
        if event["ph"] == "M" && event["name"] == "thread_name" {
            tracks.insert(track, event["args"]["name"].as_str().unwrap_or_default().to_owned());
        }
        if event["ph"] == "X" {
            let name = event["name"].as_str().context("a name")?;
            let (ts, dur) = (event["ts"].as_f64().context("ts")?, event["dur"].as_f64().context("dur")?);
            ensure!(ts > 0.0 && (0.0..5e6).contains(&dur), "{event}");
            let track = tracks.get(&track).with_context(|| format!("no name for the track of {event}"))?;
            *spans.entry((track.clone(), name.to_owned())).or_default() += 1;
            ensure!(track != "driver" || event["args"]["frames"].as_u64() > Some(0), "{event}");
        }
    }
    for (track, name) in
        [("network", "runs"), ("interrupts", "ethernet"), ("driver", "receive"), ("driver", "send")]
    {
        let key = (track.to_owned(), name.to_owned());
        ensure!(spans.contains_key(&key), "no {name} in {track}, only {spans:?}");
    }
    Ok(spans.values().sum())
}

/// Perfetto's own trace processor understands it, and finds as many spans.
fn understood(trace: &[u8], spans: usize) -> Result<()> {
    let file = Scratch::new("trace.json", trace)?;
    let found = lab::query(Path::new(file.path()), "select count(*) from slice where dur >= 0")?;
    ensure!(found == [[Value::from(spans)]], "{found:?} spans for the trace processor, {spans} in the file");
    Ok(())
}

/// Time in the driver is measured while it is switched on.
pub fn profile(machine: &mut Machine<'_>) -> Result<String> {
    let calls = |machine: &Machine<'_>| -> Result<(u64, u64, Value)> {
        let driver = stats(machine)?["driver"].clone();
        let number = |name: &str| driver[name].as_u64().with_context(|| format!("driver: {driver}"));
        Ok((number("receive_calls")?, number("send_calls")?, driver.clone()))
    };
    let (received, sent, _) = calls(machine)?;
    ensure!((received, sent) == (0, 0), "{received} and {sent} calls were timed before it was on");
    ask(machine, "profile on", "profile on")?;
    fetch(machine, "/memory/8M")?;
    ask(machine, "profile off", "profile off")?;
    let (received, sent, driver) = calls(machine)?;
    ensure!(received > 5 && sent > 5, "{driver}");
    ensure!(driver["receive_us"].as_u64() > Some(0) && driver["send_us"].as_u64() > Some(0), "{driver}");
    fetch(machine, "/memory/1M")?;
    let (later, _, _) = calls(machine)?;
    ensure!(later == received, "calls are timed though it is off");
    let mean = |us: &str, calls: u64| driver[us].as_u64().unwrap_or_default() as f64 / calls as f64;
    Ok(format!("{:.1} us a receive, {:.1} a send", mean("receive_us", received), mean("send_us", sent)))
}

/// What went over the cable is in the capture, as another program reads it.
pub fn capture(machine: &mut Machine<'_>) -> Result<String> {
    ask(machine, "capture on 0", "capture on: 0 given, a number of bytes from 1 on expected")?;
    ask(machine, "capture on", "capture on, ")?;
    let page =
        std::fs::read_to_string(Path::new("boards").join(machine.board.folder).join("files/index.html"))?;
    fetch(machine, "/")?;
    let read = |machine: &Machine<'_>, options: &[&str]| -> Result<String> {
        let file = Scratch::new("capture.pcapng", &fetch(machine, "/capture.pcapng")?)?;
        let args = [&["-n", "-r", file.path()], options].concat();
        Ok(String::from_utf8_lossy(&machine.client("tcpdump", &args)?).into_owned())
    };
    let text = read(machine, &["-A"])?;
    let first = page.lines().find(|line| line.len() > 8).context("a page of nothing")?;
    for expected in ["GET / HTTP/1.1", "HTTP/1.1 200 OK", first] {
        ensure!(text.contains(expected), "no {expected:?} in {text}");
    }
    // Each frame is in it once, both ways.
    let (to, from) =
        (format!("> {}.80: Flags [S]", machine.board.address), format!("{}.80 > ", machine.board.address));
    let brief = read(machine, &[])?;
    let count = |part: &str| brief.lines().filter(|line| line.contains(part)).count();
    let first = brief.lines().position(|line| line.contains(&to)).context("no SYN")?;
    ensure!(count(&to) >= 1 && count("Flags [S.]") == count(&to), "{brief}");
    ensure!(brief.lines().skip(first).any(|line| line.contains(&from)), "{brief}");
    // Much more than there is room for, and cut: the newest are whole frames of the file.
    ask(machine, "capture on 96", "capture on, ")?;
    fetch(machine, &format!("/memory/{LEN}"))?;
    ask(machine, "capture off", "capture off")?;
    let frames = read(machine, &[])?.lines().count();
    ensure!(frames > 10, "{frames} frames of {LEN} bytes");
    ensure!(fetch(machine, &format!("/memory/{LEN}"))? == pattern(LEN), "another content");
    Ok(format!("{frames} frames"))
}
