//! The last frames of a connection, to be read when its world went wrong.

use super::frames::{Layout, Wire};
use super::plan::Side;
use linerate_wire::tcp::{self, Flags, SackBlocks};
use linerate_wire::units::Instant;
use std::collections::VecDeque;
use std::fmt;

/// So many are kept: some round trips, and all retransmissions within a user timeout.
const KEPT: usize = 100;

/// What became of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// Its sender has handed it over; it will arrive.
    Left,
    /// The same, and bits of it are flipped.
    Corrupted,
    /// It is lost.
    Lost,
    /// It is longer than the link became.
    TooBig,
    /// There was no buffer for it.
    Starved,
    /// Its receiver has it.
    Arrived,
}

struct Seen {
    at: Instant,
    to: Side,
    fate: Fate,
    flags: Flags,
    seq: u32,
    ack: u32,
    window: u16,
    blocks: SackBlocks,
    len: usize,
    segment_size: usize,
}

/// See the module.
#[derive(Default)]
pub struct Recent(VecDeque<Seen>);

impl Recent {
    /// Notes what became of a frame.
    pub fn note(&mut self, at: Instant, to: Side, fate: Fate, wire: &Wire, layout: Layout) {
        let Ok(header) = tcp::Header::parse(&wire.bytes[layout.tcp..]) else { return };
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(Seen {
            at,
            to,
            fate,
            flags: header.flags(),
            seq: header.sequence().0,
            ack: header.acknowledgement().0,
            window: header.window(),
            blocks: header.options().sack_blocks,
            len: wire.bytes.len() - layout.payload,
            segment_size: wire.segment_size,
        });
    }
}

impl fmt::Display for Recent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for seen in &self.0 {
            let Seen { to, fate, flags, seq, ack, window, len, segment_size, .. } = seen;
            let at = seen.at.as_nanos() / 1_000;
            write!(f, "  {at:>12} us to {to:?} {fate:?}: {flags:?} {seq}+{len} ack {ack} window {window}")?;
            if *segment_size > 0 {
                write!(f, " in {segment_size}s")?;
            }
            for block in seen.blocks.as_slice() {
                write!(f, " sack {}..{}", block.left.0, block.right.0)?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
