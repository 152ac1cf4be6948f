//! How a packet is laid out in memory: which of its bytes are read where they lie, and which are copied into buffers first.

use crate::dma::Dma;
use crate::mcdma::descriptor::Piece;
use crate::pool::{Buffer, Pool};
use crate::tx::TxPacket;
use alloc::vec::Vec;

/// Why a packet cannot be laid out now, or so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trouble {
    /// The pool has no buffer at the moment.
    NoBuffer,
    /// There are more pieces than the hardware is to be given, or one that is too long.
    Pieces,
}

/// The pieces of one packet, in the order of its bytes, and the buffers that hold the copied ones.
///
/// Bytes that are copied one after the other share a buffer and a piece. Headers always are, as the stack uses theirs again; payload
/// is where the device does not reach it. Room for all is taken once.
#[derive(Debug)]
pub(crate) struct Plan {
    pub pieces: Vec<Piece>,
    pub buffers: Vec<Buffer>,
    /// Bytes used of the last buffer, and how many of them are in a piece already.
    filled: usize,
    taken: usize,
    most_pieces: usize,
    most_buffers: usize,
}

impl Plan {
    /// With room for so many pieces and buffers.
    pub fn new(most_pieces: usize, most_buffers: usize) -> Self {
        let (pieces, buffers) = (Vec::with_capacity(most_pieces), Vec::with_capacity(most_buffers));
        Plan { pieces, buffers, filled: 0, taken: 0, most_pieces, most_buffers }
    }

    /// Lets go of everything.
    pub fn clear(&mut self) {
        self.pieces.clear();
        self.buffers.clear();
        (self.filled, self.taken) = (0, 0);
    }

    /// Lays `packet` out; how many bytes of its payload were copied. With trouble, nothing is kept.
    pub fn lay_out(
        &mut self,
        packet: &TxPacket,
        board: &impl Dma,
        pool: &Pool,
        may_gather: bool,
    ) -> Result<usize, Trouble> {
        self.clear();
        let result = self.try_to(packet, board, pool, may_gather);
        if result.is_err() {
            self.clear();
        }
        result
    }

    fn try_to(
        &mut self,
        packet: &TxPacket,
        board: &impl Dma,
        pool: &Pool,
        may_gather: bool,
    ) -> Result<usize, Trouble> {
        let mut copied = 0;
        self.copy(packet.header(), board, pool)?;
        for chunk in packet.chunks().iter().filter(|chunk| !chunk.is_empty()) {
            let address = if may_gather { board.bus_address(chunk.bytes()) } else { None };
            if let Some(address) = address {
                self.flush(board)?;
                self.push(address, chunk.len())?;
            } else {
                copied += chunk.len();
                self.copy(chunk.bytes(), board, pool)?;
            }
        }
        self.flush(board)?;
        if let Some(first) = self.pieces.first_mut() {
            first.is_first = true;
        }
        if let Some(last) = self.pieces.last_mut() {
            last.is_last = true;
        }
        Ok(copied)
    }

    /// Writes back what the engine is going to read: the copied bytes, and those of `packet` that lie where they were.
    pub fn clean(&self, packet: &TxPacket, board: &impl Dma, may_gather: bool) {
        let full = self.buffers.len().saturating_sub(1);
        for (at, buffer) in self.buffers.iter().enumerate() {
            let used = if at == full { self.filled } else { buffer.len() };
            board.clean(&buffer.bytes()[..used]);
        }
        if may_gather {
            let reached = packet.chunks().iter().filter(|chunk| board.bus_address(chunk.bytes()).is_some());
            reached.filter(|chunk| !chunk.is_empty()).for_each(|chunk| board.clean(chunk.bytes()));
        }
    }

    /// Takes two bytes of the copied headers away and leaves zero; `None` if they are not all in the first buffer.
    pub fn take_word(&mut self, at: usize, header_len: usize) -> Option<u16> {
        if at + 2 > header_len {
            return None;
        }
        let field = self.buffers.first_mut()?.bytes_mut().get_mut(at..at + 2)?;
        let value = u16::from_be_bytes([field[0], field[1]]);
        field.fill(0);
        Some(value)
    }

    /// Copies bytes behind those that were copied last, into as many buffers as it takes.
    fn copy(&mut self, mut bytes: &[u8], board: &impl Dma, pool: &Pool) -> Result<(), Trouble> {
        while !bytes.is_empty() {
            let room = self.buffers.last().map_or(0, |buffer| buffer.len() - self.filled);
            if room == 0 {
                self.flush(board)?;
                if self.buffers.len() == self.most_buffers {
                    return Err(Trouble::Pieces);
                }
                self.buffers.push(pool.take().ok_or(Trouble::NoBuffer)?);
                (self.filled, self.taken) = (0, 0);
                continue;
            }
            let Some(buffer) = self.buffers.last_mut() else { return Err(Trouble::NoBuffer) };
            let (now, later) = bytes.split_at(bytes.len().min(room));
            buffer.bytes_mut()[self.filled..self.filled + now.len()].copy_from_slice(now);
            self.filled += now.len();
            bytes = later;
        }
        Ok(())
    }

    /// Makes a piece of what was copied since the last one.
    fn flush(&mut self, board: &impl Dma) -> Result<(), Trouble> {
        let Some(buffer) = self.buffers.last() else { return Ok(()) };
        if self.filled == self.taken {
            return Ok(());
        }
        let bytes = &buffer.bytes()[self.taken..self.filled];
        let (address, len) = (board.bus_address(bytes).ok_or(Trouble::Pieces)?, bytes.len());
        self.taken = self.filled;
        self.push(address, len)
    }

    fn push(&mut self, buffer: u64, len: usize) -> Result<(), Trouble> {
        let len = u32::try_from(len).map_err(|_| Trouble::Pieces)?;
        if self.pieces.len() == self.most_pieces {
            return Err(Trouble::Pieces);
        }
        self.pieces.push(Piece { buffer, len, ..Piece::default() });
        Ok(())
    }
}
