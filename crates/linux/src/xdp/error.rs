//! Why an interface could not be had by AF_XDP.

use crate::netconfig::NetconfigError;
use std::fmt;
use std::io;

/// Why [`super::XdpQueue::open_all`] failed. Each says what to do about it.
#[derive(Debug)]
pub enum XdpError {
    /// There is no such interface.
    NoSuchInterface(String),
    /// The interface carries no Ethernet frames (a loopback, a tunnel).
    NotEthernet(String),
    /// The interface is administratively down.
    Down(String),
    /// The process may not do this.
    Permission {
        /// What was refused.
        step: &'static str,
        /// The capability that it needs.
        capability: &'static str,
    },
    /// The kernel has no AF_XDP sockets, or no bpf(2).
    Kernel {
        /// What it lacks.
        lacks: &'static str,
    },
    /// Another program has the interface, or one of its queues.
    InUse {
        /// The interface.
        name: String,
        /// What is taken.
        what: &'static str,
    },
    /// The wanted MTU is larger than the interface's.
    Mtu {
        /// What was wanted, in bytes.
        wanted: usize,
        /// What the interface has, in bytes.
        has: usize,
    },
    /// Frames of this MTU do not fit into one buffer, and the kernel or the driver cannot use several.
    MtuTooLarge {
        /// The interface.
        name: String,
        /// The MTU in bytes.
        mtu: usize,
        /// The largest that does, in bytes.
        most: usize,
    },
    /// The process may not lock the memory that it shares with the kernel.
    Memlock {
        /// Bytes of one queue.
        needs: usize,
        /// What the limit allows, in bytes; `None` for no limit.
        limit: Option<u64>,
    },
    /// Each receive queue of the interface needs one of ours.
    Queues {
        /// The interface.
        name: String,
        /// Queues that it receives into.
        has: usize,
        /// How many there can be.
        wanted: usize,
    },
    /// The kernel refused the program that picks our frames.
    Program {
        /// What the kernel said.
        source: io::Error,
        /// What its verifier said.
        log: String,
    },
    /// The program could not be attached to the interface.
    Attach {
        /// The interface.
        name: String,
        /// What the kernel said of its driver.
        native: io::Error,
        /// What the kernel said of its own receive path.
        generic: io::Error,
    },
    /// The interface could not be looked at.
    Configure(NetconfigError),
    /// Anything else, with the step that failed.
    Io {
        /// What was being done.
        step: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}

impl fmt::Display for XdpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            XdpError::NoSuchInterface(name) => write!(f, "there is no interface {name}"),
            XdpError::NotEthernet(name) => write!(f, "the interface {name} carries no Ethernet frames"),
            XdpError::Down(name) => {
                write!(f, "the interface {name} is down: bring it up first (ip link set {name} up)")
            }
            XdpError::Permission { step, capability } => {
                write!(f, "{step} was refused: it needs {capability} (run as root)")
            }
            XdpError::Kernel { lacks } => {
                write!(
                    f,
                    "this kernel has no {lacks}; expected Linux 5.9 or later with CONFIG_XDP_SOCKETS and CONFIG_BPF_SYSCALL"
                )
            }
            XdpError::InUse { name, what } => write!(
                f,
                "{what} of {name} is in use by another program: end that, or take its program off (ip link set {name} xdp off)"
            ),
            XdpError::Mtu { wanted, has } => {
                write!(f, "an MTU of {wanted} is more than the interface's {has}")
            }
            XdpError::MtuTooLarge { name, mtu, most } => write!(
                f,
                "frames of MTU {mtu} on {name} need several buffers, which this kernel or driver does not do: --mtu {most} and \
                 ip link set {name} mtu {most} at most"
            ),
            XdpError::Memlock { needs, limit } => {
                write!(f, "locking {needs} bytes for a queue's frames was refused")?;
                match limit {
                    Some(limit) => write!(
                        f,
                        ": the limit is {limit} (ulimit -l); raise it, or ask for less with --memory"
                    ),
                    None => f.write_str(": ask for less with --memory"),
                }
            }
            XdpError::Queues { name, has, wanted } => write!(
                f,
                "{name} receives into {has} queues, and each needs one of the server's, of which there would be {wanted}: \
                 expected --queues {has} with memory for them, or fewer of the interface (ethtool -L {name} combined {wanted})"
            ),
            XdpError::Program { source, log } => {
                write!(f, "the kernel refused the XDP program: {source}")?;
                if log.is_empty() { Ok(()) } else { write!(f, "; its verifier said: {log}") }
            }
            XdpError::Attach { name, native, generic } => write!(
                f,
                "no XDP program can be attached to {name}: its driver says {native}; the kernel's own receive path says {generic}"
            ),
            XdpError::Configure(source) => write!(f, "the interface could not be looked at: {source}"),
            XdpError::Io { step, source } => write!(f, "{step} failed: {source}"),
        }
    }
}

impl std::error::Error for XdpError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            XdpError::Configure(source) => Some(source),
            XdpError::Io { source, .. } | XdpError::Program { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<NetconfigError> for XdpError {
    fn from(error: NetconfigError) -> Self {
        match error {
            NetconfigError::NoSuchInterface(name) | NetconfigError::Name(name) => {
                XdpError::NoSuchInterface(name)
            }
            other => XdpError::Configure(other),
        }
    }
}
