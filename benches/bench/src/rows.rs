//! What is measured: rows, who takes part in each, and what is asked of ours.

use crate::queues::{Queues, Work};
use serde::{Deserialize, Serialize};

/// Who serves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contender {
    /// linerate on a TAP of its own, with all offloads or none.
    OursTap(bool),
    /// linerate with two queues on a TAP of its own, with all offloads, on the cores of server and client.
    OursTapTwo,
    /// linerate on a TAP of its own, with all offloads, and one setting that is not the default.
    OursTapWith(Setting),
    /// linerate's queues in memory, each with its clients on a core of its own.
    OursMemory(Queues),
    /// linerate on a packet socket.
    OursPacket,
    /// linerate on an AF_XDP socket.
    OursXdp,
    /// linerate on the kernel's sockets.
    OursKernel,
    /// The floor on a TAP, with all offloads or none, doing what the row does.
    FloorTap(bool),
    /// The floor on a packet socket.
    FloorPacket,
    /// The floor on an AF_XDP socket.
    FloorXdp,
    /// smoltcp on a TAP.
    Smoltcp,
    /// lwIP on a TAP.
    Lwip,
    /// gVisor's network stack on a TAP.
    Gvisor,
    /// iperf3's own server on the kernel's sockets.
    Iperf3,
    /// nginx on the kernel's sockets.
    Nginx,
    /// lighttpd on the kernel's sockets.
    Lighttpd,
    /// vsftpd on the kernel's sockets.
    Vsftpd,
    /// pure-ftpd on the kernel's sockets.
    PureFtpd,
}

/// Settings that trade latency for processor time, each away from its default.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Setting {
    /// Every segment is acknowledged at once.
    AckEach,
    /// Every eighth segment is.
    AckEighth,
    /// An acknowledgement waits for 1 ms at most.
    AckSoon,
    /// Frames of one flow are not put together before the stack sees them.
    NoCoalescing,
    /// Segments are spread over the round trip.
    Paced,
    /// Nagle's algorithm is on.
    Nagle,
    /// The thread asks its device on for 50 us before it sleeps.
    BusyPoll,
}

impl Setting {
    /// All of them.
    pub const ALL: [Setting; 7] = [
        Setting::AckEach,
        Setting::AckEighth,
        Setting::AckSoon,
        Setting::NoCoalescing,
        Setting::Paced,
        Setting::Nagle,
        Setting::BusyPoll,
    ];

    /// The contender's name: the setting as it is written.
    pub fn name(self) -> &'static str {
        match self {
            Setting::AckEach => "delayed-ack-segments = 1",
            Setting::AckEighth => "delayed-ack-segments = 8",
            Setting::AckSoon => "delayed-ack-timeout = 1ms",
            Setting::NoCoalescing => "offload without gro",
            Setting::Paced => "pacing = auto",
            Setting::Nagle => "no-delay = false",
            Setting::BusyPoll => "busy-poll = 50us",
        }
    }

    /// The settings file.
    pub fn file(self) -> &'static str {
        match self {
            Setting::AckEach => "[tcp]\ndelayed-ack-segments = 1\n",
            Setting::AckEighth => "[tcp]\ndelayed-ack-segments = 8\n",
            Setting::AckSoon => "[tcp]\ndelayed-ack-timeout = \"1ms\"\n",
            Setting::NoCoalescing => "offload = \"tx-checksum,rx-checksum,tso,gather\"\n",
            Setting::Paced => "[tcp]\npacing = \"auto\"\n",
            Setting::Nagle => "[tcp]\nno-delay = false\n",
            Setting::BusyPoll => "busy-poll = \"50us\"\n",
        }
    }
}

