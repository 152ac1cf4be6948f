//! What `top` knows: the last two reports, what grows between them, and what the user looks at.

use crate::status::catalogue;
use crate::status::report::{Conn, Report};

/// What the connections are sorted by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// Payload per second, both directions.
    #[default]
    Rate,
    /// Segments sent again.
    Again,
    /// Round-trip time.
    RoundTrip,
    /// Memory held.
    Memory,
    /// The client's address.
    Client,
}

impl Order {
    /// The next one.
    pub const fn next(self) -> Order {
        match self {
            Order::Rate => Order::Again,
            Order::Again => Order::RoundTrip,
            Order::RoundTrip => Order::Memory,
            Order::Memory => Order::Client,
            Order::Client => Order::Rate,
        }
    }

    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Order::Rate => "rate",
            Order::Again => "sent again",
            Order::RoundTrip => "round trip",
            Order::Memory => "memory",
            Order::Client => "client",
        }
    }
}

/// Totals per second between the last two reports.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Totals {
    /// Bits received.
    pub receive_rate: f64,
    /// Bits sent.
    pub send_rate: f64,
    /// Packets received.
    pub received_packets: f64,
    /// Packets sent.
    pub sent_packets: f64,
    /// Segments sent again.
    pub retransmits: f64,
    /// Drops of all reasons.
    pub drops: f64,
    /// Share of one processor.
    pub cpu: f64,
}

/// A reason to drop something.
#[derive(Clone, PartialEq, Debug)]
pub struct Drops {
    /// The part that counts it, and its name there.
    pub figure: (&'static str, &'static str),
    /// In words.
    pub reason: String,
    /// Since the server was started.
    pub total: u64,
    /// Per second between the last two reports.
    pub growth: f64,
}

/// The state of the view.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    /// Where the server is.
    pub address: String,
    report: Option<Report>,
    before: Option<Report>,
    /// Why the last look failed, if it did.
    pub error: Option<String>,
    /// New reports are not shown.
    pub is_paused: bool,
    /// What connections are sorted by.
    pub order: Order,
    /// The connection that is looked at, by its id.
    selected: Option<String>,
}

impl Watch {
    /// A view of the server at `address`, without a report yet.
    pub fn new(address: String) -> Watch {
        Watch { address, ..Watch::default() }
    }

    /// Takes the outcome of a look.
    pub fn update(&mut self, found: Result<Report, String>) {
        if self.is_paused {
            return;
        }
        match found {
            Ok(report) => {
                self.error = None;
                // Another server, or the same one started again: its counters began anew.
                let restarted = self.report.as_ref().is_some_and(|before| before.uptime > report.uptime);
                self.before = if restarted { None } else { self.report.take() };
                self.report = Some(report);
            }
            Err(error) => self.error = Some(error),
        }
    }

    /// The last report.
    pub fn report(&self) -> Option<&Report> {
        self.report.as_ref()
    }

    /// Seconds between the last two reports, by the server's clock that nobody sets.
    fn span(&self) -> Option<f64> {
        let span = self.report.as_ref()?.uptime - self.before.as_ref()?.uptime;
        (span > 0.0).then_some(span)
    }

    /// Rates between the last two reports; without two, none.
    pub fn totals(&self) -> Option<Totals> {
        let (now, before, span) = (self.report.as_ref()?, self.before.as_ref()?, self.span()?);
        let (a, b) = (&before.traffic, &now.traffic);
        let rate = |a: u64, b: u64| b.saturating_sub(a) as f64 / span;
        Some(Totals {
            receive_rate: rate(a.received_bytes, b.received_bytes) * 8.0,
            send_rate: rate(a.sent_bytes, b.sent_bytes) * 8.0,
            received_packets: rate(a.received_packets, b.received_packets),
            sent_packets: rate(a.sent_packets, b.sent_packets),
            retransmits: rate(a.retransmits, b.retransmits),
            drops: rate(a.drops, b.drops),
            cpu: (now.process.cpu - before.process.cpu).max(0.0) / span,
        })
    }

    /// Reasons for which anything was dropped: those that grow first, then the most frequent.
    pub fn drops(&self) -> Vec<Drops> {
        let Some(report) = &self.report else { return Vec::new() };
        let before = self.before.as_ref().map(Report::drops).unwrap_or_default();
        let span = self.span();
        let mut drops: Vec<Drops> = Vec::new();
        for (figure, total) in report.drops().into_iter().filter(|(_, total)| *total > 0) {
            let known = before.iter().find(|(other, _)| *other == figure);
            let growth = match (known, span) {
                (Some((_, known)), Some(span)) => total.saturating_sub(*known) as f64 / span,
                _ => 0.0,
            };
            let reason = catalogue::reason(figure.0, figure.1);
            drops.push(Drops { figure, reason, total, growth });
        }
        drops.sort_by(|a, b| b.growth.total_cmp(&a.growth).then(b.total.cmp(&a.total)));
        drops
    }

