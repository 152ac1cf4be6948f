//! Directory listings as LIST, NLST, MLSD and STAT send them, page by page.

use super::date;
use super::facts::{self, Changes, FactSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};
use linerate_transport::{DirEntry, FileKind, Metadata, Rights, VirtualPath};

/// What a listing command asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ListArgs<'a> {
    /// Show names that begin with a dot.
    pub(super) hidden: bool,
    /// The path; empty for the working directory.
    pub(super) path: &'a str,
}

impl<'a> ListArgs<'a> {
    /// Takes options as of `ls` off the argument, because clients send `LIST -la`. Only `a` and `A` mean something
    /// here; `--` ends the options.
    pub(super) fn parse(arg: &'a str) -> Self {
        let mut args = ListArgs { hidden: false, path: arg };
        while let Some(options) = args.path.strip_prefix('-') {
            let (word, rest) = options.split_once(' ').unwrap_or((options, ""));
            if word != "-" && !word.bytes().all(|b| b.is_ascii_alphanumeric()) {
                break;
            }
            args.hidden |= word.contains(['a', 'A']);
            args.path = rest.trim_start_matches(' ');
            if word == "-" {
                break;
            }
        }
        args
    }
}

/// Divides a path whose last component has `*` or `?` into the directory and the pattern.
pub(super) fn split_pattern(path: &str) -> Option<(&str, &str)> {
    let (directory, last) = match path.rfind('/') {
        Some(at) => path.split_at(at + 1),
        None => ("", path),
    };
    last.contains(['*', '?']).then_some((directory, last))
}

/// Whether `name` fits a pattern of characters, `?` (any one) and `*` (any number).
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let (mut pattern, mut name) = (pattern.chars(), name.chars());
    // Where to go on when the last star has to take one character more.
    let mut retry: Option<(core::str::Chars<'_>, core::str::Chars<'_>)> = None;
    loop {
        let rest = name.clone();
        match (pattern.next(), name.next()) {
            (Some('*'), _) => {
                name = rest;
                retry = Some((pattern.clone(), name.clone()));
            }
            (None, None) => return true,
            (Some('?'), Some(_)) => {}
            (Some(p), Some(c)) if p == c => {}
            _ => {
                let Some((after_star, mut longer)) = retry.take() else { return false };
                if longer.next().is_none() {
                    return false;
                }
                pattern = after_star.clone();
                name = longer.clone();
                retry = Some((after_star, longer));
            }
        }
    }
}

/// How entries are written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Format {
    /// As `ls -l` does, with times as of now, which is this many ns since 1970.
    Long {
        /// Now.
        now_ns: i64,
    },
    /// Names only, each after this prefix, so that they are legal paths (RFC 1123 section 4.1.2.7).
    Names {
        /// What the client wrote before the last component.
        prefix: String,
    },
    /// Facts (RFC 3659 section 7).
    Facts(FactSet),
}

impl Format {
    /// Writes one entry and CR LF. A link to a directory is shown as one, so that clients which copy trees do not go round in
    /// circles.
    pub(super) fn write(&self, out: &mut Vec<u8>, entry: &DirEntry, changes: Changes) {
        // Writing to a vector does not fail.
        let _ = self.entry(&mut Text(out), entry, changes);
        out.extend_from_slice(b"\r\n");
    }

    fn entry(&self, out: &mut Text<'_>, entry: &DirEntry, changes: Changes) -> fmt::Result {
        let DirEntry { name, meta, link } = entry;
        match self {
            Format::Long { now_ns } => {
                out.write_str(match (meta.kind, link) {
                    (_, Some(_)) => "l",
                    (FileKind::Directory, None) => "d",
                    _ => "-",
                })?;
                for shift in [6u16, 3, 0] {
                    for (bit, letter) in [(4u16, 'r'), (2, 'w'), (1, 'x')] {
                        out.write_char(if meta.mode >> shift & bit != 0 { letter } else { '-' })?;
                    }
                }
                write!(out, "   1 ftp      ftp      {:>12} ", meta.len)?;
                date::write_ls(out, meta.modified_ns, *now_ns)?;
                write!(out, " {name}")?;
                link.as_ref().map_or(Ok(()), |target| write!(out, " -> {target}"))
            }
            Format::Names { prefix } => write!(out, "{prefix}{name}"),
            Format::Facts(set) => {
                facts::write(out, *set, meta, link.as_deref(), changes)?;
                write!(out, " {name}")
            }
        }
    }
}

struct Text<'a>(&'a mut Vec<u8>);

impl Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

