//! A request for the status: a small part of HTTP/1.1, as monitoring systems and browsers speak it.

use super::query::{PAGE_LIMIT, Query};
use std::net::IpAddr;

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Page {
    /// For people.
    Human,
    /// For programs.
    Json,
    /// For monitoring systems.
    Metrics,
}

/// A request that can be answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// What.
    pub page: Page,
    /// Which connections.
    pub query: Query,
    /// Without the content (HEAD).
    pub head_only: bool,
}

/// Why a request is not answered: a status, and a sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The status line's code and reason.
    pub status: &'static str,
    /// What was wrong and what was expected.
    pub why: String,
}

fn refuse(status: &'static str, why: impl Into<String>) -> Refusal {
    Refusal { status, why: why.into() }
}

/// Most fields of a head.
const MAX_FIELDS: usize = 64;

/// Reads a head; `None` while it is not complete. `only_literal_hosts` refuses names but `localhost` in the field Host:
/// otherwise a page on the web could make a browser read what only this host may read, by a name that leads here (DNS
/// rebinding).
pub fn parse(head: &[u8], only_literal_hosts: bool) -> Option<Result<Request, Refusal>> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return None,
        Err(error) => return Some(Err(refuse("400 Bad Request", format!("no HTTP request: {error}")))),
    }
    let host = request.headers.iter().find(|field| field.name.eq_ignore_ascii_case("host"));
    let host = host.map(|field| String::from_utf8_lossy(field.value).into_owned());
    if only_literal_hosts && host.as_deref().is_some_and(|host| !is_literal(host)) {
        let why = "this server listens on the loopback address: ask for it by 127.0.0.1, [::1] or localhost";
        return Some(Err(refuse("421 Misdirected Request", why)));
    }
    Some(route(request.method.unwrap_or_default(), request.path.unwrap_or_default()))
}

/// Whether a Host field names an address, or `localhost`.
fn is_literal(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

fn route(method: &str, target: &str) -> Result<Request, Refusal> {
    if !matches!(method, "GET" | "HEAD") {
        return Err(refuse("405 Method Not Allowed", "only GET and HEAD"));
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let page = match path {
        "/" => Page::Human,
        "/status.json" => Page::Json,
        "/metrics" => Page::Metrics,
        _ => return Err(refuse("404 Not Found", "there are /, /status.json and /metrics")),
    };
    // Monitoring systems may add parameters of their own; connections are none of their business.
    let default = Query::default();
    let query = match page {
        Page::Metrics => Ok(Query { limit: 0, ..default }),
        Page::Human => Query::parse(query, Query { limit: PAGE_LIMIT, ..default }),
        Page::Json => Query::parse(query, default),
    };
    let query = query.map_err(|why| refuse("400 Bad Request", why))?;
    Ok(Request { page, query, head_only: method == "HEAD" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(head: &str, expected: &str) {
        let found = match parse(head.as_bytes(), true) {
            None => "more".to_owned(),
            Some(Ok(request)) => format!("{:?} {} {}", request.page, request.query.limit, request.head_only),
            Some(Err(refusal)) => refusal.status.to_owned(),
        };
        assert_eq!(found, expected, "{head:?}");
    }

    #[test]
    fn what_is_there_and_what_is_not() {
        check("GET / HTTP/1.1\r\n\r\n", "Human 50 false");
        check("GET /?limit=7&sort=bytes HTTP/1.1\r\n\r\n", "Human 7 false");
        check("GET /status.json HTTP/1.1\r\n\r\n", "Json 100 false");
        check("GET /status.json?limit=5 HTTP/1.1\r\nHost: 127.0.0.1:9180\r\n\r\n", "Json 5 false");
        check("HEAD /metrics?collect[]=x HTTP/1.0\r\n\r\n", "Metrics 0 true");
        check("GET /status.json?limit=x HTTP/1.1\r\n\r\n", "400 Bad Request");
        check("GET /favicon.ico HTTP/1.1\r\n\r\n", "404 Not Found");
        check("POST / HTTP/1.1\r\n\r\n", "405 Method Not Allowed");
        check("GET / HTTP/1.1\r\n", "more");
        check("", "more");
        check("\x16\x03\x01\x02", "400 Bad Request");
        check("hello\r\n\r\n", "400 Bad Request");
    }

    #[test]
    fn a_name_that_leads_here_is_refused() {
        for host in ["localhost", "LocalHost:9180", "127.0.0.1", "[::1]:9180", "[::1]"] {
            check(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"), "Human 50 false");
        }
        for host in ["evil.example", "evil.example:9180", "localhost.evil.example", "127.0.0.1.evil.example"]
        {
            check(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"), "421 Misdirected Request");
        }
        let open = parse(b"GET / HTTP/1.1\r\nHost: server.lan\r\n\r\n", false);
        assert!(matches!(open, Some(Ok(_))));
    }
}
