//! The test itself: data moves, intervals end, and then the test.

use super::super::protocol::{COOKIE_LEN, State};
use super::super::stream::{Carrier, Pause, Stream};
use super::super::udp::MAX_HELLO;
use super::error::ClientError;
use super::state::{Client, ClientEvent, Key, Phase, reason};
use crate::Context;
use core::time::Duration;
use linerate_transport::{ConnId, Ready, UdpId};

/// Most datagrams taken in one call.
const DATAGRAM_BUDGET: usize = 256;
/// How long the server has to say why a stream is lost.
const LOST_GRACE: Duration = Duration::from_millis(500);
/// Longest that the end of a test of known length waits for acknowledgements, and how often it looks for them.
const FLUSH_TIME: Duration = Duration::from_secs(10);
const FLUSH_INTERVAL: Duration = Duration::from_millis(1);
/// An interval that is shorter is not shown by itself.
const LEAST_INTERVAL: Duration = Duration::from_millis(100);

impl Client {
    pub(super) fn run(&mut self, ctx: &mut Context<'_>) {
        let now = ctx.now;
        self.phase = Phase::Running;
        self.deadlines.clear(Key::Phase);
        (self.started, self.counted_from, self.interval_from) = (now, now, now);
        self.cpu = (self.config.cpu_times)();
        self.events.push_back(ClientEvent::Started(self.connected.clone()));
        for stream in &mut self.streams {
            stream.start(now, &self.params);
        }
        self.omits = !self.params.omit.is_zero();
        if self.omits {
            self.deadlines.set(Key::Omit, now + self.params.omit);
        }
        if self.params.total_bytes().is_none() {
            self.deadlines.set(Key::End, now + self.params.omit + self.params.time);
        }
        if !self.config.interval.is_zero() {
            self.deadlines.set(Key::Interval, now + self.config.interval);
        }
        for index in 0..self.streams.len() {
            self.move_data(ctx, index);
        }
    }

    pub(super) fn handle_stream_event(
        &mut self,
        ctx: &mut Context<'_>,
        index: usize,
        conn: ConnId,
        ready: Ready,
    ) {
        match self.phase {
            Phase::Opening => self.handle_opening(ctx, index, conn, ready),
            Phase::Ready | Phase::Running => {
                self.move_data(ctx, index);
                if self.phase <= Phase::Running && Stream::is_over(ready) {
                    let why = reason(ctx, conn);
                    self.note_lost(ctx, ClientError::StreamLost(why));
                }
            }
            // What still comes counts no more, but the server may have to get rid of it.
            _ => {
                let readable = ctx.net.readable(conn);
                ctx.net.consume(conn, readable);
            }
        }
    }

    /// A stream is gone. Whoever stops it in order says why on the control connection, whose words may come later.
    pub(super) fn note_lost(&mut self, ctx: &Context<'_>, error: ClientError) {
        if self.lost.is_none() {
            self.lost = Some(error);
            self.deadlines.set(Key::Lost, ctx.now + LOST_GRACE);
        }
    }

    /// Sends what is due on a stream, or takes what has come.
    pub(super) fn move_data(&mut self, ctx: &mut Context<'_>, index: usize) {
        if self.phase != Phase::Running {
            return;
        }
        let left = self.left();
        let Some(stream) = self.streams.get_mut(index) else { return };
        if !stream.sends {
            match stream.carrier {
                Carrier::Tcp(_) => stream.swallow(ctx),
                Carrier::Udp { socket, .. } => self.handle_udp(ctx, socket),
            }
        } else {
            match stream.pump(ctx, &self.params, left) {
                Pause::Full | Pause::Over => {
                    self.deadlines.clear(Key::Pump(index));
                }
                Pause::Until(at) => self.deadlines.set(Key::Pump(index), at),
            }
        }
        self.stop_if_complete(ctx);
    }

    /// Bytes that are still to be sent where a length was given; what was sent in the omit time does not count.
    fn left(&self) -> Option<u64> {
        let total = self.params.total_bytes()?;
        if self.omits {
            return None;
        }
        Some(total.saturating_sub(self.moved_bytes().0))
    }

