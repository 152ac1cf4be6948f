//! How a request fails.

use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// What became of a request that was not answered as it should be.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// Nobody listened.
    Refused,
    /// The server, or something on the way, reset the connection.
    Reset,
    /// No answer within the time.
    Timeout,
    /// The server closed the connection before it answered.
    Closed,
    /// The server closed the connection within an answer.
    ShortBody,
    /// An answer with another status.
    Status,
    /// What came is no answer by HTTP/1.1.
    Malformed,
    /// No way to the server.
    Unreachable,
    /// The client had no local port left.
    NoPort,
    /// The client had no file descriptor left.
    NoDescriptor,
    /// Another error of the system.
    System,
}

/// Requests that failed, by kind.
pub type Faults = BTreeMap<Fault, u64>;

impl Fault {
    /// What the system's error of a socket means.
    pub(crate) fn of(error: Errno) -> Fault {
        match error {
            Errno::CONNREFUSED => Fault::Refused,
            Errno::CONNRESET | Errno::PIPE | Errno::CONNABORTED => Fault::Reset,
            Errno::TIMEDOUT => Fault::Timeout,
            Errno::HOSTUNREACH | Errno::NETUNREACH | Errno::NETDOWN | Errno::ACCESS | Errno::PERM => {
                Fault::Unreachable
            }
            Errno::ADDRNOTAVAIL | Errno::ADDRINUSE => Fault::NoPort,
            Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM => Fault::NoDescriptor,
            _ => Fault::System,
        }
    }

    /// Whether the client itself is to blame.
    pub fn is_of_client(self) -> bool {
        matches!(self, Fault::NoPort | Fault::NoDescriptor)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::Refused => "refused",
            Fault::Reset => "reset",
            Fault::Timeout => "timeout",
            Fault::Closed => "closed",
            Fault::ShortBody => "short body",
            Fault::Status => "bad status",
            Fault::Malformed => "malformed",
            Fault::Unreachable => "unreachable",
            Fault::NoPort => "no local port",
            Fault::NoDescriptor => "no descriptor",
            Fault::System => "system error",
        })
    }
}
