//! One connection of the client, and what it still owes.

use super::response::Response;
use rustix::fd::OwnedFd;
use std::collections::VecDeque;

/// Where in its life a connection is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Under way to the server.
    Connecting,
    /// Requests can be sent.
    Open,
    /// All is answered, and the server is to close first: its side then keeps the port for a while and not ours.
    Closing {
        /// Since when.
        since_ns: u64,
    },
}

/// A request that was sent, or is being sent.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// When it was due.
    pub due_ns: u64,
    /// When it was sent.
    pub at_ns: u64,
    /// Whether its answer has begun.
    pub begun: bool,
}

/// One connection.
#[derive(Debug)]
pub struct Connection {
    /// Its socket, which does not block.
    pub socket: OwnedFd,
    /// Where in its life it is.
    pub stage: Stage,
    /// When it was due.
    pub due_ns: u64,
    /// Requests that are due and wait for their turn: when they were due.
    pub waiting: VecDeque<u64>,
    /// The request under way.
    pub asked: Option<Asked>,
    /// Bytes of that which have not been sent.
    pub unsent: usize,
    /// Since when it could send.
    pub free_since_ns: u64,
    /// Requests of it that are not answered.
    pub left: u32,
    /// The answer that comes in.
    pub response: Response,
}

impl Connection {
    /// One that begins.
    pub fn new(socket: OwnedFd, due_ns: u64, left: u32) -> Connection {
        Connection {
            socket,
            stage: Stage::Connecting,
            due_ns,
            waiting: VecDeque::new(),
            asked: None,
            unsent: 0,
            free_since_ns: 0,
            left,
            response: Response::default(),
        }
    }

    /// Since when the oldest that it waits for is due; `None` while it waits for nothing.
    pub fn oldest_ns(&self) -> Option<u64> {
        let asked = self.asked.map(|asked| asked.due_ns).or_else(|| self.waiting.front().copied());
        match self.stage {
            Stage::Connecting => Some(asked.unwrap_or(self.due_ns)),
            Stage::Open => asked,
            Stage::Closing { .. } => None,
        }
    }

    /// When requests were due that are not answered, as far as they were due by now.
    pub fn owed(&self) -> impl Iterator<Item = u64> {
        self.asked.iter().map(|asked| asked.due_ns).chain(self.waiting.iter().copied())
    }
}
