//! Reads a scenario, changes the keys that the command line names, and checks what the syntax cannot.

use super::error::{Mistake, SimError, plain};
use super::file::{ChangeTable, HostTable, MAX_QUEUES, PathTable, Scenario, TcpTable};
use super::models::{LEAST_QUEUE, QueueModel, no_room};
use crate::quantity::bytes;
use linerate_fabric::document::{self, ReadError};
use linerate_fabric::units::{Bytes, Nanoseconds};
use linerate_stack::memory::LEAST_MEMORY;
use linerate_stack::tcp::{LEAST_BUFFER, MIN_MSS};
use std::path::Path;
use toml::{Spanned, Table, Value};

/// Least MTU with IPv6.
const LEAST_MTU6: usize = 1_280;
/// Longest virtual time in seconds.
const MAX_SECONDS: f64 = 3_600.0;
/// Most transfers.
const MAX_FLOWS: usize = 64;
/// Most places of a ring, and buffers of a pool.
const MAX_RING: usize = 1 << 20;
/// Least buffers of a pool: two frames of coalesced segments, as one is being read while the next arrives.
const MIN_BUFFERS: usize = 64;
/// Most memory of a host in bytes.
const MAX_MEMORY: f64 = (1u64 << 40) as f64;
/// Largest socket buffer in bytes: the largest window that TCP can express (RFC 7323 section 2.3).
const MAX_BUFFER: f64 = (1u64 << 30) as f64;

/// The scenario of a file, `-` for standard input, with the changes of `--set`.
///
/// # Errors
/// The first mistake with its place in the file, or the change that does not fit.
pub fn load(path: &Path, sets: &[String]) -> Result<Scenario, SimError> {
    let read = match path.as_os_str() == "-" {
        true => std::io::read_to_string(std::io::stdin()),
        false => std::fs::read_to_string(path),
    };
    let text = read.map_err(|why| SimError::Unreadable { path: path.to_owned(), why })?;
    let malformed = |mistake| SimError::Malformed { path: path.to_owned(), mistake };
    let scenario = parse(&text).map_err(malformed)?;
    if sets.is_empty() {
        return Ok(scenario);
    }
    let whole: Table = document::read(&text).map_err(|error| malformed(of_toml(&text, &error)))?;
    with(&whole, sets).map_err(|Refused { change, why }| SimError::Value {
        name: "--set",
        value: change,
        why,
    })
}

/// A change of a scenario that does not fit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// The change.
    pub change: String,
    /// What is wrong, or what was expected.
    pub why: String,
}

/// The scenario of a table that is one, with changes as those of `--set`.
///
/// # Errors
/// The change that does not fit.
pub fn with(whole: &Table, sets: &[String]) -> Result<Scenario, Refused> {
    let refused = |change: &str, why: String| Refused { change: change.to_owned(), why };
    let mut table = whole.clone();
    for change in sets {
        set(&mut table, change).map_err(|why| refused(change, why))?;
    }
    let mistake = match parse(&table.to_string()) {
        Ok(scenario) => return Ok(scenario),
        Err(mistake) => mistake,
    };
    // Some changes are right only together. Where all together are not, the first is named that is wrong, or else the last.
    let mut table = whole.clone();
    for change in sets {
        set(&mut table, change).map_err(|why| refused(change, why))?;
        if let Err(first) = parse(&table.to_string())
            && first.what == mistake.what
        {
            return Err(refused(change, first.what));
        }
    }
    Err(refused(sets.last().map_or("", String::as_str), mistake.what))
}

/// The scenario of a text.
pub fn parse(text: &str) -> Result<Scenario, Mistake> {
    let scenario: Scenario = document::read(text).map_err(|error| of_toml(text, &error))?;
    check(text, &scenario)?;
    Ok(scenario)
}

fn of_toml(text: &str, error: &ReadError) -> Mistake {
    Mistake::at(text, &error.span().unwrap_or(text.len()..text.len()), plain(error.message()))
}

