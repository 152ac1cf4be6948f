//! What is in a directory.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use linerate_transport::{DirEntry, Metadata};

/// Names with their metadata, each once.
#[derive(Default)]
pub(super) struct Names {
    left: BTreeMap<String, Metadata>,
}

impl Names {
    /// Adds a name; the first one that came counts.
    pub(super) fn add(&mut self, name: &str, meta: Metadata) {
        if !self.left.contains_key(name) {
            self.left.insert(name.into(), meta);
        }
    }

    /// Takes up to `limit` of them.
    pub(super) fn take(&mut self, limit: usize) -> Vec<DirEntry> {
        let mut entries = Vec::new();
        while entries.len() < limit.max(1) {
            let Some((name, meta)) = self.left.pop_first() else { break };
            entries.push(DirEntry { name, meta, link: None });
        }
        entries
    }
}

/// The rest of a path below a directory, without the slash between.
pub(super) fn below<'a>(directory: &str, path: &'a str) -> Option<&'a str> {
    let rest = path.strip_prefix(directory.trim_end_matches('/'))?;
    rest.strip_prefix('/').filter(|rest| !rest.is_empty())
}
