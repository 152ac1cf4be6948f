//! Laying received segments into pool buffers, as a device does: the one copy that their bytes meet.

use crate::parcel::Parcel;
use linerate_nic::pieces::PieceShelf;
use linerate_nic::{Buffer, ChecksumStatus, Frame, MAX_HEADER, Pool, RxMeta, checksum};

/// Frames of more than one buffer that can exist without allocating.
const LISTS: usize = 256;

/// See the module.
#[derive(Debug)]
pub(crate) struct Dma {
    pool: Pool,
    shelf: PieceShelf,
}

impl Dma {
    pub(crate) fn new(pool: Pool) -> Dma {
        let room = 65_600usize.div_ceil(pool.buffer_size().max(1));
        Dma { pool, shelf: PieceShelf::new(LISTS, room) }
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// One frame of these segments; `None` when the pool is empty. With `verifies` the checksums are judged.
    pub(crate) fn frame(&self, parcel: &Parcel, verifies: bool) -> Option<Frame> {
        let mut header = [0; MAX_HEADER];
        let len = parcel.write_header(&mut header);
        let header = &mut header[..len];
        // What the sending device summed, and nothing damaged, needs no sum to be known good.
        let is_known = verifies && parcel.checksum().is_some() && !parcel.is_damaged();
        if !is_known {
            parcel.fill_checksum(header);
        }
        let mut layout = Layout { dma: self, frame: None, open: None, used: 0 };
        let mut fits = layout.write(header);
        parcel.for_payload(|piece| fits = fits && layout.write(piece));
        if !fits {
            return None;
        }
        let segment_size = if parcel.count() > 1 { parcel.segment_size() as u16 } else { 0 };
        let mut frame = layout.finish(RxMeta { segment_size, ..RxMeta::default() })?;
        if let Some((at, mask)) = parcel.damaged_bits(frame.len()) {
            flip(&mut frame, at, mask);
        }
        if is_known {
            frame.meta.checksum = ChecksumStatus::Good;
        } else if verifies {
            frame.meta.checksum = checksum::verify_frame(&frame);
        }
        Some(frame)
    }
}

/// Lays bytes into buffers one after the other.
struct Layout<'a> {
    dma: &'a Dma,
    frame: Option<Frame>,
    open: Option<Buffer>,
    used: usize,
}

impl Layout<'_> {
    /// Appends bytes; false when the pool is empty.
    fn write(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            if self.open.as_ref().is_some_and(|buffer| self.used == buffer.len()) {
                self.close(RxMeta::default());
            }
            if self.open.is_none() {
                self.open = self.dma.pool.take();
                self.used = 0;
            }
            let Some(buffer) = &mut self.open else { return false };
            let count = bytes.len().min(buffer.len() - self.used);
            buffer.bytes_mut()[self.used..self.used + count].copy_from_slice(&bytes[..count]);
            self.used += count;
            bytes = &bytes[count..];
        }
        true
    }

    fn close(&mut self, meta: RxMeta) {
        let Some(buffer) = self.open.take() else { return };
        let slice = buffer.freeze(0..self.used);
        match &mut self.frame {
            None => self.frame = Some(Frame::new(slice, meta)),
            Some(frame) => {
                if frame.more.is_empty() {
                    frame.more = self.dma.shelf.take().unwrap_or_default();
                }
                frame.more.push(slice);
            }
        }
    }

    fn finish(mut self, meta: RxMeta) -> Option<Frame> {
        self.close(meta);
        let mut frame = self.frame?;
        frame.meta = meta;
        Some(frame)
    }
}

fn flip(frame: &mut Frame, mut at: usize, mask: u8) {
    for piece in std::iter::once(&mut frame.data).chain(frame.more.iter_mut()) {
        if at < piece.len() {
            if let Some(bytes) = piece.bytes_mut() {
                bytes[at] ^= mask;
            }
            return;
        }
        at -= piece.len();
    }
}
