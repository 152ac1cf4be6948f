//! Flows of TCP segments that mostly follow each other, with everything odd that ends a coalesced frame.

use crate::frames::{self, Mix};
use crate::{Pause, Rng, RxUser};

const TCP_GOOD: u8 = 2;
/// Payload with which a frame fits into a quarter of the memory.
pub(super) const LONGEST: usize = 32_300;

/// What the traffic is like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Profile {
    #[allow(dead_code, reason = "shown by Debug where a run fails")]
    pub name: &'static str,
    pub flows: usize,
    /// Payload bytes of a flow's segments.
    pub sizes: (usize, usize),
    /// Frames with something odd, in percent.
    pub odd: u64,
    /// Frames of no flow, in percent.
    pub noise: u64,
    /// They have one word.
    pub runts: bool,
    /// Frames with one bit of their headers wrong, one bit after the other, in percent.
    pub flips: u64,
    /// Frames of 60 bytes and more with bytes behind the packet, in percent.
    pub padded: u64,
    /// Frames after which another flow takes the place of the one, in percent.
    pub renewed: u64,
    /// Flows that differ from another one in one thing, in percent.
    pub siblings: u64,
    /// All flows have the same short hash.
    pub alike: bool,
    /// What the output's pauses are like, where it is not one of those that all have.
    pub stall: Option<Pause>,
    /// The timer is not what closes flows.
    pub patient: bool,
    /// How many frames, in percent of a usual run.
    pub share: u64,
}

impl Profile {
    /// Nothing out of the usual.
    pub const PLAIN: Profile = Profile {
        name: "plain",
        flows: 3,
        sizes: (1, 1_460),
        odd: 0,
        noise: 0,
        runts: false,
        flips: 0,
        padded: 3,
        renewed: 2,
        siblings: 40,
        alike: false,
        stall: None,
        patient: false,
        share: 100,
    };
}

/// A frame, and what is told beside it.
#[derive(Clone, Debug)]
pub(super) struct Offer {
    pub bytes: Vec<u8>,
    pub user: RxUser,
}

/// A flow: what its next segment looks like.
#[derive(Clone, Debug)]
struct Flow {
    /// Addresses, tags and type of Ethernet.
    ethernet: Vec<u8>,
    v6: bool,
    addresses: Vec<u8>,
    ports: [u8; 4],
    stamped: bool,
    /// Behind TCP's data offset.
    reserved: u8,
    size: usize,
    traffic_class: u8,
    hops: u8,
    label: u16,
    sequence: u32,
    acknowledgement: u32,
    value: u32,
    echo: u32,
    window: u16,
    ident: u16,
    ece: bool,
}

/// The fields of one segment that are not the flow's.
struct Shape {
    flags: u8,
    fragment: u16,
    options: Vec<u8>,
    /// Behind the IP header: IPv4 options or an IPv6 extension header.
    extra: Vec<u8>,
    /// What IPv6 says of the extension header.
    extension: u8,
    /// Bytes that are cut off at the end.
    cut: usize,
    offset_bits: u8,
    /// Added to the data offset and to the IP length, wrongly.
    offset_fault: u8,
    length_fault: i32,
}

impl Shape {
    /// A segment that joins.
    const PLAIN: Shape = Shape {
        flags: 0x10,
        fragment: 0x4000,
        options: Vec::new(),
        extra: Vec::new(),
        extension: 0,
        cut: 0,
        offset_bits: 0,
        offset_fault: 0,
        length_fault: 0,
    };
}

/// All flows.
pub(super) struct Traffic {
    profile: Profile,
    flows: Vec<Flow>,
    /// The bit that was flipped last.
    flipped: usize,
}

impl Flow {
    fn random(rng: &mut Rng, profile: &Profile) -> Self {
        let v6 = rng.chance(40);
        let mut ethernet = vec![0; 12];
        rng.fill(&mut ethernet);
        let tags = if rng.chance(70) { 0 } else { rng.between(1, 2) };
        for _ in 0..tags {
            ethernet.extend(rng.pick(&[0x8100u16, 0x88a8]).to_be_bytes());
            ethernet.extend((rng.bits() as u16).to_be_bytes());
        }
        ethernet.extend(if v6 { 0x86ddu16 } else { 0x0800 }.to_be_bytes());
        let mut addresses = vec![0; if v6 { 32 } else { 8 }];
        rng.fill(&mut addresses);
        Flow {
            ethernet,
            v6,
            addresses,
            ports: (rng.bits() as u32).to_be_bytes(),
            stamped: rng.chance(50),
            reserved: if rng.chance(20) { rng.below(16) as u8 } else { 0 },
            size: rng.between(profile.sizes.0, profile.sizes.1),
            traffic_class: rng.bits() as u8,
            hops: rng.bits() as u8,
            label: rng.bits() as u16,
            sequence: rng.bits() as u32,
            acknowledgement: rng.bits() as u32,
            value: rng.bits() as u32,
            echo: rng.bits() as u32,
            window: rng.bits() as u16,
            ident: rng.bits() as u16,
            ece: rng.chance(20),
        }
    }

