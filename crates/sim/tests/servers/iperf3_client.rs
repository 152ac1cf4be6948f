//! An iperf3 client that sends (or receives) on several streams for a while and exchanges results.

use linerate_sim::{App, Context, Instant};
use linerate_transport::{ConnId, ConnState, Event, Ready, SocketOptions, Source, Transport as _};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

/// See the module.
pub struct Iperf3Client {
    server: SocketAddr,
    parallel: usize,
    reverse: bool,
    time: Duration,
    control: Option<ConnId>,
    streams: Vec<ConnId>,
    /// Connections on which the cookie was sent.
    greeted: BTreeSet<ConnId>,
    input: Vec<u8>,
    started: bool,
    is_running: bool,
    ends_at: Option<Instant>,
    /// Bytes queued, or received with `reverse`.
    pub moved: u64,
    /// The server's results.
    pub results: Option<String>,
    pub is_done: bool,
}

impl Iperf3Client {
    pub fn new(server: SocketAddr, parallel: usize, reverse: bool, time: Duration) -> Iperf3Client {
        Iperf3Client {
            server,
            parallel,
            reverse,
            time,
            control: None,
            streams: Vec::new(),
            greeted: BTreeSet::new(),
            input: Vec::new(),
            started: false,
            is_running: false,
            ends_at: None,
            moved: 0,
            results: None,
            is_done: false,
        }
    }

    fn connect(&self, context: &mut Context<'_>) -> ConnId {
        let options = SocketOptions::default();
        context.stack.connect(context.owner, None, self.server, &options).expect("a connection")
    }

    fn say(&self, context: &mut Context<'_>, bytes: &[u8]) {
        context.stack.write(self.control.expect("connected"), bytes).expect("room");
    }

    fn message(text: &str) -> Vec<u8> {
        [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat()
    }

    /// Takes what the server says on the control connection.
    fn listen(&mut self, context: &mut Context<'_>) {
        let Some(control) = self.control else { return };
        let piece = context.stack.peek(control).to_vec();
        context.stack.consume(control, piece.len());
        self.input.extend(piece);
        while let Some(&state) = self.input.first() {
            // Between EXCHANGE_RESULTS and DISPLAY_RESULTS come the results.
            if state == 0 {
                let len = self.input.get(..4).map(|len| u32::from_be_bytes([len[0], len[1], len[2], len[3]]));
                let Some(text) = len.and_then(|len| self.input.get(4..4 + len as usize)) else { return };
                self.results = Some(String::from_utf8_lossy(text).into_owned());
                self.input.drain(..4 + len.unwrap_or(0) as usize);
                continue;
            }
            self.input.remove(0);
            self.act(context, state);
        }
    }

    fn act(&mut self, context: &mut Context<'_>, state: u8) {
        match state {
            9 => {
                let (time, parallel, reverse) = (self.time.as_secs(), self.parallel, self.reverse);
                let params = format!(
                    r#"{{"tcp":true,"omit":0,"time":{time},"parallel":{parallel},"reverse":{reverse},"len":131072}}"#
                );
                self.say(context, &Self::message(&params));
            }
            10 => {
                for _ in 0..self.parallel {
                    let stream = self.connect(context);
                    self.streams.push(stream);
                }
            }
            1 => {}
            2 => {
                self.is_running = true;
                self.ends_at = Some(context.now + self.time);
            }
            13 => {
                let of = |id: usize| {
                    format!(r#"{{"id":{id},"bytes":0,"retransmits":0,"jitter":0,"errors":0,"packets":0}}"#)
                };
                let ids = (0..self.parallel).map(|index| of(if index == 0 { 1 } else { index + 2 }));
                let streams = ids.collect::<Vec<_>>().join(",");
                let text = format!(
                    r#"{{"cpu_util_total":0,"cpu_util_user":0,"cpu_util_system":0,"sender_has_retransmits":0,"streams":[{streams}]}}"#
                );
                self.say(context, &Self::message(&text));
            }
            14 => {
                self.say(context, &[16]);
                self.is_done = true;
            }
            other => panic!("the server says {}", other.cast_signed()),
        }
    }

    fn pump(&mut self, context: &mut Context<'_>) {
        if !self.is_running {
            return;
        }
        for &stream in &self.streams {
            let data = [7; 16_384];
            while !self.reverse && context.stack.write(stream, &data).is_ok() {
                self.moved += data.len() as u64;
            }
            loop {
                let len = context.stack.peek(stream).len();
                if len == 0 {
                    break;
                }
                context.stack.consume(stream, len);
                self.moved += len as u64;
            }
            assert!(
                self.is_done || !matches!(context.stack.state(stream), ConnState::Closed(_)),
                "a stream ended"
            );
        }
    }
}

const COOKIE: &[u8] = b"abcdefghijklmnopqrstuvwxyz2345672345\0";

impl App for Iperf3Client {
    fn handle_event(&mut self, context: &mut Context<'_>, event: Event) {
        let Source::Conn(conn) = event.source else { return };
        if event.ready.contains(Ready::WRITABLE) && self.greeted.insert(conn) {
            context.stack.write(conn, COOKIE).expect("room");
        }
        if Some(conn) == self.control {
            self.listen(context);
        }
        self.pump(context);
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>) {
        if !self.started {
            self.started = true;
            self.control = Some(self.connect(context));
        }
        if self.ends_at.is_some_and(|at| at <= context.now) {
            self.ends_at = None;
            self.is_running = false;
            self.say(context, &[4]);
            for stream in &self.streams {
                context.stack.shutdown(*stream);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.started { self.ends_at } else { Some(Instant::ZERO) }
    }
}
