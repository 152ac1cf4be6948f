//! The victim's service: a server on port 80 that sends everybody the same object, as a file server does.

use linerate_sim::{App, Context};
use linerate_transport::{
    AcceptBacklog, ConnId, Event, FileId, FileRange, ListenAddr, ListenOptions, ListenerId, Payload, Ready,
    SendError, Source, Transport,
};
use linerate_wire::units::Instant;
use std::collections::BTreeSet;

/// The service's port.
pub const PORT: u16 = 80;

/// See the module.
pub struct Server {
    /// Bytes of the object.
    object: u64,
    listener: Option<ListenerId>,
    started: bool,
    /// Accepted, and nothing queued: there was no room.
    waiting: BTreeSet<ConnId>,
}

impl Server {
    pub fn new(object: u64) -> Server {
        Server { object, listener: None, started: false, waiting: BTreeSet::new() }
    }

    fn serve(&mut self, context: &mut Context<'_>, conn: ConnId) {
        let range = FileRange { file: FileId::new(0, 0), offset: 0, len: self.object };
        match context.stack.send(conn, Payload::File(range)) {
            Ok(()) => context.stack.shutdown(conn),
            Err(SendError::Full) => {
                self.waiting.insert(conn);
                return;
            }
            Err(_) => {}
        }
        self.waiting.remove(&conn);
    }
}

impl App for Server {
    fn handle_event(&mut self, context: &mut Context<'_>, event: Event) {
        match event.source {
            Source::Listener(listener) => {
                while let Some(conn) = context.stack.accept(listener) {
                    self.serve(context, conn);
                }
            }
            Source::Conn(conn) => {
                let received = context.stack.readable(conn);
                context.stack.consume(conn, received);
                if event.ready.contains(Ready::CLOSED) {
                    self.waiting.remove(&conn);
                    context.stack.close(conn);
                } else if self.waiting.contains(&conn) {
                    self.serve(context, conn);
                }
            }
            Source::Udp(_) => {}
        }
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>) {
        self.started = true;
        let options = ListenOptions { backlog: AcceptBacklog(256), ..ListenOptions::default() };
        let addr = ListenAddr { ip: None, port: PORT };
        self.listener = context.stack.listen(context.owner, addr, &options).ok();
        assert!(self.listener.is_some(), "port {PORT} is free");
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (!self.started).then_some(Instant::ZERO)
    }
}
