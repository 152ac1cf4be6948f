//! Paths under a virtual root that no spelling can leave.

use alloc::string::String;
use core::fmt;

/// Longest virtual path in bytes, as PATH_MAX on Linux.
pub const MAX_PATH: usize = 4096;
/// Longest name of one component in bytes, as NAME_MAX on Linux.
pub const MAX_NAME: usize = 255;

/// An absolute, normalised path under the virtual root: begins with `/`, no `.`, `..` or empty component, no trailing
/// slash (but for `/` itself), no NUL, CR, LF or other control character.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VirtualPath {
    path: String,
}

/// What is wrong with a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathError {
    /// A control character (NUL, CR, LF, ...).
    ControlCharacter,
    /// Longer than [`MAX_PATH`], or a component longer than [`MAX_NAME`].
    TooLong,
    /// `..` above the root.
    AboveRoot,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PathError::ControlCharacter => "control character in path",
            PathError::TooLong => "path too long",
            PathError::AboveRoot => "path leads above the root",
        })
    }
}

impl core::error::Error for PathError {}

impl VirtualPath {
    /// The root `/`.
    pub fn root() -> Self {
        VirtualPath { path: String::from("/") }
    }

    /// Resolves `input` against `self`: absolute if it begins with `/`, relative otherwise; `.` and `..` are resolved
    /// by name. `..` above the root is an error, so that a traversal attempt is seen and not silently bent.
    pub fn join(&self, input: &str) -> Result<VirtualPath, PathError> {
        if is_normal(input) {
            return Ok(VirtualPath { path: String::from(input) });
        }
        if input.chars().any(char::is_control) {
            return Err(PathError::ControlCharacter);
        }
        let mut path =
            if input.starts_with('/') || self.is_root() { String::new() } else { self.path.clone() };
        for component in input.split('/') {
            match component {
                "" | "." => {}
                ".." => match path.rfind('/') {
                    Some(at) => path.truncate(at),
                    None => return Err(PathError::AboveRoot),
                },
                name if name.len() > MAX_NAME => return Err(PathError::TooLong),
                name => {
                    path.push('/');
                    path.push_str(name);
                }
            }
            if path.len() > MAX_PATH {
                return Err(PathError::TooLong);
            }
        }
        if path.is_empty() {
            path.push('/');
        }
        Ok(VirtualPath { path })
    }

    /// Resolves `input` against the root.
    pub fn parse(input: &str) -> Result<VirtualPath, PathError> {
        VirtualPath::root().join(input)
    }

    /// The path with its leading slash.
    pub fn as_str(&self) -> &str {
        &self.path
    }

    /// The path without its leading slash, empty for the root: what to give to `openat` on the root's descriptor.
    pub fn relative(&self) -> &str {
        &self.path[1..]
    }

    /// Whether it is the root.
    pub fn is_root(&self) -> bool {
        self.path.len() == 1
    }

    /// Whether it is `directory`, or lies in or below it.
    pub fn is_within(&self, directory: &VirtualPath) -> bool {
        match self.path.strip_prefix(&directory.path) {
            Some(rest) => directory.is_root() || rest.is_empty() || rest.starts_with('/'),
            None => false,
        }
    }

    /// The last component; empty for the root.
    pub fn name(&self) -> &str {
        // Bytes compare faster than characters; a slash is no part of another one.
        let at = self.path.as_bytes().iter().rposition(|byte| *byte == b'/');
        at.and_then(|at| self.path.get(at + 1..)).unwrap_or("")
    }

    /// The directory it lies in; the root's is the root.
    pub fn parent(&self) -> VirtualPath {
        match self.path.rfind('/') {
            Some(at) if at > 0 => VirtualPath { path: String::from(&self.path[..at]) },
            _ => VirtualPath::root(),
        }
    }
}

/// Whether an absolute path surely is what it resolves to, which nearly all are: none of its components begins with a dot, it
/// is in ASCII, and short.
fn is_normal(input: &str) -> bool {
    let bytes = input.as_bytes();
    if bytes.first() != Some(&b'/') || bytes.len() > MAX_NAME || bytes.last() == Some(&b'/') {
        return false;
    }
    let mut before = 0;
    bytes.iter().all(|&byte| {
        let begins = core::mem::replace(&mut before, byte) == b'/';
        (b' '..0x7F).contains(&byte) && !(begins && matches!(byte, b'/' | b'.'))
    })
}

impl fmt::Display for VirtualPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)
    }
}

impl fmt::Debug for VirtualPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.path, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(base: &str, input: &str, expected: Result<&str, PathError>) {
        let base = VirtualPath::parse(base).unwrap();
        assert_eq!(base.join(input).as_ref().map(VirtualPath::as_str).map_err(|e| *e), expected, "{input:?}");
    }

    #[test]
    fn paths_resolve_by_name_and_never_leave_the_root() {
        check("/", "a/b", Ok("/a/b"));
        check("/a", "b/../c/./d//", Ok("/a/c/d"));
        check("/a", "/x", Ok("/x"));
        check("/a/b", "..", Ok("/a"));
        check("/a", "..", Ok("/"));
        check("/a", "../..", Err(PathError::AboveRoot));
        check("/", "..", Err(PathError::AboveRoot));
        check("/", "a\0b", Err(PathError::ControlCharacter));
        check("/", "a\r\nb", Err(PathError::ControlCharacter));
        assert_eq!(VirtualPath::parse("/a/b").unwrap().name(), "b");
        assert_eq!(VirtualPath::parse("/a/b").unwrap().parent().as_str(), "/a");
        assert_eq!(VirtualPath::parse("/a").unwrap().parent().as_str(), "/");
        assert_eq!(VirtualPath::root().name(), "");
    }

    proptest! {
        #[test]
        fn whatever_is_accepted_is_normal(base in "(/[a-c.]{0,3}){0,4}", input in "[a-c./\\\\ é]{0,24}") {
            let Ok(base) = VirtualPath::parse(&base) else { return Ok(()) };
            if let Ok(path) = base.join(&input) {
                prop_assert!(path.as_str().starts_with('/'));
                prop_assert!(path.is_root() || !path.as_str().ends_with('/'));
                prop_assert!(path.relative().split('/').all(|c| c != ".." && c != "."));
                let again = VirtualPath::parse(path.as_str()).unwrap();
                prop_assert_eq!(&again, &path);
            }
        }
    }
}
