//! The loop of a server process: the portable one, with sleep, signals and output around it.

use super::banner::{Announcements, Banner};
use super::crowd::CrowdWatch;
use super::engine::{Figures, HostEngine};
use super::services::Services;
use super::stats::Stats;
use super::status::{MemoryPeak, Status};
use super::summary::Summary;
use crate::logging;
use linerate_linux::clock::{MonotonicClock, wall_clock_ns};
use linerate_linux::files::AnyFiles;
use linerate_linux::poller::{self, PollFd, PollFlags};
use linerate_linux::signals::{Signal, Signals};
use linerate_nic::DeviceError;
use linerate_serve::{Context, Host, Loop, Service as _};
use linerate_transport::{Engine as _, Left, Output};
use linerate_wire::units::Instant;
use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::time::Duration;

/// How often a busy loop looks at signals, statistics and the log.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// How long a stopping server waits for transfers under way.
const DRAIN_TIME: Duration = Duration::from_secs(10);
/// Rounds, and the pause after one in which the device took nothing, while the last packets are sent: 0.2 s at most for
/// a device that takes nothing at all.
const FLUSH_ROUNDS: usize = 2_000;
const FLUSH_PAUSE: Duration = Duration::from_micros(100);

/// Everything that one server process has.
pub struct Process {
    /// Sockets and their device, files, and the servers.
    pub core: Loop<Box<dyn HostEngine>, AnyFiles, Services>,
    /// Clock and random numbers.
    pub machine: Machine,
    /// Signals of the process.
    pub signals: Signals,
    /// Statistics, if wanted.
    pub stats: Option<Stats>,
    /// The status port, if wanted.
    pub status: Option<Status>,
    /// The most memory that sockets held.
    pub memory: MemoryPeak,
    /// When serving began.
    pub started: Instant,
    /// What is printed of addresses.
    pub banner: Banner,
    /// Which addresses were told.
    pub announcements: Announcements,
    /// What the log was told of newcomers without a place.
    pub crowd: CrowdWatch,
}

/// What the loop takes from this host.
pub struct Machine {
    /// The clock.
    pub clock: MonotonicClock,
    /// State of the random number generator.
    pub random: Random,
}

/// Numbers that a peer cannot guess, for ports, cookies and salts: a keyed hash of a counter.
pub struct Random {
    keys: std::hash::RandomState,
    counter: u64,
}

impl Random {
    /// A generator with a key from the operating system.
    pub fn new() -> Self {
        Random { keys: std::hash::RandomState::new(), counter: 0 }
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        use std::hash::BuildHasher as _;
        self.counter += 1;
        self.keys.hash_one(self.counter)
    }
}

impl Default for Random {
    fn default() -> Self {
        Random::new()
    }
}

impl Host for Machine {
    fn now(&mut self) -> Instant {
        self.clock.now()
    }

    fn wall_ns(&mut self) -> i64 {
        i64::try_from(wall_clock_ns()).unwrap_or(i64::MAX)
    }

    fn random(&mut self) -> u64 {
        self.random.next()
    }
}

