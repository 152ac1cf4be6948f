//! What the machine knows of itself: what each core tells, and all of it as JSON.

use crate::board::{Board, Task};
use crate::counting::Counting;
use crate::disk::Disk;
use crate::exchange::Spread;
use crate::intervals::INTERVALS;
use crate::probe::{Calls, Probe};
use crate::settings::Settings;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use linerate_nic::{Interface, PoolStats};
use linerate_stack::{MemoryStats, Node};
use linerate_transport::ConnSummary;
use serde_json::{Map, Value, json};

/// A name and a count.
pub(crate) type Named = (&'static str, u64);

/// What one core tells.
pub(crate) struct Told {
    pub(crate) seat: u16,
    pub(crate) tasks: Vec<Task>,
    /// The stack's counters, and what was dropped on the way to this core.
    pub(crate) counters: Vec<Named>,
    /// The driver's counters; none where it has no queue.
    pub(crate) interface: Vec<Named>,
    pub(crate) memory: MemoryStats,
    pub(crate) conns: Vec<ConnSummary>,
    calls: (Calls, Calls),
    intervals: [u32; INTERVALS],
}

impl Told {
    /// What there is to tell of this core.
    pub(crate) fn of<D: Interface + Counting>(board: &mut impl Board, node: &Node<Spread<Probe<D>>>) -> Told {
        let spread = node.port.device();
        let (mut conns, mut interface) = (Vec::new(), Vec::new());
        node.stack.survey(|conn| conns.push(conn));
        spread.count(&mut |name, value| interface.push((name, value)));
        Told {
            seat: node.stack.seat().index,
            tasks: board.tasks(),
            counters: node.stack.counters().iter().chain(spread.drops()).collect(),
            interface,
            memory: node.stack.memory(),
            conns,
            calls: spread.device().calls(),
            intervals: board.intervals(),
        }
    }

    /// The counter of this name.
    pub(crate) fn counter(&self, name: &str) -> u64 {
        self.counters.iter().find(|(other, _)| *other == name).map_or(0, |(_, value)| *value)
    }

    /// Time with work, of all its tasks but the last one, which is idle; in us.
    pub(crate) fn busy_us(&self) -> u64 {
        let busy = self.tasks.iter().filter(|task| task.priority > 0);
        busy.map(|task| task.run_us).sum()
    }
}

/// The counts of all cores together, in the order of the first.
pub(crate) fn sums(all: &[Told], of: impl Fn(&Told) -> &[Named]) -> Vec<Named> {
    let (mut sums, mut order) = (BTreeMap::new(), Vec::new());
    for (name, value) in all.iter().flat_map(of) {
        let sum = sums.entry(*name).or_insert_with(|| {
            order.push(*name);
            0_u64
        });
        *sum += *value;
    }
    order.into_iter().map(|name| (name, sums.get(name).copied().unwrap_or(0))).collect()
}

/// The pools of all cores as one.
pub(crate) fn pool(all: &[Told], of: impl Fn(&MemoryStats) -> Option<PoolStats>) -> Option<PoolStats> {
    all.iter().filter_map(|told| of(&told.memory)).reduce(|a, b| PoolStats {
        buffer_size: a.buffer_size,
        total: a.total + b.total,
        free: a.free + b.free,
        low_water: a.low_water + b.low_water,
        exhausted: a.exhausted + b.exhausted,
    })
}

/// The report, as `/stats` has it.
pub(crate) fn json<D: Interface>(
    board: &mut impl Board,
    settings: &Settings,
    node: &Node<D>,
    disk: &Disk,
    all: &[Told],
) -> String {
    let uptime_us = board.now().as_nanos() / 1_000;
    let task = |task: &Task| {
        json!({
            "name": task.name,
            "priority": task.priority,
            "state": task.state,
            "run_us": task.run_us,
            "load_percent": percent(task.run_us, uptime_us),
            "stack_free": task.stack_free,
        })
    };
    let tasks: Vec<Value> = all.iter().flat_map(|told| &told.tasks).map(task).collect();
    let (heap, last_start) = (board.heap(), board.last_start());
    let (ram_used, ram_total) = disk.ram_usage();
    let addresses: Vec<String> = node.stack.addresses().map(|address| address.to_string()).collect();
    let object = |named: Vec<Named>| {
        Value::Object(named.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    };
    let mut intervals = [0_u32; INTERVALS];
    for told in all {
        intervals.iter_mut().zip(told.intervals).for_each(|(sum, count)| *sum = sum.saturating_add(count));
    }
    let counters = sums(all, |told| &told.counters).into_iter().filter(|(_, value)| *value != 0);
    let report = json!({
        "name": settings.name,
        "uptime_us": uptime_us,
        "last_start": last_start.cause.name(),
        "starts_by_watchdog": last_start.count,
        "link": node.port.link().is_up,
        "addresses": addresses,
        "cores": all.iter().map(|told| core(told, uptime_us)).collect::<Vec<Value>>(),
        "tasks": tasks,
        "heap": { "total": heap.total, "free": heap.free, "lowest": heap.lowest },
        "memory": {
            "sockets": all.iter().map(|told| told.memory.used).sum::<usize>(),
            "sockets_most": all.iter().map(|told| told.memory.limit).sum::<usize>(),
            "receive": pool(all, |memory| memory.receive).map(pool_json),
            "pages": pool(all, |memory| Some(memory.pages)).map(pool_json),
            "ram_disk": ram_used,
            "ram_disk_most": ram_total,
        },
        "connections": all.iter().flat_map(connections).collect::<Vec<Value>>(),
        "interrupt_interval_us": intervals.to_vec(),
        "interface": object(sums(all, |told| &told.interface)),
        "driver": driver(all),
        "counters": object(counters.collect()),
    });
    report.to_string()
}

/// A core, with the counters that tell who did what.
fn core(told: &Told, uptime_us: u64) -> Value {
    let busy_us = told.busy_us();
    let mut map = Map::new();
    let mut add = |name: &str, value: u64| {
        map.insert(name.into(), value.into());
    };
    add("core", told.seat.into());
    add("load_percent", percent(busy_us, uptime_us));
    add("busy_us", busy_us);
    add("idle_us", uptime_us.saturating_sub(busy_us));
    add("connections", told.memory.connections as u64);
    for name in SHOWN {
        add(name, told.counter(name));
    }
    // What came and left by a queue of its own.
    for (name, value) in told.interface.iter().filter(|(name, _)| ["rx_frames", "tx_packets"].contains(name))
    {
        add(&alloc::format!("queue_{name}"), *value);
    }
    Value::Object(map)
}

/// The counters that are shown of each core.
pub(crate) const SHOWN: [&str; 9] = [
    "frames_in",
    "frames_out",
    "tcp_established",
    "tcp_bytes_in",
    "tcp_bytes_out",
    "letters_out",
    "drop_letters_full",
    "drop_mailbox_full",
    "drop_mailbox_no_buffer",
];

fn pool_json(stats: PoolStats) -> Value {
    json!({
        "size": stats.buffer_size,
        "total": stats.total,
        "free": stats.free,
        "lowest": stats.low_water,
        "exhausted": stats.exhausted,
    })
}

fn connections(told: &Told) -> impl Iterator<Item = Value> {
    told.conns.iter().map(|conn| {
        json!({
            "core": told.seat,
            "server": owner(conn.owner.map(|owner| owner.0)),
            "state": conn.state,
            "sent": conn.sent,
            "received": conn.received,
            "memory": conn.memory,
            "limited_by": conn.limited_by.map(|cause| alloc::format!("{cause:?}")),
        })
    })
}

/// Servers and clients by the owners of their sockets.
pub(crate) fn owner(owner: Option<u16>) -> &'static str {
    match owner {
        Some(1) => "http",
        Some(2) => "ftp",
        Some(3) => "iperf3",
        // The iperf3 client of the console.
        Some(4) => "client",
        _ => "closing",
    }
}

/// A share of a whole in percent.
pub(crate) fn percent(part: u64, whole: u64) -> u64 {
    part.saturating_mul(100) / whole.max(1)
}

/// Time in the driver, while it was measured.
fn driver(all: &[Told]) -> Value {
    let sum = |of: fn(&Told) -> u64| all.iter().map(of).sum::<u64>();
    json!({
        "receive_us": sum(|told| told.calls.0.ns) / 1_000,
        "receive_calls": sum(|told| told.calls.0.count),
        "send_us": sum(|told| told.calls.1.ns) / 1_000,
        "send_calls": sum(|told| told.calls.1.count),
    })
}
