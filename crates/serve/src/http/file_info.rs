//! What responses say of a file: its validators, and the fields that follow from them.

use super::conditional::Validators;
use super::date;
use super::mime::{self, Mime};
use super::response::append_hex;
use alloc::vec::Vec;
use linerate_transport::{Bytes, FileId, Metadata};

/// How long after a change another one might not show, in ns: file systems keep times in steps of a few
/// milliseconds up to a second, and a file can be written twice within one of them.
const UNSETTLED_NS: i64 = 1_000_000_000;

/// Where the content of a file is.
#[derive(Clone, Debug)]
pub(super) enum Content {
    /// In memory, all of it.
    Memory(Bytes),
    /// In an open file.
    Open(FileId),
}

/// A file that can be served.
#[derive(Debug)]
pub(super) struct FileInfo {
    /// Its metadata when it was opened.
    pub meta: Metadata,
    /// Last modification in seconds since 1970.
    pub modified_secs: i64,
    /// The opaque part of its entity tag, with quotes.
    pub etag: Vec<u8>,
    /// Header fields that every response about it carries, from a second after its last change on.
    lines: Vec<u8>,
    /// What its name says of it.
    pub mime: Mime,
    /// Its bytes.
    pub content: Content,
    /// Its content was read so shortly after a change that another one may have gone unnoticed.
    unsettled: bool,
    /// It never changes, and its bytes are there anyway.
    pub is_constant: bool,
}

/// What a response at a certain time says of a file.
pub(super) struct Description<'a> {
    /// For preconditions.
    pub validators: Validators<'a>,
    /// The fields, where they are not those of the file itself.
    own: Option<Vec<u8>>,
    lines: &'a [u8],
}

impl Description<'_> {
    /// Complete header lines: ranges and validators.
    pub fn lines(&self) -> &[u8] {
        self.own.as_deref().unwrap_or(self.lines)
    }

    /// Whether it may be another one a moment later.
    pub fn is_of_now(&self) -> bool {
        self.own.is_some()
    }
}

impl FileInfo {
    /// A file that was found to be so at `wall_ns`, which is `None` where no clock was set.
    /// Its media type follows from its name, unless [`FileInfo::with_media_type`] says otherwise.
    pub fn new(path: &str, meta: Metadata, content: Content, wall_ns: Option<i64>) -> FileInfo {
        let modified_secs = meta.modified_ns.div_euclid(1_000_000_000);
        let mut etag = Vec::with_capacity(64);
        etag.push(b'"');
        // Where files have no numbers, their names tell two of equal length and age apart.
        append_hex(&mut etag, if meta.inode == 0 { fnv1a(path) } else { meta.inode });
        etag.push(b'-');
        append_hex(&mut etag, meta.len);
        etag.push(b'-');
        append_hex(&mut etag, meta.modified_ns as u64);
        if meta.changed_ns != meta.modified_ns {
            // Its modification was set: what was written before and after may have the same.
            etag.push(b'-');
            append_hex(&mut etag, meta.changed_ns as u64);
        }
        etag.push(b'"');
        let lines = lines(told(&meta, modified_secs), &etag, false);
        let unsettled = wall_ns.is_some_and(|now| is_unsettled(&meta, now));
        let mime = mime::lookup(path.rsplit_once('/').map_or(path, |(_, name)| name));
        FileInfo { meta, modified_secs, etag, lines, mime, content, unsettled, is_constant: false }
    }

    /// The same of a file that never changes.
    pub fn constant(path: &str, meta: Metadata, bytes: Bytes, wall_ns: Option<i64>) -> FileInfo {
        FileInfo { is_constant: true, ..FileInfo::new(path, meta, Content::Memory(bytes), wall_ns) }
    }

    /// The same of a media type that is known otherwise than by its name.
    pub fn with_media_type(mut self, content_type: Option<&'static str>) -> FileInfo {
        if let Some(content_type) = content_type {
            self.mime.content_type = content_type;
        }
        self
    }

    /// Bytes of content held for it.
    pub fn memory(&self) -> usize {
        match &self.content {
            Content::Memory(bytes) if !self.is_constant => bytes.len(),
            Content::Memory(_) | Content::Open(_) => 0,
        }
    }

    /// Its content, where that is in memory.
    pub fn bytes(&self) -> Option<&Bytes> {
        match &self.content {
            Content::Memory(bytes) => Some(bytes),
            Content::Open(_) => None,
        }
    }

    /// Whether a file of this metadata is this one, unchanged.
    pub fn is_still(&self, meta: &Metadata) -> bool {
        let copied = matches!(self.content, Content::Memory(_)) && self.unsettled;
        !copied && self.meta.is_same_file(meta)
    }

    /// What to say of it at `wall_ns`.
    ///
    /// The tag is weak while the last change is not a second old, as another one would not show in it (RFC 9110
    /// section 8.8.1). A date of modification that lies in the future gives way to the present (section 8.8.2.1).
    pub fn describe(&self, wall_ns: Option<i64>) -> Description<'_> {
        let modified_secs = told(&self.meta, self.modified_secs);
        let mut validators = Validators { etag: Some(&self.etag), modified_secs, weak: false };
        let may_change = wall_ns.filter(|_| !self.is_constant);
        let own = may_change.filter(|now| is_unsettled(&self.meta, *now)).map(|now| {
            let secs = self.modified_secs.min(now.div_euclid(1_000_000_000));
            validators.weak = true;
            validators.modified_secs = told(&self.meta, secs);
            lines(validators.modified_secs, &self.etag, true)
        });
        Description { validators, own, lines: &self.lines }
    }
}

/// The date of modification, where there is one to tell: what is made when it is asked for has none, and a client that asks whether
/// it has changed since then would never get it.
fn told(meta: &Metadata, modified_secs: i64) -> Option<i64> {
    (meta.modified_ns != 0).then_some(modified_secs)
}

fn lines(modified_secs: Option<i64>, etag: &[u8], weak: bool) -> Vec<u8> {
    let mut lines = Vec::with_capacity(128);
    lines.extend_from_slice(b"Accept-Ranges: bytes\r\n");
    if let Some(secs) = modified_secs {
        lines.extend_from_slice(b"Last-Modified: ");
        lines.extend_from_slice(&date::format(secs));
        lines.extend_from_slice(b"\r\n");
    }
    lines.extend_from_slice(if weak { b"ETag: W/" } else { b"ETag: " });
    lines.extend_from_slice(etag);
    lines.extend_from_slice(b"\r\n");
    lines
}

fn is_unsettled(meta: &Metadata, wall_ns: i64) -> bool {
    meta.modified_ns.max(meta.changed_ns).saturating_add(UNSETTLED_NS) > wall_ns
}

/// The FNV-1a hash.
fn fnv1a(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
