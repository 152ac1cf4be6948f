//! `linerate serve`: from settings to a running loop.

mod banner;
mod common;
mod company;
mod crew;
mod crowd;
mod demo;
pub(crate) mod engine;
mod in_force;
mod kernel;
mod member;
mod observe;
pub(crate) mod open;
mod own;
mod plugged;
mod post;
mod record;
#[cfg(feature = "rtl")]
mod rtl;
pub(crate) mod services;
pub mod shares;
mod stats;
mod status;
mod summary;
mod tap;
mod turn;
mod user;
pub(crate) mod worker;

use crate::args::{LogFormat, Serve};
use crate::settings::{Settings, SettingsError};
use crate::values::Offload;
use crate::{logging, output};
use banner::{Announcements, Banner};
use crew::Crew;
use in_force::InForce;
use linerate_linux::clock::MonotonicClock;
use linerate_linux::files::{AnyFiles, DemoFile, DemoFiles, RootError, WorkerConfig, WorkerFiles};
use linerate_linux::privileges;
use linerate_linux::signals::Signals;
use linerate_nic::DeviceError;
use linerate_serve::{StartError, ftp};
use open::{OpenError, Opened};
use post::Post;
use record::{RecordError, Recording};
use stats::Stats;
use status::{Status, StatusError};
use std::fmt;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use turn::Process;
use user::UserError;
use worker::{Machine, Random};

/// Longest that serving waits for duplicate address detection before it says that it is ready.
const ADDRESS_PATIENCE: Duration = Duration::from_secs(4);

/// Why `serve` ended.
#[derive(Debug)]
pub enum ServeError {
    /// A flag or key is wrong.
    Settings(SettingsError),
    /// The device asked for cannot be had.
    Open(OpenError),
    /// The directory cannot be served.
    Root(RootError),
    /// The user that the server is to become.
    User(UserError),
    /// A password could not be hashed.
    Password(ftp::HashError),
    /// The FTP server's settings are wrong.
    Ftp(ftp::ConfigError),
    /// The FTP server refuses new settings.
    FtpReload(ftp::ReloadError),
    /// A listener cannot be opened.
    Start(StartError),
    /// The status cannot be served.
    Status(StatusError),
    /// The device failed while serving.
    Device(DeviceError),
    /// The trace or the capture cannot be written.
    Record(RecordError),
    /// Descriptors or threads ran out at the start.
    System(std::io::Error),
}

impl ServeError {
    /// 2 for what the user said wrong, 1 for what went wrong.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            ServeError::Settings(_) | ServeError::Ftp(_) => ExitCode::from(2),
            ServeError::Open(error) if error.is_usage() => ExitCode::from(2),
            ServeError::User(error) if error.is_usage() => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServeError::Settings(error) => error.fmt(f),
            ServeError::Open(error) => error.fmt(f),
            ServeError::Root(error) => write!(f, "cannot serve the directory: {error}"),
            ServeError::User(error) => error.fmt(f),
            ServeError::Password(error) => write!(f, "a password cannot be hashed: {error}"),
            ServeError::Ftp(error) => write!(f, "FTP: {error}"),
            ServeError::FtpReload(error) => write!(f, "FTP: {error}"),
            ServeError::Start(error) => error.fmt(f),
            ServeError::Status(error) => error.fmt(f),
            ServeError::Device(error) => error.fmt(f),
            ServeError::Record(error) => error.fmt(f),
            ServeError::System(error) => write!(f, "cannot start: {error}"),
        }
    }
}

impl std::error::Error for ServeError {}

/// Runs `linerate serve` until a signal ends it.
pub fn run(args: &Serve) -> Result<(), ServeError> {
    // What is wrong with the settings is said in the form that was asked for, as far as that is known.
    output::set_json(args.options.log_format == Some(LogFormat::Json));
    let mut settings = Settings::load(args).map_err(ServeError::Settings)?;
    settings.check_dir().map_err(ServeError::Settings)?;
    output::set_json(settings.log_format == LogFormat::Json);
    logging::start(settings.log_format, args.verbose).map_err(ServeError::Settings)?;
    // Before any thread is there, so that all of them leave these signals to the loop.
    let signals = Signals::catch_all().map_err(ServeError::System)?;
    let mut random = Random::new();
    privileges::refuse_new().map_err(ServeError::System)?;
    let account = user::choose(&settings).map_err(ServeError::User)?;
    let users = users(&settings, &mut random)?;
    let files = files(&settings)?;
    prefer_files(&mut settings, &files);
    // The host's side of the device goes after the device.
    let Opened { makers, interface: _interface, what, bind, addresses, kernel, kept, table } =
        open::engine(&settings, &mut random).map_err(ServeError::Open)?;
    settings.ineffective(kernel).iter().for_each(|text| log::warn!("{text}"));
    let ports = services::Ports::new(&settings, kernel);
    let fits = ports.check_servers(&settings).and_then(|()| ports.check_status(&settings, &addresses));
    fits.map_err(|error| ServeError::Settings(error.located(args)))?;
    let started = MonotonicClock::new().now();
    let statuses = Status::start(&settings, started, makers.len()).map_err(ServeError::Status)?;
    if kernel && args.pcap.is_some() {
        log::warn!("--pcap has no effect on the kernel's sockets: there are no frames to see");
    }
    let recording = Recording::open(args.trace.as_deref(), args.pcap.as_deref(), makers.len());
    let recording = recording.map_err(ServeError::Record)?;
    let recorders = recording.as_ref().map(Recording::recorders).unwrap_or_default();
    let crew = Crew { makers, bind, ports, table, users, statuses, recorders };
    let (mut worker, company) = crew.start(&settings, files, Machine { random, ..Machine::default() })?;
    let enabled = worker.core.engine.set_offloads(settings.offload).map_err(ServeError::Device)?;
    let offloads = if kernel { String::new() } else { format!(", offloads {}", Offload(enabled)) };
    let banner = Banner {
        dir: settings.dir.clone(),
        device: format!("{what}{offloads}"),
        ports,
        writable: settings.writable,
        memory_files: settings.servers.http.has_memory_files(),
        user: account.as_ref().map(|account| account.name.clone()),
    };
    if let Some(status) = &mut worker.status {
        status.set_device(&banner.device);
    }
    let mut serving = Process {
        worker,
        company,
        signals,
        stats: settings.stats.map(|interval| Stats::new(started, interval)),
        started,
        banner,
        announcements: Announcements::new(&addresses),
    };
    if let Some(account) = &account {
        user::adopt(account, kept, args.config.as_deref()).map_err(ServeError::User)?;
    }
    // Not before: its thread has no more rights than the others.
    let recording = recording.map(Recording::start).transpose().map_err(ServeError::Record)?;
    serving.check_uploads(&settings);
    serving.settle(&addresses, ADDRESS_PATIENCE)?;
    serving.banner.print_ready(&addresses);
    let mut in_force = InForce::new(settings);
    let ended = serving.run(|serving| match reload(args, &in_force, serving) {
        Ok(settings) => {
            log::info!("configuration reloaded");
            in_force.take(settings);
        }
        Err(error) => log::error!("the configuration is not reloaded, the old one stays: {error}"),
    });
    finish(&mut serving, recording, ended)
}

