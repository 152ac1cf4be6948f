//! The name that a session uploads to: nobody else may upload to it, remove or rename it meanwhile.

use super::hub::{Hub, Turn};
use super::reply::{Replies, reply};
use crate::Change;
use linerate_transport::VirtualPath;

/// The name that a session uploads to, if it does.
#[derive(Default)]
pub(super) struct UploadName {
    path: Option<VirtualPath>,
}

impl UploadName {
    /// Notes that this session uploads to a name, unless another one does.
    pub(super) fn take(&mut self, turn: &mut Turn<'_, '_>, path: &VirtualPath) -> Result<(), Replies> {
        if !turn.hub.uploads.take(path) {
            return Err(under_way());
        }
        self.path = Some(path.clone());
        Ok(())
    }

    /// The upload is over: tells the other servers what changed, and releases the name.
    pub(super) fn finish(&mut self, turn: &mut Turn<'_, '_>) {
        if let Some(path) = self.path.clone() {
            turn.hub.changes.push(Change::Path(path));
        }
        self.release(turn);
    }

    /// The upload is over, or did not begin.
    pub(super) fn release(&mut self, turn: &mut Turn<'_, '_>) {
        if let Some(path) = self.path.take() {
            turn.hub.uploads.release(&path);
        }
    }
}

/// Refuses what would be done to a name that somebody uploads to, or below it: it would meet half a file.
pub(super) fn check_free(hub: &Hub, path: &VirtualPath) -> Result<(), Replies> {
    if hub.uploads.holds(path) { Err(under_way()) } else { Ok(()) }
}

/// Refuses a directory of a name that somebody uploads to: it would be in the way of the file when that gets its name. One above
/// such a name is there already, which is what its maker is to be told.
pub(super) fn check_vacant(hub: &Hub, path: &VirtualPath) -> Result<(), Replies> {
    if hub.uploads.holds_itself(path) { Err(under_way()) } else { Ok(()) }
}

fn under_way() -> Replies {
    reply(450, "An upload to this name is under way, try later")
}
