//! One request alone: before the ramp, whether the server answers at all, and what; within it, whether it still does.

use crate::load::{Response, Target, request};
use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// What a server answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Probe {
    /// Where it answered.
    pub address: SocketAddr,
    /// The status.
    pub status: u16,
    /// Bytes of the body.
    pub body_len: u64,
    /// Whether it keeps the connection for another request, if it was not asked to close it.
    pub keeps: bool,
}

/// Why a ramp cannot begin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProbeError {
    url: String,
    why: String,
}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.url.as_str() {
            "" => f.write_str(&self.why),
            url => write!(f, "{url}: {}", self.why),
        }
    }
}

impl std::error::Error for ProbeError {}

/// Asks once at each address of the target that can be reached from `sources`, any without, until one answers with the status that is
/// expected. `again`: it has to keep the connection for another request.
pub fn probe(
    target: &Target,
    status: u16,
    again: bool,
    timeout: Duration,
    sources: &[IpAddr],
) -> Result<Probe, ProbeError> {
    let failed = |why: String| ProbeError { url: target.to_string(), why };
    // Its message has the URL already.
    let addresses =
        target.resolve().map_err(|error| ProbeError { url: String::new(), why: error.to_string() })?;
    let mut last = "has no address of the family of those to come from".to_owned();
    let fits = |address: &SocketAddr| sources.iter().all(|source| source.is_ipv4() == address.is_ipv4());
    for address in addresses.into_iter().filter(fits) {
        match asked(&target.path, &target.authority(), address, !again, timeout) {
            Ok(probe) if probe.status == status && again && !probe.keeps => {
                return Err(failed(
                    "closes the connection after one answer, as by HTTP/1.0; --requests 1 asks it so"
                        .to_owned(),
                ));
            }
            Ok(probe) if probe.status == status => return Ok(probe),
            Ok(probe) => {
                let hint = format!("--expect {} if that is meant", probe.status);
                return Err(failed(format!(
                    "answers with status {}, {status} was expected; {hint}",
                    probe.status
                )));
            }
            Err(why) => last = format!("{address}: {why}"),
        }
    }
    Err(failed(last))
}

/// Asks once, for any answer.
pub fn ask(path: &str, host: &str, address: SocketAddr, timeout: Duration) -> Result<Probe, String> {
    asked(path, host, address, true, timeout)
}

fn asked(
    path: &str,
    host: &str,
    address: SocketAddr,
    is_last: bool,
    timeout: Duration,
) -> Result<Probe, String> {
    let until = Instant::now() + timeout;
    let mut stream =
        TcpStream::connect_timeout(&address, timeout).map_err(|why| format!("cannot connect: {why}"))?;
    let request = request(path, host, is_last);
    stream.write_all(request.as_bytes()).map_err(|why| format!("cannot send: {why}"))?;
    let (mut response, mut bytes) = (Response::default(), vec![0; 64 << 10]);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let no_answer = || format!("no answer within {} s", timeout.as_secs_f64());
        if left.is_zero() {
            return Err(no_answer());
        }
        stream.set_read_timeout(Some(left)).map_err(|why| why.to_string())?;
        let is_whole = match stream.read(&mut bytes) {
            Ok(0) if response.end() => true,
            Ok(0) if response.is_empty() => return Err("closes the connection without an answer".to_owned()),
            Ok(0) => return Err("closes the connection within its answer".to_owned()),
            Ok(len) => {
                let taken = response.take(&bytes[..len]);
                taken.map_err(|why| format!("answers with what is no HTTP/1.1: {}", why.0))?.is_some()
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => false,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Err(no_answer());
            }
            Err(error) => return Err(format!("cannot read the answer: {error}")),
        };
        if is_whole {
            return Ok(Probe {
                address,
                status: response.status(),
                body_len: response.body_len(),
                keeps: response.keeps(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_server_that_is_not_fit_is_told_so() {
        let check_again = |again: bool, answer: Option<&'static str>, expected: Result<u64, &str>| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let server = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                match answer {
                    Some(answer) => {
                        let mut request = [0; 1_024];
                        let _ = stream.read(&mut request);
                        let _ = stream.write_all(answer.as_bytes());
                    }
                    None => std::thread::sleep(Duration::from_millis(300)),
                }
            });
            let target = Target::parse(&format!("http://{address}/x")).unwrap();
            let found = probe(&target, 200, again, Duration::from_millis(200), &[]);
            server.join().unwrap();
            match expected {
                Ok(body) => {
                    let found = found.unwrap();
                    assert_eq!((found.address, found.status), (address, 200), "{answer:?}");
                    assert_eq!(found.body_len, body, "{answer:?}");
                }
                Err(part) => {
                    let error = found.unwrap_err().to_string();
                    assert!(error.contains(part) && error.contains("/x"), "{answer:?}: {error}");
                }
            }
        };
        let check = |answer, expected| check_again(false, answer, expected);
        check_again(true, Some("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab"), Ok(2));
        for closes in ["1.0 200 OK\r\n", "1.1 200 OK\r\nConnection: close\r\n"] {
            let answer: &str = format!("HTTP/{closes}Content-Length: 2\r\n\r\nab").leak();
            check_again(false, Some(answer), Ok(2));
            check_again(true, Some(answer), Err("--requests 1"));
        }
        check(Some("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab"), Ok(2));
        check(Some("HTTP/1.0 200 OK\r\n\r\nabc"), Ok(3));
        check(Some("HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nab"), Err("--expect 404"));
        check(Some("SSH-2.0\r\n\r\n"), Err("no HTTP/1.1"));
        check(Some(""), Err("without an answer"));
        check(Some("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab"), Err("within its answer"));
        check(None, Err("no answer within 0.2 s"));
    }

    #[test]
    fn a_server_is_asked_where_the_sources_reach_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = Target::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1_024]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        });
        let from = |source: &str| {
            probe(&target, 200, false, Duration::from_secs(2), &[source.parse().unwrap()])
                .map_err(|error| error.to_string())
        };
        let error = from("::1").unwrap_err();
        assert!(error.contains("no address of the family"), "{error}");
        assert_eq!(from("127.0.0.2").map(|found| found.status), Ok(200));
        server.join().unwrap();
    }

    #[test]
    fn nobody_there() {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let target = Target::parse(&format!("http://{address}")).unwrap();
        let error = probe(&target, 200, false, Duration::from_secs(1), &[]).unwrap_err().to_string();
        assert!(error.contains("cannot connect"), "{error}");
        let target = Target::parse("http://no-such-name.invalid/").unwrap();
        let error = probe(&target, 200, false, Duration::from_secs(1), &[]).unwrap_err().to_string();
        assert_eq!(error.matches("http://no-such-name.invalid/").count(), 1, "{error}");
    }
}
