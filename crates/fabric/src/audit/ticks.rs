//! Rates that only make whole cycles of their clock when a prefix of 1024 was taken for one of 1000.

use super::copies::MAX_COINCIDENCE;
use super::expression::{evaluate, unit};
use super::noise::Noise;
use super::{Confidence, Finding, Place, Severity, measured, show};
use crate::guide::{Guide, Number, Table};

/// Factors that a mixed prefix leaves in a rate: kilo, mega and giga of 1024 for those of 1000.
pub const FACTORS: [f64; 3] = [1.024, 1.048_576, 1.073_741_824];

/// How well a time has to be known for its fraction of a cycle to say anything, in cycles.
const MAX_UNCERTAINTY: f64 = 0.15;

/// The largest probability at which a table by itself is named as evidence.
const MAX_TABLE: f64 = 1e-3;

/// How far a bound on times reaches, so that a file with many cells cannot make the comparison long.
pub const MAX_TIMES: usize = 512;

/// Reports the factor at which the times of measured transfers are whole cycles, if they are so at no factor of one.
///
/// A program that times `transactions` transfers of a row's size by a clock divides bits by a whole number of cycles.
/// Under a wrong factor a time known to `u` cycles is whole by chance with probability `2u`; the number of whole ones among
/// `n` times has the tail bound `exp(-n KL(hits/n, mean))`, and the bounds of several tables multiply.
pub fn check(guide: &Guide, noises: &[Noise], findings: &mut Vec<Finding>) {
    let timed: Vec<(&Table, Vec<Time>)> = guide
        .tables
        .iter()
        .map(|table| (table, times(table)))
        .filter(|(_, times)| !times.is_empty())
        .collect();
    let total = |factor: f64| timed.iter().map(|(_, times)| log_bound(times, factor).1).sum::<f64>();
    let Some((factor, bound)) = FACTORS
        .iter()
        .map(|factor| (*factor, total(*factor)))
        .min_by(|left, right| left.1.total_cmp(&right.1))
    else {
        return;
    };
    let chances = (FACTORS.len() as f64).log10();
    if bound + chances > MAX_COINCIDENCE.log10() || total(1.0) <= MAX_TABLE.log10() {
        return;
    }
    let evidence: Vec<_> = timed
        .iter()
        .map(|(table, times)| (table, times, log_bound(times, factor)))
        .filter(|(_, _, (_, log))| *log <= MAX_TABLE.log10())
        .collect();
    let Some((first, ..)) = evidence.first() else { return };
    // Tables whose times are known to a tick and not to a cycle say the same by theirs.
    let by_tick: Vec<(&Table, f64)> = guide
        .tables
        .iter()
        .zip(noises)
        .filter(|(table, _)| evidence.iter().all(|(known, ..)| known.id != table.id))
        .filter_map(|(table, noise)| Some((table, noise.prefix().filter(|(of, _)| *of == factor)?.1)))
        .collect();
    let mut tables: Vec<&Table> = evidence.iter().map(|(table, ..)| **table).collect();
    tables.extend(by_tick.iter().map(|(table, _)| *table));
    tables.sort_by_key(|table| table.line);
    let tables: Vec<&str> = tables.iter().map(|table| table.id.as_str()).collect();
    let mut counts: Vec<String> = evidence
        .iter()
        .map(|(table, times, (hits, log))| {
            let (plain, _) = log_bound(times, 1.0);
            let of = times.len();
            let example = times.first().map_or_else(String::new, |time| {
                format!("{} cycles become {}", show(time.cycles), show(time.cycles * factor))
            });
            format!(
                "table {}: {hits} of {of} times whole and {plain} without it ({example}; 10^{log:.1})",
                table.id
            )
        })
        .collect();
    counts.extend(
        by_tick.iter().map(|(table, tick)| format!("table {}: whole ticks of {} ns", table.id, show(*tick))),
    );
    let place = Place {
        section: first.section.clone(),
        what: Some(format!("tables {}", tables.join(", "))),
        ..Place::default()
    };
    findings.push(Finding::new("prefix", Severity::Warning, Confidence::Likely, place).says(
        format!(
            "rates seem to be {} % too high: a prefix of 1024 taken for 1000",
            show(100.0 * (factor - 1.0))
        ),
        format!("times are whole cycles of their clock after a factor of {factor}: {}", counts.join("; ")),
        "compute one cell again from the counted cycles",
    ));
}

/// A time in cycles of the clock that took it, and how far the printed digits leave it open.
pub struct Time {
    /// In cycles.
    pub cycles: f64,
    /// To either side, in cycles.
    pub uncertainty: f64,
}

/// The distinct times of a table whose conditions name the clock and how many transfers were timed together.
fn times(table: &Table) -> Vec<Time> {
    let mut times: Vec<Time> = Vec::new();
    let condition = |name: &str| table.conditions.get(name);
    let Some(clock) = condition("core").and_then(|clock| evaluate(clock, &|_| None).ok()) else {
        return times;
    };
    let Some(transfers) = condition("transactions").and_then(|count| Number::read(count)) else {
        return times;
    };
    if (clock.bits, clock.seconds) != (0, -1) {
        return times;
    }
    for (row, of) in table.rows.iter().enumerate() {
        let Some(size) = Number::read(&of.name) else { continue };
        for column in 0..table.columns.len() {
            let Some(number) = measured(table, row, column).filter(|number| number.value > 0.0) else {
                continue;
            };
            let Some(rate) = table.unit(row, column).and_then(unit) else { continue };
            if (rate.bits, rate.seconds) != (1, -1) || times.len() >= MAX_TIMES {
                continue;
            }
            let bits = transfers.value * size.value * 8.0;
            let cycles = bits / (number.value * rate.value) * clock.value;
            let uncertainty = cycles * number.half_unit() / number.value;
            // Equal times are one piece of evidence, however many sizes and columns print them.
            let known = |time: &Time| (time.cycles - cycles).abs() <= time.uncertainty + uncertainty;
            if uncertainty > 0.0 && uncertainty <= MAX_UNCERTAINTY && !times.iter().any(known) {
                times.push(Time { cycles, uncertainty });
            }
        }
    }
    times
}

/// How many times are whole under a factor, and the decimal logarithm of a bound on the probability of so many.
pub fn log_bound(times: &[Time], factor: f64) -> (usize, f64) {
    let whole = |time: &&Time| {
        let cycles = time.cycles * factor;
        (cycles - cycles.round()).abs() <= time.uncertainty * factor
    };
    let hits = times.iter().filter(whole).count();
    let count = times.len().max(1) as f64;
    let mean = times.iter().map(|time| 2.0 * time.uncertainty * factor).sum::<f64>() / count;
    let share = hits as f64 / count;
    if share <= mean || mean <= 0.0 || mean >= 1.0 {
        return (hits, 0.0);
    }
    let rest = if share < 1.0 { (1.0 - share) * ((1.0 - share) / (1.0 - mean)).ln() } else { 0.0 };
    let divergence = share * (share / mean).ln() + rest;
    (hits, -count * divergence / std::f64::consts::LN_10)
}
