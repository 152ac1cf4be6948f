//! A second set with other numbers, written after the rules were.

use super::{Case, case};

/// The cases.
pub const CASES: &[Case] = &[
    case(
        "a window of 24 KiB over 70 ms at 25M",
        &["the receive buffer"],
        r#"
        link = { rate = "25 Mbit/s", delay = "35 ms" }
        server.tcp.receive-buffer = "24 KiB"
        flow = [{ from = "client" }]
        world.duration = "6 s""#,
    ),
    case(
        "a send buffer of 48 KiB over 30 ms at 400M, IPv6",
        &["the send buffer"],
        r#"
        link = { rate = "400 Mbit/s", delay = "15 ms" }
        client.tcp.send-buffer = "48 KiB"
        flow = [{ from = "client" }]
        world = { ip = 6, duration = "4 s" }"#,
    ),
    case(
        "a receive ring of 12 frames at 250M",
        &["the receive ring"],
        r#"
        link = { rate = "250 Mbit/s", delay = "2 ms" }
        client = { offload = "none", rx-ring = 12, interrupt-timer = "800 us", interrupt-packets = 500 }
        world.duration = "3 s""#,
    ),
    case(
        "a transmit ring of 3 at 300M, told after 600 us",
        &["the transmit ring"],
        r#"
        link = { rate = "300 Mbit/s", delay = "3 ms" }
        server = { offload = "none", tx-ring = 3, completion-delay = "600 us" }
        world.duration = "3 s""#,
    ),
    case(
        "requests of 3,500 B with Nagle, acknowledged after 100 ms",
        &["Nagle and delayed acknowledgements"],
        r#"
        link = { rate = "20 Mbit/s", delay = "3 ms" }
        client.tcp.no-delay = false
        server.tcp = { delayed-ack-timeout = "100 ms", delayed-ack-segments = 4 }
        flow = [{ from = "client", writer = { request = "3500 B" } }]
        world.duration = "5 s""#,
    ),
    case(
        "0.5 % lost of 300M over 14 ms",
        &["loss"],
        r#"
        link = { rate = "300 Mbit/s", delay = "7 ms", queue = "1 MiB" }
        from-client.loss = "0.5 %"
        flow = [{ from = "client" }]
        world.duration = "5 s""#,
    ),
    case(
        "bursts of 30 segments at 40M over 30 ms",
        &["burst loss"],
        r#"
        link = { rate = "40 Mbit/s", delay = "15 ms" }
        from-server.loss = { enter = "0.08 %", leave = "3.3 %" }
        world.duration = "10 s""#,
    ),
    case(
        "both directions lose at 25M over 8 ms",
        &["loss in both directions"],
        r#"
        link = { rate = "25 Mbit/s", delay = "4 ms", loss = { enter = "4 %", leave = "50 %" } }
        world.duration = "6 s""#,
    ),
    case(
        "reordering by 80 ms at 50M over 12 ms, upload",
        &["reordering"],
        r#"
        link = { rate = "50 Mbit/s", delay = "6 ms" }
        from-client = { reorder = "5 %", reorder-delay = "80 ms" }
        flow = [{ from = "client" }]
        world.duration = "6 s""#,
    ),
    case(
        "segments of 400 B at 60M",
        &["the segment size"],
        r#"
        link = { rate = "60 Mbit/s", delay = "4 ms" }
        server.tcp.mss = 400
        world.duration = "3 s""#,
    ),
    case(
        "a receiver of 60 us a kilobyte at 300M, upload",
        &["the server's processor"],
        r#"
        link = { rate = "300 Mbit/s", delay = "1 ms" }
        server.processor.kilobyte = "60 us"
        flow = [{ from = "client" }]
        world.duration = "3 s""#,
    ),
    case(
        "a reader of 3 Mbit/s at 20M over 30 ms",
        &["the reader"],
        r#"
        link = { rate = "20 Mbit/s", delay = "15 ms" }
        flow = [{ reader = "3 Mbit/s" }]
        world.duration = "8 s""#,
    ),
    case(
        "memory of 400 KiB for 200M over 60 ms, upload",
        &["memory"],
        r#"
        link = { rate = "200 Mbit/s", delay = "30 ms" }
        client.memory = "400 KiB"
        flow = [{ from = "client" }]
        world.duration = "6 s""#,
    ),
    case(
        "a queue of 8 segments at 30M over 50 ms, upload",
        &["the queue"],
        r#"
        link = { rate = "30 Mbit/s", delay = "25 ms", queue = { packets = 8 } }
        flow = [{ from = "client" }]
        world.duration = "10 s""#,
    ),
    case(
        "interrupts after 20 ms at 50M",
        &["interrupt delay"],
        r#"
        link = { rate = "50 Mbit/s", delay = "1 ms" }
        client = { interrupt-timer = "20 ms", interrupt-packets = 5000, tcp.receive-buffer = "48 KiB" }
        world.duration = "4 s""#,
    ),
    case(
        "marks above 6 KiB at 300M over 16 ms",
        &["ECN marks"],
        r#"
        link = { rate = "300 Mbit/s", delay = "8 ms", queue = { mark = "6 KiB", bytes = "2 MiB" } }
        server.tcp.ecn = "request"
        client.tcp.ecn = "request"
        world.duration = "5 s""#,
    ),
    case(
        "jitter of 30 ms at 30M, upload",
        &["jitter"],
        r#"
        link = { rate = "30 Mbit/s", delay = "3 ms" }
        from-client.jitter = "30 ms"
        client.tcp.send-buffer = "40 KiB"
        flow = [{ from = "client" }]
        world.duration = "5 s""#,
    ),
    case(
        "acknowledgements through 20 kbit/s, 20M, upload",
        &["the way back"],
        r#"
        link.delay = "5 ms"
        from-client.rate = "20 Mbit/s"
        from-server.rate = "20 kbit/s"
        flow = [{ from = "client" }]
        world.duration = "8 s""#,
    ),
];
