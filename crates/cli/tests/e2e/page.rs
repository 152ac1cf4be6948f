//! The status page in a browser: it says what the report says, keeps itself up to date, and bears what it must.

use crate::browser::Browser;
use crate::lab::{Lab, Wire};
use linerate_cli::status::page::{self, slots::As};
use linerate_cli::status::query::{PAGE_LIMIT, Query};
use linerate_cli::status::report::{Conn, Dropped, PoolReport, Queue, Rates, Report};
use linerate_cli::status::{exchange, listener};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Has meaning in HTML, in attributes and in scripts.
const HOSTILE: &str = "<img src=x onerror=alert(1)></td><script>alert(2)</script>'\"&amp;";

/// What of a document depends on the report: each slot with its text, gauges and bars with their sizes, what is hidden.
const CONTENT: &str =
    "(root) => [...root.querySelectorAll('main [data-of], main [data-some], main [data-none]')]
    .filter((slot) => !slot.closest('template'))
    .map((slot) => [slot.dataset.of, slot.textContent, slot.hidden, slot.value, slot.max,
        [...slot.children].map((part) => part.getAttribute('width')).join()].join('|')).join('\\n')";

/// The page's content must be what the server makes of the same report.
fn assert_shows(browser: &mut Browser, report: &Report) {
    let query = Query { limit: PAGE_LIMIT, ..Query::default() };
    let made = page::html(report, query, "0");
    let (begin, end) = made.find("<main>").zip(made.find("</main>")).expect("a main part");
    let made = json!(made[begin..end]).to_string();
    let expected =
        browser.text(&format!("({CONTENT})(new DOMParser().parseFromString({made}, 'text/html'))"));
    let found = browser.text(&format!("({CONTENT})(document)"));
    assert!(expected.lines().count() > 35, "{expected}");
    let differ = expected.lines().zip(found.lines()).find(|(expected, found)| expected != found);
    assert_eq!(differ, None, "what the server makes, and what is on the page");
    assert_eq!(found.lines().count(), expected.lines().count());
}

/// A server in this process that says what it is told to.
struct Scripted {
    address: SocketAddr,
    report: Arc<Mutex<Option<Report>>>,
}

impl Scripted {
    fn start(report: Report) -> Scripted {
        let (asker, desks) = exchange::open(1).expect("a mailbox");
        let address = listener::start("127.0.0.1:0".parse().expect("an address"), asker).expect("a port");
        let report = Arc::new(Mutex::new(Some(report)));
        let said = Arc::clone(&report);
        std::thread::spawn(move || {
            for mut desk in desks {
                let mut now_ms = 0;
                // Ends with the test, which drops its report.
                while Arc::strong_count(&said) > 1 {
                    std::thread::sleep(Duration::from_millis(2));
                    now_ms += 1_000;
                    let now = linerate_wire::units::Instant::from_millis(now_ms);
                    let Some(report) = said.lock().expect("no panic").clone() else { continue };
                    if let Some(query) = desk.due(now) {
                        desk.answer(now, now, query, report);
                    }
                }
            }
        });
        Scripted { address, report }
    }

    fn say(&self, report: Option<Report>) {
        *self.report.lock().expect("no panic") = report;
    }

    fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

/// A report in which everything is something, and every text is hostile.
fn hostile(connections: usize) -> Report {
    let text = || HOSTILE.to_owned();
    let conn = |index: usize| Conn {
        id: format!("{index}.0"),
        server: text(),
        remote: format!("[2001:db8:aaaa:bbbb:cccc:dddd:eeee:{index:04x}]:65535"),
        state: text(),
        send_rate: 1e9 / (index + 1) as f64,
        receive_rate: index as f64 * 0.3,
        rtt: (!index.is_multiple_of(3)).then_some(0.001_234_567 * index as f64),
        age: 3_599.5 + index as f64 * 40_000.0,
        shares: [("send buffer".to_owned(), 0.25), ("peer's window".to_owned(), 0.705)].into(),
        bottleneck: text(),
        because: text(),
        advice: text(),
        ..Conn::default()
    };
    let rates = Rates {
        span: 1.0,
        receive_rate: 1.5e9,
        send_rate: 12.5,
        drops: 1_234.5,
        cpu: 0.125,
        ..Rates::default()
    };
    let mut report = Report {
        version: text(),
        device: text(),
        uptime: 100_000.0,
        rates,
        dropped: vec![Dropped { reason: text(), meaning: text(), count: 7, rate: 0.5, ..Dropped::default() }],
        pools: vec![PoolReport { name: text(), total: 9, used: 4, buffer: 65_792, ..PoolReport::default() }],
        queues: vec![Queue { rates, ..Queue::default() }, Queue { number: 1, ..Queue::default() }],
        ..Report::default()
    };
    report.process.resident = Some(1 << 30);
    report.connections.total = 10_000;
    report.connections.states = [(text(), 10_000)].into();
    report.connections.limited = [("peer's window".to_owned(), 1_234)].into();
    report.connections.list = (0..connections).map(conn).collect();
    report
}

/// A client that ends with the value, also where a test fails.
struct Client(Child);

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn page_shows_what_the_server_says_and_that_it_is_gone() {
    let lab = Lab::start(Wire::Tap, 1500, &["--status", "9180"]);
    let Some(mut browser) = Browser::start(Some(&lab.client)) else { return lab.stop() };
    let line = format!("exec iperf3 -c {} -t 60 -b 50M -R >/dev/null", lab.host4());
    let client = Client(lab.client.command("sh").args(["-c", &line]).spawn().expect("sh"));

    browser.open("http://127.0.0.1:9180/");
    // The document stays the same while what it says changes.
    browser.eval(
        "window.mark = 1; window.first = document.querySelector('[data-of=\"rates.send_rate\"]').textContent",
    );
    browser.wait("document.getElementById('state').textContent.startsWith('Live')");
    browser.wait(
        "document.querySelector('[data-of=\"rates.send_rate\"]').textContent !== window.first && \
         document.querySelector('.conns > tbody [data-of=\"server\"]')?.textContent === 'iperf3'",
    );
    assert_eq!(browser.eval("window.mark"), 1);

    // Paused by the keyboard, it shows the last report that it was given.
    browser.eval("document.getElementById('pause').focus()");
    browser.press_enter();
    browser.wait("document.getElementById('state').textContent.startsWith('Paused')");
    browser.rest();
    let json = browser.last_answer("/status.json");
    let report: Report = serde_json::from_str(&json).expect("a report");
    assert!(!report.connections.list.is_empty() && report.traffic.sent_bytes > 0, "{json}");
    assert_shows(&mut browser, &report);
    let asked = browser.requests();
    assert!(asked.iter().all(|url| url.starts_with("http://127.0.0.1:9180/")), "{asked:?}");

    browser.press_enter();
    browser.wait("document.getElementById('state').textContent.startsWith('Live')");
    drop(client);
    lab.signal("TERM");
    browser.wait(
        "/^The server is gone since \\d\\d:\\d\\d:\\d\\d/.test(document.getElementById('state').textContent)",
    );
    assert_eq!(browser.eval("document.title"), "gone - linerate status");
    assert_eq!(browser.eval("window.mark"), 1);
    assert!(browser.faults().is_empty(), "{:#?}", browser.faults());
    lab.stop_after_signal();
}

#[test]
fn page_takes_hostile_text_as_text_and_comes_back_with_its_server() {
    let server = Scripted::start(Report::default());
    let Some(mut browser) = Browser::start(None) else { return };
    browser.open(&server.url());
    browser.wait("document.getElementById('state').textContent.startsWith('Live')");
    assert_shows(&mut browser, &Report::default());

    // More rows, then fewer; the row of a table is used again for another.
    for connections in [PAGE_LIMIT, 1, 3] {
        let report = hostile(connections);
        server.say(Some(report.clone()));
        browser.wait(&format!("document.querySelectorAll('.conns [data-row]').length === {connections}"));
        assert_shows(&mut browser, &report);
    }
    assert_eq!(browser.eval("document.querySelector('[data-of=device]').textContent"), HOSTILE);
    assert_eq!(browser.eval("document.querySelectorAll('img, script').length"), 1);

    server.say(None);
    browser.wait("document.body.classList.contains('gone')");
    server.say(Some(hostile(2)));
    browser.wait("document.querySelectorAll('.conns [data-row]').length === 2");
    browser.wait("!document.body.classList.contains('gone')");

    // Nobody looks: nothing is asked for. What was under way before is waited for.
    browser.eval(
        "Object.defineProperty(document, 'hidden', { get: () => window.away, configurable: true }); \
         window.away = true; document.dispatchEvent(new Event('visibilitychange'))",
    );
    for _ in 0..5 {
        browser.rest();
    }
    let asked = browser.requests().len();
    for _ in 0..25 {
        browser.rest();
    }
    assert_eq!(browser.requests().len(), asked);
    server.say(Some(hostile(4)));
    browser.eval("window.away = false; document.dispatchEvent(new Event('visibilitychange'))");
    browser.wait("document.querySelectorAll('.conns [data-row]').length === 4");

    // Another order is asked for without another document.
    browser.eval("window.mark = 1; document.querySelector('a[data-sort=memory]').click()");
    browser.wait("location.search.includes('sort=memory') && window.mark === 1");
    browser.wait("document.querySelector('a[aria-current]').dataset.sort === 'memory'");
    assert!(browser.requests().iter().any(|url| url.ends_with("/status.json?limit=50&sort=memory")));
    assert!(browser.faults().is_empty(), "{:#?}", browser.faults());
}

/// Values at which one way of writing could differ from the other: between units, half-way between two digits, ends of
/// ranges, what is not known.
fn values() -> Vec<Value> {
    let mut values = vec![json!(null), json!(0), json!("text"), json!(HOSTILE)];
    let halves = [0.5, 1.5, 2.5, 0.125, 0.375, 1.125, 12.25, 12.75, 112.5, 113.5, 999.5, 1_000.5];
    let others = [1e-9, 1e-4, 0.005_12, 0.999_4, 9.995, 9.999_9, 59.95, 99.95, 99.99, 999.999, 1e21];
    for value in halves.into_iter().chain(others) {
        for unit in [1e-6, 1e-3, 1.0, 60.0, 1e3, 3_600.0, 86_400.0, 1e6, 1e9] {
            values.push(json!(value * unit));
        }
    }
    for power in [10, 20, 30, 40, 50] {
        for add in [-1i64, 0, 1] {
            values.push(json!((1u64 << power).saturating_add_signed(add)));
        }
    }
    values.extend([999u64, 1_000, 1_234_567, 100_000_000].map(|number| json!(number)));
    values
}

#[test]
fn page_writes_figures_as_the_server_does() {
    let server = Scripted::start(Report::default());
    let Some(mut browser) = Browser::start(None) else { return };
    browser.open(&server.url());
    let mut compared = 0;
    for how in As::ALL {
        // What a format is never used for need not agree: whole numbers are whole in a report.
        let is_whole = matches!(how, As::Bytes | As::Count);
        let fits = |value: &Value| match value.as_f64() {
            None => true,
            Some(_) if is_whole => value.is_u64(),
            Some(number) => number < 1e15,
        };
        let values: Vec<Value> = values().into_iter().filter(fits).collect();
        let expected: Vec<String> = values.iter().map(|value| how.write(value)).collect();
        let found =
            browser.eval(&format!("{}.map((value) => written(value, '{}'))", json!(values), how.name()));
        for (value, (found, expected)) in
            values.iter().zip(found.as_array().expect("a list").iter().zip(&expected))
        {
            assert_eq!(found, expected, "{value} as {}", how.name());
            compared += 1;
        }
    }
    assert!(compared > 1_000, "{compared}");
}

/// Every piece of text against what lies behind it: the ratio of WCAG 2.1, 4.5 at least for text of this size.
const CONTRAST: &str = "(() => {
    const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
    const light = (colour) => parts(colour).slice(0, 3).map((part) => part / 255)
        .map((part) => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
        .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
    const behind = (element) => {
        for (; element; element = element.parentElement) {
            const colour = getComputedStyle(element).backgroundColor;
            if (parts(colour)[3] !== 0) return colour;
        }
        return 'rgb(255, 255, 255)';
    };
    const said = [...document.querySelectorAll('body *')].filter((element) => element.checkVisibility() &&
        [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim()));
    return said.map((element) => {
        const [one, two] = [light(getComputedStyle(element).color), light(behind(element))].sort((a, b) => b - a);
        return [(one + 0.05) / (two + 0.05), element.outerHTML.slice(0, 80)];
    }).sort((a, b) => a[0] - b[0]);
})()";

