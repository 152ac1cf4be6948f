//! Settings as they take effect: flags over configuration file over defaults, checked against each other.

pub mod forms;
mod limits;
pub mod secrets;
mod servers;

pub use limits::LimitSettings;
pub use servers::{FtpOptions, HttpOptions, Iperf3Options, ServerSettings};

use crate::args::{LogFormat, Serve, ServeOptions, TcpOptions};
use crate::status::address::StatusAddress;
use crate::values::{AddressChoice, ByteSize, DeviceChoice, FtpUser, Span, Station};
use linerate_nic::Capabilities;
use linerate_stack::Cidr;
use linerate_transport::{BufferSize, DelayedAck, FastOpen, KeepAlive, SocketOptions};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Least memory that the stack is given, in bytes: two super-frames each way and a few connections.
pub const MIN_MEMORY: u64 = 4 << 20;
/// Default memory in bytes.
pub const DEFAULT_MEMORY: u64 = 64 << 20;

/// Addresses when none is named: that of the source application note, and one of the same shape in IPv6.
const DEFAULT_ADDRESSES: [&str; 2] = ["192.168.1.4/24", "fd00:6c72::4/64"];
/// Longest time that a thread goes on asking: a sleep is noise beside more.
const BUSY_POLL_MAX: Duration = Duration::from_millis(10);

/// Everything `serve` needs to know.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Directory to serve; `None` for the demo.
    pub dir: Option<PathBuf>,
    /// The device asked for; `None` to take the best that can be had.
    pub device: Option<DeviceChoice>,
    /// Addresses of the stack.
    pub addresses: Vec<Cidr>,
    /// Whether these are the defaults, which may give way.
    pub default_addresses: bool,
    /// Whether to ask a DHCP server.
    pub dhcp: bool,
    /// Whether to form addresses from router advertisements.
    pub slaac: bool,
    /// Gateways.
    pub gateways: Vec<IpAddr>,
    /// MTU if given.
    pub mtu: Option<u16>,
    /// Ethernet address if given.
    pub mac: Option<Station>,
    /// The VLAN of all frames, if any.
    pub vlan: Option<u16>,
    /// Queues if given.
    pub queues: Option<u16>,
    /// How long a queue's thread asks on before it sleeps.
    pub busy_poll: Duration,
    /// HTTP port if given; 0 for none.
    pub http_port: Option<u16>,
    /// FTP port if given; 0 for none.
    pub ftp_port: Option<u16>,
    /// iperf3 port; 0 for none.
    pub iperf3_port: u16,
    /// FTP users.
    pub ftp_users: Vec<FtpUser>,
    /// Whether anonymous FTP users may read.
    pub ftp_anonymous: bool,
    /// Ports for passive FTP data connections, if not the dynamic ones.
    pub ftp_passive_ports: Option<RangeInclusive<u16>>,
    /// The address to tell FTP clients, if not the one that they connected to.
    pub ftp_passive_address: Option<Ipv4Addr>,
    /// Whether FTP users may change files.
    pub writable: bool,
    /// The user to become, if named.
    pub user: Option<String>,
    /// Offloads that may be used.
    pub offload: Capabilities,
    /// Memory in bytes.
    pub memory: u64,
    /// Interval of the statistics line.
    pub stats: Option<Duration>,
    /// Where the status is served; `None` for nowhere.
    pub status: Option<StatusAddress>,
    /// Form of the log.
    pub log_format: LogFormat,
    /// Settings of every TCP socket.
    pub socket: SocketOptions,
    /// TCP Fast Open of the HTTP listeners. FTP and iperf3 do without: a command that comes twice may do harm.
    pub fast_open: Option<FastOpen>,
    /// Most connections.
    pub limits: LimitSettings,
    /// What else there is to set of the servers.
    pub servers: ServerSettings,
}

