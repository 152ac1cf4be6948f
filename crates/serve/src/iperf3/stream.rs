//! One stream of a test and what it counted.

use super::pacer::Pacer;
use super::params::Params;
use super::udp::{Header, Reception};
use crate::Context;
use crate::memory;
use core::net::SocketAddr;
use core::time::Duration;
use linerate_transport::{AlgorithmName, ConnId, Payload, Ready, SendError, UdpId};
use linerate_wire::units::Instant;

/// Most bytes that one stream queues in one call, so that others have their turn.
const SEND_BUDGET: u64 = 4 << 20;
/// Most bytes of datagrams that one stream sends in one call: a fraction of what a receiving socket holds by default
/// (208 KiB with Linux), so that a receiver on another processor has a chance between the calls.
const DATAGRAM_BURST: usize = 32 << 10;
/// Most datagrams that one stream sends in one call.
const DATAGRAM_BUDGET: usize = 64;
/// When datagrams are tried again that the queue below had no room for.
const DATAGRAM_RETRY: Duration = Duration::from_micros(500);

/// What carries a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carrier {
    Tcp(ConnId),
    Udp { socket: UdpId, local: SocketAddr, remote: SocketAddr },
}

/// Why a sender stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pause {
    /// Until the socket is writable.
    Full,
    /// Until this time: the rate is reached, or others shall have their turn.
    Until(Instant),
    /// For ever: the connection is over, or all that was asked for is sent.
    Over,
}

/// A stream.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Number in the results: 1, 3, 4, 5 ...
    pub id: u32,
    pub carrier: Carrier,
    /// Whether the server sends on it.
    pub sends: bool,
    /// Payload bytes sent or received since the start, or since the omit time ended when receiving (as the original
    /// counts them).
    pub bytes: u64,
    /// Bytes of the omit time.
    pub omitted_bytes: u64,
    /// Retransmissions at the end of the omit time.
    pub omitted_retransmits: u64,
    /// Retransmissions so far.
    pub retransmits: u64,
    /// Received datagrams.
    pub reception: Reception,
    /// Reception at the end of the omit time.
    pub omitted: Reception,
    /// Datagrams sent.
    pub datagrams: u64,
    /// Datagrams sent during the omit time.
    pub omitted_datagrams: u64,
    /// Bytes that count at the last interval.
    pub reported_bytes: u64,
    /// Congestion control of the connection.
    pub congestion: Option<AlgorithmName>,
    pacer: Option<Pacer>,
    offset: u64,
}

impl Stream {
    /// Stream number `index` (from 0) of a test.
    pub fn new(index: usize, carrier: Carrier, sends: bool) -> Self {
        // The original numbers its streams 1, 3, 4, 5, ...
        let id = if index == 0 { 1 } else { index as u32 + 2 };
        Stream {
            id,
            carrier,
            sends,
            bytes: 0,
            omitted_bytes: 0,
            omitted_retransmits: 0,
            retransmits: 0,
            reception: Reception::default(),
            omitted: Reception::default(),
            datagrams: 0,
            omitted_datagrams: 0,
            reported_bytes: 0,
            congestion: None,
            pacer: None,
            offset: 0,
        }
    }

    /// Starts the clock of a sending stream.
    pub fn start(&mut self, now: Instant, params: &Params) {
        self.pacer = Some(Pacer::new(now, params));
    }

    /// Sends what is due; `left` is what the whole test still lacks, where its length in bytes is known.
    pub fn pump(&mut self, ctx: &mut Context<'_>, params: &Params, left: Option<u64>) -> Pause {
        match self.carrier {
            Carrier::Tcp(conn) => self.pump_bytes(ctx, params, left, conn),
            Carrier::Udp { socket, local, remote } => {
                self.pump_datagrams(ctx, params, left, (socket, local, remote))
            }
        }
    }

