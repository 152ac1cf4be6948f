//! What can be set: addresses, users, policies and limits, each with its default.

use super::login;
use super::ports::PortShare;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::net::Ipv4Addr;
use core::ops::RangeInclusive;
use core::time::Duration;
use linerate_transport::{AcceptBacklog, ListenAddr, SocketOptions};

/// Settings of the FTP server. A change with [`Server::reload`](super::Server::reload) applies to new sessions and to
/// the next command of those under way.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// Where to listen for control connections. Default: port 21 of all addresses.
    pub listen: Vec<ListenAddr>,
    /// The greeting. Default: "linerate FTP server ready".
    pub banner: String,
    /// Who may log in with a password. Default: nobody.
    pub users: Vec<User>,
    /// Whether `anonymous` and `ftp` may log in with any password and read everything, what users upload, too.
    /// Default: true.
    pub anonymous: bool,
    /// Whether users with a password may upload, change and delete. Anonymous users never may. Default: false.
    pub writable: bool,
    /// Whether `memory/SIZE` and `memory/null` exist (see [`crate::memory`]), for everybody. Default: true.
    pub memory_files: bool,
    /// Ports for passive data connections. Default: 49152..=65535, the dynamic ports of RFC 6335.
    pub passive_ports: RangeInclusive<u16>,
    /// Which of these ports this server takes, where several servers share them. Default: all.
    pub passive_share: PortShare,
    /// The address to tell clients in the answer to PASV, for a server behind address translation. Default: none,
    /// which tells the address that the control connection came to.
    pub passive_address: Option<Ipv4Addr>,
    /// Control connections that may wait to be accepted. Default: 1,024.
    pub backlog: AcceptBacklog,
    /// Options of control and data connections.
    pub socket: SocketOptions,
    /// Limits.
    pub limits: Limits,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            listen: vec![ListenAddr { ip: None, port: 21 }],
            banner: String::from("linerate FTP server ready"),
            users: Vec::new(),
            anonymous: true,
            writable: false,
            memory_files: true,
            passive_ports: 49_152..=65_535,
            passive_share: PortShare::ALL,
            passive_address: None,
            backlog: AcceptBacklog::default(),
            socket: SocketOptions::default(),
            limits: Limits::default(),
        }
    }
}

/// A user with a password.
#[derive(Clone, PartialEq, Eq)]
pub struct User {
    /// The name, as in USER.
    pub name: String,
    /// The password's hash as a PHC string (`$argon2id$v=19$m=4096,t=2,p=1$...`), see
    /// [`hash_password`](super::hash_password).
    pub password_hash: String,
}

impl fmt::Debug for User {
    /// Leaves the hash out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "User({:?})", self.name)
    }
}

/// Bounds on what clients may use, in numbers, bytes and time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Sessions at once. Beyond nine tenths of them, one that has not logged in, or else one without a transfer, gives way
    /// for each newcomer, as [`crate::admission`] says. Default: 1,024.
    pub sessions: usize,
    /// Sessions at once from one address (one /64 network of IPv6); for more of them, those that have not logged in give
    /// way. Default: 50.
    pub sessions_per_address: usize,
    /// Wrong passwords after which the session ends. Default: 3.
    pub login_tries: u32,
    /// How late a wrong password is answered; from an address's fourth on twice as late each, up to 16 times. Default:
    /// 1 s.
    pub login_delay: Duration,
    /// Passwords checked at once, each of which takes a processor, and memory ([`MEMORY_KIB`](super::login::MEMORY_KIB)),
    /// for some milliseconds. Default: 2.
    pub password_checks: usize,
    /// Unknown commands before login after which the session ends. Default: 10.
    pub unknown_commands: u32,
    /// Silence on the control connection after which a session without a transfer ends. Default: 300 s.
    pub idle: Duration,
    /// Time without progress after which a transfer ends. Default: 60 s.
    pub data_idle: Duration,
    /// Time in which the data connection must come about. Default: 30 s.
    pub data_open: Duration,
    /// Longest command line without a path, in bytes. Default: 4,096.
    pub line_len: usize,
    /// Longest command line with a path, in bytes. Default: 8,192.
    pub path_line_len: usize,
    /// Commands kept while another one runs; more wait in the receive buffer. Default: 32.
    pub queued_commands: usize,
    /// Bytes gathered before an upload writes them. Default: 256 KiB.
    pub write_chunk_len: usize,
    /// Writes of one upload under way at once. Default: 4, which with the chunk length bounds its memory to
    /// 1.25 MiB.
    pub writes_under_way: usize,
    /// Directory entries that are sorted by name; a longer directory is listed as it comes. Default: 4,096.
    pub sorted_entries: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            sessions: 1_024,
            sessions_per_address: 50,
            login_tries: 3,
            login_delay: Duration::from_secs(1),
            password_checks: 2,
            unknown_commands: 10,
            idle: Duration::from_secs(300),
            data_idle: Duration::from_secs(60),
            data_open: Duration::from_secs(30),
            line_len: 4_096,
            path_line_len: 8_192,
            queued_commands: 32,
            write_chunk_len: 256 << 10,
            writes_under_way: 4,
            sorted_entries: 4_096,
        }
    }
}

