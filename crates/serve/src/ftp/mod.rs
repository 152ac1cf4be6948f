//! FTP server: the commands of RFC 959, 1123, 2389, 2428 and 3659, active and passive, over any transport.
//!
//! [`Server`] is the [`Service`](crate::Service); [`Config`] has its settings. Where to start reading: `drive` is the
//! loop of commands, `dispatch` the table of what each one does, `session` what its parts come to together, `data` the
//! rules of the data connection, and `transfer` the machine that moves bytes. `docs/ftp.md` lists the commands and
//! limits.
//!
//! Each module uses only what stands below it (`cargo xtask tidy` checks that):
//!
//! ```text
//!   server > sessions > drive > dispatch > session, leaving
//!   what a session does:   paths, help, open > transfer, status
//!   its parts:             control, access, data, upload, settings > hash
//!   what all of them use:  hub, reply, and modules that know nothing of sessions
//! ```

mod access;
mod ascii;
mod command;
mod config;
mod control;
mod data;
mod date;
mod dispatch;
mod drive;
mod facts;
mod hash;
mod help;
mod hub;
mod leaving;
mod line;
mod listing;
pub mod login;
mod names;
mod open;
mod parked;
mod paths;
mod ports;
mod receive;
mod reply;
mod send;
mod server;
mod session;
mod sessions;
mod settings;
mod stats;
mod status;
#[cfg(test)]
mod tests;
mod transfer;
mod upload;

pub use config::{Config, ConfigError, Limits, User};
pub use login::{HashError, hash_password};
pub use names::{NameSet, UploadNames};
pub use ports::PortShare;
pub use server::{ReloadError, Server};
pub use stats::Stats;
