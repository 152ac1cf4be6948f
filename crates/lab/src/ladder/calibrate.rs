//! What work costs on this machine: from a few transfers with settings that are no rung, before the rungs are run.
//!
//! The processor time that a transfer took for a byte is a sum: of costs, each as often as [`model`] counts it for these settings.
//! Costs are those that come nearest to all transfers (least squares of relative errors, none below zero). Packets of up to
//! the MTU and super-segments have costs of their own, and so has each direction.
//!
//! What a rung is then predicted to reach is the least of: the server's processor; the window over a round trip, which is
//! calibrated where the server had time left; and the client with the path, by what a byte took there.

use super::climb::Expected;
use super::constants::{Calibrated, Constants, Whose};
use super::knobs::{CUT, Knobs, SUMS};
use super::model;
use super::rungs::Limit;
use super::state::Direction;
use nalgebra::{DMatrix, DVector};
use serde::Serialize;
use std::fmt::Write as _;

/// A server that is busy for a greater part of the time is the limit itself: such a transfer tells nothing of what it waits for.
const BUSY: f64 = 0.9;
/// Limits beyond this rate in MB/s are none.
const NONE: f64 = 100_000.0;
/// Costs are not told apart by rows whose smallest singular value is below this.
const ALIKE: f64 = 1e-5;

/// One transfer before the rungs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Trial {
    /// Its settings.
    pub knobs: Knobs,
    /// Payload in MB/s.
    pub megabytes: f64,
    /// Processor time of the server over the time.
    pub load: f64,
    /// Time in which it was ready and others had the cores, over the time.
    pub kept: f64,
    /// The same of the client.
    pub client_load: f64,
}

impl Trial {
    /// Whether the server was not the limit: who is kept from the cores does not wait for a window or a client.
    fn has_time_left(&self) -> bool {
        self.load + self.kept < BUSY
    }
}

/// What the server's time for a byte goes to.
type Cost = fn(&mut Calibrated) -> &mut f64;
const PACKET: Cost = |costs| &mut costs.packet;
const TURN: Cost = |costs| &mut costs.turn;
const ACKNOWLEDGEMENT: Cost = |costs| &mut costs.acknowledgement;
const BYTE: Cost = |costs| &mut costs.byte;
const CHECKSUM: Cost = |costs| &mut costs.checksum;

/// Transfers whose costs are the same.
type Kind = (Direction, bool);

fn kind(knobs: &Knobs) -> Kind {
    (knobs.direction, knobs.is_super())
}

/// The settings that rungs of these settings need to be tried, in turn. None is a rung.
pub fn trials(rungs: &[Knobs]) -> Vec<Knobs> {
    use Direction::{Receiving, Sending};
    let sending = |kib, offload| Knobs::new(Sending, Some(kib), offload);
    let receiving = |kib, offload| Knobs::new(Receiving, Some(kib), offload);
    let all = [
        Knobs { mss: Some(700), ..sending(256, "none") },
        Knobs { mss: Some(1_300), ..sending(128, "none") },
        Knobs { mss: Some(1_300), ..sending(16, "none") },
        Knobs { mtu: 2_500, ..sending(128, SUMS) },
        Knobs { mtu: 6_000, ..sending(96, SUMS) },
        sending(32, "all"),
        sending(128, "all"),
        sending(512, "all"),
        sending(1_024, "all"),
        Knobs { scales: false, ..sending(256, CUT) },
        receiving(16, "none"),
        Knobs { mss: Some(700), ..receiving(128, "none") },
        Knobs { ack_every: Some(5), ..receiving(128, "none") },
        receiving(256, "none"),
        Knobs { mtu: 2_500, ..receiving(128, SUMS) },
        Knobs { mtu: 6_000, ..receiving(96, SUMS) },
        receiving(32, "all"),
        receiving(128, "all"),
        receiving(256, "all"),
    ];
    let is_needed = |trial: &Knobs| rungs.iter().any(|rung| kind(rung) == kind(trial));
    all.into_iter().filter(is_needed).collect()
}

/// Costs that can be told apart by the trials of a kind. The client's kernel acknowledges as it likes, so that sending, an
/// acknowledgement is part of the packets; super-segments come with the device's checksums alone.
fn parts((direction, is_super): Kind) -> &'static [Cost] {
    match (direction, is_super) {
        (_, true) => &[PACKET, TURN, BYTE],
        (Direction::Sending, false) => &[PACKET, TURN, BYTE, CHECKSUM],
        (Direction::Receiving, false) => &[PACKET, TURN, ACKNOWLEDGEMENT, BYTE, CHECKSUM],
    }
}

