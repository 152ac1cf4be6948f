//! Directory listings as HTML.

use super::natural;
use super::{date, uri};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;
use linerate_transport::{DirEntry, FileKind, VirtualPath};

/// The media type of a listing.
pub(super) const CONTENT_TYPE: &str = "text/html; charset=utf-8";

/// Narrow screens get two lines for an entry: its name, then size and date. Nothing is wider than the screen.
const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.3rem;font-weight:600;overflow-wrap:anywhere}\
table{width:100%;border-collapse:collapse;font-variant-numeric:tabular-nums}\
th{text-align:left;font-weight:500;opacity:.65;border-bottom:1px solid #8886}\
td,th{padding:.25rem .75rem .25rem 0;vertical-align:top}\
tr:hover td{background:#8881}\
td:first-child{width:100%;overflow-wrap:anywhere}\
.n{text-align:right;white-space:nowrap}\
a{text-decoration:none}a:hover{text-decoration:underline}\
code{font-size:.75em;padding:0 .25em;margin:0 .1em;border:1px solid #c60;border-radius:.25em;color:#c60}\
p{opacity:.65;font-size:.85rem}\
@media(max-width:40rem){\
body{margin:1rem auto}\
thead{display:none}\
tr{display:flex;flex-wrap:wrap;justify-content:space-between;border-bottom:1px solid #8883}\
td{padding:0 0 .5rem;font-size:.85rem;opacity:.75}\
td:first-child{flex:1 0 100%;min-width:0;padding:0;font-size:1rem;opacity:1}\
td:first-child a{display:block;padding:.6rem 0 .1rem}\
}";

/// Makes the page that lists `entries` of `path`: directories first, then by name. `truncated`: there are more.
pub(super) fn render(path: &VirtualPath, entries: &mut [DirEntry], truncated: bool) -> Vec<u8> {
    entries.sort_unstable_by(|a, b| {
        let rank = |entry: &DirEntry| entry.meta.kind != FileKind::Directory;
        rank(a).cmp(&rank(b)).then_with(|| natural::compare(&a.name, &b.name))
    });
    let mut page = String::with_capacity(2_000 + entries.len() * 180);
    page.push_str("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    page.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>");
    append_text(&mut page, path.as_str(), Marks::Plain);
    page.push_str("</title>\n<style>");
    page.push_str(STYLE);
    page.push_str("</style>\n</head>\n<body>\n<h1>");
    append_name(&mut page, path.as_str());
    page.push_str("</h1>\n<table>\n<thead><tr><th>Name</th><th class=\"n\">Size</th>");
    page.push_str("<th class=\"n\">Modified (UTC)</th></tr></thead>\n<tbody>\n");
    if !path.is_root() {
        page.push_str("<tr><td><a href=\"../\">../</a></td><td class=\"n\"></td><td></td></tr>\n");
    }
    for entry in entries.iter() {
        append_row(&mut page, entry);
    }
    page.push_str("</tbody>\n</table>\n");
    if truncated {
        let _ = writeln!(page, "<p>Only the first {} entries found are shown.</p>", entries.len());
    }
    page.push_str("<p>linerate</p>\n</body>\n</html>\n");
    page.into_bytes()
}

fn append_row(page: &mut String, entry: &DirEntry) {
    let slash = if entry.meta.kind == FileKind::Directory { "/" } else { "" };
    // "./" keeps a name like "a:b" from being read as a scheme.
    page.push_str("<tr><td><a href=\"./");
    uri::append_escaped(page, &entry.name);
    page.push_str(slash);
    page.push_str("\">");
    append_name(page, &entry.name);
    page.push_str(slash);
    page.push_str("</a></td><td class=\"n\">");
    if entry.meta.kind == FileKind::File {
        append_size(page, entry.meta.len);
    }
    page.push_str("</td><td class=\"n\">");
    let mut when = Vec::new();
    date::append_iso(&mut when, entry.meta.modified_ns.div_euclid(1_000_000_000), false);
    page.extend(when.into_iter().map(char::from));
    page.push_str("</td></tr>\n");
}

/// Appends a name in an isolation of its own, so that its direction reorders nothing beside it.
fn append_name(page: &mut String, name: &str) {
    page.push_str("<bdi>");
    append_text(page, name, Marks::Elements);
    page.push_str("</bdi>");
}

/// Whole bytes below 1 KiB, one decimal place above.
fn append_size(page: &mut String, len: u64) {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if len < 1024 {
        let _ = write!(page, "{len} B");
        return;
    }
    let mut shift = 10;
    let mut unit = 0;
    // A tenth below the next unit would be shown as 1024.0.
    while len >> shift >= 1024 && unit + 1 < UNITS.len() {
        shift += 10;
        unit += 1;
    }
    let tenths = (u128::from(len) * 10) >> shift;
    let _ = write!(page, "{}.{} {}", tenths / 10, tenths % 10, UNITS[unit]);
}

/// How a character that cannot be seen is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Marks {
    /// As text, where no element may be.
    Plain,
    /// In an element with a frame, which no name can imitate.
    Elements,
}

/// Appends text with what HTML gives a meaning to escaped, and what cannot be seen by its number.
fn append_text(page: &mut String, text: &str, marks: Marks) {
    for c in text.chars() {
        match c {
            '&' => page.push_str("&amp;"),
            '<' => page.push_str("&lt;"),
            '>' => page.push_str("&gt;"),
            '"' => page.push_str("&quot;"),
            '\'' => page.push_str("&#39;"),
            c if !is_invisible(c) => page.push(c),
            c => {
                // Writing to a string cannot fail.
                let _ = match marks {
                    Marks::Plain => write!(page, "[U+{:04X}]", u32::from(c)),
                    Marks::Elements => write!(page, "<code>U+{:04X}</code>", u32::from(c)),
                };
            }
        }
    }
}

/// Control characters, those that change the direction of text (Unicode Standard Annex 9), and those that take no room
/// and would let two names look alike.
fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}'
            | '\u{00AD}' | '\u{200B}' | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2065}' | '\u{206A}'..='\u{206F}'
            | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E0001}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_transport::{Metadata, Rights};

    fn entry(name: &str, kind: FileKind, len: u64) -> DirEntry {
        let meta = Metadata {
            kind,
            len,
            modified_ns: 784_111_777_000_000_000,
            changed_ns: 0,
            inode: 0,
            mode: 0o644,
            rights: Rights::ALL,
        };
        DirEntry { name: String::from(name), meta, link: None }
    }

    fn check_size(len: u64, expected: &str) {
        let mut text = String::new();
        append_size(&mut text, len);
        assert_eq!(text, expected);
    }

    #[test]
    fn sizes_are_for_people() {
        check_size(0, "0 B");
        check_size(1_023, "1023 B");
        check_size(1_024, "1.0 KiB");
        check_size(1_048_575, "1023.9 KiB");
        check_size(1 << 20, "1.0 MiB");
        check_size(1_610_612_736, "1.5 GiB");
        check_size(u64::MAX, "15.9 EiB");
    }

    #[test]
    fn directories_come_first_and_everything_is_escaped() {
        let mut entries = [
            entry("b.txt", FileKind::File, 5),
            entry("<script>&\"'", FileKind::File, 2_048),
            entry("z", FileKind::Directory, 4_096),
            entry("javascript:x\u{7}", FileKind::File, 0),
        ];
        let path = VirtualPath::parse("/a<b").unwrap();
        let page = String::from_utf8(render(&path, &mut entries, true)).unwrap();
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("<tr><td>")).collect();
        let cells = |size: &str| {
            alloc::format!("</a></td><td class=\"n\">{size}</td><td class=\"n\">1994-11-06 08:49</td></tr>")
        };
        assert_eq!(rows[0], "<tr><td><a href=\"../\">../</a></td><td class=\"n\"></td><td></td></tr>");
        assert_eq!(rows[1], alloc::format!("<tr><td><a href=\"./z/\"><bdi>z</bdi>/{}", cells("")));
        let escaped = "<tr><td><a href=\"./%3Cscript%3E%26%22%27\"><bdi>&lt;script&gt;&amp;&quot;&#39;</bdi>";
        assert_eq!(rows[2], alloc::format!("{escaped}{}", cells("2.0 KiB")));
        assert_eq!(rows[3], alloc::format!("<tr><td><a href=\"./b.txt\"><bdi>b.txt</bdi>{}", cells("5 B")));
        let odd = "<tr><td><a href=\"./javascript%3Ax%07\"><bdi>javascript:x<code>U+0007</code></bdi>";
        assert_eq!(rows[4], alloc::format!("{odd}{}", cells("0 B")));
        assert_eq!(rows.len(), 5);
        assert!(page.contains("<title>/a&lt;b</title>"));
        assert!(page.contains("Only the first 4 entries"));
    }
    #[test]
    fn names_are_in_the_order_of_their_numbers() {
        let mut entries = ["file10", "file2", "dir10", "File1", "dir9"].map(|name| {
            let kind = if name.starts_with('d') { FileKind::Directory } else { FileKind::File };
            entry(name, kind, 0)
        });
        render(&VirtualPath::root(), &mut entries, false);
        assert_eq!(entries.map(|entry| entry.name), ["dir9", "dir10", "File1", "file2", "file10"]);
    }

    #[test]
    fn no_name_reorders_the_page() {
        for c in
            "\u{061C}\u{200E}\u{200F}\u{202A}\u{202B}\u{202C}\u{202D}\u{202E}\u{2066}\u{2067}\u{2068}\u{2069}"
                .chars()
        {
            let name = alloc::format!("photo{c}gpj.exe");
            let path = VirtualPath::root().join(&name).unwrap();
            let page =
                String::from_utf8(render(&path, &mut [entry(&name, FileKind::File, 1)], false)).unwrap();
            assert!(!page.contains(c), "{:04X}", u32::from(c));
            let seen = alloc::format!("<bdi>photo<code>U+{:04X}</code>gpj.exe</bdi>", u32::from(c));
            assert!(page.contains(&seen), "{page}");
            assert!(page.contains(&alloc::format!("<title>/photo[U+{:04X}]gpj.exe</title>", u32::from(c))));
        }
        // Letters that are written from right to left are no trick: they stay, each name by itself.
        let page = render(&VirtualPath::root(), &mut [entry("\u{5d0}\u{5d1}.txt", FileKind::File, 1)], false);
        assert!(String::from_utf8(page).unwrap().contains("<bdi>\u{5d0}\u{5d1}.txt</bdi>"));
    }
}
