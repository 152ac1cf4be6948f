//! The FIFO behind a MAC that cannot be held back: whole frames or nothing.
//!
//! It equals `rtl/rx_fifo` clock by clock. What finds no room is dropped with its whole frame; the frame's reason is known at its
//! end, and the first of these counts: the MAC's error, too long, a flow rule's drop, no room.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Sizes of a [`RxFifo`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RxFifoConfig {
    /// Bytes of a word.
    pub word_bytes: usize,
    /// Words of memory.
    pub words: usize,
    /// Frames that can be in it.
    pub frames: usize,
    /// Longest frame that is kept, in bytes.
    pub max_frame: usize,
}

/// What became of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It leaves when its turn comes.
    Kept,
    /// The MAC said that it is damaged.
    Error,
    /// It has more bytes than [`RxFifoConfig::max_frame`].
    TooLong,
    /// A flow rule says so.
    Rule,
    /// There was no room for it.
    Overflow,
}

/// The end of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tail<M> {
    /// What is known of the frame.
    pub meta: M,
    /// The MAC says that it is damaged.
    pub error: bool,
    /// A flow rule says drop.
    pub rule: bool,
}

/// A word of a frame on its way out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Word<M> {
    /// Its bytes: all of the word but at the frame's end.
    pub bytes: Vec<u8>,
    /// Whether the frame ends here.
    pub last: bool,
    /// What is known of the frame, in each of its words.
    pub meta: M,
}

/// The FIFO. Each clock is [`RxFifo::clock`]; [`RxFifo::offered`] is what its output shows.
#[derive(Clone, Debug)]
pub struct RxFifo<M> {
    config: RxFifoConfig,
    /// Whole frames.
    stored: VecDeque<Word<M>>,
    /// The frame that is being written.
    partial: Vec<Vec<u8>>,
    /// Its bytes, those without a place included.
    partial_len: usize,
    cut: bool,
    /// Frames whose metadata is still held.
    frames: usize,
    /// The memory's output register, and the one behind it.
    fetched: [Option<Word<M>>; 2],
    offered: Option<Word<M>>,
}

impl<M: Copy> RxFifo<M> {
    /// An empty one.
    pub fn new(config: RxFifoConfig) -> Self {
        RxFifo {
            config,
            stored: VecDeque::new(),
            partial: Vec::new(),
            partial_len: 0,
            cut: false,
            frames: 0,
            fetched: [const { None }; 2],
            offered: None,
        }
    }

    /// What the output shows before the clock.
    pub fn offered(&self) -> Option<&Word<M>> {
        self.offered.as_ref()
    }

    /// Bytes of memory in use, in whole words: what a request for a pause is decided by.
    pub fn used(&self) -> usize {
        (self.stored.len() + self.partial.len()) * self.config.word_bytes
    }

    /// One clock: perhaps a word comes, with the frame's tail if it is the last one, and perhaps the consumer is `ready`.
    /// Says what became of the frame that ended.
    pub fn clock(&mut self, word: Option<(&[u8], Option<Tail<M>>)>, ready: bool) -> Option<Fate> {
        // Both sides see what was there before the clock.
        let has_room = self.stored.len() + self.partial.len() < self.config.words
            && self.frames < self.config.frames
            && !self.cut;
        self.read(ready);
        let (bytes, tail) = word?;
        self.partial_len += bytes.len();
        if has_room {
            self.partial.push(bytes.to_vec());
        } else {
            self.cut = true;
        }
        let tail = tail?;
        let fate = if tail.error {
            Fate::Error
        } else if self.partial_len > self.config.max_frame {
            Fate::TooLong
        } else if tail.rule {
            Fate::Rule
        } else if self.cut {
            Fate::Overflow
        } else {
            Fate::Kept
        };
        let words = core::mem::take(&mut self.partial);
        if fate == Fate::Kept {
            self.frames += 1;
            let end = words.len();
            let words = words.into_iter().enumerate();
            self.stored.extend(words.map(|(at, bytes)| Word { bytes, last: at + 1 == end, meta: tail.meta }));
        }
        self.partial_len = 0;
        self.cut = false;
        Some(fate)
    }

