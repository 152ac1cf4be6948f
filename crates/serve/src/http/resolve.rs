//! From a path to what answers it: a file, one of its compressed copies, an index, a listing, or a refusal.

use super::cache::{Asker, Found};
use super::exchange::Exchange;
use super::file_info::FileInfo;
use super::mime::Mime;
use super::negotiate::Coding;
use super::response::Status;
use super::server::Server;
use crate::Context;
use alloc::format;
use alloc::rc::Rc;
use core::time::Duration;
use linerate_transport::{FileError, VirtualPath};

/// What answers a path.
#[derive(Debug)]
pub(super) enum Resolved {
    /// A file.
    File {
        /// It, or its compressed copy.
        info: Rc<FileInfo>,
        /// How the copy is compressed.
        coding: Option<Coding>,
        /// By the name of the file itself.
        mime: Mime,
    },
    /// A listing of the directory.
    Listing,
    /// The same path with a slash at its end.
    Redirect,
    /// An error.
    Failed(Status),
    /// Not known yet; the connection will be woken.
    Pending,
    /// Not now: too much is in use.
    Busy,
}

/// Whether a component of the path begins with a dot, `/.well-known` at the root excepted.
pub(super) fn is_hidden(path: &VirtualPath) -> bool {
    let mut parts = path.relative().split('/').enumerate();
    parts.any(|(at, part)| part.starts_with('.') && !(at == 0 && part == ".well-known"))
}

/// How much older than its file a compressed copy may be, in seconds: what unpacks a tree writes in any order.
const COPY_AGE_SECS: i64 = 2;

/// How long it is believed that a file has no compressed copy: most have none, and each request would look for three.
const NO_COPY_AGE: Duration = Duration::from_secs(1);

/// Whether a compressed copy saves anything, and was not forgotten when its file changed.
fn is_good_copy(copy: &FileInfo, file: &FileInfo) -> bool {
    copy.meta.len < file.meta.len && copy.modified_secs.saturating_add(COPY_AGE_SECS) >= file.modified_secs
}

/// The status that tells of an error of the file system.
pub(super) fn status_of(error: FileError) -> Status {
    match error {
        FileError::NotFound | FileError::NotADirectory => Status::NotFound,
        FileError::Permission => Status::Forbidden,
        FileError::TooManyOpen => Status::Unavailable,
        _ => Status::InternalError,
    }
}

impl Server {
    /// Finds what answers the path of a request.
    pub(super) fn resolve(&mut self, ctx: &mut Context<'_>, ex: &Exchange, asker: Asker) -> Resolved {
        let Some(decoded) = &ex.path else {
            let status = if ex.names_nothing { Status::NotFound } else { Status::BadRequest };
            return Resolved::Failed(status);
        };
        if !self.config.hidden_files && is_hidden(&decoded.path) {
            return Resolved::Failed(Status::NotFound);
        }
        match self.look_up(ctx, &decoded.path, asker) {
            // "/file/" names nothing.
            Found::File(_) if decoded.directory => Resolved::Failed(Status::NotFound),
            Found::File(info) => self.resolve_file(ctx, ex, info, &decoded.path, asker),
            Found::Directory if decoded.directory => self.resolve_directory(ctx, ex, &decoded.path, asker),
            Found::Directory => Resolved::Redirect,
            Found::Failed(error) => Resolved::Failed(status_of(error)),
            Found::Pending => Resolved::Pending,
            Found::Busy => Resolved::Busy,
        }
    }

    fn look_up(&mut self, ctx: &mut Context<'_>, path: &VirtualPath, asker: Asker) -> Found {
        let found = self.cache.lookup(ctx, &mut self.ops, &self.config.limits, path, asker);
        self.answers.note(path, &found, asker.max_age_of_absence);
        found
    }

    fn resolve_directory(
        &mut self,
        ctx: &mut Context<'_>,
        ex: &Exchange,
        directory: &VirtualPath,
        asker: Asker,
    ) -> Resolved {
        for at in 0..self.config.index_files.len() {
            let Ok(path) = directory.join(&self.config.index_files[at]) else { continue };
            match self.look_up(ctx, &path, asker) {
                Found::File(info) => return self.resolve_file(ctx, ex, info, &path, asker),
                Found::Directory | Found::Failed(FileError::NotFound) => {}
                Found::Failed(error) => return Resolved::Failed(status_of(error)),
                Found::Pending => return Resolved::Pending,
                Found::Busy => return Resolved::Busy,
            }
        }
        if self.config.autoindex { Resolved::Listing } else { Resolved::Failed(Status::Forbidden) }
    }

    /// The compressed copy that the client likes best, or the file itself.
    fn resolve_file(
        &mut self,
        ctx: &mut Context<'_>,
        ex: &Exchange,
        info: Rc<FileInfo>,
        path: &VirtualPath,
        asker: Asker,
    ) -> Resolved {
        let mime = info.mime;
        if self.config.precompressed && mime.negotiable {
            let asker = Asker { max_age_of_absence: asker.max_age.max(NO_COPY_AGE), ..asker };
            for coding in ex.preference.iter() {
                // A name that is too long with the suffix is that of no file.
                let name = format!("{}{}", path.as_str(), coding.suffix());
                let Ok(copy) = VirtualPath::parse(&name) else { continue };
                match self.look_up(ctx, &copy, asker) {
                    Found::File(copy) if is_good_copy(&copy, &info) => {
                        return Resolved::File { info: copy, coding: Some(coding), mime };
                    }
                    Found::Pending => return Resolved::Pending,
                    Found::Busy => return Resolved::Busy,
                    Found::File(_) | Found::Directory | Found::Failed(_) => {}
                }
            }
        }
        Resolved::File { info, coding: None, mime }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_a_dot_are_hidden() {
        let check = |path: &str, expected| {
            assert_eq!(is_hidden(&VirtualPath::parse(path).unwrap()), expected, "{path}");
        };
        check("/", false);
        check("/a.b/c.d", false);
        check("/.git/config", true);
        check("/a/.htaccess", true);
        check("/.well-known/security.txt", false);
        check("/.well-known/.x", true);
        check("/a/.well-known/x", true);
    }
}
