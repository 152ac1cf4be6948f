//! The client as the owner of the loop sees it: events and deadlines to whom they concern.

use super::super::protocol::{COOKIE_LEN, State};
use super::error::ClientError;
use super::state::{Client, Key, Phase};
use crate::{Context, Service, StartError};
use alloc::vec::Vec;
use linerate_transport::{ConnId, Event, FileDone, Ready, Source};
use linerate_wire::units::Instant;

impl Client {
    fn handle_conn(&mut self, ctx: &mut Context<'_>, conn: ConnId, ready: Ready) {
        if self.control == Some(conn) {
            self.handle_control(ctx, conn, ready);
        } else if let Some(index) = self.conns.get(&conn).copied() {
            self.handle_stream_event(ctx, index, conn, ready);
        }
    }

    fn expire(&mut self, ctx: &mut Context<'_>, key: Key) {
        match key {
            Key::Phase => {
                let error = match self.phase {
                    Phase::Connecting => ClientError::ConnectTimeout,
                    Phase::Opening if self.is_udp() => ClientError::NoDatagram,
                    _ => ClientError::Silent,
                };
                self.end(ctx, Err(error));
            }
            Key::Hello => self.say_hello(ctx),
            Key::Omit => self.end_omit(ctx),
            Key::Interval => {
                self.close_interval(ctx);
                self.deadlines.set(Key::Interval, ctx.now + self.config.interval);
            }
            Key::End => self.stop(ctx),
            Key::Flush => self.stop_when_acknowledged(ctx),
            Key::Pump(index) => self.move_data(ctx, index),
            Key::Lost => {
                let error = self.lost.unwrap_or(ClientError::Silent);
                self.end(ctx, Err(error));
            }
        }
    }
}

impl Service for Client {
    fn start(&mut self, ctx: &mut Context<'_>) -> Result<(), StartError> {
        for (at, byte) in self.cookie[..COOKIE_LEN - 1].iter_mut().enumerate() {
            let alphabet = b"abcdefghijklmnopqrstuvwxyz234567";
            *byte = alphabet[((ctx.random)() >> (at % 8)) as usize % alphabet.len()];
        }
        match ctx.net.connect(self.config.owner, None, self.config.server, &self.config.socket) {
            Ok(conn) => {
                self.control = Some(conn);
                self.deadlines.set(Key::Phase, ctx.now + self.config.connect_timeout);
            }
            Err(why) => self.end(ctx, Err(ClientError::Open(why))),
        }
        Ok(())
    }

    fn handle_event(&mut self, ctx: &mut Context<'_>, event: Event) {
        match event.source {
            Source::Conn(conn) => self.handle_conn(ctx, conn, event.ready),
            Source::Udp(socket) => self.handle_udp(ctx, socket),
            Source::Listener(_) => {}
        }
    }

    fn handle_file(&mut self, _ctx: &mut Context<'_>, _done: FileDone) {}

    fn handle_timeout(&mut self, ctx: &mut Context<'_>) {
        // A stream that yields sets its deadline to now again: one round, so that others have their turn.
        let mut due = Vec::new();
        while let Some(key) = self.deadlines.pop_expired(ctx.now) {
            due.push(key);
        }
        for key in due {
            if self.phase != Phase::Over {
                self.expire(ctx, key);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.next()
    }

    /// Tells the server that the user ends the test, and ends it.
    fn drain(&mut self, ctx: &mut Context<'_>) {
        if self.phase == Phase::Over {
            return;
        }
        if let Some(control) = self.control.filter(|_| self.phase > Phase::Connecting) {
            // It may be lost: then there is nobody to tell.
            let _ = ctx.net.write(control, &[State::ClientTerminate.byte()]);
        }
        self.end(ctx, Err(ClientError::Interrupted));
    }

    fn is_idle(&self) -> bool {
        self.phase == Phase::Over
    }
}
