//! Testing at start whether a device does what it claims, against the same work done in software.
//!
//! For devices that receive what they transmit: a simulated one, [`Link::looped`](crate::Link::looped), a network
//! interface in loopback mode. A TAP device and AF_PACKET cannot loop back (what goes in comes out at the host), so they
//! cannot be tested so; the virtual-device header's flags have to be believed there.
//!
//! Known packets are sent with one capability switched on at a time, and what comes back is compared byte by byte, IPv4
//! identification of segments included (it counts up). What failed goes to [`Port::distrust`](crate::Port::distrust).

use crate::chunk::Chunk;
use crate::device::{Capabilities, DeviceError, Interface};
use crate::feature::Feature;
use crate::frame::{Frame, RxBatch};
use crate::meta::{ChecksumStatus, Segmentation, TxMeta};
use crate::tx::TxQueue;
use alloc::vec::Vec;
use core::fmt;
use linerate_wire::units::Instant;

pub(crate) mod frames;
use frames::{Kind, Plan};

/// How a capability failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The device reported an error.
    Device(DeviceError),
    /// The device did not take the packet.
    NotSent,
    /// The frame did not come back: the device does not loop back, or drops it.
    NotReceived,
    /// More frames came back than there should be.
    TooMany,
    /// What came back first differs from the reference at this byte of this frame, both counted from 0.
    Differs {
        /// Which frame.
        frame: usize,
        /// Which byte.
        at: usize,
    },
    /// An intact frame was not reported as verified.
    NotVerified,
    /// A corrupted frame was reported as verified.
    CorruptionUnnoticed,
    /// Coalesced frames do not hold the bytes or flags that the segments held.
    Coalescing,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Device(error) => error.fmt(f),
            Failure::NotSent => f.write_str("the packet was not taken"),
            Failure::NotReceived => f.write_str("the frame did not come back"),
            Failure::TooMany => f.write_str("too many frames came back"),
            Failure::Differs { frame, at } => write!(f, "frame {frame} is wrong from byte {at} on"),
            Failure::NotVerified => f.write_str("an intact frame was not reported as verified"),
            Failure::CorruptionUnnoticed => f.write_str("a corrupted frame was reported as verified"),
            Failure::Coalescing => f.write_str("coalesced frames differ from their segments"),
        }
    }
}

/// What a self-test found of one capability.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The device does not claim it.
    NotClaimed,
    /// It is as the reference.
    Passed,
    /// It is not.
    Failed(Failure),
}

/// What a self-test found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// One outcome for each of [`Feature::ALL`], in its order.
    pub outcomes: [(Feature, Outcome); 7],
}

impl Report {
    /// The capabilities that failed, for [`Port::distrust`](crate::Port::distrust).
    pub fn failed(&self) -> Capabilities {
        self.outcomes.iter().fold(Capabilities::NONE, |failed, (feature, outcome)| {
            if matches!(outcome, Outcome::Failed(_)) { failed.with(*feature, true) } else { failed }
        })
    }
}

/// Tests each capability that `device` claims; afterwards the device is switched as it was before.
///
/// `now` is asked for the time before each of at most `attempts` looks for a frame that is awaited, and may wait a
/// little. The device must be idle: frames that arrive from elsewhere make it fail.
pub fn run<D: Interface>(device: &mut D, attempts: usize, now: impl FnMut() -> Instant) -> Report {
    let before = device.enabled();
    let claims = device.capabilities();
    let mut bench = Bench { device, attempts, now };
    let outcomes = Feature::ALL.map(|feature| {
        let outcome = if !claims.has(feature) {
            Outcome::NotClaimed
        } else {
            match bench.test(feature, claims) {
                Ok(()) => Outcome::Passed,
                Err(failure) => Outcome::Failed(failure),
            }
        };
        (feature, outcome)
    });
    // What it was switched to before it can be switched to again; if not, that is the next user's error to see.
    bench.device.enable(before).ok();
    Report { outcomes }
}

/// Payload that no rotation or swap of its bytes equals.
static PATTERN: [u8; 1400] = {
    let mut bytes = [0; 1400];
    let mut at = 0;
    while at < bytes.len() {
        bytes[at] = (at * 7 + at / 251) as u8;
        at += 1;
    }
    bytes
};

