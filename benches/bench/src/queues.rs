//! One or two queues of our HTTP server in memory, each in a thread with a core of its own, with its clients in the same
//! thread: how much more two do than one where no device and no client takes their cores.
//!
//! ```text
//!   core 0: clients 0 ══ link ══ stack, server (seat 0)
//!              │ letters            │ letters, census
//!   core 1: clients 1 ══ link ══ stack, server (seat 1)
//! ```
//!
//! A thread turns its server as `linerate serve` does, but does not sleep: what a server takes for its work is the time that its
//! turns take, and the clients' turns are left out.

mod clients;
mod letters;

use anyhow::{Context, Result, bail};
use clients::Clients;
use letters::{Book, Post};
use linerate_linux::clock::{MonotonicClock, wall_clock_ns};
use linerate_linux::files::{DemoFile, DemoFiles};
use linerate_nic::{Capabilities, Link, Pool, Port, PortConfig};
use linerate_serve::http::{Config, Limits, Server};
use linerate_serve::{Host, Loop, Service as _};
use linerate_stack::{Node, NodeConfig, Seat, StackConfig, StackPools};
use linerate_transport::Owner;
use linerate_wire::units::Instant;
use rustix::thread::{CpuSet, sched_setaffinity};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Barrier};
use std::time::Duration;

/// Memory of each stack, in bytes.
const MEMORY: usize = 128 << 20;
/// Connections that a stack has room for, closed ones that wait included.
const CONNECTIONS: usize = 32_768;
/// Slots of a link in each direction, and buffers of it.
const RING: usize = 512;
const BUFFERS: usize = 4_096;
/// Time in which nothing is counted, at the beginning.
const WARM: Duration = Duration::from_millis(200);
/// How much longer than asked for a queue waits for its first answer: others may have its core.
const PATIENCE: Duration = Duration::from_secs(10);

/// What clients do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// They ask for 354 bytes, over kept connections.
    Requests,
    /// The same, over a new connection each time.
    Connections,
    /// They ask for a mebibyte, over kept connections.
    Bytes,
}

impl Work {
    /// Its name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Work::Requests => "requests",
            Work::Connections => "connections",
            Work::Bytes => "bytes",
        }
    }

    /// By its name.
    pub fn of(name: &str) -> Option<Work> {
        [Work::Requests, Work::Connections, Work::Bytes].into_iter().find(|work| work.name() == name)
    }
}

/// How many queues there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Queues {
    /// One.
    One,
    /// Two of one server.
    Two,
    /// Two servers that share nothing: what the machine's cores allow.
    Apart,
}

impl Queues {
    /// The name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Queues::One => "one",
            Queues::Two => "two",
            Queues::Apart => "apart",
        }
    }

    /// By its name.
    pub fn of(name: &str) -> Option<Queues> {
        [Queues::One, Queues::Two, Queues::Apart].into_iter().find(|queues| queues.name() == name)
    }

    fn threads(self) -> u16 {
        if self == Queues::One { 1 } else { 2 }
    }
}

/// What was done.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// Requests, connections or bytes of all threads.
    pub units: f64,
    /// Seconds that the servers' turns took, as a mean of the threads.
    pub seconds: f64,
    /// Answers that were not what they should be.
    pub errors: u64,
    /// Letters that went from one thread to another.
    pub letters: u64,
}

/// The clocks of the machine, and chance.
struct Machine {
    clock: MonotonicClock,
    state: u64,
}

impl Host for Machine {
    fn now(&mut self) -> Instant {
        self.clock.now()
    }

    fn wall_ns(&mut self) -> i64 {
        i64::try_from(wall_clock_ns()).unwrap_or(i64::MAX)
    }

    fn random(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }
}

/// Runs so many queues on the first cores of the machine.
pub fn run(work: Work, queues: Queues, time: Duration) -> Result<Outcome> {
    let threads = queues.threads();
    let posts = Post::all(threads);
    let (book, start) = (Book::default(), Arc::new(Barrier::new(usize::from(threads))));
    let running: Vec<_> = posts
        .into_iter()
        .enumerate()
        .map(|(core, post)| {
            let (book, start) = (book.clone(), Arc::clone(&start));
            let core = core as u16;
            let (seat, book) = match queues {
                Queues::Apart => (Seat::ALONE, Book::default()),
                _ => (Seat { index: core, seats: threads }, book),
            };
            std::thread::spawn(move || {
                // Whoever fails must not leave the other waiting: all come to the barrier.
                let made = Queue::new(work, core, seat, post, book);
                start.wait();
                made?.run(time)
            })
        })
        .collect();
    let mut all = Outcome::default();
    for thread in running {
        let Ok(found) = thread.join() else { bail!("a thread of a queue panicked") };
        let found = found?;
        all.units += found.units;
        all.seconds += found.seconds / f64::from(threads);
        all.errors += found.errors;
        all.letters += found.letters;
    }
    Ok(all)
}

