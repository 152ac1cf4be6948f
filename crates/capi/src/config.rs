//! What a C program hands over when it makes a stack: settings and a device.

use crate::options::{MAX_BUFFER, MIN_BUFFER};
use core::ffi::{CStr, c_char, c_int, c_void};
use libc::{iovec, ssize_t};
use linerate_nic::MacAddr;
use linerate_stack::memory::LEAST_MEMORY;
use linerate_stack::{Cidr, ConfigError, StackConfig};
use std::net::IpAddr;

/// Most receive buffers, which are allocated at start.
const MOST_RECEIVE_BUFFERS: u32 = 1 << 20;
/// Most memory for sockets.
const MOST_MEMORY: usize = 1 << 40;

/// The device fills in TCP and UDP checksums on transmit.
pub const LR_DEVICE_TX_CHECKSUM: u32 = 1;
/// The device verifies checksums on receive and says so in `lr_rx_meta`.
pub const LR_DEVICE_RX_CHECKSUM: u32 = 2;
/// The device splits TCP super-segments (TSO). Has an effect only together with LR_DEVICE_TX_CHECKSUM.
pub const LR_DEVICE_TSO: u32 = 4;
/// The device may deliver coalesced TCP segments of up to 64 KiB (GRO, LRO), with their size in `lr_rx_meta`.
pub const LR_DEVICE_RX_COALESCING: u32 = 8;
/// The device carries IP packets without Ethernet headers, as a TUN device does. ARP and IPv6 neighbour discovery are
/// answered inside and never reach the device; `mac` is not used. What else an IPv6 host says to its own link only
/// (router solicitations, multicast listener reports) is dropped.
pub const LR_DEVICE_IP: u32 = 16;

/// `lr_tx_meta.segmentation`: the packet is one frame.
pub const LR_SEGMENT_NONE: u8 = 0;
/// `lr_tx_meta.segmentation`: to be split into TCP segments over IPv4.
pub const LR_SEGMENT_TCP4: u8 = 1;
/// `lr_tx_meta.segmentation`: to be split into TCP segments over IPv6.
pub const LR_SEGMENT_TCP6: u8 = 2;

/// `lr_rx_meta.checksum`: not looked at; the stack verifies it.
pub const LR_CHECKSUM_UNKNOWN: u8 = 0;
/// `lr_rx_meta.checksum`: IPv4 header and layer 4 are right.
pub const LR_CHECKSUM_GOOD: u8 = 1;
/// `lr_rx_meta.checksum`: one of them is wrong; the frame is counted and dropped.
pub const LR_CHECKSUM_BAD: u8 = 2;

/// What is asked of the device for one packet. All zero where the device has no capabilities.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct lr_tx_meta {
    /// Where the device starts to sum, in bytes from the start of the packet; only if `checksum_offset` is not zero.
    pub checksum_start: u16,
    /// Where the checksum goes, in bytes from `checksum_start`: 16 for TCP, 6 for UDP, 0 if there is nothing to fill in.
    /// The field holds the sum of the pseudo-header, as Linux and virtio want it.
    pub checksum_offset: u16,
    /// Payload bytes of each segment where `segmentation` asks for a split; otherwise 0.
    pub segment_size: u16,
    /// Bytes of all headers of a packet that is to be split.
    pub header_len: u16,
    /// One of LR_SEGMENT_NONE, LR_SEGMENT_TCP4, LR_SEGMENT_TCP6.
    pub segmentation: u8,
}

/// What the device says of a received packet. All zero before `receive` is called.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct lr_rx_meta {
    /// Payload bytes per original segment of a coalesced packet; 0 if it is one frame. Only with LR_DEVICE_RX_COALESCING.
    pub segment_size: u16,
    /// One of LR_CHECKSUM_UNKNOWN, LR_CHECKSUM_GOOD, LR_CHECKSUM_BAD. Only with LR_DEVICE_RX_CHECKSUM.
    pub checksum: u8,
}

