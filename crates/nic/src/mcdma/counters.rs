//! What a queue counts.

linerate_wire::figures! {
    /// Counters of one queue.
    pub struct QueueStats {
        /// Frames received and handed on.
        received,
        /// Bytes of frames received and handed on.
        received_bytes [bytes],
        /// Frames that the hardware had joined of several segments.
        received_joined,
        /// Frames that the engine reported as wrongly written.
        receive_errors [drop],
        /// Frames of a length that cannot be, or without beginning or end.
        receive_length [drop],
        /// Frames in several buffers for which no list was free.
        receive_no_list [drop],
        /// Frames dropped because the pool had no buffer to take their place in a ring that was running empty.
        receive_no_buffer [drop],
        /// Buffers of the receive pool that the device does not reach.
        receive_unreachable,
        /// Packets given to the engine.
        sent,
        /// Bytes of packets given to the engine.
        sent_bytes [bytes],
        /// Packets that the hardware splits.
        sent_split,
        /// Packets of whose payload something was copied: not reachable, in too many pieces, or gathering is switched off.
        copied,
        /// Packets that nothing could be done with: too long, or a request that lies outside of them.
        refused [drop],
        /// Packets that the engine reported as wrongly read.
        transmit_errors [drop],
        /// Packets that were with the engine when its channel was reset. They may have left or not.
        abandoned [drop],
        /// Times that a packet had to wait for a descriptor.
        ring_full,
        /// Times that a packet had to wait for a buffer for its headers.
        no_header_buffer,
        /// Doorbells.
        doorbells,
        /// Resets because a channel had stopped with an error.
        failures,
        /// Resets because the engine did not write back for too long.
        stalls,
        /// Resets that the owner asked for.
        requested_resets,
    }
}
