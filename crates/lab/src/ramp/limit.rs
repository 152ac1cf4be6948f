//! Who was the limit of a level: the client, the path or the server.
//!
//! A level at which the client was late or out of ports tells nothing of the server, nor does one whose link was full. Such a
//! level is refused. All else that goes wrong is laid to the server.

use super::level::{Level, Limit};
use crate::quantity::{rate, share};

/// A client's thread that is busier than this share of a core has no time to be in time.
const BUSY: f64 = 0.95;
/// The client may be late by this share of a response time, …
const LATE_SHARE: f64 = 0.1;
/// … or by so many milliseconds, unless another number is asked for.
pub const LATE_MS: f64 = 1.0;
/// More than this share of a core taken by the machine's host disturbs.
const STOLEN: f64 = 0.05;
/// A machine without more idle time than this share of its cores has none left, …
const IDLE_SHARE: f64 = 0.1;
/// … and other programs that use more than this share of them are in the way.
const OTHERS_SHARE: f64 = 0.25;
/// A link that carries more than this share of its rate is full.
const FULL: f64 = 0.9;
/// More than this share of segments lost is a lossy path.
const LOST: f64 = 0.01;
/// A server whose busiest thread is below this share of a core is not busy.
const IDLE: f64 = 0.7;
/// Below these a level is in order: answered of offered, and failed.
pub const ANSWERED_SHARE: f64 = 0.95;
/// The most that may fail of a level that is in order.
pub const ERROR_SHARE: f64 = 0.01;

/// Judges. `spins` where the client does not sleep, and its processor time says nothing; `late_ms`: by how much one departure in a
/// hundred may be late.
pub fn judge(level: &Level, spins: bool, late_ms: f64) -> Limit {
    if let Some(why) = of_client(level, spins, late_ms) {
        return Limit::Client(why);
    }
    if level.seen.cpu.stolen > STOLEN {
        return Limit::Machine(format!("the machine's host took {} of a core", share(level.seen.cpu.stolen)));
    }
    let is_answered = level.answered_rate >= ANSWERED_SHARE * level.offered_rate;
    if is_answered && level.error_share() <= ERROR_SHARE {
        return Limit::None;
    }
    if let Some(why) = of_others(level) {
        return Limit::Machine(why);
    }
    match of_path(level) {
        Some(why) => Limit::Path(why),
        None => Limit::Server(of_server(level)),
    }
}

fn of_client(level: &Level, spins: bool, late_ms: f64) -> Option<String> {
    let own: Vec<String> = level
        .errors
        .iter()
        .filter(|(fault, count)| fault.is_of_client() && **count > 0)
        .map(|(fault, count)| format!("{fault} for {count} requests"))
        .collect();
    if !own.is_empty() {
        return Some(own.join(", "));
    }
    let cpu = &level.seen.cpu;
    let busy = format!("its thread used {} of a core", share(cpu.client_thread));
    // A client that is refused everything has no response time beside which it could be late.
    let is_comparable = level.response_ms.is_some() || !level.is_silent();
    if let Some(late) = level.late_ms.filter(|_| is_comparable)
        && late.p99 > late_ms
        && late.p99 > LATE_SHARE * level.response_ms.map_or(0.0, |times| times.p99)
    {
        let response = level
            .response_ms
            .map_or_else(String::new, |times| format!(" of a p99 response time of {:.1} ms", times.p99));
        return Some(format!("one departure in a hundred was late by {:.1} ms{response}; {busy}", late.p99));
    }
    (!spins && cpu.client_thread > BUSY).then_some(busy)
}

/// Programs of the same machine that took the cores away from a level that is not in order.
fn of_others(level: &Level) -> Option<String> {
    let cpu = &level.seen.cpu;
    let others = cpu.others().filter(|others| *others > OTHERS_SHARE * cpu.cores)?;
    (cpu.busy > (1.0 - IDLE_SHARE) * cpu.cores).then(|| {
        format!("other programs of this machine used {} of a core, and nothing was idle", share(others))
    })
}

fn of_path(level: &Level) -> Option<String> {
    let network = &level.seen.network;
    if let Some(link) = network.link_bps
        && level.received_rate * 8.0 > FULL * link
    {
        return Some(format!("{} came over a link of {}", rate(level.received_rate * 8.0), rate(link)));
    }
    // Loss can be the server's as well; it is the path's only where the server is seen to have time and room.
    let is_idle =
        level.seen.cpu.server_thread.is_some_and(|share| share < IDLE) && network.listen_drops == Some(0);
    let lost = network.retransmitted as f64 / network.sent.max(1) as f64;
    (is_idle && lost > LOST).then(|| {
        format!(
            "{} of {} segments were sent again, {} of them to open connections, while the server had time",
            network.retransmitted, network.sent, network.syn_retransmitted
        )
    })
}

fn of_server(level: &Level) -> String {
    let mut said =
        vec![format!("{} of what was offered is answered", share(level.answered_rate / level.offered_rate))];
    if let Some((fault, count)) = level.errors.iter().max_by_key(|(_, count)| **count) {
        said.push(format!("{} fail, most of them: {fault} ({count})", share(level.error_share())));
    }
    if let Some(thread) = level.seen.cpu.server_thread {
        said.push(format!("its busiest thread uses {} of a core", share(thread)));
    }
    if let Some(drops) = level.seen.network.listen_drops.filter(|drops| *drops > 0) {
        said.push(format!("its listener had no room {drops} times"));
    }
    said.join("; ")
}

