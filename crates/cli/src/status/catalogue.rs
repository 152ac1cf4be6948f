//! Every figure that a server keeps, by the part that keeps it: name, unit and meaning, from one table.
//!
//! The descriptions are the doc comments of the fields ([`linerate_wire::figures!`]). The status report, its metrics,
//! `linerate top`, the statistics line and `docs/status.md` are made from this table.

use linerate_linux::DeviceStats;
use linerate_linux::files::FileCounters;
use linerate_linux::kernel::KernelCounters;
use linerate_nic::{RxStats, TxStats};
use linerate_serve::{ftp, http, iperf3};
use linerate_stack::Counters;
use linerate_wire::figures::{Figure, Figures, Kind, Unit};
use std::fmt::Write as _;

linerate_wire::figures! {
    /// FTP at this moment.
    pub struct FtpNow {
        /// Sessions under way.
        sessions_now [gauge],
    }
}

linerate_wire::figures! {
    /// iperf3 at this moment.
    pub struct Iperf3Now {
        /// Tests under way.
        tests_now [gauge],
    }
}

/// The figures of one part.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Its name in the report and in the names of metrics.
    pub name: &'static str,
    /// What it is, for people.
    pub title: &'static str,
    /// Its figures.
    pub tables: &'static [&'static [Figure]],
}

/// All parts. A server has those of its transport.
pub const GROUPS: [Group; 9] = [
    Group { name: "stack", title: "The TCP/IP stack", tables: &[Counters::FIGURES] },
    Group { name: "receive", title: "The offload layer, receiving", tables: &[RxStats::FIGURES] },
    Group { name: "transmit", title: "The offload layer, sending", tables: &[TxStats::FIGURES] },
    Group {
        name: "device",
        title: "The TAP device, packet socket or AF_XDP socket",
        tables: &[DeviceStats::FIGURES],
    },
    Group {
        name: "kernel",
        title: "The host's sockets (`--device kernel`)",
        tables: &[KernelCounters::FIGURES],
    },
    Group { name: "files", title: "The directory that is served", tables: &[FileCounters::FIGURES] },
    Group {
        name: "http",
        title: "The HTTP server",
        tables: &[http::Counters::FIGURES, http::Gauges::FIGURES],
    },
    Group { name: "ftp", title: "The FTP server", tables: &[ftp::Stats::FIGURES, FtpNow::FIGURES] },
    Group {
        name: "iperf3",
        title: "The iperf3 server",
        tables: &[iperf3::Counters::FIGURES, Iperf3Now::FIGURES],
    },
];

impl Group {
    /// Its figures.
    pub fn figures(&self) -> impl Iterator<Item = &'static Figure> {
        self.tables.iter().copied().flatten()
    }
}

/// The figure of this name in this group.
pub fn find(group: &str, name: &str) -> Option<&'static Figure> {
    let group = GROUPS.iter().find(|known| known.name == group)?;
    group.figures().find(|figure| figure.name == name)
}

/// The values of some figures of a part.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// The part's name.
    pub group: &'static str,
    /// Its figures with their values.
    pub values: Vec<(&'static Figure, u64)>,
}

impl Tally {
    /// The values of a struct of figures.
    pub fn of(group: &'static str, figures: &impl Figures) -> Tally {
        Tally { group, values: figures.figures().collect() }
    }

    /// The same with those of another struct.
    pub fn and(mut self, figures: &impl Figures) -> Tally {
        self.values.extend(figures.figures());
        self
    }
}

/// Adds the figures of another part of the server, which has the same groups and figures or fewer.
pub fn add(to: &mut Vec<Tally>, of: Vec<Tally>) {
    for tally in of {
        let Some(same) = to.iter_mut().find(|known| known.group == tally.group) else {
            to.push(tally);
            continue;
        };
        for (figure, count) in tally.values {
            match same.values.iter_mut().find(|(known, _)| known.name == figure.name) {
                Some((_, sum)) => *sum += count,
                None => same.values.push((figure, count)),
            }
        }
    }
}

/// What all drop counters among `tallies` count, by `group.name`.
pub fn drops(tallies: &[Tally]) -> impl Iterator<Item = ((&'static str, &'static str), u64)> {
    tallies.iter().flat_map(|tally| {
        let drops = tally.values.iter().filter(|(figure, _)| figure.kind == Kind::Drop);
        drops.map(|(figure, count)| ((tally.group, figure.name), *count))
    })
}

/// How a reason to drop something is called for people: without the words that all of them have.
pub fn reason(group: &str, name: &str) -> String {
    let name = name.strip_prefix("drop_").unwrap_or(name).replace('_', " ");
    if group == "stack" { name } else { format!("{group} {name}") }
}

