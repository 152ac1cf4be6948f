//! curl and wget over HTTP.

use crate::data::{Folder, SIZES, assert_same};
use crate::lab::{Lab, Wire};

/// Downloads every file with curl (IPv4) and wget (IPv6) and compares hashes.
fn downloads(wire: Wire, mtu: u32, args: &[&str], largest: u64) {
    let served = Folder::with_files(largest);
    let mut all = vec![served.path()];
    all.extend(args);
    let lab = Lab::start(wire, mtu, &all);
    let got = Folder::new();
    for (name, _) in SIZES.iter().filter(|(_, len)| *len <= largest) {
        let out = got.file(name);
        let (http, http6, path) = (lab.http(), lab.http6(), out.display());
        lab.client.must(&format!("curl -sSf --max-time 120 -o {path} {http}/{name}"));
        assert_same(&served.file(name), &out);
        lab.client.must(&format!("wget -q -T 60 -t 1 -O {path} {http6}/{name}"));
        assert_same(&served.file(name), &out);
    }
    lab.stop();
}

#[test]
fn downloads_over_tap_with_offloads() {
    downloads(Wire::Tap, 1500, &["--offload", "all"], 1 << 30);
}

#[test]
fn downloads_over_tap_without_offloads() {
    downloads(Wire::Tap, 1500, &["--offload", "none"], 1 << 30);
}

#[test]
fn downloads_over_tap_with_jumbo_frames() {
    downloads(Wire::Tap, 9000, &["--offload", "all"], 1 << 30);
    downloads(Wire::Tap, 9000, &["--offload", "none"], 1 << 20);
}

#[test]
fn downloads_over_packet_sockets() {
    downloads(Wire::Packet, 1500, &["--offload", "all"], 1 << 30);
    downloads(Wire::Packet, 1500, &["--offload", "none"], 1 << 20);
    downloads(Wire::Packet, 9000, &["--offload", "all"], 1 << 20);
}

#[test]
fn downloads_over_af_xdp() {
    downloads(Wire::Xdp(1), 1500, &["--offload", "all"], 1 << 30);
    downloads(Wire::Xdp(1), 1500, &["--offload", "none"], 1 << 20);
    downloads(Wire::Xdp(1), 9000, &["--offload", "all"], 1 << 20);
}

#[test]
fn downloads_over_kernel_sockets() {
    downloads(Wire::Kernel, 1500, &[], 1 << 30);
}

/// Resume, ranges and fifty clients at once.
fn partial_and_parallel(wire: Wire) {
    let served = Folder::with_files(1 << 20);
    let lab = Lab::start(wire, 1500, &[served.path()]);
    let (got, http) = (Folder::new(), lab.http());
    let (source, out) = (served.file("mib"), got.file("out"));
    let (from, to) = (source.display(), out.display());

    lab.client.must(&format!("head -c 300000 {from} > {to}; curl -sSf -C - -o {to} {http}/mib"));
    assert_same(&source, &out);
    lab.client.must(&format!("cd {} && head -c 700001 {from} > mib && wget -q -c {http}/mib", got.path()));
    assert_same(&source, &got.file("mib"));

    let ranges = "curl -sSf -r 0-99 U; curl -sSf -r 100-524287 U; curl -sSf -r 524288- U";
    lab.client.must(&format!("( {} ) > {to}", ranges.replace('U', &format!("{http}/mib"))));
    assert_same(&source, &out);
    lab.client.must(&format!(
        "tail -c 77 {from} > {to}.want; curl -sSf -r -77 {http}/mib > {to}.got; cmp {to}.want {to}.got"
    ));
    let status = lab.client.must(&format!("curl -s -o /dev/null -w '%{{http_code}}' -r 2000000- {http}/mib"));
    assert_eq!(status, "416");
    let multi = lab.client.must(&format!("curl -sSf -i -r 0-1,10-11 {http}/mib | tr -d '\\0' | strings"));
    assert!(multi.contains("206") && multi.contains("multipart/byteranges"), "{multi}");

    let parallel = format!(
        "cd {} && seq 50 | xargs -P 50 -I N curl -sSf -o p.N {http}/mib && cat p.* | sha256sum && \
         for i in $(seq 50); do cat {from}; done | sha256sum",
        got.path()
    );
    let sums = lab.client.must(&parallel);
    let sums: Vec<&str> = sums.lines().collect();
    assert!(sums.len() == 2 && sums[0] == sums[1], "{sums:?}");
    lab.stop();
}

#[test]
fn resume_ranges_and_fifty_at_once_over_tap() {
    partial_and_parallel(Wire::Tap);
}

#[test]
fn resume_ranges_and_fifty_at_once_over_packet_sockets() {
    partial_and_parallel(Wire::Packet);
}

#[test]
fn resume_ranges_and_fifty_at_once_over_kernel_sockets() {
    partial_and_parallel(Wire::Kernel);
}

#[test]
fn a_demo_is_served_when_no_directory_is_named() {
    for wire in [Wire::Tap, Wire::Kernel] {
        let lab = Lab::start(wire, 1500, &[]);
        let http = lab.http();
        let page = lab.client.must(&format!("curl -sSf {http}/"));
        assert!(page.contains("It serves."), "{page}");
        let listing = lab.client.must(&format!("curl -sSf -L {http}/docs"));
        assert!(listing.contains("measuring.txt") && listing.contains("protocols.txt"), "{listing}");
        let len = lab.client.must(&format!("curl -sSf {http}/memory/10M | wc -c"));
        assert_eq!(len.trim(), "10485760");
        let head = lab.client.must(&format!("curl -sSf -I {http}/memory/1T"));
        assert!(head.contains("1099511627776"), "{head}");
        lab.stop();
    }
}

#[test]
fn paths_stay_under_the_root() {
    let served = Folder::with_files(1);
    std::os::unix::fs::symlink("/etc/passwd", served.file("out")).expect("a link");
    std::os::unix::fs::symlink("one", served.file("in")).expect("a link");
    let lab = Lab::start(Wire::Tap, 1500, &[served.path()]);
    let http = lab.http();
    for path in ["/../etc/passwd", "/%2e%2e/etc/passwd", "/one/../../etc/passwd", "/out", "/..%2fetc/passwd"]
    {
        let code =
            lab.client.must(&format!("curl -s --path-as-is -o /dev/null -w '%{{http_code}}' '{http}{path}'"));
        assert!(["400", "403", "404"].contains(&code.as_str()), "{path}: {code}");
    }
    assert_eq!(lab.client.must(&format!("curl -sSf {http}/in | wc -c")).trim(), "1");
    lab.stop();
}
