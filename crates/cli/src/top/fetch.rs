//! Asks a server for its status.

use crate::status::address::StatusAddress;
use crate::status::report::Report;
use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Longest that a server may take.
const PATIENCE: Duration = Duration::from_secs(4);
/// Longest answer in bytes: a thousand connections take about one megabyte.
const MAX_ANSWER: usize = 16 << 20;

/// Why there is no report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FetchError {
    /// Nobody can be reached there.
    NoConnection {
        /// Where.
        address: StatusAddress,
        /// What the system said.
        why: String,
    },
    /// The connection broke, or took too long.
    Broken {
        /// With whom.
        address: StatusAddress,
        /// What the system said.
        why: String,
    },
    /// The server refuses.
    Refused {
        /// Which.
        address: StatusAddress,
        /// The status and what it said.
        why: String,
    },
    /// What answers is not the status of a server.
    Strange {
        /// What answers.
        address: StatusAddress,
        /// What was wrong.
        why: String,
    },
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FetchError::NoConnection { address, why } => write!(
                f,
                "nothing answers on {address} ({why}); a server tells its status there when it is started with \
                 'linerate serve --status {}'",
                if address.0.ip().is_loopback() { address.0.port().to_string() } else { address.to_string() }
            ),
            FetchError::Broken { address, why } => write!(f, "no answer from {address}: {why}"),
            FetchError::Refused { address, why } => write!(f, "{address} answered: {why}"),
            FetchError::Strange { address, why } => {
                write!(f, "what answers on {address} is not the status of linerate: {why}")
            }
        }
    }
}

impl std::error::Error for FetchError {}

/// The report, with at most `limit` connections.
pub fn fetch(address: StatusAddress, limit: u16) -> Result<Report, FetchError> {
    let until = Instant::now() + PATIENCE;
    let mut stream = TcpStream::connect_timeout(&address.0, PATIENCE)
        .map_err(|error| FetchError::NoConnection { address, why: said(&error) })?;
    let answer = exchange(&mut stream, address, limit, until)
        .map_err(|error| FetchError::Broken { address, why: said(&error) })?;
    let strange = |why: &str| FetchError::Strange { address, why: why.to_owned() };
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(|| strange("it does not speak HTTP"))?;
    let status = head.lines().next().and_then(|line| line.split_once(' '));
    let (version, status) = status.ok_or_else(|| strange("it does not speak HTTP"))?;
    if !version.starts_with("HTTP/1.") {
        return Err(strange("it does not speak HTTP"));
    }
    if !status.starts_with("200") {
        return Err(FetchError::Refused { address, why: format!("{status}: {}", body.trim_end()) });
    }
    let report: Report = serde_json::from_str(body).map_err(|error| strange(&error.to_string()))?;
    if report.schema == 0 {
        return Err(strange("its JSON has no schema"));
    }
    Ok(report)
}

fn said(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => "it took too long".to_owned(),
        _ => error.to_string(),
    }
}

fn exchange(
    stream: &mut TcpStream,
    address: StatusAddress,
    limit: u16,
    until: Instant,
) -> io::Result<String> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let request =
        format!("GET /status.json?limit={limit} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    let mut buffer = [0; 16 << 10];
    loop {
        let left = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero());
        stream.set_read_timeout(Some(left.ok_or(io::ErrorKind::TimedOut)?))?;
        match stream.read(&mut buffer) {
            Ok(0) => return String::from_utf8(answer).map_err(|_| io::ErrorKind::InvalidData.into()),
            Ok(len) if answer.len() + len > MAX_ANSWER => return Err(io::ErrorKind::FileTooLarge.into()),
            Ok(len) => answer.extend_from_slice(&buffer[..len]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    fn check(answer: &'static str, expected: Result<u32, &[&str]>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = StatusAddress(listener.local_addr().unwrap());
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 1024];
            let len = stream.read(&mut request).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8_lossy(&request[..len]).into_owned()
        });
        let found = fetch(address, 7);
        let request = server.join().unwrap();
        assert!(request.starts_with("GET /status.json?limit=7 HTTP/1.1\r\n"), "{request}");
        match (found, expected) {
            (Ok(report), Ok(schema)) => assert_eq!(report.schema, schema),
            (Err(error), Err(parts)) => {
                let text = error.to_string();
                for part in parts {
                    assert!(text.contains(part) && text.contains(&address.to_string()), "{text}");
                }
            }
            (found, _) => panic!("{answer:?}: {found:?}"),
        }
    }

    #[test]
    fn what_answers_is_looked_at() {
        check("HTTP/1.1 200 OK\r\n\r\n{\"schema\":1}", Ok(1));
        check("HTTP/1.1 503 Service Unavailable\r\n\r\nlater\n", Err(&["503 Service Unavailable: later"]));
        check("HTTP/1.1 200 OK\r\n\r\n<html>", Err(&["not the status"]));
        check("HTTP/1.1 200 OK\r\n\r\n{}", Err(&["schema"]));
        check("220 FTP server\r\n", Err(&["not the status", "HTTP"]));
        check("", Err(&["HTTP"]));
    }

    #[test]
    fn nobody_there_is_said_with_the_way_to_change_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = StatusAddress(listener.local_addr().unwrap());
        drop(listener);
        let text = fetch(address, 1).unwrap_err().to_string();
        assert!(text.contains("refused") && text.contains("serve --status"), "{text}");
    }
}
