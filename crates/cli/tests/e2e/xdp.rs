//! AF_XDP: what a server takes from an interface, and that it gives it back.

use crate::lab::{Lab, Namespace, Wire, text};
use std::time::{Duration, Instant};

/// Waits until `done`; false after ten seconds.
fn wait_until(mut done: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(10);
    while Instant::now() < end {
        if done() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

#[test]
fn the_banner_and_the_status_say_how_frames_come() {
    let lab = Lab::start(Wire::Xdp(1), 1500, &["--status", "9180"]);
    assert!(lab.on_server("ip -o link show veth1").contains(" xdp"));
    assert!(lab.log().contains("by AF_XDP (native, copy mode)"), "{}", lab.log());
    let report = lab.status().to_string();
    assert!(report.contains("by AF_XDP (native, copy mode)"), "{report}");
    lab.stop();
    let lab = Lab::start(Wire::Xdp(1), 9000, &[]);
    assert!(lab.log().contains("by AF_XDP (native, copy mode, multi-buffer)"), "{}", lab.log());
    lab.stop();
}

#[test]
fn clients_that_are_killed_leave_nothing_behind() {
    let lab = Lab::start(Wire::Xdp(1), 1500, &["--status", "9180"]);
    for _ in 0..5 {
        // The kernel resets what a killed program had open.
        let down = format!("timeout -s KILL 0.4 curl -sS -o /dev/null {}/memory/1G", lab.http());
        let up = format!("timeout -s KILL 0.4 iperf3 -c {} -t 10", lab.host4());
        lab.client.sh(&format!("({down}) & ({up}) & wait"));
    }
    lab.client.must(&format!("curl -sSf -o /dev/null {}/memory/10M", lab.http()));
    let idle = wait_until(|| lab.status()["memory"]["used"] == 0);
    assert!(idle, "{}", lab.status()["memory"]);
    lab.stop();
}

#[test]
fn an_interface_is_given_back_whatever_ends_the_server() {
    let lab = Lab::start(Wire::Xdp(1), 1500, &[]);
    let has_program = || lab.on_server("ip -o link show veth1").contains(" xdp");
    assert!(has_program());
    lab.signal("KILL");
    assert!(wait_until(|| !has_program()), "the program outlived its server");
    // And it can be had again at once.
    let binary = env!("CARGO_BIN_EXE_linerate");
    lab.on_server(&format!(
        "timeout -s INT 3 {binary} serve --device xdp:veth1 > /tmp/linerate-xdp-again-$$ 2>&1; \
         grep -q Ready /tmp/linerate-xdp-again-$$; found=$?; rm /tmp/linerate-xdp-again-$$; exit $found"
    ));
}

#[test]
fn a_server_whose_interface_is_removed_ends_and_says_so() {
    let lab = Lab::start(Wire::Xdp(1), 1500, &[]);
    lab.client.must(&format!("curl -sSf -o /dev/null {}/hello.txt", lab.http()));
    lab.on_server("ip link del veth1");
    assert!(wait_until(|| lab.log().contains("the device is gone")), "{}", lab.log());
}

#[test]
fn queues_that_do_not_match_are_refused_with_what_to_do() {
    let namespace = Namespace::new();
    namespace.must(
        "ip link add veth0 numrxqueues 2 numtxqueues 2 type veth peer name veth1 numrxqueues 2 numtxqueues 2",
    );
    namespace.must("ip link set veth0 up; ip link set veth1 up");
    let binary = env!("CARGO_BIN_EXE_linerate");
    let output = namespace.sh(&format!("timeout 10 {binary} serve --device xdp:veth1 --queues 1"));
    let said = text(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for part in ["veth1", "2 queues", "--queues 2", "ethtool -L veth1 combined 1"] {
        assert!(said.contains(part), "{said}");
    }
    let output = namespace.sh(&format!("timeout 10 {binary} serve --device xdp:veth1 --memory 4MiB"));
    assert!(text(&output).contains("memory"), "{}", text(&output));
}