    fn read(&mut self, ready: bool) {
        // A register takes what is behind it when it is free or becomes so.
        if self.offered.is_none() || ready {
            self.offered = self.fetched[1].take();
            if self.offered.as_ref().is_some_and(|word| word.last) {
                self.frames -= 1;
            }
        }
        if self.fetched[1].is_none() {
            self.fetched[1] = self.fetched[0].take();
        }
        if self.fetched[0].is_none() {
            self.fetched[0] = self.stored.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const CONFIG: RxFifoConfig = RxFifoConfig { word_bytes: 8, words: 16, frames: 4, max_frame: 60 };

    /// Sends a frame of `len` bytes with the consumer stopped.
    fn send(fifo: &mut RxFifo<u8>, len: usize, meta: u8, error: bool, rule: bool) -> Fate {
        let frame = vec![meta; len];
        let words = frame.chunks(8).collect::<Vec<_>>();
        let mut fate = None;
        for (at, word) in words.iter().enumerate() {
            let tail = (at + 1 == words.len()).then_some(Tail { meta, error, rule });
            fate = fifo.clock(Some((word, tail)), false);
        }
        fate.expect("a fate at the end")
    }

    /// Takes out all that is there: the metadata of each frame and its bytes.
    fn drain(fifo: &mut RxFifo<u8>) -> Vec<(u8, usize)> {
        let mut frames = vec![];
        let mut len = 0;
        for _ in 0..100 {
            if let Some(word) = fifo.offered() {
                assert!(word.bytes.iter().all(|byte| *byte == word.meta), "bytes of another frame");
                len += word.bytes.len();
                if word.last {
                    frames.push((word.meta, core::mem::take(&mut len)));
                }
            }
            fifo.clock(None, true);
        }
        assert_eq!((len, fifo.used(), fifo.frames), (0, 0, 0));
        frames
    }

    #[test]
    fn the_first_reason_counts() {
        let mut fifo = RxFifo::new(CONFIG);
        assert_eq!(send(&mut fifo, 61, 1, true, true), Fate::Error);
        assert_eq!(send(&mut fifo, 61, 2, false, true), Fate::TooLong);
        assert_eq!(send(&mut fifo, 60, 3, false, true), Fate::Rule);
        assert_eq!(send(&mut fifo, 60, 4, false, false), Fate::Kept);
        assert_eq!(send(&mut fifo, 200, 5, false, false), Fate::TooLong);
        assert_eq!(drain(&mut fifo), [(4, 60)]);
    }

    #[test]
    fn a_frame_without_room_leaves_nothing_behind() {
        let mut fifo = RxFifo::new(CONFIG);
        // Three words are on their way out, so 19 are held: 7 + 7 + 5.
        assert_eq!(send(&mut fifo, 56, 1, false, false), Fate::Kept);
        assert_eq!(send(&mut fifo, 56, 2, false, false), Fate::Kept);
        assert_eq!(send(&mut fifo, 48, 3, false, false), Fate::Overflow);
        assert_eq!(send(&mut fifo, 40, 4, false, false), Fate::Kept);
        assert_eq!(fifo.used(), 128);
        assert_eq!(send(&mut fifo, 1, 5, false, false), Fate::Overflow);
        assert_eq!(drain(&mut fifo), [(1, 56), (2, 56), (4, 40)]);
    }

    #[test]
    fn there_are_only_so_many_frames() {
        let mut fifo = RxFifo::new(CONFIG);
        // The first one's metadata is free as soon as its word is at the output.
        let fates: Vec<Fate> = (0..6).map(|meta| send(&mut fifo, 1, meta, false, false)).collect();
        assert_eq!(fates[..5], [Fate::Kept; 5]);
        assert_eq!(fates[5], Fate::Overflow);
        assert_eq!(drain(&mut fifo).len(), 5);
    }
}
