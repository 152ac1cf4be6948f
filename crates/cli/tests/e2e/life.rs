//! Starting, reloading, stopping, and arguments that are wrong.

use crate::data::Folder;
use crate::lab::{Lab, Namespace, Wire, text};
use std::process::Command;
use std::time::{Duration, Instant};

#[test]
fn wrong_arguments_end_with_2_and_name_the_flag() {
    for (args, parts) in [
        (&["serve", "--device", "wire"][..], &["--device", "wire", "kernel"][..]),
        (&["serve", "--mtu", "12"], &["--mtu", "12", "1280"]),
        (&["serve", "/nonexistent"], &["/nonexistent"]),
        (&["serve", "--device", "packet:nosuch0"], &["nosuch0"]),
        (&["serve", "--device", "xdp:nosuch0"], &["nosuch0"]),
        (&["serve", "--device", "xdp:lo"], &["lo", "Ethernet"]),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_linerate")).args(args).output().expect("it starts");
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", text(&output));
        for part in parts {
            assert!(text(&output).contains(part), "{args:?}: {}", text(&output));
        }
    }
}

#[test]
fn a_host_without_ipv6_is_served_by_ipv4() {
    let client = Namespace::new();
    client.must("sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1");
    let lab = Lab::start_beside(client, Wire::Tap, 1500, &[]);
    lab.client.must(&format!("curl -sSf {}/ | grep -q linerate", lab.http()));
    assert!(lab.log().contains("IPv6 is switched off"), "{}", lab.log());
    lab.stop();
}

#[test]
fn a_link_that_was_down_serves_again_at_all_addresses() {
    for (wire, interface) in [(Wire::Tap, "lrtap0"), (Wire::Packet, "veth1"), (Wire::Xdp(1), "veth1")] {
        check_link(wire, interface);
    }
}

