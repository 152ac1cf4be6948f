//! What flows cost each other in dynamic memory: rows that others close, and changes between reads and writes.
//!
//! Alone a flow opens a row for each page that it enters. Beside others it finds its row closed where one of them went to the
//! same bank since its last burst, and opens it again: with `k` bursts of others between two of its own and `b` banks the
//! chance is `1 - (1 - 1/b)^k`. A memory that reads or writes at a time changes direction as often as its controller does when
//! both come in equal parts (`turnaround_every`), and less where one of them is rare: `2 min(r, w) / (r + w)` of that. Who is
//! how fast decides what it costs, and what it costs who is how fast; a few rounds settle that.

use super::{Stream, fluid};
use crate::edma::Resources;
use crate::soc::{Direction, Dram, Endpoint, Soc};

/// Rounds until rates and costs agree.
const ROUNDS: usize = 6;

/// The flows with what they cost each other.
pub(super) fn settled(soc: &Soc, streams: &[Stream], resources: &Resources<'_>) -> Vec<Stream> {
    let mut now = streams.to_vec();
    if streams.len() < 2 {
        return now;
    }
    for _ in 0..ROUNDS {
        let found = fluid::run(&now, resources.len());
        let rates: Vec<f64> =
            found.rates.iter().zip(&found.there).map(|(rate, there)| rate * there).collect();
        now = streams.to_vec();
        for (name, memory) in &soc.endpoints {
            for instance in 0..memory.count {
                let full = format!("{name}.{instance}");
                let names =
                    if instance == 0 { vec![name.as_str(), full.as_str()] } else { vec![full.as_str()] };
                charge(soc, &names, memory, &mut now, &rates, resources);
            }
        }
    }
    now
}

/// Adds to each flow what the others cost it in one memory.
fn charge(
    soc: &Soc,
    names: &[&str],
    memory: &Endpoint,
    streams: &mut [Stream],
    rates: &[f64],
    resources: &Resources<'_>,
) {
    let Some(dram) = memory.dram.as_deref() else { return };
    let here = |stream: &Stream, write: bool| {
        stream.touches.iter().any(|(memory, side)| names.contains(&memory.as_str()) && *side == write)
    };
    let (mut read, mut written) = (0.0, 0.0);
    for (stream, rate) in streams.iter().zip(rates) {
        // A copy within the memory counts its own changes of direction.
        if !(here(stream, false) && here(stream, true)) {
            read += if here(stream, false) { *rate } else { 0.0 };
            written += if here(stream, true) { *rate } else { 0.0 };
        }
    }
    let mixed = if read + written > 0.0 { 2.0 * read.min(written) / (read + written) } else { 0.0 };
    let stop = soc.time(&dram.turnaround).map_or(0.0, |time| time.value());
    let turn =
        if memory.direction == Direction::Half { mixed * stop / dram.turnaround_every.value() } else { 0.0 };
    let cycle = dram.row_cycle.as_ref().and_then(|cycles| soc.time(cycles)).unwrap_or(Dram::ROW_CYCLE);
    let banks = f64::from(memory.banks.as_deref().copied().unwrap_or(Dram::BANKS));
    let paces: Vec<f64> = streams
        .iter()
        .zip(rates)
        .map(|(stream, rate)| {
            let sides = usize::from(here(stream, false)) + usize::from(here(stream, true));
            sides as f64 * rate / stream.flow.burst.value()
        })
        .collect();
    let all: f64 = paces.iter().sum();
    for (stream, pace) in streams.iter_mut().zip(&paces).filter(|(_, pace)| **pace > 0.0) {
        let sides = [here(stream, false), here(stream, true)];
        let between = (all - pace) / pace;
        let closed = 1.0 - (1.0 - 1.0 / banks).powf(between);
        let rows = closed * cycle.value() / banks / stream.flow.burst.value();
        let both = sides == [true, true];
        for (index, cost) in &mut stream.flow.costs {
            let name = resources.name(*index);
            let of = |rest: &str| names.iter().any(|memory| name.strip_prefix(memory) == Some(rest));
            if of(" rows") {
                *cost += rows;
            } else if !both && (of("") || of(" read") || of(" write")) {
                *cost += turn;
            }
        }
    }
}
