//! Transfer commands up to the point where the file or directory is open: RETR, STOR, APPE, STOU, LIST, NLST, MLSD,
//! STAT with a path, and HASH.

use super::access::Access;
use super::data::Data;
use super::hash::HashJob;
use super::hub::{JobId, Turn};
use super::listing::{Format, ListArgs, Listing, split_pattern};
use super::receive::Receiver;
use super::reply::{Replies, error_code, new_name_code, reply};
use super::send::{Sender, Source};
use super::settings::{Settings, names_directory};
use super::status::StatusJob;
use super::transfer::{Body, Transfer};
use super::upload::UploadName;
use crate::memory::MemoryFile;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use core::mem;
use linerate_transport::{
    FileError, FileId, FileKind, FileRange, FileReply, Metadata, OpenMode, VirtualPath,
};

/// Names tried by STOU before it gives up.
const UNIQUE_TRIES: u8 = 8;

/// What the file is opened for.
enum Intent {
    /// RETR from this offset.
    Retrieve(u64),
    /// STOR from this offset.
    Store(u64),
    /// APPE.
    Append,
    /// STOU: the name without its ending, and how many names were tried.
    Unique(VirtualPath, u8),
    /// LIST, NLST, MLSD or STAT.
    List(Box<ListIntent>),
    /// HASH.
    Hash,
}

/// A listing that waits for its directory.
struct ListIntent {
    listing: Listing,
    /// The path as the client wrote it.
    typed: String,
    /// The reply goes over the control connection (STAT).
    status: bool,
    /// A file is no answer (MLSD, RFC 3659 section 7.2.1).
    directory_only: bool,
}

/// A file or directory that is being opened.
pub(super) struct Opening {
    verb: &'static str,
    pub(super) path: VirtualPath,
    intent: Intent,
}

/// What comes next.
pub(super) enum Next {
    /// To open this.
    Open(Opening, OpenMode),
    /// A transfer, after its preliminary reply.
    Transfer(Box<Transfer>, Replies),
    /// A listing over the control connection, after its first line.
    Status(Box<StatusJob>, Replies),
    /// A file to hash.
    Hash(Box<HashJob>),
}

/// What comes next, or the reply that ends the command.
pub(super) type Begun = Result<Next, Replies>;

/// The commands, and what they need of their session.
pub(super) struct Opener<'s> {
    pub(super) job: JobId,
    pub(super) settings: &'s mut Settings,
    pub(super) access: &'s Access,
    pub(super) data: &'s mut Data,
    pub(super) upload: &'s mut UploadName,
}

