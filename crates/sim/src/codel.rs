//! Controlled delay (CoDel), after the pseudo-code of RFC 8289 section 5.

use crate::parcel::Parcel;
use crate::queue::{Backlog, Managed};
use linerate_wire::units::Instant;
use std::time::Duration;

/// Settings of CoDel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CodelConfig {
    /// Acceptable standing delay. Default: 5 ms (RFC 8289 section 4.2).
    pub target: Duration,
    /// Time in the order of a worst-case round trip. Default: 100 ms (RFC 8289 section 4.2).
    pub interval: Duration,
    /// Mark instead of drop what can be marked (RFC 8289 section 3; RFC 3168). Default: off.
    pub ecn: bool,
    /// Most segments that wait. Default: 1,000.
    pub packets: usize,
    /// The queue may always hold this many bytes: one full frame. Default: 1,514.
    pub mtu: usize,
}

impl Default for CodelConfig {
    fn default() -> Self {
        CodelConfig {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            ecn: false,
            packets: 1_000,
            mtu: 1_514,
        }
    }
}

/// The state of one queue; the names are those of the RFC.
#[derive(Clone, Debug, Default)]
pub(crate) struct Codel {
    first_above_time: Option<Instant>,
    drop_next: Instant,
    count: u32,
    lastcount: u32,
    dropping: bool,
}

impl Codel {
    /// Takes a segment, and tells whether CoDel may act on it (`dodequeue`).
    fn look(&mut self, config: &CodelConfig, now: Instant, backlog: &mut Backlog) -> (Option<Parcel>, bool) {
        let Some((since, parcel)) = backlog.take() else {
            self.first_above_time = None;
            return (None, false);
        };
        if now - since < config.target || backlog.bytes() <= config.mtu {
            self.first_above_time = None;
            return (Some(parcel), false);
        }
        match self.first_above_time {
            None => {
                self.first_above_time = Some(now + config.interval);
                (Some(parcel), false)
            }
            Some(first) => (Some(parcel), now >= first),
        }
    }

