//! Runs a case in virtual time.

use super::cases::Case;
use super::view::End;
use crate::scenario::file::Side;
use crate::scenario::outcome::Outcome;
use crate::scenario::{build, watch};

/// What a case gave.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The capture, as pcapng.
    pub capture: Vec<u8>,
    /// What the ends and the path counted: the truth.
    pub outcome: Outcome,
}

/// Runs `case`.
pub fn run(case: &Case) -> Ran {
    let mut setup = build::build(&case.scenario, None);
    setup.world.capture_all();
    let outcome = watch(&mut setup, &case.scenario);
    let from = outcome.flows.first().map_or(Side::Server, |flow| flow.flow.from);
    let side = if case.view.end == End::Sender { from } else { from.other() };
    let frames = setup.world.captured(*setup.hosts.of(side));
    let capture = case.view.pcapng(side.name(), &frames, outcome.seed);
    Ran { capture, outcome }
}
