//! One report of the reports of several loops.

use super::query::{Query, Sort};
use super::rates;
use super::report::{Conn, Connections, Dropped, Memory, PoolReport, Rates, Report, Traffic};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::sync::Arc;

/// The report of all: what is counted is added, connections get the number of their queue and are chosen again from all.
pub fn report(reports: Vec<Arc<Report>>, query: Query) -> Arc<Report> {
    let mut parts = reports.into_iter();
    let Some(first) = parts.next() else { return Arc::default() };
    if parts.len() == 0 {
        return first;
    }
    let mut all = Report::clone(&first);
    number(&mut all.connections.list, 0);
    for (queue, part) in (1..).zip(parts) {
        let mut part = Report::clone(&part);
        number(&mut part.connections.list, queue);
        part.queues.iter_mut().for_each(|of| of.number = queue);
        add(&mut all, part);
    }
    rates::sort(&mut all.dropped);
    all.connections.list.sort_by(|a, b| order(a, b, query.sort));
    all.connections.list.truncate(query.limit);
    Arc::new(all)
}

fn number(list: &mut [Conn], queue: u64) {
    for conn in list {
        conn.queue = queue;
        conn.id = format!("{queue}.{}", conn.id);
    }
}

fn add(all: &mut Report, part: Report) {
    all.process.report += part.process.report;
    let Traffic { received_bytes, sent_bytes, received_packets, sent_packets, retransmits, drops } =
        part.traffic;
    all.traffic.received_bytes += received_bytes;
    all.traffic.sent_bytes += sent_bytes;
    all.traffic.received_packets += received_packets;
    all.traffic.sent_packets += sent_packets;
    all.traffic.retransmits += retransmits;
    all.traffic.drops += drops;
    add_rates(&mut all.rates, part.rates);
    for dropped in part.dropped {
        add_dropped(&mut all.dropped, dropped);
    }
    let Memory { limit, used, peak, refused, tables, owners } = part.memory;
    all.memory.limit += limit;
    all.memory.used += used;
    all.memory.peak += peak;
    all.memory.refused += refused;
    all.memory.tables += tables;
    sum(&mut all.memory.owners, owners);
    for pool in part.pools {
        add_pool(&mut all.pools, pool);
    }
    for (group, values) in part.counters {
        sum(all.counters.entry(group).or_default(), values);
    }
    let Connections { total, states, servers, limited, sort: _, list } = part.connections;
    all.connections.total += total;
    sum(&mut all.connections.states, states);
    sum(&mut all.connections.servers, servers);
    sum(&mut all.connections.limited, limited);
    all.connections.list.extend(list);
    all.queues.extend(part.queues);
}

/// Pools of one name are one pool; the least that was free is the sum of what was free at least in each.
fn add_pool(pools: &mut Vec<PoolReport>, pool: PoolReport) {
    let Some(same) = pools.iter_mut().find(|known| known.name == pool.name) else {
        pools.push(pool);
        return;
    };
    same.total += pool.total;
    same.free += pool.free;
    same.used += pool.used;
    same.low_water += pool.low_water;
    same.exhausted += pool.exhausted;
}

/// The span is that of the first, of which the others differ by the moment at which they were asked; the process is the
/// same for all.
fn add_rates(to: &mut Rates, of: Rates) {
    let Rates {
        span: _,
        receive_rate,
        send_rate,
        received_packets,
        sent_packets,
        retransmits,
        drops,
        cpu: _,
    } = of;
    to.receive_rate += receive_rate;
    to.send_rate += send_rate;
    to.received_packets += received_packets;
    to.sent_packets += sent_packets;
    to.retransmits += retransmits;
    to.drops += drops;
}

fn add_dropped(to: &mut Vec<Dropped>, dropped: Dropped) {
    let is_same = |known: &&mut Dropped| (&known.group, &known.name) == (&dropped.group, &dropped.name);
    match to.iter_mut().find(is_same) {
        Some(same) => {
            same.count += dropped.count;
            same.rate += dropped.rate;
        }
        None => to.push(dropped),
    }
}

