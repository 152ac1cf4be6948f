//! An Ethernet interface with one FIFO each way and no offloads.

use core::hint::black_box;
use linerate_nic::{
    Capabilities, Device, DeviceError, Frame, MacAddr, Pool, QueuePair, RxBatch, RxMeta, TxQueue, TxToken,
};
use linerate_wire::units::Instant;

/// Longest frame without FCS.
const FRAME: usize = 1_514;

/// The interface.
pub struct Fifo {
    pool: Pool,
    frame: [u8; FRAME],
    done: Option<TxToken>,
}

impl Fifo {
    /// An interface that receives into buffers of `pool`.
    pub fn new(pool: Pool) -> Self {
        Fifo { pool, frame: [0; FRAME], done: None }
    }
}

impl Device for Fifo {
    fn mac(&self) -> MacAddr {
        MacAddr([2, 0, 0, 0, 0, 1])
    }

    fn mtu(&self) -> usize {
        1_500
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn enable(&mut self, wanted: Capabilities) -> Result<(), DeviceError> {
        if wanted == Capabilities::default() {
            Ok(())
        } else {
            Err(DeviceError::Unsupported)
        }
    }
}

impl QueuePair for Fifo {
    fn enabled(&self) -> Capabilities {
        Capabilities::default()
    }

    fn receive(&mut self, _: Instant, batch: &mut RxBatch) -> Result<usize, DeviceError> {
        let Some(mut buffer) = self.pool.take() else { return Ok(0) };
        let len = black_box(0).min(FRAME).min(buffer.len());
        buffer.bytes_mut()[..len].copy_from_slice(&black_box(&self.frame)[..len]);
        let frame = Frame::new(buffer.freeze(0..len), RxMeta::default());
        Ok(usize::from(batch.push(frame).is_ok()))
    }

    fn transmit(&mut self, _: Instant, queue: &mut TxQueue) -> Result<usize, DeviceError> {
        let Some(packet) = queue.front() else { return Ok(0) };
        black_box(packet.linearise(&mut self.frame));
        black_box(&self.frame);
        self.done = Some(packet.meta.token);
        queue.pop();
        Ok(1)
    }

    fn poll_completion(&mut self) -> Option<TxToken> {
        self.done.take()
    }
}
