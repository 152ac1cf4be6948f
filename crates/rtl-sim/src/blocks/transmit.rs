//! What the comparisons of the transmit side share: packets with their requests, and a run of them through a block.

use super::Coverage;
use crate::user::{SegmentMode, TxUser};
use crate::{Dut, Pause, Port, Rng, Sink, Source, UserAt};
use linerate_wire::checksum::Sum;
use std::collections::VecDeque;

/// Clocks in which nothing moves on either side after which the block is said to hang.
const PATIENCE: u64 = 1_000;

/// Most of a block's `event_*` ports.
pub const EVENTS: usize = 7;

/// One frame for a block, and what must become of it.
pub struct Job {
    /// What goes in.
    pub frame: Vec<u8>,
    /// With it.
    pub user: [u32; 4],
    /// What must come out, in order.
    pub expected: Vec<(Vec<u8>, [u32; 4])>,
    /// Pulses of each event.
    pub events: [u64; EVENTS],
    /// For the coverage.
    pub kind: &'static str,
}

/// What is known of a run besides that all came out as expected.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Clocks from the first beat in to the first beat out.
    pub latency: u64,
    /// Clocks from the first beat out to the last, both included.
    pub span: u64,
    /// Beats that came out.
    pub beats: u64,
    /// Clocks in which a beat was offered to the block and not taken.
    pub stalls: u64,
}

/// Drives a block with what `next` makes until `frames` frames have come out or the jobs of `limit` have been done.
pub struct Run<'a> {
    /// The block.
    pub dut: &'a mut Dut,
    /// Names of its events.
    pub events: &'a [&'a str],
    /// Of the input and of the output.
    pub pauses: (Pause, Pause),
    /// For pauses and don't-cares.
    pub seed: u64,
}

impl Run<'_> {
    /// Runs jobs until `next` has no more; counts in `coverage`.
    ///
    /// # Errors
    /// The first difference.
    pub fn jobs(
        &mut self,
        mut next: impl FnMut() -> Option<Job>,
        coverage: &mut Coverage,
    ) -> Result<Timing, String> {
        let mut rng = Rng::new(self.seed);
        self.disturb(&mut rng)?;
        let dut = &mut *self.dut;
        let mut source = Source::new(dut, "s_axis", self.pauses.0, UserAt::Every, rng.bits())?;
        let mut sink = Sink::new(dut, "m_axis", self.pauses.1, rng.bits())?;
        let mut watch = Watch::new(dut, self.events)?;
        let bytes = dut.bits(dut.port("m_axis_tdata")?) as usize / 8;
        let mut due = [0; EVENTS];
        let mut expected: VecDeque<(Vec<u8>, [u32; 4], &'static str)> = VecDeque::new();
        let mut is_done = false;
        while !is_done || source.waiting() > 0 || !expected.is_empty() || dut.cycles() < watch.moved + 20 {
            while source.waiting() < 2 && !is_done {
                let Some(job) = next() else {
                    is_done = true;
                    break;
                };
                // By the frames that come of it.
                for _ in 0..job.expected.len().max(1) {
                    coverage.count(job.kind);
                }
                for (due, count) in due.iter_mut().zip(job.events) {
                    *due += count;
                }
                expected.extend(job.expected.into_iter().map(|(frame, user)| (frame, user, job.kind)));
                source.push(job.frame, job.user);
            }
            source.drive(dut);
            sink.drive(dut);
            dut.settle();
            source.observe(dut);
            sink.observe(dut);
            watch.observe(dut);
            dut.edge();
            while let Some(received) = sink.pop()? {
                let (frame, user, kind) = expected.pop_front().ok_or("a frame that should not be")?;
                let at = coverage.frames;
                check(&received.data, &frame, bytes)
                    .map_err(|fault| format!("frame {at} ({kind}, {} bytes): {fault}", frame.len()))?;
                if received.user != user || !received.user_constant {
                    return Err(format!("frame {at} ({kind}): tuser {:x?} and not {user:x?}", received.user));
                }
                coverage.frames += 1;
            }
            if dut.cycles() - watch.moved > PATIENCE {
                let waiting = expected.front().map(|next| next.2);
                return Err(format!("nothing moves after frame {}; next is {waiting:?}", coverage.frames));
            }
        }
        if watch.pulses != due || sink.is_in_frame() {
            return Err(format!("events {:?}: {:?} and not {due:?}", self.events, watch.pulses));
        }
        Ok(watch.timing())
    }

    /// Leaves the block in the middle of something, then resets it.
    fn disturb(&mut self, rng: &mut Rng) -> Result<(), String> {
        let dut = &mut *self.dut;
        dut.reset()?;
        let mut source = Source::new(dut, "s_axis", Pause::Percent(20), UserAt::Every, rng.bits())?;
        let mut sink = Sink::new(dut, "m_axis", Pause::Percent(60), rng.bits())?;
        for _ in 0..rng.below(600) {
            if source.waiting() == 0 {
                let packet = Packet::random(rng, 2_000);
                let mut user = packet.user(rng);
                user.seg_size = 400;
                source.push(packet.frame, user.to_words());
            }
            source.drive(dut);
            sink.drive(dut);
            dut.settle();
            source.observe(dut);
            dut.edge();
        }
        dut.reset()
    }
}

