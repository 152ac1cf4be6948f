//! C functions for stacks: make one, turn it, ask it.

use crate::address;
use crate::config::{lr_device, lr_stack_config};
use crate::errno::{Errno, Result};
use crate::handle::{self, enter, guarded, lr_stack};
use crate::host::{Host, NULL};
use core::ffi::{CStr, c_char, c_int};
use core::net::SocketAddr;
use libc::{sockaddr, socklen_t};
use linerate_wire::units::Instant;

/// What a stack has counted, and what it holds.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct lr_stats {
    /// Frames from the device.
    pub frames_received: u64,
    /// Frames handed to the device.
    pub frames_sent: u64,
    /// Bytes from the device, link headers included.
    pub bytes_received: u64,
    /// Received packets that were dropped, for whatever reason.
    pub drops: u64,
    /// TCP segments retransmitted.
    pub retransmits: u64,
    /// TCP connections, half-open ones and TIME-WAIT included.
    pub connections: u64,
    /// Of these, connections in TIME-WAIT.
    pub time_wait: u64,
    /// Bytes charged to sockets.
    pub memory_used: u64,
    /// The cap of these, in bytes.
    pub memory_limit: u64,
}

/// Fills `config` with the defaults and a random seed.
///
/// Returns 0; -EFAULT if `config` is null; -EIO if the operating system has no random bytes.
///
/// # Safety
///
/// `config` is null or points to memory for a `lr_stack_config`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_stack_config_init(config: *mut lr_stack_config) -> c_int {
    guarded(|| {
        if config.is_null() {
            return Err(NULL);
        }
        let mut defaults = lr_stack_config::defaults();
        // SAFETY: the pointer and the length are those of a live array.
        let code = unsafe { libc::getentropy(defaults.seed.as_mut_ptr().cast(), defaults.seed.len()) };
        if code != 0 {
            return Err(Errno(libc::EIO));
        }
        // SAFETY: not null, so it points to memory for one (the caller's contract).
        unsafe { config.write(defaults) };
        Ok(0)
    })
}

/// Makes a stack on a device and stores it in `*stack`. Both structures are copied; `device->user` and what the callbacks
/// need must live until `lr_stack_free`. `now_ns` is the time by the caller's clock: nanoseconds since any moment, which
/// must not be negative nor ever go back (CLOCK_MONOTONIC, a counter of a simulation).
///
/// Returns 0; -EFAULT if a pointer or a callback other than `completed` is null; -EINVAL if the configuration was not
/// made by `lr_stack_config_init` of this version, an address cannot be read, or memory, MTU or Ethernet address are out of
/// range: `lr_stack_flaw` says which.
///
/// # Safety
///
/// The pointers are null or valid; texts end with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_stack_new(
    config: *const lr_stack_config,
    device: *const lr_device,
    now_ns: u64,
    stack: *mut *mut lr_stack,
) -> c_int {
    guarded(|| {
        // SAFETY: null or valid (the caller's contract).
        let (Some(config), Some(device)) = (unsafe { config.as_ref() }, unsafe { device.as_ref() }) else {
            return Err(NULL);
        };
        if stack.is_null() {
            return Err(NULL);
        }
        // SAFETY: the texts end with a zero byte (the caller's contract).
        let host = unsafe { Host::new(config, device, Instant::from_nanos(now_ns))? };
        // SAFETY: not null, so it is valid (the caller's contract).
        unsafe { stack.write(handle::new(host)) };
        Ok(0)
    })
}

/// Why `lr_stack_new` would return -EINVAL or -EFAULT for these: a text in English for people that names the first field at fault and what
/// is expected there, and that lives as long as the program. Null if nothing is wrong with them.
///
/// # Safety
///
/// The pointers are null or valid; texts end with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_stack_flaw(
    config: *const lr_stack_config,
    device: *const lr_device,
) -> *const c_char {
    let mut flaw: Option<&'static CStr> = None;
    let work = || {
        // SAFETY: null or valid (the caller's contract).
        flaw = match (unsafe { config.as_ref() }, unsafe { device.as_ref() }) {
            (None, _) => Some(c"config: is null"),
            (_, None) => Some(c"device: is null"),
            (_, Some(device)) if device.transmit.is_none() => Some(c"device.transmit: is null"),
            (_, Some(device)) if device.receive.is_none() => Some(c"device.receive: is null"),
            // SAFETY: the texts end with a zero byte (the caller's contract).
            (Some(config), Some(device)) => unsafe { config.stack(device) }.err().or_else(|| device.flaw()),
        };
        Ok(0)
    };
    // It fails only if it panics, and there is nobody to tell.
    let _: c_int = guarded(work);
    flaw.map_or(core::ptr::null(), CStr::as_ptr)
}

