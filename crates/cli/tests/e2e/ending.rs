//! How a server ends: at once where nothing is under way, and with a reset where something is.

use crate::data::Folder;
use crate::lab::{Lab, Namespace, Wire};
use std::io::Read as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

const WIRES: [Wire; 3] = [Wire::Tap, Wire::Packet, Wire::Kernel];

/// The last line that a server printed.
fn summary(lab: &Lab) -> String {
    let deadline = Instant::now() + Duration::from_secs(15);
    let mut lines = std::iter::from_fn(|| lab.next_line(deadline));
    lines.find(|line| line.starts_with("Ended")).unwrap_or_else(|| panic!("no summary; log:\n{}", lab.log()))
}

#[test]
fn idle_clients_hold_no_server_up() {
    for wire in WIRES {
        let lab = Lab::start(wire, 1500, &[]);
        let (host, http, ftp) = (lab.host4(), lab.http(), lab.ftp_port());
        let port = http.rsplit(':').next().expect("a port");
        // One that asked and keeps its connection, one that never asked, and one in an FTP session: all wait for the end.
        let client = format!(
            "import socket\n\
             kept = socket.create_connection(('{host}', {port}), 20)\n\
             kept.sendall(b'GET /hello.txt HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')\n\
             while not kept.recv(4096).endswith(b'linerate.\\n'): pass\n\
             silent = socket.create_connection(('{host}', {port}), 20)\n\
             ftp = socket.create_connection(('{host}', {ftp}), 20)\n\
             ftp.recv(4096)\n\
             print('waiting', flush=True)\n\
             print(kept.recv(9), silent.recv(9), ftp.recv(3), flush=True)\n"
        );
        let mut clients = lab.client.command("python3");
        let clients = clients.args(["-c", &client]).stdout(std::process::Stdio::piped()).spawn();
        let mut clients = clients.expect("python3 starts");
        let mut output = std::io::BufReader::new(clients.stdout.take().expect("a pipe"));
        let mut line = String::new();
        std::io::BufRead::read_line(&mut output, &mut line).expect("a line");
        assert_eq!(line.trim(), "waiting", "{wire:?}");
        lab.signal("TERM");
        let text = summary(&lab);
        assert!(text.contains("3 connections, 0 cut off"), "{wire:?}: {text}\n{}", lab.log());
        line.clear();
        std::io::BufRead::read_line(&mut output, &mut line).expect("a line");
        assert_eq!(line.trim(), "b'' b'' b'421'", "{wire:?}");
        // By the deadline it would say so.
        assert!(!lab.log().contains("cut off"), "{}", lab.log());
        clients.wait().expect("python3 ends");
        lab.stop_after_signal();
    }
}

#[test]
fn what_is_cut_off_is_reset() {
    for wire in WIRES {
        let lab = Lab::start(wire, 1500, &[]);
        let line =
            format!("curl -sS --limit-rate 1M --max-time 60 -o /dev/null {}/memory/1G; echo $?", lab.http());
        std::thread::scope(|scope| {
            let lab = &lab;
            let transfer = scope.spawn(move || lab.client.must(&line));
            std::thread::sleep(Duration::from_millis(700));
            // The second signal ends at once.
            lab.signal("TERM");
            std::thread::sleep(Duration::from_millis(100));
            lab.signal("TERM");
            let text = summary(lab);
            assert!(text.contains("1 connection, 1 cut off"), "{wire:?}: {text}");
            // 56: the connection was reset. 28 would be curl's own patience.
            assert_eq!(transfer.join().expect("curl ends").trim(), "56", "{wire:?}");
            // Its line tells what the client has: less than a second's worth and what was on its way.
            let log = lab.log();
            let line = log.lines().find(|line| line.contains("\"GET /memory/1G"));
            let bytes =
                line.and_then(|line| line.split_once("\" 200 ")?.1.split(' ').next()?.parse::<u64>().ok());
            assert!(bytes.is_some_and(|bytes| (1..64 << 20).contains(&bytes)), "{wire:?}: {log}");
        });
        lab.stop_after_signal();
    }
}

/// As where a client is lost: a new file is there as far as it came, an old one stays as it was.
/// Bytes of an upload that are certainly there.
const KEPT: u64 = 256 << 10;

