//! Transfer commands up to the point where the file or directory is open: RETR, STOR, APPE, STOU, LIST, NLST, MLSD,
//! STAT with a path, and HASH.

use super::ascii::ToNetwork;
use super::data::Channel;
use super::hub::{Kind, Turn};
use super::listing::{Format, ListArgs, Listing, split_pattern};
use super::paths::{error_code, names_directory, new_name_code};
use super::receive::Receiver;
use super::send::{PAGE_ENTRIES, Sender, Source};
use super::session::{Job, Session, StatusJob};
use super::transfer::{Body, Transfer};
use crate::memory::MemoryFile;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::mem;
use linerate_transport::{
    FileError, FileId, FileKind, FileOp, FileRange, FileReply, Metadata, OpenMode, VirtualPath,
};

/// Names tried by STOU before it gives up.
const UNIQUE_TRIES: u8 = 8;

/// What the file is opened for.
pub(super) enum Intent {
    /// RETR from this offset.
    Retrieve(u64),
    /// STOR from this offset.
    Store(u64),
    /// APPE.
    Append,
    /// STOU: the name without its ending, and how many names were tried.
    Unique(VirtualPath, u8),
    /// LIST, NLST or MLSD.
    List(Box<ListIntent>),
    /// HASH.
    Hash,
}

/// A listing that waits for its directory.
pub(super) struct ListIntent {
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
    path: VirtualPath,
    intent: Intent,
}

impl Session {
    /// Whether a data connection was agreed on; replies when not.
    fn has_channel(&mut self, turn: &mut Turn<'_, '_>) -> bool {
        if self.data_was_lost(turn) {
            self.close_channel(turn);
        }
        let agreed = !matches!(self.channel, Channel::None | Channel::Draining(_));
        if !agreed {
            self.reply(425, "Use EPSV, PASV, EPRT or PORT first");
        }
        agreed
    }

    fn open(&mut self, turn: &mut Turn<'_, '_>, opening: Opening, mode: OpenMode) {
        let id = self.new_job();
        let path = opening.path.clone();
        self.job = Job::Open(opening);
        turn.submit(id, Kind::Open, FileOp::Open { path, mode });
    }

    pub(super) fn retr(&mut self, turn: &mut Turn<'_, '_>, arg: &str) {
        let restart = mem::take(&mut self.restart);
        if !self.has_channel(turn) {
            return;
        }
        let Some(path) = self.resolve_file(turn, arg, 550) else { return };
        match self.memory_file(turn, &path) {
            Some(MemoryFile::Source { len }) => self.retrieve(turn, path, None, len, restart),
            Some(MemoryFile::Null) => self.retrieve(turn, path, None, 0, restart),
            None => {
                let opening = Opening { verb: "RETR", path, intent: Intent::Retrieve(restart) };
                self.open(turn, opening, OpenMode::Read);
            }
        }
    }

    pub(super) fn stor(&mut self, turn: &mut Turn<'_, '_>, arg: &str) {
        let restart = mem::take(&mut self.restart);
        if restart > 0 && self.ascii {
            // The offset counts bytes of the network form, which the file does not tell (RFC 3659 section 5.3).
            return self.reply(554, "An upload resumes in TYPE I only");
        }
        self.store(turn, arg, "STOR", Intent::Store(restart));
    }

    pub(super) fn appe(&mut self, turn: &mut Turn<'_, '_>, arg: &str) {
        self.restart = 0;
        self.store(turn, arg, "APPE", Intent::Append);
    }

    fn store(&mut self, turn: &mut Turn<'_, '_>, arg: &str, verb: &'static str, intent: Intent) {
        if !self.has_channel(turn) {
            return;
        }
        let Some(path) = self.resolve_file(turn, arg, 553) else { return };
        if self.memory_file(turn, &path) == Some(MemoryFile::Null) {
            let body = Receiver::new(None, 0, false, &turn.hub.config.limits);
            let text = format!("Opening data connection for {path}, which forgets everything");
            return self.begin(turn, Transfer::new(verb, path, false, Body::Receive(body)), &text);
        }
        if !self.check_may_write(turn, 553) || !self.take_name(turn, &path) {
            return;
        }
        let mode = match intent {
            // The old file stays until the new one is complete.
            Intent::Store(0) => OpenMode::Replace,
            _ => OpenMode::Update,
        };
        self.open(turn, Opening { verb, path, intent }, mode);
    }