#[cfg(test)]
mod tests {
    use super::super::knee::tests::level;
    use super::*;
    use crate::load::Fault;

    /// What is judged of a level in order once it is changed.
    fn check(name: &str, change: impl Fn(&mut Level), expected: &str, part: &str) {
        let mut level = level(100.0, 100.0, 2.0);
        change(&mut level);
        let (who, why) = match judge(&level, false, LATE_MS) {
            Limit::None => ("none", String::new()),
            Limit::Server(why) => ("server", why),
            Limit::Client(why) => ("client", why),
            Limit::Machine(why) => ("machine", why),
            Limit::Path(why) => ("path", why),
            Limit::Gone(why) => ("gone", why),
        };
        assert_eq!(who, expected, "{name}: {why}");
        assert!(why.contains(part), "{name}: {part:?} in {why:?}");
    }

    fn fails(fault: Fault, requests: u64) -> impl Fn(&mut Level) {
        move |level| {
            level.errors.insert(fault, requests);
        }
    }

    #[test]
    fn the_server() {
        check("in order", |_| {}, "none", "");
        check("slow", |level| level.answered_rate = 60.0, "server", "60 %");
        check("errors", fails(Fault::Timeout, 2), "server", "timeout (2)");
        check("an error in a hundred", fails(Fault::Reset, 1), "none", "");
    }

    #[test]
    fn the_client() {
        check("ports", fails(Fault::NoPort, 1), "client", "no local port for 1");
        check("descriptors", fails(Fault::NoDescriptor, 1), "client", "no descriptor");
        check("busy", |level| level.seen.cpu.client_thread = 0.99, "client", "99 %");
        check("stolen", |level| level.seen.cpu.stolen = 0.2, "machine", "host took 20 %");
        let late =
            |ms: f64| move |level: &mut Level| level.late_ms.iter_mut().for_each(|times| times.p99 = ms);
        check("late", late(1.5), "client", "late by 1.5 ms");
        check("a little late", late(0.9), "none", "");
        let beside_slow_answers = |level: &mut Level| {
            late(20.0)(level);
            level.response_ms.iter_mut().for_each(|times| times.p99 = 900.0);
            level.answered_rate = 60.0;
        };
        check("late beside slow answers", beside_slow_answers, "server", "");
        let without_answers = |faults: Fault, response_ms: Option<f64>| {
            move |level: &mut Level| {
                late(300.0)(level);
                (level.answered, level.answered_rate) = (0, 0.0);
                level.errors.insert(faults, 100);
                level.response_ms =
                    response_ms.map(|p99| super::super::level::Times { p99, ..Default::default() });
            }
        };
        check(
            "late beside a server that is gone",
            without_answers(Fault::Refused, None),
            "server",
            "refused",
        );
        check("late beside timeouts", without_answers(Fault::Timeout, Some(5_000.0)), "server", "timeout");
        // So late that nothing could come in time.
        check("late by the timeout", without_answers(Fault::Timeout, Some(400.0)), "client", "late");
        check("late beside what is no answer", without_answers(Fault::Malformed, None), "client", "late");
        let mut spinning = level(100.0, 100.0, 2.0);
        spinning.seen.cpu.client_thread = 1.0;
        assert_eq!(judge(&spinning, true, LATE_MS), Limit::None);
    }

    #[test]
    fn other_programs() {
        let beside = |answered: f64, server: Option<f64>, busy: f64| {
            move |level: &mut Level| {
                level.answered_rate = answered;
                (level.seen.cpu.cores, level.seen.cpu.server, level.seen.cpu.busy) = (2.0, server, busy);
            }
        };
        check("in the way", beside(60.0, Some(0.5), 1.95), "machine", "used 145 % of a core");
        check("beside a level in order", beside(100.0, Some(0.5), 1.95), "none", "");
        check("with cores to spare", beside(60.0, Some(0.5), 1.5), "server", "");
        check("the server itself", beside(60.0, Some(1.9), 1.95), "server", "");
        check("a server elsewhere", beside(60.0, None, 1.95), "server", "");
    }

    #[test]
    fn the_path() {
        let full = |level: &mut Level| {
            level.answered_rate = 60.0;
            level.received_rate = 118e6;
            level.seen.network.link_bps = Some(1e9);
        };
        check("full link", full, "path", "1 Gbit/s");
        let lossy = |drops: Option<u64>, thread: Option<f64>| {
            move |level: &mut Level| {
                level.answered_rate = 60.0;
                (level.seen.network.sent, level.seen.network.retransmitted) = (100, 5);
                (level.seen.network.listen_drops, level.seen.cpu.server_thread) = (drops, thread);
            }
        };
        check("loss beside a server with time", lossy(Some(0), Some(0.2)), "path", "5 of 100");
        check("loss at its listener", lossy(Some(7), Some(0.2)), "server", "no room 7 times");
        check("loss beside a busy server", lossy(Some(0), Some(0.99)), "server", "99 % of a core");
        check("loss on the way to one that is not seen", lossy(None, None), "server", "");
    }
}
