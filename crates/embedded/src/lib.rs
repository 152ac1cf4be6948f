//! linerate for async firmware: sockets with the traits of `embedded-io-async` and `embedded-nal-async` above the stack, and
//! any device of `embassy-net-driver` below it.
//!
//! A [`Net`] holds an engine (a `linerate_stack::Node`, or anything else that implements
//! [`Engine`](linerate_transport::Engine)) and is shared by the tasks of one executor on one core. One task awaits
//! [`Net::run`], which turns the engine: input, events to those who wait, output, sleep. The others use sockets:
//!
//! - [`Net::connect`] and [`Listener::accept`] give a [`TcpSocket`], which implements `Read`, `Write`, `ReadReady` and
//!   `WriteReady`;
//! - [`Net::bind`] gives a [`UdpSocket`];
//! - `Net` implements `TcpConnect`, and `&Net` implements `UdpStack`, for programs that know only the traits. Names are
//!   looked up by the caller's `Dns`; [`Literals`] takes addresses written as text.
//!
//! [`EmbassyDevice`] makes a device for the stack out of a driver.
//!
//! Nothing here depends on an executor. What a net needs of the machine is a [`Clock`], and a function that says when the
//! device has something.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod clock;
mod dns;
mod driver;
mod error;
mod listener;
mod nal;
mod net;
mod tcp;
mod udp;
mod waits;

pub use clock::Clock;
pub use dns::{Literals, NoNames, UnknownName};
pub use driver::{DriverError, DriverStats, EmbassyDevice};
pub use error::Error;
pub use listener::Listener;
pub use net::Net;
pub use tcp::{TcpReader, TcpSocket, TcpWriter};
pub use udp::{ConnectedUdpSocket, Received, UdpSocket};