/// Ends a stack: closes its sockets without telling their peers and frees everything. The device's callbacks are not
/// called any more, also for packets that it still holds. Null does nothing.
///
/// Returns 0; -EBUSY when called from one of the stack's callbacks.
///
/// # Safety
///
/// `stack` is null or came from `lr_stack_new`; it is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_stack_free(stack: *mut lr_stack) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { handle::free(stack) }
}

/// One turn of the loop: takes what the device has received, runs timers that are due, and hands to the device what is to
/// be sent. Everything that the callbacks do, they do in here. `now_ns` is the time as in `lr_stack_new`; an earlier time
/// than the last one counts as that.
///
/// Returns LR_TURN_... bits, 0 for none; or the device's error as negative errno: sockets stay usable, and the next turn
/// tries again.
///
/// # Safety
///
/// `stack` is null or came from `lr_stack_new` and was not freed; no other thread uses it meanwhile. This holds for every
/// function that takes a stack.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_stack_turn(stack: *mut lr_stack, now_ns: u64) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { enter(stack, |host| host.turn(Instant::from_nanos(now_ns))) }
}

/// When to call `lr_stack_turn` at the latest if the device receives nothing before: a time in ns of the caller's clock.
/// It is the time of the last turn if there is something to do at once (sockets were written to, say), and UINT64_MAX if
/// nothing will ever be due by itself, or `stack` is null. It may be earlier than needed.
///
/// # Safety
///
/// As `lr_stack_turn`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_stack_next_timeout(stack: *const lr_stack) -> u64 {
    let mut at = u64::MAX;
    let work = |host: &mut Host| {
        at = host.next_timeout().map_or(u64::MAX, Instant::as_nanos);
        Ok(0)
    };
    // SAFETY: the caller's contract.
    let _: c_int = unsafe { enter(stack, work) };
    at
}

/// Writes the `index`th of our usable addresses (0 is the first) with its prefix length: what DHCP or router
/// advertisements gave, among others. `address` has room for `*length` bytes, which becomes the length of what is there;
/// `prefix_length` may be null.
///
/// Returns 0; -ENOENT if there are not so many; -EFAULT for a null pointer.
///
/// # Safety
///
/// As `lr_stack_turn`; the other pointers are null or valid, `address` for `*length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_stack_address(
    stack: *const lr_stack,
    index: usize,
    address: *mut sockaddr,
    length: *mut socklen_t,
    prefix_length: *mut u8,
) -> c_int {
    let work = |host: &mut Host| -> Result<c_int> {
        if address.is_null() || length.is_null() {
            return Err(NULL);
        }
        let cidr = host.node.stack.addresses().nth(index).ok_or(Errno(libc::ENOENT))?;
        let family = if cidr.address().is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        // SAFETY: the caller's contract.
        unsafe { address::write(SocketAddr::new(cidr.address(), 0), family, address, length)? };
        if !prefix_length.is_null() {
            // SAFETY: not null, so it is valid (the caller's contract).
            unsafe { prefix_length.write(cidr.prefix_len()) };
        }
        Ok(0)
    };
    // SAFETY: the caller's contract.
    unsafe { enter(stack, work) }
}

