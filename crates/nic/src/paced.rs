//! Interrupt pacing for a queue that has none of its own, or not in the mode that is wanted.

use crate::device::{Device, DeviceError};
use crate::frame::RxBatch;
use crate::pacing::{AdaptiveConfig, AdaptivePacing, PacingConfig, PacingMode};
use crate::pass_on;
use crate::queue::QueuePair;
use crate::tx::TxQueue;
use linerate_wire::units::{Instant, earliest};

/// An interface whose frames wait for one another while the loop sleeps.
///
/// Its interrupt stays masked while they wait, and [`QueuePair::poll_timeout`] says when they are due; where the queue counts
/// frames ([`QueuePair::arm_for`]) the threshold interrupts earlier, else it is judged when the loop is awake anyway. In mode
/// [`PacingMode::LastNewPacket`] frames that came are noticed when the timer ends, not when they come: it then runs once more.
/// In mode [`PacingMode::LastInterrupt`] the queue is looked at when the timer ends, and only if nothing came is the
/// interrupt armed: as long as frames come, there is none.
///
/// Nothing waits while the transmit ring is full: the interrupt tells of room as well.
#[derive(Debug)]
pub struct Paced<D> {
    device: D,
    /// None where the device does it, or nothing is to wait.
    pace: Option<Pace>,
}

#[derive(Debug)]
struct Pace {
    pacing: AdaptivePacing,
    /// Frames taken since the loop was awake.
    taken: u32,
    /// The interrupt was armed, and frames that have come since wait for one another.
    has_slept: bool,
    /// The transmit ring is full: the interrupt tells of room.
    is_full: bool,
    /// Until when frames wait, unless they are enough earlier.
    until: Option<Instant>,
}

impl<D: QueuePair> Paced<D> {
    /// The device, without pacing.
    pub fn new(device: D) -> Self {
        Paced { device, pace: None }
    }

    /// The device.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// Sets the pacing, by software, with a timer that follows the load between the bounds of `adaptive`. Alike bounds make it
    /// that of `pacing`.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] for a threshold alone where the queue does not count frames, and for one that it does not
    /// count to: it would interrupt for frames that are to wait, again and again.
    pub fn set_adaptive(
        &mut self,
        now: Instant,
        pacing: PacingConfig,
        adaptive: AdaptiveConfig,
    ) -> Result<(), DeviceError> {
        let is_threshold_alone = pacing.mode == PacingMode::None;
        if is_threshold_alone && pacing.threshold > 1 && self.device.arm_for(now, 1).is_none() {
            return Err(DeviceError::Unsupported);
        }
        if self.device.most_counted().is_some_and(|most| pacing.threshold > most) {
            return Err(DeviceError::Unsupported);
        }
        let waits = pacing.threshold > 1 && (is_threshold_alone || pacing.timer_ticks > 0);
        self.pace = waits.then(|| Pace::new(pacing, adaptive, now));
        Ok(())
    }
}

impl Pace {
    fn new(pacing: PacingConfig, adaptive: AdaptiveConfig, now: Instant) -> Self {
        Pace {
            pacing: AdaptivePacing::new(pacing, adaptive, now),
            taken: 0,
            has_slept: false,
            is_full: false,
            until: None,
        }
    }

    fn config(&self) -> PacingConfig {
        self.pacing.pacing().config()
    }

    /// Whether frames, of which `waiting` are there, wait on.
    fn waits(&mut self, now: Instant, waiting: u32) -> bool {
        if self.config().mode == PacingMode::LastInterrupt || waiting == 0 {
            return false;
        }
        let known = u32::try_from(self.pacing.pacing().pending()).unwrap_or(u32::MAX);
        self.pacing.handle_packet(now, waiting.saturating_sub(known));
        !self.pacing.pacing().poll_interrupt(now)
    }

    /// Before the loop sleeps: until when frames are to wait; `None` where the interrupt is to tell of the next one.
    fn rest(&mut self, now: Instant) -> Option<Instant> {
        let is_by_interrupt = self.config().mode == PacingMode::LastInterrupt;
        if self.taken > 0 {
            if is_by_interrupt {
                self.pacing.handle_packet(now, self.taken);
            }
            self.pacing.handle_interrupt_taken(now);
            self.until = is_by_interrupt.then(|| now + self.config().period());
            self.taken = 0;
        } else if !is_by_interrupt {
            self.until = self.pacing.pacing().poll_timeout();
        }
        self.until = self.until.filter(|at| *at > now && !self.is_full);
        self.until
    }

    /// Whether frames wait for a threshold that no timer ends.
    fn waits_for_more(&self) -> bool {
        self.config().mode == PacingMode::None
    }
}

impl<D: QueuePair> QueuePair for Paced<D> {
    pass_on!(device: enabled, poll_completion, waiting, arm_for, most_counted);

    #[inline]
    fn receive(&mut self, now: Instant, batch: &mut RxBatch) -> Result<usize, DeviceError> {
        let Some(pace) = &mut self.pace else { return self.device.receive(now, batch) };
        if pace.has_slept && !pace.is_full && pace.waits(now, self.device.waiting()) {
            return Ok(0);
        }
        let count = self.device.receive(now, batch)?;
        pace.taken = pace.taken.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        pace.has_slept &= count == 0;
        Ok(count)
    }

