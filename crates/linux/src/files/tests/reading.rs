//! Reading, and everything that must not be read.

use super::*;
use std::os::unix::fs::symlink;

#[test]
fn a_file_reads_as_it_is() {
    let dir = TempDir::new();
    let bytes: Vec<u8> = (0..300_000u32).map(|i| (i % 251) as u8).collect();
    dir.write("a.bin", &bytes);
    let mut files = serve(&dir, false);
    let (file, meta) = open(&mut files, "/a.bin", OpenMode::Read).unwrap();
    assert_eq!((meta.kind, meta.len), (FileKind::File, 300_000));
    assert!(meta.modified_ns > 1_000_000_000_000_000_000 && meta.inode > 0 && meta.mode & 0o600 == 0o600);
    assert_eq!(stat(&mut files, "/a.bin").unwrap(), meta);
    for (offset, len) in
        [(0, 300_000), (0, 1), (299_990, 100), (300_000, 5), (1 << 40, 5), (u64::MAX, 9), (5, 0)]
    {
        let start = usize::try_from(offset).unwrap().min(bytes.len());
        let end = start.saturating_add(len).min(bytes.len());
        let result = read(&mut files, file, offset, len);
        match offset {
            // The system refuses offsets beyond 63 bits.
            u64::MAX => assert!(result.is_err() || result.unwrap().is_empty()),
            _ => assert_eq!(result.unwrap().as_ref(), &bytes[start..end], "{offset} {len}"),
        }
    }
    assert_eq!(read(&mut files, file, 0, READ_MAX + 1).map(|data| data.len()), Err(FileError::Io));
    fails(ask(&mut files, FileOp::ReadDir { dir: file, limit: 1 }), FileError::NotADirectory);
    done(ask(&mut files, FileOp::Close { file }));
    assert_eq!(read(&mut files, file, 0, 1).map(|data| data.len()), Err(FileError::Stale));
    fails(ask(&mut files, FileOp::Close { file }), FileError::Stale);
}

#[test]
fn what_the_kernel_knows_of_a_path_takes_no_worker() {
    let dir = TempDir::new();
    dir.write("a", b"four");
    let mut files = serve(&dir, false);
    let mut look = |name: &str| {
        files.submit(OWNER, 1, FileOp::Stat { path: path(name) }).unwrap();
        // Without waiting: nobody else works on it.
        files.poll_done().map(|done| done.result)
    };
    let Some(Ok(FileReply::Meta(meta))) = look("/a") else { panic!("known, and not answered at once") };
    assert_eq!((meta.kind, meta.len), (FileKind::File, 4));
    dir.write("a", b"longer");
    let Some(Ok(FileReply::Meta(meta))) = look("/a") else { panic!("known, and not answered at once") };
    assert_eq!(meta.len, 6, "it is the file as it is now");
    std::fs::remove_file(dir.0.join("a")).unwrap();
    assert!(matches!(look("/a"), Some(Err(FileError::NotFound))));
}