/// Tells what was served, and writes what was recorded, also of an end by an error: that is when somebody wants to know most.
fn finish(
    serving: &mut Process,
    recording: Option<Recording>,
    ended: Result<u64, ServeError>,
) -> Result<(), ServeError> {
    logging::flush();
    match &ended {
        Ok(cut_off) => serving.summary(*cut_off).print(),
        Err(_) => serving.give_up(),
    }
    let written = recording.map_or(Ok(()), Recording::write).map_err(ServeError::Record);
    ended.and(written)
}

/// Reads the configuration again and applies what can change while running.
fn reload(args: &Serve, in_force: &InForce, serving: &mut Process) -> Result<Settings, ServeError> {
    let mut settings = Settings::load(args).map_err(ServeError::Settings)?;
    prefer_files(&mut settings, &serving.worker.core.files);
    for name in in_force.pending(&settings) {
        log::warn!("{name} has changed in the configuration and takes effect at the next start");
    }
    let current = in_force.current();
    serving.check_directory();
    let worker = &mut serving.worker;
    let users = users(&settings, &mut worker.machine.random)?;
    // What could fail on another queue is found out before anything is taken.
    worker.core.services().check(&settings, users.clone()).map_err(ServeError::Ftp)?;
    // So is what the device may refuse; the others' is as ours.
    let ours = users.clone();
    let taken =
        worker.core.engine.set_offloads(settings.offload).map_err(ServeError::Device).and_then(|_| {
            worker.with(|services, ctx| services.reload(ctx, &settings, ours)).map_err(ServeError::FtpReload)
        });
    if let Err(error) = taken {
        if let Err(device) = worker.core.engine.set_offloads(current.offload) {
            log::error!("the device does not take its offloads back: {device}");
        }
        return Err(error);
    }
    if let AnyFiles::Directory(files) = &mut worker.core.files {
        files.set_writable(settings.writable);
    }
    worker.busy_poll = settings.busy_poll;
    // What this thread takes the others take, too.
    if let Some(post) = &worker.post {
        let new = Arc::new((settings.clone(), users));
        post.out.tell_others(|| Post::Reload(Arc::clone(&new)));
    }
    if settings.writable && !current.writable {
        serving.check_uploads(&settings);
    }
    let now = serving.worker.now();
    if settings.stats != current.stats {
        serving.stats = settings.stats.map(|interval| Stats::midway(now, interval));
    }
    Ok(settings)
}

/// FTP users with their passwords hashed; those that are hashes already are taken as they are.
fn users(settings: &Settings, random: &mut Random) -> Result<Vec<ftp::User>, ServeError> {
    let user = |user: &crate::values::FtpUser| {
        let password_hash = if user.password.starts_with("$argon2") {
            user.password.clone()
        } else {
            let salt = [random.next().to_le_bytes(), random.next().to_le_bytes()].concat();
            ftp::hash_password(&user.password, &salt).map_err(ServeError::Password)?
        };
        Ok(ftp::User { name: user.name.clone(), password_hash })
    };
    settings.ftp_users.iter().map(user).collect()
}

/// Has what the directory holds come before memory files, unless those are asked for.
fn prefer_files(settings: &mut Settings, files: &AnyFiles) {
    // Whom we became may not be allowed to go to the directory by its path.
    let AnyFiles::Directory(directory) = files else { return };
    if directory.holds("memory") {
        settings.prefer_files().iter().for_each(|text| log::info!("{text}"));
    }
}

fn files(settings: &Settings) -> Result<AnyFiles, ServeError> {
    // Each file that is sent takes a descriptor.
    linerate_linux::descriptors::raise_limit();
    match &settings.dir {
        Some(dir) => {
            let config = WorkerConfig { writable: settings.writable, ..WorkerConfig::default() };
            WorkerFiles::start(dir, config).map(AnyFiles::Directory).map_err(ServeError::Root)
        }
        None => {
            let file = |(path, bytes)| DemoFile { path, bytes, modified_ns: demo::MODIFIED_NS };
            let files: Vec<DemoFile> = demo::FILES.into_iter().map(file).collect();
            DemoFiles::new(&files).map(AnyFiles::Demo).map_err(ServeError::System)
        }
    }
}