    #[inline]
    fn transmit(&mut self, now: Instant, queue: &mut TxQueue) -> Result<usize, DeviceError> {
        let count = self.device.transmit(now, queue)?;
        if let Some(pace) = &mut self.pace {
            pace.is_full = !queue.is_empty();
        }
        Ok(count)
    }

    fn arm(&mut self, now: Instant) -> bool {
        let Some(pace) = &mut self.pace else { return self.device.arm(now) };
        let is_resting = pace.rest(now).is_some();
        pace.has_slept = true;
        if is_resting || pace.waits_for_more() && !pace.is_full {
            return self.device.arm_for(now, pace.config().threshold).unwrap_or(false);
        }
        self.device.arm(now)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let until = self.pace.as_ref().and_then(|pace| pace.until);
        earliest([self.device.poll_timeout(), until])
    }

    /// By the device where it can, else by software.
    fn set_pacing(&mut self, pacing: PacingConfig) -> Result<(), DeviceError> {
        self.pace = None;
        if self.device.set_pacing(pacing).is_ok() {
            return Ok(());
        }
        let alike = AdaptiveConfig { min_ticks: pacing.timer_ticks, ..AdaptiveConfig::default() };
        self.set_adaptive(Instant::ZERO, pacing, alike)
    }
}

impl<D: Device> Device for Paced<D> {
    pass_on!(device: all of Device);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Capabilities;
    use crate::frame::Frame;
    use crate::meta::{RxMeta, TxToken};
    use crate::pool::Pool;
    use alloc::vec::Vec;
    use core::time::Duration;
    use proptest::prelude::*;

    /// A queue in which so many frames wait; it counts them or does not.
    struct Ring {
        pool: Pool,
        waiting: u32,
        counts: bool,
        /// Frames at which it interrupts; none while it is masked.
        armed: Option<u32>,
    }

    impl Ring {
        fn new(counts: bool) -> Self {
            Ring { pool: Pool::new(64, 64), waiting: 0, counts, armed: None }
        }
    }

    impl QueuePair for Ring {
        fn enabled(&self) -> Capabilities {
            Capabilities::NONE
        }

        fn receive(&mut self, _now: Instant, batch: &mut RxBatch) -> Result<usize, DeviceError> {
            let before = batch.len();
            while self.waiting > 0 && !batch.is_full() {
                let buffer = self.pool.take().expect("a buffer");
                assert!(batch.push(Frame::new(buffer.freeze(0..60), RxMeta::default())).is_ok());
                self.waiting -= 1;
            }
            Ok(batch.len() - before)
        }

        fn transmit(&mut self, _now: Instant, _queue: &mut TxQueue) -> Result<usize, DeviceError> {
            Ok(0)
        }

        fn poll_completion(&mut self) -> Option<TxToken> {
            None
        }

        fn arm(&mut self, _now: Instant) -> bool {
            self.armed = Some(1);
            self.waiting > 0
        }

        fn waiting(&mut self) -> u32 {
            if self.counts { self.waiting } else { self.waiting.min(1) }
        }

        fn arm_for(&mut self, _now: Instant, frames: u32) -> Option<bool> {
            self.counts.then(|| {
                self.armed = Some(frames);
                self.waiting >= frames
            })
        }

        fn most_counted(&self) -> Option<u32> {
            self.counts.then_some(99)
        }
    }

    /// A loop that sleeps on nothing but interrupts and the timeout.
    struct Host {
        paced: Paced<Ring>,
        now: Instant,
        wakes: Option<Instant>,
        turns: u32,
        /// When each frame came, and how long each that was taken had waited.
        came: Vec<Instant>,
        waited: Vec<Duration>,
    }

    impl Host {
        fn new(counts: bool, config: PacingConfig) -> Self {
            let mut paced = Paced::new(Ring::new(counts));
            paced.set_pacing(config).expect("a mode that it has");
            let mut host = Host {
                paced,
                now: Instant::ZERO,
                wakes: None,
                turns: 0,
                came: Vec::new(),
                waited: Vec::new(),
            };
            host.run();
            host
        }

        /// Turns until there is nothing to do but sleep.
        fn run(&mut self) {
            self.paced.device.armed = None;
            for _ in 0..100 {
                self.turns += 1;
                let mut batch = RxBatch::with_limit(32);
                let count = self.paced.receive(self.now, &mut batch).expect("it works");
                for at in self.came.drain(..count) {
                    self.waited.push(Duration::from_nanos(self.now.as_nanos() - at.as_nanos()));
                }
                if count == 0 && !self.paced.arm(self.now) {
                    self.wakes = self.paced.poll_timeout();
                    return;
                }
            }
            panic!("it does not come to rest");
        }

