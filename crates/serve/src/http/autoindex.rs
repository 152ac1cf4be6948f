//! Directory listings as HTML.

use super::date;
use super::uri;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;
use linerate_transport::{DirEntry, FileKind, VirtualPath};

/// The media type of a listing.
pub(super) const CONTENT_TYPE: &str = "text/html; charset=utf-8";

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.3rem;font-weight:600;overflow-wrap:anywhere}\
table{width:100%;border-collapse:collapse;font-variant-numeric:tabular-nums}\
th{text-align:left;font-weight:500;opacity:.65;border-bottom:1px solid #8886}\
td,th{padding:.25rem .75rem .25rem 0}\
tr:hover td{background:#8881}\
td:first-child{width:100%;overflow-wrap:anywhere}\
.n{text-align:right;white-space:nowrap}\
a{text-decoration:none}a:hover{text-decoration:underline}\
p{opacity:.65;font-size:.85rem}";

/// Makes the page that lists `entries` of `path`: directories first, then by name. `truncated`: there are more.
pub(super) fn render(path: &VirtualPath, entries: &mut [DirEntry], truncated: bool) -> Vec<u8> {
    entries.sort_unstable_by(|a, b| {
        let rank = |entry: &DirEntry| entry.meta.kind != FileKind::Directory;
        rank(a).cmp(&rank(b)).then_with(|| a.name.cmp(&b.name))
    });
    let mut page = String::with_capacity(1_500 + entries.len() * 160);
    page.push_str("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    page.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>");
    append_text(&mut page, path.as_str());
    page.push_str("</title>\n<style>");
    page.push_str(STYLE);
    page.push_str("</style>\n</head>\n<body>\n<h1>");
    append_text(&mut page, path.as_str());
    page.push_str("</h1>\n<table>\n<tr><th>Name</th><th class=\"n\">Size</th><th>Modified (UTC)</th></tr>\n");
    if !path.is_root() {
        page.push_str("<tr><td><a href=\"../\">../</a></td><td class=\"n\"></td><td></td></tr>\n");
    }
    for entry in entries.iter() {
        append_row(&mut page, entry);
    }
    page.push_str("</table>\n");
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
    append_text(page, &entry.name);
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

/// Appends text with what HTML gives a meaning to escaped, and control characters replaced.
fn append_text(page: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => page.push_str("&amp;"),
            '<' => page.push_str("&lt;"),
            '>' => page.push_str("&gt;"),
            '"' => page.push_str("&quot;"),
            '\'' => page.push_str("&#39;"),
            c if c.is_control() => page.push('\u{FFFD}'),
            c => page.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_transport::Metadata;

    fn entry(name: &str, kind: FileKind, len: u64) -> DirEntry {
        let meta = Metadata { kind, len, modified_ns: 784_111_777_000_000_000, inode: 0, mode: 0o644 };
        DirEntry { name: String::from(name), meta }
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
        assert_eq!(rows[1], alloc::format!("<tr><td><a href=\"./z/\">z/{}", cells("")));
        let escaped = "<tr><td><a href=\"./%3Cscript%3E%26%22%27\">&lt;script&gt;&amp;&quot;&#39;";
        assert_eq!(rows[2], alloc::format!("{escaped}{}", cells("2.0 KiB")));
        assert_eq!(rows[3], alloc::format!("<tr><td><a href=\"./b.txt\">b.txt{}", cells("5 B")));
        let odd = "<tr><td><a href=\"./javascript%3Ax%07\">javascript:x\u{FFFD}";
        assert_eq!(rows[4], alloc::format!("{odd}{}", cells("0 B")));
        assert_eq!(rows.len(), 5);
        assert!(page.contains("<title>/a&lt;b</title>"));
        assert!(page.contains("Only the first 4 entries"));
    }
}
