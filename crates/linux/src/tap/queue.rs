//! The queues of a TAP as the kernel gives them: descriptors that may go to the threads that are to work with them.

use super::{TX_QUEUE_LEN, Tap, TapError};
use crate::mac;
use crate::netconfig::{Link, LinkChange, NetconfigError, Netlink, is_interface_name};
use crate::rx::RxPools;
use crate::sys::tun::{self, IFNAMSIZ};
use linerate_nic::vnet::HEADER_LEN_MERGEABLE;
use linerate_nic::{Capabilities, MacAddr};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// The longest queue asked for. The kernel has its places in one piece of memory, 8 bytes each, and refuses one of more than 4 MiB with EPERM.
const MOST_QUEUED: usize = 1 << 19;

/// Most queues of a TAP (the kernel's MAX_TAP_QUEUES).
pub const MOST_QUEUES: usize = 256;

/// How to open the queues of a TAP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TapOptions {
    /// Its name, at most 15 bytes. A `%d` in it is replaced by a free number. A TAP that exists (and is not open
    /// anywhere) is attached instead of made.
    pub name: String,
    /// Largest IP packet in bytes; `None` keeps what the interface has, 1,500 on a new one.
    pub mtu: Option<u32>,
    /// Our address, at our end of the cable; `None` makes a random one, locally administered.
    pub mac: Option<MacAddr>,
    /// Frames that there are receive buffers for. On a TAP that we make, as many may wait in each queue,
    /// [`TX_QUEUE_LEN`] at least.
    pub frames: usize,
    /// Queues wanted, 1 to [`MOST_QUEUES`]. A TAP that exists and was made for one queue gives one.
    pub queues: usize,
}

/// One queue of an open TAP. A TAP that was made by opening it disappears when the last of its queues has gone.
///
/// Which queue a frame of the host comes in on is the kernel's choice: the one that our last frame of that flow left by,
/// or else one by the flow's hash.
#[derive(Debug)]
pub struct TapQueue {
    pub(super) fd: OwnedFd,
    pub(super) name: String,
    pub(super) index: u32,
    pub(super) existed: bool,
    pub(super) mtu: usize,
    pub(super) mac: MacAddr,
    pub(super) host_mac: MacAddr,
    pub(super) queue_len: u32,
}

impl TapQueue {
    /// Creates the TAP, or attaches to the one that exists, and opens its queues. It is not up yet and has no address:
    /// see [`crate::netconfig::HostInterface`].
    pub fn open_all(options: &TapOptions) -> Result<Vec<TapQueue>, TapError> {
        let mut netlink = Netlink::open()?;
        let requested = name_field(&options.name)?;
        let first = open_tun()?;
        let before = match netlink.link(&options.name) {
            Ok(link) => Some(link),
            Err(NetconfigError::NoSuchInterface(_)) => None,
            Err(error) => return Err(error.into()),
        };
        let existed = before.is_some();
        let (name, several) = attach(first.as_fd(), requested, options, existed)?;
        if several && before.is_some_and(|link| link.has_carrier) {
            // One for several queues takes those of another process too, which then gets a part of the frames.
            return Err(TapError::Busy(name));
        }
        let mut fds = vec![first];
        let wanted = if several { options.queues.clamp(1, MOST_QUEUES) } else { 1 };
        for _ in 1..wanted {
            let fd = open_tun()?;
            tun::set_interface(fd.as_fd(), name_field(&name)?, FLAGS | tun::IFF_MULTI_QUEUE)
                .map_err(|error| step_error("opening another queue of the TAP", error))?;
            fds.push(fd);
        }
        for fd in &fds {
            tun::set_virtio_header_len(fd.as_fd(), HEADER_LEN_MERGEABLE)
                .map_err(|error| step_error("setting the length of the virtio-net header", error))?;
        }
        let Link { index, mtu, .. } = netlink.link(&name)?;
        let change = LinkChange {
            // The owner of a TAP may attach to it, and not change it.
            mtu: options.mtu.filter(|wanted| *wanted != mtu),
            tx_queue_len: (!existed).then(|| TX_QUEUE_LEN.max(options.frames.min(MOST_QUEUED) as u32)),
            ..LinkChange::default()
        };
        netlink.change_link(index, &change)?;
        let link = netlink.link(&name)?;
        let mac = match options.mac {
            Some(mac) => mac,
            None => mac::random().map_err(|error| step_error("making a random address", error))?,
        };
        let queue = |fd| TapQueue {
            fd,
            name: name.clone(),
            index,
            existed,
            mtu: link.mtu as usize,
            mac,
            host_mac: link.mac,
            queue_len: link.tx_queue_len,
        };
        Ok(fds.into_iter().map(queue).collect())
    }