/// Changes one key of a table; `change` is `key.key=value`, where a value that is not TOML is text.
fn set(table: &mut Table, change: &str) -> Result<(), String> {
    let (key, value) = change.split_once('=').ok_or("expected KEY=VALUE, as in link.delay=\"20 ms\"")?;
    let value = value.trim();
    let value = format!("value = {value}")
        .parse::<Table>()
        .ok()
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| Value::String(value.to_owned()));
    let mut names = key.trim().split('.');
    let first = names.next().unwrap_or("");
    let mut place: &mut Value = table.entry(first).or_insert_with(|| match first {
        // The transfer that there is where the file names none.
        "flow" => Value::Array(vec![Value::Table(Table::new())]),
        "change" => Value::Array(Vec::new()),
        _ => Value::Table(Table::new()),
    });
    for name in names {
        place = match place {
            Value::Array(list) => {
                let count = list.len();
                let index = name.parse::<usize>().ok();
                let Some(entry) = index.and_then(|index| list.get_mut(index)) else {
                    return Err(match count {
                        0 => format!("the file has no [[{first}]]"),
                        _ => format!("expected a number below {count} instead of {name:?}"),
                    });
                };
                entry
            }
            Value::Table(table) => table.entry(name).or_insert_with(|| Value::Table(Table::new())),
            _ => return Err(format!("there are no keys below a value; {name:?} is one too many")),
        };
    }
    *place = value;
    Ok(())
}

/// A mistake at a value unless it lies in its range.
fn within<T: PartialOrd + Copy>(
    text: &str,
    value: &Option<Spanned<T>>,
    least: T,
    most: T,
    expected: &str,
) -> Result<(), Mistake> {
    match value {
        Some(value) if *value.get_ref() < least || *value.get_ref() > most => {
            Err(Mistake::at(text, &value.span(), format!("expected {expected}")))
        }
        _ => Ok(()),
    }
}

/// What types cannot say; `text` is what the scenario was read from.
///
/// # Errors
/// The first mistake with its place.
pub fn check(text: &str, scenario: &Scenario) -> Result<(), Mistake> {
    let world = &scenario.world;
    if let Some(duration) = &world.duration
        && !(1e3..=MAX_SECONDS * 1e9).contains(&duration.get_ref().value())
    {
        return Err(Mistake::at(text, &duration.span(), format!("expected 1 us to {MAX_SECONDS} s")));
    }
    within(text, &world.mtu, 576, 9_216, "576 to 9216 bytes")?;
    if let Some(ip) = &world.ip
        && !matches!(ip.get_ref(), 4 | 6)
    {
        return Err(Mistake::at(text, &ip.span(), "expected 4 or 6"));
    }
    if world.ip.as_ref().is_some_and(|ip| *ip.get_ref() == 6) {
        // Every link that carries IPv6 carries packets of this length (RFC 8200 section 5).
        within(text, &world.mtu, LEAST_MTU6, usize::MAX, &format!("{LEAST_MTU6} or more with ip = 6"))?;
    }
    if scenario.flow.len() > MAX_FLOWS {
        return Err(Mistake::at(text, &(0..0), format!("expected at most {MAX_FLOWS} flows")));
    }
    let changes = scenario.change.iter();
    let changed = changes.flat_map(|change| [&change.link, &change.from_server, &change.from_client]);
    for path in [&scenario.link, &scenario.from_server, &scenario.from_client].into_iter().chain(changed) {
        within(text, &path.mtu, 68, 65_535, "68 to 65535 bytes")?;
    }
    check_queues(text, scenario)?;
    for host in [&scenario.client, &scenario.server] {
        check_host(text, host)?;
        check_tcp(text, &host.tcp)?;
    }
    scenario.flow.iter().try_for_each(|flow| {
        if let Some(bytes) = &flow.bytes
            && bytes.get_ref().value() < 1024.0
            && bytes.get_ref().value().fract() != 0.0
        {
            return Err(Mistake::at(text, &bytes.span(), "expected whole bytes, such as 1 B"));
        }
        check_tcp(text, &flow.tcp)
    })
}

