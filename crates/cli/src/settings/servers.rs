//! The `[http]`, `[ftp]` and `[iperf3]` tables of the configuration file: what else there is to set of the servers.

use super::forms::{self, Count};
use super::{SettingsError, bad};
use crate::values::{ByteSize, Span, ValueError};
use linerate_lab::from_text;
use linerate_serve::{ftp, http, iperf3, memory};
use linerate_transport::VirtualPath;
use serde::Deserialize;
use std::str::FromStr;
use std::time::Duration;

/// What a key of the tables may hold.
trait Value {
    /// What is expected where it is not within bounds; `None` where it is.
    fn flaw(&self, least: u64, most: u64) -> Option<String>;

    /// As it was written.
    fn shown(&self) -> String;
}

impl Value for bool {
    fn flaw(&self, _least: u64, _most: u64) -> Option<String> {
        None
    }

    fn shown(&self) -> String {
        self.to_string()
    }
}

impl Value for Count {
    fn flaw(&self, least: u64, most: u64) -> Option<String> {
        (!(least..=most).contains(&self.0)).then(|| format!("{least} to {most}"))
    }

    fn shown(&self) -> String {
        self.0.to_string()
    }
}

impl Value for ByteSize {
    fn flaw(&self, least: u64, most: u64) -> Option<String> {
        let fits = (least..=most).contains(&self.0);
        (!fits).then(|| format!("{} to {}", ByteSize(least), ByteSize(most)))
    }

    fn shown(&self) -> String {
        self.to_string()
    }
}

/// Bounds are in milliseconds.
impl Value for Span {
    fn flaw(&self, least: u64, most: u64) -> Option<String> {
        let (least, most) = (Duration::from_millis(least), Duration::from_millis(most));
        (!(least..=most).contains(&self.0)).then(|| format!("{} to {}", Span(least), Span(most)))
    }

    fn shown(&self) -> String {
        self.to_string()
    }
}

impl Value for AccessLog {
    fn flaw(&self, _least: u64, _most: u64) -> Option<String> {
        None
    }

    fn shown(&self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

impl Value for String {
    fn flaw(&self, _least: u64, most: u64) -> Option<String> {
        let fits = self.len() as u64 <= most && !self.chars().any(char::is_control);
        (!fits).then(|| format!("up to {most} bytes without control characters"))
    }

    fn shown(&self) -> String {
        self.clone()
    }
}

/// The path of a status page.
impl Value for UrlPath {
    fn flaw(&self, _least: u64, most: u64) -> Option<String> {
        let is_plain = self.0.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#%".contains(&byte));
        if !self.0.starts_with('/') || self.0.len() as u64 > most || !is_plain {
            return Some(format!("a path of up to {most} bytes that begins with / and needs no escapes"));
        }
        // Requests are compared as they are resolved: what resolves to something else would never be asked for.
        let path = VirtualPath::parse(&self.0).ok().filter(|path| path.as_str() == self.0 && !path.is_root());
        match path {
            None => Some(
                "a path that is not the root, without / at its end and without //, . and .. in it".to_owned(),
            ),
            Some(path) if memory::lookup(&path).is_some() => {
                Some("a path that is not a memory file's".to_owned())
            }
            Some(_) => None,
        }
    }

    fn shown(&self) -> String {
        self.0.clone()
    }
}

impl Value for Vec<String> {
    fn flaw(&self, _least: u64, most: u64) -> Option<String> {
        let is_name = |name: &String| !name.is_empty() && !name.contains(['/', '\0']);
        let fits = self.len() as u64 <= most && self.iter().all(is_name);
        (!fits).then(|| format!("at most {most} names of files, without /"))
    }

    fn shown(&self) -> String {
        self.join(", ")
    }
}

/// A path on the server.
#[derive(Deserialize, Clone, PartialEq, Eq, Debug)]
#[serde(transparent)]
pub struct UrlPath(String);

/// How HTTP requests are logged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccessLog {
    /// Not at all.
    Off,
    /// The Common Log Format.
    Common,
    /// With referrer and user agent.
    Combined,
    /// One JSON object a line.
    Json,
}

impl FromStr for AccessLog {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        match text {
            "off" => Ok(AccessLog::Off),
            "common" => Ok(AccessLog::Common),
            "combined" => Ok(AccessLog::Combined),
            "json" => Ok(AccessLog::Json),
            _ => Err(ValueError::new("off, common, combined or json")),
        }
    }
}

from_text!(AccessLog);

