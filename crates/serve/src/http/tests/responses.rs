//! What is answered to requests for files, directories, memory files and the server.

use super::*;
use crate::memory;

#[test]
fn a_file_is_sent_with_what_is_known_of_it() {
    let mut rig = Rig::new();
    let expected = hello(&rig);
    assert_eq!(rig.ask(HELLO), expected);
    let empty = format!(
        "{}Content-Type: application/octet-stream\r\nContent-Length: 0\r\n{}Vary: Accept-Encoding\r\n\r\n",
        head("200 OK"),
        rig.describe("/empty")
    );
    assert_eq!(rig.get("/empty", ""), empty);
    let conn = rig.connect();
    rig.send(conn, "GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
    let received = rig.received(conn);
    assert!(received.ends_with(&[b"\r\n\r\n", big().as_slice()].concat()));
    assert_eq!(rig.server.gauges().open_files, 1);
}

#[test]
fn head_says_the_same_without_content() {
    let mut rig = Rig::new();
    for target in
        ["/hello.txt", "/empty", "/big", "/sub", "/sub/", "/list/", "/none", "/memory/1M", "/memory/null"]
    {
        let conn = rig.connect();
        rig.send(conn, format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let received = rig.received(conn);
        let get = String::from_utf8_lossy(&received).into_owned();
        let answer = rig.exchange(conn, format!("HEAD {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert_eq!(answer, format!("{}\r\n\r\n", split(&get).0), "{target}");
        let len = received.len() - answer.len();
        assert_eq!(field(&get, "Content-Length").unwrap(), len.to_string(), "{target}");
    }
    // Ranges are of GET alone (RFC 9110 section 14.2).
    let answer = rig.ask("HEAD /hello.txt HTTP/1.1\r\nHost: a\r\nRange: bytes=0-1\r\n\r\n");
    assert_eq!((status_of(&answer), field(&answer, "Content-Length")), ("200", Some("12")));
}

fn check_redirect(rig: &mut Rig, target: &str, location: &str) {
    let answer = rig.get(target, "");
    let fields = format!("Location: {location}\r\n");
    assert_eq!(answer, page_response("301 Moved Permanently", &fields), "{target}");
}

#[test]
fn directories_have_a_slash_at_their_end() {
    let mut rig = Rig::new();
    check_redirect(&mut rig, "/sub", "/sub/");
    check_redirect(&mut rig, "//sub", "/sub/");
    check_redirect(&mut rig, "//list/../sub", "/sub/");
    check_redirect(&mut rig, "/sub?a=b&c", "/sub/?a=b&c");
    check_redirect(&mut rig, "/sub/in%20dir?\"<\\>", "/sub/in%20dir/?%22%3C%5C%3E");
    check_redirect(&mut rig, "http://evil/sub", "/sub/");
    assert_eq!(split(&rig.get("/sub/", "")).1, "<p>index</p>");
    assert_eq!(split(&rig.get("/sub/.", "")).1, "<p>index</p>");
    assert_eq!(split(&rig.get("/sub/in%20dir/..", "")).1, "<p>index</p>");
    assert_eq!(status_of(&rig.get("/hello.txt/", "")), "404");
    assert_eq!(status_of(&rig.get("/hello.txt/x", "")), "404");
}

#[test]
fn a_directory_without_index_is_listed() {
    let mut rig = Rig::new();
    rig.world.files.add_dir("/list/z&z");
    let answer = rig.get("/list/", "");
    assert_eq!(status_of(&answer), "200");
    let links: Vec<&str> =
        split(&answer).1.split("<a href=\"").skip(1).map(|s| s.split('"').next().unwrap()).collect();
    assert_eq!(links, ["../", "./z%26z/", "./b.txt"]);
    assert_eq!(status_of(&Rig::with(Config { autoindex: false, ..config() }).get("/list/", "")), "403");
    let mut rig = Rig::with(Config { hidden_files: true, ..config() });
    assert!(rig.get("/list/", "").contains("./.secret\""));
    assert_eq!(split(&rig.get("/list/.secret", "")).1, "s");
}

#[test]
fn long_listings_are_cut() {
    let mut rig = Rig::new();
    for i in 0..2_500 {
        rig.world.files.add_file(&format!("/list/f{i:04}"), b"");
    }
    assert_eq!(rig.get("/list/", "").matches("<a href=\"./f").count(), 2_500);
    let limits = Limits { listing_entries: 1_200, ..Limits::default() };
    rig.server.reload(Config { limits, ..config() });
    let page = rig.get("/list/", "");
    assert_eq!(page.matches("<a href=\"./").count(), 1_200);
    assert!(page.contains("Only the first 1200 entries"));
}

#[test]
fn what_is_not_there_or_not_shown_is_404() {
    let mut rig = Rig::new();
    for target in
        ["/none", "/none/x", "/list/.secret", "/.git/config", "/memory/2T", "/memory/x", "/memory/1M/"]
    {
        assert_eq!(rig.get(target, ""), page_response("404 Not Found", ""), "{target}");
    }
    rig.world.files.nodes.get_mut("/empty").unwrap().kind = linerate_transport::FileKind::Other;
    assert_eq!(status_of(&rig.get("/empty", "")), "403");
    rig.world.files.fail = Some(linerate_transport::FileError::Io);
    assert_eq!(status_of(&rig.get("/big", "")), "500");
    rig.world.files.fail = Some(linerate_transport::FileError::TooManyOpen);
    assert_eq!(rig.get("/big", ""), page_response("503 Service Unavailable", "Retry-After: 1\r\n"));
    rig.world.files.fail = None;
    // Faults that pass are not remembered.
    assert_eq!(status_of(&rig.get("/big", "")), "200");
}

#[test]
fn other_methods() {
    let mut rig = Rig::new();
    let mut check = |line: &str, status: &str, allow: Option<&str>| {
        let answer = rig.ask(&format!("{line} HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert_eq!((status_of(&answer), field(&answer, "Allow")), (status, allow), "{line}");
    };
    let usual = Some("GET, HEAD, OPTIONS");
    check("OPTIONS *", "200", usual);
    check("OPTIONS /", "200", usual);
    check("OPTIONS /memory/null", "200", Some("GET, HEAD, OPTIONS, POST, PUT"));
    for method in ["POST", "PUT", "DELETE", "PATCH", "TRACE"] {
        check(&format!("{method} /hello.txt"), "405", usual);
    }
    check("POST /memory/1M", "405", usual);
    check("DELETE /memory/null", "405", Some("GET, HEAD, OPTIONS, POST, PUT"));
    check("CONNECT a:80", "405", usual);
    check("BREW /", "501", None);
}

fn check_range(rig: &mut Rig, target: &str, fields: &str, range: &str, body: &str) {
    let answer = rig.get(target, fields);
    assert_eq!(status_of(&answer), "206", "{fields}");
    assert_eq!(field(&answer, "Content-Range"), Some(range), "{fields}");
    assert_eq!(split(&answer).1, body, "{fields}");
    assert_eq!(field(&answer, "Content-Length").unwrap(), body.len().to_string());
}

#[test]
fn ranges_of_files() {
    let mut rig = Rig::new();
    check_range(&mut rig, "/hello.txt", "Range: bytes=0-4\r\n", "bytes 0-4/12", "hello");
    check_range(&mut rig, "/hello.txt", "Range: bytes=-5\r\n", "bytes 7-11/12", "world");
    check_range(&mut rig, "/hello.txt", "Range: bytes=7-\r\n", "bytes 7-11/12", "world");
    let big = String::from_utf8_lossy(&big()[249..258]).into_owned();
    check_range(&mut rig, "/big", "Range: bytes=249-257\r\n", "bytes 249-257/100000", &big);
    // Short parts of memory files are copied, others referred to, both beyond where their pattern begins again.
    for (from, to) in [(65_500, 65_600), (60_000, 70_000)] {
        let bytes: Vec<u8> = (from..=to).map(|at| memory::pattern(at, 1)[0]).collect();
        let answer = rig.get("/memory/1M", &format!("Range: bytes={from}-{to}\r\n"));
        assert_eq!(split(&answer).1, String::from_utf8_lossy(&bytes));
    }
    let expected = page_response("416 Range Not Satisfiable", "Content-Range: bytes */12\r\n");
    assert_eq!(rig.get("/hello.txt", "Range: bytes=12-\r\n"), expected);
    let whole = hello(&rig);
    for ignored in ["bytes=5-4", "lines=1-2", "bytes=0-8,4-11", "bytes=x"] {
        assert_eq!(rig.get("/hello.txt", &format!("Range: {ignored}\r\n")), whole, "{ignored}");
    }
    assert_eq!(rig.get("/hello.txt", "Range: bytes=0-1\r\nRange: bytes=2-3\r\n"), whole);
}

#[test]
fn several_ranges_come_in_parts() {
    let mut rig = Rig::new();
    for (target, len, kind, parts) in [
        ("/hello.txt", 12, "text/plain; charset=utf-8", [&b"hello"[..], b"d"]),
        ("/big", 100_000, "application/octet-stream", [&big()[..5], &big()[99_999..]]),
    ] {
        let conn = rig.connect();
        rig.send(conn, format!("GET {target} HTTP/1.1\r\nHost: a\r\nRange: bytes=0-4, -1\r\n\r\n"));
        let received = rig.received(conn);
        let text = String::from_utf8_lossy(&received).into_owned();
        let boundary =
            field(&text, "Content-Type").unwrap().strip_prefix("multipart/byteranges; boundary=").unwrap();
        let last = len - 1;
        let mut body = Vec::new();
        for (range, part) in [(owned("0-4"), parts[0]), (format!("{last}-{last}"), parts[1])] {
            let head = format!(
                "\r\n--{boundary}\r\nContent-Type: {kind}\r\nContent-Range: bytes {range}/{len}\r\n\r\n"
            );
            body.extend_from_slice(head.as_bytes());
            body.extend_from_slice(part);
        }
        body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
        let at = received.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 4;
        assert_eq!(&received[at..], &body, "{target}");
        assert_eq!(field(&text, "Content-Length").unwrap(), body.len().to_string());
        assert_eq!(field(&text, "Content-Range"), None);
        // The next request is answered, and the file was held just as long.
        assert_eq!(status_of(&rig.exchange(conn, HELLO)), "200");
    }
}

#[test]
fn preconditions_and_ranges_in_their_order() {
    let mut rig = Rig::new();
    let etag = rig.etag("/hello.txt");
    let not_modified =
        format!("{}{}Vary: Accept-Encoding\r\n\r\n", head("304 Not Modified"), rig.describe("/hello.txt"));
    for fields in [
        format!("If-None-Match: {etag}\r\n"),
        format!("If-None-Match: W/{etag}\r\nRange: bytes=0-1\r\n"),
        format!("If-Modified-Since: {MODIFIED}\r\n"),
        format!("If-Match: {etag}\r\nIf-None-Match: *\r\n"),
    ] {
        assert_eq!(rig.get("/hello.txt", &fields), not_modified, "{fields}");
    }
    let failed = page_response("412 Precondition Failed", "");
    assert_eq!(rig.get("/hello.txt", "If-Match: \"x\"\r\nRange: bytes=0-1\r\n"), failed);
    assert_eq!(rig.get("/hello.txt", "If-Unmodified-Since: Thu, 29 Feb 2024 11:59:59 GMT\r\n"), failed);
    let whole = hello(&rig);
    assert_eq!(rig.get("/hello.txt", "If-None-Match: \"x\"\r\n"), whole);
    assert_eq!(rig.get("/hello.txt", "If-Range: \"x\"\r\nRange: bytes=0-1\r\n"), whole);
    assert_eq!(rig.get("/hello.txt", &format!("If-Range: W/{etag}\r\nRange: bytes=0-1\r\n")), whole);
    check_range(
        &mut rig,
        "/hello.txt",
        &format!("If-Range: {etag}\r\nRange: bytes=0-1\r\n"),
        "bytes 0-1/12",
        "he",
    );
    let dated = format!("If-Range: {MODIFIED}\r\nRange: bytes=0-1\r\n");
    check_range(&mut rig, "/hello.txt", &dated, "bytes 0-1/12", "he");
    // Preconditions are of what would be 200: nothing there is 404 all the same.
    assert_eq!(status_of(&rig.get("/none", "If-Match: *\r\n")), "404");
}

#[test]
fn a_directory_exists_whatever_its_tag() {
    let mut rig = Rig::new();
    let get = |rig: &mut Rig, fields: &str| owned(status_of(&rig.get("/list/", fields)));
    assert_eq!(rig.get("/list/", "If-None-Match: *\r\n"), format!("{}\r\n", head("304 Not Modified")));
    assert_eq!(get(&mut rig, "If-None-Match: \"x\"\r\n"), "200");
    assert_eq!(get(&mut rig, "If-Match: *\r\n"), "200");
    assert_eq!(get(&mut rig, "If-Match: \"x\"\r\n"), "412");
    assert_eq!(get(&mut rig, &format!("If-Modified-Since: {DATE}\r\n")), "200");
    // What would be no 200 is not changed by preconditions (RFC 9110 section 13.2.1).
    assert_eq!(status_of(&rig.get("/list", "If-None-Match: *\r\n")), "301");
}

#[test]
fn a_time_in_the_future_is_told_as_the_present() {
    let mut rig = Rig::new();
    let node = rig.world.files.nodes.get_mut("/hello.txt").unwrap();
    node.modified_ns = 4_000_000_000_000_000_000;
    let answer = rig.ask(HELLO);
    assert_eq!((field(&answer, "Last-Modified"), field(&answer, "Date")), (Some(DATE), Some(DATE)));
    // A cache that asks with that date gets the file: nobody knows whether it is the same.
    let later = "If-Modified-Since: Fri, 02 Jan 2026 03:04:04 GMT\r\n";
    assert_eq!(status_of(&rig.get("/hello.txt", later)), "200");
}

/// What is made when it is asked for, as a board's figures, never is as old as what a client has.
#[test]
fn what_has_no_date_of_modification_tells_none() {
    let mut rig = Rig::new();
    rig.world.files.nodes.get_mut("/hello.txt").unwrap().modified_ns = 0;
    let answer = rig.ask(HELLO);
    assert_eq!(field(&answer, "Last-Modified"), None);
    let etag = field(&answer, "ETag").unwrap().to_string();
    assert_eq!(status_of(&rig.get("/hello.txt", &format!("If-Modified-Since: {DATE}\r\n"))), "200");
    assert_eq!(status_of(&rig.get("/hello.txt", &format!("If-None-Match: {etag}\r\n"))), "304");
}

#[test]
fn a_tag_is_weak_while_another_change_would_not_show() {
    let mut rig = Rig::new();
    for (age_ms, weak) in [(0, true), (999, true), (1_000, false)] {
        let node = rig.world.files.nodes.get_mut("/hello.txt").unwrap();
        node.modified_ns = rig.world.wall_ns - age_ms * 1_000_000;
        let (answer, etag) = (rig.ask(HELLO), rig.etag("/hello.txt"));
        let expected = format!("{}{etag}", if weak { "W/" } else { "" });
        assert_eq!(field(&answer, "ETag"), Some(expected.as_str()), "{age_ms} ms");
        assert_eq!(status_of(&rig.get("/hello.txt", &format!("If-None-Match: {expected}\r\n"))), "304");
        let part = rig.get("/hello.txt", &format!("If-Range: {expected}\r\nRange: bytes=0-1\r\n"));
        assert_eq!(status_of(&part), if weak { "200" } else { "206" });
    }
}

#[test]
fn compressed_copies_are_preferred_by_those_who_take_them() {
    let mut rig = Rig::new();
    rig.world.files.add_file("/a.css", b"body{}");
    rig.world.files.add_file("/a.css.gz", b"GZ");
    rig.world.files.add_file("/a.css.br", b"B");
    rig.world.files.add_file("/a.png", b"PNG");
    rig.world.files.add_file("/a.png.gz", b"GZ");
    rig.world.files.add_file("/sub/index.html.zst", b"ZST");
    let mut check = |target: &str, accept: &str, coding: Option<&str>, body: &str, vary: bool| {
        let answer = rig.get(target, &format!("Accept-Encoding: {accept}\r\n"));
        assert_eq!(split(&answer).1, body, "{target} {accept}");
        assert_eq!(field(&answer, "Content-Encoding"), coding, "{target} {accept}");
        assert_eq!(field(&answer, "Vary").is_some(), vary, "{target} {accept}");
        owned(field(&answer, "Content-Type").unwrap())
    };
    assert_eq!(check("/a.css", "gzip, deflate, br", Some("br"), "B", true), "text/css; charset=utf-8");
    assert_eq!(check("/a.css", "gzip, br;q=0.5", Some("gzip"), "GZ", true), "text/css; charset=utf-8");
    check("/a.css", "zstd", None, "body{}", true);
    check("/a.css", "zstd, gzip;q=0.1", Some("gzip"), "GZ", true);
    check("/a.css", "identity", None, "body{}", true);
    check("/a.png", "gzip", None, "PNG", false);
    assert_eq!(check("/a.css.gz", "gzip", None, "GZ", false), "application/gzip");
    assert_eq!(check("/sub/", "zstd", Some("zstd"), "ZST", true), "text/html; charset=utf-8");
    let answer = rig.get("/a.css", "Accept-Encoding: br\r\nRange: bytes=0-0\r\n");
    assert_eq!(field(&answer, "Content-Range"), Some("bytes 0-0/1"));
    // One that is larger, or was forgotten when the file changed, is passed over.
    rig.world.files.add_file("/a.css.br", b"Brotli");
    rig.advance_ms(1_000);
    let answer = rig.get("/a.css", "Accept-Encoding: br, gzip\r\n");
    assert_eq!(field(&answer, "Content-Encoding"), Some("gzip"));
    rig.world.files.nodes.get_mut("/a.css").unwrap().modified_ns += 3_000_000_000;
    rig.advance_ms(1_000);
    let answer = rig.get("/a.css", "Accept-Encoding: br, gzip\r\n");
    assert_eq!((split(&answer).1, field(&answer, "Vary")), ("body{}", Some("Accept-Encoding")));
    rig.server.reload(Config { precompressed: false, ..config() });
    let answer = rig.get("/a.css", "Accept-Encoding: br\r\n");
    assert_eq!((split(&answer).1, field(&answer, "Vary")), ("body{}", None));
}

#[test]
fn memory_files_need_no_disk() {
    let mut rig = Rig::new();
    rig.world.files.hold = true;
    let conn = rig.connect();
    rig.send(conn, "GET /memory/3M HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut received = rig.received(conn);
    let at = received.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 4;
    let content = received.split_off(at);
    assert_eq!(content.len(), 3 << 20);
    assert!(content.iter().enumerate().all(|(i, b)| *b == ((i % 65_536) % 251) as u8));
    let lines = "Accept-Ranges: bytes\r\nETag: \"memory-300000\"\r\n";
    let kind = "Content-Type: application/octet-stream\r\nContent-Length: 3145728\r\n";
    assert_eq!(String::from_utf8(received).unwrap(), format!("{}{kind}{lines}\r\n", head("200 OK")));
    let pattern: String = (249..255u32).map(|i| char::from((i % 251) as u8)).collect();
    rig.send(conn, "GET /memory/1T HTTP/1.1\r\nHost: a\r\nRange: bytes=1048825-1048830\r\n\r\n");
    let part = rig.received(conn);
    // 1,048,825 is 249 beyond a multiple of 65,536.
    assert_eq!(&part[part.len() - 6..], pattern.chars().map(|c| c as u8).collect::<Vec<u8>>());
    assert_eq!(status_of(&rig.get("/memory/1M", "If-None-Match: \"memory-100000\"\r\n")), "304");
    assert_eq!(split(&rig.get("/memory/0", "")).1, "");
    assert_eq!(split(&rig.get("/memory/null", "")).1, "");
    let mut rig = Rig::with(Config { memory_files: false, ..config() });
    assert_eq!(status_of(&rig.get("/memory/1M", "")), "404");
}

#[test]
fn the_null_file_counts_what_it_swallows() {
    let mut rig = Rig::new();
    let conn = rig.connect();
    let answer =
        rig.exchange(conn, "PUT /memory/null HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n");
    assert_eq!(answer, "");
    for _ in 0..30 {
        rig.send(conn, std::vec![7; 100_000]);
    }
    let answer = rig.text(conn);
    assert_eq!((status_of(&answer), split(&answer).1), ("200", "3000000\n"));
    let chunked =
        "POST /memory/null HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    assert_eq!(split(&rig.exchange(conn, chunked)).1, "5\n");
    assert_eq!(split(&rig.exchange(conn, "POST /memory/null HTTP/1.1\r\nHost: a\r\n\r\n")).1, "0\n");
    assert_eq!(rig.server.counters().content_received, 3_000_005);
}

/// What is gathered of short answers may be more than is written at once when a long one was copied behind them.
#[test]
fn answers_that_were_gathered_go_out_without_anything_else_happening() {
    let ranges: Vec<String> = (0..16).map(|at| format!("{}-{}", at * 4_096, at * 4_096 + 2_047)).collect();
    let short = "GET /memory/2048 HTTP/1.1\r\nHost: a\r\n\r\n".repeat(14);
    let shorter = "GET /memory/1000 HTTP/1.1\r\nHost: a\r\n\r\n";
    let get = format!("GET /memory/1M HTTP/1.1\r\nHost: a\r\nRange: bytes={}\r\n", ranges.join(","));
    let put = "PUT /memory/null HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n";
    for (last, is_end) in
        [("Connection: close\r\n\r\n", true), ("\r\n", false), (&format!("\r\n{put}"), false)]
    {
        let mut rig = Rig::new();
        let conn = rig.connect();
        rig.send(conn, format!("{short}{shorter}{get}{last}"));
        let answers = rig.received(conn);
        assert!(answers.len() > 2 * crate::http::drive::GATHER_MAX, "{} {last:?}", answers.len());
        let answers = String::from_utf8_lossy(&answers);
        assert_eq!(answers.matches("HTTP/1.1 200 OK\r\n").count(), 15, "{last:?}");
        assert_eq!(answers.matches("HTTP/1.1 206 ").count(), 1, "{last:?}");
        assert_eq!(answers.contains("HTTP/1.1 100 "), last.contains("PUT"));
        assert_eq!(rig.world.net.client_sees_end(conn), is_end, "{last:?}");
    }
}

#[test]
fn the_status_page_tells_the_counters() {
    let mut rig = Rig::with(Config { status_path: Some(owned("/.linerate/status")), ..config() });
    rig.ask(HELLO);
    rig.ask("BREW / HTTP/1.1\r\nHost: a\r\n\r\n");
    let answer = rig.get("/.linerate/status", "");
    assert_eq!(field(&answer, "Content-Type"), Some("application/json"));
    assert_eq!(field(&answer, "Cache-Control"), Some("no-store"));
    let json = split(&answer).1;
    assert!(json.starts_with("{\"uptime_s\":0,\"requests\":2,\"accepted\":3,"), "{json}");
    assert!(json.contains("\"responses_2xx\":1,") && json.contains("\"responses_5xx\":1,"), "{json}");
    assert!(json.contains("\"malformed\":1,") && json.ends_with("\"listings\":0}\n"), "{json}");
    assert_eq!(status_of(&Rig::new().get("/.linerate/status", "")), "404");
}

#[test]
fn the_server_field_can_be_left_out() {
    let mut rig = Rig::with(Config { server_header: false, ..config() });
    assert_eq!(field(&rig.ask(HELLO), "Server"), None);
}

#[test]
fn the_date_is_of_the_second() {
    let mut rig = Rig::new();
    assert_eq!(field(&rig.ask(HELLO), "Date"), Some(DATE));
    rig.advance_ms(61_000);
    assert_eq!(field(&rig.ask(HELLO), "Date"), Some("Fri, 02 Jan 2026 03:05:06 GMT"));
}

#[test]
fn a_file_system_may_know_the_media_type_better_than_the_name() {
    let mut rig = Rig::new();
    rig.world.files.media_type = Some("application/json");
    for name in ["/empty", "/hello.txt", "/big"] {
        assert_eq!(field(&rig.get(name, ""), "Content-Type"), Some("application/json"), "{name}");
    }
}
