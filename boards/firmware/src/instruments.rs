//! The console's commands for trace, profile and capture.

use crate::exchange::Spread;
use crate::probe::{Calls, Probe};
use crate::trace;
use alloc::string::String;
use linerate_nic::Interface;
use linerate_stack::Node;

/// What `help` says of them.
pub(crate) const HELP: &str = "trace     trace on, off and status: tasks, interrupts and frames, fetched as /trace\n\
    capture   capture on [BYTES OF A FRAME], off and status: frames, fetched as /capture.pcapng\n\
    profile   profile on, off and status: time in the driver\n";

/// Carries out a command, if it is one of them.
pub(crate) fn run<D: Interface>(line: &str, node: &mut Node<Spread<Probe<D>>>) -> Option<String> {
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
    // It may also have been ended elsewhere: whoever fetches it does.
    let is_watched = probe.is_watched();
    node.port.device().set_watched(is_watched);
    if !known {
        return Some(String::from(HELP));
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

fn no_memory(what: &str) -> String {
    alloc::format!("this image has no memory for it: memory.{what} in board.toml\n")
}

fn direction(name: &str, calls: Calls) -> String {
    alloc::format!("{name:<8}{:>10} calls{:>10} us\n", calls.count, calls.ns / 1_000)
}
