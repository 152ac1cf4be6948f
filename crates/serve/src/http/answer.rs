//! Answers to requests: what is said of a file, a memory file, a directory, the server, or an error.

use super::autoindex;
use super::cache::Asker;
use super::conditional::{self, Outcome, Validators};
use super::connection::{Connection, Piece};
use super::exchange::Exchange;
use super::file_info::{Content, FileInfo};
use super::method::Method;
use super::mime::Mime;
use super::multipart::{Multipart, append_content_range};
use super::negotiate::Coding;
use super::range::{self, Part, Selection};
use super::resolve::{Resolved, status_of};
use super::response::{HeadWriter, Status, append_decimal, append_hex, append_page};
use super::server::Server;
use super::uri;
use crate::Context;
use crate::memory::{self, MemoryFile};
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use linerate_transport::{Bytes, FileError, FileRange};

/// Content up to this length is copied behind its head; more is queued as it lies.
const COPY_MAX: u64 = 2 << 10;
/// Most bytes in one piece of memory.
const PIECE_MAX: usize = 64 << 10;

/// How far an answer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    /// Begun, and all of it queued.
    Complete,
    /// Files are being found out.
    Resolving,
    /// Too much is in use to begin.
    Blocked,
    /// A directory is being read.
    Listing(u32),
}

/// The bytes of a representation.
enum Origin<'a> {
    File(&'a Rc<FileInfo>),
    Memory,
}

/// What could be sent, and what is said of it.
struct Representation<'a> {
    len: u64,
    validators: Validators<'a>,
    /// Complete lines: validators, ranges.
    lines: &'a [u8],
    content_type: &'a str,
    coding: Option<Coding>,
    /// Whether another request could get another coding.
    vary: bool,
    origin: Origin<'a>,
}

impl Representation<'_> {
    /// All of it, where it is in memory and one piece.
    fn piece(&self) -> Option<Piece> {
        match self.origin {
            Origin::File(info) => {
                info.bytes().filter(|bytes| bytes.len() <= PIECE_MAX).map(|bytes| Piece::Bytes(bytes.clone()))
            }
            Origin::Memory => Some(Piece::Pattern { offset: 0, len: self.len }),
        }
    }

    fn describe(&self, head: &mut HeadWriter<'_>) {
        head.lines(self.lines);
        if let Some(coding) = self.coding {
            head.field("Content-Encoding", coding.name().as_bytes());
        }
        if self.vary {
            head.lines(b"Vary: Accept-Encoding\r\n");
        }
    }
}

impl Server {
    /// Answers a request whose body has been read.
    pub(super) fn answer(
        &mut self,
        ctx: &mut Context<'_>,
        conn: &mut Connection,
        ex: &mut Exchange,
    ) -> Answer {
        if !ex.is_allowed() {
            self.say(ctx, conn, ex, Status::MethodNotAllowed);
        } else if ex.method == Method::Options {
            self.make_room(ctx, conn);
            let allowed = ex.allowed();
            let mut head = self.head(ex, Status::Ok);
            head.field("Allow", allowed).content_length(0);
            head.end();
        } else if let Some(memory) = ex.memory {
            self.begin_draft(ex);
            self.answer_memory(ctx, conn, ex, memory);
        } else if self.is_status_page(ex) {
            let json = self.status_json(ctx.now).into_bytes();
            self.send_page(ctx, conn, ex, "application/json", &[b"Cache-Control: no-store\r\n"], json);
        } else {
            return self.answer_path(ctx, conn, ex);
        }
        Answer::Complete
    }

    fn is_status_page(&self, ex: &Exchange) -> bool {
        match (&self.config.status_path, &ex.path) {
            (Some(status), Some(decoded)) => decoded.path.as_str() == status && !decoded.directory,
            _ => false,
        }
    }

    fn answer_path(&mut self, ctx: &mut Context<'_>, conn: &mut Connection, ex: &mut Exchange) -> Answer {
        if ex.asked.is_none() {
            self.begin_draft(ex);
        }
        let since = *ex.asked.get_or_insert(self.cache.turn());
        let may_start = ex.resolving || self.may_resolve();
        let max_age = self.config.timeouts.cache;
        let asker = Asker { conn: conn.id, since, max_age, max_age_of_absence: max_age, may_start };
        match self.resolve(ctx, ex, asker) {
            Resolved::File { info, coding, mime } => self.answer_file(ctx, conn, ex, &info, coding, mime),
            Resolved::Redirect => self.redirect(ctx, conn, ex),
            Resolved::Failed(status) => self.say(ctx, conn, ex, status),
            Resolved::Listing => return self.list(ctx, conn, ex),
            Resolved::Pending => return Answer::Resolving,
            Resolved::Busy => return Answer::Blocked,
        }
        Answer::Complete
    }