fn sum<V: AddAssign + Default>(to: &mut BTreeMap<String, V>, of: BTreeMap<String, V>) {
    for (name, value) in of {
        *to.entry(name).or_default() += value;
    }
}

/// The most first.
fn order(a: &Conn, b: &Conn, sort: Sort) -> Ordering {
    let by = match sort {
        Sort::Rate => (b.send_rate + b.receive_rate).total_cmp(&(a.send_rate + a.receive_rate)),
        Sort::Bytes => (b.bytes_acked + b.bytes_received).cmp(&(a.bytes_acked + a.bytes_received)),
        Sort::Memory => b.memory.cmp(&a.memory),
    };
    by.then_with(|| a.id.cmp(&b.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(rates: &[f64], connections: u64) -> Arc<Report> {
        let conn = |(at, rate): (usize, &f64)| Conn {
            id: format!("{at}.0"),
            send_rate: *rate,
            memory: 1 << at,
            ..Conn::default()
        };
        let counted = |n| BTreeMap::from([("tcp_established".to_owned(), n)]);
        Arc::new(Report {
            traffic: Traffic { sent_bytes: 100, drops: 1, ..Traffic::default() },
            rates: Rates { send_rate: 8.0, cpu: 0.5, ..Rates::default() },
            dropped: vec![
                Dropped { name: format!("after {connections}"), ..dropped("x", connections) },
                dropped("land", 1),
            ],
            memory: Memory {
                limit: 1_000,
                peak: 7,
                owners: [("http".to_owned(), 3)].into(),
                ..Memory::default()
            },
            pools: vec![PoolReport { name: "pages".to_owned(), total: 10, free: 4, ..PoolReport::default() }],
            counters: [("stack".to_owned(), counted(connections))].into(),
            connections: Connections {
                total: connections,
                states: [("ESTABLISHED".to_owned(), connections)].into(),
                list: rates.iter().enumerate().map(conn).collect(),
                ..Connections::default()
            },
            queues: vec![super::super::report::Queue { connections, ..Default::default() }],
            ..Report::default()
        })
    }

    fn dropped(name: &str, count: u64) -> Dropped {
        Dropped { name: name.to_owned(), count, rate: count as f64, ..Dropped::default() }
    }

    #[test]
    fn figures_are_added_and_the_first_of_all_connections_are_listed() {
        let query = Query { limit: 3, sort: Sort::Rate };
        let all = report(vec![part(&[5.0, 1.0], 20), part(&[], 0), part(&[9.0, 2.0, 3.0], 30)], query);
        assert_eq!((all.traffic.sent_bytes, all.traffic.drops), (300, 3));
        // The share of a processor is the process's own, not a thread's.
        assert_eq!((all.rates.send_rate, all.rates.cpu), (24.0, 0.5));
        let dropped: Vec<_> =
            all.dropped.iter().map(|one| (one.name.as_str(), one.count, one.rate)).collect();
        assert_eq!(
            dropped,
            [("after 30", 30, 30.0), ("after 20", 20, 20.0), ("land", 3, 3.0), ("after 0", 0, 0.0)]
        );
        assert_eq!((all.memory.limit, all.memory.peak, all.memory.owners["http"]), (3_000, 21, 9));
        assert_eq!((all.pools.len(), all.pools[0].total, all.pools[0].free), (1, 30, 12));
        assert_eq!(all.counters["stack"]["tcp_established"], 50);
        assert_eq!((all.connections.total, all.connections.states["ESTABLISHED"]), (50, 50));
        let listed: Vec<_> = all.connections.list.iter().map(|conn| (conn.queue, conn.id.as_str())).collect();
        assert_eq!(listed, [(2, "2.0.0"), (0, "0.0.0"), (2, "2.2.0")]);
        let queues: Vec<_> = all.queues.iter().map(|queue| (queue.number, queue.connections)).collect();
        assert_eq!(queues, [(0, 20), (1, 0), (2, 30)]);
    }

    #[test]
    fn the_report_of_one_loop_is_left_as_it_is() {
        let one = part(&[1.0], 1);
        assert!(Arc::ptr_eq(&report(vec![Arc::clone(&one)], Query::default()), &one));
    }
}
