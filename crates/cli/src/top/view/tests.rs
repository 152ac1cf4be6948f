//! The picture on a terminal of memory.

use super::*;
use crate::status::report::{Connections, Memory, PoolReport, Process, Traffic};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

/// Two reports of a busy server, a second apart.
pub fn busy() -> Watch {
    let mut watch = Watch::new("127.0.0.1:9180".to_owned());
    for at in [1.0, 2.0] {
        let conn = |id: &str, rate: f64| Conn {
            id: id.to_owned(),
            server: "iperf3".to_owned(),
            local: "192.168.1.4:5201".to_owned(),
            remote: format!("192.168.1.{id}:40001"),
            state: "established".to_owned(),
            send_rate: rate,
            rtt: Some(0.001_2),
            cwnd: 100_000,
            mss: 1448,
            retransmits: 17,
            shares: [("congestion window".to_owned(), 0.75), ("application".to_owned(), 0.25)].into(),
            limited_by: "congestion window".to_owned(),
            bottleneck: "the path".to_owned(),
            because: "it was full for 75 % of the time, and next to nothing was lost".to_owned(),
            advice: "nothing is left to gain here: the path carries no more".to_owned(),
            ..Conn::default()
        };
        let drops = [("drop_tcp_no_memory", at as u64 * 40), ("drop_vlan", 3)];
        let drops = drops.map(|(name, count)| (name.to_owned(), count)).into();
        watch.update(Ok(Report {
            schema: 1,
            time: at,
            uptime: at + 61.0,
            transport: "own".to_owned(),
            device: "TAP device linerate0, MTU 1500".to_owned(),
            process: Process { cpu: at * 0.5, resident: Some(80 << 20), report: 0.0 },
            traffic: Traffic {
                sent_bytes: at as u64 * 125_000_000,
                drops: at as u64 * 40,
                ..Traffic::default()
            },
            memory: Memory { limit: 48 << 20, used: 42 << 20, ..Memory::default() },
            pools: vec![PoolReport {
                name: "pages".to_owned(),
                total: 100,
                free: 75,
                ..PoolReport::default()
            }],
            counters: [("stack".to_owned(), drops)].into(),
            connections: Connections {
                total: 2,
                list: vec![conn("7", 1e6), conn("8", 9e8)],
                ..Connections::default()
            },
            ..Report::default()
        }));
    }
    watch
}

/// The lines on a terminal of this size.
fn picture(watch: &Watch, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, watch)).unwrap();
    let buffer = terminal.backend().buffer();
    let lines = buffer.content().chunks(usize::from(width));
    lines
        .map(|line| line.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned())
        .collect()
}

fn check(lines: &[String], parts: &[&str]) {
    for part in parts {
        assert!(lines.iter().any(|line| line.contains(part)), "{part:?} is not in\n{}", lines.join("\n"));
    }
}

#[test]
fn everything_has_its_place_on_a_wide_terminal() {
    let lines = picture(&busy(), 150, 30);
    check(
        &lines,
        &[
            "127.0.0.1:9180  up 63 s",
            "out 1 Gbit/s",
            "drops 40/s",
            "cpu 50 %",
            "sockets               [||||||||||||||||||  ] 42 MiB of 48 MiB",
            "pages                 [|||||               ] 25 of 100",
            "tcp no memory",
            "+40/s",
            "192.168.1.8:40001 -> 192.168.1.4:5201  established",
            "the path: it was full for 75 % of the time",
            "congestion window 75 %, application 25 %",
            "s sort (rate)",
        ],
    );
    // The fast one first.
    let row = |text: &str| lines.iter().position(|line| line.starts_with(text)).unwrap();
    assert!(row("192.168.1.8:40001 ") < row("192.168.1.7:40001 "), "{}", lines.join("\n"));
    let header = lines.iter().find(|line| line.starts_with("client")).unwrap();
    for column in super::super::columns::COLUMNS {
        assert!(header.contains(column.title), "{header}");
    }
}

#[test]
fn a_narrow_terminal_has_the_most_important_columns() {
    let lines = picture(&busy(), 45, 30);
    check(&lines, &["192.168.1.8:40001", "900 Mbit/s", "the path", "advice  nothing is left", "sockets"]);
    assert!(!lines.iter().any(|line| line.contains("round trip")), "{}", lines.join("\n"));
    // Whatever the size, nothing panics.
    for (width, height) in [(1, 1), (10, 3), (300, 5), (20, 80)] {
        picture(&busy(), width, height);
    }
}

#[test]
fn no_figure_is_cut_off() {
    for width in 60..=160 {
        let lines = picture(&busy(), width, 40);
        check(&lines, &["+40/s", "drops 40/s", "cpu 50 %", "resident 80 MiB"]);
    }
}

#[test]
fn what_is_wrong_is_said() {
    let mut watch = Watch::new("127.0.0.1:1".to_owned());
    check(&picture(&watch, 80, 20), &["asking 127.0.0.1:1"]);
    watch.update(Err("nothing answers on 127.0.0.1:1".to_owned()));
    check(&picture(&watch, 80, 20), &["nothing answers on 127.0.0.1:1"]);
    let mut watch = busy();
    watch.update(Err("it went away".to_owned()));
    watch.is_paused = true;
    check(&picture(&watch, 80, 20), &["it went away", "paused", "192.168.1.8:40001"]);
}
