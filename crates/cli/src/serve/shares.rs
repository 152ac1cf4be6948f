//! How the connections that a transport can hold are divided among the servers, so that a flood of one of them leaves the
//! others usable.
//!
//! | part | of the table | at 4,096 |
//! |---|---|---|
//! | connections that wait to be accepted | 1/8 (HTTP a half of it, FTP and iperf3 a quarter each) | 512 |
//! | iperf3 | 1/16, at least 144: a test of 128 streams with its control connection, and some | 256 |
//! | FTP | 3/16, at least 64: a control and a data connection for each session | 768, 384 sessions |
//! | HTTP | the rest | 2,560 |
//!
//! What a server does not have because it is off, the others get. Each server keeps to its part by itself
//! ([`linerate_serve::admission`]); closing connections take what is free and give way.

use crate::settings::LimitSettings;
use linerate_transport::AcceptBacklog;

/// Bytes that an idle connection of our own stack takes with what HTTP remembers of it: 1,357 of resident memory were measured
/// with 100,000 (docs/memory.md); and some room. Nine tenths of HTTP's part are held when newcomers begin to take the place of others;
/// with this, they are 100,000 at 256 MiB.
const OWN_BYTES: u64 = 1_472;
/// Most connections of our own stack unless the settings say more: its tables take 50 bytes each from the start.
const MOST_OWN: usize = 1 << 18;
/// The same for kernel sockets, a quarter of the memory at 1 KiB each: their buffers are the kernel's.
const KERNEL_BYTES: u64 = 4 * 1_024;
/// Fewest connections whatever the memory, unless descriptors are short.
const FEWEST: usize = 512;
/// Most connections.
const MOST: usize = 1 << 20;
/// Descriptors that connections leave for files, listeners and the loop.
const OTHER_DESCRIPTORS: usize = 512;
/// Fewest connections of kernel sockets, and descriptors that they need to hold.
const FEWEST_KERNEL: usize = 64;
/// With fewer, connections are refused sooner than the table says.
pub const DESCRIPTORS: usize = OTHER_DESCRIPTORS + FEWEST_KERNEL / 16 * 17;
/// Connections of one iperf3 test with as many streams as the original allows, and room for those that come.
const IPERF3_LEAST: usize = 144;

/// Connections that our own stack holds with this memory in bytes: as many as fit if all are idle.
pub fn own_table(memory: u64, limits: &LimitSettings) -> usize {
    limits.connections.unwrap_or_else(|| by_memory(memory, OWN_BYTES).min(MOST_OWN))
}

/// Connections that kernel sockets hold with this memory and so many descriptors.
pub fn kernel_table(memory: u64, descriptors: usize, limits: &LimitSettings) -> usize {
    let wanted = limits.connections.unwrap_or_else(|| by_memory(memory, KERNEL_BYTES));
    // A sixteenth of the connections may each have a file open (FTP).
    let possible = descriptors.saturating_sub(OTHER_DESCRIPTORS) / 17 * 16;
    wanted.min(possible).max(FEWEST_KERNEL)
}

fn by_memory(memory: u64, bytes: u64) -> usize {
    usize::try_from(memory / bytes).unwrap_or(MOST).clamp(FEWEST, MOST)
}

/// What each server may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shares {
    /// Connections of HTTP.
    pub http: usize,
    /// Of them from one address.
    pub http_per_address: usize,
    /// Accept queue of HTTP.
    pub http_backlog: AcceptBacklog,
    /// Sessions of FTP.
    pub ftp_sessions: usize,
    /// Of them from one address.
    pub ftp_per_address: usize,
    /// Connections of iperf3.
    pub iperf3: usize,
    /// Of them from one address.
    pub iperf3_per_address: usize,
    /// Accept queues of FTP and iperf3.
    pub backlog: AcceptBacklog,
}

