//! A TCP peer that does only what a test tells it, at 10.0.0.9 towards 10.0.0.1:80.
#![allow(dead_code)]

use super::Bench;
use super::frames::{payloads, tcp4};
use linerate_transport::{ConnId, ListenerId, Transport};
use linerate_wire::ip::Protocol;
use linerate_wire::tcp::{self, Builder, Flags, Options, SeqNumber, Timestamps};

/// One end of a connection, written by hand. `next` and `ack` are the numbers that its next segment carries.
#[derive(Clone)]
pub struct Peer {
    pub port: u16,
    pub next: SeqNumber,
    pub ack: SeqNumber,
    pub window: u16,
    pub options: Options,
}

/// What a client of today offers.
pub fn modern() -> Options {
    Options {
        mss: Some(1_460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps { value: 50_000, echo: 0 }),
        ..Options::default()
    }
}

/// What a client offers that knows no timestamps.
pub fn old() -> Options {
    Options { timestamps: None, ..modern() }
}

/// A segment of the host as the peer reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub port: u16,
    pub seq: SeqNumber,
    pub ack: SeqNumber,
    pub flags: Flags,
    pub window: u16,
    pub options: Options,
    pub payload: Vec<u8>,
}

/// The TCP segments among frames of the host.
pub fn answers(frames: &[Vec<u8>]) -> Vec<Answer> {
    let read = |bytes: &Vec<u8>| {
        let header = tcp::Header::parse(bytes).expect("a TCP header");
        Answer {
            port: header.destination_port(),
            seq: header.sequence(),
            ack: header.acknowledgement(),
            flags: header.flags(),
            window: header.window(),
            options: header.options(),
            payload: header.payload().to_vec(),
        }
    };
    payloads(frames, Protocol::TCP).iter().map(read).collect()
}

impl Peer {
    /// A client about to connect from this port.
    pub fn new(port: u16, options: Options) -> Peer {
        Peer { port, next: SeqNumber(1_000), ack: SeqNumber(0), window: 65_535, options }
    }

    /// A segment with these flags; it carries the timestamps that were agreed upon.
    pub fn segment(&self, flags: Flags) -> Builder {
        let options = Options { timestamps: self.options.timestamps, ..Options::default() };
        Builder {
            source_port: self.port,
            destination_port: 80,
            sequence: self.next,
            acknowledgement: self.ack,
            flags,
            window: self.window,
            options,
            ..Builder::default()
        }
    }

    /// Its SYN.
    pub fn syn(&self) -> Builder {
        Builder { options: self.options, ..self.segment(Flags::SYN) }
    }

    /// Sends the SYN and takes the SYN-ACK; `None` if none came.
    pub fn open(&mut self, bench: &mut Bench) -> Option<Answer> {
        let frames = bench.ask(&tcp4(self.syn(), &[]));
        let answer = answers(&frames).into_iter().find(|answer| answer.port == self.port)?;
        assert_eq!(answer.flags.without(Flags::ECE), Flags::SYN | Flags::ACK);
        self.next += 1;
        assert_eq!(answer.ack, self.next);
        self.ack = answer.seq + 1;
        self.options.timestamps =
            answer.options.timestamps.zip(self.options.timestamps).map(|(ours, own)| {
                assert_eq!(ours.echo, own.value);
                Timestamps { value: own.value + 1, echo: ours.value }
            });
        Some(answer)
    }

    /// Sends an ACK with payload and returns the answers; `next` moves on.
    pub fn send(&mut self, bench: &mut Bench, payload: &[u8]) -> Vec<Answer> {
        let frame = tcp4(self.segment(Flags::ACK), payload);
        self.next += payload.len() as u32;
        answers(&bench.ask(&frame))
    }

    /// Opens and is accepted.
    pub fn connect(&mut self, bench: &mut Bench, listener: ListenerId) -> ConnId {
        self.open(bench).expect("a SYN-ACK");
        self.send(bench, &[]);
        bench.host.stack.accept(listener).expect("accepted")
    }
}
