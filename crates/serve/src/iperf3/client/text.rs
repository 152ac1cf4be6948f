//! A client's report as text, in the form of the original.

use super::super::params::{Params, Protocol};
use super::error::ClientError;
use super::report::{Amount, Connected, Interval, Report, StreamInterval, sum};
use alloc::format;
use alloc::string::String;
use core::fmt::Write as _;

/// What separates parts of the report.
const RULE: &str = "- - - - - - - - - - - - - - - - - - - - - - - - -";

/// Lines of a report, each with the title in front.
struct Lines<'a> {
    title: Option<&'a str>,
    text: String,
}

impl Lines<'_> {
    fn put(&mut self, line: &str) {
        if let Some(title) = self.title {
            self.text.push_str(title);
            self.text.push_str(":  ");
        }
        self.text.push_str(line);
        self.text.push('\n');
    }
}

fn lines(title: Option<&str>) -> Lines<'_> {
    Lines { title, text: String::new() }
}

/// The head: what is connected to what, and the columns.
pub fn head(params: &Params, connected: &[Connected], title: Option<&str>) -> String {
    let mut out = lines(title);
    if params.reverse {
        let server = connected.first().map(|one| one.remote.ip());
        let server = server.map_or_else(String::new, |ip| format!("{ip} "));
        out.put(&format!("Reverse mode, remote host {server}is sending"));
    }
    for one in connected {
        out.put(&format!(
            "[{:3}] local {} port {} connected to {} port {}",
            one.id,
            one.local.ip(),
            one.local.port(),
            one.remote.ip(),
            one.remote.port()
        ));
    }
    let columns = match params.protocol {
        Protocol::Tcp if params.reverse => "",
        Protocol::Tcp => "         Retr  Cwnd",
        Protocol::Udp if params.reverse || params.bidirectional => "         Jitter    Lost/Total Datagrams",
        Protocol::Udp => "         Total Datagrams",
    };
    out.put(&format!("{} Interval           Transfer     Bitrate{columns}", head_of(params)));
    out.text
}

fn head_of(params: &Params) -> &'static str {
    if params.bidirectional { "[ ID][Role]" } else { "[ ID]" }
}

fn role(params: &Params, sends: bool) -> &'static str {
    match (params.bidirectional, sends) {
        (false, _) => "",
        (true, true) => "[TX-C]",
        (true, false) => "[RX-C]",
    }
}

/// One interval: a line for each stream, and one for their sum where there are several.
pub fn interval(params: &Params, interval: &Interval, title: Option<&str>) -> String {
    let mut out = lines(title);
    let remark = if interval.omitted { "(omitted)" } else { "" };
    let span = (interval.start_s, interval.end_s);
    if params.parallel > 1 && interval.start_s > 0.0 {
        out.put(RULE);
    }
    let put = |out: &mut Lines<'_>, id: &str, one: &StreamInterval| {
        let front = format!("[{id}]{}", role(params, one.sends));
        let columns = moving_columns(params, one);
        out.put(&format!("{}{columns}{remark}", front_of(&front, span, one.amount.bytes)));
    };
    for one in &interval.streams {
        put(&mut out, &format!("{:3}", one.id), one);
    }
    for sends in [true, false] {
        let of = || interval.streams.iter().filter(|one| one.sends == sends);
        if of().count() > 1 {
            let amount = sum(of().map(|one| one.amount));
            let all = StreamInterval {
                id: 0,
                sends,
                amount,
                congestion_window: None,
                send_window: None,
                rtt: None,
                rtt_var: None,
                path_mtu: None,
            };
            put(&mut out, "SUM", &all);
        }
    }
    out.text
}

/// Identification, time, amount and rate.
fn front_of(front: &str, (start, end): (f64, f64), bytes: u64) -> String {
    let seconds = end - start;
    let bits = if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
    let size = scaled(bytes as f64, 1024.0, ["Bytes", "KBytes", "MBytes", "GBytes", "TBytes"]);
    let rate = scaled(bits, 1000.0, ["bits/sec", "Kbits/sec", "Mbits/sec", "Gbits/sec", "Tbits/sec"]);
    format!("{front} {start:6.2}-{end:<6.2} sec  {size}  {rate}")
}