impl Contender {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Contender::OursTap(true) => "linerate, TAP",
            Contender::OursTap(false) => "linerate, TAP, no offload",
            Contender::OursTapTwo => "linerate, TAP, two queues",
            Contender::OursTapWith(setting) => setting.name(),
            Contender::OursMemory(Queues::One) => "linerate, memory, one queue",
            Contender::OursMemory(Queues::Two) => "linerate, memory, two queues",
            Contender::OursMemory(Queues::Apart) => "linerate, memory, two servers",
            Contender::OursPacket => "linerate, packet socket",
            Contender::OursXdp => "linerate, AF_XDP",
            Contender::OursKernel => "linerate, kernel sockets",
            Contender::FloorTap(true) => "floor, TAP",
            Contender::FloorTap(false) => "floor, TAP, no offload",
            Contender::FloorPacket => "floor, packet socket",
            Contender::FloorXdp => "floor, AF_XDP",
            Contender::Smoltcp => "smoltcp, TAP",
            Contender::Lwip => "lwIP, TAP",
            Contender::Gvisor => "gVisor, TAP",
            Contender::Iperf3 => "iperf3, kernel sockets",
            Contender::Nginx => "nginx",
            Contender::Lighttpd => "lighttpd",
            Contender::Vsftpd => "vsftpd",
            Contender::PureFtpd => "pure-ftpd",
        }
    }
}

/// What the client of a row does.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Client {
    /// iperf3 over one TCP connection.
    Bulk {
        /// The server sends.
        out: bool,
    },
    /// iperf3 sends datagrams of this length as fast as it can.
    Udp {
        /// Bytes of a datagram.
        len: u32,
    },
    /// wrk asks for one path.
    Requests {
        /// The path.
        path: &'static str,
        /// Its status.
        status: u16,
        /// Bytes of the body.
        body: u32,
        /// Connections at once.
        connections: u32,
        /// Whether each request has a connection of its own.
        closing: bool,
    },
    /// Our own client asks over kept connections, at a rate of its own or, with one, as soon as it is answered.
    Latency {
        /// The path.
        path: &'static str,
        /// Bytes of the body.
        body: u32,
        /// Connections.
        connections: u32,
        /// Requests a second, as a share of what the slowest contender answers at most; 0: as many as are answered.
        load: f64,
    },
    /// curl fetches a file so many times over one HTTP connection.
    Download {
        /// The path.
        path: &'static str,
        /// How many times.
        times: u32,
    },
    /// Server and clients are threads of one process, without a device between them.
    Memory {
        /// What the clients do.
        work: Work,
    },
    /// curl fetches or stores a file so many times over one FTP session.
    Ftp {
        /// It stores.
        up: bool,
        /// The file's name.
        file: &'static str,
        /// How many times.
        times: u32,
    },
}

impl Client {
    /// The file that it fetches or stores, if it is one of those that are served.
    pub fn file(self) -> Option<&'static str> {
        match self {
            Client::Requests { path, .. } | Client::Latency { path, .. } | Client::Download { path, .. } => {
                Some(path.trim_start_matches('/'))
            }
            Client::Ftp { file, .. } => Some(file),
            Client::Bulk { .. } | Client::Udp { .. } | Client::Memory { .. } => None,
        }
    }

    /// What is counted, and how much of it makes the unit of a table.
    pub fn unit(self) -> (&'static str, f64) {
        match self {
            Client::Bulk { .. } => ("Gb/s", 0.125e9),
            Client::Udp { .. } => ("packets/s", 1.0),
            Client::Requests { .. } | Client::Latency { .. } => ("requests/s", 1.0),
            Client::Memory { work: Work::Requests } => ("requests/s", 1.0),
            Client::Memory { work: Work::Connections } => ("connections/s", 1.0),
            Client::Memory { work: Work::Bytes } => ("Gb/s", 0.125e9),
            Client::Download { .. } | Client::Ftp { .. } => ("MB/s", 1e6),
        }
    }
}

/// Where a row's file lies, or goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Store {
    /// Served from disk, and in the page cache; stored in memory (tmpfs).
    Usual,
    /// Served from memory (tmpfs).
    Memory,
    /// Served from disk, and not in the page cache when a measurement begins.
    Cold,
    /// Stored on disk.
    Disk,
}

