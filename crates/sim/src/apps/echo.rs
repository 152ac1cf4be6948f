//! A server that sends back what it receives, on any number of connections.

use super::{App, Context};
use linerate_transport::{ConnId, Event, ListenAddr, ListenOptions, ListenerId, Ready, Source, Transport};
use linerate_wire::units::Instant;
use std::collections::BTreeSet;

/// Bytes echoed in one piece.
const PIECE: usize = 16 << 10;

/// See the module. It closes when the peer has finished and everything was sent back.
#[derive(Debug)]
pub struct Echo {
    port: u16,
    options: ListenOptions,
    listener: Option<ListenerId>,
    finished: BTreeSet<ConnId>,
    started: bool,
    /// Bytes sent back.
    pub bytes: u64,
    /// Connections that have ended.
    pub closed: u64,
}

impl Echo {
    /// An echo server on this port.
    pub fn new(port: u16, options: ListenOptions) -> Echo {
        Echo { port, options, listener: None, finished: BTreeSet::new(), started: false, bytes: 0, closed: 0 }
    }

    fn pump(&mut self, stack: &mut linerate_stack::Stack, conn: ConnId) {
        // Each turn sends something, and the send buffer is bounded.
        while stack.sendable(conn) > 0 {
            let piece = stack.peek(conn);
            if piece.is_empty() {
                break;
            }
            let piece = piece[..piece.len().min(PIECE)].to_vec();
            if stack.write(conn, &piece).is_err() {
                return;
            }
            stack.consume(conn, piece.len());
            self.bytes += piece.len() as u64;
        }
        if self.finished.contains(&conn) && stack.readable(conn) == 0 {
            self.finished.remove(&conn);
            self.closed += 1;
            stack.close(conn);
        }
    }
}

impl App for Echo {
    fn handle_event(&mut self, context: &mut Context<'_>, event: Event) {
        match event.source {
            Source::Listener(listener) => {
                while let Some(conn) = context.stack.accept(listener) {
                    self.pump(context.stack, conn);
                }
            }
            Source::Conn(conn) => {
                if event.ready.contains(Ready::FINISHED) {
                    self.finished.insert(conn);
                }
                self.pump(context.stack, conn);
                if event.ready.contains(Ready::CLOSED) {
                    self.finished.remove(&conn);
                    self.closed += 1;
                    context.stack.close(conn);
                }
            }
            Source::Udp(_) => {}
        }
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>) {
        if !self.started {
            self.started = true;
            let addr = ListenAddr { ip: None, port: self.port };
            self.listener = context.stack.listen(context.owner, addr, &self.options).ok();
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (!self.started).then_some(Instant::ZERO)
    }
}
