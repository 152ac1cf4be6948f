//! HTTP requests for a page of 354 bytes, one after the other on each of several connections.

use super::client::Client;
use super::measured::Measured;
use linerate_rtl_sim::softcore::CLOCK_NS;
use linerate_transport::{ConnId, ConnState, Transport as _};

const PORT: u16 = 80;
const CONNECTIONS: usize = 8;
/// Clocks that are not counted at the beginning, and that are at least: 40 ms and 100 ms.
const BEFORE: u64 = 4_000_000;
const COUNTED: u64 = 10_000_000;
/// Clocks until it is given up.
const PATIENCE: u64 = 10 * COUNTED;
const BODY: usize = 354;

/// A connection, and what of the answer has come.
#[derive(Default)]
struct Asker {
    conn: Option<ConnId>,
    has_asked: bool,
    answer: Vec<u8>,
}

impl Asker {
    /// Goes on as far as it can; whether an answer is complete.
    fn step(&mut self, client: &mut Client, closing: bool) -> Result<bool, String> {
        let conn = match self.conn {
            Some(conn) => conn,
            None => *self.conn.insert(client.connect(PORT)?),
        };
        let stack = &mut client.node.stack;
        match stack.state(conn) {
            ConnState::Connecting => return Ok(false),
            ConnState::Closed(reason) => return Err(format!("a connection was closed: {reason:?}")),
            ConnState::Open { .. } => {}
        }
        if !self.has_asked {
            let how = if closing { "close" } else { "keep-alive" };
            let request = format!("GET /page.html HTTP/1.1\r\nHost: board\r\nConnection: {how}\r\n\r\n");
            stack.write(conn, request.as_bytes()).map_err(|error| format!("{error:?}"))?;
            self.has_asked = true;
        }
        while stack.readable(conn) > 0 {
            let piece = stack.peek(conn).to_vec();
            stack.consume(conn, piece.len());
            self.answer.extend(piece);
        }
        let head = self.answer.windows(4).position(|bytes| bytes == b"\r\n\r\n");
        if head.is_none_or(|head| self.answer.len() < head + 4 + BODY) {
            return Ok(false);
        }
        if !self.answer.starts_with(b"HTTP/1.1 200") {
            return Err(String::from_utf8_lossy(&self.answer).into_owned());
        }
        self.answer.clear();
        self.has_asked = false;
        if closing {
            stack.close(conn);
            self.conn = None;
        }
        Ok(true)
    }
}

/// Requests per second, from an answer on the first connection to another on it: connections are answered in turn, so that each has
/// about as many of those that are counted.
pub fn run(client: &mut Client, closing: bool) -> Result<Measured, String> {
    let mut askers: Vec<Asker> = std::iter::repeat_with(Asker::default).take(CONNECTIONS).collect();
    let first = client.core.clocks() + BEFORE;
    let (mut count, mut began) = (0, None);
    let (clocks, before) = loop {
        let mut answers = 0;
        let mut is_in_phase = false;
        for (at, asker) in askers.iter_mut().enumerate() {
            while asker.step(client, closing)? {
                answers += 1;
                is_in_phase |= at == 0;
            }
        }
        let now = client.core.clocks();
        match began {
            None if is_in_phase && now >= first => {
                began = Some((now, client.core.counters()));
                client.core.start_profile();
            }
            None => {}
            Some((began, before)) => {
                count += answers;
                if is_in_phase && now >= began + COUNTED {
                    break (now - began, before);
                }
            }
        }
        if now > first + PATIENCE {
            return Err(format!("{count} answers in {PATIENCE} clocks, and then none"));
        }
        while client.node.stack.poll_event().is_some() {}
        client.turn(Some(first + PATIENCE + 1))?;
    };
    let after = client.core.counters();
    let each = |at: usize| (after[at] - before[at]) as f64 / f64::from(count);
    let rate = f64::from(count) * 1e9 / (clocks * CLOCK_NS) as f64;
    let figure = format!(
        "{rate:.0} requests/s ({count} in {clocks} clocks over {CONNECTIONS} connections; of each {:.0} clocks, {:.0} instructions, {:.0} lines of instructions, \
         {:.0} of data, {:.0} stores)",
        clocks as f64 / f64::from(count),
        each(0),
        each(1),
        each(2),
        each(3),
    );
    Ok(Measured { figure, units: f64::from(count), profile: client.core.take_profile() })
}
