//! Uploads whose session is over while what came is still being written: their line in the log waits for how that ends.

use super::hub::{JobId, Kind, Turn};
use super::transfer::Transfer;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::SocketAddr;
use linerate_transport::FileError;
use linerate_wire::units::Instant;

/// An upload, and whose it was.
pub(super) struct Left {
    pub(super) transfer: Transfer,
    pub(super) peer: SocketAddr,
    pub(super) user: String,
}

impl Left {
    fn tell(&self, now: Instant) {
        self.transfer.tell(self.peer, &self.user, now);
    }
}

/// Those of all sessions.
#[derive(Default)]
pub(super) struct Leaving(Vec<Left>);

impl Leaving {
    pub(super) fn add(&mut self, left: Left) {
        self.0.push(left);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// An operation on the file of a session that is over has ended.
    pub(super) fn on_file(
        &mut self,
        turn: &mut Turn<'_, '_>,
        job: JobId,
        kind: Kind,
        result: Result<(), FileError>,
    ) {
        let Some(at) = self.0.iter().position(|left| left.transfer.is_of(job)) else { return };
        if self.0[at].transfer.on_written(turn, kind, result) {
            self.0.swap_remove(at).tell(turn.now());
        }
    }

    /// Tells of all that are left, as far as it is known how they end.
    pub(super) fn tell_all(&mut self, now: Instant) {
        self.0.drain(..).for_each(|left| left.tell(now));
    }
}
