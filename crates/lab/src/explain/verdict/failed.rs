//! What is said of a connection that failed.

use super::Verdict;
use super::because::seconds;
use crate::explain::cause::Cause;
use crate::explain::ending::Failure;
use crate::quantity::count;
use std::net::SocketAddr;

/// Who is not answered for so long asks again (RFC 6298 section 2.1): a capture that ends sooner does not tell.
const INITIAL_RTO_NS: u64 = 1_000_000_000;

fn time(ns: u64) -> String {
    seconds(ns as f64 / 1e9)
}

/// That an end reset the connection, so long after it was first seen.
pub fn reset(by: SocketAddr, after_ns: u64) -> String {
    format!("{by} reset the connection {} after it was first seen", time(after_ns))
}

impl Verdict {
    /// The same for a connection that failed; `ends` by the sides of `failure`. What limited it until it was reset is said first,
    /// where that is known.
    pub fn failed(self, failure: Failure, ends: [SocketAddr; 2], begin_ns: u64) -> Verdict {
        match failure {
            Failure::Refused { by, after_ns } => {
                let host = ends[by];
                let because = format!("{host} answered the SYN with RST after {}", time(after_ns));
                let advice = format!(
                    "see whether a program listens on {host}, and whether a firewall refuses in its name"
                );
                certain(Cause::Refused, because, advice, self)
            }
            Failure::NotAnswered { by, syns: 1, watched_ns, .. } if watched_ns < INITIAL_RTO_NS => Verdict {
                cause: Cause::Unknown,
                confidence: 0.0,
                because: vec![format!(
                    "{} sent a SYN, and the capture ends {} later, before it would be sent again",
                    ends[1 - by],
                    time(watched_ns)
                )],
                would_tell: Some(format!("a longer capture: whether {} answers", ends[by])),
                ..self
            },
            Failure::NotAnswered { by, syns, time_ns, .. } => {
                let because = match syns {
                    1 => format!("{} sent a SYN, and {} did not answer it", ends[1 - by], ends[by]),
                    _ => format!(
                        "{} sent {} SYNs in {}, and {} answered none",
                        ends[1 - by],
                        count(syns),
                        time(time_ns),
                        ends[by]
                    ),
                };
                let advice = "see whether the address is right and its host up, whether a firewall drops, and whether answers take another \
                              way than past this capture";
                certain(Cause::NotAnswered, because, advice.to_owned(), self)
            }
            Failure::Reset { by, at_ns } if self.cause == Cause::Unknown => {
                let host = ends[by];
                let (would_tell, before) = (self.would_tell.clone(), self.because.clone());
                let advice = format!(
                    "see what the program at {host} logged: it closed with data unread or ended, or a firewall sent the RST in its name"
                );
                let mut verdict =
                    certain(Cause::Reset, reset(host, at_ns.saturating_sub(begin_ns)), advice, self);
                verdict.because.extend(before);
                Verdict { would_tell, ..verdict }
            }
            Failure::Reset { .. } => self,
        }
    }
}

/// What was seen, not inferred.
fn certain(cause: Cause, because: String, advice: String, verdict: Verdict) -> Verdict {
    Verdict {
        cause,
        runner_up: None,
        confidence: 1.0,
        because: vec![because],
        advice,
        would_tell: None,
        ..verdict
    }
}
