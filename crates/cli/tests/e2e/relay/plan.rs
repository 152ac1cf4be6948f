//! What happens in one world: all of it follows from a seed.

use linerate_transport::{BufferSize, DelayedAck, KeepAlive, SocketOptions};
use std::time::Duration;

/// How long data may stay unacknowledged before a connection is given up, on either side.
pub const USER_TIMEOUT: Duration = Duration::from_secs(25);
/// Chances are parts in this.
const WHOLE: u32 = 10_000;
/// Loss and corruption of one direction, in parts of [`WHOLE`], beyond which a connection may time out: at 8 % both
/// ways, all of the tries that fit into [`USER_TIMEOUT`] fail once in a hundred thousand cases.
const HARSH: u32 = 800;

/// A stream of random numbers (splitmix64): fast, and the same everywhere.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d))
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number from `low` to `high`, both included.
    pub fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    /// A size from `low` to `high`, each order of magnitude as likely as the next.
    pub fn size(&mut self, low: usize, high: usize) -> usize {
        let (low_bits, high_bits) = ((low.max(1)).ilog2(), high.max(1).ilog2());
        let bits = self.within(low_bits.into(), high_bits.into());
        (self.within(1 << bits, (2 << bits) - 1) as usize).clamp(low, high)
    }

    /// True in `parts` of [`WHOLE`] cases.
    pub fn chance(&mut self, parts: u32) -> bool {
        self.next() % u64::from(WHOLE) < u64::from(parts)
    }

    /// One of `choices`.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.next() as usize % choices.len()]
    }
}

/// A bijection that scatters bits: what splitmix64 ends with.
pub fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// One end of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Our stack.
    Ours,
    /// The Linux kernel.
    Kernel,
}

/// What is between the two: offloads, rings, and what of TCP the kernel may use. Each has a namespace of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LabKind {
    /// Super-segments and checksums left to others cross the TAP.
    pub offloads: bool,
    /// Queues and pools of a few slots.
    pub tiny_rings: bool,
    /// The kernel offers SACK.
    pub sack: bool,
    /// The kernel offers timestamps.
    pub timestamps: bool,
    /// The kernel asks for ECN.
    pub ecn: bool,
}

/// All laboratories; the seed's remainder chooses one.
pub const LABS: [LabKind; 4] = [
    LabKind { offloads: false, tiny_rings: false, sack: true, timestamps: true, ecn: false },
    LabKind { offloads: true, tiny_rings: false, sack: true, timestamps: true, ecn: true },
    LabKind { offloads: false, tiny_rings: true, sack: false, timestamps: false, ecn: true },
    LabKind { offloads: true, tiny_rings: true, sack: true, timestamps: false, ecn: false },
];

/// What one end does.
#[derive(Clone, Debug)]
pub struct EndPlan {
    /// Bytes that it sends before its FIN.
    pub bytes: usize,
    /// Bytes that it queues at once.
    pub write: usize,
    /// Bytes that it reads at once; `None` reads all there is.
    pub read: Option<usize>,
    /// How long it waits between two such reads.
    pub pause: Duration,
    /// Settings of its socket.
    pub options: SocketOptions,
}

/// What frames of one direction suffer, chances in parts of [`WHOLE`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Impairment {
    /// Frames lost, taken over all.
    pub loss: u32,
    /// Mean number of frames that are lost in a row.
    pub burst: u32,
    /// Frames that arrive twice.
    pub duplicate: u32,
    /// Frames that others overtake.
    pub reorder: u32,
    /// Frames with flipped bits.
    pub corrupt: u32,
    /// Time on the way.
    pub delay: Duration,
    /// Further time on the way, from nothing to this; order is kept.
    pub jitter: Duration,
    /// Further time for frames that are overtaken, at most.
    pub late: Duration,
}

impl Impairment {
    fn is_harsh(&self) -> bool {
        self.loss + self.corrupt > HARSH
    }

    /// Half as bad.
    fn is_rough(&self) -> bool {
        self.loss + self.corrupt > HARSH / 2
    }
}

/// A link that becomes narrower.
#[derive(Clone, Copy, Debug)]
pub struct Narrow {
    /// Largest IP packet from then on.
    pub mtu: usize,
    /// Frames of both directions before.
    pub after: u32,
    /// The sender of a longer packet is not told.
    pub silent: bool,
}

/// An end that breaks off.
#[derive(Clone, Copy, Debug)]
pub struct Abort {
    /// Who.
    pub side: Side,
    /// After so many bytes sent and received.
    pub after: usize,
}

/// One world.
#[derive(Clone, Debug)]
pub struct Plan {
    /// All that follows comes from it.
    pub seed: u64,
    /// IPv6 instead of IPv4.
    pub v6: bool,
    /// Who connects.
    pub opener: Side,
    /// Our stack.
    pub ours: EndPlan,
    /// The kernel.
    pub kernel: EndPlan,
    /// Frames from us to the kernel.
    pub to_kernel: Impairment,
    /// Frames from the kernel to us.
    pub to_ours: Impairment,
    /// A narrower link.
    pub narrow: Option<Narrow>,
    /// An abort.
    pub abort: Option<Abort>,
}