impl Shares {
    /// The parts of a table of so many connections for the servers that are on (HTTP, FTP, iperf3).
    pub fn new(table: usize, [http, ftp, iperf3]: [bool; 3], limits: &LimitSettings) -> Shares {
        let backlog = |part: usize| AcceptBacklog(u16::try_from(part.clamp(16, 4_096)).unwrap_or(u16::MAX));
        let waiting = table / 8;
        let left = table - waiting;
        let iperf3_conns = match iperf3 {
            true if !http && !ftp => left,
            true => (table / 16).max(IPERF3_LEAST).min(left / 3),
            false => 0,
        };
        let ftp_conns = match ftp {
            true if !http => left - iperf3_conns,
            true => (table / 16 * 3).max(64).min(left / 3),
            false => 0,
        };
        let http_conns = left - iperf3_conns - ftp_conns;
        let ftp_sessions = (ftp_conns / 2).max(1);
        let of = |given: Option<usize>, default: usize, share: usize| {
            given.unwrap_or(default).clamp(1, share.max(1))
        };
        Shares {
            http: http_conns,
            http_per_address: of(limits.http_per_address, http_conns / 2, http_conns),
            http_backlog: backlog(waiting / 2),
            ftp_sessions,
            ftp_per_address: of(limits.ftp_per_address, (ftp_sessions / 2).min(50), ftp_sessions),
            iperf3: iperf3_conns,
            iperf3_per_address: of(limits.iperf3_per_address, iperf3_conns / 8 * 7, iperf3_conns),
            backlog: backlog(waiting / 4),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_grows_with_memory_and_fits_the_descriptors() {
        let limits = LimitSettings::default();
        for (memory, own, kernel) in [(4, 2_849, 1_024), (64, 45_590, 16_384), (1_024, 262_144, 262_144)] {
            assert_eq!(own_table(memory << 20, &limits), own, "{memory} MiB");
            assert_eq!(kernel_table(memory << 20, 1 << 20, &limits), kernel, "{memory} MiB");
        }
        assert_eq!((own_table(1 << 40, &limits), own_table(0, &limits)), (1 << 18, 512));
        let shares = Shares::new(own_table(256 << 20, &limits), [true; 3], &limits);
        assert!(
            shares.http / 10 * 9 >= 100_000,
            "all of them find a place before others give way: {shares:?}"
        );
        assert_eq!(kernel_table(64 << 20, 1_024, &limits), 480);
        assert_eq!(kernel_table(64 << 20, 256, &limits), 64, "so few descriptors are counted on");
        let given = LimitSettings { connections: Some(1_000), ..limits };
        assert_eq!((own_table(64 << 20, &given), kernel_table(64 << 20, 20_000, &given)), (1_000, 1_000));
    }

    #[test]
    fn all_parts_fit_the_table_and_none_is_empty() {
        let limits = LimitSettings::default();
        for table in [64, 100, 512, 1_000, 4_096, 65_536, 1 << 20] {
            for on in 1..8_u8 {
                let on = [on & 1 > 0, on & 2 > 0, on & 4 > 0];
                let shares = Shares::new(table, on, &limits);
                let queues = if table < 512 { 0 } else { table / 8 };
                let ftp = if on[1] { 2 * shares.ftp_sessions } else { 0 };
                assert!(shares.http + ftp + shares.iperf3 + queues <= table, "{table} {shares:?}");
                assert!(!on[0] || shares.http > shares.http_per_address, "{table} {shares:?}");
                assert!(!on[1] || shares.ftp_sessions > shares.ftp_per_address, "{table} {shares:?}");
                assert!(!on[2] || shares.iperf3 > shares.iperf3_per_address, "{table} {shares:?}");
            }
        }
        let shares = Shares::new(4_096, [true; 3], &limits);
        assert_eq!((shares.http, shares.ftp_sessions, shares.iperf3), (2_560, 384, 256));
        assert_eq!((shares.http_per_address, shares.ftp_per_address), (1_280, 50));
        assert_eq!((shares.http_backlog, shares.backlog), (AcceptBacklog(256), AcceptBacklog(128)));
        let shares = Shares::new(512, [true; 3], &limits);
        assert!(shares.iperf3_per_address > 101, "a test of 100 streams: {shares:?}");
        let given = LimitSettings { http_per_address: Some(9_999), ..limits };
        assert_eq!(Shares::new(4_096, [true; 3], &given).http_per_address, 2_560);
    }
}