#[test]
fn nothing_leads_out_of_the_root() {
    let dir = TempDir::new();
    let outside = TempDir::new();
    outside.write("secret", b"secret");
    std::fs::create_dir_all(dir.0.join("sub/deep")).unwrap();
    dir.write("sub/inside", b"inside");
    let secret = outside.0.join("secret");
    let up = format!("../{}/secret", outside.0.file_name().unwrap().to_str().unwrap());
    symlink("/etc", dir.0.join("etc")).unwrap();
    symlink("/etc/passwd", dir.0.join("passwd")).unwrap();
    symlink(&secret, dir.0.join("absolute")).unwrap();
    symlink(&up, dir.0.join("relative")).unwrap();
    symlink("/proc/self/root", dir.0.join("magic")).unwrap();
    symlink("..", dir.0.join("parent")).unwrap();
    symlink("loop", dir.0.join("loop")).unwrap();
    symlink("../inside", dir.0.join("sub/deep/up")).unwrap();
    symlink("sub/deep", dir.0.join("down")).unwrap();
    symlink("gone", dir.0.join("dangling")).unwrap();
    let mut files = serve(&dir, true);
    let out = [
        "/etc",
        "/etc/passwd",
        "/passwd",
        "/absolute",
        "/relative",
        "/magic",
        "/magic/etc/passwd",
        "/parent",
        "/loop",
    ];
    for name in out {
        for mode in [OpenMode::Read, OpenMode::Create, OpenMode::Update] {
            assert_eq!(
                open(&mut files, name, mode).map(|_| ()),
                Err(FileError::Permission),
                "{name} {mode:?}"
            );
        }
        assert_eq!(stat(&mut files, name), Err(FileError::Permission), "{name}");
        let op = FileOp::SetMode { path: path(name), mode: 0o777 };
        fails(ask(&mut files, op), FileError::Permission);
        let op = FileOp::SetModified { path: path(name), modified_ns: 0 };
        fails(ask(&mut files, op), FileError::Permission);
    }
    for name in ["/parent/x", "/etc/x", "/magic/tmp/x"] {
        for op in [
            FileOp::MakeDir { path: path(name) },
            FileOp::Remove { path: path(name) },
            FileOp::RemoveDir { path: path(name) },
            FileOp::Rename { from: path("/sub/inside"), to: path(name) },
            FileOp::Rename { from: path(name), to: path("/x") },
        ] {
            fails(ask(&mut files, op), FileError::Permission);
        }
    }
    assert!(VirtualPath::parse("/../etc/passwd").is_err());
    // Links that stay inside work, upwards too.
    for name in ["/sub/deep/up", "/down/up"] {
        let (file, _) = open(&mut files, name, OpenMode::Read).unwrap();
        assert_eq!(read(&mut files, file, 0, 100).unwrap().as_ref(), b"inside");
    }
    let kinds: Vec<(String, FileKind)> =
        list(&mut files, "/", 3).into_iter().map(|entry| (entry.name, entry.meta.kind)).collect();
    for name in ["etc", "passwd", "absolute", "relative", "magic", "parent", "loop", "dangling"] {
        assert!(kinds.contains(&(name.into(), FileKind::Other)), "{name}: {kinds:?}");
    }
    assert!(kinds.contains(&("down".into(), FileKind::Directory)));
    let deep = list(&mut files, "/down", 10);
    assert_eq!((deep.len(), deep[0].meta.kind, deep[0].meta.len), (1, FileKind::File, 6));
    // Removing a link removes the link.
    done(ask(&mut files, FileOp::Remove { path: path("/absolute") }));
    assert_eq!(std::fs::read(&secret).unwrap(), b"secret");
}

