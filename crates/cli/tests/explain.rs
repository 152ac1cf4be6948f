//! `linerate explain` as somebody runs it who knows only its page of the manual.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_linerate");

/// Explains what is given on standard input, in no more than so many KiB of address space.
fn explain(capture: &[u8], args: &str, kib: Option<u64>) -> Output {
    let limit = kib.map_or(String::new(), |kib| format!("ulimit -v {kib}; "));
    let line = format!("{limit}exec {PROGRAM} explain - {args}");
    let mut command = Command::new("sh");
    command.args(["-c", &line]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let capture = capture.to_vec();
    let writer = std::thread::spawn(move || {
        // Who has no memory left does not read on; that shows in what it says.
        let _unread = input.write_all(&capture);
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

struct Capture(Vec<u8>);

impl Capture {
    fn new() -> Capture {
        let mut head = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
        head.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 101, 0, 0, 0]);
        Capture(head)
    }

    /// A segment of client `number`, from it or to it.
    fn segment(&mut self, at_us: u64, number: u32, from: bool, [seq, ack]: [u32; 2], flags: u8, len: u16) {
        let client = (0x0a00_0000 + number).to_be_bytes();
        let server = [192, 0, 2, 1];
        let (source, destination) = if from { (client, server) } else { (server, client) };
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 6, 0, 0];
        packet[2..4].copy_from_slice(&(40 + len).to_be_bytes());
        packet.extend(source.iter().chain(&destination));
        let ports: [u16; 2] = if from { [40_000, 80] } else { [80, 40_000] };
        ports.iter().for_each(|port| packet.extend(port.to_be_bytes()));
        packet.extend(seq.to_be_bytes());
        packet.extend(ack.to_be_bytes());
        packet.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        packet.resize(40 + usize::from(len), b'x');
        let len = (packet.len() as u32).to_le_bytes();
        for part in [
            &((at_us / 1_000_000) as u32).to_le_bytes(),
            &((at_us % 1_000_000) as u32).to_le_bytes(),
            &len,
            &len,
        ] {
            self.0.extend(part);
        }
        self.0.extend(packet);
    }
}

#[test]
fn twenty_thousand_connections_of_two_seconds_fit() {
    const CONNECTIONS: u32 = 20_000;
    let mut capture = Capture::new();
    // Step by step, all at the same time.
    for (at_us, from, numbers, flags, len) in [
        (0, true, [7, 0], 2, 0),
        (100_000, false, [3, 8], 18, 0),
        (100_500, true, [8, 4], 24, 100),
        (400_000, false, [4, 108], 24, 1_000),
        (1_400_000, true, [108, 1_004], 24, 100),
        (2_000_000, false, [1_004, 208], 25, 10),
    ] {
        for number in 0..CONNECTIONS {
            capture.segment(5_000_000 + at_us + u64::from(number), number, from, numbers, flags, len);
        }
    }
    let output = explain(&capture.0, "", Some(600_000));
    let (text, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}");
    assert!(text.contains("TCP segments: 120,000, connections: 20,000"), "{text}");
}

#[test]
fn json_is_all_that_is_printed() {
    let mut capture = Capture::new();
    capture.segment(0, 1, true, [7, 0], 2, 0);
    let output = explain(&capture.0, "--json", None);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["analysis"]["connections"].as_array().map(Vec::len), Some(1));
    assert_eq!(value["capture"], "standard input");
    assert_eq!(value["provenance"]["command"], "linerate explain - --json");
    let text = explain(&capture.0, "", None).stdout;
    let text = String::from_utf8_lossy(&text);
    assert!(text.ends_with("; linerate explain -\n"), "{text}");
    let row = text.lines().find(|line| line.starts_with(" 1 ")).unwrap_or_default();
    assert!(!row.contains(" 0 us") && !row.contains("0 B/s"), "a time and a rate of nothing:\n{text}");
}

#[test]
fn a_report_is_a_page() {
    let mut capture = Capture::new();
    capture.segment(0, 1, true, [7, 0], 2, 0);
    capture.segment(100, 1, false, [3, 8], 18, 0);
    capture.segment(200, 1, true, [8, 4], 24, 100);
    capture.segment(300, 1, false, [4, 108], 16, 0);
    let page = std::env::temp_dir().join(format!("linerate-explain-page-{}.html", std::process::id()));
    let output = explain(&capture.0, &format!("--html {}", page.display()), None);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let html = std::fs::read_to_string(&page).unwrap();
    for part in ["<!doctype html>", "10.0.0.1:40000", "192.0.2.1:80", "linerate explain - --html"] {
        assert!(html.to_lowercase().contains(part), "{part:?} in\n{html}");
    }
    std::fs::remove_file(&page).unwrap();
}

#[test]
fn a_report_that_cannot_be_written_is_told_before_anything_is_read() {
    let output = explain(b"no capture", "--html /nonexistent/report.html", None);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot write /nonexistent/report.html"), "{said}");
}
