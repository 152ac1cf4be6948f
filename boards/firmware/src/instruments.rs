//! The console's commands for trace, profile, capture and pacing.

use crate::exchange::Spread;
use crate::probe::{Calls, Probe};
use crate::settings::{MOST_FRAMES, MOST_TIMER_US};
use crate::trace;
use alloc::string::String;
use linerate_nic::{Interface, PacingConfig, PacingMode, QueuePair as _};
use linerate_stack::Node;

/// What `help` says of them.
pub(crate) const HELP: &str = "trace     trace on, off and status: tasks, interrupts and frames, fetched as /trace\n\
    capture   capture on [BYTES OF A FRAME], off and status: frames, fetched as /capture.pcapng\n\
    profile   profile on, off and status: time in the driver\n\
    pacing    pacing MODE TIMER_US FRAMES: how long frames wait for others, or for how many; modes are none, last-interrupt,\n          \
    first-new-packet and last-new-packet\n";

/// Carries out a command, if it is one of them.
pub(crate) fn run<D: Interface>(line: &str, node: &mut Node<Spread<Probe<D>>>) -> Option<String> {
    if let Some(rest) = line.strip_prefix("pacing") {
        return Some(pacing(rest, node.port.device_mut().device_mut()));
    }
    let probe = node.port.device_mut().device_mut();
    let mut words = line.split_whitespace();
    let (what, order, more) = (words.next()?, words.next().unwrap_or("status"), words.next());
    let known = match (what, order, more) {
        ("trace", "on" | "off", None) => {
            probe.trace(order == "on");
            true
        }
        ("profile", "on" | "off", None) => {
            probe.profile(order == "on");
            true
        }
        ("capture", "off", None) => {
            probe.stop_capture();
            true
        }
        ("capture", "on", None) => {
            probe.start_capture(None);
            true
        }
        ("capture", "on", Some(bytes)) => {
            let bytes = bytes.parse().ok().filter(|bytes| *bytes > 0);
            bytes.inspect(|bytes| probe.start_capture(Some(*bytes))).is_some()
        }
        ("trace" | "capture" | "profile", "status", None) => true,
        ("trace" | "capture" | "profile", ..) => false,
        _ => return None,
    };
    if !known {
        return Some(misunderstood(what, order, more));
    }
    let probe = node.port.device().device();
    Some(match what {
        "trace" => {
            let mut room = 0;
            probe.tracer().with(&mut |ring| room = ring.room());
            if room == 0 { no_memory("trace") } else { trace::status(probe.tracer()) }
        }
        "capture" if probe.with_capture(|capture| capture.has_room()) => {
            probe.with_capture(|capture| capture.status())
        }
        "capture" => no_memory("capture"),
        _ => {
            let (received, sent) = probe.calls();
            let is_on = if probe.profiles() { "on" } else { "off" };
            alloc::format!("profile {is_on}\n{}{}", direction("receive", received), direction("send", sent))
        }
    })
}

/// What was expected of such a command.
fn misunderstood(what: &str, order: &str, more: Option<&str>) -> String {
    match (order, more) {
        ("on", Some(given)) if what == "capture" => {
            alloc::format!("capture on: {given} given, a number of bytes from 1 on expected\n")
        }
        ("on" | "off" | "status", more) => {
            let given = more.unwrap_or_default();
            alloc::format!("{what} {order}: {given} given, nothing more expected\n")
        }
        _ => alloc::format!("{what}: {order} given, on, off or status expected\n"),
    }
}

/// Sets or tells the pacing of the interface's interrupts.
fn pacing<D: Interface>(words: &str, probe: &mut Probe<D>) -> String {
    let mut words = words.split_whitespace();
    if let Some(mode) = words.next() {
        let mode = PacingMode::ALL.into_iter().find(|known| known.name() == mode);
        let [timer, frames] = [0, 1].map(|_| words.next().and_then(|word| word.parse::<u32>().ok()));
        let Some(mode) = mode else {
            let names = PacingMode::ALL.map(PacingMode::name).join(", ");
            return alloc::format!("no such mode; expected {names}\n");
        };
        let (Some(timer_ticks), Some(threshold), None) = (timer, frames, words.next()) else {
            return String::from(
                "expected pacing MODE TIMER_US FRAMES, with whole numbers of microseconds and frames\n",
            );
        };
        let most = probe.most_counted().map_or(MOST_FRAMES, |most| most.min(MOST_FRAMES));
        if let Some(why) = refused(timer_ticks, threshold, most) {
            return why;
        }
        let wanted = PacingConfig { mode, timer_ticks, tick_ns: 1_000, threshold };
        if probe.set_pacing(wanted).is_err() {
            return alloc::format!(
                "pacing: {} with a threshold of {threshold} given, 1 expected: this interface does not count frames\n",
                mode.name()
            );
        }
    }
    let now = probe.pacing();
    alloc::format!("{}, {} us, {} frames\n", now.mode.name(), now.period().as_micros(), now.threshold)
}

/// Why there can be no such timer or threshold, if so; with a threshold of `most` at most.
fn refused(timer_us: u32, threshold: u32, most: u32) -> Option<String> {
    if timer_us > MOST_TIMER_US {
        return Some(alloc::format!("pacing: {timer_us} us given, 0 to {MOST_TIMER_US} expected\n"));
    }
    let is_known = (1..=most).contains(&threshold);
    (!is_known).then(|| alloc::format!("pacing: {threshold} frames given, 1 to {most} expected\n"))
}

fn no_memory(what: &str) -> String {
    alloc::format!("this image has no memory for it: memory.{what} in board.toml\n")
}

fn direction(name: &str, calls: Calls) -> String {
    alloc::format!("{name:<8}{:>10} calls{:>10} us\n", calls.count, calls.ns / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_expected_is_told() {
        let check = |what, order, more, expected| assert_eq!(misunderstood(what, order, more), expected);
        check("trace", "foo", None, "trace: foo given, on, off or status expected\n");
        check("capture", "on", Some("0"), "capture on: 0 given, a number of bytes from 1 on expected\n");
        check("capture", "on", Some("x"), "capture on: x given, a number of bytes from 1 on expected\n");
        check("profile", "on", Some("x"), "profile on: x given, nothing more expected\n");
        check("capture", "off", Some("9"), "capture off: 9 given, nothing more expected\n");
    }

    #[test]
    fn pacing_that_cuts_a_board_off_is_refused_with_the_range() {
        let check = |timer, threshold, expected: Option<&str>| {
            assert_eq!(refused(timer, threshold, 4).as_deref(), expected, "{timer} us, {threshold} frames");
        };
        check(0, 1, None);
        check(100_000, 4, None);
        check(100, 0, Some("pacing: 0 frames given, 1 to 4 expected\n"));
        check(100, 9, Some("pacing: 9 frames given, 1 to 4 expected\n"));
        check(4_000_000_000, 0, Some("pacing: 4000000000 us given, 0 to 100000 expected\n"));
    }
}
