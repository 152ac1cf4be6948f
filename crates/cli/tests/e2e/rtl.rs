//! The servers on the network interface's RTL in simulation, with real clients at the other end of its cable.
//!
//! Needs a build with Verilator (`cargo xtask test` makes one); says so and skips otherwise.

use crate::data::{Folder, assert_same, write_random};
use crate::lab::{Lab, Wire};

/// Bytes of a file: about a second of simulation.
const LEN: u64 = 1 << 20;

/// What tshark says of the frames that our side has sent: all of TCP and IPv4, and those whose checksum is wrong.
fn sent(lab: &Lab, capture: &str) -> (usize, usize) {
    let count = |filter: &str| {
        let options = "-o tcp.check_checksum:TRUE -o ip.check_checksum:TRUE";
        let lines =
            lab.client.must(&format!("tshark -r {capture} {options} -Y '{filter}' 2>/dev/null | wc -l"));
        lines.trim().parse::<usize>().expect("a number")
    };
    let ours = "ip.src==192.168.1.4 && tcp";
    (count(ours), count(&format!("{ours} && (tcp.checksum.status!=1 || ip.checksum.status!=1)")))
}

fn is_built_in() -> bool {
    #[cfg(feature = "rtl")]
    return linerate_rtl_sim::is_available();
    #[cfg(not(feature = "rtl"))]
    return false;
}

fn check(offloads: &[&str]) {
    let served = Folder::new();
    write_random(&served.file("data"), LEN);
    let mut args = vec![served.path(), "--ftp-user", "anna:x", "--writable"];
    args.extend_from_slice(offloads);
    let lab = Lab::start(Wire::Rtl, 1500, &args);
    let folder = Folder::new();
    let capture = folder.file("cable.pcap");
    let capture = capture.display();
    lab.client.must(&format!(
        "timeout 100 tcpdump -i lrtap0 -U -w {capture} 'tcp port 80' >/dev/null 2>&1 & echo $! > {0}/pid; sleep 1",
        folder.path()
    ));
    let (http, ftp) = (lab.http(), lab.ftp());
    let got = folder.file("got");
    lab.client.must(&format!("curl -sSf -m 60 -o {} {http}/data", got.display()));
    assert_same(&served.file("data"), &got);
    lab.client.must(&format!("curl -sSf -m 60 -T {} {ftp}/up --user anna:x", got.display()));
    assert_same(&served.file("up"), &got);
    for reverse in ["", "-R"] {
        let report = lab.client.must(&format!("timeout 60 iperf3 -c {} -n {LEN} {reverse}", lab.host4()));
        assert!(report.contains("iperf Done."), "{report}");
    }
    lab.client.must(&format!("sleep 1; kill $(cat {}/pid); sleep 1", folder.path()));
    let (all, wrong) = sent(&lab, &capture.to_string());
    assert!(all > 700, "{all} frames");
    assert_eq!(wrong, 0, "of {all} frames");
    lab.stop();
}

#[test]
fn the_servers_work_over_the_simulated_interface_with_every_offload_and_with_none() {
    if !is_built_in() {
        eprintln!("skipped: built without the simulated interface; `cargo xtask test` has it");
        return;
    }
    check(&[]);
    check(&["--offload", "none"]);
}
