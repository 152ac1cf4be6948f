//! An HTTP/1.1 server for static files (RFC 9110, RFC 9112).

pub mod access_log;
mod admit;
mod answer;
mod autoindex;
pub mod body;
mod cache;
pub mod conditional;
pub mod config;
mod connection;
mod counters;
pub mod date;
mod drive;
mod exchange;
mod file_info;
pub mod headers;
mod listing;
pub mod method;
pub mod mime;
mod multipart;
mod natural;
pub mod negotiate;
mod ops;
mod pipeline;
pub mod range;
mod ready;
pub mod request;
mod resolve;
pub mod response;
mod server;
pub mod uri;

pub use config::{Config, Limits, LogFormat, Timeouts};
pub use counters::{Counters, Gauges};
pub use server::Server;

#[cfg(test)]
mod tests;
