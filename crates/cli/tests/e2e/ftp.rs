//! curl, wget, lftp and Python's ftplib over FTP.

use crate::data::{Folder, SIZES, assert_same, write_random};
use crate::lab::{Lab, Wire};

const USER: [&str; 5] = ["--writable", "--ftp-user", "eric:secret", "--ftp-anonymous", "true"];

/// Downloads with curl (passive) and wget, uploads with curl, and compares hashes.
fn transfers(wire: Wire, mtu: u32, args: &[&str], largest: u64) {
    let served = Folder::with_files(largest);
    let mut all = vec![served.path()];
    all.extend(USER);
    all.extend(args);
    let lab = Lab::start(wire, mtu, &all);
    let got = Folder::new();
    let (ftp, ftp6) = (lab.ftp(), lab.ftp6());
    for (name, _) in SIZES.iter().filter(|(_, len)| *len <= largest) {
        let (source, out) = (served.file(name), got.file(name));
        lab.client.must(&format!("curl -sSf --max-time 120 -o {} {ftp}/{name}", out.display()));
        assert_same(&source, &out);
        lab.client.must(&format!("wget -q -T 60 -t 1 -O {} {ftp6}/{name}", out.display()));
        assert_same(&source, &out);
        let upload =
            format!("curl -sSf --max-time 120 -u eric:secret -T {} {ftp6}/up-{name}", source.display());
        lab.client.must(&upload);
        assert_same(&source, &served.file(&format!("up-{name}")));
    }
    lab.stop();
}

#[test]
fn transfers_over_tap_with_offloads() {
    transfers(Wire::Tap, 1500, &["--offload", "all"], 1 << 30);
}

#[test]
fn transfers_over_tap_without_offloads() {
    transfers(Wire::Tap, 1500, &["--offload", "none"], 1 << 30);
}

#[test]
fn transfers_over_tap_with_jumbo_frames() {
    transfers(Wire::Tap, 9000, &["--offload", "all"], 1 << 20);
    transfers(Wire::Tap, 9000, &["--offload", "none"], 1 << 20);
}

#[test]
fn transfers_over_packet_sockets() {
    transfers(Wire::Packet, 1500, &["--offload", "all"], 1 << 30);
    transfers(Wire::Packet, 9000, &["--offload", "none"], 1 << 20);
}

#[test]
fn transfers_over_af_xdp() {
    transfers(Wire::Xdp(1), 1500, &["--offload", "all"], 1 << 30);
    transfers(Wire::Xdp(2), 9000, &["--offload", "none"], 1 << 20);
}

#[test]
fn transfers_over_kernel_sockets() {
    transfers(Wire::Kernel, 1500, &[], 1 << 30);
}

fn resume_and_active(wire: Wire) {
    let served = Folder::with_files(1 << 20);
    let mut all = vec![served.path()];
    all.extend(USER);
    let lab = Lab::start(wire, 1500, &all);
    let got = Folder::new();
    let (source, out, ftp) = (served.file("mib"), got.file("out"), lab.ftp());
    let (from, to) = (source.display(), out.display());
    lab.client.must(&format!("head -c 300001 {from} > {to}; curl -sSf -C - -o {to} {ftp}/mib"));
    assert_same(&source, &out);
    lab.client.must(&format!("head -c 500000 {from} > {}/part", served.path()));
    lab.client.must(&format!("curl -sSf -u eric:secret -C 500000 -T {from} {ftp}/part"));
    assert_same(&source, &served.file("part"));
    for url in [lab.ftp(), lab.ftp6()] {
        lab.client.must(&format!("curl -sSf -P - -o {to} {url}/mib"));
        assert_same(&source, &out);
        lab.client.must(&format!("curl -sSf -P - -u eric:secret -T {from} {url}/active"));
        assert_same(&source, &served.file("active"));
    }
    lab.client.must(&format!("curl -sSf -u eric:secret -T {from} {ftp}/memory/null"));
    let len = lab.client.must(&format!("curl -sSf {ftp}/memory/10M | wc -c"));
    assert_eq!(len.trim(), "10485760");
    let parallel = format!(
        "cd {} && seq 50 | xargs -P 50 -I N curl -sSf -o p.N {ftp}/mib && cat p.* | sha256sum && \
         for i in $(seq 50); do cat {from}; done | sha256sum",
        got.path()
    );
    let sums = lab.client.must(&parallel);
    let sums: Vec<&str> = sums.lines().collect();
    assert!(sums.len() == 2 && sums[0] == sums[1], "{sums:?}");
    // Anonymous may not write, nobody may with a wrong password, and nothing leaves the root.
    for bad in ["", "-u eric:wrong"] {
        let output = lab.client.sh(&format!("curl -sS {bad} -T {from} {ftp}/refused"));
        assert!(!output.status.success() && !served.file("refused").exists());
    }
    let output = lab.client.sh(&format!("curl -sS --path-as-is {ftp}/../../etc/passwd"));
    assert!(!output.status.success());
    lab.stop();
}

