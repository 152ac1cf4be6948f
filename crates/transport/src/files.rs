//! Files as a server sees them: operations submitted, completions polled, so that a slow disk stalls nobody.

use crate::event::Owner;
use crate::parcel::Parcel;
use crate::path::VirtualPath;
use crate::payload::Bytes;
use crate::socket::id;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

id! {
    /// An open file or directory.
    FileId
}

/// How to open a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenMode {
    /// For reading; a directory opens as one ([`Metadata::kind`] tells).
    Read,
    /// For writing: created if missing, emptied if not.
    Create,
    /// For writing a file as a whole: what is written gets the name with [`FileOp::Publish`]; until then whatever has
    /// it stays, and without it nothing is left. Where the file cannot be replaced (its directory takes no new file, or
    /// it has several names) it is opened as by [`OpenMode::Update`].
    Replace,
    /// The same for a name that must not exist yet.
    CreateNew,
    /// For writing at any offset: created if missing, kept if not.
    Update,
    /// For writing at any offset of a file that is there.
    Existing,
}

/// What a directory entry is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// Anything else (a device, a socket, a link that leads out of the root): never opened.
    Other,
}

/// What this process may do with a file or directory, as far as its owner, group and permission bits say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rights {
    /// Read it, or list it.
    pub read: bool,
    /// Write it; in a directory, make, remove and rename what is in it.
    pub write: bool,
    /// Run it; of a directory, reach what is in it.
    pub search: bool,
}

impl Rights {
    /// Everything.
    pub const ALL: Rights = Rights { read: true, write: true, search: true };

    /// Those of one class, in the lowest three bits as in a mode: 4 to read, 2 to write, 1 to search.
    pub fn of_class(bits: u16) -> Rights {
        Rights { read: bits & 4 != 0, write: bits & 2 != 0, search: bits & 1 != 0 }
    }

    /// Whether names in a directory with these rights can be made, removed and changed.
    pub fn change_names(self) -> bool {
        self.write && self.search
    }
}

/// What is known of a file without reading it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metadata {
    /// File or directory.
    pub kind: FileKind,
    /// Length in bytes.
    pub len: u64,
    /// Last modification, in ns since 1970-01-01 UTC; 0 where there is no such date, as of what is made when it is asked for.
    pub modified_ns: i64,
    /// Last change of content or attributes, in ns since 1970-01-01 UTC: of a file whose content was written anew and whose modification was
    /// set back, too. The modification where nothing else is known.
    pub changed_ns: i64,
    /// A number that changes when another file takes the name (inode), for entity tags; 0 when unknown.
    pub inode: u64,
    /// Unix permission bits (0o777 mask); what the file system has.
    pub mode: u16,
    /// What this process may do with it.
    pub rights: Rights,
}

impl Metadata {
    /// Whether both are of one file with the same content: its attributes may differ in permissions alone.
    pub fn is_same_file(&self, other: &Metadata) -> bool {
        let look = |meta: &Metadata| (meta.kind, meta.len, meta.modified_ns, meta.changed_ns, meta.inode);
        look(self) == look(other)
    }
}

/// One entry of a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DirEntry {
    /// The name, as UTF-8. Names that are not valid UTF-8 are not listed.
    pub name: String,
    /// Its metadata, links inside the root followed.
    pub meta: Metadata,
    /// Where a symbolic link to a directory leads, as an absolute path under the virtual root: who walks a tree must know, or may
    /// never come to an end.
    pub link: Option<String>,
}

/// Work of the asker's own that takes a processor some milliseconds, as hashing a password does.
pub struct Work(Box<dyn FnOnce() -> Vec<u8> + Send>);

impl Work {
    /// Work that comes to these bytes.
    pub fn new(work: impl FnOnce() -> Vec<u8> + Send + 'static) -> Work {
        Work(Box::new(work))
    }

    /// Does it.
    pub fn run(self) -> Vec<u8> {
        (self.0)()
    }
}