/// What is seen of a block from outside, clock by clock.
struct Watch {
    /// Valid and ready of the input, then of the output.
    handshakes: [Port; 4],
    events: Vec<Port>,
    pulses: [u64; EVENTS],
    first_in: Option<u64>,
    first_out: Option<u64>,
    last_out: u64,
    beats: u64,
    stalls: u64,
    /// The last clock with a beat in or out.
    moved: u64,
}

impl Watch {
    fn new(dut: &Dut, events: &[&str]) -> Result<Self, String> {
        Ok(Watch {
            handshakes: [
                dut.port("s_axis_tvalid")?,
                dut.port("s_axis_tready")?,
                dut.port("m_axis_tvalid")?,
                dut.port("m_axis_tready")?,
            ],
            events: events.iter().map(|name| dut.port(name)).collect::<Result<_, _>>()?,
            pulses: [0; EVENTS],
            first_in: None,
            first_out: None,
            last_out: 0,
            beats: 0,
            stalls: 0,
            moved: dut.cycles(),
        })
    }

    fn observe(&mut self, dut: &Dut) {
        let [offered, takes, valid, ready] = self.handshakes.map(|port| dut.get(port) != 0);
        for (count, port) in self.pulses.iter_mut().zip(&self.events) {
            *count += dut.get(*port);
        }
        if offered {
            self.first_in.get_or_insert(dut.cycles());
            self.stalls += u64::from(!takes);
        }
        if valid && ready {
            self.first_out.get_or_insert(dut.cycles());
            self.last_out = dut.cycles();
            self.beats += 1;
        }
        if (valid && ready) || (offered && takes) {
            self.moved = dut.cycles();
        }
    }

    fn timing(&self) -> Timing {
        let first_out = self.first_out.unwrap_or(0);
        Timing {
            latency: first_out.saturating_sub(self.first_in.unwrap_or(0)),
            span: self.last_out + 1 - first_out,
            beats: self.beats,
            stalls: self.stalls,
        }
    }
}

fn check(found: &[u8], expected: &[u8], bytes: usize) -> Result<(), String> {
    if found.len() != expected.len() {
        return Err(format!("came out with {} bytes", found.len()));
    }
    match found.iter().zip(expected).position(|(found, expected)| found != expected) {
        None => Ok(()),
        Some(at) => {
            Err(format!("byte {at} (beat {}) is {:02x} and not {:02x}", at / bytes, found[at], expected[at]))
        }
    }
}

/// A TCP or UDP packet in its frame, its checksum left to the device.
#[derive(Clone, Debug)]
pub struct Packet {
    /// The bytes.
    pub frame: Vec<u8>,
    /// Where the IP header begins.
    pub ip: usize,
    /// Where layer 4 begins.
    pub layer4: usize,
    /// Where the payload begins.
    pub payload: usize,
    /// IPv6, not IPv4.
    pub ipv6: bool,
    /// UDP, not TCP.
    pub udp: bool,
}

impl Packet {
    /// With up to `most` bytes of payload. The checksum field holds the pseudo-header's sum.
    pub fn random(rng: &mut Rng, most: usize) -> Packet {
        let mut frame = vec![0; 12];
        rng.fill(&mut frame);
        for _ in 0..rng.pick(&[0, 0, 0, 0, 1, 2]) {
            frame.extend([0x81, 0, rng.bits() as u8, rng.bits() as u8]);
        }
        if rng.chance(6) {
            // Something longer in front, as an encapsulation is: what counts is where the headers lie.
            let len = frame.len();
            frame.resize(len + 2 * rng.between(1, 24), 0);
            rng.fill(&mut frame[len..]);
        }
        let (ipv6, udp, ip) = (rng.chance(40), rng.chance(35), frame.len() + 2);
        frame.extend(if ipv6 { [0x86, 0xdd] } else { [8, 0] });
        let protocol = if udp { 17 } else { 6 };
        let extra = if rng.chance(15) { rng.between(1, if ipv6 { 1 } else { 10 }) } else { 0 };
        let mut header = vec![0; if ipv6 { 40 + extra * 8 } else { 20 + extra * 4 }];
        rng.fill(&mut header);
        if ipv6 {
            header[0] = 0x60 | (header[0] & 0x0f);
            header[6] = if extra > 0 { 60 } else { protocol };
            if extra > 0 {
                header[40..42].copy_from_slice(&[protocol, 0]);
            }
        } else {
            header[0] = 0x45 + extra as u8;
            header[6] = 0x40;
            header[7] = 0;
            header[9] = protocol;
        }
        frame.extend(header);
        let layer4 = frame.len();
        let options = rng.pick(&[0, 0, 3, 3, 3, 5, 10]);
        let len = if udp { 8 } else { 20 + 4 * options };
        frame.resize(layer4 + len, 0);
        rng.fill(&mut frame[layer4..]);
        if !udp {
            frame[layer4 + 12] = (len as u8) << 2 | (frame[layer4 + 12] & 0x0f);
        }
        let mut packet = Packet { payload: frame.len(), frame, ip, layer4, ipv6, udp };
        let room = 65_535 - (packet.payload - ip);
        packet.frame.resize(packet.payload + most.min(room), 0);
        rng.fill(&mut packet.frame[packet.payload..]);
        packet.set_lengths();
        packet
    }

