//! What `serve` prints when it is ready: what is served, where, and a line to paste for each protocol.

use super::services::Ports;
use crate::output;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// What does not change while serving.
#[derive(Clone, Debug)]
pub struct Banner {
    /// The directory; `None` for the demo.
    pub dir: Option<PathBuf>,
    /// One line that describes the device.
    pub device: String,
    /// Ports of the servers.
    pub ports: Ports,
    /// Whether FTP users may change files.
    pub writable: bool,
    /// Whether HTTP has memory files.
    pub memory_files: bool,
    /// The user whose rights the process has, where it gave up those of root.
    pub user: Option<String>,
}

impl Banner {
    /// Says that the servers are ready, on these addresses or, if there are none yet, on those that the network gives.
    pub fn print_ready(&self, addresses: &[IpAddr]) {
        let fields = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "directory": self.dir,
            "device": self.device,
            "user": self.user,
            "addresses": addresses,
            "urls": addresses.first().map(|ip| self.urls(*ip)),
            "writable": self.writable,
        });
        output::event("ready", self.text(addresses).trim_end(), fields);
    }

    /// Says that clients may use this address from now on.
    pub fn print_address(&self, ip: IpAddr) {
        let fields = json!({ "address": ip, "urls": self.urls(ip) });
        output::event("address", self.address_text(ip).trim_end(), fields);
    }

    /// Says that clients reach this address no longer.
    pub fn print_gone(&self, ip: IpAddr) {
        output::event("gone", Banner::gone_text(ip), json!({ "address": ip }));
    }

    /// The text, ending with the line that begins with `Ready`.
    fn text(&self, addresses: &[IpAddr]) -> String {
        let mut out = String::new();
        let what = match &self.dir {
            Some(dir) => dir.display().to_string(),
            None => "the built-in demo directory".to_owned(),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(out, "linerate {} serves {what}", env!("CARGO_PKG_VERSION"));
        let _ = writeln!(out, "  on {}", self.device);
        if let Some(user) = &self.user {
            let _ = writeln!(out, "  as user {user}");
        }
        if let Some(first) = addresses.first() {
            let names: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
            let _ = writeln!(out, "  at {}", names.join(" and "));
            let _ = write!(out, "\n{}\n", self.lines(*first));
        } else {
            let _ = writeln!(out, "  at an address that the network gives: it is printed when it comes");
        }
        let _ = writeln!(out, "Ready. Ctrl-C ends it.");
        out
    }

    fn gone_text(ip: IpAddr) -> String {
        format!("The address {ip} is gone")
    }

    fn address_text(&self, ip: IpAddr) -> String {
        format!("The network gave {ip}:\n{}", self.lines(ip))
    }

    /// One line to paste for each protocol that is on.
    fn lines(&self, ip: IpAddr) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        if let Some(port) = self.ports.http {
            let _ = writeln!(out, "  HTTP    curl http://{}/", authority(ip, port, 80));
        }
        if let Some(port) = self.ports.ftp {
            let access = if self.writable {
                ""
            } else {
                "        (read-only; --ftp-user and --writable allow uploads)"
            };
            let _ = writeln!(out, "  FTP     curl ftp://{}/{access}", authority(ip, port, 21));
        }
        if let Some(port) = self.ports.iperf3 {
            let option = if port == 5201 { String::new() } else { format!(" -p {port}") };
            let _ = writeln!(out, "  iperf3  iperf3 -c {ip}{option}        (and with -R)");
        }
        if let Some(port) = self.ports.http.filter(|_| self.memory_files) {
            let authority = authority(ip, port, 80);
            let _ = writeln!(out, "  no disk curl -o /dev/null http://{authority}/memory/1G");
        }
        out
    }

    fn urls(&self, ip: IpAddr) -> Value {
        json!({
            "http": self.ports.http.map(|port| format!("http://{}/", authority(ip, port, 80))),
            "ftp": self.ports.ftp.map(|port| format!("ftp://{}/", authority(ip, port, 21))),
            "iperf3": self.ports.iperf3.map(|port| SocketAddr::new(ip, port).to_string()),
        })
    }
}

