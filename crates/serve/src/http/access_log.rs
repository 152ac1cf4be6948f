//! Access log lines: one per response, free of control characters whatever a client sent.

use super::config::LogFormat;
use super::date;
use alloc::vec::Vec;
use core::fmt::{self, Write as _};
use core::net::IpAddr;
use core::time::Duration;

/// The `log` target of access log lines.
pub const TARGET: &str = "http::access";

/// One answered request.
pub(super) struct Record<'a> {
    pub format: LogFormat,
    pub remote: IpAddr,
    /// When the answer was complete, in seconds since 1970.
    pub wall_secs: i64,
    /// The request line as it came; empty when there was none.
    pub line: &'a [u8],
    pub status: u16,
    /// Bytes of content that were handed over; of a response that was cut, those that the client acknowledged.
    pub bytes: u64,
    /// The response did not come to its end.
    pub is_cut: bool,
    pub duration: Duration,
    pub referer: Option<&'a [u8]>,
    pub user_agent: Option<&'a [u8]>,
}

/// Writes the lines: each in the room of the one before, with the date of the one before if that is of the same second.
#[derive(Debug)]
pub(super) struct Scribe {
    line: Vec<u8>,
    /// The second of `date`, and whether it is in the form of JSON lines.
    second: Option<(i64, bool)>,
    date: Vec<u8>,
}

impl Scribe {
    /// One that has written nothing.
    pub const fn new() -> Scribe {
        Scribe { line: Vec::new(), second: None, date: Vec::new() }
    }

    /// The line of a record, without its end.
    pub fn line(&mut self, record: &Record<'_>) -> &str {
        self.line.clear();
        let is_json = record.format == LogFormat::Json;
        let second = (record.wall_secs, is_json);
        if self.second.replace(second) != Some(second) {
            self.date.clear();
            if is_json {
                date::append_iso(&mut self.date, record.wall_secs, true);
            } else {
                date::append_log_date(&mut self.date, record.wall_secs);
            }
        }
        if is_json {
            self.json(record)
        } else {
            self.plain(record)
        }
        // Everything that is no text was escaped or replaced.
        core::str::from_utf8(&self.line).unwrap_or("")
    }

    /// The forms `common` and `combined`.
    fn plain(&mut self, record: &Record<'_>) {
        let out = &mut self.line;
        append_ip(out, record.remote);
        out.extend_from_slice(b" - - [");
        out.extend_from_slice(&self.date);
        out.extend_from_slice(b"] \"");
        append_quoted(out, record.line);
        out.extend_from_slice(b"\" ");
        append_number(out, record.status.into());
        out.push(b' ');
        match record.bytes {
            0 => out.push(b'-'),
            bytes => append_number(out, bytes),
        }
        if record.format == LogFormat::Combined {
            for value in [record.referer, record.user_agent] {
                out.extend_from_slice(b" \"");
                append_quoted(out, value.unwrap_or(b"-"));
                out.push(b'"');
            }
        }
    }

    fn json(&mut self, record: &Record<'_>) {
        let out = &mut self.line;
        let mut parts = record.line.split(|b| *b == b' ');
        out.extend_from_slice(b"{\"time\":\"");
        out.extend_from_slice(&self.date);
        out.extend_from_slice(b"\",\"remote\":\"");
        append_ip(out, record.remote);
        out.push(b'"');
        for name in ["method", "target", "version"] {
            append_member(out, name, parts.next().filter(|value| !value.is_empty()));
        }
        let micros = u64::try_from(record.duration.as_micros()).unwrap_or(u64::MAX);
        for (name, value) in
            [("status", record.status.into()), ("bytes", record.bytes), ("duration_us", micros)]
        {
            append_name(out, name);
            append_number(out, value);
        }
        if record.is_cut {
            out.extend_from_slice(b",\"cut\":true");
        }
        append_member(out, "referer", record.referer);
        append_member(out, "user_agent", record.user_agent);
        out.push(b'}');
    }
}

/// `,"name":"value"`, or nothing without a value.
fn append_member(out: &mut Vec<u8>, name: &str, value: Option<&[u8]>) {
    let Some(value) = value else { return };
    append_name(out, name);
    out.push(b'"');
    append(out, format_args!("{}", Json(value)));
    out.push(b'"');
}

fn append_name(out: &mut Vec<u8>, name: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

/// Appends what is too rare to be written without the formatting machinery.
fn append(out: &mut Vec<u8>, text: fmt::Arguments<'_>) {
    struct Room<'a>(&'a mut Vec<u8>);
    impl fmt::Write for Room<'_> {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.extend_from_slice(text.as_bytes());
            Ok(())
        }
    }
    // Room is made as it is needed.
    let _ = Room(out).write_fmt(text);
}

fn append_ip(out: &mut Vec<u8>, ip: IpAddr) {
    let IpAddr::V4(ip) = ip else { return append(out, format_args!("{ip}")) };
    for (at, octet) in ip.octets().into_iter().enumerate() {
        if at > 0 {
            out.push(b'.');
        }
        append_number(out, octet.into());
    }
}

