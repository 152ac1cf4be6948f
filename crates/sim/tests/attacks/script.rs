//! The attacker's node: sends what its script says at a steady rate, answers for the router, counts both ways.

use super::frames::*;
use linerate_sim::{Peer, Random, wire_bytes};
use linerate_wire::arp::{self, Operation};
use linerate_wire::ethernet::{self, EtherType};
use linerate_wire::ip::Protocol;
use linerate_wire::units::Instant;
use linerate_wire::{ipv6, ndp};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

/// What an attacker does.
pub trait Script {
    /// It is called every 100 us while the attack goes on; what is pushed is sent.
    fn tick(&mut self, now: Instant, out: &mut Vec<Vec<u8>>);

    /// A frame of the victim came.
    fn hear(&mut self, now: Instant, frame: &[u8], out: &mut Vec<Vec<u8>>) {
        let _ = (now, frame, out);
    }
}

/// Packets and their bytes on the wire.
#[derive(Clone, Copy, Default, Debug)]
pub struct Tally {
    pub packets: u64,
    pub wire_bytes: u64,
}

impl Tally {
    fn add(&mut self, frame: &[u8]) {
        self.packets += 1;
        self.wire_bytes += wire_bytes(frame.len());
    }

    pub fn since(self, earlier: Tally) -> Tally {
        Tally { packets: self.packets - earlier.packets, wire_bytes: self.wire_bytes - earlier.wire_bytes }
    }
}

/// What the attacker sent, and what the victim sent to it.
#[derive(Clone, Copy, Default, Debug)]
pub struct Traffic {
    pub sent: Tally,
    pub answers: Tally,
}

/// Between two ticks.
const TICK: Duration = Duration::from_micros(100);

/// The attacker's node.
pub struct Attacker {
    script: Option<Box<dyn Script>>,
    next: Instant,
    until: Instant,
    traffic: Rc<Cell<Traffic>>,
}

impl Attacker {
    /// A router that does nothing else.
    pub fn silent(traffic: Rc<Cell<Traffic>>) -> Attacker {
        Attacker { script: None, next: Instant::FAR_FUTURE, until: Instant::ZERO, traffic }
    }

    /// Does what `script` says in this time.
    pub fn new(
        script: Box<dyn Script>,
        from: Instant,
        until: Instant,
        traffic: Rc<Cell<Traffic>>,
    ) -> Attacker {
        Attacker { script: Some(script), next: from, until, traffic }
    }

    fn count(&self, out: &[Vec<u8>]) {
        let mut traffic = self.traffic.get();
        out.iter().for_each(|frame| traffic.sent.add(frame));
        self.traffic.set(traffic);
    }
}

impl Peer for Attacker {
    fn handle_frame(&mut self, now: Instant, frame: &[u8], out: &mut Vec<Vec<u8>>) {
        if frame.get(6..12) != Some(&VICTIM_MAC.0) {
            return;
        }
        // What a router answers is no attack, and is not counted.
        if let Some(answer) = answer_as_router(frame) {
            out.push(answer);
            return;
        }
        let mut traffic = self.traffic.get();
        traffic.answers.add(frame);
        self.traffic.set(traffic);
        if now < self.until
            && let Some(script) = &mut self.script
        {
            script.hear(now, frame, out);
            self.count(out);
        }
    }

    fn handle_timeout(&mut self, now: Instant, out: &mut Vec<Vec<u8>>) {
        self.next = if now + TICK < self.until { now + TICK } else { Instant::FAR_FUTURE };
        if let Some(script) = &mut self.script {
            script.tick(now, out);
            self.count(out);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (self.next != Instant::FAR_FUTURE).then_some(self.next)
    }
}

/// The router's answer to a question for its Ethernet address.
fn answer_as_router(frame: &[u8]) -> Option<Vec<u8>> {
    let header = ethernet::Header::parse(frame).ok()?;
    match header.ether_type() {
        EtherType::ARP => {
            let question = arp::Packet::parse(header.payload()).ok()?;
            let is_ours = question.operation() == Operation::REQUEST && question.target_ip() == ROUTER4;
            is_ours.then(|| super::frames::arp(Operation::REPLY, (ROUTER_MAC, ROUTER4), VICTIM4))
        }
        EtherType::IPV6 => {
            let ip = ipv6::Header::parse(header.payload()).ok()?;
            let bytes = ip.payload();
            let is_solicitation = ip.next_header() == Protocol::ICMPV6
                && bytes.first() == Some(&ndp::NEIGHBOUR_SOLICITATION)
                && bytes.get(8..24) == Some(&ROUTER6.octets());
            let target = ROUTER6;
            let message = ndp::Message::NeighbourAdvertisement {
                router: true,
                solicited: true,
                overrides: true,
                target,
            };
            let options = [ndp::NdpOption::TargetLinkLayer(ROUTER_MAC)];
            is_solicitation.then(|| super::frames::ndp(message, &options, ROUTER6, ip.source()))
        }
        _ => None,
    }
}

/// Frames at a steady rate, each made from its number and chance.
pub struct Flood<F> {
    per_second: u64,
    start: Option<Instant>,
    number: u64,
    random: Random,
    frame: F,
}

impl<F: FnMut(u64, &mut Random) -> Vec<u8>> Flood<F> {
    pub fn new(per_second: u64, frame: F) -> Flood<F> {
        Flood { per_second, start: None, number: 0, random: Random::stream(99, 1), frame }
    }
}

impl<F: FnMut(u64, &mut Random) -> Vec<u8>> Script for Flood<F> {
    fn tick(&mut self, now: Instant, out: &mut Vec<Vec<u8>>) {
        let start = *self.start.get_or_insert(now);
        let elapsed_ns = (now - start + TICK).as_nanos() as u64;
        let due = (u128::from(elapsed_ns) * u128::from(self.per_second) / 1_000_000_000) as u64;
        while self.number < due {
            out.push((self.frame)(self.number, &mut self.random));
            self.number += 1;
        }
    }
}
