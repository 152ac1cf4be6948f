//! What needs no worker, and what looks as if it needed none.

use super::*;
use crate::files::job::FileWork;
use crate::files::table::OpenFile;
use crate::mailbox::lock;

fn directory(files: &mut AnyFiles) -> &mut WorkerFiles {
    let AnyFiles::Directory(files) = files else { panic!("not a directory") };
    files
}

fn opened(files: &mut AnyFiles, file: FileId) -> Arc<OpenFile> {
    directory(files).table.find(file).unwrap()
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8).collect()
}

/// Submits a read and tells whether it was answered at once.
fn submit(files: &mut AnyFiles, file: FileId, offset: u64, len: usize) -> bool {
    files.submit(OWNER, 42, FileOp::Read { file, offset, len }).unwrap();
    files.has_done()
}

fn data(files: &mut AnyFiles) -> Bytes {
    match next(files).result {
        Ok(FileReply::Data(data)) => data,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_in_memory_is_read_at_once() {
    let Some(dir) = TempDir::in_memory() else { return };
    let content = bytes(300_000);
    dir.write("a", &content);
    let mut files = on_processors(serve(&dir, false), 1);
    let (file, _) = open(&mut files, "/a", OpenMode::Read).unwrap();
    for (offset, len) in [(0, READ_NOW_MAX), (299_000, 5_000), (300_000, 5), (1 << 40, 5), (7, 0)] {
        assert!(submit(&mut files, file, offset, len), "{offset} {len}");
        let start = usize::try_from(offset).unwrap().min(content.len());
        let end = (start + len).min(content.len());
        assert_eq!(data(&mut files).as_ref(), &content[start..end]);
        assert!(!files.has_done());
    }
    assert!(!submit(&mut files, file, 0, READ_NOW_MAX + 1), "so much is copied by a worker");
    assert_eq!(data(&mut files).as_ref(), &content[..READ_NOW_MAX + 1]);
}

#[test]
fn where_a_worker_has_a_processor_of_its_own_it_copies_what_is_long() {
    let Some(dir) = TempDir::in_memory() else { return };
    dir.write("a", &bytes(300_000));
    let mut files = on_processors(serve(&dir, true), 2);
    let (file, _) = open(&mut files, "/a", OpenMode::Read).unwrap();
    let (written, _) = open(&mut files, "/b", OpenMode::Update).unwrap();
    let mut check = |crowded: bool| {
        assert!(submit(&mut files, file, 0, READ_NOW_SHORT));
        assert_eq!(data(&mut files).len(), READ_NOW_SHORT);
        assert_eq!(submit(&mut files, file, 0, READ_NOW_SHORT + 1), crowded);
        assert_eq!(data(&mut files).len(), READ_NOW_SHORT + 1);
        // The worker tells before it lets go of the file.
        for _ in 0..1200 {
            if !opened(&mut files, file).is_busy() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert_eq!(files.write_now(written, 0, b"x"), usize::from(crowded));
        files.share()
    };
    let shared = check(false);
    let second = shared.into_files().unwrap();
    check(true);
    drop(second);
    check(false);
}

#[test]
fn a_file_that_grows_shrinks_or_has_holes_is_read_as_it_is() {
    for dir in [TempDir::in_memory(), Some(TempDir::new())].into_iter().flatten() {
        dir.write("a", b"12345678");
        let mut files = on_processors(serve(&dir, false), 1);
        let (file, _) = open(&mut files, "/a", OpenMode::Read).unwrap();
        assert_eq!(read(&mut files, file, 0, 100).unwrap().as_ref(), b"12345678");
        dir.write("a", b"1234");
        assert_eq!(read(&mut files, file, 0, 8).unwrap().as_ref(), b"1234");
        dir.write("a", b"123456");
        assert_eq!(read(&mut files, file, 2, 8).unwrap().as_ref(), b"3456");
        let sparse = std::fs::File::create(dir.0.join("a")).unwrap();
        sparse.set_len(5 << 30).unwrap();
        assert_eq!(read(&mut files, file, (5 << 30) - 5, 8).unwrap().as_ref(), [0; 5]);
        sparse.set_len(0).unwrap();
        assert_eq!(read(&mut files, file, 0, 8).unwrap().as_ref(), b"");
    }
}

#[test]
fn a_file_system_that_cannot_tell_leaves_reads_to_workers() {
    // Whether these bytes are there without waiting, procfs does not say.
    let files = WorkerFiles::start(std::path::Path::new("/proc"), WorkerConfig::default());
    let mut files = AnyFiles::Directory(files.unwrap());
    let (file, _) = open(&mut files, "/version", OpenMode::Read).unwrap();
    for _ in 0..2 {
        assert!(!submit(&mut files, file, 0, 100));
        assert!(data(&mut files).as_ref().starts_with(b"Linux"));
    }
    assert!(!opened(&mut files, file).reads_now());
    assert_eq!(opened(&mut files, file).resident_to(0, 100, 50), 0);
}

#[test]
fn memory_is_always_resident() {
    let Some(dir) = TempDir::in_memory() else { return };
    dir.write("a", &bytes(100_000));
    let mut files = on_processors(serve(&dir, false), 1);
    let (file, _) = open(&mut files, "/a", OpenMode::Read).unwrap();
    for _ in 0..2 {
        assert_eq!(opened(&mut files, file).resident_to(0, 100_000, 1_000), 100_000);
    }
}

#[test]
fn a_read_that_began_at_once_is_ended_by_a_worker() {
    let dir = TempDir::new();
    dir.write("a", b"0123456789");
    let mut files = on_processors(serve(&dir, false), 1);
    let (file, _) = open(&mut files, "/a", OpenMode::Read).unwrap();
    let mut page = directory(&mut files).crew.work.take_page(8);
    page.as_mut()[..3].copy_from_slice(b"abc");
    let work = FileWork::Read { offset: 1, len: 8, begun: Some((page, 3)) };
    let workers = directory(&mut files);
    workers.under_way += 1;
    workers.submit_file(OWNER, 42, file, work);
    assert_eq!(data(&mut files).as_ref(), b"abc45678", "what was there is not read again");
}

#[test]
fn nothing_overtakes_what_was_submitted_before() {
    let Some(dir) = TempDir::in_memory() else { return };
    dir.write("a", b"content");
    let mut files = on_processors(serve(&dir, true), 1);
    let (file, _) = open(&mut files, "/a", OpenMode::Read).unwrap();
    let (written, _) = open(&mut files, "/b", OpenMode::Update).unwrap();
    for id in [file, written] {
        lock(&opened(&mut files, id).queue).busy = true;
    }
    assert!(!submit(&mut files, file, 0, 7), "an operation on it is under way");
    assert_eq!(files.write_now(written, 0, b"x"), 0, "the same");
    let queue = Arc::clone(&opened(&mut files, file).queue);
    let waiting = lock(&queue).waiting.pop_front().unwrap();
    for id in [file, written] {
        lock(&opened(&mut files, id).queue).busy = false;
    }
    directory(&mut files).crew.work.push(waiting);
    assert_eq!(data(&mut files).as_ref(), b"content");
    assert_eq!(files.write_now(written, 0, b"x"), 1);
}

#[test]
fn memory_is_written_at_once_and_nothing_else_is() {
    let Some(dir) = TempDir::in_memory() else { return };
    dir.write("read", b"");
    let mut files = on_processors(serve(&dir, true), 1);
    let (file, _) = open(&mut files, "/a", OpenMode::Replace).unwrap();
    let content = bytes(100_000);
    assert_eq!(files.write_now(file, 0, &content), content.len());
    assert_eq!(files.write_now(file, 5 << 30, b"end"), 3);
    assert_eq!(files.write_now(file, u64::MAX, b"x"), 0);
    done(ask(&mut files, FileOp::Publish { file, whole: true }));
    assert_eq!(std::fs::metadata(dir.0.join("a")).unwrap().len(), (5 << 30) + 3);
    opened(&mut files, file).record_error(FileError::NoSpace);
    assert_eq!(files.write_now(file, 0, b"x"), 0, "after a write that failed");
    fails(ask(&mut files, FileOp::Close { file }), FileError::NoSpace);
    assert_eq!(files.write_now(file, 0, b"x"), 0, "closed");
    let (file, _) = open(&mut files, "/read", OpenMode::Read).unwrap();
    assert_eq!(files.write_now(file, 0, b"x"), 0);
    let (file, _) = open(&mut files, "/b", OpenMode::Update).unwrap();
    opened(&mut files, file).medium.mute();
    assert_eq!(files.write_now(file, 0, b"x"), 0, "not memory");
    let (dir, _) = open(&mut files, "/", OpenMode::Read).unwrap();
    assert_eq!(files.write_now(dir, 0, b"x"), 0);
}
