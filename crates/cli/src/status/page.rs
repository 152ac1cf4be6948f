//! The report for people: one page that its own script keeps up to date, that works without scripts too, and fits a phone.
//!
//! What the page shows is made here, as it is at first; the script (`page/live.js`) fetches `/status.json` and fills the
//! same places ([`slots`]) again. Whatever the report says goes into the page as text, never as HTML.

mod sections;
pub mod slots;

use super::query::{Query, Sort};
use super::report::Report;
use linerate_lab::report::html::{STYLE, escape};
use slots::{As, slot};
use std::fmt::Write as _;

/// What the page adds to the style sheet of all reports.
const LIVE_STYLE: &str = include_str!("page/live.css");
/// Keeps the page up to date.
const SCRIPT: &str = include_str!("page/live.js");

/// What a browser may do with the page: its own style and script, which have `nonce`, and requests to where it came from.
pub fn content_security_policy(nonce: &str) -> String {
    format!(
        "default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}

/// The page with the connections that `query` asks for; `nonce` is in [`content_security_policy`] too.
pub fn html(report: &Report, query: Query, nonce: &str) -> String {
    // Keys are text, so that it cannot fail.
    let report = serde_json::to_value(report).unwrap_or_default();
    let data = Some(&report);
    let nonce = escape(nonce);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>linerate status</title>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <noscript><meta http-equiv=\"refresh\" content=\"2\"></noscript>\n\
         <style nonce=\"{nonce}\">\n{STYLE}{LIVE_STYLE}</style></head>\n\
         <body class=\"live\" data-limit=\"{}\" data-sort=\"{}\">\n<header><h1>linerate ",
        query.limit,
        query.sort.name(),
    );
    slot(&mut out, "span", "", "version", As::Text, data);
    out.push_str("</h1><p>");
    slot(&mut out, "span", "", "device", As::Text, data);
    out.push_str("; up ");
    slot(&mut out, "span", "", "uptime", As::Age, data);
    out.push_str(
        "</p><p class=\"controls\"><button type=\"button\" id=\"pause\" hidden>Pause</button>\
         <span role=\"status\" id=\"state\"><noscript>Reloaded every two seconds.</noscript></span> \
         <span><a href=\"/status.json\">JSON</a>, <a href=\"/metrics\">metrics</a></span></p></header>\n<main>\n",
    );
    sections::tiles(&mut out, data);
    sections::courses(&mut out, data);
    sections::connections(&mut out, data, |out| order(out, query));
    sections::queues(&mut out, data);
    sections::memory(&mut out, data);
    sections::drops(&mut out, data);
    // Writing to a string cannot fail.
    let _ = write!(out, "</main>\n<script nonce=\"{nonce}\">\n{SCRIPT}</script></body></html>\n");
    out
}

/// Links to the same page with the connections in another order.
fn order(out: &mut String, query: Query) {
    out.push_str("<p class=\"order\">The first by");
    for sort in Sort::ALL {
        let current = if sort == query.sort { " aria-current=\"true\"" } else { "" };
        let (name, limit) = (sort.name(), query.limit);
        let _ = write!(
            out,
            " <a href=\"/?sort={name}&amp;limit={limit}\" data-sort=\"{name}\"{current}>{name}</a>"
        );
    }
    out.push_str("</p>");
}

#[cfg(test)]
mod tests {
    use super::super::report::{Conn, Dropped, PoolReport, Rates};
    use super::*;

    fn page(report: &Report) -> String {
        html(report, Query::default(), "0123")
    }

    #[test]
    fn what_clients_say_means_nothing_to_html() {
        let hostile = "<script>alert(1)</script>'\"&";
        let mut report = Report { device: hostile.to_owned(), ..Report::default() };
        let text = || hostile.to_owned();
        report.connections.list.push(Conn { remote: text(), because: text(), ..Conn::default() });
        report.connections.states.insert(text(), 1);
        report.pools.push(PoolReport { name: text(), ..PoolReport::default() });
        report.dropped.push(Dropped { reason: text(), meaning: text(), ..Dropped::default() });
        let html = page(&report);
        assert!(!html.contains("<script>"));
        assert_eq!(
            html.matches("&lt;script&gt;alert(1)&lt;/script&gt;&#39;&quot;&amp;").count(),
            7,
            "{html}"
        );
    }

    #[test]
    fn the_page_shows_what_the_report_says() {
        let rates = Rates { receive_rate: 5.87e6, send_rate: 11.3e9, cpu: 0.31, ..Rates::default() };
        let mut report = Report { rates, ..Report::default() };
        report.connections.total = 10_000;
        report.dropped.push(Dropped { count: 1_234, rate: 2.5, ..Dropped::default() });
        let conn = Conn { rtt: None, bottleneck: "the send buffer".to_owned(), ..Conn::default() };
        report.connections.list.push(conn);
        let html = page(&report);
        for part in
            ["5.87 Mbit/s<", "11.3 Gbit/s<", ">31 %<", ">10,000<", ">1,234<", ">2.5/s<", ">the send buffer<"]
        {
            assert!(html.contains(part), "{part}: {html}");
        }
    }

    #[test]
    fn nothing_comes_from_elsewhere() {
        let html = page(&Report::default());
        for foreign in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!html.contains(foreign), "{foreign}");
        }
        // A browser runs only what has the nonce, and attributes cannot have one.
        assert_eq!(html.matches("<script").count(), html.matches("<script nonce=\"0123\">").count());
        assert_eq!(html.matches("<style").count(), html.matches("<style nonce=\"0123\">").count());
        assert!(!html.contains(" style=") && !html.contains(" onclick="));
        assert!(content_security_policy("0123").contains("script-src 'nonce-0123'"));
    }

    #[test]
    fn the_script_puts_nothing_in_as_html() {
        for way in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("] {
            assert!(!SCRIPT.contains(way), "{way}");
        }
        for how in As::ALL {
            assert!(SCRIPT.contains(&format!("\n  {}:", how.name())), "the script cannot write {how:?}");
        }
    }

    #[test]
    fn orders_are_links_that_keep_the_number_of_rows() {
        let query = Query { limit: 7, sort: Sort::Memory };
        let html = html(&Report::default(), query, "0");
        assert!(html.contains("data-limit=\"7\" data-sort=\"memory\""));
        assert!(html.contains("<a href=\"/?sort=bytes&amp;limit=7\" data-sort=\"bytes\">"), "{html}");
        assert_eq!(
            html.matches("aria-current").count(),
            1 + SCRIPT.matches("aria-current").count() + LIVE_STYLE.matches("aria-current").count()
        );
    }
}
