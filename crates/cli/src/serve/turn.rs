//! The loop that brings engine, files and services together.

use super::banner::{Announcements, Banner};
use super::crowd::CrowdWatch;
use super::engine::{Engine, Figures};
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
use linerate_serve::Context;
use linerate_transport::{Files as _, Owner};
use linerate_wire::units::Instant;
use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::time::Duration;

/// Most events, and most file completions, handed out in one turn: after that, packets have their turn again.
const EVENTS_PER_TURN: usize = 1024;
/// How often a busy loop looks at signals, statistics and the log.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// How long a stopping server waits for transfers under way.
const DRAIN_TIME: Duration = Duration::from_secs(10);

/// Everything that one server process has.
pub struct Loop {
    /// Sockets and their device.
    pub engine: Box<dyn Engine>,
    /// Files.
    pub files: AnyFiles,
    /// The servers.
    pub services: Services,
    /// Signals of the process.
    pub signals: Signals,
    /// Statistics, if wanted.
    pub stats: Option<Stats>,
    /// The status port, if wanted.
    pub status: Option<Status>,
    /// The most memory that sockets held.
    pub memory: MemoryPeak,
    /// The clock.
    pub clock: MonotonicClock,
    /// When serving began.
    pub started: Instant,
    /// What is printed of addresses.
    pub banner: Banner,
    /// Which addresses were told.
    pub announcements: Announcements,
    /// State of the random number generator.
    pub random: Random,
    /// What the log was told of newcomers without a place.
    pub crowd: CrowdWatch,
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

impl Loop {
    /// Calls `f` with what a service may use.
    pub fn with<R>(&mut self, f: impl FnOnce(&mut Services, &mut Context<'_>) -> R) -> R {
        let random = &mut self.random;
        let mut next = || random.next();
        let mut ctx = Context {
            net: self.engine.net(),
            files: &mut self.files,
            now: self.clock.now(),
            wall_ns: i64::try_from(wall_clock_ns()).unwrap_or(i64::MAX),
            random: &mut next,
        };
        f(&mut self.services, &mut ctx)
    }

    /// Serves until all `addresses` can be used, or `patience` is over.
    pub fn settle(&mut self, addresses: &[IpAddr], patience: Duration) -> Result<(), DeviceError> {
        let until = self.clock.now() + patience;
        loop {
            let usable = self.engine.addresses_in_use();
            let waits = usable.is_some_and(|usable| addresses.iter().any(|ip| !usable.contains(ip)));
            if !waits || self.clock.now() >= until {
                return Ok(());
            }
            if !self.turn()? {
                self.sleep(Some(until));
            }
        }
    }

    /// Serves until a signal ends it; returns how many connections were cut off. `reload` is called for SIGHUP.
    pub fn run(&mut self, mut reload: impl FnMut(&mut Loop)) -> Result<u64, DeviceError> {
        let mut drain_until: Option<Instant> = None;
        let mut next_look = self.clock.now();
        loop {
            let mut busy = self.turn()?;
            let now = self.clock.now();
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
                        drain_until = Some(self.clock.now() + DRAIN_TIME);
                    }
                }
            }
            if let Some(until) = drain_until {
                if self.services.is_idle() && self.engine.is_quiet() {
                    return Ok(0);
                }
                if self.clock.now() >= until {
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
        Summary { figures: self.engine.figures(), cut_off, duration: self.clock.now() - self.started }
    }

    /// Resets what is under way.
    fn cut_off(&mut self) -> u64 {
        let now = self.clock.now();
        self.engine.cut_off(now)
    }

    /// Tells of addresses that have come or gone since they were last looked at.
    fn announce(&mut self) {
        let Some(usable) = self.engine.addresses_in_use() else { return };
        for ip in self.announcements.update(usable) {
            self.banner.print_address(ip);
        }
    }

    /// One turn: packets in, events and completions to the services, packets out. Returns whether anything happened.
    fn turn(&mut self) -> Result<bool, DeviceError> {
        let now = self.clock.now();
        let mut busy = self.engine.input(now)?;
        // What is held of the input is most now, and what is held of the output at the end of the turn.
        self.memory.note(self.engine.memory_used());
        if let Some(refused) = self.crowd.look(self.engine.refused(), now) {
            log::warn!(
                "connections, descriptors or accept queues are used up: {refused} newcomers were reset"
            );
        }
        for _ in 0..EVENTS_PER_TURN {
            let Some(done) = self.files.poll_done() else { break };
            busy = true;
            if done.owner == Owner::TRANSPORT {
                self.engine.handle_file(now, done);
            } else {
                self.with(|services, ctx| services.handle_file(ctx, done));
            }
        }
        for _ in 0..EVENTS_PER_TURN {
            let Some(event) = self.engine.net().poll_event() else { break };
            busy = true;
            self.with(|services, ctx| services.handle_event(ctx, event));
        }
        if self.services.poll_timeout().is_some_and(|at| at <= now) {
            self.with(|services, ctx| services.handle_timeout(ctx));
            busy = true;
        }
        let now = self.clock.now();
        busy |= self.engine.output(now, &mut self.files)?;
        self.memory.note(self.engine.memory_used());
        Ok(busy)
    }

    fn sleep(&self, drain_until: Option<Instant>) {
        logging::flush();
        let now = self.clock.now();
        let stats = self.stats.as_ref().map(Stats::due_at);
        let status = self.status.as_ref();
        let asked = status.and_then(Status::poll_timeout);
        let deadlines = [self.engine.poll_timeout(), self.services.poll_timeout(), stats, asked, drain_until];
        let timeout = deadlines.iter().flatten().min().map(|at| *at - now);
        let (fd, flags) = self.engine.fd();
        let signals = self.signals.as_fd();
        let mut fds = [
            PollFd::from_borrowed_fd(fd, flags),
            PollFd::from_borrowed_fd(self.files.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(signals, PollFlags::IN),
            // Without a status port, the place is taken by what is looked at anyway.
            PollFd::from_borrowed_fd(status.map_or(signals, Status::as_fd), PollFlags::IN),
        ];
        if let Err(error) = poller::wait(&mut fds, timeout) {
            log::error!("waiting failed: {error}");
        }
    }

    fn print_stats(&mut self) {
        let now = self.clock.now();
        if let Some(stats) = self.stats.as_mut().filter(|stats| stats.due_at() <= now) {
            // What is held between two turns is next to nothing: the most that was held says what is needed.
            let figures = Figures { memory_bytes: self.memory.take(), ..self.engine.figures() };
            let mut tallies = self.engine.observed().tallies();
            tallies.extend(self.services.tallies(&self.files));
            stats.print(now, Duration::from_nanos(wall_clock_ns()), figures, &tallies);
        }
    }
}

#[cfg(test)]
mod tests;