/// Which addresses were told.
#[derive(Clone, Default, Debug)]
pub struct Announcements {
    told: Vec<IpAddr>,
    /// Those that were usable when it was looked last.
    usable: Vec<IpAddr>,
}

/// What is to be told of addresses.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct News {
    /// They can be used from now on.
    pub new: Vec<IpAddr>,
    /// They could be, and cannot any more.
    pub gone: Vec<IpAddr>,
}

impl Announcements {
    /// These were told already.
    pub fn new(told: &[IpAddr]) -> Self {
        Announcements { told: told.to_vec(), usable: Vec::new() }
    }

    /// Notes which addresses are usable now; returns what is to be told. Link-local ones are not: a URL with one
    /// needs the client's interface.
    pub fn update(&mut self, usable: Vec<IpAddr>) -> News {
        if usable == self.usable {
            return News::default();
        }
        let is_wide = |ip: &IpAddr| !matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
        let beyond = |these: &[IpAddr], known: &[IpAddr]| -> Vec<IpAddr> {
            these.iter().copied().filter(|ip| is_wide(ip) && !known.contains(ip)).collect()
        };
        let news = News { new: beyond(&usable, &self.told), gone: beyond(&self.usable, &usable) };
        self.told.clone_from(&usable);
        self.usable = usable;
        news
    }
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

    fn banner() -> Banner {
        Banner {
            dir: None,
            device: "the host's sockets".to_owned(),
            ports: Ports { http: Some(8080), ftp: Some(21), iperf3: None, kernel: false },
            writable: true,
            memory_files: true,
            user: Some("nobody".to_owned()),
        }
    }

    #[test]
    fn one_line_to_paste_for_each_protocol_that_is_on() {
        let text = banner().text(&["127.0.0.1".parse().unwrap()]);
        assert!(text.contains("curl http://127.0.0.1:8080/\n"), "{text}");
        assert!(text.contains("curl ftp://127.0.0.1/\n"), "{text}");
        assert!(text.contains("as user nobody\n"), "{text}");
        assert!(!text.contains("iperf3"), "{text}");
        assert!(text.contains("/memory/1G"), "{text}");
        let without = Banner { memory_files: false, ..banner() }.text(&["127.0.0.1".parse().unwrap()]);
        assert!(!without.contains("memory"), "{without}");
        assert!(text.lines().any(|line| line.starts_with("Ready")));
        let urls = banner().urls("fd00::4".parse().unwrap());
        assert_eq!(
            (&urls["http"], &urls["ftp"]),
            (&"http://[fd00::4]:8080/".into(), &"ftp://[fd00::4]/".into())
        );
        assert!(urls["iperf3"].is_null());
    }

    #[test]
    fn an_address_that_comes_later_is_told_once() {
        let ips =
            |text: &str| -> Vec<IpAddr> { text.split_whitespace().map(|ip| ip.parse().unwrap()).collect() };
        let mut told = Announcements::new(&ips("10.0.0.4"));
        let mut check = |usable, new, gone| {
            assert_eq!(told.update(ips(usable)), News { new: ips(new), gone: ips(gone) }, "{usable}");
        };
        check("10.0.0.4 fe80::1", "", "");
        check("10.0.0.4 fe80::1 192.168.1.50", "192.168.1.50", "");
        check("10.0.0.4 192.168.1.50", "", "");
        // Gone, and back again.
        check("10.0.0.4", "", "192.168.1.50");
        check("10.0.0.4", "", "");
        check("10.0.0.4 192.168.1.50", "192.168.1.50", "");
        check("10.0.0.4 192.168.1.51", "192.168.1.51", "192.168.1.50");
        // One that was told at the start and could not be used yet is not gone.
        let mut told = Announcements::new(&ips("10.0.0.4"));
        assert_eq!(told.update(ips("")), News::default());
        let text = banner().address_text("192.168.1.50".parse().unwrap());
        assert!(text.contains("curl http://192.168.1.50:8080/\n"), "{text}");
    }
}