/// A listing under way: entries go in by pages, lines come out.
///
/// Order of calls: while [`Listing::wants_page`], ask the files for entries and give them to [`Listing::add`], an empty
/// page at the end; [`Listing::write`] whenever there is room for lines, until [`Listing::is_finished`].
#[derive(Debug)]
pub(super) struct Listing {
    format: Format,
    pattern: Option<String>,
    hidden: bool,
    changes: Changes,
    /// Entries up to this number are sorted.
    sort_max: usize,
    entries: Vec<DirEntry>,
    /// The first entry not written yet.
    next: usize,
    /// More entries than `sort_max` were seen: they go out as they come.
    unsorted: bool,
    /// All entries were added.
    complete: bool,
}

impl Listing {
    pub(super) fn new(format: Format, hidden: bool, may_write: bool, sort_max: usize) -> Self {
        Listing {
            format,
            pattern: None,
            hidden,
            changes: Changes::new(may_write),
            sort_max,
            entries: Vec::new(),
            next: 0,
            unsorted: false,
            complete: false,
        }
    }

    /// Shows only names that fit `pattern`.
    pub(super) fn set_pattern(&mut self, pattern: &str) {
        // As in a shell, a star does not stand for a leading dot.
        self.hidden |= pattern.starts_with('.');
        self.pattern = Some(String::from(pattern));
    }

    /// Whether a pattern was set, so that only a directory makes sense.
    pub(super) fn has_pattern(&self) -> bool {
        self.pattern.is_some()
    }

    /// The listing is of a single file at `path`, which the client calls `typed`.
    pub(super) fn add_single(&mut self, path: &VirtualPath, typed: &str, meta: Metadata) {
        let name = match &mut self.format {
            Format::Names { prefix } => {
                prefix.clear();
                typed
            }
            _ => path.name(),
        };
        self.entries.push(DirEntry { name: String::from(name), meta, link: None });
        self.complete = true;
    }

    /// The listing is of a directory that this process has these rights in.
    pub(super) fn set_directory(&mut self, rights: Rights) {
        self.changes = self.changes.within(rights);
    }

    /// There is nothing to list.
    pub(super) fn add_nothing(&mut self) {
        self.complete = true;
    }

    /// Whether the next page of entries can be taken.
    pub(super) fn wants_page(&self) -> bool {
        !self.complete && (!self.unsorted || self.next >= self.entries.len())
    }

    /// Adds a page of entries; an empty one is the last. Answers how many names cannot be shown because they have
    /// control characters.
    pub(super) fn add(&mut self, page: Vec<DirEntry>) -> u64 {
        if page.is_empty() {
            self.complete = true;
            self.entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
            return 0;
        }
        if self.next >= self.entries.len() {
            self.entries.clear();
            self.next = 0;
        }
        let mut unfit = 0;
        for entry in page {
            if entry.name.chars().any(char::is_control) {
                unfit += 1;
            } else if self.shows(&entry) {
                self.entries.push(entry);
            }
        }
        self.unsorted |= self.entries.len() > self.sort_max;
        unfit
    }

    fn shows(&self, entry: &DirEntry) -> bool {
        entry.meta.kind != FileKind::Other
            && entry.name != "."
            && entry.name != ".."
            && (self.hidden || !entry.name.starts_with('.'))
            && self.pattern.as_ref().is_none_or(|pattern| matches(pattern, &entry.name))
    }

    /// Writes lines that are ready until `out` has `max` bytes or a little more.
    pub(super) fn write(&mut self, out: &mut Vec<u8>, max: usize) {
        if !self.complete && !self.unsorted {
            return;
        }
        while out.len() < max {
            let Some(entry) = self.entries.get(self.next) else { return };
            self.format.write(out, entry, self.changes);
            self.next += 1;
        }
    }

