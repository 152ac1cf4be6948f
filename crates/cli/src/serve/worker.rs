//! What each thread of a server has, and its turn: the portable loop with post and sleep around it.

use super::crowd::CrowdWatch;
use super::engine::{HostEngine, MOST_OTHERS};
use super::post::{Outbox, Post, PostOffice, Told};
use super::record::{Gauge, MOST_CONNECTIONS, Recorder, Step};
use super::services::Services;
use super::status::{MemoryPeak, Status};
use linerate_linux::clock::{MonotonicClock, wall_clock_ns};
use linerate_linux::files::AnyFiles;
use linerate_nic::DeviceError;
use linerate_serve::{Change, Context, Host, Loop, Service as _};
use linerate_transport::{Engine as _, Left, Output};
use linerate_wire::units::Instant;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// How often a busy loop looks at signals, orders, statistics and the log.
pub const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// How often a loop that is to end looks whether it can: the host's sockets do not tell when the last byte is acknowledged.
pub const DRAIN_INTERVAL: Duration = Duration::from_millis(50);
/// Most letters taken in one turn: after that, packets have their turn again.
const LETTERS_PER_TURN: usize = 1_024;
/// Rounds, and the pause after one in which the device took nothing, while the last packets are sent: 0.2 s at most for
/// a device that takes nothing at all.
const FLUSH_ROUNDS: usize = 2_000;
const FLUSH_PAUSE: Duration = Duration::from_micros(100);
/// Rounds in which the files finish what uploads under way came to, and the pause between them.
const SAVE_ROUNDS: usize = 200;
const SAVE_PAUSE: Duration = Duration::from_millis(5);
/// Rounds in which a neighbour may answer when we leave, and the pause between them.
const LEAVE_ROUNDS: usize = 10;
const LEAVE_PAUSE: Duration = Duration::from_millis(2);
/// A sleep that was shorter was none: what ended it had come before.
const AT_ONCE: Duration = Duration::from_micros(5);

/// Sockets, files and servers of one thread.
pub struct Worker {
    /// Sockets and their device, files, and the servers.
    pub core: Loop<Box<dyn HostEngine>, AnyFiles, Services>,
    /// Clock and random numbers.
    pub machine: Machine,
    /// Who asks for the status, if anybody can.
    pub status: Option<Status>,
    /// The most memory that sockets held.
    pub memory: MemoryPeak,
    /// The other threads, if there are any.
    pub post: Option<PostOffice>,
    /// What they have told beside letters, for who runs the loop.
    pub orders: VecDeque<Post>,
    /// How long it asks on after something happened before it sleeps.
    pub busy_poll: Duration,
    /// Until when it does so now.
    asks_until: Option<Instant>,
    /// What the log was told of newcomers without a place.
    crowd: CrowdWatch,
    /// What it notes with, if anything is noted.
    recorder: Option<Recorder>,
    /// Whether the last turn left nothing to be done before something comes.
    is_settled: bool,
    /// Whether something had come already when the loop last lay down.
    is_eager: bool,
}

/// What the loop takes from this host.
#[derive(Default)]
pub struct Machine {
    /// The clock.
    pub clock: MonotonicClock,
    /// State of the random number generator.
    pub random: Random,
    /// Other threads over the same files, if there are any.
    pub others: Option<Outbox>,
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

    fn handle_change(&mut self, change: Change) {
        if let Some(others) = &self.others {
            others.tell_others(|| Post::Changed(change.clone()));
        }
    }
}

impl Worker {
    /// A worker over these, with its end of the post if it has company.
    pub fn new(
        core: Loop<Box<dyn HostEngine>, AnyFiles, Services>,
        mut machine: Machine,
        post: Option<PostOffice>,
    ) -> Worker {
        machine.others = post.as_ref().map(|office| office.out.clone());
        Worker {
            core,
            machine,
            status: None,
            memory: MemoryPeak::default(),
            post,
            orders: VecDeque::new(),
            busy_poll: Duration::ZERO,
            asks_until: None,
            crowd: CrowdWatch::default(),
            recorder: None,
            is_settled: false,
            is_eager: false,
        }
    }