    fn pump_bytes(
        &mut self,
        ctx: &mut Context<'_>,
        params: &Params,
        left: Option<u64>,
        conn: ConnId,
    ) -> Pause {
        let Some(pacer) = &mut self.pacer else { return Pause::Over };
        let block = params.len as u64;
        // Streams that share a known length take it block by block.
        let mut budget = left.map_or(SEND_BUDGET, |left| left.min(block));
        if budget == 0 {
            return Pause::Over;
        }
        while budget > 0 {
            // A block is sent in pieces; the pacer counts it at its first one.
            if self.offset == 0 && !pacer.is_due(ctx.now) {
                return Pause::Until(pacer.due_at().unwrap_or(ctx.now));
            }
            let most = (block - self.offset).min(if left.is_some() { budget } else { u64::MAX });
            let piece = memory::pattern(self.offset, most);
            match ctx.net.send(conn, Payload::Static(piece)) {
                Ok(()) => {}
                Err(SendError::Full) => return Pause::Full,
                Err(SendError::Closed | SendError::TooLong) => return Pause::Over,
            }
            if self.offset == 0 {
                pacer.sent(ctx.now);
            }
            self.offset += piece.len() as u64;
            if self.offset == block {
                self.offset = 0;
            }
            self.bytes += piece.len() as u64;
            budget = budget.saturating_sub(piece.len() as u64);
        }
        Pause::Until(ctx.now)
    }

    fn pump_datagrams(
        &mut self,
        ctx: &mut Context<'_>,
        params: &Params,
        left: Option<u64>,
        (socket, local, remote): (UdpId, SocketAddr, SocketAddr),
    ) -> Pause {
        let Some(pacer) = &mut self.pacer else { return Pause::Over };
        let mut left = left.unwrap_or(u64::MAX);
        // A server's tests share a socket.
        ctx.net.udp_set_tos(socket, params.tos);
        for _ in 0..(DATAGRAM_BURST / params.len.max(1)).clamp(1, DATAGRAM_BUDGET) {
            if left == 0 {
                return Pause::Over;
            }
            if !pacer.is_due(ctx.now) {
                return Pause::Until(pacer.due_at().unwrap_or(ctx.now));
            }
            let sent_us = (ctx.wall_ns / 1000).unsigned_abs();
            let mut head = [0; 16];
            let header = Header { sent_us, sequence: self.datagrams + 1 };
            let head_len = header.emit(&mut head, params.counters_64bit);
            let body = memory::pattern(0, params.len.saturating_sub(head_len) as u64);
            if ctx.net.udp_send_with(socket, Some(local), remote, &head[..head_len], body).is_err() {
                // The queue below is full: nothing of this one left, so nothing is counted.
                return Pause::Until(ctx.now + DATAGRAM_RETRY);
            }
            pacer.sent(ctx.now);
            self.datagrams += 1;
            self.bytes += params.len as u64;
            left = left.saturating_sub(params.len as u64);
        }
        Pause::Until(pacer.due_at().unwrap_or(ctx.now).max(ctx.now))
    }

    /// Takes and counts what a TCP stream received.
    pub fn swallow(&mut self, ctx: &mut Context<'_>) {
        let Carrier::Tcp(conn) = self.carrier else { return };
        loop {
            let first = ctx.net.peek(conn).len();
            if first == 0 {
                return;
            }
            // All of it at once: what comes together may lie in many pieces.
            let len = ctx.net.readable(conn).max(first);
            ctx.net.consume(conn, len);
            self.bytes += len as u64;
        }
    }

    /// Counts a received datagram.
    pub fn datagram(&mut self, now: Instant, data: &[u8], wide: bool) {
        self.bytes += data.len() as u64;
        if let Some(header) = Header::parse(data, wide) {
            self.reception.count(now, header);
        }
    }

    /// Reads the transport's measurements.
    pub fn measure(&mut self, ctx: &Context<'_>) {
        if let Carrier::Tcp(conn) = self.carrier
            && let Some(info) = ctx.net.info(conn)
        {
            self.retransmits = info.retransmits;
            self.congestion = ctx.net.congestion(conn);
        }
    }

    /// The omit time is over: what was counted until now does not count.
    pub fn end_omit(&mut self, ctx: &Context<'_>) {
        self.measure(ctx);
        self.omitted_retransmits = self.retransmits;
        self.omitted = self.reception;
        self.reception.jitter_s = 0.0;
        self.omitted_datagrams = self.datagrams;
        self.omitted_bytes = self.bytes;
        self.reported_bytes = 0;
        if !self.sends {
            self.bytes = 0;
        }
    }

    /// Bytes that count.
    pub fn counted_bytes(&self) -> u64 {
        if self.sends { self.bytes - self.omitted_bytes } else { self.bytes }
    }

    /// All bytes; they never become fewer.
    pub fn moved_bytes(&self) -> u64 {
        if self.sends { self.bytes } else { self.bytes + self.omitted_bytes }
    }

    /// Whether an event on this stream's connection means that it is over.
    pub fn is_over(ready: Ready) -> bool {
        ready.contains(Ready::CLOSED)
    }
}