/// What is wrong with the settings, and where it was said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SettingsError {
    /// The configuration file cannot be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        why: String,
    },
    /// The configuration file does not parse; `why` shows line, column and what was expected.
    Malformed {
        /// The file.
        path: PathBuf,
        /// The parser's message with the place.
        why: String,
    },
    /// A value that does not fit.
    Value {
        /// The flag or key.
        name: &'static str,
        /// The configuration file, if it was said there.
        file: Option<PathBuf>,
        /// What it was given.
        value: String,
        /// What is allowed.
        expected: String,
    },
    /// Settings that do not go together.
    Together(String),
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingsError::Unreadable { path, why } => {
                write!(f, "cannot read the configuration file {}: {why}", path.display())
            }
            SettingsError::Malformed { path, why } => {
                write!(f, "in the configuration file {}:\n{why}", path.display())
            }
            SettingsError::Value { name, file: Some(path), value, expected } => {
                let path = path.display();
                write!(
                    f,
                    "invalid value '{value}' for '{name}' in the configuration file {path}: expected {expected}"
                )
            }
            SettingsError::Value { name: "dir", file: None, value, expected } => {
                write!(f, "invalid value '{value}' for DIR: expected {expected}")
            }
            SettingsError::Value { name, file: None, value, expected } => {
                write!(f, "invalid value '{value}' for '--{name}': expected {expected}")
            }
            SettingsError::Together(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for SettingsError {}

impl SettingsError {
    /// The same with the configuration file, where no flag said the value.
    pub fn located(self, args: &Serve) -> SettingsError {
        match (self, &args.config) {
            (SettingsError::Value { name, value, expected, .. }, Some(path)) if !args.options.has(name) => {
                SettingsError::Value { name, file: Some(path.clone()), value, expected }
            }
            (error, _) => error,
        }
    }
}

/// A value that does not fit, and what would.
pub fn bad(name: &'static str, value: impl fmt::Display, expected: impl Into<String>) -> SettingsError {
    SettingsError::Value { name, file: None, value: value.to_string(), expected: expected.into() }
}

impl Settings {
    /// Settings from the command line and the configuration file it names (read now).
    pub fn load(args: &Serve) -> Result<Settings, SettingsError> {
        let file = match &args.config {
            Some(path) => read(path)?,
            None => ServeOptions::default(),
        };
        Settings::resolve(args.options.clone().over(file)).map_err(|error| error.located(args))
    }

    /// Whether the directory can be served, as far as it can be told before it is opened.
    pub fn check_dir(&self) -> Result<(), SettingsError> {
        let Some(dir) = &self.dir else { return Ok(()) };
        match std::fs::metadata(dir) {
            Ok(meta) if meta.is_dir() => Ok(()),
            Ok(_) => Err(bad("dir", dir.display(), "a directory; this is a file")),
            Err(error) => Err(bad("dir", dir.display(), format!("a directory ({error})"))),
        }
    }

    /// The directory has a name `memory`: has that come before memory files, unless those are asked for; returns what to
    /// tell of that.
    pub fn prefer_files(&mut self) -> Option<String> {
        self.servers.drop_memory_files().then(|| {
            let dir = self.dir.as_ref().map_or("the directory".to_owned(), |dir| dir.display().to_string());
            format!("{dir} has a name \"memory\" itself, so memory files (/memory/SIZE) are only where memory-files = true asks for them")
        })
    }

    /// What was asked for and has no effect, to be told at the start. `kernel`: the host's sockets serve.
    pub fn ineffective(&self, kernel: bool) -> Vec<String> {
        let mut told = Vec::new();
        let mut tell = |applies: bool, text: &str| {
            if applies {
                told.push(text.to_owned());
            }
        };
        let ftp = self.ftp_port != Some(0);
        let writes = self.writable && ftp;
        tell(
            writes && self.ftp_users.is_empty(),
            "writable has no effect without a user who may write (ftp-user)",
        );
        tell(self.writable && !ftp, "writable has no effect while the FTP server is off");
        tell(writes && self.dir.is_none(), "writable has no effect on the built-in demo directory");
        tell(!self.ftp_users.is_empty() && !ftp, "ftp-user has no effect while the FTP server is off");
        if kernel {
            tell(
                self.device.is_none() && !self.default_addresses,
                "address has no effect on the host's sockets",
            );
            tell(self.mtu.is_some(), "mtu has no effect on the host's sockets");
            tell(!self.gateways.is_empty(), "gateway has no effect on the host's sockets");
            tell(self.offload != Capabilities::ALL, "offload has no effect on the host's sockets");
            tell(self.fast_open.is_some(), "tcp.fast-open has no effect on the host's sockets");
        }
        told
    }

    /// Names of settings that differ from `running` and cannot change while running.
    pub fn fixed_differences(&self, running: &Settings) -> Vec<&'static str> {
        let pairs = [
            ("dir", self.dir != running.dir),
            ("device", self.device != running.device),
            (
                "address",
                self.addresses != running.addresses
                    || self.dhcp != running.dhcp
                    || self.slaac != running.slaac,
            ),
            ("gateway", self.gateways != running.gateways),
            ("mtu", self.mtu != running.mtu),
            ("mac", self.mac != running.mac),
            ("vlan", self.vlan != running.vlan),
            ("queues", self.queues != running.queues),
            ("http-port", self.http_port != running.http_port),
            ("ftp-port", self.ftp_port != running.ftp_port),
            ("iperf3-port", self.iperf3_port != running.iperf3_port),
            ("iperf3.ports", self.servers.iperf3.ports() != running.servers.iperf3.ports()),
            ("user", self.user != running.user),
            ("status", self.status != running.status),
            ("memory", self.memory != running.memory),
            ("log-format", self.log_format != running.log_format),
            ("tcp.fast-open", self.fast_open != running.fast_open),
            ("limits.connections", self.limits.connections != running.limits.connections),
        ];
        pairs.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
    }

    fn resolve(options: ServeOptions) -> Result<Settings, SettingsError> {
        let memory = options.memory.map_or(DEFAULT_MEMORY, |size| size.0);
        if !(MIN_MEMORY..=1 << 40).contains(&memory) {
            return Err(bad("memory", ByteSize(memory), "4MiB to 1TiB"));
        }
        check_queues(options.queues, memory)?;
        let kernel = options.device == Some(DeviceChoice::Kernel);
        if kernel {
            check_kernel(&options)?;
        }
        if let Some(mtu) = options.mtu.filter(|mtu| !(1_280..=9_216).contains(mtu)) {
            return Err(bad("mtu", mtu, "1280 to 9216 bytes"));
        }
        check_mac(&options)?;
        check_vlan(&options)?;
        let (addresses, dhcp, slaac) = addresses(&options, kernel)?;
        check_gateways(&options.gateway, &addresses)?;
        check_ports(&options)?;
        check_ftp_users(&options.ftp_user)?;
        if options.ftp_anonymous == Some(false) && options.ftp_user.is_empty() && options.ftp_port != Some(0)
        {
            let expected = "true, or a user named by --ftp-user: nobody could log in";
            return Err(bad("ftp-anonymous", "false", expected));
        }
        if let Some(span) = options.stats.filter(|span| span.0 < Duration::from_millis(100)) {
            return Err(bad("stats", span, "100ms or more"));
        }
        if let Some(span) = options.busy_poll.filter(|span| span.0 > BUSY_POLL_MAX) {
            return Err(bad("busy-poll", span, "0s to 10ms"));
        }
        let status = status(&options)?;
        Ok(Settings {
            dir: options.dir,
            default_addresses: options.address.is_empty(),
            device: options.device,
            addresses,
            dhcp,
            slaac,
            gateways: options.gateway,
            mtu: options.mtu,
            mac: options.mac,
            vlan: options.vlan,
            queues: options.queues,
            busy_poll: options.busy_poll.map_or(Duration::ZERO, |span| span.0),
            http_port: options.http_port,
            ftp_port: options.ftp_port,
            iperf3_port: options.iperf3_port.unwrap_or(5201),
            // What users with a password put there is not for everybody, unless that is said.
            ftp_anonymous: options.ftp_anonymous.unwrap_or(options.ftp_user.is_empty()),
            ftp_passive_ports: options.ftp_passive_ports.map(|ports| ports.0),
            ftp_passive_address: options.ftp_passive_address,
            ftp_users: options.ftp_user,
            writable: options.writable,
            user: options.user,
            offload: options.offload.map_or(Capabilities::ALL, |offload| offload.0),
            memory,
            stats: options.stats.map(|span| span.0),
            status,
            log_format: options.log_format.unwrap_or(LogFormat::Text),
            socket: socket_options(&options.tcp)?,
            fast_open: fast_open(&options.tcp),
            limits: LimitSettings::resolve(&options.limits)?,
            servers: ServerSettings::resolve(options.http, options.ftp, options.iperf3)?,
        })
    }
}

