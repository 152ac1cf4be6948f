//! What a device counts: every frame that passes, and every one that does not, by reason.

linerate_wire::figures! {
    /// Counters of one device since it was opened.
    pub struct DeviceStats {
        /// Frames received.
        rx_frames,
        /// Bytes received, Ethernet headers included.
        rx_bytes [bytes],
        /// Received frames that were coalesced from several segments.
        rx_super_frames,
        /// Received frames dropped because no buffer that would hold them was free.
        rx_cut [drop],
        /// Times that receiving stopped because no buffer at all was free. The frames wait in the kernel's queue.
        rx_starved,
        /// Received frames dropped because the virtio-net header, or the kernel's own conversion to it, was not usable.
        rx_refused [drop],
        /// Received frames that the kernel dropped because its queue towards us was full, where it tells (AF_PACKET, AF_XDP).
        rx_kernel_dropped [drop],
        /// Frames handed to the kernel; a super-segment counts as one.
        tx_frames,
        /// Bytes handed to the kernel, Ethernet headers included.
        tx_bytes [bytes],
        /// Super-segments handed to the kernel.
        tx_super_frames,
        /// Times that transmitting stopped because the kernel's queue was full. The packets stay in ours.
        tx_full,
        /// Packets dropped because the interface is down, as by a cable that is unplugged.
        tx_link_down [drop],
        /// Packets dropped because the kernel had no memory for them.
        tx_no_memory [drop],
        /// Packets dropped because the kernel refused them: as malformed or too long, or by a filter of the interface.
        tx_refused [drop],
    }
}