    /// Notes that this session uploads to a name, unless another one does.
    fn take_name(&mut self, turn: &mut Turn<'_, '_>, path: &VirtualPath) -> bool {
        if self.refuse_if_uploaded_to(turn, path) {
            return false;
        }
        turn.hub.uploads.insert(path.clone(), self.id);
        self.uploads_to = Some(path.clone());
        true
    }

    /// The upload is over, or did not begin.
    pub(super) fn release_name(&mut self, turn: &mut Turn<'_, '_>) {
        if let Some(path) = self.uploads_to.take() {
            turn.hub.uploads.remove(&path);
        }
    }

    pub(super) fn stou(&mut self, turn: &mut Turn<'_, '_>, arg: &str) {
        self.restart = 0;
        if !self.has_channel(turn) || !self.check_may_write(turn, 553) {
            return;
        }
        let base = if arg.is_empty() { "upload" } else { arg };
        if let Some(path) = self.resolve_file(turn, base, 553) {
            self.try_unique(turn, path, 0);
        }
    }

    fn try_unique(&mut self, turn: &mut Turn<'_, '_>, base: VirtualPath, tries: u8) {
        let ending = (turn.ctx.random)() as u32;
        let name = format!("{}.{ending:08x}", base.name());
        let Some(path) = self.resolve(turn, &format!("{}/{name}", base.parent()), 553) else { return };
        if !self.take_name(turn, &path) {
            return;
        }
        let opening = Opening { verb: "STOU", path, intent: Intent::Unique(base, tries + 1) };
        self.open(turn, opening, OpenMode::CreateNew);
    }

    pub(super) fn hash_file(&mut self, turn: &mut Turn<'_, '_>, arg: &str) {
        let Some(path) = self.resolve_file(turn, arg, 550) else { return };
        if self.memory_file(turn, &path).is_some() {
            // A terabyte of pattern would cost much time, and the digest tells nothing of a disk.
            return self.reply(550, "Not for memory files");
        }
        self.open(turn, Opening { verb: "HASH", path, intent: Intent::Hash }, OpenMode::Read);
    }

    // Listings.

    pub(super) fn list(&mut self, turn: &mut Turn<'_, '_>, arg: &str) {
        let format = Format::Long { now_ns: turn.ctx.wall_ns };
        self.start_listing(turn, "LIST", ListArgs::parse(arg), format);
    }

    pub(super) fn nlst(&mut self, turn: &mut Turn<'_, '_>, arg: &str) {
        let args = ListArgs::parse(arg);
        let prefix = match split_pattern(args.path) {
            Some((directory, _)) => String::from(directory),
            None if args.path.is_empty() || args.path.ends_with('/') => String::from(args.path),
            None => format!("{}/", args.path),
        };
        self.start_listing(turn, "NLST", args, Format::Names { prefix });
    }

    /// MLSD (RFC 3659 section 7): the argument is a path and nothing else.
    pub(super) fn mlsd(&mut self, turn: &mut Turn<'_, '_>, arg: &str) {
        let format = Format::Facts(self.facts);
        self.start_listing(turn, "MLSD", ListArgs { hidden: true, path: arg }, format);
    }

    /// STAT with a path: LIST over the control connection.
    pub(super) fn stat_path(&mut self, turn: &mut Turn<'_, '_>, arg: &str) {
        let format = Format::Long { now_ns: turn.ctx.wall_ns };
        self.start_listing(turn, "STAT", ListArgs::parse(arg), format);
    }

