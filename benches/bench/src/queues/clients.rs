//! Clients of a queue: a stack of ours that asks over some connections, each again as soon as it is answered.

use super::Work;
use anyhow::{Result, anyhow, bail};
use linerate_nic::Link;
use linerate_stack::Node;
use linerate_transport::{ConnId, ConnState, Engine as _, Owner, SocketOptions, Transport as _};
use linerate_wire::units::Instant;

/// Connections at once, where requests are short.
const MANY: usize = 32;
/// The same, where they are long.
const FEW: usize = 4;
/// Bytes of a long answer.
const LONG: usize = 1 << 20;

/// See the module.
pub struct Clients {
    /// Their stack.
    pub node: Node<Link>,
    /// Requests, connections or bytes that are done.
    pub done: u64,
    /// Answers that were not what they should be.
    pub errors: u64,
    work: Work,
    conns: Vec<Conn>,
}

/// A connection and what has come of its answer.
#[derive(Clone, Copy)]
struct Conn {
    id: Option<ConnId>,
    asked: bool,
    /// Bytes of head and body, once the head is there.
    len: Option<usize>,
    came: usize,
}

impl Clients {
    /// Clients that do this work over `node`.
    pub fn new(node: Node<Link>, work: Work) -> Clients {
        let count = if work == Work::Bytes { FEW } else { MANY };
        let conn = Conn { id: None, asked: false, len: None, came: 0 };
        Clients { node, done: 0, errors: 0, work, conns: vec![conn; count] }
    }

    /// Takes what came, asks again, and lets packets out.
    pub fn turn(&mut self, now: Instant) -> Result<()> {
        self.node.input(now)?;
        while self.node.stack.poll_event().is_some() {}
        for at in 0..self.conns.len() {
            let mut conn = self.conns[at];
            self.act(&mut conn)?;
            self.conns[at] = conn;
        }
        self.node.output(now)?;
        Ok(())
    }

    fn act(&mut self, conn: &mut Conn) -> Result<()> {
        let stack = &mut self.node.stack;
        let Some(id) = conn.id else {
            let to = "10.0.0.2:80".parse().map_err(|error| anyhow!("{error}"))?;
            // Without a port or a place it is tried again in the next turn.
            conn.id = stack.connect(Owner(9), None, to, &SocketOptions::default()).ok();
            return Ok(());
        };
        match stack.state(id) {
            ConnState::Connecting => return Ok(()),
            ConnState::Open { .. } => {}
            ConnState::Closed(reason) => bail!("a connection of the clients ended: {reason:?}"),
        }
        if !conn.asked {
            let request = match self.work {
                Work::Requests => "GET /f354.bin HTTP/1.1\r\nHost: bench\r\n\r\n".to_owned(),
                Work::Connections => {
                    "GET /f354.bin HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n".to_owned()
                }
                Work::Bytes => format!("GET /memory/{LONG} HTTP/1.1\r\nHost: bench\r\n\r\n"),
            };
            conn.asked = stack.write(id, request.as_bytes()).is_ok();
        }
        loop {
            let piece = stack.peek(id);
            let len = piece.len();
            if len == 0 {
                break;
            }
            if conn.len.is_none() {
                let end = piece.windows(4).position(|four| four == b"\r\n\r\n");
                let Some(end) = end.filter(|_| piece.starts_with(b"HTTP/1.1 200 ")) else {
                    bail!("an answer begins with '{}'", String::from_utf8_lossy(&piece[..len.min(80)]));
                };
                conn.len = Some(end + 4 + if self.work == Work::Bytes { LONG } else { 354 });
            }
            stack.consume(id, len);
            conn.came += len;
            if self.work == Work::Bytes {
                self.done += len as u64;
            }
        }
        if conn.len.is_none_or(|len| conn.came < len) {
            return Ok(());
        }
        if conn.len != Some(conn.came) {
            self.errors += 1;
        }
        let ends = self.work == Work::Connections;
        if ends && stack.state(id) != (ConnState::Open { finished: true }) {
            return Ok(());
        }
        if self.work != Work::Bytes {
            self.done += 1;
        }
        if ends {
            stack.close(id);
        }
        *conn = Conn { id: (!ends).then_some(id), asked: false, len: None, came: 0 };
        Ok(())
    }
}