/// The name of a figure as a metric (OpenMetrics): drops are one family with their reasons as labels; a unit stands at
/// the end; counters get `_total` besides where they are samples.
pub fn metric_name(group: &str, figure: &Figure) -> String {
    match (figure.kind, figure.unit) {
        (Kind::Drop, _) => "linerate_drops".to_owned(),
        (_, Unit::Count) => format!("linerate_{group}_{}", figure.name),
        (_, Unit::Bytes) => {
            let words: Vec<&str> = figure.name.split('_').filter(|word| *word != "bytes").collect();
            let middle = if words.is_empty() { String::new() } else { format!("_{}", words.join("_")) };
            format!("linerate_{group}{middle}_bytes")
        }
    }
}

/// The reason of a drop as a label.
pub fn metric_reason(figure: &Figure) -> &'static str {
    figure.name.strip_prefix("drop_").unwrap_or(figure.name)
}

/// The tables of `docs/status.md`.
pub fn markdown() -> String {
    let mut text = String::new();
    for group in &GROUPS {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "### `{}`: {}\n", group.name, group.title);
        let _ = writeln!(text, "| name | kind | unit | meaning | metric |\n|---|---|---|---|---|");
        for figure in group.figures() {
            let kind = match figure.kind {
                Kind::Counter => "counter",
                Kind::Drop => "drop",
                Kind::Gauge => "gauge",
            };
            let unit = if figure.unit == Unit::Bytes { "bytes" } else { "" };
            let total = if figure.kind == Kind::Gauge { "" } else { "_total" };
            let labels = match figure.kind {
                Kind::Drop => format!("{{group=\"{}\",reason=\"{}\"}}", group.name, metric_reason(figure)),
                _ => String::new(),
            };
            let metric = format!("{}{total}{labels}", metric_name(group.name, figure));
            let _ = writeln!(
                text,
                "| `{}` | {kind} | {unit} | {} | `{metric}` |",
                figure.name,
                figure.description()
            );
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_figure_has_a_name_of_its_own_and_a_sentence() {
        for group in &GROUPS {
            let mut names = BTreeSet::new();
            for figure in group.figures() {
                let (name, text) = (figure.name, figure.description());
                assert!(names.insert(name), "{}.{name} is there twice", group.name);
                assert!(text.len() > 8 && text.ends_with('.'), "{}.{name}: {text:?}", group.name);
                assert!(
                    !text.contains(['|', '[', '\n']),
                    "{}.{name} would break a table: {text}",
                    group.name
                );
                let says_bytes = name.split('_').any(|word| word == "bytes");
                assert!(!says_bytes || figure.unit == Unit::Bytes, "{}.{name} counts bytes", group.name);
            }
        }
    }

    #[test]
    fn metrics_have_names_of_their_own() {
        let mut names = BTreeSet::new();
        for group in &GROUPS {
            for figure in group.figures() {
                let name = metric_name(group.name, figure);
                let label = if figure.kind == Kind::Drop { metric_reason(figure) } else { "" };
                assert!(names.insert((name.clone(), group.name, label)), "{name} {label}");
                let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
                assert!(name.chars().all(fits) && !name.ends_with("_total"), "{name}");
            }
        }
        let name = |group, name| metric_name(group, find(group, name).unwrap());
        assert_eq!(name("stack", "tcp_bytes_in"), "linerate_stack_tcp_in_bytes");
        assert_eq!(name("receive", "bytes"), "linerate_receive_bytes");
        assert_eq!(name("http", "content_sent"), "linerate_http_content_sent_bytes");
        assert_eq!(name("http", "accepted"), "linerate_http_accepted");
        assert_eq!(name("stack", "drop_vlan"), "linerate_drops");
    }

    #[test]
    fn reasons_are_words() {
        assert_eq!(reason("stack", "drop_tcp_no_memory"), "tcp no memory");
        assert_eq!(reason("device", "rx_cut"), "device rx cut");
    }

    #[test]
    fn the_documentation_has_these_tables() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/status.md");
        let page = std::fs::read_to_string(path).expect("docs/status.md");
        let (begin, end) = ("<!-- figures: begin -->\n\n", "<!-- figures: end -->");
        let (head, rest) = page.split_once(begin).expect("the mark where the tables begin");
        let (tables, tail) = rest.split_once(end).expect("the mark where the tables end");
        if std::env::var_os("LINERATE_WRITE_DOCS").is_some() {
            std::fs::write(path, format!("{head}{begin}{}{end}{tail}", markdown())).expect("written");
            return;
        }
        assert!(
            tables == markdown(),
            "docs/status.md is out of date: LINERATE_WRITE_DOCS=1 cargo test -p linerate-cli catalogue"
        );
    }
}
