//! The three servers, and whose event is whose.

use super::common::Common;
use super::shares::Shares;
use crate::settings::{Settings, SettingsError, bad};
use crate::status::catalogue::{FtpNow, Iperf3Now, Tally};
use linerate_linux::cpu;
use linerate_linux::files::AnyFiles;
use linerate_serve::ftp::PortShare;
use linerate_serve::iperf3::CpuTimes;
use linerate_serve::{Change, Changes, Context, Group, Service, StartError, ftp, http, iperf3};
use linerate_stack::Seat;
use linerate_transport::{AcceptBacklog, Event, FileDone, ListenAddr, ListenOptions, Owner};
use linerate_wire::units::Instant;
use std::net::IpAddr;
use std::ops::RangeInclusive;

const HTTP: Owner = Owner(1);
const FTP: Owner = Owner(2);
const IPERF3: Owner = Owner(3);

/// What the owner of a socket is called.
pub fn name(owner: Owner) -> &'static str {
    match owner {
        HTTP => "http",
        FTP => "ftp",
        IPERF3 => "iperf3",
        _ => "other",
    }
}

/// Ports that the servers listen on; `None` for a server that is off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ports {
    /// HTTP.
    pub http: Option<u16>,
    /// FTP.
    pub ftp: Option<u16>,
    /// iperf3.
    pub iperf3: Option<u16>,
    /// Whether they are the host's.
    pub kernel: bool,
}

impl Ports {
    /// The ports of the settings, with the defaults of an own address or of the host's.
    pub fn new(settings: &Settings, kernel: bool) -> Ports {
        let port = |given: Option<u16>, own: u16, host: u16| match given {
            Some(0) => None,
            Some(port) => Some(port),
            None => Some(if kernel { host } else { own }),
        };
        Ports {
            http: port(settings.http_port, 80, 8080),
            ftp: port(settings.ftp_port, 21, 2121),
            iperf3: port(Some(settings.iperf3_port), 5201, 5201),
            kernel,
        }
    }
}

/// Where the servers of a thread sit, and what they share with those of other threads.
#[derive(Clone, Debug)]
pub struct Place {
    /// Which queue it is.
    pub seat: Seat,
    /// What they share; `None` where there is one.
    pub common: Option<Common>,
}

#[cfg(test)]
impl Place {
    /// All servers in one thread.
    pub const ALONE: Place = Place { seat: Seat::ALONE, common: None };
}

/// On which queues a server is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Home {
    All,
    Only(u16),
}

impl Home {
    fn has(self, seat: Seat) -> bool {
        self == Home::All || self == Home::Only(seat.index)
    }
}

/// FTP is on all queues, each with passive ports of its own; where it cannot, on one. The host's sockets need no such ports: any
/// of them comes in where it was opened.
fn ftp_home(settings: &Settings, port: u16, kernel: bool, seats: u16) -> Home {
    if kernel {
        return Home::All;
    }
    let passive = passive_ports(settings);
    let everywhere = (0..seats).all(|index| PortShare { index, servers: seats }.of(&passive).is_some());
    if everywhere { Home::All } else { Home::Only(port % seats.max(1)) }
}

fn passive_ports(settings: &Settings) -> RangeInclusive<u16> {
    settings.ftp_passive_ports.clone().unwrap_or_else(|| ftp::Config::default().passive_ports)
}

impl Ports {
    /// Ports that servers on all of so many queues listen on.
    pub fn shared(&self, settings: &Settings, kernel: bool, seats: u16) -> Vec<u16> {
        let ftp = self.ftp.filter(|port| ftp_home(settings, *port, kernel, seats) == Home::All);
        [self.http, ftp].into_iter().flatten().collect()
    }