    /// Whether every line was written.
    pub(super) fn is_finished(&self) -> bool {
        self.complete && self.next >= self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use proptest::prelude::*;

    const NOW_NS: i64 = 1_767_323_045_000_000_000;

    fn entry(name: &str, kind: FileKind) -> DirEntry {
        let mode = if kind == FileKind::Directory { 0o755 } else { 0o644 };
        let modified_ns = NOW_NS - 3_600_000_000_000;
        let rights = Rights::of_class(mode);
        let meta = Metadata { kind, len: 5, modified_ns, changed_ns: modified_ns, inode: 9, mode, rights };
        DirEntry { name: name.into(), meta, link: None }
    }

    fn names() -> Format {
        Format::Names { prefix: String::new() }
    }

    fn run(mut listing: Listing, pages: &[&[DirEntry]]) -> String {
        let mut out = Vec::new();
        let mut pages = pages.iter();
        while !listing.is_finished() {
            if listing.wants_page() {
                listing.add(pages.next().map_or(Vec::new(), |page| page.to_vec()));
            }
            let before = out.len();
            listing.write(&mut out, before + 1);
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn options_are_told_from_paths() {
        for (arg, hidden, path) in [
            ("", false, ""),
            ("-a", true, ""),
            ("-la my dir", true, "my dir"),
            ("-l -A  x", true, "x"),
            ("-l", false, ""),
            ("my dir", false, "my dir"),
            ("-- -x", false, "-x"),
            ("-x/y", false, "-x/y"),
        ] {
            assert_eq!(ListArgs::parse(arg), ListArgs { hidden, path }, "{arg:?}");
        }
    }

    #[test]
    fn patterns_are_in_the_last_component() {
        assert_eq!(split_pattern("a/*.txt"), Some(("a/", "*.txt")));
        assert_eq!(split_pattern("/x?"), Some(("/", "x?")));
        assert_eq!(split_pattern("*"), Some(("", "*")));
        assert_eq!(split_pattern("a*/b"), None);
        assert_eq!(split_pattern(""), None);
    }

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("*", "abc", true),
            ("a*c", "abbc", true),
            ("a*c", "abcb", false),
            ("a*b*c", "aXbYbZc", true),
            ("?", "é", true),
            ("?", "", false),
            ("*.tx?", "a.b.txt", true),
            ("abc", "abc", true),
            ("abc", "ab", false),
            ("**", "x", true),
            ("a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn the_formats_are_what_clients_parse() {
        let (file, dir) = (entry("my file", FileKind::File), entry("d", FileKind::Directory));
        let check = |format: Format, entry: &DirEntry, expected: &str| {
            let mut out = Vec::new();
            format.write(&mut out, entry, Changes::new(false));
            assert_eq!(String::from_utf8(out).unwrap(), format!("{expected}\r\n"));
        };
        let long = Format::Long { now_ns: NOW_NS };
        check(long.clone(), &file, "-rw-r--r--   1 ftp      ftp                 5 Jan 02 02:04 my file");
        check(long.clone(), &dir, "drwxr-xr-x   1 ftp      ftp                 5 Jan 02 02:04 d");
        let link = |target: &str| DirEntry { link: Some(target.into()), ..dir.clone() };
        check(long, &link("/a b"), "lrwxr-xr-x   1 ftp      ftp                 5 Jan 02 02:04 d -> /a b");
        let facts = Format::Facts(FactSet::parse("Type;"));
        check(facts.clone(), &link("/a/b"), "Type=OS.unix=slink:/a/b; d");
        check(facts, &link("/a b"), "Type=OS.unix=symlink; d");
        check(Format::Facts(FactSet::parse("Perm;")), &link("/a"), "Perm=el; d");
        check(Format::Names { prefix: "a/".into() }, &file, "a/my file");
        check(Format::Facts(FactSet::parse("Type;Size;")), &file, "Type=file;Size=5; my file");
    }

    #[test]
    fn names_are_sorted_and_the_odd_ones_left_out() {
        let file = |name| entry(name, FileKind::File);
        let pages: &[&[DirEntry]] = &[&[file("b"), file(".h"), entry("odd", FileKind::Other)], &[file("a")]];
        assert_eq!(run(Listing::new(names(), false, false, 10), pages), "a\r\nb\r\n");
        assert_eq!(run(Listing::new(names(), true, false, 10), pages), ".h\r\na\r\nb\r\n");
        let mut dotted = Listing::new(names(), false, false, 10);
        dotted.set_pattern(".*");
        assert_eq!(run(dotted, pages), ".h\r\n");
        let mut listing = Listing::new(names(), true, false, 10);
        assert_eq!(listing.add(alloc::vec![file("x\r\n226 forged"), file("y")]), 1);
        assert_eq!(run(listing, &[]), "y\r\n");
    }

    #[test]
    fn a_long_directory_goes_out_as_it_comes() {
        let page = |from: usize| -> Vec<DirEntry> {
            (from..from + 4).rev().map(|i| entry(&format!("{i:02}"), FileKind::File)).collect()
        };
        let (a, b, c) = (page(0), page(4), page(8));
        let out = run(Listing::new(names(), false, false, 6), &[&a, &b, &c]);
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines.len(), 12);
        let mut sorted = lines.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), 12);
        assert_eq!(lines[0], "03");
    }

    proptest! {
        #[test]
        fn a_name_matches_itself_and_its_pattern(name in "[a-c]{0,12}", at in 0usize..12, len in 0usize..12) {
            prop_assert!(matches(&name, &name));
            let at = at.min(name.len());
            let end = (at + len).min(name.len());
            let starred = format!("{}*{}", &name[..at], &name[end..]);
            prop_assert!(matches(&starred, &name));
        }
    }
}
