//! Writing, renaming and removing.

use super::*;

#[test]
fn writes_of_one_file_keep_their_order() {
    let dir = TempDir::new();
    let mut files = serve(&dir, true);
    let (file, meta) = open(&mut files, "/up", OpenMode::Create).unwrap();
    assert_eq!(meta.len, 0);
    // Each overwrites the one before and adds a byte: only in order does the last one win everywhere.
    for round in 0..200u64 {
        let data = vec![round as u8; round as usize + 1];
        files.submit(OWNER, round, FileOp::Write { file, offset: 0, data }).unwrap();
    }
    files.submit(OWNER, 200, FileOp::Truncate { file, len: 150 }).unwrap();
    files.submit(OWNER, 201, FileOp::Close { file }).unwrap();
    files.submit(OWNER, 202, FileOp::Write { file, offset: 0, data: vec![1] }).unwrap();
    let mut last = None;
    for _ in 0..203 {
        let one = next(&mut files);
        if one.tag == 202 {
            fails(one.result, FileError::Stale);
            continue;
        }
        assert!(last.is_none_or(|last| last < one.tag), "{} after {last:?}", one.tag);
        last = Some(one.tag);
        done(one.result);
    }
    assert_eq!(std::fs::read(dir.0.join("up")).unwrap(), [199; 150]);
}

#[test]
fn each_mode_opens_in_its_way() {
    let dir = TempDir::new();
    dir.write("old", b"0123456789");
    let mut files = serve(&dir, true);
    let (file, meta) = open(&mut files, "/old", OpenMode::Update).unwrap();
    assert_eq!(meta.len, 10);
    done(ask(&mut files, FileOp::Write { file, offset: 12, data: b"ab".to_vec() }));
    done(ask(&mut files, FileOp::Close { file }));
    assert_eq!(std::fs::read(dir.0.join("old")).unwrap(), b"0123456789\0\0ab");
    let (file, meta) = open(&mut files, "/old", OpenMode::Create).unwrap();
    assert_eq!(meta.len, 0);
    done(ask(&mut files, FileOp::Write { file, offset: 0, data: b"new".to_vec() }));
    done(ask(&mut files, FileOp::Close { file }));
    assert_eq!(std::fs::read(dir.0.join("old")).unwrap(), b"new");
    let (file, _) = open(&mut files, "/fresh", OpenMode::CreateNew).unwrap();
    done(ask(&mut files, FileOp::Close { file }));
    let (file, _) = open(&mut files, "/old", OpenMode::Read).unwrap();
    fails(ask(&mut files, FileOp::Write { file, offset: 0, data: b"x".to_vec() }), FileError::Permission);
    fails(ask(&mut files, FileOp::Truncate { file, len: 0 }), FileError::Permission);
}

#[test]
fn a_failed_write_is_told_again_by_close() {
    let dir = TempDir::new();
    let mut files = serve(&dir, true);
    let (file, _) = open(&mut files, "/big", OpenMode::Create).unwrap();
    let write = FileOp::Write { file, offset: u64::MAX - 1, data: vec![0; 10] };
    assert!(ask(&mut files, write).is_err());
    let closed = ask(&mut files, FileOp::Close { file });
    assert!(matches!(closed, Err(FileError::Io | FileError::NoSpace)), "{closed:?}");
}

#[test]
fn names_and_attributes_change() {
    let dir = TempDir::new();
    dir.write("a", b"a");
    dir.write("b", b"bb");
    let mut files = serve(&dir, true);
    done(ask(&mut files, FileOp::MakeDir { path: path("/d") }));
    fails(ask(&mut files, FileOp::MakeDir { path: path("/d") }), FileError::Exists);
    fails(ask(&mut files, FileOp::MakeDir { path: path("/") }), FileError::Exists);
    done(ask(&mut files, FileOp::Rename { from: path("/a"), to: path("/d/a") }));
    fails(ask(&mut files, FileOp::RemoveDir { path: path("/d") }), FileError::NotEmpty);
    fails(ask(&mut files, FileOp::Remove { path: path("/d") }), FileError::IsADirectory);
    done(ask(&mut files, FileOp::Rename { from: path("/b"), to: path("/d/a") }));
    assert_eq!(stat(&mut files, "/d/a").unwrap().len, 2);
    fails(ask(&mut files, FileOp::Rename { from: path("/b"), to: path("/c") }), FileError::NotFound);
    fails(ask(&mut files, FileOp::Rename { from: path("/"), to: path("/c") }), FileError::Permission);
    for modified_ns in [1_234_567_890_123_456_789, 0, -1] {
        done(ask(&mut files, FileOp::SetModified { path: path("/d/a"), modified_ns }));
        assert_eq!(stat(&mut files, "/d/a").unwrap().modified_ns, modified_ns);
    }
    done(ask(&mut files, FileOp::SetMode { path: path("/d/a"), mode: 0o7640 }));
    assert_eq!(stat(&mut files, "/d/a").unwrap().mode, 0o640);
    done(ask(&mut files, FileOp::SetMode { path: path("/d"), mode: 0o750 }));
    assert_eq!(stat(&mut files, "/d").unwrap().mode, 0o750);
    done(ask(&mut files, FileOp::Remove { path: path("/d/a") }));
    done(ask(&mut files, FileOp::RemoveDir { path: path("/d") }));
    fails(ask(&mut files, FileOp::RemoveDir { path: path("/") }), FileError::Permission);
    assert!(list(&mut files, "/", 10).is_empty());
}

#[test]
fn read_only_changes_nothing() {
    let dir = TempDir::new();
    dir.write("f", b"kept");
    let mut files = serve(&dir, false);
    for mode in [OpenMode::Create, OpenMode::CreateNew, OpenMode::Update] {
        assert_eq!(open(&mut files, "/f", mode).map(|_| ()), Err(FileError::ReadOnly));
        assert_eq!(open(&mut files, "/g", mode).map(|_| ()), Err(FileError::ReadOnly));
    }
    for op in [
        FileOp::Remove { path: path("/f") },
        FileOp::RemoveDir { path: path("/f") },
        FileOp::MakeDir { path: path("/d") },
        FileOp::Rename { from: path("/f"), to: path("/g") },
        FileOp::SetModified { path: path("/f"), modified_ns: 0 },
        FileOp::SetMode { path: path("/f"), mode: 0 },
    ] {
        fails(ask(&mut files, op), FileError::ReadOnly);
    }
    assert_eq!(std::fs::read(dir.0.join("f")).unwrap(), b"kept");
    assert_eq!(list(&mut files, "/", 10).len(), 1);
}
