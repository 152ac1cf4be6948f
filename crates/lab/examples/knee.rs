//! The knee that `lab ramp` finds, beside what httperf and wrk say of the same server.
//!
//! ```text
//! cargo run --release -p linerate-lab --example knee                      a server of known capacity: 2 ms for each request
//! cargo run --release -p linerate-lab --example knee -- 5                 5 ms
//! cargo run --release -p linerate-lab --example knee -- http://HOST/PATH  any server
//! ```
//!
//! A second argument is what `lab ramp --late` is: by how many milliseconds this client may be late before a level is refused.
//!
//! httperf opens connections at a rate of its own, as we do, so its knee is found by the same search and the same rule; it has
//! no quantiles, and its mean response time stands in for the p99. wrk waits for answers, and says only how many come at most.

use linerate_lab::load::{Fault, Faults, Pace, Target, allow_descriptors};
use linerate_lab::measure::place::run as output_of;
use linerate_lab::measure::provenance::Provenance;
use linerate_lab::ramp::knee::{Knee, find};
use linerate_lab::ramp::level::{Level, Limit, Seen, Times};
use linerate_lab::ramp::limit::LATE_MS;
use linerate_lab::ramp::probe::probe;
use linerate_lab::ramp::run::{self, Contender, Length, Plan, Use};
use linerate_lab::ramp::search::{Rates, next};
use rustix::event::epoll;
use std::collections::{BTreeMap, VecDeque};
use std::error::Error;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

/// Requests of a connection, as in seed 003.
const REQUESTS: u32 = 3;
/// Seconds of a level.
const SECONDS: f64 = 3.0;

fn main() -> Result<(), Box<dyn Error>> {
    let given = std::env::args().nth(1).unwrap_or_else(|| "2".to_owned());
    let (url, capacity) = match given.parse::<f64>() {
        Ok(milliseconds) => {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            let address = listener.local_addr()?;
            std::thread::spawn(move || serve(&listener, Duration::from_secs_f64(milliseconds / 1e3)));
            (format!("http://{address}/"), Some(1e3 / milliseconds))
        }
        Err(_) => (given, None),
    };
    allow_descriptors();
    let target = Target::parse(&url)?;
    let found = probe(&target, 200, false, Duration::from_secs(5), &[])?;
    let from = capacity.map_or(150.0, |capacity| capacity / 8.0);
    let rates = Rates::Rising { from, to: None, factor: 1.6, precision: 0.02 };
    println!("{:<34} {:>12} {:>14}", "", "knee", "most answered");
    if let Some(capacity) = capacity {
        println!("{:<34} {capacity:>12.0} {capacity:>14.0}", "capacity");
    }
    let ours = |connections| ramp(&rates, &target, found.address, connections);
    tell(
        "ours, 3 requests a connection",
        &ours(Use::Opened { requests: REQUESTS, pace: Pace::Connections })?,
    );
    let measure = |rate| httperf(&target, found.address, rate);
    tell("httperf, the same", &climb(&rates, measure)?);
    tell("ours, constant rate of requests", &ours(Use::Opened { requests: REQUESTS, pace: Pace::Requests })?);
    tell("ours, 16 kept connections", &ours(Use::Kept(16))?);
    let most = wrk(&url)?;
    println!("{:<34} {:>12} {most:>14.0}", "wrk, 16 kept connections", "");
    println!("{}", Provenance::now(1).sentence());
    Ok(())
}

fn tell(name: &str, knee: &Knee) {
    let rate = knee.offered_rate.map_or("none".to_owned(), |rate| format!("{rate:.0}"));
    println!("{name:<34} {rate:>12} {:>14.0}", knee.most_answered_rate);
}

/// Our own ramp.
fn ramp(
    rates: &Rates,
    target: &Target,
    address: SocketAddr,
    connections: Use,
) -> Result<Knee, Box<dyn Error>> {
    let plan = Plan {
        rates: rates.clone(),
        length: Length::Time(Duration::from_secs_f64(SECONDS)),
        connections,
        timeout: Duration::from_secs(5),
        sources: Vec::new(),
        threads: 1,
        spin: false,
        rounds: 1,
        late_ms: std::env::args().nth(2).and_then(|late| late.parse().ok()).unwrap_or(LATE_MS),
    };
    let contender = Contender {
        name: "server".to_owned(),
        url: target.to_string(),
        address,
        host: target.authority(),
        path: target.path.clone(),
        status: 200,
        workload: "http".to_owned(),
        pid: None,
    };
    let ramps = run::run(&plan, &[contender], &mut |_| {})?;
    Ok(ramps.into_iter().next().map(|ramp| ramp.knee).unwrap_or_default())
}

/// The same search with another measurement.
fn climb(
    rates: &Rates,
    measure: impl Fn(f64) -> Result<Level, Box<dyn Error>>,
) -> Result<Knee, Box<dyn Error>> {
    let mut levels = Vec::new();
    while let Some(rate) = next(rates, &levels) {
        levels.push(measure(rate)?);
        std::thread::sleep(Duration::from_millis(300));
    }
    Ok(find(&levels))
}

