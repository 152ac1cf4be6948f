//! What the ends and the path of a simulated transfer counted, and whether it bears out the cause that was injected.
//!
//! A case counts only where the injected cause is what limited most. That is decided here, by the stack's own clocks and the
//! path's own counters, which no capture has.

use crate::explain::cause::Cause;
use crate::scenario::outcome::{FlowOutcome, Outcome};
use linerate_transport::LimitCause;

/// Share of the time that the cause must have limited.
const MOST: f64 = 0.5;
/// Share of the time that a path is busy which is the limit.
const BUSY: f64 = 0.88;
/// Mean wait in the queue, in round-trip times without waiting, from which the queue counts as long.
pub const LONG_QUEUE: f64 = 2.0;
/// The same below which it counts as short.
pub const SHORT_QUEUE: f64 = 0.75;
/// Segments that are lost in a row, on average, where losses come in bursts.
const BURST: f64 = 2.5;
/// How much more a path would carry with full segments where small ones are the cause.
const SMALL: f64 = 1.1;

/// What counts, of a run.
#[derive(Clone, Copy, Debug)]
pub struct Accounts {
    /// Time by what kept the sender from sending, as shares.
    pub shares: [f64; LimitCause::ALL.len()],
    /// How much of the time the path of the data was busy.
    pub busy: f64,
    /// Mean wait in its queue, in round-trip times without waiting.
    pub wait: f64,
    /// Mean share of the receive buffer that was unread.
    pub unread: f64,
    /// Segments that the model of loss took, and in how many runs.
    pub lost: [u64; 2],
    /// Segments that a full queue dropped.
    pub dropped: u64,
    /// Segments that were held back so that others overtook them.
    pub reordered: u64,
    /// How much more the path would carry with full segments.
    pub fuller: f64,
    /// Segments with data.
    pub segments: u64,
}

impl Accounts {
    /// Those of the first transfer of a run; `None` where there was none.
    pub fn of(outcome: &Outcome) -> Option<Accounts> {
        let flow = outcome.flows.first()?;
        let info = flow.info?;
        let total: u64 = info.limits.ns.iter().sum();
        let path = outcome.paths.of(flow.flow.from);
        let stats = path.stats;
        let rtt = outcome.base_rtt().as_secs_f64().max(1e-9);
        Some(Accounts {
            shares: info.limits.ns.map(|ns| ns as f64 / total.max(1) as f64),
            busy: outcome.paths.of(flow.flow.from).used,
            wait: path.mean_wait().as_secs_f64() / rtt,
            unread: flow.mean.unread / (flow.mean.unread + flow.mean.window).max(1.0),
            lost: [stats.lost, stats.lost_runs],
            dropped: stats.queue_full + stats.codel_dropped,
            reordered: stats.reordered,
            fuller: fuller(outcome, flow),
            segments: info.segments_sent,
        })
    }

    fn share(&self, cause: LimitCause) -> f64 {
        self.shares[cause as usize]
    }
}

/// How much more payload full segments would carry in the same bytes of wire.
fn fuller(outcome: &Outcome, flow: &FlowOutcome) -> f64 {
    let Some(info) = flow.info else { return 1.0 };
    let mtu = outcome.hosts.of(flow.flow.from).mtu as f64;
    let full = mtu - flow.ip_header_bytes();
    let mean = (info.bytes_acked as f64 / info.segments_sent.max(1) as f64).max(1.0);
    (full / (full + flow.header_bytes())) / (mean / (mean + flow.header_bytes()))
}

/// Whether the accounts bear out that `cause` limited most.
///
/// # Errors
/// What speaks against it.
pub fn bear_out(cause: Cause, accounts: &Accounts) -> Result<(), String> {
    let is_main = |limit: LimitCause| {
        let checked = (accounts.share(limit) >= MOST, format!("{limit:?} took most of the time"));
        vec![checked, (accounts.busy < BUSY, "the path was not busy".to_owned())]
    };
    let lossy = |more: (bool, String)| {
        let mut all = is_main(LimitCause::Congestion);
        let [lost, _] = accounts.lost;
        all.push((lost > 0 && accounts.dropped * 4 <= lost, "losses were those injected".to_owned()));
        all.push(more);
        all
    };
    let run = accounts.lost[0] as f64 / accounts.lost[1].max(1) as f64;
    let full = (accounts.busy >= BUSY, "the path was busy".to_owned());
    let usual = (accounts.fuller < SMALL, "segments were full".to_owned());
    let demands = match cause {
        Cause::ReceiverWindow => {
            let mut all = is_main(LimitCause::PeerWindow);
            all.push((accounts.unread < 0.2, "the receiver's application kept up".to_owned()));
            all
        }
        Cause::ReceiverApplication => {
            let mut all = is_main(LimitCause::PeerWindow);
            all.push((accounts.unread > 0.4, "the receive buffer was full".to_owned()));
            all
        }
        Cause::SenderBuffer => is_main(LimitCause::SendBuffer),
        Cause::SenderApplication => is_main(LimitCause::Application),
        Cause::CongestionAfterLoss => lossy((run >= BURST, "losses came in bursts".to_owned())),
        Cause::RandomLoss => lossy((run < 1.5, "losses came singly".to_owned())),
        Cause::Reordering => {
            let mut all = is_main(LimitCause::Congestion);
            let few = accounts.lost[0] + accounts.dropped;
            all.push((accounts.reordered > 10 * few.max(1), "segments overtook each other".to_owned()));
            all
        }
        Cause::DelayedAckNagle => is_main(LimitCause::Nagle),
        Cause::PathBandwidth => {
            vec![full, usual, (accounts.wait < SHORT_QUEUE, "the queue was short".to_owned())]
        }
        Cause::Queueing => {
            vec![full, usual, (accounts.wait > LONG_QUEUE, "the queue was long".to_owned())]
        }
        Cause::Pacing => is_main(LimitCause::Pacing),
        Cause::SmallSegments => {
            let limit = accounts.share(LimitCause::Processor) + accounts.share(LimitCause::Device);
            vec![
                (accounts.fuller >= SMALL, "segments were small".to_owned()),
                (accounts.busy >= BUSY || limit >= MOST, "the path or the processor was busy".to_owned()),
            ]
        }
        Cause::Refused | Cause::NotAnswered | Cause::Reset | Cause::Unknown => {
            vec![(false, "a cause was injected".to_owned())]
        }
    };
    let missing: Vec<String> =
        demands.into_iter().filter(|(holds, _)| !holds).map(|(_, what)| what).collect();
    if missing.is_empty() { Ok(()) } else { Err(format!("not so: {}; {accounts:.3?}", missing.join("; "))) }
}
