//! What the machine knows of itself, as JSON.

use crate::board::Board;
use crate::counting::Counting;
use crate::disk::Disk;
use crate::probe::Probe;
use crate::settings::Settings;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use linerate_nic::Interface;
use linerate_stack::Node;
use serde_json::{Map, Value, json};

/// The report, as `/stats` has it.
pub(crate) fn json<D: Interface + Counting>(
    board: &mut impl Board,
    settings: &Settings,
    node: &Node<Probe<D>>,
    disk: &Disk,
) -> String {
    let uptime_us = board.now().as_nanos() / 1_000;
    let task = |task: crate::Task| {
        json!({
            "name": task.name,
            "priority": task.priority,
            "state": task.state,
            "run_us": task.run_us,
            "load_percent": percent(task.run_us, uptime_us),
            "stack_free": task.stack_free,
        })
    };
    let tasks: Vec<Value> = board.tasks().into_iter().map(task).collect();
    let heap = board.heap();
    let memory = node.stack.memory();
    let (ram_used, ram_total) = disk.ram_usage();
    let pool = |stats: linerate_nic::PoolStats| {
        json!({
            "size": stats.buffer_size,
            "total": stats.total,
            "free": stats.free,
            "lowest": stats.low_water,
            "exhausted": stats.exhausted,
        })
    };
    let mut conns = Vec::new();
    node.stack.survey(|conn| {
        conns.push(json!({
            "server": owner(conn.owner.map(|owner| owner.0)),
            "state": conn.state,
            "sent": conn.sent,
            "received": conn.received,
            "memory": conn.memory,
            "limited_by": conn.limited_by.map(|cause| alloc::format!("{cause:?}")),
        }));
    });
    let addresses: Vec<String> = node.stack.addresses().map(|address| address.to_string()).collect();
    let report = json!({
        "name": settings.name,
        "uptime_us": uptime_us,
        "link": node.port.link().is_up,
        "addresses": addresses,
        "tasks": tasks,
        "heap": { "total": heap.total, "free": heap.free, "lowest": heap.lowest },
        "memory": {
            "sockets": memory.used,
            "sockets_most": memory.limit,
            "receive": memory.receive.map(pool),
            "pages": pool(memory.pages),
            "ram_disk": ram_used,
            "ram_disk_most": ram_total,
        },
        "connections": conns,
        "interrupt_interval_us": board.intervals().to_vec(),
        "interface": interface(node),
        "driver": driver(node.port.device()),
        "counters": counters(node),
    });
    report.to_string()
}

/// The servers by the owners of their sockets.
pub(crate) fn owner(owner: Option<u16>) -> &'static str {
    match owner {
        Some(1) => "http",
        Some(2) => "ftp",
        Some(3) => "iperf3",
        _ => "closing",
    }
}

/// A share of a whole in percent.
pub(crate) fn percent(part: u64, whole: u64) -> u64 {
    part.saturating_mul(100) / whole.max(1)
}

fn interface<D: Interface + Counting>(node: &Node<D>) -> Value {
    let mut map = Map::new();
    node.port.device().count(&mut |name, value| {
        map.insert(name.into(), value.into());
    });
    Value::Object(map)
}

/// Time in the driver, while it was measured.
fn driver<D>(probe: &Probe<D>) -> Value {
    let (received, sent) = probe.calls();
    json!({
        "receive_us": received.ns / 1_000,
        "receive_calls": received.count,
        "send_us": sent.ns / 1_000,
        "send_calls": sent.count,
    })
}

/// The stack's counters that are not zero.
fn counters<D: Interface>(node: &Node<D>) -> Value {
    let moved = node.stack.counters().iter().filter(|(_, value)| *value != 0);
    Value::Object(moved.map(|(name, value)| (name.to_string(), value.into())).collect())
}