    fn stop_if_complete(&mut self, ctx: &mut Context<'_>) {
        let Some(total) = self.params.total_bytes().filter(|_| !self.omits) else { return };
        let (sent, received) = self.moved_bytes();
        if self.phase == Phase::Running && sent.max(received) >= total && self.flush_until.is_none() {
            self.flush_until = Some(ctx.now + FLUSH_TIME);
            self.stop_when_acknowledged(ctx);
        }
    }

    /// The original's server forgets what has not arrived when the end is told. So the end waits until all is acknowledged.
    pub(super) fn stop_when_acknowledged(&mut self, ctx: &mut Context<'_>) {
        let waits = |stream: &Stream| match stream.carrier {
            Carrier::Tcp(conn) if stream.sends => {
                let acked = ctx.net.info(conn).map_or(u64::MAX, |info| info.bytes_acked);
                acked < stream.bytes + COOKIE_LEN as u64
            }
            _ => false,
        };
        let is_over = self.flush_until.is_none_or(|until| until <= ctx.now);
        if is_over || !self.streams.iter().any(waits) {
            return self.stop(ctx);
        }
        self.deadlines.set(Key::Flush, ctx.now + FLUSH_INTERVAL);
    }

    pub(super) fn handle_udp(&mut self, ctx: &mut Context<'_>, socket: UdpId) {
        let Some(index) = self.sockets.get(&socket).copied() else { return };
        for _ in 0..DATAGRAM_BUDGET {
            let Some(datagram) = ctx.net.udp_peek(socket) else { return };
            let is_ours = datagram.remote == self.config.server;
            let is_hello = datagram.data.len() < MAX_HELLO;
            let may_count = matches!(self.phase, Phase::Ready | Phase::Running);
            if let Some(stream) = self.streams.get_mut(index)
                && is_ours
                && !is_hello
                && may_count
                && !stream.sends
            {
                stream.datagram(ctx.now, datagram.data, self.params.counters_64bit);
            }
            ctx.net.udp_consume(socket);
            if is_ours && is_hello {
                self.take_hello(ctx, socket);
            }
            // At once: what comes behind the last one counts no more.
            self.stop_if_complete(ctx);
        }
        if self.phase == Phase::Running {
            // The event will not come again for what is left.
            self.deadlines.set(Key::Pump(index), ctx.now);
        }
    }

    pub(super) fn end_omit(&mut self, ctx: &mut Context<'_>) {
        self.close_interval(ctx);
        self.omits = false;
        self.counted_from = ctx.now;
        self.interval_from = ctx.now;
        for (stream, marks) in self.streams.iter_mut().zip(&mut self.marks) {
            stream.end_omit(ctx);
            marks.restart(stream);
        }
        if !self.config.interval.is_zero() {
            self.deadlines.set(Key::Interval, ctx.now + self.config.interval);
        }
        for index in 0..self.streams.len() {
            self.move_data(ctx, index);
        }
    }

    /// Ends an interval, if it was not only a moment.
    pub(super) fn close_interval(&mut self, ctx: &mut Context<'_>) {
        if self.config.interval.is_zero() || ctx.now - self.interval_from < LEAST_INTERVAL {
            return;
        }
        let interval = self.measure_interval(ctx);
        self.events.push_back(ClientEvent::Interval(interval));
        self.interval_from = ctx.now;
    }

    /// The clock stops, and what was measured is noted.
    pub(super) fn stop_clock(&mut self, ctx: &mut Context<'_>) {
        self.ended = ctx.now;
        self.note_cpu();
        self.close_interval(ctx);
        for (stream, marks) in self.streams.iter_mut().zip(&mut self.marks) {
            stream.measure(ctx);
            marks.look(ctx, stream);
        }
        for key in [Key::Omit, Key::Interval, Key::End, Key::Flush] {
            self.deadlines.clear(key);
        }
        for index in 0..self.streams.len() {
            self.deadlines.clear(Key::Pump(index));
        }
    }

    /// The test ends: the server is told.
    pub(super) fn stop(&mut self, ctx: &mut Context<'_>) {
        if self.phase != Phase::Running {
            return;
        }
        self.stop_clock(ctx);
        self.expect(ctx, Phase::Ending);
        self.send_control(ctx, &[State::TestEnd.byte()]);
    }
}
