//! The crowd: clients that connect in earnest, a steady number every second, and then want nothing, or never finish.

use super::frames::{Heard, VICTIM4, hear, segment, with};
use super::script::Script;
use linerate_wire::tcp::{Builder, Flags, Options, SeqNumber};
use linerate_wire::units::Instant;
use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;

/// What a client does once it is connected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Manner {
    /// Nothing.
    Idle,
    /// Sends a head, a byte now and then.
    SlowHead,
    /// Sends a head, and the body a byte now and then.
    SlowBody,
}

/// Where the clients are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum From {
    /// At one address.
    One,
    /// Each at its own.
    Many,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Closed,
    SynSent,
    Open,
    Gone,
}

#[derive(Clone, Copy, Debug)]
struct Client {
    stage: Stage,
    next: SeqNumber,
    ack: SeqNumber,
}

const FIRST_PORT: u16 = 1_100;

/// See the module.
pub struct Crowd {
    manner: Manner,
    from: From,
    port: u16,
    per_tick: u64,
    clients: Vec<Client>,
    begun: usize,
    /// Whose turn it is to send a byte.
    turn: usize,
    opened: Rc<Cell<usize>>,
}

impl Crowd {
    /// So many clients of this port; `opened` counts those that were let in.
    pub fn new(manner: Manner, from: From, port: u16, count: usize, opened: Rc<Cell<usize>>) -> Crowd {
        let client = Client { stage: Stage::Closed, next: SeqNumber(7_000), ack: SeqNumber(0) };
        Crowd { manner, from, port, per_tick: 1, clients: vec![client; count], begun: 0, turn: 0, opened }
    }

    /// So many new ones every 100 us.
    pub fn at_rate(self, per_tick: u64) -> Crowd {
        Crowd { per_tick, ..self }
    }

    fn address(&self, index: usize) -> SocketAddr {
        let (ip, port) = match self.from {
            From::One => (Ipv4Addr::new(20, 0, 0, 9), FIRST_PORT + index as u16),
            From::Many => (Ipv4Addr::from_bits(0x1401_0000 + index as u32), FIRST_PORT),
        };
        SocketAddr::new(IpAddr::V4(ip), port)
    }

    /// Whom a frame of the victim is for.
    fn index(&self, frame: &[u8], heard: &Heard) -> Option<usize> {
        let ip: [u8; 4] = frame.get(30..34)?.try_into().ok()?;
        match self.from {
            From::One => heard.port.checked_sub(FIRST_PORT).map(usize::from),
            From::Many => u32::from_be_bytes(ip).checked_sub(0x1401_0000).map(|index| index as usize),
        }
    }

    fn frame(&self, index: usize, flags: Flags, data: &[u8]) -> Vec<u8> {
        let client = &self.clients[index];
        let mss = flags.contains(Flags::SYN).then_some(1_460);
        let header = Builder {
            window: 60_000,
            options: Options { mss, ..Options::default() },
            ..with(flags, client.next.0, client.ack.0)
        };
        segment(self.address(index), SocketAddr::new(VICTIM4.into(), self.port), header, data)
    }

    fn send(&mut self, index: usize, data: &[u8], out: &mut Vec<Vec<u8>>) {
        out.push(self.frame(index, Flags::ACK, data));
        self.clients[index].next += data.len() as u32;
    }
}

impl Script for Crowd {
    fn tick(&mut self, _now: Instant, out: &mut Vec<Vec<u8>>) {
        for _ in 0..self.per_tick {
            if self.begun < self.clients.len() {
                out.push(self.frame(self.begun, Flags::SYN, &[]));
                self.clients[self.begun].stage = Stage::SynSent;
                self.begun += 1;
            }
        }
        if self.manner != Manner::Idle && self.begun > 0 {
            self.turn = (self.turn + 1) % self.begun;
            if self.clients[self.turn].stage == Stage::Open {
                self.send(self.turn, b"X", out);
            }
        }
    }

    fn hear(&mut self, _now: Instant, frame: &[u8], out: &mut Vec<Vec<u8>>) {
        let Some(heard) = hear(frame) else { return };
        let Some(index) = self.index(frame, &heard) else { return };
        let manner = self.manner;
        let Some(client) = self.clients.get_mut(index) else { return };
        if heard.flags.contains(Flags::RST) {
            client.stage = Stage::Gone;
        } else if client.stage == Stage::SynSent && heard.flags.contains(Flags::SYN) {
            client.stage = Stage::Open;
            client.next += 1;
            client.ack = heard.seq + 1;
            self.opened.set(self.opened.get() + 1);
            let data: &[u8] = match manner {
                Manner::Idle => b"",
                Manner::SlowHead => b"GET / HTTP/1.1\r\nX: ",
                Manner::SlowBody => {
                    b"PUT /memory/null HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n"
                }
            };
            self.send(index, b"", out);
            if !data.is_empty() {
                self.send(index, data, out);
            }
        } else if client.stage == Stage::Open && (heard.payload_len > 0 || heard.flags.contains(Flags::FIN)) {
            // It takes what comes, and does not close its side.
            if heard.seq == client.ack {
                client.ack += heard.payload_len as u32 + u32::from(heard.flags.contains(Flags::FIN));
            }
            self.send(index, b"", out);
        }
    }
}