    /// The ports of each server that is on, by the name of its setting.
    fn servers(&self, settings: &Settings) -> [(&'static str, Option<RangeInclusive<u16>>); 3] {
        let one = |port: u16| port..=port;
        let more = settings.servers.iperf3.ports() - 1;
        [
            ("http-port", self.http.map(one)),
            ("ftp-port", self.ftp.map(one)),
            ("iperf3-port", self.iperf3.map(|first| first..=first.saturating_add(more))),
        ]
    }

    /// Whether each server has ports of its own, those by default among them.
    pub fn check_servers(&self, settings: &Settings) -> Result<(), SettingsError> {
        let [http, ftp, iperf3] = self.servers(settings);
        for (one, other) in [(&http, &ftp), (&http, &iperf3), (&ftp, &iperf3)] {
            if let ((name, Some(port)), (other, Some(ports))) = (one, other)
                && ports.contains(port.start())
            {
                let port = port.start();
                let both = format!("{name} and {other} are both {port}: each server needs a port of its own");
                return Err(SettingsError::Together(both));
            }
        }
        Ok(())
    }

    /// Whether the status, which is always on the host's sockets, has a port of its own there.
    pub fn check_status(&self, settings: &Settings, addresses: &[IpAddr]) -> Result<(), SettingsError> {
        let Some(status) = settings.status.filter(|_| self.kernel) else { return Ok(()) };
        let ip = status.0.ip();
        let meets = |own: &IpAddr| {
            let any = (own.is_unspecified() || ip.is_unspecified()) && own.is_ipv4() == ip.is_ipv4();
            *own == ip || any
        };
        let has = |ports: &Option<RangeInclusive<u16>>| {
            ports.as_ref().is_some_and(|ports| ports.contains(&status.0.port()))
        };
        match self.servers(settings).iter().find(|(_, ports)| has(ports)) {
            Some((name, _)) if addresses.iter().any(meets) => {
                Err(bad("status", status, format!("a port other than that of {name}")))
            }
            _ => Ok(()),
        }
    }

    /// Those that listen on this queue. The streams of an iperf3 test need their test, so that iperf3 is on one.
    fn of(self, settings: &Settings, seat: Seat) -> Ports {
        let ftp = self.ftp.filter(|port| ftp_home(settings, *port, self.kernel, seat.seats).has(seat));
        let iperf3 = self.iperf3.filter(|port| iperf3_ports(settings, *port, seat).next().is_some());
        Ports { ftp, iperf3, ..self }
    }
}

/// The ports of the iperf3 server on this queue: several clients, each on a port of its own, keep several queues busy.
fn iperf3_ports(settings: &Settings, first: u16, seat: Seat) -> impl Iterator<Item = u16> {
    let last = first.saturating_add(settings.servers.iperf3.ports() - 1);
    (first..=last).filter(move |port| Home::Only(port % seat.seats.max(1)).has(seat))
}

/// The servers that are on.
pub struct Services {
    http: Option<http::Server>,
    ftp: Option<ftp::Server>,
    iperf3: Option<iperf3::Server>,
    addresses: Vec<Option<IpAddr>>,
    ports: Ports,
    /// Connections that the servers of all queues may hold.
    table: usize,
    seat: Seat,
    /// Where FTP is, as the settings of the start would have it.
    ftp_home: Home,
    /// What was changed in the files, for other threads.
    changes: Changes,
}

impl Services {
    /// The servers of this place, listening on these addresses (`None` for all) once started, with `table` connections among
    /// those of all places.
    pub fn new(
        settings: &Settings,
        addresses: Vec<Option<IpAddr>>,
        ports: Ports,
        table: usize,
        users: Vec<ftp::User>,
        place: &Place,
    ) -> Result<Services, ftp::ConfigError> {
        let seat = place.seat;
        let mut services = Services {
            http: None,
            ftp: None,
            iperf3: None,
            addresses,
            ports,
            table,
            seat,
            ftp_home: ports.ftp.map_or(Home::All, |port| ftp_home(settings, port, ports.kernel, seat.seats)),
            changes: Changes::default(),
        };
        // What each may hold goes by all that are on, wherever they are.
        let ports = ports.of(settings, seat);
        services.http = ports.http.map(|port| http::Server::new(HTTP, services.http_config(settings, port)));
        if let Some(port) = ports.ftp {
            services.ftp = Some(ftp::Server::new(FTP, services.ftp_config(settings, port, users))?);
        }
        if let Some(Common { http, ftp, uploads }) = &place.common {
            services.http.iter_mut().for_each(|server| server.share_limits(Box::new(http.clone())));
            services.ftp.iter_mut().for_each(|server| {
                server.share(Box::new(ftp.clone()), Box::new(uploads.clone()));
            });
        }
        services.iperf3 =
            ports.iperf3.map(|port| iperf3::Server::new(services.iperf3_config(settings, port)));
        Ok(services)
    }

    /// Whether FTP can take these settings, on whichever queues it is.
    pub fn check(&self, settings: &Settings, users: Vec<ftp::User>) -> Result<(), ftp::ConfigError> {
        let Some(port) = self.ports.ftp else { return Ok(()) };
        let mut config = self.ftp_config(settings, port, users);
        for index in 0..config.passive_share.servers {
            config.passive_share.index = index;
            config.validate()?;
        }
        Ok(())
    }

