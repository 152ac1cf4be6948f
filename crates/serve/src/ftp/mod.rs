//! FTP server: the commands of RFC 959, 1123, 2389, 2428 and 3659, active and passive, over any transport.
//!
//! [`Server`] is the [`Service`](crate::Service); [`Config`] has its settings. Where to start reading: `session` is
//! the loop of commands, `dispatch` the table of what each one does, `data` the rules of the data connection, and
//! `transfer` the machine that moves bytes. `docs/ftp.md` lists the commands and limits.

mod access;
mod admit;
mod ascii;
mod command;
mod config;
mod data;
mod date;
mod dispatch;
mod facts;
mod hash;
mod help;
mod hub;
mod line;
mod listing;
pub mod login;
mod open;
mod paths;
mod receive;
mod reply;
mod send;
mod server;
mod session;
mod stats;
#[cfg(test)]
mod tests;
mod transfer;

pub use config::{Config, ConfigError, Limits, User};
pub use login::{HashError, hash_password};
pub use server::{ReloadError, Server};
pub use stats::Stats;
