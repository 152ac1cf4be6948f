//! The workloads of the source documents, and what must always hold.

use super::*;
use proptest::prelude::*;

const K2H: &str = include_str!("../../../../../boards/socs/k2h.toml");
const STM32H743: &str = include_str!("../../../../../boards/socs/stm32h743.toml");
const XUPV5: &str = include_str!("../../../../../boards/socs/xupv5.toml");
const ZCU102: &str = include_str!("../../../../../boards/socs/zcu102.toml");

fn links(text: &str) -> Links {
    crate::soc::load(text).expect("the chip loads").links
}

fn ask(links: &Links, server: &str) -> Prediction {
    links.tcp.get(server).expect("the workload").predict(links).expect("an answer")
}

/// Expects the payload rate of a workload between two bounds in MB/s, and what limits it.
fn check(text: &str, server: &str, between: (f64, f64), bottleneck: &str) {
    let links = links(text);
    assert_eq!(links.faults(), []);
    let prediction = ask(&links, server);
    let rate = prediction.predicted;
    assert!(between.0 <= rate && rate <= between.1, "{server}: {rate} not in {between:?}");
    assert!(prediction.low <= rate && rate <= prediction.high && prediction.efficiency() <= 1.0);
    assert_eq!(prediction.bottlenecks[0].name, bottleneck, "{server}: {:?}", prediction.bottlenecks);
}

#[test]
fn the_ftp_server_climbs_its_ladder() {
    let window = "window over round-trip time";
    check(K2H, "ftp_send_1_default", (10.0, 12.5), window);
    check(K2H, "ftp_send_2_application", (21.0, 25.5), window);
    check(K2H, "ftp_send_3_buffers", (50.0, 60.0), window);
    check(K2H, "ftp_send_4_driver", (60.0, 73.0), window);
    check(K2H, "ftp_receive_1_default", (21.0, 26.0), window);
    check(K2H, "ftp_receive_3_buffers", (55.0, 62.0), window);
    check(K2H, "ftp_receive_4_driver", (62.0, 70.0), window);
}

#[test]
fn the_ladder_has_the_measured_load() {
    let links = links(K2H);
    let load =
        |server: &str, megabytes: f64| links.tcp[server].load(BitsPerSecond::new(megabytes * 8e6)).value();
    assert!((load("ftp_send_3_buffers", 61.0) - 0.55).abs() < 0.03, "{}", load("ftp_send_3_buffers", 61.0));
    assert!(
        (load("ftp_receive_3_buffers", 59.0) - 0.68).abs() < 0.03,
        "{}",
        load("ftp_receive_3_buffers", 59.0)
    );
}

#[test]
fn the_microcontroller_receives_80_and_sends_2_megabits() {
    // 80 Mb/s were measured; nothing in the file comes from that, so the interval has to hold it.
    let receive = ask(&links(STM32H743), "iperf3_receive");
    assert!(receive.low <= 10.0 && 10.0 <= receive.high && receive.predicted < 12.5, "{receive:?}");
    check(STM32H743, "iperf3_receive_word_copies", (90.0 / 8.0, 95.0 / 8.0), "Ethernet line");
    check(STM32H743, "iperf3_send", (1.75 / 8.0, 2.32 / 8.0), "retransmission timeouts");
}

#[test]
fn without_losses_the_microcontroller_would_send_faster() {
    let mut links = links(STM32H743);
    let lossy = ask(&links, "iperf3_send").predicted;
    links.tcp.get_mut("iperf3_send").expect("the workload").loss = None;
    assert!(ask(&links, "iperf3_send").predicted > 20.0 * lossy);
}

#[test]
fn the_soft_core_serves_300_requests_and_61_megabits() {
    check(XUPV5, "nginx_large_file", (59.0 / 8.0, 63.0 / 8.0), "cores");
    let links = links(XUPV5);
    for (server, measured) in [("nginx_not_found", 300.0), ("nginx_small", 270.0), ("nginx_10k", 190.0)] {
        let prediction = links.tcp[server].predict_requests(&links).expect("an answer");
        assert!((prediction.predicted / measured - 1.0).abs() < 0.06, "{server}: {prediction:?}");
        assert!(prediction.low <= measured && measured <= prediction.high, "{server}");
        assert_eq!(
            (prediction.unit, prediction.bottlenecks[0].name.as_str()),
            (Unit::RequestsPerSecond, "cores")
        );
    }
    let none = links.tcp["nginx_large_file"].predict_requests(&links).expect_err("no requests");
    assert!(matches!(none, LinkError::Unknown { name, .. } if name == "requests"));
}

