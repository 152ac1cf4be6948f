//! Lines of the access log, in the form of all other lines and without their cost: there is one for every request. In JSON all lines are of
//! this making.

use crate::args::LogFormat;
use linerate_serve::calendar::Civil;
use std::fmt::{self, Write as _};
use std::time::Duration;

/// What turns a record into a line; each thread has one.
#[derive(Debug)]
pub struct Writer {
    line: Vec<u8>,
    /// The message of a JSON line before it is escaped.
    message: String,
    /// The second of `stamp`, which is its beginning as the line shows it.
    second: Option<u64>,
    stamp: String,
}

/// The form of lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Form {
    /// Text or JSON.
    pub format: LogFormat,
    /// Whether text has colours.
    pub colours: bool,
}

impl Writer {
    /// One that has written nothing.
    pub const fn new() -> Writer {
        Writer { line: Vec::new(), message: String::new(), second: None, stamp: String::new() }
    }

    /// The line of a record, with its end; `wall` is the time since 1970.
    pub fn line(&mut self, form: Form, record: &log::Record<'_>, wall: Duration) -> &[u8] {
        self.line.clear();
        if self.second.replace(wall.as_secs()) != Some(wall.as_secs()) {
            self.stamp.clear();
            let Civil { year, month, day, hour, minute, second, .. } =
                Civil::from_secs(wall.as_secs() as i64);
            // A string takes all that is written.
            let _ = write!(self.stamp, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.");
        }
        let (before, after) = match (form.format, form.colours) {
            (LogFormat::Json, _) => ("{\"timestamp\":\"", "\",\"level\":\""),
            (LogFormat::Text, false) => ("", " "),
            (LogFormat::Text, true) => ("\x1b[2m", "\x1b[0m "),
        };
        self.line.extend_from_slice(before.as_bytes());
        self.line.extend_from_slice(self.stamp.as_bytes());
        self.line.extend_from_slice(&six_digits(wall.subsec_micros()));
        self.line.push(b'Z');
        self.line.extend_from_slice(after.as_bytes());
        match form.format {
            LogFormat::Json => self.json(record),
            LogFormat::Text => self.text(record, form.colours),
        }
        self.line.push(b'\n');
        &self.line
    }

    /// The rest of a text line. The message has no control characters that would have to be escaped.
    fn text(&mut self, record: &log::Record<'_>, colours: bool) {
        let parts = if colours {
            ["\x1b[32m INFO\x1b[0m \x1b[2m", "\x1b[0m\x1b[2m:\x1b[0m "]
        } else {
            [" INFO ", ": "]
        };
        self.line.extend_from_slice(parts[0].as_bytes());
        self.line.extend_from_slice(record.target().as_bytes());
        self.line.extend_from_slice(parts[1].as_bytes());
        let _ = Bytes(&mut self.line).write_fmt(*record.args());
    }

    fn json(&mut self, record: &log::Record<'_>) {
        self.message.clear();
        let _ = self.message.write_fmt(*record.args());
        self.line.extend_from_slice(record.level().as_str().as_bytes());
        self.line.extend_from_slice(b"\",\"fields\":{\"message\":");
        append_json(&mut self.line, &self.message);
        self.line.extend_from_slice(b"},\"target\":");
        append_json(&mut self.line, record.target());
        self.line.push(b'}');
    }
}

fn append_json(out: &mut Vec<u8>, text: &str) {
    // A vector takes all that is written.
    let _ = serde_json::to_writer(out, text);
}

fn six_digits(mut value: u32) -> [u8; 6] {
    let mut digits = [b'0'; 6];
    for digit in digits.iter_mut().rev() {
        *digit += (value % 10) as u8;
        value /= 10;
    }
    digits
}

struct Bytes<'a>(&'a mut Vec<u8>);

impl fmt::Write for Bytes<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use log::Log as _;
    use std::io;
    use std::sync::{Arc, Mutex};
    use tracing_log::LogTracer;

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A line of the access log is what the subscriber makes of the same record, but for the time and for what the bridge adds.
    fn check(form: Form, level: log::Level, message: &str) {
        let sink = Sink::default();
        let writer = sink.clone();
        let builder = tracing_subscriber::fmt().with_ansi(form.colours).with_writer(move || writer.clone());
        let subscriber: Box<dyn tracing::Subscriber + Send + Sync> = match form.format {
            LogFormat::Text => Box::new(builder.finish()),
            LogFormat::Json => Box::new(builder.json().finish()),
        };
        let log = |logger: &mut dyn FnMut(&log::Record<'_>)| {
            let mut record = log::Record::builder();
            record.level(level).target("http::access");
            record.module_path(Some("a::b")).file(Some("c.rs")).line(Some(7));
            logger(&record.args(format_args!("{message}")).build());
        };
        tracing::subscriber::with_default(subscriber, || log(&mut |record| LogTracer::new().log(record)));
        let theirs = String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
        let mut ours = String::new();
        let wall = Duration::new(784_111_777, 42_000);
        log(&mut |record| ours = String::from_utf8(Writer::new().line(form, record, wall).to_vec()).unwrap());
        let at = theirs.find("20").unwrap();
        let theirs = [&theirs[..at], "1994-11-06T08:49:37.000042Z", &theirs[at + 27..]].concat();
        let bridge =
            r#","log.target":"http::access","log.module_path":"a::b","log.file":"c.rs","log.line":7"#;
        let theirs = theirs.replace(bridge, "");
        assert_eq!(ours, theirs);
    }

    #[test]
    fn lines_look_like_those_of_the_subscriber() {
        for message in
            ["10.0.0.9 - - [x] \"GET /a HTTP/1.1\" 200 42 \"-\" \"\\x1b\\\\\"", "{\"a\":\"ä\\\"\"}"]
        {
            for format in [LogFormat::Text, LogFormat::Json] {
                for colours in [false, true] {
                    check(Form { format, colours }, log::Level::Info, message);
                }
            }
            for level in [log::Level::Error, log::Level::Warn] {
                check(Form { format: LogFormat::Json, colours: false }, level, message);
            }
        }
    }

    #[test]
    fn the_time_goes_on() {
        let (mut writer, form) = (Writer::new(), Form { format: LogFormat::Text, colours: false });
        for (nanos, text) in [
            (999_999_999, "1970-01-01T00:00:00.999999Z  INFO t: m\n"),
            (1_000_000_000, "1970-01-01T00:00:01.000000Z  INFO t: m\n"),
            (1_000_001_000, "1970-01-01T00:00:01.000001Z  INFO t: m\n"),
        ] {
            let record = log::Record::builder().target("t").args(format_args!("m")).build();
            assert_eq!(writer.line(form, &record, Duration::from_nanos(nanos)), text.as_bytes());
        }
    }
}
