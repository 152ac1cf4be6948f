//! What drives a transport: the contract between it and the loop that gives it input, output, time and file data.

use crate::{Bytes, FileError, FileId, Transport};
use alloc::boxed::Box;
use linerate_wire::units::Instant;

/// A part of a file that an engine needs in order to send it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileRequest {
    /// Names the request towards [`Engine::handle_file_data`].
    pub token: u64,
    /// The file.
    pub file: FileId,
    /// First byte.
    pub offset: u64,
    /// Bytes wanted; fewer are an error.
    pub len: usize,
}

/// What is left to send after a call of [`Engine::output`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Left {
    /// Nothing that is due.
    Nothing,
    /// Packets that the device would take now: the next turn should come at once.
    More,
    /// Packets that wait until the device has room.
    DeviceFull,
}

/// What [`Engine::input`] did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Input {
    /// Whether anything had come, left or become due.
    pub moved: bool,
    /// Whether the budget was used up, so that more may wait.
    pub more: bool,
}

/// What [`Engine::output`] did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Output {
    /// Whether anything left.
    pub moved: bool,
    /// What is left.
    pub left: Left,
}

/// A transport with its input and output, as the owner of the loop sees it: our stack on a device, the host's sockets, or
/// an engine on another core.
///
/// One turn of the loop: [`Engine::input`]; finished file operations and events to whom they belong;
/// [`Engine::poll_file_request`] until `None`; [`Engine::output`]. When nothing moved in a turn, the loop calls
/// [`Engine::arm`], and where that finds nothing either, sleeps until [`Engine::poll_timeout`], until input comes, or, while
/// [`Engine::waits_for_room`], until the device has room. What it sleeps on is the business of the host (a descriptor, an
/// interrupt).
pub trait Engine {
    /// Why the device failed. After an error the engine may be asked again.
    type Error;

    /// The sockets.
    fn net(&mut self) -> &mut dyn Transport;

    /// Tells the time where sockets are used long after [`Engine::input`], which tells it too. An engine that does not need
    /// to know ignores it.
    fn set_now(&mut self, _now: Instant) {}

    /// Takes in what has arrived, within a budget, and runs what is due. What came before an error has been taken.
    fn input(&mut self, now: Instant) -> Result<Input, Self::Error>;

    /// Sends what is due, within a budget.
    fn output(&mut self, now: Instant) -> Result<Output, Self::Error>;

    /// When [`Engine::input`] must be called at the latest; `None` while nothing is timed.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Whether packets wait for room in the device.
    fn waits_for_room(&self) -> bool;

    /// Asks what wakes the host (an interrupt) to do so as soon as there is input, something has left, or a full device has
    /// room; true if there is something already, and the loop must not sleep. The default is for engines that the host can
    /// wait for without that (a descriptor that stays readable).
    fn arm(&mut self, _now: Instant) -> bool {
        false
    }

    /// The next part of a file to be read; each is answered with [`Engine::handle_file_data`], in any order. An engine
    /// that reads files by itself asks for nothing.
    fn poll_file_request(&mut self) -> Option<FileRequest> {
        None
    }

    /// The answer to a [`FileRequest`]. An answer that nobody waits for (any more) changes nothing.
    fn handle_file_data(&mut self, _now: Instant, _token: u64, _data: Result<Bytes, FileError>) {}

    /// Bytes of memory that sockets take now: what is charged to them, and their table.
    fn memory_used(&self) -> usize;

    /// Newcomers reset since the start because there was no place for them, and no server heard of them.
    fn refused(&self) -> u64;

    /// Connections whose data or end is not yet acknowledged.
    fn unfinished(&self) -> usize;

    /// Resets all connections; returns how many. The resets leave with the next calls of [`Engine::output`].
    fn abort_all(&mut self, now: Instant) -> usize;

    /// The end: gives back what others lent us, such as an address; true if there was any. What tells them leaves with the
    /// next calls of [`Engine::input`] and [`Engine::output`].
    fn leave(&mut self, _now: Instant) -> bool {
        false
    }
}

impl<E: Engine + ?Sized> Engine for Box<E> {
    type Error = E::Error;

    fn net(&mut self) -> &mut dyn Transport {
        (**self).net()
    }

    fn set_now(&mut self, now: Instant) {
        (**self).set_now(now);
    }

    fn input(&mut self, now: Instant) -> Result<Input, E::Error> {
        (**self).input(now)
    }

    fn output(&mut self, now: Instant) -> Result<Output, E::Error> {
        (**self).output(now)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (**self).poll_timeout()
    }

    fn waits_for_room(&self) -> bool {
        (**self).waits_for_room()
    }

    fn arm(&mut self, now: Instant) -> bool {
        (**self).arm(now)
    }

    fn poll_file_request(&mut self) -> Option<FileRequest> {
        (**self).poll_file_request()
    }

    fn handle_file_data(&mut self, now: Instant, token: u64, data: Result<Bytes, FileError>) {
        (**self).handle_file_data(now, token, data);
    }

    fn memory_used(&self) -> usize {
        (**self).memory_used()
    }

    fn refused(&self) -> u64 {
        (**self).refused()
    }

    fn unfinished(&self) -> usize {
        (**self).unfinished()
    }

    fn abort_all(&mut self, now: Instant) -> usize {
        (**self).abort_all(now)
    }

    fn leave(&mut self, now: Instant) -> bool {
        (**self).leave(now)
    }
}