    /// Where the checksum lies.
    pub fn insert(&self) -> usize {
        self.layer4 + if self.udp { 6 } else { 16 }
    }

    /// Makes lengths and the pseudo-header's sum those of the frame.
    fn set_lengths(&mut self) {
        let (ip, layer4, len) = (self.ip, self.layer4, self.frame.len());
        let layer4_len = len - layer4;
        if self.ipv6 {
            self.put(ip + 4, (len - ip - 40) as u16);
        } else {
            self.put(ip + 2, (len - ip) as u16);
        }
        if self.udp {
            self.put(layer4 + 4, layer4_len as u16);
        }
        let mut sum = Sum::ZERO;
        sum.add(&self.frame[if self.ipv6 { ip + 8..ip + 40 } else { ip + 12..ip + 20 }]);
        sum.add_u16(if self.udp { 17 } else { 6 });
        sum.add_u32(layer4_len as u32);
        self.put(self.insert(), sum.folded());
    }

    fn put(&mut self, at: usize, value: u16) {
        self.frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
    }

    /// Takes the pseudo-header's sum out of the field.
    pub fn take_seed(&mut self) -> u16 {
        let at = self.insert();
        let seed = u16::from_be_bytes([self.frame[at], self.frame[at + 1]]);
        self.put(at, 0);
        seed
    }

    /// Makes the checksum come out as 0, which for UDP is not what is written. The payload has two bytes at least.
    pub fn make_zero(&mut self) {
        let at = self.payload;
        self.put(at, 0);
        let mut sum = Sum::ZERO;
        sum.add(&self.frame[self.layer4..]);
        self.put(at, sum.finish());
    }

    /// Brings the sum from layer 4 to the end, and that of the IPv4 header, to where a carry more or less counts: to a number next
    /// to 0 or to all ones, with words behind that each carry. The payload has two bytes at least.
    pub fn bring_to_brink(&mut self, rng: &mut Rng) {
        for word in self.frame[self.payload + 2..].rchunks_exact_mut(2).take(rng.between(0, 16)) {
            word.copy_from_slice(&[0xff, rng.pick(&[0xff, 0xfe, 0xfd, 0xf0])]);
        }
        let whole = self.layer4..self.frame.len();
        self.set_sum(whole, self.payload, brink(rng));
        if !self.ipv6 {
            self.put(self.ip + 10, 0);
            // By the identification, which is any number.
            self.set_sum(self.ip..self.layer4, self.ip + 4, brink(rng));
            self.put(self.ip + 10, rng.bits() as u16);
        }
    }

    /// Makes the sum of these bytes `target` by the two at `at`.
    fn set_sum(&mut self, bytes: core::ops::Range<usize>, at: usize, target: u16) {
        // Counted from the range's first byte, which is even.
        self.put(at, 0);
        let mut sum = Sum::ZERO;
        sum.add(&self.frame[bytes]);
        // In one's complement the difference is the sum with the complement.
        let mut rest = Sum::ZERO;
        rest.add_u16(target);
        rest.add_u16(!sum.folded());
        self.put(at, rest.folded());
    }

    /// The request of a driver that has the checksums filled in and, if it is large, has it segmented.
    pub fn user(&self, rng: &mut Rng) -> TxUser {
        TxUser {
            channel: rng.below(16) as u8,
            seg: match self.udp {
                _ if self.frame.len() < 1_600 => SegmentMode::None,
                true => SegmentMode::Udp,
                false => SegmentMode::Tcp,
            },
            seg_size: rng.bits() as u16,
            hdr_len: self.payload as u8,
            l3_start: self.ip as u8,
            ipv6: self.ipv6,
            ip_csum: !self.ipv6,
            csum: 1,
            csum_init: 0,
            csum_begin: self.layer4 as u16,
            csum_insert: self.insert() as u16,
        }
    }
}

/// A sum next to 0 or to all ones, or all ones but for one bit. The adders take words with the lower byte first.
fn brink(rng: &mut Rng) -> u16 {
    let sum = match rng.below(3) {
        0 => 0xffff ^ 1 << rng.below(16),
        1 => 0u16.wrapping_sub(rng.below(8) as u16),
        _ => rng.below(8) as u16,
    };
    sum.swap_bytes()
}

/// The mixes of pauses of the parts of a comparison; in the last everything fills up, and empties.
pub const PAUSES: [(Pause, Pause); 5] = [
    (Pause::Never, Pause::Never),
    (Pause::Percent(30), Pause::Percent(30)),
    (Pause::Bursts(12), Pause::Percent(5)),
    (Pause::Never, Pause::Bursts(30)),
    (Pause::Never, Pause::Bursts(900)),
];