#[test]
fn an_absolute_link_that_stays_inside_works() {
    let (dir, outside) = (TempDir::new(), TempDir::new());
    outside.write("secret", b"secret");
    std::fs::create_dir_all(dir.0.join("sub/deep")).unwrap();
    dir.write("sub/deep/file", b"inside");
    let link =
        |target: &std::path::Path, name: &str| std::os::unix::fs::symlink(target, dir.0.join(name)).unwrap();
    link(&dir.0.join("sub/deep/file"), "to-file");
    link(&dir.0.join("sub"), "to-dir");
    link(&dir.0.join("to-dir/deep/../deep"), "sub/chain");
    link(&dir.0, "self");
    link(&dir.0.join("none"), "dangling");
    link(&dir.0.join("loop"), "loop");
    link(&outside.0.join("secret"), "out");
    link(&dir.0.join("..").join(outside.0.file_name().unwrap()).join("secret"), "up-and-out");
    link(&dir.0.join("sub/out2"), "twice");
    link(&outside.0, "sub/out2");
    // A name that merely begins like that of the root.
    let beside = PathBuf::from(format!("{}-beside", dir.0.display()));
    std::fs::create_dir(&beside).unwrap();
    std::fs::write(beside.join("secret"), b"secret").unwrap();
    link(&beside.join("secret"), "beside");
    let mut files = serve(&dir, true);
    for name in ["to-file", "to-dir/deep/file", "sub/chain/file", "self/self/to-file", "self/sub/chain/file"]
    {
        let (file, meta) = open(&mut files, name, OpenMode::Read).unwrap();
        assert_eq!(meta.len, 6, "{name}");
        assert_eq!(read(&mut files, file, 0, 100).unwrap().as_ref(), b"inside");
        assert_eq!(stat(&mut files, name).unwrap().kind, FileKind::File);
    }
    assert_eq!(list(&mut files, "/to-dir/deep", 9).len(), 1);
    let kinds = list(&mut files, "/", 99);
    assert_eq!(kinds.iter().find(|entry| entry.name == "to-dir").unwrap().meta.kind, FileKind::Directory);
    for name in ["out", "up-and-out", "twice/secret", "loop", "beside"] {
        for mode in [OpenMode::Read, OpenMode::Update, OpenMode::Replace] {
            assert_eq!(
                open(&mut files, name, mode).map(|_| ()),
                Err(FileError::Permission),
                "{name} {mode:?}"
            );
        }
        assert_eq!(stat(&mut files, name), Err(FileError::Permission), "{name}");
    }
    assert_eq!(stat(&mut files, "dangling"), Err(FileError::NotFound));
    let (file, _) = open(&mut files, "to-dir/new", OpenMode::Replace).unwrap();
    done(ask(&mut files, FileOp::Publish { file, whole: true }));
    assert!(dir.0.join("sub/new").exists());
    let (file, _) = open(&mut files, "dangling", OpenMode::Update).unwrap();
    done(ask(&mut files, FileOp::Close { file }));
    assert!(dir.0.join("none").exists());
    assert_eq!(std::fs::read(outside.0.join("secret")).unwrap(), b"secret");
    std::fs::remove_dir_all(beside).unwrap();
}

#[test]
fn a_fifo_or_a_socket_hangs_nobody() {
    let dir = TempDir::new();
    let fifo = dir.0.join("fifo");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(dir.0.join("socket")).unwrap();
    let mut files = serve(&dir, true);
    for name in ["/fifo", "/socket"] {
        for mode in [OpenMode::Read, OpenMode::Create, OpenMode::Update] {
            assert_eq!(
                open(&mut files, name, mode).map(|_| ()),
                Err(FileError::Permission),
                "{name} {mode:?}"
            );
        }
        assert_eq!(stat(&mut files, name).unwrap().kind, FileKind::Other);
    }
    assert!(list(&mut files, "/", 10).iter().all(|entry| entry.meta.kind == FileKind::Other));
}

#[test]
fn errors_say_what_is_wrong() {
    let dir = TempDir::new();
    dir.write("file", b"x");
    std::fs::create_dir(dir.0.join("dir")).unwrap();
    let mut files = serve(&dir, true);
    let mut check = |name: &str, mode, expected| {
        assert_eq!(open(&mut files, name, mode).map(|_| ()), expected, "{name} {mode:?}");
    };
    check("/none", OpenMode::Read, Err(FileError::NotFound));
    check("/none/none", OpenMode::Create, Err(FileError::NotFound));
    check("/file/none", OpenMode::Read, Err(FileError::NotADirectory));
    check("/dir", OpenMode::Create, Err(FileError::IsADirectory));
    check("/dir", OpenMode::Read, Ok(()));
    check("/", OpenMode::Read, Ok(()));
    check("/", OpenMode::Update, Err(FileError::IsADirectory));
    check("/file", OpenMode::CreateNew, Err(FileError::Exists));
    drop(files);
    let missing = WorkerFiles::start(&dir.0.join("none"), WorkerConfig::default());
    assert!(matches!(missing, Err(RootError::Open(_))));
    let file = WorkerFiles::start(&dir.0.join("file"), WorkerConfig::default());
    assert!(matches!(file, Err(RootError::Open(_))));
}

