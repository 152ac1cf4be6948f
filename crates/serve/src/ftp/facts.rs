//! Facts about files for MLST and MLSD (RFC 3659 section 7).

use super::date::Date;
use core::fmt::{self, Write};
use linerate_transport::{FileKind, Metadata};

/// The facts that we know, in the order in which they are written.
const NAMES: [&str; 6] = ["Type", "Size", "Modify", "Perm", "Unique", "UNIX.mode"];

/// Which facts a session wants (RFC 3659 section 7.9).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FactSet(u8);

impl Default for FactSet {
    /// All of them.
    fn default() -> Self {
        FactSet((1 << NAMES.len()) - 1)
    }
}

impl FactSet {
    /// Reads the list of OPTS MLST: names that end in `;`, unknown ones are passed over.
    pub(super) fn parse(list: &str) -> FactSet {
        let mut set = 0;
        for name in list.split(';') {
            if let Some(at) = NAMES.iter().position(|known| known.eq_ignore_ascii_case(name)) {
                set |= 1 << at;
            }
        }
        FactSet(set)
    }

    fn has(self, at: usize) -> bool {
        self.0 >> at & 1 == 1
    }

    /// The line of FEAT: all facts, those that are on with a star (RFC 3659 section 7.8).
    pub(super) fn feature(self) -> Feature {
        Feature(self)
    }
}

/// [`FactSet::feature`].
pub(super) struct Feature(FactSet);

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in NAMES.iter().enumerate() {
            write!(f, "{name}{};", if self.0.has(at) { "*" } else { "" })?;
        }
        Ok(())
    }
}

impl fmt::Display for FactSet {
    /// The facts that are on, each with its `;`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in NAMES.iter().enumerate() {
            if self.has(at) {
                write!(f, "{name};")?;
            }
        }
        Ok(())
    }
}

/// Writes the facts of a file, each with its `;` and without the space and name that follow. `may_write`: whether
/// the user may change files; `link`: where it leads, if it is a symbolic link to a directory.
pub(super) fn write(
    out: &mut impl Write,
    set: FactSet,
    meta: &Metadata,
    link: Option<&str>,
    may_write: bool,
) -> fmt::Result {
    let directory = meta.kind == FileKind::Directory;
    for (at, name) in NAMES.iter().enumerate() {
        if !set.has(at) {
            continue;
        }
        match at {
            0 => write_type(out, name, meta.kind, link)?,
            1 if !directory => write!(out, "{name}={};", meta.len)?,
            2 => write!(out, "{name}={};", Date::from_unix_ns(meta.modified_ns))?,
            3 if link.is_some() => write!(out, "{name}={};", if may_write { "defl" } else { "el" })?,
            3 => write!(out, "{name}={};", permissions(directory, may_write))?,
            4 if meta.inode != 0 => write!(out, "{name}={:x};", meta.inode)?,
            5 => write!(out, "{name}={:04o};", meta.mode & 0o777)?,
            _ => {}
        }
    }
    Ok(())
}

/// RFC 3659 section 7.5.1; links as its examples and other servers have them. A value can hold no space and no semicolon.
fn write_type(out: &mut impl Write, name: &str, kind: FileKind, link: Option<&str>) -> fmt::Result {
    match link {
        Some(target) if target.contains([' ', ';']) => write!(out, "{name}=OS.unix=symlink;"),
        Some(target) => write!(out, "{name}=OS.unix=slink:{target};"),
        None => write!(out, "{name}={};", type_of(kind)),
    }
}

fn type_of(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "file",
        FileKind::Directory => "dir",
        FileKind::Other => "OS.unix=other",
    }
}

/// What the user may do: for a directory enter, list, and if he may write create, delete, rename, make and purge; for
/// a file retrieve, and if he may write append, delete, rename and store (RFC 3659 section 7.5.5).
fn permissions(directory: bool, may_write: bool) -> &'static str {
    match (directory, may_write) {
        (true, true) => "cdeflmp",
        (true, false) => "el",
        (false, true) => "adfrw",
        (false, false) => "r",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};

    fn check(list: &str, kind: FileKind, inode: u64, may_write: bool, expected: &str) {
        let meta = Metadata {
            kind,
            len: 12,
            modified_ns: 1_709_208_000_000_000_000,
            changed_ns: 0,
            inode,
            mode: 0o640,
        };
        let mut out = String::new();
        write(&mut out, FactSet::parse(list), &meta, None, may_write).unwrap();
        assert_eq!(out, expected, "{list}");
    }

    #[test]
    fn facts_are_those_that_were_asked_for() {
        let all = FactSet::default().to_string();
        assert_eq!(all, "Type;Size;Modify;Perm;Unique;UNIX.mode;");
        check(
            &all,
            FileKind::File,
            255,
            true,
            "Type=file;Size=12;Modify=20240229120000;Perm=adfrw;Unique=ff;UNIX.mode=0640;",
        );
        check(&all, FileKind::Directory, 0, false, "Type=dir;Modify=20240229120000;Perm=el;UNIX.mode=0640;");
        check("size;TYPE;colour;", FileKind::File, 1, false, "Type=file;Size=12;");
        check("", FileKind::File, 1, false, "");
    }

    #[test]
    fn the_feature_line_stars_what_is_on() {
        assert_eq!(
            FactSet::parse("Type;Size;").feature().to_string(),
            "Type*;Size*;Modify;Perm;Unique;UNIX.mode;"
        );
    }
}
