//! The control connection: what the server says, and our answers.

use super::super::protocol::{self, State};
use super::super::results::{self, View, cpu_share};
use super::error::ClientError;
use super::state::{Client, Key, Phase, reason};
use crate::Context;
use linerate_transport::{CloseReason, ConnId, Ready};

/// Length of the server's words on an error: state, `i_errno`, `errno`.
const ERROR_LEN: usize = 9;

impl Client {
    /// Sends bytes on the control connection; one that takes nothing is lost, and says so by an event.
    pub(super) fn send_control(&mut self, ctx: &mut Context<'_>, bytes: &[u8]) {
        let Some(control) = self.control else { return };
        for piece in bytes.chunks(32 << 10) {
            if ctx.net.write(control, piece).is_err() {
                let why = reason(ctx, control);
                return self.end(ctx, Err(self.control_lost(why)));
            }
        }
    }

    /// The server has so long for its next step.
    pub(super) fn expect(&mut self, ctx: &Context<'_>, phase: Phase) {
        self.phase = phase;
        self.deadlines.set(Key::Phase, ctx.now + self.config.answer_timeout);
    }

    pub(super) fn handle_control(&mut self, ctx: &mut Context<'_>, conn: ConnId, ready: Ready) {
        if self.phase == Phase::Connecting {
            if ready.contains(Ready::CLOSED) {
                let why = reason(ctx, conn);
                return self.end(ctx, Err(ClientError::Connect(why)));
            }
            if ready.contains(Ready::WRITABLE) {
                self.mss = ctx.net.info(conn).map_or(0, |info| info.send_mss);
                let cookie = self.cookie;
                self.expect(ctx, Phase::Greeted);
                self.send_control(ctx, &cookie);
            }
        }
        let most = 4 + self.longest_results();
        loop {
            let data = ctx.net.peek(conn);
            let take = data.len().min(most - self.input.len().min(most));
            if take == 0 {
                break;
            }
            self.input.extend_from_slice(&data[..take]);
            ctx.net.consume(conn, take);
        }
        while self.control.is_some() && self.step(ctx) {}
        if self.control.is_some() && ready.intersects(Ready::CLOSED | Ready::FINISHED) {
            let why = reason(ctx, conn);
            self.end(ctx, Err(self.control_lost(why)));
        }
    }

    /// What the end of the control connection means in this phase.
    fn control_lost(&self, why: CloseReason) -> ClientError {
        // What refuses a user leaves out `errno`, and closes.
        if let Some(error) = self.server_error(ERROR_LEN - 4) {
            return error;
        }
        if self.phase == Phase::Greeted { ClientError::TurnedAway(why) } else { ClientError::Control(why) }
    }

    /// Understands one message; false when there is none.
    fn step(&mut self, ctx: &mut Context<'_>) -> bool {
        // A length that is taken begins with a zero byte, and no state is zero: anything else is said in place of results.
        if self.phase == Phase::Results && self.input.first().is_none_or(|&byte| byte == 0) {
            return match protocol::message(&self.input, self.longest_results()) {
                Ok(None) => false,
                Ok(Some((text, taken))) => {
                    let results = serde_json::from_slice(text).ok();
                    self.input.drain(..taken);
                    match results {
                        Some(results) => {
                            self.results = Some(results);
                            self.expect(ctx, Phase::Shown);
                        }
                        None => self.end(ctx, Err(ClientError::Results)),
                    }
                    true
                }
                Err(_) => {
                    self.end(ctx, Err(ClientError::Results));
                    false
                }
            };
        }
        let Some(&byte) = self.input.first() else { return false };
        if byte == State::ServerError.byte() {
            if let Some(error) = self.server_error(ERROR_LEN) {
                self.end(ctx, Err(error));
            }
            return false;
        }
        self.input.remove(0);
        self.take_state(ctx, byte);
        true
    }

    /// The server's words on an error, where at least `len` bytes of them are here.
    fn server_error(&self, len: usize) -> Option<ClientError> {
        let is_error = self.input.first() == Some(&State::ServerError.byte()) && self.input.len() >= len;
        let word = |at: usize| {
            let word = self.input.get(at..at + 4).and_then(|word| word.first_chunk::<4>());
            word.map_or(0, |word| u32::from_be_bytes(*word))
        };
        is_error.then(|| ClientError::Server { code: word(1), errno: word(5) })
    }

    /// Longest results of the server that are taken, in bytes.
    fn longest_results(&self) -> usize {
        if self.params.server_output { protocol::MAX_RESULTS_WITH_TEXT } else { protocol::MAX_RESULTS }
    }

    fn take_state(&mut self, ctx: &mut Context<'_>, byte: u8) {
        const ASK: u8 = State::ParamExchange as u8;
        const OPEN: u8 = State::CreateStreams as u8;
        const START: u8 = State::TestStart as u8;
        const RUN: u8 = State::TestRunning as u8;
        const RESULTS: u8 = State::ExchangeResults as u8;
        const SHOW: u8 = State::DisplayResults as u8;
        match (byte, self.phase) {
            (ASK, Phase::Greeted) => self.send_params(ctx),
            (OPEN, Phase::Asked) => self.open_streams(ctx),
            (START, Phase::Ready) => {}
            // It has answered our last stream; that answer is still on its way to us.
            (START, Phase::Opening) if self.streams.len() == self.params.stream_count() => {
                self.finish_opening(ctx);
            }
            (RUN, Phase::Ready) => self.run(ctx),
            (RESULTS, Phase::Ending) => self.send_results(ctx),
            (SHOW, Phase::Shown) => {
                self.send_control(ctx, &[State::IperfDone.byte()]);
                if self.phase != Phase::Over {
                    self.end(ctx, Ok(()));
                }
            }
            _ if byte == State::ServerTerminate.byte() => {
                self.end(ctx, Err(ClientError::ServerTerminated));
            }
            _ if byte == State::AccessDenied.byte() => self.end(ctx, Err(ClientError::Busy)),
            _ => self.end(ctx, Err(ClientError::Protocol { state: byte.cast_signed() })),
        }
    }

    fn send_params(&mut self, ctx: &mut Context<'_>) {
        self.choose_len();
        let mut json = self.params.emit();
        if let Some(title) = &self.config.title {
            json["title"] = title.as_str().into();
        }
        let text = serde_json::to_vec(&json).unwrap_or_default();
        self.expect(ctx, Phase::Asked);
        self.send_control(ctx, &protocol::framed(&text));
    }

    /// Our results; the server's come after them.
    fn send_results(&mut self, ctx: &mut Context<'_>) {
        let view = View {
            is_udp: self.is_udp(),
            streams: &self.streams,
            duration_s: self.duration_s(),
            cpu: self.cpu_share,
        };
        let text = serde_json::to_vec(&results::view(&view)).unwrap_or_default();
        self.expect(ctx, Phase::Results);
        self.send_control(ctx, &protocol::framed(&text));
    }

    /// Notes the processor time that the test took on this side.
    pub(super) fn note_cpu(&mut self) {
        self.cpu_share = cpu_share(self.started, self.ended, self.cpu, (self.config.cpu_times)());
    }
}
