//! Makes the report, in the loop: one walk over all connections, and a close look at the few that are listed.

use super::catalogue::Tally;
use super::live::{self, Seen};
use super::query::{Query, Sort};
use super::rates::{self, History, Look, Totals};
use super::report::{
    Conn, Connections, Dropped, Memory, PoolReport, Process, Queue, Rates, Report, SCHEMA, Traffic,
};
use linerate_lab::verdict::{cause_name, main_limit};
use linerate_linux::cpu;
use linerate_nic::{Pool, PoolStats};
use linerate_transport::{ConnDetail, ConnId, ConnSummary, LimitCause, LimitTimes, Owner};
use linerate_wire::units::Instant;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// What a transport tells of itself.
pub trait Observed {
    /// `own` or `kernel`.
    fn transport(&self) -> &'static str;

    /// Its counters.
    fn tallies(&mut self) -> Vec<Tally>;

    /// Its totals; [`Traffic::drops`] is not asked for.
    fn traffic(&mut self) -> Traffic;

    /// Its memory; the owners are not asked for.
    fn memory(&self) -> Memory;

    /// Its pools.
    fn pools(&self) -> Vec<PoolReport>;

    /// Shows every connection.
    fn survey(&self, visit: &mut dyn FnMut(ConnSummary));

    /// Shows what datagrams wait, by owner and bytes.
    fn survey_udp(&self, _visit: &mut dyn FnMut(Owner, usize)) {}

    /// Looks at one connection closely.
    fn detail(&self, id: ConnId) -> Option<ConnDetail>;
}

/// A pool as the report has it.
pub fn pool(name: &str, stats: PoolStats) -> PoolReport {
    PoolReport {
        name: name.to_owned(),
        buffer: stats.buffer_size as u64,
        total: stats.total as u64,
        free: stats.free as u64,
        used: stats.total.saturating_sub(stats.free) as u64,
        low_water: stats.low_water as u64,
        exhausted: stats.exhausted,
    }
}

/// The same of a live pool.
pub fn live_pool(name: &str, of: &Pool) -> PoolReport {
    pool(name, of.stats())
}

/// What the loop knows beside the transport.
pub struct Around<'a> {
    /// The time.
    pub now: Instant,
    /// The same by the wall clock, since 1970-01-01 UTC.
    pub wall: Duration,
    /// The most memory that sockets have held.
    pub memory_peak: u64,
    /// Counters of files and servers.
    pub tallies: Vec<Tally>,
    /// What a server is called by the owner of its sockets.
    pub server_name: &'a dyn Fn(Owner) -> &'static str,
}

/// Makes reports, and remembers what rates are taken from.
#[derive(Debug)]
pub struct Collector {
    started: Instant,
    device: String,
    history: History,
}

impl Collector {
    /// For a server that was started at `started` on `device`.
    pub fn new(started: Instant, device: String) -> Collector {
        Collector { started, device, history: History::default() }
    }

    /// How the device is described from now on.
    pub fn set_device(&mut self, device: String) {
        self.device = device;
    }

    /// The report at this time.
    pub fn report(&mut self, of: &mut dyn Observed, around: Around<'_>, query: Query) -> Report {
        let mut tallies = of.tallies();
        tallies.extend(around.tallies.iter().cloned());
        let drops = rates::drops(&tallies);
        let traffic = Traffic { drops: drops.values().sum(), ..of.traffic() };
        let process = cpu::process_time_ns() as f64 / 1e9;
        let thread = cpu::thread_time_ns() as f64 / 1e9;
        let totals = Totals { traffic, process, thread, drops };
        let mut memory = of.memory();
        memory.peak = around.memory_peak.max(memory.used);
        of.survey_udp(&mut |owner, held| {
            if held == 0 {
                return;
            }
            *memory.owners.entry((around.server_name)(owner).to_owned()).or_default() += held as u64;
        });
        let uptime = around.now.saturating_since(self.started).as_secs_f64();
        let (rates, thread_share, dropped) = self.passing(&totals, around.now, uptime);
        let connections = self.connections(of, &around, query, totals, &mut memory.owners);
        let queue = Queue {
            number: 0,
            connections: connections.total,
            received_bytes: traffic.received_bytes,
            sent_bytes: traffic.sent_bytes,
            received_packets: traffic.received_packets,
            sent_packets: traffic.sent_packets,
            cpu: thread,
            rates: Rates { cpu: thread_share, ..rates },
        };
        Report {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            time: around.wall.as_secs_f64(),
            uptime,
            transport: of.transport().to_owned(),
            device: self.device.clone(),
            process: Process { cpu: process, resident: cpu::resident_bytes(), report: 0.0 },
            traffic,
            rates,
            memory,
            pools: of.pools(),
            counters: tallies.iter().map(counted).collect(),
            dropped,
            connections,
            queues: vec![queue],
        }
    }