    /// Takes new settings without dropping a connection or a request.
    pub fn reload(
        &mut self,
        ctx: &mut Context<'_>,
        settings: &Settings,
        users: Vec<ftp::User>,
    ) -> Result<(), ftp::ReloadError> {
        // The servers stay where they are, wherever these settings would have put them at a start.
        let Ports { http, ftp, iperf3, .. } = self.ports;
        // The one that can refuse goes first, so that a mistake changes nothing.
        if let Some(port) = ftp {
            let config = self.ftp_config(settings, port, users);
            self.ftp.as_mut().map_or(Ok(()), |server| server.reload(ctx, config))?;
        }
        if let Some(port) = http {
            let config = self.http_config(settings, port);
            self.http.iter_mut().for_each(|server| server.reload(config.clone()));
        }
        if let Some(port) = iperf3 {
            let config = self.iperf3_config(settings, port);
            self.iperf3.iter_mut().for_each(|server| server.reload(config.clone()));
        }
        Ok(())
    }

    fn listen(&self, port: u16) -> Vec<ListenAddr> {
        self.addresses.iter().map(|ip| ListenAddr { ip: *ip, port }).collect()
    }

    /// What each server may hold.
    fn shares(&self, settings: &Settings) -> Shares {
        let Ports { http, ftp, iperf3, .. } = self.ports;
        Shares::new(self.table, [http, ftp, iperf3].map(|port| port.is_some()), &settings.limits)
    }

    /// This queue's part of an accept queue.
    fn part(&self, AcceptBacklog(of_all): AcceptBacklog) -> AcceptBacklog {
        AcceptBacklog(of_all.div_ceil(self.seat.seats.max(1)).max(16))
    }

    fn http_config(&self, settings: &Settings, port: u16) -> http::Config {
        let shares = self.shares(settings);
        let mut config = http::Config {
            listen: self.listen(port),
            limits: http::Limits {
                connections: shares.http,
                connections_per_address: shares.http_per_address,
                ..http::Limits::default()
            },
            options: ListenOptions {
                backlog: self.part(shares.http_backlog),
                socket: settings.socket.clone(),
                fast_open: settings.fast_open,
            },
            ..http::Config::default()
        };
        settings.servers.http.apply(&mut config);
        config
    }

    fn ftp_config(&self, settings: &Settings, port: u16, users: Vec<ftp::User>) -> ftp::Config {
        let shares = self.shares(settings);
        let Seat { index, seats } = self.seat;
        // The host sees to it that no two listen on one port; so may who is alone.
        let has_share = !self.ports.kernel && self.ftp_home == Home::All;
        let mut config = ftp::Config {
            listen: self.listen(port),
            backlog: self.part(shares.backlog),
            limits: ftp::Limits {
                sessions: shares.ftp_sessions,
                sessions_per_address: shares.ftp_per_address,
                ..ftp::Limits::default()
            },
            users,
            anonymous: settings.ftp_anonymous,
            writable: settings.writable,
            passive_ports: passive_ports(settings),
            passive_share: if has_share { PortShare { index, servers: seats } } else { PortShare::ALL },
            passive_address: settings.ftp_passive_address,
            socket: settings.socket.clone(),
            ..ftp::Config::default()
        };
        settings.servers.ftp.apply(&mut config);
        config
    }

    fn iperf3_config(&self, settings: &Settings, port: u16) -> iperf3::Config {
        let shares = self.shares(settings);
        let mut config = iperf3::Config {
            owner: IPERF3,
            backlog: shares.backlog,
            max_connections: shares.iperf3,
            connections_per_address: shares.iperf3_per_address,
            listen: iperf3_ports(settings, port, self.seat).flat_map(|port| self.listen(port)).collect(),
            socket: settings.socket.clone(),
            cpu_times,
            ..iperf3::Config::default()
        };
        settings.servers.iperf3.apply(&mut config);
        config
    }

    /// Calls `f` with the servers as one.
    fn together<R>(&mut self, f: impl FnOnce(&mut Group<'_, '_>) -> R) -> R {
        // In the order of their owners.
        let mut all = [
            self.http.as_mut().map(|server| server as &mut dyn Service),
            self.ftp.as_mut().map(|server| server as &mut dyn Service),
            self.iperf3.as_mut().map(|server| server as &mut dyn Service),
        ];
        if self.seat.is_shared() {
            f(&mut Group::noting(&mut all, &mut self.changes))
        } else {
            f(&mut Group::new(&mut all))
        }
    }

    /// Whether the files have done all that uploads came to.
    pub fn has_saved(&self) -> bool {
        self.ftp.as_ref().is_none_or(Service::is_idle)
    }

    /// Tells of uploads that the files have not done with.
    pub fn tell_unsaved(&mut self, now: Instant) {
        self.ftp.iter_mut().for_each(|server| server.tell_unsaved(now));
    }

