//! An iperf3 client: TCP and UDP, forward, reverse, both at once, as a protocol machine.
//!
//! Tested against the iperf3 server 3.12 and against our own. The machine is a [`Service`](crate::Service) like the servers:
//! its owner turns the loop until [`Client::outcome`] tells how it went, and prints what [`Client::poll_event`] and
//! [`Client::report`] say, as [`text`] or as [`json`].

pub mod config;
mod control;
pub mod error;
pub mod json;
mod machine;
mod marks;
mod measure;
mod open;
pub mod report;
mod run;
mod state;
#[cfg(test)]
mod tests;
pub mod text;

pub use config::Config;
pub use error::ClientError;

pub use report::{Amount, Connected, Interval, Report, StreamEnd, StreamInterval};
pub use state::{Client, ClientEvent};
