//! A client that asks at a rate of its own, whether or not answers come, and keeps how long each took.
//!
//! A client that waits for an answer before it asks again leaves out just those requests that a slow server would have
//! made wait (coordinated omission). Here a request has a time at which it is due, and its latency counts from then on,
//! though all connections may have been busy. With a rate of 0 each connection asks again at once: with one connection
//! that is a ping-pong. The client is the one of `linerate lab ramp`.

use anyhow::Result;
use linerate_lab::load::{self, Arrivals, milliseconds};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::time::Duration;

/// How long answers that are still missing at the end are waited for.
const GRACE: Duration = Duration::from_secs(1);

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

/// Asks, and tells how long the answers took. It does not sleep: it is to have a core of its own.
pub fn run(load: &Load) -> Result<Outcome> {
    let asked = load::Load {
        server: load.server,
        host: load.server.ip().to_string(),
        path: load.path.clone(),
        arrivals: Arrivals::Kept { connections: load.connections, rate: load.rate },
        time: load.time,
        timeout: load.time + GRACE,
        status: 200,
        sources: Vec::new(),
        threads: 1,
        spin: true,
    };
    let tally = load::run(&asked)?;
    let at = |quantile| milliseconds(&tally.response, quantile).unwrap_or(0.0) / 1e3;
    Ok(Outcome {
        requests: tally.answered,
        seconds: tally.elapsed.as_secs_f64(),
        errors: tally.failed(),
        p50: at(0.5),
        p99: at(0.99),
        p999: at(0.999),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
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