fn read(path: &Path) -> Result<ServeOptions, SettingsError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| SettingsError::Unreadable { path: path.to_owned(), why: error.to_string() })?;
    toml::from_str(&text).map_err(|error| SettingsError::Malformed {
        path: path.to_owned(),
        why: secrets::describe(&text, &error),
    })
}

fn addresses(options: &ServeOptions, kernel: bool) -> Result<(Vec<Cidr>, bool, bool), SettingsError> {
    let mut addresses = Vec::new();
    let (mut dhcp, mut slaac) = (false, false);
    for choice in &options.address {
        match choice {
            AddressChoice::Static(cidr) => addresses.push(*cidr),
            AddressChoice::Dhcp => dhcp = true,
            AddressChoice::Slaac => slaac = true,
        }
    }
    let twice =
        |(at, cidr): &(usize, &Cidr)| addresses[..*at].iter().any(|other| other.address() == cidr.address());
    if let Some((_, cidr)) = addresses.iter().enumerate().find(twice) {
        return Err(bad("address", cidr, "each address once"));
    }
    if kernel {
        if dhcp || slaac {
            return Err(bad("address", "dhcp or slaac", "an address of this host, with --device kernel"));
        }
        return Ok((addresses, false, false));
    }
    if options.address.is_empty() {
        addresses.extend(DEFAULT_ADDRESSES.iter().filter_map(|text| text.parse::<Cidr>().ok()));
    }
    if let Some(cidr) = addresses.iter().find(|cidr| !cidr.is_of_one_host()) {
        return Err(bad("address", cidr, "an address that a host on the network can reach"));
    }
    Ok((addresses, dhcp, slaac))
}

