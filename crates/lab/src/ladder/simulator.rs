//! A rung on the simulator: its state as a scenario, and what came of it.

use super::constants::{Constants, Whose};
use super::rungs::Limit;
use super::state::{Direction, State};
use crate::scenario::outcome::Outcome;
use crate::scenario::{load, simulate, verdict};
use std::fmt::Write as _;
use std::time::Duration;

/// Virtual time of a run: some thousand round trips, of which slow start takes fewer than twenty.
const DURATION: Duration = Duration::from_millis(200);

/// What was measured.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Payload in MB/s, from the first connection to the end.
    pub megabytes: f64,
    /// Part of the time that the server's processor was busy.
    pub load: f64,
    /// What limited it, in the verdict's words.
    pub bottleneck: String,
    /// Why.
    pub because: String,
    /// The same as the model names it; `None` where the model has no name for it.
    pub limit: Option<Limit>,
    /// Time of the server's processor for each megabyte of payload, in ns, by part.
    pub parts: Vec<(&'static str, f64)>,
}

/// The scenario of a state, as `linerate sim` reads it.
pub fn scenario(state: &State, constants: &Constants, whose: Whose) -> String {
    let cycles = state.cycles(constants, whose);
    let ns = |cycles: f64| format!("\"{:.0} ns\"", cycles * 1e9 / constants.clock.value);
    let (from, calls) = match state.direction {
        Direction::Sending => (
            "server",
            format!("writer = {{ calls = \"{} B\", gives-way = {} }}\n", state.call(), state.gives_way),
        ),
        Direction::Receiving => ("client", String::new()),
    };
    let offload = if state.offload { "tx-checksum,rx-checksum" } else { "none" };
    let paced = &state.interrupts;
    let mode = paced.mode.name();
    let heap = state.heap.map_or(String::new(), |bytes| format!("memory = \"{bytes} B\"\n"));
    let mut text = String::new();
    // Writing into a string never fails.
    let _ = write!(
        text,
        "[world]\nduration = \"{} ms\"\nmtu = {}\n[link]\ndelay = \"{:.0} ns\"\n\
         [client]\nline-rate = \"{:.0} bit/s\"\noffload = \"none\"\ninterrupt-timer = \"0 s\"\n\
         [client.tcp]\nsend-buffer = \"1 MiB\"\nreceive-buffer = \"{} B\"\ndelayed-ack-segments = {}\n\
         [server]\nline-rate = \"{:.0} bit/s\"\noffload = \"{offload}\"\n{heap}\
         interrupt-timer = \"{} us\"\ninterrupt-packets = {}\ninterrupt-mode = \"{mode}\"\n\
         processor = {{ transmit = {}, receive = {}, interrupt = {}, call = {}, give-way = {}, copy = {}, checksum = {} }}\n\
         [server.tcp]\nsend-buffer = \"{} B\"\nreceive-buffer = \"{} B\"\n[[flow]]\nfrom = \"{from}\"\n{calls}",
        DURATION.as_millis(),
        state.mtu,
        state.round_trip_ns(constants) / 2.0,
        constants.line.value,
        state.peer_window,
        state.ack_every,
        constants.line.value,
        paced.timer.as_micros(),
        paced.threshold,
        ns(cycles.transmit),
        ns(cycles.receive),
        ns(cycles.interrupt),
        ns(cycles.call),
        ns(cycles.give_way),
        ns(cycles.copy * 1_000.0),
        ns(cycles.checksum * 1_000.0),
        state.buffer,
        state.buffer,
    );
    text
}

/// Runs a state.
///
/// # Errors
/// A scenario that the simulator refuses, with its reason.
pub fn run(state: &State, constants: &Constants, whose: Whose) -> Result<Measured, String> {
    let scenario = load::parse(&scenario(state, constants, whose)).map_err(|mistake| mistake.to_string())?;
    let outcome = simulate(&scenario, None);
    let flow = outcome.flows.first().ok_or("the scenario has no flow")?;
    let found = verdict::of(&outcome, flow);
    Ok(Measured {
        megabytes: flow.goodput_bps() / 8e6,
        load: outcome.hosts.server.cpu_used,
        limit: limit(found.bottleneck),
        bottleneck: found.bottleneck.to_owned(),
        because: found.because,
        parts: parts(&outcome, flow.received),
    })
}

/// The verdict in the model's words.
fn limit(bottleneck: &str) -> Option<Limit> {
    match bottleneck {
        "the interface" | "the link" => Some(Limit::Interface),
        "the server's processor" => Some(Limit::Processor),
        "the send buffer" => Some(Limit::SendBuffer),
        "the receive buffer" => Some(Limit::ReceiveBuffer),
        "memory" => Some(Limit::Memory),
        _ => None,
    }
}

fn parts(outcome: &Outcome, received: u64) -> Vec<(&'static str, f64)> {
    let megabytes = received as f64 / 1e6;
    let of = |time: Duration| time.as_nanos() as f64 / megabytes.max(1e-9);
    outcome.hosts.server.cpu.parts().into_iter().map(|(name, time)| (name, of(time))).collect()
}
