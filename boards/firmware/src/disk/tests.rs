//! Tests of the files of a machine without a disk.

use super::ram::BLOCK;
use super::{CAPTURE, Disk, FlashFile, TRACE};
use crate::capture::Capture;
use crate::trace::Tracer;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use linerate_transport::{
    FileError, FileId, FileKind, FileOp, FileReply, Files, Metadata, OpenMode, Owner, VirtualPath,
};
use linerate_wire::units::Instant;
use proptest::prelude::*;

static FLASH: &[FlashFile] = &[
    FlashFile { path: "/a/b/deep", bytes: b"deep" },
    FlashFile { path: "/a/file", bytes: b"0123456789" },
    FlashFile { path: "/index.html", bytes: b"hello" },
];

const BUILT: i64 = 1_000;

fn disk() -> Disk {
    Disk::new(FLASH, BUILT, 8 * BLOCK)
}

fn path(text: &str) -> VirtualPath {
    VirtualPath::parse(text).unwrap()
}

/// Does it, and returns the answer.
fn ask(disk: &mut Disk, op: FileOp) -> Result<FileReply, FileError> {
    disk.submit(Owner(1), 7, op).unwrap();
    let done = disk.poll_done().unwrap();
    assert_eq!((done.owner, done.tag), (Owner(1), 7));
    done.result
}

fn open(disk: &mut Disk, name: &str, mode: OpenMode) -> Result<(FileId, Metadata), FileError> {
    match ask(disk, FileOp::Open { path: path(name), mode })? {
        FileReply::Opened { file, meta } => Ok((file, meta)),
        other => panic!("{other:?}"),
    }
}

fn read(disk: &mut Disk, file: FileId, offset: u64, len: usize) -> Result<Vec<u8>, FileError> {
    match ask(disk, FileOp::Read { file, offset, len })? {
        FileReply::Data(data) => Ok(data.to_vec()),
        other => panic!("{other:?}"),
    }
}

fn write(disk: &mut Disk, file: FileId, offset: u64, data: &[u8]) -> Result<(), FileError> {
    ask(disk, FileOp::Write { file, offset, data: data.to_vec() }).map(|_| ())
}

fn close(disk: &mut Disk, file: FileId) -> Result<(), FileError> {
    ask(disk, FileOp::Close { file }).map(|_| ())
}

/// Writes a file as FTP does: aside, and published when it is whole.
fn put(disk: &mut Disk, name: &str, data: &[u8]) -> Result<(), FileError> {
    let (file, _) = open(disk, name, OpenMode::Replace)?;
    let written = write(disk, file, 0, data);
    let published = ask(disk, FileOp::Publish { file, whole: true }).map(|_| ());
    written.and(published).and(close(disk, file))
}

fn get(disk: &mut Disk, name: &str) -> Result<Vec<u8>, FileError> {
    let (file, meta) = open(disk, name, OpenMode::Read)?;
    let data = read(disk, file, 0, usize::MAX)?;
    assert_eq!(data.len() as u64, meta.len);
    close(disk, file)?;
    Ok(data)
}

#[test]
fn what_is_told_at_once_is_what_an_operation_tells() {
    let mut disk = disk();
    put(&mut disk, "/ram/file", b"12345").unwrap();
    ask(&mut disk, FileOp::MakeDir { path: path("/ram/folder") }).unwrap();
    for name in ["/", "/a", "/a/file", "/a/file/x", "/none", "/ram", "/ram/file", "/ram/folder", "/ram/none"]
    {
        let now = disk.stat_now(&path(name)).unwrap();
        let asked = match ask(&mut disk, FileOp::Stat { path: path(name) }) {
            Ok(FileReply::Meta(meta)) => Ok(meta),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error),
        };
        assert_eq!(now, asked, "{name}");
    }
    // These are made when they are opened.
    for name in [super::LIVE, TRACE, CAPTURE] {
        assert_eq!(disk.stat_now(&path(name)), None, "{name}");
        assert_eq!(disk.media_type(&path(name)), (name != CAPTURE).then_some("application/json"), "{name}");
    }
}

fn list(disk: &mut Disk, name: &str) -> Vec<(String, FileKind)> {
    let (dir, meta) = open(disk, name, OpenMode::Read).unwrap();
    assert_eq!(meta.kind, FileKind::Directory);
    let mut names = Vec::new();
    loop {
        let Ok(FileReply::Entries(entries)) = ask(disk, FileOp::ReadDir { dir, limit: 2 }) else { panic!() };
        if entries.is_empty() {
            close(disk, dir).unwrap();
            return names;
        }
        names.extend(entries.into_iter().map(|entry| (entry.name, entry.meta.kind)));
    }
}