#[test]
fn a_large_directory_comes_in_pages() {
    let dir = TempDir::new();
    for number in 0..5_000 {
        dir.write(&format!("f{number:04}"), b"12");
    }
    dir.write("new\nline", b"");
    std::fs::write(dir.0.join(std::ffi::OsStr::new("über")), b"").unwrap();
    let bad: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"bad\xff");
    std::fs::write(dir.0.join(bad), b"").unwrap();
    let mut files = serve(&dir, false);
    for limit in [1, 100, 1024, 100_000] {
        let all = list(&mut files, "/", limit);
        assert_eq!(all.len(), 5_001);
        for (number, entry) in all[..5_000].iter().enumerate() {
            assert_eq!((entry.name.as_str(), entry.meta.len), (format!("f{number:04}").as_str(), 2));
        }
        assert_eq!(all[5_000].name, "über");
        if limit == 1 {
            continue;
        }
    }
}

#[test]
fn many_reads_at_once_are_each_answered_once() {
    let dir = TempDir::new();
    for number in 0..16u8 {
        dir.write(&format!("f{number}"), &[number; 10_000]);
    }
    let mut files = serve(&dir, false);
    let ids: Vec<FileId> =
        (0..16).map(|number| open(&mut files, &format!("/f{number}"), OpenMode::Read).unwrap().0).collect();
    let mut open_tags = std::collections::HashSet::new();
    for tag in 0..640u64 {
        let file = ids[tag as usize % 16];
        files.submit(OWNER, tag, FileOp::Read { file, offset: tag, len: 100 }).unwrap();
        open_tags.insert(tag);
    }
    while !open_tags.is_empty() {
        let done = next(&mut files);
        assert!(open_tags.remove(&done.tag));
        let Ok(FileReply::Data(data)) = done.result else { panic!() };
        assert_eq!(data.as_ref(), [(done.tag % 16) as u8; 100]);
    }
    assert!(files.poll_done().is_none());
}

#[test]
fn what_is_too_much_is_given_back() {
    let dir = TempDir::new();
    dir.write("f", b"x");
    let config = WorkerConfig { queue_max: 3, open_max: 2, threads: 1, ..WorkerConfig::default() };
    let mut workers = WorkerFiles::start(&dir.0, config).unwrap();
    for tag in 0..3 {
        workers.submit(OWNER, tag, FileOp::Open { path: path("/f"), mode: OpenMode::Read }).unwrap();
    }
    let back = workers.submit(OWNER, 3, FileOp::Stat { path: path("/f") });
    assert!(matches!(back, Err(FileOp::Stat { .. })));
    let mut files = AnyFiles::Directory(workers);
    let results: Vec<bool> = (0..3).map(|_| next(&mut files).result.is_ok()).collect();
    assert_eq!(results.iter().filter(|&&ok| ok).count(), 2);
    let AnyFiles::Directory(workers) = &files else { panic!() };
    assert_eq!(workers.open_files(), 2);
    let expected = FileCounters { accepted: 3, refused: 1, failed: 1, too_many_open: 1 };
    assert_eq!(workers.counters(), expected);
    assert!(stat(&mut files, "/f").is_ok());
}

#[test]
fn links_to_directories_tell_where_they_lead() {
    let dir = TempDir::new();
    std::fs::create_dir_all(dir.0.join("sub/deep")).unwrap();
    std::fs::write(dir.0.join("file"), "x").unwrap();
    symlink(".", dir.0.join("self")).unwrap();
    symlink("../sub", dir.0.join("sub/up")).unwrap();
    symlink(dir.0.join("sub/deep"), dir.0.join("absolute")).unwrap();
    symlink("file", dir.0.join("other")).unwrap();
    symlink("/etc", dir.0.join("out")).unwrap();
    let mut files = serve(&dir, false);
    let links = |name: &str, files: &mut AnyFiles| -> Vec<(String, Option<String>)> {
        list(files, name, 100).into_iter().map(|entry| (entry.name, entry.link)).collect()
    };
    let expected = [
        ("absolute", Some("/sub/deep")),
        ("file", None),
        ("other", None),
        ("out", None),
        ("self", Some("/")),
        ("sub", None),
    ];
    let owned = |(name, link): (&str, Option<&str>)| (name.to_owned(), link.map(str::to_owned));
    assert_eq!(links(".", &mut files), expected.map(owned));
    assert_eq!(links("sub", &mut files), [("deep", None), ("up", Some("/sub"))].map(owned));
}