    /// The queue as a device, for the thread that this is called in. The switches of offloads are the interface's: queues of
    /// one interface should agree on them.
    pub fn into_device(self, enabled: Capabilities, pools: RxPools) -> Result<Tap, TapError> {
        Tap::over(self, enabled, pools)
    }

    /// The interface's name, as the kernel chose it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it was there before: then it stays when this is dropped.
    pub fn existed(&self) -> bool {
        self.existed
    }

    /// How many frames wait in it for us.
    pub fn queue_len(&self) -> usize {
        self.queue_len as usize
    }

    /// Largest IP packet in bytes.
    pub fn mtu(&self) -> usize {
        self.mtu
    }
}

const FLAGS: u16 = tun::IFF_TAP | tun::IFF_NO_PI | tun::IFF_VNET_HDR;

/// Makes or attaches the interface; returns its name and whether it takes several queues. One that exists was made for
/// several or for one, and is attached only as what it is.
fn attach(
    fd: BorrowedFd<'_>,
    requested: [u8; IFNAMSIZ],
    options: &TapOptions,
    existed: bool,
) -> Result<(String, bool), TapError> {
    let set = |several: bool| {
        let flags = if several { FLAGS | tun::IFF_MULTI_QUEUE } else { FLAGS };
        tun::set_interface(fd, requested, flags).map(|name| (name_of(&name), several))
    };
    let several = options.queues > 1;
    let attached = match set(several) {
        Err(Errno::INVAL) if existed => set(!several),
        other => other,
    };
    attached.map_err(|error| attach_error(error, &options.name, existed))
}

fn open_tun() -> Result<OwnedFd, TapError> {
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::open("/dev/net/tun", flags, Mode::empty()).map_err(|error| match error {
        Errno::NOENT | Errno::NOTDIR | Errno::NODEV | Errno::NXIO => TapError::NoTunDevice,
        other => step_error("opening /dev/net/tun", other),
    })
}

fn name_field(name: &str) -> Result<[u8; IFNAMSIZ], TapError> {
    let bytes = name.as_bytes();
    let percents = bytes.iter().filter(|&&byte| byte == b'%').count();
    let numbered = percents == 1 && name.contains("%d");
    if !is_interface_name(name) || (percents > 0 && !numbered) {
        return Err(TapError::Name(name.to_owned()));
    }
    let mut field = [0; IFNAMSIZ];
    field[..bytes.len()].copy_from_slice(bytes);
    Ok(field)
}

fn name_of(field: &[u8; IFNAMSIZ]) -> String {
    let end = field.iter().position(|&byte| byte == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).into_owned()
}

fn attach_error(error: Errno, name: &str, existed: bool) -> TapError {
    match error {
        Errno::BUSY => TapError::Busy(name.to_owned()),
        Errno::INVAL if existed => TapError::NotTap(name.to_owned()),
        other => step_error("making the TAP", other),
    }
}

pub(super) fn step_error(step: &'static str, error: Errno) -> TapError {
    match error {
        Errno::PERM | Errno::ACCESS => TapError::Permission { step },
        other => TapError::Io { step, source: other.into() },
    }
}
