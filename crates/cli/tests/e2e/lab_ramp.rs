//! `linerate lab ramp` against our servers, and against servers that are none. Rates and times are not asserted.

use crate::data::Folder;
use crate::lab::{Lab, Namespace, Wire, text};
use serde_json::Value;
use std::process::Output;
use std::time::{Duration, Instant};

/// The command in its shortest form.
fn line(args: &str) -> String {
    format!(
        "timeout 60 {} lab ramp --quick --json --late 1000 --levels 2 --seconds 0.2 {args}",
        env!("CARGO_BIN_EXE_linerate")
    )
}

/// A result: all that was offered was answered or failed, and every figure is there.
fn result(output: &Output) -> Value {
    assert!(output.status.success(), "{}", text(output));
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for ramp in result["ramps"].as_array().expect("ramps") {
        for level in ramp["levels"].as_array().expect("levels") {
            let number = |name: &str| level[name].as_u64().unwrap_or_else(|| panic!("{name} in {level}"));
            let failed: u64 =
                level["errors"].as_object().expect("errors").values().filter_map(Value::as_u64).sum();
            assert_eq!(number("offered"), number("answered") + failed, "{level}");
            assert!(number("offered") > 0 && number("connections") > 0, "{level}");
        }
    }
    assert!(result["records"].is_array());
    assert!(result["provenance"]["command"].as_str().expect("a command").starts_with("linerate lab ramp "));
    result
}

fn sum(ramp: &Value, name: &str) -> u64 {
    ramp["levels"].as_array().expect("levels").iter().filter_map(|level| level[name].as_u64()).sum()
}

#[test]
fn our_servers_answer_all_of_a_short_ramp() {
    for wire in [Wire::Tap, Wire::Packet, Wire::Xdp(1), Wire::Kernel] {
        let lab = Lab::start(wire, 1500, &[]);
        let folder = Folder::new();
        let (html, svg) = (folder.file("ramp.html"), folder.file("ramp.svg"));
        let files = format!("--html {} --plot {}", html.display(), svg.display());
        let output =
            lab.client.sh(&line(&format!("--from 20 {files} a={0}/memory/354 b={0}/memory/10K", lab.http())));
        let result = result(&output);
        let ramps = result["ramps"].as_array().expect("ramps");
        assert_eq!(ramps.len(), 2);
        for (ramp, (name, len)) in ramps.iter().zip([("a", 354), ("b", 10_240)]) {
            assert_eq!(ramp["name"], name);
            assert_eq!(ramp["workload"], format!("http-{len}"));
            // 20 and 40 connections a second for 0.2 s, or longer where answers are slow; three requests each.
            let [offered, answered, connections] =
                ["offered", "answered", "connections"].map(|what| sum(ramp, what));
            assert!(offered >= 36, "{wire:?}: {ramp}");
            assert_eq!((answered, 3 * connections), (offered, offered), "{wire:?}: {ramp}");
            assert_eq!(ramp["levels"][0]["body_len"], len);
        }
        // The process is found by its socket or its TAP device; one that sits in another namespace is not.
        if matches!(wire, Wire::Tap | Wire::Kernel) {
            assert!(ramps[0]["server_pid"].is_u64(), "{wire:?}: {}", ramps[0]);
            let server = &ramps[0]["levels"][0]["seen"]["cpu"]["server"];
            assert!(server.is_f64(), "{wire:?}: {}", ramps[0]);
        }
        let page = std::fs::read_to_string(&html).expect("a page");
        assert!(
            page.contains("seed 003, 10 KiB")
                && page.contains("id=\"response\"")
                && !page.contains("<script")
        );
        assert!(std::fs::read_to_string(&svg).expect("a picture").starts_with("<svg "));
        lab.stop();
    }
}

