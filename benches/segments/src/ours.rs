//! Two of our nodes and a wire.

use crate::{BUFFER, MSS, Moved, RECEIVED, data};
use linerate_nic::Pool;
use linerate_stack::{Node, NodeConfig};
use linerate_transport::{
    BufferSize, ConnId, Engine as _, ListenAddr, ListenOptions, ListenerId, Owner, Payload, SendError,
    SocketOptions, Transport as _,
};
use linerate_wire::units::Instant;
use segments::{Frames, WIRE, Wire, node, port};

fn station(last: u8, sums: bool, pool: &Pool, arriving: &Frames, leaving: &Frames) -> Node<Wire> {
    let rx_batch = if last == 1 { WIRE } else { RECEIVED };
    let port = port(last, sums, rx_batch, pool, arriving, leaving);
    node(port, last, pool, NodeConfig { rx_batch, ..NodeConfig::default() })
}

/// What both ends do in a turn.
struct End {
    node: Node<Wire>,
    conn: Option<ConnId>,
    /// Bytes sent, or received.
    moved: usize,
    all: usize,
}

impl End {
    fn input(&mut self, now: Instant) {
        self.node.input(now).expect("the wire is there");
        while self.node.stack.poll_event().is_some() {}
    }

    fn output(&mut self, now: Instant) {
        self.node.output(now).expect("the wire is there");
    }
}

#[inline(never)]
fn sender(end: &mut End, data: &Payload, now: Instant) {
    end.input(now);
    while let Some(conn) = end.conn
        && end.moved < end.all
    {
        let payload = data.clone();
        let len = payload.len() as usize;
        match end.node.stack.send(conn, payload) {
            Ok(()) => end.moved += len,
            Err(SendError::Full | SendError::Closed) => break,
            Err(error) => panic!("{error:?}"),
        }
    }
    end.output(now);
}

#[inline(never)]
fn receiver(end: &mut End, listener: ListenerId, now: Instant) {
    end.input(now);
    end.conn = end.conn.or_else(|| end.node.stack.accept(listener));
    while let Some(conn) = end.conn {
        let len = end.node.stack.peek(conn).len();
        if len == 0 {
            break;
        }
        end.node.stack.consume(conn, len);
        end.moved += len;
    }
    end.output(now);
}

/// Moves `count` full segments.
pub fn run(sums: bool, count: usize) -> Moved {
    let pool = Pool::new(1_024, 2_048);
    let (there, back) = (Frames::default(), Frames::default());
    let all = count * MSS;
    let end = |node| End { node, conn: None, moved: 0, all };
    let mut a = end(station(1, sums, &pool, &back, &there));
    let mut b = end(station(2, sums, &pool, &there, &back));
    let socket = SocketOptions {
        send_buffer: BufferSize::Fixed(BUFFER),
        receive_buffer: BufferSize::Fixed(BUFFER),
        ..SocketOptions::default()
    };
    let options = ListenOptions { socket: socket.clone(), ..ListenOptions::default() };
    let any = ListenAddr { ip: None, port: 80 };
    let listener = b.node.stack.listen(Owner(1), any, &options).expect("a free port");
    let to = "10.0.0.2:80".parse().expect("an address");
    a.conn = a.node.stack.connect(Owner(1), None, to, &socket).ok();
    let data = Payload::Shared(data().into());
    let mut now = Instant::from_millis(1);
    while b.moved < all {
        sender(&mut a, &data, now);
        while {
            receiver(&mut b, listener, now);
            !there.borrow().is_empty()
        } {}
        // 8 segments in 0.1 ms are 1 Gb/s.
        now += std::time::Duration::from_micros(100);
    }
    let (segments, frames) = (b.node.stack.counters().tcp_in, b.node.stack.counters().tcp_out);
    Moved { segments, acks: frames }
}
