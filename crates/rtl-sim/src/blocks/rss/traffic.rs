//! Frames for receive-side scaling: those of all parsers, short ones where a bit or a byte decides what they are, and flows that
//! differ from others in a bit.

use crate::Rng;
use crate::frames::{self, Mix};
use linerate_nic::offload::steer::Tuple;

const TCP: u8 = 6;
const UDP: u8 = 17;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
/// IPv6 extension headers.
const EXTENSIONS: [u8; 5] = [0, 43, FRAGMENT, AUTHENTICATION, 60];

/// A frame of any kind. What lies behind the headers costs clocks and is looked at by nobody, so most are short.
pub fn any(rng: &mut Rng) -> Vec<u8> {
    let mix = Mix { fragments: 6, malformed: 3, other: 2, jumbo: 1, giant: 10, ..Mix::default() };
    loop {
        let frame = frames::random(rng, &mix);
        if frame.len() < 200 || rng.chance(8) {
            return frame;
        }
    }
}

/// A frame of another flow, of which the addresses, the ports and the protocol are those of this one but for a bit.
pub fn sibling(rng: &mut Rng, frame: &[u8]) -> Vec<u8> {
    let tuple = Tuple::of_frame(frame);
    for _ in 0..60 {
        let mut other = frame.to_vec();
        let at = 14 + rng.below(frame.len().clamp(15, 100) as u64 - 14) as usize;
        if let Some(byte) = other.get_mut(at) {
            *byte ^= 1 << rng.below(8);
        }
        let changed = Tuple::of_frame(&other);
        if changed.is_some() && changed != tuple {
            return other;
        }
    }
    frame.to_vec()
}

/// Fewer bytes than two addresses and ports have, and headers and lengths which are just right, or just not.
pub fn brink(rng: &mut Rng) -> Vec<u8> {
    let mut frame = random_bytes(rng, 12);
    for _ in 0..rng.pick(&[0, 0, 0, 1, 1, 2, 2, 3]) {
        let tag = rng.pick(&[0x8100, 0x88a8]);
        let tag = almost(rng, tag, 6);
        frame.extend(tag.to_be_bytes());
        frame.extend((rng.bits() as u16).to_be_bytes());
    }
    let is_v6 = rng.chance(50);
    let kind = if is_v6 { 0x86dd } else { 0x0800 };
    frame.extend(almost(rng, kind, 3).to_be_bytes());
    let ip = frame.len();
    let size = rng.pick(&[0, 1, 2, 3, 4, 5, 7, 8, 12, 20]);
    let size = if rng.chance(20) { rng.between(0, 64) } else { size };
    let protocol = match rng.below(10) {
        0..=4 => TCP,
        5..=7 => UDP,
        8 => rng.pick(&[TCP, UDP]) ^ 1 << rng.below(8),
        _ => rng.pick(&[1, 58, 59, 132, 255]),
    };
    if is_v6 {
        ipv6(rng, &mut frame, protocol, size)
    } else {
        ipv4(rng, &mut frame, protocol, size)
    }
    let payload = random_bytes(rng, size);
    frame.extend(payload);
    spoil(rng, &mut frame, ip, is_v6);
    frame
}

/// The value, or with this chance in percent one that differs in a bit.
fn almost(rng: &mut Rng, value: u16, percent: u64) -> u16 {
    if rng.chance(percent) { value ^ 1 << rng.below(16) } else { value }
}

fn random_bytes(rng: &mut Rng, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    rng.fill(&mut bytes);
    bytes
}

fn ipv4(rng: &mut Rng, frame: &mut Vec<u8>, protocol: u8, size: usize) {
    let options = if rng.chance(50) { 0 } else { rng.between(1, 10) };
    let mut header = random_bytes(rng, 20 + 4 * options);
    header[0] = 0x45 + options as u8;
    let total = (header.len() + size) as u16;
    header[2..4].copy_from_slice(&total.to_be_bytes());
    // One bit of flags and offset at a time; the upper two say nothing of fragments.
    let flags = if rng.chance(70) { rng.pick(&[0u16, 0x4000]) } else { 1 << rng.below(16) };
    header[6..8].copy_from_slice(&flags.to_be_bytes());
    header[9] = protocol;
    frame.extend(header);
}

fn ipv6(rng: &mut Rng, frame: &mut Vec<u8>, protocol: u8, size: usize) {
    let count = rng.pick(&[0, 0, 0, 1, 1, 2, 3, 6, 7, 8, 9]);
    let kinds: Vec<u8> = (0..count)
        .map(|_| match rng.below(12) {
            0 => FRAGMENT,
            1 => rng.pick(&EXTENSIONS) ^ (1 << rng.below(8)),
            _ => rng.pick(&[0, 43, AUTHENTICATION, 60]),
        })
        .collect();
    let mut extensions = Vec::new();
    for (index, kind) in kinds.iter().enumerate() {
        let units = match rng.below(20) {
            0..=13 => rng.between(0, 1),
            14..=18 => rng.between(2, 9),
            _ => 1 << rng.below(8),
        };
        let len = match *kind {
            FRAGMENT => 8,
            AUTHENTICATION => 4 * (units + 2),
            _ => 8 * (units + 1),
        };
        let mut header = random_bytes(rng, len);
        header[0] = kinds.get(index + 1).copied().unwrap_or(protocol);
        if *kind == FRAGMENT {
            // Bits 2 and 1 of the offset's half-word are reserved, and its lowest is "more".
            let offset = if rng.chance(50) { 0 } else { 1u16 << rng.below(16) };
            header[2..4].copy_from_slice(&offset.to_be_bytes());
        } else {
            header[1] = units as u8;
        }
        extensions.extend(header);
    }
    let mut header = random_bytes(rng, 40);
    header[0] = 0x60 | header[0] & 0xf;
    header[4..6].copy_from_slice(&((extensions.len() + size) as u16).to_be_bytes());
    header[6] = kinds.first().copied().unwrap_or(protocol);
    frame.extend(header);
    frame.extend(extensions);
}

/// What may be wrong, one thing at a time; often nothing is.
fn spoil(rng: &mut Rng, frame: &mut Vec<u8>, ip: usize, is_v6: bool) {
    let field = if is_v6 { ip + 4 } else { ip + 2 };
    let length = u16::from_be_bytes([frame[field], frame[field + 1]]);
    let mut say = |length: u16| frame[field..field + 2].copy_from_slice(&length.to_be_bytes());
    match rng.below(16) {
        // The packet ends with the frame. Then padding behind it.
        0..=4 => {}
        5..=7 => {
            let len = rng.between(1, 12);
            let padding = random_bytes(rng, len);
            frame.extend(padding);
        }
        8 | 9 => say(length ^ 1 << rng.below(16)),
        10 => say(length.wrapping_add(rng.pick(&[1, 2, 3, 4, 0xffff, 0xfffe, 0xfffd, 0xfffc]))),
        // As if the packet ended at any place of its headers.
        11 => say(rng.below(u64::from(length) + 1) as u16),
        12 | 13 => frame.truncate(rng.between(14, frame.len())),
        14 => {
            let at = rng.between(12, ip + 19);
            frame[at] ^= 1 << rng.below(8);
        }
        // Version and header length.
        _ => frame[ip] ^= 1 << rng.below(8),
    }
}
