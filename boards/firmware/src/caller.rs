//! An iperf3 client that the console starts, beside the servers.

use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString as _};
use core::cell::RefCell;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use linerate_serve::iperf3::client::{Client, Config, text};
use linerate_serve::iperf3::{Params, Protocol};
use linerate_serve::{Context, Service, StartError};
use linerate_transport::{Event, FileDone, Owner, SocketOptions};
use linerate_wire::units::Instant;

/// A line of the console's help.
pub(crate) const HELP: &str =
    "iperf3    measure to ADDRESS [-p PORT] [-R] [-u] [-b RATE] [-t SECONDS] [-P STREAMS]\n";

/// The port of iperf3 servers.
const PORT: u16 = 5201;
/// Longest that a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// A client for one test at a time; who holds another handle to it starts tests and takes their reports.
#[derive(Clone)]
pub(crate) struct Caller {
    client: Rc<RefCell<Option<Client>>>,
    owner: Owner,
    socket: SocketOptions,
    udp_buffer: usize,
}

impl Caller {
    /// A client whose sockets are `owner`'s, with these settings and so many bytes for datagrams received.
    pub fn new(owner: Owner, socket: SocketOptions, udp_buffer: usize) -> Caller {
        Caller { client: Rc::new(RefCell::new(None)), owner, socket, udp_buffer }
    }

    /// Whether a line of the console is for it.
    pub fn takes(line: &str) -> bool {
        line.split_whitespace().next() == Some("iperf3")
    }

    /// Starts the test that a line asks for; returns what to answer at once.
    pub fn begin(&self, line: &str, ctx: &mut Context<'_>) -> String {
        let mut client = self.client.borrow_mut();
        if client.is_some() {
            return "a test is under way\n".to_string();
        }
        let (server, params) = match parse(line) {
            Ok(asked) => asked,
            Err(why) => return format!("{why}; {HELP}"),
        };
        let answer = format!("Connecting to host {}, port {}\n", server.ip(), server.port());
        let config = Config {
            owner: self.owner,
            params,
            interval: Duration::ZERO,
            connect_timeout: PATIENCE,
            answer_timeout: PATIENCE,
            socket: self.socket.clone(),
            udp_buffer: self.udp_buffer,
            ..Config::new(server)
        };
        match client.insert(Client::new(config)).start(ctx) {
            Ok(()) => answer,
            Err(why) => {
                *client = None;
                format!("{answer}{why}\n")
            }
        }
    }

    /// The report of a test that has ended since.
    pub fn poll_report(&self) -> Option<String> {
        let mut client = self.client.borrow_mut();
        let outcome = client.as_ref()?.outcome()?;
        let report = client.take()?.report();
        let mut answer = String::from("\n");
        if report.duration_s > 0.0 {
            answer.push_str(&text::end(&report));
        }
        answer.push_str(&text::closing(outcome, None));
        Some(answer)
    }

    fn with(&self, act: impl FnOnce(&mut Client)) {
        if let Some(client) = self.client.borrow_mut().as_mut() {
            act(client);
            // What happens on the way is not shown.
            while client.poll_event().is_some() {}
        }
    }
}

impl Service for Caller {
    fn start(&mut self, _ctx: &mut Context<'_>) -> Result<(), StartError> {
        Ok(())
    }

    fn handle_event(&mut self, ctx: &mut Context<'_>, event: Event) {
        self.with(|client| client.handle_event(ctx, event));
    }

