//! An HTTP/1.1 server for static files (RFC 9110, RFC 9112).

pub mod access_log;
mod autoindex;
pub mod body;
pub mod conditional;
pub mod config;
pub mod date;
pub mod headers;
pub mod method;
pub mod mime;
mod multipart;
pub mod negotiate;
pub mod range;
pub mod request;
pub mod response;
pub mod uri;

pub use config::{Config, Limits, LogFormat, Timeouts};