impl core::fmt::Debug for Work {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Work")
    }
}

/// A file operation. Paths are under the virtual root and cannot leave it, by symbolic links neither.
#[derive(Debug)]
pub enum FileOp {
    /// Open a file; answers [`FileReply::Opened`].
    Open {
        /// Which.
        path: VirtualPath,
        /// How.
        mode: OpenMode,
    },
    /// Metadata of a path; answers [`FileReply::Meta`].
    Stat {
        /// Which.
        path: VirtualPath,
    },
    /// Next entries of a directory opened with [`OpenMode::Read`], in no order; answers [`FileReply::Entries`], an
    /// empty list at the end.
    ReadDir {
        /// The directory.
        dir: FileId,
        /// Most entries to return; at least 1.
        limit: usize,
    },
    /// Read up to `len` bytes; answers [`FileReply::Data`], shorter only at the end of the file.
    Read {
        /// The file.
        file: FileId,
        /// First byte.
        offset: u64,
        /// Most bytes to return.
        len: usize,
    },
    /// Write all of `data`; answers [`FileReply::Done`]. After a write that failed, those that follow fail likewise, so
    /// that what is there has no gap.
    Write {
        /// The file.
        file: FileId,
        /// Where the first byte goes.
        offset: u64,
        /// The bytes.
        data: Vec<u8>,
    },
    /// The same with bytes that a transport took, where [`Files::takes_parcels`].
    WriteParcel {
        /// The file.
        file: FileId,
        /// Where the first byte goes.
        offset: u64,
        /// The bytes.
        parcel: Parcel,
    },
    /// Set the length of a file; answers [`FileReply::Done`].
    Truncate {
        /// The file.
        file: FileId,
        /// Its new length in bytes.
        len: u64,
    },
    /// Give a file opened with [`OpenMode::Replace`] or [`OpenMode::CreateNew`] its name; answers [`FileReply::Done`]. A
    /// file that has its name already stays as it is.
    Publish {
        /// The file.
        file: FileId,
        /// It is complete and takes the place of what had the name; fails when a write failed. Otherwise it gets the
        /// name only if nothing has it, and fails with [`FileError::Exists`].
        whole: bool,
    },
    /// Close a file after the operations submitted before; answers [`FileReply::Done`] (or the error that an earlier
    /// write left behind).
    Close {
        /// The file.
        file: FileId,
    },
    /// No file at all, but work that would hold up the loop as a slow disk would; answers [`FileReply::Data`].
    Compute {
        /// What is to be done.
        work: Work,
    },
    /// Remove a file.
    Remove {
        /// Which.
        path: VirtualPath,
    },
    /// Remove an empty directory.
    RemoveDir {
        /// Which.
        path: VirtualPath,
    },
    /// Make a directory.
    MakeDir {
        /// Which.
        path: VirtualPath,
    },
    /// Rename a file or directory; an existing file at `to` is replaced.
    Rename {
        /// Old name.
        from: VirtualPath,
        /// New name.
        to: VirtualPath,
    },
    /// Set the modification time.
    SetModified {
        /// Which.
        path: VirtualPath,
        /// ns since 1970-01-01 UTC.
        modified_ns: i64,
    },
    /// Set the Unix permission bits.
    SetMode {
        /// Which.
        path: VirtualPath,
        /// Bits within 0o777.
        mode: u16,
    },
}

/// What a finished operation answers.
#[derive(Debug)]
pub enum FileReply {
    /// The file is open.
    Opened {
        /// Its id, valid until closed.
        file: FileId,
        /// Its metadata at that moment.
        meta: Metadata,
    },
    /// Metadata.
    Meta(Metadata),
    /// Directory entries.
    Entries(Vec<DirEntry>),
    /// Bytes read, or computed.
    Data(Bytes),
    /// Done; there is nothing to tell.
    Done,
}