/// Adds an address with the length of its prefix, as "192.168.1.4/24", while the stack runs. It is used once nobody has objected to
/// it, as those of `lr_stack_config.addresses`: `lr_stack_address` has it then. One that is there stays.
///
/// Returns 0; -EFAULT for a null pointer; -EINVAL for a text that is none, or an address of no single host; -EAFNOSUPPORT for IPv6 where
/// `lr_stack_config.ipv6` is 0 or the MTU below 1,280; -ENOSPC beyond 32 addresses.
///
/// # Safety
///
/// As `lr_stack_turn`; `address` is null or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_stack_add_address(stack: *mut lr_stack, address: *const c_char) -> c_int {
    let work = |host: &mut Host| -> Result<c_int> {
        // SAFETY: the caller's contract.
        let cidr = unsafe { parsed(address) }?;
        host.node.stack.add_address(host.now, cidr)?;
        Ok(0)
    };
    // SAFETY: the caller's contract.
    unsafe { enter(stack, work) }
}

/// Gives an address up, as "192.168.1.4", wherever it is from. Connections from it are reset. One that DHCP or a router gave comes back
/// when they give it again.
///
/// Returns 0; -EFAULT for a null pointer; -EINVAL for a text that is none; -EADDRNOTAVAIL if it is none of ours.
///
/// # Safety
///
/// As `lr_stack_turn`; `address` is null or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_stack_remove_address(stack: *mut lr_stack, address: *const c_char) -> c_int {
    let work = |host: &mut Host| -> Result<c_int> {
        // SAFETY: the caller's contract.
        let ip = unsafe { parsed(address) }?;
        if host.node.stack.remove_address(host.now, ip) { Ok(0) } else { Err(Errno(libc::EADDRNOTAVAIL)) }
    };
    // SAFETY: the caller's contract.
    unsafe { enter(stack, work) }
}

/// Sets (`add` not 0) or takes back a default gateway, as "192.168.1.1". Of several of a family the first one is used.
///
/// Returns 0; -EFAULT for a null pointer; -EINVAL for a text that is none; and if it is added, -EHOSTUNREACH if it is not another host
/// in the network of an address, -EAFNOSUPPORT as `lr_stack_add_address`, -ENOSPC beyond 32 routes.
///
/// # Safety
///
/// As `lr_stack_turn`; `gateway` is null or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_stack_gateway(stack: *mut lr_stack, gateway: *const c_char, add: c_int) -> c_int {
    let work = |host: &mut Host| -> Result<c_int> {
        // SAFETY: the caller's contract.
        let ip = unsafe { parsed(gateway) }?;
        if add == 0 {
            host.node.stack.remove_gateway(host.now, ip);
        } else {
            host.node.stack.add_gateway(host.now, ip)?;
        }
        Ok(0)
    };
    // SAFETY: the caller's contract.
    unsafe { enter(stack, work) }
}

/// What a text says.
///
/// # Safety
///
/// `text` is null or ends with a zero byte.
unsafe fn parsed<T: core::str::FromStr>(text: *const c_char) -> Result<T> {
    if text.is_null() {
        return Err(NULL);
    }
    // SAFETY: not null, so it ends with a zero byte (the caller's contract).
    let text = unsafe { CStr::from_ptr(text) }.to_str().ok();
    text.and_then(|text| text.parse().ok()).ok_or(Errno(libc::EINVAL))
}

/// Writes what the stack has counted.
///
/// Returns 0; -EFAULT for a null pointer.
///
/// # Safety
///
/// As `lr_stack_turn`; `stats` is null or points to memory for a `lr_stats`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_stack_stats(stack: *const lr_stack, stats: *mut lr_stats) -> c_int {
    let work = |host: &mut Host| {
        if stats.is_null() {
            return Err(NULL);
        }
        let (memory, counters, device) =
            (host.node.stack.memory(), host.node.stack.counters(), host.device_stats());
        let found = lr_stats {
            frames_received: device.rx.frames,
            frames_sent: counters.frames_out,
            bytes_received: device.rx.bytes,
            drops: counters.drops(),
            retransmits: counters.tcp_retransmits,
            connections: memory.connections as u64,
            time_wait: memory.time_wait as u64,
            memory_used: memory.used as u64,
            memory_limit: memory.limit as u64,
        };
        // SAFETY: not null, so it points to memory for one (the caller's contract).
        unsafe { stats.write(found) };
        Ok(0)
    };
    // SAFETY: the caller's contract.
    unsafe { enter(stack, work) }
}

/// The version of this library, as "0.1.0". Lives for ever.
#[unsafe(no_mangle)]
pub extern "C" fn lr_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