    /// Calls `f` with what a service may use.
    pub fn with<R>(&mut self, f: impl FnOnce(&mut Services, &mut Context<'_>) -> R) -> R {
        self.core.with(&mut self.machine, f)
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.machine.clock.now()
    }

    /// One turn: letters and packets in, events and completions to the services, packets and letters out. Returns whether
    /// anything happened.
    pub fn turn(&mut self) -> Result<bool, DeviceError> {
        match &self.recorder {
            None => self.steps(|_| {}),
            Some(recorder) => self.recorded_turn(recorder.clone()),
        }
    }

    /// A turn whose steps are noted.
    #[cold]
    fn recorded_turn(&mut self, recorder: Recorder) -> Result<bool, DeviceError> {
        let clock = self.machine.clock;
        let mut from = clock.now();
        self.steps(|step| {
            let to = clock.now();
            recorder.span(step, from, to);
            from = to;
        })
    }

    /// The steps of a turn; `done` is told after each.
    fn steps(&mut self, mut done: impl FnMut(Step)) -> Result<bool, DeviceError> {
        let taken_in = self.core.take_in(&mut self.machine)?;
        // After the packets: what another thread told before a client could ask on is known when the question is looked at.
        let mailed = self.take_post();
        // What is held of the input is most now, and what is held of the output at the end of the turn.
        self.memory.note(self.core.engine.memory_used() as u64);
        let clock = self.machine.clock;
        if let Some(refused) = self.crowd.look(self.core.engine.refused(), || clock.now()) {
            log::warn!(
                "connections, descriptors or accept queues are used up: {refused} newcomers were reset"
            );
        }
        done(Step::Input);
        let served = self.core.serve(&mut self.machine)?;
        done(Step::Serve);
        let busy = mailed || taken_in || served;
        self.is_settled = !busy || self.core.settle(&mut self.machine)?;
        self.is_eager &= taken_in;
        self.memory.note(self.core.engine.memory_used() as u64);
        self.send_letters();
        if busy && !self.busy_poll.is_zero() {
            self.asks_until = Some(self.machine.clock.now() + self.busy_poll);
        }
        done(Step::Settle);
        Ok(busy)
    }

    /// Between two looks at everything else, after a turn that was `busy` or not: false when it is time for a look.
    ///
    /// Another turn would only ask the device in vain, if it is not so loaded that something has come meanwhile. Where the last
    /// sleep was one, this one is too.
    pub fn rest(
        &mut self,
        busy: bool,
        now: Instant,
        next_look: Instant,
        other: Option<BorrowedFd<'_>>,
    ) -> bool {
        if !self.orders.is_empty() {
            return busy;
        }
        if !self.is_settled || (busy && self.is_eager) || self.asks_on(now) {
            return true;
        }
        let is_asked = self.sleep(now, Some(next_look), other);
        self.is_eager = self.now() - now < AT_ONCE;
        !is_asked
    }

    /// Whether it is to ask again rather than to sleep, as something happened a moment ago.
    pub fn asks_on(&self, now: Instant) -> bool {
        self.asks_until.is_some_and(|until| now < until)
    }

    fn take_post(&mut self) -> bool {
        let Some(office) = &mut self.post else { return false };
        for count in 0..LETTERS_PER_TURN {
            match office.poll() {
                Some(Post::Letter(message)) => {
                    let now = self.core.now(&mut self.machine);
                    self.core.engine.handle_message(now, message);
                }
                Some(Post::Changed(change)) => self.core.services_mut().handle_change(&change),
                Some(order) => self.orders.push_back(order),
                None => return count > 0,
            }
        }
        true
    }

    fn send_letters(&mut self) {
        let Some(office) = &mut self.post else { return };
        while let Some(letter) = self.core.engine.poll_letter() {
            for _ in 0..office.out.carry(letter) {
                self.core.engine.handle_lost_letter();
            }
        }
    }

    /// Sleeps, as it is `now`, until there is something to do, until `deadline` at the latest, or until `other` can be read.
    ///
    /// True when `other` or who asks for the status wants to be looked at.
    pub fn sleep(&mut self, now: Instant, deadline: Option<Instant>, other: Option<BorrowedFd<'_>>) -> bool {
        if self.core.arm(now) {
            return false;
        }
        let logged = crate::logging::settle(now);
        let asked = self.status.as_ref().and_then(Status::poll_timeout);
        let deadlines = [self.core.poll_timeout(), asked, deadline, logged];
        let timeout = deadlines.iter().flatten().min().map(|at| *at - now);
        let is_asked = self.wait(timeout, other);
        if let Some(recorder) = &self.recorder {
            recorder.span(Step::Sleep, now, self.machine.clock.now());
        }
        is_asked
    }

    /// Waits for the engine, files, letters, `other` and who asks for the status; true where it is one of the last two.
    fn wait(&mut self, timeout: Option<Duration>, other: Option<BorrowedFd<'_>>) -> bool {
        let post = self.post.as_ref().map(|office| office.as_fd());
        let status = self.status.as_ref().map(|status| status.as_fd());
        // The last ones are not only a reason to wake up.
        let askers = 1 + usize::from(post.is_some());
        let mut others = [self.core.files.as_fd(); MOST_OTHERS];
        let mut count = 1;
        for fd in [post, other, status].into_iter().flatten() {
            others[count] = fd;
            count += 1;
        }
        match self.core.engine.sleep(&others[..count], timeout) {
            Ok(ready) => ready >> askers != 0,
            Err(error) => {
                log::error!("waiting failed: {error}");
                false
            }
        }
    }

    /// Notes with this what happens from now on.
    pub fn record(&mut self, recorder: Option<Recorder>) {
        if let Some(recorder) = &recorder {
            self.core.engine.watch(recorder.clone());
        }
        self.recorder = recorder;
    }

    /// Notes how much there is of everything, and how some connections are.
    pub fn note_levels(&mut self) {
        let Some(recorder) = &self.recorder else { return };
        let now = self.machine.clock.now();
        let engine = &mut self.core.engine;
        let figures = engine.figures();
        let waiting = engine.waiting().map(|packets| (Gauge::Waiting, packets as u64));
        let levels = [
            (Gauge::Connections, figures.connections),
            (Gauge::Memory, figures.memory_bytes),
            (Gauge::Retransmits, figures.retransmits),
        ];
        for (gauge, value) in levels.into_iter().chain(waiting) {
            recorder.level(gauge, now, value);
        }
        let observed = engine.observed();
        let mut some = Vec::with_capacity(MOST_CONNECTIONS);
        observed.survey(&mut |conn| {
            if some.len() < MOST_CONNECTIONS && conn.owner.is_some() {
                some.push(conn.id);
            }
        });
        for detail in some.into_iter().filter_map(|id| observed.detail(id)) {
            recorder.connection(now, &detail.info);
        }
    }

    /// What it counts; the memory is the most since the last time.
    pub fn told(&mut self) -> Told {
        let mut figures = self.core.engine.figures();
        figures.memory_bytes = self.memory.take();
        let mut tallies = self.core.engine.observed().tallies();
        tallies.extend(self.core.services().tallies(&self.core.files));
        Told { figures, tallies }
    }

    /// The end: `resets` what is under way, and gives back what others lent us; returns how many connections were reset.
    pub fn end(&mut self, resets: bool) -> u64 {
        let cut_off = if resets { self.cut_off() } else { 0 };
        self.leave();
        cut_off
    }

    /// Resets what is under way, and sees to it that the resets leave; returns how many connections these were.
    fn cut_off(&mut self) -> u64 {
        // How far each has come is known, and can be told, only before it is reset.
        let cut_off = self.core.engine.unfinished();
        self.with(|services, ctx| services.cut_off(ctx));
        let engine = &mut self.core.engine;
        engine.abort_all(self.machine.clock.now());
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
        self.save();
        cut_off as u64
    }

    /// Lets the files finish what uploads came to.
    fn save(&mut self) {
        for _ in 0..SAVE_ROUNDS {
            if self.core.services().has_saved() {
                return;
            }
            // The files go on without a device.
            _ = self.core.serve(&mut self.machine);
            std::thread::sleep(SAVE_PAUSE);
        }
        let now = self.now();
        self.core.services_mut().tell_unsaved(now);
    }

    /// Gives back what others lent us. Who lent it may have to be asked for its Ethernet address first.
    fn leave(&mut self) {
        let engine = &mut self.core.engine;
        if !engine.leave(self.machine.clock.now()) {
            return;
        }
        for _ in 0..LEAVE_ROUNDS {
            let now = self.machine.clock.now();
            if engine.output(now).is_err() || engine.input(now).is_err() {
                return;
            }
            std::thread::sleep(LEAVE_PAUSE);
        }
    }
}