    fn start_listing(
        &mut self,
        turn: &mut Turn<'_, '_>,
        verb: &'static str,
        args: ListArgs<'_>,
        format: Format,
    ) {
        let status = verb == "STAT";
        if !status {
            self.restart = 0;
            if !self.has_channel(turn) {
                return;
            }
        }
        let directory_only = verb == "MLSD";
        let sort_max = turn.hub.config.limits.sorted_entries;
        let mut listing = Listing::new(format, args.hidden, self.may_write(turn), sort_max);
        let mut text = args.path;
        if let Some((directory, pattern)) = split_pattern(args.path).filter(|_| !directory_only) {
            listing.set_pattern(pattern);
            text = directory;
        }
        let Some(path) = self.resolve(turn, text, 550) else { return };
        let typed = String::from(args.path);
        let intent = ListIntent { listing, typed, status, directory_only };
        match self.memory_meta(turn, &path).filter(|meta| meta.kind == FileKind::File) {
            Some(meta) => self.list_opened(turn, verb, path, intent, None, meta),
            None => {
                let opening = Opening { verb, path, intent: Intent::List(Box::new(intent)) };
                self.open(turn, opening, OpenMode::Read);
            }
        }
    }

    fn list_opened(
        &mut self,
        turn: &mut Turn<'_, '_>,
        verb: &'static str,
        path: VirtualPath,
        mut intent: ListIntent,
        file: Option<FileId>,
        meta: Metadata,
    ) {
        let mut dir = file;
        if meta.kind != FileKind::Directory {
            // A single file needs no reading.
            self.close_file(turn, dir.take());
            let wanted = intent.directory_only || names_directory(&intent.typed);
            if wanted || intent.listing.has_pattern() || meta.kind == FileKind::Other {
                return self.reply(if intent.directory_only { 501 } else { 550 }, "Not a directory");
            }
            intent.listing.add_single(&path, &intent.typed, meta);
        } else if dir.is_none() {
            intent.listing.add_nothing();
        }
        if intent.status {
            self.replies().first(213, format_args!("Status of {path}:"));
            let job = StatusJob { listing: intent.listing, dir, waiting: false };
            self.job = Job::Status(Box::new(job));
            return;
        }
        let sender = Sender::new(Source::Listing { listing: intent.listing, dir }, dir);
        let text = format!("Opening ASCII mode data connection for the listing of {path}");
        self.begin(turn, Transfer::new(verb, path, true, Body::Send(sender)), &text);
    }

    /// Adds lines of a listing to the replies, as long as there is room.
    pub(super) fn write_status(&mut self, turn: &mut Turn<'_, '_>) {
        let Job::Status(job) = &mut self.job else { return };
        if job.waiting {
            return;
        }
        let mut lines = Vec::new();
        job.listing.write(&mut lines, 4096);
        let (finished, dir) = (job.listing.is_finished(), job.dir);
        if let Some(dir) = dir.filter(|_| lines.is_empty() && !finished) {
            job.waiting = true;
            return turn.submit(self.job_id, Kind::ReadDir, FileOp::ReadDir { dir, limit: PAGE_ENTRIES });
        }
        self.replies().raw(&lines);
        if finished {
            self.drop_job(turn);
            self.reply(213, "End");
        }
    }

    /// A page of the listing over the control connection was read.
    pub(super) fn on_status_page(&mut self, turn: &mut Turn<'_, '_>, result: Result<FileReply, FileError>) {
        let Job::Status(job) = &mut self.job else { return };
        job.waiting = false;
        match result {
            Ok(FileReply::Entries(page)) => turn.hub.stats.unfit_names += job.listing.add(page),
            Ok(_) => {}
            Err(error) => {
                self.drop_job(turn);
                self.reply(213, error);
            }
        }
    }

    // The file is open.

    /// The file or directory was opened, or could not be.
    pub(super) fn on_opened(&mut self, turn: &mut Turn<'_, '_>, result: Result<FileReply, FileError>) {
        let Job::Open(Opening { verb, path, intent }) = mem::replace(&mut self.job, Job::None) else {
            return;
        };
        self.touch(turn.now());
        match result {
            Ok(FileReply::Opened { file, meta }) => self.opened(turn, verb, path, intent, file, meta),
            Ok(_) => self.reply(451, "Unexpected answer of the file system"),
            Err(error) => {
                self.release_name(turn);
                self.open_failed(turn, verb, path, intent, error);
            }
        }
        if !matches!(self.job, Job::Transfer(_) | Job::Open(_)) {
            self.release_name(turn);
        }
    }

