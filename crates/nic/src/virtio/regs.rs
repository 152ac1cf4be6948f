//! Registers of the MMIO transport (virtio 1.2 section 4.2.2), bits of status and features, and the configuration of a network
//! device (section 5.1.4).

pub(super) const MAGIC: u32 = 0x000;
pub(super) const MAGIC_VALUE: u32 = 0x7472_6976;
pub(super) const VERSION: u32 = 0x004;
pub(super) const DEVICE_ID: u32 = 0x008;
pub(super) const DEVICE_FEATURES: u32 = 0x010;
pub(super) const DEVICE_FEATURES_SEL: u32 = 0x014;
pub(super) const DRIVER_FEATURES: u32 = 0x020;
pub(super) const DRIVER_FEATURES_SEL: u32 = 0x024;
pub(super) const QUEUE_SEL: u32 = 0x030;
pub(super) const QUEUE_NUM_MAX: u32 = 0x034;
pub(super) const QUEUE_NUM: u32 = 0x038;
pub(super) const QUEUE_READY: u32 = 0x044;
pub(super) const QUEUE_NOTIFY: u32 = 0x050;
pub(super) const INTERRUPT_STATUS: u32 = 0x060;
pub(super) const INTERRUPT_ACK: u32 = 0x064;
pub(super) const STATUS: u32 = 0x070;
/// The low word of three addresses; the high word follows each.
pub(super) const QUEUE_DESC: u32 = 0x080;
pub(super) const QUEUE_DRIVER: u32 = 0x090;
pub(super) const QUEUE_DEVICE: u32 = 0x0a0;

pub(super) const CONFIG_MAC: u32 = 0x100;
pub(super) const CONFIG_STATUS: u32 = 0x106;
pub(super) const CONFIG_MTU: u32 = 0x10a;
/// In `CONFIG_STATUS`.
pub(super) const LINK_UP: u16 = 1;

/// What `DEVICE_ID` says of a network device.
pub(super) const NETWORK: u32 = 1;
/// Since virtio 1.0.
pub(super) const MODERN: u32 = 2;
/// A change of link or status.
pub(super) const INTERRUPT_CONFIG: u32 = 2;

pub(super) const ACKNOWLEDGE: u32 = 1;
pub(super) const DRIVER: u32 = 2;
pub(super) const DRIVER_OK: u32 = 4;
pub(super) const FEATURES_OK: u32 = 8;
pub(super) const NEEDS_RESET: u32 = 64;
pub(super) const FAILED: u32 = 128;

/// The driver may leave checksums to the device.
pub(super) const F_CSUM: u64 = 1 << 0;
/// The device may hand over frames whose checksum is not filled in, or was verified.
pub(super) const F_GUEST_CSUM: u64 = 1 << 1;
pub(super) const F_MTU: u64 = 1 << 3;
pub(super) const F_MAC: u64 = 1 << 5;
/// The device may hand over coalesced frames.
pub(super) const F_GUEST_TSO4: u64 = 1 << 7;
pub(super) const F_GUEST_TSO6: u64 = 1 << 8;
/// The device splits.
pub(super) const F_HOST_TSO4: u64 = 1 << 11;
pub(super) const F_HOST_TSO6: u64 = 1 << 12;
/// A frame may lie in several buffers.
pub(super) const F_MRG_RXBUF: u64 = 1 << 15;
pub(super) const F_STATUS: u64 = 1 << 16;
/// Both sides say from which entry on they want to hear.
pub(super) const F_EVENT_IDX: u64 = 1 << 29;
pub(super) const F_VERSION_1: u64 = 1 << 32;

/// Of a descriptor: it goes on.
pub(super) const NEXT: u16 = 1;
/// Of a descriptor: the device writes.
pub(super) const WRITE: u16 = 2;
