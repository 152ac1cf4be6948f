//! A load of HTTP requests that does not wait for the server (open loop), and what came of it.
//!
//! A client that waits for an answer before it asks again leaves out just those requests that a slow server would have
//! made wait (coordinated omission). Here each request has a time at which it is due, whether or not answers come, and its
//! response time counts from then on, though the connection may not be there yet or may still wait for another answer.
//!
//! Threads share the work by number of connection and share nothing else. Each is one loop around `epoll`
//! ([`run`]); there is no other reader of clocks and sockets in here.

mod connection;
mod engine;
mod fault;
mod ports;
mod response;
mod schedule;
mod tally;
mod target;
#[cfg(test)]
mod tests;

pub use engine::run;
pub use fault::{Fault, Faults};
pub use ports::{allow_descriptors, descriptors};
pub use response::{Malformed, Response};
pub use schedule::{Due, Schedule, What};
pub use tally::{ANSWER_BINS, SAMPLES, Tally, histogram, milliseconds};
pub use target::{Target, UrlError, request};

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// How connections and requests become due.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Arrivals {
    /// Connections at a constant rate, each closed after its requests.
    Opened {
        /// Connections a second.
        rate: f64,
        /// Requests on each, one after the other; at least 1.
        requests: u32,
        /// When those behind the first are due.
        pace: Pace,
    },
    /// Connections that are kept, and requests at a constant rate that take whichever is free.
    Kept {
        /// How many.
        connections: usize,
        /// Requests a second over all of them; 0: each asks again as soon as it is answered, which is no open loop.
        rate: f64,
    },
}

/// When the requests behind the first of a connection are due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// At a constant rate of requests: evenly until the next connection is due.
    Requests,
    /// When the one before has been answered, as a visitor's do who follows links, and as `httperf --num-calls` does it.
    Connections,
}

/// What is asked, and how.
#[derive(Clone, Debug)]
pub struct Load {
    /// The server.
    pub server: SocketAddr,
    /// Value of the header `Host`.
    pub host: String,
    /// Path and query.
    pub path: String,
    /// When.
    pub arrivals: Arrivals,
    /// For how long something becomes due. Answers are waited for beyond it.
    pub time: Duration,
    /// How long an answer may take from the moment when its request was due.
    pub timeout: Duration,
    /// The status that an answer is to have.
    pub status: u16,
    /// Addresses to come from, in turn; empty: the system chooses.
    pub sources: Vec<IpAddr>,
    /// Threads that work; at least 1.
    pub threads: usize,
    /// Look for answers without sleeping: for a client that has a core of its own.
    pub spin: bool,
}

impl Load {
    /// Requests a second that become due; `None` in a closed loop.
    pub fn request_rate(&self) -> Option<f64> {
        match self.arrivals {
            Arrivals::Opened { rate, requests, .. } => Some(rate * f64::from(requests)),
            Arrivals::Kept { rate, .. } => (rate > 0.0).then_some(rate),
        }
    }
}