fn append_number(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends [`Quoted`] bytes; those of nearly every request need no escaping and are copied as they are.
fn append_quoted(out: &mut Vec<u8>, bytes: &[u8]) {
    let is_plain = |b: u8| (b' '..=b'~').contains(&b) && b != b'"' && b != b'\\';
    // All are looked at, so that several are looked at by one instruction.
    if bytes.iter().fold(true, |all, b| all & is_plain(*b)) {
        out.extend_from_slice(bytes);
    } else {
        append(out, format_args!("{}", Quoted(bytes)));
    }
}

/// Bytes between quotation marks, as the logs of other servers escape them.
pub(super) struct Quoted<'a>(pub &'a [u8]);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            match byte {
                b'"' | b'\\' => write!(f, "\\{}", char::from(*byte))?,
                b' '..=b'~' => f.write_char(char::from(*byte))?,
                _ => write!(f, "\\x{byte:02x}")?,
            }
        }
        Ok(())
    }
}

/// The inside of a JSON string; bytes that are no UTF-8 become U+FFFD.
pub(super) struct Json<'a>(pub &'a [u8]);

impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                match c {
                    '"' | '\\' => write!(f, "\\{c}")?,
                    // DEL and the C1 controls may do to a terminal what the others do.
                    c if c.is_control() => write!(f, "\\u{:04x}", u32::from(c))?,
                    c => f.write_char(c)?,
                }
            }
            if !chunk.invalid().is_empty() {
                f.write_char('\u{FFFD}')?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};
    use proptest::prelude::*;

    fn line(record: &Record<'_>) -> String {
        Scribe::new().line(record).to_string()
    }

    fn record(format: LogFormat) -> Record<'static> {
        Record {
            format,
            remote: "10.0.0.9".parse().unwrap(),
            wall_secs: 784_111_777,
            line: b"GET /a\"b?c\\d HTTP/1.1",
            status: 200,
            bytes: 42,
            is_cut: false,
            duration: Duration::from_micros(1_500),
            referer: None,
            user_agent: Some(b"evil\x1b[31m\xff"),
        }
    }

    #[test]
    fn each_format_is_as_its_readers_expect() {
        assert_eq!(
            line(&record(LogFormat::Common)),
            r#"10.0.0.9 - - [06/Nov/1994:08:49:37 +0000] "GET /a\"b?c\\d HTTP/1.1" 200 42"#
        );
        assert_eq!(
            line(&record(LogFormat::Combined)),
            r#"10.0.0.9 - - [06/Nov/1994:08:49:37 +0000] "GET /a\"b?c\\d HTTP/1.1" 200 42 "-" "evil\x1b[31m\xff""#
        );
        assert_eq!(
            line(&record(LogFormat::Json)),
            "{\"time\":\"1994-11-06T08:49:37Z\",\"remote\":\"10.0.0.9\",\"method\":\"GET\",\
             \"target\":\"/a\\\"b?c\\\\d\",\"version\":\"HTTP/1.1\",\"status\":200,\"bytes\":42,\
             \"duration_us\":1500,\"user_agent\":\"evil\\u001b[31m\u{FFFD}\"}"
        );
        let cut = line(&Record { is_cut: true, ..record(LogFormat::Json) });
        assert!(cut.contains("\"bytes\":42,\"duration_us\":1500,\"cut\":true,\"user_agent\""), "{cut}");
    }

    #[test]
    fn addresses_of_both_families_are_written() {
        for ip in ["0.0.0.0", "255.255.255.255", "192.0.2.10", "2001:db8::1", "::1"] {
            let mut out = Vec::new();
            append_ip(&mut out, ip.parse().unwrap());
            assert_eq!(out, ip.as_bytes());
        }
    }

    #[test]
    fn what_is_missing_is_a_dash() {
        let empty = Record { line: b"", bytes: 0, user_agent: None, ..record(LogFormat::Combined) };
        assert_eq!(line(&empty), r#"10.0.0.9 - - [06/Nov/1994:08:49:37 +0000] "" 200 - "-" "-""#);
    }

    proptest! {
        #[test]
        fn no_control_character_comes_through(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            for format in [LogFormat::Common, LogFormat::Combined, LogFormat::Json] {
                let all = Record { line: &bytes, referer: Some(&bytes), ..record(format) };
                let line = line(&all);
                prop_assert!(!line.is_empty() && !line.chars().any(char::is_control));
            }
        }

        #[test]
        fn a_scribe_writes_each_line_as_if_it_were_its_first(
            records in proptest::collection::vec((0..3_usize, 0..3_i64, any::<u64>(), any::<u16>()), 1..20)
        ) {
            let mut scribe = Scribe::new();
            for (format, second, bytes, status) in records {
                let format = [LogFormat::Common, LogFormat::Combined, LogFormat::Json][format];
                let one = Record { wall_secs: 784_111_777 + second, bytes, status, ..record(format) };
                let text = line(&one);
                prop_assert_eq!(scribe.line(&one), &text);
                prop_assert!(text.contains(&bytes.to_string()) || bytes == 0);
                prop_assert!(text.contains(&status.to_string()));
            }
        }

        #[test]
        fn what_needs_no_escaping_is_copied_and_the_rest_escaped(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let mut out = Vec::new();
            append_quoted(&mut out, &bytes);
            prop_assert_eq!(out, Quoted(&bytes).to_string().into_bytes());
        }
    }
}
