//! The sections of the page.

use super::slots::{As, Data, bar, meter, rows, shown, slot};
use linerate_lab::report::html::escape;
use linerate_lab::verdict::cause_name;
use linerate_transport::LimitCause;
use std::fmt::Write as _;

/// A value in large, and what it is.
struct Tile(&'static str, &'static str, As);

const TILES: [Tile; 8] = [
    Tile("in", "rates.receive_rate", As::Rate),
    Tile("out", "rates.send_rate", As::Rate),
    Tile("connections", "connections.total", As::Count),
    Tile("of a processor", "rates.cpu", As::Share),
    Tile("resident memory", "process.resident", As::Bytes),
    Tile("segments sent again", "rates.retransmits", As::PerSecond),
    Tile("dropped, refused, given up", "rates.drops", As::PerSecond),
    Tile("for making this report", "process.report", As::Span),
];

/// The figures that matter most.
pub fn tiles(out: &mut String, data: Data<'_>) {
    out.push_str("<section aria-label=\"Now\"><div class=\"tiles\">");
    for Tile(name, path, how) in TILES {
        out.push_str("<div>");
        slot(out, "b", "", path, how, data);
        let _ = write!(out, "<span>{name}</span></div>");
    }
    out.push_str("</div><p class=\"note\">Since the start: ");
    for (index, (name, path, how)) in [
        ("received", "traffic.received_bytes", As::Bytes),
        ("sent", "traffic.sent_bytes", As::Bytes),
        ("segments sent again", "traffic.retransmits", As::Count),
        ("dropped, refused or given up", "traffic.drops", As::Count),
        ("processor time", "process.cpu", As::Span),
    ]
    .into_iter()
    .enumerate()
    {
        let _ = write!(out, "{}{name} ", if index > 0 { ", " } else { "" });
        slot(out, "span", "", path, how, data);
    }
    out.push_str(".</p></section>\n");
}

/// The course of a few values: a title, how they are written, and for each a name, its path and its colour.
struct Course(&'static str, As, &'static [(&'static str, &'static str, usize)]);

const COURSES: [Course; 4] = [
    Course("Traffic", As::Rate, &[("in", "rates.receive_rate", 0), ("out", "rates.send_rate", 1)]),
    Course("Processor", As::Share, &[("share of one processor", "rates.cpu", 2)]),
    Course("Connections", As::Count, &[("connections", "connections.total", 3)]),
    Course(
        "Trouble",
        As::PerSecond,
        &[("sent again", "rates.retransmits", 4), ("dropped", "rates.drops", 6)],
    ),
];

/// Charts of what the page has seen. They are drawn by the script, and without it they are not there.
pub fn courses(out: &mut String, data: Data<'_>) {
    out.push_str("<section data-live hidden><h2>The last five minutes</h2><div class=\"courses\">\n");
    for Course(title, how, series) in COURSES {
        let _ = write!(
            out,
            "<figure class=\"course\" data-as=\"{}\"><figcaption>{title}</figcaption><div class=\"key\">",
            how.name()
        );
        for (name, path, colour) in series {
            let _ = write!(out, "<span class=\"c{colour}\"><i class=\"line\"></i>{name} ");
            slot(out, "b", "", path, how, data);
            out.push_str("</span>");
        }
        out.push_str(
            "</div><div class=\"plot\"><span class=\"top\"></span><svg viewBox=\"0 0 300 100\" preserveAspectRatio=\"none\" \
             role=\"img\"><path class=\"grid\" d=\"M0 1H300M0 50H300M0 99H300\"/>",
        );
        for (name, path, colour) in series {
            let _ = write!(out, "<path class=\"c{colour}\" data-series=\"{path}\" data-name=\"{name}\"/>");
        }
        out.push_str(
            "</svg></div><div class=\"when\"><span>5 min ago</span><span>now</span></div></figure>\n",
        );
    }
    out.push_str("</div></section>\n");
}

