//! TCP Fast Open (RFC 7413) over a path that loses any segments: the reply arrives whole and once, or the connection ends
//! with a reason.

mod common;

use common::Bench;
use common::frames::{HOST4, PEER4, arp, tcp4};
use common::peer::{Answer, Peer, answers, modern, old};
use common::{OWNER, file_bytes, read_all, shown};
use core::time::Duration;
use linerate_transport::{
    CloseReason, ConnId, ConnState, FastOpen, ListenAddr, ListenOptions, ListenerId, SocketOptions, Transport,
};
use linerate_wire::arp::Operation;
use linerate_wire::tcp::{Builder, FastOpenCookie, Flags, Options, SeqNumber, Timestamps};
use proptest::collection::vec;
use proptest::prelude::*;

const REQUEST: &[u8] = b"the request";
const STEP: Duration = Duration::from_millis(100);
const LIMIT: Duration = Duration::from_secs(600);

/// A client that acknowledges what arrives in order, and nothing before the SYN-ACK.
struct Client {
    peer: Peer,
    cookie: FastOpenCookie,
    /// Where the reply begins, once the SYN-ACK is here.
    start: Option<SeqNumber>,
    received: Vec<u8>,
    /// Whether an acknowledgement has reached the host.
    has_acknowledged: bool,
    /// Which of the segments of both directions are lost, in their order; all others arrive.
    losses: std::vec::IntoIter<bool>,
}

impl Client {
    fn is_lost(&mut self) -> bool {
        self.losses.next().unwrap_or(false)
    }

    /// Sends the SYN, the first time with cookie and request.
    fn syn(&mut self, bench: &mut Bench, is_first: bool) {
        let fast_open = is_first.then_some(self.cookie);
        let options = Options { fast_open, ..self.peer.options };
        let builder = Builder { options, ..self.peer.segment(Flags::SYN) };
        bench.feed(&tcp4(builder, if is_first { REQUEST } else { &[] }));
    }

    fn hear(&mut self, bench: &mut Bench, segment: &Answer) {
        if segment.port != self.peer.port || self.is_lost() {
            return;
        }
        if segment.flags.contains(Flags::SYN) {
            assert_eq!(segment.ack, self.peer.next + 1 + REQUEST.len() as u32);
            assert_eq!(segment.payload, b"");
            assert!(self.start.is_none_or(|start| start == segment.seq + 1));
            self.start = Some(segment.seq + 1);
        }
        let Some(start) = self.start else { return };
        if let (Some(ours), Some(own)) = (segment.options.timestamps, self.peer.options.timestamps) {
            self.peer.options.timestamps = Some(Timestamps { value: own.value + 1, echo: ours.value });
        }
        let at = if segment.flags.contains(Flags::SYN) { 0 } else { (segment.seq - start) as usize };
        assert_eq!(segment.payload, file_bytes(at as u64, segment.payload.len()), "at {at}");
        if at <= self.received.len() {
            let known = self.received.len() - at;
            self.received.extend_from_slice(segment.payload.get(known..).unwrap_or_default());
        }
        if !self.is_lost() {
            self.has_acknowledged = true;
            let mut peer = self.peer.clone();
            peer.next = segment.ack;
            peer.ack = start + self.received.len() as u32;
            bench.feed(&tcp4(peer.segment(Flags::ACK), &[]));
        }
    }

    /// Lets a step of time pass, in both directions.
    fn step(&mut self, bench: &mut Bench) {
        // Neighbour discovery is not what is tried here.
        bench.feed(&arp(Operation::REPLY, PEER4, HOST4));
        let mut frames: Vec<Vec<u8>> = bench.pass(STEP).into_iter().map(|(_, frame)| frame).collect();
        while !frames.is_empty() {
            for segment in answers(&frames) {
                self.hear(bench, &segment);
            }
            frames = bench.receive();
        }
    }
}

fn start(options: Options, losses: Vec<bool>) -> (Bench, ListenerId, Client) {
    let mut bench = Bench::acquainted();
    let fast_open = Some(FastOpen { max_pending: 1 });
    // Many losses in a row take long.
    let socket = SocketOptions { user_timeout: LIMIT * 2, ..SocketOptions::default() };
    let options_of_listener = ListenOptions { fast_open, socket, ..ListenOptions::default() };
    let addr = ListenAddr { ip: None, port: 80 };
    let listener = bench.host.stack.listen(OWNER, addr, &options_of_listener).unwrap();
    let asks = Options { fast_open: Some(FastOpenCookie::REQUEST), ..options };
    let answer = Peer::new(20_000, asks).open(&mut bench).expect("a SYN-ACK");
    let cookie = answer.options.fast_open.expect("a cookie");
    let client = Client {
        peer: Peer::new(30_000, options),
        cookie,
        start: None,
        received: Vec::new(),
        has_acknowledged: false,
        losses: losses.into_iter(),
    };
    (bench, listener, client)
}

/// Writes as much of the reply as there is room for.
fn write(bench: &mut Bench, conn: ConnId, written: &mut usize, end: usize) {
    while *written < end {
        let piece = file_bytes(*written as u64, (end - *written).min(3_000));
        if bench.host.stack.write(conn, &piece).is_err() {
            return;
        }
        *written += piece.len();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn the_reply_arrives_whole_and_once(
        losses in vec(any::<bool>(), 0..14),
        stamps in any::<bool>(),
        sack in any::<bool>(),
        pieces in vec((0..8_000usize, 0..25u32), 1..4),
    ) {
        let options = Options { sack_permitted: sack, ..if stamps { modern() } else { old() } };
        let (mut bench, listener, mut client) = start(options, losses);
        client.syn(&mut bench, true);
        let conn = bench.host.stack.accept(listener).expect("accepted early");
        let mut request = Vec::new();
        read_all(&mut bench.host.stack, conn, &mut request);
        prop_assert_eq!(&request[..], REQUEST);
        // The application writes each piece after so many steps.
        let whole: usize = pieces.iter().map(|piece| piece.0).sum();
        let mut written = 0;
        for step in 0..(LIMIT.as_millis() / STEP.as_millis()) as u32 {
            let due = pieces.iter().filter(|piece| piece.1 <= step).map(|piece| piece.0).sum();
            write(&mut bench, conn, &mut written, due);
            client.step(&mut bench);
            if client.start.is_none() && step % 10 == 9 {
                client.syn(&mut bench, false);
            }
            if written == whole && client.received.len() == whole && bench.host.stack.unsent(conn) == 0 {
                break;
            }
        }
        let state = bench.host.stack.state(conn);
        let context = shown(bench.host.stack.counters());
        if state == ConnState::Closed(CloseReason::TimedOut) {
            prop_assert!(!client.has_acknowledged, "{:?}", context);
        } else {
            prop_assert_eq!(state, ConnState::Open { finished: false }, "{:?}", context);
            prop_assert_eq!(client.received.len(), whole, "{:?}", context);
            prop_assert_eq!(bench.host.stack.unsent(conn), 0);
        }
        bench.host.stack.abort(conn);
        bench.pass(Duration::from_secs(30));
        let memory = bench.host.stack.memory();
        prop_assert_eq!((memory.used, memory.connections), (0, 0));
    }
}