/// What no interface, loop or stack can have.
fn check_host(text: &str, host: &HostTable) -> Result<(), Mistake> {
    let ring = format!("1 to {MAX_RING}");
    within(text, &host.tx_ring, 1, MAX_RING, &format!("{ring} packets"))?;
    within(text, &host.rx_ring, 1, MAX_RING, &format!("{ring} frames"))?;
    within(
        text,
        &host.rx_buffers,
        MIN_BUFFERS,
        MAX_RING,
        &format!("{MIN_BUFFERS} (two coalesced frames) to {MAX_RING} buffers"),
    )?;
    within(text, &host.interrupt_packets, 1, u32::MAX, "1 packet or more")?;
    let (none, second) = (Nanoseconds::ZERO, Nanoseconds::new(1e9));
    within(text, &host.interrupt_timer, none, second, "0 s to 1 s")?;
    within(text, &host.queues, 1, MAX_QUEUES, &format!("1 to {MAX_QUEUES} queues"))?;
    within(text, &host.letter_delay, none, second, "0 s to 1 s")?;
    for cost in host.processor.costs() {
        within(text, cost, none, second, "0 s to 1 s")?;
    }
    let least = Bytes::new(LEAST_MEMORY as f64);
    let expected = format!("{} at least: less is too small for one connection", bytes(LEAST_MEMORY as u64));
    within(text, &host.memory, least, Bytes::new(MAX_MEMORY), &expected)
}

/// What no socket can have.
fn check_tcp(text: &str, tcp: &TcpTable) -> Result<(), Mistake> {
    let (least, most) = (Bytes::new(LEAST_BUFFER as f64), Bytes::new(MAX_BUFFER));
    let expected = format!("{} to {}", bytes(LEAST_BUFFER as u64), bytes(MAX_BUFFER as u64));
    for size in [&tcp.send_buffer, &tcp.receive_buffer, &tcp.send_buffer_max, &tcp.receive_buffer_max] {
        within(text, size, least, most, &expected)?;
    }
    within(text, &tcp.mss, MIN_MSS, u16::MAX, &format!("{MIN_MSS} to 65535 bytes"))?;
    within(text, &tcp.delayed_ack_segments, 1, u8::MAX, "1 to 255 segments")?;
    let (least, most) = (Nanoseconds::new(1e6), Nanoseconds::new(MAX_SECONDS * 1e9));
    within(text, &tcp.user_timeout, least, most, &format!("1 ms to {MAX_SECONDS} s"))
}

/// The queues of both directions, as they are at first and after each change.
fn check_queues(text: &str, scenario: &Scenario) -> Result<(), Mistake> {
    let changes = scenario.changes();
    for (path, of) in [
        (&scenario.from_server, (|change| &change.from_server) as fn(&ChangeTable) -> &PathTable),
        (&scenario.from_client, |change| &change.from_client),
    ] {
        let mut whole = path.clone().over(&scenario.link);
        check_queue(text, &whole)?;
        for change in &changes {
            whole = of(change).clone().over(&change.link).over(&whole);
            check_queue(text, &whole)?;
        }
    }
    Ok(())
}

