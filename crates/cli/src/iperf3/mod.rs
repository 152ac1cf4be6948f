//! `linerate iperf3`: an iperf3 client over our own stack or the host's sockets.

pub mod args;
mod print;
mod run;

use crate::args::{LogFormat, Serve};
use crate::logging;
use crate::serve::open::{self, OpenError};
use crate::serve::services;
use crate::serve::worker::{Machine, Random};
use crate::settings::{Settings, SettingsError};
use args::Iperf3;
use linerate_linux::files::{AnyFiles, DemoFiles};
use linerate_linux::privileges;
use linerate_linux::signals::Signals;
use linerate_nic::DeviceError;
use linerate_serve::Loop;
use linerate_serve::iperf3::client::{Client, ClientError, Config};
use linerate_stack::Seat;
use print::Printer;
use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::process::ExitCode;
use std::time::Duration;

/// Why `iperf3` ended without its result.
#[derive(Debug)]
pub enum Iperf3Error {
    /// An argument cannot be.
    Asked(String),
    /// The settings of the device.
    Settings(SettingsError),
    /// The server's name leads nowhere.
    Name(String),
    /// The device asked for cannot be had.
    Open(OpenError),
    /// The device failed.
    Device(DeviceError),
    /// Descriptors ran out at the start.
    System(std::io::Error),
    /// The test did not come to its end.
    Test(ClientError),
}

impl Iperf3Error {
    /// 2 for what the user said wrong, 1 for what went wrong.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Iperf3Error::Asked(_) | Iperf3Error::Settings(_) => ExitCode::from(2),
            Iperf3Error::Open(error) if error.is_usage() => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }
}

impl fmt::Display for Iperf3Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Iperf3Error::Asked(why) | Iperf3Error::Name(why) => f.write_str(why),
            Iperf3Error::Settings(error) => error.fmt(f),
            Iperf3Error::Open(error) => error.fmt(f),
            Iperf3Error::Device(error) => error.fmt(f),
            Iperf3Error::System(error) => write!(f, "cannot start: {error}"),
            Iperf3Error::Test(error) => write!(f, "iperf3: {error}"),
        }
    }
}

impl std::error::Error for Iperf3Error {}

/// Runs one test and prints its report.
pub fn run(args: &Iperf3) -> Result<(), Iperf3Error> {
    let params = args.params().map_err(Iperf3Error::Asked)?;
    let interval = args.interval().map_err(Iperf3Error::Asked)?;
    args.place.check().map_err(Iperf3Error::Asked)?;
    let serve = Serve { options: args.place.options(), config: None, trace: None, pcap: None, verbose: 0 };
    let settings = Settings::load(&serve).map_err(Iperf3Error::Settings)?;
    logging::start_at(LogFormat::Text, "warn").map_err(Iperf3Error::Settings)?;
    let server = resolve(args)?;
    // Before any thread is there, so that all of them leave these signals to the loop.
    let signals = Signals::catch().map_err(Iperf3Error::System)?;
    privileges::refuse_new().map_err(Iperf3Error::System)?;
    let files = DemoFiles::new(&[]).map(AnyFiles::Demo).map_err(Iperf3Error::System)?;
    let mut random = Random::new();
    // The host's side of the device goes after the device.
    let opened = open::engine(&settings, &mut random).map_err(Iperf3Error::Open)?;
    let (interface, addresses) = (opened.interface, opened.addresses);
    let Some(maker) = opened.makers.into_iter().next() else {
        return Err(Iperf3Error::Asked("the device has no queue".to_owned()));
    };
    let mut engine = maker(&files, Seat::ALONE).map_err(Iperf3Error::Open)?;
    engine.set_offloads(settings.offload).map_err(Iperf3Error::Device)?;
    let config = Config {
        params,
        interval,
        connect_timeout: Duration::from_millis(args.connect_timeout.into()),
        title: args.title.clone(),
        socket: settings.socket.clone(),
        cpu_times: services::cpu_times,
        ..Config::new(server)
    };
    let machine = Machine { random, ..Machine::default() };
    let printer = Printer::new(args, server);
    let core = Loop::new(engine, files, Client::new(config));
    let mut running = run::Running { core, machine, signals, printer };
    running.settle(&addresses).map_err(Iperf3Error::Device)?;
    let outcome = running.run().map_err(Iperf3Error::Device)?;
    running.printer.finish(running.core.services(), outcome);
    drop(running);
    drop(interface);
    outcome.map_err(Iperf3Error::Test)
}

/// The server's address, of the family that was asked for.
fn resolve(args: &Iperf3) -> Result<SocketAddr, Iperf3Error> {
    let host = &args.host;
    let found = (host.as_str(), args.port).to_socket_addrs();
    let mut found = found.map_err(|why| Iperf3Error::Name(format!("cannot find the host {host}: {why}")))?;
    let fits = |addr: &SocketAddr| match (args.version4, args.version6) {
        (true, _) => addr.is_ipv4(),
        (_, true) => addr.is_ipv6(),
        _ => true,
    };
    let family = if args.version4 { "IPv4" } else { "IPv6" };
    found.find(fits).ok_or_else(|| Iperf3Error::Name(format!("the host {host} has no {family} address")))
}