/// Why an operation failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileError {
    /// No such file or directory.
    NotFound,
    /// The file system does not permit it, or the path would leave the root.
    Permission,
    /// A component of the path is not a directory.
    NotADirectory,
    /// It is a directory.
    IsADirectory,
    /// It exists already.
    Exists,
    /// The directory is not empty.
    NotEmpty,
    /// Somebody else is writing it.
    Busy,
    /// The disk or quota is full.
    NoSpace,
    /// The server serves read-only.
    ReadOnly,
    /// The id is not one of an open file.
    Stale,
    /// Too many files are open.
    TooManyOpen,
    /// Anything else that the system reported.
    Io,
}

impl core::fmt::Display for FileError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            FileError::NotFound => "no such file or directory",
            FileError::Permission => "permission denied",
            FileError::NotADirectory => "not a directory",
            FileError::IsADirectory => "is a directory",
            FileError::Exists => "exists already",
            FileError::NotEmpty => "directory not empty",
            FileError::Busy => "somebody else is writing it",
            FileError::NoSpace => "no space left",
            FileError::ReadOnly => "read-only",
            FileError::Stale => "file is not open",
            FileError::TooManyOpen => "too many open files",
            FileError::Io => "input/output error",
        })
    }
}

impl core::error::Error for FileError {}

/// A finished operation.
#[derive(Debug)]
pub struct FileDone {
    /// Who asked.
    pub owner: Owner,
    /// What the asker called it.
    pub tag: u64,
    /// How it ended.
    pub result: Result<FileReply, FileError>,
}

/// What came of moving received bytes to a file ([`crate::Transport::store`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stored {
    /// Bytes that are in the file.
    pub len: usize,
    /// Why no more are: the rest of what was taken is lost, and the file takes nothing more.
    pub error: Option<FileError>,
}

/// A file system under a virtual root.
///
/// Operations on the same [`FileId`] run in the order submitted; others in any order. Every accepted operation is
/// answered exactly once.
pub trait Files {
    /// Starts an operation; gives it back when too many are under way, or as soon as the asker shall try later.
    fn submit(&mut self, owner: Owner, tag: u64, op: FileOp) -> Result<(), FileOp>;

    /// The next finished operation, if any.
    fn poll_done(&mut self) -> Option<FileDone>;

    /// Whether [`Files::poll_done`] has something that nothing else announces: what was finished as it was submitted.
    /// Whoever submits asks this before it sleeps.
    fn has_done(&self) -> bool {
        false
    }

    /// Metadata of a path, where they are to be had without waiting, as they are now; `None` says nothing of it, and takes
    /// [`FileOp::Stat`].
    fn stat_now(&mut self, _path: &VirtualPath) -> Option<Result<Metadata, FileError>> {
        None
    }

    /// Whether a path that was asked for a moment ago leads to this same file, unchanged: cheaper than [`Files::stat_now`], of
    /// which `true` tells no more than that. `false` says nothing of the file.
    fn is_same_now(&mut self, _path: &VirtualPath, _known: &Metadata) -> bool {
        false
    }

    /// Writes what can be written without waiting, straight from where it lies; returns how many bytes, from the first
    /// on. What is left, 0 being the whole, takes [`FileOp::Write`], which also tells of errors.
    fn write_now(&mut self, _file: FileId, _offset: u64, _data: &[u8]) -> usize {
        0
    }

    /// Whether it knows what the parcels of the transport beside it are, so that [`FileOp::WriteParcel`] writes them.
    fn takes_parcels(&self) -> bool {
        false
    }

    /// A file that lies in memory and never changes, such as one of a firmware's image: it can be served without any operation.
    fn constant(&self, _path: &VirtualPath) -> Option<(Metadata, Bytes)> {
        None
    }

    /// The media type of a file whose name does not tell it, such as one that the file system itself makes.
    fn media_type(&self, _path: &VirtualPath) -> Option<&'static str> {
        None
    }
}
