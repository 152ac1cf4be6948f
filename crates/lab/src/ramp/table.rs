//! The levels of a ramp as a table, with what was found below it.

use super::level::{Level, Limit, Times};
use super::run::Ramp;
use crate::load::Fault;
use crate::measure::statistics::Spread;
use crate::quantity::count;
use crate::report::grid::{Cell, Grid};

const HEADERS: [&str; 16] = [
    "conn.\n/s",
    "offered\n/s",
    "answered\n/s",
    "p50\nms",
    "p90\nms",
    "p99\nms",
    "p99.9\nms",
    "max\nms",
    "connect\np99 ms",
    "late\np99 ms",
    "failed",
    "open",
    "server\n%",
    "client\n%",
    "irq\n%",
    "limit",
];

/// The table of a ramp.
pub fn grid(number: usize, ramp: &Ramp) -> Grid {
    let title = format!("{}: {}", ramp.name, ramp.url);
    let mut grid = Grid::new(format!("levels-{number}"), title, &HEADERS);
    grid.rows = ramp.levels.iter().map(|level| row(ramp, level)).collect();
    grid.notes.push(sentence(ramp));
    grid.notes.extend(ramp.levels.iter().filter_map(note));
    grid.notes.push(meaning(ramp));
    grid
}

fn row(ramp: &Ramp, level: &Level) -> Vec<Cell> {
    let time = |times: Option<Times>, of: fn(&Times) -> f64| {
        times.map_or(Cell::Empty, |times| Cell::figure(of(&times)))
    };
    let answered = spread(level.answered_rate, level.answered_spread);
    let p99 =
        level.response_ms.map_or(Cell::Empty, |times| Cell::figures(spread(times.p99, level.p99_spread_ms)));
    let percent = |share: Option<f64>| share.map_or(Cell::Empty, |share| Cell::number(share * 100.0, 0));
    let failed: u64 = level.errors.values().sum();
    vec![
        level.connection_rate.map_or(Cell::Empty, |rate| Cell::number(rate, 1)),
        Cell::number(level.offered_rate, 1),
        Cell::Spread { spread: answered, decimals: 1 },
        time(level.response_ms, |times| times.p50),
        time(level.response_ms, |times| times.p90),
        p99,
        time(level.response_ms, |times| times.p999),
        time(level.response_ms, |times| times.max),
        time(level.connect_ms, |times| times.p99),
        time(level.late_ms, |times| times.p99),
        Cell::number(failed as f64, 0),
        Cell::number(level.most_open as f64, 0),
        percent(level.seen.cpu.server),
        percent(Some(level.seen.cpu.client)),
        percent(Some(level.seen.cpu.interrupts)),
        Cell::text(mark(ramp, level)),
    ]
}

/// A median with its range over the rounds.
fn spread(median: f64, [least, most]: [f64; 2]) -> Spread {
    Spread { median, least, most }
}

/// What stands beside a level: the knee, or who was its limit.
pub fn mark(ramp: &Ramp, level: &Level) -> &'static str {
    match &level.limit {
        Limit::Gone(_) => "gone",
        _ if ramp.knee.below_rate.is_some() && ramp.knee.offered_rate == Some(level.offered_rate) => "knee",
        Limit::None => "",
        Limit::Server(_) => "server",
        Limit::Client(_) => "refused (client)",
        Limit::Machine(_) => "refused (machine)",
        Limit::Path(_) => "refused (path)",
    }
}

/// What was found, in a sentence.
pub fn sentence(ramp: &Ramp) -> String {
    let knee = &ramp.knee;
    let is_gone = ramp.levels.iter().any(Level::is_gone);
    let found = match (knee.offered_rate, knee.below_rate) {
        (Some(rate), Some(below)) => {
            let why = knee.why.as_deref().unwrap_or("beyond it is another");
            format!("Knee at {} requests/s: at {} {why}.", rates(rate), rates(below))
        }
        (Some(rate), None) if is_gone => {
            format!("In order up to {} requests/s, no knee is known.", rates(rate))
        }
        (Some(rate), None) => format!("No knee up to {} requests/s.", rates(rate)),
        (None, _) => "No level is in order.".to_owned(),
    };
    let refused = ramp.levels.iter().filter(|level| level.is_refused()).count();
    let refused = match refused {
        0 => String::new(),
        1 => " One level is refused: it tells nothing of the server.".to_owned(),
        refused => format!(" {refused} levels are refused: they tell nothing of the server."),
    };
    let most = match knee.most_answered_rate {
        0.0 => String::new(),
        most => format!(" At most {} answers/s.", rates(most)),
    };
    let gone = if is_gone { " The server went away: the ramp is not whole." } else { "" };
    format!("{found}{most}{refused}{gone}")
}

/// A rate without needless decimals.
pub fn rates(rate: f64) -> String {
    if rate < 100.0 { format!("{rate:.1}") } else { count(rate.round() as u64) }
}