#[test]
fn resume_active_and_fifty_at_once_over_tap() {
    resume_and_active(Wire::Tap);
}

#[test]
fn resume_active_and_fifty_at_once_over_packet_sockets() {
    resume_and_active(Wire::Packet);
}

#[test]
fn resume_active_and_fifty_at_once_over_kernel_sockets() {
    resume_and_active(Wire::Kernel);
}

/// A thousand small files in nested directories, fetched and put back by lftp.
fn mirror(wire: Wire) {
    let served = Folder::new();
    for dir in 0..10 {
        let sub = served.file(&format!("tree/d{dir}/inner"));
        std::fs::create_dir_all(&sub).expect("folders");
        for file in 0..100 {
            let place = if file % 2 == 0 {
                sub.join(format!("f{file}"))
            } else {
                sub.with_file_name(format!("g {file}"))
            };
            write_random(&place, file * 137);
        }
    }
    let mut all = vec![served.path()];
    all.extend(USER);
    let lab = Lab::start(wire, 1500, &all);
    let got = Folder::new();
    let script = format!(
        "set cmd:fail-exit yes; set net:max-retries 2; set net:timeout 20; set ftp:ssl-allow no; \
         open -u eric,secret -p {} {}; mirror -P 4 tree {}/tree; mirror -R -P 4 {}/tree back; bye",
        lab.ftp_port(),
        lab.host4(),
        got.path(),
        got.path()
    );
    lab.client.must(&format!("lftp -c '{script}'"));
    lab.client.must(&format!("diff -r {}/tree {}/tree", served.path(), got.path()));
    lab.client.must(&format!("diff -r {0}/tree {0}/back", served.path()));
    let count = lab.client.must(&format!("find {}/back -type f | wc -l", served.path()));
    assert_eq!(count.trim(), "1000");
    lab.stop();
}

#[test]
fn lftp_mirrors_a_thousand_files_both_ways_over_tap() {
    mirror(Wire::Tap);
}

#[test]
fn lftp_mirrors_a_thousand_files_both_ways_over_packet_sockets() {
    mirror(Wire::Packet);
}

#[test]
fn lftp_mirrors_a_thousand_files_both_ways_over_kernel_sockets() {
    mirror(Wire::Kernel);
}

/// curl is told the address and a port of the range, and takes only the port of what it is told.
#[test]
fn passive_connections_use_the_ports_and_the_address_that_are_set() {
    for wire in [Wire::Tap, Wire::Kernel] {
        let served = Folder::with_files(4096);
        let ports = ["--ftp-passive-ports", "40000-40001", "--ftp-passive-address", "203.0.113.5"];
        let mut all = vec![served.path()];
        all.extend(ports);
        let lab = Lab::start(wire, 1500, &all);
        let url = format!("{}/{}", lab.ftp(), SIZES[0].0);
        // 40000 is 156 * 256 + 64.
        let pasv =
            lab.client.must(&format!("curl -sv --disable-epsv --ftp-skip-pasv-ip -o /dev/null {url} 2>&1"));
        assert!(pasv.contains("(203,0,113,5,156,64)") || pasv.contains("(203,0,113,5,156,65)"), "{pasv}");
        let epsv = lab.client.must(&format!("curl -sv -o /dev/null {url} 2>&1"));
        assert!(epsv.contains("(|||40000|)") || epsv.contains("(|||40001|)"), "{epsv}");
        lab.stop();
    }
}

#[test]
fn python_ftplib_active_and_passive() {
    for wire in [Wire::Tap, Wire::Packet, Wire::Kernel] {
        let served = Folder::with_files(1 << 20);
        let mut all = vec![served.path()];
        all.extend(USER);
        let lab = Lab::start(wire, 1500, &all);
        let script = served.file("client.py");
        std::fs::write(&script, include_str!("ftplib_client.py")).expect("a file");
        for host in [lab.host4(), lab.host6()] {
            lab.client.must(&format!("python3 {} {host} {}", script.display(), lab.ftp_port()));
        }
        lab.stop();
    }
}

