//! A server in several queues, each with a thread of its own.

use crate::data::{Folder, assert_same, write_random};
use crate::lab::{Lab, Wire, text};
use serde_json::Value;
use std::time::{Duration, Instant};

const WIRES: [Wire; 3] = [Wire::Tap, Wire::Packet, Wire::Kernel];

/// The same, and an interface of so many queues by AF_XDP.
fn wires_of(queues: u16) -> [Wire; 4] {
    [Wire::Tap, Wire::Packet, Wire::Kernel, Wire::Xdp(queues)]
}

/// One figure of each queue.
fn by_queue(report: &Value, figure: &str) -> Vec<u64> {
    let queues = report["queues"].as_array().expect("queues");
    queues.iter().map(|queue| queue[figure].as_u64().expect("a number")).collect()
}

#[test]
fn a_thousand_connections_over_two_queues_arrive_whole() {
    for wire in wires_of(2) {
        let served = Folder::new();
        write_random(&served.file("data"), 1 << 20);
        let lab = Lab::start(wire, 1500, &[served.path(), "--queues", "2", "--status", "9180"]);
        let folder = Folder::new();
        let script = folder.file("thousand.py");
        std::fs::write(&script, include_str!("thousand.py")).expect("a file");
        let (port, host) = (lab.http().rsplit(':').next().unwrap_or("80").to_owned(), lab.host4());
        let sum = lab.client.must(&format!("sha256sum < {}/data", served.path()));
        let sum = sum.split_whitespace().next().expect("a sum");
        let report = lab.client.must(&format!(
            "ulimit -n 4096; timeout 120 python3 {} {host} {port} /data {sum}",
            script.display()
        ));
        assert!(report.contains("1000 complete"), "{wire:?}: {report}");
        let report = lab.status();
        let sent = by_queue(&report, "sent_bytes");
        assert!(sent.len() == 2 && sent.iter().all(|bytes| *bytes > 300 << 20), "{wire:?}: {sent:?}");
        assert_eq!(
            report["counters"]["http"]["responses_2xx"], 1000,
            "{wire:?}: {}",
            report["counters"]["http"]
        );
        lab.stop();
    }
}

#[test]
fn every_server_works_wherever_its_connections_land() {
    for wire in wires_of(4) {
        let served = Folder::new();
        write_random(&served.file("big"), 30 << 20);
        let lab = Lab::start(
            wire,
            1500,
            &[served.path(), "--queues", "4", "--ftp-user", "anna:x", "--writable", "--status", "9180"],
        );
        let (ftp, folder) = (lab.ftp(), Folder::new());
        // Passive and active, down and up, several at once.
        let login = ftp.replace("ftp://", "ftp://anna:x@");
        for mode in ["", "-P -"] {
            let one = |n: u32| {
                format!(
                    "(curl -sSf --max-time 60 {mode} {login}/big -o {dir}/{n} && \
                     curl -sSf --max-time 60 {mode} -T {dir}/{n} {login}/up{n}) &",
                    dir = folder.path()
                )
            };
            let all: String = (0..8).map(one).collect();
            lab.client.must(&format!("{all} wait"));
            for n in 0..8 {
                let up = served.file(&format!("up{n}"));
                assert_same(&served.file("big"), &folder.file(&n.to_string()));
                assert_same(&served.file("big"), &up);
                std::fs::remove_file(up).expect("it was there");
            }
        }
        for args in ["-P 8 -n 50M", "-P 8 -n 50M -R", "-t 5 -u -b 50M -l 1400", "-t 1 -u -b 50M -l 4000"] {
            let output = lab.client.sh(&format!("timeout 60 iperf3 -c {} -J {args}", lab.host4()));
            let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
            assert!(
                output.status.success() && report["error"].is_null(),
                "{wire:?} {args}: {}",
                text(&output)
            );
            let sum = &report["end"]["sum"];
            assert!(
                sum["lost_packets"].as_u64().unwrap_or(0) * 20 < sum["packets"].as_u64().unwrap_or(1),
                "{sum}"
            );
        }
        if wire != Wire::Kernel {
            // Fragments, and ICMP, which are no queue's own.
            lab.client.must(&format!("ping -c 3 -s 4000 -i 0.2 {}", lab.host4()));
            lab.client.must(&format!("ping -c 3 -s 4000 -i 0.2 {}", lab.host6()));
        }
        lab.stop();
    }
}