#[test]
fn flash_alone_never_changes() {
    let mut disk = disk();
    let (meta, bytes) = disk.constant(&path("/a/file")).unwrap();
    let (_, opened) = open(&mut disk, "/a/file", OpenMode::Read).unwrap();
    assert_eq!((meta, bytes.as_ref()), (opened, &b"0123456789"[..]));
    assert_eq!(bytes.as_ref().as_ptr(), FLASH[1].bytes.as_ptr(), "it was copied");
    let (file, _) = open(&mut disk, "/ram/file", OpenMode::Create).unwrap();
    close(&mut disk, file).unwrap();
    for name in ["/ram/file", "/ram", "/a", "/none", super::LIVE, TRACE, CAPTURE] {
        assert!(disk.constant(&path(name)).is_none(), "{name}");
    }
}

#[test]
fn flash_is_read_where_it_lies() {
    let mut disk = disk();
    let (file, meta) = open(&mut disk, "/a/file", OpenMode::Read).unwrap();
    assert_eq!((meta.len, meta.kind, meta.modified_ns), (10, FileKind::File, BUILT));
    let Ok(FileReply::Data(data)) = ask(&mut disk, FileOp::Read { file, offset: 3, len: 4 }) else {
        panic!()
    };
    assert_eq!(data.as_ptr(), FLASH[1].bytes[3..].as_ptr());
    assert_eq!(read(&mut disk, file, 8, 100).unwrap(), b"89");
    assert_eq!(read(&mut disk, file, u64::MAX, 1).unwrap(), b"");
    assert_eq!(write(&mut disk, file, 0, b"x"), Err(FileError::ReadOnly));
    close(&mut disk, file).unwrap();
    assert_eq!(read(&mut disk, file, 0, 1), Err(FileError::Stale));
    assert_eq!(close(&mut disk, file), Err(FileError::Stale));
}

#[test]
fn directories_are_those_of_the_paths() {
    let mut disk = disk();
    let (file, directory) = (FileKind::File, FileKind::Directory);
    let entry = |name: &str, kind| (name.to_string(), kind);
    assert_eq!(
        list(&mut disk, "/"),
        [entry("a", directory), entry("index.html", file), entry("ram", directory), entry("stats", file)]
    );
    assert_eq!(list(&mut disk, "/a"), [entry("b", directory), entry("file", file)]);
    assert_eq!(list(&mut disk, "/ram"), []);
    assert_eq!(open(&mut disk, "/a/c", OpenMode::Read).err(), Some(FileError::NotFound));
    // The beginning of a name is no directory.
    assert_eq!(open(&mut disk, "/ind", OpenMode::Read).err(), Some(FileError::NotFound));
}

#[test]
fn nothing_outside_of_the_ram_disk_changes() {
    let mut disk = disk();
    for name in ["/index.html", "/new", "/a/new", "/stats", "/ramen"] {
        for mode in [OpenMode::Create, OpenMode::Replace, OpenMode::CreateNew, OpenMode::Update] {
            assert_eq!(open(&mut disk, name, mode).err(), Some(FileError::ReadOnly), "{name}");
        }
        let (from, to) = (path(name), path("/ram/x"));
        assert_eq!(ask(&mut disk, FileOp::Rename { from, to }).err(), Some(FileError::ReadOnly));
        for op in [FileOp::Remove { path: path(name) }, FileOp::MakeDir { path: path(name) }] {
            assert_eq!(ask(&mut disk, op).err(), Some(FileError::ReadOnly), "{name}");
        }
    }
}

#[test]
fn a_file_is_replaced_as_a_whole_or_not_at_all() {
    let mut disk = disk();
    disk.set_wall(5_000);
    put(&mut disk, "/ram/f", b"old").unwrap();
    // A reader that has it open keeps what it opened.
    let (reader, _) = open(&mut disk, "/ram/f", OpenMode::Read).unwrap();
    let (file, _) = open(&mut disk, "/ram/f", OpenMode::Replace).unwrap();
    write(&mut disk, file, 0, b"newer").unwrap();
    assert_eq!(get(&mut disk, "/ram/f").unwrap(), b"old");
    ask(&mut disk, FileOp::Publish { file, whole: true }).unwrap();
    assert_eq!(get(&mut disk, "/ram/f").unwrap(), b"newer");
    assert_eq!(read(&mut disk, reader, 0, 9).unwrap(), b"old");
    close(&mut disk, reader).unwrap();
    close(&mut disk, file).unwrap();
    // What was not published is gone.
    let (file, _) = open(&mut disk, "/ram/f", OpenMode::Replace).unwrap();
    write(&mut disk, file, 0, b"half").unwrap();
    close(&mut disk, file).unwrap();
    assert_eq!(get(&mut disk, "/ram/f").unwrap(), b"newer");
    assert_eq!(disk.ram_usage(), (BLOCK, 8 * BLOCK));
    assert_eq!(open(&mut disk, "/ram/f", OpenMode::CreateNew).err(), Some(FileError::Exists));
}

