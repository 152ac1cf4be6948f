//! How far the measurements of a table scatter: the tick of the clock that timed them, and what their own line shows.

use super::copies::MAX_COINCIDENCE;
use super::expression::{evaluate, unit};
use super::ticks::{FACTORS, MAX_TIMES, Time, log_bound};
use super::{measured, show};
use crate::guide::{Cell, Guide, Number, Role, Table};

/// Cycles of the stated clock that one tick may have: a program that polls sees the clock every so many cycles.
const MAX_CYCLES: u32 = 64;
/// Runs whose mean a cell may be: it stands between the ticks of a single one.
const RUNS: [u32; 5] = [1, 2, 3, 4, 5];
/// How well a time has to be known to say where it stands between two ticks, in ticks.
const MAX_UNCERTAINTY: f64 = 0.15;
/// How many different times make a grid.
const MIN_TIMES: usize = 8;
/// How many times its scatter a measurement may be off.
const BOUND: f64 = 3.0;
/// What share of the times has to be known so well.
const MIN_KNOWN: f64 = 0.75;
/// What share of these has to stand on the grid.
const MIN_SHARE: f64 = 0.9;

/// The scatter of a table's measurements. What nothing is known of is no evidence for anything.
pub struct Noise {
    /// The scatter of one time in seconds: at least a tick.
    seconds: Option<f64>,
    /// How far a time may be off to either side in seconds.
    bound: Option<f64>,
    /// The tick in seconds, where the times show one.
    tick: Option<f64>,
    /// What the guide itself says of its measurements, in percent.
    stated: Option<f64>,
    /// A prefix that was left in the rates: times are longer by it than rates say.
    factor: f64,
    transfers: f64,
}

impl Noise {
    /// The scatter of every table of a guide, in their order.
    pub fn of_all(guide: &Guide) -> Vec<Noise> {
        guide.tables.iter().map(|table| Noise::of(guide, table)).collect()
    }

    /// The scatter of a table, from the clock that its conditions name, its own times, and what the guide says.
    pub fn of(guide: &Guide, table: &Table) -> Noise {
        let condition = |name: &str| table.conditions.get(name);
        let transfers = condition("transactions").and_then(|count| Number::read(count));
        let clock = condition("core").and_then(|clock| evaluate(clock, &|_| None).ok());
        let clock = clock.filter(|clock| (clock.bits, clock.seconds) == (0, -1)).map(|clock| clock.value);
        let mut noise = Noise {
            seconds: None,
            bound: None,
            tick: None,
            stated: guide.noise_percent.filter(|percent| *percent > 0.0),
            factor: 1.0,
            transfers: transfers.map_or(1.0, |number| number.value),
        };
        if let Some(clock) = clock
            && let Some((factor, cycles)) = grid(&noise.cycles(table, clock))
        {
            noise.factor = factor;
            noise.tick = Some(cycles / clock);
        }
        let scatter = match (noise.scatter(table), noise.tick) {
            (Scatter::Withheld, _) | (Scatter::TooFew, None) => return noise,
            (Scatter::TooFew, Some(_)) => 0.0,
            (Scatter::Seconds(scatter), _) => scatter,
        };
        let tick = noise.tick.unwrap_or(0.0);
        noise.seconds = Some(scatter.max(tick));
        noise.bound = Some((BOUND * scatter).max(tick));
        noise
    }

    /// The time that a cell stands for in seconds: what its row's size takes at its rate.
    pub fn time(&self, table: &Table, row: usize, column: usize) -> Option<f64> {
        let size = Number::read(&table.rows.get(row)?.name).filter(|size| size.value > 0.0)?;
        let number = measured(table, row, column).filter(|number| number.value > 0.0)?;
        let rate =
            table.unit(row, column).and_then(unit).filter(|unit| (unit.bits, unit.seconds) == (1, -1))?;
        Some(self.transfers * size.value * 8.0 * self.factor / (number.value * rate.value))
    }

    /// How far another measurement of a cell may be off, as a share of it; `None` where nothing is known of it.
    pub fn share(&self, table: &Table, row: usize, column: usize) -> Option<f64> {
        self.share_of(self.bound, table, row, column)
    }

    fn share_of(&self, seconds: Option<f64>, table: &Table, row: usize, column: usize) -> Option<f64> {
        let counted = seconds.and_then(|seconds| Some(seconds / self.time(table, row, column)?));
        let stated = self.stated.map(|percent| percent / 100.0);
        match (counted, stated) {
            (Some(counted), Some(stated)) => Some(counted.max(stated)),
            (one, other) => one.or(other),
        }
    }

    /// The decimal logarithm of the probability that another measurement prints the same digits.
    pub fn log_chance(&self, table: &Table, row: usize, column: usize, number: &Number) -> f64 {
        let Some(share) = self.share_of(self.seconds, table, row, column) else { return 0.0 };
        let digit = 2.0 * number.half_unit();
        let tick = self.tick.and_then(|tick| Some(number.value * tick / self.time(table, row, column)?));
        let width = 2.0 * number.value.abs() * share;
        let step = digit.max(tick.unwrap_or(0.0));
        -(1.0 + width / step).log10()
    }