/// A network device made of callbacks. They are called only from within `lr_stack_turn`, on its thread; they must not
/// call the stack that calls them (such calls return -EBUSY), must not throw C++ exceptions, and must not block.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lr_device {
    /// Passed to every callback; not looked at.
    pub user: *mut c_void,
    /// Sends one packet, the pieces one after the other (at most 19). Returns 0, or -EAGAIN when the ring is full (the
    /// same packet comes again later), or another negative errno (the packet is lost, and `lr_stack_turn` returns the
    /// error). The pieces may be used until this returns; where `completed` is given, until that counts the packet.
    pub transmit: Option<
        unsafe extern "C" fn(
            user: *mut c_void,
            pieces: *const iovec,
            count: usize,
            meta: *const lr_tx_meta,
        ) -> c_int,
    >,
    /// Writes the next received packet into `buffer` and returns its length, at most `capacity`. Returns 0 or -EAGAIN
    /// when none is waiting, another negative errno on failure. `capacity` holds a frame of the MTU with two VLAN tags,
    /// or a coalesced one of 64 KiB where the device has LR_DEVICE_RX_COALESCING.
    pub receive: Option<
        unsafe extern "C" fn(
            user: *mut c_void,
            buffer: *mut c_void,
            capacity: usize,
            meta: *mut lr_rx_meta,
        ) -> ssize_t,
    >,
    /// How many more packets have left the device since this was last called, in the order of `transmit`. May be null:
    /// then a packet has left when `transmit` returns 0.
    pub completed: Option<unsafe extern "C" fn(user: *mut c_void) -> usize>,
    /// The Ethernet address.
    pub mac: [u8; 6],
    /// Largest IP packet in bytes, 576 to 65,535.
    pub mtu: u16,
    /// What the device can do: LR_DEVICE_... bits, and no others.
    pub capabilities: u32,
}

/// What is wrong with a configuration: the field, and what is expected there.
pub(crate) type Flaw = &'static CStr;

/// All bits of `lr_device.capabilities`.
pub(crate) const LR_DEVICE_ALL: u32 =
    LR_DEVICE_TX_CHECKSUM | LR_DEVICE_RX_CHECKSUM | LR_DEVICE_TSO | LR_DEVICE_RX_COALESCING | LR_DEVICE_IP;

/// Settings of a stack. Fill it with `lr_stack_config_init`, then change what you want to have otherwise.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lr_stack_config {
    /// Size of this structure, set by `lr_stack_config_init`; it tells versions apart.
    pub size: usize,
    /// Our addresses with the lengths of their prefixes, separated by commas: "192.168.1.4/24,fd00::4/64". Null or empty
    /// for none. Needs to live only while `lr_stack_new` runs.
    pub addresses: *const c_char,
    /// Default gateways, separated by commas, at most one of each family is used. Null or empty for none. Each is the address of
    /// another host, in a network of `addresses` or link-local.
    pub gateways: *const c_char,
    /// Not zero: ask a DHCP server for an IPv4 address and gateway (RFC 2131). Default: 0.
    pub dhcp: u8,
    /// Not zero: make IPv6 addresses from router advertisements (RFC 4862). Default: 0.
    pub slaac: u8,
    /// Not zero: have IPv6, with a link-local address. Default: 1.
    pub ipv6: u8,
    /// Neighbour solicitations sent before an IPv6 address is used, one second each (RFC 4862 section 5.1). Unless it is 0,
    /// IPv4 addresses are probed too, while they are used (RFC 5227). One that somebody has is given up. Default: 1.
    pub dad_transmits: u8,
    /// Most sockets, 1 to 65,536. Default: 1,024.
    pub max_sockets: u32,
    /// Frames that can lie received and unread, each in a buffer of the MTU (64 KiB with LR_DEVICE_RX_COALESCING),
    /// allocated at start; 1 to 1,048,576. Default: 1,024.
    pub receive_buffers: u32,
    /// Most memory that sockets may hold, in bytes, 16 KiB to 1 TiB. Default: 16 MiB. Up to a quarter of it is pages,
    /// allocated when they are first needed.
    pub memory: usize,
    /// Largest buffer of a stream socket that sizes its buffers by itself, in bytes, for each direction: 2 KiB to 1 GiB. The
    /// window scale follows from it. Default: 4 MiB.
    pub buffer_max: usize,
    /// Random and secret bytes, different at every start: sequence numbers, ports and hash keys come from them.
    /// `lr_stack_config_init` fills them from the operating system; tests that must repeat set their own.
    pub seed: [u8; 32],
}

impl lr_stack_config {
    /// The defaults, without a seed.
    pub(crate) fn defaults() -> Self {
        lr_stack_config {
            size: size_of::<lr_stack_config>(),
            addresses: core::ptr::null(),
            gateways: core::ptr::null(),
            dhcp: 0,
            slaac: 0,
            ipv6: 1,
            dad_transmits: 1,
            max_sockets: 1_024,
            receive_buffers: 1_024,
            memory: 16 << 20,
            buffer_max: 4 << 20,
            seed: [0; 32],
        }
    }

