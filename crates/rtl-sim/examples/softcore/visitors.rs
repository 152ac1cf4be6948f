//! Connections that come when they are due, ask some times, and go: an open load over our own stack, in the board's time.

use super::client::Client;
use linerate_lab::load::{ANSWER_BINS, Arrivals, Fault, Load, Response, SAMPLES, Schedule, Tally, request};
use linerate_rtl_sim::softcore::CLOCK_NS;
use linerate_transport::{CloseReason, ConnId, ConnState, Transport as _};
use std::time::Duration;

/// A request that was sent.
#[derive(Clone, Copy)]
struct Asked {
    due_ns: u64,
    at_ns: u64,
    has_begun: bool,
}

/// A connection.
struct Visitor {
    conn: ConnId,
    /// When it was due, and its first request with it.
    due_ns: u64,
    stands: bool,
    /// Since when the next request is due.
    next_ns: u64,
    asked: Option<Asked>,
    /// Requests that are not answered.
    left: u32,
    response: Response,
}

/// All of them, and what they count.
pub struct Visitors<'a> {
    load: &'a Load,
    /// Requests of a connection.
    requests: u32,
    /// The clock at which the level began.
    began: u64,
    here: Vec<Visitor>,
    tally: Tally,
}

impl Visitor {
    /// When the request was due that it waits with, or for.
    fn waits_since(&self) -> u64 {
        self.asked.map_or(self.next_ns, |asked| asked.due_ns)
    }
}

/// Whether a visitor stays.
#[derive(PartialEq, Eq)]
enum Next {
    Stays,
    Leaves,
}

