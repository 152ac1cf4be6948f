//! The client's loop: what is due is sent, what comes is read, what takes too long is given up.

use super::connection::{Asked, Connection, Stage};
use super::fault::Fault;
use super::ports::Ports;
use super::schedule::{Schedule, What};
use super::tally::{ANSWER_BINS, SAMPLES, Tally};
use super::target::request;
use super::{Arrivals, Load, Pace};
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{SendFlags, send, sockopt};
use rustix::time::{ClockId, clock_gettime};
use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

/// Ready connections that are taken at once.
const EVENTS: usize = 256;
/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;
/// How often it is looked for what takes too long.
const SCAN_NS: u64 = 10_000_000;
/// How long a server may take to close a connection that it said it would.
const CLOSE_NS: u64 = 250_000_000;

/// Asks, waits for the answers, and counts. An error is one of the system in setting up; what goes wrong with requests is
/// counted.
pub fn run(load: &Load) -> std::io::Result<Tally> {
    let threads = load.threads.max(1);
    let mut engines = Vec::with_capacity(threads);
    for thread in 0..threads {
        let mut engine = Engine::new(load, thread)?;
        engine.keep();
        engines.push(engine);
    }
    let start = Instant::now();
    let mut all = Tally::default();
    std::thread::scope(|scope| {
        let work: Vec<_> =
            engines.into_iter().map(|engine| scope.spawn(move || engine.until_done(start))).collect();
        for thread in work {
            match thread.join() {
                Ok(tally) => all.add(&tally),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    Ok(all)
}

/// A place for a connection. The generation tells events of one from those of an earlier one in the same place.
#[derive(Default)]
struct Slot {
    generation: u32,
    connection: Option<Connection>,
}

/// One thread's part.
struct Engine<'a> {
    load: &'a Load,
    schedule: Schedule,
    ports: Ports,
    epoll: OwnedFd,
    slots: Vec<Slot>,
    free: Vec<usize>,
    /// How many connections this thread keeps; 0 where they come and go.
    kept: usize,
    /// Connections that are open or under way, without those that only wait for the server to close.
    open: usize,
    /// The newest connection, whose requests become due now; where connections come and go.
    newest: Option<(usize, u32)>,
    /// Connections without a request, where they are kept.
    idle: VecDeque<(usize, u32)>,
    /// Requests that wait for a connection, where they are kept.
    waiting: VecDeque<u64>,
    /// The request, and the same with the wish that the connection be closed.
    texts: [Vec<u8>; 2],
    chunk: Vec<u8>,
    tally: Tally,
    start: Instant,
}

impl<'a> Engine<'a> {
    fn new(load: &'a Load, thread: usize) -> std::io::Result<Engine<'a>> {
        let text = |is_last| request(&load.path, &load.host, is_last).into_bytes();
        let threads = load.threads.max(1);
        let kept = match load.arrivals {
            Arrivals::Kept { connections, .. } => (connections + threads - 1 - thread) / threads,
            Arrivals::Opened { .. } => 0,
        };
        Ok(Engine {
            load,
            kept,
            schedule: Schedule::new(load.arrivals, load.time, thread, threads),
            ports: Ports::new(load.server, &load.sources),
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            slots: Vec::new(),
            free: Vec::new(),
            open: 0,
            newest: None,
            idle: VecDeque::new(),
            waiting: VecDeque::new(),
            texts: [text(false), text(true)],
            chunk: vec![0; CHUNK],
            tally: Tally::default(),
            start: Instant::now(),
        })
    }

    /// Brings connections to stand that are kept, before time counts.
    fn keep(&mut self) {
        for _ in 0..self.kept {
            // One that fails is tried again when a request needs it, and counts then.
            let _ = self.connect(self.now_ns(), 0);
        }
        let timeout = self.load.timeout.min(Duration::from_secs(1));
        while self.idle.len() < self.open && self.start.elapsed() < timeout {
            self.turn(SCAN_NS);
        }
    }

    fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn until_done(mut self, start: Instant) -> Tally {
        // The kernel may otherwise be 50 us late with each wake-up. Where it refuses, the client is late and says so.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        self.start = start;
        let cpu = thread_cpu();
        let end = self.load.time.as_nanos() as u64;
        let sessions = match self.load.arrivals {
            Arrivals::Opened { requests, pace: Pace::Connections, .. } => requests.clamp(1, 4),
            _ => 1,
        };
        let last = end + self.load.timeout.as_nanos() as u64 * u64::from(sessions) + 2 * SCAN_NS;
        let mut next_scan = 0;
        loop {
            let now = self.now_ns();
            self.issue(now);
            self.sample(now, end);
            if now >= next_scan {
                self.scan(now);
                next_scan = now + SCAN_NS;
            }
            if self.is_done(now, end) || now > last {
                break;
            }
            let wake = self.schedule.peek_ns().unwrap_or(next_scan).min(next_scan);
            self.turn(if self.load.spin { 0 } else { wake.saturating_sub(self.now_ns()) });
        }
        let now = self.now_ns();
        for index in 0..self.slots.len() {
            self.fail(index, Fault::Timeout, now);
        }
        self.give_up_waiting(u64::MAX, now);
        self.tally.elapsed = start.elapsed();
        self.tally.thread_cpu = vec![thread_cpu().saturating_sub(cpu)];
        self.tally
    }

    fn is_done(&self, now: u64, end: u64) -> bool {
        now >= end
            && self.schedule.peek_ns().is_none()
            && self.tally.offered == self.tally.answered + self.tally.failed()
    }

    fn sample(&mut self, now: u64, end: u64) {
        while self.tally.open.len() < SAMPLES
            && now >= end / SAMPLES as u64 * (self.tally.open.len() as u64 + 1)
        {
            self.tally.open.push(self.open as u32);
        }
    }

    /// Sends what is due.
    fn issue(&mut self, now: u64) {
        while let Some(due) = self.schedule.pop(now) {
            match (self.load.arrivals, due.what) {
                (Arrivals::Opened { requests, .. }, What::Connection) => {
                    self.tally.connections += 1;
                    self.tally.offered += u64::from(requests);
                    match self.connect(due.at_ns, requests) {
                        Ok((index, generation)) => {
                            self.newest = Some((index, generation));
                            self.request(index, generation, due.at_ns);
                        }
                        Err(fault) => {
                            self.newest = None;
                            self.tally.fail(fault, u64::from(requests));
                        }
                    }
                }
                (Arrivals::Opened { .. }, What::Request) => {
                    // A connection that failed has taken its requests with it.
                    if let Some((index, generation)) = self.newest {
                        self.request(index, generation, due.at_ns);
                    }
                }
                (Arrivals::Kept { .. }, _) => {
                    self.tally.offered += 1;
                    self.waiting.push_back(due.at_ns);
                }
            }
        }
        if let Arrivals::Kept { rate, .. } = self.load.arrivals {
            self.give_out(now, rate <= 0.0);
        }
    }

    /// Gives requests to connections that are free and kept.
    fn give_out(&mut self, now: u64, is_closed_loop: bool) {
        loop {
            let due = match is_closed_loop {
                true => Some(now).filter(|now| *now < self.load.time.as_nanos() as u64),
                false => self.waiting.front().copied(),
            };
            let Some(due) = due else { return };
            let place = match self.idle.pop_front() {
                Some((index, generation)) if self.slots[index].generation == generation => {
                    Ok((index, generation))
                }
                Some(_) => continue,
                None if self.open < self.kept => self.connect(now, 1),
                None => return,
            };
            if is_closed_loop {
                self.tally.offered += 1;
            } else {
                self.waiting.pop_front();
            }
            match place {
                Ok((index, generation)) => {
                    if let Some(connection) = &mut self.slots[index].connection {
                        connection.left = 1;
                    }
                    self.request(index, generation, due);
                }
                Err(fault) => {
                    self.tally.fail(fault, 1);
                    if is_closed_loop {
                        return;
                    }
                }
            }
        }
    }

    /// Begins a connection that has so many requests to answer for. It may have failed again when this returns.
    fn connect(&mut self, due_ns: u64, requests: u32) -> Result<(usize, u32), Fault> {
        let now = self.now_ns();
        self.tally.late.saturating_record(now.saturating_sub(due_ns));
        let (socket, is_there) = self.ports.connect()?;
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() - 1
        });
        let generation = self.slots[index].generation;
        let flags =
            epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        let data = epoll::EventData::new_u64(u64::from(generation) << 32 | index as u64);
        if let Err(error) = epoll::add(&self.epoll, &socket, data, flags) {
            self.free.push(index);
            return Err(Fault::of(error));
        }
        self.slots[index].connection = Some(Connection::new(socket, due_ns, requests));
        self.open += 1;
        self.tally.most_open = self.tally.most_open.max(self.open as u64);
        if is_there {
            self.stand(index, now);
        }
        Ok((index, generation))
    }

    /// A request of this connection is due.
    fn request(&mut self, index: usize, generation: u32, due_ns: u64) {
        if self.slots[index].generation == generation
            && let Some(connection) = &mut self.slots[index].connection
        {
            connection.waiting.push_back(due_ns);
            self.send(index);
        }
    }

    /// The connection has come to stand.
    fn stand(&mut self, index: usize, now: u64) {
        let kept = self.kept > 0;
        let Some(connection) = &mut self.slots[index].connection else { return };
        connection.stage = Stage::Open;
        connection.free_since_ns = now;
        self.tally.established += 1;
        self.tally.connect.saturating_record(now.saturating_sub(connection.due_ns));
        if kept && connection.left == 0 {
            self.idle.push_back((index, self.slots[index].generation));
        }
        self.send(index);
    }

    /// Sends what can be sent.
    fn send(&mut self, index: usize) {
        let now = self.now_ns();
        let kept = self.kept > 0;
        let Some(connection) = &mut self.slots[index].connection else { return };
        if connection.stage != Stage::Open {
            return;
        }
        let text = &self.texts[usize::from(!kept && connection.left == 1)];
        if connection.asked.is_none() {
            let Some(due_ns) = connection.waiting.pop_front() else { return };
            let could_ns = due_ns.max(connection.free_since_ns);
            self.tally.late.saturating_record(now.saturating_sub(could_ns));
            connection.asked = Some(Asked { due_ns, at_ns: now, begun: false });
            connection.unsent = text.len();
        }
        while connection.unsent > 0 {
            match send(&connection.socket, &text[text.len() - connection.unsent..], SendFlags::NOSIGNAL) {
                Ok(len) => {
                    connection.unsent -= len;
                    self.tally.sent += len as u64;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(error) => return self.fail(index, Fault::of(error), now),
            }
        }
    }

    /// Waits for so long at most, and takes what has come.
    fn turn(&mut self, wait_ns: u64) {
        let wait = Timespec { tv_sec: 0, tv_nsec: wait_ns.min(999_999_999) as _ };
        let mut events = Vec::with_capacity(EVENTS);
        // The set waits in whole milliseconds, by which every departure would be late; poll(2) waits in nanoseconds. Interrupted
        // by a signal: the next turn takes what there is.
        let _ = poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], Some(&wait));
        let none = Timespec::default();
        let _ = epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&none));
        for event in events {
            let data = event.data.u64();
            let (index, generation) = ((data & 0xffff_ffff) as usize, (data >> 32) as u32);
            self.event(index, generation, event.flags);
        }
    }

    fn event(&mut self, index: usize, generation: u32, flags: epoll::EventFlags) {
        let now = self.now_ns();
        let is_current = |engine: &Engine<'_>| engine.slots[index].generation == generation;
        let Some(connection) = self.slots[index].connection.as_ref().filter(|_| is_current(self)) else {
            return;
        };
        if connection.stage == Stage::Connecting {
            if !flags.intersects(epoll::EventFlags::OUT | epoll::EventFlags::ERR | epoll::EventFlags::HUP) {
                return;
            }
            match sockopt::socket_error(&connection.socket) {
                Ok(Ok(())) => self.stand(index, now),
                Ok(Err(error)) | Err(error) => return self.fail(index, Fault::of(error), now),
            }
        } else if flags.contains(epoll::EventFlags::OUT) {
            self.send(index);
        }
        let ends = epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
        if is_current(self) && flags.intersects(epoll::EventFlags::IN | ends) {
            self.receive(index, generation, flags.intersects(ends));
        }
    }

    /// Reads what is there, to the end if there is one.
    fn receive(&mut self, index: usize, generation: u32, to_end: bool) {
        let mut chunk = std::mem::take(&mut self.chunk);
        while self.slots[index].generation == generation
            && let Some(connection) = &self.slots[index].connection
        {
            let read = rustix::io::read(&connection.socket, &mut chunk[..]);
            let now = self.now_ns();
            match read {
                Ok(0) => self.ended(index, now),
                Ok(len) => {
                    self.tally.received += len as u64;
                    self.take(index, &chunk[..len], now);
                    // Events come on edges: less than there was room for means that there is no more.
                    if len < chunk.len() && !to_end {
                        break;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => self.fail(index, Fault::of(error), now),
            }
        }
        self.chunk = chunk;
    }

    /// Bytes of an answer.
    fn take(&mut self, index: usize, bytes: &[u8], now: u64) {
        let Some(connection) = &mut self.slots[index].connection else { return };
        let Some(asked) = &mut connection.asked else {
            // Nobody asked. Once all is answered it does not matter.
            return self.fail(index, Fault::Malformed, now);
        };
        if !asked.begun {
            asked.begun = true;
            self.tally.first_byte.saturating_record(now.saturating_sub(asked.at_ns));
        }
        match connection.response.take(bytes) {
            Ok(None) => {}
            Ok(Some(used)) if used == bytes.len() => self.whole(index, now, false),
            Ok(Some(_)) | Err(_) => self.fail(index, Fault::Malformed, now),
        }
    }

    /// The server has closed.
    fn ended(&mut self, index: usize, now: u64) {
        let Some(connection) = &mut self.slots[index].connection else { return };
        let begun = connection.asked.is_some_and(|asked| asked.begun);
        if begun && connection.response.end() {
            self.whole(index, now, true);
        } else if connection.left > 0 {
            self.fail(index, if begun { Fault::ShortBody } else { Fault::Closed }, now);
        } else {
            self.remove(index);
        }
    }

    /// An answer is whole, and perhaps the connection at its end.
    fn whole(&mut self, index: usize, now: u64, is_over: bool) {
        let kept = self.kept > 0;
        let follows = matches!(self.load.arrivals, Arrivals::Opened { pace: Pace::Connections, .. });
        let Slot { generation, connection: Some(connection) } = &mut self.slots[index] else { return };
        let Some(asked) = connection.asked.take() else { return };
        let keeps = connection.response.keeps() && !is_over;
        if connection.response.status() == self.load.status {
            self.tally.answered += 1;
            let since_ns = if follows { connection.due_ns } else { asked.due_ns };
            self.tally.responded(asked.due_ns, since_ns, now, self.load.time);
            self.tally.body_len = Some(connection.response.body_len());
            let bin = u128::from(now) * ANSWER_BINS as u128 / self.load.time.as_nanos().max(1);
            if let Some(count) = self.tally.answers.get_mut(bin as usize) {
                *count += 1;
            }
        } else {
            self.tally.fail(Fault::Status, 1);
        }
        connection.left -= 1;
        connection.response.clear();
        connection.free_since_ns = now;
        match (kept, connection.left) {
            (true, _) if keeps => self.idle.push_back((index, *generation)),
            (false, 0) if !keeps && !is_over => {
                connection.stage = Stage::Closing { since_ns: now };
                self.open -= 1;
            }
            (true, _) | (false, 0) => self.remove(index),
            (false, _) if !keeps => self.fail(index, Fault::Closed, now),
            (false, _) => {
                if follows {
                    connection.waiting.push_back(now);
                }
                self.send(index);
            }
        }
    }

    /// Gives up what takes too long.
    fn scan(&mut self, now: u64) {
        let timeout = self.load.timeout.as_nanos() as u64;
        for index in 0..self.slots.len() {
            let Some(connection) = &self.slots[index].connection else { continue };
            match connection.stage {
                Stage::Closing { since_ns } if now > since_ns + CLOSE_NS => self.remove(index),
                _ if connection.oldest_ns().is_some_and(|due| now > due + timeout) => {
                    self.fail(index, Fault::Timeout, now);
                }
                _ => {}
            }
        }
        self.give_up_waiting(now.saturating_sub(timeout), now);
    }

    /// Requests that no kept connection was free for, and that were due before a time.
    fn give_up_waiting(&mut self, before_ns: u64, now: u64) {
        while let Some(due) = self.waiting.pop_front_if(|due| *due < before_ns) {
            self.tally.responded(due, due, now, self.load.time);
            self.tally.fail(Fault::Timeout, 1);
        }
    }

    /// The connection has failed, and with it all its requests that have no answer.
    fn fail(&mut self, index: usize, fault: Fault, now: u64) {
        let Some(connection) = &self.slots[index].connection else { return };
        if fault == Fault::Timeout {
            // They have taken at least so long.
            for due in connection.owed() {
                self.tally.responded(due, due, now, self.load.time);
            }
        }
        self.tally.fail(fault, u64::from(connection.left));
        self.remove(index);
    }

    /// Closes a connection.
    fn remove(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let Some(connection) = slot.connection.take() else { return };
        if !matches!(connection.stage, Stage::Closing { .. }) {
            self.open -= 1;
        }
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(index);
    }
}

/// Processor time of this thread.
fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec.max(0) as u32)
}
