//! A client that asks at a rate of its own, whether or not answers come, and keeps how long each took.
//!
//! A client that waits for an answer before it asks again leaves out just those requests that a slow server would have
//! made wait (coordinated omission). Here a request has a time at which it is due, and its latency counts from then on,
//! though all connections may have been busy. With a rate of 0 each connection asks again at once: with one connection
//! that is a ping-pong.

use anyhow::{Context, Result, bail};
use hdrhistogram::Histogram;
use rustix::event::{Timespec, epoll};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// How long answers that are still missing at the end are waited for.
const GRACE: Duration = Duration::from_secs(1);
/// Ready connections that are taken at once.
const EVENTS: usize = 64;
const NS: f64 = 1e9;
/// The longest latency that is told apart from longer ones.
const LONGEST_NS: u64 = 100_000_000_000;

/// What is asked, and how.
#[derive(Clone, Debug)]
pub struct Load {
    /// The server.
    pub server: SocketAddr,
    /// The path that is asked for.
    pub path: String,
    /// Connections, all kept.
    pub connections: usize,
    /// Requests a second over all of them; 0: as many as are answered.
    pub rate: f64,
    /// For how long.
    pub time: Duration,
}

/// What came of it. Latencies in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// Requests that were answered.
    pub requests: u64,
    /// In so many seconds.
    pub seconds: f64,
    /// Requests that were not, or not with status 200.
    pub errors: u64,
    /// The median.
    pub p50: f64,
    /// What one in a hundred exceeds.
    pub p99: f64,
    /// What one in a thousand exceeds.
    pub p999: f64,
}

/// One connection.
struct Link {
    stream: TcpStream,
    /// When the request that is under way was due.
    due: Option<Duration>,
    answer: Answer,
}

/// An answer as it comes in.
#[derive(Default)]
struct Answer {
    bytes: Vec<u8>,
    /// Length of head and body, once the head is there.
    len: Option<usize>,
}

impl Answer {
    /// Takes what came; true once the answer is whole.
    fn take(&mut self, bytes: &[u8]) -> Result<bool> {
        self.bytes.extend_from_slice(bytes);
        if self.len.is_none()
            && let Some(end) = self.bytes.windows(4).position(|four| four == b"\r\n\r\n")
        {
            self.len = Some(end + 4 + body_len(&self.bytes[..end])?);
        }
        match self.len {
            Some(len) if self.bytes.len() > len => bail!("{} bytes too many", self.bytes.len() - len),
            len => Ok(len == Some(self.bytes.len())),
        }
    }

    fn is_good(&self) -> bool {
        self.bytes.starts_with(b"HTTP/1.1 200 ")
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.len = None;
    }
}

fn body_len(head: &[u8]) -> Result<usize> {
    let head = String::from_utf8_lossy(head);
    let value = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().to_owned())
    });
    value.and_then(|value| value.parse().ok()).context("an answer without Content-Length")
}

/// Requests that are due: at even distances, or as soon as a connection is free.
struct Schedule {
    every: Duration,
    next: Duration,
    end: Duration,
    waiting: VecDeque<Duration>,
}

impl Schedule {
    fn new(load: &Load) -> Schedule {
        let every = if load.rate > 0.0 { Duration::from_secs_f64(1.0 / load.rate) } else { Duration::ZERO };
        Schedule { every, next: Duration::ZERO, end: load.time, waiting: VecDeque::new() }
    }

    /// When the request that a free connection is to send was due; `None` if none is.
    fn next(&mut self, now: Duration) -> Option<Duration> {
        if self.every.is_zero() {
            return (now < self.end).then_some(now);
        }
        while self.next <= now && self.next < self.end {
            self.waiting.push_back(self.next);
            self.next += self.every;
        }
        self.waiting.pop_front()
    }
}

