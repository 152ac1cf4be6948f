//! A cable's end as an interface that counts; the other end may be a DHCP server too.

use crate::dhcp;
use linerate_firmware::Counting;
use linerate_nic::{Capabilities, Device, DeviceError, Link, MacAddr, QueuePair, RxBatch, TxQueue, TxToken};
use linerate_wire::units::Instant;

/// One end.
pub struct Wire {
    pub link: Link,
    serves_leases: bool,
    /// Leases given.
    pub leases: usize,
    queue: TxQueue,
}

impl Wire {
    pub fn new(link: Link, serves_leases: bool) -> Wire {
        Wire { link, serves_leases, leases: 0, queue: TxQueue::with_capacity(4) }
    }
}

impl Counting for Wire {
    fn count(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        visit("sent", self.link.stats().sent);
    }
}

impl Device for Wire {
    fn mac(&self) -> MacAddr {
        self.link.mac()
    }

    fn mtu(&self) -> usize {
        self.link.mtu()
    }

    fn capabilities(&self) -> Capabilities {
        self.link.capabilities()
    }

    fn enable(&mut self, wanted: Capabilities) -> Result<(), DeviceError> {
        self.link.enable(wanted)
    }
}

impl QueuePair for Wire {
    fn enabled(&self) -> Capabilities {
        self.link.enabled()
    }

    fn receive(&mut self, now: Instant, batch: &mut RxBatch) -> Result<usize, DeviceError> {
        let count = self.link.receive(now, batch)?;
        if self.serves_leases {
            for frame in batch.iter_mut() {
                if let Some((answer, is_lease)) = dhcp::answer(frame.data.bytes()) {
                    self.leases += usize::from(is_lease);
                    let packet = self.queue.vacant().expect("the queue is empty between calls");
                    packet.header_mut(14).copy_from_slice(&answer[..14]);
                    let chunk = linerate_nic::Chunk::Shared(answer[14..].to_vec().into());
                    packet.push_chunk(chunk).expect("one chunk fits");
                    self.queue.commit();
                    self.link.transmit(now, &mut self.queue)?;
                }
            }
        }
        Ok(count)
    }

    fn transmit(&mut self, now: Instant, queue: &mut TxQueue) -> Result<usize, DeviceError> {
        self.link.transmit(now, queue)
    }

    fn poll_completion(&mut self) -> Option<TxToken> {
        self.link.poll_completion()
    }

    fn arm(&mut self, now: Instant) -> bool {
        self.link.arm(now)
    }
}
