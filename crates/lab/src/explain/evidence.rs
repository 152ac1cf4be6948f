//! What speaks for one cause or another, in figures: taken from the views of a connection, for one direction.

use super::counts::Counts;
use super::dispersion::Dispersion;
use super::flow::View;
use super::sender::Sender;
use super::wait::Wait;
use serde::Serialize;

/// Figures of one direction of a connection.
#[derive(Clone, Debug, Serialize)]
pub struct Evidence {
    /// Whether data was seen.
    pub has_data: bool,
    /// Whether acknowledgements were seen.
    pub has_acks: bool,
    /// Whether the capture was made on the sender's side of the path.
    pub near_sender: bool,
    /// From the first to the last segment with data, in seconds; near the sender, to the last acknowledgement of data.
    pub time_s: f64,
    /// Bytes of payload, each once.
    pub bytes: u64,
    /// Bytes per second of it; near the sender, of what was acknowledged.
    pub rate: f64,
    /// Segments with data, those sent again included.
    pub segments: u64,
    /// Most payload of a segment.
    pub mss: u64,
    /// Payload of a segment on average, weighed by its bytes.
    pub mean_segment: f64,
    /// How much more the same path would carry with full segments.
    pub fuller: f64,
    /// Least round-trip time in seconds.
    pub rtt_least_s: Option<f64>,
    /// Median of it.
    pub rtt_median_s: Option<f64>,
    /// Mean of it.
    pub rtt_mean_s: Option<f64>,
    /// Time of the sender by what ended it, as shares.
    pub waits: [f64; Wait::COUNT],
    /// Of the waits for the application, those that began behind a segment that was not full, as a share.
    pub after_short: f64,
    /// Waits for answers of the other end: how many, and the share of the time that no program could have saved of them, a round
    /// trip each.
    pub replies: (u64, f64),
    /// Of the time that the sender kept to its own rhythm, the share of waits of about the same length.
    pub beat: f64,
    /// Whether the sender filled up to one ceiling, from wherever it had gone on.
    pub has_ceiling: bool,
    /// The share of the time of its waits that it had stopped at about the same amount.
    pub alike: f64,
    /// The share of the time of its waits that it had stopped at its highest.
    pub at_ceiling: f64,
    /// Payload of a packet on average, super-frames as one.
    pub mean_packet: f64,
    /// Bytes under way: on average, and most.
    pub flight_mean: f64,
    /// Most of them.
    pub flight_most: u64,
    /// What they stayed below but for a fiftieth of the time: a missed acknowledgement does not count.
    pub flight_high: u64,
    /// Windows told: mean over time, and most, in bytes.
    pub window_mean: f64,
    /// The largest.
    pub window_most: u64,
    /// Share of the time in which the window was closed.
    pub closed: f64,
    /// The longest time between two packets with data, in seconds.
    pub pause_s: f64,
    /// Whether a SYN tells the scale of the windows; otherwise it is the least that fits.
    pub scale_known: bool,
    /// How open the window was on average, as a part of the largest until then, 0 to 1.
    pub open: f64,
    /// Share of the time in which the window had no room for a full segment.
    pub at_edge: f64,
    /// Bytes per second in trains: what half, three quarters and nine tenths of the bytes stay below.
    pub train_rates: Option<[f64; 3]>,
    /// Share of the time in which data waited in a queue of more than a few segments.
    pub queued_time: Option<f64>,
    /// Variation of the time between packets with data, of all but the nearest tenth.
    pub gap_variation: Option<f64>,
    /// Sums.
    pub counts: Counts,
    /// Segments overtaken, before the capture or behind it.
    pub late: u64,
    /// Segments really lost: sent again, less those that were not needed.
    pub lost: u64,
    /// Segments in a row that were lost, on average.
    pub run: f64,
    /// Packets that a router marked instead of dropping them, as far as the capture lies behind it.
    pub marks: u64,
    /// Nagle's waits: count, seconds, and seconds beyond a round trip.
    pub nagle: (u64, f64, f64),
    /// Segments that ended what the application had written and were not full, as a share of packets.
    pub pushed_short: f64,
    /// Time from a gap to what fills it, median, in seconds.
    pub refill_s: Option<f64>,
}

