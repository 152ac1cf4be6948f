//! The table: rates of 10 Mbit/s to 10 Gbit/s, round trips of 0.2 to 100 ms, both directions.

use super::{Case, case};

/// The cases.
pub const CASES: &[Case] = &[
    case(
        "peer window, 100M, 20 ms",
        &["the receive buffer"],
        r#"
        link = { rate = "100 Mbit/s", delay = "10 ms" }
        client.tcp.receive-buffer = "64 KiB"
        world.duration = "4 s""#,
    ),
    case(
        "peer window, 10G, 0.2 ms, upload",
        &["the receive buffer"],
        r#"
        link = { rate = "10 Gbit/s", delay = "100 us" }
        server.tcp.receive-buffer = "32 KiB"
        flow = [{ from = "client", bytes = "60 MiB" }]"#,
    ),
    case(
        "peer window of less than two segments",
        &["the receive buffer"],
        r#"
        link = { rate = "10 Mbit/s", delay = "5 ms" }
        client.tcp.receive-buffer = "2 KiB"
        world.duration = "5 s""#,
    ),
    case(
        "automatic receive buffer too small for 1G over 100 ms",
        &["the receive buffer"],
        r#"
        link = { rate = "1 Gbit/s", delay = "50 ms", queue = "16 MiB" }
        client.tcp.receive-buffer-max = "1 MiB"
        server.tcp.send-buffer-max = "64 MiB"
        world.duration = "8 s""#,
    ),
    case(
        "no more window than without scaling, 100 ms",
        &["the receive buffer"],
        r#"
        link = { rate = "50 Mbit/s", delay = "50 ms" }
        server.tcp.receive-buffer = "65535 B"
        flow = [{ from = "client" }]
        world.duration = "8 s""#,
    ),
    case(
        "send buffer, 1G, 100 ms",
        &["the send buffer"],
        r#"
        link = { rate = "1 Gbit/s", delay = "50 ms", queue = "16 MiB" }
        server.tcp.send-buffer = "256 KiB"
        client.tcp.receive-buffer = "32 MiB"
        world.duration = "6 s""#,
    ),
    case(
        "send buffer of 2 KiB, 100M, 10 ms",
        &["the send buffer"],
        r#"
        link = { rate = "100 Mbit/s", delay = "5 ms" }
        server.tcp.send-buffer = "2 KiB"
        world.duration = "4 s""#,
    ),
    case(
        "send buffer with Nagle, 100M, 10 ms, upload",
        &["the send buffer"],
        r#"
        link = { rate = "100 Mbit/s", delay = "5 ms" }
        client.tcp = { send-buffer = "20 KiB", no-delay = false }
        flow = [{ from = "client" }]
        world.duration = "4 s""#,
    ),
    case(
        "receive ring of 16 frames, polled each millisecond",
        &["the receive ring"],
        r#"
        link = { rate = "1 Gbit/s", delay = "100 us" }
        client = { offload = "none", rx-ring = 16, interrupt-timer = "1 ms", interrupt-packets = 1000, tcp.receive-buffer = "64 KiB" }
        world.duration = "2 s""#,
    ),
    case(
        "receive ring of 8 frames, 100M, upload",
        &["the receive ring"],
        r#"
        link = { rate = "100 Mbit/s", delay = "5 ms" }
        server = { offload = "none", rx-ring = 8, interrupt-timer = "2 ms", interrupt-packets = 1000 }
        flow = [{ from = "client" }]
        world.duration = "4 s""#,
    ),
    case(
        "transmit ring of 2, completions told after 1 ms",
        &["the transmit ring"],
        r#"
        link = { rate = "1 Gbit/s", delay = "500 us" }
        server = { offload = "none", tx-ring = 2, completion-delay = "1 ms" }
        world.duration = "2 s""#,
    ),
    case(
        "transmit ring of 4, completions told after 5 ms, upload",
        &["the transmit ring"],
        r#"
        link = { rate = "100 Mbit/s", delay = "10 ms" }
        client = { offload = "none", tx-ring = 4, completion-delay = "5 ms" }
        flow = [{ from = "client" }]
        world.duration = "4 s""#,
    ),
    case(
        "Nagle against delayed acknowledgements, requests of two segments",
        &["Nagle and delayed acknowledgements"],
        r#"
        link = { rate = "100 Mbit/s", delay = "100 us" }
        client.tcp.no-delay = false
        flow = [{ from = "client", writer = { request = "2000 B" } }]
        world.duration = "4 s""#,
    ),
    case(
        "Nagle against a peer that acknowledges after 200 ms",
        &["Nagle and delayed acknowledgements"],
        r#"
        link = { rate = "1 Gbit/s", delay = "1 ms" }
        server.tcp.no-delay = false
        client.tcp.delayed-ack-timeout = "200 ms"
        flow = [{ writer = { request = "2500 B" } }]
        world.duration = "5 s""#,
    ),
    case(
        "random loss of 1 %, 100M, 40 ms",
        &["loss"],
        r#"
        link = { rate = "100 Mbit/s", delay = "20 ms" }
        from-server.loss = "1 %"
        world.duration = "8 s""#,
    ),
    case(
        "random loss of 0.1 %, 1G, 20 ms, upload",
        &["loss"],
        r#"
        link = { rate = "1 Gbit/s", delay = "10 ms", queue = "4 MiB" }
        from-client.loss = "0.1 %"
        flow = [{ from = "client" }]
        world.duration = "4 s""#,
    ),
    case(
        "every 50th segment lost, 10M, 100 ms",
        &["loss"],
        r#"
        link = { rate = "10 Mbit/s", delay = "50 ms" }
        from-server.loss = { every = 50 }
        world.duration = "10 s""#,
    ),
    case(
        "burst loss, 100M, 20 ms",
        &["burst loss"],
        r#"
        link = { rate = "100 Mbit/s", delay = "10 ms" }
        from-server.loss = { enter = "0.1 %", leave = "10 %" }
        world.duration = "8 s""#,
    ),
    case(
        "burst loss, 10M, 60 ms, upload",
        &["burst loss"],
        r#"
        link = { rate = "10 Mbit/s", delay = "30 ms" }
        from-client.loss = { enter = "0.5 %", leave = "20 %" }
        flow = [{ from = "client" }]
        world.duration = "10 s""#,
    ),
    case(
        "loss in both directions as of a duplex mismatch, 100M",
        &["loss in both directions"],
        r#"
        link = { rate = "100 Mbit/s", delay = "2 ms", loss = { enter = "2 %", leave = "40 %" } }
        world.duration = "6 s""#,
    ),
    case(
        "random loss in both directions, 10M, 20 ms, upload",
        &["loss in both directions"],
        r#"
        link = { rate = "10 Mbit/s", delay = "10 ms", loss = "5 %" }
        flow = [{ from = "client" }]
        world.duration = "8 s""#,
    ),
    case(
        "damaged segments, 100M, 10 ms",
        &["damaged segments"],
        r#"
        link = { rate = "100 Mbit/s", delay = "5 ms" }
        from-server.corrupt = "3 %"
        world.duration = "6 s""#,
    ),
    case(
        "reordering by more than a round trip, 100M",
        &["reordering"],
        r#"
        link = { rate = "100 Mbit/s", delay = "2 ms" }
        from-server = { reorder = "3 %", reorder-delay = "60 ms" }
        world.duration = "6 s""#,
    ),
    case(
        "small segments, 100M",
        &["the segment size"],
        r#"
        link = { rate = "100 Mbit/s", delay = "1 ms" }
        client.tcp.mss = 200
        world.duration = "3 s""#,
    ),
    case(
        "small segments, 10M, 20 ms, upload",
        &["the segment size"],
        r#"
        link = { rate = "10 Mbit/s", delay = "10 ms" }
        client.tcp.mss = 300
        flow = [{ from = "client" }]
        world.duration = "5 s""#,
    ),
    case(
        "a sender's processor of 20 us a packet",
        &["the server's processor"],
        r#"
        link = { rate = "1 Gbit/s", delay = "200 us" }
        server = { offload = "none", processor = { packet = "20 us" } }
        world.duration = "2 s""#,
    ),
    case(
        "a receiver's processor of 30 us a packet",
        &["the client's processor"],
        r#"
        link = { rate = "1 Gbit/s", delay = "1 ms" }
        client = { offload = "none", processor = { packet = "30 us" } }
        world.duration = "3 s""#,
    ),
    case(
        "a sender's processor of 20 ns a byte",
        &["the client's processor"],
        r#"
        link = { rate = "1 Gbit/s", delay = "500 us" }
        client.processor.kilobyte = "20 us"
        flow = [{ from = "client" }]
        world.duration = "2 s""#,
    ),
    case(
        "checksums in software on a slow processor",
        &["the server's processor"],
        r#"
        link = { rate = "1 Gbit/s", delay = "200 us" }
        server = { offload = "rx-checksum,gather", processor = { packet = "1 us", checksum = "30 us" } }
        world.duration = "2 s""#,
    ),
    case(
        "an application that reads 8 Mbit/s of 100",
        &["the reader"],
        r#"
        link = { rate = "100 Mbit/s", delay = "2 ms" }
        flow = [{ reader = "8 Mbit/s" }]
        world.duration = "6 s""#,
    ),
    case(
        "an application that reads 200 Mbit/s of 1G, upload",
        &["the reader"],
        r#"
        link = { rate = "1 Gbit/s", delay = "500 us" }
        flow = [{ from = "client", reader = "200 Mbit/s" }]
        world.duration = "3 s""#,
    ),
    case(
        "an application that writes 20 Mbit/s of 100",
        &["the sender"],
        r#"
        link = { rate = "100 Mbit/s", delay = "5 ms" }
        flow = [{ writer = "20 Mbit/s" }]
        world.duration = "4 s""#,
    ),
    case(
        "an application that writes 100 B each millisecond, upload",
        &["the sender"],
        r#"
        link = { rate = "1 Gbit/s", delay = "5 ms" }
        flow = [{ from = "client", writer = { bytes = "100 B", every = "1 ms" } }]
        world.duration = "4 s""#,
    ),
    case(
        "an application that waits for answers, 40 ms",
        &["the sender"],
        r#"
        link = { rate = "100 Mbit/s", delay = "20 ms" }
        flow = [{ from = "client", writer = { request = "8 KiB" } }]
        world.duration = "4 s""#,
    ),
    case(
        "pacing at 30 Mbit/s of 100",
        &["pacing"],
        r#"
        link = { rate = "100 Mbit/s", delay = "5 ms" }
        server.tcp.pacing = "30 Mbit/s"
        world.duration = "4 s""#,
    ),
    case(
        "pacing at 1 Gbit/s of 10, upload",
        &["pacing"],
        r#"
        link = { rate = "10 Gbit/s", delay = "100 us" }
        client.tcp.pacing = "1 Gbit/s"
        flow = [{ from = "client" }]
        world.duration = "500 ms""#,
    ),
    case(
        "memory of the sender, 100M, 100 ms",
        &["memory"],
        r#"
        link = { rate = "100 Mbit/s", delay = "50 ms" }
        server.memory = "256 KiB"
        world.duration = "8 s""#,
    ),
    case(
        "memory of the receiver, 100M, 100 ms",
        &["memory"],
        r#"
        link = { rate = "100 Mbit/s", delay = "50 ms" }
        client.memory = "256 KiB"
        world.duration = "8 s""#,
    ),
    case(
        "a handshake that lost two SYNs",
        &["the handshake"],
        r#"
        link = { rate = "100 Mbit/s", delay = "5 ms" }
        from-client.loss = "100 %"
        change = [{ at = "1500 ms", from-client.loss = "0 %" }]
        flow = [{ bytes = "1 MiB" }]"#,
    ),
    case(
        "a handshake whose SYN-ACK was lost, upload",
        &["the handshake"],
        r#"
        link = { rate = "1 Gbit/s", delay = "1 ms" }
        from-server.loss = "100 %"
        change = [{ at = "100 ms", from-server.loss = "0 %" }]
        flow = [{ from = "client", bytes = "4 MiB" }]"#,
    ),
    case(
        "path MTU, silent",
        &["path MTU"],
        r#"
        link = { rate = "50 Mbit/s", delay = "5 ms" }
        from-server.mtu = 1400
        flow = [{ bytes = "4 MiB" }]"#,
    ),
    case(
        "path MTU of 600, told",
        &["path MTU"],
        r#"
        link = { rate = "20 Mbit/s", delay = "5 ms" }
        from-client = { mtu = 600, too-long-is-told = true }
        flow = [{ from = "client" }]
        world = { mtu = 9000, duration = "4 s" }"#,
    ),
    case(
        "the link, 10M",
        &["the link"],
        r#"
        link = { rate = "10 Mbit/s", delay = "10 ms" }
        world.duration = "6 s""#,
    ),
    case(
        "the link, 10G, 0.2 ms, upload",
        &["the link"],
        r#"
        link = { rate = "10 Gbit/s", delay = "100 us" }
        flow = [{ from = "client" }]
        world.duration = "400 ms""#,
    ),
    case(
        "the interface, 100M before 1G",
        &["the interface"],
        r#"
        link = { rate = "1 Gbit/s", delay = "5 ms" }
        server.line-rate = "100 Mbit/s"
        world.duration = "3 s""#,
    ),
    case(
        "a queue of 5 segments, 100M, 40 ms",
        &["the queue"],
        r#"
        link = { rate = "100 Mbit/s", delay = "20 ms", queue = { packets = 5 } }
        world.duration = "8 s""#,
    ),
    case(
        "a queue of 16 KiB, 1G, 20 ms, upload",
        &["the queue"],
        r#"
        link = { rate = "1 Gbit/s", delay = "10 ms", queue = "16 KiB" }
        flow = [{ from = "client" }]
        world.duration = "4 s""#,
    ),
    case(
        "interrupts after 10 ms, buffer of 64 KiB",
        &["interrupt delay"],
        r#"
        link = { rate = "100 Mbit/s", delay = "100 us" }
        client = { interrupt-timer = "10 ms", interrupt-packets = 10000, tcp.receive-buffer = "64 KiB" }
        world.duration = "3 s""#,
    ),
    case(
        "interrupts after 5 ms at the sender",
        &["interrupt delay"],
        r#"
        link = { rate = "100 Mbit/s", delay = "500 us" }
        server = { interrupt-timer = "5 ms", interrupt-packets = 10000, tcp.send-buffer = "32 KiB" }
        world.duration = "3 s""#,
    ),
    case(
        "long runs of acknowledgements lost, 100M, 50 ms",
        &["lost acknowledgements"],
        r#"
        link = { rate = "100 Mbit/s", delay = "25 ms" }
        change = [{ at = "300 ms", from-client.loss = { enter = "3 %", leave = "2 %" } }]
        world.duration = "8 s""#,
    ),
    case(
        "ECN marks above 3 KiB, 100M, 20 ms",
        &["ECN marks"],
        r#"
        link = { rate = "100 Mbit/s", delay = "10 ms", queue = { mark = "3 KiB", bytes = "1 MiB" } }
        server.tcp.ecn = "request"
        client.tcp.ecn = "request"
        world.duration = "8 s""#,
    ),
    case(
        "ECN marks above 9 KiB, 1G, 10 ms, upload",
        &["ECN marks"],
        r#"
        link = { rate = "1 Gbit/s", delay = "5 ms", queue = { mark = "9 KiB", bytes = "1 MiB" } }
        client.tcp.ecn = "request"
        flow = [{ from = "client" }]
        world.duration = "4 s""#,
    ),
    case(
        "jitter of 20 ms, buffer for the path without",
        &["jitter"],
        r#"
        link = { rate = "100 Mbit/s", delay = "2 ms" }
        from-server.jitter = "20 ms"
        client.tcp.receive-buffer = "64 KiB"
        world.duration = "4 s""#,
    ),
    case(
        "an acknowledgement for 255 segments, or after 200 ms",
        &["delayed acknowledgements"],
        r#"
        link = { rate = "1 Gbit/s", delay = "400 us" }
        client.tcp = { delayed-ack-segments = 255, delayed-ack-timeout = "200 ms", receive-buffer = "128 KiB" }
        client.offload = "none"
        world.duration = "5 s""#,
    ),
    case(
        "acknowledgements through 64 kbit/s",
        &["the way back"],
        r#"
        link.delay = "10 ms"
        from-server.rate = "100 Mbit/s"
        from-client.rate = "64 kbit/s"
        world.duration = "8 s""#,
    ),
    case(
        "a short transfer over 80 ms",
        &["slow start"],
        r#"
        link = { rate = "1 Gbit/s", delay = "40 ms" }
        flow = [{ bytes = "400 KiB" }]"#,
    ),
    case(
        "an outage of two seconds",
        &["a stall"],
        r#"
        link = { rate = "20 Mbit/s", delay = "10 ms" }
        change = [{ at = "2 s", link.pause = true }, { at = "4 s", link.pause = false }]
        world.duration = "6 s""#,
    ),
];
