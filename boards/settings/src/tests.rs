//! Tests of what is read and refused.

use super::*;

const LIMITS: Limits = Limits { frames: 4, heap: 200_000, receive_buffer: 0 };

const GOOD: &str = r#"
name = "bench"
[network]
ethernet = "02:00:c0:a8:01:32"
addresses = ["192.168.1.50/24", "fd00::50/64"]
gateways = ["192.168.1.1"]
ipv6 = true
offloads = true
[interrupts]
mode = "last-interrupt"
timer_us = 200
threshold = 4
adaptive = true
reserve = 30
[watchdog]
seconds = 5
[servers]
http = [80]
iperf3 = [5201, 5001]
ftp = [21]
ftp_anonymous = true
ftp_users = [{ name = "user", password = "secret" }]
[memory]
connections = 8
sockets = 65536
send_buffer = 16384
receive_buffer = 8192
receive_buffers = 32
ram_disk = 65536
trace = 16384
capture = 0
[files]
flash = "files"
"#;

#[test]
fn settings_and_files_become_rust() {
    let folder = std::env::temp_dir().join(format!("linerate-settings-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("files/a")).unwrap();
    std::fs::create_dir_all(folder.join("out")).unwrap();
    std::fs::write(folder.join("board.toml"), GOOD).unwrap();
    std::fs::write(folder.join("files/index.html"), "hello").unwrap();
    std::fs::write(folder.join("files/a/b"), "").unwrap();
    generate(&folder, &folder.join("out"), &LIMITS).unwrap();
    let source = std::fs::read_to_string(folder.join("out/settings.rs")).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    for part in [
        "mac: [2, 0, 192, 168, 1, 50],",
        "(core::net::IpAddr::V4(core::net::Ipv4Addr::new(192, 168, 1, 50)), 24)",
        "core::net::Ipv6Addr::from_bits(0xfd000000000000000000000000000050)), 64)",
        "iperf3: &[5201, 5001],",
        "iperf3_by_core: None,",
        "cores: 1,",
        "mode: linerate_firmware::PacingMode::LastInterrupt, timer_ticks: 8, tick_ns: 25000, threshold: 4 }",
        "adaptive: true, reserve: 30 }",
        "watchdog: 5,",
        "trace: 16384,",
        "capture: 0,",
        "(\"user\", \"$argon2id$v=19$m=16,t=3,p=1$",
        "path: \"/a/b\"",
        "path: \"/index.html\"",
    ] {
        assert!(source.contains(part), "{part} is missing in\n{source}");
    }
    assert!(!source.contains("secret"));
}

#[test]
fn what_is_wrong_is_named() {
    for (from, to, message) in [
        ("connections = 8", "connections = 0", "memory.connections"),
        ("sockets = 65536", "sockets = 8192", "memory.sockets: 8192 bytes, 16 KiB at least"),
        ("send_buffer = 16384", "send_buffer = 40000", "memory.send_buffer: 40000 bytes, 2,048 to half"),
        (
            "receive_buffer = 8192",
            "receive_buffer = 1000",
            "memory.receive_buffer: 1000 bytes, 2,048 to half",
        ),
        ("receive_buffers = 32", "receive_buffers = 4", "memory.receive_buffers: 4 given, 8 to 4,096"),
        ("trace = 16384", "trace = 100", "memory.trace: 100 bytes, 0 or 4 KiB to 64 MiB"),
        ("capture = 0", "capture = 100000000", "memory.capture: 100000000 bytes, 0 or 4 KiB to 64 MiB"),
        (
            "ram_disk = 65536",
            "ram_disk = 200000",
            "memory.ram_disk: 200000 bytes, less than 150848 expected, which half of memory.sockets (65536), memory.trace (16384), \
             memory.capture (0) and memory.receive_buffers (32, 0 bytes) leave of this image's heap (HEAP, 200000 bytes)",
        ),
        ("ram_disk = 65536", "ram_disk = 150848", "memory.ram_disk: 150848 bytes"),
        ("sockets = 65536", "sockets = 500000", "memory.sockets: 500000 bytes, of which half"),
        ("http = [80]", "http = [80000]", "80000"),
        ("http = [80]", "http = [80, 5001]", "servers.iperf3: 5001 given, which servers.http has already"),
        ("ftp = [21]", "ftp = [80]", "servers.ftp: 80 given, which servers.http has already"),
        ("ftp = [21]", "ftp = [21, 21]", "servers.ftp: 21 given, which servers.ftp has already"),
        (
            "192.168.1.50/24",
            "192.168.1.255/24",
            "network.addresses: 192.168.1.255/24 is the broadcast address of that subnet, a host's expected",
        ),
        (
            "192.168.1.50/24",
            "192.168.1.0/24",
            "network.addresses: 192.168.1.0/24 is the network's own address",
        ),
        (
            "gateways = [\"192.168.1.1\"]",
            "gateways = [\"192.168.2.1\"]",
            "network.gateways: 192.168.2.1 is in no subnet of network.addresses (192.168.1.50/24, fd00::50/64)",
        ),
        (
            "gateways = [\"192.168.1.1\"]",
            "gateways = [\"fd01::1\"]",
            "network.gateways: fd01::1 is in no subnet",
        ),
        ("name = \"bench\"", "name = \"bench\"\ncores = 5", "cores: 5 given, 1 to 4 expected"),
        ("http = [80]", "http = [80, 0]", "servers.http: port 0 given, 1 to 65535 expected"),
        ("ftp = [21]", "ftp = [0]", "servers.ftp: port 0 given"),
        ("ftp = [21]", "ftp = [21]\niperf3_by_core = 80", "servers.iperf3_by_core: 80"),
        (
            "ftp = [21]",
            "ftp = [21]\niperf3_by_core = 0",
            "servers.iperf3_by_core: 0 given, 1 to 65535 expected",
        ),
        ("timer_us = 200", "timer_us = 200000", "interrupts.timer_us: 200000 given, 0 to 100000 expected"),
        ("threshold = 4", "threshold = 5", "interrupts.threshold: 5 given, 1 to 4 expected"),
        ("threshold = 4", "threshold = 0", "interrupts.threshold: 0 given, 1 to 4 expected"),
        ("last-interrupt", "none", "interrupts.mode: \"none\" with interrupts.threshold 4 given, 1 expected"),
        ("reserve = 30", "reserve = 91", "interrupts.reserve: 91 given, 0 to 90 expected"),
        ("last-interrupt", "mode-1", "unknown variant `mode-1`, expected one of `none`, `last-interrupt`"),
        ("seconds = 5", "seconds = 1", "watchdog.seconds: 1 given, 0 for none, or 2 to 30 expected"),
        ("seconds = 5", "seconds = 31", "watchdog.seconds: 31 given"),
        ("seconds = 5", "seconds = -1", "seconds"),
        ("seconds = 5", "minutes = 1", "unknown field `minutes`"),
        ("ipv6 = true", "ipv6 = true\nipv8 = true", "ipv8"),
        ("ftp = [21]", "", "ftp"),
    ] {
        let error = format!("{:#}", parse(&GOOD.replace(from, to), &LIMITS).unwrap_err());
        assert!(error.contains(message), "{to}: {error}");
    }
}

/// The last of the ports of all cores is one, too.
#[test]
fn there_is_a_port_for_each_core() {
    let with = |port: u16| {
        let text = GOOD.replace("name = \"bench\"", "name = \"bench\"\ncores = 4");
        parse(&text.replace("ftp = [21]", &format!("ftp = [21]\niperf3_by_core = {port}")), &LIMITS)
    };
    assert_eq!(with(65_532).unwrap().servers.iperf3_by_core, Some(65_532));
    for port in [65_533, 65_535] {
        let error = format!("{:#}", with(port).unwrap_err());
        assert!(error.contains("given, 1 to 65532 expected, as there is one more for each core"), "{error}");
    }
    // 5198 to 5201, which is taken.
    assert!(format!("{:#}", with(5_198).unwrap_err()).contains("are to be ports of their own"));
}

/// Those of the Nucleo, for example, whose other memory is full of the driver's own frames.
#[test]
fn receive_buffers_in_the_heap_are_counted_there() {
    let limits = Limits { receive_buffer: 1_536, ..LIMITS };
    // 49,152 bytes of them beside 32,768 and 16,384 leave 101,696.
    assert!(parse(GOOD, &limits).is_ok());
    let error = |from: &str, to: &str| format!("{:#}", parse(&GOOD.replace(from, to), &limits).unwrap_err());
    let text = error("receive_buffers = 32", "receive_buffers = 56");
    assert!(text.contains("memory.ram_disk: 65536 bytes, less than 64832 expected"), "{text}");
    assert!(text.contains("memory.receive_buffers (56, 86016 bytes)"), "{text}");
    let text = error("receive_buffers = 32", "receive_buffers = 100");
    assert!(text.contains("memory.sockets: 65536 bytes, of which half"), "{text}");
    let text = error("receive_buffers = 32", "receive_buffers = 131");
    assert!(text.contains("memory.receive_buffers: 131 given, which are 201216 bytes"), "{text}");
    // Each core has as many.
    let text = error("name = \"bench\"", "name = \"bench\"\ncores = 3");
    assert!(text.contains("memory.receive_buffers (32, 147456 bytes)"), "{text}");
}

#[test]
fn what_is_no_address_is_named() {
    for (text, message) in [
        ("02:00:c0:a8:01", "is not six bytes"),
        ("02:00:c0:a8:01:xx", "is not six bytes"),
        ("01:00:c0:a8:01:32", "of a group"),
    ] {
        assert!(format!("{:#}", ethernet(text).unwrap_err()).contains(message), "{text}");
    }
    for (text, message) in [
        ("192.168.1.50", "is not an address with a prefix length"),
        ("192.168.1.50/x", "is not an address with a prefix length"),
        ("192.168.1.50/33", "a prefix of 32 bits at most"),
    ] {
        assert!(format!("{:#}", cidr(text).unwrap_err()).contains(message), "{text}");
    }
}

#[test]
fn addresses_and_gateways_that_can_work_are_taken() {
    for (from, to) in [
        ("192.168.1.50/24", "192.168.1.254/31"),
        ("192.168.1.50/24", "192.168.1.0/32"),
        ("192.168.1.50/24", "192.168.0.0/8"),
        ("192.168.1.50/24", "192.168.0.255/16"),
        ("192.168.1.1\"]", "192.168.1.1\", \"fe80::1\", \"fd00::1\"]"),
        // By DHCP, which tells the subnet.
        ("\"192.168.1.50/24\", ", ""),
    ] {
        let text = GOOD.replace(from, to);
        let text =
            if to.ends_with("31") || to.ends_with("32") { text.replace("\"192.168.1.1\"", "") } else { text };
        assert!(parse(&text, &LIMITS).is_ok(), "{to}: {:#}", parse(&text, &LIMITS).unwrap_err());
    }
}

#[test]
fn there_is_a_watchdog_unless_it_is_switched_off() {
    let seconds = |text: &str| parse(text, &LIMITS).unwrap().watchdog.seconds;
    assert_eq!(seconds(GOOD), 5);
    assert_eq!(seconds(&GOOD.replace("[watchdog]\nseconds = 5\n", "")), 8);
    assert_eq!(seconds(&GOOD.replace("seconds = 5", "seconds = 0")), 0);
}

#[test]
fn a_folder_that_is_missing_or_hides_something_is_named() {
    let folder = std::env::temp_dir().join(format!("linerate-settings-files-{}", std::process::id()));
    assert!(format!("{:#}", files::collect(&folder).unwrap_err()).contains("files.flash: no folder"));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("stats"), "").unwrap();
    let error = format!("{:#}", files::collect(&folder).unwrap_err());
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(error.contains("has a /stats of its own"), "{error}");
}