    fn opened(
        &mut self,
        turn: &mut Turn<'_, '_>,
        verb: &'static str,
        path: VirtualPath,
        intent: Intent,
        file: FileId,
        meta: Metadata,
    ) {
        let upload = matches!(intent, Intent::Store(_) | Intent::Append | Intent::Unique(..));
        if let Intent::List(intent) = intent {
            return self.list_opened(turn, verb, path, *intent, Some(file), meta);
        }
        if meta.kind != FileKind::File {
            self.close_file(turn, Some(file));
            return self.reply(if upload { 553 } else { 550 }, "Not a file");
        }
        let offset = match intent {
            Intent::Retrieve(restart) => return self.retrieve(turn, path, Some(file), meta.len, restart),
            Intent::Hash => return self.start_hash(turn, path, file),
            Intent::Store(restart) if restart > meta.len => {
                self.close_file(turn, Some(file));
                return self.reply(554, format_args!("The file has only {} bytes", meta.len));
            }
            Intent::Store(restart) => restart,
            Intent::Append => meta.len,
            Intent::Unique(..) | Intent::List(_) => 0,
        };
        let receiver = Receiver::new(Some(file), offset, self.ascii, &turn.hub.config.limits);
        let mode = if self.ascii { "ASCII" } else { "BINARY" };
        let text = match verb {
            // RFC 1123 section 4.1.2.9 prescribes this form.
            "STOU" => format!("FILE: {}", path.name()),
            _ if offset > 0 => {
                format!("Opening {mode} mode data connection for {path} from byte {offset} on")
            }
            _ => format!("Opening {mode} mode data connection for {path}"),
        };
        self.begin(turn, Transfer::new(verb, path, self.ascii, Body::Receive(receiver)), &text);
    }

    fn retrieve(
        &mut self,
        turn: &mut Turn<'_, '_>,
        path: VirtualPath,
        file: Option<FileId>,
        len: u64,
        restart: u64,
    ) {
        // In TYPE A the offset counts converted bytes, which are skipped after conversion.
        if restart > len && !self.ascii {
            self.close_file(turn, file);
            return self.reply(554, format_args!("The file has only {len} bytes"));
        }
        let source = match file {
            _ if self.ascii => Source::Ascii { file, at: 0, end: len, convert: ToNetwork::skipping(restart) },
            Some(file) => Source::Range(Some(FileRange { file, offset: restart, len: len - restart })),
            None => Source::Memory { at: restart, end: len },
        };
        let text = match self.ascii {
            true => format!("Opening ASCII mode data connection for {path}"),
            // Clients read the size from here.
            false => format!("Opening BINARY mode data connection for {path} ({len} bytes)"),
        };
        let body = Body::Send(Sender::new(source, file));
        self.begin(turn, Transfer::new("RETR", path, self.ascii, body), &text);
    }

    fn open_failed(
        &mut self,
        turn: &mut Turn<'_, '_>,
        verb: &'static str,
        path: VirtualPath,
        intent: Intent,
        error: FileError,
    ) {
        match intent {
            Intent::Unique(base, tries) if error == FileError::Exists && tries < UNIQUE_TRIES => {
                self.try_unique(turn, base, tries);
            }
            Intent::Store(_) | Intent::Append | Intent::Unique(..) => self.reply(new_name_code(error), error),
            Intent::List(intent) if error == FileError::NotFound && self.is_memory_dir(turn, &path) => {
                // The directory of the memory files is there, but what it holds is not listed.
                if let Some(meta) = self.memory_meta(turn, &path) {
                    self.list_opened(turn, verb, path, *intent, None, meta);
                }
            }
            // LIST may answer 450 only for what passes by itself; a missing file does not.
            Intent::Retrieve(_) | Intent::List(_) | Intent::Hash => self.reply(error_code(error), error),
        }
    }

    /// Closes a file; nobody waits for it.
    pub(super) fn close_file(&mut self, turn: &mut Turn<'_, '_>, file: Option<FileId>) {
        if let Some(file) = file {
            turn.submit(self.job_id, Kind::Close, FileOp::Close { file });
        }
    }
}
