//! `linerate lab ladder` on Linux devices in namespaces, in its shortest form: what it tells, not how fast it was.

use serde_json::Value;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn ladder(args: &[&str]) -> (bool, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .args(["lab", "ladder"])
        .args(args)
        .output()
        .expect("the command starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

/// The transfer of each rung is whole, or the command fails: it compares the bytes that arrived with those asked for.
#[test]
fn rungs_on_each_device() {
    let rungs = ["as-ported", "mss-writes", "jumbo", "rx-buffers-64k", "narrow-window"];
    // Those that they are changed from come with them.
    let more = ["checksum-offload", "rx-as-ported"];
    let mut args = vec!["--on", "linux", "--device", "tap", "--device", "packet", "--quick", "--json"];
    args.extend(rungs.iter().flat_map(|rung| ["--rung", rung]));
    let (success, out, err) = ladder(&args);
    assert!(success, "{err}");
    let report: Value = serde_json::from_str(&out).expect("JSON");
    let climbs = report["climbs"].as_array().expect("climbs");
    let devices = [("linux-tap", "On a TAP device"), ("linux-packet", "On a packet socket on veth")];
    assert_eq!(climbs.len(), devices.len());
    for (climb, (board, title)) in climbs.iter().zip(devices) {
        assert_eq!((&climb["board"], &climb["title"]), (&board.into(), &title.into()));
        check_climb(climb);
        let records = report["records"].as_array().expect("records").iter();
        let measured = records.filter(|record| {
            record["board"] == board && record["origin"] == "measured" && record["figure"] == "throughput"
        });
        assert_eq!(measured.count(), rungs.len() + more.len(), "{board}");
    }
    assert!(report["provenance"]["date"].as_str().is_some_and(|date| date.starts_with("20")));
}

fn check_climb(climb: &Value) {
    let rows = climb["rows"].as_array().expect("rows");
    let names: Vec<&str> = rows.iter().filter_map(|row| row["rung"].as_str()).collect();
    assert_eq!(
        names,
        [
            "as-ported",
            "mss-writes",
            "checksum-offload",
            "jumbo",
            "narrow-window",
            "rx-as-ported",
            "rx-buffers-64k"
        ]
    );
    for row in rows {
        let found = &row["measured"];
        assert!(found["megabytes"]["median"].as_f64() > Some(0.0), "{row}");
        assert!(found["how"].as_str().is_some_and(|how| how.starts_with("FTP of 16 MiB")), "{row}");
        let expected = &row["predicted"];
        assert!(expected["megabytes"].as_f64() > Some(0.0) && expected["load"].as_f64() > Some(0.0), "{row}");
        assert!(expected["limits"].as_array().is_some_and(|limits| !limits.is_empty()), "{row}");
    }
    // What a prediction rests on is told; how near it comes is not asked of a machine that does other things.
    let notes: Vec<&str> =
        climb["notes"].as_array().expect("notes").iter().filter_map(Value::as_str).collect();
    let calibrated = notes.iter().filter(|note| note.starts_with("Calibrated, "));
    assert_eq!(calibrated.count(), 3, "{notes:?}");
    assert!(!climb["left_out"].as_array().expect("what is left out").is_empty());
}

#[test]
fn devices_are_those_of_linux() {
    let (success, _, err) = ladder(&["--device", "packet"]);
    assert!(!success && err.contains("--device needs --on linux"), "{err}");
    let (success, _, err) = ladder(&["--on", "linux", "--device", "rtl"]);
    assert!(!success && err.contains("[possible values: tap, packet]"), "{err}");
}

#[test]
fn a_rung_that_is_not_there() {
    let (success, _, err) = ladder(&["--on", "linux", "--rung", "no-yield"]);
    assert!(
        !success && err.contains("no rung \"no-yield\" on a Linux device; expected one of as-ported"),
        "{err}"
    );
    let (success, _, err) = ladder(&["--rung", "higher"]);
    assert!(!success && err.contains("there is no rung \"higher\"; expected one of as-ported"), "{err}");
}

/// Namespaces that a process of the lab has made.
fn namespaces(pid: u32) -> usize {
    let names = std::fs::read_dir("/run/netns").map(|names| names.flatten().map(|name| name.file_name()));
    let own = format!("lrlab-{pid}-");
    names.map_or(0, |names| names.filter(|name| name.to_string_lossy().starts_with(&own)).count())
}

/// Control groups that a process of the lab has made; `None` on a machine that mounts none of version 2.
fn groups(pid: u32) -> Option<usize> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").expect("mounts");
    let mut mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let mount = mounts.find(|fields| fields[2] == "cgroup2")?;
    let own = format!("linerate-lab-{pid}-");
    let names = std::fs::read_dir(mount[1]).expect("groups").flatten().map(|name| name.file_name());
    Some(names.filter(|name| name.to_string_lossy().starts_with(&own)).count())
}

#[test]
fn who_is_interrupted_leaves_nothing_behind() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .args(["lab", "ladder", "--on", "linux"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command starts");
    let pid = child.id();
    let patience = Instant::now() + Duration::from_secs(60);
    // A server runs.
    while namespaces(pid) == 0 || groups(pid) == Some(0) {
        assert!(Instant::now() < patience && child.try_wait().expect("a child").is_none(), "no namespace");
        std::thread::sleep(Duration::from_millis(5));
    }
    // SIGINT may be ignored where tests run in the background; the two are treated alike.
    let sent = Command::new("kill").args(["-TERM", &pid.to_string()]).status().expect("kill starts");
    assert!(sent.success());
    assert_eq!(child.wait().expect("it ends").code(), Some(143));
    assert_eq!(namespaces(pid), 0);
    assert_eq!(groups(pid).unwrap_or(0), 0, "a control group is left");
    let left =
        std::fs::read_dir(std::env::temp_dir()).expect("a folder").flatten().map(|entry| entry.file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().contains(&format!("-{pid}-"))).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn what_is_missing_is_told_before_anything_is_measured() {
    let folder = std::env::temp_dir().join(format!("linerate-path-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder");
    let tell = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_linerate")).args(args).env("PATH", &folder).output();
        let output = output.expect("the command starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for args in [&["lab", "ladder", "--on", "linux"][..], &["lab", "offloads", "--quick"]] {
        assert_eq!(tell(args).0, Some(1));
        assert!(tell(args).1.contains("need iproute2"), "{}", tell(args).1);
    }
    for program in ["/usr/sbin/ip", "/sbin/ip"] {
        // One of them is there; the second link is in vain.
        let _there = std::os::unix::fs::symlink(program, folder.join("ip"));
    }
    for args in [&["lab", "ladder", "--on", "linux"][..], &["lab", "offloads", "--quick"]] {
        let (code, said) = tell(args);
        assert_eq!(code, Some(1));
        assert!(said.contains("needs curl") && !said.contains("round 1"), "{said}");
    }
    std::os::unix::fs::symlink("/bin/true", folder.join("curl")).expect("a link");
    let (code, said) = tell(&["lab", "ladder", "--on", "linux", "--device", "packet"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("needs ethtool") && !said.contains("calibration"), "{said}");
    std::fs::remove_dir_all(&folder).expect("it is there");
}
