//! One stream of bytes in or out, and the control connection of iperf3 beside it.

use super::frame::{ACK, FIN, MSS, PSH, RST, Reply, SYN, Segment};
use super::{Link, Payload, Responder};
use crate::control::{COOKIE, Control};
use std::time::{Duration, Instant};

const FIRST: u32 = 1_000;
/// Without an acknowledgement for this long, all is sent again.
const SILENCE: Duration = Duration::from_millis(200);
/// Super-segments that are sent before frames are looked at again.
const TURN: usize = 16;

/// A connection.
#[derive(Debug)]
struct Conn {
    /// Where the next segment goes.
    reply: Reply,
    control: bool,
    shift: u8,
    /// The right edge of the peer's window.
    edge: u32,
    /// What the peer has acknowledged.
    acknowledged: u32,
    repeated: u32,
    /// Until this is acknowledged, a gap is being filled, piece by piece (RFC 6582).
    recover: Option<u32>,
    /// The piece behind the last acknowledgement is to be sent again.
    again: bool,
    /// The end of what was sent.
    highest: u32,
    /// Our end was sent.
    ended: bool,
    heard: Instant,
    /// Segments that were not acknowledged yet.
    owed: u32,
    /// Payload that came.
    received: u64,
}

/// Moves bytes.
#[derive(Debug, Default)]
pub struct Bulk {
    conns: Vec<Conn>,
    control: Control,
    moved: u64,
    /// Control messages on their way, from the first that was not acknowledged.
    unsent: Vec<u8>,
}