fn check_link(wire: Wire, interface: &str) {
    let lab = Lab::start(wire, 1500, &[]);
    for state in ["down", "up"] {
        lab.on_server(&format!("ip link set {interface} {state}"));
        // Nothing else wakes the server.
        let deadline = Instant::now() + Duration::from_secs(10);
        while !lab.log().contains(&format!("the link is {state}")) {
            assert!(Instant::now() < deadline, "{wire:?}, {state}: {}", lab.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    for url in [lab.http(), lab.http6()] {
        let tries = "--retry 20 --retry-connrefused --retry-delay 1 --connect-timeout 2";
        lab.client.must(&format!("curl -sSf {tries} {url}/ | grep -q linerate"));
    }
    lab.stop();
}

#[test]
fn a_signal_during_a_transfer_drains() {
    for wire in [Wire::Tap, Wire::Kernel] {
        let lab = Lab::start(wire, 1500, &[]);
        let line = format!("curl -sSf --limit-rate 20M {}/memory/40M | wc -c", lab.http());
        std::thread::scope(|scope| {
            let lab = &lab;
            let transfer = scope.spawn(move || lab.client.must(&line));
            std::thread::sleep(Duration::from_millis(500));
            lab.signal("INT");
            assert_eq!(transfer.join().expect("curl ends").trim(), "41943040");
        });
        lab.stop_after_signal();
    }
}

#[test]
fn reloading_under_load_fails_no_request() {
    for wire in [Wire::Tap, Wire::Kernel] {
        let served = Folder::with_files(1 << 20);
        let config = served.file("linerate.toml");
        std::fs::write(&config, "writable = false\n").expect("a file");
        let lab = Lab::start(wire, 1500, &[served.path(), "--config", config.to_str().expect("UTF-8")]);
        let line = format!("wrk -t 1 -c 20 -d 6s {}/one", lab.http());
        std::thread::scope(|scope| {
            let lab = &lab;
            let load = scope.spawn(move || lab.client.must(&line));
            let end = Instant::now() + Duration::from_secs(5);
            let mut writable = false;
            while Instant::now() < end {
                std::thread::sleep(Duration::from_millis(150));
                writable = !writable;
                std::fs::write(&config, format!("writable = {writable}\nftp-user = [\"eric:secret\"]\n"))
                    .expect("a file");
                lab.signal("HUP");
            }
            let report = load.join().expect("wrk ends");
            assert!(report.contains("requests in"), "{report}");
            assert!(!report.contains("Socket errors") && !report.contains("Non-2xx"), "{wire:?}: {report}");
        });
        assert!(lab.log().contains("reloaded"), "{}", lab.log());
        // A mistake in the file is reported and changes nothing.
        std::fs::write(&config, "writable = 7\n").expect("a file");
        lab.signal("HUP");
        lab.client.must(&format!("sleep 0.3; curl -sSf {}/one", lab.http()));
        assert!(lab.log().contains("line 1"), "{}", lab.log());
        lab.stop();
    }
}

#[test]
fn without_the_right_to_make_a_device_the_kernel_serves() {
    // An ordinary user in a namespace of his own.
    let lab = Lab::start(Wire::Kernel, 1500, &[]);
    let line = format!(
        "su nobody -s /bin/sh -c 'exec timeout -s TERM 3 {} serve --http-port 9090 --ftp-port 9091 --iperf3-port 9092' 2>&1 & \
         sleep 1.5; curl -sSf http://127.0.0.1:9090/hello.txt; wait $!",
        env!("CARGO_BIN_EXE_linerate")
    );
    let report = text(&lab.client.sh(&line));
    assert!(report.contains("Hello from linerate."), "{report}");
    assert!(report.contains("TAP"), "it says why: {report}");
    lab.stop();
}

#[test]
fn addresses_come_from_dhcp_and_router_advertisements() {
    let lab = Lab::start(Wire::Packet, 1500, &["--address", "dhcp", "--address", "slaac"]);
    let folder = Folder::new();
    let line = format!(
        "exec dnsmasq --keep-in-foreground --conf-file=/dev/null --port=0 --interface=veth0 --bind-interfaces \
         --user=root --pid-file= --dhcp-leasefile={}/leases --dhcp-range=192.168.1.50,192.168.1.50,255.255.255.0,1h \
         --enable-ra --dhcp-range=fd00:6c72::,ra-only,64",
        folder.path()
    );
    let mut dnsmasq = lab.client.command("sh").args(["-c", &line]).spawn().expect("dnsmasq starts");
    let deadline = Instant::now() + Duration::from_secs(40);
    let slaac = |log: &str| {
        let line = log.lines().find(|line| line.contains("fd00:6c72:") && line.contains("usable"))?;
        line.split_whitespace().find(|word| word.starts_with("fd00:")).map(str::to_owned)
    };
    let v6 = loop {
        let log = lab.log();
        match slaac(&log).filter(|_| log.contains("192.168.1.50")) {
            Some(v6) => break v6,
            None => assert!(Instant::now() < deadline, "no addresses:\n{log}"),
        }
        std::thread::sleep(Duration::from_millis(200));
    };
    lab.client.must("curl -sSf --max-time 5 http://192.168.1.50/hello.txt");
    // The URLs are printed when the address is there.
    let mut lines = std::iter::from_fn(|| lab.next_line(deadline));
    assert!(lines.any(|line| line.contains("curl http://192.168.1.50/")), "no URL with the address");
    lab.client.must(&format!("curl -sSf --max-time 5 http://[{v6}]/hello.txt"));
    let is_lent = || {
        std::fs::read_to_string(format!("{}/leases", folder.path()))
            .is_ok_and(|it| it.contains("192.168.1.50"))
    };
    assert!(is_lent(), "dnsmasq writes down what it lends");
    lab.stop();
    let deadline = Instant::now() + Duration::from_secs(5);
    while is_lent() {
        assert!(Instant::now() < deadline, "the address was not given back");
        std::thread::sleep(Duration::from_millis(50));
    }
    dnsmasq.kill().and_then(|()| dnsmasq.wait()).expect("dnsmasq ends");
}
