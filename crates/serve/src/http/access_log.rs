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
    /// Bytes of content that were handed over.
    pub bytes: u64,
    pub duration: Duration,
    pub referer: Option<&'a [u8]>,
    pub user_agent: Option<&'a [u8]>,
}

impl fmt::Display for Record<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.format {
            LogFormat::Json => self.fmt_json(f),
            format => {
                let mut when = Vec::new();
                date::append_log_date(&mut when, self.wall_secs);
                write!(
                    f,
                    "{} - - [{}] \"{}\" {} ",
                    self.remote,
                    text(&when),
                    Quoted(self.line),
                    self.status
                )?;
                match self.bytes {
                    0 => f.write_char('-')?,
                    bytes => write!(f, "{bytes}")?,
                }
                if format == LogFormat::Combined {
                    let referer = Quoted(self.referer.unwrap_or(b"-"));
                    write!(f, " \"{referer}\" \"{}\"", Quoted(self.user_agent.unwrap_or(b"-")))?;
                }
                Ok(())
            }
        }
    }
}

impl Record<'_> {
    fn fmt_json(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut when = Vec::new();
        date::append_iso(&mut when, self.wall_secs, true);
        let mut parts = self.line.split(|b| *b == b' ');
        write!(f, "{{\"time\":\"{}\",\"remote\":\"{}\"", text(&when), self.remote)?;
        for name in ["method", "target", "version"] {
            if let Some(value) = parts.next().filter(|value| !value.is_empty()) {
                write!(f, ",\"{name}\":\"{}\"", Json(value))?;
            }
        }
        let micros = self.duration.as_micros();
        write!(f, ",\"status\":{},\"bytes\":{},\"duration_us\":{micros}", self.status, self.bytes)?;
        for (name, value) in [("referer", self.referer), ("user_agent", self.user_agent)] {
            if let Some(value) = value {
                write!(f, ",\"{name}\":\"{}\"", Json(value))?;
            }
        }
        f.write_char('}')
    }
}

fn text(bytes: &[u8]) -> &str {
    core::str::from_utf8(bytes).unwrap_or("")
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
    use alloc::string::ToString;
    use proptest::prelude::*;

    fn record(format: LogFormat) -> Record<'static> {
        Record {
            format,
            remote: "10.0.0.9".parse().unwrap(),
            wall_secs: 784_111_777,
            line: b"GET /a\"b?c\\d HTTP/1.1",
            status: 200,
            bytes: 42,
            duration: Duration::from_micros(1_500),
            referer: None,
            user_agent: Some(b"evil\x1b[31m\xff"),
        }
    }

    #[test]
    fn each_format_is_as_its_readers_expect() {
        assert_eq!(
            record(LogFormat::Common).to_string(),
            r#"10.0.0.9 - - [06/Nov/1994:08:49:37 +0000] "GET /a\"b?c\\d HTTP/1.1" 200 42"#
        );
        assert_eq!(
            record(LogFormat::Combined).to_string(),
            r#"10.0.0.9 - - [06/Nov/1994:08:49:37 +0000] "GET /a\"b?c\\d HTTP/1.1" 200 42 "-" "evil\x1b[31m\xff""#
        );
        assert_eq!(
            record(LogFormat::Json).to_string(),
            "{\"time\":\"1994-11-06T08:49:37Z\",\"remote\":\"10.0.0.9\",\"method\":\"GET\",\
             \"target\":\"/a\\\"b?c\\\\d\",\"version\":\"HTTP/1.1\",\"status\":200,\"bytes\":42,\
             \"duration_us\":1500,\"user_agent\":\"evil\\u001b[31m\u{FFFD}\"}"
        );
    }

    #[test]
    fn what_is_missing_is_a_dash() {
        let empty = Record { line: b"", bytes: 0, user_agent: None, ..record(LogFormat::Combined) };
        assert_eq!(empty.to_string(), r#"10.0.0.9 - - [06/Nov/1994:08:49:37 +0000] "" 200 - "-" "-""#);
    }

    proptest! {
        #[test]
        fn no_control_character_comes_through(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            for format in [LogFormat::Common, LogFormat::Combined, LogFormat::Json] {
                let all = Record { line: &bytes, referer: Some(&bytes), ..record(format) };
                prop_assert!(!all.to_string().chars().any(char::is_control));
            }
        }
    }
}
