//! What a device counts: every frame that passes, and every one that does not, by reason.

/// Counters of one device since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DeviceStats {
    /// Frames received.
    pub rx_frames: u64,
    /// Bytes received, Ethernet headers included.
    pub rx_bytes: u64,
    /// Received frames that were coalesced from several segments.
    pub rx_super_frames: u64,
    /// Received frames dropped because no buffer that would hold them was free.
    pub rx_cut: u64,
    /// Times that receiving stopped because no buffer at all was free. The frames wait in the kernel's queue.
    pub rx_starved: u64,
    /// Received frames dropped because the virtio-net header, or the kernel's own conversion to it, was not usable.
    pub rx_refused: u64,
    /// Received frames that the kernel dropped because its queue towards us was full, where it tells (AF_PACKET).
    pub rx_kernel_dropped: u64,
    /// Frames handed to the kernel; a super-segment counts as one.
    pub tx_frames: u64,
    /// Bytes handed to the kernel, Ethernet headers included.
    pub tx_bytes: u64,
    /// Super-segments handed to the kernel.
    pub tx_super_frames: u64,
    /// Times that transmitting stopped because the kernel's queue was full. The packets stay in ours.
    pub tx_full: u64,
    /// Packets dropped because the interface is down, as by a cable that is unplugged.
    pub tx_link_down: u64,
    /// Packets dropped because the kernel had no memory for them.
    pub tx_no_memory: u64,
    /// Packets dropped because the kernel refused them as malformed or too long.
    pub tx_refused: u64,
}