/// What a server of requests does not use is refused, and so are queues that nobody works on.
#[test]
fn what_a_server_does_not_use_is_refused() {
    let soc = crate::soc::load(XUPV5).expect("the chip loads");
    let set = |key: &str, value: &str| soc.with(&[(format!("links.tcp.{key}"), value.to_owned())]);
    for (key, value, said) in [
        ("nginx_small.window", "65535 B", "window: expected none beside requests"),
        ("nginx_small.round_trip", "400 us", "round_trip: expected none beside requests"),
        ("nginx_small.peer_per_segment", "5 us", "peer_per_segment: expected none beside requests"),
        ("nginx_small.offered", "100 Mbit/s", "offered: expected none beside requests"),
        ("nginx_small.memory", "{ rate = \"1 GB/s\", passes = 2 }", "memory: expected none beside requests"),
        ("nginx_small.loss", "{ share = \"1 %\", timeout = \"1 s\" }", "loss: expected none beside requests"),
        ("nginx_small.window_unit", "1500 B", "window_unit: expected none beside requests"),
        ("nginx_large_file.queues", "2", "queues: expected at most as many as cores"),
        ("nginx_large_file.round_trip", "0 us", "round_trip: expected more than 0"),
    ] {
        let error = set(key, value).expect_err(key).to_string();
        assert!(error.contains(said), "{error}");
    }
    // Cores share requests: two of each part do twice as much, a second core for the application alone less.
    let requests = |changes: &[(&str, &str)]| {
        let changes: Vec<(String, String)> = changes
            .iter()
            .map(|(key, value)| (format!("links.tcp.nginx_10k.{key}"), (*value).to_owned()))
            .collect();
        let links = soc.with(&changes).expect("a chip").links;
        links.tcp["nginx_10k"].predict_requests(&links).expect("an answer").predicted
    };
    let one = requests(&[("cores", "1")]);
    let two = requests(&[("cores", "2"), ("application_cores", "2"), ("queues", "2")]);
    let half = requests(&[("cores", "2"), ("application_cores", "1"), ("queues", "1")]);
    assert!((two / one - 2.0).abs() < 1e-9 && one < half && half < two, "{one} {half} {two}");
}

/// Each frame of a response has headers and a gap, and the packet DMA takes its time for each.
#[test]
fn the_line_carries_the_frames_of_a_response() {
    let mut links = links(XUPV5);
    let fast = |links: &Links, response: f64, port: &str| {
        let mut server = links.tcp["nginx_small"].clone();
        (server.core_rate, server.port) = (Some(Hertz::new(1e12)), port.to_owned());
        server.per_segment = CoreCycles::new(0.0);
        let requests = server.requests.as_mut().expect("requests");
        requests.response = Bytes::new(response);
        let nothing = CoreCycles::new(0.0);
        (requests.per_request, requests.per_file, requests.per_connection) = (nothing, nothing, nothing);
        server.predict_requests(links).expect("an answer")
    };
    for (response, bytes) in [(64.0, 142.0), (1460.0, 1538.0), (10_240.0, 7.0 * 1538.0 + 98.0)] {
        let found = fast(&links, response, "1gbe");
        let expected = 1e9 / 8.0 / bytes;
        assert!((found.predicted / expected - 1.0).abs() < 1e-9, "{response}: {found:?}");
        assert!(
            found.theoretical == found.predicted && found.bottlenecks[0].name == "Ethernet line",
            "{found:?}"
        );
    }
    links.ethernet.extend(self::links(K2H).ethernet);
    let found = fast(&links, 64.0, "10gbe");
    assert_eq!(found.bottlenecks[0].name, "descriptors and bursts of the packet DMA", "{found:?}");
    assert!(found.predicted < found.theoretical, "{found:?}");
}

