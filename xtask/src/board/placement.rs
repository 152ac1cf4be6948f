//! Which lines of a direct-mapped cache functions are to lie in, so that those which alternate do not take each other's.
//!
//! Each set of such a cache is a story of its own: a line is filled when another one of its set was executed since. What a line would
//! cost in a set is therefore counted from when it and the others there are executed, and a function's place is the one at which its
//! lines cost least together. One function after the other takes its best place among the others, until none has a better one. That is no
//! optimum, as of any such search (N. Gloy and M. D. Smith, Procedure placement using temporal-ordering information, 1999).

use std::collections::HashMap;
use std::thread;

/// Sets of the cache.
pub const SETS: usize = 512;
/// Bytes of a line.
pub const LINE: u32 = 32;
/// Clocks to fill a line, and one that was read ahead as it lies behind the one before.
const FAR: f32 = 26.0;
const NEXT: f32 = 10.0;
/// A place is better where it saves more than this share: not one that only exchanges lines.
const WORTH: f64 = 1e-4;
/// Times that each function looks for a place; the third time few still move.
const ROUNDS: usize = 8;

/// A line of a function was come into.
#[derive(Clone, Copy)]
struct Visit {
    time: u32,
    line: u32,
    /// What it costs if it has to be filled.
    cost: f32,
}

/// What was executed: lines of functions, and when they were come into.
#[derive(Default)]
pub struct Program {
    /// By function and line within it, its number.
    numbers: HashMap<(usize, u32), usize>,
    /// The function of a line, and which of its lines it is.
    lines: Vec<(usize, u32)>,
    /// By line, in order of time.
    visits: Vec<Vec<Visit>>,
    /// Visits so far.
    time: u32,
}

impl Program {
    /// Adds the way that some work took: functions, and lines within them. All works count the same, however long their ways.
    pub fn add(&mut self, way: &[(usize, u32)]) {
        let share = 1e6 / way.len().max(1) as f32;
        let mut last = None;
        for &(function, at) in way {
            if last == Some((function, at)) {
                continue;
            }
            let is_next = at > 0 && last == Some((function, at - 1));
            last = Some((function, at));
            let line = *self.numbers.entry((function, at)).or_insert(self.lines.len());
            if line == self.lines.len() {
                self.lines.push((function, at));
                self.visits.push(Vec::new());
            }
            let cost = share * if is_next { NEXT } else { FAR };
            self.visits[line].push(Visit { time: self.time, line: line as u32, cost });
            self.time += 1;
        }
    }

    /// Finds a set for the first line of each function, `places` being where they are now; those that are `fixed` stay. Returns what filling
    /// costs before and after, without a unit.
    pub fn place(&self, places: &mut [usize], fixed: &[bool]) -> (f64, f64) {
        let mut lines = vec![Vec::new(); places.len()];
        let mut visits = vec![0; places.len()];
        for (line, (function, _)) in self.lines.iter().enumerate() {
            lines[*function].push(line);
            visits[*function] += self.visits[line].len();
        }
        let mut order: Vec<usize> = (0..places.len()).filter(|function| !fixed[*function]).collect();
        order.sort_by_key(|function| std::cmp::Reverse(visits[*function]));
        let before = self.cost(places);
        for _ in 0..ROUNDS {
            let mut sets = self.sets(places);
            let mut moved = false;
            for &function in &order {
                for set in &mut sets {
                    set.retain(|visit| self.lines[visit.line as usize].0 != function);
                }
                let costs = self.costs(&lines[function], &sets);
                let best = (0..SETS).min_by(|a, b| costs[*a].total_cmp(&costs[*b])).unwrap_or_default();
                if costs[best] < costs[places[function]] * (1.0 - WORTH) {
                    places[function] = best;
                    moved = true;
                }
                for &line in &lines[function] {
                    let set = &mut sets[self.set(line, places)];
                    set.extend_from_slice(&self.visits[line]);
                    // Two runs in order: merged by this sort.
                    set.sort_by_key(|visit| visit.time);
                }
            }
            if !moved {
                break;
            }
        }
        (before, self.cost(places))
    }

    /// What filling costs with functions at these places, without a unit.
    fn cost(&self, places: &[usize]) -> f64 {
        let cost = |set: &Vec<Visit>| {
            let mut last = None;
            let filled = set.iter().filter(|visit| last.replace(visit.line) != Some(visit.line));
            filled.map(|visit| f64::from(visit.cost)).sum::<f64>()
        };
        self.sets(places).iter().map(cost).sum()
    }

    fn set(&self, line: usize, places: &[usize]) -> usize {
        let (function, at) = self.lines[line];
        (places[function] + at as usize) % SETS
    }