    /// The prefix that was left in the rates of the table, where its times show one, and the tick in nanoseconds.
    pub fn prefix(&self) -> Option<(f64, f64)> {
        self.tick.map(|tick| (self.factor, tick * 1e9))
    }

    /// Where the scatter comes from, for a reader.
    pub fn source(&self) -> String {
        let mut parts = Vec::new();
        if let Some(tick) = self.tick {
            parts.push(format!("its times stand on a grid of {} ns", show(tick * 1e9)));
        }
        match (self.seconds, self.tick) {
            (Some(seconds), Some(tick)) if seconds <= tick => {
                parts.push("and scatter by no more than a tick".to_owned());
            }
            (Some(seconds), _) => parts.push(format!("its times scatter by {} ns", show(seconds * 1e9))),
            _ => {}
        }
        parts.extend(self.stated.map(|percent| format!("the guide says {percent} %")));
        parts.join(", ")
    }

    /// The distinct times of a table in cycles, with what rounding leaves open of each.
    fn cycles(&self, table: &Table, clock: f64) -> Vec<Time> {
        let mut times: Vec<Time> = Vec::new();
        for (row, column, cell) in table.cells() {
            let Some((number, seconds)) = cell.number().zip(self.time(table, row, column)) else { continue };
            let cycles = seconds * clock;
            let uncertainty = cycles * number.half_unit() / number.value;
            let known = |time: &Time| (time.cycles - cycles).abs() <= time.uncertainty + uncertainty;
            if times.len() < MAX_TIMES && !times.iter().any(known) {
                times.push(Time { cycles, uncertainty });
            }
        }
        times
    }

    /// By how much the times of the three largest sizes miss a straight line, for the column in the middle.
    ///
    /// A fixed time and a time per byte make a line, whatever they are; what three points miss it by is scatter (or a bend,
    /// which only makes the estimate larger and the audit more careful). Where one of these cells is kept back the scatter
    /// is not known, so that keeping a cell back never makes a finding.
    fn scatter(&self, table: &Table) -> Scatter {
        let sizes: Vec<(usize, f64)> = table
            .rows
            .iter()
            .enumerate()
            .filter_map(|(row, of)| Some((row, Number::read(&of.name)?.value)))
            .collect();
        let Some(&[(first, small), (second, middle), (third, large)]) = sizes.last_chunk::<3>() else {
            return Scatter::TooFew;
        };
        if !(small < middle && middle < large) {
            return Scatter::TooFew;
        }
        let mut misses = Vec::new();
        for column in 0..table.columns.len() {
            let rows = [first, second, third];
            let kept_back = |row: usize| {
                table.role(row, column) == Some(Role::Measured)
                    && table.rows.get(row).and_then(|row| row.cells.get(column)) == Some(&Cell::Withheld)
            };
            if rows.into_iter().any(kept_back) {
                return Scatter::Withheld;
            }
            let [Some(before), Some(at), Some(after)] = rows.map(|row| self.time(table, row, column)) else {
                continue;
            };
            let slope = (large - middle) / (middle - small);
            let miss = after - (1.0 + slope) * at + slope * before;
            misses.push(miss.abs() / (1.0 + (1.0 + slope).powi(2) + slope.powi(2)).sqrt());
        }
        misses.sort_by(f64::total_cmp);
        let middle = misses.len().saturating_sub(1) / 2;
        misses.get(middle).map_or(Scatter::TooFew, |miss| Scatter::Seconds(*miss))
    }
}

/// What three sizes say of the scatter.
enum Scatter {
    Seconds(f64),
    TooFew,
    Withheld,
}

/// The factor and the coarsest tick, in cycles of the stated clock, at which the times are whole ticks; `None` if that could
/// be a coincidence.
fn grid(times: &[Time]) -> Option<(f64, f64)> {
    if times.len() < MIN_TIMES {
        return None;
    }
    let mut best: Option<(f64, f64, f64)> = None;
    let mut tried = 0u32;
    for factor in [1.0].into_iter().chain(FACTORS) {
        for cycles in 1..=MAX_CYCLES {
            for runs in RUNS {
                tried += 1;
                let tick = f64::from(cycles) / f64::from(runs);
                let scaled: Vec<Time> = times
                    .iter()
                    .map(|time| Time { cycles: time.cycles / tick, uncertainty: time.uncertainty / tick })
                    .filter(|time| time.uncertainty > 0.0 && time.uncertainty * factor <= MAX_UNCERTAINTY)
                    .collect();
                let (hits, log) = log_bound(&scaled, factor);
                let known = scaled.len() as f64;
                if known < MIN_KNOWN * times.len() as f64 || (hits as f64) < MIN_SHARE * known {
                    continue;
                }
                if best.is_none_or(|(lowest, ..)| log < lowest) {
                    best = Some((log, factor, tick));
                }
            }
        }
    }
    let (log, factor, tick) = best?;
    (log + f64::from(tried).log10() <= MAX_COINCIDENCE.log10()).then_some((factor, tick))
}