    /// The settings for the stack below.
    ///
    /// # Safety
    ///
    /// The texts are null or end with a zero byte.
    pub(crate) unsafe fn stack(&self, device: &lr_device) -> Result<StackConfig, Flaw> {
        if self.size != size_of::<lr_stack_config>() {
            return Err(c"config.size: not as lr_stack_config_init of this version of the library sets it");
        }
        if !(1..=1 << 16).contains(&self.max_sockets) {
            return Err(c"config.max_sockets: expected 1 to 65,536");
        }
        if !(1..=MOST_RECEIVE_BUFFERS).contains(&self.receive_buffers) {
            return Err(c"config.receive_buffers: expected 1 to 1,048,576");
        }
        if !(LEAST_MEMORY..=MOST_MEMORY).contains(&self.memory) {
            return Err(c"config.memory: expected 16 KiB to 1 TiB, in bytes");
        }
        if !(MIN_BUFFER..=MAX_BUFFER).contains(&self.buffer_max) {
            return Err(c"config.buffer_max: expected 2 KiB to 1 GiB, in bytes");
        }
        // SAFETY: the caller's contract.
        let (addresses, gateways) =
            unsafe { (words::<Cidr>(self.addresses), words::<IpAddr>(self.gateways)) };
        let addresses = addresses
            .ok_or(c"config.addresses: expected addresses with prefixes, as 192.168.1.4/24,fd00::4/64")?;
        let gateways = gateways.ok_or(c"config.gateways: expected addresses, as 192.168.1.1,fe80::1")?;
        let sockets = self.max_sockets as usize;
        let is_ip = device.capabilities & LR_DEVICE_IP != 0;
        if is_ip && self.dhcp != 0 {
            return Err(
                c"config.dhcp: a device without a link layer (LR_DEVICE_IP) has no address to ask with",
            );
        }
        let config = StackConfig {
            mtu: usize::from(device.mtu),
            addresses,
            gateways,
            dhcp: self.dhcp != 0,
            slaac: self.slaac != 0,
            ipv6: self.ipv6 != 0,
            // Nobody is there to object on a device without a link layer.
            dad_transmits: if is_ip { 0 } else { self.dad_transmits },
            memory: self.memory,
            // Connections live on in TIME-WAIT and in accept queues, where they have no descriptor.
            max_connections: 2 * sockets,
            max_time_wait: sockets,
            max_listeners: sockets,
            max_udp_sockets: sockets,
            ..StackConfig::default()
        };
        config.check().map_err(flaw_of).map(|()| config)
    }
}

impl lr_device {
    /// What is wrong with it, beside callbacks that are null.
    pub(crate) fn flaw(&self) -> Option<Flaw> {
        let has_ethernet = self.capabilities & LR_DEVICE_IP == 0;
        // A later version may know more: what is asked for must not be passed over.
        if self.capabilities & !LR_DEVICE_ALL != 0 {
            return Some(c"device.capabilities: has bits that this version of the library does not know");
        }
        if self.mtu < 576 {
            return Some(c"device.mtu: expected 576 to 65,535");
        }
        (has_ethernet && !MacAddr(self.mac).is_unicast())
            .then_some(c"device.mac: expected the address of one interface, not zero, a group or broadcast")
    }
}

/// The field of the C structures that an error is about.
fn flaw_of(error: ConfigError) -> Flaw {
    match error {
        ConfigError::Mtu(_) => c"device.mtu: expected 576 to 65,535",
        ConfigError::Memory(_) => c"config.memory: expected 16 KiB to 1 TiB, in bytes",
        ConfigError::Address(_) => {
            c"config.addresses: one of them can be no host's (of a network, broadcast, multicast, loopback)"
        }
        ConfigError::Gateway(_) => {
            c"config.gateways: expected other hosts in networks of config.addresses, or link-local ones"
        }
        ConfigError::NoIpv6 => {
            c"config.ipv6: is 0, and config.slaac or something in config.addresses or config.gateways needs it"
        }
        ConfigError::MtuOfIpv6(_) => c"device.mtu: IPv6 in config takes 1,280 or more",
    }
}

/// The values in a list that is separated by commas and may be null, if all can be read.
///
/// # Safety
///
/// `list` is null or ends with a zero byte.
unsafe fn words<T: core::str::FromStr>(list: *const c_char) -> Option<Vec<T>> {
    if list.is_null() {
        return Some(Vec::new());
    }
    // SAFETY: not null, so it ends with a zero byte (the caller's contract).
    let list = unsafe { CStr::from_ptr(list) }.to_str().ok()?;
    let words = list.split(',').map(str::trim).filter(|word| !word.is_empty());
    words.map(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        // SAFETY: all of them end with a zero byte.
        unsafe fn check<T: core::str::FromStr>(list: &CStr) -> Option<Vec<T>> {
            // SAFETY: so does this one.
            unsafe { words(list.as_ptr()) }
        }
        // SAFETY: as above.
        unsafe {
            assert_eq!(words::<u8>(core::ptr::null()), Some(vec![]));
            assert_eq!(check::<u8>(c""), Some(vec![]));
            assert_eq!(check::<u8>(c"1, 2,3,"), Some(vec![1, 2, 3]));
            assert_eq!(check::<u8>(c"1,\xff"), None);
            assert_eq!(check::<Cidr>(c"10.0.0.1"), None);
            assert_eq!(check::<Cidr>(c"10.0.0.1/8,fd00::1/64").map(|all| all.len()), Some(2));
        }
    }
}
