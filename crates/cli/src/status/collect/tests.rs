//! Reports of a transport that is made up.

use super::*;
use linerate_transport::ConnInfo;

#[derive(Default)]
struct Fake {
    conns: Vec<(ConnSummary, LimitTimes)>,
    /// Most that were looked at closely.
    details: std::cell::Cell<usize>,
    /// Bytes received and frames dropped beyond the first ones.
    more: u64,
}

fn id(index: u32) -> ConnId {
    ConnId::new(index, 0)
}

fn conn(index: u32, sent: u64, received: u64) -> (ConnSummary, LimitTimes) {
    let summary = ConnSummary {
        id: id(index),
        owner: (index != 9).then_some(Owner(1)),
        state: "established",
        sent,
        received,
        memory: 100 * index as usize,
        limited_by: Some(LimitCause::Congestion),
    };
    let mut times = LimitTimes::default();
    times.ns[LimitCause::Application as usize] = 1_000_000_000;
    (summary, times)
}

impl Observed for Fake {
    fn transport(&self) -> &'static str {
        "own"
    }

    fn tallies(&mut self) -> Vec<Tally> {
        let counters =
            linerate_stack::Counters { drop_vlan: 3 + self.more, frames_in: 7, ..Default::default() };
        vec![Tally::of("stack", &counters)]
    }

    fn traffic(&mut self) -> Traffic {
        Traffic { received_bytes: 5 + self.more, ..Traffic::default() }
    }

    fn memory(&self) -> Memory {
        Memory { limit: 1_000, used: 10, ..Memory::default() }
    }

    fn pools(&self) -> Vec<PoolReport> {
        vec![live_pool("pages", &Pool::new(4, 10))]
    }

    fn survey(&self, visit: &mut dyn FnMut(ConnSummary)) {
        self.conns.iter().for_each(|(summary, _)| visit(*summary));
    }

    fn survey_udp(&self, visit: &mut dyn FnMut(Owner, usize)) {
        visit(Owner(1), 7);
    }

    fn detail(&self, id: ConnId) -> Option<ConnDetail> {
        self.details.set(self.details.get() + 1);
        let (_, limits) = self.conns.iter().find(|(summary, _)| summary.id == id)?;
        let info = ConnInfo {
            local: "192.168.1.4:80".parse().unwrap(),
            remote: "192.168.1.1:40000".parse().unwrap(),
            rtt: Some(Duration::from_millis(10)),
            rtt_var: None,
            rto: None,
            send_mss: 1448,
            congestion_window: 14_480,
            slow_start_threshold: None,
            send_window: 65_535,
            receive_window: 65_535,
            in_flight: 0,
            bytes_acked: 0,
            bytes_received: 0,
            retransmits: 0,
            bytes_retransmitted: 0,
            duplicates_reported: 0,
            reordering_seen: false,
            segments_sent: 0,
            path_mtu: 1_500,
            limits: *limits,
        };
        Some(ConnDetail { info, state: "established", queued: 1, unread: 0 })
    }
}

fn report(collector: &mut Collector, fake: &mut Fake, now_ms: u64, query: Query) -> Report {
    let around = Around {
        now: Instant::from_millis(now_ms),
        wall: Duration::from_secs(1_800_000_000),
        memory_peak: 99,
        tallies: vec![Tally::of("files", &linerate_linux::files::FileCounters::default())],
        server_name: &|_| "http",
    };
    collector.report(fake, around, query)
}

#[test]
fn totals_memory_and_counters_are_those_of_the_parts() {
    let mut fake = Fake { conns: vec![conn(1, 0, 0), conn(9, 0, 0)], ..Fake::default() };
    let mut collector = Collector::new(Instant::from_millis(500), "a device".to_owned());
    let report = report(&mut collector, &mut fake, 2_500, Query::default());
    assert_eq!((report.schema, report.uptime, report.transport.as_str()), (SCHEMA, 2.0, "own"));
    assert_eq!((report.traffic.received_bytes, report.traffic.drops), (5, 3));
    assert_eq!((report.memory.used, report.memory.peak), (10, 99));
    // A datagram's 7 bytes and a connection's 100; what is closing is nobody's.
    assert_eq!(report.memory.owners, [("closing".to_owned(), 900), ("http".to_owned(), 107)].into());
    assert_eq!((report.counters["stack"]["frames_in"], report.counters["files"]["accepted"]), (7, 0));
    assert_eq!(report.drops().iter().find(|(name, _)| *name == ("stack", "drop_vlan")).unwrap().1, 3);
    assert_eq!((report.pools[0].total, report.connections.total), (4, 2));
    assert_eq!(report.connections.limited["congestion window"], 2);
    assert_eq!(report.connections.servers["closing"], 1);
}

