//! What the machine is, and the date.

use super::group::Group;
use super::place::run;
use std::collections::BTreeMap;
use std::fs::read_to_string;
use std::process::Command;

/// The machine in words.
pub fn describe() -> BTreeMap<String, String> {
    let info = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let kernel = read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let memory = read_to_string("/proc/meminfo").unwrap_or_default();
    let memory: u64 = memory.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or(0);
    let load = read_to_string("/proc/loadavg").unwrap_or_default();
    let counted = if Group::new().is_some() {
        "by control groups"
    } else {
        "from /proc: what children used that ended unnoticed is not in it"
    };
    [
        ("processor", model.map_or("not told", |(_, model)| model.trim()).to_owned()),
        ("cores", cores().to_string()),
        ("kernel", format!("Linux {}", kernel.trim())),
        ("memory", format!("{} GiB", (memory + (1 << 19)) >> 20)),
        ("processor time of servers", counted.to_owned()),
        ("load before the run", load.split_whitespace().next().unwrap_or("?").to_owned()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

/// How many cores there are.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Date and time, UTC.
pub fn date() -> String {
    let date = run(Command::new("date").args(["-u", "+%Y-%m-%d %H:%M"])).unwrap_or_default();
    date.trim().to_owned()
}
