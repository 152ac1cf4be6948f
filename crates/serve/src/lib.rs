//! FTP, HTTP and iperf3 servers as protocol machines: events and bytes in, bytes and commands out.
//!
//! Each server is a [`Service`]: it reads no clock and opens no file or socket by itself, but asks the
//! [`Transport`](linerate_transport::Transport) and [`Files`](linerate_transport::Files) of the [`Context`] it is
//! handed with every call.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod admission;
pub mod calendar;
pub mod changes;
mod crowd;
pub mod deadlines;
mod delivered;
pub mod ftp;
pub mod group;
pub mod http;
pub mod iperf3;
pub mod memory;
pub mod service;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod testing;
pub mod turn;

pub use changes::{Change, Changes};
pub use deadlines::{Alarms, Deadlines};
pub use group::Group;
pub use service::{Context, Service, StartError};
pub use turn::{Host, Loop};