#[test]
fn rates_are_of_the_time_between_two_looks() {
    let mut fake = Fake { conns: vec![conn(1, 1_000, 0)], ..Fake::default() };
    let mut collector = Collector::new(Instant::ZERO, String::new());
    let first = report(&mut collector, &mut fake, 1_000, Query::default());
    // Nothing is known of before: the mean since it was established, a second ago.
    assert_eq!(first.connections.list[0].send_rate, 8_000.0);
    fake.conns[0].0.sent += 500;
    fake.conns[0].0.received += 50;
    fake.conns[0].1.ns[LimitCause::Congestion as usize] += 400_000_000;
    fake.conns[0].1.ns[LimitCause::Application as usize] += 100_000_000;
    let second = report(&mut collector, &mut fake, 1_500, Query::default());
    let conn = &second.connections.list[0];
    assert_eq!((conn.send_rate, conn.receive_rate, conn.span), (8_000.0, 800.0, 0.5));
    assert_eq!((conn.limited_by.as_str(), conn.shares["congestion window"]), ("congestion window", 0.8));
    assert_eq!((conn.age, conn.limits["application"]), (1.5, 1.1));
    // One that is new since has its rate from its own age.
    fake.conns.push(super::tests::conn(2, 1_000, 0));
    fake.conns[1].1.ns[LimitCause::Application as usize] = 250_000_000;
    let third = report(&mut collector, &mut fake, 2_000, Query::default());
    let new = third.connections.list.iter().find(|conn| conn.id == "2.0").unwrap();
    assert_eq!((new.send_rate, new.span), (32_000.0, 0.25));
}

#[test]
fn what_limits_is_of_the_time_since_the_last_close_look() {
    let mut fake = Fake { conns: vec![conn(1, 1_000, 0)], ..Fake::default() };
    let mut collector = Collector::new(Instant::ZERO, String::new());
    let nobody = Query { limit: 0, sort: Sort::Rate };
    report(&mut collector, &mut fake, 1_000, Query::default());
    // Somebody else asks, for totals only.
    report(&mut collector, &mut fake, 1_500, nobody);
    fake.conns[0].1.ns[LimitCause::Congestion as usize] += 900_000_000;
    fake.conns[0].1.ns[LimitCause::Application as usize] += 100_000_000;
    let asked = report(&mut collector, &mut fake, 2_000, Query::default());
    let seen = &asked.connections.list[0];
    assert_eq!((seen.limited_by.as_str(), seen.shares["congestion window"]), ("congestion window", 0.9));
    // Twice, so that nobody knows what it was.
    report(&mut collector, &mut fake, 2_500, nobody);
    report(&mut collector, &mut fake, 3_000, nobody);
    fake.conns[0].0.sent += 500;
    let asked = report(&mut collector, &mut fake, 3_500, Query::default());
    let seen = &asked.connections.list[0];
    assert_eq!((seen.limited_by.as_str(), seen.bottleneck.as_str()), ("", "nothing"));
    assert!(seen.shares.values().all(|share| *share == 0.0), "{:?}", seen.shares);
}

#[test]
fn rates_of_the_whole_and_of_what_is_dropped_are_of_the_same_time() {
    let mut fake = Fake::default();
    let mut collector = Collector::new(Instant::ZERO, String::new());
    // 5 bytes and 3 drops since the start, two seconds ago.
    let first = report(&mut collector, &mut fake, 2_000, Query::default());
    assert_eq!((first.rates.span, first.rates.receive_rate, first.rates.drops), (2.0, 20.0, 1.5));
    assert!(first.rates.cpu > 0.0 && first.process.cpu >= first.queues[0].cpu);
    fake.more = 10;
    let second = report(&mut collector, &mut fake, 2_500, Query::default());
    assert_eq!((second.rates.span, second.rates.receive_rate, second.rates.drops), (0.5, 160.0, 20.0));
    assert_eq!(second.queues[0].rates.receive_rate, 160.0);
    let dropped: Vec<_> =
        second.dropped.iter().map(|one| (one.reason.as_str(), one.count, one.rate)).collect();
    assert_eq!(dropped, [("vlan", 13, 20.0)], "what is 0 is not there");
    assert_eq!(second.dropped[0].meaning, "Of another VLAN.");
}

#[test]
fn of_ten_thousand_only_those_that_are_listed_are_looked_at_closely() {
    let conns: Vec<_> = (0..10_000).map(|index| conn(index, u64::from(index % 1_000), 0)).collect();
    let mut fake = Fake { conns, ..Fake::default() };
    let mut collector = Collector::new(Instant::ZERO, String::new());
    let list = |report: &Report| {
        let ids = report.connections.list.iter().map(|conn| conn.id.split('.').next().unwrap().to_owned());
        ids.collect::<Vec<String>>()
    };
    let by_rate = report(&mut collector, &mut fake, 1_000, Query { limit: 3, sort: Sort::Rate });
    assert_eq!(list(&by_rate), ["9999", "8999", "7999"]);
    assert_eq!((fake.details.get(), by_rate.connections.total), (3, 10_000));
    let by_memory = report(&mut collector, &mut fake, 1_100, Query { limit: 2, sort: Sort::Memory });
    assert_eq!(list(&by_memory), ["9999", "9998"]);
    let none = report(&mut collector, &mut fake, 1_200, Query { limit: 0, sort: Sort::Rate });
    assert!(none.connections.list.is_empty() && none.connections.total == 10_000);
    assert_eq!(fake.details.get(), 5);
}