    /// The connections in the order that was chosen.
    pub fn rows(&self) -> Vec<&Conn> {
        let Some(report) = &self.report else { return Vec::new() };
        let mut rows: Vec<&Conn> = report.connections.list.iter().collect();
        let key = |conn: &Conn| match self.order {
            Order::Rate => conn.send_rate + conn.receive_rate,
            Order::Again => conn.retransmits as f64,
            Order::RoundTrip => conn.rtt.unwrap_or_default(),
            Order::Memory => conn.memory as f64,
            Order::Client => 0.0,
        };
        // The sort is stable: those that are equal stay in the order of the report.
        match self.order {
            Order::Client => rows.sort_by(|a, b| a.remote.cmp(&b.remote)),
            _ => rows.sort_by(|a, b| key(b).total_cmp(&key(a))),
        }
        rows
    }

    /// Where the selected connection is among [`Watch::rows`]; the first, if it is gone.
    pub fn selected(&self) -> Option<usize> {
        let rows = self.rows();
        let found = rows.iter().position(|conn| Some(&conn.id) == self.selected.as_ref());
        found.or((!rows.is_empty()).then_some(0))
    }

    /// Moves the selection by so many rows.
    pub fn select(&mut self, by: isize) {
        let rows = self.rows();
        let at = self.selected().unwrap_or_default();
        let at = at.saturating_add_signed(by).min(rows.len().saturating_sub(1));
        self.selected = rows.get(at).map(|conn| conn.id.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::report::Traffic;

    fn conn(id: &str, rate: f64, rtt: f64) -> Conn {
        Conn {
            id: id.to_owned(),
            remote: format!("10.0.0.{}", 9 - rtt as u8),
            send_rate: rate,
            rtt: Some(rtt),
            ..Conn::default()
        }
    }

    fn report(time: f64, list: Vec<Conn>) -> Report {
        let mut report = Report { time, uptime: time, ..Report::default() };
        report.traffic = Traffic { sent_bytes: (time * 1_000.0) as u64, ..Traffic::default() };
        let drops = [("drop_vlan", 10.0), ("drop_land", time), ("drop_martian_source", 0.0)];
        let drops = drops.map(|(name, count)| (name.to_owned(), count as u64)).into();
        report.counters.insert("stack".to_owned(), drops);
        report.connections.list = list;
        report
    }

    fn ids(watch: &Watch) -> Vec<&str> {
        watch.rows().iter().map(|conn| conn.id.as_str()).collect()
    }

    #[test]
    fn rates_and_growth_need_two_reports() {
        let mut watch = Watch::new("a".to_owned());
        watch.update(Ok(report(5.0, vec![])));
        assert_eq!((watch.totals(), watch.drops()[0].reason.as_str()), (None, "vlan"));
        watch.update(Ok(report(7.0, vec![])));
        assert_eq!(watch.totals().unwrap().send_rate, 8_000.0);
        let drops = watch.drops();
        assert_eq!(drops.len(), 2, "what never happened is not listed");
        assert_eq!((drops[0].reason.as_str(), drops[0].growth, drops[0].total), ("land", 1.0, 7));
        assert_eq!(drops[1].growth, 0.0);
        // A server that was started again has no past.
        watch.update(Ok(report(1.0, vec![])));
        assert_eq!(watch.totals(), None);
    }

    #[test]
    fn a_clock_that_is_set_does_not_change_rates() {
        let mut watch = Watch::new("a".to_owned());
        watch.update(Ok(report(5.0, vec![])));
        let later = report(6.0, vec![]);
        watch.update(Ok(Report { time: later.time + 60.0, ..later }));
        assert_eq!(watch.totals().unwrap().send_rate, 8_000.0);
        assert_eq!(watch.drops()[0].growth, 1.0);
    }

    #[test]
    fn the_selection_stays_with_its_connection() {
        let mut watch = Watch::new("a".to_owned());
        watch.select(1);
        assert_eq!(watch.selected(), None);
        let list = || vec![conn("a", 1.0, 3.0), conn("b", 3.0, 1.0), conn("c", 2.0, 2.0)];
        watch.update(Ok(report(1.0, list())));
        assert_eq!((ids(&watch), watch.selected()), (vec!["b", "c", "a"], Some(0)));
        watch.select(1);
        watch.order = Order::RoundTrip;
        assert_eq!((ids(&watch), watch.selected()), (vec!["a", "c", "b"], Some(1)));
        watch.order = Order::Client;
        assert_eq!(ids(&watch), ["a", "c", "b"]);
        watch.select(99);
        assert_eq!(watch.selected(), Some(2));
        watch.select(-99);
        assert_eq!(watch.selected(), Some(0));
        watch.update(Ok(report(2.0, vec![conn("z", 1.0, 1.0)])));
        assert_eq!(watch.selected(), Some(0), "it is gone");
    }

    #[test]
    fn a_pause_keeps_what_is_shown_and_an_error_keeps_the_last_report() {
        let mut watch = Watch::new("a".to_owned());
        watch.update(Ok(report(1.0, vec![])));
        watch.update(Err("gone".to_owned()));
        assert!(watch.error.is_some() && watch.report().is_some());
        watch.is_paused = true;
        watch.update(Ok(report(2.0, vec![])));
        assert_eq!(watch.report().unwrap().time, 1.0);
        let all = std::iter::successors(Some(Order::Rate), |order| Some(order.next())).take(6);
        assert_eq!(all.last(), Some(Order::Rate));
    }
}