    /// What servers and files have counted.
    pub fn tallies(&self, files: &AnyFiles) -> Vec<Tally> {
        let mut tallies = Vec::new();
        if let AnyFiles::Directory(files) = files {
            tallies.push(Tally::of("files", &files.counters()));
        }
        if let Some(http) = &self.http {
            tallies.push(Tally::of("http", &http.counters()).and(&http.gauges()));
        }
        if let Some(ftp) = &self.ftp {
            let now = FtpNow { sessions_now: ftp.sessions() as u64 };
            tallies.push(Tally::of("ftp", ftp.stats()).and(&now));
        }
        if let Some(iperf3) = &self.iperf3 {
            let now = Iperf3Now { tests_now: iperf3.tests() as u64 };
            tallies.push(Tally::of("iperf3", &iperf3.counters()).and(&now));
        }
        tallies
    }
}

/// To the loop they are one service.
impl Service for Services {
    fn start(&mut self, ctx: &mut Context<'_>) -> Result<(), StartError> {
        self.together(|all| all.start(ctx))
    }

    fn handle_event(&mut self, ctx: &mut Context<'_>, event: Event) {
        self.together(|all| all.handle_event(ctx, event));
    }

    fn handle_file(&mut self, ctx: &mut Context<'_>, done: FileDone) {
        self.together(|all| all.handle_file(ctx, done));
    }

    fn handle_timeout(&mut self, ctx: &mut Context<'_>) {
        self.together(|all| all.handle_timeout(ctx));
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let http = self.http.as_ref().and_then(Service::poll_timeout);
        let ftp = self.ftp.as_ref().and_then(Service::poll_timeout);
        let iperf3 = self.iperf3.as_ref().and_then(Service::poll_timeout);
        [http, ftp, iperf3].into_iter().flatten().min()
    }

    fn poll_change(&mut self) -> Option<Change> {
        self.changes.pop()
    }

    fn handle_change(&mut self, change: &Change) {
        self.together(|all| all.handle_change(change));
    }

    fn drain(&mut self, ctx: &mut Context<'_>) {
        self.together(|all| all.drain(ctx));
    }

    fn cut_off(&mut self, ctx: &mut Context<'_>) {
        self.together(|all| all.cut_off(ctx));
    }

