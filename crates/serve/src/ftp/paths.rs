//! Commands on paths that need one file operation: CWD, SIZE, MDTM, MLST, MKD, RMD, DELE, RNFR, RNTO, MFMT, SITE CHMOD.

use super::date::Date;
use super::facts;
use super::hub::{Kind, Turn};
use super::reply::Quoted;
use super::session::{Job, Session};
use crate::Change;
use crate::memory::{self, MemoryFile};
use alloc::boxed::Box;
use alloc::string::String;
use core::mem;
use linerate_transport::{FileError, FileKind, FileOp, FileReply, Metadata, PathError, VirtualPath};

/// The directory of the memory files.
const MEMORY: &str = "/memory";

/// What to do with the answer of the operation under way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum PathJob {
    /// Change there if it is a directory.
    Cwd(VirtualPath),
    /// Tell the length.
    Size,
    /// Tell the modification time.
    Mdtm,
    /// Tell the facts.
    Mlst(VirtualPath),
    /// Remember it if it exists.
    RenameFrom(VirtualPath),
    /// Tell that the directory was made.
    Made(VirtualPath),
    /// Tell that the time was set.
    Modified(VirtualPath, Date),
    /// Tell that it was done, with this code and text.
    Done(u16, &'static str),
    /// The same for RNTO, whose failures have their own code.
    Renamed,
    /// Go on with the other one if it is a directory, as the path was written like that of one.
    Directory(Box<PathJob>),
}

impl PathJob {
    /// The job for a path that was written so.
    fn of(self, arg: &str) -> PathJob {
        if names_directory(arg) { PathJob::Directory(Box::new(self)) } else { self }
    }
}

/// The reply code for an operation that failed on a file that exists or should (RFC 959 section 4.2.2).
pub(super) fn error_code(error: FileError) -> u16 {
    match error {
        FileError::TooManyOpen | FileError::Busy => 450,
        FileError::Io | FileError::Stale => 451,
        FileError::NoSpace => 452,
        _ => 550,
    }
}

/// The reply code for a name that was to be made: 553 where the name is at fault.
pub(super) fn new_name_code(error: FileError) -> u16 {
    match error_code(error) {
        550 => 553,
        code => code,
    }
}

impl Session {
    /// Resolves a path against the working directory. When it is none, replies with `code` (501 for a path that has
    /// no right form).
    pub(super) fn resolve(&mut self, turn: &mut Turn<'_, '_>, arg: &str, code: u16) -> Option<VirtualPath> {
        match self.cwd.join(arg) {
            Ok(path) => return Some(path),
            Err(PathError::ControlCharacter) => self.reply(501, "Control character in the path"),
            Err(error) => {
                if error == PathError::AboveRoot {
                    turn.hub.stats.above_root += 1;
                    log::warn!(target: "ftp", "{}: path above the root", self.peer);
                }
                self.reply(code, error);
            }
        }
        None
    }

    /// The same for a path that is to name a file: one with a slash at its end names a directory at best (POSIX.1-2017
    /// section 4.13).
    pub(super) fn resolve_file(
        &mut self,
        turn: &mut Turn<'_, '_>,
        arg: &str,
        code: u16,
    ) -> Option<VirtualPath> {
        let path = self.resolve(turn, arg, code)?;
        if names_directory(arg) {
            self.reply(code, "Not a file: the name ends like that of a directory");
            return None;
        }
        Some(path)
    }

    /// The memory file of this name, if there are such.
    pub(super) fn memory_file(&self, turn: &Turn<'_, '_>, path: &VirtualPath) -> Option<MemoryFile> {
        memory::lookup(path).filter(|_| turn.hub.config.memory_files)
    }

    /// Whether it is the directory of the memory files, which is there even where the disk has none.
    pub(super) fn is_memory_dir(&self, turn: &Turn<'_, '_>, path: &VirtualPath) -> bool {
        turn.hub.config.memory_files && path.as_str() == MEMORY
    }

