//! What profiles tell: where each contender's processor time goes, and what ours takes more of than another.

use crate::profile::Place;
use crate::report::{Contestant, Judgement, RowReport};
use crate::table::short;
use linerate_lab::measure::statistics::spread;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Differences below this share of our cost are left out.
const LEAST: f64 = 0.04;
/// What is said of a function's name, in characters.
const LONGEST: usize = 130;

/// What a unit of a row's work costs a contender, by place, in the unit that is named with it.
struct Cost {
    whole: f64,
    by: BTreeMap<Place, f64>,
}

fn unit(row: &RowReport) -> (f64, &'static str) {
    match row.unit.as_str() {
        "packets/s" => (1e6, "us a packet"),
        "requests/s" | "connections/s" => (1e6, "us a request"),
        _ => (1e12, "ms a GB"),
    }
}

fn cost(row: &RowReport, contestant: &Contestant) -> Option<Cost> {
    let profile = contestant.profile.as_ref()?;
    let each = contestant.samples.iter().map(|sample| sample.server_cpu / sample.units);
    let whole = spread(each)?.median * unit(row).0;
    Some(Cost { whole, by: profile.shares.iter().map(|(place, share)| (*place, whole * share)).collect() })
}

/// What one contender takes more and less of than another: all that matters, what is more first.
pub fn reason(row: &RowReport, judgement: &Judgement) -> Option<String> {
    let find = |name: &str| row.contestants.iter().find(|contestant| contestant.name == name);
    let contestant = find(&judgement.ours)?;
    let (ours, other) = (cost(row, contestant)?, cost(row, find(&judgement.other)?)?);
    let of = |cost: &Cost, place: Place| cost.by.get(&place).copied().unwrap_or(0.0);
    let mut more: Vec<(f64, Place)> =
        Place::ALL.into_iter().map(|place| (of(&ours, place) - of(&other, place), place)).collect();
    more.retain(|(difference, _)| difference.abs() >= LEAST * ours.whole);
    more.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut text = format!(
        "{} takes {} {}, {} {}",
        judgement.ours,
        short(ours.whole),
        unit(row).1,
        judgement.other,
        short(other.whole)
    );
    for (at, (difference, place)) in more.iter().enumerate() {
        let sign = if *difference < 0.0 { "-" } else { "+" };
        let _ = write!(
            text,
            "{} {} {sign}{}",
            if at == 0 { ":" } else { "," },
            place.name(),
            short(difference.abs())
        );
    }
    if let Some((name, share)) = contestant.profile.as_ref().and_then(|profile| profile.largest.as_ref()) {
        let name: String = name.chars().take(LONGEST).collect();
        let _ = write!(text, "; the largest function of ours, `{name}`, is {:.1} % of it", share * 100.0);
    }
    Some(text)
}

/// The table of all profiles.
pub fn table(rows: &[RowReport]) -> Option<String> {
    let mut text = String::from("| row | contender | | all |");
    for place in Place::ALL {
        let _ = write!(text, " {} |", place.name());
    }
    let _ = write!(text, "\n|{}\n", "---|".repeat(Place::ALL.len() + 4));
    let mut any = false;
    for row in rows {
        for contestant in &row.contestants {
            let Some(cost) = cost(row, contestant) else { continue };
            any = true;
            let _ = write!(
                text,
                "| {} | {} | {} | {} |",
                row.name,
                contestant.name,
                unit(row).1,
                short(cost.whole)
            );
            for place in Place::ALL {
                let cell = cost.by.get(&place).map_or("-".into(), |value| short(*value));
                let _ = write!(text, " {cell} |");
            }
            text.push('\n');
        }
    }
    any.then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;
    use crate::report::Verdict;

    fn profiled() -> RowReport {
        let mut row = crate::table::tests::row(Verdict::Missed);
        let shares =
            [[(Place::Program, 0.5), (Place::Send, 0.5)], [(Place::Program, 0.1), (Place::Send, 0.9)]];
        for (contestant, shares) in row.contestants.iter_mut().zip(shares) {
            contestant.profile =
                Some(Profile { samples: 10, shares: shares.into(), largest: Some(("f".into(), 0.2)) });
        }
        row
    }

    #[test]
    fn what_ours_takes_more_of_comes_first() {
        let row = profiled();
        // 2.5 and 2 GB in a second of processor time: 400 and 500 ms a GB.
        assert_eq!(
            reason(&row, &row.judgements[0]).unwrap(),
            "linerate, TAP takes 400 ms a GB, floor, <TAP> 500: program +150, send -250; \
             the largest function of ours, `f`, is 20.0 % of it"
        );
        let text = table(&[row]).unwrap();
        assert!(text.contains("| tap-in | linerate, TAP | ms a GB | 400 | 200 | - | 200 |"), "{text}");
        let bare = crate::table::tests::row(Verdict::Missed);
        assert_eq!((reason(&bare, &bare.judgements[0]), table(std::slice::from_ref(&bare))), (None, None));
    }
}
