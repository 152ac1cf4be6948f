//! Where received frames land: a small buffer for a small frame and a large one for a super-frame, without knowing
//! beforehand which it will be and without copying payload in a steady stream of either kind.
//!
//! A read scatters over both: either the small buffer comes first and the large one continues it, or the large one
//! takes all. The size of the frame before decides, as frames come in trains. Where the guess was wrong, at most one
//! small buffer's worth of bytes is copied, so that a small frame never keeps a large buffer from its pool.

use linerate_nic::{Buffer, Pool};

/// Free bytes before each frame: room for a VLAN tag to be put back in, and 2 that align the IP header to 4 bytes.
pub(crate) const HEADROOM: usize = 6;

/// Smallest size of the large buffers: an IP packet of 65,535 bytes with Ethernet and VLAN header, and headroom.
pub const MIN_LARGE_BUFFER: usize = HEADROOM + 18 + 65_535;

/// Smallest size of the small buffers: headers and what an ACK, an ARP packet or a ping carries.
pub const MIN_SMALL_BUFFER: usize = 256;

/// The buffers that a device receives into. Clone the pools to keep an eye on them.
#[derive(Clone, Debug)]
pub struct RxPools {
    /// Buffers of at least [`MIN_LARGE_BUFFER`] bytes, for super-frames and jumbo frames.
    pub large: Pool,
    /// Buffers of at least [`MIN_SMALL_BUFFER`] bytes; 2 KiB holds a frame of 1,500 bytes MTU.
    pub small: Pool,
}

impl RxPools {
    /// Up to `large` buffers of 64 KiB + 256 and `small` buffers of 2 KiB, each made when it is needed.
    pub fn new(large: usize, small: usize) -> Self {
        RxPools { large: Pool::on_demand(large, (64 << 10) + 256), small: Pool::on_demand(small, 2 << 10) }
    }

    /// The pool whose buffers are too small and what they should have, if one is.
    pub(crate) fn flaw(&self) -> Option<(&'static str, usize, usize)> {
        if self.large.buffer_size() < MIN_LARGE_BUFFER {
            Some(("large", self.large.buffer_size(), MIN_LARGE_BUFFER))
        } else if self.small.buffer_size() < MIN_SMALL_BUFFER {
            Some(("small", self.small.buffer_size(), MIN_SMALL_BUFFER))
        } else {
            None
        }
    }
}

/// What became of one read.
pub(crate) enum Landed {
    /// A frame of this many bytes at [`HEADROOM`] of the buffer.
    Frame(Buffer, usize),
    /// The frame did not fit where there was room and is lost.
    Cut,
}

/// Holds the buffers of the next read.
pub(crate) struct Landing {
    pools: RxPools,
    large: Option<Buffer>,
    small: Option<Buffer>,
    /// Takes the rest of a frame that no buffer is free for.
    overflow: Box<[u8]>,
    expect_small: bool,
    /// Whether the small buffer came first in the read that is under way.
    small_first: bool,
}

impl Landing {
    /// `overflow` bytes take what does not fit where no buffer is free; 0 where the kernel tells of a frame cut short.
    pub(crate) fn new(pools: RxPools, overflow: usize) -> Self {
        Landing {
            pools,
            large: None,
            small: None,
            overflow: vec![0; overflow].into_boxed_slice(),
            expect_small: true,
            small_first: false,
        }
    }

    /// The places that the next frame goes to, the second after the first; `None` when no buffer is free. Every call is
    /// followed by [`Landing::settle`], or by nothing when no frame came.
    pub(crate) fn places(&mut self) -> Option<(&mut [u8], &mut [u8])> {
        self.small = self.small.take().or_else(|| self.pools.small.take());
        // Without a small buffer every frame takes a large one. Without a large one only small frames are taken: that
        // is the reserve which ACKs and control packets live on.
        self.large = self.large.take().or_else(|| self.pools.large.take());
        self.small_first = self.small.is_some() && (self.expect_small || self.large.is_none());
        match (&mut self.small, &mut self.large, self.small_first) {
            (Some(small), Some(large), true) => {
                let at = small.len();
                Some((&mut small.bytes_mut()[HEADROOM..], &mut large.bytes_mut()[at..]))
            }
            (_, Some(large), _) => Some((&mut large.bytes_mut()[HEADROOM..], &mut [])),
            (Some(small), None, _) => Some((&mut small.bytes_mut()[HEADROOM..], &mut self.overflow)),
            (None, None, _) => None,
        }
    }

