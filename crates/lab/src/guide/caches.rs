//! The caches as the system describes them.

use serde::Serialize;
use std::fs::{read_dir, read_to_string};
use std::path::Path;

/// One cache of data.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Cache {
    /// 1 is nearest to the core.
    pub level: u32,
    /// How much it holds.
    pub bytes: u64,
    /// Bytes of a line.
    pub line_bytes: u64,
    /// Lines of a set; 0 where not told.
    pub ways: u32,
    /// How many cores share it.
    pub shared_by: u32,
}

/// Where Linux describes the caches of the first core.
pub const FOLDER: &str = "/sys/devices/system/cpu/cpu0/cache";

/// The caches of data below a folder like [`FOLDER`], the nearest first. None where the system tells nothing.
pub fn read(folder: &Path) -> Vec<Cache> {
    let entries = read_dir(folder).into_iter().flatten().flatten();
    let mut caches: Vec<Cache> = entries.filter_map(|entry| cache(&entry.path())).collect();
    caches.sort_by_key(|cache| cache.level);
    caches
}

fn cache(folder: &Path) -> Option<Cache> {
    let text = |name: &str| Some(read_to_string(folder.join(name)).ok()?.trim().to_owned());
    if text("type")? == "Instruction" {
        return None;
    }
    Some(Cache {
        level: text("level")?.parse().ok()?,
        bytes: size(&text("size")?)?,
        line_bytes: text("coherency_line_size").and_then(|line| line.parse().ok()).unwrap_or(64),
        ways: text("ways_of_associativity").and_then(|ways| ways.parse().ok()).unwrap_or(0),
        shared_by: text("shared_cpu_list").map_or(1, |list| count(&list)).max(1),
    })
}

/// "48K", "32M".
fn size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let factor = match text.get(digits.len()..)? {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

/// How many numbers a list such as "0-3,8" has.
fn count(list: &str) -> u32 {
    let part = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse::<u32>().ok()?, last.trim().parse::<u32>().ok()?);
        Some(last.checked_sub(first)?.saturating_add(1))
    };
    list.split(',').filter_map(part).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_lists_are_read() {
        for (text, bytes) in
            [("48K", Some(48 << 10)), ("32M", Some(32 << 20)), ("512", Some(512)), ("x", None), ("1Q", None)]
        {
            assert_eq!(size(text), bytes, "{text}");
        }
        for (list, cores) in [("0", 1), ("0-1", 2), ("0-3,8", 5), ("", 0), ("3-1", 0)] {
            assert_eq!(count(list), cores, "{list}");
        }
    }

    #[test]
    fn a_folder_is_read_nearest_first() {
        let folder = std::env::temp_dir().join(format!("linerate-caches-{}", std::process::id()));
        for (index, kind, level, size) in [
            ("index0", "Unified", "2", "1024K"),
            ("index1", "Data", "1", "48K"),
            ("index2", "Instruction", "1", "32K"),
        ] {
            let at = folder.join(index);
            std::fs::create_dir_all(&at).unwrap();
            for (name, text) in [("type", kind), ("level", level), ("size", size), ("shared_cpu_list", "0-1")]
            {
                std::fs::write(at.join(name), text).unwrap();
            }
        }
        let found: Vec<(u32, u64, u32)> =
            read(&folder).iter().map(|cache| (cache.level, cache.bytes, cache.shared_by)).collect();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, [(1, 48 << 10, 2), (2, 1 << 20, 2)]);
        assert_eq!(read(Path::new("/nowhere")), []);
    }
}
