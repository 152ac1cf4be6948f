//! Applications on hosts: small state machines over the sockets of a stack.

mod echo;
mod endpoint;
mod pattern;

pub use echo::Echo;
pub use endpoint::{Amount, EndReport, Endpoint, EndpointConfig, Reader, Role, Writer};
pub use pattern::Pattern;

use linerate_stack::Stack;
use linerate_transport::{Event, Owner};
use linerate_wire::units::Instant;
use std::any::Any;
use std::ops::Add;

/// What an application works with while it is called.
#[derive(Debug)]
pub struct Context<'a> {
    /// The time.
    pub now: Instant,
    /// Whom the application's sockets belong to.
    pub owner: Owner,
    /// The host's stack.
    pub stack: &'a mut Stack,
}

/// What an application has asked of its processor so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AppWork {
    /// Calls that wrote or read.
    pub calls: u64,
    /// Times that it gave way to others.
    pub ways: u64,
    /// Bytes written and read.
    pub bytes: u64,
}

impl Add for AppWork {
    type Output = AppWork;

    fn add(self, other: AppWork) -> AppWork {
        AppWork {
            calls: self.calls + other.calls,
            ways: self.ways + other.ways,
            bytes: self.bytes + other.bytes,
        }
    }
}

/// An application on a host. Its sockets must be opened with [`Context::owner`]: their events come to it.
///
/// [`App::handle_timeout`] is called once at the start, and again whenever [`App::poll_timeout`] has come.
pub trait App: Any {
    /// Something happened to one of its sockets.
    fn handle_event(&mut self, context: &mut Context<'_>, event: Event);

    /// Runs what is due.
    fn handle_timeout(&mut self, context: &mut Context<'_>);

    /// When [`App::handle_timeout`] is to be called next.
    fn poll_timeout(&self) -> Option<Instant>;

    /// What it has asked of its processor so far, for [`CpuCost`](crate::CpuCost); nothing unless it says so.
    fn work(&self) -> AppWork {
        AppWork::default()
    }
}
