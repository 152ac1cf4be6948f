//! Media types by the extension of a file name.

/// What the name of a file says of its content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mime {
    /// The value of `Content-Type`.
    pub content_type: &'static str,
    /// Whether a compressed copy beside the file may be sent instead; false for what is compressed already.
    pub negotiable: bool,
}

const FALLBACK: Mime = Mime { content_type: "application/octet-stream", negotiable: true };

/// Sorted by extension; the flag is [`Mime::negotiable`].
const TABLE: &[(&str, &str, bool)] = &[
    ("7z", "application/x-7z-compressed", false),
    ("aac", "audio/aac", false),
    ("apk", "application/vnd.android.package-archive", false),
    ("avif", "image/avif", false),
    ("bin", "application/octet-stream", true),
    ("bmp", "image/bmp", true),
    ("br", "application/octet-stream", false),
    ("bz2", "application/x-bzip2", false),
    ("c", "text/plain; charset=utf-8", true),
    ("conf", "text/plain; charset=utf-8", true),
    ("cpp", "text/plain; charset=utf-8", true),
    ("css", "text/css; charset=utf-8", true),
    ("csv", "text/csv; charset=utf-8", true),
    ("deb", "application/vnd.debian.binary-package", false),
    ("doc", "application/msword", true),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", false),
    ("eot", "application/vnd.ms-fontobject", true),
    ("epub", "application/epub+zip", false),
    ("flac", "audio/flac", false),
    ("gif", "image/gif", false),
    ("gz", "application/gzip", false),
    ("h", "text/plain; charset=utf-8", true),
    ("htm", "text/html; charset=utf-8", true),
    ("html", "text/html; charset=utf-8", true),
    ("ico", "image/vnd.microsoft.icon", true),
    ("ics", "text/calendar; charset=utf-8", true),
    ("ini", "text/plain; charset=utf-8", true),
    ("iso", "application/vnd.efi.iso", true),
    ("jar", "application/java-archive", false),
    ("jpeg", "image/jpeg", false),
    ("jpg", "image/jpeg", false),
    ("js", "text/javascript; charset=utf-8", true),
    ("json", "application/json", true),
    ("jxl", "image/jxl", false),
    ("log", "text/plain; charset=utf-8", true),
    ("m4a", "audio/mp4", false),
    ("map", "application/json", true),
    ("md", "text/markdown; charset=utf-8", true),
    ("mjs", "text/javascript; charset=utf-8", true),
    ("mkv", "video/matroska", false),
    ("mov", "video/quicktime", false),
    ("mp3", "audio/mpeg", false),
    ("mp4", "video/mp4", false),
    ("oga", "audio/ogg", false),
    ("ogg", "audio/ogg", false),
    ("ogv", "video/ogg", false),
    ("opus", "audio/ogg", false),
    ("otf", "font/otf", true),
    ("pcap", "application/vnd.tcpdump.pcap", true),
    ("pdf", "application/pdf", false),
    ("png", "image/png", false),
    ("ps", "application/postscript", true),
    ("py", "text/x-python; charset=utf-8", true),
    ("rar", "application/vnd.rar", false),
    ("rs", "text/plain; charset=utf-8", true),
    ("rtf", "application/rtf", true),
    ("sh", "text/x-shellscript; charset=utf-8", true),
    ("svg", "image/svg+xml", true),
    ("tar", "application/x-tar", true),
    ("tgz", "application/gzip", false),
    ("tif", "image/tiff", false),
    ("tiff", "image/tiff", false),
    ("toml", "application/toml", true),
    ("ttf", "font/ttf", true),
    ("txt", "text/plain; charset=utf-8", true),
    ("v", "text/plain; charset=utf-8", true),
    ("vtt", "text/vtt; charset=utf-8", true),
    ("wasm", "application/wasm", true),
    ("wav", "audio/wav", true),
    ("weba", "audio/webm", false),
    ("webm", "video/webm", false),
    ("webmanifest", "application/manifest+json", true),
    ("webp", "image/webp", false),
    ("woff", "font/woff", false),
    ("woff2", "font/woff2", false),
    ("xhtml", "application/xhtml+xml", true),
    ("xls", "application/vnd.ms-excel", true),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", false),
    ("xml", "application/xml", true),
    ("xz", "application/x-xz", false),
    ("yaml", "application/yaml", true),
    ("yml", "application/yaml", true),
    ("zip", "application/zip", false),
    ("zst", "application/zstd", false),
];

const LONGEST: usize = 11;

/// The media type of a file by its name (the last component of a path); case does not matter.
pub fn lookup(name: &str) -> Mime {
    let Some((stem, extension)) = name.rsplit_once('.') else { return FALLBACK };
    let mut lower = [0; LONGEST];
    let Some(lower) = lower.get_mut(..extension.len()) else { return FALLBACK };
    // `.gz` alone is a hidden file without an extension.
    if stem.is_empty() {
        return FALLBACK;
    }
    lower.copy_from_slice(extension.as_bytes());
    lower.make_ascii_lowercase();
    match TABLE.binary_search_by(|(known, _, _)| known.as_bytes().cmp(lower)) {
        Ok(at) => Mime { content_type: TABLE[at].1, negotiable: TABLE[at].2 },
        Err(_) => FALLBACK,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_no_key_is_too_long() {
        assert!(TABLE.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(TABLE.iter().all(|(extension, _, _)| extension.len() <= LONGEST));
    }

    #[test]
    fn names_have_types() {
        let check = |name: &str, expected: &str| assert_eq!(lookup(name).content_type, expected, "{name}");
        check("index.html", "text/html; charset=utf-8");
        check("A.HTML", "text/html; charset=utf-8");
        check("x.tar.gz", "application/gzip");
        check("app.webmanifest", "application/manifest+json");
        check("README", "application/octet-stream");
        check("x.verylongextension", "application/octet-stream");
        check("x.", "application/octet-stream");
        check(".gz", "application/octet-stream");
        check("x.é", "application/octet-stream");
        check("", "application/octet-stream");
        assert!(lookup("a.svg").negotiable && !lookup("a.png").negotiable);
    }
}
