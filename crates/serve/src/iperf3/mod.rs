//! An iperf3 server: TCP and UDP, both directions, several clients at once; and a [`client`].
//!
//! The server is tested with the iperf3 client 3.12. Where the original answers "busy" while a test runs, this one takes
//! every client that its limits allow; connections find their test by the cookie that they send first.

mod admit;
pub mod client;
pub mod config;
mod control;
mod pacer;
mod params;
mod protocol;
mod report;
mod results;
mod server;
mod session;
mod stream;
#[cfg(test)]
mod tests;
mod udp;

pub use config::{Config, CpuTimes};
pub use params::{MAX_BURST, MAX_PACING_TIMER_US, MAX_STREAMS, Params, Protocol};
pub use server::{Counters, Server};