/// What is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Metric {
    /// How much in a second.
    Rate,
    /// How much for a second of the server's processor time.
    PerCpu,
    /// The server's processor seconds for 10^9 bytes.
    CpuPerGb,
    /// The share of packets that were lost.
    Loss,
    /// Latency, in seconds: the median, and what one in 100 and in 1,000 exceeds.
    P50,
    /// See [`Metric::P50`].
    P99,
    /// See [`Metric::P50`].
    P999,
}

/// What is asked: ours as a ratio to the best of the others.
#[derive(Clone, Debug)]
pub struct Goal {
    /// Ours.
    pub ours: Contender,
    /// The others.
    pub others: Vec<Contender>,
    /// What is compared.
    pub metric: Metric,
    /// The ratio: at least it for rates and what a second of processor time gives, at most it for costs and losses.
    pub ratio: f64,
}

/// One row.
#[derive(Clone, Debug)]
pub struct Row {
    /// By what it is asked for.
    pub name: String,
    /// What its client does.
    pub client: Client,
    /// Where its file is.
    pub store: Store,
    /// Who takes part, in the order of their turns.
    pub contenders: Vec<Contender>,
    /// What is asked.
    pub goals: Vec<Goal>,
    /// Only run when it is asked for by name or by `--long`.
    pub long: bool,
}

fn goal(ours: Contender, others: &[Contender], metric: Metric, ratio: f64) -> Goal {
    Goal { ours, others: others.to_vec(), metric, ratio }
}

/// All rows.
pub fn all() -> Vec<Row> {
    let mut rows = Vec::new();
    for out in [false, true] {
        bulk(&mut rows, out);
    }
    requests(&mut rows);
    queues(&mut rows);
    latencies(&mut rows);
    sweep(&mut rows);
    downloads(&mut rows);
    ftp(&mut rows);
    for len in [64, 1_472] {
        let goals = [Contender::OursKernel, Contender::OursTap(true), Contender::OursPacket]
            .into_iter()
            .flat_map(|ours| {
                [(Metric::Rate, 1.2), (Metric::Loss, 1.0)]
                    .map(|(metric, ratio)| goal(ours, &[Contender::Iperf3], metric, ratio))
            })
            .collect();
        let contenders =
            vec![Contender::OursKernel, Contender::OursTap(true), Contender::OursPacket, Contender::Iperf3];
        let client = Client::Udp { len };
        rows.push(Row {
            name: format!("udp-{len}"),
            client,
            store: Store::Usual,
            contenders,
            goals,
            long: false,
        });
    }
    rows
}

fn bulk(rows: &mut Vec<Row>, out: bool) {
    use Contender::{
        FloorPacket, FloorTap, FloorXdp, Gvisor, Iperf3, Lwip, OursKernel, OursPacket, OursTap, OursXdp,
        Smoltcp,
    };
    use Metric::{CpuPerGb, Rate};
    let mut add = |name: &str, contenders: &[Contender], goals: Vec<Goal>| {
        let name = format!("{name}-{}", if out { "out" } else { "in" });
        let contenders = contenders.to_vec();
        rows.push(Row {
            name,
            client: Client::Bulk { out },
            store: Store::Usual,
            contenders,
            goals,
            long: false,
        });
    };
    let (ours, floor) = (OursTap(true), FloorTap(true));
    add("tap", &[ours, floor], vec![goal(ours, &[floor], Rate, 0.9), goal(ours, &[floor], CpuPerGb, 1.2)]);
    let (ours, floor) = (OursTap(false), FloorTap(false));
    add(
        "tap-plain",
        &[ours, floor, Smoltcp, Lwip, Gvisor],
        vec![
            goal(ours, &[floor], Rate, 0.95),
            goal(ours, &[Smoltcp, Lwip, Gvisor], Rate, 1.2),
            goal(ours, &[Smoltcp, Lwip, Gvisor], CpuPerGb, 1.0),
        ],
    );
    add(
        "packet",
        &[OursPacket, FloorPacket, Iperf3],
        vec![
            goal(OursPacket, &[FloorPacket], Rate, 0.9),
            goal(OursPacket, &[Iperf3], Rate, 1.0),
            goal(OursPacket, &[Iperf3], CpuPerGb, 1.0),
        ],
    );
    // The kernel's own path, for which veth has super-frames, runs beside.
    add("xdp", &[OursXdp, FloorXdp, Iperf3], vec![goal(OursXdp, &[FloorXdp], Rate, 0.9)]);
    add(
        "kernel",
        &[OursKernel, Iperf3],
        vec![goal(OursKernel, &[Iperf3], Rate, 1.0), goal(OursKernel, &[Iperf3], CpuPerGb, 1.0)],
    );
}

