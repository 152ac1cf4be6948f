//! What `serve` prints when it is ready: what is served, where, and a line to paste for each protocol.

use super::services::Ports;
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

/// The text, ending with the line that begins with `Ready`.
pub fn text(dir: Option<&Path>, device: &str, addresses: &[IpAddr], ports: Ports, writable: bool) -> String {
    let mut out = String::new();
    let what = match dir {
        Some(dir) => dir.display().to_string(),
        None => "the built-in demo directory".to_owned(),
    };
    // Writing to a string cannot fail.
    let _ = writeln!(out, "linerate {} serves {what}", env!("CARGO_PKG_VERSION"));
    let _ = writeln!(out, "  on {device}");
    let Some(first) = addresses.first() else {
        let _ = writeln!(out, "  addresses are asked for on the network; the log tells them");
        let _ = writeln!(out, "Ready. Ctrl-C ends it.");
        return out;
    };
    let names: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
    let _ = writeln!(out, "  at {}", names.join(" and "));
    let _ = writeln!(out);
    if let Some(port) = ports.http {
        let _ = writeln!(out, "  HTTP    curl http://{}/", authority(*first, port, 80));
    }
    if let Some(port) = ports.ftp {
        let access =
            if writable { "" } else { "        (read-only; --ftp-user and --writable allow uploads)" };
        let _ = writeln!(out, "  FTP     curl ftp://{}/{access}", authority(*first, port, 21));
    }
    if let Some(port) = ports.iperf3 {
        let option = if port == 5201 { String::new() } else { format!(" -p {port}") };
        let _ = writeln!(out, "  iperf3  iperf3 -c {first}{option}        (and with -R)");
    }
    if let Some(port) = ports.http {
        let authority = authority(*first, port, 80);
        let _ = writeln!(out, "  no disk curl -o /dev/null http://{authority}/memory/1G");
    }
    let _ = writeln!(out);
    let _ = writeln!(out, "Ready. Ctrl-C ends it.");
    out
}

/// Host and port as a URL has them.
fn authority(ip: IpAddr, port: u16, default: u16) -> String {
    match (port == default, ip) {
        (false, _) => SocketAddr::new(ip, port).to_string(),
        (true, IpAddr::V4(ip)) => ip.to_string(),
        (true, IpAddr::V6(ip)) => format!("[{ip}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_to_paste_for_each_protocol_that_is_on() {
        let ports = Ports { http: Some(8080), ftp: Some(21), iperf3: None };
        let text = text(None, "the host's sockets", &["127.0.0.1".parse().unwrap()], ports, true);
        assert!(text.contains("curl http://127.0.0.1:8080/\n"), "{text}");
        assert!(text.contains("curl ftp://127.0.0.1/\n"), "{text}");
        assert!(!text.contains("iperf3"), "{text}");
        assert!(text.lines().any(|line| line.starts_with("Ready")));
    }
}
