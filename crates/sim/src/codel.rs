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
