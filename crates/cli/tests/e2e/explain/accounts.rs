//! What the kernel's socket and the relay counted, and whether it bears out the cause that was injected.

use super::bench::Ran;
use super::cases::Case;
use linerate_lab::explain::cause::Cause;
use serde_json::Value;

/// Share of the time that the cause must have limited.
const MOST: f64 = 0.5;
/// Share of the time that a path is busy which is the limit.
const BUSY: f64 = 0.85;
/// Bytes on the wire beside the payload of a segment: Ethernet with preamble and gap, IPv4, TCP with timestamps.
const HEADERS: f64 = 38.0 + 52.0;

/// Figures of a run.
#[derive(Clone, Copy, Debug)]
pub struct Accounts {
    /// Share of the time that the receiver's window kept the sender back, by the kernel's clock.
    pub window: f64,
    /// That its send buffer did, by the kernel's clock; or in which the application waited in a write while nothing was
    /// queued that was not sent: the clock is started only when something is sent.
    pub send_buffer: f64,
    /// Share of samples in which nothing was queued that was not sent.
    pub drained: f64,
    /// In which less than a segment was queued while data was in flight.
    pub nagle: f64,
    /// Share of the receive buffer's window that was unread, at each read; or of the time that the reader did not read.
    pub held: f64,
    /// Share of the time in which the relay's rate was in use.
    pub busy: f64,
    /// Mean wait in its queue, in least round-trip times.
    pub wait: f64,
    /// Frames lost by the model, runs of them, dropped by the queue, held back.
    pub mishaps: [u64; 4],
    /// Rate of payload in bytes per second.
    pub rate: f64,
    /// How much more payload full segments would carry in the same bytes of wire.
    pub fuller: f64,
    /// Segments sent again.
    pub retransmits: f64,
}

impl Accounts {
    /// Those of a run.
    pub fn of(case: &Case, ran: &Ran) -> Accounts {
        let sender = |name: &str| ran.sender.get(name).and_then(Value::as_f64).unwrap_or(0.0);
        let receiver = |name: &str| ran.receiver.get(name).and_then(Value::as_f64).unwrap_or(0.0);
        let elapsed = sender("elapsed_s").max(1e-6);
        let path = ran.path.unwrap_or_default();
        let delay = |table: &linerate_lab::scenario::file::PathTable| {
            table.delay.map_or(0.0, |delay| delay.value() / 1e9)
        };
        let rtt = (delay(&case.forward) + delay(&case.back)).max(1e-4);
        let full = f64::from(case.mtu) - 52.0;
        let mean = sender("bytes_acked").max(1.0) / sender("data_segs_out").max(1.0);
        Accounts {
            window: sender("rwnd_limited_us") / 1e6 / elapsed,
            send_buffer: (sender("sndbuf_limited_us") / 1e6 / elapsed)
                .max((sender("blocked_s") / elapsed).min(sender("drained"))),
            drained: sender("drained"),
            nagle: sender("nagle"),
            held: receiver("held_s") / receiver("elapsed_s").max(1e-6),
            busy: path.busy_share(),
            wait: path.mean_wait().as_secs_f64() / rtt,
            mishaps: [path.lost, path.lost_runs, path.dropped, path.reordered],
            rate: sender("bytes_acked") / elapsed,
            fuller: (full / (full + HEADERS)) / (mean / (mean + HEADERS)),
            retransmits: sender("total_retrans"),
        }
    }

    /// Whether they bear out that what was injected limited most.
    ///
    /// # Errors
    /// What speaks against it.
    pub fn bear_out(&self, case: &Case) -> Result<(), String> {
        let [lost, runs, dropped, reordered] = self.mishaps;
        let free = (self.busy < BUSY, "the path was not busy");
        let full = (self.busy >= BUSY, "the path was busy");
        let usual = (self.fuller < 1.1, "segments were full");
        let injected = (lost > 0 && dropped * 4 <= lost, "losses were those injected");
        // A sender that recovers from losses is short of window, whether it is full at the moment or not.
        let held_back = (self.drained < MOST && self.window < MOST, "the window was short");
        let run = lost as f64 / runs.max(1) as f64;
        let pacing = case.sender.get("pacing_bytes_per_second").and_then(toml::Value::as_integer);
        let demands = match case.cause {
            Cause::ReceiverWindow => vec![
                (self.window >= MOST, "the receiver's window took most of the time"),
                (self.held < 0.1, "the receiver's application kept up"),
                free,
            ],
            Cause::ReceiverApplication => vec![
                (self.window >= MOST, "the receiver's window took most of the time"),
                (self.held > 0.6, "the receiver's application did not read"),
                free,
            ],
            Cause::SenderBuffer => {
                let even = (self.wait < 0.75, "no more was in flight than the buffer holds");
                vec![(self.send_buffer >= MOST, "the send buffer took most of the time"), even, free]
            }
            Cause::SenderApplication => vec![
                (self.drained >= MOST, "nothing was queued most of the time"),
                (self.send_buffer < MOST / 2.0, "the application did not wait for room"),
                free,
            ],
            Cause::CongestionAfterLoss => {
                vec![injected, held_back, free, (run >= 2.5, "losses came in bursts")]
            }
            Cause::RandomLoss => vec![injected, held_back, free, (run < 1.5, "losses came singly")],
            Cause::Reordering => vec![
                held_back,
                free,
                (reordered > 5 * (lost + dropped).max(1), "frames overtook each other"),
                (self.retransmits > 0.0, "it was taken for loss"),
            ],
            Cause::DelayedAckNagle => {
                vec![(self.nagle >= MOST, "less than a segment waited most of the time"), free]
            }
            Cause::PathBandwidth => vec![full, usual, (self.wait < 0.75, "the queue was short")],
            Cause::Queueing => vec![full, usual, (self.wait > 2.0, "the queue was long")],
            Cause::Pacing => vec![
                (pacing.is_some_and(|rate| self.rate > 0.8 * rate as f64), "the rate was reached"),
                (self.window < 0.2 && self.send_buffer < 0.2, "nothing else limited"),
                free,
            ],
            Cause::SmallSegments => vec![
                (self.fuller >= 1.1, "segments were small"),
                (self.busy >= BUSY || self.window < 0.3 && self.drained > 0.9, "nothing else limited"),
            ],
            Cause::Refused | Cause::NotAnswered | Cause::Reset | Cause::Unknown => {
                vec![(false, "a cause was injected")]
            }
        };
        let missing: Vec<&str> = demands.iter().filter(|(holds, _)| !holds).map(|(_, what)| *what).collect();
        if missing.is_empty() { Ok(()) } else { Err(format!("not so: {}; {self:.3?}", missing.join("; "))) }
    }
}