/// A table: its keys with their types and bounds, and where each value goes.
macro_rules! table {
    ($(#[$about:meta])* $table:ident for $config:ty {
        $($(#[$read:meta])* $name:literal $key:ident: $type:ty, $least:expr, $most:expr => |$c:ident, $v:ident| $set:expr;)*
    }) => {
        $(#[$about])*
        #[derive(Deserialize, Clone, PartialEq, Eq, Debug, Default)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case", default, expecting = "a table")]
        pub struct $table {
            $($(#[$read])* $key: Option<$type>,)*
        }

        impl $table {
            /// Whether all values are within their bounds.
            pub(super) fn check(&self) -> Result<(), SettingsError> {
                $(if let Some(value) = &self.$key
                    && let Some(expected) = value.flaw($least, $most)
                {
                    return Err(bad($name, value.shown(), expected));
                })*
                Ok(())
            }

            /// Puts what was set into the server's settings.
            #[allow(clippy::too_many_lines, reason = "a line for each key")]
            pub fn apply(&self, config: &mut $config) {
                $(if let Some($v) = self.$key.clone() {
                    let $c = &mut *config;
                    $set;
                })*
            }

            /// The keys.
            #[cfg(test)]
            pub(super) const NAMES: &[&str] = &[$($name),*];
        }
    };
}

const HOUR: u64 = 3_600_000;
const MIB: u64 = 1 << 20;

table! {
    /// The `[http]` table.
    HttpOptions for http::Config {
        #[serde(deserialize_with = "forms::names")]
        "http.index-files" index_files: Vec<String>, 0, 16 => |c, v| c.index_files = v;
        "http.autoindex" autoindex: bool, 0, 1 => |c, v| c.autoindex = v;
        "http.hidden-files" hidden_files: bool, 0, 1 => |c, v| c.hidden_files = v;
        "http.precompressed" precompressed: bool, 0, 1 => |c, v| c.precompressed = v;
        "http.memory-files" memory_files: bool, 0, 1 => |c, v| c.memory_files = v;
        "http.server-header" server_header: bool, 0, 1 => |c, v| c.server_header = v;
        "http.access-log" access_log: AccessLog, 0, 1 => |c, v| c.access_log = match v {
            AccessLog::Off => None,
            AccessLog::Common => Some(http::LogFormat::Common),
            AccessLog::Combined => Some(http::LogFormat::Combined),
            AccessLog::Json => Some(http::LogFormat::Json),
        };
        "http.status-path" status_path: UrlPath, 0, 255 => |c, v| c.status_path = Some(v.0);
        "http.request-line" request_line: ByteSize, 256, MIB => |c, v| c.limits.request_line = v.0 as usize;
        "http.header-fields" header_fields: ByteSize, 1_024, MIB => |c, v| c.limits.header_fields = v.0 as usize;
        "http.body" body: ByteSize, 0, 1 << 40 => |c, v| c.limits.body = v.0;
        "http.head-memory" head_memory: ByteSize, 64 << 10, 1 << 32 => |c, v| c.limits.head_memory = v.0 as usize;
        "http.open-files" open_files: Count, 1, 65_536 => |c, v| c.limits.open_files = v.0 as usize;
        "http.cache-entries" cache_entries: Count, 0, 1 << 20 => |c, v| c.limits.cache_entries = v.0 as usize;
        "http.cached-file" cached_file: ByteSize, 0, 64 << 10 => |c, v| c.limits.cached_file = v.0 as usize;
        "http.cache-memory" cache_memory: ByteSize, 0, 1 << 32 => |c, v| c.limits.cache_memory = v.0 as usize;
        "http.ready-answers" ready_answers: Count, 0, 1_024 => |c, v| c.limits.ready_answers = v.0 as usize;
        "http.listing-entries" listing_entries: Count, 1, 1 << 20 => |c, v| c.limits.listing_entries = v.0 as usize;
        "http.listings" listings: Count, 1, 1_024 => |c, v| c.limits.listings = v.0 as usize;
        "http.head-timeout" head_timeout: Span, 100, HOUR => |c, v| c.timeouts.head = v.0;
        "http.idle-timeout" idle_timeout: Span, 100, 24 * HOUR => |c, v| c.timeouts.idle = v.0;
        "http.progress-timeout" progress_timeout: Span, 1_000, 24 * HOUR => |c, v| c.timeouts.progress = v.0;
        "http.progress-bytes" progress_bytes: ByteSize, 1, MIB => |c, v| c.timeouts.progress_bytes = v.0;
        "http.file-timeout" file_timeout: Span, 100, HOUR => |c, v| c.timeouts.file = v.0;
        "http.linger" linger: Span, 0, 60_000 => |c, v| c.timeouts.linger = v.0;
        "http.cache-time" cache_time: Span, 0, HOUR => |c, v| c.timeouts.cache = v.0;
    }
}

table! {
    /// The `[ftp]` table.
    FtpOptions for ftp::Config {
        "ftp.banner" banner: String, 0, 400 => |c, v| c.banner = v;
        "ftp.memory-files" memory_files: bool, 0, 1 => |c, v| c.memory_files = v;
        "ftp.login-tries" login_tries: Count, 1, 100 => |c, v| c.limits.login_tries = v.0 as u32;
        "ftp.login-delay" login_delay: Span, 0, 60_000 => |c, v| c.limits.login_delay = v.0;
        "ftp.password-checks" password_checks: Count, 1, 64 => |c, v| c.limits.password_checks = v.0 as usize;
        "ftp.unknown-commands" unknown_commands: Count, 1, 1_000 => |c, v| c.limits.unknown_commands = v.0 as u32;
        "ftp.idle-timeout" idle_timeout: Span, 1_000, 24 * HOUR => |c, v| c.limits.idle = v.0;
        "ftp.data-idle-timeout" data_idle_timeout: Span, 1_000, 24 * HOUR => |c, v| c.limits.data_idle = v.0;
        "ftp.data-open-timeout" data_open_timeout: Span, 1_000, HOUR => |c, v| c.limits.data_open = v.0;
        "ftp.line-length" line_length: ByteSize, 256, 64 << 10 => |c, v| c.limits.line_len = v.0 as usize;
        "ftp.path-line-length" path_line_length: ByteSize, 256, 64 << 10 =>
            |c, v| c.limits.path_line_len = v.0 as usize;
        "ftp.queued-commands" queued_commands: Count, 1, 1_024 => |c, v| c.limits.queued_commands = v.0 as usize;
        "ftp.write-chunk" write_chunk: ByteSize, 4 << 10, 16 * MIB => |c, v| c.limits.write_chunk_len = v.0 as usize;
        "ftp.writes-under-way" writes_under_way: Count, 1, 64 => |c, v| c.limits.writes_under_way = v.0 as usize;
        "ftp.sorted-entries" sorted_entries: Count, 0, 1 << 20 => |c, v| c.limits.sorted_entries = v.0 as usize;
    }
}

table! {
    /// The `[iperf3]` table.
    Iperf3Options for iperf3::Config {
        // Which of them a server listens on goes by its queue: see `Iperf3Options::ports`.
        "iperf3.ports" ports: Count, 1, 64 => |_c, v| debug_assert!(v.0 > 0, "within its bounds");
        "iperf3.tests" tests: Count, 1, 1_024 => |c, v| c.max_tests = v.0 as usize;
        "iperf3.tests-per-address" tests_per_address: Count, 1, 1_024 => |c, v| c.tests_per_address = v.0 as usize;
        "iperf3.udp-buffer" udp_buffer: ByteSize, 64 << 10, 1 << 30 => |c, v| c.udp_buffer = v.0 as usize;
        "iperf3.greeting-timeout" greeting_timeout: Span, 100, HOUR => |c, v| c.greeting_timeout = v.0;
        "iperf3.streams-timeout" streams_timeout: Span, 100, HOUR => |c, v| c.streams_timeout = v.0;
        "iperf3.overrun" overrun: Span, 0, HOUR => |c, v| c.overrun = v.0;
        "iperf3.stall-timeout" stall_timeout: Span, 1_000, 24 * HOUR => |c, v| c.stall_timeout = v.0;
        "iperf3.results-timeout" results_timeout: Span, 1_000, HOUR => |c, v| c.results_timeout = v.0;
    }
}

impl Iperf3Options {
    /// Ports that the server listens on, from its own on.
    pub fn ports(&self) -> u16 {
        self.ports.and_then(|ports| u16::try_from(ports.0).ok()).unwrap_or(1).max(1)
    }
}

impl HttpOptions {
    /// Whether `/memory/SIZE` is there.
    pub fn has_memory_files(&self) -> bool {
        self.memory_files.unwrap_or(http::Config::default().memory_files)
    }
}

/// The three tables.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ServerSettings {
    /// `[http]`.
    pub http: HttpOptions,
    /// `[ftp]`.
    pub ftp: FtpOptions,
    /// `[iperf3]`.
    pub iperf3: Iperf3Options,
}

impl ServerSettings {
    /// What the file says, if it fits.
    pub(super) fn resolve(
        http: HttpOptions,
        ftp: FtpOptions,
        iperf3: Iperf3Options,
    ) -> Result<ServerSettings, SettingsError> {
        http.check()?;
        ftp.check()?;
        iperf3.check()?;
        Ok(ServerSettings { http, ftp, iperf3 })
    }

    /// There are no memory files where nobody asked for them; true if there were.
    pub(super) fn drop_memory_files(&mut self) -> bool {
        let choices = [&mut self.http.memory_files, &mut self.ftp.memory_files];
        let dropped = choices.iter().any(|choice| choice.is_none());
        choices.into_iter().for_each(|choice| {
            choice.get_or_insert(false);
        });
        dropped
    }
}
