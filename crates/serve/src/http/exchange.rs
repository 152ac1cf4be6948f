//! One request from its parsed head to the last byte of its response.

use super::access_log::{self, Record, Scribe};
use super::config::LogFormat;
use super::headers::{Fields, HeadEnd, NO_FIELDS};
use super::method::Method;
use super::negotiate::Preference;
use super::request::{Expectation, Framing, Head, RequestError, Version};
use super::response::{After, Status};
use super::uri::{self, DecodedPath, Target, UriError};
use crate::memory::{self, MemoryFile};
use alloc::vec::Vec;
use core::net::IpAddr;
use linerate_transport::PathError;
use linerate_wire::units::Instant;

/// A request and how far its answer is.
#[derive(Debug)]
pub(super) struct Exchange {
    /// The head as it came, for what is needed of it later.
    pub head: Vec<u8>,
    pub place: HeadEnd,
    pub method: Method,
    pub version: Version,
    /// Whether the connection goes on after the response.
    pub keep_alive: bool,
    pub framing: Framing,
    pub expectation: Expectation,
    /// The path; `None` for the server as a whole, and where no file can have it.
    pub path: Option<DecodedPath>,
    /// The path is longer, or has a longer component, than any file's: it names nothing.
    pub names_nothing: bool,
    pub memory: Option<MemoryFile>,
    pub preference: Preference,
    /// Whether there are preconditions.
    pub conditional: bool,
    /// Whether there is a Range field.
    pub ranged: bool,
    /// Where in the head the access log finds the values of Referer and User-Agent.
    referer: Option<(u32, u32)>,
    user_agent: Option<(u32, u32)>,
    pub started: Instant,
    /// Whether it counts among those that may start file operations.
    pub resolving: bool,
    /// The turn of the file cache in which it was asked first.
    pub asked: Option<u64>,
    /// The status of the response, once begun.
    pub status: Option<Status>,
    /// Bytes of content in the response.
    pub content: u64,
    /// Bytes of content in the request.
    pub received: u64,
}

impl Exchange {
    /// Parses a head. On errors the bytes are given back for the log.
    pub fn parse(
        head: Vec<u8>,
        place: HeadEnd,
        memory_files: bool,
        now: Instant,
    ) -> Result<Exchange, (RequestError, Vec<u8>)> {
        match Self::read(&head, place, memory_files, now) {
            Ok(mut exchange) => {
                exchange.head = head;
                Ok(exchange)
            }
            Err(error) => Err((error, head)),
        }
    }

    /// All but the head itself.
    fn read(
        bytes: &[u8],
        place: HeadEnd,
        memory_files: bool,
        now: Instant,
    ) -> Result<Exchange, RequestError> {
        let mut room = NO_FIELDS;
        let head = Head::parse(bytes, place, &mut room)?;
        let (path, names_nothing) = match head.target {
            Target::Path { path, .. } => match uri::decode_path(path) {
                Ok(path) => (Some(path), false),
                Err(UriError::Path(PathError::TooLong)) => (None, true),
                Err(error) => return Err(error.into()),
            },
            Target::Asterisk | Target::Authority => (None, false),
        };
        let memory = match &path {
            Some(decoded) if memory_files && !decoded.directory => memory::lookup(&decoded.path),
            _ => None,
        };
        let mut exchange = Exchange {
            head: Vec::new(),
            place,
            method: head.method,
            version: head.version,
            keep_alive: head.keep_alive,
            framing: head.framing,
            expectation: head.expectation,
            path,
            names_nothing,
            memory,
            preference: Preference::default(),
            conditional: false,
            ranged: false,
            referer: None,
            user_agent: None,
            started: now,
            resolving: false,
            asked: None,
            status: None,
            content: 0,
            received: 0,
        };
        for (name, value) in head.fields.iter() {
            match name.len() {
                7 if name.eq_ignore_ascii_case("referer") => {
                    exchange.referer.get_or_insert(place_in(bytes, value));
                }
                10 if name.eq_ignore_ascii_case("user-agent") => {
                    exchange.user_agent.get_or_insert(place_in(bytes, value));
                }
                5 if name.eq_ignore_ascii_case("range") => exchange.ranged = head.method == Method::Get,
                15 if name.eq_ignore_ascii_case("accept-encoding") => {
                    exchange.preference = Preference::parse(head.fields.all("accept-encoding"));
                }
                8 | 13 | 17 | 19 if name.as_bytes()[..3].eq_ignore_ascii_case(b"if-") => {
                    exchange.conditional = true;
                }
                _ => {}
            }
        }
        Ok(exchange)
    }

    /// Looks at the fields once more. They were parsed before, so that this does not fail; if it did, there are none.
    pub fn with_fields<R>(&self, look: impl FnOnce(&Fields<'_>) -> R) -> R {
        let mut room = NO_FIELDS;
        let bytes = self.head.get(self.place.fields..self.place.end).unwrap_or(b"\r\n");
        look(&Fields::parse(bytes, &mut room).unwrap_or(Fields::EMPTY))
    }

    /// The query of the target, if it has one.
    pub fn query(&self) -> Option<&[u8]> {
        let target = self.line().split(|b| *b == b' ').nth(1)?;
        match Target::parse(target) {
            Ok(Target::Path { query, .. }) => query,
            _ => None,
        }
    }

    /// The request line.
    pub fn line(&self) -> &[u8] {
        self.head.get(self.place.start..self.place.fields.saturating_sub(2)).unwrap_or(b"")
    }

    /// What the response shall say of the connection.
    pub fn after(&self) -> After {
        if self.keep_alive { After::KeepAlive(self.version) } else { After::Close }
    }

    /// Whether the body is counted and thrown away, however long.
    pub fn swallows(&self) -> bool {
        self.memory == Some(MemoryFile::Null) && matches!(self.method, Method::Post | Method::Put)
    }

    /// The methods that its target has.
    pub fn allowed(&self) -> &'static [u8] {
        match self.memory {
            Some(MemoryFile::Null) => b"GET, HEAD, OPTIONS, POST, PUT",
            _ => b"GET, HEAD, OPTIONS",
        }
    }

    /// Whether its method is one of them.
    pub fn is_allowed(&self) -> bool {
        matches!(self.method, Method::Get | Method::Head | Method::Options) || self.swallows()
    }

    /// Writes its line to the access log.
    pub fn log(
        &self,
        scribe: &mut Scribe,
        format: LogFormat,
        remote: IpAddr,
        now: Instant,
        wall_secs: i64,
        sent: u64,
    ) {
        let value = |(from, len): (u32, u32)| self.head.get(from as usize..)?.get(..len as usize);
        let record = Record {
            format,
            remote,
            wall_secs,
            line: self.line(),
            status: self.status.map_or(0, Status::code),
            bytes: sent,
            is_cut: sent < self.content,
            duration: now - self.started,
            referer: self.referer.and_then(value),
            user_agent: self.user_agent.and_then(value),
        };
        log::info!(target: access_log::TARGET, "{}", scribe.line(&record));
    }
}

/// Where a value lies in the head that it is a part of: its first byte and its length.
fn place_in(head: &[u8], value: &[u8]) -> (u32, u32) {
    let from = value.as_ptr().addr().wrapping_sub(head.as_ptr().addr());
    // Heads are far shorter than 4 GiB; what were not would be found nowhere.
    (u32::try_from(from).unwrap_or(u32::MAX), u32::try_from(value.len()).unwrap_or(0))
}
