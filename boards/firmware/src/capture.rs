//! The capture: the last frames that the interface received and sent, in a ring of bytes, fetched as a pcapng file.
//!
//! The ring holds the file's blocks as they are, so that whatever part is asked for is a copy. When it is full, the oldest
//! frames go.

use alloc::string::String;
use alloc::vec::Vec;
use linerate_wire::pcapng::{self, HEAD_LEN, Packet, Seen};
use linerate_wire::units::Instant;

/// Most bytes of a frame that are kept unless somebody says otherwise: all of the longest.
pub(crate) const WHOLE: usize = 65_535 + 14;

/// The frames.
#[derive(Debug, Default)]
pub(crate) struct Capture {
    /// What the file begins with.
    head: Vec<u8>,
    ring: Vec<u8>,
    /// The place of the oldest byte, and how many there are.
    start: usize,
    used: usize,
    frames: u64,
    lost: u64,
    snap_len: usize,
    /// Goes up when it is switched: an odd one is on.
    generation: u32,
}

impl Capture {
    /// Room for so many bytes.
    pub(crate) fn with_bytes(bytes: usize, name: &str, mac: [u8; 6]) -> Self {
        let mut head = Vec::new();
        if bytes > 0 {
            let mut put = |bytes: &[u8]| head.extend_from_slice(bytes);
            pcapng::section("linerate", &mut put);
            pcapng::interface(name, mac, 0, &mut put);
        }
        Capture { head, ring: alloc::vec![0; bytes], ..Capture::default() }
    }

    /// Whether there is room for anything.
    pub(crate) fn has_room(&self) -> bool {
        !self.ring.is_empty()
    }

    /// Whether frames are kept.
    pub(crate) fn is_on(&self) -> bool {
        self.generation % 2 == 1
    }

    /// Begins anew and keeps at most so many bytes of each frame.
    pub(crate) fn start(&mut self, snap_len: usize) {
        if self.has_room() {
            self.generation += if self.is_on() { 2 } else { 1 };
            (self.start, self.used, self.frames, self.lost) = (0, 0, 0, 0);
            self.snap_len = snap_len;
        }
    }

    /// Keeps what there is, and no more.
    pub(crate) fn stop(&mut self) {
        if self.is_on() {
            self.generation += 1;
        }
    }

    /// What `capture status` says.
    pub(crate) fn status(&self) -> String {
        let is_on = if self.is_on() { "on" } else { "off" };
        let (used, room) = (self.used, self.ring.len());
        let (frames, lost) = (self.frames, self.lost);
        alloc::format!("capture {is_on}, {frames} frames in {used} bytes of {room}, {lost} older ones gone\n")
    }

    /// Which capture it is.
    pub(crate) fn generation(&self) -> u32 {
        self.generation
    }

    /// Bytes of the file.
    pub(crate) fn len(&self) -> usize {
        self.head.len() + self.used
    }