/// A table's head: names of columns with their classes.
fn head(out: &mut String, caption: &str, columns: &[(&str, &str)]) {
    let _ = write!(out, "<caption>{caption}</caption><thead><tr>");
    for (name, class) in columns {
        let _ = write!(out, "<th scope=\"col\" class=\"{class}\">{name}</th>");
    }
    out.push_str("</tr></thead>");
}

/// The connections: how many are limited by what, and the first of them; `order` says by what they are the first.
pub fn connections(out: &mut String, data: Data<'_>, order: impl FnOnce(&mut String)) {
    out.push_str("<section><h2>Connections</h2><p class=\"key causes\"><span>Limited by:</span>");
    for (colour, cause) in LimitCause::ALL.into_iter().enumerate() {
        let name = escape(cause_name(cause));
        let _ = write!(out, "<span class=\"c{colour}\"><i class=\"dot\"></i>{name} ");
        slot(out, "b", "", &format!("connections.limited.{}", cause_name(cause)), As::Count, data);
        out.push_str("</span>");
    }
    out.push_str("</p>");
    for (title, path) in [("States", "connections.states"), ("Servers", "connections.servers")] {
        let shown = shown(path, true, data);
        let _ = write!(
            out,
            "<p class=\"key\"{shown}><span>{title}:</span><span class=\"key\" data-rows=\"{path}\">"
        );
        rows(out, path, data, |out, data| {
            out.push_str("<span data-row>");
            slot(out, "span", "", "name", As::Text, data);
            out.push(' ');
            slot(out, "b", "", "value", As::Count, data);
            out.push_str("</span>");
        });
        out.push_str("</span></p>");
    }
    let _ = write!(
        out,
        "<p{}>There are none.</p><div{}>",
        shown("connections.list", false, data),
        shown("connections.list", true, data)
    );
    order(out);
    out.push_str("<table class=\"conns\" data-rows=\"connections.list\">");
    head(
        out,
        "Connections, each with what limits it",
        &[("client", ""), ("in", "n"), ("out", "n"), ("round trip", "n"), ("sent again", "n more")],
    );
    rows(out, "connections.list", data, connection);
    out.push_str("</table></div></section>\n");
}

/// What is said of a connection in small.
const FACTS: [(&str, &str, As); 12] = [
    ("", "server", As::Text),
    ("", "state", As::Text),
    ("for", "age", As::Age),
    ("to", "local", As::Text),
    ("congestion window", "cwnd", As::Bytes),
    ("in flight", "in_flight", As::Bytes),
    ("queued", "queued", As::Bytes),
    ("the client's window", "send_window", As::Bytes),
    ("ours", "receive_window", As::Bytes),
    ("unread", "unread", As::Bytes),
    ("memory", "memory", As::Bytes),
    ("segments sent again", "retransmits", As::Count),
];

fn connection(out: &mut String, data: Data<'_>) {
    out.push_str("<tbody data-row><tr>");
    slot(out, "th", " scope=\"row\"", "remote", As::Text, data);
    slot(out, "td", " class=\"n\"", "receive_rate", As::Rate, data);
    slot(out, "td", " class=\"n\"", "send_rate", As::Rate, data);
    slot(out, "td", " class=\"n\"", "rtt", As::Span, data);
    slot(out, "td", " class=\"n more\"", "retransmits", As::Count, data);
    out.push_str("</tr><tr><td colspan=\"5\">");
    bar(out, "shares", &LimitCause::ALL.map(cause_name), data);
    out.push_str("Limited by ");
    slot(out, "strong", "", "bottleneck", As::Text, data);
    out.push_str(": ");
    slot(out, "span", "", "because", As::Text, data);
    out.push_str(". What would help: ");
    slot(out, "span", "", "advice", As::Text, data);
    out.push_str(".<small>");
    for (index, (name, path, how)) in FACTS.into_iter().enumerate() {
        let _ = write!(out, "{}{name} ", if index > 0 { ", " } else { "" });
        slot(out, "span", "", path, how, data);
    }
    out.push_str("</small></td></tr></tbody>");
}

