//! One end of a connection, ours or the kernel's: sends its pattern, checks what comes, and ends.

use super::plan::{EndPlan, mix};
use linerate_transport::{
    AcceptBacklog, Bytes, CloseReason, ConnId, ConnState, ConnectError, ListenAddr, ListenOptions,
    ListenerId, Owner, Payload, SendError, Transport,
};
use linerate_wire::units::Instant;
use std::net::SocketAddr;
use std::time::Duration;

/// Tries to queue something in one turn.
const SENDS_PER_TURN: usize = 16;

/// When to connect again after memory was short.
const REDIAL: Duration = Duration::from_millis(20);

/// How an end ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Everything was sent and received, and both FINs went.
    Complete,
    /// It broke off, as planned.
    Aborted,
    /// The transport reported this reason.
    Ended(CloseReason),
}

/// One end.
pub struct End {
    plan: EndPlan,
    owner: Owner,
    /// Keys of the patterns.
    send_key: u64,
    receive_key: u64,
    /// Bytes that the other end will send.
    expected: usize,
    /// Break off after so many bytes.
    abort_after: Option<usize>,
    listener: Option<ListenerId>,
    /// Our address and the other's, until there is a connection.
    target: Option<(SocketAddr, SocketAddr)>,
    conn: Option<ConnId>,
    sent: usize,
    received: usize,
    shut: bool,
    next_read: Instant,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// Segments that it sent again.
    pub retransmits: u64,
}

/// The byte at `offset` of the pattern `key`.
fn pattern(key: u64, offset: usize) -> u8 {
    mix(key ^ (offset as u64 / 8)).to_le_bytes()[offset % 8]
}

impl End {
    /// An end that has not opened yet. The patterns are named by `send_key` and `receive_key`.
    pub fn new(
        plan: &EndPlan,
        owner: Owner,
        keys: (u64, u64),
        expected: usize,
        abort_after: Option<usize>,
    ) -> End {
        End {
            plan: plan.clone(),
            owner,
            send_key: keys.0,
            receive_key: keys.1,
            expected,
            abort_after,
            listener: None,
            target: None,
            conn: None,
            sent: 0,
            received: 0,
            shut: false,
            next_read: Instant::ZERO,
            outcome: None,
            retransmits: 0,
        }
    }

    /// Waits for the other end at `local`.
    pub fn listen(&mut self, net: &mut dyn Transport, local: SocketAddr) {
        let addr = ListenAddr { ip: Some(local.ip()), port: local.port() };
        let options = ListenOptions {
            backlog: AcceptBacklog(4),
            socket: self.plan.options.clone(),
            ..ListenOptions::default()
        };
        self.listener = Some(net.listen(self.owner, addr, &options).expect("a listener"));
    }

    /// Will connect to the other end.
    pub fn connect(&mut self, local: SocketAddr, remote: SocketAddr) {
        self.target = Some((local, remote));
    }

    /// Connects, if there is somebody to connect to; false when memory is short, to be tried again.
    fn dial(&mut self, net: &mut dyn Transport) -> bool {
        let Some((local, remote)) = self.target else { return true };
        match net.connect(self.owner, Some(local), remote, &self.plan.options) {
            Ok(conn) => (self.target, self.conn) = (None, Some(conn)),
            Err(ConnectError::NoMemory) => return false,
            Err(error) => panic!("{error:?}"),
        }
        true
    }

    /// Does what can be done now; returns when it wants to be called again, beside events. An error is a wrong byte, or
    /// an end at the wrong place.
    pub fn serve(&mut self, net: &mut dyn Transport, now: Instant) -> Result<Option<Instant>, String> {
        if self.outcome.is_some() {
            return Ok(None);
        }
        if let Some(listener) = self.listener
            && let Some(conn) = net.accept(listener)
        {
            net.close_listener(listener);
            (self.listener, self.conn) = (None, Some(conn));
        }
        if !self.dial(net) {
            return Ok(Some(now + REDIAL));
        }
        let Some(conn) = self.conn else { return Ok(None) };
        self.read(net, conn, now)?;
        self.write(net, conn);
        if self.abort_after.is_some_and(|after| self.sent + self.received >= after)
            && matches!(net.state(conn), ConnState::Open { .. })
        {
            self.note_info(net);
            net.abort(conn);
            self.conn = None;
            self.outcome = Some(Outcome::Aborted);
            return Ok(None);
        }
        self.look_at_state(net, conn)?;
        let waits = self.outcome.is_none() && net.readable(conn) > 0;
        Ok(waits.then_some(self.next_read))
    }