/// A queue stands in front of a rate.
fn check_queue(text: &str, path: &PathTable) -> Result<(), Mistake> {
    match (&path.queue, path.rate) {
        (Some(queue), None) => {
            let what = match queue.get_ref() {
                QueueModel::Time(_) => {
                    "a queue in time needs the rate that it is emptied at; expected a rate beside it"
                }
                QueueModel::Of(_) => "nothing waits where there is no rate; expected a rate beside it",
            };
            Err(Mistake::at(text, &queue.span(), what))
        }
        (Some(queue), Some(rate)) => match queue.get_ref() {
            QueueModel::Time(time) if rate.bytes().value() * time.as_secs_f64() < LEAST_QUEUE as f64 => {
                Err(Mistake::at(text, &queue.span(), no_room()))
            }
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_have_place_key_and_remedy() {
        let check = refused;
        check(
            "[link]\nrate = \"fast\"\n",
            "line 2, column 8: rate: \"fast\" starts with no number; expected",
        );
        check("[link]\nrate = 100\n", "line 2, column 8: rate: ");
        check("[server]\nqueues = 0\n", "line 2, column 10: queues: expected 1 to 64 queues");
        check("[server]\nspread = \"rss\"\n", "unknown variant `rss`, expected one of `hash`");
        check("[link]\nloss = \"3 ms\"\n", "expected 0 % to 100 %");
        check("[link]\nloss = \"120 %\"\n", "expected 0 % to 100 %");
        check("[link]\nloss = { each = 3 }\n", "unknown field `each`, expected one of `every`");
        check("[link]\nloss = { enter = \"1 %\" }\n", "expected a share such as");
        check(
            "[link]\nqueue = \"64 KiB\"\n",
            "line 2, column 9: queue: nothing waits where there is no rate",
        );
        check(
            "[link]\nrate = \"1 Mbit/s\"\nqueue = { codel = true, bytes = \"3 KiB\" }\n",
            "these keys make no queue",
        );
        check("[world]\nduration = \"2 h\"\n", "line 2, column 12: duration: ");
        parse("[world]\nduration = \"3600 s\"\n").unwrap();
        check("[world]\nmtu = 100\n", "mtu: expected 576 to 9216 bytes");
        check("[world]\nip = 5\n", "expected 4 or 6");
        check("[world]\nmtu = 1279\nip = 6\n", "line 2, column 7: mtu: expected 1280 or more with ip = 6");
        parse("[world]\nmtu = 1280\nip = 6\n").unwrap();
        check(
            "[serve]\n",
            "unknown field `serve`, expected one of `title`, `world`, `client`, `server`, `link`",
        );
        check("[[flow]]\nfrom = \"me\"\n", "unknown variant `me`, expected `client` or `server`");
        check("[[flow]]\nreader = \"slow\"\n", "no way to read; expected a rate");
        check("[client]\nrx-ring = 0\n", "line 2, column 11: rx-ring: expected 1 to 1048576 frames");
        check("[server]\ntx-ring = 0\n", "tx-ring: expected 1 to 1048576 packets");
        check("[server]\nrx-buffers = 3\n", "rx-buffers: expected 64");
        check("[server]\nmemory = \"1 KiB\"\n", "memory: expected 16 KiB at least");
        check("[server]\ninterrupt-packets = 0\n", "interrupt-packets: expected 1 packet");
        check("[client.tcp]\nreceive-buffer = \"1 B\"\n", "receive-buffer: expected 2 KiB to 1 GiB");
        check("[[flow]]\ntcp = { send-buffer = \"2 GiB\" }\n", "expected 2 KiB to 1 GiB");
        check("[client.tcp]\nmss = 1\n", "mss: expected ");
        check("[client.tcp]\ndelayed-ack-segments = 0\n", "expected 1 to 255 segments");
        check("[client.tcp]\nuser-timeout = \"0 s\"\n", "expected 1 ms to 3600 s");
        check("[[flow]]\nwriter = \"slow\"\n", "no way to write; expected a rate");
        check("[[flow]]\nwriter = { bytes = \"3 B\" }\n", "these keys say nothing about writing");
        check("[[flow]]\nwriter = { calls = \"65 KiB\" }\n", "these keys say nothing about writing");
        check("[[flow]]\nwriter = { request = \"1 B\", gives-way = true }\n", "nothing about writing");
        check("[server]\ninterrupt-mode = \"off\"\n", "unknown variant `off`, expected one of `none`");
        check("[server]\nprocessor = { copy = \"2 s\" }\n", "line 2, column 22: processor: expected 0 s");
        check("[client.tcp]\ncongestion = \"bbr\"\n", "expected cubic or reno (or newreno, new-reno)");
    }

    /// Whether a text is refused with these words.
    fn refused(text: &str, expected: &str) {
        let found = parse(text).unwrap_err().to_string();
        assert!(found.contains(expected), "{text:?}: {found:?} lacks {expected:?}");
    }

    #[test]
    fn what_nothing_can_work_with_is_refused_in_words() {
        let check = refused;
        for queue in [
            "\"0 B\"",
            "\"53 B\"",
            "{ packets = 0 }",
            "{ codel = true, packets = 0 }",
            "\"0 ms\"",
            "\"1 us\"",
        ] {
            check(
                &format!("[link]\nrate = \"1 Mbit/s\"\nqueue = {queue}\n"),
                "line 3, column 9: queue: nothing passes such a queue; expected 1 packet and 54 B",
            );
        }
        check(
            "[world]\nmtu = \"x\"\n",
            "line 2, column 7: mtu: invalid type: string \"x\", expected a whole number",
        );
        check("[world]\nseed = -1\n", "expected a whole number from 0 to 18446744073709551615");
        check("[world]\nseed = \"x\"\n", "expected a whole number from 0 to 18446744073709551615");
        let most = parse("[world]\nseed = \"18446744073709551615\"\n").unwrap();
        assert_eq!(most.world.seed, Some(u64::MAX));
        for bytes in ["0.5 B", "1.5 B"] {
            check(
                &format!("[[flow]]\nbytes = \"{bytes}\"\n"),
                "line 2, column 9: bytes: expected whole bytes",
            );
        }
    }

    #[test]
    fn queues_are_checked_after_each_change() {
        let change = |base: &str, keys: &str| format!("{base}[[change]]\nat = \"1 s\"\n{keys}\n");
        let timed = "[link]\nrate = \"1 Mbit/s\"\nqueue = \"20 ms\"\n";
        refused(
            &change("", "link.queue = \"64 KiB\""),
            "line 3, column 14: link.queue: nothing waits where there is no rate",
        );
        refused(&change("", "from-client.queue = \"20 ms\""), "a queue in time needs the rate");
        refused(&change(timed, "link.rate = \"1 kbit/s\""), "line 3, column 9: queue: nothing passes such");
        parse(&change("", "link = { rate = \"1 Mbit/s\", queue = \"20 ms\" }")).unwrap();
        parse(&change(timed, "link.rate = \"2 Mbit/s\"")).unwrap();
        // What comes first in time counts, not what stands first in the file.
        let early = "[[change]]\nat = \"0 s\"\nlink.rate = \"1 Mbit/s\"\n";
        parse(&change("", &format!("link.queue = \"20 ms\"\n{early}"))).unwrap();
    }

    #[test]
    fn keys_are_changed_by_their_path() {
        let check = |text: &str, change: &str, expected: Result<&str, &str>| {
            let mut table: Table = text.parse().unwrap();
            let found = set(&mut table, change).map(|()| table.to_string());
            match expected {
                Ok(lines) => assert_eq!(found.unwrap().trim(), lines, "{change}"),
                Err(why) => assert!(found.unwrap_err().contains(why), "{change}"),
            }
        };
        check("", "link.loss=1 %", Ok("[link]\nloss = \"1 %\""));
        check("[link]\nloss = \"1 %\"", "link.loss={ every = 3 }", Ok("[link.loss]\nevery = 3"));
        check("[[flow]]\nstart = \"1 s\"", "flow.0.start=\"2 s\"", Ok("[[flow]]\nstart = \"2 s\""));
        check("[[flow]]\nstart = \"1 s\"", "flow.1.start=\"2 s\"", Err("expected a number below 1"));
        check("title = \"x\"", "title.y=1", Err("no keys below a value"));
        check("", "flow.0.bytes=\"1 MiB\"", Ok("[[flow]]\nbytes = \"1 MiB\""));
        check("", "flow.1.bytes=\"1 MiB\"", Err("expected a number below 1"));
        check("", "change.0.at=\"1 s\"", Err("the file has no [[change]]"));
        check("", "seed", Err("expected KEY=VALUE"));
    }
}
