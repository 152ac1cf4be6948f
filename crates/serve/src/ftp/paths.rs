//! Commands on paths that need one file operation: CWD, SIZE, MDTM, MLST, MKD, RMD, DELE, RNFR, RNTO, MFMT, SITE CHMOD.

use super::access::Access;
use super::date::Date;
use super::facts;
use super::hub::Turn;
use super::reply::{Quoted, Replies, error_code, new_name_code, reply};
use super::settings::{Settings, names_directory};
use super::upload;
use crate::Change;
use alloc::boxed::Box;
use alloc::string::String;
use linerate_transport::{FileError, FileKind, FileOp, FileReply, Metadata, Rights, VirtualPath};

/// An operation on a path under way.
pub(super) struct PathJob {
    then: Then,
    /// The names that it changes.
    changing: [Option<VirtualPath>; 2],
}

/// What a command comes to: an operation to submit, or the reply where none is needed.
pub(super) type Begun = Result<(PathJob, FileOp), Replies>;

/// What to do with the answer of the operation.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Then {
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
    Directory(Box<Then>),
}

impl Then {
    /// The same for a path that was written so.
    fn of(self, arg: &str) -> Then {
        if names_directory(arg) { Then::Directory(Box::new(self)) } else { self }
    }
}

/// The commands, and what they need of their session.
pub(super) struct Paths<'s> {
    pub(super) settings: &'s mut Settings,
    pub(super) access: &'s Access,
}