    /// A flow that differs in one thing that tells flows apart, but for the short hash in some cases.
    fn sibling(&self, rng: &mut Rng) -> Self {
        let mut flow = self.clone();
        match rng.below(4) {
            0 => flow.ports[rng.between(0, 3)] ^= 1 << rng.below(8),
            1 => {
                let at = rng.between(0, flow.addresses.len() - 1);
                flow.addresses[at] ^= 1 << rng.below(8);
            }
            2 if flow.ethernet.len() > 14 => {
                let at = 12 + 4 * rng.between(0, (flow.ethernet.len() - 14) / 4 - 1);
                if rng.chance(20) {
                    // Of the customer's and the service's.
                    let other = if flow.ethernet[at] == 0x81 { [0x88, 0xa8] } else { [0x81, 0] };
                    flow.ethernet[at..at + 2].copy_from_slice(&other);
                } else {
                    flow.ethernet[at + rng.between(2, 3)] ^= 1 << rng.below(8);
                }
            }
            _ => {
                // The same short hash.
                flow.ports[0] ^= 0x55;
                flow.ports[3] ^= 0x55;
            }
        }
        flow
    }

    /// Another flow with the same short hash.
    fn namesake(&self, rng: &mut Rng) -> Self {
        let mut flow = self.clone();
        let both = 1 + rng.below(255) as u8;
        let at = rng.between(0, 1);
        // The hash is of one port and the other with its bytes swapped.
        flow.ports[at] ^= both;
        flow.ports[3 - at] ^= both;
        flow.size = (self.size + rng.between(0, 4)).saturating_sub(2).max(1);
        flow
    }

    fn timestamps(&self) -> Vec<u8> {
        let mut options = vec![1, 1, 8, 10];
        options.extend(self.value.to_be_bytes());
        options.extend(self.echo.to_be_bytes());
        options
    }

    fn segment(&self, payload: &[u8], shape: &Shape) -> Vec<u8> {
        let mut tcp = self.ports.to_vec();
        tcp.extend(self.sequence.to_be_bytes());
        tcp.extend(self.acknowledgement.to_be_bytes());
        let words = (20 + shape.options.len()) / 4;
        tcp.push(((words as u8).wrapping_add(shape.offset_fault) << 4) | (shape.offset_bits ^ self.reserved));
        tcp.push(shape.flags | if self.ece { 0x40 } else { 0 });
        tcp.extend(self.window.to_be_bytes());
        tcp.extend([0x12, 0x34, 0, 0]);
        tcp.extend(&shape.options);
        tcp.extend(payload);
        let mut frame = self.ethernet.clone();
        let len = (tcp.len() + shape.extra.len()) as i32 + shape.length_fault;
        if self.v6 {
            frame.extend([0x60 | self.traffic_class >> 4, self.traffic_class << 4]);
            frame.extend(self.label.to_be_bytes());
            frame.extend((len as u16).to_be_bytes());
            frame.extend([if shape.extra.is_empty() { 6 } else { shape.extension }, self.hops]);
            frame.extend(&self.addresses);
        } else {
            let at = frame.len();
            frame.extend([0x45 + (shape.extra.len() / 4) as u8, self.traffic_class]);
            frame.extend(((20 + len) as u16).to_be_bytes());
            frame.extend(self.ident.to_be_bytes());
            frame.extend(shape.fragment.to_be_bytes());
            frame.extend([self.hops, 6, 0, 0]);
            frame.extend(&self.addresses);
            frame.extend(&shape.extra);
            set_checksum(&mut frame[at..]);
            frame.extend(&tcp);
            return frame;
        }
        frame.extend(&shape.extra);
        frame.extend(&tcp);
        frame
    }
}