    /// The next segment to send (`dequeue`). Each turn of its loop takes one segment from the queue.
    pub(crate) fn dequeue(
        &mut self,
        config: &CodelConfig,
        now: Instant,
        backlog: &mut Backlog,
        managed: &mut Managed,
    ) -> Option<Parcel> {
        let (mut next, mut ok) = self.look(config, now, backlog);
        if self.dropping {
            if !ok {
                self.dropping = false;
                return next;
            }
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                if marks(config, &mut next, managed) {
                    self.drop_next = control_law(self.drop_next, config.interval, self.count);
                    return next;
                }
                managed.dropped += 1;
                (next, ok) = self.look(config, now, backlog);
                if ok {
                    self.drop_next = control_law(self.drop_next, config.interval, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok {
            if !marks(config, &mut next, managed) {
                managed.dropped += 1;
                (next, _) = self.look(config, now, backlog);
            }
            self.dropping = true;
            let delta = self.count.saturating_sub(self.lastcount);
            let is_recent = now - self.drop_next < 16 * config.interval;
            self.count = if delta > 1 && is_recent { delta } else { 1 };
            self.drop_next = control_law(now, config.interval, self.count);
            self.lastcount = self.count;
        }
        next
    }
}

/// Marks the segment, if settings and sender allow it.
fn marks(config: &CodelConfig, parcel: &mut Option<Parcel>, managed: &mut Managed) -> bool {
    match parcel {
        Some(parcel) if config.ecn && parcel.is_ecn_capable() => {
            parcel.mark();
            managed.marked += 1;
            true
        }
        _ => false,
    }
}

/// RFC 8289 section 5.4: the next drop comes after interval / sqrt(count).
fn control_law(from: Instant, interval: Duration, count: u32) -> Instant {
    from + Duration::from_nanos((interval.as_nanos() as f64 / f64::from(count.max(1)).sqrt()) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parcel::Stock;
    use crate::queue::Queue;

    /// A link that sends a segment each `service`, fed with one each `gap`, from time zero. The numbers of the segments
    /// that leave, with their times in us, and what was dropped and marked.
    fn run(
        config: CodelConfig,
        tos: u8,
        gap_us: u64,
        service_us: u64,
        count: u64,
    ) -> (Vec<(u64, u64)>, Managed) {
        let (queue, stock) = (Queue::Codel(config), Stock::default());
        let (mut backlog, mut managed, mut left) = (Backlog::default(), Managed::default(), Vec::new());
        let mut sent = 0;
        for tick in 1.. {
            let now_us = tick * service_us;
            while sent < count && sent * gap_us <= now_us {
                let mut frame = vec![0; 1_000];
                frame[12..16].copy_from_slice(&[8, 0, 0x45, tos]);
                frame[100..108].copy_from_slice(&sent.to_be_bytes());
                let parcel = stock.take_bytes(frame).unwrap();
                assert!(backlog.push(&queue, Instant::from_micros(sent * gap_us), parcel).is_ok());
                sent += 1;
            }
            match backlog.pop(&queue, Instant::from_micros(now_us), &mut managed) {
                Some(parcel) => {
                    let bytes = parcel.bytes();
                    left.push((u64::from_be_bytes(bytes[100..108].try_into().unwrap()), now_us));
                }
                None if sent == count => return (left, managed),
                None => {}
            }
        }
        unreachable!("the queue runs empty")
    }

    const LARGE: CodelConfig = CodelConfig {
        target: Duration::from_millis(5),
        interval: Duration::from_millis(100),
        ecn: false,
        packets: 1_000_000,
        mtu: 1_514,
    };

    #[test]
    fn a_queue_below_the_target_is_left_alone() {
        let (left, managed) = run(LARGE, 0, 1_000, 1_000, 5_000);
        assert_eq!((left.len(), managed), (5_000, Managed::default()));
        // A burst that is gone within an interval is left alone too.
        let (left, managed) = run(LARGE, 0, 0, 1_000, 90);
        assert_eq!((left.len(), managed), (90, Managed::default()));
    }

    #[test]
    fn drops_of_a_standing_queue_follow_the_control_law() {
        let (left, managed) = run(LARGE, 0, 0, 1_000, 2_000);
        // The segment that leaves at 5 ms has waited for the target; 100 ms later is the first drop, and the next ones
        // follow after interval / sqrt(count), each at the next tick.
        let mut expected = Vec::new();
        let (mut at_us, mut count) = (105_000.0, 1.0_f64);
        while expected.len() < 10 {
            expected.push((at_us / 1_000.0_f64).ceil() as u64 * 1_000);
            at_us += 100_000.0 / count.sqrt();
            count += 1.0;
        }
        let gaps: Vec<u64> =
            left.windows(2).filter(|pair| pair[1].0 != pair[0].0 + 1).map(|pair| pair[1].1).collect();
        assert_eq!(gaps[..10], expected);
        assert_eq!(left.len() as u64 + managed.dropped, 2_000);
    }

    #[test]
    fn what_can_be_marked_is_marked_instead() {
        let ecn = CodelConfig { ecn: true, ..LARGE };
        let (left, managed) = run(ecn, 2, 0, 1_000, 2_000);
        assert_eq!((left.len(), managed.dropped), (2_000, 0));
        assert!(managed.marked > 10);
        // Not without a codepoint that allows it.
        let (_, managed) = run(ecn, 0, 0, 1_000, 2_000);
        assert!(managed.dropped > 10 && managed.marked == 0);
    }

    #[test]
    fn the_last_frame_is_never_dropped() {
        // Each waits far longer than the target, alone.
        let (left, managed) = run(LARGE, 0, 300_000, 200_000, 20);
        assert_eq!((left.len(), managed), (20, Managed::default()));
    }
}