/// What was found of one kind.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Kinds {
    /// Which way the data goes.
    pub direction: Direction,
    /// Whether packets are larger than the MTU.
    pub is_super: bool,
    /// The server's costs.
    pub costs: Calibrated,
    /// The round trip in ns, and what a byte of the window adds to it; of a server's buffer, and of the client's window.
    pub trips: [Option<[f64; 2]>; 2],
    /// The client's time with the path for a packet and for a byte, in ns.
    pub client: [f64; 2],
    /// Mean of how far the server's costs are from the trials.
    pub misfit: f64,
}

/// All that the trials tell.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Calibration(Vec<Kinds>);

impl Calibration {
    /// From trials.
    ///
    /// # Errors
    /// Trials that tell nothing: no time, or no rate.
    pub fn of(trials: &[Trial]) -> Result<Calibration, String> {
        let mut kinds: Vec<Kind> = trials.iter().map(|trial| kind(&trial.knobs)).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let found = kinds.into_iter().map(|one| {
            let of: Vec<&Trial> = trials.iter().filter(|trial| kind(&trial.knobs) == one).collect();
            kinds_of(one, &of)
        });
        found.collect::<Result<_, _>>().map(Calibration)
    }

    /// Predicts a rung.
    ///
    /// # Errors
    /// A kind that was not tried, or a state that `fabric` has no formula for.
    pub fn predict(&self, knobs: &Knobs) -> Result<Expected, String> {
        let is_it = |found: &&Kinds| (found.direction, found.is_super) == kind(knobs);
        let found = self.0.iter().find(is_it).ok_or("no trial was of its kind")?;
        let state = knobs.state();
        let trip = found.trip(knobs);
        let mut costs = found.costs;
        costs.round_trip = trip.unwrap_or(1.0);
        let constants = Constants::of_machine(&costs);
        let predicted = model::predict(&state, &constants, Whose::Counted)?;
        let window = |limit| matches!(limit, Limit::SendBuffer | Limit::ReceiveBuffer);
        let named = |limit: Limit| match limit {
            Limit::Processor => "the server's processor",
            Limit::ReceiveBuffer if knobs.direction == Direction::Sending => "the client's window",
            limit => limit.name(),
        };
        let is_one =
            |limit, rate| rate < NONE && limit != Limit::Interface && (!window(limit) || trip.is_some());
        let mut limits: Vec<(String, f64, String)> = predicted
            .limits
            .into_iter()
            .filter(|(limit, rate, _)| is_one(*limit, *rate))
            .map(|(limit, rate, why)| (named(limit).to_owned(), rate, why))
            .collect();
        let [packet, byte] = found.client;
        let each = packet / state.payload() as f64 + byte;
        if each > 0.0 {
            let why = format!("{packet:.0} ns a packet and {byte:.3} ns a byte, calibrated");
            limits.push(("the client".to_owned(), 1e3 / each, why));
        }
        limits.sort_by(|a, b| a.1.total_cmp(&b.1));
        let (limit, megabytes, _) = limits.first().cloned().ok_or("nothing limits it")?;
        let busy = megabytes * 1e-3 * model::cycles_per_byte(&state, &constants, Whose::Counted);
        Ok(Expected { megabytes, load: busy.min(1.0), limit, limits })
    }

    /// What was found, a sentence each.
    pub fn notes(&self) -> Vec<String> {
        self.0.iter().map(Kinds::sentence).collect()
    }
}

impl Kinds {
    /// The round trip in ns of a rung's window, where one is known.
    fn trip(&self, knobs: &Knobs) -> Option<f64> {
        let [fixed, each] = self.trips[usize::from(!knobs.scales)]?;
        Some(fixed + each * model::window_bytes(&knobs.state(), &Constants::of_machine(&self.costs)))
    }

