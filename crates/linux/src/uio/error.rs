//! Why a network interface in programmable logic cannot be had.

use linerate_nic::DeviceError;
use linerate_nic::mcdma::{self, StartError};
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why [`super::UioQueue::open_all`] failed. Each says what to do about it.
#[derive(Debug)]
pub enum UioError {
    /// No UIO device has this name.
    NoSuchDevice {
        /// The name.
        name: String,
        /// Names of those that there are.
        there: Vec<String>,
        /// Where they were looked for.
        looked: PathBuf,
    },
    /// Several UIO devices have this name.
    Ambiguous(String),
    /// There is no DMA buffer.
    NoBuffer {
        /// Where it was looked for.
        looked: PathBuf,
    },
    /// The registers end before the last one that the driver needs.
    Registers {
        /// Bytes that there are.
        have: usize,
        /// Bytes that there should be.
        need: usize,
    },
    /// The DMA buffer is too small for so many queues.
    BufferTooSmall {
        /// Which buffer.
        name: String,
        /// Its bytes.
        have: usize,
        /// Bytes that these queues need.
        need: usize,
        /// How many queues.
        queues: usize,
    },
    /// The processor's cache would stand between us and the device.
    Cached {
        /// Which buffer.
        name: String,
        /// Its `sync_mode`.
        mode: u64,
    },
    /// Somebody else has the buffer.
    InUse(PathBuf),
    /// We may not open it.
    Permission(PathBuf),
    /// A file under `/sys` does not hold a number.
    NotANumber {
        /// Which.
        path: PathBuf,
        /// What it holds.
        text: String,
    },
    /// The UIO driver cannot let interrupts through again.
    NoInterruptControl(io::Error),
    /// The hardware, or the driver's settings.
    Open(mcdma::OpenError),
    /// The memory of a queue.
    Start(StartError),
    /// The hardware does not steer as is needed for several queues.
    Steering(DeviceError),
    /// Anything else, with what it happened to.
    Io {
        /// What was being done.
        step: &'static str,
        /// To which file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
}

impl fmt::Display for UioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UioError::NoSuchDevice { name, there, looked } if there.is_empty() => write!(
                f,
                "there is no UIO device {name}: {} has none at all (is the kernel's UIO driver bound to the interface?)",
                looked.display()
            ),
            UioError::NoSuchDevice { name, there, looked } => write!(
                f,
                "there is no UIO device {name} in {}: there are {}",
                looked.display(),
                there.join(", ")
            ),
            UioError::Ambiguous(name) => write!(f, "several UIO devices have the name {name}"),
            UioError::NoBuffer { looked } => write!(
                f,
                "there is no DMA buffer in {}: load the module u-dma-buf (insmod u-dma-buf.ko udmabuf0=16777216)",
                looked.display()
            ),
            UioError::Registers { have, need } => {
                write!(f, "the UIO device maps {have} bytes of registers: the interface has {need}")
            }
            UioError::BufferTooSmall { name, have, need, queues } => {
                write!(f, "the DMA buffer {name} has {have} bytes: {queues} queues need {need}")
            }
            UioError::Cached { name, mode } => write!(
                f,
                "the DMA buffer {name} is cached (sync_mode {mode}) and the device does not see the cache: echo 1 > \
                 /sys/class/u-dma-buf/{name}/sync_mode"
            ),
            UioError::InUse(path) => write!(f, "{} is in use by another process", path.display()),
            UioError::Permission(path) => {
                write!(f, "opening {} was refused: run as root, or change its permissions", path.display())
            }
            UioError::NotANumber { path, text } => {
                write!(f, "{} holds {text:?}: expected a number", path.display())
            }
            UioError::NoInterruptControl(source) => write!(
                f,
                "the UIO driver cannot let interrupts through again ({source}): use uio_pdrv_genirq, or one with irqcontrol"
            ),
            UioError::Open(error) => error.fmt(f),
            UioError::Start(error) => error.fmt(f),
            UioError::Steering(error) => write!(f, "spreading frames over the queues: {error}"),
            UioError::Io { step, path, source } => write!(f, "{step} {}: {source}", path.display()),
        }
    }
}

impl std::error::Error for UioError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            UioError::NoInterruptControl(source) | UioError::Io { source, .. } => Some(source),
            UioError::Open(source) => Some(source),
            UioError::Start(source) => Some(source),
            _ => None,
        }
    }
}