/// A server's queue and its clients.
struct Queue {
    server: Loop<Node<Link>, DemoFiles, Server>,
    clients: Clients,
    machine: Machine,
    post: Post,
    seat: Seat,
}

impl Queue {
    fn new(work: Work, core: u16, seat: Seat, post: Post, book: Book) -> Result<Queue> {
        let mut cores = CpuSet::new();
        cores.set(usize::from(core));
        sched_setaffinity(None, &cores).with_context(|| format!("no core {core} to run on"))?;
        static BODY: [u8; 354] = [b'x'; 354];
        let files = DemoFiles::new(&[DemoFile { path: "/f354.bin", bytes: &BODY, modified_ns: 0 }])?;
        let pool = Pool::new(BUFFERS, 2_048);
        let (left, right) = Link::pair(&pool, 1_500, Capabilities::ALL, RING);
        let mut machine =
            Machine { clock: MonotonicClock::new(), state: 0x9e37_79b9_7f4a_7c15 + u64::from(core) };
        let engine = node(right, 2, seat)?;
        let room =
            Limits { connections: CONNECTIONS, connections_per_address: CONNECTIONS, ..Limits::default() };
        let config = Config { access_log: None, limits: room, ..Config::default() };
        let mut http = Server::new(Owner(1), config);
        if seat.is_shared() {
            http.share_limits(Box::new(book));
        }
        let mut server = Loop::new(engine, files, http);
        server
            .with(&mut machine, |http, ctx| http.start(ctx))
            .map_err(|error| anyhow::anyhow!("the server does not start: {error:?}"))?;
        let clients = Clients::new(node(left, 1, seat)?, work);
        Ok(Queue { server, clients, machine, post, seat })
    }

    fn run(mut self, time: Duration) -> Result<Outcome> {
        let seat = self.seat;
        let start = self.machine.now();
        let (begin, end) = (start + WARM, start + WARM + time);
        let mut busy = Duration::ZERO;
        let mut counted = None;
        loop {
            let now = self.machine.now();
            if counted.is_none() && now >= begin {
                (counted, busy) = (Some(self.clients.done), Duration::ZERO);
            }
            let is_answered = counted.is_some_and(|before| self.clients.done > before);
            if now >= end && (is_answered || now >= end + PATIENCE) {
                break;
            }
            self.clients.turn(now)?;
            self.post.carry_clients(seat, now, &mut self.clients.node.stack);
            let before = self.machine.now();
            self.server.take_in(&mut self.machine)?;
            self.server.serve(&mut self.machine)?;
            self.post.carry_server(seat, before, &mut self.server.engine.stack);
            busy += self.machine.now() - before;
        }
        let units = self.clients.done - counted.unwrap_or(0);
        if units == 0 {
            bail!("nothing was answered in {:?}", time + PATIENCE);
        }
        Ok(Outcome {
            units: units as f64,
            seconds: busy.as_secs_f64(),
            errors: self.clients.errors,
            letters: self.post.carried,
        })
    }
}

/// A stack on one end of a link.
fn node(link: Link, last: u8, seat: Seat) -> Result<Node<Link>> {
    let port = Port::new(link, PortConfig::default()).map_err(|error| anyhow::anyhow!("{error:?}"))?;
    let config = StackConfig {
        addresses: vec![format!("10.0.0.{last}/24").parse().map_err(|error| anyhow::anyhow!("{error:?}"))?],
        dad_transmits: 0,
        ipv6: false,
        max_connections: CONNECTIONS,
        seat,
        ..StackConfig::default()
    };
    // What windows are promised from; frames lie in the link's.
    let pools = StackPools::for_memory(MEMORY).with_receive(Pool::on_demand(MEMORY / 2 / 2_048, 2_048));
    Ok(Node::new(port, config, [last; 32], pools, NodeConfig::default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_work_is_done_by_one_and_by_two() {
        for work in [Work::Requests, Work::Connections, Work::Bytes] {
            assert_eq!(Work::of(work.name()), Some(work));
            for queues in [Queues::One, Queues::Two, Queues::Apart] {
                assert_eq!(Queues::of(queues.name()), Some(queues));
                if usize::from(queues.threads()) > linerate_lab::measure::machine::cores() {
                    continue;
                }
                let found = run(work, queues, Duration::from_millis(100)).unwrap();
                assert!(found.units >= 1.0 && found.errors == 0, "{work:?} {queues:?} {found:?}");
                assert!(found.seconds > 0.0, "{found:?}");
            }
        }
    }
}
