//! An FTP client that logs in, fetches or stores one file over a passive connection, and says goodbye.

use linerate_sim::{App, Context, Instant, Pattern};
use linerate_transport::{ConnId, ConnState, Event, SocketOptions, Source, Transport as _};
use std::net::SocketAddr;

/// What the client does.
#[derive(Clone, Debug)]
pub enum Job {
    /// Fetches so many bytes of pattern 0.
    Fetch(u64),
    /// Stores so many bytes of pattern 0 under this name.
    Store(String, u64),
}

/// See the module.
pub struct FtpClient {
    server: SocketAddr,
    job: Job,
    start: Instant,
    started: bool,
    control: Option<ConnId>,
    data: Option<ConnId>,
    line: Vec<u8>,
    /// Bytes that were fetched, or queued to be stored.
    pub moved: u64,
    has_data_ended: bool,
    may_store: bool,
    is_shut_down: bool,
    /// Codes of the replies so far.
    pub replies: Vec<u16>,
    /// What went wrong.
    pub error: Option<String>,
}

impl FtpClient {
    pub fn new(server: SocketAddr, job: Job, start: Instant) -> FtpClient {
        FtpClient {
            server,
            job,
            start,
            started: false,
            control: None,
            data: None,
            line: Vec::new(),
            moved: 0,
            has_data_ended: false,
            may_store: false,
            is_shut_down: false,
            replies: Vec::new(),
            error: None,
        }
    }

    pub fn is_done(&self) -> bool {
        self.error.is_some() || self.replies.last() == Some(&221)
    }

    fn len(&self) -> u64 {
        match self.job {
            Job::Fetch(len) | Job::Store(_, len) => len,
        }
    }

    fn fail(&mut self, what: String) {
        self.error.get_or_insert(what);
    }

    fn say(&mut self, context: &mut Context<'_>, line: &str) {
        let Some(control) = self.control else { return };
        if let Err(error) = context.stack.write(control, format!("{line}\r\n").as_bytes()) {
            self.fail(format!("{line}: {error:?}"));
        }
    }

    /// Answers a reply of the server.
    fn reply(&mut self, context: &mut Context<'_>, text: &str) {
        let code = text.get(..3).and_then(|code| code.parse().ok()).unwrap_or(0);
        self.replies.push(code);
        match code {
            220 => self.say(context, "USER anna"),
            331 => self.say(context, "PASS secret"),
            230 => self.say(context, "TYPE I"),
            200 => self.say(context, "EPSV"),
            229 => self.open_data(context, text),
            150 => self.may_store = true,
            226 if self.moved == self.len() && self.has_data_ended => self.say(context, "QUIT"),
            226 => {}
            221 => {}
            _ => self.fail(text.to_string()),
        }
    }

    fn open_data(&mut self, context: &mut Context<'_>, text: &str) {
        let port = text.split('|').nth(3).and_then(|port| port.parse().ok()).unwrap_or(0);
        let remote = SocketAddr::new(self.server.ip(), port);
        match context.stack.connect(context.owner, None, remote, &SocketOptions::default()) {
            Ok(data) => self.data = Some(data),
            Err(error) => self.fail(format!("{remote}: {error:?}")),
        }
        let line = match &self.job {
            Job::Fetch(_) => "RETR /big".to_string(),
            Job::Store(name, _) => format!("STOR {name}"),
        };
        self.say(context, &line);
    }

    fn read_control(&mut self, context: &mut Context<'_>) {
        let Some(control) = self.control else { return };
        loop {
            let piece = context.stack.peek(control).to_vec();
            if piece.is_empty() {
                break;
            }
            context.stack.consume(control, piece.len());
            for byte in piece {
                self.line.push(byte);
                if byte == b'\n' {
                    let line = String::from_utf8_lossy(&std::mem::take(&mut self.line)).into_owned();
                    self.reply(context, &line);
                }
            }
        }
        if matches!(context.stack.state(control), ConnState::Closed(_)) && !self.is_done() {
            self.fail("the control connection ended".to_string());
        }
    }

    fn move_data(&mut self, context: &mut Context<'_>) {
        let Some(data) = self.data else { return };
        let pattern = Pattern::new(0);
        match self.job {
            Job::Fetch(_) => loop {
                let piece = context.stack.peek(data);
                if piece.is_empty() {
                    break;
                }
                if let Err(at) = pattern.check(self.moved, piece) {
                    self.error.get_or_insert(format!("byte {at} is wrong"));
                }
                let len = piece.len();
                context.stack.consume(data, len);
                self.moved += len as u64;
            },
            Job::Store(_, len) => {
                while self.may_store && self.moved < len {
                    let mut piece = vec![0; (len - self.moved).min(8_192) as usize];
                    pattern.fill(self.moved, &mut piece);
                    if context.stack.write(data, &piece).is_err() {
                        break;
                    }
                    self.moved += piece.len() as u64;
                }
                if self.moved == len && !self.is_shut_down {
                    self.is_shut_down = true;
                    context.stack.shutdown(data);
                }
            }
        }
        let state = context.stack.state(data);
        let ended = matches!(state, ConnState::Open { finished: true } | ConnState::Closed(_));
        if ended && context.stack.readable(data) == 0 {
            self.has_data_ended = true;
            self.data = None;
            context.stack.close(data);
            // The reply may have come before.
            if self.replies.last() == Some(&226) {
                self.say(context, "QUIT");
            }
        }
    }
}

impl App for FtpClient {
    fn handle_event(&mut self, context: &mut Context<'_>, event: Event) {
        match event.source {
            Source::Conn(conn) if Some(conn) == self.control => self.read_control(context),
            Source::Conn(_) => self.move_data(context),
            _ => {}
        }
        self.move_data(context);
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>) {
        self.started = true;
        match context.stack.connect(context.owner, None, self.server, &SocketOptions::default()) {
            Ok(control) => self.control = Some(control),
            Err(error) => self.fail(format!("{}: {error:?}", self.server)),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (!self.started).then_some(self.start)
    }
}
