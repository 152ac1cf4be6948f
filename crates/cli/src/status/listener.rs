//! The HTTP side of the status: a listener of the host's, on a thread of its own, for a handful of clients at a time.

use super::exchange::Asker;
use super::request::{self, Page, Refusal, Request};
use super::{openmetrics, page};
use linerate_linux::random;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Clients at a time; more are refused.
const MAX_CLIENTS: usize = 8;
/// Longest head of a request in bytes.
const MAX_HEAD: usize = 8 << 10;
/// A request must be here within this time, and its answer taken within this time.
const PATIENCE: Duration = Duration::from_secs(5);
/// Before accepting is tried again where descriptors ran out.
const STARVED_RETRY: Duration = Duration::from_millis(100);

/// Listens and answers from now on, until the process ends; returns the address.
pub fn start(address: SocketAddr, asker: Asker) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    let address = listener.local_addr()?;
    let clients = Arc::new(AtomicUsize::new(0));
    let only_literal_hosts = is_local(address);
    let accept = move || {
        loop {
            match listener.accept() {
                Ok((stream, _)) => admit(stream, &asker, &clients, only_literal_hosts),
                Err(_) => thread::sleep(STARVED_RETRY),
            }
        }
    };
    thread::Builder::new().name("status".to_owned()).spawn(accept)?;
    Ok(address)
}

/// Whether only this host's own programs reach the address, be it IPv4 in the form of IPv6.
fn is_local(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// One of the clients that are being served; leaves its place when dropped.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn admit(mut stream: TcpStream, asker: &Asker, clients: &Arc<AtomicUsize>, only_literal_hosts: bool) {
    let place = Place(Arc::clone(clients));
    if clients.fetch_add(1, Ordering::AcqRel) >= MAX_CLIENTS {
        let why = format!("{MAX_CLIENTS} clients are being served; try again");
        let refusal = Refusal { status: "503 Service Unavailable", why };
        // The answer fits the socket's buffer: nothing waits here. Who does not take it has only itself to blame.
        let _ = stream.set_nonblocking(true).and_then(|()| stream.write_all(&refused(&refusal)));
        return;
    }
    let asker = asker.clone();
    let serve = move || {
        let _place = place;
        // A client that went away needs no answer, and nobody else has an interest in it.
        let _ = serve(&mut stream, &asker, only_literal_hosts);
    };
    // Without a thread to be had, the client is dropped and may come again.
    let _ = thread::Builder::new().name("status-client".to_owned()).spawn(serve);
}

fn serve(stream: &mut TcpStream, asker: &Asker, only_literal_hosts: bool) -> io::Result<()> {
    let request = match read_request(stream, only_literal_hosts)? {
        Some(request) => request,
        None => return Ok(()),
    };
    let answer = match request {
        Ok(request) => match asker.ask(request.query) {
            Ok(report) => {
                let nothing = NOTHING_ALLOWED.to_owned();
                let (content_type, body, policy) = match request.page {
                    Page::Human => {
                        let nonce = nonce()?;
                        let policy = page::content_security_policy(&nonce);
                        ("text/html; charset=utf-8", page::html(&report, request.query, &nonce), policy)
                    }
                    Page::Json => ("application/json", report.to_json(), nothing),
                    Page::Metrics => (openmetrics::CONTENT_TYPE, openmetrics::text(&report), nothing),
                };
                answer(content_type, &body, &policy, &request)
            }
            Err(_) => refused(&Refusal {
                status: "503 Service Unavailable",
                why: "the server did not answer in time: it is stopping, or busy beyond measure".to_owned(),
            }),
        },
        Err(refusal) => refused(&refusal),
    };
    write_by(stream, &answer, Instant::now() + PATIENCE)?;
    stream.shutdown(Shutdown::Write)
}

/// What a browser may do with everything but the page.
const NOTHING_ALLOWED: &str = "default-src 'none'";

/// A word that nobody can guess, new for each page.
fn nonce() -> io::Result<String> {
    let mut bytes = [0; 16];
    random::fill(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

/// The request; `None` when the client went away before it was complete.
fn read_request(
    stream: &mut TcpStream,
    only_literal_hosts: bool,
) -> io::Result<Option<Result<Request, Refusal>>> {
    let until = Instant::now() + PATIENCE;
    let mut head = Vec::new();
    let mut buffer = [0; 1024];
    loop {
        let late = Refusal { status: "408 Request Timeout", why: "no complete request came".to_owned() };
        let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) else {
            return Ok(Some(Err(late)));
        };
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(None),
            Ok(len) => head.extend_from_slice(&buffer[..len]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                return Ok(Some(Err(late)));
            }
            Err(error) => return Err(error),
        }
        if let Some(request) = request::parse(&head, only_literal_hosts) {
            return Ok(Some(request));
        }
        if head.len() > MAX_HEAD {
            let why = format!("at most {MAX_HEAD} bytes");
            return Ok(Some(Err(Refusal { status: "431 Request Header Fields Too Large", why })));
        }
    }
}