    /// Keeps a frame that lies in these pieces.
    pub(crate) fn keep<'a>(
        &mut self,
        at: Instant,
        seen: Seen,
        pieces: impl Iterator<Item = &'a [u8]> + Clone,
    ) {
        let len: usize = pieces.clone().map(<[u8]>::len).sum();
        let kept = len.min(self.snap_len);
        let packet = Packet { interface: 0, at, seen, len: len as u32, kept: kept as u32 };
        if packet.block_len() > self.ring.len() {
            self.lost += 1;
            return;
        }
        while self.ring.len() - self.used < packet.block_len() {
            self.drop_oldest();
        }
        self.put(&packet.head());
        let mut rest = kept;
        for piece in pieces {
            let piece = &piece[..piece.len().min(rest)];
            self.put(piece);
            rest -= piece.len();
        }
        let (tail, len) = packet.tail();
        self.put(&tail[..len]);
        self.frames += 1;
    }

    fn drop_oldest(&mut self) {
        let mut begin = [0; HEAD_LEN];
        self.copy_out(0, &mut begin);
        let [_, _, _, _, len @ .., _, _, _, _] = *begin.first_chunk::<12>().unwrap_or(&[0; 12]);
        let len = u32::from_le_bytes(len) as usize;
        self.start = (self.start + len) % self.ring.len();
        self.used -= len;
        self.frames -= 1;
        self.lost += 1;
    }

    /// Appends bytes that there is room for.
    fn put(&mut self, bytes: &[u8]) {
        let at = (self.start + self.used) % self.ring.len();
        let (first, rest) = bytes.split_at(bytes.len().min(self.ring.len() - at));
        self.ring[at..at + first.len()].copy_from_slice(first);
        self.ring[..rest.len()].copy_from_slice(rest);
        self.used += bytes.len();
    }

    /// Copies from the ring, counted from its oldest byte; there are as many.
    fn copy_out(&self, offset: usize, out: &mut [u8]) {
        let at = (self.start + offset) % self.ring.len();
        let (first, rest) = out.split_at_mut(out.len().min(self.ring.len() - at));
        first.copy_from_slice(&self.ring[at..at + first.len()]);
        rest.copy_from_slice(&self.ring[..rest.len()]);
    }

    /// A part of the file.
    pub(crate) fn read(&self, offset: u64, len: usize) -> Vec<u8> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.len());
        let to = from.saturating_add(len).min(self.len());
        let mut out = Vec::with_capacity(to - from);
        let head = self.head.len();
        out.extend_from_slice(&self.head[from.min(head)..to.min(head)]);
        let before = out.len();
        out.resize(to - from, 0);
        if out.len() > before {
            self.copy_out(from.max(head) - head, &mut out[before..]);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use proptest::prelude::*;

    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

    fn frame(number: usize, len: usize) -> Vec<u8> {
        (0..len).map(|at| (number * 31 + at) as u8).collect()
    }

    /// Frames of a file: those that were received, and their bytes.
    fn frames(file: &[u8]) -> Vec<(bool, Vec<u8>)> {
        let mut frames = Vec::new();
        let mut rest = file;
        while !rest.is_empty() {
            let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
            let len = word(4) as usize;
            assert_eq!(word(len - 4) as usize, len);
            if word(0) == 6 {
                let kept = word(20) as usize;
                let flags = word(HEAD_LEN + kept.next_multiple_of(4) + 4);
                frames.push((flags == Seen::Inbound as u32, rest[HEAD_LEN..HEAD_LEN + kept].to_vec()));
            }
            rest = &rest[len..];
        }
        frames
    }

    #[test]
    fn without_room_nothing_is_kept() {
        let mut capture = Capture::with_bytes(0, "eth0", MAC);
        capture.start(WHOLE);
        assert!(!capture.is_on() && capture.len() == 0);
    }

    #[test]
    fn a_frame_longer_than_the_ring_is_left_out() {
        let mut capture = Capture::with_bytes(256, "eth0", MAC);
        capture.start(WHOLE);
        capture.keep(Instant::ZERO, Seen::Inbound, [&frame(0, 10)[..]].into_iter());
        capture.keep(Instant::ZERO, Seen::Inbound, [&frame(1, 300)[..]].into_iter());
        let file = capture.read(0, usize::MAX);
        assert_eq!(frames(&file), [(true, frame(0, 10))]);
        // What is cut fits.
        capture.start(100);
        capture.keep(Instant::ZERO, Seen::Outbound, [&frame(1, 300)[..]].into_iter());
        assert_eq!(frames(&capture.read(0, usize::MAX)), [(false, frame(1, 300)[..100].to_vec())]);
        assert!(capture.status().contains("on, 1 frames"), "{}", capture.status());
    }

    proptest! {
        #[test]
        fn the_newest_frames_are_in_the_file(
            room in 400usize..2_000,
            snap_len in 1usize..300,
            steps in prop::collection::vec((1usize..300, 0usize..300), 1..60),
            step in 1usize..100,
        ) {
            let mut capture = Capture::with_bytes(room, "eth0", MAC);
            capture.start(snap_len);
            let mut model = VecDeque::new();
            let block = |bytes: &Vec<u8>| HEAD_LEN + bytes.len().next_multiple_of(4) + 16;
            for (number, (len, cut)) in steps.into_iter().enumerate() {
                let bytes = frame(number, len);
                let (a, b) = bytes.split_at(cut.min(len));
                let seen = if number % 2 == 0 { Seen::Inbound } else { Seen::Outbound };
                capture.keep(Instant::from_nanos(number as u64), seen, [a, b].into_iter());
                model.push_back((number % 2 == 0, bytes[..len.min(snap_len)].to_vec()));
                while model.iter().map(|(_, bytes)| block(bytes)).sum::<usize>() > room {
                    model.pop_front();
                }
            }
            capture.stop();
            // In pieces it is the same file.
            let mut file = Vec::new();
            while file.len() < capture.len() {
                file.extend(capture.read(file.len() as u64, step));
            }
            prop_assert_eq!(&file, &capture.read(0, usize::MAX));
            prop_assert_eq!(frames(&file), Vec::from(model));
            prop_assert!(capture.read(file.len() as u64, 1).is_empty());
        }
    }
}