#[test]
fn a_full_disk_says_so_and_gives_back_what_was_written() {
    let mut disk = disk();
    put(&mut disk, "/ram/f", b"old").unwrap();
    let much = [1; 9 * BLOCK];
    assert_eq!(put(&mut disk, "/ram/f", &much), Err(FileError::NoSpace));
    assert_eq!(get(&mut disk, "/ram/f").unwrap(), b"old");
    assert_eq!(disk.ram_usage().0, BLOCK);
    // After a write that failed, others fail: there is no gap. Closing tells it again, to the writer alone.
    let (file, _) = open(&mut disk, "/ram/g", OpenMode::Create).unwrap();
    let (reader, _) = open(&mut disk, "/ram/g", OpenMode::Read).unwrap();
    assert_eq!(write(&mut disk, file, 0, &much), Err(FileError::NoSpace));
    assert_eq!(write(&mut disk, file, 0, b"x"), Err(FileError::NoSpace));
    assert_eq!(close(&mut disk, reader), Ok(()));
    assert_eq!(close(&mut disk, file), Err(FileError::NoSpace));
    ask(&mut disk, FileOp::Remove { path: path("/ram/g") }).unwrap();
    assert_eq!(disk.ram_usage().0, BLOCK);
    let (file, _) = open(&mut disk, "/ram/h", OpenMode::Update).unwrap();
    assert_eq!(write(&mut disk, file, u64::MAX, b"x"), Err(FileError::NoSpace));
}

#[test]
fn nothing_written_beyond_the_end_leaves_the_end() {
    let mut disk = disk();
    let (file, _) = open(&mut disk, "/ram/f", OpenMode::Create).unwrap();
    write(&mut disk, file, 1, b"").unwrap();
    assert_eq!(read(&mut disk, file, 0, 9).unwrap(), b"");
    assert_eq!(disk.ram_usage().0, 0);
}

#[test]
fn one_writes_at_a_time() {
    let mut disk = disk();
    let (file, _) = open(&mut disk, "/ram/f", OpenMode::Create).unwrap();
    assert_eq!(open(&mut disk, "/ram/f", OpenMode::Update).err(), Some(FileError::Busy));
    close(&mut disk, file).unwrap();
    assert!(open(&mut disk, "/ram/f", OpenMode::Update).is_ok());
}

#[test]
fn names_move_with_what_is_below_them() {
    let mut disk = disk();
    for name in ["/ram/d", "/ram/d/e"] {
        ask(&mut disk, FileOp::MakeDir { path: path(name) }).unwrap();
    }
    put(&mut disk, "/ram/d/e/f", b"x").unwrap();
    put(&mut disk, "/ram/g", b"y").unwrap();
    let rename = |disk: &mut Disk, from: &str, to: &str| {
        ask(disk, FileOp::Rename { from: path(from), to: path(to) }).map(|_| ())
    };
    assert_eq!(rename(&mut disk, "/ram/d", "/ram/d/e/inside"), Err(FileError::Permission));
    assert_eq!(rename(&mut disk, "/ram/no", "/ram/x"), Err(FileError::NotFound));
    assert_eq!(rename(&mut disk, "/ram/g", "/ram/no/x"), Err(FileError::NotFound));
    assert_eq!(rename(&mut disk, "/ram/g", "/ram/d"), Err(FileError::IsADirectory));
    rename(&mut disk, "/ram/d", "/ram/moved").unwrap();
    assert_eq!(get(&mut disk, "/ram/moved/e/f").unwrap(), b"x");
    rename(&mut disk, "/ram/g", "/ram/moved/e/f").unwrap();
    assert_eq!(get(&mut disk, "/ram/moved/e/f").unwrap(), b"y");
    assert_eq!(disk.ram_usage().0, BLOCK);
    let remove = |disk: &mut Disk, name: &str| ask(disk, FileOp::RemoveDir { path: path(name) }).map(|_| ());
    assert_eq!(remove(&mut disk, "/ram/moved/e"), Err(FileError::NotEmpty));
    assert_eq!(remove(&mut disk, "/ram/moved/e/f"), Err(FileError::NotADirectory));
    assert_eq!(remove(&mut disk, "/ram"), Err(FileError::Permission));
}

