//! Clients that connect in earnest and then behave badly: a thousand of them from one attacker's node.

use super::frames::*;
use super::script::Script;
use super::server::PORT;
use linerate_wire::tcp::{Builder, Flags, Options, SeqNumber};
use linerate_wire::units::Instant;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// What a client does once it is connected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Manner {
    /// Keeps its window closed and answers every probe, so that it seems alive.
    ZeroWindow,
    /// Says once how small its window is (0 or more) and is silent from then on: sockstress.
    Silent {
        /// The window in bytes.
        window: u16,
    },
    /// Takes so many bytes every second and no more.
    SlowReader {
        /// Bytes.
        bytes: u16,
    },
    /// Takes so many bytes at once, acknowledges them, and nothing more until its window opens again: a kernel whose
    /// application reads slowly.
    Bursts {
        /// Bytes.
        bytes: u16,
        /// From one opening of the window to the next.
        every: Duration,
    },
    /// Sends single bytes out of order, every other one missing, so many of them every second.
    Holes {
        /// Segments.
        per_second: u32,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Idle,
    SynSent,
    Open,
    Gone,
}

#[derive(Clone, Copy, Debug)]
struct Client {
    stage: Stage,
    next: SeqNumber,
    ack: SeqNumber,
    window: u16,
    /// When it does something by itself next.
    due: Instant,
    holes: u32,
}

/// See the module.
pub struct Crowd {
    clients: Vec<Client>,
    manner: Manner,
    /// How many have begun.
    begun: usize,
}

/// A new client every second tick of 100 us: 5,000 a second.
const TICKS_PER_CLIENT: u64 = 2;
const FIRST_PORT: u16 = 20_000;

impl Crowd {
    pub fn new(count: usize, manner: Manner) -> Crowd {
        let client = Client {
            stage: Stage::Idle,
            next: SeqNumber(7_000),
            ack: SeqNumber(0),
            window: match manner {
                Manner::ZeroWindow => 0,
                Manner::Silent { window }
                | Manner::SlowReader { bytes: window }
                | Manner::Bursts { bytes: window, .. } => window,
                Manner::Holes { .. } => 60_000,
            },
            due: Instant::FAR_FUTURE,
            holes: 0,
        };
        Crowd { clients: vec![client; count], manner, begun: 0 }
    }

    /// A client's address: not the router's own, so that the victim sees many.
    fn address(index: usize) -> SocketAddr {
        let ip = Ipv4Addr::new(20, 0, 0, (index % 250) as u8 + 1);
        SocketAddr::new(IpAddr::V4(ip), FIRST_PORT + index as u16)
    }

    fn frame(&self, index: usize, flags: Flags, sequence: SeqNumber, data: &[u8]) -> Vec<u8> {
        let client = &self.clients[index];
        let mss = flags.contains(Flags::SYN).then_some(1_460);
        let header = Builder {
            window: client.window,
            options: Options { mss, ..Options::default() },
            ..with(flags, sequence.0, client.ack.0)
        };
        let victim = SocketAddr::new(VICTIM4.into(), PORT);
        segment(Crowd::address(index), victim, header, data)
    }

    /// What a client does by itself.
    fn act(&mut self, index: usize, now: Instant, out: &mut Vec<Vec<u8>>) {
        let next = self.clients[index].next;
        match self.manner {
            Manner::SlowReader { .. } => {
                out.push(self.frame(index, Flags::ACK, next, &[]));
                self.clients[index].due = now + Duration::from_secs(1);
            }
            Manner::Bursts { bytes, every } => {
                self.clients[index].window = bytes;
                out.push(self.frame(index, Flags::ACK, next, &[]));
                self.clients[index].due = now + every;
            }
            Manner::Holes { per_second } => {
                let holes = self.clients[index].holes + 1;
                self.clients[index].holes = holes;
                out.push(self.frame(index, Flags::ACK, next + 2 * (holes % 15_000), b"x"));
                self.clients[index].due = now + Duration::from_secs(1) / per_second;
            }
            Manner::ZeroWindow | Manner::Silent { .. } => self.clients[index].due = Instant::FAR_FUTURE,
        }
    }

    /// A segment of the victim for an open client.
    fn answer(&mut self, index: usize, heard: Heard, out: &mut Vec<Vec<u8>>) {
        let client = &mut self.clients[index];
        match self.manner {
            Manner::ZeroWindow => {
                let next = client.next;
                out.push(self.frame(index, Flags::ACK, next, &[]));
            }
            // It takes what fits its window, and says so when its second is over.
            Manner::SlowReader { bytes } if heard.seq.le(client.ack) => {
                let end = heard.seq + heard.payload_len as u32;
                client.ack = client.ack.max(end.min(client.ack + u32::from(bytes)));
            }
            Manner::Bursts { .. } if heard.payload_len > 0 => {
                // What lies behind its window was sent before it closed: it has room for none of that.
                if heard.seq == client.ack && heard.payload_len <= usize::from(client.window) {
                    client.ack += heard.payload_len as u32;
                    client.window -= heard.payload_len as u16;
                }
                let next = client.next;
                out.push(self.frame(index, Flags::ACK, next, &[]));
            }
            _ => {}
        }
    }
}

impl Script for Crowd {
    fn tick(&mut self, now: Instant, out: &mut Vec<Vec<u8>>) {
        let ticks = now.as_nanos() / 100_000;
        if ticks.is_multiple_of(TICKS_PER_CLIENT) && self.begun < self.clients.len() {
            let index = self.begun;
            self.begun += 1;
            out.push(self.frame(index, Flags::SYN, self.clients[index].next, &[]));
            self.clients[index].stage = Stage::SynSent;
            self.clients[index].due = now + Duration::from_secs(1);
        }
        for index in 0..self.begun {
            let client = &mut self.clients[index];
            if client.due > now {
                continue;
            }
            match client.stage {
                Stage::Open => self.act(index, now, out),
                Stage::SynSent => {
                    client.due = now + Duration::from_secs(1);
                    let next = client.next;
                    out.push(self.frame(index, Flags::SYN, next, &[]));
                }
                Stage::Idle | Stage::Gone => {}
            }
        }
    }

    fn hear(&mut self, now: Instant, frame: &[u8], out: &mut Vec<Vec<u8>>) {
        let Some(heard) = hear(frame) else { return };
        let Some(index) = heard.port.checked_sub(FIRST_PORT).map(usize::from) else { return };
        let Some(client) = self.clients.get_mut(index) else { return };
        if heard.flags.contains(Flags::RST) {
            client.stage = Stage::Gone;
        } else if client.stage == Stage::SynSent && heard.flags.contains(Flags::SYN) {
            client.stage = Stage::Open;
            client.next += 1;
            client.ack = heard.seq + 1;
            // Spread over the time, so that they do not all act at once.
            let spread =
                if let Manner::Bursts { every, .. } = self.manner { every.as_millis() as u64 } else { 1_000 };
            client.due = now + Duration::from_millis(index as u64 * 37 % spread);
            let next = client.next;
            out.push(self.frame(index, Flags::ACK, next, &[]));
        } else if client.stage == Stage::Open {
            self.answer(index, heard, out);
        }
    }
}
