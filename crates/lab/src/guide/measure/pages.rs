//! Which pages the system gives: small ones, or large ones where it does so of its own accord.

use serde::Serialize;
use std::fs::read_to_string;

/// What is known of large pages.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Pages {
    /// The system's setting: `always`, `madvise`, `never`, or not told.
    pub setting: String,
    /// How much of the measured block lies in large pages, 0 to 1.
    pub large_share: f64,
    /// Bytes of a page of the block: the small size unless most of it lies in large ones.
    pub page_bytes: u64,
}

/// A large page where base pages are 4 KiB, on x86-64 and on aarch64.
const LARGE: u64 = 2 << 20;

impl Pages {
    /// Of a block of so many bytes, from what the process had in large pages before it and has now.
    pub fn of(block: u64, before: u64, now: u64) -> Pages {
        let large_share = (now.saturating_sub(before) as f64 / block.max(1) as f64).min(1.0);
        let small = rustix::param::page_size() as u64;
        let page_bytes = if large_share > 0.5 { LARGE } else { small };
        Pages { setting: setting(), large_share, page_bytes }
    }

    /// One sentence.
    pub fn sentence(&self) -> String {
        let share = self.large_share * 100.0;
        let hint = match self.setting.as_str() {
            "madvise" => {
                "; safe code cannot ask for more (madvise), but GLIBC_TUNABLES=glibc.malloc.hugetlb=1 before the command \
                 makes the C library ask"
            }
            _ => "",
        };
        format!(
            "Large pages: the system's setting is {}, {share:.0} % of the measured block lie in them{hint}.",
            self.setting
        )
    }
}

fn setting() -> String {
    let text = read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    chosen(&text).unwrap_or("not told").to_owned()
}

/// The word in brackets.
fn chosen(text: &str) -> Option<&str> {
    text.split_once('[')?.1.split_once(']').map(|(word, _)| word)
}

/// Bytes of this process that lie in large pages.
pub fn large_bytes() -> u64 {
    anonymous_large(&read_to_string("/proc/self/smaps_rollup").unwrap_or_default())
}

fn anonymous_large(rollup: &str) -> u64 {
    let line = rollup.lines().find_map(|line| line.strip_prefix("AnonHugePages:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_read() {
        assert_eq!(chosen("always [madvise] never\n"), Some("madvise"));
        assert_eq!(chosen(""), None);
        assert_eq!(anonymous_large("Rss: 5 kB\nAnonHugePages:    2048 kB\n"), 2 << 20);
        assert_eq!(Pages::of(4 << 20, 0, 4 << 20).page_bytes, LARGE);
        assert!(Pages::of(4 << 20, 0, 0).page_bytes < LARGE);
    }
}