fn moving_columns(params: &Params, one: &StreamInterval) -> String {
    match (params.protocol, one.sends) {
        (Protocol::Tcp, true) => {
            let mut text = String::new();
            if let Some(again) = one.amount.retransmits {
                // Writing to a string cannot fail.
                let _ = write!(text, "  {again:3}");
            }
            match one.congestion_window {
                Some(window) => {
                    let units = ["Bytes", "KBytes", "MBytes", "GBytes", "TBytes"];
                    let window = scaled(f64::from(window), 1024.0, units);
                    let _ = write!(text, "   {window}       ");
                }
                None => text.push_str("             "),
            }
            text
        }
        (Protocol::Tcp, false) => "                  ".into(),
        (Protocol::Udp, true) => {
            let space = if params.bidirectional { "           " } else { "" };
            format!("  {space}{}  ", one.amount.packets)
        }
        (Protocol::Udp, false) => format!("{}  ", datagrams(&one.amount)),
    }
}

fn datagrams(amount: &Amount) -> String {
    let share = if amount.packets > 0 { amount.lost as f64 / amount.packets as f64 * 100.0 } else { 0.0 };
    let share = match share {
        share if share == 0.0 || share >= 9.95 => format!("{share:.0}"),
        share if share >= 0.0995 => format!("{share:.1}"),
        share => format!("{share:.2}"),
    };
    format!("  {:5.3} ms  {}/{} ({share}%)", amount.jitter_s * 1e3, amount.lost, amount.packets)
}

/// The end: what both sides counted.
pub fn end(report: &Report) -> String {
    let params = &report.params;
    let mut out = lines(report.title.as_deref());
    out.put(RULE);
    let columns = match params.protocol {
        Protocol::Tcp => "         Retr",
        Protocol::Udp => "         Jitter    Lost/Total Datagrams",
    };
    out.put(&format!("{} Interval           Transfer     Bitrate{columns}", head_of(params)));
    let mut put = |id: &str, sends: bool, amount: &Amount, seconds: f64, is_sender: bool| {
        let front = front_of(&format!("[{id}]{}", role(params, sends)), (0.0, seconds), amount.bytes);
        let (columns, name) = match (params.protocol, is_sender) {
            (Protocol::Tcp, true) => match amount.retransmits {
                Some(again) => (format!("  {again:3}             "), "sender"),
                None => ("                  ".into(), "sender"),
            },
            (Protocol::Tcp, false) => ("                  ".into(), "receiver"),
            (Protocol::Udp, true) => {
                (format!("{}  ", datagrams(&Amount { jitter_s: 0.0, lost: 0, ..*amount })), "sender")
            }
            (Protocol::Udp, false) => (format!("{}  ", datagrams(amount)), "receiver"),
        };
        out.put(&format!("{front}{columns}{name}"));
    };
    // Without the server's word there is only our own.
    let shown = |sends: bool, is_sender: bool| report.has_server || sends == is_sender;
    for one in &report.streams {
        let id = format!("{:3}", one.id);
        if shown(one.sends, true) {
            put(&id, one.sends, &one.sent, one.sent_s, true);
        }
        if shown(one.sends, false) {
            put(&id, one.sends, &one.received, one.received_s, false);
        }
    }
    if params.parallel > 1 {
        for sends in [true, false].into_iter().filter(|s| report.streams.iter().any(|one| one.sends == *s)) {
            for is_sender in [true, false].into_iter().filter(|is_sender| shown(sends, *is_sender)) {
                let amount = report.sum(sends, is_sender);
                put("SUM", sends, &amount, seconds_of(report, sends, is_sender), is_sender);
            }
        }
    }
    if let Some(text) = &report.server_output {
        out.put("");
        out.put("Server output:");
        text.lines().for_each(|line| out.put(line));
    }
    out.text
}

/// The longest time of the streams of a direction, in seconds.
pub(super) fn seconds_of(report: &Report, sends: bool, by_sender: bool) -> f64 {
    let of = report.streams.iter().filter(|one| one.sends == sends);
    of.map(|one| if by_sender { one.sent_s } else { one.received_s }).fold(0.0, f64::max)
}

/// The last line.
pub fn closing(outcome: Result<(), ClientError>, title: Option<&str>) -> String {
    let mut out = lines(title);
    out.put("");
    match outcome {
        Ok(()) => out.put("iperf Done."),
        Err(error) => out.put(&format!("iperf3: {error}")),
    }
    out.text
}

/// Three digits and the unit that suits them.
fn scaled(mut value: f64, step: f64, units: [&'static str; 5]) -> String {
    let mut at = 0;
    while value >= step && at + 1 < units.len() {
        value /= step;
        at += 1;
    }
    let unit = units[at];
    match value {
        value if value < 9.995 => format!("{value:4.2} {unit}"),
        value if value < 99.95 => format!("{value:4.1} {unit}"),
        value => format!("{value:4.0} {unit}"),
    }
}