    /// Finds the buffer that a frame of `len` bytes is to stay in.
    pub(crate) fn settle(&mut self, len: usize) -> Landed {
        let end = HEADROOM + len;
        let is_small = end <= self.pools.small.buffer_size();
        self.expect_small = is_small;
        if is_small && let Some(mut small) = self.small.take() {
            if !self.small_first
                && let Some(large) = &self.large
            {
                small.bytes_mut()[HEADROOM..end].copy_from_slice(&large.bytes()[HEADROOM..end]);
            }
            return Landed::Frame(small, len);
        }
        match self.large.take() {
            Some(large) if end > large.len() => {
                self.large = Some(large);
                Landed::Cut
            }
            Some(mut large) => {
                if self.small_first
                    && let Some(small) = &self.small
                {
                    let first = small.len();
                    large.bytes_mut()[HEADROOM..first].copy_from_slice(&small.bytes()[HEADROOM..]);
                }
                Landed::Frame(large, len)
            }
            None => Landed::Cut,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Receives a frame of `len` numbered bytes; returns what it landed in and checks the bytes.
    fn land(landing: &mut Landing, len: usize) -> Option<Buffer> {
        let (first, second) = landing.places()?;
        for (i, byte) in first.iter_mut().chain(second).take(len).enumerate() {
            *byte = (i % 251) as u8;
        }
        let Landed::Frame(buffer, got) = landing.settle(len) else { return None };
        assert_eq!(got, len);
        let bytes = &buffer.bytes()[HEADROOM..HEADROOM + len];
        assert!(bytes.iter().enumerate().all(|(i, &b)| b == (i % 251) as u8), "frame of {len} bytes");
        Some(buffer)
    }

    #[test]
    fn every_change_of_size_lands_whole_and_in_the_right_buffer() {
        let pools = RxPools { large: Pool::new(2, MIN_LARGE_BUFFER), small: Pool::new(2, 2048) };
        let mut landing = Landing::new(pools, 0);
        for len in [60, 1514, 2042, 2043, 65_553, 65_553, 60, 9014, 2042, 2043, 60] {
            let buffer = land(&mut landing, len).unwrap();
            let wanted = if len + HEADROOM <= 2048 { 2048 } else { MIN_LARGE_BUFFER };
            assert_eq!(buffer.len(), wanted, "frame of {len} bytes");
        }
    }

    #[test]
    fn small_frames_live_on_when_large_buffers_are_gone() {
        let pools = RxPools { large: Pool::new(1, MIN_LARGE_BUFFER), small: Pool::new(1, 2048) };
        let mut landing = Landing::new(pools, MIN_LARGE_BUFFER);
        let large = land(&mut landing, 60_000).unwrap();
        assert!(land(&mut landing, 60_000).is_none(), "no room for a large frame");
        let small = land(&mut landing, 100).unwrap();
        assert!(landing.places().is_none());
        drop(large);
        assert_eq!(land(&mut landing, 100).unwrap().len(), MIN_LARGE_BUFFER, "a large one serves too");
        drop(small);
        assert_eq!(land(&mut landing, 100).unwrap().len(), 2048);
    }

    #[test]
    fn buffers_that_are_too_small_are_named() {
        let flaw = |large, small| {
            RxPools { large: Pool::new(1, large), small: Pool::new(1, small) }.flaw().map(|f| f.0)
        };
        assert_eq!(flaw(65_536, 2048), Some("large"));
        assert_eq!(flaw(MIN_LARGE_BUFFER, 255), Some("small"));
        assert_eq!(flaw(MIN_LARGE_BUFFER, 256), None);
        assert!(RxPools::new(1, 1).flaw().is_none());
    }
}