    /// Visits by set, in order of time.
    fn sets(&self, places: &[usize]) -> Vec<Vec<Visit>> {
        let mut sets = vec![Vec::new(); SETS];
        for (line, visits) in self.visits.iter().enumerate() {
            sets[self.set(line, places)].extend_from_slice(visits);
        }
        sets.iter_mut().for_each(|set: &mut Vec<Visit>| set.sort_by_key(|visit| visit.time));
        sets
    }

    /// What a function of these lines costs at each place beside what is in the sets.
    fn costs(&self, lines: &[usize], sets: &[Vec<Visit>]) -> Vec<f64> {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let share = |first: usize| {
            let mut costs = vec![0.0; SETS];
            for (set, others) in sets.iter().enumerate().skip(first).step_by(threads) {
                for &line in lines {
                    let at = self.lines[line].1 as usize % SETS;
                    costs[(set + SETS - at) % SETS] += added(&self.visits[line], others);
                }
            }
            costs
        };
        let share = &share;
        thread::scope(|scope| {
            let shares: Vec<_> = (0..threads).map(|first| scope.spawn(move || share(first))).collect();
            let mut sum = vec![0.0; SETS];
            for costs in shares {
                // A share has no way to panic but that of its index, which tests go through.
                let costs = costs.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                sum.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += cost);
            }
            sum
        })
    }
}

/// What a line's visits cost in a set: its own fills, and those of a line that would have stayed.
fn added(own: &[Visit], others: &[Visit]) -> f64 {
    let (mut sum, mut next, mut last) = (0.0, 0, usize::MAX);
    for visit in own {
        next += behind(&others[next..], visit.time);
        if next == last {
            continue;
        }
        last = next;
        sum += f64::from(visit.cost);
        if let (Some(before), Some(after)) =
            (next.checked_sub(1).and_then(|at| others.get(at)), others.get(next))
            && before.line == after.line
        {
            sum += f64::from(after.cost);
        }
    }
    sum
}

/// How many of these are before a time, which are few as a rule: found by steps that double.
fn behind(visits: &[Visit], time: u32) -> usize {
    let mut step = 1;
    while step <= visits.len() && visits[step - 1].time < time {
        step *= 2;
    }
    let start = step / 2;
    let end = step.min(visits.len());
    start + visits[start..end].partition_point(|visit| visit.time < time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn two_that_alternate_leave_each_others_lines() {
        let mut program = Program::default();
        program.add(&[(0, 0), (0, 1), (1, 0)].repeat(100));
        let mut places = [7, 8];
        let (before, after) = program.place(&mut places, &[true, false]);
        assert_eq!(places[0], 7);
        assert!(![7, 8].contains(&places[1]), "{places:?}");
        // The line behind the first is filled each time before, and the two others not after the first time.
        assert!(after < before / 50.0, "{before} {after}");
    }

    #[test]
    fn works_count_the_same_however_long() {
        let mut program = Program::default();
        program.add(&[(0, 0), (1, 0)].repeat(1_000));
        let long = program.cost(&[0, 0]);
        let mut program = Program::default();
        program.add(&[(0, 0), (1, 0)].repeat(10));
        assert!((program.cost(&[0, 0]) / long - 1.0).abs() < 1e-3);
    }

    proptest! {
        #[test]
        fn what_a_place_is_said_to_cost_is_what_it_costs(
            way in prop::collection::vec((0..4_usize, 0..5_u32), 1..200),
            mut places in prop::collection::vec(0..SETS, 4),
            place in 0..SETS,
        ) {
            let mut program = Program::default();
            program.add(&way);
            let mut sets = program.sets(&places);
            sets.iter_mut().for_each(|set| set.retain(|visit| program.lines[visit.line as usize].0 != 0));
            let own: Vec<usize> = (0..program.lines.len()).filter(|line| program.lines[*line].0 == 0).collect();
            let costs = program.costs(&own, &sets);
            let at = |places: &[usize]| program.cost(places);
            let before = at(&places);
            let was = costs[places[0]];
            places[0] = place;
            let (saved, said) = (before - at(&places), was - costs[place]);
            prop_assert!((saved - said).abs() <= 1e-3 * before, "{saved} {said}");
        }

        #[test]
        fn it_never_gets_worse(
            way in prop::collection::vec((0..6_usize, 0..300_u32), 1..300),
            mut places in prop::collection::vec(0..8_usize, 6),
        ) {
            let mut program = Program::default();
            program.add(&way);
            let (before, after) = program.place(&mut places, &[false; 6]);
            prop_assert!(after <= before * (1.0 + 1e-6));
            prop_assert!(places.iter().all(|place| *place < SETS));
        }
    }
}