impl Evidence {
    /// Of the data from end `side`, in a view.
    pub fn of(view: &View, side: usize) -> Evidence {
        let half = &view.halves[side];
        let counts = half.wire.counts.clone();
        let near_sender = view.is_near(side);
        let (delivered, span) = half.delivered(near_sender);
        let span = span.unwrap_or((view.span_ns.0, view.span_ns.0));
        let time_s = (span.1.saturating_sub(span.0)) as f64 / 1e9;
        let has_acks = half.wire.ack_bytes.count() > 0;
        let trains = if near_sender && has_acks { &half.acks } else { &half.data };
        let rate = if time_s > 0.0 { delivered as f64 / time_s } else { 0.0 };
        let mut waited = Waited::of(&half.sender, trains, rate);
        let (windows, more) = view.windows(side);
        if more > 0 {
            waited.past_the_edge();
        }
        let seconds = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e9);
        let again = counts.again();
        // A receiver that gets a segment twice has lost nothing; there, what was sent again and is seen once was lost.
        let twice = if near_sender || has_acks { 0 } else { counts.fast + counts.timeouts };
        let lost = (again - counts.needless).saturating_sub(counts.spurious() + 2 * twice);
        Evidence {
            has_data: counts.packets > 0,
            has_acks,
            near_sender,
            time_s,
            bytes: counts.bytes,
            rate,
            segments: counts.segments,
            mss: view.mss(side),
            mean_segment: half.sizes.mean().unwrap_or(0.0),
            fuller: fuller(view, side, half.sizes.mean()),
            rtt_least_s: seconds(view.rtt_least_ns(side)),
            rtt_median_s: seconds(half.rtt.median()),
            rtt_mean_s: half.rtt.mean().map(|ns| ns / 1e9),
            waits: waited.shares,
            after_short: waited.after_short,
            replies: waited.replies,
            beat: beat(&half.sender),
            has_ceiling: waited.has_ceiling,
            alike: half.sender.refill.alike(),
            at_ceiling: half.sender.refill.at_ceiling(),
            mean_packet: counts.bytes as f64 / counts.packets.max(1) as f64,
            flight_mean: half.sender.flight.mean().unwrap_or(0.0),
            flight_most: half.sender.most_flight,
            flight_high: half.sender.flight.quantile(0.98).unwrap_or(0),
            window_mean: windows.mean().unwrap_or(0.0),
            window_most: windows.most().unwrap_or(0),
            closed: counts.zero_window_ns as f64
                / view.span_ns.1.saturating_sub(view.span_ns.0).max(1) as f64,
            pause_s: seconds(half.data.gaps.most()).unwrap_or(0.0),
            scale_known: view.scale(1 - side).is_some(),
            open: half.sender.open_ns.0 / half.sender.open_ns.1.max(1.0),
            at_edge: half.sender.edge_ns / half.sender.open_ns.1.max(1.0),
            train_rates: trains
                .rates
                .median()
                .map(|_| [0.5, 0.75, 0.9].map(|part| trains.rates.quantile(part).unwrap_or(0) as f64)),
            queued_time: queued_time(view, side, rate),
            gap_variation: half.data.gaps.variation(),
            late: counts.late + counts.late_beyond + twice,
            lost,
            run: (counts.fast + counts.timeouts + counts.filled) as f64 / counts.runs.max(1) as f64,
            marks: view.marks[side],
            nagle: half.sender.nagle.in_seconds(),
            pushed_short: half.sender.pushed_short as f64 / counts.packets.max(1) as f64,
            refill_s: seconds(half.refill.median()),
            counts,
        }
    }
}

impl Evidence {
    /// Wait in queues, in least round-trip times: by the round trips seen, or by what came again, which took one.
    pub fn queue_rtts(&self) -> Option<f64> {
        let least = self.rtt_least_s.filter(|least| *least > 0.0)?;
        match (self.rtt_median_s, self.refill_s) {
            (Some(median), _) => Some((median / least - 1.0).max(0.0)),
            // Three more segments had to come before it was called lost (RFC 5681 section 3.2).
            (None, Some(refill)) => {
                Some(((refill - self.segments_s(QUEUED_SEGMENTS)) / least - 1.0).max(0.0))
            }
            (None, None) => None,
        }
    }

    /// Whether a router's marks slowed the sender down more often than losses did. A router marks when its queue has been long for a
    /// while (RFC 3168 section 5, RFC 8289): unlike a loss, a mark has no other reason.
    pub fn is_marked(&self) -> bool {
        self.counts.slowed > 0 && self.counts.slowed >= self.counts.recoveries
    }

