//! Facts about files for MLST and MLSD (RFC 3659 section 7).

use super::date::Date;
use core::fmt::{self, Write};
use linerate_transport::{FileKind, Metadata, Rights};

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

/// What the user of a session may change, apart from what each file allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Changes {
    /// Files, as far as they can be written.
    pub(super) files: bool,
    /// The names in the directory that is told of.
    pub(super) names: bool,
}

impl Changes {
    /// Everything that the file system allows, or nothing.
    pub(super) fn new(may_write: bool) -> Self {
        Changes { files: may_write, names: may_write }
    }

    /// The names are in a directory with these rights.
    pub(super) fn within(self, directory: Rights) -> Self {
        Changes { names: self.names && directory.change_names(), ..self }
    }
}

/// Writes the facts of a file, each with its `;` and without the space and name that follow. `link`: where it leads, if it is a
/// symbolic link to a directory.
pub(super) fn write(
    out: &mut impl Write,
    set: FactSet,
    meta: &Metadata,
    link: Option<&str>,
    changes: Changes,
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
            3 => write_permissions(out, name, meta, link.is_some(), changes)?,
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

/// What the user may do (RFC 3659 section 7.5.5), as far as he and the process may: with a directory create files in it, enter it, list it,
/// make directories in it and purge it; with a file append to it, retrieve it and store it; delete and rename both, which is
/// a matter of the directory that they are in. A link to a directory is not changed itself.
fn write_permissions(
    out: &mut impl Write,
    name: &str,
    meta: &Metadata,
    is_link: bool,
    changes: Changes,
) -> fmt::Result {
    let Rights { read, write, search } = meta.rights;
    let inside = changes.files && meta.rights.change_names() && !is_link;
    let letters: &[(char, bool)] = match meta.kind {
        FileKind::Directory => &[
            ('c', inside),
            ('d', changes.names),
            ('e', search),
            ('f', changes.names),
            ('l', read),
            ('m', inside),
            ('p', inside),
        ],
        FileKind::File => &[
            ('a', changes.files && write),
            ('d', changes.names),
            ('f', changes.names),
            ('r', read),
            ('w', changes.files && write),
        ],
        FileKind::Other => &[('d', changes.names), ('f', changes.names)],
    };
    write!(out, "{name}=")?;
    letters.iter().filter(|(_, may)| *may).try_for_each(|(letter, _)| out.write_char(*letter))?;
    out.write_char(';')
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};

    fn meta(kind: FileKind, inode: u64, mode: u16) -> Metadata {
        Metadata {
            kind,
            len: 12,
            modified_ns: 1_709_208_000_000_000_000,
            changed_ns: 0,
            inode,
            mode,
            rights: Rights::of_class(mode >> 6),
        }
    }

    fn check(list: &str, meta: Metadata, may_write: bool, expected: &str) {
        let mut out = String::new();
        write(&mut out, FactSet::parse(list), &meta, None, Changes::new(may_write)).unwrap();
        assert_eq!(out, expected, "{list}");
    }

    #[test]
    fn facts_are_those_that_were_asked_for() {
        let all = FactSet::default().to_string();
        assert_eq!(all, "Type;Size;Modify;Perm;Unique;UNIX.mode;");
        check(
            &all,
            meta(FileKind::File, 255, 0o640),
            true,
            "Type=file;Size=12;Modify=20240229120000;Perm=adfrw;Unique=ff;UNIX.mode=0640;",
        );
        let dir = "Type=dir;Modify=20240229120000;Perm=el;UNIX.mode=0750;";
        check(&all, meta(FileKind::Directory, 0, 0o750), false, dir);
        check("size;TYPE;colour;", meta(FileKind::File, 1, 0o640), false, "Type=file;Size=12;");
        check("", meta(FileKind::File, 1, 0o640), false, "");
    }

    #[test]
    fn nothing_is_promised_that_is_refused() {
        let (file, dir, other) = (FileKind::File, FileKind::Directory, FileKind::Other);
        let check = |kind, bits: u16, link: Option<&str>, changes, expected: &str| {
            let mut out = String::new();
            write(&mut out, FactSet::parse("Perm;"), &meta(kind, 1, bits << 6), link, changes).unwrap();
            assert_eq!(out, expected, "{kind:?} {bits:o} {changes:?}");
        };
        let everything = Changes::new(true);
        let only_files = everything.within(Rights::of_class(0o5));
        for (kind, bits, changes, expected) in [
            (file, 0o6, everything, "Perm=adfrw;"),
            (file, 0o4, everything, "Perm=dfr;"),
            (file, 0o2, everything, "Perm=adfw;"),
            (file, 0o0, everything, "Perm=df;"),
            (file, 0o6, only_files, "Perm=arw;"),
            (file, 0o4, only_files, "Perm=r;"),
            (file, 0o0, only_files, "Perm=;"),
            (file, 0o7, Changes::new(false), "Perm=r;"),
            (dir, 0o7, everything, "Perm=cdeflmp;"),
            (dir, 0o5, everything, "Perm=defl;"),
            (dir, 0o7, only_files, "Perm=celmp;"),
            (dir, 0o6, everything, "Perm=dfl;"),
            (dir, 0o1, only_files, "Perm=e;"),
            (dir, 0o7, Changes::new(false), "Perm=el;"),
            (other, 0o6, everything, "Perm=df;"),
            (other, 0o6, Changes::new(false), "Perm=;"),
        ] {
            check(kind, bits, None, changes, expected);
        }
        check(dir, 0o7, Some("/there"), everything, "Perm=defl;");
    }

    #[test]
    fn the_feature_line_stars_what_is_on() {
        assert_eq!(
            FactSet::parse("Type;Size;").feature().to_string(),
            "Type*;Size*;Modify;Perm;Unique;UNIX.mode;"
        );
    }
}
