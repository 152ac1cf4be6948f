//! STAT with a path: a listing over the control connection.

use super::hub::{JobId, Kind, Turn};
use super::listing::Listing;
use super::reply::Replies;
use super::send::PAGE_ENTRIES;
use alloc::vec::Vec;
use linerate_transport::{FileError, FileId, FileOp, FileReply};

/// Bytes of listing made at once.
const LISTING_LEN: usize = 4096;

/// A listing over the control connection.
pub(super) struct StatusJob {
    job: JobId,
    listing: Listing,
    dir: Option<FileId>,
    /// A page is being read.
    pub(super) waiting: bool,
}

impl StatusJob {
    pub(super) fn new(job: JobId, listing: Listing, dir: Option<FileId>) -> Self {
        StatusJob { job, listing, dir, waiting: false }
    }

    /// Adds some lines to the replies, or asks for the next page. True when those were the last.
    pub(super) fn write(&mut self, turn: &mut Turn<'_, '_>, replies: &mut Replies) -> bool {
        if self.waiting {
            return false;
        }
        let mut lines = Vec::new();
        self.listing.write(&mut lines, LISTING_LEN);
        let finished = self.listing.is_finished();
        if let Some(dir) = self.dir.filter(|_| lines.is_empty() && !finished) {
            self.waiting = true;
            turn.submit(self.job, Kind::ReadDir, FileOp::ReadDir { dir, limit: PAGE_ENTRIES });
            return false;
        }
        replies.raw(&lines);
        if finished {
            self.abandon(turn);
            replies.line(213, "End");
        }
        finished
    }

    /// A page was read. An error ends the listing.
    pub(super) fn on_page(
        &mut self,
        turn: &mut Turn<'_, '_>,
        result: Result<FileReply, FileError>,
    ) -> Result<(), FileError> {
        self.waiting = false;
        if let FileReply::Entries(page) = result? {
            turn.hub.stats.unfit_names += self.listing.add(page);
        }
        Ok(())
    }

    /// Lets the directory go.
    pub(super) fn abandon(&self, turn: &mut Turn<'_, '_>) {
        turn.close(self.job, self.dir);
    }
}