struct Bench<'a, D, N> {
    device: &'a mut D,
    attempts: usize,
    now: N,
}

impl<D: Interface, N: FnMut() -> Instant> Bench<'_, D, N> {
    fn test(&mut self, feature: Feature, claims: Capabilities) -> Result<(), Failure> {
        let only = Capabilities::NONE.with(feature, true);
        let wanted = match feature {
            Feature::Tso4 => only.with(Feature::TxChecksum4, claims.tx_checksum4),
            Feature::Tso6 => only.with(Feature::TxChecksum6, claims.tx_checksum6),
            Feature::RxCoalescing => only.with(Feature::RxChecksum, claims.rx_checksum),
            _ => only,
        };
        self.device.enable(wanted).map_err(Failure::Device)?;
        match feature {
            Feature::TxChecksum4 => self.tx_checksum(false),
            Feature::TxChecksum6 => self.tx_checksum(true),
            Feature::RxChecksum => self.rx_checksum(),
            Feature::Tso4 => self.segmentation(false),
            Feature::Tso6 => self.segmentation(true),
            Feature::RxCoalescing => self.coalescing(),
            Feature::Gather => self.gather(),
        }
    }

    /// Odd and even lengths, and the UDP checksum that must not become 0.
    fn tx_checksum(&mut self, v6: bool) -> Result<(), Failure> {
        for kind in [Kind::Tcp, Kind::Udp] {
            for len in [0, 1, 2, 535, 536, 1400] {
                let plan = Plan { kind, v6, ..Plan::default() };
                let payload = &PATTERN[..len];
                self.send(&plan.partial_header(len), &[payload], plan.meta())?;
                self.expect(&[plan.frame(payload)])?;
            }
        }
        let mut plan = Plan { kind: Kind::Udp, v6, source_port: 0, ..Plan::default() };
        let without_port = plan.frame(&[]);
        let field = plan.layer4() + plan.checksum_offset();
        // With the checksum itself as the port, the sum is all ones, and its complement 0.
        plan.source_port = u16::from_be_bytes([without_port[field], without_port[field + 1]]);
        self.send(&plan.partial_header(0), &[], plan.meta())?;
        self.expect(&[plan.frame(&[])])
    }

    fn rx_checksum(&mut self) -> Result<(), Failure> {
        for (kind, v6) in [(Kind::Tcp, false), (Kind::Udp, false), (Kind::Tcp, true), (Kind::Udp, true)] {
            let plan = Plan { kind, v6, ..Plan::default() };
            let intact = plan.frame(&[]);
            let status = self.status(&intact)?;
            if status != ChecksumStatus::Good {
                return Err(Failure::NotVerified);
            }
            let mut corrupted = intact;
            // A port: layer 4 is well-formed but for the sum.
            corrupted[plan.layer4()] ^= 0x10;
            if self.status(&corrupted)? == ChecksumStatus::Good {
                return Err(Failure::CorruptionUnnoticed);
            }
        }
        Ok(())
    }

    fn status(&mut self, headers: &[u8]) -> Result<ChecksumStatus, Failure> {
        self.send(headers, &[&PATTERN[..0]], TxMeta::default())?;
        self.receive(1)?.first().map(|frame| frame.meta.checksum).ok_or(Failure::NotReceived)
    }

    /// A super-segment in odd pieces with all the flags that not every segment may have.
    fn segmentation(&mut self, v6: bool) -> Result<(), Failure> {
        const SIZE: usize = 101;
        let payload = &PATTERN[..3 * SIZE + 40];
        let plan = Plan { v6, flags: 0x99, ..Plan::default() };
        let segmentation = if v6 { Segmentation::Tcp6(SIZE as u16) } else { Segmentation::Tcp4(SIZE as u16) };
        let meta = TxMeta { segmentation, ..plan.meta() };
        self.send(&plan.partial_header(payload.len()), &[&payload[..7], &payload[7..]], meta)?;
        let count = payload.len().div_ceil(SIZE);
        let expected: Vec<_> = payload
            .chunks(SIZE)
            .enumerate()
            .map(|(i, part)| {
                let (first, last) = (i == 0, i + 1 == count);
                let flags = 0x10 | if first { 0x80 } else { 0 } | if last { 0x09 } else { 0 };
                let segment = Plan {
                    flags,
                    ident: plan.ident.wrapping_add(i as u16),
                    sequence: plan.sequence.wrapping_add((i * SIZE) as u32),
                    ..plan.clone()
                };
                segment.frame(part)
            })
            .collect();
        self.expect(&expected)
    }

    /// Three segments and the end of the flow: however they are joined, nothing may be lost or added.
    fn coalescing(&mut self) -> Result<(), Failure> {
        const SIZE: usize = 100;
        let mut plan = Plan::default();
        for (i, flags) in [0x10, 0x10, 0x18, 0x11].into_iter().enumerate() {
            plan.flags = flags;
            let payload = &PATTERN[i * SIZE..(i + 1) * SIZE];
            let frame = plan.frame(payload);
            let (headers, _) = frame.split_at(frame.len() - SIZE);
            self.send(headers, &[payload], TxMeta::default())?;
            plan.sequence = plan.sequence.wrapping_add(SIZE as u32);
        }
        let payload_at = Plan::default().partial_header(0).len();
        let (mut bytes, mut flags) = (Vec::new(), 0);
        for _ in 0..4 {
            if bytes.len() >= 4 * SIZE {
                break;
            }
            for frame in self.receive(1)? {
                let whole = flat(&frame);
                flags |= whole.get(plan.layer4() + 13).copied().unwrap_or(0);
                bytes.extend_from_slice(whole.get(payload_at..).unwrap_or_default());
            }
        }
        if bytes == PATTERN[..4 * SIZE] && flags == 0x19 { Ok(()) } else { Err(Failure::Coalescing) }
    }

    fn gather(&mut self) -> Result<(), Failure> {
        let plan = Plan::default();
        let frame = plan.frame(&PATTERN[..1000]);
        let headers = &frame[..frame.len() - 1000];
        let pieces = [&PATTERN[..1], &PATTERN[1..4], &PATTERN[4..4], &PATTERN[4..505], &PATTERN[505..1000]];
        self.send(headers, &pieces, TxMeta::default())?;
        self.expect(core::slice::from_ref(&frame))
    }

    fn send(&mut self, headers: &[u8], payload: &[&'static [u8]], meta: TxMeta) -> Result<(), Failure> {
        let mut queue = TxQueue::with_capacity(1);
        let packet = queue.vacant().ok_or(Failure::NotSent)?;
        packet.header_mut(headers.len()).copy_from_slice(headers);
        for piece in payload {
            packet.push_chunk(Chunk::constant(piece)).map_err(|_| Failure::NotSent)?;
        }
        packet.meta = meta;
        queue.commit();
        for _ in 0..self.attempts.max(1) {
            let now = (self.now)();
            self.device.transmit(now, &mut queue).map_err(Failure::Device)?;
            if queue.is_empty() {
                return Ok(());
            }
        }
        Err(Failure::NotSent)
    }

    /// At least `count` frames, unless they do not come.
    fn receive(&mut self, count: usize) -> Result<Vec<Frame>, Failure> {
        let mut batch = RxBatch::with_limit(64);
        for _ in 0..self.attempts.max(1) {
            let now = (self.now)();
            self.device.receive(now, &mut batch).map_err(Failure::Device)?;
            if batch.len() >= count {
                break;
            }
        }
        Ok(core::iter::from_fn(|| batch.pop()).collect())
    }

    fn expect(&mut self, expected: &[Vec<u8>]) -> Result<(), Failure> {
        let frames = self.receive(expected.len())?;
        if frames.len() > expected.len() {
            return Err(Failure::TooMany);
        }
        if frames.len() < expected.len() {
            return Err(Failure::NotReceived);
        }
        for (i, (reference, frame)) in expected.iter().zip(&frames).enumerate() {
            let got = flat(frame);
            // Short frames may come back padded.
            let same = got.iter().zip(reference).take_while(|(a, b)| a == b).count();
            if same < reference.len() {
                return Err(Failure::Differs { frame: i, at: same });
            }
        }
        Ok(())
    }
}

/// All bytes of a frame in one piece.
pub(crate) fn flat(frame: &Frame) -> Vec<u8> {
    core::iter::once(&frame.data).chain(&frame.more).flat_map(|piece| piece.bytes()).copied().collect()
}

#[cfg(test)]
mod tests;