    /// What passes, the share of a processor that this thread takes, and what is dropped: since a look before, or since
    /// the start.
    fn passing(&self, totals: &Totals, now: Instant, uptime: f64) -> (Rates, f64, Vec<Dropped>) {
        let start = Totals::default();
        let (before, span) = match self.history.base(now) {
            Some(look) => (&look.totals, now.saturating_since(look.at).as_secs_f64()),
            None => (&start, uptime.max(1e-3)),
        };
        let thread_share = (totals.thread - before.thread).max(0.0) / span;
        (totals.since(before, span), thread_share, totals.dropped_since(before, span))
    }

    fn connections(
        &mut self,
        of: &dyn Observed,
        around: &Around<'_>,
        query: Query,
        totals: Totals,
        owners: &mut BTreeMap<String, u64>,
    ) -> Connections {
        let now = around.now;
        let base = self.history.base(now);
        let keeps = self.history.wants(now);
        let mut look = Look { at: now, totals, ..Look::default() };
        let mut all = Vec::new();
        let (mut states, mut servers, mut limited) = (Counts::new(), Counts::new(), Counts::new());
        of.survey(&mut |conn| {
            let server = conn.owner.map_or("closing", around.server_name);
            *states.entry(conn.state).or_default() += 1;
            *servers.entry(server).or_default() += 1;
            if let Some(cause) = conn.limited_by {
                *limited.entry(cause_name(cause)).or_default() += 1;
            }
            if conn.memory > 0 {
                *owners.entry(server.to_owned()).or_default() += conn.memory as u64;
            }
            if keeps {
                look.moved.insert(conn.id, (conn.sent, conn.received));
            }
            if query.limit > 0 {
                let before = base.and_then(|look| look.moved.get(&conn.id));
                all.push(Row { conn, server, before: before.copied() });
            }
        });
        let total = states.values().sum();
        first(&mut all, query);
        let mut list = Vec::new();
        for row in &all {
            let Some(detail) = of.detail(row.conn.id) else { continue };
            if keeps {
                look.limits.insert(row.conn.id, detail.info.limits);
            }
            let limits = self.history.limits(now, row.conn.id);
            list.push(describe(row, &detail, of.transport() == "kernel", base, limits, now));
        }
        if keeps {
            self.history.keep(look);
        }
        let named = |counts: Counts| counts.into_iter().map(|(name, n)| (name.to_owned(), n)).collect();
        Connections {
            total,
            states: named(states),
            servers: named(servers),
            limited: named(limited),
            sort: query.sort.name().to_owned(),
            list,
        }
    }
}

type Counts = HashMap<&'static str, u64>;

fn counted(tally: &Tally) -> (String, BTreeMap<String, u64>) {
    let values = tally.values.iter().map(|(figure, value)| (figure.name.to_owned(), *value));
    (tally.group.to_owned(), values.collect())
}

/// A connection on the walk.
struct Row {
    conn: ConnSummary,
    server: &'static str,
    /// Bytes sent and received at the look that rates are taken from.
    before: Option<(u64, u64)>,
}

impl Row {
    /// What moved since that look; since the start for one that is new.
    fn moved(&self) -> (u64, u64) {
        let (sent, received) = self.before.unwrap_or_default();
        (self.conn.sent.saturating_sub(sent), self.conn.received.saturating_sub(received))
    }

