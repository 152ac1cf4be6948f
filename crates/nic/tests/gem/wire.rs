//! What the model looks at in a frame: addresses, checksums, screeners. Written after the manual, and not after the driver.

use std::collections::HashMap;

fn register(written: &HashMap<u32, u32>, register: u32) -> u32 {
    written.get(&register).copied().unwrap_or(0)
}

/// Whether the MAC takes the frame.
pub fn filter(frame: &[u8], config: u32, written: &HashMap<u32, u32>) -> bool {
    let to = &frame[..6];
    let own = [register(written, 0x088).to_le_bytes(), register(written, 0x08C).to_le_bytes()].concat();
    if config & 1 << 4 != 0 || to == [0xFF; 6] || to == &own[..6] {
        return true;
    }
    // hash_index[n] is the exclusive-or of bits n, n + 6, n + 12 and so on of the address.
    let bit = |at: usize| usize::from(to[at / 8] >> (at % 8) & 1);
    let index = (0..6).fold(0, |index, n| index | (0..8).fold(0, |x, k| x ^ bit(n + 6 * k)) << n);
    let half = register(written, if index < 32 { 0x080 } else { 0x084 });
    to[0] & 1 != 0 && config & 1 << 6 != 0 && half >> (index % 32) & 1 != 0
}

/// The one's complement sum of big-endian words.
fn sum(bytes: &[u8], from: u32) -> u32 {
    let words = bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)));
    words.fold(from, |sum, word| {
        let sum = sum + word;
        (sum & 0xFFFF) + (sum >> 16)
    })
}

/// Of an IPv4 packet: where layer 4 begins and ends, the protocol, and the sum of the pseudo-header.
fn layer4(frame: &[u8]) -> Option<(usize, usize, u8, u32)> {
    if frame.get(12..14) != Some(&[8, 0]) || frame[14] >> 4 != 4 {
        return None;
    }
    let start = 14 + usize::from(frame[14] & 15) * 4;
    let end = 14 + usize::from(u16::from_be_bytes([frame[16], frame[17]]));
    let protocol = frame[23];
    let pseudo = sum(&frame[26..34], u32::from(protocol) + (end - start) as u32);
    Some((start, end, protocol, pseudo))
}

fn field(protocol: u8) -> Option<usize> {
    match protocol {
        6 => Some(16),
        17 => Some(6),
        _ => None,
    }
}

/// Fills in the checksum of layer 4; what lies in its field counts.
pub fn fill_in(frame: &mut [u8]) {
    let Some((start, end, protocol, pseudo)) = layer4(frame) else { return };
    let Some(field) = field(protocol) else { return };
    let value = !(sum(&frame[start..end], pseudo) as u16);
    frame[start + field..start + field + 2].copy_from_slice(&value.to_be_bytes());
}

/// Bits 23:22 of the status of a received frame; `None` if a checksum is wrong.
pub fn verify(frame: &[u8]) -> Option<u32> {
    let Some((start, end, protocol, pseudo)) = layer4(frame) else { return Some(0) };
    if sum(&frame[14..start], 0) != 0xFFFF {
        return None;
    }
    match (protocol, field(protocol)) {
        (_, None) => Some(0b01),
        _ if sum(&frame[start..end], pseudo) != 0xFFFF => None,
        (6, _) => Some(0b10),
        _ => Some(0b11),
    }
}

/// The queue of a frame.
pub fn screen(frame: &[u8], written: &HashMap<u32, u32>) -> usize {
    for at in 0..4 {
        let word = register(written, 0x500 + 4 * at);
        let class = layer4(frame).map(|_| u32::from(frame[15]));
        let port = layer4(frame)
            .filter(|(.., protocol, _)| *protocol == 17)
            .map(|(start, ..)| u32::from(u16::from_be_bytes([frame[start + 2], frame[start + 3]])));
        let class_meets = word & 1 << 28 == 0 || class == Some(word >> 4 & 0xFF);
        let port_meets = word & 1 << 29 == 0 || port == Some(word >> 12 & 0xFFFF);
        if word & (1 << 28 | 1 << 29) != 0 && class_meets && port_meets {
            return (word & 15) as usize;
        }
    }
    for at in 0..4 {
        let word = register(written, 0x540 + 4 * at);
        let kind = u32::from(u16::from_be_bytes([frame[12], frame[13]]));
        let kind_meets = word & 1 << 12 == 0 || kind == register(written, 0x6E0 + 4 * (word >> 9 & 7));
        let compare = word >> 13 & 0x1F;
        let compare_meets = word & 1 << 18 == 0 || meets(frame, compare, written);
        if word & (1 << 12 | 1 << 18) != 0 && kind_meets && compare_meets {
            return (word & 15) as usize;
        }
    }
    0
}

/// Whether a frame meets a compare.
fn meets(frame: &[u8], compare: u32, written: &HashMap<u32, u32>) -> bool {
    let (low, high) = (register(written, 0x700 + 8 * compare), register(written, 0x704 + 8 * compare));
    let layer4 = layer4(frame);
    let origin = match high >> 7 & 3 {
        0 => Some(0),
        1 => Some(14),
        2 => layer4.map(|(start, ..)| start),
        _ => layer4.and_then(|(start, _, protocol, _)| match protocol {
            6 => Some(start + usize::from(frame[start + 12] >> 4) * 4),
            17 => Some(start + 8),
            _ => None,
        }),
    };
    let Some(at) = origin.map(|origin| origin + (high & 0x7F) as usize) else { return false };
    let Some(bytes) = frame.get(at..at + 4) else { return false };
    let value = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    if high & 1 << 9 != 0 { value == low } else { (value ^ low >> 16) & low & 0xFFFF == 0 }
}
