//! The demo directory that is served when no directory is named.

/// The files: path under the root and content.
pub const FILES: [(&str, &[u8]); 4] = [
    ("/index.html", include_bytes!("../../demo/index.html")),
    ("/hello.txt", include_bytes!("../../demo/hello.txt")),
    ("/docs/measuring.txt", include_bytes!("../../demo/docs/measuring.txt")),
    ("/docs/protocols.txt", include_bytes!("../../demo/docs/protocols.txt")),
];

/// Their modification time: the day they were written, 2026-11-20T00:00:00Z.
pub const MODIFIED_NS: i64 = 1_795_132_800_000_000_000;
