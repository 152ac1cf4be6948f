//! The cases: one injected cause each, as data.

use linerate_lab::explain::cause::Cause;
use linerate_lab::explain::truth::view::View;
use linerate_lab::scenario::file::{PathTable, Side};
use serde::Deserialize;

/// What joins the two kernels.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wire {
    /// A relay between two TAPs: MTU-sized frames, delayed, lost and overtaken.
    #[default]
    Relay,
    /// A veth pair: super-frames, no delay.
    Veth,
}

/// A transfer with a cause that was injected.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Case {
    /// What was injected; of the file.
    #[serde(skip, default = "unknown")]
    pub cause: Cause,
    /// What kind of transfer it is.
    pub name: String,
    /// Whether it was kept from those who wrote the rules.
    #[serde(default)]
    pub held_out: bool,
    /// Whether the short form runs it.
    #[serde(default)]
    pub quick: bool,
    /// How it is captured.
    #[serde(default)]
    pub view: View,
    /// What joins the kernels.
    #[serde(default)]
    pub wire: Wire,
    /// Largest IP packet in bytes.
    #[serde(default = "mtu")]
    pub mtu: u32,
    /// 4 or 6.
    #[serde(default = "ip")]
    pub ip: u8,
    /// Who sends; the client opens the connection.
    #[serde(default)]
    pub from: Side,
    /// What happens to frames on the way of the data.
    #[serde(default)]
    pub forward: PathTable,
    /// On the way of the acknowledgements.
    #[serde(default)]
    pub back: PathTable,
    /// Settings of both kernels.
    #[serde(default)]
    pub sysctl: Vec<String>,
    /// What the sending end does: see `ends.py`.
    #[serde(default)]
    pub sender: toml::Table,
    /// What the receiving end does.
    #[serde(default)]
    pub receiver: toml::Table,
    /// How long is sent.
    #[serde(default = "seconds")]
    pub seconds: f64,
}

fn unknown() -> Cause {
    Cause::Unknown
}

fn mtu() -> u32 {
    1_500
}

fn ip() -> u8 {
    4
}

fn seconds() -> f64 {
    1.0
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    case: Vec<Case>,
}

/// The files of cases, one for each cause.
const FILES: [(Cause, &str); 12] = [
    (Cause::ReceiverWindow, include_str!("cases/receiver-window.toml")),
    (Cause::ReceiverApplication, include_str!("cases/receiver-application.toml")),
    (Cause::SenderBuffer, include_str!("cases/sender-buffer.toml")),
    (Cause::SenderApplication, include_str!("cases/sender-application.toml")),
    (Cause::CongestionAfterLoss, include_str!("cases/congestion-after-loss.toml")),
    (Cause::RandomLoss, include_str!("cases/random-loss.toml")),
    (Cause::Reordering, include_str!("cases/reordering.toml")),
    (Cause::DelayedAckNagle, include_str!("cases/delayed-ack-nagle.toml")),
    (Cause::PathBandwidth, include_str!("cases/path-bandwidth.toml")),
    (Cause::Queueing, include_str!("cases/queueing.toml")),
    (Cause::Pacing, include_str!("cases/pacing.toml")),
    (Cause::SmallSegments, include_str!("cases/small-segments.toml")),
];

/// All cases, in the order of their causes.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (cause, text) in FILES {
        let file: File = toml::from_str(text).unwrap_or_else(|error| panic!("{cause}: {error}"));
        cases.extend(file.case.into_iter().map(|case| Case { cause, ..case }));
    }
    cases
}