    fn list(&mut self, ctx: &mut Context<'_>, conn: &mut Connection, ex: &mut Exchange) -> Answer {
        // What a directory holds is asked each time, and how many ask.
        self.answers.draft = None;
        let Some(decoded) = &ex.path else { return Answer::Complete };
        let limit = self.config.limits.listings;
        match self.listings.start(ctx, &mut self.ops, limit, conn.id, &decoded.path) {
            Some(slot) => Answer::Listing(slot),
            None => {
                self.counters.listings_refused += 1;
                self.say(ctx, conn, ex, Status::Unavailable);
                Answer::Complete
            }
        }
    }

    /// Answers with a listing that is complete.
    pub(super) fn answer_listing(
        &mut self,
        ctx: &mut Context<'_>,
        conn: &mut Connection,
        ex: &mut Exchange,
        page: Result<Vec<u8>, FileError>,
    ) {
        match page {
            // A listing has neither tag nor date: only `*` and lists of tags say something about it.
            Ok(page) => match self.preconditions(ex, &Validators::default()) {
                Outcome::Proceed => self.send_page(ctx, conn, ex, autoindex::CONTENT_TYPE, &[], page),
                Outcome::NotModified => {
                    self.make_room(ctx, conn);
                    self.head(ex, Status::NotModified).end();
                }
                Outcome::Failed => self.say(ctx, conn, ex, Status::PreconditionFailed),
            },
            Err(error) => self.say(ctx, conn, ex, status_of(error)),
        }
    }

    /// What the preconditions of a request say of a representation.
    fn preconditions(&self, ex: &Exchange, validators: &Validators<'_>) -> Outcome {
        if !ex.conditional {
            return Outcome::Proceed;
        }
        ex.with_fields(|fields| {
            let all = |name| fields.all(name);
            conditional::evaluate(all, ex.method.is_get_or_head(), validators, self.common.secs())
        })
    }