    fn sentence(&self) -> String {
        let Calibrated { packet, turn, acknowledgement, byte, checksum, .. } = self.costs;
        let way = if self.direction == Direction::Sending { "sending" } else { "receiving" };
        let size = if self.is_super { "super-segments" } else { "packets of the MTU" };
        let mut text = format!(
            "Calibrated, {way} {size}: the server takes {packet:.0} ns a packet with its system call, {turn:.0} ns a turn of its loop"
        );
        // Writing into a string never fails.
        if acknowledgement > 0.0 {
            let _ = write!(text, ", {acknowledgement:.0} ns an acknowledgement");
        }
        let _ = write!(text, ", {byte:.3} ns a byte");
        if checksum > 0.0 {
            let _ = write!(text, ", {checksum:.3} ns a byte for its checksum");
        }
        let _ = write!(text, " ({:.0} % off its trials on average)", self.misfit * 100.0);
        for (trip, whose) in self.trips.iter().zip(["its buffer", "the client's window"]) {
            if let Some([fixed, each]) = trip {
                let _ = write!(
                    text,
                    "; a round trip of {whose} {:.1} us and {:.2} us a KiB",
                    fixed / 1e3,
                    each * 1.024
                );
            }
        }
        let [packet, byte] = self.client;
        let _ = write!(text, "; the client {packet:.0} ns a packet and {byte:.3} ns a byte.");
        text
    }
}

fn kinds_of((direction, is_super): Kind, trials: &[&Trial]) -> Result<Kinds, String> {
    let costs = parts((direction, is_super));
    let rows: Vec<(Vec<f64>, f64)> = trials.iter().map(|trial| row(trial, costs)).collect();
    if rows.iter().any(|(_, wanted)| !wanted.is_finite() || *wanted <= 0.0) {
        return Err("a transfer of the calibration took no processor time".to_owned());
    }
    let values = fit(&rows).ok_or("the calibration's transfers tell nothing")?;
    let mut found = Calibrated::default();
    for (cost, value) in costs.iter().zip(&values) {
        *cost(&mut found) = *value;
    }
    let off = |(row, wanted): &(Vec<f64>, f64)| (sum(row, &values) / wanted - 1.0).abs();
    let misfit = rows.iter().map(off).sum::<f64>() / rows.len() as f64;
    let trips = [true, false].map(|scales| {
        let tried = trials.iter().filter(|trial| trial.knobs.scales == scales && trial.has_time_left());
        // What the kernel gets in packets it acknowledges within the call that sends them: there is no round trip to wait for.
        let points = tried.filter(|_| is_super && direction == Direction::Sending).map(|trial| {
            let window = model::window_bytes(&trial.knobs.state(), &Constants::of_machine(&found));
            (vec![1.0, window], window / trial.megabytes * 1e3)
        });
        let points: Vec<_> = points.collect();
        fit(&points).map(|values| [values[0], values[1]])
    });
    // A sender is ahead of a server that has time left, or limited itself. To a server that sends, the time of the client
    // is what its processor took.
    let client: Vec<(Vec<f64>, f64)> = trials
        .iter()
        .map(|trial| {
            let waited = direction == Direction::Receiving && trial.has_time_left();
            let busy = if waited { 1.0 } else { trial.client_load };
            (vec![1.0 / trial.knobs.state().payload() as f64, 1.0], busy / trial.megabytes * 1e3)
        })
        .filter(|(_, wanted)| *wanted > 0.0)
        .collect();
    let client = fit(&client).map_or([0.0; 2], |values| [values[0], values[1]]);
    Ok(Kinds { direction, is_super, costs: found, trips, client, misfit })
}

/// How often a trial has each cost for a byte, and what a byte took, in ns.
fn row(trial: &Trial, costs: &[Cost]) -> (Vec<f64>, f64) {
    let state = trial.knobs.state();
    let often = costs.iter().map(|cost| {
        // The model is linear in its costs: with one of them at 1 it tells how often that is due.
        let mut one = Calibrated::default();
        *cost(&mut one) = 1.0;
        model::cycles_per_byte(&state, &Constants::of_machine(&one), Whose::Counted)
    });
    (often.collect(), trial.load / trial.megabytes * 1e3)
}

fn sum(row: &[f64], values: &[f64]) -> f64 {
    row.iter().zip(values).map(|(often, value)| often * value).sum()
}

