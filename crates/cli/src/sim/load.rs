//! Reads a scenario, changes the keys that the command line names, and checks what the syntax cannot.

use super::error::{Mistake, SimError};
use super::models::QueueModel;
use super::scenario::{PathTable, Scenario};
use std::path::Path;
use toml::{Spanned, Table, Value};

/// Longest virtual time in seconds.
const MAX_SECONDS: f64 = 3_600.0;
/// Most transfers.
const MAX_FLOWS: usize = 64;

/// The scenario of a file with the changes of `--set`.
///
/// # Errors
/// The first mistake with its place in the file, or the change that does not fit.
pub fn load(path: &Path, sets: &[String]) -> Result<Scenario, SimError> {
    let text =
        std::fs::read_to_string(path).map_err(|why| SimError::Unreadable { path: path.to_owned(), why })?;
    let malformed = |mistake| SimError::Malformed { path: path.to_owned(), mistake };
    let mut scenario = parse(&text).map_err(malformed)?;
    if sets.is_empty() {
        return Ok(scenario);
    }
    let mut table: Table = text.parse().map_err(|error| malformed(of_toml(&text, &error)))?;
    for change in sets {
        let refused = |why: String| SimError::Value { name: "--set", value: change.clone(), why };
        set(&mut table, change).map_err(refused)?;
        scenario = parse(&table.to_string()).map_err(|mistake| refused(mistake.what))?;
    }
    Ok(scenario)
}

/// The scenario of a text.
pub fn parse(text: &str) -> Result<Scenario, Mistake> {
    let scenario: Scenario = toml::from_str(text).map_err(|error| of_toml(text, &error))?;
    check(text, &scenario)?;
    Ok(scenario)
}

fn of_toml(text: &str, error: &toml::de::Error) -> Mistake {
    Mistake::at(text, &error.span().unwrap_or(text.len()..text.len()), error.message())
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
    let mut names = key.trim().split('.').peekable();
    let mut place: &mut Value = names
        .next()
        .map(|name| table.entry(name).or_insert_with(|| Value::Table(Table::new())))
        .ok_or("expected a key")?;
    for name in names {
        place = match place {
            Value::Array(list) => {
                let count = list.len();
                let index = name.parse::<usize>().ok();
                index
                    .and_then(|index| list.get_mut(index))
                    .ok_or(format!("expected a number below {count} instead of {name:?}"))?
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

/// What types cannot say.
fn check(text: &str, scenario: &Scenario) -> Result<(), Mistake> {
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
    if scenario.flow.len() > MAX_FLOWS {
        return Err(Mistake::at(text, &(0..0), format!("expected at most {MAX_FLOWS} flows")));
    }
    let changes = scenario.change.iter();
    let changed = changes.flat_map(|change| [&change.link, &change.from_server, &change.from_client]);
    for path in [&scenario.link, &scenario.from_server, &scenario.from_client].into_iter().chain(changed) {
        within(text, &path.mtu, 68, 65_535, "68 to 65535 bytes")?;
    }
    for path in [&scenario.from_server, &scenario.from_client] {
        check_queue(text, &path.clone().over(&scenario.link))?;
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
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_have_place_key_and_remedy() {
        let check = |text: &str, expected: &str| {
            let found = parse(text).unwrap_err().to_string();
            assert!(found.contains(expected), "{text:?}: {found:?} lacks {expected:?}");
        };
        check(
            "[link]\nrate = \"fast\"\n",
            "line 2, column 8: rate: \"fast\" starts with no number; expected",
        );
        check("[link]\nrate = 100\n", "line 2, column 8: rate: ");
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
        check("[world]\nmtu = 100\n", "mtu: expected 576 to 9216 bytes");
        check("[world]\nip = 5\n", "expected 4 or 6");
        check(
            "[serve]\n",
            "unknown field `serve`, expected one of `title`, `world`, `client`, `server`, `link`",
        );
        check("[[flow]]\nfrom = \"me\"\n", "unknown variant `me`, expected `client` or `server`");
        check("[[flow]]\nreader = \"slow\"\n", "no way to read; expected a rate");
        check("[client.tcp]\ncongestion = \"bbr\"\n", "expected cubic, newreno or new-reno");
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
        check("", "seed", Err("expected KEY=VALUE"));
    }
}