    /// What a memory file, or their directory, looks like.
    pub(super) fn memory_meta(&self, turn: &Turn<'_, '_>, path: &VirtualPath) -> Option<Metadata> {
        let (kind, len, mode) = match self.memory_file(turn, path) {
            Some(MemoryFile::Source { len }) => (FileKind::File, len, 0o444),
            Some(MemoryFile::Null) => (FileKind::File, 0, 0o666),
            None if self.is_memory_dir(turn, path) => (FileKind::Directory, 0, 0o555),
            None => return None,
        };
        Some(Metadata { kind, len, modified_ns: turn.hub.started_ns, inode: 0, mode })
    }

    /// Begins an operation on a path.
    fn start(&mut self, turn: &mut Turn<'_, '_>, job: PathJob, op: FileOp) {
        let moves = matches!(op, FileOp::Remove { .. } | FileOp::RemoveDir { .. } | FileOp::Rename { .. });
        for path in named_by(&op).into_iter().flatten().filter(|_| moves) {
            if self.refuse_if_uploaded_to(turn, path) {
                return;
            }
        }
        if !matches!(op, FileOp::Stat { .. }) {
            self.changing = named_by(&op).map(Option::<&VirtualPath>::cloned);
        }
        let id = self.new_job();
        self.job = Job::Path(job);
        turn.submit(id, Kind::Path, op);
    }

    /// Asks for the metadata of a path; those of memory files are known.
    fn stat(&mut self, turn: &mut Turn<'_, '_>, job: PathJob, path: VirtualPath) {
        match self.memory_meta(turn, &path) {
            Some(meta) => self.on_meta(turn, job, meta),
            None => self.start(turn, job, FileOp::Stat { path }),
        }
    }

    /// The operation ended.
    pub(super) fn on_path_done(&mut self, turn: &mut Turn<'_, '_>, result: Result<FileReply, FileError>) {
        let Job::Path(job) = core::mem::replace(&mut self.job, Job::None) else { return };
        self.touch(turn.now());
        for path in mem::take(&mut self.changing).into_iter().flatten() {
            turn.hub.changes.push(Change::Tree(path));
        }
        match (job, result) {
            (job, Ok(FileReply::Meta(meta))) => self.on_meta(turn, job, meta),
            (PathJob::Renamed, Err(error)) => self.reply(new_name_code(error), error),
            (PathJob::Cwd(_), Err(FileError::NotFound)) => self.reply(550, "No such directory"),
            (_, Err(error)) => self.reply(error_code(error), error),
            (PathJob::Made(path), Ok(_)) => {
                self.reply(257, format_args!("{} was made", Quoted(path.as_str())));
            }
            (PathJob::Modified(path, date), Ok(_)) => {
                self.reply(213, format_args!("Modify={date}; {path}"));
            }
            (PathJob::Done(code, text), Ok(_)) => self.reply(code, text),
            (PathJob::Renamed, Ok(_)) => self.reply(250, "Renamed"),
            (_, Ok(_)) => self.reply(451, "Unexpected answer of the file system"),
        }
    }

    fn on_meta(&mut self, turn: &mut Turn<'_, '_>, job: PathJob, meta: Metadata) {
        match job {
            PathJob::Directory(job) if meta.kind == FileKind::Directory => self.on_meta(turn, *job, meta),
            PathJob::Directory(_) => self.reply(550, "Not a directory"),
            PathJob::Cwd(path) if meta.kind == FileKind::Directory => {
                self.reply(250, format_args!("{} is the working directory", Quoted(path.as_str())));
                self.cwd = path;
            }
            PathJob::Cwd(_) => self.reply(550, "Not a directory"),
            PathJob::Size if meta.kind == FileKind::File => self.reply(213, meta.len),
            PathJob::Size => self.reply(550, "Not a file"),
            PathJob::Mdtm => self.reply(213, Date::from_unix_ns(meta.modified_ns)),
            PathJob::Mlst(path) => {
                let may_write = self.may_write(turn);
                let mut facts = String::new();
                // Writing to a string does not fail.
                let _ = facts::write(&mut facts, self.facts, &meta, may_write);
                let replies = self.replies();
                replies.first(250, "Facts:");
                replies.middle(format_args!("{facts} {path}"));
                replies.line(250, "End");
            }
            PathJob::RenameFrom(path) => {
                self.rename_from = Some(path);
                self.reply(350, "RNTO comes next");
            }
            _ => self.reply(451, "Unexpected answer of the file system"),
        }
    }