/// Does something on one of the cores that this thread may use; so do the programs that it starts.
fn on_one_core<T>(act: impl FnOnce() -> T) -> T {
    let all = rustix::thread::sched_getaffinity(None).expect("the cores");
    let mut one = rustix::thread::CpuSet::new();
    one.set((0..).find(|&core| all.is_set(core)).expect("a core"));
    rustix::thread::sched_setaffinity(None, &one).expect("one core");
    let result = act();
    rustix::thread::sched_setaffinity(None, &all).expect("all cores");
    result
}

/// A full disk, and uploads that replace a file while others read it, seen by Python's ftplib and http.client.
#[test]
fn uploads_are_whole_or_refused_with_the_reason() {
    for (wire, one_core) in
        [(Wire::Tap, false), (Wire::Tap, true), (Wire::Kernel, false), (Wire::Kernel, true)]
    {
        let served = Folder::new();
        std::fs::create_dir(served.file("small")).expect("a folder");
        let mut all = vec![served.path()];
        all.extend(USER);
        // With one core the loop writes to memory itself, with more its workers do.
        let start = || Lab::start(wire, 1500, &all);
        let lab = if one_core { on_one_core(start) } else { start() };
        // The server has a mount namespace of its own, which ends with it.
        let small = served.file("small");
        let mount = format!("nsenter -m -t {} mount -t tmpfs -o size=1m none {}", lab.pid(), small.display());
        lab.client.must(&mount);
        let script = served.file("client.py");
        std::fs::write(&script, include_str!("ftp_uploads.py")).expect("a file");
        let (http, ftp) = (lab.http(), lab.ftp_port());
        let stored = lab.client.must(&format!("python3 {} {} {ftp} {http}", script.display(), lab.host4()));
        let line = format!("STOR /small/up received {} bytes", stored.trim());
        assert!(lab.log().contains(&line), "{line} is not in\n{}", lab.log());
        lab.stop();
    }
}

/// Links to directories are shown as links: who copies a tree comes to an end, and who removes one removes nothing else.
#[test]
fn trees_with_links_are_copied_and_removed_with_lftp() {
    let served = Folder::new();
    let made = format!(
        "cd {} && mkdir -p precious/sub work && echo 1 >precious/f1 && echo 2 >precious/sub/f2 && \
         ln -s ../precious work/link && ln -s . work/self && ln -s $PWD/work work/absolute && echo 3 >work/f3 && \
         mkdir -p work/a work/b && echo 4 >work/a/f4 && ln -s ../a work/b/dir && ln -s ../a/f4 work/b/f4 && \
         chmod -R a+rwX .",
        served.path()
    );
    for wire in [Wire::Tap, Wire::Kernel] {
        let mut all = vec![served.path()];
        all.extend(USER);
        let lab = Lab::start(wire, 1500, &all);
        lab.client.must(&made);
        let lftp = |commands: &str| {
            let login = format!("-u eric,secret -p {} {}", lab.ftp_port(), lab.host4());
            lab.client.must(&format!("timeout 60 lftp {login} -e 'set cmd:fail-exit yes; {commands}; bye'"))
        };
        for facts in ["yes", "no"] {
            let got = Folder::new();
            lftp(&format!("set ftp:use-mlsd {facts}; mirror / {}", got.path()));
            let found = lab.client.must(&format!("cd {} && find . -type f | sort", got.path()));
            let all = "./precious/f1\n./precious/sub/f2\n./work/a/f4\n./work/b/f4\n./work/f3\n";
            assert_eq!(found, all, "{facts}");
            // `a` is removed first: what is in `b` leads nowhere then, and is not shown.
            lftp(&format!("set ftp:use-mlsd {facts}; rm -r work"));
            let left = lab.client.must(&format!("cd {} && find . -type f -o -type l | sort", served.path()));
            assert_eq!(left, "./precious/f1\n./precious/sub/f2\n", "{facts}");
            lab.client.must(&made);
        }
        lab.stop();
        for name in ["work", "precious"] {
            std::fs::remove_dir_all(served.file(name)).expect("it is there");
        }
    }
}
