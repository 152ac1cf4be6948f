//! Verdicts of small worlds, each of which was judged wrongly once.

use super::{Verdict, of};
use crate::scenario::{load, simulate};

/// The verdict about a transfer of a scenario.
fn verdict(text: &str, flow: usize) -> Verdict {
    let outcome = simulate(&load::parse(text).unwrap(), None);
    of(&outcome, &outcome.flows[flow])
}

fn check(text: &str, flow: usize, bottleneck: &str, said: &[&str]) -> String {
    let found = verdict(text, flow);
    assert_eq!(found.bottleneck, bottleneck, "{text}: {found:?}");
    said.iter().for_each(|words| assert!(found.because.contains(words), "{text}: {words:?} in {found:?}"));
    found.because
}

#[test]
fn segments_that_are_full_are_not_called_half_empty() {
    let small =
        "link = { rate = \"5 Mbit/s\", delay = \"1 ms\" }\nserver.tcp.mss = 100\nworld.duration = \"1 s\"\n";
    check(small, 0, "the segment size", &["88 B in a segment"]);
    let two = "link.rate = \"5 Mbit/s\"\nworld.duration = \"2 s\"\n[[flow]]\n[[flow]]\n\
               writer = { bytes = \"1 B\", every = \"10 ms\" }\n";
    let because = check(two, 1, "the sender", &["of what this transfer sent were headers"]);
    assert!(!because.contains("of it with headers"), "{because}");
}

#[test]
fn a_short_run_names_the_link_and_no_time_beyond_its_own() {
    for (rate, duration) in [("64", "400 ms"), ("128", "200 ms"), ("128", "400 ms"), ("128", "1 s")] {
        let text = format!("link.rate = \"{rate} kbit/s\"\nworld.duration = \"{duration}\"\n");
        check(&text, 0, "the link", &[]);
        let outcome = simulate(&load::parse(&text).unwrap(), None);
        let flow = &outcome.flows[0];
        assert!(flow.time_in_flight().is_none_or(|time| time <= outcome.time), "{text}: {flow:?}");
    }
}

#[test]
fn what_keeps_everything_from_coming_is_named() {
    let short = "world.duration = \"5 s\"\n";
    check(&format!("link.corrupt = \"100 %\"\n{short}"), 0, "damaged segments", &["were damaged"]);
    check(&format!("link.rate = \"1 bit/s\"\n{short}"), 0, "the link", &["at 1 bit/s"]);
    check(&format!("link.delay = \"3 s\"\n{short}"), 0, "the scenario", &["2 round trips of 6 s"]);
    let waits = format!("client = {{ interrupt-mode = \"none\", interrupt-packets = 32 }}\n{short}");
    check(
        &waits,
        0,
        "interrupt delay",
        &["interrupt-mode none the client hears of frames only when there are 32"],
    );
    let few = "client.interrupt-mode = \"none\"\n[[flow]]\nbytes = \"2 KiB\"\n";
    check(few, 0, "interrupt delay", &["segments waited", "on average"]);
    let busy = "server.processor = { packet = \"100 ms\" }\nworld.duration = \"1 s\"\n";
    check(busy, 0, "the server's processor", &[]);
    check(&format!("link.loss = \"100 %\"\n{short}"), 0, "the path", &["no connection came to be"]);
}

#[test]
fn a_slow_handshake_without_losses_is_called_slow() {
    let because =
        check("link.rate = \"1 kbit/s\"\n[[flow]]\nbytes = \"1 B\"\n", 0, "the link", &["1 kbit/s"]);
    assert!(!because.contains("lost") && !because.contains("holds everything up"), "{because}");
}