#[test]
fn the_live_file_is_made_when_somebody_opens_it() {
    let mut disk = disk();
    disk.submit(Owner(1), 1, FileOp::Open { path: path("/stats"), mode: OpenMode::Read }).unwrap();
    assert!(disk.wants_live().is_some() && disk.poll_done().is_none());
    disk.supply(super::Live::Stats, "first".to_string());
    let Some(Ok(FileReply::Opened { file, meta })) = disk.poll_done().map(|done| done.result) else {
        panic!()
    };
    assert_eq!((read(&mut disk, file, 0, 99).unwrap(), meta.len), (b"first".to_vec(), 5));
    disk.submit(Owner(1), 1, FileOp::Stat { path: path("/stats") }).unwrap();
    assert!(disk.wants_live().is_some());
    disk.supply(super::Live::Stats, "second".to_string());
    let Some(Ok(FileReply::Meta(again))) = disk.poll_done().map(|done| done.result) else { panic!() };
    assert_ne!(again.inode, meta.inode);
    assert_eq!([meta.modified_ns, again.modified_ns], [0, 0], "no date that a cache could ask with");
    assert_eq!(read(&mut disk, file, 0, 99).unwrap(), b"first");
}

#[test]
fn more_than_it_takes_is_refused() {
    let mut disk = disk();
    while disk.submit(Owner(1), 1, FileOp::Stat { path: path("/") }).is_ok() {}
    assert!(disk.poll_done().is_some());
    assert!(disk.submit(Owner(1), 1, FileOp::Stat { path: path("/") }).is_ok());
    while disk.poll_done().is_some() {}
    while open(&mut disk, "/index.html", OpenMode::Read).is_ok() {}
    assert_eq!(open(&mut disk, "/index.html", OpenMode::Read).err(), Some(FileError::TooManyOpen));
    for n in 0..100 {
        let name = alloc::format!("/ram/{n}");
        if let Err(error) = ask(&mut disk, FileOp::MakeDir { path: path(&name) }) {
            assert_eq!((error, n > 50), (FileError::NoSpace, true));
            return;
        }
    }
    panic!("a hundred names");
}

#[test]
fn what_is_refused_as_too_many_are_open_leaves_nothing_behind() {
    let mut disk = disk();
    put(&mut disk, "/ram/f", b"old").unwrap();
    let mut files: Vec<FileId> = Vec::new();
    while let Ok((file, _)) = open(&mut disk, "/index.html", OpenMode::Read) {
        files.push(file);
    }
    for mode in [OpenMode::Update, OpenMode::Create, OpenMode::Read] {
        assert_eq!(open(&mut disk, "/ram/f", mode).err(), Some(FileError::TooManyOpen), "{mode:?}");
    }
    for _ in 0..100 {
        assert_eq!(open(&mut disk, "/ram/f", OpenMode::Replace).err(), Some(FileError::TooManyOpen));
    }
    ask(&mut disk, FileOp::MakeDir { path: path("/ram/d") }).unwrap();
    files.into_iter().for_each(|file| close(&mut disk, file).unwrap());
    assert_eq!(get(&mut disk, "/ram/f").unwrap(), b"old");
    let (file, _) = open(&mut disk, "/ram/f", OpenMode::Update).unwrap();
    close(&mut disk, file).unwrap();
    ask(&mut disk, FileOp::Remove { path: path("/ram/f") }).unwrap();
    assert_eq!(disk.ram_usage().0, 0);
}

#[test]
fn what_is_refused_for_want_of_space_takes_none() {
    let mut disk = disk();
    put(&mut disk, "/ram/f", b"old").unwrap();
    for offset in [7 * BLOCK, 9 * BLOCK] {
        let (file, _) = open(&mut disk, "/ram/g", OpenMode::Create).unwrap();
        assert_eq!(write(&mut disk, file, offset as u64, b"x"), Err(FileError::NoSpace));
        assert_eq!(read(&mut disk, file, 0, usize::MAX).unwrap(), b"");
        assert_eq!(disk.ram_usage().0, BLOCK);
        assert_eq!(close(&mut disk, file), Err(FileError::NoSpace));
    }
    let (file, _) = open(&mut disk, "/ram/f", OpenMode::Update).unwrap();
    let op = FileOp::Truncate { file, len: 9 * BLOCK as u64 };
    assert_eq!(ask(&mut disk, op).err(), Some(FileError::NoSpace));
    assert_eq!((read(&mut disk, file, 0, usize::MAX).unwrap(), disk.ram_usage().0), (b"old".to_vec(), BLOCK));
}

