//! The life of a connection: its state, its end, and what the application hears of both.

use super::super::state::State;
use linerate_transport::{CloseReason, Ready};
use linerate_wire::tcp::SeqNumber;

/// See the module.
#[derive(Debug)]
pub(super) struct Life {
    pub(super) state: State,
    pub(super) reason: Option<CloseReason>,
    pub(super) soft_error: Option<CloseReason>,
    /// What the application has not heard of.
    pub(super) ready: Ready,
    pub(super) keep_alive_due: bool,
    pub(super) keep_alives: u8,
    pub(super) reset_due: bool,
    /// A reset that answers one segment and changes nothing.
    pub(super) reset_reply: Option<SeqNumber>,
    /// The application has let go.
    pub(super) released: bool,
    /// Data that comes after that resets.
    pub(super) is_strict: bool,
    /// Otherwise data beyond this position does: the edge of the window when the first came after all of ours was delivered.
    pub(super) discards_to: Option<u64>,
}

impl Life {
    /// Before the SYN.
    pub(super) fn new() -> Life {
        Life {
            state: State::SynSent,
            reason: None,
            soft_error: None,
            ready: Ready::NONE,
            keep_alive_due: false,
            keep_alives: 0,
            reset_due: false,
            reset_reply: None,
            released: false,
            is_strict: false,
            discards_to: None,
        }
    }

    /// The application shall hear of this, unless it has let go.
    pub(super) fn tell(&mut self, ready: Ready) {
        if !self.released {
            self.ready |= ready;
        }
    }

    /// It is over for the application. The first reason counts.
    pub(super) fn close(&mut self, reason: CloseReason) {
        if self.reason.is_none() {
            self.reason = Some(reason);
            self.tell(Ready::CLOSED);
        }
    }

    /// Whether nothing is to be sent for its own sake, nor told.
    pub(super) fn is_quiet(&self) -> bool {
        !self.keep_alive_due
            && !self.reset_due
            && self.reset_reply.is_none()
            && (self.state != State::FinWait2 || self.discards_to.is_none())
            && self.ready == Ready::NONE
    }
}