impl Visitors<'_> {
    /// Runs a level until everything that was due is answered or has failed: counts, and the share of the time in which something was
    /// due that the processor was awake.
    pub fn run(client: &mut Client, load: &Load) -> Result<(Tally, f64), String> {
        let Arrivals::Opened { requests, .. } = load.arrivals else {
            return Err("connections are to come and go".to_owned());
        };
        let began = client.core.clocks();
        let asleep = client.core.asleep_clocks();
        let mut visitors = Visitors { load, requests, began, here: Vec::new(), tally: Tally::default() };
        let mut schedule = Schedule::new(load.arrivals, load.time, 0, 1);
        let end_ns = load.time.as_nanos() as u64;
        let mut busy = None;
        loop {
            let now = visitors.now_ns(client);
            while let Some(due) = schedule.pop(now) {
                visitors.connect(client, due.at_ns, now)?;
            }
            visitors.step(client);
            visitors.sample(now, end_ns);
            if now >= end_ns && busy.is_none() {
                let clocks = client.core.clocks() - began;
                busy = Some(1.0 - (client.core.asleep_clocks() - asleep) as f64 / clocks as f64);
            }
            let next = schedule.peek_ns();
            let tally = &visitors.tally;
            if let (Some(busy), None) = (busy, next)
                && tally.offered == tally.answered + tally.failed()
            {
                visitors.tally.elapsed = Duration::from_nanos(now);
                // They wait for the server to close, and for nothing else.
                visitors.here.drain(..).for_each(|visitor| client.node.stack.close(visitor.conn));
                return Ok((visitors.tally, busy));
            }
            let end = (now < end_ns).then_some(end_ns);
            let wake = visitors.patience().chain(next).chain(end).min().ok_or("nothing is waited for")?;
            while client.node.stack.poll_event().is_some() {}
            client.turn(Some(began + wake.div_ceil(CLOCK_NS)))?;
        }
    }

    /// When each gives up.
    fn patience(&self) -> impl Iterator<Item = u64> {
        let timeout = self.load.timeout.as_nanos() as u64;
        self.here
            .iter()
            .filter(|visitor| visitor.left > 0)
            .map(move |visitor| visitor.waits_since() + timeout)
    }

    fn now_ns(&self, client: &Client) -> u64 {
        (client.core.clocks() - self.began) * CLOCK_NS
    }

    fn connect(&mut self, client: &mut Client, due_ns: u64, now: u64) -> Result<(), String> {
        let tally = &mut self.tally;
        tally.connections += 1;
        tally.offered += u64::from(self.requests);
        tally.late.saturating_record(now - due_ns);
        let conn = client.connect(self.load.server.port())?;
        let (left, response) = (self.requests, Response::default());
        self.here.push(Visitor { conn, due_ns, stands: false, next_ns: due_ns, asked: None, left, response });
        let open = self.here.iter().filter(|visitor| visitor.left > 0).count() as u64;
        tally.most_open = tally.most_open.max(open);
        Ok(())
    }

    fn sample(&mut self, now: u64, end_ns: u64) {
        let open = &mut self.tally.open;
        while open.len() < SAMPLES && now >= end_ns / SAMPLES as u64 * (open.len() as u64 + 1) {
            open.push(self.here.iter().filter(|visitor| visitor.left > 0).count() as u32);
        }
    }

    /// Every visitor goes on as far as it can.
    fn step(&mut self, client: &mut Client) {
        let now = self.now_ns(client);
        let mut here = std::mem::take(&mut self.here);
        here.retain_mut(|visitor| {
            let next = self.go_on(client, visitor, now);
            if next == Next::Leaves {
                client.node.stack.close(visitor.conn);
            }
            next == Next::Stays
        });
        self.here = here;
    }

    fn go_on(&mut self, client: &mut Client, visitor: &mut Visitor, now: u64) -> Next {
        match client.node.stack.state(visitor.conn) {
            ConnState::Connecting => return self.unless_late(visitor, now),
            ConnState::Closed(reason) => return self.fail(visitor, fault(reason)),
            ConnState::Open { .. } => {}
        }
        if !visitor.stands {
            visitor.stands = true;
            self.tally.established += 1;
            self.tally.connect.saturating_record(now - visitor.due_ns);
        }
        if let Some(next) = self.read(client, visitor, now) {
            return next;
        }
        if matches!(client.node.stack.state(visitor.conn), ConnState::Open { finished: true }) {
            return self.ended(visitor, now);
        }
        if visitor.asked.is_none() && visitor.left > 0 {
            let text = request(&self.load.path, &self.load.host, visitor.left == 1);
            if client.node.stack.write(visitor.conn, text.as_bytes()).is_err() {
                return self.fail(visitor, Fault::System);
            }
            self.tally.sent += text.len() as u64;
            self.tally.late.saturating_record(0);
            visitor.asked = Some(Asked { due_ns: visitor.next_ns, at_ns: now, has_begun: false });
        }
        self.unless_late(visitor, now)
    }

    /// Takes what has come of an answer; says so if the visitor's way is decided by it.
    fn read(&mut self, client: &mut Client, visitor: &mut Visitor, now: u64) -> Option<Next> {
        let stack = &mut client.node.stack;
        while stack.readable(visitor.conn) > 0 {
            let piece = stack.peek(visitor.conn);
            let len = piece.len();
            self.tally.received += len as u64;
            let Some(asked) = &mut visitor.asked else {
                return Some(self.fail(visitor, Fault::Malformed));
            };
            if !asked.has_begun {
                asked.has_begun = true;
                self.tally.first_byte.saturating_record(now - asked.at_ns);
            }
            let taken = visitor.response.take(piece);
            stack.consume(visitor.conn, len);
            match taken {
                Ok(None) => {}
                Ok(Some(used)) if used == len => self.whole(visitor, now),
                Ok(Some(_)) | Err(_) => return Some(self.fail(visitor, Fault::Malformed)),
            }
        }
        None
    }

    /// An answer is whole.
    fn whole(&mut self, visitor: &mut Visitor, now: u64) {
        let Some(asked) = visitor.asked.take() else { return };
        let tally = &mut self.tally;
        if visitor.response.status() == self.load.status {
            tally.answered += 1;
            tally.response.saturating_record(now - asked.due_ns);
            tally.body_len = Some(visitor.response.body_len());
            let bin = u128::from(now) * ANSWER_BINS as u128 / self.load.time.as_nanos().max(1);
            if let Some(count) = tally.answers.get_mut(bin as usize) {
                *count += 1;
            }
        } else {
            tally.fail(Fault::Status, 1);
        }
        visitor.left -= 1;
        visitor.next_ns = now;
        visitor.response.clear();
    }

    /// The server has finished, and all was read that it sent.
    fn ended(&mut self, visitor: &mut Visitor, now: u64) -> Next {
        let has_begun = visitor.asked.is_some_and(|asked| asked.has_begun);
        if has_begun && visitor.response.end() {
            self.whole(visitor, now);
        }
        self.fail(visitor, if has_begun { Fault::ShortBody } else { Fault::Closed })
    }

    /// What is not answered has failed.
    fn fail(&mut self, visitor: &mut Visitor, fault: Fault) -> Next {
        self.tally.fail(fault, std::mem::take(&mut visitor.left).into());
        Next::Leaves
    }

    fn unless_late(&mut self, visitor: &mut Visitor, now: u64) -> Next {
        let due_ns = visitor.waits_since();
        if visitor.left == 0 || u128::from(now - due_ns) < self.load.timeout.as_nanos() {
            return Next::Stays;
        }
        // It has taken at least so long.
        self.tally.response.saturating_record(now - due_ns);
        self.fail(visitor, Fault::Timeout)
    }
}

/// What the end of a connection means for who waits for an answer.
fn fault(reason: CloseReason) -> Fault {
    match reason {
        CloseReason::Done => Fault::Closed,
        CloseReason::Reset => Fault::Reset,
        CloseReason::Refused => Fault::Refused,
        CloseReason::Unreachable => Fault::Unreachable,
        CloseReason::TimedOut | CloseReason::KeepAlive => Fault::Timeout,
        CloseReason::NoMemory => Fault::NoDescriptor,
        CloseReason::File | CloseReason::Stale => Fault::System,
    }
}
