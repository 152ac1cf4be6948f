//! What a URL asks for: `http://HOST[:PORT][/PATH][?QUERY]`.

use std::fmt;
use std::net::{Ipv6Addr, SocketAddr, ToSocketAddrs};

/// A server and what is asked of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// Name or address, an IPv6 address without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Path and query, at least `/`.
    pub path: String,
}

/// A URL that is none, or not one that can be asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UrlError {
    url: String,
    why: String,
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}; expected http://HOST[:PORT][/PATH]", self.url, self.why)
    }
}

impl std::error::Error for UrlError {}

/// A request for `path` of `host`; `is_last`: the server shall close the connection after its answer.
pub fn request(path: &str, host: &str, is_last: bool) -> String {
    let close = if is_last { "Connection: close\r\n" } else { "" };
    format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: linerate/{}\r\nAccept: */*\r\n{close}\r\n",
        env!("CARGO_PKG_VERSION")
    )
}

impl Target {
    /// Reads a URL.
    pub fn parse(url: &str) -> Result<Target, UrlError> {
        let refuse = |why: &str| UrlError { url: url.to_owned(), why: why.to_owned() };
        let rest = match url.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
            Some((scheme, _)) if scheme.eq_ignore_ascii_case("https") => {
                return Err(refuse("https is not supported, there is no TLS here"));
            }
            _ => return Err(refuse("it does not begin with http://")),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.contains('@') {
            return Err(refuse("names and passwords are not supported"));
        }
        if !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(refuse("blanks and characters beyond ASCII stand in a path as %20 and the like"));
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(inner) => {
                let (host, port) = inner.split_once(']').ok_or_else(|| refuse("a bracket is not closed"))?;
                host.parse::<Ipv6Addr>().map_err(|_| refuse("between brackets is no IPv6 address"))?;
                let port = match port {
                    "" => None,
                    port => Some(port.strip_prefix(':').ok_or_else(|| refuse("a port begins with a colon"))?),
                };
                (host, port)
            }
            None => match authority.split_once(':') {
                Some((_, port)) if port.contains(':') => {
                    return Err(refuse("an IPv6 address stands in brackets"));
                }
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        if host.is_empty() || !host.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(refuse("there is no host"));
        }
        let port = match port {
            None => 80,
            Some(port) => match port.parse() {
                Ok(0) | Err(_) => return Err(refuse("a port is a number from 1 to 65535")),
                Ok(port) => port,
            },
        };
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Target { host: host.to_owned(), port, path })
    }

    /// Value of the header `Host` (RFC 9112, section 3.2).
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == 80 { host } else { format!("{host}:{}", self.port) }
    }

    /// Addresses of the server, in the order in which the system gives them.
    pub fn resolve(&self) -> Result<Vec<SocketAddr>, UrlError> {
        let failed = |why: String| UrlError { url: self.to_string(), why };
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        let found: Vec<SocketAddr> =
            found.map_err(|why| failed(format!("{:?} is not found: {why}", self.host)))?.collect();
        if found.is_empty() {
            return Err(failed(format!("{:?} has no address", self.host)));
        }
        Ok(found)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority(), self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let check = |url: &str, expected: Result<(&str, u16, &str, &str), &str>| match expected {
            Ok((host, port, path, authority)) => {
                let target = Target::parse(url).unwrap();
                assert_eq!((target.host.as_str(), target.port, target.path.as_str()), (host, port, path));
                assert_eq!(target.authority(), authority, "{url}");
            }
            Err(part) => {
                let error = Target::parse(url).unwrap_err().to_string();
                assert!(error.contains(part) && error.contains(url), "{url}: {error}");
            }
        };
        check("http://a", Ok(("a", 80, "/", "a")));
        check("HTTP://a.b:8080/c?d#e", Ok(("a.b", 8080, "/c?d", "a.b:8080")));
        check("http://a?q", Ok(("a", 80, "/?q", "a")));
        check("http://[::1]/x", Ok(("::1", 80, "/x", "[::1]")));
        check("http://[fd00::4]:81", Ok(("fd00::4", 81, "/", "[fd00::4]:81")));
        check("https://a/", Err("no TLS"));
        check("a/b", Err("does not begin"));
        check("ftp://a/b", Err("does not begin"));
        check("http:///b", Err("no host"));
        check("http://a:0/", Err("from 1 to 65535"));
        check("http://a:x/", Err("from 1 to 65535"));
        check("http://::1/", Err("brackets"));
        check("http://[::1/", Err("not closed"));
        check("http://[::1]80/", Err("colon"));
        check("http://[a]/", Err("no IPv6"));
        check("http://u:p@a/", Err("passwords"));
        check("http://a/b c", Err("%20"));
        check("http://a/\u{e4}", Err("%20"));
    }

    #[test]
    fn names_are_found_and_unknown_ones_named() {
        let found = Target::parse("http://127.0.0.1:81/").unwrap().resolve().unwrap();
        assert_eq!(found, ["127.0.0.1:81".parse().unwrap()]);
        let error = Target::parse("http://no-such-name.invalid/").unwrap().resolve().unwrap_err().to_string();
        assert!(error.contains("no-such-name.invalid"), "{error}");
    }
}
