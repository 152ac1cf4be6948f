//! What the owner of the loop calls on every server.

use crate::Change;
use alloc::string::String;
use core::fmt;
use linerate_transport::{Event, FileDone, Files, ListenError, Transport};
use linerate_wire::units::Instant;

/// What a service may use during one call.
pub struct Context<'a> {
    /// Sockets.
    pub net: &'a mut dyn Transport,
    /// Files.
    pub files: &'a mut dyn Files,
    /// The time of this turn of the loop.
    pub now: Instant,
    /// Which turn it is: whoever asks in it had asked before it began. `None` where each call is a turn of its own.
    pub turn: Option<u64>,
    /// Wall-clock time in ns since 1970-01-01 UTC, for dates in protocols and logs.
    pub wall_ns: i64,
    /// Seeded random numbers, for ports, cookies and salts.
    pub random: &'a mut dyn FnMut() -> u64,
}

/// Why a service could not start: which socket, and what was wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StartError {
    /// The socket, as `http 0.0.0.0:80`.
    pub what: String,
    /// What was wrong with it.
    pub why: ListenError,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot listen on {}: {}", self.what, self.why)
    }
}

impl core::error::Error for StartError {}

/// A server as the owner of the loop sees it.
///
/// Order of calls: [`Service::start`] once; then in any order `handle_event`, `handle_file`, and `handle_timeout` at
/// or after the time that [`Service::poll_timeout`] names. After [`Service::drain`] no new work is taken, and when
/// [`Service::is_idle`] the service may be dropped.
pub trait Service {
    /// Opens the listeners.
    fn start(&mut self, ctx: &mut Context<'_>) -> Result<(), StartError>;

    /// Takes an event of a socket whose owner this service is.
    fn handle_event(&mut self, ctx: &mut Context<'_>, event: Event);

    /// Takes a finished file operation of this service.
    fn handle_file(&mut self, ctx: &mut Context<'_>, done: FileDone);

    /// Acts on deadlines that have passed.
    fn handle_timeout(&mut self, ctx: &mut Context<'_>);

    /// When `handle_timeout` wants to be called next; `None` while no deadline runs.
    fn poll_timeout(&self) -> Option<Instant>;

    /// The next change that this service made to the files it serves. To be asked after every other call, until there
    /// is none, and handed to all other services.
    fn poll_change(&mut self) -> Option<Change> {
        None
    }

    /// Another service changed something.
    fn handle_change(&mut self, _change: &Change) {}

    /// Stops listening and finishes what is under way.
    fn drain(&mut self, ctx: &mut Context<'_>);

    /// The end has come while something is under way: all connections are reset next. What was received is to be kept, and what is cut to
    /// be told of; the files still carry out what is submitted to them now.
    fn cut_off(&mut self, _ctx: &mut Context<'_>) {}

    /// Whether nothing is under way.
    fn is_idle(&self) -> bool;
}
