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
    assert_eq!(open(&mut files, "/none", OpenMode::Existing).err(), Some(FileError::NotFound));
    assert!(!dir.0.join("none").exists());
    let (file, meta) = open(&mut files, "/old", OpenMode::Existing).unwrap();
    assert_eq!(meta.len, 3);
    done(ask(&mut files, FileOp::Close { file }));
    let (file, _) = open(&mut files, "/fresh", OpenMode::CreateNew).unwrap();
    done(ask(&mut files, FileOp::Close { file }));
    let (file, _) = open(&mut files, "/old", OpenMode::Read).unwrap();
    fails(ask(&mut files, FileOp::Write { file, offset: 0, data: b"x".to_vec() }), FileError::Permission);
    fails(ask(&mut files, FileOp::Truncate { file, len: 0 }), FileError::Permission);
}

/// ext4 flushes a file that was cut to nothing when it is closed, also one that was empty: a call more is felt.
#[test]
fn a_file_of_that_length_is_not_cut() {
    let dir = TempDir::new();
    dir.write("old", b"0123456789");
    let mut files = serve(&dir, true);
    let (file, _) = open(&mut files, "/old", OpenMode::Update).unwrap();
    let path = dir.0.join("old");
    let long_ago = std::time::UNIX_EPOCH;
    for (len, expected) in [(10, &b"0123456789"[..]), (4, b"0123"), (6, b"0123\0\0"), (0, b""), (0, b"")] {
        let same = std::fs::metadata(&path).unwrap().len() == len;
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(long_ago).unwrap();
        done(ask(&mut files, FileOp::Truncate { file, len }));
        assert_eq!(std::fs::read(&path).unwrap(), expected);
        // The system notes the time of every call, whatever the length was.
        let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
        assert_eq!(modified == long_ago, same, "{len}");
    }
}

/// Also where length and modification are those from before (`rsync --inplace -t`, `touch -r`).
#[test]
fn content_that_is_written_anew_shows() {
    let dir = TempDir::new();
    let mut files = serve(&dir, false);
    let mut look = |content: &[u8]| {
        dir.write("a", content);
        let file = std::fs::File::options().write(true).open(dir.0.join("a")).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
        open(&mut files, "/a", OpenMode::Read).unwrap().1
    };
    let before = look(b"one");
    // The kernel's clock for this goes on by some milliseconds at a time.
    std::thread::sleep(std::time::Duration::from_millis(50));
    let after = look(b"two");
    assert_eq!((before.len, before.modified_ns, before.inode), (after.len, after.modified_ns, after.inode));
    assert!(before.changed_ns < after.changed_ns, "{before:?} {after:?}");
}

#[test]
fn a_file_is_the_same_until_it_is_changed_replaced_or_hidden() {
    let dir = TempDir::new();
    dir.write("a", b"one");
    std::os::unix::fs::symlink("a", dir.0.join("link")).unwrap();
    let mut files = serve(&dir, false);
    let [a, link, none] = ["/a", "/link", "/none"].map(|path| VirtualPath::parse(path).unwrap());
    let mut becomes_another = |change: &dyn Fn()| {
        dir.write("a", b"one");
        let known = files.stat_now(&a).unwrap().unwrap();
        assert!(files.is_same_now(&a, &known) && files.is_same_now(&link, &known));
        assert!(!files.is_same_now(&none, &known));
        // The kernel's clock for this goes on by some milliseconds at a time.
        std::thread::sleep(std::time::Duration::from_millis(50));
        change();
        assert!(!files.is_same_now(&a, &known) && !files.is_same_now(&link, &known));
    };
    let at = |name: &str| dir.0.join(name);
    becomes_another(&|| dir.write("a", b"two"));
    becomes_another(&|| {
        dir.write("b", b"one");
        std::fs::rename(at("b"), at("a")).unwrap();
    });
    becomes_another(&|| std::fs::remove_file(at("a")).unwrap());
    // Out of the root: another file, whatever it has.
    let outside = TempDir::new();
    outside.write("a", b"one");
    becomes_another(&|| {
        std::fs::remove_file(at("a")).unwrap();
        std::os::unix::fs::symlink(outside.0.join("a"), at("a")).unwrap();
    });
}

