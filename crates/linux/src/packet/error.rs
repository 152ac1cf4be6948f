//! Why an interface could not be shared.

use crate::netconfig::NetconfigError;
use std::fmt;
use std::io;

/// Why [`super::PacketDevice::open`] failed. Each says what to do about it.
#[derive(Debug)]
pub enum PacketError {
    /// There is no such interface.
    NoSuchInterface(String),
    /// The interface carries no Ethernet frames (a loopback, a tunnel).
    NotEthernet(String),
    /// The interface is administratively down.
    Down(String),
    /// The process may not open packet sockets.
    Permission,
    /// A receive buffer could not hold the largest frame.
    BufferTooSmall {
        /// Which pool: `large` or `small`.
        pool: &'static str,
        /// Size of its buffers in bytes.
        has: usize,
        /// Smallest size in bytes.
        needs: usize,
    },
    /// The wanted MTU is larger than the interface's.
    Mtu {
        /// What was wanted, in bytes.
        wanted: usize,
        /// What the interface has, in bytes.
        has: usize,
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

impl fmt::Display for PacketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PacketError::NoSuchInterface(name) => write!(f, "there is no interface {name}"),
            PacketError::NotEthernet(name) => write!(f, "the interface {name} carries no Ethernet frames"),
            PacketError::Down(name) => {
                write!(f, "the interface {name} is down: bring it up first (ip link set {name} up)")
            }
            PacketError::Permission => {
                f.write_str("opening a packet socket was refused: it needs CAP_NET_RAW (run as root)")
            }
            PacketError::BufferTooSmall { pool, has, needs } => {
                write!(f, "the {pool} receive buffers have {has} bytes and need {needs}")
            }
            PacketError::Mtu { wanted, has } => {
                write!(f, "an MTU of {wanted} is more than the interface's {has}")
            }
            PacketError::Configure(source) => write!(f, "the interface could not be looked at: {source}"),
            PacketError::Io { step, source } => write!(f, "{step} failed: {source}"),
        }
    }
}

impl std::error::Error for PacketError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            PacketError::Configure(source) => Some(source),
            PacketError::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<NetconfigError> for PacketError {
    fn from(error: NetconfigError) -> Self {
        match error {
            NetconfigError::NoSuchInterface(name) | NetconfigError::Name(name) => {
                PacketError::NoSuchInterface(name)
            }
            other => PacketError::Configure(other),
        }
    }
}
