//! Counters of the server, and the page that shows them.

use super::response::Status;
use alloc::format;
use alloc::string::String;
use core::fmt::Write as _;
use linerate_wire::figures::Figures as _;

linerate_wire::figures! {
    /// What happened since the start. Every connection or request that was not served has its counter.
    pub struct Counters {
        /// Connections accepted.
        accepted,
        /// Connections refused because there are too many in all.
        refused_total [drop],
        /// Connections refused because there are too many from their address.
        refused_address [drop],
        /// Connections closed because newcomers needed their place: those that waited longest, of the sources that hold most.
        gave_way,
        /// Requests answered with a status of 200 to 299.
        responses_2xx,
        /// Requests answered with a status of 300 to 399.
        responses_3xx,
        /// Requests answered with a status of 400 to 499.
        responses_4xx,
        /// Requests answered with a status of 500 to 599.
        responses_5xx,
        /// Requests answered with an answer that was ready, as the same request had come before (they are among the responses, too).
        reused_answers,
        /// Requests that are no HTTP, or break a rule or a limit of it (they are among the responses, too).
        malformed,
        /// Requests refused because heads used up their memory.
        head_memory_refused [drop],
        /// Requests whose body could not be read to its end.
        bad_bodies,
        /// Bytes of content handed to the transport; of a response that was cut, those that the client acknowledged.
        content_sent [bytes],
        /// Bytes of content received.
        content_received [bytes],
        /// Connections closed because their request's head did not come in time.
        head_timeouts [drop],
        /// Connections closed because no request came in time.
        idle_timeouts,
        /// Connections given up because the peer took or sent too little.
        progress_timeouts [drop],
        /// Requests given up because the file system did not answer in time.
        file_timeouts [drop],
        /// Connections that ended, or broke, in the middle of a request or response.
        aborted,
        /// Connections reset because a file became shorter while it was sent.
        files_changed [drop],
        /// Listings refused because too many were under way.
        listings_refused [drop],
        /// Addresses of new settings that could not be listened on.
        listen_failures,
    }
}

impl Counters {
    pub(super) fn count_response(&mut self, status: Status) {
        let count = match status.code() / 100 {
            2 => &mut self.responses_2xx,
            3 => &mut self.responses_3xx,
            4 => &mut self.responses_4xx,
            _ => &mut self.responses_5xx,
        };
        *count += 1;
    }
}

linerate_wire::figures! {
    /// What is so at this moment.
    pub struct Gauges {
        /// Connections.
        connections [gauge],
        /// Files open or being opened.
        open_files [gauge],
        /// Paths remembered.
        cache_entries [gauge],
        /// Bytes of file content remembered.
        cache_memory [gauge bytes],
        /// Bytes of heads held.
        head_memory [gauge bytes],
        /// Lookups of files that were answered without waiting, since the start.
        cache_hits,
        /// Lookups of files that waited for the file system, since the start.
        cache_misses,
        /// Directory listings under way.
        listings [gauge],
    }
}

/// Both as one JSON object.
pub(super) fn to_json(counters: &Counters, gauges: &Gauges, uptime_s: u64) -> String {
    let c = counters;
    let requests = c.responses_2xx + c.responses_3xx + c.responses_4xx + c.responses_5xx;
    let mut json = format!("{{\"uptime_s\":{uptime_s},\"requests\":{requests}");
    for (figure, value) in counters.figures().chain(gauges.figures()) {
        let _ = write!(json, ",\"{}\":{value}", figure.name);
    }
    json.push_str("}\n");
    json
}