    /// Segments that were overtaken, and such as were sent again for that. What was sent again in vain when time ended, such as a probe for
    /// a lost tail, was overtaken by nothing: where nothing is seen late, only what duplicate acknowledgements asked for counts.
    pub fn overtaken(&self) -> u64 {
        let (spurious, counts) = (self.counts.spurious(), &self.counts);
        if self.late > 0 {
            return self.late + spurious;
        }
        // What filled a gap before the first one came, long after it, was asked for as well.
        spurious.min((counts.fast + counts.filled).max(counts.healed))
    }

    /// Bytes per second that a congestion window carries which is halved as often as this one may have been: 1.22 segments a round trip
    /// over the root of the share of segments after which it is (Mathis and others, 1997).
    pub fn halved_rate(&self) -> Option<f64> {
        let times = self.counts.recoveries.max(self.counts.slowed).max(self.overtaken());
        let rtt = self.rtt_median_s.or(self.rtt_least_s).filter(|rtt| *rtt > 0.0)?;
        (times > 0).then(|| 1.22 * self.mss as f64 / rtt * (self.segments as f64 / times as f64).sqrt())
    }

    /// Segments lost in each recovery, as a multiple of what chance would: beside the first, the share that is lost of those that are under
    /// way then and of as many that follow.
    pub fn bunched(&self) -> f64 {
        let (lost, recoveries) = (self.lost as f64, self.counts.recoveries.max(1) as f64);
        let under_way = self.flight_mean / self.mss.max(1) as f64;
        lost / recoveries / (1.0 + 2.0 * lost / self.segments.max(1) as f64 * under_way)
    }

    /// Bytes per second that a congestion window carries at this loss: 1.22 segments a round trip over the root of the loss (Mathis and
    /// others, 1997).
    pub fn by_losses(&self) -> Option<f64> {
        let rtt = self.rtt_median_s.or(self.rtt_least_s).filter(|rtt| *rtt > 0.0 && self.lost > 0)?;
        let loss = self.lost as f64 / self.segments.max(1) as f64;
        Some(1.22 * self.mss as f64 / rtt / loss.sqrt())
    }

    /// What is under way on average over the mean round trip, as a part of the rate that was measured.
    pub fn carries_rate(&self) -> Option<f64> {
        let rtt = self.rtt_mean_s.filter(|rtt| *rtt > 0.0 && self.rate > 0.0)?;
        Some(self.flight_mean / rtt / self.rate)
    }

    /// Whether the longest pause of all is one in which the window was closed, and of some weight.
    pub fn pauses_for_the_receiver(&self) -> bool {
        let longest_s = self.counts.zero_window_longest_ns as f64 / 1e9;
        self.closed >= WEIGHTY && longest_s >= NEARLY_ALL * self.pause_s
    }

    /// Time that so many segments take at the mean rate, in seconds.
    pub fn segments_s(&self, segments: u64) -> f64 {
        (segments * self.mss) as f64 / self.rate.max(1.0)
    }

    /// The mean rate as a part of that of trains: of their median, their third quarter, or what nine tenths stay below.
    pub fn steadiness(&self, of: usize) -> Option<f64> {
        let rate = *self.train_rates?.get(of)?;
        (rate > 0.0).then(|| self.rate / rate)
    }

    /// Packets of data in the least round-trip time, on average.
    pub fn packets_in_rtt(&self) -> Option<f64> {
        let each = self.bytes as f64 / self.counts.packets.max(1) as f64;
        Some(self.rate * self.rtt_least_s? / each.max(1.0))
    }
}

/// What the sender waited for, as a whole: single waits for an application may have been for something else.
struct Waited {
    shares: [f64; Wait::COUNT],
    after_short: f64,
    replies: (u64, f64),
    has_ceiling: bool,
}