fn requests(rows: &mut Vec<Row>) {
    use Contender::{FloorTap, Lighttpd, Nginx, OursKernel, OursTap};
    use Metric::PerCpu;
    let (own, floor) = (OursTap(true), FloorTap(true));
    for (kind, path, status, body) in
        [("354", "/f354.bin", 200, 354), ("10k", "/f10k.bin", 200, 10_240), ("404", "/none.bin", 404, 117)]
    {
        for closing in [false, true] {
            for connections in [1, 64, 1_000] {
                let mut goals = vec![goal(own, &[floor], PerCpu, 0.85)];
                if body == 354 && !closing {
                    goals.push(goal(own, &[Nginx, Lighttpd], PerCpu, 2.0));
                }
                let kernel = if closing { 1.0 } else { 1.3 };
                goals.push(goal(OursKernel, &[Nginx, Lighttpd], PerCpu, kernel));
                rows.push(Row {
                    name: format!("http-{kind}-{}-{connections}", if closing { "close" } else { "keep" }),
                    client: Client::Requests { path, status, body, connections, closing },
                    store: Store::Usual,
                    contenders: vec![own, floor, OursKernel, Nginx, Lighttpd],
                    goals,
                    long: false,
                });
            }
        }
    }
}

/// Two queues beside one: in memory, where each has a core; and with a client that shares the cores with them.
fn queues(rows: &mut Vec<Row>) {
    use Contender::{OursMemory, OursTap, OursTapTwo};
    for work in [Work::Requests, Work::Connections, Work::Bytes] {
        let [two, one, apart] = [Queues::Two, Queues::One, Queues::Apart].map(OursMemory);
        rows.push(Row {
            name: format!("two-queues-{}", work.name()),
            client: Client::Memory { work },
            store: Store::Usual,
            // What the machine allows is told by two of the three.
            contenders: if work == Work::Bytes { vec![two, one] } else { vec![two, one, apart] },
            goals: vec![goal(two, &[one], Metric::Rate, 1.9)],
            long: false,
        });
    }
    rows.push(Row {
        name: "two-queues-tap".into(),
        client: Client::Requests {
            path: "/f354.bin",
            status: 200,
            body: 354,
            connections: 64,
            closing: false,
        },
        store: Store::Usual,
        contenders: vec![OursTapTwo, OursTap(true)],
        // At most 1.1 times the processor time for a request.
        goals: vec![goal(OursTapTwo, &[OursTap(true)], Metric::PerCpu, 1.0 / 1.1)],
        long: false,
    });
}

fn latencies(rows: &mut Vec<Row>) {
    use Contender::{FloorTap, Lighttpd, Nginx, OursKernel, OursTap};
    for (name, path, body, connections, load) in
        [("latency-1", "/f1.bin", 1, 1, 0.0), ("latency-64-half", "/f354.bin", 354, 64, 0.5)]
    {
        // What the kernel's path gives is to be met: that of ours and of others.
        let goals = [Metric::P50, Metric::P99, Metric::P999]
            .map(|metric| goal(OursTap(true), &[OursKernel, Nginx, Lighttpd], metric, 1.0));
        rows.push(Row {
            name: name.to_owned(),
            client: Client::Latency { path, body, connections, load },
            store: Store::Usual,
            contenders: vec![OursTap(true), FloorTap(true), OursKernel, Nginx, Lighttpd],
            goals: goals.to_vec(),
            long: false,
        });
    }
}