/// Tagged frames need somebody on the other side who tags too.
fn check_queues(queues: Option<u16>, memory: u64) -> Result<(), SettingsError> {
    let Some(queues) = queues else { return Ok(()) };
    let most = (memory / MIN_MEMORY).min(64);
    if (1..=most).contains(&u64::from(queues)) {
        return Ok(());
    }
    let per_queue = ByteSize(MIN_MEMORY);
    let expected =
        format!("1 to {most}: each queue needs {per_queue} of the memory, which is {}", ByteSize(memory));
    Err(bad("queues", queues, expected))
}

/// The host's sockets and an interface in logic have addresses of their own.
fn check_mac(options: &ServeOptions) -> Result<(), SettingsError> {
    match (options.mac, &options.device) {
        (None, _)
        | (Some(_), None | Some(DeviceChoice::Tap(_) | DeviceChoice::Packet(_) | DeviceChoice::Xdp(_))) => {
            Ok(())
        }
        (Some(mac), Some(_)) => Err(bad(
            "mac",
            mac,
            "--device tap, packet:INTERFACE or xdp:INTERFACE beside it: others have their own",
        )),
    }
}

fn check_vlan(options: &ServeOptions) -> Result<(), SettingsError> {
    let Some(id) = options.vlan else { return Ok(()) };
    let expected = match options.device {
        Some(
            DeviceChoice::Packet(_)
            | DeviceChoice::Xdp(_)
            | DeviceChoice::Tap(_)
            | DeviceChoice::Uio { .. }
            | DeviceChoice::Rtl(_),
        ) => {
            if (1..=4094).contains(&id) {
                return Ok(());
            }
            "1 to 4094"
        }
        _ => {
            "a device of its own beside it (--device packet:INTERFACE, xdp:INTERFACE, tap, rtl or uio:NAME): nobody else \
             would tag"
        }
    };
    Err(bad("vlan", id, expected))
}

/// What the host's sockets cannot do at all, and was asked for together with them.
fn check_kernel(options: &ServeOptions) -> Result<(), SettingsError> {
    let own = "a device with an address of its own (--device tap or packet:INTERFACE)";
    if let Some(mtu) = options.mtu {
        return Err(bad("mtu", mtu, format!("{own}; the host's interfaces have their own")));
    }
    match options.gateway.first() {
        Some(gateway) => Err(bad("gateway", gateway, format!("{own}; the host has its own routes"))),
        None => Ok(()),
    }
}

fn check_gateways(gateways: &[IpAddr], addresses: &[Cidr]) -> Result<(), SettingsError> {
    for (at, gateway) in gateways.iter().enumerate() {
        if gateways[..at].iter().any(|other| other.is_ipv4() == gateway.is_ipv4()) {
            return Err(bad("gateway", gateway, "one gateway per address family"));
        }
        if let Some(own) = addresses.iter().find(|cidr| cidr.address() == *gateway) {
            return Err(bad("gateway", gateway, format!("the address of another host; ours is {own}")));
        }
        let link_local = matches!(gateway, IpAddr::V6(ip) if ip.is_unicast_link_local());
        if !link_local && !addresses.iter().any(|cidr| cidr.contains(*gateway)) {
            let nets: Vec<String> = addresses.iter().map(Cidr::to_string).collect();
            let expected = match nets.is_empty() {
                true => "none: with dhcp and slaac alone, the network names the gateway".to_owned(),
                false => format!("an address in the network of {}", nets.join(" or ")),
            };
            return Err(bad("gateway", gateway, expected));
        }
    }
    Ok(())
}