    /// Whether the user may change files; replies with `code` when not.
    pub(super) fn check_may_write(&mut self, turn: &Turn<'_, '_>, code: u16) -> bool {
        let may = self.may_write(turn);
        if !may {
            self.reply(code, "Permission denied: read-only");
        }
        may
    }

    /// Replies when somebody uploads to this name or below it: what is done to it now would meet half a file.
    pub(super) fn refuse_if_uploaded_to(&mut self, turn: &Turn<'_, '_>, path: &VirtualPath) -> bool {
        let busy = turn.hub.is_uploaded_to(path);
        if busy {
            self.reply(450, "An upload to this name is under way, try later");
        }
        busy
    }

    /// Resolves a path to change; not the root, and only for those who may.
    fn resolve_change(&mut self, turn: &mut Turn<'_, '_>, arg: &str, code: u16) -> Option<VirtualPath> {
        if !self.check_may_write(turn, code) {
            return None;
        }
        let path = self.resolve(turn, arg, code)?;
        if path.is_root() {
            self.reply(code, "The root cannot be changed");
            return None;
        }
        Some(path)
    }

    pub(super) fn cwd(&mut self, turn: &mut Turn<'_, '_>, arg: &str) {
        if let Some(path) = self.resolve(turn, arg, 550) {
            self.stat(turn, PathJob::Cwd(path.clone()), path);
        }
    }

    pub(super) fn cdup(&mut self, turn: &mut Turn<'_, '_>) {
        let path = self.cwd.parent();
        self.stat(turn, PathJob::Cwd(path.clone()), path);
    }

    /// SIZE (RFC 3659 section 4). In TYPE A it would be the length after conversion, which only reading tells.
    pub(super) fn size(&mut self, turn: &mut Turn<'_, '_>, arg: &str) {
        if self.ascii {
            return self.reply(550, "SIZE needs TYPE I");
        }
        if let Some(path) = self.resolve_file(turn, arg, 550) {
            self.stat(turn, PathJob::Size, path);
        }
    }

    /// MDTM (RFC 3659 section 3).
    pub(super) fn mdtm(&mut self, turn: &mut Turn<'_, '_>, arg: &str) {
        if let Some(path) = self.resolve(turn, arg, 550) {
            self.stat(turn, PathJob::Mdtm.of(arg), path);
        }
    }

    /// MLST (RFC 3659 section 7).
    pub(super) fn mlst(&mut self, turn: &mut Turn<'_, '_>, arg: &str) {
        if let Some(path) = self.resolve(turn, arg, 550) {
            self.stat(turn, PathJob::Mlst(path.clone()).of(arg), path);
        }
    }

    pub(super) fn rnfr(&mut self, turn: &mut Turn<'_, '_>, arg: &str) {
        let Some(path) = self.resolve_change(turn, arg, 550) else { return };
        if !self.refuse_if_uploaded_to(turn, &path) {
            self.start(turn, PathJob::RenameFrom(path.clone()).of(arg), FileOp::Stat { path });
        }
    }

    pub(super) fn rnto(&mut self, turn: &mut Turn<'_, '_>, arg: &str) {
        let Some(from) = self.rename_from.take() else {
            return self.reply(503, "RNFR comes first");
        };
        if let Some(to) = self.resolve_change(turn, arg, 553) {
            self.start(turn, PathJob::Renamed, FileOp::Rename { from, to });
        }
    }

    pub(super) fn mkd(&mut self, turn: &mut Turn<'_, '_>, arg: &str) {
        if let Some(path) = self.resolve_change(turn, arg, 550) {
            self.start(turn, PathJob::Made(path.clone()), FileOp::MakeDir { path });
        }
    }