    fn read(&mut self, net: &mut dyn Transport, conn: ConnId, now: Instant) -> Result<(), String> {
        if now < self.next_read {
            return Ok(());
        }
        let mut left = self.plan.read.unwrap_or(usize::MAX);
        while left > 0 {
            let bytes = net.peek(conn);
            let len = bytes.len().min(left);
            if len == 0 {
                break;
            }
            let at = self.received;
            if let Some(wrong) = (0..len).find(|i| bytes[*i] != pattern(self.receive_key, at + i)) {
                return Err(format!("the byte at {} of the stream is wrong", at + wrong));
            }
            net.consume(conn, len);
            self.received += len;
            left -= len;
            self.next_read = now + self.plan.pause;
        }
        Ok(())
    }

    fn write(&mut self, net: &mut dyn Transport, conn: ConnId) {
        for _ in 0..SENDS_PER_TURN {
            if self.sent == self.plan.bytes || net.sendable(conn) == 0 {
                break;
            }
            let until = (self.sent + self.plan.write).min(self.plan.bytes);
            let bytes: Vec<u8> = (self.sent..until).map(|at| pattern(self.send_key, at)).collect();
            // Short ones by copy, long ones by reference: both ways of a server.
            let result = if bytes.len() < 4_000 {
                net.write(conn, &bytes)
            } else {
                net.send(conn, Payload::Shared(Bytes::from(bytes)))
            };
            match result {
                Ok(()) => self.sent = until,
                Err(SendError::Full | SendError::Closed) => break,
                Err(SendError::TooLong) => unreachable!("at most 60,000 bytes"),
            }
        }
        let open = matches!(net.state(conn), ConnState::Open { .. });
        if open && self.sent == self.plan.bytes && !self.shut {
            self.shut = true;
            net.shutdown(conn);
        }
    }

    fn look_at_state(&mut self, net: &mut dyn Transport, conn: ConnId) -> Result<(), String> {
        let unread = net.readable(conn) > 0;
        match net.state(conn) {
            ConnState::Connecting | ConnState::Open { finished: false } => {}
            _ if unread => {}
            ConnState::Open { finished: true } if self.received == self.expected => {}
            ConnState::Closed(CloseReason::Done)
                if self.received == self.expected && self.shut && self.sent == self.plan.bytes =>
            {
                self.outcome = Some(Outcome::Complete);
            }
            ConnState::Open { .. } | ConnState::Closed(CloseReason::Done) => {
                return Err(format!(
                    "an orderly end after {} of {} bytes received, {} of {} sent",
                    self.received, self.expected, self.sent, self.plan.bytes
                ));
            }
            ConnState::Closed(reason) => self.outcome = Some(Outcome::Ended(reason)),
        }
        Ok(())
    }

    fn note_info(&mut self, net: &dyn Transport) {
        if let Some(info) = self.conn.and_then(|conn| net.info(conn)) {
            self.retransmits = info.retransmits;
        }
    }

    /// Lets go of everything; what is still open is reset.
    pub fn release(&mut self, net: &mut dyn Transport) {
        if let Some(listener) = self.listener.take() {
            net.close_listener(listener);
        }
        self.note_info(net);
        if let Some(conn) = self.conn.take() {
            if self.outcome == Some(Outcome::Complete) { net.close(conn) } else { net.abort(conn) }
        }
    }

    /// Whether it has a connection.
    pub fn is_open(&self) -> bool {
        self.conn.is_some()
    }

    /// Bytes sent and received so far.
    pub fn moved(&self) -> (usize, usize) {
        (self.sent, self.received)
    }

    /// One line on where it stands.
    pub fn describe(&self, net: &dyn Transport) -> String {
        let state = self.conn.map(|conn| (net.state(conn), net.unsent(conn), net.readable(conn)));
        format!(
            "{:?}: sent {}/{}, received {}/{}, state, unsent, unread {state:?}, {:?}",
            self.outcome,
            self.sent,
            self.plan.bytes,
            self.received,
            self.expected,
            self.conn.and_then(|conn| net.info(conn))
        )
    }
}
