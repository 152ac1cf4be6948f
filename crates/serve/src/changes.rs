//! What one server changed in the served files, for the others to hear of before they answer anything else.
//!
//! Servers do not know each other. Whoever owns the loop asks a service after each call with
//! [`Service::poll_change`](crate::Service::poll_change) and hands what it tells to all the others with
//! [`Service::handle_change`](crate::Service::handle_change).

use alloc::collections::VecDeque;
use linerate_transport::VirtualPath;

/// Something under the root is no longer what it was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// The file or directory of this name was made, replaced, written, removed, or its attributes changed.
    Path(VirtualPath),
    /// The same for this name and everything below it.
    Tree(VirtualPath),
}

impl Change {
    /// Whether it may have changed what `path` names.
    pub fn concerns(&self, path: &VirtualPath) -> bool {
        match self {
            Change::Path(changed) => path == changed,
            Change::Tree(changed) => path.is_within(changed),
        }
    }
}

/// Changes that nobody has asked for yet.
#[derive(Debug, Default)]
pub struct Changes {
    queue: VecDeque<Change>,
}

impl Changes {
    /// Most changes kept; where nobody asks, one that concerns everything takes their place.
    const MAX: usize = 256;

    /// Notes a change.
    pub fn push(&mut self, change: Change) {
        if self.queue.len() >= Self::MAX {
            self.queue.clear();
            self.queue.push_back(Change::Tree(VirtualPath::root()));
        } else if self.queue.back() != Some(&change) {
            self.queue.push_back(change);
        }
    }

    /// The oldest change.
    pub fn pop(&mut self) -> Option<Change> {
        self.queue.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> VirtualPath {
        VirtualPath::parse(text).unwrap()
    }

    #[test]
    fn a_tree_is_a_name_and_what_lies_below() {
        for (changed, other, expected) in [
            ("/a", "/a", true),
            ("/a", "/a/b/c", true),
            ("/a", "/ab", false),
            ("/a/b", "/a", false),
            ("/", "/a", true),
            ("/", "/", true),
        ] {
            assert_eq!(Change::Tree(path(changed)).concerns(&path(other)), expected, "{changed} {other}");
            assert_eq!(Change::Path(path(changed)).concerns(&path(other)), changed == other);
        }
    }

    #[test]
    fn what_nobody_asks_for_is_bounded_and_not_lost() {
        let mut changes = Changes::default();
        for number in 0..1_000 {
            changes.push(Change::Path(path(&alloc::format!("/{number}"))));
            changes.push(Change::Path(path(&alloc::format!("/{number}"))));
        }
        let mut count = 0;
        let mut first = false;
        while let Some(change) = changes.pop() {
            count += 1;
            first |= change.concerns(&path("/0"));
        }
        assert!(count <= Changes::MAX && first);
    }
}