    fn key(&self, sort: Sort) -> (u64, u64, u64) {
        let (sent, received) = self.moved();
        let (rate, bytes) = (sent + received, self.conn.sent + self.conn.received);
        let memory = self.conn.memory as u64;
        match sort {
            Sort::Rate => (rate, bytes, memory),
            Sort::Bytes => (bytes, rate, memory),
            Sort::Memory => (memory, rate, bytes),
        }
    }
}

/// Keeps the first of `all`, in their order: without sorting the others, of which there may be many.
fn first(all: &mut Vec<Row>, query: Query) {
    let order = |a: &Row, b: &Row| {
        let by_key = b.key(query.sort).cmp(&a.key(query.sort));
        by_key.then_with(|| a.conn.id.cmp(&b.conn.id))
    };
    if all.len() > query.limit && query.limit > 0 {
        all.select_nth_unstable_by(query.limit - 1, order);
        all.truncate(query.limit);
    }
    all.sort_unstable_by(order);
}

/// Time by cause since it was `before`; since the connection was established where it is new, and nothing where it was there
/// and nobody looked.
fn recent(times: &LimitTimes, before: Option<&LimitTimes>, is_new: bool) -> LimitTimes {
    match before {
        Some(before) => {
            let mut recent = *times;
            for (now, then) in recent.ns.iter_mut().zip(before.ns) {
                *now = now.saturating_sub(then);
            }
            recent
        }
        None if is_new => *times,
        None => LimitTimes::default(),
    }
}

fn describe(
    row: &Row,
    detail: &ConnDetail,
    is_kernel: bool,
    base: Option<&Look>,
    limits: Option<&LimitTimes>,
    now: Instant,
) -> Conn {
    let ConnDetail { info, state, queued, unread } = detail;
    let age = info.limits.ns.iter().sum::<u64>() as f64 / 1e9;
    let span = match (base, row.before) {
        (Some(look), Some(_)) => now.saturating_since(look.at).as_secs_f64(),
        // New since that look, so that its bytes came since then at the earliest.
        (Some(look), None) => now.saturating_since(look.at).as_secs_f64().min(age.max(1e-3)),
        (None, _) => age.max(1e-3),
    };
    let (sent, received) = row.moved();
    let (send_rate, receive_rate) = (sent as f64 * 8.0 / span, received as f64 * 8.0 / span);
    let times = recent(&info.limits, limits, row.before.is_none());
    let cause = main_limit(&times);
    let verdict = live::of(&Seen { detail, is_kernel, send_rate, receive_rate, cause });
    let total = times.ns.iter().sum::<u64>().max(1) as f64;
    let by_cause = |times: &LimitTimes, scale: f64| {
        let named =
            |cause: LimitCause| (cause_name(cause).to_owned(), times.ns[cause as usize] as f64 / scale);
        LimitCause::ALL.into_iter().map(named).collect()
    };
    let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
    Conn {
        id: format!("{}.{}", row.conn.id.index(), row.conn.id.generation()),
        queue: 0,
        server: row.server.to_owned(),
        local: info.local.to_string(),
        remote: info.remote.to_string(),
        state: (*state).to_owned(),
        age,
        span,
        send_rate,
        receive_rate,
        bytes_acked: info.bytes_acked,
        bytes_received: info.bytes_received,
        segments_sent: info.segments_sent,
        retransmits: info.retransmits,
        bytes_retransmitted: info.bytes_retransmitted,
        duplicates_reported: info.duplicates_reported,
        reordering_seen: info.reordering_seen,
        rtt: seconds(info.rtt),
        rtt_var: seconds(info.rtt_var),
        rto: seconds(info.rto),
        mss: info.send_mss,
        path_mtu: info.path_mtu,
        cwnd: info.congestion_window,
        ssthresh: info.slow_start_threshold,
        send_window: info.send_window,
        receive_window: info.receive_window,
        in_flight: info.in_flight,
        queued: *queued,
        unread: *unread,
        memory: row.conn.memory as u64,
        limits: by_cause(&info.limits, 1e9),
        shares: by_cause(&times, total),
        limited_by: cause.map_or("", |(cause, _)| cause_name(cause)).to_owned(),
        bottleneck: verdict.bottleneck.to_owned(),
        because: verdict.because,
        advice: verdict.advice,
    }
}

#[cfg(test)]
mod tests;