fn later(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

impl Bulk {
    fn open(&mut self, segment: &Segment<'_>, link: &mut dyn Link) {
        let control = !self.conns.iter().any(|conn| conn.control);
        if control {
            self.control = Control::default();
            self.moved = 0;
            self.conns.clear();
            self.unsent.clear();
        }
        self.conns.retain(|conn| conn.reply.port != segment.port || conn.control);
        let mut reply = Reply { seq: FIRST, ..Reply::to(segment, SYN | ACK) };
        link.send(&reply, Payload::Constant(0));
        reply.seq = FIRST + 1;
        reply.flags = ACK;
        self.conns.push(Conn {
            reply,
            control,
            shift: segment.shift,
            edge: reply.seq,
            acknowledged: reply.seq,
            repeated: 0,
            recover: None,
            again: false,
            highest: reply.seq,
            ended: false,
            heard: Instant::now(),
            owed: 0,
            received: 0,
        });
    }

    /// Payload in order, or not.
    fn take(&mut self, at: usize, segment: &Segment<'_>, link: &mut dyn Link) {
        let conn = &mut self.conns[at];
        if segment.seq != conn.reply.ack {
            // Lost or again: the peer learns what we have.
            conn.owed = 0;
            link.send(&conn.reply, Payload::Constant(0));
            return;
        }
        let len = segment.payload.len();
        conn.reply.ack = conn.reply.ack.wrapping_add(len as u32);
        let before = conn.received;
        conn.received += len as u64;
        conn.owed += len.div_ceil(MSS) as u32;
        if conn.owed >= 2 {
            conn.owed = 0;
            link.send(&conn.reply, Payload::Constant(0));
        }
        if conn.control {
            self.control.handle(segment.payload, self.moved);
        } else if before < COOKIE as u64 && conn.received >= COOKIE as u64 {
            self.moved += conn.received - COOKIE as u64;
            self.control.stream_opened();
        } else if before >= COOKIE as u64 {
            self.moved += len as u64;
        }
    }

    fn acknowledge(&mut self, at: usize, segment: &Segment<'_>) {
        let conn = &mut self.conns[at];
        let edge = segment.ack.wrapping_add(u32::from(segment.window) << conn.shift);
        if later(segment.ack, conn.acknowledged) {
            if conn.control {
                let gone = (segment.ack.wrapping_sub(conn.acknowledged) as usize).min(self.unsent.len());
                self.unsent.drain(..gone);
            }
            conn.acknowledged = segment.ack;
            // Sent again from an earlier place, while the peer had more.
            if later(segment.ack, conn.reply.seq) {
                conn.reply.seq = segment.ack;
            }
            (conn.repeated, conn.heard) = (0, Instant::now());
            conn.recover = conn.recover.filter(|recover| later(*recover, segment.ack));
            conn.again = conn.recover.is_some();
        } else if segment.payload.is_empty() && edge == conn.edge && segment.flags & FIN == 0 {
            conn.repeated += 1;
            if conn.repeated == 3 && conn.recover.is_none() && conn.acknowledged != conn.highest {
                conn.recover = Some(conn.highest);
                conn.again = true;
            }
        }
        conn.edge = edge;
    }

    /// Sends of the stream what its window lets through, after the end of a test only what it had sent before; returns how
    /// much is new, and whether there is more.
    fn fill(conn: &mut Conn, ending: bool, link: &mut dyn Link) -> (u64, bool) {
        let (largest, mut sent) = (link.largest(), 0);
        if conn.acknowledged != conn.reply.seq && conn.heard.elapsed() > SILENCE {
            (conn.reply.seq, conn.recover, conn.again) = (conn.acknowledged, None, false);
            conn.ended = false;
            conn.heard = Instant::now();
        }
        if std::mem::take(&mut conn.again) {
            let len = (conn.reply.seq.wrapping_sub(conn.acknowledged) as usize).min(largest);
            link.send(&Reply { seq: conn.acknowledged, ..conn.reply }, Payload::Constant(len));
        }
        for _ in 0..TURN {
            let end = if ending && later(conn.edge, conn.highest) { conn.highest } else { conn.edge };
            let room = if later(end, conn.reply.seq) { end.wrapping_sub(conn.reply.seq) } else { 0 };
            // No small pieces while more is on its way back.
            let len = (room as usize).min(largest);
            if len == 0 || (len < MSS && !ending && conn.acknowledged != conn.reply.seq) {
                return (sent, false);
            }
            let len = if len > MSS { len - len % MSS } else { len };
            if !link.send(&conn.reply, Payload::Constant(len)) {
                return (sent, true);
            }
            conn.owed = 0;
            conn.reply.seq = conn.reply.seq.wrapping_add(len as u32);
            if later(conn.reply.seq, conn.highest) {
                sent += u64::from(conn.reply.seq.wrapping_sub(conn.highest));
                conn.highest = conn.reply.seq;
            }
        }
        (sent, true)
    }

    /// Closes the stream once all of it is acknowledged: a client that receives waits for that.
    fn end(conn: &mut Conn, link: &mut dyn Link) {
        if !conn.ended && conn.acknowledged == conn.highest {
            conn.reply.flags = ACK | FIN;
            link.send(&conn.reply, Payload::Constant(0));
            conn.reply.flags = ACK;
            conn.reply.seq = conn.highest.wrapping_add(1);
            (conn.ended, conn.heard) = (true, Instant::now());
        }
    }
}

impl Responder for Bulk {
    fn handle(&mut self, segment: &Segment<'_>, link: &mut dyn Link) {
        if segment.flags & SYN != 0 {
            return self.open(segment, link);
        }
        let Some(at) = self.conns.iter().position(|conn| conn.reply.port == segment.port) else { return };
        if segment.flags & RST != 0 {
            self.conns.remove(at);
            return;
        }
        self.acknowledge(at, segment);
        if !segment.payload.is_empty() {
            self.take(at, segment, link);
        }
        let conn = &mut self.conns[at];
        let end = segment.seq.wrapping_add(segment.payload.len() as u32);
        if segment.flags & FIN != 0 && end == conn.reply.ack {
            conn.reply.ack = end.wrapping_add(1);
            conn.reply.flags = if conn.ended { ACK } else { ACK | FIN };
            link.send(&conn.reply, Payload::Constant(0));
            self.conns.remove(at);
        }
    }

    fn poll(&mut self, link: &mut dyn Link) -> bool {
        let new = self.control.take_output();
        let (sends, ending) = (self.control.sends(), self.control.ends());
        let mut more = false;
        for conn in &mut self.conns {
            if conn.control {
                let silent = conn.heard.elapsed() > SILENCE && !self.unsent.is_empty();
                self.unsent.extend_from_slice(&new);
                if silent {
                    conn.reply.seq = conn.acknowledged;
                    conn.heard = Instant::now();
                }
                let from = conn.reply.seq.wrapping_sub(conn.acknowledged) as usize;
                let rest = self.unsent.get(from..).unwrap_or_default();
                if !rest.is_empty() {
                    let reply = Reply { flags: ACK | PSH, ..conn.reply };
                    if link.send(&reply, Payload::Own(rest)) {
                        conn.reply.seq = conn.reply.seq.wrapping_add(rest.len() as u32);
                        (conn.owed, conn.heard) = (0, Instant::now());
                    }
                }
            } else if sends || ending {
                let (sent, left) = Self::fill(conn, ending, link);
                self.moved += sent;
                more |= left;
                if ending {
                    Self::end(conn, link);
                }
            }
            if conn.owed > 0 {
                conn.owed = 0;
                link.send(&conn.reply, Payload::Constant(0));
            }
        }
        more
    }
}

#[cfg(test)]
mod tests {
    use super::super::link::tests::Sent;
    use super::*;

    fn segment<'a>(port: u16, seq: u32, ack: u32, flags: u8, payload: &'a [u8]) -> Segment<'a> {
        Segment {
            mac: [2; 6],
            ip: [192, 168, 1, 1],
            port,
            our_port: 5_201,
            seq,
            ack,
            flags,
            window: 100,
            shift: 7,
            payload,
        }
    }

    /// A server whose control connection (port 1) stands and has asked for `parameters`, and whose stream (port 2) is open.
    fn running(parameters: &str) -> (Bulk, Sent) {
        let (mut bulk, mut link) = (Bulk::default(), Sent::default());
        bulk.handle(&segment(1, 99, 0, SYN, b""), &mut link);
        let mut hello = vec![b'c'; COOKIE];
        hello.extend_from_slice(&(parameters.len() as u32).to_be_bytes());
        hello.extend_from_slice(parameters.as_bytes());
        bulk.handle(&segment(1, 100, FIRST + 1, ACK, &hello), &mut link);
        bulk.poll(&mut link);
        bulk.handle(&segment(2, 499, 0, SYN, b""), &mut link);
        bulk.handle(&segment(2, 500, FIRST + 1, ACK, &[b'c'; COOKIE]), &mut link);
        (bulk, link)
    }

    #[test]
    fn in_every_second_segment_is_acknowledged_and_a_gap_at_once() {
        let (mut bulk, mut link) = running("{}");
        bulk.poll(&mut link);
        link.0.clear();
        let (data, start) = ([7; MSS], 500 + COOKIE as u32);
        let next = |n: u32| start + n * MSS as u32;
        for n in [0, 1, 2] {
            bulk.handle(&segment(2, next(n), FIRST + 1, ACK, &data), &mut link);
        }
        assert_eq!(link.0.iter().map(|(reply, _)| reply.ack).collect::<Vec<_>>(), [next(2)]);
        bulk.handle(&segment(2, next(4), FIRST + 1, ACK, &data), &mut link);
        assert_eq!(link.0[1].0.ack, next(3));
        bulk.handle(&segment(2, next(3), FIRST + 1, ACK, &data), &mut link);
        bulk.poll(&mut link);
        assert_eq!(link.0[2].0.ack, next(4), "what is owed goes out at the end of a turn");
        assert_eq!(bulk.moved, 4 * MSS as u64);
    }

    #[test]
    fn out_only_the_window_counts_and_losses_are_sent_again() {
        let (mut bulk, mut link) = running(r#"{"reverse":true}"#);
        link.0.clear();
        while bulk.poll(&mut link) {}
        let sent: Vec<(u32, usize)> =
            link.0.iter().filter(|(r, _)| r.port == 2).map(|(r, len)| (r.seq, *len)).collect();
        assert_eq!((sent[0].0, sent.len()), (FIRST + 1, 8));
        assert_eq!(sent.iter().map(|(_, len)| len).sum::<usize>(), 8 * MSS);
        link.0.clear();
        let second = FIRST + 1 + MSS as u32;
        bulk.handle(&segment(2, 537, second, ACK, b""), &mut link);
        while bulk.poll(&mut link) {}
        assert_eq!(link.0.len(), 1, "one more has room");
        link.0.clear();
        for _ in 0..5 {
            bulk.handle(&segment(2, 537, second, ACK, b""), &mut link);
        }
        while bulk.poll(&mut link) {}
        assert_eq!((link.0[0].0.seq, link.0.len()), (second, 1), "once, where the gap is");
        // Another gap behind the first is filled at once.
        bulk.handle(&segment(2, 537, second + MSS as u32, ACK, b""), &mut link);
        link.0.clear();
        while bulk.poll(&mut link) {}
        assert_eq!((link.0[0].0.seq, link.0.len()), (second + MSS as u32, 2));
    }

    #[test]
    fn out_the_stream_ends_when_all_of_it_is_acknowledged() {
        let (mut bulk, mut link) = running(r#"{"reverse":true}"#);
        while bulk.poll(&mut link) {}
        bulk.handle(&segment(1, 157, FIRST + 5, ACK, &[4]), &mut link);
        link.0.clear();
        bulk.poll(&mut link);
        assert!(link.0.iter().all(|(reply, _)| reply.flags & FIN == 0));
        let end = FIRST + 1 + 8 * MSS as u32;
        bulk.handle(&segment(2, 537, end, ACK, b""), &mut link);
        link.0.clear();
        bulk.poll(&mut link);
        assert_eq!((link.0[0].0.flags, link.0[0].0.seq), (ACK | FIN, end));
        bulk.handle(&segment(2, 537, end + 1, ACK | FIN, b""), &mut link);
        assert_eq!((link.0[1].0.flags, link.0[1].0.seq, link.0[1].0.ack), (ACK, end + 1, 538));
    }

    #[test]
    fn an_end_is_answered_and_another_test_follows() {
        let (mut bulk, mut link) = running("{}");
        link.0.clear();
        bulk.handle(&segment(2, 537, FIRST + 1, ACK | FIN, b""), &mut link);
        assert_eq!((link.0[0].0.flags, link.0[0].0.ack), (ACK | FIN, 538));
        bulk.handle(&segment(1, 1, FIRST + 1, RST, b""), &mut link);
        assert!(bulk.conns.is_empty());
        bulk.handle(&segment(9, 1, 0, SYN, b""), &mut link);
        assert!(bulk.conns[0].control);
    }
}