/// The settings that trade latency for processor time, beside the defaults; run by `sweep`. Nothing is asked of them.
fn sweep(rows: &mut Vec<Row>) {
    let contenders: Vec<Contender> = std::iter::once(Contender::OursTap(true))
        .chain(Setting::ALL.map(Contender::OursTapWith))
        .chain([Contender::OursKernel])
        .collect();
    let clients = [
        ("sweep-1", Client::Latency { path: "/f1.bin", body: 1, connections: 1, load: 0.0 }),
        ("sweep-64-half", Client::Latency { path: "/f354.bin", body: 354, connections: 64, load: 0.5 }),
        ("sweep-10k-half", Client::Latency { path: "/f10k.bin", body: 10_240, connections: 64, load: 0.5 }),
    ];
    for (name, client) in clients {
        let contenders = contenders.clone();
        let (store, goals) = (Store::Usual, Vec::new());
        rows.push(Row { name: name.into(), client, store, contenders, goals, long: true });
    }
}

fn downloads(rows: &mut Vec<Row>) {
    use Contender::{Nginx, OursKernel, OursTap};
    let (small, large) = (("32m", "/f32m.bin", 32), ("1g", "/f1g.bin", 1));
    for ((size, path, times), store) in [
        (small, Store::Usual),
        (large, Store::Usual),
        (small, Store::Memory),
        (large, Store::Memory),
        // Of many times in a row only the first finds it so.
        (large, Store::Cold),
    ] {
        let goals =
            [OursKernel, OursTap(true)].map(|ours| goal(ours, &[Nginx], Metric::PerCpu, 1.0)).to_vec();
        rows.push(Row {
            name: format!("file-{size}{}", suffix(store)),
            client: Client::Download { path, times },
            store,
            contenders: vec![OursKernel, OursTap(true), Nginx],
            goals,
            long: store != Store::Usual,
        });
    }
}

fn suffix(store: Store) -> &'static str {
    match store {
        Store::Usual => "",
        Store::Memory => "-tmpfs",
        Store::Cold => "-cold",
        Store::Disk => "-disk",
    }
}

fn ftp(rows: &mut Vec<Row>) {
    use Contender::{OursKernel, OursTap, PureFtpd, Vsftpd};
    use Metric::{CpuPerGb, Rate};
    let (small, large) = (("256m", "f256m.bin", 4), ("4g", "f4g.bin", 1));
    for ((size, file, times), up, store) in [
        (small, false, Store::Usual),
        (small, true, Store::Usual),
        (large, false, Store::Usual),
        (large, true, Store::Usual),
        (small, false, Store::Memory),
        (small, true, Store::Disk),
    ] {
        let others = [Vsftpd, PureFtpd];
        let (own, kernel) = if up { (1.5, 1.3) } else { (1.2, 1.0) };
        rows.push(Row {
            name: format!("ftp-{size}-{}{}", if up { "up" } else { "down" }, suffix(store)),
            client: Client::Ftp { up, file, times },
            store,
            contenders: vec![OursTap(true), OursKernel, Vsftpd, PureFtpd],
            goals: vec![
                goal(OursTap(true), &others, Rate, own),
                goal(OursTap(true), &others, CpuPerGb, 1.0),
                goal(OursKernel, &others, Rate, kernel),
            ],
            long: size != "256m" || store != Store::Usual,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_goals_are_about_contenders_of_their_row() {
        let rows = all();
        let names: BTreeSet<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names.len(), rows.len());
        for row in &rows {
            for goal in &row.goals {
                assert!(row.contenders.contains(&goal.ours), "{}", row.name);
                assert!(goal.others.iter().all(|other| row.contenders.contains(other)), "{}", row.name);
            }
        }
    }
}