/// A level by httperf.
fn httperf(target: &Target, address: SocketAddr, rate: f64) -> Result<Level, Box<dyn Error>> {
    let connection_rate = rate / f64::from(REQUESTS);
    let connections = (connection_rate * SECONDS).round().max(1.0);
    let text = output_of(Command::new("httperf").args([
        "--hog",
        "--timeout=5",
        &format!("--server={}", address.ip()),
        &format!("--port={}", address.port()),
        &format!("--uri={}", target.path),
        &format!("--rate={connection_rate}"),
        &format!("--num-conns={connections}"),
        &format!("--num-calls={REQUESTS}"),
    ]))?;
    let number = |line: &str, word: &str| -> Result<f64, Box<dyn Error>> {
        let line =
            text.lines().find(|text| text.starts_with(line)).ok_or_else(|| format!("no {line} in {text}"))?;
        let value = line.split_whitespace().skip_while(|text| *text != word).nth(1);
        Ok(value.ok_or_else(|| format!("no {word} in {line}"))?.parse()?)
    };
    let offered = connections * f64::from(REQUESTS);
    let answered = number("Total:", "replies")?;
    let seconds = number("Total:", "test-duration")?;
    let mean = number("Reply time [ms]:", "response")? + number("Reply time [ms]:", "transfer")?;
    let times = Times { mean, p50: mean, p90: mean, p99: mean, p999: mean, max: mean };
    let failed = (offered - answered) as u64;
    let answered_rate = (answered / seconds).min(rate);
    Ok(Level {
        connection_rate: Some(connection_rate),
        offered_rate: rate,
        // The last request is due before the end of the last distance between two.
        answered_rate: if failed == 0 && seconds < SECONDS { rate } else { answered_rate },
        seconds: SECONDS,
        connections: connections as u64,
        established: connections as u64,
        offered: offered as u64,
        answered: answered as u64,
        errors: if failed > 0 { Faults::from([(Fault::System, failed)]) } else { Faults::new() },
        response_ms: Some(times),
        first_byte_ms: None,
        connect_ms: None,
        late_ms: None,
        received_rate: 0.0,
        body_len: None,
        open: Vec::new(),
        most_open: 0,
        seen: Seen::default(),
        limit: Limit::None,
        rounds: 1,
        answered_spread: [answered_rate; 2],
        p99_spread_ms: [mean; 2],
    })
}

/// Requests a second that wrk gets answered at most.
fn wrk(url: &str) -> Result<f64, Box<dyn Error>> {
    let text = output_of(Command::new("wrk").args(["-t", "1", "-c", "16", "-d", "3s", url]))?;
    let rate = text.lines().find_map(|line| line.trim().strip_prefix("Requests/sec:"));
    Ok(rate.ok_or("wrk says no rate")?.trim().parse()?)
}

/// A server with one thread that takes the same time for each request, one after the other in the order in which they came.
fn serve(listener: &TcpListener, service: Duration) -> std::io::Result<()> {
    let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    listener.set_nonblocking(true)?;
    epoll::add(&set, listener, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
    let (mut peers, mut number) = (BTreeMap::<u64, (TcpStream, Vec<u8>)>::new(), 0);
    let mut queue: VecDeque<(u64, bool)> = VecDeque::new();
    // When the request before was, or will have been, answered.
    let mut free = Instant::now();
    loop {
        let wait = if queue.is_empty() {
            Duration::from_millis(50)
        } else {
            free.saturating_duration_since(Instant::now())
        };
        let wait = rustix::event::Timespec { tv_sec: 0, tv_nsec: wait.as_nanos() as _ };
        let mut events = Vec::with_capacity(64);
        epoll::wait(&set, rustix::buffer::spare_capacity(&mut events), Some(&wait))?;
        for event in events {
            let of = event.data.u64();
            while of == 0
                && let Ok((peer, _)) = listener.accept()
            {
                number += 1;
                let data = epoll::EventData::new_u64(number);
                // One that is gone already, or that there is no room for, is let go.
                let is_taken = peer.set_nonblocking(true).is_ok()
                    && peer.set_nodelay(true).is_ok()
                    && epoll::add(&set, &peer, data, epoll::EventFlags::IN).is_ok();
                if !is_taken {
                    continue;
                }
                peers.insert(number, (peer, Vec::new()));
            }
            let Some((peer, text)) = peers.get_mut(&of) else { continue };
            let mut chunk = [0; 4_096];
            match peer.read(&mut chunk) {
                Ok(len @ 1..) => text.extend_from_slice(&chunk[..len]),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
                _ => {
                    peers.remove(&of);
                    continue;
                }
            }
            if text.ends_with(b"\r\n\r\n") {
                let closes = text.windows(17).any(|word| word == b"Connection: close");
                text.clear();
                if queue.is_empty() {
                    free = free.max(Instant::now()) + service;
                }
                queue.push_back((of, closes));
            }
        }
        while !queue.is_empty() && free <= Instant::now() {
            let Some((of, closes)) = queue.pop_front() else { break };
            let close = if closes { "Connection: close\r\n" } else { "" };
            let answer = format!("HTTP/1.1 200 OK\r\n{close}Content-Length: 3\r\n\r\nabc");
            let is_there =
                peers.get_mut(&of).is_some_and(|(peer, _)| peer.write_all(answer.as_bytes()).is_ok());
            if closes || !is_there {
                peers.remove(&of);
            }
            if !queue.is_empty() {
                free += service;
            }
        }
    }
}