/// Of an IPv4 header.
fn set_checksum(header: &mut [u8]) {
    header[10..12].fill(0);
    let sum = linerate_wire::checksum::checksum(header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
}

impl Traffic {
    pub fn new(rng: &mut Rng, profile: Profile) -> Self {
        let mut flows: Vec<Flow> = Vec::new();
        for _ in 0..profile.flows {
            let like = flows.last().filter(|_| profile.alike || rng.chance(profile.siblings));
            let like = like.map(|flow| if profile.alike { flow.namesake(rng) } else { flow.sibling(rng) });
            flows.push(like.unwrap_or_else(|| Flow::random(rng, &profile)));
        }
        Traffic { profile, flows, flipped: rng.below(1_000) as usize }
    }

    /// The next frame.
    pub fn next(&mut self, rng: &mut Rng) -> Offer {
        let noise = rng.chance(self.profile.noise);
        let (mut bytes, mut user) = (Vec::new(), user(rng));
        if noise {
            bytes = frames::random(rng, &Mix::default());
            if self.profile.runts {
                bytes.truncate(rng.between(1, 8));
            } else if rng.chance(8) {
                bytes.truncate(rng.between(1, 60).min(bytes.len()));
            }
            user.csum_status = if rng.chance(50) { TCP_GOOD } else { rng.below(8) as u8 };
            return Offer { bytes, user };
        }
        let at = rng.between(0, self.flows.len() - 1);
        // A flow goes on for a while, as in a burst.
        let at = if self.flows.len() > 1 && rng.chance(60) { 0 } else { at };
        self.flows.swap(0, at);
        if rng.chance(self.profile.renewed) {
            let flow = &self.flows[0];
            self.flows[0] = match self.profile.alike {
                true => flow.namesake(rng),
                false if rng.chance(self.profile.siblings) => flow.sibling(rng),
                false => Flow::random(rng, &self.profile),
            };
        }
        self.segment(rng, &mut bytes, &mut user);
        if bytes.len() < 60 && rng.chance(90) {
            bytes.resize(60, 0xee);
        } else if rng.chance(self.profile.padded) {
            bytes.resize(bytes.len() + rng.between(1, 300), 0xee);
        }
        Offer { bytes, user }
    }

    fn segment(&mut self, rng: &mut Rng, bytes: &mut Vec<u8>, user: &mut RxUser) {
        let odd = rng.chance(self.profile.odd);
        let flow = &mut self.flows[0];
        let mut shape =
            Shape { options: if flow.stamped { flow.timestamps() } else { Vec::new() }, ..Shape::PLAIN };
        let mut payload = vec![0; flow.size];
        if odd {
            flow.stumble(rng, &mut shape, &mut payload, user);
        }
        rng.fill(&mut payload);
        *bytes = flow.segment(&payload, &shape);
        bytes.truncate(bytes.len() - shape.cut.min(bytes.len() - 1));
        let flips = rng.chance(self.profile.flips);
        if flips {
            let headers = bytes.len().saturating_sub(payload.len()).max(14);
            self.flipped = (self.flipped + 1) % (8 * headers);
            flow.flip(self.flipped, bytes);
        }
        if flips && rng.chance(50) {
            // It was no segment of this flow.
            return;
        }
        flow.sequence = flow.sequence.wrapping_add(payload.len() as u32);
        flow.ident = flow.ident.wrapping_add(1);
        if rng.chance(30) {
            flow.acknowledgement = flow.acknowledgement.wrapping_add(rng.below(5_000) as u32);
            flow.window = rng.bits() as u16;
            flow.value = flow.value.wrapping_add(rng.below(3) as u32);
            flow.echo = flow.echo.wrapping_add(rng.below(3) as u32);
        }
    }
}

impl Flow {
    /// Inverts a bit. The header's checksum stays right: a frame with a wrong one is not given as good.
    fn flip(&self, bit: usize, bytes: &mut [u8]) {
        let ip = self.ethernet.len();
        let is_sum = !self.v6 && (ip + 10..ip + 12).contains(&(bit / 8));
        if !is_sum && let Some(byte) = bytes.get_mut(bit / 8) {
            *byte ^= 1 << (bit % 8);
        }
        if !self.v6 && bytes.len() >= ip + 20 {
            set_checksum(&mut bytes[ip..ip + 20]);
        }
    }

    /// Something odd, for this segment or from now on.
    fn stumble(&mut self, rng: &mut Rng, shape: &mut Shape, payload: &mut Vec<u8>, user: &mut RxUser) {
        match rng.below(27) {
            0 => self.sequence = self.sequence.wrapping_add(1 << rng.below(32)),
            1 => self.acknowledgement = self.acknowledgement.wrapping_sub(1 << rng.below(32)),
            2 => self.value = self.value.wrapping_sub(1 << rng.below(32)),
            3 => self.echo = self.echo.wrapping_sub(1 << rng.below(32)),
            4 => self.traffic_class ^= 1 << rng.below(8),
            5 => self.hops ^= 1 << rng.below(8),
            6 => self.ece = !self.ece,
            7 => self.label ^= 1 << rng.below(16),
            8 => self.ethernet[rng.between(0, 11)] ^= 1 << rng.below(8),
            9 => self.size = (self.size + rng.between(0, 40)).saturating_sub(20).max(1),
            10 | 11 => shape.flags |= 1 << rng.below(8),
            12..=14 => shape.flags |= 0x08,
            15 => shape.flags ^= 0x10,
            16 => payload.clear(),
            17 => payload.truncate(rng.between(0, payload.len())),
            18 => {
                let longer = if rng.chance(40) { rng.between(1, 9) } else { 1 << rng.between(4, 13) };
                payload.resize((payload.len() + longer).min(LONGEST.max(payload.len())), 0);
            }
            19 => shape.offset_bits = 1 << rng.below(4),
            20 => match rng.below(3) {
                0 => shape.offset_fault = rng.below(16) as u8,
                1 => shape.length_fault = 1 << rng.below(16),
                _ => shape.length_fault = -(1 << rng.below(6)),
            },
            21 => user.csum_status = rng.below(8) as u8,
            22 => user.seg_size = 1 << rng.below(16),
            23 => shape.fragment = rng.pick(&[0, 0x2000, 0x6000, 0xc000, 0x4001, 0x5fff]),
            24 => {
                let bytes = 4 * rng.between(1, 3);
                let byte = rng.between(0, 3);
                match rng.below(4) {
                    0 => self.stamped = !self.stamped,
                    1 => shape.options = vec![1; bytes],
                    _ if shape.options.len() == 12 => shape.options[byte] ^= 1 << rng.below(8),
                    _ => shape.options = vec![1; 12],
                }
            }
            25 => shape.cut = if rng.chance(50) { 1 } else { rng.between(1, 120) },
            _ if self.v6 => {
                shape.extra = vec![6, 0, 1, 4, 0, 0, 0, 0];
                shape.extension =
                    rng.pick(&[0, 43, 44, 51, 60]) ^ if rng.chance(30) { 1 << rng.below(8) } else { 0 };
            }
            _ => shape.extra = vec![1; 4 * rng.between(1, 10)],
        }
    }
}

/// Two flows that differ in one of the 48 bits that the short hash is made of: each opens and is joined. With each frame whether it
/// opens.
pub(super) fn neighbours(rng: &mut Rng, v6: bool, bit: usize) -> [(Offer, bool); 4] {
    let mut flow = Flow::random(rng, &Profile { sizes: (6, 6), ..Profile::PLAIN });
    while flow.v6 != v6 {
        flow = Flow::random(rng, &Profile { sizes: (6, 6), ..Profile::PLAIN });
    }
    let mut other = flow.clone();
    let byte = match bit / 8 {
        at @ 0..4 => &mut other.ports[at],
        // The last two of the source address.
        at => &mut other.addresses[if v6 { 10 + at } else { at - 2 }],
    };
    *byte ^= 1 << (bit % 8);
    let mut segment = |flow: &mut Flow, flags: u8, opens: bool| {
        let shape = Shape {
            flags,
            options: if flow.stamped { flow.timestamps() } else { Vec::new() },
            ..Shape::PLAIN
        };
        let mut bytes = flow.segment(&[0x5a; 6], &shape);
        bytes.resize(bytes.len().max(60), 0xee);
        flow.sequence = flow.sequence.wrapping_add(6);
        (Offer { bytes, user: user(rng) }, opens)
    };
    [
        segment(&mut flow, 0x10, true),
        segment(&mut other, 0x10, true),
        segment(&mut other, 0x18, false),
        segment(&mut flow, 0x18, false),
    ]
}

fn user(rng: &mut Rng) -> RxUser {
    RxUser {
        // What the block has not to look at.
        error: rng.chance(50),
        csum_status: TCP_GOOD,
        csum_raw: rng.bits() as u16,
        hash: rng.bits() as u32,
        hash_type: rng.below(8) as u8,
        channel: rng.below(16) as u8,
        drop: rng.chance(50),
        seg_count: rng.bits() as u8,
        seg_size: 0,
        arrival: rng.bits() as u32,
    }
}
