//! The control connection: messages understood, states announced.

use super::params::{Params, Protocol};
use super::protocol::{self, ErrorCode, State};
use super::results;
use super::server::{Key, Server};
use super::session::{Phase, Test};
use crate::Context;
use linerate_transport::Ready;

impl Server {
    /// Sends a state byte. A control connection that takes no byte is dead.
    pub(super) fn say(&mut self, ctx: &mut Context<'_>, id: u32, state: State) {
        self.send_control(ctx, id, &[state.byte()]);
    }

    pub(super) fn send_control(&mut self, ctx: &mut Context<'_>, id: u32, bytes: &[u8]) {
        let Some(test) = self.tests.get(&id) else { return };
        let control = test.control;
        for piece in bytes.chunks(32 << 10) {
            if ctx.net.write(control, piece).is_err() {
                self.end(ctx, id, "its control connection takes nothing");
                return;
            }
        }
    }

    pub(super) fn fail(&mut self, ctx: &mut Context<'_>, id: u32, code: ErrorCode) {
        self.send_control(ctx, id, &protocol::error_message(code));
        self.end(ctx, id, "its messages are wrong");
    }

    pub(super) fn handle_control(&mut self, ctx: &mut Context<'_>, id: u32, ready: Ready) {
        let Some(test) = self.tests.get_mut(&id) else { return };
        let most = match test.phase {
            Phase::Results => 4 + protocol::MAX_RESULTS,
            _ => 4 + protocol::MAX_PARAMS,
        };
        loop {
            let data = ctx.net.peek(test.control);
            let take = data.len().min(most - test.input.len().min(most));
            if take == 0 {
                break;
            }
            test.input.extend_from_slice(&data[..take]);
            ctx.net.consume(test.control, take);
        }
        while self.step(ctx, id) {}
        // What came before the end still counts: a client may say goodbye and close at once.
        if ready.intersects(Ready::CLOSED | Ready::FINISHED) && self.tests.contains_key(&id) {
            self.end(ctx, id, "the client is gone");
        }
    }

    /// Understands one message of the control connection; false when there is none.
    pub(super) fn step(&mut self, ctx: &mut Context<'_>, id: u32) -> bool {
        let Some(test) = self.tests.get_mut(&id) else { return false };
        match test.phase {
            Phase::Params => match protocol::message(&test.input, protocol::MAX_PARAMS) {
                Ok(None) => false,
                Ok(Some((text, taken))) => {
                    let params = Params::parse(text);
                    test.input.drain(..taken);
                    match params {
                        Ok(params) => self.take_params(ctx, id, params),
                        Err(code) => self.fail(ctx, id, code),
                    }
                    true
                }
                Err(_) => {
                    self.fail(ctx, id, ErrorCode::Params);
                    false
                }
            },
            Phase::Results => match protocol::message(&test.input, protocol::MAX_RESULTS) {
                Ok(None) => false,
                Ok(Some((_, taken))) => {
                    test.input.drain(..taken);
                    self.send_results(ctx, id);
                    true
                }
                Err(_) => {
                    self.fail(ctx, id, ErrorCode::Results);
                    false
                }
            },
            _ if test.input.is_empty() => false,
            phase => {
                let byte = test.input.remove(0);
                self.take_state(ctx, id, phase, byte);
                true
            }
        }
    }

    pub(super) fn take_state(&mut self, ctx: &mut Context<'_>, id: u32, phase: Phase, byte: u8) {
        if byte == State::TestEnd.byte() && phase == Phase::Running {
            self.stop_data(ctx, id);
        } else if byte == State::IperfDone.byte() && phase == Phase::Goodbye {
            self.counters.completed += 1;
            self.end(ctx, id, "done");
        } else if byte == State::ClientTerminate.byte() {
            self.end(ctx, id, "the client was interrupted");
        } else {
            self.end(ctx, id, "a state came that does not fit");
        }
    }

    pub(super) fn take_params(&mut self, ctx: &mut Context<'_>, id: u32, params: Params) {
        let Some(test) = self.tests.get_mut(&id) else { return };
        test.params = Some(params);
        test.phase = Phase::Streams { asked: false };
        self.deadlines.set(Key::Phase(id), ctx.now + self.config.streams_timeout);
        self.ask_for_streams(ctx, id);
    }

    /// Tells the client to open its streams, unless another UDP test from its address is doing that now.
    pub(super) fn ask_for_streams(&mut self, ctx: &mut Context<'_>, id: u32) {
        let Some(test) = self.tests.get(&id) else { return };
        let ip = test.client.ip();
        if is_udp(test) && self.opening_udp(ip).is_some() {
            return;
        }
        if let Some(test) = self.tests.get_mut(&id) {
            test.phase = Phase::Streams { asked: true };
        }
        self.offer_window(ctx);
        self.say(ctx, id, State::CreateStreams);
    }

    /// The UDP test from `ip` whose streams are being opened.
    pub(super) fn opening_udp(&self, ip: core::net::IpAddr) -> Option<u32> {
        let opening = |test: &Test| {
            test.client.ip() == ip && is_udp(test) && test.phase == Phase::Streams { asked: true }
        };
        self.tests.iter().find(|(_, test)| opening(test)).map(|(id, _)| *id)
    }

    pub(super) fn send_results(&mut self, ctx: &mut Context<'_>, id: u32) {
        let Some(test) = self.tests.get_mut(&id) else { return };
        let message = protocol::framed(&results::emit(test, (self.config.cpu_times)()));
        test.phase = Phase::Goodbye;
        self.deadlines.set(Key::Phase(id), ctx.now + self.config.results_timeout);
        self.send_control(ctx, id, &message);
        self.say(ctx, id, State::DisplayResults);
    }
}

pub(super) fn is_udp(test: &Test) -> bool {
    test.params.as_ref().is_some_and(|params| params.protocol == Protocol::Udp)
}
