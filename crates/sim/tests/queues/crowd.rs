//! A client that opens many connections, one after the other, sends a pattern on each and wants it back.

use linerate_sim::{App, Context, Instant, Pattern};
use linerate_transport::{CloseReason, ConnId, ConnState, Event, SocketOptions, Source, Transport as _};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

/// Bytes written at once.
const PIECE: u64 = 4_096;

struct Client {
    pattern: Pattern,
    sent: u64,
    back: u64,
    is_shut_down: bool,
}

/// See the module.
pub struct Crowd {
    remote: SocketAddr,
    count: u64,
    every: Duration,
    len: u64,
    begun: u64,
    next_at: Instant,
    clients: BTreeMap<ConnId, Client>,
    /// Connections that got back all they sent, and ended in order.
    pub complete: u64,
    /// What went wrong with others.
    pub failures: Vec<String>,
}

impl Crowd {
    /// `count` connections to `remote`, one every so often from `start` on, each with so many bytes.
    pub fn new(remote: SocketAddr, count: u64, every: Duration, len: u64, start: Instant) -> Crowd {
        Crowd {
            remote,
            count,
            every,
            len,
            begun: 0,
            next_at: start,
            clients: BTreeMap::new(),
            complete: 0,
            failures: Vec::new(),
        }
    }

    pub fn is_done(&self) -> bool {
        self.complete + self.failures.len() as u64 == self.count
    }

    fn pump(&mut self, context: &mut Context<'_>, conn: ConnId) {
        let Some(client) = self.clients.get_mut(&conn) else { return };
        let stack = &mut *context.stack;
        while client.sent < self.len {
            let mut piece = vec![0; PIECE.min(self.len - client.sent) as usize];
            client.pattern.fill(client.sent, &mut piece);
            if stack.write(conn, &piece).is_err() {
                break;
            }
            client.sent += piece.len() as u64;
        }
        if client.sent == self.len && !client.is_shut_down {
            client.is_shut_down = true;
            stack.shutdown(conn);
        }
        let mut wrong = None;
        loop {
            let piece = stack.peek(conn);
            if piece.is_empty() {
                break;
            }
            wrong = wrong.or(client.pattern.check(client.back, piece).err());
            let len = piece.len();
            client.back += len as u64;
            stack.consume(conn, len);
        }
        let state = stack.state(conn);
        let is_back = client.back == self.len && matches!(state, ConnState::Open { finished: true });
        let is_closed = matches!(state, ConnState::Closed(_));
        if wrong.is_none() && !is_back && !is_closed {
            return;
        }
        let ends_well = is_back || state == ConnState::Closed(CloseReason::Done) && client.back == self.len;
        if wrong.is_none() && ends_well {
            self.complete += 1;
        } else {
            self.failures
                .push(format!("{} of {} back, {state:?}, wrong byte {wrong:?}", client.back, self.len));
        }
        self.clients.remove(&conn);
        stack.close(conn);
    }
}

impl App for Crowd {
    fn handle_event(&mut self, context: &mut Context<'_>, event: Event) {
        if let Source::Conn(conn) = event.source {
            self.pump(context, conn);
        }
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>) {
        while self.begun < self.count && self.next_at <= context.now {
            let options = SocketOptions::default();
            match context.stack.connect(context.owner, None, self.remote, &options) {
                Ok(conn) => {
                    let pattern = Pattern::new(self.begun);
                    let client = Client { pattern, sent: 0, back: 0, is_shut_down: false };
                    self.clients.insert(conn, client);
                }
                Err(error) => self.failures.push(format!("cannot connect: {error:?}")),
            }
            self.begun += 1;
            self.next_at += self.every;
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (self.begun < self.count).then_some(self.next_at)
    }
}
