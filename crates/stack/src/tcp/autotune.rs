//! Sizes of the socket buffers: fixed, or grown with what the connection needs.

use core::time::Duration;
use linerate_transport::BufferSize;
use linerate_wire::units::{Instant, nanos};

/// What an automatic receive buffer starts with, in bytes: ten segments of slow start and the next doublings fit, with
/// room for one super-frame of 64 KiB beside.
const INITIAL_RECEIVE: usize = 128 << 10;

/// What an automatic send buffer starts with, in bytes.
const INITIAL_SEND: usize = 128 << 10;

/// Least size of a socket buffer, in bytes: whatever is set, two small segments fit.
pub const LEAST_BUFFER: usize = 2 << 10;
const LEAST: usize = LEAST_BUFFER;

/// Shortest round trip that counts: on a fast local network, scheduling at both ends takes that long now and then, and
/// the window must not run out meanwhile.
const LEAST_RTT: Duration = Duration::from_millis(1);

/// Largest window that the protocol can express (RFC 7323 section 2.3).
const MOST: usize = 1 << 30;

/// Size of the send buffer for a congestion window of `window` bytes: twice that, so that as much waits as flies. When
/// memory is `tight`, as much as flies, so that who is being read keeps its rate whoever else holds the memory.
pub(super) fn send_limit(size: BufferSize, window: u64, tight: bool) -> usize {
    match size {
        BufferSize::Fixed(bytes) => bytes.clamp(LEAST, MOST),
        BufferSize::Auto { max } => {
            let windows = if tight { 1 } else { 2 };
            let wanted = usize::try_from(window.saturating_mul(windows)).unwrap_or(MOST);
            wanted.max(INITIAL_SEND).min(max.clamp(LEAST, MOST))
        }
    }
}

/// A size that a buffer may have.
fn within(bytes: usize) -> u32 {
    bytes.clamp(LEAST, MOST) as u32
}

/// Size of the receive buffer (dynamic right-sizing): twice what the application reads per round trip. While that doubles,
/// as in slow start, four times: the peer hears of the window a round trip before it fills it, and what was read is as old.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ReceiveTuner {
    /// At most [`MOST`], as `max`.
    limit: u32,
    max: u32,
    /// Zero: not measured yet; at least [`LEAST_RTT`] then.
    rtt_ns: u64,
    read_since: Instant,
    /// Bytes read since then, and in the round trip before; four times [`MOST`] stand for all that is more.
    read: u32,
    read_before: u32,
    /// When `window_end` arrives, a window has passed since then; zero: none is watched yet.
    window_since: Instant,
    window_end: u64,
}

impl ReceiveTuner {
    /// A buffer of the initial size.
    pub fn new(now: Instant, size: BufferSize) -> Self {
        let (limit, max) = match size {
            BufferSize::Fixed(bytes) => (within(bytes), within(bytes)),
            BufferSize::Auto { max } => (within(max).min(INITIAL_RECEIVE as u32), within(max)),
        };
        ReceiveTuner {
            limit,
            max,
            rtt_ns: 0,
            read_since: now,
            read: 0,
            read_before: 0,
            window_since: now,
            window_end: 0,
        }
    }

    /// Size now, in bytes.
    pub fn limit(&self) -> usize {
        self.limit as usize
    }

    /// The most it may become, in bytes: what the window scale must be able to express.
    pub fn max(&self) -> usize {
        self.max as usize
    }

    /// The setting changed. What was promised to the peer stays promised; that is not the tuner's business.
    pub fn set(&mut self, size: BufferSize) {
        match size {
            BufferSize::Fixed(bytes) => {
                self.limit = within(bytes);
                self.max = self.limit;
            }
            BufferSize::Auto { max } => {
                self.max = within(max);
                self.limit = self.limit.min(self.max);
            }
        }
    }

    /// A round-trip time was measured. Falls at once and rises slowly: what is measured at a receiver is never too short.
    pub fn measure(&mut self, rtt: Duration) {
        let (rtt_ns, old_ns) = (nanos(rtt.max(LEAST_RTT)), self.rtt_ns);
        let rises = old_ns > 0 && rtt_ns > old_ns;
        self.rtt_ns = if rises { old_ns + (rtt_ns - old_ns) / 8 } else { rtt_ns };
    }

    /// An upper bound of the round-trip time.
    fn measure_at_most(&mut self, rtt: Duration) {
        let (rtt_ns, old_ns) = (nanos(rtt.max(LEAST_RTT)), self.rtt_ns);
        self.rtt_ns = if old_ns > 0 { old_ns.min(rtt_ns) } else { rtt_ns };
    }

