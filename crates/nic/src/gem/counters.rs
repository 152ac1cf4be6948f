//! What a queue counts.

linerate_wire::figures! {
    /// What a queue has counted.
    pub struct QueueStats {
        /// Frames handed over.
        rx_frames,
        /// Of them those whose checksums the device had verified.
        rx_verified,
        /// Received frames of a length that cannot be, or not in one buffer.
        drop_rx_errors,
        /// Received frames that no buffer was left for in the pool.
        drop_rx_no_buffer,
        /// How often the device found no buffer in the ring; frames may have been lost then.
        rx_no_buffer,
        /// How often a frame came faster than memory took it; it was lost.
        rx_overruns,
        /// Buffers of the receive pool that the device does not reach.
        rx_unreachable,
        /// Packets given to the device.
        tx_packets,
        /// Of them those that were copied, as the device does not reach all of their payload.
        tx_copied,
        /// Packets that the device cannot be given: out of its reach, too long, or with a request that it does not know.
        drop_tx_errors,
        /// Packets that the device reported as not sent.
        drop_tx_failed,
        /// Packets that were with the device when its ring was begun anew. They may have left or not.
        drop_tx_abandoned,
        /// How often sending found the ring full.
        tx_full,
        /// How often memory did not deliver a packet in time.
        tx_underruns,
        /// How often a packet was sent in vain too often, or met another late.
        tx_retries,
        /// How often a packet broke off in the middle.
        tx_corrupted,
        /// How often the bus refused an access of the device's.
        bus_errors,
        /// How often the device was told of packets.
        doorbells,
        /// How often interrupts were armed.
        arms,
        /// Transmit rings begun anew because nothing came back for too long.
        stalls,
        /// How often the receive ring was begun anew.
        rx_resets,
        /// How often the transmit ring was begun anew.
        tx_resets,
    }
}