    fn handle_file(&mut self, _ctx: &mut Context<'_>, _done: FileDone) {}

    fn handle_timeout(&mut self, ctx: &mut Context<'_>) {
        self.with(|client| client.handle_timeout(ctx));
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.client.borrow().as_ref().and_then(Service::poll_timeout)
    }

    fn drain(&mut self, ctx: &mut Context<'_>) {
        self.with(|client| client.drain(ctx));
    }

    fn is_idle(&self) -> bool {
        self.client.borrow().as_ref().is_none_or(Service::is_idle)
    }
}

/// The server and the test of a line such as `iperf3 192.168.1.1 -R -t 5`, or what is wrong with it.
fn parse(line: &str) -> Result<(SocketAddr, Params), String> {
    let mut words = line.split_whitespace().skip(1);
    let mut address = None;
    let mut port = PORT;
    let mut params = Params::default();
    let mut has_rate = false;
    while let Some(word) = words.next() {
        match word {
            "-R" => params.reverse = true,
            "-u" => params.protocol = Protocol::Udp,
            "-p" => port = number(word, words.next(), 1, 65_535)? as u16,
            "-t" => params.time = Duration::from_secs(number(word, words.next(), 1, 3_600)?),
            "-P" => params.parallel = number(word, words.next(), 1, 8)? as usize,
            "-b" => (params.rate_bps, has_rate) = (rate(word, words.next())?, true),
            other if other.starts_with('-') => return Err(format!("no option {other}")),
            other if address.is_none() => {
                let parsed = other.parse::<IpAddr>();
                address = Some(parsed.map_err(|_| format!("{other:?}: expected an IP address"))?);
            }
            other => return Err(format!("{other:?}: one address is enough")),
        }
    }
    if params.protocol == Protocol::Udp && !has_rate {
        params.rate_bps = 1_000_000;
    }
    let address = address.ok_or("whom to? an IP address is missing")?;
    Ok((SocketAddr::new(address, port), params))
}

/// The whole number behind an option.
fn number(option: &str, word: Option<&str>, least: u64, most: u64) -> Result<u64, String> {
    let value = word.and_then(|word| word.parse().ok()).filter(|value| (least..=most).contains(value));
    value.ok_or_else(|| format!("{option} {}: expected {least} to {most}", word.unwrap_or_default()))
}

/// A rate in bits per second, as iperf3 takes it: `20M`, `500K`, `1G`.
fn rate(option: &str, word: Option<&str>) -> Result<u64, String> {
    let word = word.unwrap_or_default();
    let (digits, unit) = match word.as_bytes().last() {
        Some(b'K' | b'k') => (&word[..word.len() - 1], 1_000),
        Some(b'M' | b'm') => (&word[..word.len() - 1], 1_000_000),
        Some(b'G' | b'g') => (&word[..word.len() - 1], 1_000_000_000),
        _ => (word, 1),
    };
    let value = digits.parse::<u64>().ok().and_then(|value| value.checked_mul(unit));
    value.ok_or_else(|| format!("{option} {word}: expected a rate such as 20M"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_ask_for_tests() {
        let check = |line: &str, server: &str, expected: Params| {
            assert_eq!(parse(line), Ok((server.parse().unwrap(), expected)), "{line}");
        };
        check("iperf3 192.168.1.1", "192.168.1.1:5201", Params::default());
        check(
            "iperf3 -R -p 5301 fd00::1 -t 3 -P 4",
            "[fd00::1]:5301",
            Params { reverse: true, time: Duration::from_secs(3), parallel: 4, ..Params::default() },
        );
        let udp = Params { protocol: Protocol::Udp, rate_bps: 1_000_000, ..Params::default() };
        check("iperf3 10.0.0.1 -u", "10.0.0.1:5201", udp.clone());
        check("iperf3 -u -b 20M 10.0.0.1", "10.0.0.1:5201", Params { rate_bps: 20_000_000, ..udp });
    }

    #[test]
    fn mistakes_are_named() {
        let check = |line: &str, expected: &str| {
            let why = parse(line).unwrap_err();
            assert!(why.contains(expected), "{line}: {why}");
        };
        check("iperf3", "an IP address is missing");
        check("iperf3 example.org", "\"example.org\": expected an IP address");
        check("iperf3 10.0.0.1 10.0.0.2", "one address is enough");
        check("iperf3 10.0.0.1 -x", "no option -x");
        check("iperf3 10.0.0.1 -t", "-t : expected 1 to 3600");
        check("iperf3 10.0.0.1 -t 0", "-t 0: expected 1 to 3600");
        check("iperf3 10.0.0.1 -P 9", "-P 9: expected 1 to 8");
        check("iperf3 10.0.0.1 -p 70000", "-p 70000: expected 1 to 65535");
        check("iperf3 10.0.0.1 -b 20X", "-b 20X: expected a rate");
        check("iperf3 10.0.0.1 -b 99999999999999G", "expected a rate");
    }

    #[test]
    fn other_commands_are_not_its() {
        assert!(Caller::takes(" iperf3 10.0.0.1") && Caller::takes("iperf3"));
        assert!(!Caller::takes("iperf") && !Caller::takes("iperf33 10.0.0.1") && !Caller::takes(""));
    }
}