    /// Begins a response.
    fn head(&mut self, ex: &mut Exchange, status: Status) -> HeadWriter<'_> {
        // The last response before the server stops says so.
        ex.keep_alive &= !self.draining;
        ex.status = Some(status);
        HeadWriter::begin(&mut self.out, &self.common, status, ex.after())
    }

    /// Answers with a status and a short page that names it.
    pub(super) fn say(
        &mut self,
        ctx: &mut Context<'_>,
        conn: &mut Connection,
        ex: &mut Exchange,
        status: Status,
    ) {
        self.say_with(ctx, conn, ex, status, &[]);
    }

    fn say_with(
        &mut self,
        ctx: &mut Context<'_>,
        conn: &mut Connection,
        ex: &mut Exchange,
        status: Status,
        lines: &[u8],
    ) {
        self.make_room(ctx, conn);
        let mut page = Vec::with_capacity(160);
        append_page(&mut page, status);
        let allowed = ex.allowed();
        let start = self.out.len();
        let mut head = self.head(ex, status);
        head.lines(lines);
        match status {
            Status::MethodNotAllowed => {
                head.field("Allow", allowed);
            }
            Status::Unavailable => {
                head.field("Retry-After", b"1");
            }
            _ => {}
        }
        head.field("Content-Type", b"text/html; charset=utf-8").content_length(page.len() as u64);
        let out = head.end();
        if ex.method != Method::Head {
            out.extend_from_slice(&page);
            ex.content = page.len() as u64;
        }
        self.answers.write(self.out.get(start..), None);
    }

    fn redirect(&mut self, ctx: &mut Context<'_>, conn: &mut Connection, ex: &mut Exchange) {
        let mut line = String::from("Location: ");
        if let Some(decoded) = &ex.path {
            // A normalised path: one slash at its beginning, never the two that would make a host of what follows.
            uri::append_escaped(&mut line, decoded.path.as_str());
            line.push('/');
        }
        if let Some(query) = ex.query() {
            line.push('?');
            uri::append_query(&mut line, query);
        }
        line.push_str("\r\n");
        self.say_with(ctx, conn, ex, Status::MovedPermanently, line.as_bytes());
    }

    /// Answers 200 with a page made for the occasion.
    fn send_page(
        &mut self,
        ctx: &mut Context<'_>,
        conn: &mut Connection,
        ex: &mut Exchange,
        content_type: &str,
        lines: &[&[u8]],
        page: Vec<u8>,
    ) {
        self.make_room(ctx, conn);
        let mut head = self.head(ex, Status::Ok);
        head.field("Content-Type", content_type.as_bytes()).content_length(page.len() as u64);
        for line in lines {
            head.lines(line);
        }
        head.end();
        if ex.method != Method::Head {
            ex.content = page.len() as u64;
            self.send_bytes(ctx, conn, &Bytes::from(page));
        }
    }

    fn answer_memory(
        &mut self,
        ctx: &mut Context<'_>,
        conn: &mut Connection,
        ex: &mut Exchange,
        memory: MemoryFile,
    ) {
        let len = match memory {
            MemoryFile::Source { len } => len,
            MemoryFile::Null if ex.swallows() => {
                let mut text = Vec::new();
                append_decimal(&mut text, ex.received);
                text.push(b'\n');
                return self.send_page(ctx, conn, ex, "text/plain; charset=utf-8", &[], text);
            }
            MemoryFile::Null => 0,
        };
        // The content follows from the length.
        let mut lines = Vec::from(*b"Accept-Ranges: bytes\r\nETag: \"memory-");
        append_hex(&mut lines, len);
        lines.extend_from_slice(b"\"\r\n");
        let etag = lines.get(28..lines.len() - 2);
        let what = Representation {
            len,
            validators: Validators { etag, ..Validators::default() },
            lines: &lines,
            content_type: "application/octet-stream",
            coding: None,
            vary: false,
            origin: Origin::Memory,
        };
        self.answer_with(ctx, conn, ex, &what);
    }

    fn answer_file(
        &mut self,
        ctx: &mut Context<'_>,
        conn: &mut Connection,
        ex: &mut Exchange,
        info: &Rc<FileInfo>,
        coding: Option<Coding>,
        mime: Mime,
    ) {
        let description = info.describe(self.common.wall_ns());
        if description.is_of_now() {
            self.answers.draft = None;
        }
        let what = Representation {
            len: info.meta.len,
            validators: description.validators,
            lines: description.lines(),
            content_type: mime.content_type,
            coding,
            vary: self.config.precompressed && mime.negotiable,
            origin: Origin::File(info),
        };
        self.answer_with(ctx, conn, ex, &what);
    }

    /// Answers with a representation, its parts, or what the preconditions say (RFC 9110 section 13.2.2).
    fn answer_with(
        &mut self,
        ctx: &mut Context<'_>,
        conn: &mut Connection,
        ex: &mut Exchange,
        what: &Representation<'_>,
    ) {
        self.make_room(ctx, conn);
        let now_secs = self.common.secs();
        match self.preconditions(ex, &what.validators) {
            Outcome::Proceed => {}
            Outcome::NotModified => {
                let start = self.out.len();
                let mut head = self.head(ex, Status::NotModified);
                what.describe(&mut head);
                head.end();
                return self.answers.write(self.out.get(start..), None);
            }
            Outcome::Failed => return self.say(ctx, conn, ex, Status::PreconditionFailed),
        }
        let selection = if ex.ranged {
            ex.with_fields(|fields| {
                let holds = !fields.has("if-range")
                    || fields
                        .single("if-range")
                        .is_some_and(|value| conditional::if_range_holds(value, &what.validators, now_secs));
                match fields.single("range") {
                    Some(value) if holds => range::select(value, what.len),
                    _ => Selection::Whole,
                }
            })
        } else {
            Selection::Whole
        };
        match selection {
            Selection::Whole => self.send_whole(ctx, conn, ex, what),
            Selection::One(part) => self.send_one(ctx, conn, ex, what, part),
            Selection::Many(parts) => self.send_many(ctx, conn, ex, what, &parts),
            Selection::Unsatisfiable => {
                let mut line = Vec::from(*b"Content-Range: bytes */");
                append_decimal(&mut line, what.len);
                line.extend_from_slice(b"\r\n");
                self.say_with(ctx, conn, ex, Status::RangeNotSatisfiable, &line);
            }
        }
    }

    fn send_whole(
        &mut self,
        ctx: &mut Context<'_>,
        conn: &mut Connection,
        ex: &mut Exchange,
        what: &Representation<'_>,
    ) {
        let start = self.out.len();
        let mut head = self.head(ex, Status::Ok);
        head.field("Content-Type", what.content_type.as_bytes()).content_length(what.len);
        what.describe(&mut head);
        head.end();
        if ex.method == Method::Head || what.len == 0 {
            return self.answers.write(self.out.get(start..), None);
        }
        ex.content = what.len;
        let part = Part { start: 0, len: what.len };
        match self.answers.draft.as_ref().and_then(|_| what.piece()) {
            None => self.send_part(ctx, conn, what, part),
            Some(_) if what.len <= COPY_MAX => {
                self.send_part(ctx, conn, what, part);
                self.answers.write(self.out.get(start..), None);
            }
            Some(piece) => {
                self.answers.write(self.out.get(start..), Some(piece));
                self.send_part(ctx, conn, what, part);
            }
        }
    }

    fn send_one(
        &mut self,
        ctx: &mut Context<'_>,
        conn: &mut Connection,
        ex: &mut Exchange,
        what: &Representation<'_>,
        part: Part,
    ) {
        let mut range = Vec::with_capacity(48);
        append_content_range(&mut range, part, what.len);
        let mut head = self.head(ex, Status::PartialContent);
        head.field("Content-Type", what.content_type.as_bytes()).content_length(part.len);
        head.field("Content-Range", &range);
        what.describe(&mut head);
        head.end();
        ex.content = part.len;
        self.send_part(ctx, conn, what, part);
    }

    fn send_many(
        &mut self,
        ctx: &mut Context<'_>,
        conn: &mut Connection,
        ex: &mut Exchange,
        what: &Representation<'_>,
        parts: &[Part],
    ) {
        let multi = Multipart::new(parts, what.len, what.content_type, (ctx.random)());
        let mut head = self.head(ex, Status::PartialContent);
        head.field("Content-Type", &multi.content_type).content_length(multi.len);
        what.describe(&mut head);
        head.end();
        ex.content = multi.len;
        for (head, part) in multi.heads.iter().zip(parts) {
            self.out.extend_from_slice(head);
            self.send_part(ctx, conn, what, *part);
        }
        self.out.extend_from_slice(&multi.tail);
    }

    /// Queues a part of a representation behind what is in the output buffer.
    fn send_part(
        &mut self,
        ctx: &mut Context<'_>,
        conn: &mut Connection,
        what: &Representation<'_>,
        part: Part,
    ) {
        let Part { start, len } = part;
        match what.origin {
            // Short ones are copied behind the head, as those of files.
            Origin::Memory if len <= COPY_MAX => {
                let end = start + len;
                let mut at = start;
                while at < end {
                    let bytes = memory::pattern(at, end - at);
                    self.out.extend_from_slice(bytes);
                    at += bytes.len() as u64;
                }
            }
            Origin::Memory => self.send_piece(ctx, conn, Piece::Pattern { offset: start, len }),
            Origin::File(info) => match &info.content {
                Content::Open(file) => {
                    if conn.file.is_none() {
                        conn.file = Some(Rc::clone(info));
                    }
                    self.send_piece(ctx, conn, Piece::File(FileRange { file: *file, offset: start, len }));
                }
                // A part lies within the file, which is all in memory.
                Content::Memory(bytes) => {
                    let (start, end) = (start as usize, (start + len) as usize);
                    self.send_bytes(ctx, conn, &bytes.slice(start..end));
                }
            },
        }
    }

    /// Queues bytes: short ones copied behind the head, others as they lie.
    fn send_bytes(&mut self, ctx: &mut Context<'_>, conn: &mut Connection, bytes: &Bytes) {
        if bytes.len() as u64 <= COPY_MAX {
            self.out.extend_from_slice(bytes.as_ref());
            return;
        }
        let mut start = 0;
        while start < bytes.len() {
            let end = bytes.len().min(start + PIECE_MAX);
            self.send_piece(ctx, conn, Piece::Bytes(bytes.slice(start..end)));
            start = end;
        }
    }
}