/// Writes all, or gives up at a time: a client that takes a byte now and then holds its place no longer.
fn write_by(stream: &mut TcpStream, mut bytes: &[u8], until: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        let left = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero());
        stream.set_write_timeout(Some(left.ok_or(io::ErrorKind::TimedOut)?))?;
        match stream.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(len) => bytes = &bytes[len..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn head(status: &str, content_type: &str, policy: &str, len: usize) -> String {
    let allow = if status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len}\r\n{allow}\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
         Referrer-Policy: no-referrer\r\nContent-Security-Policy: {policy}\r\nConnection: close\r\n\r\n"
    )
}

fn answer(content_type: &str, body: &str, policy: &str, request: &Request) -> Vec<u8> {
    let mut answer = head("200 OK", content_type, policy, body.len()).into_bytes();
    if !request.head_only {
        answer.extend_from_slice(body.as_bytes());
    }
    answer
}

fn refused(refusal: &Refusal) -> Vec<u8> {
    let body = format!("{}\n", refusal.why);
    [head(refusal.status, "text/plain; charset=utf-8", NOTHING_ALLOWED, body.len()), body]
        .concat()
        .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::exchange;
    use crate::status::report::Report;
    use linerate_wire::units::Instant as Time;

    /// A listener whose loop answers everything at once until the test ends.
    fn start_answering() -> SocketAddr {
        let (asker, mut desk) = exchange::pair().unwrap();
        let address = start("127.0.0.1:0".parse().unwrap(), asker).unwrap();
        thread::spawn(move || {
            let mut now = 0;
            loop {
                now += 1_000;
                if let Some(query) = desk.due(Time::from_millis(now)) {
                    let at = Time::from_millis(now);
                    let report = Report { version: "1.2.3".to_owned(), ..Report::default() };
                    desk.answer(at, at, query, report);
                }
                thread::sleep(Duration::from_millis(1));
            }
        });
        address
    }

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn addresses_that_no_other_host_reaches() {
        for (address, expected) in [
            ("127.0.0.1:1", true),
            ("127.8.0.1:1", true),
            ("[::1]:1", true),
            ("[::ffff:127.0.0.1]:1", true),
            ("0.0.0.0:1", false),
            ("[::]:1", false),
            ("[::ffff:10.0.0.1]:1", false),
        ] {
            assert_eq!(is_local(address.parse().unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn pages_have_their_types() {
        let address = start_answering();
        for (path, content_type, part) in [
            ("/", "text/html; charset=utf-8", "1.2.3"),
            ("/status.json", "application/json", "\"version\":\"1.2.3\""),
            ("/metrics", openmetrics::CONTENT_TYPE, "# EOF\n"),
        ] {
            let answer = ask(address, &format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"));
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
            assert!(head.contains(&format!("Content-Type: {content_type}\r\n")), "{head}");
            assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
            assert!(body.contains(part), "{body}");
        }
        let [one, two] = [(); 2].map(|()| ask(address, "GET / HTTP/1.1\r\n\r\n"));
        let nonce = |page: &str| {
            page.split("'nonce-").nth(1).and_then(|rest| rest.split('\'').next()).unwrap().to_owned()
        };
        assert!(nonce(&one).len() == 32 && nonce(&one) != nonce(&two), "{one}");
        assert!(one.contains(&format!("<script nonce=\"{}\">", nonce(&one))), "{one}");
        let answer = ask(address, "HEAD /status.json HTTP/1.1\r\n\r\n");
        assert!(answer.contains("200 OK") && answer.ends_with("\r\n\r\n"), "{answer}");
        assert!(ask(address, "PUT / HTTP/1.1\r\n\r\n").contains("\r\nAllow: GET, HEAD\r\n"));
        let long = format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(MAX_HEAD));
        assert!(ask(address, &long).starts_with("HTTP/1.1 431 "));
    }

    #[test]
    fn idle_clients_keep_nobody_out_for_long() {
        let address = start_answering();
        let idle: Vec<TcpStream> = (0..MAX_CLIENTS).map(|_| TcpStream::connect(address).unwrap()).collect();
        let request = "GET /status.json HTTP/1.1\r\n\r\n";
        // They were connected before; the one that is accepted after them is one too many.
        let mut stream = TcpStream::connect(address).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
        drop(idle);
        // Their places are free as soon as their threads have seen that they are gone.
        let served = (0..1000).any(|_| {
            thread::sleep(Duration::from_millis(5));
            ask(address, request).starts_with("HTTP/1.1 200 ")
        });
        assert!(served);
    }

    #[test]
    fn a_loop_that_does_not_answer_is_said_so() {
        let (asker, _desk) = exchange::pair().unwrap();
        let address = start("127.0.0.1:0".parse().unwrap(), asker).unwrap();
        let answer = ask(address, "GET /status.json HTTP/1.1\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("did not answer"), "{answer}");
    }
}
