//! Why a TAP could not be had.

use crate::netconfig::NetconfigError;
use std::fmt;
use std::io;

/// Why [`super::Tap::open`] failed. Each says what to do about it.
#[derive(Debug)]
pub enum TapError {
    /// There is no `/dev/net/tun`: the kernel lacks the driver, or the container lacks the device node.
    NoTunDevice,
    /// The process may not open `/dev/net/tun` or make the interface.
    Permission {
        /// What was refused.
        step: &'static str,
    },
    /// Empty, longer than 15 bytes, or with a byte that no interface name has.
    Name(String),
    /// An interface of that name exists and is no TAP that could be attached.
    NotTap(String),
    /// Another process has the TAP of that name open.
    Busy(String),
    /// A receive buffer could not hold the largest frame.
    BufferTooSmall {
        /// Which pool: `large` or `small`.
        pool: &'static str,
        /// Size of its buffers in bytes.
        has: usize,
        /// Smallest size in bytes.
        needs: usize,
    },
    /// The interface was made, but not configured.
    Configure(NetconfigError),
    /// Anything else, with the step that failed.
    Io {
        /// What was being done.
        step: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}

impl fmt::Display for TapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TapError::NoTunDevice => f.write_str(
                "there is no /dev/net/tun: load the `tun` module, or give the container that device",
            ),
            TapError::Permission { step } => {
                write!(
                    f,
                    "{step} was refused: it needs CAP_NET_ADMIN (run as root), or a TAP that was made for you \
                     (ip tuntap add NAME mode tap user YOU)"
                )
            }
            TapError::Name(name) => write!(
                f,
                "{name:?} is no interface name: 1 to 15 bytes, no space, no slash, no colon, and `%d` at most once"
            ),
            TapError::NotTap(name) => write!(f, "the interface {name} exists and is not a TAP"),
            TapError::Busy(name) => write!(f, "the TAP {name} is in use by another process"),
            TapError::BufferTooSmall { pool, has, needs } => {
                write!(f, "the {pool} receive buffers have {has} bytes and need {needs}")
            }
            TapError::Configure(source) => write!(f, "the TAP could not be configured: {source}"),
            TapError::Io { step, source } => write!(f, "{step} failed: {source}"),
        }
    }
}

impl std::error::Error for TapError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            TapError::Configure(source) => Some(source),
            TapError::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<NetconfigError> for TapError {
    fn from(source: NetconfigError) -> Self {
        TapError::Configure(source)
    }
}
