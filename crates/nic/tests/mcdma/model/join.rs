//! Coalescing of received segments: those that follow each other in the FIFO and fit.

/// A frame, and what was joined to it.
pub struct Joined {
    frame: Vec<u8>,
    /// Where IP and payload begin; `None` for what is not joined.
    at: Option<(usize, usize)>,
    pub segments: u32,
    pub segment_size: u32,
    is_closed: bool,
}

/// Where IP, TCP and payload begin in a plain TCP segment with timestamps or without options, and where it ends.
fn tcp(frame: &[u8]) -> Option<(usize, usize, usize, usize)> {
    let ip = 14;
    let (layer4, end) = match (frame.get(12..14)?, frame.get(14)?) {
        ([8, 0], 0x45) if frame[23] == 6 && frame[20] & 0xBF == 0 && frame[21] == 0 => {
            (ip + 20, ip + usize::from(u16::from_be_bytes([frame[16], frame[17]])))
        }
        ([0x86, 0xDD], _) if frame[20] == 6 => {
            (ip + 40, ip + 40 + usize::from(u16::from_be_bytes([frame[18], frame[19]])))
        }
        _ => return None,
    };
    let payload = layer4 + 4 * usize::from(*frame.get(layer4 + 12)? >> 4);
    let has_good_sum = matches!(super::checksum::status(frame), 0b010);
    (payload < end && end <= frame.len() && has_good_sum).then_some((ip, layer4, payload, end))
}

impl Joined {
    pub fn new(mut frame: Vec<u8>) -> Joined {
        let found = tcp(&frame);
        if let Some((.., end)) = found {
            frame.truncate(end);
        }
        let is_closed = found.is_none_or(|(_, layer4, ..)| frame[layer4 + 13] != 0x10);
        let at = found.map(|(ip, _, payload, _)| (ip, payload));
        Joined { frame, at, segments: 1, segment_size: 0, is_closed }
    }

    /// Joins `other`, if it goes on where this one ends.
    pub fn take(&mut self, other: &[u8]) -> bool {
        let (Some((ip, payload)), false) = (self.at, self.is_closed) else { return false };
        let Some((_, layer4, other_payload, end)) = tcp(other) else { return false };
        let len = end - other_payload;
        let mine = &self.frame;
        let size = if self.segments == 1 { mine.len() - payload } else { self.segment_size as usize };
        let word = |frame: &[u8], at: usize| u32::from_be_bytes(frame[at..at + 4].try_into().expect("four"));
        let expected = word(mine, layer4 + 4).wrapping_add((mine.len() - payload) as u32);
        let is_same = payload == other_payload
            && mine[..14] == other[..14]
            && mine[layer4 - 8..layer4 + 4] == other[layer4 - 8..layer4 + 4]
            && mine[layer4 + 8..layer4 + 13] == other[layer4 + 8..layer4 + 13]
            && word(other, layer4 + 4) == expected
            && mine[payload.min(layer4 + 20)..payload] == other[payload.min(layer4 + 20)..payload];
        let is_plain = matches!(other[layer4 + 13], 0x10 | 0x18);
        if !is_same || !is_plain || len > size || mine.len() + len - ip > 65_535 {
            return false;
        }
        self.is_closed = other[layer4 + 13] == 0x18 || len < size;
        self.frame[layer4 + 13] |= other[layer4 + 13];
        self.frame.extend_from_slice(&other[other_payload..end]);
        self.segments += 1;
        self.segment_size = size as u32;
        true
    }

    /// The frame, its lengths those of the whole.
    pub fn finish(mut self) -> Vec<u8> {
        if let (Some((ip, _)), true) = (self.at, self.segments > 1) {
            let len = (self.frame.len() - ip) as u16;
            let is_v6 = self.frame[ip] >> 4 == 6;
            let (at, len) = if is_v6 { (ip + 4, len - 40) } else { (ip + 2, len) };
            self.frame[at..at + 2].copy_from_slice(&len.to_be_bytes());
        }
        self.frame
    }
}