proptest! {
    /// A file of the RAM disk holds what a vector would.
    #[test]
    fn a_file_is_its_bytes(steps in proptest::collection::vec((any::<bool>(), 0..5_000usize, 0..3_000usize), 1..40)) {
        let mut disk = disk();
        let mut expected: Vec<u8> = Vec::new();
        let (file, _) = open(&mut disk, "/ram/f", OpenMode::Create).unwrap();
        for (n, (writes, offset, len)) in steps.into_iter().enumerate() {
            if writes {
                let data = alloc::vec![n as u8 + 1; len];
                write(&mut disk, file, offset as u64, &data).unwrap();
                if len > 0 {
                    expected.resize(expected.len().max(offset + len), 0);
                    expected[offset..offset + len].copy_from_slice(&data);
                }
            } else {
                ask(&mut disk, FileOp::Truncate { file, len: offset as u64 }).unwrap();
                expected.resize(offset, 0);
            }
            prop_assert_eq!(&read(&mut disk, file, 0, usize::MAX).unwrap(), &expected);
            let from = offset.min(expected.len());
            let part = &expected[from..(from + len).min(expected.len())];
            prop_assert_eq!(&read(&mut disk, file, offset as u64, len).unwrap(), part);
        }
        close(&mut disk, file).unwrap();
        ask(&mut disk, FileOp::Remove { path: path("/ram/f") }).unwrap();
        prop_assert_eq!(disk.ram_usage().0, 0);
    }
}

/// A trace without a clock.
struct Bench(std::sync::Mutex<crate::trace::Ring>);

impl crate::trace::Tracer for Bench {
    fn now(&self) -> Instant {
        Instant::ZERO
    }

    fn is_on(&self) -> bool {
        self.0.lock().unwrap().is_on()
    }

    fn switch(&self, is_on: bool) {
        self.0.lock().unwrap().switch(is_on, Instant::ZERO);
    }

    fn with(&self, work: &mut dyn FnMut(&mut crate::trace::Ring)) {
        work(&mut self.0.lock().unwrap());
    }
}

#[test]
fn what_instruments_have_kept_stays_while_it_is_read() {
    let ring = crate::trace::Ring::with_bytes(4_096);
    let bench: &'static Bench = std::boxed::Box::leak(std::boxed::Box::new(Bench(ring.into())));
    let capture = Capture::with_bytes(4_096, "bench", [2, 0, 0, 0, 0, 1]);
    let capture = crate::held::Held::own(capture);
    let mut disk = disk();
    assert_eq!(open(&mut disk, CAPTURE, OpenMode::Read).unwrap_err(), FileError::NotFound);
    disk.set_instruments(bench, capture.clone());
    bench.switch(true);
    capture.with(|capture| capture.start(100));
    // To look at it changes nothing; to open it ends it.
    assert!(matches!(ask(&mut disk, FileOp::Stat { path: path(CAPTURE) }), Ok(FileReply::Meta(_))));
    assert!(capture.with(|capture| capture.is_on()));
    let (file, meta) = open(&mut disk, CAPTURE, OpenMode::Read).unwrap();
    assert!(!capture.with(|capture| capture.is_on()));
    assert_eq!(read(&mut disk, file, 0, usize::MAX).unwrap().len() as u64, meta.len);
    capture.with(|capture| capture.start(100));
    assert_eq!(read(&mut disk, file, 0, 1).unwrap_err(), FileError::Stale);

    let op = FileOp::Open { path: path(TRACE), mode: OpenMode::Read };
    disk.submit(Owner(1), 7, op).unwrap();
    assert!(disk.poll_done().is_none(), "it waits for the names");
    assert_eq!(disk.wants_live(), Some(super::Live::Trace));
    disk.supply(super::Live::Trace, crate::trace::head("bench", &[]));
    let Ok(FileReply::Opened { file, meta }) = disk.poll_done().unwrap().result else { panic!("not open") };
    assert!(!bench.is_on());
    let text = read(&mut disk, file, 0, usize::MAX).unwrap();
    assert_eq!(text.len() as u64, meta.len);
    let json: serde_json::Value = serde_json::from_slice(&text).unwrap();
    assert!(json["traceEvents"].is_array());
}