/// Values, none of them below zero, with which the sums of all rows come nearest to what is wanted, each as a part of it; `None`
/// without rows. All subsets of values that are not zero are tried: there are five at most.
fn fit(rows: &[(Vec<f64>, f64)]) -> Option<Vec<f64>> {
    let count = rows.first()?.0.len();
    let rows: Vec<Vec<f64>> =
        rows.iter().map(|(row, wanted)| row.iter().map(|often| often / wanted).collect()).collect();
    let mut best: Option<(f64, Vec<f64>)> = None;
    for subset in 1..1_u32 << count {
        let chosen: Vec<usize> = (0..count).filter(|at| subset & (1 << at) != 0).collect();
        if chosen.len() > rows.len() {
            continue;
        }
        let Some(values) = least_squares(&rows, &chosen) else { continue };
        if values.iter().any(|value| *value < 0.0) {
            continue;
        }
        let mut all = vec![0.0; count];
        for (at, value) in chosen.iter().zip(values) {
            all[*at] = value;
        }
        let off: f64 = rows.iter().map(|row| (sum(row, &all) - 1.0).powi(2)).sum();
        if best.as_ref().is_none_or(|(least, _)| off < least - 1e-12) {
            best = Some((off, all));
        }
    }
    best.map(|(_, values)| values)
}

