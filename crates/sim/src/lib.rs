//! A deterministic network in memory: a virtual clock, links with faults, and hosts. One seed replays everything.
//!
//! A [`World`] holds nodes, each at the end of a cable: hosts that run our stack behind a simulated interface
//! ([`NicConfig`]), and scripted nodes that send and receive frames ([`World::add_raw`], [`Peer`]). Two nodes are joined
//! directly, more by an ideal switch. Each direction of each cable is a [`Path`] with rate, queue, delay and faults.
//! Time is virtual, in nanoseconds, and goes from event to event. The same seed and the same calls give the same run.
//!
//! ```
//! use linerate_sim::{Amount, FlowConfig, Loss, PairConfig, World};
//! use std::time::Duration;
//!
//! let mut config = PairConfig::with_rate_and_delay(100_000_000, Duration::from_millis(1));
//! config.a_to_b.loss = Loss::Random(0.001);
//! let (mut world, a, b) = World::pair(7, config);
//! let flow = world.add_flow(FlowConfig::upload(a, b, Amount::Bytes(1_000_000)));
//! assert!(world.run_flow(flow, Duration::from_secs(10)));
//! let report = world.flow(flow);
//! assert_eq!(report.verdict(), Ok(()));
//! assert!(report.server.goodput_bps().unwrap() > 20e6);
//! ```
//!
//! What a segment meets on a path, and in which order, is said at [`Path`]. Super-segments stay whole where nothing can
//! happen to one of their segments alone, and are counted, delayed and lost segment by segment everywhere.
#![forbid(unsafe_code)]

pub mod apps;
mod capture;
mod codel;
mod core;
mod dma;
mod engine;
mod flow;
mod host;
mod icmp;
pub mod journal;
mod link;
mod loss;
mod nic;
mod node;
mod parcel;
mod path;
mod queue;
mod random;
mod raw;
mod recorder;
pub mod replay;
mod schedule;
mod spread;
mod timeline;
mod world;

pub use apps::{
    Amount, App, AppWork, Context, Echo, EndReport, Endpoint, EndpointConfig, Pattern, Reader, Role, Writer,
};
pub use capture::{Captured, Cut, Seen};
pub use codel::CodelConfig;
pub use core::{Core, LetterStats};
pub use flow::{FlowConfig, FlowId, FlowReport};
pub use host::{CpuCost, CpuTimes, Host, HostConfig, TEST};
pub use linerate_nic::loopback::Verdict;
pub use linerate_nic::{Capabilities, MacAddr, PacingConfig, PacingMode};
pub use linerate_wire::units::Instant;
pub use link::Script;
pub use loss::{Loss, LossState};
pub use nic::{NicConfig, NicStats, SimNic};
pub use parcel::{MIN_FRAME, WIRE_OVERHEAD, wire_bytes};
pub use path::{Change, Jitter, Path, PathStats, TooLong};
pub use queue::Queue;
pub use random::Random;
pub use raw::Peer;
pub use recorder::{FlowSample, FlowSamples, QueueSample};
pub use replay::check;
pub use spread::Spread;
pub use world::{Direction, HostId, NodeId, PairConfig, RawId, World};
