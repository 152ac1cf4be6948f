//! Directories being read for a listing.

use super::autoindex;
use super::ops::{Ops, Purpose};
use crate::Context;
use alloc::vec::Vec;
use linerate_transport::{
    ConnId, DirEntry, FileError, FileId, FileKind, FileOp, FileReply, OpenMode, VirtualPath,
};

/// Entries asked for at once.
const BATCH: usize = 1_000;

#[derive(Debug)]
struct Listing {
    conn: ConnId,
    path: VirtualPath,
    dir: Option<FileId>,
    entries: Vec<DirEntry>,
    /// The connection is gone: close the directory at the next answer.
    orphan: bool,
}

/// A listing that is complete, or failed.
pub(super) struct Listed {
    /// Who asked.
    pub conn: ConnId,
    /// The page.
    pub page: Result<Vec<u8>, FileError>,
}

/// What a listing shows.
#[derive(Clone, Copy)]
pub(super) struct ListingRules {
    /// Most entries.
    pub entries: usize,
    /// Names that begin with a dot, too.
    pub hidden: bool,
}

/// The listings under way.
#[derive(Debug, Default)]
pub(super) struct Listings {
    slots: Vec<Option<Listing>>,
}

impl Listings {
    /// Listings under way.
    pub fn len(&self) -> usize {
        self.slots.iter().flatten().count()
    }

    /// Starts to read a directory; `None` when `limit` are under way.
    pub fn start(
        &mut self,
        ctx: &mut Context<'_>,
        ops: &mut Ops,
        limit: usize,
        conn: ConnId,
        path: &VirtualPath,
    ) -> Option<u32> {
        if self.len() >= limit {
            return None;
        }
        let slot = match self.slots.iter().position(Option::is_none) {
            Some(slot) => slot,
            None => {
                self.slots.push(None);
                self.slots.len() - 1
            }
        };
        let listing = Listing { conn, path: path.clone(), dir: None, entries: Vec::new(), orphan: false };
        self.slots[slot] = Some(listing);
        let slot = slot as u32;
        let op = FileOp::Open { path: path.clone(), mode: OpenMode::Read };
        ops.submit(ctx, Purpose::Listing(slot), op);
        Some(slot)
    }

    /// The connection that waited for listing `slot` is gone.
    pub fn abandon(&mut self, slot: u32) {
        if let Some(Some(listing)) = self.slots.get_mut(slot as usize) {
            listing.orphan = true;
            listing.entries = Vec::new();
        }
    }

    /// Takes the answer to an operation of listing `slot`.
    pub fn handle_done(
        &mut self,
        ctx: &mut Context<'_>,
        ops: &mut Ops,
        rules: ListingRules,
        slot: u32,
        result: Result<FileReply, FileError>,
    ) -> Option<Listed> {
        let listing = self.slots.get_mut(slot as usize)?.as_mut()?;
        let end = match result {
            Ok(FileReply::Opened { file, meta }) => {
                listing.dir = Some(file);
                if meta.kind == FileKind::Directory { None } else { Some(Err(FileError::NotADirectory)) }
            }
            Ok(FileReply::Entries(batch)) => listing.add(batch, rules).map(Ok),
            Ok(_) => Some(Err(FileError::Io)),
            Err(error) => Some(Err(error)),
        };
        if end.is_none() && !listing.orphan {
            let dir = listing.dir?;
            ops.submit(ctx, Purpose::Listing(slot), FileOp::ReadDir { dir, limit: BATCH });
            return None;
        }
        let mut listing = self.slots.get_mut(slot as usize)?.take()?;
        if let Some(dir) = listing.dir {
            ops.close(ctx, dir);
        }
        if listing.orphan {
            return None;
        }
        let page = end?.map(|truncated| autoindex::render(&listing.path, &mut listing.entries, truncated));
        Some(Listed { conn: listing.conn, page })
    }
}

impl Listing {
    /// Adds entries; `Some` at the end, with whether there are more than are shown.
    fn add(&mut self, batch: Vec<DirEntry>, rules: ListingRules) -> Option<bool> {
        if batch.is_empty() {
            return Some(false);
        }
        for entry in batch {
            let shown = entry.meta.kind != FileKind::Other && (rules.hidden || !entry.name.starts_with('.'));
            if !shown {
                continue;
            }
            if self.entries.len() >= rules.entries {
                return Some(true);
            }
            self.entries.push(entry);
        }
        None
    }
}