        /// Sleeps until then, and turns whenever it is woken.
        fn sleep_until(&mut self, until: Instant) {
            while let Some(at) = self.wakes.filter(|at| *at <= until) {
                self.now = self.now.max(at);
                self.run();
            }
            self.now = until;
        }

        fn frame(&mut self, at: Instant) {
            self.sleep_until(at);
            self.came.push(at);
            self.paced.device.waiting += 1;
            if self.paced.device.armed.is_some_and(|frames| self.paced.device.waiting >= frames) {
                self.run();
            }
        }
    }

    fn config(mode: PacingMode, threshold: u32) -> PacingConfig {
        PacingConfig { mode, timer_ticks: 4, tick_ns: 25_000, threshold }
    }

    /// Frames at these times in microseconds; how long each waited, in microseconds.
    fn waits(counts: bool, config: PacingConfig, frames: &[u64]) -> Vec<u128> {
        let mut host = Host::new(counts, config);
        frames.iter().for_each(|at| host.frame(Instant::from_micros(*at)));
        host.sleep_until(Instant::from_millis(1_000));
        host.waited.iter().map(Duration::as_micros).collect()
    }

    #[test]
    fn frames_wait_as_the_mode_says() {
        use PacingMode::{FirstNewPacket, LastInterrupt, LastNewPacket};
        let burst = [200, 210, 220, 500];
        for counts in [true, false] {
            let waited = |mode, threshold| waits(counts, config(mode, threshold), &burst);
            assert_eq!(waited(FirstNewPacket, 99), [100, 90, 80, 100]);
            // The timer runs once more if more came; whether they did, who does not count cannot tell.
            let last = if counts { [200, 190, 180, 100] } else { [100, 90, 80, 100] };
            assert_eq!(waited(LastNewPacket, 99), last);
            assert_eq!(waited(LastInterrupt, 99), [0, 90, 80, 0]);
            assert_eq!(waited(LastInterrupt, 1), [0, 0, 0, 0]);
        }
        // The threshold interrupts where the queue counts.
        assert_eq!(waits(true, config(FirstNewPacket, 3), &burst), [20, 10, 0, 100]);
        assert_eq!(waits(true, config(LastInterrupt, 2), &burst), [0, 10, 0, 0]);
        assert_eq!(waits(true, config(PacingMode::None, 2), &burst), [10, 0, 280, 0]);
    }

    #[test]
    fn a_threshold_alone_needs_a_queue_that_counts() {
        let mut paced = Paced::new(Ring::new(false));
        assert_eq!(paced.set_pacing(config(PacingMode::None, 2)), Err(DeviceError::Unsupported));
        assert_eq!(paced.set_pacing(config(PacingMode::None, 1)), Ok(()));
    }

    #[test]
    fn a_queue_that_counts_is_not_asked_for_more_than_it_counts_to() {
        for mode in PacingMode::ALL {
            let mut paced = Paced::new(Ring::new(true));
            assert_eq!(paced.set_pacing(config(mode, 99)), Ok(()), "{mode:?}");
            assert_eq!(paced.set_pacing(config(mode, 100)), Err(DeviceError::Unsupported), "{mode:?}");
        }
        let mut paced = Paced::new(Ring::new(false));
        assert_eq!(paced.set_pacing(config(PacingMode::LastInterrupt, 100)), Ok(()));
    }

    #[test]
    fn under_load_there_are_no_interrupts_but_looks() {
        let mut host = Host::new(true, config(PacingMode::LastInterrupt, 16));
        host.turns = 0;
        // A frame every 10 us for 10 ms, and a look every 100 us, each with a turn that takes and one that finds no more.
        for n in 1..=1_000 {
            host.frame(Instant::from_micros(10 * n));
        }
        assert!((190..=210).contains(&host.turns), "{}", host.turns);
    }

    #[test]
    fn a_full_ring_is_not_made_to_wait() {
        for mode in PacingMode::ALL {
            let mut host = Host::new(true, config(mode, 16));
            let mut queue = TxQueue::with_capacity(1);
            queue.vacant().expect("room");
            queue.commit();
            host.paced.transmit(Instant::ZERO, &mut queue).expect("it works");
            // As after a turn that found the ring full.
            host.run();
            host.frame(Instant::from_micros(200));
            host.frame(Instant::from_micros(210));
            assert_eq!(host.waited, [Duration::ZERO; 2], "{mode:?}");
        }
    }

    proptest! {
        /// Whatever comes, a frame waits no longer than the timer (twice, where it begins anew), and none is left.
        #[test]
        fn no_frame_is_left_or_waits_longer(
            gaps in proptest::collection::vec(0u64..300, 1..80),
            mode in prop_oneof![Just(PacingMode::LastInterrupt), Just(PacingMode::FirstNewPacket)],
            threshold in 1u32..20,
            counts: bool,
        ) {
            let mut at = 0;
            let times: Vec<u64> = gaps.iter().map(|gap| { at += gap; at }).collect();
            let waited = waits(counts, config(mode, threshold), &times);
            prop_assert_eq!(waited.len(), times.len());
            prop_assert!(waited.iter().all(|waited| *waited <= 100), "{:?}", waited);
        }
    }
}
