//! Why the kernel's network could not be configured.

use rustix::io::Errno;
use std::fmt;
use std::io;
use std::net::IpAddr;

/// Why a request to rtnetlink failed.
#[derive(Debug)]
pub enum NetconfigError {
    /// No interface has that name or number.
    NoSuchInterface(String),
    /// Not a name that an interface can have.
    Name(String),
    /// The prefix is longer than the address.
    Prefix(IpAddr, u8),
    /// The process lacks CAP_NET_ADMIN.
    Permission {
        /// What was refused.
        step: &'static str,
    },
    /// IPv6 is switched off on the interface (`net.ipv6.conf.*.disable_ipv6`) or in the kernel.
    NoIpv6,
    /// The kernel refused it.
    Refused {
        /// What was being done.
        step: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The netlink socket failed, or gave no answer.
    Socket(io::Error),
    /// The kernel's answer was not understood.
    Answer,
}

impl NetconfigError {
    /// What an error number in answer to `step` means.
    pub(super) fn refused(step: &'static str, error: Errno) -> Self {
        match error {
            Errno::PERM => NetconfigError::Permission { step },
            other => NetconfigError::Refused { step, source: other.into() },
        }
    }
}

impl From<Errno> for NetconfigError {
    fn from(error: Errno) -> Self {
        NetconfigError::Socket(error.into())
    }
}

impl fmt::Display for NetconfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NetconfigError::NoSuchInterface(name) => write!(f, "there is no interface {name}"),
            NetconfigError::Name(name) => write!(f, "\"{name}\" is no interface name"),
            NetconfigError::Prefix(address, len) => {
                write!(f, "a prefix of {len} bits is longer than the address {address}")
            }
            NetconfigError::Permission { step } => {
                write!(f, "{step} was refused: it needs CAP_NET_ADMIN (run as root)")
            }
            NetconfigError::NoIpv6 => f.write_str("IPv6 is switched off on this interface or in this kernel"),
            NetconfigError::Refused { step, source } => write!(f, "{step} failed: {source}"),
            NetconfigError::Socket(source) => write!(f, "the netlink socket failed: {source}"),
            NetconfigError::Answer => f.write_str("the kernel's netlink answer was not understood"),
        }
    }
}

impl std::error::Error for NetconfigError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            NetconfigError::Refused { source, .. } | NetconfigError::Socket(source) => Some(source),
            _ => None,
        }
    }
}