/// Waits until the server has written so much into each of `uploads` files of the folder. They need not have a name yet.
fn until_written(lab: &Lab, folder: &Folder, uploads: usize) {
    let open = format!("/proc/{}/fd", lab.pid());
    let is_written = |at: PathBuf| {
        std::fs::read_link(&at).is_ok_and(|target| target.starts_with(folder.path()))
            && std::fs::metadata(&at).is_ok_and(|meta| meta.is_file() && meta.len() >= KEPT)
    };
    let deadline = Instant::now() + Duration::from_secs(20);
    while std::fs::read_dir(&open).expect("its files").flatten().filter(|at| is_written(at.path())).count()
        < uploads
    {
        assert!(Instant::now() < deadline, "no upload; log:\n{}", lab.log());
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn what_came_of_an_upload_is_there_after_the_end() {
    for wire in WIRES {
        let served = Folder::new();
        std::fs::write(served.file("old"), b"old").expect("a file");
        let args = [served.path(), "--writable", "--ftp-user", "eric:secret"];
        let lab = Lab::start(wire, 1500, &args);
        let upload = |name: &str| {
            format!(
                "curl -sS --limit-rate 1M --max-time 60 -u eric:secret -T - {}/{name} </dev/zero; true",
                lab.ftp()
            )
        };
        std::thread::scope(|scope| {
            let (client, lines) = (&lab.client, ["new", "old"].map(upload));
            let clients = lines.map(|line| scope.spawn(move || client.must(&line)));
            until_written(&lab, &served, 2);
            lab.signal("TERM");
            std::thread::sleep(Duration::from_millis(100));
            lab.signal("TERM");
            assert!(summary(&lab).contains("4 cut off"), "{wire:?}");
            for client in clients {
                client.join().expect("curl ends");
            }
        });
        let log = lab.log();
        lab.stop_after_signal();
        let told = |part: &str| {
            log.lines().any(|line| line.contains(part) && line.ends_with("cut off by the end of the server"))
        };
        assert!(told(" eric STOR /old received 0 bytes in "), "{wire:?}: {log}");
        let new = std::fs::read(served.file("new")).unwrap_or_else(|error| panic!("{wire:?}: {error}"));
        assert!(new.len() as u64 >= KEPT && new.iter().all(|byte| *byte == 0), "{wire:?}: {}", new.len());
        assert!(told(&format!(" eric STOR /new received {} bytes in ", new.len())), "{wire:?}: {log}");
        assert_eq!(std::fs::read(served.file("old")).expect("the old file"), b"old", "{wire:?}");
        assert_eq!(std::fs::read_dir(served.path()).expect("the folder").count(), 2, "{wire:?}");
    }
}

/// The same where the server ends because its interface is gone, whichever thread an upload is on.
#[test]
fn what_came_of_an_upload_is_there_without_an_interface() {
    const UPLOADS: usize = 6;
    let served = Folder::new();
    let args = [served.path(), "--writable", "--ftp-user", "eric:secret"];
    let lab = Lab::start(Wire::Packet, 1500, &args);
    let upload = |at: usize| {
        format!("curl -sS --limit-rate 1M -m 15 -u eric:secret -T - {}/{at} </dev/zero; true", lab.ftp())
    };
    std::thread::scope(|scope| {
        for line in (0..UPLOADS).map(upload) {
            let client = &lab.client;
            scope.spawn(move || client.must(&line));
        }
        until_written(&lab, &served, UPLOADS);
        lab.client.must("ip link delete veth0");
    });
    assert!(lab.log().contains("the device is gone"), "{}", lab.log());
    for at in 0..UPLOADS {
        let came = std::fs::read(served.file(&at.to_string())).expect("what came");
        assert!(came.len() as u64 >= KEPT && came.iter().all(|byte| *byte == 0), "{}", came.len());
    }
}

#[test]
fn everything_printed_is_json_where_that_is_asked_for() {
    let lab = Lab::start(Wire::Kernel, 1500, &["--log-format", "json", "--stats", "100ms"]);
    lab.client.must(&format!("curl -sSf {}/hello.txt", lab.http()));
    let deadline = Instant::now() + Duration::from_secs(10);
    let json = |line: String| -> serde_json::Value {
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    };
    let stats = json(lab.next_line(deadline).expect("a statistics line"));
    assert_eq!(stats["event"], "stats");
    assert!(stats["cpu_percent"].is_number(), "{stats}");
    lab.signal("TERM");
    let mut rest = std::iter::from_fn(|| lab.next_line(deadline)).map(json);
    let ended = rest.find(|object| object["event"] == "ended").expect("a summary");
    assert_eq!((&ended["connections"], &ended["cut_off"]), (&1.into(), &0.into()));
    for line in lab.log().lines() {
        assert!(json(line.to_owned())["level"].is_string(), "{line}");
    }
    lab.stop_after_signal();
}

/// Whoever started the server with pipes and does not read them: it serves, tells what it had to drop, and ends when told to.
#[test]
fn a_log_that_nobody_reads_stops_nothing() {
    let namespace = Namespace::new();
    let mut server = namespace.command(env!("CARGO_BIN_EXE_linerate"));
    let args = ["serve", "--device", "tap:lrunread0", "--iperf3-port", "0", "--ftp-port", "0"];
    let server = server.args(args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut server = server.expect("it starts");
    namespace.must("until curl -sf -m 1 -o /dev/null http://192.168.1.4/; do sleep 0.1; done");
    // Lines of more than a mebibyte, and what the pipe holds.
    let ab = |count: u32| {
        let report =
            namespace.must(&format!("timeout 60 ab -q -k -n {count} -c 20 http://192.168.1.4/ 2>&1"));
        assert!(report.contains(&format!("Complete requests:      {count}")), "{report}");
        assert!(report.contains("Failed requests:        0"), "{report}");
    };
    ab(30_000);
    // It is read for a while.
    let mut log = server.stderr.take().expect("a pipe");
    let mut text = Vec::new();
    let patience = Instant::now() + Duration::from_secs(20);
    let mut piece = [0; 65_536];
    while !String::from_utf8_lossy(&text).contains("lines of the log were dropped, as nobody read it") {
        assert!(Instant::now() < patience, "{} bytes, and nothing of dropped lines", text.len());
        let count = log.read(&mut piece).expect("more");
        text.extend_from_slice(&piece[..count]);
    }
    let lines = String::from_utf8(text).expect("a log");
    assert!(lines.lines().filter(|line| line.contains("GET / ")).count() > 5_000);
    // And not again.
    ab(30_000);
    namespace.must(&format!("kill -TERM {}", server.id()));
    let end = Instant::now() + Duration::from_secs(15);
    while server.try_wait().expect("its state").is_none() {
        assert!(Instant::now() < end, "it does not end");
        std::thread::sleep(Duration::from_millis(50));
    }
}
