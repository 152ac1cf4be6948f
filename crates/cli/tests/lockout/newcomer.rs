//! A newcomer with an errand: what it wants, and when it had it.

use linerate_sim::{App, Context};
use linerate_transport::{ConnId, ConnState, Event, Ready, SocketOptions, Source, Transport};
use linerate_wire::units::Instant;
use std::net::{IpAddr, SocketAddr};

/// What a newcomer wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Errand {
    /// A kilobyte by HTTP.
    Http,
    /// A login by FTP, a data connection, and a kilobyte over it.
    Ftp,
    /// An iperf3 test that begins.
    Iperf3,
}

impl Errand {
    /// All of them.
    pub const ALL: [Errand; 3] = [Errand::Http, Errand::Ftp, Errand::Iperf3];

    fn port(self) -> u16 {
        match self {
            Errand::Http => 80,
            Errand::Ftp => 21,
            Errand::Iperf3 => 5201,
        }
    }
}

const COOKIE: &[u8; 37] = b"abcdefghijklmnopqrstuvwxyz234567abcd\0";
const PARAMS: &[u8] = br#"{"tcp":true,"time":1,"parallel":1,"len":1000}"#;

/// See the module.
pub struct Newcomer {
    errand: Errand,
    server: IpAddr,
    at: Instant,
    control: Option<ConnId>,
    data: Option<ConnId>,
    input: Vec<u8>,
    received: usize,
    step: usize,
    /// When it had what it wanted, or what went wrong.
    pub outcome: Option<Result<Instant, String>>,
}

impl Newcomer {
    /// One that comes at this time.
    pub fn new(errand: Errand, server: IpAddr, at: Instant) -> Newcomer {
        Newcomer {
            errand,
            server,
            at,
            control: None,
            data: None,
            input: Vec::new(),
            received: 0,
            step: 0,
            outcome: None,
        }
    }

    fn dial(&mut self, context: &mut Context<'_>, port: u16) -> Option<ConnId> {
        let to = SocketAddr::new(self.server, port);
        match context.stack.connect(context.owner, None, to, &SocketOptions::default()) {
            Ok(conn) => Some(conn),
            Err(error) => {
                self.outcome = Some(Err(format!("{error:?}")));
                None
            }
        }
    }

    fn say(&mut self, context: &mut Context<'_>, bytes: &[u8]) {
        if let Some(control) = self.control {
            let _ = context.stack.write(control, bytes);
            self.input.clear();
            self.step += 1;
        }
    }

    fn end(&mut self, context: &mut Context<'_>, outcome: Result<Instant, String>) {
        self.outcome = Some(outcome);
        for conn in [self.control.take(), self.data.take()].into_iter().flatten() {
            context.stack.abort(conn);
        }
    }

    fn advance(&mut self, context: &mut Context<'_>) {
        match self.errand {
            Errand::Http => self.advance_http(context),
            Errand::Ftp => self.advance_ftp(context),
            Errand::Iperf3 => self.advance_iperf3(context),
        }
    }

    fn advance_http(&mut self, context: &mut Context<'_>) {
        if self.step == 0 {
            return self.say(context, b"GET /memory/1K HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        }
        let head = self.input.windows(4).position(|four| four == b"\r\n\r\n");
        if head.is_some_and(|head| self.input.len() >= head + 4 + 1_024) {
            let is_right = self.input.starts_with(b"HTTP/1.1 200");
            self.end(context, if is_right { Ok(context.now) } else { Err("not 200".into()) });
        }
    }

    fn advance_ftp(&mut self, context: &mut Context<'_>) {
        let text = String::from_utf8_lossy(&self.input).into_owned();
        if !text.ends_with("\r\n") {
            return;
        }
        match (self.step, text.lines().last().and_then(|line| line.get(..3))) {
            (0, Some("220")) => self.say(context, b"USER anonymous\r\n"),
            (1, Some("331")) => self.say(context, b"PASS x\r\n"),
            (2, Some("230")) => self.say(context, b"TYPE I\r\n"),
            (3, Some("200")) => self.say(context, b"EPSV\r\n"),
            (4, Some("229")) => {
                let port = text.split('|').nth(3).and_then(|port| port.parse().ok());
                let Some(port) = port else { return self.end(context, Err(text)) };
                self.data = self.dial(context, port);
                self.say(context, b"RETR memory/1K\r\n");
            }
            (5, Some("150")) => {}
            (5, Some("226")) if self.received == 1_024 => self.end(context, Ok(context.now)),
            (5, Some("226")) => {}
            _ => self.end(context, Err(text)),
        }
    }

    fn advance_iperf3(&mut self, context: &mut Context<'_>) {
        match (self.step, self.input.as_slice()) {
            (0, []) => self.say(context, COOKIE),
            (1, [9]) => {
                let mut message = (PARAMS.len() as u32).to_be_bytes().to_vec();
                message.extend_from_slice(PARAMS);
                self.say(context, &message);
            }
            (2, [10]) => {
                self.data = self.dial(context, self.errand.port());
                self.say(context, b"");
            }
            (3, [1, 2]) => self.end(context, Ok(context.now)),
            (1 | 2, []) | (3, [] | [1]) => {}
            (_, other) => {
                let text = format!("{other:?}");
                self.end(context, Err(text));
            }
        }
    }

    fn handle_data(&mut self, context: &mut Context<'_>, conn: ConnId, ready: Ready) {
        if self.errand == Errand::Iperf3 && ready.contains(Ready::WRITABLE) && self.received == 0 {
            self.received = 1;
            let _ = context.stack.write(conn, COOKIE);
        }
        let len = context.stack.readable(conn);
        context.stack.consume(conn, len);
        self.received += len;
        if self.errand == Errand::Ftp {
            if ready.intersects(Ready::FINISHED) {
                context.stack.shutdown(conn);
            }
            if !self.input.is_empty() {
                self.advance(context);
            }
        }
    }
}

impl App for Newcomer {
    fn handle_event(&mut self, context: &mut Context<'_>, event: Event) {
        let Source::Conn(conn) = event.source else { return };
        if self.data == Some(conn) {
            return self.handle_data(context, conn, event.ready);
        }
        if self.control != Some(conn) {
            return;
        }
        loop {
            let piece = context.stack.peek(conn).to_vec();
            if piece.is_empty() {
                break;
            }
            context.stack.consume(conn, piece.len());
            self.input.extend_from_slice(&piece);
        }
        if matches!(context.stack.state(conn), ConnState::Open { .. }) {
            self.advance(context);
        }
        if self.outcome.is_none() && event.ready.intersects(Ready::CLOSED | Ready::FINISHED) {
            let state = context.stack.state(conn);
            self.end(context, Err(format!("the server ended it in step {}: {state:?}", self.step)));
        }
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>) {
        if self.control.is_none() && self.outcome.is_none() && context.now >= self.at {
            self.control = self.dial(context, self.errand.port());
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (self.control.is_none() && self.outcome.is_none()).then_some(self.at)
    }
}