#[test]
fn page_can_be_read_on_a_phone_in_the_dark_and_by_machines() {
    let server = Scripted::start(hostile(5));
    let Some(mut browser) = Browser::start(None) else { return };
    browser.open(&server.url());
    browser.wait("document.getElementById('state').textContent.startsWith('Live')");
    for (width, scheme) in [(390, "light"), (390, "dark"), (1280, "light"), (1280, "dark")] {
        browser.screen(width, scheme);
        browser.wait(&format!("innerWidth === {width}"));
        let wide = browser.eval("document.documentElement.scrollWidth").as_u64();
        assert!(wide <= Some(width.into()), "{wide:?} of {width}");
        let contrast = browser.eval(CONTRAST);
        let contrast = contrast.as_array().expect("a list");
        assert!(contrast.len() > 50 && contrast[0][0].as_f64() >= Some(4.5), "{scheme}: {:#}", contrast[0]);
    }
    // Tables have names, columns and rows have heads, pictures and gauges have words, only the state is read out.
    for expression in [
        "[...document.querySelectorAll('table')].every((table) => table.caption.textContent && \
         table.querySelectorAll('thead th[scope=col]').length > 2 && \
         [...table.querySelectorAll('[data-row]')].every((row) => row.querySelector('th[scope=row]')))",
        "[...document.querySelectorAll('svg[role=img]')].every((picture) => picture.getAttribute('aria-label'))",
        "[...document.querySelectorAll('meter')].every((meter) => meter.getAttribute('aria-label'))",
        "[...document.querySelectorAll('th')].every((head) => head.textContent.trim())",
        "document.querySelectorAll('[aria-live], [role=status], [role=alert]').length === 1",
    ] {
        assert_eq!(browser.eval(expression), true, "{expression}");
    }
}

#[test]
fn page_works_without_scripts() {
    let mut report = hostile(2);
    let server = Scripted::start(report.clone());
    let Some(mut browser) = Browser::start(None) else { return };
    browser.call("Emulation.setScriptExecutionDisabled", json!({"value": true}));
    browser.open(&server.url());
    let markup = |browser: &mut Browser| {
        let root = browser.call("DOM.getDocument", json!({}));
        let wanted = json!({"nodeId": root["root"]["nodeId"]});
        // The document may have gone since, for the next one.
        let html = browser.attempt("DOM.getOuterHTML", wanted).unwrap_or_default();
        html["outerHTML"].as_str().unwrap_or_default().to_owned()
    };
    let first = markup(&mut browser);
    for part in ["1.5 Gbit/s", "1 d 3 h", "&lt;img src=x", "Reloaded every two seconds"] {
        assert!(first.contains(part), "{part}: {first}");
    }
    report.rates.receive_rate = 2.5e9;
    server.say(Some(report));
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while !markup(&mut browser).contains("2.5 Gbit/s") {
        assert!(std::time::Instant::now() < deadline, "the page is not loaded again");
        browser.rest();
    }
    assert!(browser.faults().is_empty(), "{:#?}", browser.faults());
}