#[test]
fn the_document_s_measurement_in_its_short_form() {
    let lab = Lab::start(Wire::Tap, 1500, &[]);
    let paths = "--small /memory/354 --large /memory/10K --missing /none";
    let program = env!("CARGO_BIN_EXE_linerate");
    let output = lab.client.sh(&format!(
        "timeout 60 {program} lab ramp --preset seed-003 --quick --json --late 1000 {paths} {}",
        lab.http()
    ));
    let result = result(&output);
    let ramps = result["ramps"].as_array().expect("ramps");
    let workloads: Vec<&str> = ramps.iter().filter_map(|ramp| ramp["workload"].as_str()).collect();
    assert_eq!(workloads, ["http-354", "http-10k", "http-404"]);
    for ramp in ramps {
        // 30 connections at each of three levels, three requests on each: a 404 that was expected is an answer.
        assert_eq!((sum(ramp, "connections"), sum(ramp, "answered")), (90, 270), "{ramp}");
        assert_eq!(ramp["requests_per_connection"], 3);
    }
    // Without --expect a 404 is none.
    let refused = lab.client.sh(&line(&format!("{}/none", lab.http())));
    assert!(!refused.status.success() && text(&refused).contains("--expect 404"), "{}", text(&refused));
    let expected = result_of(&lab, "--expect 404 --pace connections", "/none");
    assert_eq!(expected["ramps"][0]["workload"], "http-404");
    // Kept connections.
    let kept = lab.client.sh(&line(&format!("--connections 4 --from 50 {}/memory/1", lab.http())));
    assert!(kept.status.success(), "{}", text(&kept));
    let kept: Value = serde_json::from_slice(&kept.stdout).expect("JSON");
    assert_eq!((sum(&kept["ramps"][0], "offered"), sum(&kept["ramps"][0], "answered")), (30, 30));
    lab.stop();
}

fn result_of(lab: &Lab, args: &str, path: &str) -> Value {
    result(&lab.client.sh(&line(&format!("{args} {}{path}", lab.http()))))
}

#[test]
fn a_server_that_stops_within_a_level() {
    let lab = Lab::start(Wire::Kernel, 1500, &[]);
    let line =
        format!("{} --timeout 1", line(&format!("--from 40 --levels 1 --seconds 3 {}/memory/1", lab.http())))
            .replace("--levels 2 --seconds 0.2", "");
    let output = std::thread::scope(|scope| {
        let ramp = scope.spawn(|| lab.client.sh(&line));
        // The probe, and then a part of the level.
        let deadline = Instant::now() + Duration::from_secs(2);
        while Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(50));
        }
        lab.signal("KILL");
        ramp.join().expect("the ramp ends")
    });
    if !output.status.success() {
        // Where the machine was too busy for the level, it was tried again, and there was nobody any more.
        let said = text(&output);
        return assert!(
            said.contains("nothing answers any more") && said.contains("all of 360 failed"),
            "{said}"
        );
    }
    let result = result(&output);
    let level = &result["ramps"][0]["levels"][0];
    assert_eq!(level["offered"], 360, "{level}");
    assert!(level["answered"].as_u64() < Some(360), "{level}");
    let kinds: Vec<&String> = level["errors"].as_object().expect("errors").keys().collect();
    assert!(kinds.iter().any(|kind| *kind == "refused"), "{kinds:?}");
}

#[test]
fn servers_that_are_none_are_told_so() {
    let place = Namespace::new();
    let check = |server: &str, part: &str| {
        let ramp = line("--timeout 0.5 http://127.0.0.1:7000/");
        let output = match server {
            "" => place.sh(&ramp),
            server => place.sh(&format!(
                "timeout 20 python3 -c \"
import socket, time
listener = socket.create_server(('127.0.0.1', 7000))
open('/tmp/ready-$$', 'w')
peer = listener.accept()[0]
peer.recv(4096)
{server}
\" & server=$!; while [ ! -e /tmp/ready-$$ ]; do sleep 0.05; done; rm /tmp/ready-$$; {ramp}; code=$?; kill $server; wait $server; exit $code"
            )),
        };
        assert_eq!(output.status.code(), Some(1), "{server}: {}", text(&output));
        assert!(text(&output).contains(part) && output.stdout.is_empty(), "{server}: {}", text(&output));
    };
    check("", "cannot connect");
    check("time.sleep(5)", "no answer within 0.5 s");
    check("peer.sendall(b'SSH-2.0-none\\r\\n\\r\\n'); time.sleep(1)", "no HTTP/1.1");
    for (args, part) in [
        ("--source ::1 http://127.0.0.1:1/", "expected an address of the family of 127.0.0.1:1"),
        ("--source 9.9.9.9 http://127.0.0.1:1/", "expected an address of this machine"),
        ("a=http://127.0.0.1:1/ a=http://127.0.0.1:2/", "two servers are named 'a'"),
        ("--server-pid 4194304 http://127.0.0.1:1/", "expected a process that runs"),
    ] {
        let wrong = place.sh(&line(args));
        assert_eq!(wrong.status.code(), Some(2), "{args}: {}", text(&wrong));
        assert!(text(&wrong).contains(part), "{args}: {}", text(&wrong));
    }
    let wrong = place.sh(&line("https://127.0.0.1/"));
    assert_eq!(wrong.status.code(), Some(2), "{}", text(&wrong));
    assert!(text(&wrong).contains("no TLS"), "{}", text(&wrong));
}