    /// Data up to `next` arrived in order; the window reaches up to `edge`. The time in which a whole window arrives is
    /// a round trip, or more where the sender is slower than the window allows.
    pub fn on_arrival(&mut self, now: Instant, next: u64, edge: u64) {
        if next < self.window_end {
            return;
        }
        if self.window_end > 0 {
            self.measure_at_most(now - self.window_since);
        }
        (self.window_since, self.window_end) = (now, edge.max(next + 1));
    }

    /// The application read `len` bytes. `may_grow`: whether memory permits it.
    pub fn on_read(&mut self, now: Instant, len: usize, may_grow: impl FnOnce() -> bool) {
        self.read = self.read.saturating_add(u32::try_from(len).unwrap_or(u32::MAX));
        if self.rtt_ns == 0 || now.nanos_since(self.read_since) < self.rtt_ns {
            return;
        }
        let bytes = self.read;
        let growth = bytes.saturating_sub(self.read_before);
        let ahead = growth.saturating_mul(2).min(bytes);
        let wanted = bytes.saturating_add(ahead).saturating_mul(2);
        self.read_before = bytes;
        if wanted > self.limit && may_grow() {
            // At most doubled per round trip: a pause before the measurement must not count as speed.
            self.limit = wanted.min(self.limit.saturating_mul(2)).min(self.max);
        }
        (self.read_since, self.read) = (now, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_to_twice_what_is_read_per_round_trip() {
        let mut tuner = ReceiveTuner::new(Instant::ZERO, BufferSize::Auto { max: 1 << 20 });
        tuner.measure(Duration::from_millis(10));
        let mut now = Instant::ZERO;
        for _ in 0..20 {
            now += Duration::from_millis(10);
            tuner.on_read(now, 300_000, || true);
        }
        assert_eq!(tuner.limit(), 600_000);
        for _ in 0..20 {
            now += Duration::from_millis(10);
            tuner.on_read(now, 3_000_000, || false);
        }
        assert_eq!(tuner.limit(), 600_000, "memory is tight");
        for _ in 0..20 {
            now += Duration::from_millis(10);
            tuner.on_read(now, 3_000_000, || true);
        }
        assert_eq!(tuner.limit(), 1 << 20);
    }

    #[test]
    fn is_ahead_of_slow_start() {
        // What is sent in a round trip arrives in the next and is read in the one after; it fits what was offered before.
        let mut tuner = ReceiveTuner::new(Instant::ZERO, BufferSize::Auto { max: 128 << 20 });
        tuner.measure(Duration::from_millis(10));
        let (mut now, mut bytes) = (Instant::ZERO, 20_000);
        for _ in 0..10 {
            now += Duration::from_millis(10);
            tuner.on_read(now, bytes, || true);
            assert!(tuner.limit() >= 4 * bytes, "{} after {bytes} were read", tuner.limit());
            bytes *= 2;
        }
        for _ in 0..5 {
            now += Duration::from_millis(10);
            tuner.on_read(now, bytes, || true);
        }
        assert_eq!(tuner.limit(), 4 * bytes, "the last doubling is not forgotten, and nothing is added");
    }

    #[test]
    fn a_window_that_passes_measures_a_round_trip() {
        let mut tuner = ReceiveTuner::new(Instant::ZERO, BufferSize::Auto { max: 1 << 20 });
        tuner.on_arrival(Instant::from_millis(0), 0, 1_000);
        tuner.on_arrival(Instant::from_millis(5), 500, 1_500);
        assert_eq!(tuner.rtt_ns, 0);
        tuner.on_arrival(Instant::from_millis(20), 1_000, 2_000);
        assert_eq!(tuner.rtt_ns, 20_000_000);
    }

    #[test]
    fn fixed_sizes_stay() {
        let mut tuner = ReceiveTuner::new(Instant::ZERO, BufferSize::Fixed(8_192));
        tuner.measure(Duration::ZERO);
        tuner.on_read(Instant::from_millis(1), 1 << 20, || true);
        assert_eq!((tuner.limit(), tuner.max()), (8_192, 8_192));
        assert_eq!(send_limit(BufferSize::Fixed(8_192), 1 << 20, false), 8_192);
        assert_eq!(send_limit(BufferSize::Fixed(0), 1 << 20, false), 2_048);
        let auto = BufferSize::Auto { max: 1 << 20 };
        assert_eq!(send_limit(auto, 10_000, false), 128 << 10);
        assert_eq!(send_limit(auto, 200_000, false), 400_000);
        assert_eq!(send_limit(auto, 200_000, true), 200_000);
        assert_eq!(send_limit(auto, 10_000, true), 128 << 10);
        assert_eq!(send_limit(auto, 1 << 40, false), 1 << 20);
    }
}
