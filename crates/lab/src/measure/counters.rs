//! Counters of the kernel's network stack: `/proc/net/snmp` and `/proc/net/netstat`.

use std::fs::read_to_string;

/// What TCP has counted since the machine, or the network namespace, began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tcp {
    /// Segments that were sent.
    pub sent: u64,
    /// Segments that were sent again.
    pub retransmitted: u64,
    /// Of these, first segments of connections.
    pub syn_retransmitted: u64,
    /// Connections that found no room at a listener.
    pub listen_drops: u64,
}

impl Tcp {
    /// Of the namespace that a process is in, or of our own.
    pub fn now(pid: Option<u32>) -> Option<Tcp> {
        let folder = pid.map_or("/proc/self/net".to_owned(), |pid| format!("/proc/{pid}/net"));
        let (snmp, netstat) = (
            read_to_string(format!("{folder}/snmp")).ok()?,
            read_to_string(format!("{folder}/netstat")).ok()?,
        );
        Some(Tcp {
            sent: counter(&snmp, "Tcp", "OutSegs")?,
            retransmitted: counter(&snmp, "Tcp", "RetransSegs")?,
            syn_retransmitted: counter(&netstat, "TcpExt", "TCPSynRetrans").unwrap_or(0),
            listen_drops: counter(&netstat, "TcpExt", "ListenDrops").unwrap_or(0),
        })
    }

    /// What was counted since.
    pub fn since(self, before: Tcp) -> Tcp {
        Tcp {
            sent: self.sent.saturating_sub(before.sent),
            retransmitted: self.retransmitted.saturating_sub(before.retransmitted),
            syn_retransmitted: self.syn_retransmitted.saturating_sub(before.syn_retransmitted),
            listen_drops: self.listen_drops.saturating_sub(before.listen_drops),
        }
    }
}

/// A counter of two lines, names above values.
fn counter(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(group)?.strip_prefix(':'));
    let (names, values) = (lines.next()?, lines.next()?);
    let at = names.split_whitespace().position(|word| word == name)?;
    values.split_whitespace().nth(at)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_by_name() {
        let text = "Ip: A B\nIp: 1 2\nTcp: MaxConn OutSegs RetransSegs\nTcp: -1 70 3\n";
        assert_eq!(counter(text, "Tcp", "OutSegs"), Some(70));
        assert_eq!(counter(text, "Tcp", "MaxConn"), None, "not a count");
        assert_eq!(counter(text, "Tcp", "None"), None);
        assert_eq!(counter(text, "Udp", "A"), None);
        let now = Tcp::now(None).unwrap();
        assert_eq!(Tcp::now(Some(std::process::id())).map(|again| again.sent >= now.sent), Some(true));
        assert_eq!(now.since(now), Tcp::default());
    }
}
