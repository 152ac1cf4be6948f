//! What speaks for one cause or another, in figures: taken from the views of a connection, for one direction.

use super::flow::View;
use super::wait::Wait;
use super::wire::Counts;
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
    /// From the first to the last segment with data, in seconds.
    pub time_s: f64,
    /// Bytes of payload, each once.
    pub bytes: u64,
    /// Bytes per second of it.
    pub rate: f64,
    /// Segments with data, those sent again included.
    pub segments: u64,
    /// Most payload of a segment.
    pub mss: u64,
    /// Payload of a segment on average, weighed by its bytes.
    pub mean_segment: f64,
    /// Least round-trip time in seconds.
    pub rtt_least_s: Option<f64>,
    /// Median of it.
    pub rtt_median_s: Option<f64>,
    /// Mean of it.
    pub rtt_mean_s: Option<f64>,
    /// Time of the sender by what ended it, as shares.
    pub waits: [f64; Wait::COUNT],
    /// Bytes under way: on average, and most.
    pub flight_mean: f64,
    /// Most of them.
    pub flight_most: u64,
    /// Windows told: mean over time, and most, in bytes.
    pub window_mean: f64,
    /// The largest.
    pub window_most: u64,
    /// Bytes per second in trains: what nine of ten bytes stay below, and the median, of the steadier of data and acknowledgements.
    pub train_rate: Option<f64>,
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
        let span = half.span_ns.unwrap_or((view.span_ns.0, view.span_ns.0));
        let time_s = (span.1.saturating_sub(span.0)) as f64 / 1e9;
        let waited: u64 = half.sender.waits_ns.iter().sum();
        let waits = half.sender.waits_ns.map(|ns| ns as f64 / waited.max(1) as f64);
        let far = view.turns[1 - side].least_ns;
        let trains = if near_sender { &half.acks } else { &half.data };
        let seconds = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e9);
        let again = counts.again();
        let lost = again.saturating_sub(counts.spurious());
        Evidence {
            has_data: counts.packets > 0,
            has_acks: counts.pure_acks > 0 || far.is_some(),
            near_sender,
            time_s,
            bytes: counts.bytes,
            rate: counts.bytes as f64 / time_s.max(1e-9),
            segments: counts.segments,
            mss: view.mss(side),
            mean_segment: half.sizes.mean().unwrap_or(0.0),
            rtt_least_s: seconds(view.rtt_least_ns(side)),
            rtt_median_s: seconds(half.rtt.median()),
            rtt_mean_s: half.rtt.mean().map(|ns| ns / 1e9),
            waits,
            flight_mean: half.sender.flight.mean().unwrap_or(0.0),
            flight_most: half.sender.most_flight,
            window_mean: half.sender.windows.mean().unwrap_or(0.0),
            window_most: half.sender.windows.most().unwrap_or(0),
            train_rate: trains.rates.quantile(0.9).map(|rate| rate as f64),
            gap_variation: half.data.gaps.variation(),
            late: counts.late + counts.late_beyond,
            lost,
            run: (counts.fast + counts.timeouts + counts.filled) as f64 / counts.runs.max(1) as f64,
            nagle: (
                half.sender.nagle.count,
                half.sender.nagle.time_ns as f64 / 1e9,
                half.sender.nagle.delay_ns as f64 / 1e9,
            ),
            pushed_short: half.sender.pushed_short as f64 / counts.packets.max(1) as f64,
            refill_s: seconds(half.refill.median()),
            counts,
        }
    }
}