/// What a level needs said: failures by kind, and why it is refused.
fn note(level: &Level) -> Option<String> {
    let kinds = level.failures();
    let refused = match &level.limit {
        Limit::Client(why) => Some(format!("refused, the client was the limit: {why}")),
        Limit::Machine(why) => Some(format!("refused, the machine was the limit: {why}")),
        Limit::Path(why) => Some(format!("refused, the path was the limit: {why}")),
        Limit::Gone(why) => Some(format!("left out, the server was gone: {why}")),
        Limit::None | Limit::Server(_) => None,
    };
    let failed = (!kinds.is_empty()).then(|| {
        let failed: u64 = level.errors.values().sum();
        let closed = match level.errors.get(&Fault::Closed) {
            Some(_) => {
                " (closed: the server closed connections without answering, as it does at a limit of its own)"
            }
            None => "",
        };
        format!("{} of {} failed: {}{closed}", count(failed), count(level.offered), kinds)
    });
    let said: Vec<String> = refused.into_iter().chain(failed).collect();
    (!said.is_empty()).then(|| format!("At {} requests/s: {}.", rates(level.offered_rate), said.join("; ")))
}

/// What the columns mean.
fn meaning(ramp: &Ramp) -> String {
    let seen = match ramp.server_pid {
        Some(pid) => format!("process {pid} with its children"),
        None if ramp.levels.iter().any(|level| level.seen.cpu.server.is_some()) => "its processor".to_owned(),
        None => "not seen".to_owned(),
    };
    let each = match ramp.requests_per_connection {
        Some(each) => format!("{each} on each connection"),
        None => "on kept connections".to_owned(),
    };
    let ranges = match ramp.levels.iter().any(|level| level.rounds > 1) {
        true => " In brackets: least and most over the rounds.",
        false => "",
    };
    format!(
        "Requests offered and answered, {each}; times from when a request was due. late: how late this client was to send. open: \
         most connections at once. % of one core: server ({seen}), this client, interrupts of the kernel.{ranges}"
    )
}

#[cfg(test)]
mod tests {
    use super::super::knee::{find, tests::level};
    use super::*;
    use crate::report::grid::GridFormat;

    #[test]
    fn a_table_says_what_was_found() {
        let mut levels = vec![
            level(100.0, 100.0, 1.0),
            level(200.0, 200.0, 1.0),
            level(400.0, 210.0, 900.0),
            level(800.0, 5.0, 1.0),
        ];
        levels[2].limit = Limit::Server("slow".into());
        levels[2].errors.insert(Fault::Timeout, 7);
        levels[3].errors.insert(Fault::Closed, 1_234);
        levels[3].limit = Limit::Client("late".into());
        (levels[1].rounds, levels[1].answered_spread, levels[1].p99_spread_ms) =
            (3, [190.0, 201.0], [0.9, 1.2]);
        let knee = find(&levels);
        let ramp = Ramp {
            name: "x".into(),
            url: "http://x/".into(),
            workload: "http-3".into(),
            status: 200,
            requests_per_connection: Some(1),
            server_pid: None,
            levels,
            knee,
        };
        let text = grid(0, &ramp).render(GridFormat::Terminal, None);
        for part in [
            "knee",
            "200.0 (190.0 to 201.0)",
            "1.000 (0.900 to 1.200)",
            "In brackets: least and most over the rounds.",
            "refused (client)",
            "Knee at 200 requests/s: at 400 52 % of what is offered is answered",
            "At most 210 answers/s. One level is refused",
            "At 400 requests/s: 7 of 100 failed: timeout 7.",
            "At 800 requests/s: refused, the client was the limit: late; 1,234 of 100 failed: closed 1,234 (closed: the server closed",
        ] {
            assert!(text.contains(part), "{part:?} in\n{text}");
        }
        let refused: Vec<Level> = ramp.levels[3..].to_vec();
        let nothing = sentence(&Ramp { knee: find(&refused), levels: refused, ..ramp });
        assert_eq!(nothing, "No level is in order. One level is refused: it tells nothing of the server.");
    }

    #[test]
    fn no_knee_is_made_of_levels_without_a_server() {
        let mut levels = vec![level(50.0, 0.0, 1.0), level(100.0, 100.0, 1.0), level(200.0, 0.0, 1.0)];
        for place in [0, 2] {
            levels[place].limit = Limit::Gone("cannot connect".into());
            levels[place].errors.insert(Fault::Refused, 100);
        }
        let ramp = Ramp {
            name: "x".into(),
            url: "http://x/".into(),
            workload: "http-3".into(),
            status: 200,
            requests_per_connection: Some(1),
            server_pid: None,
            knee: find(&levels),
            levels,
        };
        assert_eq!(
            sentence(&ramp),
            "In order up to 100 requests/s, no knee is known. At most 100 answers/s. The server went away: the ramp is not whole."
        );
        assert_eq!(
            ramp.levels.iter().map(|level| mark(&ramp, level)).collect::<Vec<_>>(),
            ["gone", "", "gone"]
        );
        assert_eq!(
            note(&ramp.levels[2]).unwrap(),
            "At 200 requests/s: left out, the server was gone: cannot connect; 100 of 100 failed: refused 100."
        );
    }
}