impl Opener<'_> {
    pub(super) fn retr(&mut self, turn: &mut Turn<'_, '_>, arg: &str) -> Begun {
        let restart = mem::take(&mut self.settings.restart);
        self.data.check_agreed(turn)?;
        let path = self.settings.resolve_file(turn, arg, 550)?;
        match turn.hub.memory_file(&path) {
            Some(MemoryFile::Source { len }) => self.retrieve(turn, path, None, len, restart),
            Some(MemoryFile::Null) => self.retrieve(turn, path, None, 0, restart),
            None => {
                let opening = Opening { verb: "RETR", path, intent: Intent::Retrieve(restart) };
                Ok(Next::Open(opening, OpenMode::Read))
            }
        }
    }

    pub(super) fn stor(&mut self, turn: &mut Turn<'_, '_>, arg: &str) -> Begun {
        let restart = mem::take(&mut self.settings.restart);
        if restart > 0 && self.settings.ascii {
            // The offset counts bytes of the network form, which the file does not tell (RFC 3659 section 5.3).
            return Err(reply(554, "An upload resumes in TYPE I only"));
        }
        self.store(turn, arg, "STOR", Intent::Store(restart))
    }

    pub(super) fn appe(&mut self, turn: &mut Turn<'_, '_>, arg: &str) -> Begun {
        self.settings.restart = 0;
        self.store(turn, arg, "APPE", Intent::Append)
    }

    fn store(&mut self, turn: &mut Turn<'_, '_>, arg: &str, verb: &'static str, intent: Intent) -> Begun {
        self.data.check_agreed(turn)?;
        let path = self.settings.resolve_file(turn, arg, 553)?;
        if turn.hub.memory_file(&path) == Some(MemoryFile::Null) {
            let body = Receiver::new(None, 0, false, &turn.hub.config.limits);
            let text = format!("Opening data connection for {path}, which forgets everything");
            return Ok(self.transfer(verb, path, false, Body::Receive(body), &text));
        }
        self.access.check_may_write(turn, 553)?;
        turn.hub.check_on_disk(&path, 553)?;
        self.upload.take(turn, &path)?;
        let mode = match intent {
            // The old file stays until the new one is complete.
            Intent::Store(0) => OpenMode::Replace,
            Intent::Store(_) => OpenMode::Existing,
            _ => OpenMode::Update,
        };
        Ok(Next::Open(Opening { verb, path, intent }, mode))
    }

    pub(super) fn stou(&mut self, turn: &mut Turn<'_, '_>, arg: &str) -> Begun {
        self.settings.restart = 0;
        self.data.check_agreed(turn)?;
        self.access.check_may_write(turn, 553)?;
        let base = if arg.is_empty() { "upload" } else { arg };
        let path = self.settings.resolve_file(turn, base, 553)?;
        self.try_unique(turn, path, 0)
    }

    fn try_unique(&mut self, turn: &mut Turn<'_, '_>, base: VirtualPath, tries: u8) -> Begun {
        let ending = (turn.ctx.random)() as u32;
        let name = format!("{}.{ending:08x}", base.name());
        let path = self.settings.resolve(turn, &format!("{}/{name}", base.parent()), 553)?;
        self.upload.take(turn, &path)?;
        let opening = Opening { verb: "STOU", path, intent: Intent::Unique(base, tries + 1) };
        Ok(Next::Open(opening, OpenMode::CreateNew))
    }

    pub(super) fn hash(&mut self, turn: &mut Turn<'_, '_>, arg: &str) -> Begun {
        let path = self.settings.resolve_file(turn, arg, 550)?;
        if turn.hub.memory_file(&path).is_some() {
            // A terabyte of pattern would cost much time, and the digest tells nothing of a disk.
            return Err(reply(550, "Not for memory files"));
        }
        Ok(Next::Open(Opening { verb: "HASH", path, intent: Intent::Hash }, OpenMode::Read))
    }

    // Listings.

    pub(super) fn list(&mut self, turn: &mut Turn<'_, '_>, arg: &str) -> Begun {
        let format = Format::Long { now_ns: turn.ctx.wall_ns };
        self.start_listing(turn, "LIST", ListArgs::parse(arg), format)
    }

    pub(super) fn nlst(&mut self, turn: &mut Turn<'_, '_>, arg: &str) -> Begun {
        let args = ListArgs::parse(arg);
        let prefix = match split_pattern(args.path) {
            Some((directory, _)) => String::from(directory),
            None if args.path.is_empty() || args.path.ends_with('/') => String::from(args.path),
            None => format!("{}/", args.path),
        };
        self.start_listing(turn, "NLST", args, Format::Names { prefix })
    }

    /// MLSD (RFC 3659 section 7): the argument is a path and nothing else.
    pub(super) fn mlsd(&mut self, turn: &mut Turn<'_, '_>, arg: &str) -> Begun {
        let format = Format::Facts(self.settings.facts);
        self.start_listing(turn, "MLSD", ListArgs { hidden: true, path: arg }, format)
    }

    /// STAT with a path: LIST over the control connection.
    pub(super) fn stat(&mut self, turn: &mut Turn<'_, '_>, arg: &str) -> Begun {
        let format = Format::Long { now_ns: turn.ctx.wall_ns };
        self.start_listing(turn, "STAT", ListArgs::parse(arg), format)
    }

    fn start_listing(
        &mut self,
        turn: &mut Turn<'_, '_>,
        verb: &'static str,
        args: ListArgs<'_>,
        format: Format,
    ) -> Begun {
        let status = verb == "STAT";
        if !status {
            self.settings.restart = 0;
            self.data.check_agreed(turn)?;
        }
        let directory_only = verb == "MLSD";
        let sort_max = turn.hub.config.limits.sorted_entries;
        let mut listing = Listing::new(format, args.hidden, self.access.may_write(turn), sort_max);
        let mut text = args.path;
        if let Some((directory, pattern)) = split_pattern(args.path).filter(|_| !directory_only) {
            listing.set_pattern(pattern);
            text = directory;
        }
        let path = self.settings.resolve(turn, text, 550)?;
        let typed = String::from(args.path);
        let intent = ListIntent { listing, typed, status, directory_only };
        match turn.hub.memory_meta(&path).filter(|meta| meta.kind == FileKind::File) {
            Some(meta) => self.list_opened(turn, verb, path, intent, None, meta),
            None => {
                let opening = Opening { verb, path, intent: Intent::List(Box::new(intent)) };
                Ok(Next::Open(opening, OpenMode::Read))
            }
        }
    }

    fn list_opened(
        &self,
        turn: &mut Turn<'_, '_>,
        verb: &'static str,
        path: VirtualPath,
        mut intent: ListIntent,
        file: Option<FileId>,
        meta: Metadata,
    ) -> Begun {
        let mut dir = file;
        if meta.kind != FileKind::Directory {
            // A single file needs no reading.
            turn.close(self.job, dir.take());
            let wanted = intent.directory_only || names_directory(&intent.typed);
            if wanted || intent.listing.has_pattern() || meta.kind == FileKind::Other {
                return Err(reply(if intent.directory_only { 501 } else { 550 }, "Not a directory"));
            }
            intent.listing.add_single(&path, &intent.typed, meta);
        } else if dir.is_none() {
            intent.listing.add_nothing();
        } else {
            intent.listing.set_directory(meta.rights);
        }
        if intent.status {
            let mut replies = Replies::default();
            replies.first(213, format_args!("Status of {path}:"));
            return Ok(Next::Status(Box::new(StatusJob::new(self.job, intent.listing, dir)), replies));
        }
        let sender = Sender::new(Source::Listing { listing: intent.listing, dir }, dir);
        let text = format!("Opening ASCII mode data connection for the listing of {path}");
        Ok(self.transfer(verb, path, true, Body::Send(sender), &text))
    }

    // The file is open.

    /// The file or directory was opened, or could not be.
    pub(super) fn on_opened(
        &mut self,
        turn: &mut Turn<'_, '_>,
        opening: Opening,
        result: Result<FileReply, FileError>,
    ) -> Begun {
        let next = match result {
            Ok(FileReply::Opened { file, meta }) => self.opened(turn, opening, file, meta),
            Ok(_) => Err(reply(451, "Unexpected answer of the file system")),
            Err(error) => {
                self.upload.release(turn);
                self.open_failed(turn, opening, error)
            }
        };
        if !matches!(next, Ok(Next::Transfer(..) | Next::Open(..))) {
            self.upload.release(turn);
        }
        next
    }

    fn opened(&self, turn: &mut Turn<'_, '_>, opening: Opening, file: FileId, meta: Metadata) -> Begun {
        let Opening { verb, path, intent } = opening;
        let upload = matches!(intent, Intent::Store(_) | Intent::Append | Intent::Unique(..));
        if let Intent::List(intent) = intent {
            return self.list_opened(turn, verb, path, *intent, Some(file), meta);
        }
        if meta.kind != FileKind::File {
            turn.close(self.job, Some(file));
            return Err(reply(if upload { 553 } else { 550 }, "Not a file"));
        }
        let offset = match intent {
            Intent::Retrieve(restart) => return self.retrieve(turn, path, Some(file), meta.len, restart),
            Intent::Hash => {
                let hash = HashJob::begin(turn, self.job, self.settings.hash, path, file);
                return Ok(Next::Hash(Box::new(hash)));
            }
            Intent::Store(restart) if restart > meta.len => {
                turn.close(self.job, Some(file));
                return Err(reply(554, format_args!("The file has only {} bytes", meta.len)));
            }
            Intent::Store(restart) => restart,
            Intent::Append => meta.len,
            Intent::Unique(..) | Intent::List(_) => 0,
        };
        let ascii = self.settings.ascii;
        let receiver = Receiver::new(Some(file), offset, ascii, &turn.hub.config.limits);
        let mode = if ascii { "ASCII" } else { "BINARY" };
        let text = match verb {
            // RFC 1123 section 4.1.2.9 prescribes this form.
            "STOU" => format!("FILE: {}", path.name()),
            _ if offset > 0 => {
                format!("Opening {mode} mode data connection for {path} from byte {offset} on")
            }
            _ => format!("Opening {mode} mode data connection for {path}"),
        };
        Ok(self.transfer(verb, path, ascii, Body::Receive(receiver), &text))
    }

    fn retrieve(
        &self,
        turn: &mut Turn<'_, '_>,
        path: VirtualPath,
        file: Option<FileId>,
        len: u64,
        restart: u64,
    ) -> Begun {
        let ascii = self.settings.ascii;
        // In TYPE A the offset counts converted bytes, of which there are twice as many at most.
        let longest = if ascii { len.saturating_mul(2) } else { len };
        if restart > longest {
            turn.close(self.job, file);
            return Err(reply(554, format_args!("The file has only {len} bytes")));
        }
        let source = match file {
            _ if ascii => Source::ascii(file, len, restart),
            Some(file) => Source::Range(Some(FileRange { file, offset: restart, len: len - restart })),
            None => Source::Memory { at: restart, end: len },
        };
        let text = match ascii {
            true => format!("Opening ASCII mode data connection for {path}"),
            // Clients read the size from here.
            false => format!("Opening BINARY mode data connection for {path} ({len} bytes)"),
        };
        Ok(self.transfer("RETR", path, ascii, Body::Send(Sender::new(source, file)), &text))
    }

    fn transfer(&self, verb: &'static str, path: VirtualPath, ascii: bool, body: Body, text: &str) -> Next {
        Next::Transfer(Box::new(Transfer::new(self.job, verb, path, ascii, body)), reply(150, text))
    }

    fn open_failed(&mut self, turn: &mut Turn<'_, '_>, opening: Opening, error: FileError) -> Begun {
        let Opening { verb, path, intent } = opening;
        match intent {
            Intent::Unique(base, tries) if error == FileError::Exists && tries < UNIQUE_TRIES => {
                self.try_unique(turn, base, tries)
            }
            Intent::Store(restart) if restart > 0 && error == FileError::NotFound => {
                Err(reply(554, "There is no such file to go on with"))
            }
            Intent::Store(_) | Intent::Append | Intent::Unique(..) => Err(reply(new_name_code(error), error)),
            Intent::List(intent) if error == FileError::NotFound && turn.hub.is_memory_dir(&path) => {
                // The directory of the memory files is there, but what it holds is not listed.
                match turn.hub.memory_meta(&path) {
                    Some(meta) => self.list_opened(turn, verb, path, *intent, None, meta),
                    None => Err(reply(error_code(error), error)),
                }
            }
            // LIST may answer 450 only for what passes by itself; a missing file does not.
            Intent::Retrieve(_) | Intent::List(_) | Intent::Hash => Err(reply(error_code(error), error)),
        }
    }
}