impl Process {
    /// Calls `f` with what a service may use.
    pub fn with<R>(&mut self, f: impl FnOnce(&mut Services, &mut Context<'_>) -> R) -> R {
        self.core.with(&mut self.machine, f)
    }

    /// Serves until all `addresses` can be used, or `patience` is over.
    pub fn settle(&mut self, addresses: &[IpAddr], patience: Duration) -> Result<(), DeviceError> {
        let until = self.machine.clock.now() + patience;
        loop {
            let usable = self.core.engine.addresses_in_use();
            let waits = usable.is_some_and(|usable| addresses.iter().any(|ip| !usable.contains(ip)));
            if !waits || self.machine.clock.now() >= until {
                return Ok(());
            }
            if !self.turn()? {
                self.sleep(Some(until));
            }
        }
    }

    /// Serves until a signal ends it; returns how many connections were cut off. `reload` is called for SIGHUP.
    pub fn run(&mut self, mut reload: impl FnMut(&mut Process)) -> Result<u64, DeviceError> {
        let mut drain_until: Option<Instant> = None;
        let mut next_look = self.machine.clock.now();
        loop {
            let mut busy = self.turn()?;
            let now = self.machine.clock.now();
            if busy && now < next_look {
                continue;
            }
            next_look = now + LOOK_INTERVAL;
            logging::flush();
            self.print_stats();
            self.answer_status();
            self.announce();
            while let Some(signal) = self.signals.take() {
                busy = true;
                match signal {
                    Signal::Hangup => reload(self),
                    Signal::Interrupt | Signal::Terminate if drain_until.is_some() => {
                        return Ok(self.cut_off());
                    }
                    Signal::Interrupt | Signal::Terminate => {
                        log::info!("finishing what is under way; a second signal ends at once");
                        self.with(|services, ctx| services.drain(ctx));
                        drain_until = Some(self.machine.clock.now() + DRAIN_TIME);
                    }
                }
            }
            if let Some(until) = drain_until {
                if self.core.is_idle() {
                    return Ok(0);
                }
                if self.machine.clock.now() >= until {
                    log::warn!(
                        "transfers were still under way after {} s and are cut off",
                        DRAIN_TIME.as_secs()
                    );
                    return Ok(self.cut_off());
                }
            }
            if !busy {
                self.sleep(drain_until);
            }
        }
    }

    /// What was served so far.
    pub fn summary(&mut self, cut_off: u64) -> Summary {
        Summary {
            figures: self.core.engine.figures(),
            cut_off,
            duration: self.machine.clock.now() - self.started,
        }
    }

    /// Resets what is under way, and sees to it that the resets leave; returns how many connections these were.
    fn cut_off(&mut self) -> u64 {
        let engine = &mut self.core.engine;
        let cut_off = engine.abort_all(self.machine.clock.now());
        for _ in 0..FLUSH_ROUNDS {
            match engine.output(self.machine.clock.now()) {
                Ok(Output { left: Left::Nothing, .. }) => break,
                Ok(Output { left: Left::More, .. }) => {}
                // A device that is full takes more in a moment.
                Ok(Output { left: Left::DeviceFull, .. }) => std::thread::sleep(FLUSH_PAUSE),
                Err(error) => {
                    log::warn!("resets could not be sent: {error}");
                    break;
                }
            }
        }
        cut_off as u64
    }

    /// Tells of addresses that have come or gone since they were last looked at.
    fn announce(&mut self) {
        let Some(usable) = self.core.engine.addresses_in_use() else { return };
        for ip in self.announcements.update(usable) {
            self.banner.print_address(ip);
        }
    }

    /// One turn: packets in, events and completions to the services, packets out. Returns whether anything happened.
    fn turn(&mut self) -> Result<bool, DeviceError> {
        let taken_in = self.core.take_in(&mut self.machine)?;
        // What is held of the input is most now, and what is held of the output at the end of the turn.
        self.memory.note(self.core.engine.memory_used() as u64);
        if let Some(refused) = self.crowd.look(self.core.engine.refused(), self.machine.clock.now()) {
            log::warn!(
                "connections, descriptors or accept queues are used up: {refused} newcomers were reset"
            );
        }
        let served = self.core.serve(&mut self.machine)?;
        self.memory.note(self.core.engine.memory_used() as u64);
        Ok(taken_in || served)
    }

    fn sleep(&mut self, drain_until: Option<Instant>) {
        logging::flush();
        if self.core.arm(&mut self.machine) {
            return;
        }
        let now = self.machine.clock.now();
        let stats = self.stats.as_ref().map(Stats::due_at);
        let status = self.status.as_ref();
        let asked = status.and_then(Status::poll_timeout);
        let deadlines = [self.core.poll_timeout(), stats, asked, drain_until];
        let timeout = deadlines.iter().flatten().min().map(|at| *at - now);
        let (fd, flags) = self.core.engine.fd();
        let signals = self.signals.as_fd();
        let mut fds = [
            PollFd::from_borrowed_fd(fd, flags),
            PollFd::from_borrowed_fd(self.core.files.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(signals, PollFlags::IN),
            // Without a status port, the place is taken by what is looked at anyway.
            PollFd::from_borrowed_fd(status.map_or(signals, Status::as_fd), PollFlags::IN),
        ];
        if let Err(error) = poller::wait(&mut fds, timeout) {
            log::error!("waiting failed: {error}");
        }
    }

    fn print_stats(&mut self) {
        let now = self.machine.clock.now();
        if let Some(stats) = self.stats.as_mut().filter(|stats| stats.due_at() <= now) {
            // What is held between two turns is next to nothing: the most that was held says what is needed.
            let figures = Figures { memory_bytes: self.memory.take(), ..self.core.engine.figures() };
            let mut tallies = self.core.engine.observed().tallies();
            tallies.extend(self.core.services.tallies(&self.core.files));
            stats.print(now, Duration::from_nanos(wall_clock_ns()), figures, &tallies);
        }
    }
}

#[cfg(test)]
mod tests;