    fn is_idle(&self) -> bool {
        self.http.as_ref().is_none_or(Service::is_idle)
            && self.ftp.as_ref().is_none_or(Service::is_idle)
            && self.iperf3.as_ref().is_none_or(Service::is_idle)
    }
}

/// Processor time that this process used so far, in user mode and in the kernel.
pub fn cpu_times() -> CpuTimes {
    let (user_ns, system_ns) = cpu::user_and_system_time_ns().unwrap_or_default();
    CpuTimes { user_ns, system_ns }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser as _;

    fn settings(args: &[&str]) -> Settings {
        let cli = Cli::try_parse_from([&["linerate", "serve"], args].concat()).unwrap();
        let Command::Serve(args) = cli.command else { panic!("the arguments say serve") };
        Settings::load(&args).unwrap()
    }

    /// On which of four queues FTP and iperf3 are.
    fn seats(args: &[&str], kernel: bool) -> (Vec<u16>, Vec<u16>) {
        let settings = settings(args);
        let ports = Ports::new(&settings, kernel);
        let on = |index| ports.of(&settings, Seat { index, seats: 4 });
        let with = |port: fn(Ports) -> Option<u16>| (0..4).filter(|seat| port(on(*seat)).is_some()).collect();
        assert!((0..4).all(|seat| on(seat).http.is_some()), "HTTP is everywhere");
        (with(|ports| ports.ftp), with(|ports| ports.iperf3))
    }

    #[test]
    fn servers_are_on_every_queue_unless_their_ports_are_at_home_on_one() {
        let all = vec![0, 1, 2, 3];
        assert_eq!(seats(&[], false), (all.clone(), vec![1]), "5201 modulo 4");
        assert_eq!(seats(&["--ftp-passive-ports", "5000-5003"], false).0, all);
        assert_eq!(seats(&["--ftp-passive-ports", "5000-5002"], false).0, [1], "21 modulo 4");
        assert_eq!(seats(&["--iperf3-port", "5204", "--ftp-port", "0"], false), (vec![], vec![0]));
        assert_eq!(seats(&["--device", "kernel", "--ftp-passive-ports", "5000-5000"], true).0, all);
        assert_eq!(seats(&["--device", "kernel", "--ftp-port", "21"], true).0, all);
    }

    #[test]
    fn new_settings_are_refused_where_a_queue_could_not_take_them() {
        let on = |index, args: &[&str]| {
            let (settings, place) = (settings(args), Place { seat: Seat { index, seats: 4 }, common: None });
            let ports = Ports::new(&settings, false);
            Services::new(&settings, vec![None], ports, 512, Vec::new(), &place).unwrap()
        };
        let (few, enough) = (["--ftp-passive-ports", "5000-5002"], ["--ftp-passive-ports", "5000-5003"]);
        let broken = || vec![ftp::User { name: "a".into(), password_hash: "$argon2".into() }];
        for index in 0..4 {
            let everywhere = on(index, &enough);
            assert!(everywhere.ftp.is_some());
            assert!(matches!(
                everywhere.check(&settings(&few), Vec::new()),
                Err(ftp::ConfigError::NoPassivePort(..))
            ));
            assert_eq!(everywhere.check(&settings(&[]), Vec::new()), Ok(()));
            // It stays on one, with all ports, also where other settings would put it on all.
            let elsewhere = on(index, &few);
            assert_eq!(elsewhere.ftp.is_some(), index == 1);
            let config = elsewhere.ftp_config(&settings(&enough), 21, Vec::new());
            assert_eq!(config.passive_share, PortShare::ALL);
            assert_eq!(elsewhere.check(&settings(&few), Vec::new()), Ok(()));
            for services in [everywhere, elsewhere] {
                let found = services.check(&settings(&enough), broken());
                assert_eq!(found, Err(ftp::ConfigError::PasswordHash("a".into())), "queue {index}");
            }
        }
        let off = on(0, &["--ftp-port", "0"]);
        assert_eq!(off.check(&settings(&few), broken()), Ok(()), "nobody needs it");
    }

    #[test]
    fn shared_ports_are_those_of_servers_on_every_queue() {
        let shared = |args: &[&str], kernel| {
            let settings = settings(args);
            Ports::new(&settings, kernel).shared(&settings, kernel, 4)
        };
        assert_eq!(shared(&[], false), [80, 21]);
        assert_eq!(shared(&["--ftp-passive-ports", "5000-5001"], false), [80]);
        assert_eq!(shared(&["--device", "kernel"], true), [8080, 2121]);
        assert_eq!(shared(&["--http-port", "0"], false), [21]);
    }

    #[test]
    fn each_server_has_ports_of_its_own() {
        let check = |args: &[&str], kernel, expected: Option<&str>| {
            let settings = settings(args);
            let found = Ports::new(&settings, kernel).check_servers(&settings).err();
            let told = expected.map(|both| format!("{both}: each server needs a port of its own"));
            assert_eq!(found.map(|error| error.to_string()), told, "{args:?}");
        };
        check(&[], false, None);
        check(&[], true, None);
        check(&["--http-port", "0", "--ftp-port", "0"], false, None);
        check(&["--http-port", "7", "--ftp-port", "7"], false, Some("http-port and ftp-port are both 7"));
        check(&["--http-port", "21"], false, Some("http-port and ftp-port are both 21"));
        check(&["--http-port", "21"], true, None);
        check(&["--ftp-port", "8080"], true, Some("http-port and ftp-port are both 8080"));
        check(&["--iperf3-port", "80"], false, Some("http-port and iperf3-port are both 80"));
        check(&["--http-port", "5201"], false, Some("http-port and iperf3-port are both 5201"));
        check(&["--ftp-port", "5201"], false, Some("ftp-port and iperf3-port are both 5201"));
    }

    #[test]
    fn the_status_has_a_port_of_its_own_on_the_hosts_sockets() {
        let check = |args: &[&str], kernel, own: &str, expected: Option<&str>| {
            let settings = settings(args);
            let ports = Ports::new(&settings, kernel);
            let found = ports.check_status(&settings, &[own.parse().unwrap()]).err();
            assert_eq!(found.map(|error| error.to_string()).as_deref(), expected, "{args:?} on {own}");
        };
        let same = ["--http-port", "8081", "--status", "8081"];
        let told =
            "invalid value '127.0.0.1:8081' for '--status': expected a port other than that of http-port";
        check(&same, true, "127.0.0.1", Some(told));
        check(&same, true, "10.0.0.1", None);
        check(&same, true, "0.0.0.0", Some(told));
        check(&same, false, "192.168.1.4", None);
        check(
            &["--status", "2121"],
            true,
            "127.0.0.1",
            Some(
                "invalid value '127.0.0.1:2121' for '--status': expected a port other than that of ftp-port",
            ),
        );
        check(&["--status", "9180"], true, "127.0.0.1", None);
        check(&[], true, "127.0.0.1", None);
    }
}