impl Waited {
    fn of(sender: &Sender, trains: &Dispersion, rate: f64) -> Waited {
        let all_ns = sender.waits_ns.iter().map(|ns| *ns as f64).sum::<f64>().max(1.0);
        let mut shares = sender.waits_ns.map(|ns| ns as f64 / all_ns);
        let idle_ns = sender.waits_ns[Wait::Application as usize].max(1) as f64;
        let after_short = sender.after_short_ns as f64 / idle_ns;
        let has_ceiling = sender.refill_idle.has_ceiling();
        // Whose last segments are full has more, as a rule; if they come at one pace, that is the sender's.
        let is_paced = after_short < UNFINISHED
            && sender.replies.0 == 0
            && trains.rates.quantile(0.75).is_some_and(|train| rate >= AT_ONE_PACE * train as f64);
        let idle = match (has_ceiling, is_paced) {
            (true, _) => Wait::Acknowledgement,
            (false, true) => Wait::Rhythm,
            (false, false) => Wait::Application,
        };
        let of_time = std::mem::take(&mut shares[Wait::Application as usize]);
        shares[idle as usize] += of_time;
        Waited {
            shares,
            after_short,
            replies: (sender.replies.0, sender.replies.1 as f64 / all_ns),
            has_ceiling,
        }
    }

    /// The windows were larger than inferred: what moved them was an acknowledgement like any other.
    fn past_the_edge(&mut self) {
        for wait in [Wait::Window, Wait::WindowUpdate] {
            let of_time = std::mem::take(&mut self.shares[wait as usize]);
            self.shares[Wait::Acknowledgement as usize] += of_time;
        }
    }
}

/// A tenth of the time is worth being named.
const WEIGHTY: f64 = 0.1;
/// The pause lasts until the news of the open window has been at the sender and data has come back.
const NEARLY_ALL: f64 = 0.7;
/// An application that has no more leaves a segment that is not full but by chance.
const UNFINISHED: f64 = 0.2;
/// A timer is late by less than a tenth of its time, as a rule.
const SAME_BEAT: f64 = 1.1;
/// Bytes come at one pace if trains are no faster than the mean but for a fifth.
const AT_ONE_PACE: f64 = 0.8;
/// Payload of a full segment where no SYN tells: that of Ethernet.
const USUAL_FULL: f64 = 1_460.0;
/// Every interface carries packets of 576 bytes (RFC 9293 section 3.7.1): a smaller offer is somebody's setting.
const LEAST_FULL: f64 = 536.0;
/// Bytes of an Ethernet frame that are no payload: header, check sequence, preamble and gap, and the headers of IPv4 and TCP.
const AROUND: f64 = 78.0;

/// How much more payload full segments would carry in the same time. What an end offers to take tells the size of its own packets:
/// a sender that may send no more than a smaller offer has an interface for the larger.
fn fuller(view: &View, side: usize, mean: Option<f64>) -> f64 {
    let Some(mean) = mean.filter(|mean| *mean > 0.0) else { return 1.0 };
    let options = view.options_len[side] as f64;
    let around = AROUND + options;
    let offers = view.syns.iter().flatten().filter_map(|syn| syn.mss.map(f64::from));
    let full = offers.reduce(f64::max).map_or(USUAL_FULL, |offer| offer.max(LEAST_FULL)) - options;
    (full / (full + around)) / (mean / (mean + around))
}

/// Fewer beats are no clock: one long pause would be all there is.
const BEATS: u64 = 8;

/// Of the time that a sender kept to its own rhythm, the share of waits of about the usual length.
fn beat(sender: &Sender) -> f64 {
    let usual = sender
        .beat
        .median()
        .filter(|usual| sender.waits_ns[Wait::Rhythm as usize] >= usual.saturating_mul(BEATS));
    usual.map_or(0.0, |usual| sender.beat.near(usual, SAME_BEAT))
}

/// A queue counts that holds more packets than a delayed acknowledgement and a burst of two explain.
const QUEUED_SEGMENTS: u64 = 3;

/// Share of the time, as far as round-trip times are known, in which they were longer than a short queue explains.
fn queued_time(view: &View, side: usize, rate: f64) -> Option<f64> {
    let least_ns = view.rtt_least_ns(side)? as f64;
    let counts = &view.halves[side].wire.counts;
    // A super-frame passes the path in segments: the last of them waits for the others, which is no queue.
    let packet = (counts.bytes / counts.packets.max(1)).max(view.mss(side));
    let wait_ns = (QUEUED_SEGMENTS * packet) as f64 / rate.max(1.0) * 1e9;
    let known = view.halves[side].sender.timeline.eventful().filter_map(|step| step.rtt_mean_ns());
    let (mut all, mut long) = (0, 0);
    for rtt_ns in known {
        all += 1;
        long += u32::from(rtt_ns > least_ns + wait_ns);
    }
    (all > 0).then(|| f64::from(long) / f64::from(all))
}
