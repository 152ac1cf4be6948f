//! How a transfer gets on while the world runs: stalls, means by time, and what happened to its paths.

use super::outcome::{FlowMean, FlowSample, Mishaps};
use linerate_sim::{EndReport, NicStats, PathStats};
use std::time::Duration;

/// What the paths and hosts of a flow have counted so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted {
    /// The way of the data.
    pub there: PathStats,
    /// The way of the acknowledgements.
    pub back: PathStats,
    /// The receiver's interface.
    pub receiver: NicStats,
    /// The sender's interface.
    pub sender: NicStats,
    /// Segments that the receiver's stack dropped for want of memory.
    pub no_memory: u64,
}

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    received: u64,
    since: Duration,
    /// Longest time without anything new.
    pub longest: Duration,
    /// When it began.
    pub longest_at: Duration,
    /// What happened, at most once a round trip each.
    pub mishaps: Mishaps,
    before: Duration,
    rtt_sum: f64,
    rtt_time: f64,
    rtt_least: Option<Duration>,
    rtt_most: Duration,
    sums: FlowMean,
    time: f64,
    /// What was counted when the running round trip began, and when that was.
    counted: Counted,
    round: Duration,
}

impl Progress {
    /// Looks at a flow at a time.
    pub fn see(
        &mut self,
        at: Duration,
        sample: FlowSample,
        sender: &EndReport,
        receiver: &EndReport,
        counted: &Counted,
    ) {
        let is_active = sender.opened_at.is_some()
            && receiver.finished_at.is_none()
            && receiver.bytes_received < sender.bytes_sent;
        if sample.received > self.received || !is_active {
            self.received = sample.received;
            self.since = at;
        } else if at - self.since > self.longest {
            self.longest = at - self.since;
            self.longest_at = self.since;
        }
        let passed = (at - self.before).as_secs_f64();
        self.before = at;
        if let Some(rtt) = sample.rtt {
            self.rtt_sum += rtt.as_secs_f64() * passed;
            self.rtt_time += passed;
            self.rtt_least = Some(self.rtt_least.map_or(rtt, |least| least.min(rtt)));
            self.rtt_most = self.rtt_most.max(rtt);
        }
        if let Some(info) = sender.info.filter(|_| is_active) {
            self.sums.in_flight += f64::from(info.in_flight) * passed;
            self.sums.window += f64::from(info.send_window) * passed;
            self.sums.unread += receiver.unread as f64 * passed;
            self.time += passed;
        }
        if at - self.round >= sample.rtt.unwrap_or_default() {
            self.round = at;
            self.note(counted);
        }
    }

    /// A round trip is over.
    fn note(&mut self, now: &Counted) {
        let before = std::mem::replace(&mut self.counted, *now);
        let grew = |count: fn(&Counted) -> u64| u32::from(count(now) > count(&before));
        let seen = &mut self.mishaps;
        seen.lost += grew(|c| c.there.lost + c.there.scripted);
        seen.damaged += grew(|c| c.there.corrupted);
        seen.queue += grew(|c| c.there.queue_full);
        seen.codel += grew(|c| c.there.codel_dropped);
        seen.marked += grew(|c| c.there.marked);
        seen.ring += grew(|c| c.receiver.rx_ring_full);
        seen.no_buffer += grew(|c| c.receiver.rx_no_buffer);
        seen.no_memory += grew(|c| c.no_memory);
        seen.too_long += grew(|c| c.there.too_long);
        seen.reordered += grew(|c| c.there.reordered);
        seen.acks += grew(|c| {
            let back = &c.back;
            back.lost
                + back.scripted
                + back.corrupted
                + back.queue_full
                + back.codel_dropped
                + c.sender.rx_ring_full
                + c.sender.rx_no_buffer
        });
    }

    /// Least, mean by time, and largest smoothed round-trip time that was seen.
    pub fn rtt(&self) -> Option<[Duration; 3]> {
        let least = self.rtt_least?;
        let mean = if self.rtt_time > 0.0 { self.rtt_sum / self.rtt_time } else { least.as_secs_f64() };
        Some([least, Duration::from_secs_f64(mean), self.rtt_most])
    }

    /// Means over the time in which something was under way.
    pub fn mean(&self) -> FlowMean {
        let time = self.time.max(1e-9);
        FlowMean {
            in_flight: self.sums.in_flight / time,
            window: self.sums.window / time,
            unread: self.sums.unread / time,
        }
    }
}