/// What is wrong with a [`Config`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConfigError {
    /// There is no address to listen on.
    NoListener,
    /// The range of passive ports is empty or has ports below 1,024.
    PassivePorts(RangeInclusive<u16>),
    /// None of the passive ports is this server's.
    NoPassivePort(RangeInclusive<u16>, PortShare),
    /// A user's name is empty, one of the anonymous ones, or has a control character.
    UserName(String),
    /// A user's hash is not one that can be checked: not a PHC string of argon2, or beyond
    /// [`MAX_HASH_MEMORY_KIB`](super::login::MAX_HASH_MEMORY_KIB).
    PasswordHash(String),
    /// A limit is zero that must not be (the sessions, the lengths, the waiting commands, the writes, the deadlines).
    ZeroLimit(&'static str),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::NoListener => f.write_str("no address to listen on"),
            ConfigError::NoPassivePort(ports, PortShare { index, servers }) => write!(
                f,
                "passive ports {}-{}: none of them is number {index} modulo {servers}, and each of \
                 {servers} servers needs one",
                ports.start(),
                ports.end()
            ),
            ConfigError::PassivePorts(ports) => {
                write!(f, "passive ports {}-{}: give a range within 1024-65535", ports.start(), ports.end())
            }
            ConfigError::UserName(name) => write!(f, "{name:?} cannot be the name of a user"),
            ConfigError::PasswordHash(name) => {
                write!(f, "the password hash of user {name:?} is not an argon2 PHC string within the limits")
            }
            ConfigError::ZeroLimit(name) => write!(f, "the limit {name} must not be zero"),
        }
    }
}

impl core::error::Error for ConfigError {}

/// Whether this is a name for those without a password (RFC 1635).
pub(super) fn is_anonymous(name: &str) -> bool {
    name.eq_ignore_ascii_case("anonymous") || name.eq_ignore_ascii_case("ftp")
}

impl Config {
    /// Whether a server can run with these settings.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if self.listen.is_empty() {
            return Err(ConfigError::NoListener);
        }
        if self.passive_ports.is_empty() || *self.passive_ports.start() < 1_024 {
            return Err(ConfigError::PassivePorts(self.passive_ports.clone()));
        }
        if self.passive_share.of(&self.passive_ports).is_none() {
            return Err(ConfigError::NoPassivePort(self.passive_ports.clone(), self.passive_share));
        }
        for user in &self.users {
            if user.name.is_empty() || is_anonymous(&user.name) || user.name.chars().any(char::is_control) {
                return Err(ConfigError::UserName(user.name.clone()));
            }
            if !login::is_valid_hash(&user.password_hash) {
                return Err(ConfigError::PasswordHash(user.name.clone()));
            }
        }
        let limits = &self.limits;
        for (name, zero) in [
            ("sessions", limits.sessions == 0),
            ("sessions_per_address", limits.sessions_per_address == 0),
            ("login_tries", limits.login_tries == 0),
            ("password_checks", limits.password_checks == 0),
            ("idle", limits.idle.is_zero()),
            ("data_idle", limits.data_idle.is_zero()),
            ("data_open", limits.data_open.is_zero()),
            ("line_len", limits.line_len == 0),
            ("path_line_len", limits.path_line_len == 0),
            ("queued_commands", limits.queued_commands == 0),
            ("write_chunk_len", limits.write_chunk_len == 0),
            ("writes_under_way", limits.writes_under_way == 0),
        ] {
            if zero {
                return Err(ConfigError::ZeroLimit(name));
            }
        }
        Ok(())
    }

    /// The user of this name.
    pub(super) fn user(&self, name: &str) -> Option<&User> {
        self.users.iter().find(|user| user.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn check(change: impl FnOnce(&mut Config), expected: Result<(), &str>) {
        let mut config = Config::default();
        change(&mut config);
        assert_eq!(config.validate().map_err(|e| e.to_string()), expected.map_err(String::from));
    }

    fn user(name: &str, hash: &str) -> User {
        User { name: name.into(), password_hash: hash.into() }
    }

    #[test]
    fn bad_settings_are_named() {
        check(|_| {}, Ok(()));
        check(|c| c.listen.clear(), Err("no address to listen on"));
        check(|c| c.passive_ports = 80..=90, Err("passive ports 80-90: give a range within 1024-65535"));
        #[expect(clippy::reversed_empty_ranges)]
        check(
            |c| c.passive_ports = 5000..=4000,
            Err("passive ports 5000-4000: give a range within 1024-65535"),
        );
        check(
            |c| {
                c.passive_ports = 5000..=5001;
                c.passive_share = PortShare { index: 2, servers: 4 };
            },
            Err(
                "passive ports 5000-5001: none of them is number 2 modulo 4, and each of 4 servers needs one",
            ),
        );
        let hash = login::hash_password("x", b"saltsaltsalt").unwrap();
        check(|c| c.users.push(user("anna", &hash)), Ok(()));
        check(|c| c.users.push(user("FTP", &hash)), Err("\"FTP\" cannot be the name of a user"));
        check(|c| c.users.push(user("a\n", &hash)), Err("\"a\\n\" cannot be the name of a user"));
        check(
            |c| c.users.push(user("anna", "x")),
            Err("the password hash of user \"anna\" is not an argon2 PHC string within the limits"),
        );
        check(|c| c.limits.writes_under_way = 0, Err("the limit writes_under_way must not be zero"));
    }

    #[test]
    fn a_hash_is_not_logged() {
        assert_eq!(alloc::format!("{:?}", user("anna", "secret")), "User(\"anna\")");
    }
}