/// The chosen unknowns, with 1 on the right of each row; `None` where rows do not tell them apart.
fn least_squares(rows: &[Vec<f64>], chosen: &[usize]) -> Option<Vec<f64>> {
    // Unknowns differ by orders of magnitude: each is scaled to its largest coefficient.
    let largest = |at: &usize| rows.iter().map(|row| row[*at]).fold(0.0, f64::max);
    let scales: Vec<f64> = chosen.iter().map(largest).collect();
    if scales.iter().any(|scale| *scale <= 0.0) {
        return None;
    }
    let scaled = DMatrix::from_fn(rows.len(), chosen.len(), |row, at| rows[row][chosen[at]] / scales[at]);
    let parts = scaled.svd(true, true);
    if parts.rank(ALIKE) < chosen.len() {
        return None;
    }
    let values = parts.solve(&DVector::repeat(rows.len(), 1.0), ALIKE).ok()?;
    Some(values.iter().zip(&scales).map(|(value, scale)| value / scale).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ladder::linux::forms;

    /// A machine with these costs, on which a transfer is as the model says.
    fn machine(knobs: Knobs, costs: &Calibrated, client: f64) -> Trial {
        let state = knobs.state();
        let constants = Constants::of_machine(costs);
        let each = model::cycles_per_byte(&state, &constants, Whose::Counted);
        let trip = model::window_bytes(&state, &constants) / costs.round_trip;
        let is_sent_whole = knobs.is_super() && knobs.direction == Direction::Sending;
        let waits = if is_sent_whole { 1.0 / trip } else { 0.0 };
        let took = each.max(client).max(waits);
        Trial { knobs, megabytes: 1e3 / took, load: each / took, kept: 0.0, client_load: client / took }
    }

    const COSTS: Calibrated = Calibrated {
        packet: 2_000.0,
        turn: 2_700.0,
        acknowledgement: 0.0,
        byte: 0.05,
        checksum: 0.03,
        round_trip: 50_000.0,
    };

    fn all() -> Vec<Knobs> {
        forms().iter().map(|form| form.knobs).collect()
    }

    #[test]
    fn no_trial_is_a_rung_and_each_kind_has_enough() {
        let tried = trials(&all());
        for trial in &tried {
            assert!(!all().contains(trial), "{trial:?}");
        }
        for one in all().iter().map(kind) {
            let count = tried.iter().filter(|trial| kind(trial) == one).count();
            assert!(count >= parts(one).len(), "{one:?}: {count}");
        }
        let sending = Knobs::new(Direction::Sending, Some(64), "none");
        assert_eq!(trials(&[sending]).len(), 5);
        assert!(trials(&[]).is_empty());
    }

    /// Costs that are there are found, and with them what a rung takes.
    #[test]
    fn costs_are_found_again() {
        let tried: Vec<Trial> =
            trials(&all()).into_iter().map(|knobs| machine(knobs, &COSTS, 0.02)).collect();
        let calibration = Calibration::of(&tried).unwrap();
        for found in &calibration.0 {
            assert!(found.misfit < 1e-6, "{found:?}");
            if !found.is_super {
                let off = |found: f64, wanted: f64| (found - wanted).abs() / wanted;
                let costs = found.costs;
                assert!(
                    off(costs.packet, COSTS.packet) < 1e-3 && off(costs.turn, COSTS.turn) < 1e-3,
                    "{costs:?}"
                );
                assert!(
                    off(costs.byte, COSTS.byte) < 1e-2 && off(costs.checksum, COSTS.checksum) < 1e-2,
                    "{costs:?}"
                );
            }
        }
        for knobs in all() {
            let expected = calibration.predict(&knobs).unwrap();
            let wanted = machine(knobs, &COSTS, 0.02);
            let off = expected.megabytes / wanted.megabytes - 1.0;
            assert!(off.abs() < 0.02, "{knobs:?}: {} of {}", expected.megabytes, wanted.megabytes);
            assert!((expected.load - wanted.load).abs() < 0.02, "{knobs:?}: {expected:?}");
            assert!(!expected.limits.iter().any(|(name, ..)| name == "the interface"), "{expected:?}");
        }
        let notes = calibration.notes();
        assert_eq!(notes.len(), 4);
        assert!(
            notes[0].contains("sending packets of the MTU: the server takes 2000 ns a packet"),
            "{}",
            notes[0]
        );
        assert!(notes[1].contains("a round trip of its buffer 50.0 us"), "{}", notes[1]);
    }

    /// A server that others keep from the cores is slow for no window's sake: nothing is learnt of the round trip.
    #[test]
    fn a_server_without_a_core_waits_for_no_window() {
        let slow = |knobs| {
            let trial = machine(knobs, &COSTS, 0.02);
            let load = trial.load / 4.0;
            Trial { megabytes: trial.megabytes / 4.0, load, kept: 1.0 - load, ..trial }
        };
        let tried: Vec<Trial> = trials(&all()).into_iter().map(slow).collect();
        let calibration = Calibration::of(&tried).unwrap();
        assert!(calibration.0.iter().all(|found| found.trips == [None, None]), "{calibration:?}");
        let rung = forms().into_iter().find(|form| form.name == "segmentation").unwrap().knobs;
        assert_eq!(calibration.predict(&rung).unwrap().limit, "the server's processor");
    }

    #[test]
    fn limits_have_their_names() {
        let tried = |client| -> Vec<Trial> {
            trials(&all()).into_iter().map(|knobs| machine(knobs, &COSTS, client)).collect()
        };
        let check = |client: f64, name: &str, limit: &str| {
            let forms = forms();
            let form = forms.iter().find(|form| form.name == name).unwrap();
            let expected = Calibration::of(&tried(client)).unwrap().predict(&form.knobs).unwrap();
            assert_eq!(expected.limit, limit, "{name}: {expected:?}");
        };
        check(0.02, "as-ported", "the server's processor");
        check(0.02, "segmentation", "the send buffer");
        check(0.02, "narrow-window", "the client's window");
        check(3.0, "rx-buffers-64k", "the client");
    }

    #[test]
    fn least_squares_without_negative_values() {
        let check = |rows: &[([f64; 2], f64)], wanted: Option<[f64; 2]>| {
            let rows: Vec<_> = rows.iter().map(|(row, value)| (row.to_vec(), *value)).collect();
            match (fit(&rows), wanted) {
                (Some(found), Some(wanted)) => {
                    let is_close = found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-6);
                    assert!(is_close, "{found:?}");
                }
                (found, wanted) => assert_eq!(found.is_none(), wanted.is_none(), "{found:?}"),
            }
        };
        check(&[], None);
        check(&[([1.0, 2.0], 8.0), ([1.0, 4.0], 12.0)], Some([4.0, 2.0]));
        // The exact answer has -1 for the first: the second alone comes nearest, 1.8 for 1 * 2 and 1.9 for 2 * 4.
        check(&[([1.0, 1.0], 1.0), ([1.0, 2.0], 3.0)], Some([0.0, 15.0 / 13.0]));
        // Twice the same tells nothing of two.
        check(&[([1.0, 0.0], 5.0), ([1.0, 0.0], 5.0)], Some([5.0, 0.0]));
        check(&[([0.0, 0.0], 5.0)], None);
    }

    #[test]
    fn what_tells_nothing_is_refused() {
        let knobs = trials(&all())[0];
        let nothing = Trial { knobs, megabytes: 100.0, load: 0.0, kept: 0.0, client_load: 0.0 };
        assert!(Calibration::of(&[nothing]).unwrap_err().contains("no processor time"));
        assert!(Calibration::of(&[]).unwrap().predict(&knobs).unwrap_err().contains("no trial"));
    }
}
