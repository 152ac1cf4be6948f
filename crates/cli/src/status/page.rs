//! The report for people: one page without scripts that renews itself, and fits a phone.

use super::catalogue;
use super::report::{Conn, Report};
use linerate_lab::quantity::{bytes, count, rate, share, span};
use std::fmt::Write as _;
use std::time::Duration;

/// Connections on the page.
const ROWS: usize = 50;

const STYLE: &str = "body{font:15px/1.4 system-ui,sans-serif;margin:1rem auto;padding:0 .8rem;max-width:70rem;\
    color-scheme:light dark}h1{font-size:1.3rem}h2{font-size:1.05rem;margin-top:1.4rem}table{border-collapse:collapse;\
    width:100%}th,td{text-align:left;padding:.2rem .6rem .2rem 0;border-bottom:1px solid #8884;vertical-align:top}\
    .n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}meter{width:8rem;max-width:100%}\
    .small{color:#888;font-size:.9em;overflow-wrap:anywhere}\
    .head td{border-bottom:0}@media(max-width:40rem){.wide{display:none}.n{white-space:normal}meter{width:4rem}}";

/// Text that means nothing to HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The page.
pub fn html(report: &Report) -> String {
    let mut out = String::new();
    let uptime = span(Duration::try_from_secs_f64(report.uptime).unwrap_or_default());
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>linerate status</title>\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <meta http-equiv=\"refresh\" content=\"2\"><style>{STYLE}</style></head><body>\
         <h1>linerate {}</h1><p class=\"small\">{}, up {uptime}. <a href=\"/status.json\">JSON</a>, \
         <a href=\"/metrics\">metrics</a></p>",
        escaped(&report.version),
        escaped(&report.device)
    );
    totals(&mut out, report);
    connections(&mut out, &report.connections.list);
    memory(&mut out, report);
    drops(&mut out, report);
    out.push_str("</body></html>\n");
    out
}

fn row(out: &mut String, name: &str, value: &str) {
    let _ = write!(out, "<tr><td>{}</td><td class=\"n\">{}</td></tr>", escaped(name), escaped(value));
}

fn traffic_of(report: &Report) -> u64 {
    report.queues.iter().map(|queue| queue.received_bytes + queue.sent_bytes).sum()
}

fn totals(out: &mut String, report: &Report) {
    let traffic = &report.traffic;
    out.push_str("<table>");
    row(out, "received", &bytes(traffic.received_bytes));
    row(out, "sent", &bytes(traffic.sent_bytes));
    row(out, "connections", &count(report.connections.total));
    if report.queues.len() > 1 {
        let share = |sum: u64| format!("{:.0} %", sum as f64 * 100.0 / traffic_of(report).max(1) as f64);
        let shares: Vec<String> =
            report.queues.iter().map(|queue| share(queue.received_bytes + queue.sent_bytes)).collect();
        row(out, "shares of the queues", &shares.join(", "));
    }
    if report.transport == "own" {
        row(out, "segments sent again", &count(traffic.retransmits));
    }
    row(out, "dropped, refused or given up", &count(traffic.drops));
    if let Some(resident) = report.process.resident {
        row(out, "resident memory", &bytes(resident));
    }
    out.push_str("</table>");
}

fn connections(out: &mut String, list: &[Conn]) {
    out.push_str("<h2>Connections</h2>");
    if list.is_empty() {
        out.push_str("<p>none</p>");
        return;
    }
    out.push_str(
        "<table><tr><th>client<th class=\"n\">in<th class=\"n\">out<th class=\"n wide\">round trip\
         <th class=\"n wide\">sent again</tr>",
    );
    for conn in list.iter().take(ROWS) {
        let rtt = conn.rtt.and_then(|rtt| Duration::try_from_secs_f64(rtt).ok()).map_or(String::new(), span);
        let _ = write!(
            out,
            "<tr class=\"head\"><td>{}<div class=\"small\">{}, {}</div></td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
             <td class=\"n wide\">{rtt}</td><td class=\"n wide\">{}</td></tr>\
             <tr><td colspan=\"5\">limited by {}<div class=\"small\">{}. {}.</div></td></tr>",
            escaped(&conn.remote),
            escaped(&conn.server),
            escaped(&conn.state),
            rate(conn.receive_rate),
            rate(conn.send_rate),
            count(conn.retransmits),
            escaped(&conn.bottleneck),
            escaped(&conn.because),
            escaped(&conn.advice),
        );
    }
    out.push_str("</table>");
}

fn bar(out: &mut String, name: &str, used: u64, total: u64, text: &str) {
    let part = used as f64 / total.max(1) as f64;
    let _ = write!(
        out,
        "<tr><td>{}</td><td><meter value=\"{part:.3}\" high=\"0.75\">{}</meter></td><td class=\"n\">{}</td></tr>",
        escaped(name),
        share(part),
        escaped(text)
    );
}

fn memory(out: &mut String, report: &Report) {
    let memory = &report.memory;
    out.push_str("<h2>Memory</h2><table>");
    let text = format!("{} of {}, {} at most", bytes(memory.used), bytes(memory.limit), bytes(memory.peak));
    bar(out, "sockets", memory.used, memory.limit, &text);
    for pool in &report.pools {
        let used = pool.total.saturating_sub(pool.free);
        let text = format!("{} of {} x {}", count(used), count(pool.total), bytes(pool.buffer));
        bar(out, &format!("pool of {}", pool.name), used, pool.total, &text);
    }
    out.push_str("</table>");
}

fn drops(out: &mut String, report: &Report) {
    let mut drops = report.drops();
    drops.retain(|(_, count)| *count > 0);
    drops.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    out.push_str("<h2>Dropped, refused or given up</h2>");
    if drops.is_empty() {
        out.push_str("<p>nothing</p>");
        return;
    }
    out.push_str("<table>");
    for ((group, name), number) in drops {
        let meaning = catalogue::find(group, name).map_or("", |figure| figure.description());
        let _ = write!(
            out,
            "<tr><td>{}<div class=\"small\">{}</div></td><td class=\"n\">{}</td></tr>",
            escaped(&catalogue::reason(group, name)),
            escaped(meaning),
            count(number)
        );
    }
    out.push_str("</table>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_clients_say_means_nothing_to_html() {
        let conn = Conn { remote: "<script>alert(1)</script>".to_owned(), ..Conn::default() };
        let mut report = Report { device: "a & \"b\"".to_owned(), ..Report::default() };
        report.connections.list.push(conn);
        report.counters.entry("stack".to_owned()).or_default().insert("drop_vlan".to_owned(), 1_234);
        let html = html(&report);
        assert!(!html.contains("<script>") && html.contains("&lt;script&gt;"), "{html}");
        assert!(html.contains("a &amp; &quot;b&quot;"), "{html}");
        assert!(html.contains(">vlan<") && html.contains("1,234"), "{html}");
    }
}