fn check_ports(options: &ServeOptions) -> Result<(), SettingsError> {
    if [options.http_port, options.ftp_port, options.iperf3_port].iter().all(|port| *port == Some(0)) {
        let all = "http-port, ftp-port and iperf3-port are all 0: there is nothing to serve";
        return Err(SettingsError::Together(all.to_owned()));
    }
    Ok(())
}

/// A name has one password: which of two would hold is not for us to guess.
fn check_ftp_users(users: &[FtpUser]) -> Result<(), SettingsError> {
    let twice = |at: usize, user: &FtpUser| users[..at].iter().any(|other| other.name == user.name);
    match users.iter().enumerate().find(|(at, user)| twice(*at, user)) {
        Some((_, user)) => Err(bad("ftp-user", &user.name, "each name once; this one is there twice")),
        None => Ok(()),
    }
}

/// Who is connected is told to nobody on the Internet by mistake.
fn status(options: &ServeOptions) -> Result<Option<StatusAddress>, SettingsError> {
    let Some(address) = options.status.filter(|address| address.0.port() != 0) else { return Ok(None) };
    if !address.is_private() && !options.status_public {
        let expected = "an address of this host alone or of a private network; with --status-public any";
        return Err(bad("status", address, expected));
    }
    Ok(Some(address))
}

fn fast_open(tcp: &TcpOptions) -> Option<FastOpen> {
    tcp.fast_open.filter(|&max_pending| max_pending > 0).map(|max_pending| FastOpen { max_pending })
}

fn socket_options(tcp: &TcpOptions) -> Result<SocketOptions, SettingsError> {
    let mut socket = SocketOptions::default();
    let fixed = |name, size: Option<ByteSize>| match size {
        Some(size) if (2048..=1 << 30).contains(&size.0) => Ok(Some(BufferSize::Fixed(size.0 as usize))),
        Some(size) => Err(bad(name, size, "2KiB to 1GiB")),
        None => Ok(None),
    };
    if let Some(size) = fixed("tcp.send-buffer", tcp.send_buffer)? {
        socket.send_buffer = size;
    }
    if let Some(size) = fixed("tcp.receive-buffer", tcp.receive_buffer)? {
        socket.receive_buffer = size;
    }
    if let Some(mss) = tcp.mss {
        if !(88..=9176).contains(&mss) {
            return Err(bad("tcp.mss", mss, "88 to 9176 bytes"));
        }
        socket.mss = Some(mss);
    }
    socket.congestion = tcp.congestion.map_or(socket.congestion, |name| name.0);
    socket.ecn = tcp.ecn.map_or(socket.ecn, |policy| policy.0);
    socket.pacing = tcp.pacing.map_or(socket.pacing, |policy| policy.0);
    socket.no_delay = tcp.no_delay.unwrap_or(socket.no_delay);
    let default = DelayedAck::default();
    if tcp.delayed_ack_segments == Some(0) {
        return Err(bad("tcp.delayed-ack-segments", 0, "1 to 255 segments"));
    }
    socket.delayed_ack = DelayedAck {
        segments: tcp.delayed_ack_segments.unwrap_or(default.segments),
        timeout: tcp.delayed_ack_timeout.map_or(default.timeout, |span| span.0),
    };
    // RFC 1122 section 4.2.3.2: a delayed acknowledgement must come within 0.5 s.
    if socket.delayed_ack.timeout > Duration::from_millis(500) {
        return Err(bad("tcp.delayed-ack-timeout", Span(socket.delayed_ack.timeout), "500ms at most"));
    }
    if let Some(idle) = tcp.keep_alive {
        socket.keep_alive = (!idle.0.is_zero()).then_some(KeepAlive {
            idle: idle.0,
            interval: Duration::from_secs(10),
            probes: 6,
        });
    }
    if let Some(timeout) = tcp.user_timeout {
        if timeout.0 < Duration::from_secs(1) {
            return Err(bad("tcp.user-timeout", timeout, "1s or more"));
        }
        socket.user_timeout = timeout.0;
    }
    Ok(socket)
}

/// The loopback address that kernel sockets bind when none is named.
pub const KERNEL_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

#[cfg(test)]
mod tests;