/// The queues, each with its thread.
pub fn queues(out: &mut String, data: Data<'_>) {
    out.push_str("<section><h2>Queues</h2><div class=\"wide\"><table>");
    head(
        out,
        "Each queue has a thread of its own",
        &[
            ("queue", "n"),
            ("connections", "n"),
            ("in", "n"),
            ("out", "n"),
            ("packets in", "n more"),
            ("packets out", "n more"),
            ("of a processor", "n"),
        ],
    );
    out.push_str("<tbody data-rows=\"queues\">");
    rows(out, "queues", data, |out, data| {
        out.push_str("<tr data-row>");
        slot(out, "th", " scope=\"row\" class=\"n\"", "number", As::Count, data);
        slot(out, "td", " class=\"n\"", "connections", As::Count, data);
        slot(out, "td", " class=\"n\"", "rates.receive_rate", As::Rate, data);
        slot(out, "td", " class=\"n\"", "rates.send_rate", As::Rate, data);
        slot(out, "td", " class=\"n more\"", "rates.received_packets", As::PerSecond, data);
        slot(out, "td", " class=\"n more\"", "rates.sent_packets", As::PerSecond, data);
        slot(out, "td", " class=\"n\"", "rates.cpu", As::Share, data);
        out.push_str("</tr>");
    });
    out.push_str("</tbody></table></div></section>\n");
}

/// Memory of sockets and the pools.
pub fn memory(out: &mut String, data: Data<'_>) {
    out.push_str("<section><h2>Memory</h2><p>Sockets hold ");
    slot(out, "b", "", "memory.used", As::Bytes, data);
    out.push_str(" of ");
    slot(out, "span", "", "memory.limit", As::Bytes, data);
    out.push(' ');
    meter(out, "memory.used", "memory.limit", data);
    out.push_str(", have held ");
    slot(out, "span", "", "memory.peak", As::Bytes, data);
    out.push_str(" at most, and were refused more ");
    slot(out, "span", "", "memory.refused", As::Count, data);
    out.push_str(" times.</p>");
    let _ = write!(out, "<div class=\"wide\"{}><table>", shown("pools", true, data));
    head(
        out,
        "Pools of buffers",
        &[
            ("pool", ""),
            ("in use", "n"),
            ("filled", ""),
            ("of", "n"),
            ("buffer", "n"),
            ("fewest free", "n more"),
            ("empty", "n"),
        ],
    );
    out.push_str("<tbody data-rows=\"pools\">");
    rows(out, "pools", data, |out, data| {
        out.push_str("<tr data-row>");
        slot(out, "th", " scope=\"row\"", "name", As::Text, data);
        slot(out, "td", " class=\"n\"", "used", As::Count, data);
        out.push_str("<td>");
        meter(out, "used", "total", data);
        out.push_str("</td>");
        slot(out, "td", " class=\"n\"", "total", As::Count, data);
        slot(out, "td", " class=\"n\"", "buffer", As::Bytes, data);
        slot(out, "td", " class=\"n more\"", "low_water", As::Count, data);
        slot(out, "td", " class=\"n\"", "exhausted", As::Count, data);
        out.push_str("</tr>");
    });
    out.push_str("</tbody></table></div></section>\n");
}

/// What was dropped, by reason.
pub fn drops(out: &mut String, data: Data<'_>) {
    let _ = write!(
        out,
        "<section><h2>Dropped, refused or given up</h2><p{}>Nothing.</p><div class=\"wide\"{}><table>",
        shown("dropped", false, data),
        shown("dropped", true, data)
    );
    head(out, "By reason, what grows first", &[("reason", ""), ("since the start", "n"), ("now", "n")]);
    out.push_str("<tbody data-rows=\"dropped\">");
    rows(out, "dropped", data, |out, data| {
        out.push_str("<tr data-row><th scope=\"row\">");
        slot(out, "span", "", "reason", As::Text, data);
        slot(out, "small", "", "meaning", As::Text, data);
        out.push_str("</th>");
        slot(out, "td", " class=\"n\"", "count", As::Count, data);
        slot(out, "td", " class=\"n\"", "rate", As::PerSecond, data);
        out.push_str("</tr>");
    });
    out.push_str("</tbody></table></div></section>\n");
}