impl Plan {
    /// The world of this seed.
    pub fn new(seed: u64) -> Plan {
        let mut random = Random::new(seed);
        let grade = random.pick(&[0, 1, 2, 2, 3, 3]);
        let to_kernel = impairment(&mut random, grade);
        let to_ours = if random.chance(7_000) { impairment(&mut random, grade) } else { to_kernel };
        let most = if to_kernel.is_harsh() || to_ours.is_harsh() { 40_000 } else { 300_000 };
        let v6 = random.chance(3_500);
        let narrow = random.chance(1_500).then(|| narrow(&mut random, v6));
        let ours = end(&mut random, most, Side::Ours);
        let kernel = end(&mut random, most, Side::Kernel);
        let abort = random.chance(1_500).then(|| Abort {
            side: random.pick(&[Side::Ours, Side::Kernel]),
            after: random.within(0, (ours.bytes + kernel.bytes) as u64) as usize,
        });
        let opener = random.pick(&[Side::Ours, Side::Kernel]);
        Plan { seed, v6, opener, ours, kernel, to_kernel, to_ours, narrow, abort }
    }

    /// Which of [`LABS`] it is for.
    pub fn lab(&self) -> usize {
        self.seed as usize % LABS.len()
    }

    /// Whether so much is lost that a connection may time out.
    pub fn is_harsh(&self) -> bool {
        self.to_kernel.is_harsh() || self.to_ours.is_harsh()
    }

    /// Whether a handshake may well need more than one try.
    pub fn is_rough(&self) -> bool {
        self.to_kernel.is_rough() || self.to_ours.is_rough()
    }

    /// Whether packets disappear without a word for being too long.
    pub fn has_black_hole(&self) -> bool {
        self.narrow.is_some_and(|narrow| narrow.silent)
    }
}

fn impairment(random: &mut Random, grade: u32) -> Impairment {
    let delay = Duration::from_micros(random.size(100, 8_000) as u64);
    let mut any = |most: u64| if random.chance(7_000) { random.within(0, most) as u32 } else { 0 };
    let (loss, others) = match grade {
        0 => (0, 0),
        1 => (100, 200),
        2 => (500, 500),
        _ => (2_000, 2_000),
    };
    let loss = any(loss);
    let (duplicate, reorder, corrupt) = (any(others), any(others), any(others / 4));
    let jitter = Duration::from_micros(any(3_000).into());
    let burst = random.pick(&[1, 1, 1, 4]);
    let late = Duration::from_micros(random.within(100, 10_000));
    Impairment { loss, burst, duplicate, reorder, corrupt, delay, jitter, late }
}

fn narrow(random: &mut Random, v6: bool) -> Narrow {
    let silent = random.chance(4_000);
    // Below 1,280 there is no IPv6, and below 1,064 the kernel's first guess at a black hole does not pass.
    let least = if v6 {
        1_280
    } else if silent {
        1_100
    } else {
        600
    };
    Narrow { mtu: random.within(least, 1_480) as usize, after: random.within(0, 40) as u32, silent }
}

fn end(random: &mut Random, most: usize, side: Side) -> EndPlan {
    let least = random.pick(&[1, 1, 5_000, 20_000]);
    let bytes = if random.chance(1_000) { 0 } else { random.size(least, most) };
    let (read, pause) = if random.chance(2_500) {
        let pause = Duration::from_micros(random.within(200, 20_000));
        // No slower than some seconds for all that may come.
        let reads = Duration::from_secs(4).as_micros() / pause.as_micros();
        (Some(random.size(200, 20_000).max(most / reads as usize)), pause)
    } else {
        (None, Duration::ZERO)
    };
    // The kernel doubles what it is asked for, and counts the memory that a frame takes, not its bytes.
    let least = if side == Side::Kernel { 2_500 } else { 1 };
    let mut buffer = |share| {
        if random.chance(share) {
            BufferSize::Fixed(random.size(least, 30_000))
        } else {
            BufferSize::Auto { max: 1 << 20 }
        }
    };
    let options = SocketOptions {
        send_buffer: buffer(3_000),
        receive_buffer: buffer(3_000),
        mss: random.chance(1_500).then(|| random.within(500, 1_400) as u16),
        no_delay: random.chance(7_000),
        delayed_ack: DelayedAck { segments: random.pick(&[1, 2, 2, 2]), ..DelayedAck::default() },
        keep_alive: Some(KeepAlive {
            idle: Duration::from_secs(3),
            interval: Duration::from_secs(2),
            probes: 10,
        }),
        user_timeout: USER_TIMEOUT,
        ..SocketOptions::default()
    };
    EndPlan { bytes, write: random.size(1_000, 60_000), read, pause, options }
}