    pub(super) fn rmd(&mut self, turn: &mut Turn<'_, '_>, arg: &str) {
        if let Some(path) = self.resolve_change(turn, arg, 550) {
            self.start(turn, PathJob::Done(250, "Directory removed"), FileOp::RemoveDir { path });
        }
    }

    pub(super) fn dele(&mut self, turn: &mut Turn<'_, '_>, arg: &str) {
        if names_directory(arg) {
            return self.reply(550, "Not a file: the name ends like that of a directory");
        }
        if let Some(path) = self.resolve_change(turn, arg, 550) {
            self.start(turn, PathJob::Done(250, "File removed"), FileOp::Remove { path });
        }
    }

    /// MFMT (draft-somers-ftp-mfxx section 3).
    pub(super) fn mfmt(&mut self, turn: &mut Turn<'_, '_>, arg: &str) {
        let parsed = arg.split_once(' ').and_then(|(date, path)| Some((Date::parse(date)?, path)));
        let Some((date, modified_ns, path)) = parsed.and_then(|(d, path)| Some((d, d.unix_ns()?, path)))
        else {
            return self.reply(501, "Syntax: MFMT <YYYYMMDDHHMMSS> <path>");
        };
        if let Some(path) = self.resolve_change(turn, path, 550) {
            let job = PathJob::Modified(path.clone(), date);
            self.start(turn, job, FileOp::SetModified { path, modified_ns });
        }
    }

    pub(super) fn site(&mut self, turn: &mut Turn<'_, '_>, arg: &str) {
        let (name, rest) = arg.split_once(' ').unwrap_or((arg, ""));
        if name.eq_ignore_ascii_case("HELP") {
            return self.reply(214, "SITE CHMOD <mode> <path>, SITE HELP");
        }
        if !name.eq_ignore_ascii_case("CHMOD") {
            return self.reply(504, "Only SITE CHMOD and SITE HELP are available");
        }
        let parsed = rest.split_once(' ').and_then(|(mode, path)| Some((parse_mode(mode)?, path)));
        let Some((mode, path)) = parsed else {
            return self.reply(501, "Syntax: SITE CHMOD <mode> <path>, the mode being 000 to 777");
        };
        if let Some(path) = self.resolve_change(turn, path, 550) {
            self.start(turn, PathJob::Done(200, "Mode changed"), FileOp::SetMode { path, mode });
        }
    }
}

/// The names that an operation on paths changes.
fn named_by(op: &FileOp) -> [Option<&VirtualPath>; 2] {
    match op {
        FileOp::Remove { path }
        | FileOp::RemoveDir { path }
        | FileOp::MakeDir { path }
        | FileOp::SetModified { path, .. }
        | FileOp::SetMode { path, .. } => [Some(path), None],
        FileOp::Rename { from, to } => [Some(from), Some(to)],
        _ => [None, None],
    }
}

/// Whether a path is written as that of a directory: with a slash, `.` or `..` at its end.
pub(super) fn names_directory(path: &str) -> bool {
    matches!(path.rsplit('/').next(), Some("." | "..")) || path.ends_with('/')
}

/// Reads three octal digits, or four of which the first is zero.
fn parse_mode(text: &str) -> Option<u16> {
    let digits = matches!(text.len(), 3 | 4) && text.bytes().all(|b| (b'0'..=b'7').contains(&b));
    u16::from_str_radix(text, 8).ok().filter(|mode| digits && *mode <= 0o777)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_octal() {
        for (text, expected) in [
            ("644", Some(0o644)),
            ("0755", Some(0o755)),
            ("4755", None),
            ("888", None),
            ("7", None),
            ("+64", None),
            ("", None),
        ] {
            assert_eq!(parse_mode(text), expected, "{text}");
        }
    }

    #[test]
    fn codes_tell_a_lasting_fault_from_a_passing_one() {
        for (error, exists, new) in [
            (FileError::NotFound, 550, 553),
            (FileError::Permission, 550, 553),
            (FileError::NoSpace, 452, 452),
            (FileError::TooManyOpen, 450, 450),
            (FileError::Io, 451, 451),
        ] {
            assert_eq!((error_code(error), new_name_code(error)), (exists, new), "{error:?}");
        }
    }
}
