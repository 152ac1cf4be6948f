//! Counters of the server, and the page that shows them.

use super::response::Status;
use alloc::string::String;
use core::fmt::Write as _;

/// What happened since the start. Every connection or request that was not served has its counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Connections accepted.
    pub accepted: u64,
    /// Connections refused because there are too many in all.
    pub refused_total: u64,
    /// Connections refused because there are too many from their address.
    pub refused_address: u64,
    /// Requests answered, by the class of the status: index 2 counts the statuses 200 to 299. 0 and 1 stay zero.
    pub responses: [u64; 6],
    /// Requests that are no HTTP, or break a rule or a limit of it (they are among the responses, too).
    pub malformed: u64,
    /// Requests refused because heads used up their memory.
    pub head_memory: u64,
    /// Requests whose body could not be read to its end.
    pub bad_bodies: u64,
    /// Bytes of content handed to the transport.
    pub content_sent: u64,
    /// Bytes of content received.
    pub content_received: u64,
    /// Connections closed because their request's head did not come in time.
    pub head_timeouts: u64,
    /// Connections closed because no request came in time.
    pub idle_timeouts: u64,
    /// Connections given up because the peer took or sent too little.
    pub progress_timeouts: u64,
    /// Requests given up because the file system did not answer in time.
    pub file_timeouts: u64,
    /// Connections that ended, or broke, in the middle of a request or response.
    pub aborted: u64,
    /// Connections reset because a file became shorter while it was sent.
    pub files_changed: u64,
    /// Listings refused because too many were under way.
    pub listings_refused: u64,
    /// Addresses of new settings that could not be listened on.
    pub listen_failures: u64,
}

impl Counters {
    pub(super) fn count_response(&mut self, status: Status) {
        if let Some(count) = self.responses.get_mut(usize::from(status.code() / 100)) {
            *count += 1;
        }
    }
}

/// What is so at this moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Gauges {
    /// Connections.
    pub connections: usize,
    /// Files open or being opened.
    pub open_files: usize,
    /// Paths remembered.
    pub cache_entries: usize,
    /// Bytes of file content remembered.
    pub cache_memory: usize,
    /// Bytes of heads held.
    pub head_memory: usize,
    /// Lookups of files that the cache answered, since the start.
    pub cache_hits: u64,
    /// Lookups of files that needed the file system, since the start.
    pub cache_misses: u64,
    /// Directory listings under way.
    pub listings: usize,
}

/// Both as one JSON object.
pub(super) fn to_json(counters: &Counters, gauges: &Gauges, uptime_s: u64) -> String {
    let c = counters;
    let g = gauges;
    let fields: [(&str, u64); 30] = [
        ("uptime_s", uptime_s),
        ("connections", g.connections as u64),
        ("accepted", c.accepted),
        ("refused_total", c.refused_total),
        ("refused_address", c.refused_address),
        ("responses_2xx", c.responses[2]),
        ("responses_3xx", c.responses[3]),
        ("responses_4xx", c.responses[4]),
        ("responses_5xx", c.responses[5]),
        ("malformed", c.malformed),
        ("head_memory_refused", c.head_memory),
        ("bad_bodies", c.bad_bodies),
        ("content_sent", c.content_sent),
        ("content_received", c.content_received),
        ("head_timeouts", c.head_timeouts),
        ("idle_timeouts", c.idle_timeouts),
        ("progress_timeouts", c.progress_timeouts),
        ("file_timeouts", c.file_timeouts),
        ("aborted", c.aborted),
        ("files_changed", c.files_changed),
        ("listings_refused", c.listings_refused),
        ("listen_failures", c.listen_failures),
        ("open_files", g.open_files as u64),
        ("cache_entries", g.cache_entries as u64),
        ("cache_memory", g.cache_memory as u64),
        ("cache_hits", g.cache_hits),
        ("cache_misses", g.cache_misses),
        ("head_memory", g.head_memory as u64),
        ("listings", g.listings as u64),
        ("requests", c.responses.iter().sum()),
    ];
    let mut json = String::from("{");
    for (at, (name, value)) in fields.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        let _ = write!(json, "{comma}\"{name}\":{value}");
    }
    json.push_str("}\n");
    json
}