/// Asks, and tells how long the answers took. It does not sleep: it is to have a core of its own.
pub fn run(load: &Load) -> Result<Outcome> {
    let request = format!("GET {} HTTP/1.1\r\nHost: {}\r\n\r\n", load.path, load.server.ip());
    let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut links = Vec::with_capacity(load.connections);
    for number in 0..load.connections {
        let stream = TcpStream::connect(load.server).with_context(|| load.server.to_string())?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        epoll::add(&set, &stream, epoll::EventData::new_u64(number as u64), epoll::EventFlags::IN)?;
        links.push(Link { stream, due: None, answer: Answer::default() });
    }
    let mut idle: VecDeque<usize> = (0..links.len()).collect();
    let mut schedule = Schedule::new(load);
    let mut latencies = Histogram::<u64>::new_with_max(LONGEST_NS, 3)?;
    let (mut outcome, mut chunk) = (Outcome::default(), vec![0; 64 << 10]);
    let mut events = Vec::with_capacity(EVENTS);
    let start = Instant::now();
    loop {
        let now = start.elapsed();
        while let Some(number) = idle.front().copied()
            && let Some(due) = schedule.next(now)
        {
            idle.pop_front();
            links[number].stream.write_all(request.as_bytes()).context("a request of some bytes")?;
            links[number].due = Some(due);
        }
        if now >= load.time && (idle.len() == links.len() || now >= load.time + GRACE) {
            break;
        }
        events.clear();
        epoll::wait(&set, rustix::buffer::spare_capacity(&mut events), Some(&Timespec::default()))?;
        for event in &events {
            let number = event.data.u64() as usize;
            if !receive(&mut links[number], &mut chunk)? {
                continue;
            }
            let link = &mut links[number];
            let due = link.due.take().context("an answer that nobody asked for")?;
            latencies.saturating_record((start.elapsed() - due).as_nanos() as u64);
            outcome.requests += 1;
            outcome.errors += u64::from(!link.answer.is_good());
            link.answer.clear();
            idle.push_back(number);
        }
    }
    let now = start.elapsed();
    // What never came has taken at least so long.
    for due in links.iter().filter_map(|link| link.due).chain(schedule.waiting) {
        latencies.saturating_record((now - due).as_nanos() as u64);
        outcome.errors += 1;
    }
    let at = |quantile| latencies.value_at_quantile(quantile) as f64 / NS;
    (outcome.p50, outcome.p99, outcome.p999) = (at(0.5), at(0.99), at(0.999));
    outcome.seconds = now.as_secs_f64();
    Ok(outcome)
}

/// Reads what is there; true once an answer is whole.
fn receive(link: &mut Link, chunk: &mut [u8]) -> Result<bool> {
    match link.stream.read(chunk) {
        Ok(0) => bail!("the server closed a connection that was to be kept"),
        Ok(len) => link.answer.take(&chunk[..len]),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";

    /// A server for one connection that waits before each of its answers, `slow` times longer before one of them.
    fn serve(wait: Duration, slow: u32) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut request, mut number) = ([0; 1_024], 0);
            while stream.read(&mut request).is_ok_and(|len| len > 0) {
                number += 1;
                std::thread::sleep(if number == 5 { wait * slow } else { wait });
                stream.write_all(ANSWER).unwrap();
            }
        });
        address
    }

    fn load(server: SocketAddr, rate: f64) -> Load {
        Load { server, path: "/".into(), connections: 1, rate, time: Duration::from_millis(300) }
    }

    #[test]
    fn an_answer_comes_in_any_pieces() {
        for cut in 0..ANSWER.len() {
            let mut answer = Answer::default();
            assert!(!answer.take(&ANSWER[..cut]).unwrap());
            assert!(answer.take(&ANSWER[cut..]).unwrap() && answer.is_good());
            answer.clear();
            assert!(answer.take(ANSWER).unwrap());
            assert!(answer.take(b"x").is_err());
        }
        assert!(Answer::default().take(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }

    #[test]
    fn a_pause_of_the_server_counts_for_all_that_were_due_within_it() {
        // 100 requests a second for 0.3 s, each answered after 1 ms, but the fifth after 250: more than half are late by 50 ms
        // or more, though the server is slow once.
        let outcome = run(&load(serve(Duration::from_millis(1), 250), 100.0)).unwrap();
        assert_eq!(outcome.requests + outcome.errors, 30);
        assert!(outcome.p50 >= 0.05 && outcome.p99 >= 0.25, "{outcome:?}");
    }

    #[test]
    fn a_closed_loop_asks_when_it_is_answered() {
        let outcome = run(&load(serve(Duration::from_millis(5), 1), 0.0)).unwrap();
        assert!((1..=60).contains(&outcome.requests), "{outcome:?}");
        assert!(outcome.p50 >= 0.005, "{outcome:?}");
    }
}