impl Paths<'_> {
    /// Begins an operation on a path.
    fn start(&self, turn: &Turn<'_, '_>, then: Then, op: FileOp) -> Begun {
        let moves = matches!(op, FileOp::Remove { .. } | FileOp::RemoveDir { .. } | FileOp::Rename { .. });
        for path in named_by(&op).into_iter().flatten().filter(|_| moves) {
            upload::check_free(turn.hub, path)?;
        }
        let changing = named_by(&op).map(Option::<&VirtualPath>::cloned);
        Ok((PathJob { then, changing }, op))
    }

    /// Asks for the metadata of a path; those of memory files are known.
    fn stat(&mut self, turn: &mut Turn<'_, '_>, then: Then, path: VirtualPath) -> Begun {
        match turn.hub.memory_meta(&path) {
            Some(meta) => Err(self.on_meta(turn, then, meta)),
            None => self.start(turn, then, FileOp::Stat { path }),
        }
    }

    /// The operation ended.
    pub(super) fn on_done(
        &mut self,
        turn: &mut Turn<'_, '_>,
        job: PathJob,
        result: Result<FileReply, FileError>,
    ) -> Replies {
        for path in job.changing.into_iter().flatten() {
            turn.hub.changes.push(Change::Tree(path));
        }
        match (job.then, result) {
            (then, Ok(FileReply::Meta(meta))) => self.on_meta(turn, then, meta),
            (Then::Renamed, Err(error)) => reply(new_name_code(error), error),
            (Then::Cwd(_), Err(FileError::NotFound)) => reply(550, "No such directory"),
            (_, Err(error)) => reply(error_code(error), error),
            (Then::Made(path), Ok(_)) => reply(257, format_args!("{} was made", Quoted(path.as_str()))),
            (Then::Modified(path, date), Ok(_)) => reply(213, format_args!("Modify={date}; {path}")),
            (Then::Done(code, text), Ok(_)) => reply(code, text),
            (Then::Renamed, Ok(_)) => reply(250, "Renamed"),
            (_, Ok(_)) => reply(451, "Unexpected answer of the file system"),
        }
    }

    fn on_meta(&mut self, turn: &mut Turn<'_, '_>, then: Then, meta: Metadata) -> Replies {
        match then {
            Then::Directory(then) if meta.kind == FileKind::Directory => self.on_meta(turn, *then, meta),
            Then::Directory(_) => reply(550, "Not a directory"),
            // Whoever may not search it could do nothing there.
            Then::Cwd(_) if meta.kind == FileKind::Directory && !meta.rights.search => {
                reply(error_code(FileError::Permission), FileError::Permission)
            }
            Then::Cwd(path) if meta.kind == FileKind::Directory => {
                self.settings.cwd = path;
                self.settings.at_cwd(250)
            }
            Then::Cwd(_) => reply(550, "Not a directory"),
            Then::Size if meta.kind == FileKind::File => reply(213, meta.len),
            Then::Size => reply(550, "Not a file"),
            Then::Mdtm => reply(213, Date::from_unix_ns(meta.modified_ns)),
            Then::Mlst(path) => {
                let changes = self.changes_at(turn, &path);
                let mut facts = String::new();
                // Writing to a string does not fail.
                let _ = facts::write(&mut facts, self.settings.facts, &meta, None, changes);
                let mut replies = Replies::default();
                replies.first(250, "Facts:");
                replies.middle(format_args!("{facts} {path}"));
                replies.line(250, "End");
                replies
            }
            Then::RenameFrom(path) => {
                self.settings.rename_from = Some(path);
                reply(350, "RNTO comes next")
            }
            _ => reply(451, "Unexpected answer of the file system"),
        }
    }

    /// What the user may change at a path. If what its directory allows is not to be had at once, it is taken to allow it.
    fn changes_at(&self, turn: &mut Turn<'_, '_>, path: &VirtualPath) -> facts::Changes {
        let changes = facts::Changes::new(self.access.may_write(turn));
        if path.is_root() {
            return changes.within(Rights::of_class(0));
        }
        match turn.ctx.files.stat_now(&path.parent()) {
            Some(Ok(parent)) => changes.within(parent.rights),
            // As that of the memory files, which is on no disk.
            Some(Err(_)) => changes.within(Rights::of_class(0)),
            None => changes,
        }
    }

    /// Resolves a path to change; not the root, and only for those who may.
    fn resolve_change(&self, turn: &mut Turn<'_, '_>, arg: &str, code: u16) -> Result<VirtualPath, Replies> {
        self.access.check_may_write(turn, code)?;
        let path = self.settings.resolve(turn, arg, code)?;
        if path.is_root() {
            return Err(reply(code, "The root cannot be changed"));
        }
        turn.hub.check_on_disk(&path, code)?;
        Ok(path)
    }

    pub(super) fn cwd(&mut self, turn: &mut Turn<'_, '_>, arg: &str) -> Begun {
        let path = self.settings.resolve(turn, arg, 550)?;
        self.stat(turn, Then::Cwd(path.clone()), path)
    }

    pub(super) fn cdup(&mut self, turn: &mut Turn<'_, '_>) -> Begun {
        let path = self.settings.cwd.parent();
        self.stat(turn, Then::Cwd(path.clone()), path)
    }

    /// SIZE (RFC 3659 section 4). In TYPE A it would be the length after conversion, which only reading tells.
    pub(super) fn size(&mut self, turn: &mut Turn<'_, '_>, arg: &str) -> Begun {
        if self.settings.ascii {
            return Err(reply(550, "SIZE needs TYPE I"));
        }
        let path = self.settings.resolve_file(turn, arg, 550)?;
        self.stat(turn, Then::Size, path)
    }

    /// MDTM (RFC 3659 section 3).
    pub(super) fn mdtm(&mut self, turn: &mut Turn<'_, '_>, arg: &str) -> Begun {
        let path = self.settings.resolve(turn, arg, 550)?;
        self.stat(turn, Then::Mdtm.of(arg), path)
    }

    /// MLST (RFC 3659 section 7).
    pub(super) fn mlst(&mut self, turn: &mut Turn<'_, '_>, arg: &str) -> Begun {
        let path = self.settings.resolve(turn, arg, 550)?;
        self.stat(turn, Then::Mlst(path.clone()).of(arg), path)
    }

    pub(super) fn rnfr(&mut self, turn: &mut Turn<'_, '_>, arg: &str) -> Begun {
        let path = self.resolve_change(turn, arg, 550)?;
        upload::check_free(turn.hub, &path)?;
        self.start(turn, Then::RenameFrom(path.clone()).of(arg), FileOp::Stat { path })
    }

    pub(super) fn rnto(&mut self, turn: &mut Turn<'_, '_>, arg: &str) -> Begun {
        let Some(from) = self.settings.rename_from.take() else {
            return Err(reply(503, "RNFR comes first"));
        };
        let to = self.resolve_change(turn, arg, 553)?;
        if to != from && to.is_within(&from) {
            return Err(reply(553, "A directory cannot be moved into itself"));
        }
        self.start(turn, Then::Renamed, FileOp::Rename { from, to })
    }

    pub(super) fn mkd(&mut self, turn: &mut Turn<'_, '_>, arg: &str) -> Begun {
        let path = self.resolve_change(turn, arg, 550)?;
        upload::check_vacant(turn.hub, &path)?;
        self.start(turn, Then::Made(path.clone()), FileOp::MakeDir { path })
    }

    pub(super) fn rmd(&mut self, turn: &mut Turn<'_, '_>, arg: &str) -> Begun {
        let path = self.resolve_change(turn, arg, 550)?;
        self.start(turn, Then::Done(250, "Directory removed"), FileOp::RemoveDir { path })
    }

    pub(super) fn dele(&mut self, turn: &mut Turn<'_, '_>, arg: &str) -> Begun {
        if names_directory(arg) {
            return Err(reply(550, "Not a file: the name ends like that of a directory"));
        }
        let path = self.resolve_change(turn, arg, 550)?;
        self.start(turn, Then::Done(250, "File removed"), FileOp::Remove { path })
    }

    /// MFMT (draft-somers-ftp-mfxx section 3).
    pub(super) fn mfmt(&mut self, turn: &mut Turn<'_, '_>, arg: &str) -> Begun {
        let parsed = arg.split_once(' ').and_then(|(date, path)| Some((Date::parse(date)?, path)));
        let Some((date, path)) = parsed else {
            return Err(reply(501, "Syntax: MFMT <YYYYMMDDHHMMSS> <path>"));
        };
        let Some(modified_ns) = date.unix_ns() else {
            return Err(reply(501, "No file can have that date: one until the year 2262 is expected"));
        };
        let path = self.resolve_change(turn, path, 550)?;
        self.start(turn, Then::Modified(path.clone(), date), FileOp::SetModified { path, modified_ns })
    }

    pub(super) fn site(&mut self, turn: &mut Turn<'_, '_>, arg: &str) -> Begun {
        let (name, rest) = arg.split_once(' ').unwrap_or((arg, ""));
        if name.eq_ignore_ascii_case("HELP") {
            return Err(reply(214, "SITE CHMOD <mode> <path>, SITE HELP"));
        }
        if !name.eq_ignore_ascii_case("CHMOD") {
            return Err(reply(504, "Only SITE CHMOD and SITE HELP are available"));
        }
        let parsed = rest.split_once(' ').and_then(|(mode, path)| Some((parse_mode(mode)?, path)));
        let Some((mode, path)) = parsed else {
            return Err(reply(501, "Syntax: SITE CHMOD <mode> <path>, the mode being 000 to 777"));
        };
        let path = self.resolve_change(turn, path, 550)?;
        self.start(turn, Then::Done(200, "Mode changed"), FileOp::SetMode { path, mode })
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
}
