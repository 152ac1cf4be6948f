//! The built-in tree.

use super::*;

const FILES: &[DemoFile] = &[
    DemoFile { path: "index.html", bytes: b"<p>", modified_ns: 5 },
    DemoFile { path: "/docs/deep/a.txt", bytes: b"0123456789", modified_ns: 9 },
    DemoFile { path: "docs/b.txt", bytes: b"", modified_ns: 7 },
    DemoFile { path: "../outside", bytes: b"!", modified_ns: 7 },
];

fn demo() -> AnyFiles {
    AnyFiles::Demo(DemoFiles::new(FILES).unwrap())
}

#[test]
fn the_tree_reads_like_a_directory() {
    let mut files = demo();
    let names = |entries: Vec<DirEntry>| -> Vec<(String, FileKind, u64)> {
        entries.into_iter().map(|entry| (entry.name, entry.meta.kind, entry.meta.len)).collect()
    };
    let root = [("docs".into(), FileKind::Directory, 0), ("index.html".into(), FileKind::File, 3)];
    assert_eq!(names(list(&mut files, "/", 1)), root);
    let docs = [("b.txt".into(), FileKind::File, 0), ("deep".into(), FileKind::Directory, 0)];
    assert_eq!(names(list(&mut files, "/docs", 100)), docs);
    let (file, meta) = open(&mut files, "/docs/deep/a.txt", OpenMode::Read).unwrap();
    assert_eq!((meta.len, meta.modified_ns, meta.kind), (10, 9, FileKind::File));
    for (offset, len, expected) in [(0, 100, "0123456789"), (3, 4, "3456"), (10, 1, ""), (u64::MAX, 1, "")] {
        assert_eq!(read(&mut files, file, offset, len).unwrap().as_ref(), expected.as_bytes());
    }
    fails(ask(&mut files, FileOp::ReadDir { dir: file, limit: 1 }), FileError::NotADirectory);
    done(ask(&mut files, FileOp::Close { file }));
    fails(ask(&mut files, FileOp::Close { file }), FileError::Stale);
    assert_eq!(stat(&mut files, "/docs/none"), Err(FileError::NotFound));
    assert_eq!(stat(&mut files, "/index.html/x"), Err(FileError::NotADirectory));
    assert_eq!(stat(&mut files, "/outside"), Err(FileError::NotFound));
}

#[test]
fn nothing_in_it_changes() {
    let mut files = demo();
    assert_eq!(open(&mut files, "/new", OpenMode::Create).map(|_| ()), Err(FileError::ReadOnly));
    for op in [
        FileOp::Remove { path: path("/index.html") },
        FileOp::MakeDir { path: path("/d") },
        FileOp::SetMode { path: path("/index.html"), mode: 0 },
    ] {
        fails(ask(&mut files, op), FileError::ReadOnly);
    }
}
