//! What can limit a transfer, as far as a capture can tell.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What limited a transfer most of the time. The first twelve can be injected, one at a time, and so tested; what failed
/// before there was a transfer follows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The receiver's window is smaller than what the path holds; its application keeps up.
    ReceiverWindow,
    /// The receiver's application reads too slowly, so that the window closes.
    ReceiverApplication,
    /// The sender's buffer is smaller than what the path holds.
    SenderBuffer,
    /// The sender's application has nothing to send.
    SenderApplication,
    /// The congestion window recovers from losses that come seldom, in bursts.
    CongestionAfterLoss,
    /// Single packets are lost at random all the time.
    RandomLoss,
    /// Packets overtake each other, and are taken for lost.
    Reordering,
    /// Delayed acknowledgements hold back a sender that waits to fill a segment (Nagle, RFC 896; RFC 1122 section 4.2.3.2).
    DelayedAckNagle,
    /// The path carries no more.
    PathBandwidth,
    /// A queue on the path keeps growing the round-trip time: the path is full, and the queue long.
    Queueing,
    /// The sender keeps to a rate of its own.
    Pacing,
    /// Segments are much smaller than the path could carry.
    SmallSegments,
    /// The connection was refused: its SYN was answered by RST.
    Refused,
    /// Its SYN was not answered.
    NotAnswered,
    /// An end reset it before anything could be told.
    Reset,
    /// The capture does not tell.
    Unknown,
}

impl Cause {
    /// Those that can be injected.
    pub const INJECTED: [Cause; 12] = [
        Cause::ReceiverWindow,
        Cause::ReceiverApplication,
        Cause::SenderBuffer,
        Cause::SenderApplication,
        Cause::CongestionAfterLoss,
        Cause::RandomLoss,
        Cause::Reordering,
        Cause::DelayedAckNagle,
        Cause::PathBandwidth,
        Cause::Queueing,
        Cause::Pacing,
        Cause::SmallSegments,
    ];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Cause::ReceiverWindow => "receiver's window",
            Cause::ReceiverApplication => "receiver's application",
            Cause::SenderBuffer => "sender's buffer",
            Cause::SenderApplication => "sender's application",
            Cause::CongestionAfterLoss => "congestion window after loss",
            Cause::RandomLoss => "random loss",
            Cause::Reordering => "reordering",
            Cause::DelayedAckNagle => "delayed ACK against Nagle",
            Cause::PathBandwidth => "bandwidth of the path",
            Cause::Queueing => "queueing",
            Cause::Pacing => "pacing",
            Cause::SmallSegments => "small segments",
            Cause::Refused => "refused",
            Cause::NotAnswered => "not answered",
            Cause::Reset => "reset",
            Cause::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