#[test]
fn a_directory_does_not_go_into_itself() {
    let dir = TempDir::new();
    std::fs::create_dir_all(dir.0.join("sub/deep")).unwrap();
    let mut files = serve(&dir, true);
    let [from, to] = ["/sub", "/sub/deep/x"].map(|path| VirtualPath::parse(path).unwrap());
    fails(ask(&mut files, FileOp::Rename { from, to }), FileError::Permission);
}

#[test]
fn a_file_takes_its_name_when_it_is_complete() {
    let dir = TempDir::new();
    dir.write("old", b"old content");
    std::fs::set_permissions(dir.0.join("old"), std::os::unix::fs::PermissionsExt::from_mode(0o640)).unwrap();
    let mut files = serve(&dir, true);
    let on_disk = |name: &str| std::fs::read(dir.0.join(name)).ok();
    let names = || {
        let mut names: Vec<_> = std::fs::read_dir(&dir.0).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    for (name, mode) in
        [("old", OpenMode::Replace), ("new", OpenMode::Replace), ("only", OpenMode::CreateNew)]
    {
        let (old, (file, meta)) = (on_disk(name), open(&mut files, name, mode).unwrap());
        assert_eq!(meta.len, 0);
        done(ask(&mut files, FileOp::Write { file, offset: 0, data: b"whole".to_vec() }));
        assert_eq!(on_disk(name), old, "nothing is seen of it");
        assert!(list(&mut files, "/", 10).iter().all(|entry| !entry.name.starts_with('.')));
        done(ask(&mut files, FileOp::Publish { file, whole: true }));
        assert_eq!(on_disk(name), Some(b"whole".to_vec()));
        done(ask(&mut files, FileOp::Close { file }));
    }
    assert_eq!(stat(&mut files, "/old").unwrap().mode, 0o640);
    assert_eq!(names().len(), before.len() + 2);
    // One that is not complete takes only a name that is free.
    for (name, taken) in [("old", true), ("part", false)] {
        let (file, _) = open(&mut files, name, OpenMode::Replace).unwrap();
        done(ask(&mut files, FileOp::Write { file, offset: 0, data: b"par".to_vec() }));
        let result = ask(&mut files, FileOp::Publish { file, whole: false });
        if taken {
            fails(result, FileError::Exists)
        } else {
            done(result)
        }
        done(ask(&mut files, FileOp::Close { file }));
        assert_eq!(on_disk(name), Some(if taken { b"whole".to_vec() } else { b"par".to_vec() }));
    }
    // One that is closed without a name leaves nothing, and neither does a server that ends.
    let (file, _) = open(&mut files, "gone", OpenMode::Replace).unwrap();
    done(ask(&mut files, FileOp::Close { file }));
    open(&mut files, "gone", OpenMode::Replace).unwrap();
    assert_eq!(names().len(), before.len() + 4);
    drop(files);
    assert_eq!(names().len(), before.len() + 3);
}

#[test]
fn links_and_files_with_several_names_are_written_in_place() {
    let dir = TempDir::new();
    dir.write("target", b"a long content");
    std::os::unix::fs::symlink("target", dir.0.join("link")).unwrap();
    dir.write("one", b"a long content");
    std::fs::hard_link(dir.0.join("one"), dir.0.join("two")).unwrap();
    let mut files = serve(&dir, true);
    for (name, other) in [("link", "target"), ("one", "two")] {
        let (file, meta) = open(&mut files, name, OpenMode::Replace).unwrap();
        assert_eq!(meta.len, 14, "{name}");
        done(ask(&mut files, FileOp::Truncate { file, len: 0 }));
        done(ask(&mut files, FileOp::Write { file, offset: 0, data: b"new".to_vec() }));
        done(ask(&mut files, FileOp::Publish { file, whole: true }));
        done(ask(&mut files, FileOp::Close { file }));
        assert_eq!(std::fs::read(dir.0.join(other)).unwrap(), b"new");
    }
    assert!(std::fs::symlink_metadata(dir.0.join("link")).unwrap().is_symlink());
    assert_eq!(open(&mut files, "link", OpenMode::CreateNew).map(|_| ()), Err(FileError::Exists));
}

#[test]
fn a_file_has_one_writer_under_whatever_name() {
    let dir = TempDir::new();
    dir.write("target", b"content");
    std::os::unix::fs::symlink("target", dir.0.join("link")).unwrap();
    let mut files = serve(&dir, true);
    for mode in [OpenMode::Update, OpenMode::Replace] {
        let (file, _) = open(&mut files, "target", mode).unwrap();
        for (name, mode) in
            [("link", OpenMode::Update), ("target", OpenMode::Replace), ("target", OpenMode::Update)]
        {
            assert_eq!(open(&mut files, name, mode).map(|_| ()), Err(FileError::Busy), "{name} {mode:?}");
        }
        open(&mut files, "target", OpenMode::Read).unwrap();
        done(ask(&mut files, FileOp::Close { file }));
    }
    open(&mut files, "link", OpenMode::Update).unwrap();
}

#[test]
fn what_a_killed_server_left_is_removed_and_what_is_under_way_stays() {
    let dir = TempDir::new();
    let stale = |name: &str| {
        let path = dir.0.join(name);
        std::fs::write(&path, b"half").unwrap();
        path
    };
    std::fs::create_dir_all(dir.0.join("a/b")).unwrap();
    let (top, deep) = (stale(".linerate-upload-0"), stale("a/b/.linerate-upload-1"));
    let mut files = serve(&dir, true);
    assert!(!deep.exists() && !top.exists());
    let (file, _) = open(&mut files, "a/b/new", OpenMode::Replace).unwrap();
    done(ask(&mut files, FileOp::Write { file, offset: 0, data: b"whole".to_vec() }));
    let late = stale("a/b/.linerate-upload-2");
    // Another server that starts, a listing and an attempt to remove the directory leave alone what is under way.
    let mut second = serve(&dir, true);
    assert!(list(&mut second, "/a/b", 10).is_empty() && !late.exists());
    fails(ask(&mut second, FileOp::RemoveDir { path: path("/a/b") }), FileError::NotEmpty);
    fails(ask(&mut second, FileOp::Stat { path: path("/a/b/.linerate-upload-2") }), FileError::NotFound);
    let remove = FileOp::Remove { path: path("/a/b/.linerate-upload-2") };
    fails(ask(&mut second, remove), FileError::Permission);
    // Nor does a directory take the name that a file has until it is complete.
    let make = FileOp::MakeDir { path: path("/a/b/.linerate-upload-2") };
    fails(ask(&mut second, make), FileError::Permission);
    drop(second);
    done(ask(&mut files, FileOp::Publish { file, whole: true }));
    done(ask(&mut files, FileOp::Close { file }));
    assert_eq!(std::fs::read(dir.0.join("a/b/new")).unwrap(), b"whole");
    done(ask(&mut files, FileOp::Remove { path: path("/a/b/new") }));
    stale("a/b/.linerate-upload-3");
    done(ask(&mut files, FileOp::RemoveDir { path: path("/a/b") }));
}

#[test]
fn after_a_failed_write_nothing_more_is_written_or_published() {
    let dir = TempDir::new();
    dir.write("old", b"old");
    let mut files = serve(&dir, true);
    let (file, _) = open(&mut files, "old", OpenMode::Replace).unwrap();
    done(ask(&mut files, FileOp::Write { file, offset: 0, data: b"ab".to_vec() }));
    assert!(ask(&mut files, FileOp::Write { file, offset: u64::MAX - 1, data: vec![0; 10] }).is_err());
    assert!(ask(&mut files, FileOp::Write { file, offset: 2, data: b"cd".to_vec() }).is_err());
    assert!(ask(&mut files, FileOp::Publish { file, whole: true }).is_err());
    assert!(ask(&mut files, FileOp::Close { file }).is_err());
    assert_eq!(std::fs::read(dir.0.join("old")).unwrap(), b"old");
    assert_eq!(std::fs::read_dir(&dir.0).unwrap().count(), 1);
}

#[test]
fn a_new_file_that_the_sweep_got_hold_of_is_left_to_it() {
    let dir = TempDir::new();
    // With luck the sweep is in the directory while the file is made; whatever happens, nothing stays.
    for round in 0..200 {
        let mut files = start(&dir, true);
        let (file, _) = open(&mut files, "new", OpenMode::Replace).unwrap();
        done(ask(&mut files, FileOp::Write { file, offset: 0, data: vec![round; 10] }));
        done(ask(&mut files, FileOp::Publish { file, whole: true }));
        done(ask(&mut files, FileOp::Close { file }));
        drop(files); // waits for the sweep
        assert_eq!(std::fs::read(dir.0.join("new")).unwrap(), [round; 10]);
        assert_eq!(std::fs::read_dir(&dir.0).unwrap().count(), 1, "round {round}");
    }
}

#[test]
fn what_was_sent_is_kept_when_the_service_goes() {
    let dir = TempDir::new();
    let mut files = serve(&dir, true);
    let (file, _) = open(&mut files, "/new", OpenMode::Replace).unwrap();
    const PIECE: usize = 1 << 20;
    for number in 0..16 {
        let op = FileOp::Write { file, offset: (number * PIECE) as u64, data: vec![number as u8; PIECE] };
        files.submit(OWNER, 0, op).unwrap();
    }
    for op in [FileOp::Publish { file, whole: false }, FileOp::Close { file }] {
        files.submit(OWNER, 0, op).unwrap();
    }
    drop(files);
    let content = std::fs::read(dir.0.join("new")).unwrap();
    assert_eq!(content.len(), 16 * PIECE);
    assert!(
        content.chunks(PIECE).enumerate().all(|(number, piece)| piece.iter().all(|b| *b == number as u8))
    );
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
fn a_directory_with_nothing_but_links_to_nowhere_is_removed() {
    let dir = TempDir::new();
    std::fs::create_dir(dir.0.join("d")).unwrap();
    dir.write("kept", b"kept");
    let link = |name: &str, target: &str| std::os::unix::fs::symlink(target, dir.0.join(name)).unwrap();
    link("d/nowhere", "../gone");
    link("d/below", "../kept/file");
    link("d/out", "/etc/passwd");
    let mut files = serve(&dir, true);
    // What leads out of the root is left to whoever has made it.
    fails(ask(&mut files, FileOp::RemoveDir { path: path("/d") }), FileError::NotEmpty);
    assert_eq!(std::fs::read_dir(dir.0.join("d")).unwrap().count(), 3);
    std::fs::remove_file(dir.0.join("d/out")).unwrap();
    // One that leads somewhere is shown, and whoever sees it can remove it.
    link("d/somewhere", "../kept");
    fails(ask(&mut files, FileOp::RemoveDir { path: path("/d") }), FileError::NotEmpty);
    assert_eq!(std::fs::read_dir(dir.0.join("d")).unwrap().count(), 3);
    assert_eq!(
        list(&mut files, "/d", 10).iter().filter(|entry| entry.meta.kind == FileKind::File).count(),
        1
    );
    done(ask(&mut files, FileOp::Remove { path: path("/d/somewhere") }));
    done(ask(&mut files, FileOp::RemoveDir { path: path("/d") }));
    assert!(!dir.0.join("d").exists());
    assert_eq!(std::fs::read(dir.0.join("kept")).unwrap(), b"kept");
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
    // Work that touches no file is done all the same.
    let work = linerate_transport::Work::new(|| vec![1, 2, 3]);
    let Ok(FileReply::Data(data)) = ask(&mut files, FileOp::Compute { work }) else { panic!() };
    assert_eq!(data.as_ref(), [1, 2, 3]);
}
