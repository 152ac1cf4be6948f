//! The names that are being uploaded to, of one server or of several over the same files.

use alloc::collections::BTreeSet;
use core::cell::RefCell;
use linerate_transport::VirtualPath;

/// Names that are being uploaded to: nobody else may upload to them, remove or rename them. Servers in several threads over the
/// same files have one in common ([`Server::share`](super::Server::share)).
pub trait UploadNames {
    /// Notes an upload to this name; false if one is under way there or below.
    fn take(&self, name: &VirtualPath) -> bool;

    /// The upload is over.
    fn release(&self, name: &VirtualPath);

    /// Whether one is under way to this name or to one below it.
    fn holds(&self, path: &VirtualPath) -> bool;

    /// Whether one is under way to this very name.
    fn holds_itself(&self, name: &VirtualPath) -> bool;
}

/// A set of names; what [`UploadNames`] is to do with it.
#[derive(Clone, Debug, Default)]
pub struct NameSet(BTreeSet<VirtualPath>);

impl NameSet {
    /// See [`UploadNames::take`].
    pub fn take(&mut self, name: &VirtualPath) -> bool {
        !self.holds(name) && self.0.insert(name.clone())
    }

    /// See [`UploadNames::release`].
    pub fn release(&mut self, name: &VirtualPath) {
        self.0.remove(name);
    }

    /// See [`UploadNames::holds`].
    pub fn holds(&self, path: &VirtualPath) -> bool {
        let from = self.0.range(path.clone()..);
        from.take_while(|name| name.as_str().starts_with(path.as_str())).any(|name| name.is_within(path))
    }

    /// See [`UploadNames::holds_itself`].
    pub fn holds_itself(&self, name: &VirtualPath) -> bool {
        self.0.contains(name)
    }
}

/// The names of a server that has its files for itself.
#[derive(Debug, Default)]
pub(super) struct OwnNames(RefCell<NameSet>);

impl UploadNames for OwnNames {
    fn take(&self, name: &VirtualPath) -> bool {
        self.0.borrow_mut().take(name)
    }

    fn release(&self, name: &VirtualPath) {
        self.0.borrow_mut().release(name);
    }

    fn holds(&self, path: &VirtualPath) -> bool {
        self.0.borrow().holds(path)
    }

    fn holds_itself(&self, name: &VirtualPath) -> bool {
        self.0.borrow().holds_itself(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_held_for_itself_and_for_what_is_above_it() {
        let path = |text: &str| VirtualPath::parse(text).unwrap();
        let mut names = NameSet::default();
        assert!(names.take(&path("/a/b")) && !names.take(&path("/a/b")));
        assert!(names.holds(&path("/a")) && names.holds(&path("/")) && !names.take(&path("/a")));
        assert!(!names.holds(&path("/a/bc")) && !names.holds(&path("/a/b/c")));
        assert!(names.holds_itself(&path("/a/b")) && !names.holds_itself(&path("/a")));
        names.release(&path("/a/b"));
        assert!(!names.holds(&path("/")));
    }
}
