//! What to do about a cause, in plain words.

use super::because::seconds;
use crate::explain::cause::Cause;
use crate::explain::evidence::Evidence;
use crate::quantity::bytes;

/// What to do.
pub fn advice(cause: Cause, evidence: &Evidence) -> String {
    let holds = path_holds(evidence);
    match cause {
        Cause::ReceiverWindow => format!("a larger receive buffer at the receiver, with window scaling{holds}"),
        Cause::ReceiverApplication => "a receiver that reads faster; a larger buffer only delays the moment".to_owned(),
        Cause::SenderBuffer => format!("a larger send buffer at the sender{holds}"),
        Cause::SenderApplication => {
            "a sender's application that writes sooner and more at once; requests that do not wait for each other".to_owned()
        }
        Cause::CongestionAfterLoss => {
            "find where bursts are dropped: a short queue, a policer, a radio link; CUBIC or BBR recover sooner".to_owned()
        }
        Cause::RandomLoss => {
            "find what damages packets: a cable, a transceiver, duplex, a radio link; or a congestion control that loss does not \
             slow down (BBR)"
                .to_owned()
        }
        Cause::Reordering => {
            "keep a connection on one path: hash by flow, not by packet; a sender with RACK (RFC 8985) waits before it calls a segment \
             lost"
                .to_owned()
        }
        Cause::DelayedAckNagle => format!(
            "switch Nagle's rule off at the sender (TCP_NODELAY), or write a message at once; a shorter delayed acknowledgement at the \
             receiver saves {} each time",
            seconds(evidence.nagle.2 / evidence.nagle.0.max(1) as f64)
        ),
        Cause::PathBandwidth => "a faster path; nothing at the ends would carry more".to_owned(),
        Cause::Queueing => {
            "a faster path; for a shorter wait, a shorter queue or one that is managed (CoDel, fq_codel, CAKE) at the narrowest link"
                .to_owned()
        }
        Cause::Pacing => "a higher pacing rate or limit at the sender: the path would carry more".to_owned(),
        Cause::SmallSegments => {
            "a larger MSS (what clamps it?), a larger path MTU, or larger writes with Nagle's rule or TCP_CORK".to_owned()
        }
        // What failed has advice of its own.
        Cause::Refused | Cause::NotAnswered | Cause::Reset | Cause::Unknown => String::new(),
    }
}

/// What the path holds, as far as trains of data tell that have passed it. Acknowledgements come together for other reasons, too.
fn path_holds(evidence: &Evidence) -> String {
    match (evidence.train_rates, evidence.rtt_least_s) {
        (Some([_, rate, _]), Some(rtt)) if !evidence.near_sender && rate * rtt > evidence.flight_mean => {
            format!(": the path holds {}", bytes((rate * rtt) as u64))
        }
        _ => String::new(),
    }
}
