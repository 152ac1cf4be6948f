//! The device below, by AF_XDP: frames in rings that are shared with the kernel.
//!
//! The rings belong to our own driver, so the floor moves its frames by it: what it does not have is everything above.

use super::frame::{HEADERS, MSS, Reply, Seen, Us, fold, read, sum};
use super::{Link, Payload, Responder};
use anyhow::{Result, anyhow};
use linerate_linux::xdp::XdpDevice;
use linerate_nic::{ChecksumRequest, Chunk, QueuePair, RxBatch, TxQueue};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Frames that are taken before what is due is sent, and most that are sent at once.
const BATCH: usize = 64;

/// A device that frames leave by.
pub struct Rings {
    device: XdpDevice,
    out: Out,
}

/// Frames on their way out.
struct Out {
    queue: TxQueue,
    us: Us,
    constant: &'static [u8],
    /// The sum of the constant's first bytes, for every length of a segment.
    sums: Vec<u64>,
    /// The kernel fills in checksums.
    sums_by_kernel: bool,
    full: bool,
}

impl Rings {
    /// Over one queue.
    pub fn new(device: XdpDevice, us: Us) -> Rings {
        let constant: Vec<u8> = (0..MSS).map(|at| (at % 251) as u8).collect();
        let out = Out {
            queue: TxQueue::with_capacity(BATCH),
            us,
            sums: (0..=MSS).map(|len| sum(&constant[..len])).collect(),
            constant: constant.leak(),
            sums_by_kernel: device.enabled().tx_checksum4,
            full: false,
        };
        Rings { device, out }
    }

    /// Answers until the device is gone.
    pub fn serve(&mut self, responder: &mut dyn Responder) -> Result<()> {
        let mut batch = RxBatch::with_limit(BATCH);
        loop {
            let received =
                self.device.receive(Default::default(), &mut batch).map_err(|error| anyhow!("{error}"))?;
            while let Some(frame) = batch.pop() {
                match read(frame.data.bytes(), self.out.us) {
                    Seen::Tcp(segment) => responder.handle(&segment, &mut self.out),
                    Seen::Arp(answer) => self.out.push(&answer, None),
                    Seen::Other => {}
                }
                if self.out.queue.room() == 0 {
                    self.flush()?;
                }
            }
            self.out.full = false;
            let more = responder.poll(&mut self.out);
            let sent = self.flush()?;
            let stuck = self.out.full && sent == 0;
            if received == 0 && (!more || stuck) && !self.device.arm(Default::default()) {
                let room = if stuck { PollFlags::OUT } else { PollFlags::empty() };
                let pause = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
                match poll(&mut [PollFd::new(&self.device, PollFlags::IN | room)], Some(&pause)) {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }

    /// Lets go what waits; returns how many frames went.
    fn flush(&mut self) -> Result<usize> {
        if self.out.queue.is_empty() {
            return Ok(0);
        }
        self.device.transmit(Default::default(), &mut self.out.queue).map_err(|error| anyhow!("{error}"))
    }
}

impl Out {
    /// Queues a frame; what there is no room for is lost.
    fn push(&mut self, head: &[u8], payload: Option<Chunk>) {
        let Some(packet) = self.queue.vacant() else { return };
        packet.header_mut(head.len()).copy_from_slice(head);
        if let Some(payload) = payload {
            // One piece fits.
            let _ = packet.push_chunk(payload);
            if self.sums_by_kernel {
                packet.meta.checksum = Some(ChecksumRequest { start: 34, offset: 16 });
            }
        }
        self.queue.commit();
    }
}

impl Link for Out {
    fn send(&mut self, reply: &Reply, payload: Payload<'_>) -> bool {
        if self.queue.room() == 0 {
            self.full = true;
            return false;
        }
        let mut head = [0; HEADERS + 8];
        let len = reply.write(self.us, payload.len(), &mut head);
        let (chunk, known) = match payload {
            Payload::Constant(len) => (Chunk::constant(&self.constant[..len]), self.sums.get(len).copied()),
            Payload::Own(bytes) => (Chunk::Shared(linerate_nic::Bytes::copy_from_slice(bytes)), None),
        };
        if !self.sums_by_kernel {
            // The checksum's place has the pseudo-header's sum.
            let whole = sum(&head[34..len]) + known.unwrap_or_else(|| sum(chunk.bytes()));
            head[50..52].copy_from_slice(&(!fold(whole)).to_be_bytes());
        }
        self.push(&head[..len], Some(chunk));
        true
    }

    fn largest(&self) -> usize {
        MSS
    }
}