#[test]
fn limits_hold_for_all_queues_together() {
    let folder = Folder::new();
    let config = folder.file("limits.toml");
    std::fs::write(&config, "[limits]\nhttp-per-address = 20\nftp-per-address = 6\n").expect("a file");
    for wire in WIRES {
        let config = config.to_str().expect("UTF-8");
        let lab = Lab::start(wire, 1500, &["--config", config, "--queues", "4", "--status", "9180"]);
        // FTP sessions without a login give way to newcomers; downloads under way do not.
        let script = "import socket, sys\n\
            host, http, ftp = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])\n\
            def open(port): kept.append(socket.create_connection((host, port), timeout=10)); return kept[-1]\n\
            def is_there(c):\n\
            \x20   try: c.sendall(b'NOOP\\r\\n'); return c.recv(100).startswith(b'200')\n\
            \x20   except OSError: return False\n\
            def is_served(c):\n\
            \x20   c.sendall(b'GET /memory/1G HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')\n\
            \x20   try: return c.recv(100).startswith(b'HTTP/1.1 200')\n\
            \x20   except OSError: return False\n\
            kept = []\n\
            sessions = [open(ftp) for _ in range(12)]\n\
            greeted = [c for c in sessions if c.recv(100).startswith(b'220')]\n\
            print('ftp', sum(is_there(c) for c in greeted))\n\
            print('http', sum(is_served(open(http)) for _ in range(40)))\n";
        let file = folder.file("crowd.py");
        std::fs::write(&file, script).expect("a file");
        let port = lab.http().rsplit(':').next().unwrap_or("80").to_owned();
        let said = lab.client.must(&format!(
            "timeout 100 python3 {} {} {port} {}",
            file.display(),
            lab.host4(),
            lab.ftp_port()
        ));
        let report = lab.status();
        let (http, ftp) = (&report["counters"]["http"], &report["counters"]["ftp"]);
        // Those that come to several queues in the same moment may go beyond by one each.
        let count = |name: &str| -> u32 {
            let line = said.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
            line.trim().parse().expect("a number")
        };
        assert!((6..=9).contains(&count("ftp")), "{wire:?}: {said} {ftp}");
        assert!((20..=23).contains(&count("http")), "{wire:?}: {said} {http}");
        lab.stop();
    }
}

#[test]
fn every_thread_follows_reloads_gives_up_root_and_ends() {
    let folder = Folder::new();
    let config = folder.file("serve.toml");
    let write = |user: &str| {
        std::fs::write(&config, format!("ftp-user = [\"{user}:x\"]\nqueues = 3\n")).expect("a file");
    };
    for wire in WIRES {
        write("anna");
        // As root, or the file could not be read again.
        let path = config.to_str().expect("UTF-8");
        let lab = Lab::start(wire, 1500, &["--config", path, "--user", "root", "--status", "9180"]);
        let log_in = |user: &str| {
            let login = lab.ftp().replace("ftp://", &format!("ftp://{user}:x@"));
            lab.client.sh(&format!("curl -sSf --max-time 20 {login}/")).status.success()
        };
        assert!((0..12).all(|_| log_in("anna")), "{wire:?}");
        write("berta");
        lab.signal("HUP");
        let until = Instant::now() + Duration::from_secs(10);
        while !lab.log().contains("configuration reloaded") && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        // A busy thread looks at its orders every 20 ms.
        std::thread::sleep(Duration::from_millis(100));
        assert!((0..12).all(|_| log_in("berta")), "{wire:?}:\n{}", lab.log());
        assert!(!log_in("anna"), "{wire:?}");
        // What is under way in any of them is finished.
        let get = format!("curl -sSf --max-time 30 --limit-rate 30M -o /dev/null {}/memory/50M", lab.http());
        std::thread::scope(|scope| {
            let downloads =
                scope.spawn(|| lab.client.must(&format!("for i in $(seq 9); do {get} & pids=\"$pids $!\"; done; for p in $pids; do wait $p || exit 1; done")));
            std::thread::sleep(Duration::from_millis(400));
            lab.signal("TERM");
            downloads.join().expect("all downloads");
        });
        lab.stop_after_signal();
    }
}

#[test]
fn the_rights_of_root_are_given_up_in_every_thread() {
    let lab = Lab::start(Wire::Tap, 1500, &["--queues", "3"]);
    let tasks = std::fs::read_dir(format!("/proc/{}/task", lab.pid())).expect("threads");
    let mut queues = 0;
    for task in tasks {
        let task = task.expect("a thread").path();
        let status = std::fs::read_to_string(task.join("status")).expect("its status");
        let has = |line: &str| status.lines().any(|other| other == line);
        assert!(has("Uid:\t65534\t65534\t65534\t65534") && has("CapEff:\t0000000000000000"), "{status}");
        queues += u32::from(status.starts_with("Name:\tqueue-"));
    }
    assert_eq!(queues, 2, "and the thread that it began with");
    lab.stop();
}

#[test]
fn a_port_that_another_server_has_is_not_shared_with_it() {
    let lab = Lab::start(Wire::Kernel, 1500, &["--queues", "2"]);
    let second = format!("{} serve --device kernel --queues 2", env!("CARGO_BIN_EXE_linerate"));
    let output = lab.client.sh(&format!("timeout 10 {second}"));
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("8080"), "{}", text(&output));
    lab.stop();
}