#[test]
fn the_packet_dma_is_no_line() {
    let links = links(K2H);
    let mut server = links.tcp["ftp_send_4_driver"].clone();
    (server.port, server.core_rate) = ("10gbe".to_owned(), Some(Hertz::new(1e12)));
    (server.segment, server.window, server.window_unit) = (Bytes::new(64.0), Bytes::new(1e9), None);
    server.serial_share = Ratio::ZERO;
    let found = server.predict(&links).expect("an answer");
    let limit = |name: &str| found.bottlenecks.iter().find(|limit| limit.name == name).expect(name);
    assert_eq!(found.bottlenecks[0].name, "descriptors and bursts of the packet DMA", "{found:?}");
    // 142 B on a line of 10 Gb/s, and what descriptors and bursts take of it.
    assert!((limit("Ethernet line").rate / (64.0 / 113.6 * 1e3) - 1.0).abs() < 1e-9, "{found:?}");
    assert!(limit("Ethernet line").share < 0.5 && found.theoretical > 2.0 * found.predicted, "{found:?}");
}

#[test]
fn checksum_offload_saves_cores_and_queues_add_throughput() {
    check(ZCU102, "tcp_receive", (200.0, 250.0), "cores");
    check(ZCU102, "tcp_receive_offload", (250.0, 250.0), "offered load");
    check(ZCU102, "tcp_receive_offload_4_queues", (500.0, 500.0), "offered load");
    let links = links(ZCU102);
    let software = &links.tcp["tcp_receive"];
    // The document: software checksums take 3 to 5 % of all cores.
    let rate = BitsPerSecond::new(ask(&links, "tcp_receive").predicted * 8e6);
    let saved = software.load(rate).value() - links.tcp["tcp_receive_offload"].load(rate).value();
    assert!((0.03..=0.05).contains(&saved), "{saved}");
    assert!((saved / software.load(rate).value() - software.checksum_share().value()).abs() < 1e-9);
    // Without a limit to what is offered, one core of interrupts limits one queue, and four queues share the work.
    let free = |server: &str| {
        let mut server = links.tcp[server].clone();
        server.offered = None;
        server.predict(&links).expect("an answer").predicted
    };
    assert!(free("tcp_receive_offload_4_queues") > 1.8 * free("tcp_receive_offload"));
    assert!(free("tcp_receive_offload") > free("tcp_receive"));
}

#[test]
fn costs_have_units() {
    assert_eq!("2.5 cycles/B".parse(), Ok(CyclesPerByte::new(2.5)));
    assert_eq!("1200 cycles".parse(), Ok(CoreCycles::new(1200.0)));
    for text in ["", "5", "cycles", "5 cycles/B", "5 ns", "-1 cycles", "1e300 cycles", "nan cycles"] {
        assert!(text.parse::<CoreCycles>().is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn a_faster_server_is_never_slower(
        segment in 1.0f64..=1460.0, window in 1.0f64..=64.0, core in 1e6f64..=3e9, more in 1.0f64..=8.0,
        queues in 1u8..=8, cores in 1u8..=8, lossy in 0.0f64..=1.0,
    ) {
        let links = links(ZCU102);
        let mut server = links.tcp["tcp_receive"].clone();
        server.offered = None;
        server.segment = Bytes::new(segment);
        server.window = Bytes::new(segment * window);
        server.core_rate = Some(Hertz::new(core));
        (server.queues, server.cores, server.application_cores) = (queues, cores, cores);
        server.loss = Some(Loss { share: Ratio::new(lossy), timeout: Nanoseconds::new(5e7) });
        let rate = |server: &TcpServer| {
            let prediction = server.predict(&links).expect("an answer");
            assert!(prediction.predicted >= 0.0 && prediction.efficiency() <= 1.0);
            prediction.predicted * (1.0 + 1e-12)
        };
        let base = server.predict(&links).expect("an answer").predicted;
        let with = |change: &dyn Fn(&mut TcpServer)| {
            let mut other = server.clone();
            change(&mut other);
            rate(&other)
        };
        prop_assert!(with(&|server| server.core_rate = Some(Hertz::new(core * more))) >= base);
        prop_assert!(with(&|server| server.window = server.window * more) >= base);
        prop_assert!(with(&|server| server.queues = queues.saturating_mul(2)) >= base);
        prop_assert!(with(&|server| server.cores = cores.saturating_mul(2)) >= base);
        prop_assert!(with(&|server| server.checksum_offload = true) >= base);
        prop_assert!(with(&|server| server.loss = None) >= base);
        prop_assert!(with(&|server| server.copies = 0) >= base);
    }
}
